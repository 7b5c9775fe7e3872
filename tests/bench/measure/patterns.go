// Task Bench patterns: the cost per task on the host when tasks are empty (records and waits, no launches), and when each
// task launches a kernel that does nothing.

package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/dagrun/dagrun/cudart"
	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/dag/expr"
	"github.com/dagrun/dagrun/kernels"
	"github.com/dagrun/dagrun/planner"
	"github.com/dagrun/dagrun/planner/plan"
	"github.com/dagrun/dagrun/runtime"
)

// pattern says which cells of the previous step a task reads. cudastf is the time of NVIDIA's CUDASTF on an H200, with its stream backend
// and empty tasks, in microseconds per task. It includes finding the dependencies.
type pattern struct {
	name        string
	width, step int
	reads       func(t, i, width int) []int
	runs        func(t, i int) bool
	cudastf     float64
}

func patterns() []pattern {
	always := func(int, int) bool { return true }
	return []pattern{
		{"trivial", 8, 128, func(int, int, int) []int { return nil }, always, 1.42},
		{"stencil", 8, 128, func(_, i, _ int) []int { return []int{i - 1, i, i + 1} }, always, 3.04},
		{"fft", 8, 128, func(t, i, _ int) []int {
			if t > 30 {
				return []int{i}
			}
			return []int{i - 1<<(t-1), i, i + 1<<(t-1)}
		}, always, 2.46},
		{"sweep", 8, 128, func(_, i, _ int) []int { return []int{i - 1, i} }, func(t, i int) bool { return i <= t }, 2.42},
		{"tree", 512, 10, func(t, i, _ int) []int { return []int{i, i + 1<<(t-1)} }, func(t, i int) bool { return i%(1<<t) == 0 }, 2.01},
		{"random", 8, 128, func(t, i, width int) []int {
			at := int64(2 * (t*width + i))
			return []int{int(expr.Rand(1, at, int64(width))), int(expr.Rand(1, at+1, int64(width)))}
		}, always, 2.46},
	}
}

// graph makes the pattern's tasks, each a launch of noop.
func (p *pattern) graph() (*dag.Graph, error) {
	b := dag.New(p.name)
	b.Use(kernels.Library())
	id := make([]dag.NodeID, p.width*p.step)
	for t := range p.step {
		for i := range p.width {
			at := t*p.width + i
			id[at] = -1
			if !p.runs(t, i) {
				continue
			}
			id[at] = b.Kernel(fmt.Sprintf("t%d.%d", t, i), "noop", nil)
			if t == 0 {
				continue
			}
			for _, from := range p.reads(t, i, p.width) {
				if from >= 0 && from < p.width && id[at-i-p.width+from] >= 0 {
					b.After(dag.NodeID(id[at]), dag.NodeID(id[at-i-p.width+from]))
				}
			}
		}
	}
	return b.Graph()
}

// patternRow holds the results for one pattern. Costs are microseconds per task.
type patternRow struct {
	Name      string    `json:"name"`
	Tasks     int       `json:"tasks"`
	Edges     int       `json:"edges"`
	Streams   int       `json:"streams"`
	Records   int       `json:"records"`
	Waits     int       `json:"waits"`
	Plan      float64   `json:"plan_us"`
	Schedule  []float64 `json:"schedule_us"`
	OnStreams float64   `json:"streams_us"`
	AsGraph   float64   `json:"graph_us"`
	CUDASTF   float64   `json:"cudastf_us"`
}

func measurePatterns(ctx context.Context, s settings, p cudart.Platform) (any, []table, error) {
	var rows []*patternRow
	for _, one := range patterns() {
		if !s.wanted(one.name) {
			continue
		}
		row, err := measurePattern(ctx, &s, p, &one)
		if err != nil {
			return nil, nil, fmt.Errorf("%s: %w", one.name, err)
		}
		rows = append(rows, row)
	}
	t := table{title: fmt.Sprintf("Task Bench on %s: microseconds a task", p.Devices()[0].Name),
		head: []string{"pattern", "tasks", "dependencies", "streams", "records", "waits", "planning", "records and waits", "CUDASTF", "ratio",
			"with noop, streams", "with noop, graph"},
		notes: []string{"Planned for tasks of equal length on four streams. Records and waits: host time of the plan's records and waits alone, median of all rounds; fork and join are not in it. CUDASTF finds dependencies while it submits; dagrun does once, when planning."}}
	for _, r := range rows {
		t.row(r.Name, fmt.Sprint(r.Tasks), fmt.Sprint(r.Edges), fmt.Sprint(r.Streams), fmt.Sprint(r.Records), fmt.Sprint(r.Waits), figure(r.Plan),
			fmt.Sprintf("%.3f", median(r.Schedule)), figure(r.CUDASTF), fmt.Sprintf("%.3f", median(r.Schedule)/r.CUDASTF), figure(r.OnStreams), figure(r.AsGraph))
	}
	return rows, []table{t}, nil
}

