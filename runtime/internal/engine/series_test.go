// A test of series of measurements.

package engine

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestSeriesOfSamples(t *testing.T) {
	s := Summarize([]float64{4, 1, 3, 2})
	require.Equal(t, Series{Count: 4, Min: 1, Median: 2.5, P99: 4, Mean: 2.5, Spread: math.Sqrt(5.0 / 3)}, s)
	require.Equal(t, Series{}, Summarize(nil))
}

// At least 99 of 100 samples are no longer than the 99th percentile, and no shorter sample has that many.
func TestPercentilesOfSamples(t *testing.T) {
	for n := 1; n <= 1000; n += 1 + n/7 {
		samples := make([]float64, n)
		for k := range samples {
			samples[k] = float64((k*7919)%n + 1) // all from 1 to n where n is no multiple of that
		}
		s := Summarize(samples)
		require.GreaterOrEqual(t, s.P99, 0.99*float64(n))
		require.Less(t, s.P99-1, 0.99*float64(n))
		require.Equal(t, []float64{1, float64(n+1) / 2, float64(n+1) / 2}, []float64{s.Min, s.Median, s.Mean})
	}
}
