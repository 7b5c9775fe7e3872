// Learning with loops and branches: the nodes of bodies are measured pass by pass, in the plan that the program has.

package learn

import (
	"context"
	"errors"
	"math"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/planner"
	"github.com/dagrun/dagrun/runtime/cache"
	"github.com/dagrun/dagrun/runtime/internal/engine"
	"github.com/dagrun/dagrun/runtime/internal/spans"
)

const (
	fewestWithBodies = 4  // replays: fewer are not slowed down by measuring
	mostScaled       = 50 // times: beyond that, something else takes the time
)

// measureBodies measures the nodes of bodies, and those around them.
func (l *learner) measureBodies(ctx context.Context) error {
	var outer []dag.NodeID
	for _, i := range l.unknown() {
		if l.graph.Nodes[i].Control == nil {
			outer = append(outer, i)
		}
	}
	inner, before, lacking := map[string]bool{}, false, false
	eachInner(l.graph, func(n *dag.Node, _ string) {
		known := l.knows(n)
		before = before || known
		if !known && !n.HasCost {
			inner[n.Name] = true
		}
	})
	eachInPasses(l.graph, func(n *dag.Node) { lacking = lacking || inner[n.Name] })
	l.learned.Profile = l.profile()
	// Nodes of a branch that is not taken are never measured, so what is known of some is enough, if it is known of all that run in every pass. Other
	// pipelines may have nodes like some of these.
	if before && !lacking || len(outer)+len(inner) == 0 || l.left < fewestWithBodies {
		return nil
	}
	l.report("learn how long nodes take")
	n := min(l.left/2, tracedReplays+1)
	replays, took, err := l.trials.TraceCounted(ctx, n, l.used(), l.o.Replays, l.o.Progress)
	l.left -= n
	if err != nil {
		return err
	}
	l.once = took
	replays = replays[1:] // the first includes one-time costs
	for _, i := range outer {
		for _, r := range replays {
			l.learned.Samples[i] = append(l.learned.Samples[i], max(0, r.Spans[i].End-r.Spans[i].Start-stampUS))
		}
	}
	l.learned.Inner = map[string][]float64{}
	var loops []spans.Loop
	for _, loop := range replays[len(replays)-1].Loops {
		loops = append(loops, loop.Loop)
	}
	l.learned.passes = passesOf(loops)
	for _, r := range replays {
		l.takePasses(r, inner)
	}
	l.learned.Profile = l.profile()
	if err := l.scaleBodies(ctx); err != nil {
		return err
	}
	l.learned.Given = &Unfitted{Machine: l.o.Plan.Machine, Known: l.learned.Profile, Samples: make([][]float64, l.graph.Len())}
	return l.timeModes(ctx)
}

// eachInPasses visits the nodes in bodies that every replay runs: those of loops that make a pass before they test, and not those of branches.
func eachInPasses(g *dag.Graph, visit func(n *dag.Node)) {
	for i := range g.Nodes {
		n := &g.Nodes[i]
		if n.Kind != dag.Repeat || !n.Control.MakesAPass() {
			continue
		}
		for _, body := range n.Control.Bodies {
			for k := range body.Nodes {
				if body.Nodes[k].Control == nil {
					visit(&body.Nodes[k])
				}
			}
			eachInPasses(body, visit)
		}
	}
}

// timeModes times the plan as streams and as a graph, if learning was given a time: passes take other times in either.
func (l *learner) timeModes(ctx context.Context) error {
	if !l.observes() {
		return nil
	}
	for _, mode := range l.o.Modes {
		w := Way{Plan: l.was.Plan, Mode: mode, Threads: 1, Overlap: l.was.Overlap}
		if err := l.trials.Adopt(ctx, w.way()); err != nil {
			return err
		}
		rounds, err := l.timeRounds(ctx, l.left/4, 1)
		if err != nil {
			return err
		}
		if w.Each = engine.Summarize(rounds); w.Each.Count > 0 {
			l.learned.Ways = append(l.learned.Ways, w)
		}
	}
	_, err := l.predictAgain()
	return errors.Join(err, l.trials.Adopt(ctx, l.was))
}

// passesOf returns how many passes each loop made in a run of it.
func passesOf(loops []spans.Loop) map[string]int64 {
	passes := map[string]int64{}
	for _, l := range loops {
		if l.Kind == dag.Repeat.String() && l.Runs > 0 {
			passes[l.Node] = int64(math.Round(float64(l.Passes) / float64(l.Runs)))
		}
	}
	return passes
}

