// Tests with nonsensical arguments: every kernel refuses them or computes something, and touches only the memory that it declares.

package library_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/kernels"
	"github.com/dagrun/dagrun/kernels/launch"
	"github.com/dagrun/dagrun/kernels/library"
)

var (
	hostileIntegers = []int64{math.MinInt64, math.MaxInt64, math.MaxInt64 - 1, -1 << 32, -2, -1, 0, 0, 0, 1, 1, 1, 2, 3, 4, 5, 7, 8, 16, 31, 32, 33, 64, 255, 256, 257,
		1023, 1024, 1025, 8191, 8192, 8193, math.MaxInt32, math.MaxInt32 + 1, 1 << 32, 1 << 35, 1 << 53, 1 << 61, 1 << 62}
	hostileFloats = []float64{0, math.Copysign(0, -1), 1, -1, 0.5, 3, math.NaN(), math.Inf(1), math.Inf(-1), 1e308, -1e308, 5e-324, 1e-40, 3e38, -3e38, 1 << 31, 1 << 63}
)

const hostileBytes = 1 << 12 // of each buffer

func TestHostileArgumentsAreRefusedOrComputed(t *testing.T) {
	tries, runs := 200, 20
	if testing.Short() {
		tries, runs = 40, 4
	}
	for _, d := range library.Docs() {
		for _, v := range d.Variants {
			t.Run(v.Entry, func(t *testing.T) {
				k, err := kernels.Library().Kernel(d.Name, v.Elems)
				require.NoError(t, err)
				random := rand.New(rand.NewPCG(11, uint64(len(v.Entry))))
				ran := 0
				for i := 0; i < tries || ran < runs && i < 20_000; i++ {
					if launchHostile(t, k, library.Module(v.Entry).References[v.Entry], d.Name, random) {
						ran++
					}
					if t.Failed() {
						return
					}
				}
				assert.GreaterOrEqual(t, ran, runs, "hardly any arguments were accepted")
			})
		}
	}
}

// launchHostile describes a launch with random arguments and runs it as the CPU device does, if it is accepted.
func launchHostile(t *testing.T, k dag.LaunchKernel, r launch.Reference, name string, random *rand.Rand) (ran bool) {
	var args []dag.Arg
	text := ""
	small := random.IntN(2) == 0 // in half of the launches, so that more of them fit their buffers
	for i, p := range k.Params() {
		a := dag.Arg{IsBuffer: p.Buffer, Mode: p.Mode, DType: p.DType, Range: dag.Range{Buffer: dag.BufferID(i), Hi: hostileBytes}}
		if !p.Buffer {
			a.Range = dag.Range{}
			if p.DType.Float() {
				f := hostileFloats[random.IntN(len(hostileFloats))]
				if name == "spin" && f == 1 {
					f = 1e-3
				}
				a.Bits = encode(p.DType, f)
				text += fmt.Sprintf(" %s=%v", p.Name, f)
			} else {
				n := hostileIntegers[random.IntN(len(hostileIntegers))]
				if small {
					n = random.Int64N(6)
				}
				a.Bits = uint64(n)
				text += fmt.Sprintf(" %s=%v", p.Name, n)
			}
		}
		if p.Scratch {
			a.Range = dag.Range{}
		}
		args = append(args, a)
	}
	defer func() {
		if v := recover(); v != nil {
			assert.Fail(t, "panics", "%s%s: %v", k.Entry(), text, v)
		}
	}()
	info, err := k.Describe(args)
	if err != nil {
		assert.NotEmpty(t, err.Error())
		return false
	}
	threads := int64(1)
	for i, most := range [3]uint32{1<<31 - 1, 1<<16 - 1, 1<<16 - 1} {
		assert.True(t, info.Grid[i] <= most && info.Block[i] >= 1, "%s%s: grid %v block %v", k.Entry(), text, info.Grid, info.Block)
		threads *= int64(info.Block[i])
	}
	assert.LessOrEqual(t, threads, int64(1024), "%s%s", k.Entry(), text)
	if info.Grid[0] == 0 || name == "spin" {
		return true
	}
	call := &launch.Call{Grid: info.Grid, Block: info.Block}
	const guard, mark = 64, 0xa5
	var memories [][]byte
	for i, p := range k.Params() {
		if !p.Buffer {
			call.Args = append(call.Args, launch.Arg{Bits: args[i].Bits})
			continue
		}
		size := info.Extents[i]
		if !p.Scratch {
			size *= p.DType.Size()
		}
		words := make([]uint64, (size+7)/8+2*guard/8)
		memory := unsafe.Slice((*byte)(unsafe.Pointer(&words[0])), len(words)*8)
		for j := range memory {
			memory[j] = mark
		}
		a := launch.Arg{Memory: unsafe.Pointer(&memory[guard]), Bytes: size}
		for j := range size / p.DType.Size() {
			switch {
			case name == "spmv_csr" && p.DType == dag.I32: // row starts and columns: a kernel cannot check them
				encodeAt(p.DType, a.Memory, int(j), 0)
			case p.DType.Float():
				encodeAt(p.DType, a.Memory, int(j), hostileFloats[random.IntN(len(hostileFloats))])
			default:
				encodeAt(p.DType, a.Memory, int(j), float64(int32(random.Uint32())))
			}
		}
		call.Args = append(call.Args, a)
		memories = append(memories, memory[:guard], memory[guard+size:])
	}
	spans := r.Spans(call)
	if !assert.True(t, spans >= 0 && spans <= hostileBytes, "%s%s: %d spans", k.Entry(), text, spans) {
		return true
	}
	r.Run(call, 0, spans)
	for _, memory := range memories {
		for _, b := range memory {
			if b != mark {
				assert.Fail(t, "writes outside its buffers", "%s%s", k.Entry(), text)
				return true
			}
		}
	}
	return true
}

