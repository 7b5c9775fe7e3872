// How long each of many replays takes that follow each other: less than one alone where the host submits the next while the device still works.

package model

import (
	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/planner/plan"
)

// Repeated predicts how many microseconds each of many replays takes that follow each other without a pause, as streams or as a graph. The host
// runs ahead of the device or the device waits for the host: in the long run, a replay takes what the slower of the two takes. The profile may be nil.
func Repeated(g *dag.Graph, p *plan.Plan, m *Machine, profile *Profile, graph bool) (us float64, err error) {
	durations := Durations(g, m, profile)
	m = m.orDefault().With(profile)
	if err := checkSimulated(g, p, m, durations); err != nil {
		return 0, err
	}
	if graph || m.Unit || m.Cores > 0 || m.waitsForCopies(g) {
		t, err := SimulateWith(g, p, m, durations, graph)
		if err != nil {
			return 0, err
		}
		if graph && !m.Unit {
			t.MakespanUS += m.GraphLaunchUS
		}
		return t.MakespanUS, nil
	}
	ahead := *m
	ahead.LaunchUS, ahead.CopyLaunchUS, ahead.EventUS = 0, 0, 0
	t, err := SimulateWith(g, p, &ahead, durations, graph)
	if err != nil {
		return 0, err
	}
	return max(t.MakespanUS+m.GapUS, m.submission(g, p)), nil
}

// waitsForCopies reports whether the host waits for copies from or to pageable memory, or within host memory, so that it cannot run ahead.
func (m *Machine) waitsForCopies(g *dag.Graph) bool {
	for i := range g.Nodes {
		if m.hostMakes(g, dag.NodeID(i)) || pageable(g, dag.NodeID(i)) {
			return true
		}
	}
	return false
}

// submission is how long the host takes to submit a replay, fork and join included.
func (m *Machine) submission(g *dag.Graph, p *plan.Plan) float64 {
	records, waits := p.CountForkJoin()
	us := float64(records+waits) * m.EventUS
	for s := range p.Streams {
		for _, op := range p.Streams[s].Ops {
			if op.Kind == plan.Launch {
				us += m.submits(g, op.Node)
			} else {
				us += m.EventUS
			}
		}
	}
	return us
}
