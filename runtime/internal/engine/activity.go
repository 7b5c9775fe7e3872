// Maps CUPTI records to nodes, or finds that the mapping is uncertain. Does not call CUPTI itself.

package engine

import (
	"context"
	"fmt"
	"time"

	"github.com/dagrun/dagrun/cudart"
	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/planner/plan"
	"github.com/dagrun/dagrun/runtime/internal/spans"
)

// expected is a command of a replay that produces a record.
type expected struct {
	node   int32 // -1 for a command that belongs to no node
	stream int32
	kind   cudart.ActivityKind
	name   string // of the kernel, or how C++ names it
	mapped bool   // the kernel's symbol is only known to the compiler: any, but always the same
	bytes  int64
}

// recording is a program's replay while CUPTI records it.
type recording struct {
	program *Program
	want    []expected
	submit  func() error
	close   func() error
}

func newRecording(p *Program, in *instance) (*recording, error) {
	submit, done, err := recordedReplay(p, in)
	if err != nil {
		return nil, err
	}
	return &recording{program: p, want: expectedRecords(p, in), submit: submit, close: done}, nil
}

// expectedRecords returns the records of one replay in the order of its commands. Commands are submitted in this order, and the nodes of a
// graph are captured or built in it. Commands that do nothing (empty launches, copies of no bytes) produce no records.
func expectedRecords(p *Program, in *instance) []expected {
	var list []expected
	for _, c := range in.lowered.commands {
		e := expected{node: c.Node}
		switch c.Kind {
		case cudart.LaunchKernel:
			e.kind, e.name = cudart.KernelActivity, wideFill // a set of eight-byte patterns
			if l := p.launches[c.Node]; l != nil {
				e.name = l.Kernel.Entry()
				k, ok := l.Kernel.(expressed)
				e.mapped = ok && k.Expression() != ""
			}
		case cudart.CopyMemory:
			e.kind, e.bytes = cudart.CopyActivity, c.Bytes
		case cudart.SetMemory:
			e.kind, e.bytes = cudart.SetActivity, c.Bytes
		default:
			continue
		}
		if e.kind != cudart.KernelActivity && c.Bytes == 0 || c.Node < 0 && p.built() {
			continue // progress words are not part of a graph built node by node
		}
		e.stream = int32(p.streamOf(in, c.Stream))
		list = append(list, e)
	}
	return list
}

// matchRecords checks that the records are the expected ones, one by one. Both come in the same order by construction. Kinds, kernel names,
// bytes, streams and the order on each stream must agree too; otherwise the mapping is uncertain, and the error tells where.
func matchRecords(want []expected, got []cudart.Activity, graph bool, name func(node dag.NodeID) string) error {
	if len(got) != len(want) {
		return fmt.Errorf("%d records for %d commands", len(got), len(want))
	}
	numbers := map[int32]uint32{} // by stream of the plan: CUPTI's number
	starts := map[int32]uint64{}
	symbols := map[string]string{} // of kernels that are named as C++ does
	for i := range want {
		e, r := &want[i], &got[i]
		kernel := e.name
		if e.mapped {
			if symbols[e.name] == "" {
				symbols[e.name] = r.Name
			}
			kernel = symbols[e.name]
		}
		switch {
		case r.Kind != e.kind, kernel != "" && r.Name != "" && r.Name != kernel, r.Bytes != e.bytes:
			return fmt.Errorf("record %d (kind %d, %q, %d bytes) does not belong to node %q", i, r.Kind, r.Name, r.Bytes, name(dag.NodeID(e.node)))
		case graph != (r.GraphNode != 0):
			return fmt.Errorf("record %d, of node %q, was not made by this replay", i, name(dag.NodeID(e.node)))
		case r.Start < starts[e.stream]:
			return fmt.Errorf("record %d shows that node %q started before the previous node on its stream", i, name(dag.NodeID(e.node)))
		}
		starts[e.stream] = r.Start
		if graph {
			continue // a graph launch chooses its own streams
		}
		if number, seen := numbers[e.stream]; seen && number != r.Stream {
			return fmt.Errorf("record %d, of node %q, is from another stream", i, name(dag.NodeID(e.node)))
		}
		numbers[e.stream] = r.Stream
	}
	return nil
}

