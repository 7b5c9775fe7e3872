// The GrCUDA workloads: one stream, streams, one graph, and C++ written by hand, in paired rounds, with the bound by the
// hardware and the predicted times.

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/dagrun/dagrun/cudart"
	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/planner"
	"github.com/dagrun/dagrun/planner/model"
	"github.com/dagrun/dagrun/runtime"
)

// contestants are the programs that replay once in each round, by name.
type contestants struct {
	whole    *dag.Graph // the suite's own nodes
	programs map[string]*runtime.Program
	hand     *handwritten
	inflight int
}

func (c *contestants) close() (err error) {
	for _, name := range []string{bySerial, byStreams, byGraph, byInflight} {
		if c.programs[name] != nil {
			err = errors.Join(err, c.programs[name].Close())
		}
	}
	if c.hand != nil {
		err = errors.Join(err, c.hand.close())
	}
	return err
}

// replay returns the microseconds of one replay or, for replays in flight, from one result to the next.
func (c *contestants) replay(ctx context.Context, name string) (float64, error) {
	switch name {
	case byHand:
		return c.hand.process.replay()
	case byInflight:
		return steadyState(ctx, c.programs[name], c.inflight)
	}
	began := time.Now()
	err := c.programs[name].Run(ctx, 1)
	return float64(time.Since(began).Nanoseconds()) / 1e3, err
}

func measureSuite(ctx context.Context, s settings, p cudart.Platform) (any, []table, error) {
	var rows []*suiteRow
	for _, w := range workloads() {
		if !s.wanted(w.name) {
			continue
		}
		row, err := measureWorkload(ctx, &s, p, w)
		if err != nil {
			return nil, nil, fmt.Errorf("%s: %w", w.name, err)
		}
		fmt.Fprintf(os.Stderr, "measured %s\n", w.name)
		rows = append(rows, row)
	}
	return rows, suiteTables(rows, p, s), nil
}

func measureWorkload(ctx context.Context, s *settings, p cudart.Platform, w workload) (row *suiteRow, err error) {
	chunks := s.chunksOf(&w)
	whole, err := w.load(s, 1)
	if err != nil {
		return nil, err
	}
	row = &suiteRow{Name: w.name, Chunks: chunks, Times: map[string][]float64{}, Predicted: map[string]float64{}, Bound: boundOf(whole)}
	if !s.small {
		row.GrCUDA = w.grcuda * 1e3
	}
	machine := runtime.MachineOf(p)
	flights := w.flights
	row.Flights = flights.String()
	c := &contestants{whole: whole, programs: map[string]*runtime.Program{}, inflight: flights.count}
	defer func() { err = errors.Join(err, c.close()) }()

	// The suite's own nodes on one stream. This run also gives the profile, because each node is alone on the device.
	serial, profile, err := profileOf(ctx, whole, p, machine)
	if err != nil {
		return nil, err
	}
	c.programs[bySerial] = serial.program
	row.Predicted[bySerial] = serial.predicted
	if c.programs[byInflight], err = newInflight(ctx, whole, p, flights.options(machine, profile, s.streams), flights.count); err != nil {
		return nil, err
	}
	g := whole
	if chunks > 1 {
		if g, err = w.load(s, chunks); err != nil {
			return nil, err
		}
		var cut *profiledProgram
		if cut, profile, err = profileOf(ctx, g, p, machine); err != nil {
			return nil, err
		}
		if err := cut.program.Close(); err != nil {
			return nil, err
		}
	}
	row.Nodes = g.Len()
	began := time.Now()
	plan, err := planner.New(ctx, g, planner.Options{Machine: machine, Profile: profile, Streams: s.streams})
	if err != nil {
		return nil, err
	}
	row.PlanUS = float64(time.Since(began).Nanoseconds()) / 1e3
	row.Streams, row.Waits, row.Least = len(plan.Streams), plan.Stats.Waits, plan.Stats.LowerBoundUS
	if row.Predicted[byStreams], err = predicted(planner.Simulate(g, plan, machine, profile)); err != nil {
		return nil, err
	}
	if row.Predicted[byGraph], err = predicted(model.SimulateGraph(g, plan, machine, profile)); err != nil {
		return nil, err
	}
	if c.programs[byStreams], err = runtime.New(ctx, g, plan, p, runtime.Options{}); err != nil {
		return nil, err
	}
	if c.programs[byGraph], err = runtime.New(ctx, g, plan, p, runtime.Options{Mode: runtime.Captured}); err != nil {
		return nil, err
	}
	if c.hand, err = startHand(ctx, s, g, w.name, chunks); err != nil {
		return nil, err
	}
	if err := runRounds(ctx, s.rounds, c, row.Times); err != nil {
		return nil, err
	}
	row.Checks, err = checkResults(ctx, c)
	return row, err
}

