// Learning: replays that measure how long nodes take and which plan is fastest. All of them replay proved plans, which give equal results,
// so they count as normal replays.

// Package learn finds out, by replaying a program, how long its nodes take and which plan and which way to replay it are fastest, and keeps that
// for later runs. Package runtime is its front.
package learn

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/dagrun/dagrun/cudart"
	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/planner"
	"github.com/dagrun/dagrun/runtime/cache"
	"github.com/dagrun/dagrun/runtime/internal/engine"
	"github.com/dagrun/dagrun/runtime/internal/spans"
)

// Learn makes a program of a graph, learns from its replays, and closes it.
func Learn(ctx context.Context, g *dag.Graph, platform cudart.Platform, o Options) (learned *Learned, err error) {
	switch {
	case g == nil:
		return nil, errors.New("learning needs a graph")
	case platform == nil:
		return nil, errors.New("learning needs a platform to run on")
	}
	o = o.orDefault(platform)
	o.Plan.Profile = MergeProfiles(o.Known, o.Plan.Profile)
	plan, err := planner.New(ctx, g, o.Plan)
	if err != nil {
		return nil, err
	}
	p, err := engine.New(ctx, g, plan, platform, planner.GraphEdges, engine.Options{Progress: o.Progress})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, p.Close()) }()
	return From(ctx, p, o)
}

// From learns from a program, and leaves it with the best plan.
func From(ctx context.Context, p *engine.Program, o Options) (learned *Learned, err error) {
	if err := p.CanLearn(); err != nil {
		return nil, err
	}
	if err := p.CheckReplays(ctx, "learn from", o.Replays, 1); err != nil {
		return nil, err
	}
	o = o.orDefault(p.Platform())
	for _, m := range o.Modes {
		if m != engine.Streams && m != engine.Captured {
			return nil, fmt.Errorf("learn with mode %s: only streams and graph can be chosen from", m)
		}
	}
	if err := o.checkNumbers(); err != nil {
		return nil, err
	}
	l := newLearner(p, o)
	end := l.trials.Begin()
	defer func() { err = errors.Join(err, end()) }()
	before := p.Replays()
	err = l.run(ctx)
	l.learned.Replays, l.learned.Settled = int(p.Replays()-before), o.Thorough && err == nil
	if err != nil {
		l.trials.KeepRunning()
		if ctx.Err() == nil || l.learned.Profile == nil || l.graph.HasControl() || l.graph.Ranks > 1 {
			return nil, err
		}
	}
	return &l.learned, err
}

func (l *learner) run(ctx context.Context) error {
	if l.graph.Ranks > 1 {
		return l.together(ctx)
	}
	if l.graph.HasControl() {
		if err := l.measureBodies(ctx); err != nil {
			return err
		}
		return l.compareBodies(ctx)
	}
	if l.o.Runs == 0 { // those that compared plans before measured the same nodes
		if err := l.measureNodes(ctx); err != nil {
			return err
		}
	}
	l.step("measured nodes")
	l.learned.Profile = l.profile()
	if l.left >= FewestToCompare && l.graph.Len() > 0 {
		if err := l.compare(ctx); err != nil {
			return err
		}
	}
	if len(l.learned.Ways) > 0 {
		return l.trials.Adopt(ctx, l.learned.Ways[0].way())
	}
	if l.left > 0 && l.p.Plan() != l.was.Plan {
		return l.trials.Adopt(ctx, l.was)
	}
	return nil
}

// compareBodies compares plans of a program with loops or branches on a GPU, if there are enough replays, in the mode that it has: as streams, the
// host waits before each test.
func (l *learner) compareBodies(ctx context.Context) error {
	if l.platform.Name() == "cpu" || l.left < FewestToCompare {
		return nil
	}
	if err := l.wake(ctx); err != nil {
		return err
	}
	timed := l.learned.Ways
	l.o.Modes = []engine.Mode{l.p.Mode()}
	if err := l.compare(ctx); err != nil {
		return err
	}
	l.learned.Ways = append(l.learned.Ways, l.unlike(timed)...)
	if l.sort(); len(l.learned.Ways) == 0 {
		return nil
	}
	return l.trials.Adopt(ctx, l.learned.Ways[0].way())
}

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
