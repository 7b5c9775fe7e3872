// Tests that a device that was idle is woken before anything is measured.

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

func TestADeviceIsWokenAfterTheFirstReplay(t *testing.T) {
	ctx := context.Background()
	g, plans := lattice(t)
	platform, err := host.Open(host.Options{})
	require.NoError(t, err)
	defer platform.Close()
	const wake = 10 * time.Millisecond
	for _, c := range []struct {
		what  string
		wake  time.Duration
		extra int
	}{
		{"as long as was asked for", wake, 1_000_000},
		{"not at all", 0, 1_000_000},
		{"until few replays are left", time.Hour, 0},
	} {
		p, err := engine.New(ctx, g, plans[0], platform, planner.GraphEdges, engine.Options{Logger: slog.New(slog.DiscardHandler)})
		require.NoError(t, err)
		o := Options{Plan: planner.Options{Machine: measure.MachineOf(platform)}, Replays: 30, Extra: c.extra, Wake: c.wake}
		l := newLearner(p, o.orDefault(platform))
		replays, err := l.traceAwake(ctx, tracedReplays+1, true, l.unknown())
		require.NoError(t, err)
		require.Len(t, replays, tracedReplays+1, c.what)
		require.Equal(t, uint64(l.used()), p.Replays(), c.what)
		switch {
		case c.wake == 0:
			require.Equal(t, tracedReplays+1, l.used(), c.what)
		case c.extra == 0:
			require.GreaterOrEqual(t, l.left, FewestToCompare, c.what)
			require.Less(t, l.left, 30-tracedReplays-1, c.what)
		default:
			require.GreaterOrEqual(t, l.once, wake, c.what)
			require.Greater(t, l.used(), tracedReplays+1, c.what)
		}
		require.NoError(t, p.Close())
	}
}
