// Comparing plans: chooses which to try, times them, and keeps the best.

package runtime

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"reflect"
	goruntime "runtime"
	"slices"

	"github.com/dagrun/dagrun/planner"
	"github.com/dagrun/dagrun/runtime/cache"
	"golang.org/x/sync/errgroup"
)

// compare makes plans with the durations known by now and times the most promising ones: graphs before streams, because on some drivers a
// process that has used several streams replays graphs more slowly.
func (l *learner) compare(ctx context.Context) (err error) {
	var all []LearnedWay
	defer func() {
		if err != nil {
			l.learned.Ways = append(all, l.learned.Ways...)
			l.sort()
		}
	}()
	l.report("plan with what was learned")
	ways, awaited, err := l.candidates(ctx)
	if awaited != nil {
		defer awaited.cancel()
	}
	if err != nil || len(ways) == 0 {
		return err
	}
	l.step("planned")
	share := l.left * 3 / 4 / (len(ways) + len(l.o.Modes)) // a quarter of the replays is kept for the best ways
	for k, mode := range l.o.Modes {
		begin, end := 0.0, 1.0 // the part of learning's time for this mode
		if len(l.o.Modes) > 1 && k == 0 {
			end = firstMode
		} else if k > 0 {
			begin = firstMode
		}
		part := func(of float64) float64 { return begin + of*(end-begin) }
		others := l.left - l.left/(len(l.o.Modes)-k) // replays for the other modes
		l.learned.Ways = nil
		if err := l.heats(ctx, only(ways, mode), share, part(inHeats)); err != nil {
			return err
		}
		if awaited != nil && (awaited.made() || !l.over(part(inHeats))) {
			plan, err := awaited.plan()
			if err != nil {
				return err
			}
			more, err := l.waysOf(plan)
			if err != nil {
				return err
			}
			if err := l.heats(ctx, l.unlike(only(more, mode)), share, part(inHeats)); err != nil {
				return err
			}
		}
		l.step("timed most ways to replay, as " + mode.String())
		l.sort()
		if err := l.overlap(ctx); err != nil {
			return err
		}
		if err := l.finals(ctx, others, part(1)); err != nil {
			return err
		}
		if err := l.observe(ctx, mode, l.unlike(only(l.possible, mode)), others, part(1)); err != nil {
			return err
		}
		all = append(all, l.learned.Ways...)
	}
	if l.learned.Ways, all = all, nil; len(l.learned.Ways) == 0 {
		return nil
	}
	l.step("timed the best ways again")
	l.sort()
	if l.p.bodies != nil {
		return nil // durations were corrected before, pass by pass
	}
	return l.fitPlain()
}

// only returns the ways of one mode.
func only(ways []LearnedWay, mode Mode) []LearnedWay {
	var list []LearnedWay
	for _, w := range ways {
		if w.Mode == mode {
			list = append(list, w)
		}
	}
	return list
}

// heats times ways of one mode for the first time, with so many replays each, until so much of learning's time is over. The most promising
// way is timed however long that takes. Where several in a row are slower than what is known already, the rest is not timed.
func (l *learner) heats(ctx context.Context, ways []LearnedWay, share int, until float64) error {
	const fewest = warmUp + rounds
	behind := 0
	for k := range ways {
		if l.left < fewest || len(l.learned.Ways) > 0 && l.over(until) || behind == mostBehind && !l.o.Thorough {
			return nil
		}
		l.report(StageLearn)
		if err := l.try(ctx, &ways[k], max(1, (share-warmUp)/rounds)); err != nil {
			return err
		}
		if ways[k].Each.Count > 0 {
			l.learned.Ways = append(l.learned.Ways, ways[k])
		}
		if behind++; ways[k].Each.Min <= finalWithin*l.best {
			behind = 0
		}
	}
	return nil
}

// candidates returns the plans to try, each as a graph and as streams: what earlier runs found best, and then the most promising. If awaited is
// not nil, it is making another plan meanwhile. Later runs that must not replay more often than they were asked to compare no others.
func (l *learner) candidates(ctx context.Context) (ways []LearnedWay, awaited *awaitedPlan, err error) {
	if l.o.Runs > 0 && l.o.Extra == 0 {
		return slices.Clone(l.o.Ways), nil, nil
	}
	plans, awaited, err := l.plans(ctx)
	if err != nil {
		return nil, awaited, err
	}
	for _, plan := range plans {
		more, err := l.waysOf(plan)
		if err != nil {
			return nil, awaited, err
		}
		ways = append(ways, more...)
	}
	l.possible = slices.Clone(ways)
	kept := slices.Clone(l.o.Ways)
	ways = slices.DeleteFunc(ways, func(w LearnedWay) bool {
		return slices.ContainsFunc(kept, w.same) || slices.Contains(l.o.Seen, w.print())
	})
	return append(kept, l.promising(ways)...), awaited, nil
}

