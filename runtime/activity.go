// CUPTI records mapped to nodes: which record belongs to which node, or that this is uncertain. Calls no CUPTI itself.

package runtime

import (
	"context"
	"fmt"
	"time"

	"github.com/dagrun/dagrun/cudart"
	"github.com/dagrun/dagrun/cudart/cupti"
	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/planner"
)

// Recorder notes when kernels, copies and sets ran, beside the streams that they ran on. *cupti.Library is one.
type Recorder interface {
	Enable() error
	Disable() error
	// Flush returns the records since the last Flush in the order of calls and graph nodes, waiting for that many where it can.
	Flush(want int) ([]cupti.Record, error)
}

// expected is a command of a replay that leaves a record.
type expected struct {
	node   int32 // -1 for a command of none
	stream int32
	kind   cupti.Kind
	name   string
	bytes  int64
}

// expectedRecords are the records of one replay in the order of its commands: that of submission, and that in which a graph's
// nodes are made, captured or built. Commands that do nothing (empty launches, copies of no bytes) leave none.
func (p *Program) expectedRecords(in *instance) []expected {
	var list []expected
	for _, c := range in.lowered.commands {
		e := expected{node: c.Node}
		switch c.Kind {
		case cudart.LaunchKernel:
			e.kind, e.name = cupti.Kernel, wideFill // a set of eight-byte patterns
			if l := p.launches[c.Node]; l != nil {
				e.name = l.Kernel.Entry()
			}
		case cudart.CopyMemory:
			e.kind, e.bytes = cupti.Copy, c.Bytes
		case cudart.SetMemory:
			e.kind, e.bytes = cupti.Set, c.Bytes
		default:
			continue
		}
		if e.kind != cupti.Kernel && c.Bytes == 0 || c.Node < 0 && p.mode == Built {
			continue // progress words are not part of a graph built node by node
		}
		e.stream = int32(p.streamOf(in, c.Stream))
		list = append(list, e)
	}
	return list
}

// matchRecords gives every expected record its own. The order of both is the same by construction; kinds, kernels' names, bytes,
// streams and the order on each stream must agree too, else the mapping is not certain and an error says where.
func matchRecords(want []expected, got []cupti.Record, graph bool, name func(node dag.NodeID) string) error {
	if len(got) != len(want) {
		return fmt.Errorf("%d records for %d commands", len(got), len(want))
	}
	numbers := map[int32]uint32{} // by stream of the plan: CUPTI's number
	starts := map[int32]uint64{}
	for i := range want {
		e, r := &want[i], &got[i]
		switch {
		case r.Kind != e.kind, e.name != "" && r.Name != "" && r.Name != e.name, r.Bytes != e.bytes:
			return fmt.Errorf("record %d (kind %d, %q, %d bytes) is not that of node %q", i, r.Kind, r.Name, r.Bytes, name(dag.NodeID(e.node)))
		case graph != (r.GraphNode != 0):
			return fmt.Errorf("record %d, of node %q, was not made by this replay", i, name(dag.NodeID(e.node)))
		case r.Start < starts[e.stream]:
			return fmt.Errorf("record %d says that node %q began before the one ahead of it on its stream", i, name(dag.NodeID(e.node)))
		}
		starts[e.stream] = r.Start
		if graph {
			continue // a graph's launch chooses streams of its own
		}
		if number, seen := numbers[e.stream]; seen && number != r.Stream {
			return fmt.Errorf("record %d, of node %q, is of another stream", i, name(dag.NodeID(e.node)))
		}
		numbers[e.stream] = r.Stream
	}
	return nil
}

// traceRecorded replays with CUPTI recording and nothing else added. An error of mapping is returned as reason: events serve then.
func (p *Program) traceRecorded(ctx context.Context, replays int) (traced []TracedReplay, reason string, err error) {
	recorder, in := p.options.Recorder, p.instances[0]
	if err := recorder.Enable(); err != nil {
		return nil, err.Error(), nil
	}
	defer func() {
		if offErr := recorder.Disable(); offErr != nil && reason == "" {
			reason = offErr.Error()
		}
	}()
	submit, done, err := p.recordedReplay(in)
	if err != nil {
		return nil, "", err
	}
	defer func() {
		if closeErr := done(); err == nil {
			err = closeErr
		}
	}()
	want := p.expectedRecords(in)
	name := func(node dag.NodeID) string {
		if node < 0 {
			return "progress"
		}
		return p.graph.Nodes[node].Name
	}
	p.dirty = true
	for i := range replays + 1 { // the first is not kept: it pays for what is done once
		if err := p.Synchronize(ctx); err != nil {
			return nil, "", err
		}
		if _, err := recorder.Flush(0); err != nil { // what others left
			return nil, err.Error(), nil
		}
		start := time.Now()
		if err := submit(); err != nil {
			return nil, "", err
		}
		took := time.Since(start)
		if err := p.Synchronize(ctx); err != nil {
			return nil, "", err
		}
		records, err := recorder.Flush(len(want))
		if err != nil {
			return nil, err.Error(), nil
		}
		if i == 0 {
			continue
		}
		if err := matchRecords(want, records, p.mode != Streams, name); err != nil {
			return nil, err.Error(), nil
		}
		traced = append(traced, TracedReplay{Spans: p.spansOf(want, records), SubmitUS: float64(took.Nanoseconds()) / 1e3})
	}
	return traced, "", nil
}

// recordedReplay is the program's replay made anew while CUPTI records: submitted by one thread, so that calls are numbered in the
// order of the list, and as a graph of its own, since a graph made before may not be seen.
func (p *Program) recordedReplay(in *instance) (submit, done func() error, err error) {
	list, err := p.platform.Encode(in.lowered.commands, cudart.ListOptions{Origin: in.streams[0]})
	if err != nil {
		return nil, nil, err
	}
	if p.mode == Streams {
		return list.Submit, list.Close, nil
	}
	var graph cudart.Graph
	options := cudart.GraphOptions{Origin: in.streams[0], Priorities: p.ranked}
	if p.mode == Built {
		var s *graphShape
		if s, err = p.shape(); err == nil {
			commands, deps := p.graphCommands(in, s, nil, nil)
			graph, err = p.platform.BuildGraph(commands, deps, options)
		}
	} else {
		graph, err = list.Capture(options)
	}
	if closeErr := list.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		if graph != nil {
			graph.Close()
		}
		return nil, nil, err
	}
	return func() error { return graph.Launch(in.streams[0]) }, graph.Close, nil
}

// spansOf turns matched records into spans from the first record's start. A node without a record, which did nothing, is shown
// where the node ahead of it on its stream ended.
func (p *Program) spansOf(want []expected, records []cupti.Record) []Span {
	spans := make([]Span, p.graph.Len())
	measured := make([]bool, len(spans))
	first := uint64(0)
	for i := range records {
		if first == 0 || records[i].Start < first {
			first = records[i].Start
		}
	}
	for i, e := range want {
		if e.node < 0 {
			continue
		}
		measured[e.node] = true
		spans[e.node] = Span{Start: float64(records[i].Start-first) / 1e3, End: float64(records[i].End-first) / 1e3}
	}
	for s := range p.plan.Streams {
		end := 0.0
		for _, op := range p.plan.Streams[s].Ops {
			if op.Kind != planner.Launch {
				continue
			}
			span := &spans[op.Node]
			if !measured[op.Node] {
				span.Start, span.End = end, end
			}
			span.Node, span.Stream = op.Node, int32(s)
			end = span.End
		}
	}
	return spans
}
