// A kernel made of an expression, without a pipeline around it.

package maps_test

import (
	"fmt"
	"math"
	"unsafe"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/dag/expr"
	"github.com/dagrun/dagrun/kernels/launch"
	"github.com/dagrun/dagrun/kernels/maps"
)

func Example() {
	out, e, err := expr.ParseMap("z = a*x + 1")
	if err != nil {
		fmt.Println(err)
		return
	}
	var maker maps.Maker
	k, err := maker.Map(&dag.MapSpec{Text: "z = a*x + 1", Expr: e, Out: out, OutType: dag.F32,
		Inputs: []string{"x"}, InTypes: []dag.DType{dag.F32}, Scalars: []string{"a"}})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, p := range k.Params() {
		fmt.Println(p.Name, p.DType, p.Mode)
	}
	x, z := []float32{1, 2, 3}, make([]float32, 3)
	reference := k.(interface{ Module() *launch.Module }).Module().References[k.Entry()]
	reference.Run(&launch.Call{Args: []launch.Arg{{Bits: 3}, {Memory: unsafe.Pointer(&z[0]), Bytes: 12}, {Memory: unsafe.Pointer(&x[0]), Bytes: 12},
		{Bits: math.Float64bits(10)}}}, 0, 1)
	fmt.Println(z)
	// Output:
	// n i64 none
	// z f32 out
	// x f32 in
	// a f64 none
	// [11 21 31]
}
