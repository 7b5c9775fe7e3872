// The ways to replay that learning times: those of plans that are made, and of one that is in the making.

package learn

import (
	"context"
	"math"
	"slices"
	"time"

	"github.com/dagrun/dagrun/planner"
	"github.com/dagrun/dagrun/runtime/internal/engine"
)

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
