// How long learning compares plans, and when it stops.

package learn

import (
	"cmp"
	"slices"
	"time"
)

const (
	tracedReplays = 5   // for the duration of a node
	stampUS       = 0.2 // what taking the time before and after a node costs on the CPU device
	usedSamples   = 3   // of a node, for its duration to be known
)

// FewestToCompare is how many replays must be left after durations have been measured for plans to be compared.
const FewestToCompare = 8

const (
	rounds       = 3    // in which a way to replay is timed
	warmUp       = 2    // replays of a way before it is timed: the first pays for what is done once
	mostTried    = 12   // ways to replay that are timed
	fewestTurns  = 2    // of the best ways, to say more than the rounds before
	mostTurns    = 5    // of the best ways
	mostFinal    = 4    // ways to replay that are timed again, in turn
	finalWithin  = 1.25 // times the best way: timed again
	mostBehind   = 3    // ways in a row that are slower than finalWithin: the rest is not timed
	firstMode    = 0.85 // the part of learning's time for graphs, which are faster for most pipelines
	inHeats      = 0.6  // the part of learning's time for each mode in which ways are timed for the first time
	inSurprises  = 0.7  // the part by whose end those are timed once more that were surprisingly slow
	inFinals     = 0.85 // the part by whose end the best of them are timed again; the rest is for launches that overlap
	largestTried = 2000 // nodes of graphs for which more plans are made than the one that auto chooses
	hopeless     = 2.0  // times the best prediction: not tried
	hopelessMode = 1.6  // times the best prediction, all of a mode: the mode is not tried
	enoughRuns   = 3    // that compare plans of a pipeline
	disturbed    = 0.2  // spread of rounds, as a part of their median, above which something else seems to use the device
)

// over reports whether learning has used up so much of its time.
func (l *learner) over(part float64) bool {
	spent := func(most time.Duration) time.Duration { return time.Duration(part * float64(most)) }
	if l.o.For > 0 {
		return time.Since(l.began) > spent(l.o.For)
	}
	asked := min(l.used(), l.o.Replays)
	extra := time.Since(l.began) - l.once - time.Duration(float64(asked)*l.best*1e3)
	most := max(l.least(), time.Duration(float64(l.o.Replays+l.o.After)*l.best*1e3/5))
	if l.o.Runs > 0 && l.o.Extra == 0 {
		most /= 4
	}
	return extra > spent(most)
}

// least is what learning may take however short the run is. Before a first run on a GPU, the driver compiles kernels that later runs find
// compiled; learning gives up a part of its time for that.
func (l *learner) least() time.Duration {
	const onCPU, onGPU, anyway = 100 * time.Millisecond, 75 * time.Millisecond, 45 * time.Millisecond
	if l.platform.Name() == "cpu" {
		return onCPU
	}
	return max(anyway, onGPU-l.trials.LoadingTook())
}

func (l *learner) sort() {
	slices.SortStableFunc(l.learned.Ways, func(a, b Way) int { return cmp.Compare(a.Each.Median, b.Each.Median) })
}
