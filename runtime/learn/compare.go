// Comparing plans: times those that may be the best, and keeps the best. Ranks that learn together count the slowest of them, so that all decide the same.

package learn

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/dagrun/dagrun/cudart"
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

const (
	surprise      = 1.08 // times what is expected: timed once more
	promise       = 1.05 // times the best way: what is expected of a way at most to be timed once more
	mostSurprises = 3    // ways that are timed once more
)

// timeSurprises times the most surprising ways once more, with so many replays each, and keeps their better times. It leaves so many replays for
// others, takes at most a quarter of the rest for a way, and ends when so much of learning's time is over. Ranks would have to agree about all of
// that, and time nothing once more.
func (l *learner) timeSurprises(ctx context.Context, share, others int, until float64) error {
	if l.graph.Ranks > 1 {
		return nil
	}
	var done []int
	for range mostSurprises {
		k := surprising(l.learned.Ways, done)
		if k < 0 || l.over(until) || share > (l.left-others)/4 {
			return nil
		}
		done = append(done, k)
		again := l.learned.Ways[k]
		if err := l.try(ctx, &again, perRound(share)); err != nil {
			return err
		}
		if w := &l.learned.Ways[k]; again.Each.Count > 0 && again.Each.Median < w.Each.Median {
			w.Each = again.Each
		}
	}
	return nil
}

// surprising returns which of the ways took much longer than expected although it should be about as fast as the best, the fastest by
// expectation; -1 if there is none, or only those that were timed once more already. A way is expected to be as much off its prediction as the ways
// are in the median.
func surprising(ways []Way, done []int) int {
	var off []float64
	best := 0.0
	for k := range ways {
		if w := &ways[k]; w.Predicted > 0 && w.Each.Median > 0 {
			off = append(off, w.Each.Median/w.Predicted)
			if best == 0 || w.Each.Median < best {
				best = w.Each.Median
			}
		}
	}
	usual, found := engine.Summarize(off).Median, -1
	for k := range ways {
		w := &ways[k]
		expected := usual * w.Predicted
		if w.Predicted > 0 && w.Each.Median > surprise*expected && expected <= promise*best && !slices.Contains(done, k) &&
			(found < 0 || w.Predicted < ways[found].Predicted) {
			found = k
		}
	}
	return found
}

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

// triesOverlap reports whether learning compares launches that overlap with others.
func (l *learner) triesOverlap() bool {
	return l.o.Overlap == engine.OverlapAuto && !l.graph.HasControl() && engine.CanOverlap(l.platform) == nil // launches in bodies do not overlap
}

// overlap times the best way of each mode again, without overlapping launches and with them, and keeps the latter where they are faster. They may
// be faster on streams and slower in a graph. A way that is much slower than the best of its mode is not worth the time, unless learning is thorough.
// It leaves so many replays for others.
func (l *learner) overlap(ctx context.Context, others int) error {
	if !l.triesOverlap() || l.over(1) {
		return nil
	}
	tried := map[engine.Mode]bool{}
	for _, w := range l.learned.Ways { // the best first
		if tried[w.Mode] || !engine.Follows(l.graph, w.Plan) || w.Overlap || w.Each.Min > finalWithin*l.learned.Ways[0].Each.Min && !l.o.Thorough {
			continue
		}
		tried[w.Mode] = true
		if err := l.overlapWay(ctx, w, others); err != nil {
			return err
		}
	}
	l.sort()
	return nil
}

// overlapWay times one way in both forms, in rounds that take turns. Other ways were compared with it before, so what overlapping gains in these rounds is
// taken off the time that it took then.
func (l *learner) overlapWay(ctx context.Context, plain Way, others int) error {
	forms := [2]Way{plain, plain}
	forms[1].Overlap = true
	var samples [2][]float64
	each := max(2, min(l.roundOf(plain.Each.Median), (l.left-others)/(2*rounds)))
	for range rounds {
		if l.left-others < 2*each || l.over(1) && len(samples[0]) >= fewestTurns {
			break
		}
		for k := range forms {
			if err := l.adopt(ctx, &forms[k]); err != nil {
				if ctx.Err() != nil || errors.Is(err, cudart.ErrPoisoned) {
					return err
				}
				l.log.Info("not compared", "overlap", true, "replay", plain.Mode.String(), "because", err.Error())
				return nil
			}
			if early, _ := l.p.Overlaps(); early == 0 && forms[k].Overlap {
				return nil // nothing overlaps
			}
			us, err := l.timeRound(ctx, each-1)
			if err != nil {
				return err
			}
			samples[k] = append(samples[k], us)
		}
	}
	if len(samples[1]) == 0 {
		return nil
	}
	for k, us := range samples[1] {
		if us >= samples[0][k] { // not certainly faster
			l.log.Info("launches do not overlap", "replay", plain.Mode.String(), "us", samples[0], "overlapping", samples[1])
			return nil
		}
	}
	then := plain.Each.Median / engine.Summarize(samples[0]).Median
	for k := range samples[1] {
		samples[1][k] *= then
	}
	forms[1].Each = engine.Summarize(samples[1])
	l.learned.Ways = append(l.learned.Ways, forms[1])
	return nil
}

// roundTime is how long a round takes at least, if there are enough replays.
const roundTime = 2 * time.Millisecond

