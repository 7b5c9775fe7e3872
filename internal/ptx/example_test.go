// A runnable example of the package.

package ptx_test

import (
	"fmt"

	"github.com/dagrun/dagrun/internal/ptx"
)

func Example() {
	m, err := ptx.Parse(`
.version 7.0
.target sm_80
.address_size 64
.visible .entry double(.param .u64 x)
{
	.reg .b64 %rd<3>;
	.reg .f32 %f<3>;
	ld.param.u64 %rd1, [x];
	ld.global.f32 %f1, [%rd1];
	add.f32 %f2, %f1, %f1;
	st.global.f32 [%rd1], %f2;
	ret;
}`)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, id := range m.Entries() {
		f := &m.Functions[id]
		for i := range f.Code {
			in := &f.Code[i]
			fmt.Println(f.Name, in.Position, in.Form.Op, in.Form.Space(), in.Form.Type())
		}
	}
	// Output:
	// double 9:2 ld param u64
	// double 10:2 ld global f32
	// double 11:2 add generic f32
	// double 12:2 st global f32
	// double 13:2 ret generic none
}