// runRounds lets every contender replay once per round, starting with a different one each time. The first two rounds are warm-up.
func runRounds(ctx context.Context, rounds int, c *contestants, times map[string][]float64) error {
	names := []string{bySerial, byStreams, byGraph, byInflight}
	if c.hand != nil {
		names = append(names, byHand)
	}
	for round := range rounds + 2 {
		for k := range names {
			name := names[(round+k)%len(names)]
			us, err := c.replay(ctx, name)
			if err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			if round >= 2 {
				times[name] = append(times[name], us)
			}
		}
	}
	return nil
}

// checkResults checks the expected results and compares, bit by bit, C++ with the graph and every replay in flight with one stream.
func checkResults(ctx context.Context, c *contestants) (string, error) {
	text := "met"
	for _, name := range []string{bySerial, byStreams, byGraph} {
		results, err := c.programs[name].Finish(ctx)
		switch {
		case errors.Is(err, os.ErrNotExist):
			text = "no reference for this size"
		case err != nil:
			return "", err
		case len(results.Failed()) > 0:
			return fmt.Sprintf("FAILED on %s: %s: %s", name, results.Failed()[0].Buffer, results.Failed()[0].First), nil
		}
	}
	if err := compareInflight(ctx, c.whole, c.programs[byInflight], c.programs[bySerial], c.inflight); err != nil {
		return "FAILED in flight: " + err.Error(), nil
	}
	if c.hand == nil {
		return text, nil
	}
	if err := c.hand.compare(ctx, c.programs[byGraph]); err != nil {
		return "FAILED: " + err.Error(), nil
	}
	return text + ", C++ equal", nil
}

// handwritten is the C++ program running one workload.
type handwritten struct {
	graph   *dag.Graph
	folder  string
	process *contender
}

func startHand(ctx context.Context, s *settings, g *dag.Graph, name string, chunks int) (h *handwritten, err error) {
	if s.suite == "" {
		return nil, nil
	}
	h = &handwritten{graph: g}
	if h.folder, err = os.MkdirTemp("", "dagrun-bench-"); err != nil {
		return nil, err
	}
	if err = describe(ctx, g, h.folder); err == nil {
		h.process, err = startContender(s.suite, h.folder, name, fmt.Sprint(chunks))
	}
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(h.folder))
	}
	return h, nil
}

func (h *handwritten) close() error {
	return errors.Join(h.process.close(), os.RemoveAll(h.folder))
}

// compare makes the C++ program write its results and compares them with a dagrun program's bit by bit, including the signs of zeros:
// kernels and launch shapes are the same, so results must be too.
func (h *handwritten) compare(ctx context.Context, with *runtime.Program) error {
	if _, err := h.process.ask("dump", "dumped"); err != nil {
		return err
	}
	for _, id := range resultsOf(h.graph) {
		b := &h.graph.Buffers[id]
		got, err := os.ReadFile(filepath.Join(h.folder, fmt.Sprintf("result-%d.bin", id)))
		if err != nil {
			return err
		}
		want := make([]byte, b.Bytes)
		if err := with.Read(ctx, dag.BufferID(id), want); err != nil {
			return err
		}
		if !bytes.Equal(got, want) {
			return fmt.Errorf("the bits of %s differ from those of the C++ program", b.Name)
		}
	}
	return nil
}