// TraceRecorded replays while CUPTI records, with nothing else added. If records cannot be mapped, reason tells why; the caller uses events.
func (p *Program) TraceRecorded(ctx context.Context, replays int) (traced []spans.TracedReplay, reason string, err error) {
	if p.hosts != nil {
		return nil, "it does not record host functions", nil
	}
	if p.bodies != nil {
		return nil, "its records do not tell which pass they are of", nil
	}
	recorder, in := p.options.Recorder, p.instances[0]
	if err := recorder.Enable(); err != nil {
		return nil, err.Error(), nil
	}
	defer func() {
		if offErr := recorder.Disable(); offErr != nil && reason == "" {
			reason = offErr.Error()
		}
	}()
	r, err := newRecording(p, in)
	if err != nil {
		return nil, "", err
	}
	defer func() {
		if closeErr := r.close(); err == nil {
			err = closeErr
		}
	}()
	p.dirty = true
	for i := range replays + 1 { // the first one is dropped: it includes work that is done only once
		records, us, reason, err := r.replay(ctx)
		if err != nil || reason != "" {
			return nil, reason, err
		}
		if i == 0 {
			continue
		}
		if err := r.match(records); err != nil {
			return nil, err.Error(), nil
		}
		traced = append(traced, spans.TracedReplay{Spans: r.spans(records), SubmitUS: us})
	}
	return traced, "", nil
}

// replay replays once while CUPTI records, and returns the records and how long the host took to submit. If there are no records, reason
// says why; the replay ran all the same.
func (r *recording) replay(ctx context.Context) (records []cudart.Activity, submitUS float64, reason string, err error) {
	p := r.program
	if err := p.Synchronize(ctx); err != nil {
		return nil, 0, "", err
	}
	if _, err := p.options.Recorder.Flush(0); err != nil { // drop records of earlier work
		reason = err.Error()
	}
	start := time.Now()
	if err := r.submit(); err != nil {
		return nil, 0, "", err
	}
	submitUS = float64(time.Since(start).Nanoseconds()) / 1e3
	if err := p.Synchronize(ctx); err != nil {
		return nil, 0, "", err
	}
	if reason == "" {
		if records, err = p.options.Recorder.Flush(len(r.want)); err != nil {
			return nil, 0, err.Error(), nil
		}
	}
	return records, submitUS, reason, nil
}

// match returns an error if it is not certain to which nodes records belong.
func (r *recording) match(records []cudart.Activity) error {
	return matchRecords(r.want, records, r.program.mode != Streams, func(node dag.NodeID) string {
		if node < 0 {
			return "progress" // the words that track it
		}
		return r.program.graph.Nodes[node].Name
	})
}

// recordedReplay makes the program's replay anew while CUPTI records. One thread submits it, so that calls are numbered in the order of the
// list. A graph is made again, because CUPTI may not see a graph that was made earlier.
func recordedReplay(p *Program, in *instance) (submit, done func() error, err error) {
	list, err := p.encode(in, in.lowered.commands, cudart.ListOptions{Origin: in.streams[0]})
	if err != nil {
		return nil, nil, err
	}
	if p.mode == Streams {
		return list.Submit, list.Close, nil
	}
	var graph cudart.Graph
	options := cudart.GraphOptions{Origin: in.streams[0], Priorities: p.ranked}
	if p.built() {
		var s *graphShape
		if s, err = p.shape(); err == nil {
			var commands []cudart.Command
			var deps [][]int32
			if commands, deps, err = p.graphCommands(in, s, nil, nil); err == nil {
				err = p.overlapGraph(s.edges, commands, deps)
			}
			if err == nil {
				graph, err = p.platform.BuildGraph(commands, deps, options)
			}
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

// spans turns matched records into spans that count from the start of the first record. A node without a record did nothing. It is shown
// where the previous node on its stream ended.
func (r *recording) spans(records []cudart.Activity) []spans.Span {
	p := r.program
	nodes := make([]spans.Span, p.graph.Len())
	measured := make([]bool, len(nodes))
	first := uint64(0)
	for i := range records {
		if first == 0 || records[i].Start < first {
			first = records[i].Start
		}
	}
	for i, e := range r.want {
		if e.node < 0 {
			continue
		}
		measured[e.node] = true
		nodes[e.node] = spans.Span{Start: float64(records[i].Start-first) / 1e3, End: float64(records[i].End-first) / 1e3}
	}
	for s := range p.plan.Streams {
		end := 0.0
		for _, op := range p.plan.Streams[s].Ops {
			if op.Kind != plan.Launch {
				continue
			}
			span := &nodes[op.Node]
			if !measured[op.Node] {
				span.Start, span.End = end, end
			}
			span.Node, span.Stream = op.Node, int32(s)
			end = span.End
		}
	}
	return nodes
}
