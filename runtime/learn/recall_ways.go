// Which of the ways that were found best a run takes, and what runs tell that took one from the start: replays take other times in a process that
// compares many ways than in one that takes a single one.

package learn

import (
	"context"
	"math"
	"slices"

	"github.com/dagrun/dagrun/runtime/cache"
	"github.com/dagrun/dagrun/runtime/internal/engine"
)

const (
	manyReplays = 100
	shortBuild  = 10_000 // microseconds: a process on a GPU takes 30 times as long to start
)

// Best returns the way that is expected to take the least time for so many replays, building its graph included; nil if none is known. Where there
// are many replays, what a replay takes counts more than a graph that is built in a moment. A way that few runs have taken may be faster than
// expected, so runs take those that were close too, until it is known which is faster.
func (r *Recalled) Best(replays int) *Way {
	if r == nil {
		return nil
	}
	var best *Way
	least := math.Inf(1) // of the graphs, which all have the same nodes: what one took longer, the driver was busy with other things
	for k := range r.Ways {
		if w := &r.Ways[k]; w.Mode != engine.Streams {
			least = min(least, w.BuildUS)
		}
	}
	part := r.partInRuns()
	total := func(w *Way) float64 {
		build := min(w.BuildUS, least)
		if replays >= manyReplays {
			build = max(0, build-shortBuild)
		}
		return build + float64(replays)*w.hope(part)
	}
	for k := range r.Ways {
		if w := &r.Ways[k]; best == nil || total(w) < total(best) {
			best = w
		}
	}
	return best
}

// partInRuns is how long replays take in runs that take a way from the start, as a part of what they took where ways were compared: the geometric mean
// of the ways that runs have taken, but at most 1, since other programs may have slowed those runs down.
func (r *Recalled) partInRuns() float64 {
	logs, n := 0.0, 0.0
	for k := range r.Ways {
		if w := &r.Ways[k]; len(w.Took) > 0 && w.Each.Median > 0 {
			logs += math.Log(engine.Summarize(slices.Clone(w.Took)).Median / w.Each.Median)
			n++
		}
	}
	return min(1, math.Exp(logs/max(n, 1)))
}

// unsure is by which part a single time of a way is off.
const unsure = 0.03

// hope returns how many microseconds a replay takes if it is somewhat faster than it seems: than the median of its time where ways were compared, of
// which that part counts, and of the runs that took it. The more runs have taken it, the less faster it may be. A run that drifted counts as
// one that just did not, because something else may have disturbed it.
func (w *Way) hope(part float64) float64 {
	expected := part * w.Each.Median
	times := []float64{expected}
	for _, us := range w.Took {
		times = append(times, min(us, (1+drift)*expected))
	}
	return engine.Summarize(times).Median - unsure*w.Each.Median/math.Sqrt(float64(len(times)))
}

// Tries reports whether a run that takes this way finds out whether it is faster than those that earlier runs took.
func (r *Recalled) Tries(w *Way) bool {
	return r != nil && w != nil && len(w.Took) == 0 && slices.ContainsFunc(r.Ways, func(other Way) bool { return len(other.Took) > 0 })
}

// NoteRun notes in the cache how many microseconds a replay took in a run that took one of Ways from the start and compared nothing. Later calls of Best
// go by it. After some runs of a way it is known well enough, and nothing more is noted.
func (r *Recalled) NoteRun(ctx context.Context, w *Way, eachUS float64) error {
	if r == nil || r.folder == nil || w == nil || !(eachUS > 0) || len(w.Took) >= cache.MostTook {
		return nil
	}
	if ctx == nil {
		return engine.ErrNoContext
	}
	at := slices.IndexFunc(r.Ways, func(own Way) bool { return own.Overlap == w.Overlap && own.same(*w) })
	if at < 0 {
		return nil
	}
	return r.change(ctx, func(c *cache.Choice) {
		if took := &c.Ways[at].RunsUS; len(*took) < cache.MostTook { // other processes may have noted theirs
			*took = append(*took, eachUS)
		}
	})
}

// change changes the choice in the cache, unless another process has chosen or forgotten it since it was recalled. Its ways are those of Ways.
func (r *Recalled) change(ctx context.Context, how func(c *cache.Choice)) error {
	choice, err := r.folder.Choice(r.key)
	if err != nil || choice == nil || !choice.At.Equal(r.at) || len(choice.Ways) != len(r.Ways) {
		return err
	}
	how(choice)
	return r.folder.KeepChoice(ctx, r.key, choice)
}

const (
	drift      = 0.1 // by how much replays may take longer or shorter than when their plan was chosen, as a part of that time
	mostSpread = 0.2 // that this grows by at most, where the times of that choice differed
	// driftsToForget is how many runs in a row must drift before plans are compared again: something else may have disturbed a single one.
	driftsToForget = 2
	// leastConfirming is how many microseconds the replays of a run must take to tell anything: devices take about that long to reach their usual
	// clock rates.
	leastConfirming = 20_000
)

// Confirm compares how long a replay of a way took, in a run of so many replays, with how long it took when the way was chosen, and returns
// how many runs in a row have taken another time, this one included: 0 if it agrees, or is too short to tell. A run that is too short changes
// nothing. After two such runs Confirm removes the choice from the cache, and again is true: the next run compares plans again.
func (r *Recalled) Confirm(ctx context.Context, w *Way, eachUS float64, replays int) (runs int, again bool, err error) {
	if r == nil || r.folder == nil || w == nil || !(float64(replays)*eachUS >= leastConfirming) {
		return 0, false, nil
	}
	if ctx == nil {
		return 0, false, engine.ErrNoContext
	}
	if w.drifted(eachUS) {
		runs = r.drifts + 1 // several ranks that share a cache count as one run
	}
	if runs == r.drifts {
		return runs, false, nil
	}
	if runs >= driftsToForget {
		return runs, true, r.folder.ForgetChoice(r.key)
	}
	return runs, false, r.change(ctx, func(c *cache.Choice) { c.Drifted = runs })
}

// drifted says whether replays of a way take so much more or less time than when it was chosen that it may not be the best any more. If something
// disturbed that choice, the spread of its times is so large that it would hide any difference, so it counts only so much.
func (w *Way) drifted(eachUS float64) bool {
	off := eachUS - w.Each.Median
	return max(off, -off) > drift*w.Each.Median+min(2*w.Each.Spread, mostSpread*w.Each.Median)
}
