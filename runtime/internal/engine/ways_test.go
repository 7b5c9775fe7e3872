// Tests of which ways to replay are kept while learning compares them.

package engine

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/planner/plan"
)

// Graphs are kept, while learning compares, if nothing but the device is part of their replays.
func TestWhichWaysAreKept(t *testing.T) {
	for why, c := range map[string]struct {
		mode   Mode
		change func(t *Trials)
		kept   bool
	}{
		"a graph":                      {Captured, nil, true},
		"streams are made in a moment": {Streams, nil, false},
		"learning has ended":           {Captured, func(t *Trials) { t.keeping = false }, false},
		"loops and branches":           {Captured, func(t *Trials) { t.program.bodies = [][]*Program{} }, false},
		"host functions":               {Captured, func(t *Trials) { t.program.hosts = &hostCalls{} }, false},
		"several ranks":                {Captured, func(t *Trials) { t.program.graph.Ranks = 2 }, false},
	} {
		trials := &Trials{program: &Program{graph: &dag.Graph{Pipeline: &dag.Pipeline{}}}, keeping: true}
		if c.change != nil {
			c.change(trials)
		}
		require.Equal(t, c.kept, trials.keeps(Way{Mode: c.mode}), why)
	}
}

// A way that is in use, or kept, need not be made. What is freed is not there any more.
func TestWaysThatAreThere(t *testing.T) {
	now, kept, freed, other := Way{Plan: &plan.Plan{}}, Way{Plan: &plan.Plan{}, Mode: Captured}, Way{Plan: &plan.Plan{}, Mode: Captured}, Way{Plan: &plan.Plan{}}
	trials := &Trials{program: &Program{plan: now.Plan}, keeping: true}
	trials.keep(kept, nil, 0, nil)
	trials.keep(freed, nil, 0, nil)
	has := func() []bool { return []bool{trials.Has(now), trials.Has(kept), trials.Has(freed), trials.Has(other)} }
	require.Equal(t, []bool{true, true, true, false}, has())
	require.NoError(t, trials.FreeKept(kept))
	require.Equal(t, []bool{true, true, false, false}, has())
	require.NoError(t, trials.FreeKept())
	require.Equal(t, []bool{true, false, false, false}, has())
	trials.keeping = false
	require.False(t, trials.Has(now), "nothing is kept where nothing is compared")
}

// Ways are kept from the beginning of learning to its end.
func TestWaysAreKeptWhileLearningCompares(t *testing.T) {
	w := Way{Plan: &plan.Plan{}, Mode: Captured}
	trials := &Trials{program: &Program{plan: &plan.Plan{}}}
	end := trials.Begin()
	trials.keep(w, nil, 0, nil)
	require.True(t, trials.Has(w))
	require.NoError(t, end())
	require.False(t, trials.Has(w))
	require.False(t, trials.Has(trials.program.Way()))
	require.Empty(t, trials.kept)
}
