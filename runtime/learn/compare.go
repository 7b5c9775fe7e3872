// Comparing plans: times those that may be the best, and keeps the best.

package learn

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/dagrun/dagrun/runtime/internal/engine"
)

// compare makes plans with the durations known by now and times the most promising ones: graphs before streams, because on some drivers a
// process that has used several streams replays graphs more slowly.
func (l *learner) compare(ctx context.Context) (err error) {
	var all []Way
	defer func() {
		if err != nil {
			l.learned.Ways = append(all, l.learned.Ways...)
			l.sort()
		}
	}()
	l.report("plan with what was learned")
	f, err := l.candidates(ctx)
	defer f.cancel()
	if err != nil || len(f.ways) == 0 && f.awaited == nil {
		return err
	}
	l.step("planned")
	// Where learning was given a time, the other mode is timed for later predictions.
	alone := len(l.o.Modes) > 1 && !l.o.Thorough && l.o.For == 0 && f.hopeless(l.o.Modes[1])
	share := l.left * 3 / 4 / (len(f.ways) + len(l.o.Modes)) // a quarter of the replays is kept for the best ways
	for k, mode := range l.o.Modes {
		if alone && len(all) > 0 {
			break
		}
		begin, end := 0.0, 1.0                       // the part of learning's time for this mode
		others := l.left - l.left/(len(l.o.Modes)-k) // replays for the other modes
		switch {
		case k > 0:
			begin = firstMode
		case alone: // it has all the time and all replays
			others = 0
		case len(l.o.Modes) > 1:
			end = firstMode
		}
		part := func(of float64) float64 { return begin + of*(end-begin) }
		l.learned.Ways = nil
		if err := l.heats(ctx, f, mode, share, part(inHeats)); err != nil {
			return err
		}
		if err := l.timeSurprises(ctx, share, others, part(inSurprises)); err != nil {
			return err
		}
		l.step("timed most ways to replay, as " + mode.String())
		l.sort()
		until, kept := part(1), others
		if l.triesOverlap() {
			until, kept = part(inFinals), others+(l.left-others)/4
		}
		if err := l.finals(ctx, kept, until); err != nil {
			return err
		}
		l.sort()
		if err := l.overlap(ctx, others); err != nil {
			return err
		}
		if err := l.observe(ctx, mode, l.unlike(only(l.possible, mode)), others, part(1)); err != nil {
			return err
		}
		if l.sort(); mode == engine.Captured && len(l.learned.Ways) > 0 { // replays as streams need nothing of the other graphs
			if err := l.trials.FreeKept(l.learned.Ways[0].way()); err != nil {
				return err
			}
		}
		all = append(all, l.learned.Ways...)
	}
	if l.learned.Ways, all = all, nil; len(l.learned.Ways) == 0 {
		return nil
	}
	l.step("timed the best ways again")
	l.sort()
	if l.graph.HasControl() {
		return nil // durations were corrected before, pass by pass
	}
	return l.fitPlain()
}

// heats times ways of one mode for the first time, with so many replays each, until so much of learning's time is over. The most promising
// way is timed however long that takes, and which comes next depends on how far those before it were mispredicted. Where several in a row are slower
// than what is known already, the others that are planned by then are not timed.
func (l *learner) heats(ctx context.Context, f *field, mode engine.Mode, share int, until float64) error {
	const fewest = warmUp + rounds
	for behind := 0; l.left >= fewest; {
		if err := f.join(l); err != nil {
			return err
		}
		if behind == mostBehind && !l.o.Thorough {
			behind = 0
			f.leave(mode)
		}
		w := f.next(mode, l.learned.Ways)
		if w == nil {
			if !f.wait(l, until) {
				return nil
			}
			continue
		}
		if len(l.learned.Ways) > 0 && l.over(until) {
			return nil
		}
		l.report(engine.StageLearn)
		if err := l.try(ctx, w, perRound(share)); err != nil {
			return err
		}
		if w.Each.Count > 0 {
			l.learned.Ways = append(l.learned.Ways, *w)
		}
		if behind++; w.Each.Min <= finalWithin*l.best {
			behind = 0
		}
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
	slices.SortStableFunc(ways, func(a, b Way) int { return cmp.Compare(a.Each.Min, b.Each.Min) })
	close := 1
	for close < min(mostFinal, len(ways)) && ways[close].Each.Min <= finalWithin*ways[0].Each.Min {
		close++
	}
	samples, err := l.inTurns(ctx, ways[:close], others, until)
	if err != nil {
		return err
	}
	turns := mostTurns // that all of them had
	for k := range close {
		turns = min(turns, len(samples[k]))
	}
	worst := 0.0
	for k := range close {
		if turns >= fewestTurns {
			ways[k].Each = engine.Summarize(samples[k][:turns])
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

// inTurns times ways in turn, for finals. There may be no time, or too few replays, for all turns.
func (l *learner) inTurns(ctx context.Context, ways []Way, others int, until float64) (samples [][]float64, err error) {
	samples = make([][]float64, len(ways))
	if len(ways) < 2 {
		return samples, nil
	}
	each := min(l.roundOf(ways[0].Each.Min), (l.left-others)/len(ways)/rounds-1)
	for range mostTurns {
		for k := range ways {
			d, err := l.decides(ctx, turn{each, l.over(until) || l.left-others <= each})
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
