// Measuring how long nodes take: on one stream, with events around each node or by CUPTI's records; those of bodies pass by pass.

package learn

import (
	"cmp"
	"context"
	"errors"
	"math"
	"slices"
	"time"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/planner"
	"github.com/dagrun/dagrun/planner/model"
	"github.com/dagrun/dagrun/planner/plan"
	"github.com/dagrun/dagrun/runtime/cache"
	"github.com/dagrun/dagrun/runtime/internal/engine"
	"github.com/dagrun/dagrun/runtime/internal/spans"
)

// measureNodes replays with timed events before and after each node. On one stream a node has the device to itself, so a plan for one
// stream is used if there is time for it.
func (l *learner) measureNodes(ctx context.Context) error {
	unknown := l.unknown()
	captured := len(l.o.Modes) == 1 && l.o.Modes[0] == engine.Captured
	if captured && l.left < 2*(tracedReplays+1) {
		return nil // nodes are measured on streams, and who wants a graph should see one
	}
	if len(unknown) == 0 {
		return l.watchFirst(ctx)
	}
	l.report("learn how long nodes take")
	n, first := min(l.left, tracedReplays+1), l.p.Replays() == 0
	if l.o.Thorough {
		n = min(l.left, cache.MostSamples+1)
	}
	oneByOne, err := l.adoptSerial(ctx, n)
	if err != nil {
		return err
	}
	replays, err := l.traceAwake(ctx, n, first, unknown)
	if err != nil {
		return err
	}
	l.takeSamples(replays, unknown, first, oneByOne)
	prints := Fingerprints(l.graph)
	takeFromAlone(l.learned.Samples, unknown, prints, besideOthers(replays[len(replays)-1].Spans))
	takeFromSame(l.learned.Samples, unknown, prints)
	switch {
	case l.platform.Name() == "cpu" && oneByOne:
		return l.scaleNodes(ctx, unknown)
	case l.platform.Name() != "cpu" && !l.recorded:
		l.keepFormulas(unknown, l.p.Plan().Costs)
	}
	return nil
}

// adoptSerial makes the program replay a plan for one stream, if n replays of it take no more time than learning may, and reports whether it does.
func (l *learner) adoptSerial(ctx context.Context, n int) (adopted bool, err error) {
	options := l.o.Plan
	options.Strategy, options.Streams, options.Profile, options.Effort = "serial", 0, l.known, planner.Quick
	serial, err := planner.New(ctx, l.graph, options)
	if err != nil {
		if ctx.Err() != nil {
			return false, context.Cause(ctx)
		}
		return false, nil // as the plan of the program is
	}
	due := float64(l.o.Replays) * l.p.Plan().Stats.MakespanUS
	if float64(n)*(serial.Stats.MakespanUS-l.p.Plan().Stats.MakespanUS) > max(1e5, due/5) {
		return false, nil
	}
	if err := l.trials.Adopt(ctx, engine.Way{Plan: serial, Mode: engine.Streams, Threads: 1, Overlap: l.was.Overlap}); err != nil {
		return false, err
	}
	return true, nil
}

// takeSamples takes the durations of nodes from replays, less what measuring added to them. Of a program's first replay they are kept apart.
func (l *learner) takeSamples(replays []*spans.TracedReplay, nodes []dag.NodeID, first, oneByOne bool) {
	gaps := make([]float64, l.graph.Len())
	for i := range gaps {
		gaps[i] = stampUS
	}
	if l.platform.Name() != "cpu" {
		gaps = gapsBefore(l.graph, l.p.Plan(), l.o.Plan.Machine)
	}
	if first {
		l.learned.First = make([]float64, l.graph.Len())
	}
	for _, i := range nodes {
		for k, replay := range replays {
			gap := gaps[i]
			if spans.IsRecorded(replay) {
				gap = recordedGap(l.graph, i)
			}
			us := max(0, replay.Spans[i].End-replay.Spans[i].Start-gap)
			if k == 0 && first {
				l.learned.First[i] = us
				continue
			}
			l.learned.Samples[i] = append(l.learned.Samples[i], us)
			if cores := float64(l.o.Plan.Machine.Cores); oneByOne && replay.HelpedUS != nil && us > 0 && cores > 0 {
				l.learned.Shares[i] = append(l.learned.Shares[i], min(1, (1+replay.HelpedUS[i]/us)/cores))
			}
		}
	}
}

