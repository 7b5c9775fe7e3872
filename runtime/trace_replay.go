// Tracing a replay, with timed events or by what the driver says of its own activity.

package runtime

import "context"

// Trace runs the given number of replays, measures when each node ran, and restores the initial contents.
//
// With Options.Recorder, the times come from CUPTI: those of the kernels, copies and sets themselves, in the program's own replay with
// nothing added. Records are mapped to nodes by the order of calls (streams) or of graph nodes, and every kind, kernel name, size and stream
// must agree with the plan. If one does not, or CUPTI fails, events are used instead, and Fallback tells why. Without a Recorder, there is
// a timed event before and after every node. A graph is then built node by node, with the events as nodes.
//
// Tracing has an overhead: the difference between TracedUS and PlainUS.
func (p *Program) Trace(ctx context.Context, replays int) (trace *Trace, err error) {
	if err := p.checkReplays(ctx, "trace", replays, 1); err != nil {
		return nil, err
	}
	if p.options.Recorder != nil {
		if err := p.options.Recorder.Disable(); err != nil {
			return nil, err
		}
	}
	plain, err := p.Measure(ctx, 2, max(3, min(replays, 20)))
	if err != nil {
		return nil, err
	}
	trace = &Trace{Mode: p.mode.String(), Source: "events", PlainUS: plain.Device.Median, Bodies: p.bodiesTraced()}
	if p.options.Recorder != nil {
		trace.Source = "cupti"
		trace.Replays, trace.Fallback, err = p.traceRecorded(ctx, replays)
		if err != nil {
			return nil, err
		}
	}
	if trace.Source == "events" || trace.Fallback != "" {
		trace.Source = "events"
		if trace.Fallback != "" {
			p.log.Warn("CUPTI records cannot be used; measuring with events instead", "because", trace.Fallback)
		}
		if trace.Replays, err = p.traceEvents(ctx, replays); err != nil {
			return nil, err
		}
	}
	lengths := make([]float64, len(trace.Replays))
	for i := range trace.Replays {
		for _, s := range trace.Replays[i].Spans {
			lengths[i] = max(lengths[i], s.End)
		}
	}
	trace.TracedUS = Summarize(lengths).Median
	if err := p.checkStatuses(ctx); err != nil {
		return nil, err
	}
	return trace, p.Restore(ctx)
}
