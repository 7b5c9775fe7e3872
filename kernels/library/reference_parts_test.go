// Tests of references that compute no function of their inputs alone: stages of a transform, random numbers.

package library_test

import (
	"math"
	"math/rand/v2"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/internal/numbers"
	"github.com/dagrun/dagrun/kernels/launch"
	"github.com/dagrun/dagrun/kernels/library"
)

func TestTransformByStages(t *testing.T) {
	const n, batch = 64, 3
	random := rand.New(rand.NewPCG(1, 1))
	for _, inverse := range []float64{0, 1} {
		x, y := make([]float64, 2*n*batch), make([]float64, 2*n*batch)
		for i := range x {
			x[i] = random.Float64()*2 - 1
		}
		start := append([]float64(nil), x...)
		r := library.Module().References["dagrun_fft_stage_f64"]
		for half := 1; half < n; half *= 2 {
			call := &launch.Call{Args: []launch.Arg{{Bits: n}, {Bits: batch}, {Bits: uint64(half)}, {Bits: uint64(inverse)},
				{Memory: unsafe.Pointer(&x[0]), Bytes: int64(8 * len(x))}, {Memory: unsafe.Pointer(&y[0]), Bytes: int64(8 * len(y))}}}
			r.Run(call, 0, r.Spans(call))
			x, y = y, x
		}
		for b := range batch {
			for k := range n {
				var re, im float64
				for j := range n {
					angle := -2 * math.Pi * float64(j*k) / n
					if inverse != 0 {
						angle = -angle
					}
					a, c := start[(b*n+j)*2], start[(b*n+j)*2+1]
					re += a*math.Cos(angle) - c*math.Sin(angle)
					im += a*math.Sin(angle) + c*math.Cos(angle)
				}
				assert.InDelta(t, re, x[(b*n+k)*2], 1e-12)
				assert.InDelta(t, im, x[(b*n+k)*2+1], 1e-12)
			}
		}
	}
}

func TestRandomNumbers(t *testing.T) {
	const n = 100_003
	draw := func(entry string, seed, offset uint64, a, b float32) []float32 {
		y := make([]float32, n)
		call := &launch.Call{Args: []launch.Arg{{Bits: n}, {Bits: seed}, {Bits: offset}, {Bits: uint64(math.Float32bits(a))}, {Bits: uint64(math.Float32bits(b))},
			{Memory: unsafe.Pointer(&y[0]), Bytes: 4 * n}}}
		r := library.Module().References[entry]
		r.Run(call, 0, r.Spans(call))
		return y
	}
	moments := func(y []float32) (mean, deviation float64) {
		for _, v := range y {
			mean += float64(v) / n
		}
		for _, v := range y {
			deviation += (float64(v) - mean) * (float64(v) - mean) / n
		}
		return mean, math.Sqrt(deviation)
	}
	u := draw("dagrun_philox_uniform_f32", 1, 2, -1, 3)
	for _, v := range u {
		require.True(t, v >= -1 && v < 3)
	}
	mean, deviation := moments(u)
	assert.InDelta(t, 1, mean, 0.02)
	assert.InDelta(t, 4/math.Sqrt(12), deviation, 0.02)
	words := numbers.Philox([4]uint32{5, 0, 2, 0}, [2]uint32{1, 0})
	assert.Equal(t, float32(words[3]>>8)/(1<<24)*4-1, u[23], "element 23 is word 3 of counter 5")

	z := draw("dagrun_philox_normal_f32", 1, 0, 10, 2)
	mean, deviation = moments(z)
	assert.InDelta(t, 10, mean, 0.04)
	assert.InDelta(t, 2, deviation, 0.04)
	assert.NotEqual(t, z, draw("dagrun_philox_normal_f32", 2, 0, 10, 2))
	assert.NotEqual(t, z, draw("dagrun_philox_normal_f32", 1, 1, 10, 2))
}
