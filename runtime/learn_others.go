// Timing of ways to replay that will not be chosen: with them, predictions of other plans are better. The best ways resemble each other, so that
// they tell little about what a launch or a wait takes.

package runtime

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/dagrun/dagrun/cudart"
)

const (
	mostObserved = 6  // ways of a mode from which predictions are made
	inTurns      = 20 // times that these take turns at most: the host submits at other speeds at other times, for up to a second
)

// observe times ways of one mode that have not been timed, if learning was given a time and some is left. All that predictions are made from
// take turns. It leaves so many replays for others, and ends when so much of learning's time is over.
func (l *learner) observe(ctx context.Context, mode Mode, untimed []LearnedWay, others int, until float64) error {
	if !l.observes() {
		return nil
	}
	l.addSome(untimed)
	var observed []int
	for k := range l.learned.Ways {
		if w := &l.learned.Ways[k]; w.Mode == mode && w.Threads <= 1 && !w.Overlap {
			observed = append(observed, k)
		}
	}
	samples := make([][]float64, len(l.learned.Ways))
turns:
	for range inTurns {
		for _, k := range observed {
			w := &l.learned.Ways[k]
			each := l.roundOf(w.Each.Median)
			if w.Each.Median == 0 {
				each = l.roundOf(w.Predicted)
			}
			if l.over(until) || l.left-others <= each {
				break turns
			}
			if err := l.p.adopt(ctx, w.way()); err != nil {
				if ctx.Err() != nil || errors.Is(err, cudart.ErrPoisoned) {
					return err
				}
				continue // the device refuses it
			}
			us, err := l.timeRound(ctx, each)
			if err != nil {
				return err
			}
			samples[k] = append(samples[k], us)
		}
	}
	for _, k := range observed {
		if len(samples[k]) >= rounds {
			l.learned.Ways[k].Each = Summarize(samples[k])
		}
	}
	l.learned.Ways = slices.DeleteFunc(l.learned.Ways, func(w LearnedWay) bool { return w.Each.Count == 0 })
	l.step("timed other ways to replay, as " + mode.String())
	return nil
}

// observes reports whether learning was given a time on a device that is measured well enough for more than choosing.
func (l *learner) observes() bool { return l.o.For > 0 && l.p.platform.Name() != "cpu" }

// addSome adds ways that have not been timed: some from the fastest to the slowest by what is predicted.
func (l *learner) addSome(untimed []LearnedWay) {
	known := 0
	for k := range l.learned.Ways {
		if w := &l.learned.Ways[k]; w.Threads <= 1 && !w.Overlap {
			known++
		}
	}
	untimed = slices.DeleteFunc(untimed, func(w LearnedWay) bool { return w.Threads > 1 })
	slices.SortStableFunc(untimed, func(a, b LearnedWay) int { return cmp.Compare(a.Predicted, b.Predicted) })
	wanted := min(len(untimed), max(2, mostObserved-known))
	for k := range wanted {
		w := untimed[len(untimed)-1]
		if wanted > 1 {
			w = untimed[k*(len(untimed)-1)/(wanted-1)]
		}
		l.learned.Ways = append(l.learned.Ways, w)
	}
}