// roundOf is how many replays of so many microseconds make a round.
func (l *learner) roundOf(us float64) int {
	long := roundTime
	if l.o.Thorough {
		long *= 10
	}
	return max(1, int(float64(long.Nanoseconds())/1e3/max(us, 0.1)))
}

// perRound is how many replays a round of try has at most, where so many are for a way.
func perRound(share int) int { return max(1, (share-warmUp)/rounds) }

// try times one way to replay in rounds of at most so many replays, which are short, because the best are timed again.
func (l *learner) try(ctx context.Context, w *Way, most int) error {
	l.learned.Seen = append(l.learned.Seen, w.print())
	if ok, err := l.adoptIfPossible(ctx, w); !ok || err != nil {
		return err
	}
	part := 0.5
	if l.platform.Name() != "cpu" {
		part = 0.25
	}
	samples, err := l.timeRounds(ctx, most, part)
	if err != nil {
		return err
	}
	w.Each = engine.Summarize(samples)
	if w.Each.Count > 0 && (l.best == 0 || w.Each.Median < l.best) {
		l.best = w.Each.Median
	}
	return nil
}

// timeRounds times the program as it replays now, in rounds of at most so many replays and of a part of the usual time; none if there are too few.
// Single replays come first: one pays for what is done once, and predictions may be far off. The fastest time so far tells how many replays make a
// round, because something else may have slowed down the others. A way to replay that is much slower than the best is not timed to the end.
func (l *learner) timeRounds(ctx context.Context, most int, part float64) (samples []float64, err error) {
	least := math.Inf(1)
	for k := range warmUp + rounds {
		n := min(1, most, l.left)
		if k >= warmUp {
			n = min(max(1, int(part*float64(l.roundOf(least)))), most, l.left)
		}
		if n == 0 {
			break
		}
		us, err := l.time(ctx, n)
		if err != nil {
			return nil, err
		}
		if least = min(least, us); k < warmUp {
			continue
		}
		if samples = append(samples, us); len(samples) > 1 && l.best > 0 && slices.Min(samples) > hopeless*l.best {
			break
		}
	}
	return samples, nil
}

// timeRound times n replays just after the program has changed how it replays, and returns the microseconds of one. The first replay after a change
// is slower, and does not count.
func (l *learner) timeRound(ctx context.Context, n int) (us float64, err error) {
	for _, n := range []int{1, n} {
		if us, err = l.time(ctx, n); err != nil {
			return 0, err
		}
	}
	return us, nil
}

// time uses n replays, and returns how many microseconds one takes on the slowest rank.
func (l *learner) time(ctx context.Context, n int) (us float64, err error) {
	us, err = l.trials.TimeReplays(ctx, n)
	if l.left -= n; err != nil || l.graph.Ranks <= 1 {
		return us, err
	}
	all, err := asked(ctx, l, us)
	if err != nil {
		return 0, err
	}
	return slices.Max(all), nil
}

// adopt makes the program replay a way, and notes what it takes to make its graph: the least of all times, since the driver may be busy with other
// processes for a tenth of a second.
func (l *learner) adopt(ctx context.Context, w *Way) error {
	start, had := time.Now(), l.trials.Has(w.way())
	err := l.trials.Adopt(ctx, w.way())
	if us := float64(time.Since(start).Nanoseconds()) / 1e3; err == nil && w.Mode == engine.Captured && !had && (w.BuildUS == 0 || us < w.BuildUS) {
		w.BuildUS = us
	}
	return err
}

// adoptIfPossible adopts a way if all ranks can. A device may refuse it: there may be no room for another arena, or no way to capture.
func (l *learner) adoptIfPossible(ctx context.Context, w *Way) (bool, error) {
	err := l.adopt(ctx, w)
	if err != nil && (ctx.Err() != nil || errors.Is(err, cudart.ErrPoisoned)) {
		return false, err
	}
	if err != nil {
		l.log.Info("not compared", "strategy", w.Plan.Strategy, "replay", w.Mode.String(), "because", err.Error())
	}
	if l.graph.Ranks <= 1 {
		return err == nil, nil
	}
	all, other := asked(ctx, l, err == nil)
	return other == nil && !slices.Contains(all, false), other
}

// turn is what rank 0 decides before a round, or the only rank.
type turn struct {
	Replays int
	Over    bool // there is no time for more
}

// decides returns what rank 0 passes to it.
func (l *learner) decides(ctx context.Context, own turn) (turn, error) {
	if l.graph.Ranks <= 1 {
		return own, nil
	}
	all, err := asked(ctx, l, own)
	if err != nil {
		return turn{}, err
	}
	return all[0], nil
}

// asked returns what all ranks have to say, by rank.
func asked[T any](ctx context.Context, l *learner, own T) ([]T, error) {
	text, err := json.Marshal(own)
	if err != nil {
		return nil, err
	}
	texts, err := l.trials.Exchange(ctx, string(text))
	if err != nil {
		return nil, err
	}
	all := make([]T, len(texts))
	for k := range texts {
		if err := json.Unmarshal([]byte(texts[k]), &all[k]); err != nil {
			return nil, fmt.Errorf("what rank %d has learned cannot be read: %w", k, err)
		}
	}
	if len(all) != int(l.graph.Ranks) {
		return nil, fmt.Errorf("%d ranks have learned, and there are %d", len(all), l.graph.Ranks)
	}
	return all, nil
}
