// Chrome traces: a measured trace as JSON for Perfetto and chrome://tracing.

// Package chrome writes measured traces in the Trace Event Format.
package chrome

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/planner/plan"
	"github.com/dagrun/dagrun/planner/proof"
	"github.com/dagrun/dagrun/runtime/internal/spans"
)

// replayGap is the space between replays in the trace, in microseconds. They were measured one by one.
const replayGap = 20.0

// Write writes a trace in the Trace Event Format.
func Write(w io.Writer, t *Recording) error {
	if err := t.drawable(); err != nil {
		return err
	}
	c := &writer{Writer: bufio.NewWriter(w), g: t.Graph, plan: t.Plan}
	c.WriteString(`{"displayTimeUnit":"ns","otherData":` + quoted(map[string]any{
		"pipeline": t.Graph.Name, "mode": t.Mode, "measured_by": t.MeasuredBy, "plain_us": t.PlainUS, "traced_us": t.TracedUS,
	}) + `,"traceEvents":[`)
	c.lanes = make([]int, t.Graph.Len())
	c.tracks(t.Predicted != nil, t.besides())
	c.passTracks(t)
	base := 0.0
	for k := range t.Replays {
		base = c.replay(&t.Replays[k], k, base) + replayGap
	}
	c.predicted(t.Predicted)
	c.WriteString("]}\n")
	return c.Flush()
}

// drawable returns an error for a trace that is not one of the graph and the plan, or whose times cannot be written.
func (t *Recording) drawable() error {
	g := t.Graph
	switch {
	case g.Check() != nil || t.Plan == nil:
		return errors.New("writing a trace needs its graph and its plan")
	case t.Predicted != nil && len(t.Predicted.Nodes) != g.Len():
		return fmt.Errorf("the prediction has %d nodes, but the graph has %d", len(t.Predicted.Nodes), g.Len())
	}
	if !finite(t.PlainUS, t.TracedUS) {
		return fmt.Errorf("a trace whose replays take %v us and %v us cannot be written", t.PlainUS, t.TracedUS)
	}
	for k := range t.Replays {
		spans := t.Replays[k].Spans
		if len(spans) != g.Len() {
			return fmt.Errorf("the trace has %d nodes, but the graph has %d", len(spans), g.Len())
		}
		for i := range spans {
			if !finite(spans[i].Start, spans[i].End, t.Replays[k].SubmitUS) {
				return fmt.Errorf("a trace in which node %q runs from %v us to %v us cannot be written", g.Nodes[i].Name, spans[i].Start, spans[i].End)
			}
		}
		if err := checkPasses(&t.Replays[k], g, t.Plan); err != nil {
			return err
		}
	}
	if err := proof.CheckOps(g, t.Plan); err != nil {
		return fmt.Errorf("the plan of the trace: %w", err)
	}
	return nil
}

// predicted writes the predicted timeline; nil is none.
func (c *writer) predicted(t *plan.Timeline) {
	if t == nil {
		return
	}
	for i := range t.Nodes {
		s := &t.Nodes[i]
		c.span(predictedProcess, int(s.Stream), c.g.Nodes[i].Name, "predicted", s.Start, s.End, map[string]any{"cause": s.Cause.String()})
	}
}

func (c *writer) tracks(predicted bool, besides map[int]int) {
	name := func(process int, text string) {
		process += c.first
		c.event(`{"ph":"M","pid":%d,"name":"process_name","args":{"name":%s}}`, process, quoted(c.prefix+text))
		c.event(`{"ph":"M","pid":%d,"name":"process_sort_index","args":{"sort_index":%d}}`, process, process)
	}
	track := func(process, track int, text string) {
		process += c.first
		c.event(`{"ph":"M","pid":%d,"tid":%d,"name":"thread_name","args":{"name":%s}}`, process, track, quoted(text))
		c.event(`{"ph":"M","pid":%d,"tid":%d,"name":"thread_sort_index","args":{"sort_index":%d}}`, process, track, track)
	}
	name(hostProcess, "host")
	track(hostProcess, 0, "submission")
	name(streamsProcess, "streams")
	for s := range c.plan.Streams {
		stream := &c.plan.Streams[s]
		track(streamsProcess, s, fmt.Sprintf("stream %d (device %d, %s)", s, stream.Device, stream.Priority))
	}
	name(enginesProcess, "engines")
	seen := map[int]bool{}
	for i := range c.g.Nodes {
		k, text := engineTrack(c.g, dag.NodeID(i))
		if seen[k] {
			continue
		}
		seen[k] = true
		track(enginesProcess, k, text)
		for lane := 1; lane < besides[k]; lane++ {
			track(enginesProcess, k+lane, fmt.Sprintf("%s, beside (%d)", text, lane))
		}
	}
	if predicted {
		name(predictedProcess, "predicted")
		for s := range c.plan.Streams {
			track(predictedProcess, s, fmt.Sprintf("stream %d", s))
		}
	}
}

