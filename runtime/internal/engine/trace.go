// Tracing with timed events: when each node really ran. Separate from timing, since tracing has an overhead of its own.

package engine

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/dagrun/dagrun/cudart"
	"github.com/dagrun/dagrun/planner/plan"
	"github.com/dagrun/dagrun/runtime/internal/spans"
)

// TraceEvents replays with an event before and after every node.
func (p *Program) TraceEvents(ctx context.Context, replays int) (traced []spans.TracedReplay, err error) {
	t := &tracer{program: p, in: p.instances[0]}
	defer func() { err = errors.Join(err, t.close()) }()
	if err := t.prepare(); err != nil {
		return nil, err
	}
	for i := range replays + 1 { // the first is not kept: it pays for what is done once
		replay, err := t.replay(ctx)
		if err != nil {
			return nil, err
		}
		if i > 0 {
			traced = append(traced, *replay)
		}
	}
	return traced, nil
}

func (t *tracer) prepare() error {
	p, in := t.program, t.in
	event := func(device int32) (cudart.Event, error) { return p.platform.NewEvent(device, true) }
	devices, streams := int32(0), in.allStreams(nil)
	for _, s := range streams {
		devices = max(devices, s.Device()+1)
	}
	t.base = make([]cudart.Event, devices)
	var bases []cudart.Command
	for _, s := range streams {
		if d := s.Device(); t.base[d] == nil {
			var err error
			if t.base[d], err = event(d); err != nil {
				return err
			}
			bases = append(bases, cudart.Command{Kind: cudart.RecordEvent, Stream: s, Event: t.base[d], Node: -1, Label: "trace"})
		}
	}
	t.before, t.after = make([]cudart.Event, p.graph.Len()), make([]cudart.Event, p.graph.Len())
	for s := range p.plan.Streams {
		for _, op := range p.plan.Streams[s].Ops {
			if op.Kind != plan.Launch {
				continue
			}
			var err error
			if t.before[op.Node], err = event(in.streams[s].Device()); err != nil {
				return err
			}
			if t.after[op.Node], err = event(in.streams[s].Device()); err != nil {
				return err
			}
		}
	}
	options := cudart.ListOptions{Origin: in.streams[0]}
	var err error
	if t.origin, err = p.platform.Encode(bases, options); err != nil {
		return err
	}
	if err := t.prepareBodies(); err != nil {
		return err
	}
	if p.mode == Streams {
		t.list, err = p.encode(in, withMarks(in.lowered.commands, t.before, t.after), options)
		return err
	}
	if p.communicates() { // communication can only be captured
		list, err := p.encode(in, withMarks(in.lowered.commands, t.before, t.after), options)
		if err != nil {
			return err
		}
		t.graph, err = list.Capture(cudart.GraphOptions{Origin: in.streams[0], Priorities: p.ranked})
		return errors.Join(err, list.Close())
	}
	t.graph, err = p.buildTracedGraph(in, t.before, t.after)
	return err
}

func (t *tracer) replay(ctx context.Context) (*spans.TracedReplay, error) {
	p := t.program
	p.dirty = true
	if err := p.Synchronize(ctx); err != nil {
		return nil, err
	}
	marked, err := t.markOrigin(ctx)
	if err != nil {
		return nil, err
	}
	if err := p.beginHosts(ctx, t.in); err != nil {
		return nil, err
	}
	t.in.forget()
	if t.bodies != nil {
		t.bodies.begin()
	}
	start := time.Now()
	if t.graph != nil {
		t.in.count()
		err = t.graph.Launch(t.in.streams[0])
	} else {
		err = submitList(ctx, t.list)
	}
	if err != nil {
		return nil, err
	}
	r := &spans.TracedReplay{SubmitUS: float64(time.Since(start).Nanoseconds()) / 1e3}
	if err := p.Synchronize(ctx); err != nil {
		return nil, err
	}
	first, err := t.read(r)
	if err == nil && t.bodies != nil {
		err = t.bodies.add(ctx, r, first)
	}
	if !marked.IsZero() {
		spans.BeginAt(r, marked.Add(time.Duration(first*1e3)))
	}
	return r, err
}

// markAttempts is how often the records of markOrigin are repeated at most.
const markAttempts = 10

// markOrigin records the events that a replay's times count from. With several ranks, whose clocks must be compared, it returns when the
// device did that: between two readings of the clock, which are repeated until they are close.
func (t *tracer) markOrigin(ctx context.Context) (time.Time, error) {
	if t.program.graph.Ranks <= 1 {
		return time.Time{}, t.origin.Submit()
	}
	var best time.Duration
	for k := 0; ; k++ {
		before := time.Now()
		if err := t.origin.Submit(); err != nil {
			return time.Time{}, err
		}
		if err := t.program.Synchronize(ctx); err != nil {
			return time.Time{}, err
		}
		took := time.Since(before)
		if k > 2 && took <= best+best/4 || k == markAttempts-1 {
			return before.Add(took / 2), nil
		}
		if k == 0 || took < best {
			best = took
		}
	}
}

// read turns the events into spans. The clock starts with the first node, so that the record of base is not included; it returns when that
// was, in microseconds after that record.
func (t *tracer) read(r *spans.TracedReplay) (float64, error) {
	p := t.program
	r.Spans = make([]spans.Span, p.graph.Len())
	if p.platform.Name() == "cpu" {
		r.HelpedUS = make([]float64, p.graph.Len())
	}
	first := math.Inf(1)
	for s := range p.plan.Streams {
		base := t.base[t.in.streams[s].Device()]
		for _, op := range p.plan.Streams[s].Ops {
			if op.Kind != plan.Launch {
				continue
			}
			start, err := t.before[op.Node].Since(base)
			if err != nil {
				return 0, fmt.Errorf("trace of node %q: %w", p.graph.Nodes[op.Node].Name, err)
			}
			end, err := t.after[op.Node].Since(base)
			if err != nil {
				return 0, fmt.Errorf("trace of node %q: %w", p.graph.Nodes[op.Node].Name, err)
			}
			if after, ok := t.after[op.Node].(interface {
				Helped(earlier cudart.Event) (float64, error)
			}); ok && r.HelpedUS != nil {
				if r.HelpedUS[op.Node], err = after.Helped(t.before[op.Node]); err != nil {
					return 0, fmt.Errorf("trace of node %q: %w", p.graph.Nodes[op.Node].Name, err)
				}
			}
			r.Spans[op.Node] = spans.Span{Node: op.Node, Stream: int32(s), Start: start, End: end}
			first = min(first, start)
		}
	}
	for i := range r.Spans {
		r.Spans[i].Start -= first
		r.Spans[i].End -= first
	}
	if math.IsInf(first, 1) {
		first = 0
	}
	return first, nil
}

func (t *tracer) close() error {
	var errs []error
	if t.bodies != nil {
		errs = t.bodies.close()
	}
	if t.list != nil {
		errs = append(errs, t.list.Close())
	}
	if t.origin != nil {
		errs = append(errs, t.origin.Close())
	}
	if t.graph != nil {
		errs = append(errs, t.graph.Close())
	}
	for _, events := range [][]cudart.Event{t.base, t.before, t.after} {
		for _, e := range events {
			if e != nil {
				errs = append(errs, e.Close())
			}
		}
	}
	return errors.Join(errs...)
}
