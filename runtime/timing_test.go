// Tests of what is timed.

package runtime_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/planner"
	"github.com/dagrun/dagrun/runtime"
)

// Carried contents decide how long a replay takes where loops are tested, so the replays that give the wall time begin as those of a run do.
func TestWallTimeIsOfReplaysFromTheInitialContents(t *testing.T) {
	b := dag.New("counter")
	b.HostFunction("count", "count", b.Whole(b.Host("total", dag.I32, 1)).InOut())
	g, err := b.Graph()
	require.NoError(t, err)
	plan, err := planner.New(t.Context(), g, planner.Options{})
	require.NoError(t, err)
	var found []uint64
	count := func(_ context.Context, c *runtime.HostCall) error {
		total := dag.I32.Load(c.Bytes(0), 0)
		found = append(found, total)
		dag.I32.Store(c.Bytes(0), 0, total+1)
		return nil
	}
	program, err := runtime.New(t.Context(), g, plan, cpu(t), runtime.Options{Functions: map[string]runtime.HostFunction{"count": count}})
	require.NoError(t, err)
	defer program.Close()
	_, err = program.Measure(t.Context(), 2, 3)
	require.NoError(t, err)
	require.Equal(t, []uint64{0, 1, 2, 3, 4, 0, 1, 2}, found, "two to warm up, three with events, three for the wall time")
	require.NoError(t, program.Restore(t.Context()))
	found = nil
	timing, err := program.Measure(t.Context(), 1, 40)
	require.NoError(t, err)
	require.Equal(t, []int{40, 40}, []int{timing.Submit.Count, timing.Device.Count}, "however many are timed before the host waits for them")
	require.Len(t, found, 1+40+40)
}
