// Predictions of how long a replay takes, by what is known of the nodes, of the machine and of the way to replay.

package learn

import (
	"errors"
	goruntime "runtime"

	"golang.org/x/sync/errgroup"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/planner"
	"github.com/dagrun/dagrun/runtime/internal/engine"
)

// submissionBy is what a launch costs if several threads submit, as a part of what it costs one thread, by the number of threads: measured on
// an H200 with eight streams, with and without waits.
var submissionBy = []struct {
	threads int
	part    float64
}{{8, 0.45}, {4, 0.55}, {2, 0.7}}

// submittedBy returns the machine with what its threads take for submission.
func submittedBy(threads int, machine *planner.Machine) *planner.Machine {
	for _, s := range submissionBy {
		if threads >= s.threads && machine != nil {
			return submittedAt(s.part, machine)
		}
	}
	return machine
}

// submittedAt returns the machine with a host that takes so many times as long to submit.
func submittedAt(times float64, machine *planner.Machine) *planner.Machine {
	changed := *machine
	changed.LaunchUS *= times
	changed.CopyLaunchUS *= times
	changed.EventUS *= times
	return &changed
}

// predict simulates a replay.
func predict(g *dag.Graph, w engine.Way, machine *planner.Machine, profile *planner.Profile) (*planner.Timeline, error) {
	if w.Mode != engine.Streams {
		return planner.SimulateGraph(g, w.Plan, machine, profile)
	}
	return planner.Simulate(g, w.Plan, submittedBy(w.Threads, machine), profile)
}

// predictEach predicts how long each of many replays takes that follow each other without a pause.
func predictEach(g *dag.Graph, w engine.Way, machine *planner.Machine, profile *planner.Profile) (us float64, err error) {
	if w.Mode != engine.Streams {
		return planner.Repeated(g, w.Plan, machine, profile, true)
	}
	return planner.Repeated(g, w.Plan, submittedBy(w.Threads, machine), profile, false)
}

// Predict returns the predicted timeline of a replay of a graph this way.
func (w *Way) Predict(g *dag.Graph, machine *planner.Machine, profile *planner.Profile) (*planner.Timeline, error) {
	if w == nil {
		return nil, errNoWay
	}
	return predict(g, w.way(), machine, profile)
}

// PredictEach predicts how many microseconds each of many replays takes that follow each other without a pause.
func (w *Way) PredictEach(g *dag.Graph, machine *planner.Machine, profile *planner.Profile) (us float64, err error) {
	if w == nil {
		return 0, errNoWay
	}
	return predictEach(g, w.way(), machine, profile)
}

var errNoWay = errors.New("there is no way to replay to predict")

// predictAll predicts what predictEach does for several ways, side by side where that takes longer than starting to.
func predictAll(g *dag.Graph, ways []Way, machine *planner.Machine, profile *planner.Profile) (us []float64, err error) {
	const worth = 500 // nodes
	us = make([]float64, len(ways))
	var group errgroup.Group
	group.SetLimit(1)
	if len(ways)*g.Len() >= worth {
		group.SetLimit(goruntime.GOMAXPROCS(0))
	}
	for k := range ways {
		group.Go(func() (err error) {
			us[k], err = predictEach(g, ways[k].way(), machine, profile)
			return err
		})
	}
	return us, group.Wait()
}
