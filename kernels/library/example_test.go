// A runnable example: a kernel of the library, described and run as plain Go.

package library_test

import (
	"fmt"
	"unsafe"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/kernels/launch"
	"github.com/dagrun/dagrun/kernels/library"
)

func ExampleCatalog() {
	number := dag.InvalidDType
	k, err := library.Catalog{}.Kernel("reduce_sum", []dag.DType{number, dag.F32, dag.F32})
	if err != nil {
		fmt.Println(err)
		return
	}
	x, sum := []float32{1, 2, 3, 4}, []float32{0}
	buffer := func(id int32, bytes int64) dag.Arg {
		return dag.Arg{IsBuffer: true, DType: dag.F32, Range: dag.Range{Buffer: dag.BufferID(id), Hi: bytes}}
	}
	info, err := k.Describe([]dag.Arg{{DType: dag.I64, Bits: 4}, buffer(0, 16), buffer(1, 4), buffer(2, 0)})
	fmt.Println(k.Entry(), info.Grid, info.Block, info.Scratch, err)
	reference := library.Module(k.Entry()).References[k.Entry()]
	call := &launch.Call{Args: []launch.Arg{{Bits: 4}, {Memory: unsafe.Pointer(&x[0]), Bytes: 16}, {Memory: unsafe.Pointer(&sum[0]), Bytes: 4}, {}}}
	reference.Run(call, 0, reference.Spans(call))
	fmt.Println(sum[0])
	// Output:
	// dagrun_reduce_sum_f32 [1 1 1] [256 1 1] 32 <nil>
	// 10
}