// takeFromAlone gives nodes that ran beside others, which took longer than they do alone, the samples of a node with the same work that ran alone.
func takeFromAlone(samples [][]float64, nodes []dag.NodeID, prints []string, beside []bool) {
	alone := map[string][]float64{}
	for _, i := range nodes {
		if some := samples[i]; !beside[i] && alone[prints[i]] == nil && len(some) > 0 {
			alone[prints[i]] = some
		}
	}
	for _, i := range nodes {
		if some := alone[prints[i]]; beside[i] && some != nil {
			samples[i] = slices.Clone(some)
		}
	}
}

// takeFromSame gives nodes with the same work the same samples, as the cache keeps them, so that later runs predict what this one does.
func takeFromSame(samples [][]float64, nodes []dag.NodeID, prints []string) {
	same := sameWork(prints, samples)
	for _, i := range nodes {
		if medians, ok := same[prints[i]]; ok {
			samples[i] = slices.Clone(medians)
		}
	}
}

// watchFirst replays once with events around nodes, where nothing else tells which node hangs.
func (l *learner) watchFirst(ctx context.Context) error {
	if _, tells := l.platform.(engine.TellsRunning); tells || l.left <= FewestToCompare {
		return nil
	}
	options := l.o.Plan
	options.Strategy, options.Streams, options.Profile, options.Effort = "serial", 0, l.known, planner.Quick
	if serial, err := planner.New(ctx, l.graph, options); err == nil {
		if err := l.trials.Adopt(ctx, engine.Way{Plan: serial, Mode: engine.Streams, Threads: 1, Overlap: l.was.Overlap}); err != nil {
			return err
		}
	}
	_, took, err := l.trials.TraceCounted(ctx, 1, l.used(), l.o.Replays, l.o.Progress)
	l.left, l.once = l.left-1, took
	if err != nil {
		return err
	}
	return l.wake(ctx)
}

// traceAwake is traceNodes on a device that is awake. If it has to be woken, the first replay of a program comes before that, because it tells which
// node hangs.
func (l *learner) traceAwake(ctx context.Context, n int, first bool, nodes []dag.NodeID) (replays []*spans.TracedReplay, err error) {
	parts := []int{n}
	if first && l.o.Wake > 0 && n > 1 {
		parts = []int{1, n - 1}
	}
	for k, part := range parts {
		if k > 0 || !first {
			if err := l.wake(ctx); err != nil {
				return nil, err
			}
		}
		part = min(part, l.left)
		some, took, err := l.traceNodes(ctx, part, first && k == 0, nodes)
		if l.left -= part; err != nil {
			return nil, err
		}
		if first && k == 0 {
			l.once = took
		}
		replays = append(replays, some...)
	}
	return replays, nil
}

// wake replays for as long as was asked for, unless too few replays are left.
func (l *learner) wake(ctx context.Context) error {
	const most = 8 // at a time, from which waiting for them takes no part that matters
	began := time.Now()
	defer func() { l.once += time.Since(began) }()
	for n, left := 1, l.o.Wake; left > 0 && l.left >= n+tracedReplays+FewestToCompare; left = l.o.Wake - time.Since(began) {
		us, err := l.trials.TimeReplays(ctx, n)
		if l.left -= n; err != nil {
			return err
		}
		n = max(1, min(most, int(float64(left.Nanoseconds())/1e3/max(us, 1))))
	}
	return nil
}

// scaleNodes corrects the samples of nodes, which ran one after the other, by what a replay takes that is not measured: taking the times
// costs some, and replays that follow each other at once find caches and workers warm.
func (l *learner) scaleNodes(ctx context.Context, nodes []dag.NodeID) error {
	const least, most = 0.1, 2
	profile, sum := l.profile(), 0.0
	for _, i := range nodes {
		sum += profile.Nodes[l.graph.Nodes[i].Name]
	}
	if sum == 0 {
		return nil
	}
	rounds, err := l.timeRounds(ctx, l.left/8, 1)
	if err != nil || len(rounds) == 0 {
		return err
	}
	t, err := planner.Simulate(l.graph, l.p.Plan(), l.o.Plan.Machine, profile)
	if err != nil {
		return err
	}
	factor := max(least, min(most, (sum+engine.Summarize(rounds).Median-t.MakespanUS)/sum))
	for _, i := range nodes {
		for k := range l.learned.Samples[i] {
			l.learned.Samples[i][k] *= factor
		}
	}
	return nil
}

// besideOthers reports for each node whether another node ran during more than a tenth of its time.
func besideOthers(spans []spans.Span) []bool {
	order := make([]int, len(spans))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(spans[a].Start, spans[b].Start) })
	beside := make([]bool, len(spans))
	latest := -1 // of those before, the one that ends last
	for _, i := range order {
		if latest >= 0 {
			overlap := min(spans[latest].End, spans[i].End) - spans[i].Start
			for _, k := range []int{i, latest} {
				beside[k] = beside[k] || overlap > 0.1*(spans[k].End-spans[k].Start)
			}
		}
		if latest < 0 || spans[i].End > spans[latest].End {
			latest = i
		}
	}
	return beside
}

