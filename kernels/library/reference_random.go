// References of the random-number kernels. They have no state.

package library

import (
	"math"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/internal/numbers"
	"github.com/dagrun/dagrun/kernels/internal/reference"
	"github.com/dagrun/dagrun/kernels/launch"
)

func philox(counter, stream, key uint64) [4]uint32 {
	return numbers.Philox([4]uint32{uint32(counter), uint32(counter >> 32), uint32(stream), uint32(stream >> 32)}, [2]uint32{uint32(key), uint32(key >> 32)})
}

// units turns 16 bytes of random bits into numbers in [0, 1): four of 24 bits or two of 53.
func units[C numbers.Element](r [4]uint32, u []C) {
	if len(u) == 4 {
		for k := range u {
			u[k] = C(float32(r[k]>>8) * 0x1p-24)
		}
		return
	}
	for k := range u {
		u[k] = C(float64((uint64(r[2*k+1])<<32|uint64(r[2*k]))>>11) * 0x1p-53)
	}
}

func uniformUnits[C numbers.Element](u []C, low, high C) {
	for k := range u {
		v := C(u[k]*(high-low)) + low
		if !(v < high) {
			v = low
		}
		u[k] = v
	}
}

func normalUnits[C numbers.Element](u []C, mean, deviation C) {
	for k := 0; k < len(u); k += 2 {
		var radius, s, c C
		switch p := any(u).(type) {
		case []float32:
			sin, cos := numbers.SincosTurns32(p[k+1])
			radius, s, c = C(numbers.Sqrt32(-2*numbers.Log32(p[k]+0x1p-24))), C(sin), C(cos)
		case []float64:
			sin, cos := numbers.SincosTurns64(p[k+1])
			radius, s, c = C(math.Sqrt(-2*numbers.Log64(p[k]+0x1p-53))), C(sin), C(cos)
		}
		u[k] = C(C(radius*c)*deviation) + mean
		u[k+1] = C(C(radius*s)*deviation) + mean
	}
}

const drawSpan = 1 << 14

// drawing makes the reference of a random kernel: arguments n, seed, offset, two scalars, y.
func drawing[T any, C numbers.Element](f func(u []C, a, b C), store func(C) T) func(*libraryKernel) launch.Reference {
	var zero C
	width := int64(4)
	if _, ok := any(zero).(float64); ok {
		width = 2
	}
	return func(*libraryKernel) launch.Reference {
		return launch.Reference{
			Spans: func(c *launch.Call) int64 { return reference.SpansOf(reference.Integer(c.Args[0]), drawSpan) },
			Run: func(c *launch.Call, lo, hi int64) {
				n := reference.Integer(c.Args[0])
				y := reference.Slice[T](c.Args[5], n)
				a, b := reference.Scalar[C](c.Args[3]), reference.Scalar[C](c.Args[4])
				var memory [4]C
				u := memory[:width]
				for i := lo * drawSpan; i < min(hi*drawSpan, n); i += width {
					units(philox(uint64(i/width), c.Args[2].Bits, c.Args[1].Bits), u)
					f(u, a, b)
					for k := range min(width, n-i) {
						y[i+k] = store(u[k])
					}
				}
			},
		}
	}
}

func draws(f func(u []float32, a, b float32), d func(u []float64, a, b float64)) []version {
	return []version{
		{bind{T: dag.F16}, drawing(f, dag.HalfFromFloat32)},
		{bind{T: dag.BF16}, drawing(f, dag.BFloatFromFloat32)},
		{bind{T: dag.F32}, drawing(f, identity[float32])},
		{bind{T: dag.F64}, drawing(d, identity[float64])},
	}
}

func philoxBits(*libraryKernel) launch.Reference {
	return launch.Reference{
		Spans: func(c *launch.Call) int64 { return reference.SpansOf(reference.Integer(c.Args[0]), drawSpan) },
		Run: func(c *launch.Call, lo, hi int64) {
			n := reference.Integer(c.Args[0])
			y := reference.Slice[uint32](c.Args[3], n)
			for i := lo * drawSpan; i < min(hi*drawSpan, n); i += 4 {
				r := philox(uint64(i/4), c.Args[2].Bits, c.Args[1].Bits)
				copy(y[i:n], r[:])
			}
		},
	}
}
