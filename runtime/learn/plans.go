// Which plans are compared, in which ways they are replayed, and which of those are the same.

package learn

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"reflect"
	goruntime "runtime"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/dagrun/dagrun/cudart"
	"github.com/dagrun/dagrun/planner"
	"github.com/dagrun/dagrun/planner/plan"
	"github.com/dagrun/dagrun/runtime/cache"
	"github.com/dagrun/dagrun/runtime/internal/engine"
)

// candidates returns the plans to try, each as a graph and as streams: what earlier runs found best, and then the most promising. Later runs that
// must not replay more often than they were asked to compare no others.
func (l *learner) candidates(ctx context.Context) (*field, error) {
	if l.o.Runs > 0 && l.o.Extra == 0 {
		return &field{ways: slices.Clone(l.o.Ways), first: len(l.o.Ways)}, nil
	}
	plans, awaited, err := l.plans(ctx)
	f := &field{awaited: awaited}
	if err != nil {
		return f, err
	}
	ways, err := l.waysOf(plans...)
	if err != nil {
		return f, err
	}
	l.possible = slices.Clone(ways)
	f.ways, f.first = slices.Clone(l.o.Ways), len(l.o.Ways)
	ways = slices.DeleteFunc(ways, func(w Way) bool {
		return slices.ContainsFunc(f.ways, w.same) || slices.Contains(l.o.Seen, w.print())
	})
	f.ways = append(f.ways, l.promising(ways)...)
	return f, nil
}

// promising leaves out what is predicted to be much slower than the best, unless learning is thorough.
func (l *learner) promising(ways []Way) []Way {
	best := math.Inf(1)
	for k := range ways {
		best = min(best, ways[k].Predicted)
	}
	slices.SortStableFunc(ways, func(a, b Way) int { return cmp.Compare(a.Predicted, b.Predicted) })
	if !l.o.Thorough {
		k := 0
		ways = slices.DeleteFunc(ways, func(w Way) bool {
			k++
			return k > mostTried || w.Predicted > hopeless*best && k > 4
		})
	}
	return ways
}

// limited asks for the plans of strategies, each with some limits of streams, except cover, which takes as many as it needs.
func limited(o planner.Options, strategies ...string) (asked []planner.Options) {
	given, most := o.Streams, o.Streams
	if most == 0 {
		most = 8
	}
	for _, o.Strategy = range strategies {
		if o.Streams = given; o.Strategy == "cover" {
			asked = append(asked, o)
			continue
		}
		for o.Streams = most; o.Streams >= 1; o.Streams /= 2 {
			asked = append(asked, o)
		}
	}
	return asked
}