func measurePattern(ctx context.Context, s *settings, p cudart.Platform, one *pattern) (*patternRow, error) {
	g, err := one.graph()
	if err != nil {
		return nil, err
	}
	// Plan with tasks of equal, nonzero length on four streams. For tasks that take no time the planner would use one stream, without
	// any records and waits to measure.
	options := planner.Options{Strategy: "list", Streams: 4, Machine: planner.Unit()}
	row := &patternRow{Name: one.name, Tasks: g.Len(), Edges: len(g.Edges()), CUDASTF: one.cudastf}
	var plan *planner.Plan
	for range 5 {
		began := time.Now()
		if plan, err = planner.New(ctx, g, options); err != nil {
			return nil, err
		}
		if us := float64(time.Since(began).Nanoseconds()) / 1e3 / float64(g.Len()); row.Plan == 0 || us < row.Plan {
			row.Plan = us
		}
	}
	row.Streams, row.Records, row.Waits = len(plan.Streams), plan.Stats.Records, plan.Stats.Waits
	if row.Schedule, err = scheduling(ctx, p, plan, s.rounds*20, g.Len()); err != nil {
		return nil, err
	}
	// Measure the graph first: a process that has used several streams may replay graphs more slowly.
	for _, mode := range []runtime.Mode{runtime.Captured, runtime.Streams} {
		program, err := runtime.New(ctx, g, plan, p, runtime.Options{Mode: mode})
		if err != nil {
			return nil, err
		}
		timing, err := program.Measure(ctx, 3, s.rounds*4)
		if err := errors.Join(err, program.Close()); err != nil {
			return nil, err
		}
		if us := timing.Wall / float64(g.Len()); mode == runtime.Streams {
			row.OnStreams = us
		} else {
			row.AsGraph = us
		}
	}
	return row, nil
}

// scheduling submits a plan's records and waits without its launches and returns the microseconds per task of each submission.
func scheduling(ctx context.Context, p cudart.Platform, made *planner.Plan, rounds, tasks int) (samples []float64, err error) {
	var streams []cudart.Stream
	var events []cudart.Event
	defer func() {
		for _, e := range events {
			err = errors.Join(err, e.Close())
		}
		for _, s := range streams {
			err = errors.Join(err, s.Close())
		}
	}()
	for _, s := range made.Streams {
		stream, err := p.NewStream(s.Device, s.Priority)
		if err != nil {
			return nil, err
		}
		streams = append(streams, stream)
	}
	for range made.Events {
		e, err := p.NewEvent(0, false)
		if err != nil {
			return nil, err
		}
		events = append(events, e)
	}
	var commands []cudart.Command
	next := make([]int, len(made.Streams))
	for _, k := range made.Order {
		op := made.Streams[k].Ops[next[k]]
		next[k]++
		switch op.Kind {
		case plan.Record:
			commands = append(commands, cudart.Command{Kind: cudart.RecordEvent, Stream: streams[k], Event: events[op.Event], Node: int32(op.Node)})
		case plan.Wait:
			commands = append(commands, cudart.Command{Kind: cudart.WaitEvent, Stream: streams[k], Event: events[op.Event], Node: int32(op.Node)})
		}
	}
	list, err := p.Encode(commands, cudart.ListOptions{Origin: streams[0]})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, list.Close()) }()
	for range rounds {
		began := time.Now()
		if err := list.Submit(); err != nil {
			return nil, err
		}
		samples = append(samples, float64(time.Since(began).Nanoseconds())/1e3/float64(tasks))
		for _, s := range streams {
			if err := s.Synchronize(ctx); err != nil {
				return nil, err
			}
		}
	}
	return samples, nil
}
