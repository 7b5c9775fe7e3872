// Traces: when each node really ran, with timed events or by what the driver says of its own activity.

package runtime

import (
	"context"
	"slices"

	"github.com/dagrun/dagrun/planner"
	"github.com/dagrun/dagrun/runtime/internal/engine"
)

// Trace is the measured timeline of several replays. Times are microseconds from the start of each replay's first command.
type Trace struct {
	Mode     string `json:"mode"`               // "streams" or "graph"
	Source   string `json:"source"`             // how it was measured: "cupti" or "events"
	Fallback string `json:"fallback,omitempty"` // why the records of CUPTI could not be used although CUPTI was found
	// what was measured of loops and branches: "nodes", or "passes" if that is all a graph can tell; "" without them
	Bodies   string         `json:"bodies,omitempty"`
	Replays  []TracedReplay `json:"replays"`   // in the order in which they ran
	PlainUS  float64        `json:"plain_us"`  // device time of a replay without tracing, median
	TracedUS float64        `json:"traced_us"` // the same with tracing; the difference is the overhead
}

// Trace runs the given number of replays, measures when each node ran, and restores the initial contents.
//
// With Options.Recorder, the times come from CUPTI: those of the kernels, copies and sets themselves, in the program's own replay with
// nothing added. Records are mapped to nodes by the order of calls (streams) or of graph nodes, and every kind, kernel name, size and stream
// must agree with the plan. If one does not, or CUPTI fails, events are used instead, and Fallback tells why. Without a Recorder, there is
// a timed event before and after every node. A graph is then built node by node, with the events as nodes.
//
// Tracing has an overhead: the difference between TracedUS and PlainUS.
func (p *Program) Trace(ctx context.Context, replays int) (trace *Trace, err error) {
	e := p.inner()
	if err := e.CheckReplays(ctx, "trace", replays, 1); err != nil {
		return nil, err
	}
	if e.Recorder() != nil {
		if err := e.Recorder().Disable(); err != nil {
			return nil, err
		}
	}
	plain, err := e.Measure(ctx, 2, max(3, min(replays, 20)))
	if err != nil {
		return nil, err
	}
	trace = &Trace{Mode: e.Mode().String(), Source: "events", PlainUS: plain.Device.Median, Bodies: e.BodiesTraced()}
	if e.Recorder() != nil {
		trace.Source = "cupti"
		trace.Replays, trace.Fallback, err = e.TraceRecorded(ctx, replays)
		if err != nil {
			return nil, err
		}
	}
	if trace.Source == "events" || trace.Fallback != "" {
		trace.Source = "events"
		if trace.Fallback != "" {
			e.Logger().Warn("CUPTI records cannot be used; measuring with events instead", "because", trace.Fallback)
		}
		if trace.Replays, err = e.TraceEvents(ctx, replays); err != nil {
			return nil, err
		}
	}
	lengths := make([]float64, len(trace.Replays))
	for i := range trace.Replays {
		for _, s := range trace.Replays[i].Spans {
			lengths[i] = max(lengths[i], s.End)
		}
	}
	trace.TracedUS = engine.Summarize(lengths).Median
	if err := e.CheckCalls(ctx); err != nil {
		return nil, err
	}
	return trace, e.Restore(ctx)
}

// Profile returns the median duration of every node and its spread, for the planner. It is empty unless the trace was made by this program.
func (t *Trace) Profile(p *Program) *planner.Profile {
	profile := &planner.Profile{Nodes: map[string]float64{}, Spreads: map[string]float64{}}
	g := p.inner().Graph()
	if t == nil || g == nil || len(t.Replays) == 0 || slices.ContainsFunc(t.Replays, func(r TracedReplay) bool { return len(r.Spans) != g.Len() }) {
		return profile
	}
	profile.Machine = p.engine.Platform().Devices()[0].Name
	samples := make([]float64, len(t.Replays))
	for i := range g.Nodes {
		for r := range t.Replays {
			s := &t.Replays[r].Spans[i]
			samples[r] = s.End - s.Start
		}
		took := engine.Summarize(slices.Clone(samples))
		if profile.Nodes[g.Nodes[i].Name] = took.Median; took.Count > 1 {
			profile.Spreads[g.Nodes[i].Name] = took.Spread
		}
	}
	return profile
}
