// Fitting figures of the machine to the replays that learning timed. What a launch, a gap or a wait takes depends on the process and on what
// the nodes of a pipeline do. Plans of one pipeline share it: what corrects the predictions of some of them corrects those of others too.

package learn

import (
	"math"

	"github.com/dagrun/dagrun/planner"
	"github.com/dagrun/dagrun/runtime/internal/engine"
)

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
