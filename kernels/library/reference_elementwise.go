// References of elementwise kernels: loops over chunks that fit a core's first-level cache.

package library

import (
	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/internal/numbers"
	"github.com/dagrun/dagrun/kernels/internal/reference"
	"github.com/dagrun/dagrun/kernels/launch"
)

const widenedChunk = 1 << 10

// chunk computes out from the scalars k and the inputs, element by element; i is the index of the first element. An inout output is
// also the last input.
type chunk[C numbers.Element] func(i int64, k []C, out []C, in [][]C)

// layout tells which parameters of an elementwise kernel are scalars, inputs and the output. Parameter 0 is n, the last one is the output.
// Inputs of one element count as scalars.
type layout struct {
	scalars, inputs []int
	output          int
}

func layoutOf(k *libraryKernel) layout {
	var l layout
	for i, p := range k.params[1:] {
		switch {
		case !p.Buffer || k.parameters[i+1].extent.text == "1":
			l.scalars = append(l.scalars, i+1)
		case p.Mode == dag.Read:
			l.inputs = append(l.inputs, i+1)
		default:
			l.output = i + 1
			if p.Mode == dag.ReadWrite {
				l.inputs = append(l.inputs, i+1)
			}
		}
	}
	return l
}

// elementwise makes the reference for element types that are computed in the type itself.
func elementwise[C numbers.Element](f chunk[C]) func(*libraryKernel) launch.Reference {
	return func(k *libraryKernel) launch.Reference {
		l := layoutOf(k)
		return launch.Reference{Spans: reference.ElementwiseSpans, ReadsAll: true, Run: func(c *launch.Call, lo, hi int64) {
			n := reference.Integer(c.Args[0])
			from, to := lo*reference.ElementwiseSpan, min(hi*reference.ElementwiseSpan, n)
			var in [3][]C
			for j, p := range l.inputs {
				in[j] = reference.Slice[C](c.Args[p], n)[from:to]
			}
			var scalars [8]C
			for j, p := range l.scalars {
				scalars[j] = scalarOrElement[C](c.Args[p])
			}
			f(from, scalars[:], reference.Slice[C](c.Args[l.output], n)[from:to], in[:])
		}}
	}
}

// widened makes the reference for 16-bit element types, which are computed in f32.
func widened(f chunk[float32], widen func(uint16) float32, narrow func(float32) uint16) func(*libraryKernel) launch.Reference {
	return func(k *libraryKernel) launch.Reference {
		l := layoutOf(k)
		return launch.Reference{Spans: reference.ElementwiseSpans, ReadsAll: true, Run: func(c *launch.Call, lo, hi int64) {
			n := reference.Integer(c.Args[0])
			from, to := lo*reference.ElementwiseSpan, min(hi*reference.ElementwiseSpan, n)
			var scalars [8]float32
			for j, p := range l.scalars {
				scalars[j] = reference.Scalar[float32](c.Args[p])
			}
			var memory [4][widenedChunk]float32
			output := reference.Slice[uint16](c.Args[l.output], n)
			for at := from; at < to; at += widenedChunk {
				end := min(at+widenedChunk, to)
				var in [3][]float32
				for j, p := range l.inputs {
					in[j] = memory[j][:end-at]
					for i, h := range reference.Slice[uint16](c.Args[p], n)[at:end] {
						in[j][i] = widen(h)
					}
				}
				out := memory[3][:end-at]
				f(at, scalars[:], out, in[:])
				for i, x := range out {
					output[at+int64(i)] = narrow(x)
				}
			}
		}}
	}
}

// floats lists the versions of an elementwise kernel for f32 and f64; halves adds f16 and bf16.
func floats(f chunk[float32], d chunk[float64]) []version {
	return []version{{bind{T: dag.F32}, elementwise(f)}, {bind{T: dag.F64}, elementwise(d)}}
}

func halves(f chunk[float32], d chunk[float64]) []version {
	return append([]version{
		{bind{T: dag.F16}, widened(f, dag.HalfToFloat32, dag.HalfFromFloat32)},
		{bind{T: dag.BF16}, widened(f, dag.BFloatToFloat32, dag.BFloatFromFloat32)},
	}, floats(f, d)...)
}

// floatsAndI32 adds i32 to floats, everything adds it to halves.
func floatsAndI32(f chunk[float32], d chunk[float64], i chunk[int32]) []version {
	return append(floats(f, d), version{bind{T: dag.I32}, elementwise(i)})
}

func everything(f chunk[float32], d chunk[float64], i chunk[int32]) []version {
	return append(halves(f, d), version{bind{T: dag.I32}, elementwise(i)})
}

// bits16 copies elements of 16 bits without converting them: a NaN keeps its bits.
func bits16(k *libraryKernel) launch.Reference {
	return launch.Reference{Spans: reference.ElementwiseSpans, ReadsAll: true, Run: func(c *launch.Call, lo, hi int64) {
		n := reference.Integer(c.Args[0])
		from, to := lo*reference.ElementwiseSpan, min(hi*reference.ElementwiseSpan, n)
		copy(reference.Slice[uint16](c.Args[2], n)[from:to], reference.Slice[uint16](c.Args[1], n)[from:to])
	}}
}

func scalarOrElement[C numbers.Element](a launch.Arg) C {
	if a.Memory != nil {
		return *(*C)(a.Memory)
	}
	return reference.Scalar[C](a)
}