func TestSpinRefusesInvalidTimes(t *testing.T) {
	k, err := kernels.Library().Kernel("spin", []dag.DType{dag.InvalidDType})
	require.NoError(t, err)
	for us, want := range map[float64]string{
		math.NaN(): "argument us is NaN; it must be from 0 to 1e+15", math.Inf(1): "argument us is +Inf; it must be from 0 to 1e+15",
		-1: "argument us is -1; it must be from 0 to 1e+15", 2e15: "argument us is 2e+15; it must be from 0 to 1e+15",
	} {
		_, err := k.Describe([]dag.Arg{{DType: dag.F64, Bits: math.Float64bits(us)}})
		assert.EqualError(t, err, want)
	}
}

// histogramOf runs the reference.
func histogramOf[T float32 | float64 | int32](t *testing.T, entry string, bins int64, low, high T, x []T) []int64 {
	bits := func(v T) uint64 {
		switch v := any(v).(type) {
		case float32:
			return uint64(math.Float32bits(v))
		case float64:
			return math.Float64bits(v)
		}
		return uint64(int64(v))
	}
	out := make([]int64, bins)
	for i := range out {
		out[i] = -1
	}
	call := &launch.Call{Args: []launch.Arg{{Bits: uint64(len(x))}, {Bits: uint64(bins)}, {Bits: bits(low)}, {Bits: bits(high)},
		{Memory: unsafe.Pointer(unsafe.SliceData(x))}, {Memory: unsafe.Pointer(&out[0])}}}
	r := library.Module(entry).References[entry]
	require.NotPanics(t, func() { r.Run(call, 0, r.Spans(call)) })
	return out
}

