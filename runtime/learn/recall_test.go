// Tests of what later runs make of a choice that something disturbed.

package learn

import (
	"testing"

	"github.com/dagrun/dagrun/runtime/internal/engine"
	"github.com/stretchr/testify/require"
)

func TestADisturbedChoiceDoesNotHideThatReplaysTakeAnotherTime(t *testing.T) {
	for spread, agrees := range map[float64][2]float64{0: {91, 109}, 5: {81, 119}, 60: {71, 129}} {
		w := &Way{Each: engine.Series{Median: 100, Spread: spread}}
		for _, us := range agrees {
			require.False(t, w.drifted(us), "%v with spread %v", us, spread)
		}
		require.True(t, w.drifted(agrees[0]-2), "spread %v", spread)
		require.True(t, w.drifted(agrees[1]+2), "spread %v", spread)
	}
}
