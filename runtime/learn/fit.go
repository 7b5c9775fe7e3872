// Fitting what was measured node by node to what whole replays took. Cores are slower together than each alone, because they share memory
// and caches, and some share a core's units; how much depends on the work. On a GPU, the events around a node add to what is measured.

package learn

import (
	"errors"
	"math"
	"slices"
	"time"

	"github.com/dagrun/dagrun/cudart"
	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/planner"
	"github.com/dagrun/dagrun/planner/model"
	"github.com/dagrun/dagrun/planner/plan"
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
	for i, cost := range model.Costs(l.graph, l.learned.Machine, l.known) {
		if cost.Source == plan.FormulaCost {
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

// fittedFigure is a figure of a machine that some replays depend on.
type fittedFigure struct {
	of             func(m *planner.Machine) *float64
	graph, streams bool // which replays
}

// fittedFigures are those that the fit changes, the most important first.
var fittedFigures = []fittedFigure{
	{func(m *planner.Machine) *float64 { return &m.LaunchUS }, false, true},
	{func(m *planner.Machine) *float64 { return &m.CopyLaunchUS }, false, true},
	{func(m *planner.Machine) *float64 { return &m.GraphNodeUS }, true, false},
	{func(m *planner.Machine) *float64 { return &m.GapUS }, false, true},
	{func(m *planner.Machine) *float64 { return &m.GraphEdgeUS }, true, false},
	{func(m *planner.Machine) *float64 { return &m.GraphIssueUS }, true, false},
	{func(m *planner.Machine) *float64 { return &m.SyncUS }, false, true},
	{func(m *planner.Machine) *float64 { return &m.EventUS }, false, true},
	{func(m *planner.Machine) *float64 { return &m.GraphLaunchUS }, true, false},
	{func(m *planner.Machine) *float64 { return &m.EngineUS }, true, true},
	{func(m *planner.Machine) *float64 { return &m.GraphSwitchUS }, true, false},
	{func(m *planner.Machine) *float64 { return &m.CopySwitchUS }, true, true},
	{func(m *planner.Machine) *float64 { return &m.BothWays }, true, true},
}

// fitSteps are the factors by which a figure is changed at once.
var fitSteps = []float64{0.6, 1.6, 0.8, 1.25, 0.92, 1.09}

const (
	fitPasses   = 3
	fitNodes    = 250_000 // simulated at most for one fit, which takes 50 ms on one core
	fitFewer    = 4       // times fewer, where learning was not given a time
	mostOff     = 1.0     // a way that is mispredicted by more, as a logarithm, was disturbed and counts no more than that
	mostChanged = 3.0     // times that a figure is changed

	// Changing a figure by a factor of e must lessen the sum of all errors by so much. Submission by the host is disturbed more easily than
	// what the device does, so one way replayed as streams must not change much.
	graphReluctance   = 0.3
	streamsReluctance = 1.0
)

// machineFit is a machine with corrected figures and its predictions of all ways.
type machineFit struct {
	machine   planner.Machine
	predicted []float64
	off       float64 // how far they are off, and how far the machine is from the one that was given
}

// fitMachine corrects figures of the machine so that the timed ways are predicted best.
func (l *learner) fitMachine() error {
	given, nodes := *l.learned.Machine, fitNodes
	if l.o.For == 0 {
		nodes /= fitFewer
	}
	best := machineFit{given, make([]float64, len(l.learned.Ways)), 0}
	// predict fills in the predictions that a figure changes, or all.
	predict := func(fit *machineFit, changed *fittedFigure) error {
		var depend []int
		var ways []Way
		for k, w := range l.learned.Ways {
			if w.Threads <= 1 && (changed == nil || w.Mode == engine.Streams && changed.streams || w.Mode != engine.Streams && changed.graph) {
				depend, ways = append(depend, k), append(ways, w)
			}
		}
		predicted, err := predictAll(l.graph, ways, &fit.machine, l.learned.Profile)
		if err != nil {
			return err
		}
		for i, k := range depend {
			fit.predicted[k] = predicted[i]
		}
		nodes -= len(ways) * l.graph.Len()
		fit.off = l.errorOf(fit.predicted) + distance(&given, &fit.machine)
		return nil
	}
	if err := predict(&best, nil); err != nil {
		return err
	}
	for range fitPasses {
		before := best.off
		for k := range fittedFigures {
			f := &fittedFigures[k]
			for _, step := range fitSteps {
				tried := machineFit{best.machine, append([]float64(nil), best.predicted...), 0}
				us, was := f.of(&tried.machine), *f.of(&given)
				*us *= step
				if nodes < 0 || *us > mostChanged*was || *us < was/mostChanged || tried.machine.Validate() != nil {
					continue
				}
				if err := predict(&tried, f); err != nil {
					return err
				}
				if tried.off < best.off-1e-9 {
					best = tried
				}
			}
		}
		if best.off == before {
			break
		}
	}
	l.learned.Machine = &best.machine
	_, err := l.predictAgain()
	return err
}

// errorOf sums up how far predictions are off, as logarithms. What several threads submit is left out: how much that helps differs from host to host.
func (l *learner) errorOf(predicted []float64) float64 {
	off := 0.0
	for k := range l.learned.Ways {
		if w := &l.learned.Ways[k]; w.Threads <= 1 {
			off += min(mostOff, math.Abs(math.Log(max(w.Each.Median, 0.01)/max(predicted[k], 0.01))))
		}
	}
	return off
}

// distance is what it costs to change a machine into another.
func distance(from, to *planner.Machine) float64 {
	sum := 0.0
	for k := range fittedFigures {
		f := &fittedFigures[k]
		was, is := *f.of(from), *f.of(to)
		if was == is {
			continue
		}
		reluctance := graphReluctance
		if f.streams {
			reluctance = streamsReluctance
		}
		sum += reluctance * math.Abs(math.Log(is/was))
	}
	return sum
}

// predictAgain predicts all timed ways again, and returns by which factors they were mispredicted.
func (l *learner) predictAgain() ([]float64, error) {
	l.learned.Profile = l.profile()
	predicted, err := predictAll(l.graph, l.learned.Ways, l.learned.Machine, l.learned.Profile)
	if err != nil {
		return nil, err
	}
	ratios := make([]float64, len(predicted))
	for k, us := range predicted {
		l.learned.Ways[k].Predicted = us
		ratios[k] = l.learned.Ways[k].Each.Median / max(us, 0.01)
	}
	return ratios, nil
}

// Refit corrects durations and figures of the machine by ways to replay that a GPU has timed. It replays nothing.
func Refit(g *dag.Graph, given *Unfitted, timed []Way) (*Learned, error) {
	if g == nil || given == nil || given.Machine == nil || len(given.Samples) != g.Len() {
		return nil, errors.New("fitting again needs a graph, a machine, and the samples of each node")
	}
	l := &learner{graph: g, platform: elsewhere{}, known: given.Known, recorded: given.Recorded}
	l.o.Plan.Machine, l.o.For = given.Machine, time.Second // as where it was given one
	l.learned = Learned{Machine: given.Machine, Samples: given.samples(), Ways: slices.Clone(timed)}
	l.learned.Profile = l.profile()
	for k := range l.learned.Ways {
		l.learned.Ways[k].Predicted = 0 // by another model
	}
	if err := l.fitPlain(); err != nil {
		return nil, err
	}
	return &l.learned, nil
}

// elsewhere is a GPU of another machine, whose name does not matter.
type elsewhere struct{ cudart.Platform }

func (elsewhere) Name() string           { return "cuda" }
func (elsewhere) Devices() []cudart.Info { return []cudart.Info{{}} }

// fitPlain fits what was measured of nodes to the ways whose launches do not overlap, because the model knows nothing of that.
func (l *learner) fitPlain() error {
	all := l.learned.Ways
	l.learned.Ways = nil
	for _, w := range all {
		if !w.Overlap {
			l.learned.Ways = append(l.learned.Ways, w)
		}
	}
	l.learned.Given = &Unfitted{l.o.Plan.Machine, l.known, l.learned.Samples, l.recorded}
	l.learned.Samples = l.learned.Given.samples()
	err := l.fit()
	predicted := map[engine.Way]float64{}
	for _, w := range l.learned.Ways {
		predicted[w.way()] = w.Predicted
	}
	l.learned.Ways = all
	for k := range all {
		w := all[k].way()
		w.Overlap = false
		if us, ok := predicted[w]; ok {
			all[k].Predicted = us
		}
	}
	return err
}
