// Fitting what was measured node by node to what whole replays took. Cores are slower together than each alone, because they share memory
// and caches, and some share a core's units; how much depends on the work. On a GPU, the events around a node add to what is measured.

package learn

import (
	"math"
	"slices"

	"github.com/dagrun/dagrun/planner"
	"github.com/dagrun/dagrun/runtime/internal/engine"
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
	l.learned.Machine = m
	if ways < fewestWays || ways*l.graph.Len() > mostFitted {
		return nil
	}
	switch {
	case l.platform.Name() != "cpu":
		if !l.recorded && measured(l.learned.Samples) {
			if err := l.fitStamps(); err != nil {
				return err
			}
		}
		return l.fitMachine()
	case !measured(l.learned.Samples):
		return nil
	case m.Cores > 1 && measured(l.learned.Shares):
		return l.fitCores()
	}
	return nil
}

// fitStamps finds how much the events around nodes added, and whether formulas say more than the events did: uploads take up to twice as long
// between events. Graphs show that best: replays as streams often take as long as their submission, whatever the nodes take.
func (l *learner) fitStamps() error {
	measured := l.learned.Samples
	graphs := 0
	for k := range l.learned.Ways {
		if l.learned.Ways[k].Mode == engine.Captured {
			graphs++
		}
	}
	submitted := graphs < fewestWays
	best, bestOff := measured, math.Inf(1)
	for _, kept := range [][][]float64{measured, l.withoutFormulas(measured)} {
		for _, stamp := range stamps {
			l.learned.Samples = make([][]float64, len(kept))
			for i, samples := range kept {
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
				if submitted || l.learned.Ways[k].Mode == engine.Captured {
					off += math.Abs(math.Log(r))
				}
			}
			if off < bestOff-1e-9 {
				best, bestOff = l.learned.Samples, off
			}
		}
	}
	l.learned.Samples = best
	_, err := l.predictAgain()
	return err
}

// withoutFormulas returns the samples of nodes that have no formula.
func (l *learner) withoutFormulas(measured [][]float64) [][]float64 {
	kept := slices.Clone(measured)
	for i, cost := range planner.Costs(l.graph, l.learned.Machine, l.known) {
		if cost.Source == planner.FormulaCost {
			kept[i] = nil
		}
	}
	return kept
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
		middle := engine.Summarize(slices.Clone(ratios)).Median
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
