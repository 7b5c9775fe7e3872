// Tests that learning makes every plan that a user would who compares strategies.

package learn

import (
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/cudart/host"
	"github.com/dagrun/dagrun/dag/file"
	"github.com/dagrun/dagrun/kernels"
	"github.com/dagrun/dagrun/planner"
)

// TestLearningMakesAllPlansOfStrategies plans with durations that differ from what formulas say, as measured ones do.
func TestLearningMakesAllPlansOfStrategies(t *testing.T) {
	platform, err := host.Open(host.Options{})
	require.NoError(t, err)
	defer platform.Close()
	files, err := filepath.Glob("../../pipelines/*.yaml")
	require.NoError(t, err)
	others := 0
	for _, name := range files {
		source, err := os.ReadFile(name)
		require.NoError(t, err)
		g, err := file.Parse(source, file.Options{Name: name, Dir: filepath.Dir(name), Library: kernels.Library(), ReadFile: os.ReadFile})
		if err != nil {
			continue // it has modules of its own, which a compiler reads
		}
		o := planner.Options{Machine: planner.H200()}
		l := &learner{graph: g, platform: platform, log: slog.New(slog.DiscardHandler), o: Options{Plan: o}, known: &planner.Profile{}}
		l.learned.Profile = &planner.Profile{Nodes: map[string]float64{}}
		for i := range g.Nodes {
			l.learned.Profile.Nodes[g.Nodes[i].Name] = float64(1 + i*i%7)
		}
		plans, awaited, err := l.plans(t.Context())
		require.NoError(t, err)
		require.Nil(t, awaited)
		for _, strategy := range planner.Strategies() {
			for _, streams := range []int{1, 2, 4, 8} {
				o.Strategy, o.Streams = strategy, streams
				plan, err := planner.New(t.Context(), g, o)
				if err != nil || strategy == "auto" {
					continue
				}
				if !slices.ContainsFunc(plans, func(p *planner.Plan) bool { return samePlan(p, plan) }) {
					t.Errorf("%s: no plan like that of %s with %d", name, strategy, streams)
				}
				others++
			}
		}
	}
	require.Greater(t, others, 300)
}

// On a GPU, what auto chooses with all the effort asked for is awaited, and the others are timed meanwhile. One strategy alone is not worth that.
func TestOnlyWhatAutoChoosesIsAwaited(t *testing.T) {
	for _, c := range []struct {
		strategy string
		thorough bool
		awaited  bool
		plans    int // at least
	}{{"auto", false, true, 2}, {"", false, true, 2}, {"auto", true, false, 2}, {"list", false, false, 1}} {
		l, _ := spinning(t)
		l.o.Plan.Strategy, l.o.Plan.Effort, l.o.Thorough = c.strategy, planner.Thorough, c.thorough
		l.learned.Profile = &planner.Profile{Nodes: map[string]float64{"a": 30, "b": 70}}
		plans, awaited, err := l.plans(t.Context())
		require.NoError(t, err)
		require.GreaterOrEqual(t, len(plans), c.plans)
		require.Equal(t, c.awaited, awaited != nil)
		o := l.o.Plan
		o.Profile, o.SingleUseEvents = l.learned.Profile, true
		want, err := planner.New(t.Context(), l.graph, o)
		require.NoError(t, err)
		if c.awaited {
			require.True(t, (&field{awaited: awaited}).wait(l, 1))
			require.NoError(t, awaited.err)
			require.True(t, samePlan(want, awaited.result))
			require.Equal(t, want.Stats.MakespanUS, awaited.result.Stats.MakespanUS)
		} else {
			require.True(t, samePlan(want, plans[0]), "what was asked for is the first")
		}
	}
	l, _ := spinning(t)
	l.o.Plan.Strategy, l.o.Plan.MemoryCap = "list", 1
	l.o.Plan.Streams = -1
	_, _, err := l.plans(t.Context())
	require.Error(t, err, "what was asked for must be possible")
}
