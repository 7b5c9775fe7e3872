// What a trace shows: the timeline of each measured replay with the reason for each node's start, and what binds it.

package runtime

import (
	"fmt"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/planner"
	"github.com/dagrun/dagrun/planner/analysis"
	"github.com/dagrun/dagrun/planner/plan"
)

// Timeline returns replay k of the trace as a timeline of the plan, with what each node waited for. The machine is that of the program's
// platform, as [MachineOf] returns it.
func (t *Trace) Timeline(g *dag.Graph, plan *planner.Plan, m *planner.Machine, k int) (*plan.Timeline, error) {
	if t == nil || k < 0 || k >= len(t.Replays) {
		return nil, fmt.Errorf("the trace has no replay %d", k)
	}
	spans := t.Replays[k].Spans
	r := &analysis.Replay{Start: make([]float64, len(spans)), End: make([]float64, len(spans)), SubmitUS: t.Replays[k].SubmitUS, Graph: t.asGraph()}
	for i := range spans {
		r.Start[i], r.End[i] = spans[i].Start, spans[i].End
	}
	return analysis.Measured(g, plan, m, r)
}

// Analyse explains replay k of the trace: its critical path, idle engines, waits that held, memory, and what binds it.
func (t *Trace) Analyse(g *dag.Graph, plan *planner.Plan, m *planner.Machine, k int) (*analysis.Analysis, error) {
	timeline, err := t.Timeline(g, plan, m, k)
	if err != nil {
		return nil, err
	}
	run := analysis.Run{Machine: m, HelpedUS: t.Replays[k].HelpedUS}
	if !t.asGraph() {
		run.SubmitUS = t.Replays[k].SubmitUS
	}
	return analysis.Of(g, plan, timeline, run)
}

// asGraph reports whether the replays were launches of a CUDA graph.
func (t *Trace) asGraph() bool { return t.Mode != Streams.String() }
