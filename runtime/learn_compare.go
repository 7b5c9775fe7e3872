// Comparing plans: chooses which to try, times them, and keeps the best.

package runtime

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"time"

	"github.com/dagrun/dagrun/cudart"
	"github.com/dagrun/dagrun/planner"
)

const (
	rounds       = 3    // in which a way to replay is timed
	mostTried    = 12   // ways to replay that are timed
	largestTried = 2000 // nodes of graphs for which more plans are made than the one that auto chooses
	hopeless     = 2.0  // times the best prediction: not tried
	disturbed    = 0.2  // spread of rounds, as a part of their median, above which something else seems to use the device
)

// compare makes plans with the durations known by now and times the most promising ones.
func (l *learner) compare(ctx context.Context) error {
	l.report("plan with what was learned")
	ways, err := l.candidates(ctx)
	if err != nil || len(ways) == 0 {
		return err
	}
	const perWay = 2 + rounds
	tried := map[Mode]bool{} // the most promising way of each mode is timed however long that takes
	for k := range ways {
		if l.left < perWay || tried[ways[k].Mode] && l.over() {
			continue
		}
		tried[ways[k].Mode] = true
		l.report(StageLearn)
		if err := l.try(ctx, &ways[k]); err != nil {
			return err
		}
		if ways[k].Each.Count > 0 {
			l.learned.Ways = append(l.learned.Ways, ways[k])
		}
	}
	if len(l.learned.Ways) == 0 {
		return nil
	}
	l.sort()
	if err := l.finals(ctx); err != nil {
		return err
	}
	l.sort()
	return l.fit()
}

func (l *learner) sort() {
	slices.SortStableFunc(l.learned.Ways, func(a, b LearnedWay) int { return cmp.Compare(a.Each.Median, b.Each.Median) })
}

// over reports whether learning has used up its time.
func (l *learner) over() bool {
	if l.o.For > 0 {
		return time.Since(l.began) > l.o.For
	}
	used := l.o.Replays - l.left
	extra := time.Since(l.began) - time.Duration(float64(used)*l.best*1e3)
	return extra > max(100*time.Millisecond, time.Duration(float64(l.o.Replays)*l.best*1e3/5))
}

// candidates returns the plans to try, each as a graph and as streams, the most promising first. Graphs come before streams: on some drivers
// a process that has used several streams replays graphs more slowly.
func (l *learner) candidates(ctx context.Context) ([]LearnedWay, error) {
	plans, err := l.plans(ctx)
	if err != nil {
		return nil, err
	}
	var ways []LearnedWay
	best := math.Inf(1)
	for _, plan := range plans {
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
				w := LearnedWay{Plan: plan, Mode: mode, Threads: threads}
				t, err := predict(l.p.graph, w.way(), l.o.Plan.Machine, l.learned.Profile)
				if err != nil {
					return nil, err
				}
				w.Predicted = t.MakespanUS
				ways = append(ways, w)
				best = min(best, w.Predicted)
			}
		}
	}
	slices.SortStableFunc(ways, func(a, b LearnedWay) int { return cmp.Compare(a.Predicted, b.Predicted) })
	if !l.o.Thorough {
		k := 0
		ways = slices.DeleteFunc(ways, func(w LearnedWay) bool {
			k++
			return k > mostTried || w.Predicted > hopeless*best && k > 4
		})
	}
	slices.SortStableFunc(ways, func(a, b LearnedWay) int { return int(b.Mode) - int(a.Mode) })
	return ways, nil
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

// plans makes different plans of the graph with the learned durations.
func (l *learner) plans(ctx context.Context) ([]*planner.Plan, error) {
	o := l.o.Plan
	o.Profile = l.learned.Profile
	o.SingleUseEvents = o.SingleUseEvents || l.singleUse()
	auto, err := planner.New(ctx, l.p.graph, o)
	if err != nil {
		return nil, err
	}
	plans := []*planner.Plan{auto}
	if o.Strategy != "auto" && o.Strategy != "" || l.p.graph.Len() > largestTried {
		return plans, nil
	}
	type asked struct {
		strategy string
		streams  int
	}
	most := o.Streams
	if most == 0 {
		most = 8
	}
	var all []asked
	for s := most; s >= 1; s /= 2 {
		all = append(all, asked{"list", s})
	}
	all = append(all, asked{"cover", o.Streams}, asked{"roundrobin", most}, asked{"heft", most}, asked{"serial", 1})
	if l.o.Thorough {
		for s := most / 2; s >= 2; s /= 2 {
			all = append(all, asked{"roundrobin", s}, asked{"heft", s})
		}
	} else {
		o.Effort = planner.Quick
	}
	for _, a := range all {
		o.Strategy, o.Streams = a.strategy, a.streams
		plan, err := planner.New(ctx, l.p.graph, o)
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if err != nil {
			continue // a strategy that refuses the graph is not tried
		}
		same := func(other *planner.Plan) bool {
			return reflect.DeepEqual(other.Streams, plan.Streams) && reflect.DeepEqual(other.Order, plan.Order)
		}
		if !slices.ContainsFunc(plans, same) {
			plans = append(plans, plan)
		}
	}
	return plans, nil
}

// try times one way to replay. A way that the device refuses is left out: there may be no room for another arena, or no way to capture.
func (l *learner) try(ctx context.Context, w *LearnedWay) error {
	start := time.Now()
	if err := l.p.adopt(ctx, w.way()); err != nil {
		if ctx.Err() != nil || errors.Is(err, cudart.ErrPoisoned) {
			return err
		}
		l.p.log.Info("not compared", "strategy", w.Plan.Strategy, "replay", w.Mode.String(), "because", err.Error())
		return nil
	}
	if w.Mode == Captured {
		w.BuildUS = float64(time.Since(start).Nanoseconds()) / 1e3
	}
	warm, one := min(2, l.left), 0.0
	for range warm { // the first pays for what is done once
		us, err := l.p.timeReplays(ctx, 1)
		if l.left--; err != nil {
			return err
		}
		one = us
	}
	each := max(1, min(l.roundOf(one), l.left/(2*mostTried)/rounds))
	var samples []float64
	for range rounds {
		n := min(each, l.left)
		if n == 0 {
			break
		}
		us, err := l.p.timeReplays(ctx, n)
		if l.left -= n; err != nil {
			return err
		}
		samples = append(samples, us)
		if l.best > 0 && us > hopeless*l.best {
			break
		}
	}
	w.Each = Summarize(samples)
	if w.Each.Count > 0 && (l.best == 0 || w.Each.Median < l.best) {
		l.best = w.Each.Median
	}
	return nil
}

// finals times the best ways again, in turn, so that changes over time affect all of them alike.
func (l *learner) finals(ctx context.Context) error {
	ways := l.learned.Ways
	close := 1
	for close < min(3, len(ways)) && ways[close].Each.Median <= 1.1*ways[0].Each.Median {
		close++
	}
	samples := make([][]float64, close)
	if close > 1 {
		each := l.roundOf(ways[0].Each.Median)
		for range rounds {
			for k := range close {
				n := min(each, l.left/2)
				if n == 0 || l.over() {
					break
				}
				if err := l.p.adopt(ctx, ways[k].way()); err != nil {
					return err
				}
				us, err := l.p.timeReplays(ctx, n)
				if l.left -= n; err != nil {
					return err
				}
				samples[k] = append(samples[k], us)
			}
		}
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
