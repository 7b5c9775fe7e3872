// Learning: replays that measure how long nodes take and which plan is fastest. All of them replay proved plans, which give equal results,
// so they count as normal replays.

package runtime

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/dagrun/dagrun/cudart"
	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/planner"
	"github.com/dagrun/dagrun/runtime/cache"
	"github.com/dagrun/dagrun/runtime/internal/spans"
)

// Learn makes a program of a graph, learns from its replays, and closes it. Buffers start with their initial contents; nothing is saved. A graph
// with host functions needs a program that has them: Program.Learn.
// Pass the profile that it returns to the planner: planner.Options{Profile: learned.Profile}.
func Learn(ctx context.Context, g *dag.Graph, platform cudart.Platform, o LearnOptions) (learned *Learned, err error) {
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
	p, err := New(ctx, g, plan, platform, Options{Progress: o.Progress})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, p.Close()) }()
	return p.Learn(ctx, o)
}

// Learn uses some of the requested replays: it measures how long nodes take, plans again, tries the most promising plans, and leaves
// the program with the best. The replays count like those of Run, and Learned.Replays says how many there were. The program's plan must
// be one of LearnOptions.Plan. Of a program with loops or branches on the CPU device it only measures nodes, those of bodies too. It cannot learn
// with several replays in flight, on a stream of the caller's, with a plan that leaves hazards unenforced, or with DebugProgress; CanLearn says so.
// If the context ends after nodes have been measured, Learn returns what it has learned until then, along with the error, unless there are loops,
// branches or several ranks.
func (p *Program) Learn(ctx context.Context, o LearnOptions) (learned *Learned, err error) {
	if err := p.CanLearn(); err != nil {
		return nil, err
	}
	if err := p.checkReplays(ctx, "learn from", o.Replays, 1); err != nil {
		return nil, err
	}
	o = o.orDefault(p.platform)
	for _, m := range o.Modes {
		if m != Streams && m != Captured {
			return nil, fmt.Errorf("learn with mode %s: only streams and graph can be chosen from", m)
		}
	}
	if err := o.checkNumbers(); err != nil {
		return nil, err
	}
	l := &learner{p: p, o: o, was: way{p.plan, p.mode, max(1, p.options.Threads), p.overlap}, left: o.Replays + o.Extra, began: time.Now()}
	l.known = MergeProfiles(o.Known, o.Plan.Profile)
	l.learned.Machine = o.Plan.Machine
	l.learned.Samples, l.learned.Shares = make([][]float64, p.graph.Len()), make([][]float64, p.graph.Len())
	p.learning.Store(true)
	p.parking = true
	defer func() {
		p.learning.Store(false)
		p.parking = false
		err = errors.Join(err, p.freeParked())
	}()
	before := p.Replays()
	err = l.run(ctx)
	l.learned.Replays, l.learned.Settled = int(p.Replays()-before), o.Thorough && err == nil
	if err != nil {
		p.keepRunning()
		if ctx.Err() == nil || l.learned.Profile == nil || p.bodies != nil || p.graph.Ranks > 1 {
			return nil, err
		}
	}
	return &l.learned, err
}

// CanLearn returns why the program cannot learn, or nil.
func (p *Program) CanLearn() error {
	switch {
	case p == nil || p.platform == nil:
		return errNoProgram
	case p.closed:
		return ErrClosed
	case p.options.Inflight > 1:
		return errors.New("several replays in flight")
	case p.options.Origin != nil:
		return errors.New("replays are put into the caller's stream")
	case p.options.Unsafe:
		return errors.New("the plan leaves hazards unenforced, so that plans may differ in their results")
	case p.bodies != nil && p.graph.Ranks > 1:
		return errors.New("the pipeline has loops or branches, and several ranks")
	case p.options.DebugProgress:
		return errors.New("progress is tracked for debugging")
	case p.mode == Built:
		return errors.New("the graph is built node by node")
	case p.turns != nil:
		return errors.New("ReplayThen is in use")
	case p.graph.Ranks > 1 && p.options.Exchange == nil:
		return errors.New("several ranks learn together, and Options.Exchange is not set")
	}
	for i := range p.launches {
		if p.launches[i] != p.graph.Nodes[i].Launch {
			return errors.New("nodes have been updated")
		}
	}
	return nil
}

