// Fitting what was measured node by node to what whole replays took, on a device whose copies and kernels share cores. Cores are slower
// together than each alone, because they share memory and caches, and some share a core's units. How much depends on the work.

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

// fit corrects the shares and durations of the nodes that were measured, so that the timed ways are predicted best.
func (l *learner) fit() error {
	m := l.o.Plan.Machine
	ways := l.learned.Ways
	if m.Cores < 2 || len(ways) < fewestWays || len(ways)*l.p.graph.Len() > mostFitted || !slices.ContainsFunc(l.learned.Shares, func(s []float64) bool { return len(s) > 0 }) {
		return nil
	}
	measured := l.learned.Shares
	best, bestOff, bestScale := measured, math.Inf(1), 1.0
	for _, slowdown := range slowdowns {
		l.learned.Shares = together(measured, m.Cores, slowdown)
		profile := l.profile()
		ratios := make([]float64, len(ways))
		for k := range ways {
			t, err := predict(l.p.graph, ways[k].way(), m, profile)
			if err != nil {
				return err
			}
			ratios[k] = ways[k].Each.Median / max(t.MakespanUS, 0.01)
		}
		scale := Summarize(slices.Clone(ratios)).Median
		off := 0.0
		for _, r := range ratios {
			off += math.Abs(math.Log(r / scale))
		}
		if off < bestOff-1e-9 {
			best, bestOff, bestScale = l.learned.Shares, off, scale
		}
	}
	l.learned.Shares = best
	// The fit decides between 0.5 and 2: beyond that, something else takes the time.
	bestScale = max(0.5, min(2, bestScale))
	for _, samples := range l.learned.Samples {
		for k := range samples {
			samples[k] *= bestScale
		}
	}
	l.learned.Profile = l.profile()
	for k := range ways {
		t, err := predict(l.p.graph, ways[k].way(), m, l.learned.Profile)
		if err != nil {
			return err
		}
		ways[k].Predicted = t.MakespanUS
	}
	return nil
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
