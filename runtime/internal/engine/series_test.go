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