// waysOf returns the ways to replay a plan, with predictions.
func (l *learner) waysOf(plan *planner.Plan) ([]LearnedWay, error) {
	var ways []LearnedWay
	for _, mode := range l.o.Modes {
		if mode == Streams && len(l.o.Modes) > 1 && len(plan.Streams) > l.queues() {
			continue
		}
		counts := []int{max(1, l.o.Threads)}
		if n := l.threads(plan); mode == Captured {
			counts = []int{1}
		} else if n > 1 {
			counts = append(counts, n)
		}
		for _, threads := range counts {
			w := LearnedWay{Plan: plan, Mode: mode, Threads: threads, Overlap: l.was.overlap && l.o.Overlap != OverlapAuto}
			us, err := predictEach(l.p.graph, w.way(), l.o.Plan.Machine, l.learned.Profile)
			if err != nil {
				return nil, err
			}
			w.Predicted = us
			ways = append(ways, w)
		}
	}
	return ways, nil
}

// promising leaves out what is predicted to be much slower than the best, unless learning is thorough.
func (l *learner) promising(ways []LearnedWay) []LearnedWay {
	best := math.Inf(1)
	for k := range ways {
		best = min(best, ways[k].Predicted)
	}
	slices.SortStableFunc(ways, func(a, b LearnedWay) int { return cmp.Compare(a.Predicted, b.Predicted) })
	if !l.o.Thorough {
		k := 0
		ways = slices.DeleteFunc(ways, func(w LearnedWay) bool {
			k++
			return k > mostTried || w.Predicted > hopeless*best && k > 4
		})
	}
	return ways
}

// unlike leaves out the ways that have been timed already.
func (l *learner) unlike(ways []LearnedWay) []LearnedWay {
	return slices.DeleteFunc(ways, func(w LearnedWay) bool {
		return slices.ContainsFunc(l.learned.Ways, w.same) || slices.Contains(l.o.Seen, w.print())
	})
}

// same reports whether two ways submit the same plan as the same and by as many threads.
func (w LearnedWay) same(other LearnedWay) bool {
	return other.Mode == w.Mode && other.Threads == w.Threads && samePlan(other.Plan, w.Plan)
}

// print identifies what same compares.
func (w LearnedWay) print() string {
	text := fmt.Append(nil, w.Mode, w.Threads)
	var add func(p *planner.Plan)
	add = func(p *planner.Plan) {
		text = fmt.Append(text, p.Streams, p.Order)
		for k := range p.Bodies {
			add(p.Bodies[k].Plan)
		}
	}
	add(w.Plan)
	return cache.Fingerprint(text)
}

// queues returns how many streams of a replay the device has hardware queues for. Streams that share a queue wait for each other, so a
// plan with more streams is only tried as a graph.
func (l *learner) queues() int {
	if limited, ok := l.p.platform.(interface{ Queues() int }); ok && limited.Queues() > 0 {
		return limited.Queues()
	}
	return math.MaxInt
}

// threads returns how many threads to try besides one: several for wide plans whose submission takes longer than their execution.
func (l *learner) threads(plan *planner.Plan) int {
	const wide, long = 4, 32
	if l.o.Threads != 0 || !l.singleUse() || len(plan.Streams) < wide || l.p.graph.Len() < long {
		return 1
	}
	return min(8, len(plan.Streams))
}

// singleUse reports whether plans may be submitted by several threads. On the CPU device that gains nothing.
func (l *learner) singleUse() bool {
	return l.o.Threads > 1 || l.o.Threads == 0 && l.p.platform.Name() != "cpu"
}

// awaitedPlan is a plan in the making: what auto chooses with all the effort asked for.
type awaitedPlan struct {
	stop   func()
	done   chan struct{}
	result *planner.Plan
	err    error
}

func (l *learner) await(ctx context.Context, o planner.Options) *awaitedPlan {
	ctx, stop := context.WithCancel(ctx)
	a := &awaitedPlan{stop: stop, done: make(chan struct{})}
	go func() {
		defer close(a.done)
		a.result, a.err = planner.New(ctx, l.p.graph, o)
	}()
	return a
}

// made reports whether there is a plan already.
func (a *awaitedPlan) made() bool {
	select {
	case <-a.done:
		return true
	default:
		return false
	}
}

// plan waits for the plan.
func (a *awaitedPlan) plan() (*planner.Plan, error) {
	<-a.done
	return a.result, a.err
}

// cancel ends the planning, if it is still going on.
func (a *awaitedPlan) cancel() {
	a.stop()
	<-a.done
}

