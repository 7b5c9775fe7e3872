// Benchmarks of the library's cost in planning: kernels are resolved and described once for every node of a pipeline.

package kernels_test

import (
	"testing"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/kernels"
	"github.com/dagrun/dagrun/kernels/library"
)

func BenchmarkResolveAndDescribe(b *testing.B) {
	number := dag.InvalidDType
	l := kernels.Library()
	elems := []dag.DType{number, number, dag.F32, dag.F32}
	slice := func(id int32) dag.Arg {
		return dag.Arg{IsBuffer: true, DType: dag.F32, Range: dag.Range{Buffer: dag.BufferID(id), Hi: 4 << 20}}
	}
	args := []dag.Arg{{DType: dag.I64, Bits: 1 << 20}, {DType: dag.F32}, slice(0), slice(1)}
	b.ReportAllocs()
	for b.Loop() {
		k, err := l.Kernel("saxpy", elems)
		if err != nil {
			b.Fatal(err)
		}
		if _, err := k.Describe(args); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkLibraryModule(b *testing.B) {
	for b.Loop() {
		library.Module("dagrun_axpy_f32", "dagrun_reduce_sum_f32", "dagrun_copy_f32")
	}
}
