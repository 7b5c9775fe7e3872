// Measures which number of chunks is best, on streams and as a graph. Measures dagrun only.

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/dagrun/dagrun/cudart"
	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/planner"
	"github.com/dagrun/dagrun/runtime"
)

// triedCounts are the chunk counts to measure.
var triedCounts = []int{1, 2, 4, 8, 16}

// chunkRow is one workload at one count. Times are microseconds, one for each round.
type chunkRow struct {
	Name      string               `json:"name"`
	Chunks    int                  `json:"chunks"`
	Nodes     int                  `json:"nodes"`
	Streams   int                  `json:"streams"`
	Times     map[string][]float64 `json:"times_us"`
	Predicted float64              `json:"predicted_us"`
}

func measureChunks(ctx context.Context, s settings, p cudart.Platform) (any, []table, error) {
	counts := triedCounts
	if s.small {
		counts = []int{1, smallCount}
	}
	var rows []*chunkRow
	for _, w := range workloads() {
		if !s.wanted(w.name) {
			continue
		}
		// Host buffers are the same for every count, so they are filled only once.
		var shared *sharedContents
		for _, count := range counts {
			g, err := w.load(&s, count)
			if err != nil {
				return nil, nil, fmt.Errorf("%s: %w", w.name, err)
			}
			if shared == nil {
				if shared, err = shareContents(ctx, g); err != nil {
					return nil, nil, fmt.Errorf("%s: %w", w.name, err)
				}
			}
			row, err := measureCount(ctx, &s, p, g, shared)
			if err != nil {
				return nil, nil, fmt.Errorf("%s in %d chunks: %w", w.name, count, err)
			}
			row.Name, row.Chunks = w.name, count
			fmt.Fprintf(os.Stderr, "measured %s in %d chunks\n", w.name, count)
			rows = append(rows, row)
		}
	}
	return rows, []table{chunkTable(rows, p, s)}, nil
}

// sharedContents is the memory of a workload's host buffers, by name, which several programs use in turn, and the results that last
// passed the check.
type sharedContents struct {
	memory map[string][]byte
	right  map[string][]byte
}

func shareContents(ctx context.Context, g *dag.Graph) (*sharedContents, error) {
	c := &sharedContents{memory: map[string][]byte{}, right: map[string][]byte{}}
	for i := range g.Buffers {
		b := &g.Buffers[i]
		if b.Place != dag.Host {
			continue
		}
		memory := make([]byte, b.Bytes)
		if err := runtime.Generate(ctx, g.Dir, b, memory); err != nil {
			return nil, err
		}
		c.memory[b.Name] = memory
	}
	return c, nil
}

// check checks a program's results. Evaluating expectations is slow for hundreds of megabytes, so results that equal earlier correct ones
// bit by bit are accepted.
func (c *sharedContents) check(ctx context.Context, g *dag.Graph, program *runtime.Program) error {
	same := true
	for _, id := range resultsOf(g) {
		name := g.Buffers[id].Name
		same = same && bytes.Equal(c.memory[name], c.right[name])
	}
	if same {
		return nil
	}
	results, err := program.Finish(ctx)
	switch {
	case errors.Is(err, os.ErrNotExist): // no reference for this size
	case err != nil:
		return err
	case len(results.Failed()) > 0:
		return fmt.Errorf("%s: %s", results.Failed()[0].Buffer, results.Failed()[0].First)
	}
	for _, id := range resultsOf(g) {
		name := g.Buffers[id].Name
		c.right[name] = append(c.right[name][:0], c.memory[name]...)
	}
	return nil
}

func measureCount(ctx context.Context, s *settings, p cudart.Platform, g *dag.Graph, shared *sharedContents) (*chunkRow, error) {
	machine := runtime.MachineOf(p)
	plan, err := planner.New(ctx, g, planner.Options{Machine: machine, Streams: s.streams})
	if err != nil {
		return nil, err
	}
	row := &chunkRow{Nodes: g.Len(), Streams: len(plan.Streams), Times: map[string][]float64{}, Predicted: plan.Stats.MakespanUS}
	for _, mode := range []runtime.Mode{runtime.Streams, runtime.Captured} {
		for _, id := range resultsOf(g) {
			spoil(shared.memory[g.Buffers[id].Name])
		}
		times, err := replayTimes(ctx, s.rounds, p, g, plan, mode, shared)
		if err != nil {
			return nil, err
		}
		row.Times[mode.String()] = times
	}
	return row, nil
}

// replayTimes makes a program, times its replays, and checks its results.
func replayTimes(ctx context.Context, rounds int, p cudart.Platform, g *dag.Graph, plan *planner.Plan, mode runtime.Mode, shared *sharedContents) (times []float64, err error) {
	program, err := runtime.New(ctx, g, plan, p, runtime.Options{Mode: mode, Bind: shared.memory})
	if err != nil {
		return nil, err
	}
	c := &contestants{whole: g, programs: map[string]*runtime.Program{byStreams: program}}
	defer func() { err = errors.Join(err, c.close()) }()
	for round := range rounds + 2 {
		us, err := c.replay(ctx, byStreams)
		if err != nil {
			return nil, err
		}
		if round >= 2 {
			times = append(times, us)
		}
	}
	return times, shared.check(ctx, g, program)
}

func chunkTable(rows []*chunkRow, p cudart.Platform, s settings) table {
	t := table{title: fmt.Sprintf("Chunks on %s: milliseconds per replay, medians of %d rounds", p.Devices()[0].Name, s.rounds),
		head:  []string{"workload", "chunks", "nodes", "streams used", "streams", "graph", "predicted"},
		notes: []string{"Predicted without a profile, from the machine's figures."}}
	for _, r := range rows {
		t.row(r.Name, fmt.Sprint(r.Chunks), fmt.Sprint(r.Nodes), fmt.Sprint(r.Streams), ms(median(r.Times[runtime.Streams.String()])),
			ms(median(r.Times[runtime.Captured.String()])), ms(r.Predicted))
	}
	return t
}
