// Fitting what was measured node by node to what whole replays took. Cores are slower together than each alone, because they share memory
// and caches, and some share a core's units; how much depends on the work. On a GPU, the events around a node add to what is measured.

package runtime

import (
	"math"
	"slices"
)

const (
	mostFitted = 50_000 // nodes that are simulated at once, over all ways
	fewestWays = 3
)

// slowdowns are how many times slower all cores together may be than the same number of cores apart.
var slowdowns = []float64{1, 1.1, 1.2, 1.3, 1.4, 1.5, 1.6, 1.7, 1.85, 2}

// stamps are microseconds that the events around a node on a GPU may add to its duration: where nodes are shorter than their submission, the
// time of a launch.
var stamps = []float64{0, 0.25, 0.5, 0.75, 1, 1.25, 1.5, 1.75, 2, 2.5, 3, 3.5, 4, 4.5, 5, 6}

// fit corrects the durations and shares of the nodes that were measured, so that the timed ways are predicted best.
func (l *learner) fit() error {
	measured := func(of [][]float64) bool {
		return slices.ContainsFunc(of, func(samples []float64) bool { return len(samples) > 0 })
	}
	m, ways := l.o.Plan.Machine, len(l.learned.Ways)
	if ways < fewestWays || ways*l.p.graph.Len() > mostFitted || !measured(l.learned.Samples) {
		return nil
	}
	switch {
	case l.recorded:
		_, err := l.predictAgain()
		return err
	case l.p.platform.Name() != "cpu":
		return l.fitStamps()
	case m.Cores > 1 && measured(l.learned.Shares):
		return l.fitCores()
	}
	return nil
}

// predictAgain predicts all timed ways again, and returns by which factors they were mispredicted.
func (l *learner) predictAgain() ([]float64, error) {
	l.learned.Profile = l.profile()
	ratios := make([]float64, len(l.learned.Ways))
	for k := range l.learned.Ways {
		w := &l.learned.Ways[k]
		t, err := predict(l.p.graph, w.way(), l.o.Plan.Machine, l.learned.Profile)
		if err != nil {
			return nil, err
		}
		w.Predicted = t.MakespanUS
		ratios[k] = w.Each.Median / max(t.MakespanUS, 0.01)
	}
	return ratios, nil
}

// fitStamps finds how much the events around nodes added. Graphs show that best: replays as streams often take as long as their submission,
// whatever the nodes take.
func (l *learner) fitStamps() error {
	measured := l.learned.Samples
	graphs := 0
	for k := range l.learned.Ways {
		if l.learned.Ways[k].Mode == Captured {
			graphs++
		}
	}
	submitted := graphs < fewestWays
	best, bestOff := measured, math.Inf(1)
	for _, stamp := range stamps {
		l.learned.Samples = make([][]float64, len(measured))
		for i, samples := range measured {
			for _, us := range samples {
				l.learned.Samples[i] = append(l.learned.Samples[i], max(0, us-stamp))
			}
		}
		ratios, err := l.predictAgain()
		if err != nil {
			return err
		}
		off := 0.0
		for k, r := range ratios {
			if submitted || l.learned.Ways[k].Mode == Captured {
				off += math.Abs(math.Log(r))
			}
		}
		if off < bestOff-1e-9 {
			best, bestOff = l.learned.Samples, off
		}
	}
	l.learned.Samples = best
	_, err := l.predictAgain()
	return err
}

// fitCores finds how much slower cores are together, and by how much durations are off.
func (l *learner) fitCores() error {
	m := l.o.Plan.Machine
	measured := l.learned.Shares
	best, bestOff := measured, math.Inf(1)
	for _, slowdown := range slowdowns {
		l.learned.Shares = together(measured, m.Cores, slowdown)
		ratios, err := l.predictAgain()
		if err != nil {
			return err
		}
		middle := Summarize(slices.Clone(ratios)).Median
		off := 0.0
		for _, r := range ratios {
			off += math.Abs(math.Log(r / middle))
		}
		if off < bestOff-1e-9 {
			best, bestOff = l.learned.Shares, off
		}
	}
	l.learned.Shares = best
	return l.scaleToFastest()
}

// scaleToFastest scales the durations of nodes so that the fastest way is predicted right: that is the one that all later replays take.
func (l *learner) scaleToFastest() error {
	const (
		most  = 2 // beyond that, something else takes the time
		steps = 3 // a replay's time is not proportional to the durations of its nodes
	)
	fastest := 0
	for k := range l.learned.Ways {
		if l.learned.Ways[k].Each.Median < l.learned.Ways[fastest].Each.Median {
			fastest = k
		}
	}
	whole := 1.0
	for range steps {
		ratios, err := l.predictAgain()
		if err != nil {
			return err
		}
		factor := max(1.0/most, min(most, whole*ratios[fastest])) / whole
		whole *= factor
		for _, samples := range l.learned.Samples {
			for k := range samples {
				samples[k] *= factor
			}
		}
	}
	_, err := l.predictAgain()
	return err
}

// together returns shares of the throughput of all cores from shares of their number. One of two cores does more than half of what both do
// together.
func together(shares [][]float64, cores int, slowdown float64) [][]float64 {
	all := float64(cores) / slowdown // what all cores together do, in units of one alone
	all = max(1, all)
	of := make([][]float64, len(shares))
	for i, samples := range shares {
		for _, share := range samples {
			busy := max(1, share*float64(cores))
			of[i] = append(of[i], min(1, (1+(busy-1)*(all-1)/float64(cores-1))/all))
		}
	}
	return of
}
