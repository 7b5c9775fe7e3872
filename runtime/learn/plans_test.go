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
