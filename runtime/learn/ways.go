// The ways to replay plans: as a graph, as streams, from one thread or several, and which of them are the same.

package learn

import (
	"fmt"
	"math"
	"reflect"
	"slices"

	"github.com/dagrun/dagrun/cudart"
	"github.com/dagrun/dagrun/planner"
	"github.com/dagrun/dagrun/runtime/cache"
	"github.com/dagrun/dagrun/runtime/internal/engine"
)

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
		slices.EqualFunc(a.Bodies, b.Bodies, func(a, b planner.Body) bool { return samePlan(a.Plan, b.Plan) })
}