func (l *learner) run(ctx context.Context) error {
	if l.p.graph.Ranks > 1 {
		return l.together(ctx)
	}
	if l.p.bodies != nil {
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
	if l.left >= FewestToCompare && l.p.graph.Len() > 0 {
		if err := l.compare(ctx); err != nil {
			return err
		}
	}
	if len(l.learned.Ways) > 0 {
		return l.p.adopt(ctx, l.learned.Ways[0].way())
	}
	if l.left > 0 && l.p.plan != l.was.plan {
		return l.p.adopt(ctx, l.was)
	}
	return nil
}

// compareBodies compares plans of a program with loops or branches on a GPU, if there are enough replays, in the mode that it has: as streams, the
// host waits before each test.
func (l *learner) compareBodies(ctx context.Context) error {
	if l.p.platform.Name() == "cpu" || l.left < FewestToCompare {
		return nil
	}
	if err := l.wake(ctx); err != nil {
		return err
	}
	timed := l.learned.Ways
	l.o.Modes = []Mode{l.p.mode}
	if err := l.compare(ctx); err != nil {
		return err
	}
	l.learned.Ways = append(l.learned.Ways, l.unlike(timed)...)
	if l.sort(); len(l.learned.Ways) == 0 {
		return nil
	}
	return l.p.adopt(ctx, l.learned.Ways[0].way())
}

// measureNodes replays with timed events before and after each node. On one stream a node has the device to itself, so a plan for one
// stream is used if there is time for it.
func (l *learner) measureNodes(ctx context.Context) error {
	unknown := l.unknown()
	captured := len(l.o.Modes) == 1 && l.o.Modes[0] == Captured
	if captured && l.left < 2*(tracedReplays+1) {
		return nil // nodes are measured on streams, and who wants a graph should see one
	}
	if len(unknown) == 0 {
		return l.watchFirst(ctx)
	}
	l.report("learn how long nodes take")
	p := l.p
	n, first := min(l.left, tracedReplays+1), p.replays.Load() == 0
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
	prints := Fingerprints(p.graph)
	takeFromAlone(l.learned.Samples, unknown, prints, besideOthers(replays[len(replays)-1].Spans))
	takeFromSame(l.learned.Samples, unknown, prints)
	switch {
	case p.platform.Name() == "cpu" && oneByOne:
		return l.scaleNodes(ctx, unknown)
	case p.platform.Name() != "cpu" && !l.recorded:
		l.keepFormulas(unknown)
	}
	return nil
}

// adoptSerial makes the program replay a plan for one stream, if n replays of it take no more time than learning may, and reports whether it does.
func (l *learner) adoptSerial(ctx context.Context, n int) (adopted bool, err error) {
	options := l.o.Plan
	options.Strategy, options.Streams, options.Profile, options.Effort = "serial", 0, l.known, planner.Quick
	serial, err := planner.New(ctx, l.p.graph, options)
	if err != nil {
		if ctx.Err() != nil {
			return false, context.Cause(ctx)
		}
		return false, nil // as the plan of the program is
	}
	due := float64(l.o.Replays) * l.p.plan.Stats.MakespanUS
	if float64(n)*(serial.Stats.MakespanUS-l.p.plan.Stats.MakespanUS) > max(1e5, due/5) {
		return false, nil
	}
	if err := l.p.adopt(ctx, way{serial, Streams, 1, l.p.overlap}); err != nil {
		return false, err
	}
	return true, nil
}

// takeSamples takes the durations of nodes from replays, less what measuring added to them. Of a program's first replay they are kept apart.
func (l *learner) takeSamples(replays []*spans.TracedReplay, nodes []dag.NodeID, first, oneByOne bool) {
	p := l.p
	gaps := make([]float64, p.graph.Len())
	for i := range gaps {
		gaps[i] = stampUS
	}
	if p.platform.Name() != "cpu" {
		gaps = gapsBefore(p.graph, p.plan, l.o.Plan.Machine)
	}
	if first {
		l.learned.First = make([]float64, p.graph.Len())
	}
	for _, i := range nodes {
		for k, replay := range replays {
			gap := gaps[i]
			if spans.IsRecorded(replay) {
				gap = recordedGap(p.graph, i)
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
	if _, tells := l.p.platform.(tellsRunning); tells || l.left <= FewestToCompare {
		return nil
	}
	options := l.o.Plan
	options.Strategy, options.Streams, options.Profile, options.Effort = "serial", 0, l.known, planner.Quick
	if serial, err := planner.New(ctx, l.p.graph, options); err == nil {
		if err := l.p.adopt(ctx, way{serial, Streams, 1, l.p.overlap}); err != nil {
			return err
		}
	}
	_, took, err := l.p.traceCounted(ctx, 1, l.used(), l.o.Replays, l.o.Progress)
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
		us, err := l.p.timeReplays(ctx, n)
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
		sum += profile.Nodes[l.p.graph.Nodes[i].Name]
	}
	if sum == 0 {
		return nil
	}
	rounds, err := l.timeRounds(ctx, l.left/8, 1)
	if err != nil || len(rounds) == 0 {
		return err
	}
	t, err := planner.Simulate(l.p.graph, l.p.plan, l.o.Plan.Machine, profile)
	if err != nil {
		return err
	}
	factor := max(least, min(most, (sum+Summarize(rounds).Median-t.MakespanUS)/sum))
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
	slices.SortFunc(order, func(a, b int) int {
		switch {
		case spans[a].Start < spans[b].Start:
			return -1
		case spans[a].Start > spans[b].Start:
			return 1
		}
		return a - b
	})
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