// recordedLaunchUS is what CUPTI counts of every kernel that the model counts between nodes: an empty kernel takes so long by its records.
const recordedLaunchUS = 0.54

// traceNodes replays n times and measures when each node ran. Where CUPTI can be used and is worth it, it tells; but the first replay of a program is
// always measured with events, which also tell which node hangs. It returns how long the first replay took too. nodes are those
// whose durations are wanted.
func (l *learner) traceNodes(ctx context.Context, n int, first bool, nodes []dag.NodeID) (replays []*spans.TracedReplay, took time.Duration, err error) {
	o := &l.o
	done := l.used()
	events := n
	if l.trials.CanRecord() && l.worthRecording(nodes, l.p.Plan().Costs) {
		events = 0
		if first {
			events = 1
		}
	}
	if events > 0 {
		if replays, took, err = l.trials.TraceCounted(ctx, events, done, o.Replays, o.Progress); err != nil {
			return nil, 0, err
		}
	}
	if events < n {
		recorded, ran, reason, err := l.trials.RecordCounted(ctx, n-events, done+events, o.Replays, o.Progress)
		if err != nil {
			return nil, 0, err
		}
		replays, events, l.recorded = append(replays, recorded...), events+ran, len(recorded) > 0
		if reason != "" {
			l.log.Info("nodes are measured with events", "because", reason)
		}
	}
	if events < n {
		more, _, err := l.trials.TraceCounted(ctx, n-events, done+events, o.Replays, o.Progress)
		if err != nil {
			return nil, 0, err
		}
		replays = append(replays, more...)
	}
	return replays, took, nil
}

// recordedGap is what CUPTI counts of a node that the model counts before it.
func recordedGap(g *dag.Graph, node dag.NodeID) float64 {
	if plan.EngineOf(g, node) == plan.Compute {
		return recordedLaunchUS
	}
	return 0
}

// resolvedUS is how well events tell the duration of a node on a GPU: against CUPTI, nine in ten of the durations that they give are so close.
const resolvedUS = 2.5

// gapsBefore returns for each node of a plan what the events around it add to its duration. On an H200, CUPTI's records are shorter than the
// time between the events by one gap for copies and two for kernels, and by a change of engines for the first node and where the
// node before ran on another engine: its event is recorded when it ends, but the next engine begins only when it has been told.
func gapsBefore(g *dag.Graph, made *planner.Plan, m *planner.Machine) []float64 {
	engineOf := func(node dag.NodeID) plan.Engine {
		if e := plan.EngineOf(g, node); e != plan.LocalCopy {
			return e
		}
		return plan.Compute // small copies within a device run like kernels
	}
	gaps := make([]float64, g.Len())
	for s := range made.Streams {
		before := dag.NodeID(-1)
		for _, op := range made.Streams[s].Ops {
			if op.Kind != plan.Launch {
				continue
			}
			gap := m.GapUS
			if engineOf(op.Node) == plan.Compute {
				gap += m.GapUS
			}
			if before < 0 || engineOf(before) != engineOf(op.Node) {
				gap += m.EngineUS
			}
			gaps[op.Node], before = gap, op.Node
		}
	}
	return gaps
}

// keepFormulas drops what events measured of nodes whose formula agrees with it as far as events can tell: the formula is more exact then.
func (l *learner) keepFormulas(nodes []dag.NodeID, costs []plan.Cost) {
	if len(costs) != l.graph.Len() {
		return
	}
	for _, i := range nodes {
		samples := l.learned.Samples[i]
		if costs[i].Source == plan.FormulaCost && len(samples) > 0 && math.Abs(engine.Summarize(slices.Clone(samples)).Median-costs[i].US) <= resolvedUS {
			l.learned.Samples[i] = nil
		}
	}
}

// worthRecording reports whether CUPTI should measure nodes: where one has no formula, or there is time for it. Taking CUPTI into a process and
// out again takes 50 ms.
func (l *learner) worthRecording(nodes []dag.NodeID, costs []plan.Cost) bool {
	return l.o.Thorough || len(costs) != l.graph.Len() || slices.ContainsFunc(nodes, func(i dag.NodeID) bool { return costs[i].Source == plan.UnknownCost })
}

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
				whole := model.LowerBound(body, l.o.Plan.Machine, l.learned.Profile, 0).US()
				for k, us := range model.Durations(body, l.o.Plan.Machine, l.learned.Profile) {
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