// plans makes different plans of the graph with the learned durations, side by side. On a device of its own, replays are timed while auto
// looks for a better plan; on the CPU device, that would disturb them.
func (l *learner) plans(ctx context.Context) ([]*planner.Plan, *awaitedPlan, error) {
	o := l.o.Plan
	o.Profile = l.learned.Profile
	o.SingleUseEvents = o.SingleUseEvents || l.singleUse()
	var asked []planner.Options
	ask := func(strategy string, streams int) {
		o.Strategy, o.Streams = strategy, streams
		asked = append(asked, o)
	}
	given, most := o.Strategy, o.Streams
	several := (given == "auto" || given == "") && l.p.graph.Len() <= largestTried
	var awaited *awaitedPlan
	if several && l.p.platform.Name() != "cpu" && !l.o.Thorough {
		awaited = l.await(ctx, o)
		o.Effort = planner.Quick
	}
	ask(given, most)
	if several {
		if most == 0 {
			most = 8
		}
		if !l.o.Thorough {
			o.Effort = planner.Quick
		}
		for s := most; s >= 1; s /= 2 {
			ask("list", s)
		}
		ask("cover", l.o.Plan.Streams)
		ask("serial", 1)
		for s := most; s >= 2; s /= 2 {
			ask("roundrobin", s)
			ask("heft", s)
		}
	}
	if several { // nodes that were measured alone may take other times side by side: plans made without the measurements are tried too
		o.Profile = l.known
		ask("heft", most)
		ask("list", most)
		ask("cover", l.o.Plan.Streams)
	}
	made := make([]*planner.Plan, len(asked))
	var group errgroup.Group
	group.SetLimit(goruntime.GOMAXPROCS(0))
	for k := range asked {
		group.Go(func() (err error) {
			if made[k], err = planner.New(ctx, l.p.graph, asked[k]); k > 0 {
				return nil // a strategy that refuses the graph is not tried
			}
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, awaited, err
	}
	if ctx.Err() != nil {
		return nil, awaited, context.Cause(ctx)
	}
	var plans []*planner.Plan
	for _, plan := range made {
		if plan != nil && !slices.ContainsFunc(plans, func(other *planner.Plan) bool { return samePlan(other, plan) }) {
			plans = append(plans, plan)
		}
	}
	return plans, awaited, nil
}

// samePlan reports whether two plans of a graph issue the same nodes to the same streams in the same order, those of bodies included.
func samePlan(a, b *planner.Plan) bool {
	return reflect.DeepEqual(a.Streams, b.Streams) && reflect.DeepEqual(a.Order, b.Order) &&
		slices.EqualFunc(a.Bodies, b.Bodies, func(a, b planner.Body) bool { return samePlan(a.Plan, b.Plan) })
}

// try times one way to replay in rounds of at most so many replays, which are short, because the best are timed again.
func (l *learner) try(ctx context.Context, w *LearnedWay, most int) error {
	l.learned.Seen = append(l.learned.Seen, w.print())
	if ok, err := l.adoptIfPossible(ctx, w); !ok || err != nil {
		return err
	}
	samples, err := l.timeRounds(ctx, most, 0.5)
	if err != nil {
		return err
	}
	w.Each = Summarize(samples)
	if w.Each.Count > 0 && (l.best == 0 || w.Each.Median < l.best) {
		l.best = w.Each.Median
	}
	return nil
}

// finals times the best ways again, in turn, so that changes over time affect all of them alike. A way that was once about as fast as the best is
// among them, because something else may have slowed down its other rounds. It leaves so many replays for others, and ends when so much of
// learning's time is over.
func (l *learner) finals(ctx context.Context, others int, until float64) error {
	ways := l.learned.Ways
	if len(ways) == 0 {
		return nil
	}
	slices.SortStableFunc(ways, func(a, b LearnedWay) int { return cmp.Compare(a.Each.Min, b.Each.Min) })
	close := 1
	for close < min(mostFinal, len(ways)) && ways[close].Each.Min <= finalWithin*ways[0].Each.Min {
		close++
	}
	samples, err := l.inTurns(ctx, ways[:close], others, until)
	if err != nil {
		return err
	}
	worst := 0.0
	for k := range close {
		if len(samples[k]) == rounds {
			ways[k].Each = Summarize(samples[k])
		}
		if e := &ways[k].Each; e.Median > 0 {
			worst = max(worst, (e.Median-e.Min)/e.Median)
		}
	}
	if worst > disturbed {
		l.learned.Unquiet = fmt.Sprintf("replays of one plan differ by %.0f%%: something else uses the device, or its clock rates change", 100*worst)
	}
	return nil
}

// inTurns times ways in turn, for finals. There may be no time for all rounds.
func (l *learner) inTurns(ctx context.Context, ways []LearnedWay, others int, until float64) (samples [][]float64, err error) {
	samples = make([][]float64, len(ways))
	if len(ways) < 2 {
		return samples, nil
	}
	each := min(l.roundOf(ways[0].Each.Min), (l.left-others)/len(ways)/rounds-1)
	for range rounds {
		for k := range ways {
			d, err := l.decides(ctx, turn{each, l.over(until)})
			if err != nil || d.Over || d.Replays < 1 {
				return samples, err
			}
			if err := l.adopt(ctx, &ways[k]); err != nil {
				return nil, err
			}
			us, err := l.timeRound(ctx, d.Replays)
			if err != nil {
				return nil, err
			}
			samples[k] = append(samples[k], us)
		}
	}
	return samples, nil
}