// takePasses adds what a replay tells of nodes in bodies: of each the median over the passes, or where only passes were measured, its part
// of them by what is known or estimated of the nodes.
func (l *learner) takePasses(r *spans.TracedReplay, wanted map[string]bool) {
	nodes, passes := map[string][]float64{}, map[string][]float64{}
	for k := range r.Passes {
		pass := &r.Passes[k]
		if pass.LeftOut || pass.Body == spans.BodyNone {
			continue
		}
		for _, s := range pass.Nodes {
			nodes[s.Node] = append(nodes[s.Node], max(0, s.End-s.Start-stampUS))
		}
		if pass.Nodes == nil {
			passes[pass.Node+" "+pass.Body] = append(passes[pass.Node+" "+pass.Body], pass.End-pass.Start)
		}
	}
	l.graph.EachGraph(func(g *dag.Graph, _ []string) {
		for i := range g.Nodes {
			n := &g.Nodes[i]
			if n.Control == nil {
				continue
			}
			for b, body := range n.Control.Bodies {
				took := passes[n.Name+" "+spans.BodyName(n, b)]
				if len(took) == 0 {
					continue
				}
				whole := planner.LowerBound(body, l.o.Plan.Machine, l.learned.Profile, 0).US()
				for k, us := range planner.Durations(body, l.o.Plan.Machine, l.learned.Profile) {
					if whole > 0 {
						nodes[body.Nodes[k].Name] = []float64{us * engine.Summarize(took).Median / whole}
					}
				}
			}
		}
	})
	eachInner(l.graph, func(n *dag.Node, _ string) {
		if samples := nodes[n.Name]; len(samples) > 0 && wanted[n.Name] {
			l.learned.Inner[n.Name] = append(l.learned.Inner[n.Name], engine.Summarize(samples).Median)
		}
	})
}

// scaleBodies corrects the samples of nodes in bodies by what whole replays take: taking the times costs some, and what lies between passes is
// not measured.
func (l *learner) scaleBodies(ctx context.Context) error {
	rounds, err := l.timeRounds(ctx, l.left/4, 1)
	if err != nil || len(rounds) == 0 {
		return err
	}
	factor, err := innerFactor(l.graph, l.p.Way(), l.o.Plan.Machine, l.learned.Profile, l.learned.Inner, engine.Summarize(rounds).Median)
	if err != nil {
		return err
	}
	factor = max(1.0/mostScaled, min(mostScaled, factor))
	for _, samples := range l.learned.Inner {
		for k := range samples {
			samples[k] *= factor
		}
	}
	l.learned.Profile = l.profile()
	return nil
}

// innerFactor returns by what the durations of some nodes must be multiplied for a replay to be predicted to take so long: 1 if nothing helps.
func innerFactor[T any](g *dag.Graph, w engine.Way, m *planner.Machine, profile *planner.Profile, scaled map[string]T, us float64) (float64, error) {
	predicted := func(factor float64) (float64, error) {
		changed := &planner.Profile{Nodes: map[string]float64{}}
		for name := range scaled {
			if known, ok := profile.Nodes[name]; ok {
				changed.Nodes[name] = factor * known
			}
		}
		t, err := predict(g, w, m, MergeProfiles(profile, changed))
		if err != nil {
			return 0, err
		}
		return t.MakespanUS, nil
	}
	none, err := predicted(0)
	if err != nil {
		return 1, err
	}
	factor := 1.0
	for range correctionSteps {
		now, err := predicted(factor)
		if err != nil || !(now > none) {
			return 1, err
		}
		factor *= max(0.01, (us-none)/(now-none))
	}
	return factor, nil
}

// CorrectBodies scales the durations that the cache holds of nodes in bodies, so that a replay of a plan that took eachUS, over many replays,
// is predicted right. loops are what the loops did.
func (r *Recalled) CorrectBodies(ctx context.Context, w *Way, eachUS float64, loops []spans.Loop, o Options) error {
	if r == nil || r.folder == nil || w == nil || w.Plan == nil || !r.graph.HasControl() || !(eachUS > 0) {
		return nil
	}
	kept, err := r.folder.Durations(r.device)
	if err != nil {
		return nil // Recall has warned of it
	}
	known := MergeProfiles(r.knownOf(kept, 2), o.Plan.Profile)
	profile := MergeProfiles(known, &planner.Profile{Passes: passesOf(loops)})
	inner := map[string]string{} // the fingerprints of nodes, by name
	eachInner(r.graph, func(n *dag.Node, print string) {
		if len(kept[print]) > 0 && !given(n, o.Plan.Profile) {
			inner[n.Name] = print
		}
	})
	factor, err := innerFactor(r.graph, w.way(), r.machine, profile, inner, eachUS)
	if err != nil {
		return err
	}
	if r.doubts(factor, o.Plan.Profile) {
		return nil
	}
	corrected := cache.Durations{}
	for _, print := range inner {
		corrected[print] = kept[print]
	}
	return r.scale(ctx, corrected, factor)
}
