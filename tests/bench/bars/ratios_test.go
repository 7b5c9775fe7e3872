// Tests what medians and intervals are taken for.

package main

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestIntervalsHoldTheMedian(t *testing.T) {
	for n, want := range map[int][2]float64{0: {0, math.Inf(1)}, 5: {0, math.Inf(1)}, 6: {1, 6}, 9: {2, 8}, 25: {8, 18}} {
		var values []float64
		for k := range n {
			values = append(values, float64(k+1))
		}
		low, high := surely(values)
		require.Equal(t, want, [2]float64{low, high}, n)
	}
	r := rand.New(rand.NewPCG(1, 2))
	const trials = 2000
	held := 0
	for range trials {
		values := make([]float64, 25)
		for k := range values {
			values[k] = r.ExpFloat64()
		}
		if low, high := surely(values); low <= 0.6931 && 0.6931 <= high { // the median of such numbers is ln 2
			held++
		}
	}
	require.Greater(t, held, trials*94/100)
}