// laneRoom is the maximum number of tracks of one engine. Nodes that it runs at the same time are on different tracks.
const laneRoom = 4096

// engineTrack is the first track of a node's engine.
func engineTrack(g *dag.Graph, id dag.NodeID) (track int, name string) {
	device, e := int(g.Nodes[id].Device), plan.EngineOf(g, id)
	return (device*16 + int(e)) * laneRoom, fmt.Sprintf("device %d %s", device, e)
}

// engineLanes gives every node of a replay the first lane of its engine that is free when the node starts. It returns how many lanes each
// engine needs.
func engineLanes(r *spans.TracedReplay, g *dag.Graph, lanes []int) map[int]int {
	order := make([]int32, len(r.Spans))
	for i := range order {
		order[i] = int32(i)
	}
	slices.SortStableFunc(order, func(x, y int32) int { return cmp.Compare(r.Spans[x].Start, r.Spans[y].Start) })
	ends := map[int][]float64{} // by track of the engine: when each lane is free again
	for _, i := range order {
		track, _ := engineTrack(g, dag.NodeID(i))
		free := ends[track]
		lane := slices.IndexFunc(free, func(end float64) bool { return end <= r.Spans[i].Start })
		if lane < 0 && len(free) < laneRoom {
			free = append(free, 0)
		}
		if lane < 0 {
			lane = len(free) - 1
		}
		free[lane], ends[track], lanes[i] = r.Spans[i].End, free, lane
	}
	count := make(map[int]int, len(ends))
	for track, free := range ends {
		count[track] = len(free)
	}
	return count
}

// besides returns how many lanes each engine needs in any replay, by its first track.
func (t *Recording) besides() map[int]int {
	most := map[int]int{}
	lanes := make([]int, t.Graph.Len())
	for k := range t.Replays {
		for track, n := range engineLanes(&t.Replays[k], t.Graph, lanes) {
			most[track] = max(most[track], n)
		}
	}
	return most
}

// replay writes one replay that starts at base and returns its end.
func (c *writer) replay(r *spans.TracedReplay, number int, base float64) float64 {
	c.span(hostProcess, 0, "submit", "host", base, base+r.SubmitUS, map[string]any{"replay": number})
	end := base + r.SubmitUS
	engineLanes(r, c.g, c.lanes)
	for i := range r.Spans {
		s := &r.Spans[i]
		n := &c.g.Nodes[i]
		args := map[string]any{"replay": number, "kind": n.Kind.String(), "stream": s.Stream}
		loopArgs(r, n, args)
		if n.Work.Bytes > 0 {
			args["bytes"] = n.Work.Bytes
			if s.End > s.Start {
				args["GB/s"] = math.Round(float64(n.Work.Bytes)/(s.End-s.Start)/1e2) / 10
			}
		}
		c.span(streamsProcess, int(s.Stream), n.Name, n.Kind.String(), base+s.Start, base+s.End, args)
		track, _ := engineTrack(c.g, dag.NodeID(i))
		c.span(enginesProcess, track+c.lanes[i], n.Name, n.Kind.String(), base+s.Start, base+s.End, args)
		end = max(end, base+s.End)
	}
	c.passes(r, number, base)
	c.counters(r, base)
	for s := range c.plan.Streams {
		ops := c.plan.Streams[s].Ops
		for k, op := range ops {
			if op.Kind != plan.Wait {
				continue
			}
			for _, later := range ops[k+1:] {
				if later.Kind == plan.Launch {
					c.arrow(&r.Spans[op.Node], &r.Spans[later.Node], base)
					break
				}
			}
		}
	}
	return end
}

// arrow draws an arrow from the end of the node that is waited for to the start of the node that waits. Viewers attach each end of an
// arrow to the slice that contains it, and a slice does not contain its own end, so the arrow starts a nanosecond earlier.
func (c *writer) arrow(from, to *spans.Span, base float64) {
	c.flows++
	const inside = 1e-3
	c.event(`{"ph":"s","id":%d,"pid":%d,"tid":%d,"name":"wait","cat":"wait","ts":%s}`, c.flows, c.first+streamsProcess, from.Stream,
		micro(base+max(from.Start, from.End-inside)))
	c.event(`{"ph":"f","bp":"e","id":%d,"pid":%d,"tid":%d,"name":"wait","cat":"wait","ts":%s}`, c.flows, c.first+streamsProcess, to.Stream, micro(base+to.Start))
}
