// Tests of which ways are timed once more because they were surprisingly slow.

package learn

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/cudart/host"
	"github.com/dagrun/dagrun/planner"
	"github.com/dagrun/dagrun/runtime/internal/engine"
	"github.com/dagrun/dagrun/runtime/internal/measure"
)

// timedAt are ways that were predicted to take so long, and took so long.
func timedAt(predictedAndTook ...[2]float64) []Way {
	var ways []Way
	for _, us := range predictedAndTook {
		ways = append(ways, Way{Mode: engine.Captured, Threads: 1, Predicted: us[0], Each: engine.Series{Count: 3, Median: us[1]}})
	}
	return ways
}

func TestOnlyPromisingWaysThatWereSlowAreSurprising(t *testing.T) {
	for _, c := range []struct {
		what string
		ways []Way
		done []int
		want int
	}{
		{"none", nil, nil, -1},
		{"as predicted", timedAt([2]float64{50, 50}, [2]float64{52, 53}, [2]float64{60, 59}), nil, -1},
		{"all are off alike", timedAt([2]float64{50, 75}, [2]float64{52, 80}, [2]float64{60, 89}), nil, -1},
		{"one was slow", timedAt([2]float64{50, 50}, [2]float64{51, 82}, [2]float64{60, 59}), nil, 1},
		{"slow, but not promising", timedAt([2]float64{50, 50}, [2]float64{60, 82}, [2]float64{61, 60}), nil, -1},
		{"the more promising of two first", timedAt([2]float64{50, 50}, [2]float64{51, 82}, [2]float64{50, 59}, [2]float64{60, 60}, [2]float64{61, 60}), nil, 2},
		{"then the other", timedAt([2]float64{50, 50}, [2]float64{51, 82}, [2]float64{50, 59}, [2]float64{60, 60}, [2]float64{61, 60}), []int{2}, 1},
		{"none that is left", timedAt([2]float64{50, 50}, [2]float64{51, 82}, [2]float64{60, 60}), []int{1}, -1},
		{"without predictions", timedAt([2]float64{0, 50}, [2]float64{0, 82}), nil, -1},
	} {
		require.Equal(t, c.want, surprising(c.ways, c.done), c.what)
	}
}

func TestSurprisinglySlowWaysAreTimedOnceMore(t *testing.T) {
	ctx := context.Background()
	g, plans := lattice(t)
	platform, err := host.Open(host.Options{})
	require.NoError(t, err)
	defer platform.Close()
	p, err := engine.New(ctx, g, plans[0], platform, planner.GraphEdges, engine.Options{Mode: engine.Captured})
	require.NoError(t, err)
	defer p.Close()
	const disturbed = 1e9
	learnerOf := func(left int) *learner {
		l := newLearner(p, Options{Replays: left})
		l.log = slog.New(slog.DiscardHandler)
		l.o.For, l.o.Plan = time.Hour, planner.Options{Machine: measure.MachineOf(platform)}
		l.learned.Ways = timedAt([2]float64{50, 50}, [2]float64{50, disturbed}, [2]float64{50, 50})
		for k := range l.learned.Ways {
			l.learned.Ways[k].Plan = plans[k]
		}
		return l
	}
	l := learnerOf(1000)
	require.NoError(t, l.timeSurprises(ctx, 20, 0, 1))
	require.Less(t, l.learned.Ways[1].Each.Median, disturbed)
	require.Positive(t, l.learned.Ways[1].Each.Median)
	for _, k := range []int{0, 2} {
		require.Equal(t, 50.0, l.learned.Ways[k].Each.Median)
	}
	require.InDelta(t, 1000-20, l.left, 20)

	for _, c := range []struct{ left, others int }{{79, 0}, {1000, 921}} {
		l := learnerOf(c.left)
		require.NoError(t, l.timeSurprises(ctx, 20, c.others, 1))
		require.Equal(t, disturbed, l.learned.Ways[1].Each.Median, "%d replays are left, %d of them for others", c.left, c.others)
	}
	l = learnerOf(1000)
	l.o.For = 1
	require.NoError(t, l.timeSurprises(ctx, 20, 0, 1))
	require.Equal(t, disturbed, l.learned.Ways[1].Each.Median, "no time is left")
}