// plans makes different plans of the graph side by side, with the learned durations and with those that were known before. On a device of its own,
// replays are timed while auto looks for a better plan; on the CPU device, that would disturb them.
func (l *learner) plans(ctx context.Context) ([]*planner.Plan, *awaitedPlan, error) {
	o := l.o.Plan
	o.Profile = l.learned.Profile
	o.SingleUseEvents = o.SingleUseEvents || l.singleUse()
	several := (o.Strategy == "auto" || o.Strategy == "") && l.graph.Len() <= largestTried
	var asked []planner.Options
	var awaited *awaitedPlan
	if several && l.platform.Name() != "cpu" && !l.o.Thorough {
		awaited = l.await(ctx, o)
	} else {
		asked = append(asked, o)
	}
	if several {
		if !l.o.Thorough {
			o.Effort = planner.Quick
		}
		asked = append(asked, limited(o, "list", "cover", "serial", "roundrobin", "heft")...)
		o.Profile = l.known // nodes that were measured alone may take other times side by side
		asked = append(asked, limited(o, "list", "cover", "heft")...)
	}
	made := make([]*planner.Plan, len(asked))
	var group errgroup.Group
	group.SetLimit(goruntime.GOMAXPROCS(0))
	for k := range asked {
		group.Go(func() (err error) {
			if made[k], err = planner.New(ctx, l.graph, asked[k]); k > 0 || awaited != nil {
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

// only returns the ways of one mode.
func only(ways []Way, mode engine.Mode) []Way {
	var list []Way
	for _, w := range ways {
		if w.Mode == mode {
			list = append(list, w)
		}
	}
	return list
}

// waysOf returns the ways to replay plans, with predictions.
func (l *learner) waysOf(plans ...*planner.Plan) ([]Way, error) {
	var ways []Way
	for _, plan := range plans {
		for _, mode := range l.o.Modes {
			if queues := queuesOf(l.platform); mode == engine.Streams && len(l.o.Modes) > 1 && queues > 1 && len(plan.Streams) > queues {
				continue
			}
			counts := []int{max(1, l.o.Threads)}
			if n := l.threads(plan); mode == engine.Captured {
				counts = []int{1}
			} else if n > 1 {
				counts = append(counts, n)
			}
			for _, threads := range counts {
				ways = append(ways, Way{Plan: plan, Mode: mode, Threads: threads, Overlap: l.was.Overlap && l.o.Overlap != engine.OverlapAuto})
			}
		}
	}
	predicted, err := predictAll(l.graph, ways, l.o.Plan.Machine, l.learned.Profile)
	if err != nil {
		return nil, err
	}
	for k := range ways {
		ways[k].Predicted = predicted[k]
	}
	return ways, nil
}

// unlike leaves out the ways that have been timed already.
func (l *learner) unlike(ways []Way) []Way {
	return slices.DeleteFunc(ways, func(w Way) bool {
		return slices.ContainsFunc(l.learned.Ways, w.same) || slices.Contains(l.o.Seen, w.print())
	})
}

// same reports whether two ways submit the same plan as the same and by as many threads.
func (w Way) same(other Way) bool {
	return other.Mode == w.Mode && other.Threads == w.Threads && samePlan(other.Plan, w.Plan)
}

// print identifies what same compares.
func (w Way) print() string {
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

// queuesOf returns how many hardware queues streams share. Streams that share a queue wait for each other, so a plan with more streams is only tried as a
// graph. In the only queue all are in the order of their submission, and plans are made for that order.
func queuesOf(platform cudart.Platform) int {
	if limited, ok := platform.(interface{ Queues() int }); ok && limited.Queues() > 0 {
		return limited.Queues()
	}
	return math.MaxInt
}

// threads returns how many threads to try besides one: several for wide plans whose submission takes longer than their execution, if they need not
// share a hardware queue.
func (l *learner) threads(plan *planner.Plan) int {
	const wide, long = 4, 32
	if l.o.Threads != 0 || queuesOf(l.platform) == 1 || !l.singleUse() || len(plan.Streams) < wide || l.graph.Len() < long {
		return 1
	}
	return min(8, len(plan.Streams))
}

// singleUse reports whether plans may be submitted by several threads. On the CPU device that gains nothing.
func (l *learner) singleUse() bool {
	return l.o.Threads > 1 || l.o.Threads == 0 && l.platform.Name() != "cpu"
}

// samePlan reports whether two plans of a graph issue the same nodes to the same streams in the same order, those of bodies included.
func samePlan(a, b *planner.Plan) bool {
	return reflect.DeepEqual(a.Streams, b.Streams) && reflect.DeepEqual(a.Order, b.Order) &&
		slices.EqualFunc(a.Bodies, b.Bodies, func(a, b plan.Body) bool { return samePlan(a.Plan, b.Plan) })
}

// field holds the ways to time.
type field struct {
	ways    []Way
	first   int          // how many of them earlier runs found best: they are timed first, in this order
	awaited *awaitedPlan // whose ways join them; nil if none is awaited any more
}

// next takes out the way of a mode that is to be timed after some others: one that earlier runs found best, or else the one that could be fastest;
// nil if there is none.
func (f *field) next(mode engine.Mode, timed []Way) *Way {
	soFar, next, least := mispredictionsSoFar(timed), -1, math.Inf(1)
	for k := range f.ways {
		if f.ways[k].Mode != mode {
			continue
		}
		if k < f.first {
			next = k
			break
		}
		if us := soFar.hope(&f.ways[k]); next < 0 || us < least {
			next, least = k, us
		}
	}
	if next < 0 {
		return nil
	}
	w := f.ways[next]
	f.remove(next)
	return &w
}

func (f *field) remove(k int) {
	if f.ways = slices.Delete(f.ways, k, k+1); k < f.first {
		f.first--
	}
}

// leave takes out all ways of a mode.
func (f *field) leave(mode engine.Mode) {
	for k := len(f.ways) - 1; k >= 0; k-- {
		if f.ways[k].Mode == mode {
			f.remove(k)
		}
	}
}

// hopeless reports whether all ways of a mode are predicted to be much slower than the best of the other.
func (f *field) hopeless(mode engine.Mode) bool {
	of, others := math.Inf(1), math.Inf(1)
	for k := range f.ways {
		if w := &f.ways[k]; w.Mode == mode {
			of = min(of, w.Predicted)
		} else {
			others = min(others, w.Predicted)
		}
	}
	return of > hopelessMode*others
}

// join adds the ways of the awaited plan, if it is made.
func (f *field) join(l *learner) error {
	if f.awaited == nil || !f.awaited.made() {
		return nil
	}
	plan, err := f.awaited.result, f.awaited.err
	if f.awaited = nil; err != nil {
		return err
	}
	more, err := l.waysOf(plan)
	if err != nil {
		return err
	}
	l.step("planned what auto chooses")
	more = slices.DeleteFunc(l.unlike(more), func(w Way) bool { return slices.ContainsFunc(f.ways, w.same) })
	f.ways = append(f.ways, more...)
	return nil
}

// wait waits for the awaited plan until so much of learning's time is over, and reports whether it is made.
func (f *field) wait(l *learner, until float64) bool {
	const often = 500 * time.Microsecond
	for f.awaited != nil {
		select {
		case <-f.awaited.done:
			return true
		case <-time.After(often):
			if l.over(until) {
				return false
			}
		}
	}
	return false
}

// cancel ends the planning, if it is still going on.
func (f *field) cancel() {
	if f.awaited != nil {
		f.awaited.stop()
		<-f.awaited.done
	}
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
		defer stop()
		a.result, a.err = planner.New(ctx, l.graph, o)
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
