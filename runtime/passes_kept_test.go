// Tests of learned passes: a run keeps them, and later plans count with them.

package runtime_test

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/kernels"
	"github.com/dagrun/dagrun/planner"
	"github.com/dagrun/dagrun/runtime"
	"github.com/dagrun/dagrun/runtime/cache"
)

// halvings halves x until it is below 1, three times over. The inner loop makes 10 passes, of at most most.
func halvings(t *testing.T, most int64) *dag.Graph {
	t.Helper()
	b := dag.New("halvings")
	b.Use(kernels.Library())
	x := b.Device("x", dag.F64, 1)
	b.Repeat("outer", dag.Loop{Times: 3}, func() {
		b.Memset("start", b.Whole(x), 1000)
		b.Repeat("inner", dag.Loop{Until: "x < 1", Most: most}, func() { b.Kernel("half", "scale", dag.Args{1, 0.5, b.Whole(x)}) })
	})
	g, err := b.Graph()
	require.NoError(t, err)
	return g
}

func TestPlansCountWithThePassesOfTheLastRun(t *testing.T) {
	ctx, folder := t.Context(), cache.Open(t.TempDir())
	g := halvings(t, 500)
	known, warnings := runtime.KnownPasses(g, folder)
	require.Nil(t, known)
	require.Empty(t, warnings)
	before, err := planner.New(ctx, g, planner.Options{})
	require.NoError(t, err)
	require.Equal(t, planner.Passes{}, before.Costs[0].Passes, "three passes are not learned")
	require.Equal(t, "at most 500 passes", before.Bodies[0].Plan.Costs[1].Passes.Text())

	loops, _ := loopsOf(t, g)
	require.NoError(t, runtime.KeepPasses(ctx, g, folder, loops))
	known, warnings = runtime.KnownPasses(g, folder)
	require.Empty(t, warnings)
	require.Equal(t, map[string]int64{"inner": 10}, known.Passes)
	after, err := planner.New(ctx, g, planner.Options{Profile: known})
	require.NoError(t, err)
	require.Equal(t, "learned 10 passes", after.Bodies[0].Plan.Costs[1].Passes.Text())
	require.Less(t, after.Stats.MakespanUS, before.Stats.MakespanUS/20)

	var text bytes.Buffer
	require.NoError(t, after.EncodeJSON(&text, g))
	read, err := planner.DecodePlan(&text, g)
	require.NoError(t, err)
	require.Equal(t, after.Bodies[0].Plan.Costs, read.Bodies[0].Plan.Costs)
	text.Reset()
	require.NoError(t, after.WriteText(&text, g, nil))
	require.Contains(t, text.String(), "\nloops: inner learned 10 passes\n")

	other := halvings(t, 499)
	known, _ = runtime.KnownPasses(other, folder)
	require.Nil(t, known, "it is another loop")
	known = &planner.Profile{Passes: map[string]int64{"inner": 500}}
	wrong, err := planner.New(ctx, other, planner.Options{Profile: known})
	require.NoError(t, err)
	require.Equal(t, "at most 499 passes", wrong.Bodies[0].Plan.Costs[1].Passes.Text(), "it cannot make 500")
}
