// References of elementwise kernels: loops over chunks that stay in a core's first cache.

package kernels

import (
	"github.com/dagrun/dagrun/dag"
)

const (
	elementwiseSpan = 1 << 16
	widenedChunk    = 1 << 10
)

// chunk computes out from the scalars k and the inputs, element by element. i is the index of the first. An output that the
// signature calls inout is also the last input.
type chunk[C element] func(i int64, k []C, out []C, in [][]C)

// layout is where an elementwise signature keeps things: parameter 0 is n, the last is the output. Inputs of one element
// count as scalars.
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

// elementwise makes the reference of a chunk function on elements that are computed as they are.
func elementwise[C element](f chunk[C]) func(*libraryKernel) Reference {
	return func(k *libraryKernel) Reference {
		l := layoutOf(k)
		return Reference{elementwiseSpans, func(c *Call, lo, hi int64) {
			n := integer(c.Args[0])
			from, to := lo*elementwiseSpan, min(hi*elementwiseSpan, n)
			var in [3][]C
			for j, p := range l.inputs {
				in[j] = slice[C](c.Args[p], n)[from:to]
			}
			var scalars [8]C
			for j, p := range l.scalars {
				scalars[j] = scalarOrElement[C](c.Args[p])
			}
			f(from, scalars[:], slice[C](c.Args[l.output], n)[from:to], in[:])
		}}
	}
}

func elementwiseSpans(c *Call) int64 { return spansOf(integer(c.Args[0]), elementwiseSpan) }

// widened makes the reference for elements of 16 bits.
func widened(f chunk[float32], widen func(uint16) float32, narrow func(float32) uint16) func(*libraryKernel) Reference {
	return func(k *libraryKernel) Reference {
		l := layoutOf(k)
		return Reference{elementwiseSpans, func(c *Call, lo, hi int64) {
			n := integer(c.Args[0])
			from, to := lo*elementwiseSpan, min(hi*elementwiseSpan, n)
			var scalars [8]float32
			for j, p := range l.scalars {
				scalars[j] = scalar[float32](c.Args[p])
			}
			var memory [4][widenedChunk]float32
			output := slice[uint16](c.Args[l.output], n)
			for at := from; at < to; at += widenedChunk {
				end := min(at+widenedChunk, to)
				var in [3][]float32
				for j, p := range l.inputs {
					in[j] = memory[j][:end-at]
					for i, h := range slice[uint16](c.Args[p], n)[at:end] {
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

// floats are the versions of an elementwise kernel for f32 and f64; halves adds f16 and bf16.
func floats(f chunk[float32], d chunk[float64]) []version {
	return []version{{bind{T: dag.F32}, elementwise(f)}, {bind{T: dag.F64}, elementwise(d)}}
}

func halves(f chunk[float32], d chunk[float64]) []version {
	return append([]version{
		{bind{T: dag.F16}, widened(f, dag.HalfToFloat32, dag.HalfFromFloat32)},
		{bind{T: dag.BF16}, widened(f, dag.BFloatToFloat32, dag.BFloatFromFloat32)},
	}, floats(f, d)...)
}

// numbers adds i32 to the floats, everything to the halves.
func numbers(f chunk[float32], d chunk[float64], i chunk[int32]) []version {
	return append(floats(f, d), version{bind{T: dag.I32}, elementwise(i)})
}

func everything(f chunk[float32], d chunk[float64], i chunk[int32]) []version {
	return append(halves(f, d), version{bind{T: dag.I32}, elementwise(i)})
}

// bits16 copies elements of 16 bits without converting them: a NaN keeps its bits.
func bits16(k *libraryKernel) Reference {
	return Reference{elementwiseSpans, func(c *Call, lo, hi int64) {
		n := integer(c.Args[0])
		from, to := lo*elementwiseSpan, min(hi*elementwiseSpan, n)
		copy(slice[uint16](c.Args[2], n)[from:to], slice[uint16](c.Args[1], n)[from:to])
	}}
}

func scalarOrElement[C element](a Arg) C {
	if a.Memory != nil {
		return *(*C)(a.Memory)
	}
	return scalar[C](a)
}
