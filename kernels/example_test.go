// Runnable examples of the library of kernels, and a test that its documentation is complete.

package kernels_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/kernels"
	"github.com/dagrun/dagrun/kernels/launch"
	"github.com/dagrun/dagrun/kernels/library"
)

// A kernel is found by its name and the element types of its buffers; it describes what a launch would access and cost.
func Example() {
	number := dag.InvalidDType
	k, err := kernels.Library().Kernel("saxpy", []dag.DType{number, number, dag.F32, dag.F32})
	if err != nil {
		fmt.Println(err)
		return
	}
	slice := func(buffer int32) dag.Arg {
		return dag.Arg{IsBuffer: true, DType: dag.F32, Range: dag.Range{Buffer: dag.BufferID(buffer), Hi: 4 << 20}}
	}
	info, err := k.Describe([]dag.Arg{{DType: dag.I64, Bits: 1 << 20}, {DType: dag.F32}, slice(0), slice(1)})
	fmt.Println(k.Entry(), info.Grid, info.Block, info.Work.Bytes, err)
	_, err = k.Describe([]dag.Arg{{DType: dag.I64, Bits: 1<<20 + 1}, {DType: dag.F32}, slice(0), slice(1)})
	fmt.Println(err)
	// Output:
	// dagrun_axpy_f32 [512 1 1] [256 1 1] 12582912 <nil>
	// argument x needs 1048577 elements (n), but its slice has only 1048576
}

func ExampleDocs() {
	for _, d := range library.Docs() {
		if d.Name == "axpy" || d.Name == "spmv_csr" {
			fmt.Println(d.Signature())
			fmt.Printf("  %s (%v)\n", d.Text, d.Types())
		}
	}
	// Output:
	// axpy(n i64, alpha S, x in T[n], y inout T[n])
	//   y = alpha * x + y ([f16 bf16 f32 f64 i32])
	// spmv_csr(rows i64, cols i64, nnz i64 0..2147483647, offsets in i32[rows+1], columns in i32[nnz], values in X[nnz], x in T[cols], y out T[rows])
	//   y = a * x for a sparse matrix in compressed rows (CSR); offsets are where the rows start, relative to the first; every column must be below cols ([values:f32 x:f32 values:i32 x:f32 values:f64 x:f64])
}

// A user's file of kernels, with a Go version of one of them so that it runs without a GPU too.
func ExampleOpenModule() {
	source := `extern "C" __global__ void blur(int n, const float *__restrict__ from, float *to) { }`
	m, err := kernels.OpenModule("mine", "blur.cu", []byte(source), kernels.OpenOptions{References: map[string]launch.Reference{
		"blur": {Spans: func(*launch.Call) int64 { return 1 }, Run: func(*launch.Call, int64, int64) {}},
	}})
	if err != nil {
		fmt.Println(err)
		return
	}
	k, err := m.Kernel("blur", nil)
	for _, p := range k.Params() {
		fmt.Println(p.Name, p.DType, p.Buffer, p.Mode)
	}
	fmt.Println(err, m.WritableGlobals())
	// Output:
	// n i32 false none
	// from f32 true in
	// to f32 true inout
	// <nil> []
}

func TestDocsAreComplete(t *testing.T) {
	names := map[string]bool{}
	for _, d := range library.Docs() {
		assert.NotEmpty(t, d.Text, d.Name)
		assert.NotEmpty(t, d.Variants, d.Name)
		names[d.Name] = true
		if d.Alias != "" {
			names[d.Alias] = true
		}
	}
	assert.Len(t, kernels.Library().Names(), len(names))
}
