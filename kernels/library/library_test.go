// Tests of the library as users see it: resolving names, describing launches, running references.

package library_test

import (
	"math"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/kernels"
	"github.com/dagrun/dagrun/kernels/launch"
	"github.com/dagrun/dagrun/kernels/library"
)

func TestSaxpyByName(t *testing.T) {
	none := dag.InvalidDType
	k, err := kernels.Library().Kernel("saxpy", []dag.DType{none, none, dag.F32, dag.F32})
	require.NoError(t, err)
	assert.Equal(t, "dagrun_axpy_f32", k.Entry())

	args := []dag.Arg{
		{DType: dag.I64, Bits: 3}, {DType: dag.F32, Bits: 0x40000000},
		{IsBuffer: true, DType: dag.F32, Range: dag.Range{Buffer: 0, Hi: 12}},
		{IsBuffer: true, DType: dag.F32, Range: dag.Range{Buffer: 1, Hi: 12}},
	}
	info, err := k.Describe(args)
	require.NoError(t, err)
	assert.Equal(t, []int64{0, 0, 3, 3}, info.Extents)
	assert.Equal(t, dag.Work{Bytes: 36, Flops: 6, Blocks: 1, Threads: 256, Steps: 4}, info.Work)

	x, y := []float32{1, 2, 3}, []float32{10, 20, 30}
	call := &launch.Call{Args: []launch.Arg{{Bits: 3}, {Bits: 0x40000000},
		{Memory: unsafe.Pointer(&x[0]), Bytes: 12}, {Memory: unsafe.Pointer(&y[0]), Bytes: 12}}}
	r := library.Module().References[k.Entry()]
	r.Run(call, 0, r.Spans(call))
	assert.Equal(t, []float32{12, 24, 36}, y)
}

func TestWrongArguments(t *testing.T) {
	none := dag.InvalidDType
	l := kernels.Library()
	_, err := l.Kernel("saxpi", nil)
	assert.ErrorIs(t, err, dag.ErrUnknownKernel)
	assert.EqualError(t, err, `unknown kernel "saxpi"`)
	_, err = l.Kernel("saxpy", []dag.DType{none, dag.F32, dag.F32})
	assert.EqualError(t, err, "takes 4 arguments (n, alpha, x, y), got 3")
	_, err = l.Kernel("saxpy", []dag.DType{none, dag.F32, dag.F32, dag.F32})
	assert.EqualError(t, err, "argument alpha must be a number, got a buffer")
	_, err = l.Kernel("saxpy", []dag.DType{none, none, dag.F32, dag.F64})
	assert.EqualError(t, err, "has no version for x f32, y f64; there are: f16; bf16; f32; f64; i32")

	k, err := l.Kernel("saxpy", []dag.DType{none, none, dag.F32, dag.F32})
	require.NoError(t, err)
	number := func(n int64) dag.Arg { return dag.Arg{DType: dag.I64, Bits: uint64(n)} }
	buffer := func(id int32, lo, hi int64) dag.Arg {
		return dag.Arg{IsBuffer: true, DType: dag.F32, Range: dag.Range{Buffer: dag.BufferID(id), Lo: lo, Hi: hi}}
	}
	alpha := dag.Arg{DType: dag.F32}
	for _, c := range []struct {
		args []dag.Arg
		want string
	}{
		{[]dag.Arg{number(-1), alpha, buffer(0, 0, 12), buffer(1, 0, 12)}, "argument n is -1; it must be at least 0"},
		{[]dag.Arg{number(4), alpha, buffer(0, 0, 16), buffer(1, 0, 12)}, "argument y needs 4 elements (n), but its slice has only 3"},
		{[]dag.Arg{number(4), alpha, buffer(0, 0, 16), buffer(0, 4, 20)}, "argument y overlaps x in memory, and y is written"},
		{[]dag.Arg{number(4), buffer(0, 0, 16), buffer(0, 0, 16), buffer(1, 0, 16)}, "argument alpha must be a number, got a buffer"},
		{[]dag.Arg{number(4), alpha, alpha, buffer(1, 0, 16)}, "argument x must be a buffer, got a number"},
	} {
		_, err := k.Describe(c.args)
		assert.EqualError(t, err, c.want)
	}
	_, err = k.Describe([]dag.Arg{number(4), alpha, buffer(0, 0, 16), buffer(0, 0, 16)})
	assert.NoError(t, err, "the same range twice works in place")
}

func TestSpinStatesItsTime(t *testing.T) {
	k, err := kernels.Library().Kernel("spin", []dag.DType{dag.InvalidDType})
	require.NoError(t, err)
	info, err := k.Describe([]dag.Arg{{DType: dag.F64, Bits: math.Float64bits(12.5)}})
	require.NoError(t, err)
	assert.Equal(t, dag.Work{Blocks: 1, Threads: 1, US: 12.5}, info.Work)
}
