// Tests of reused scratch memory: plans and proofs must not depend on what it was used for before.

package planner

import (
	"context"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/planner/internal/plantest"
	"github.com/dagrun/dagrun/planner/plan"
)

func TestWhatWasPlannedBeforeDoesNotShow(t *testing.T) {
	type job struct {
		g *dag.Graph
		o Options
	}
	var jobs []job
	for seed := range uint64(6) {
		for _, n := range []int{1, 9, 70, 300} {
			m := H200()
			m.CopyEngines = 1 + int(seed%2)
			for _, g := range []*dag.Graph{plantest.MixedGraph(t, seed, n, false), plantest.MixedGraph(t, seed, n, true), plantest.RandomShape(int(seed), n, seed+1).Ordered(t)} {
				jobs = append(jobs, job{g, Options{Strategy: "list", Streams: 1 + n%9, Machine: m, SingleUseEvents: seed == 3}},
					job{g, Options{Strategy: "list", Streams: 80, Machine: Unit()}})
			}
		}
	}
	plans := func(order []int) []*Plan {
		plans := make([]*Plan, len(jobs))
		for _, k := range order {
			plan, err := New(context.Background(), jobs[k].g, jobs[k].o)
			if err != nil {
				t.Errorf("job %d: %v", k, err)
			}
			plans[k] = plan
		}
		return plans
	}
	rng := rand.New(rand.NewPCG(1, 2))
	want := plans(rng.Perm(len(jobs)))
	got := make([][]*Plan, 3)
	var wait sync.WaitGroup
	for k := range got {
		order := rng.Perm(len(jobs))
		wait.Go(func() { got[k] = plans(order) })
	}
	wait.Wait()
	for k := range got {
		for i := range jobs {
			require.Equal(t, want[i], got[k][i], "job %d", i)
		}
	}
}

func TestWhatWasProvedBeforeDoesNotShow(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for seed := range uint64(12) {
		g := plantest.RandomShape(int(seed)%len(plantest.Families), 5+int(seed)*20, seed+1).Graph(t)
		made, err := New(context.Background(), g, Options{Strategy: "list", Streams: 1 + int(seed)%7})
		require.NoError(t, err)
		require.NoError(t, Verify(g, made))
		var waits [][2]int
		for s := range made.Streams {
			for i, op := range made.Streams[s].Ops {
				if op.Kind == plan.Wait {
					waits = append(waits, [2]int{s, i})
				}
			}
		}
		for range min(5, len(waits)) {
			at := waits[rng.IntN(len(waits))]
			require.Error(t, Verify(g, plantest.WithoutOp(made, at[0], at[1])))
			require.NoError(t, Verify(g, made))
		}
		require.Error(t, Verify(g, nil))
		require.NoError(t, Verify(g, made))
	}
}