func TestHistogramAtItsEdges(t *testing.T) {
	inf, nan, huge := math.Inf(1), math.NaN(), math.MaxFloat64
	for _, c := range []struct {
		what      string
		low, high float64
		x         []float64
		want      []int64
	}{
		{"values at both ends and between bins", 0, 4, []float64{0, 1, 1, 2, 3, 4, -0.1, 4.1}, []int64{1, 2, 1, 2}},
		{"NaN and infinities are left out", 0, 4, []float64{nan, inf, -inf, 2}, []int64{0, 0, 1, 0}},
		{"a negative zero is zero", 0, 4, []float64{math.Copysign(0, -1)}, []int64{1, 0, 0, 0}},
		{"low = high", 3, 3, []float64{3, 3, 2, 4, nan, math.Nextafter(3, 4)}, []int64{0, 0, 0, 2}},
		{"low = high = 0", 0, 0, []float64{0, math.Copysign(0, -1), 5e-324}, []int64{0, 0, 0, 2}},
		{"low = high, huge", 1e308, 1e308, []float64{1e308, 1e307}, []int64{0, 0, 0, 1}},
		{"inverted", 4, 0, []float64{0, 2, 4}, []int64{0, 0, 0, 0}},
		{"NaN for low", nan, 1, []float64{0, nan}, []int64{0, 0, 0, 0}},
		{"NaN for high", 0, nan, []float64{0, nan}, []int64{0, 0, 0, 0}},
		{"infinite high", 0, inf, []float64{0, 1, inf}, []int64{0, 0, 0, 0}},
		{"infinite low", -inf, 0, []float64{-inf, -1, 0}, []int64{0, 0, 0, 0}},
		{"all numbers", -inf, inf, []float64{-inf, 0, inf}, []int64{0, 0, 0, 0}},
		{"both at infinity", inf, inf, []float64{inf}, []int64{0, 0, 0, 0}},
		{"a width that overflows", -1e308, 1e308, []float64{-1e308, -5e307 - 1e300, 0, 4.9e307, 5e307 + 1e300, 1e308, 1.1e308}, []int64{2, 0, 2, 2}},
		{"the widest", -huge, huge, []float64{-huge, -1e300, 1e300, huge, inf}, []int64{1, 1, 1, 1}},
		{"the narrowest", 0, 5e-324, []float64{0, 5e-324, 1e-323}, []int64{1, 0, 0, 1}},
		{"narrow", 1e-310, 5e-310, []float64{1e-310, 2.1e-310, 3.1e-310, 5e-310}, []int64{1, 1, 1, 1}},
		{"narrow around a number", 1, math.Nextafter(1, 2), []float64{1, math.Nextafter(1, 2)}, []int64{1, 0, 0, 1}},
	} {
		assert.Equal(t, c.want, histogramOf(t, "dagrun_histogram_f64", 4, c.low, c.high, c.x), c.what)
	}
	inf32 := float32(inf)
	assert.Equal(t, []int64{0, 2}, histogramOf(t, "dagrun_histogram_f32", 2, 1, 1, []float32{1, 1, 2, float32(nan)}))
	assert.Equal(t, []int64{1, 2}, histogramOf(t, "dagrun_histogram_f32", 2, -math.MaxFloat32, math.MaxFloat32, []float32{-1e30, 1, math.MaxFloat32, inf32}))
	assert.Equal(t, []int64{1, 1}, histogramOf(t, "dagrun_histogram_f32", 2, 0, math.SmallestNonzeroFloat32, []float32{0, math.SmallestNonzeroFloat32, -1}))
	assert.Equal(t, []int64{0, 0}, histogramOf(t, "dagrun_histogram_f32", 2, -inf32, inf32, []float32{0}))
	assert.Equal(t, []int64{1, 2}, histogramOf(t, "dagrun_histogram_i32", 2, math.MinInt32, math.MaxInt32, []int32{math.MinInt32, math.MaxInt32, 0}))
	assert.Equal(t, []int64{0, 1}, histogramOf(t, "dagrun_histogram_i32", 2, 7, 7, []int32{7, 8}))
	assert.Equal(t, []int64{0, 0}, histogramOf(t, "dagrun_histogram_i32", 2, 8, 7, []int32{7, 8}))
}
