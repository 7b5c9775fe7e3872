// Timing of ways to replay that will not be chosen: with them, predictions of other plans are better. The best ways resemble each other, so that
// they tell little about what a launch or a wait takes.

package learn

import (
	"context"
	"errors"
	"math"
	"slices"

	"github.com/dagrun/dagrun/cudart"
	"github.com/dagrun/dagrun/runtime/internal/engine"
)

const (
	mostObserved = 10 // ways of a mode from which predictions are made
	fewestOthers = 4  // of these that learning will not choose, if there are so many
	inTurns      = 20 // times that these take turns at most: the host submits at other speeds at other times, for up to a second
)

// observe times ways of one mode that have not been timed, if learning was given a time and some is left. All that predictions are made from
// take turns. It leaves so many replays for others, and ends when so much of learning's time is over.
func (l *learner) observe(ctx context.Context, mode engine.Mode, untimed []Way, others int, until float64) error {
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
			if err := l.trials.Adopt(ctx, w.way()); err != nil {
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
	evenTurns(samples)
	for _, k := range observed {
		if len(samples[k]) >= rounds {
			l.learned.Ways[k].Each = engine.Summarize(samples[k])
		}
	}
	l.learned.Ways = slices.DeleteFunc(l.learned.Ways, func(w Way) bool { return w.Each.Count == 0 })
	l.step("timed other ways to replay, as " + mode.String())
	return nil
}

// evenTurns takes out of samples, by way and turn, what all ways took longer or less in one turn than in others: a turn is short against the time
// for which a host is slow, so that ways are compared with each other at the same speed.
func evenTurns(samples [][]float64) {
	const passes = 2
	for range passes {
		var off [][]float64 // by turn: logarithms
		for _, of := range samples {
			if len(of) == 0 {
				continue
			}
			usual := engine.Summarize(slices.Clone(of)).Median
			for turn, us := range of {
				if turn == len(off) {
					off = append(off, nil)
				}
				off[turn] = append(off[turn], math.Log(us/usual))
			}
		}
		for _, of := range samples {
			for turn := range of {
				of[turn] /= math.Exp(engine.Summarize(slices.Clone(off[turn])).Median)
			}
		}
	}
}

// observes reports whether learning was given a time on a device that is measured well enough for more than choosing.
func (l *learner) observes() bool { return l.o.For > 0 && l.platform.Name() != "cpu" }

// addSome adds ways that have not been timed: one after the other, the one of which those that are timed say least.
func (l *learner) addSome(untimed []Way) {
	var timed []likeness
	for k := range l.learned.Ways {
		if w := &l.learned.Ways[k]; w.Threads <= 1 && !w.Overlap {
			timed = append(timed, likenessOf(w.Plan, w.Predicted))
		}
	}
	untimed = slices.DeleteFunc(slices.Clone(untimed), func(w Way) bool { return w.Threads > 1 })
	for range max(fewestOthers, mostObserved-len(timed)) {
		best, most := -1, 0.0
		for k := range untimed {
			if doubt := likenessOf(untimed[k].Plan, untimed[k].Predicted).doubt(timed); doubt > most {
				best, most = k, doubt
			}
		}
		if best < 0 {
			return
		}
		l.learned.Ways = append(l.learned.Ways, untimed[best])
		timed = append(timed, likenessOf(untimed[best].Plan, untimed[best].Predicted))
		untimed = slices.Delete(untimed, best, best+1)
	}
}
