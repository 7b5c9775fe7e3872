// Correcting what was learned by the replays that followed: on devices whose copies and kernels share cores, where nodes take other times
// together, again and again, than when they were measured.

package learn

import (
	"context"
	"math"
	"slices"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/planner"
	"github.com/dagrun/dagrun/runtime/cache"
	"github.com/dagrun/dagrun/runtime/internal/engine"
)

const (
	mostCorrected   = 2    // times: beyond that, something else takes the time
	correctionSteps = 8    // a replay's time is not proportional to the durations of its nodes
	closeEnough     = 0.05 // a prediction that is so close is left as it is
)

// Correct scales the durations that the cache holds of the graph's nodes, so that a way to replay that took eachUS, over many replays, is
// predicted right. w is the way that the replays took, and o are the options that the graph was recalled with. Learning times few
// replays of many ways and keeps the fastest, which is often one that was lucky; the replays after it tell. On devices with engines and
// multiprocessors of their own it does nothing: there the durations of nodes are what was measured, and the model is at fault.
func (r *Recalled) Correct(ctx context.Context, w *Way, eachUS float64, o Options) error {
	if r == nil || r.folder == nil || w == nil || w.Plan == nil || !(eachUS > 0) || r.machine.Cores == 0 {
		return nil
	}
	kept, err := r.folder.Durations(r.device)
	if err != nil {
		return nil // Recall has warned of it
	}
	learned := &planner.Profile{Nodes: map[string]float64{}, Shares: map[string]float64{}}
	corrected := cache.Durations{}
	for i := range r.graph.Nodes {
		node, samples := &r.graph.Nodes[i], kept[r.prints[i]]
		if len(samples) == 0 || given(node, o.Plan.Profile) {
			continue
		}
		corrected[r.prints[i]] = samples
		learned.Nodes[node.Name] = engine.Summarize(slices.Clone(samples)).Median
		if shares := kept[sharePrint(r.prints[i])]; len(shares) > 0 {
			learned.Shares[node.Name] = min(1, engine.Summarize(slices.Clone(shares)).Median)
		}
	}
	factor := 1.0
	for range correctionSteps {
		scaled := &planner.Profile{Nodes: map[string]float64{}, Shares: learned.Shares}
		for name, us := range learned.Nodes {
			scaled.Nodes[name] = factor * us
		}
		us, err := predictEach(r.graph, w.way(), r.machine, MergeProfiles(scaled, o.Plan.Profile))
		if err != nil {
			return err
		}
		if !(us > 0) {
			return nil
		}
		factor = max(1.0/mostCorrected, min(mostCorrected, factor*eachUS/us))
	}
	if r.doubts(factor, o.Plan.Profile) {
		return nil
	}
	return r.scale(ctx, corrected, factor)
}

// given reports whether the user says how long a node takes, in the pipeline or in a profile.
func given(n *dag.Node, profile *planner.Profile) bool {
	if n.HasCost || profile == nil {
		return n.HasCost
	}
	_, given := profile.Nodes[n.Name]
	return given
}

// doubts reports whether durations that the user gave may be at fault, rather than those that were measured: a correction as large as that
// would make the measured ones wrong, for other pipelines too, a bit more with each run.
func (r *Recalled) doubts(factor float64, profile *planner.Profile) (doubts bool) {
	if factor > 1.0/mostCorrected && factor < mostCorrected {
		return false
	}
	r.graph.EachGraph(func(g *dag.Graph, _ []string) {
		doubts = doubts || slices.ContainsFunc(g.Nodes, func(n dag.Node) bool { return given(&n, profile) })
	})
	return doubts
}

// scale keeps durations in the cache that are multiplied by a factor, unless that hardly changes them.
func (r *Recalled) scale(ctx context.Context, durations cache.Durations, factor float64) error {
	if math.Abs(factor-1) < closeEnough {
		return nil
	}
	factor = max(1.0/mostCorrected, min(mostCorrected, factor))
	scaled := cache.Durations{}
	for print, samples := range durations {
		scaled[print] = slices.Clone(samples)
		for k := range samples {
			scaled[print][k] *= factor
		}
	}
	return r.folder.KeepDurations(ctx, r.device, scaled, true)
}
