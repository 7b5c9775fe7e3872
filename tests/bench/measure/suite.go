// The GrCUDA workloads: one stream, streams, one graph, and C++ written by hand, in paired rounds; what the hardware allows; and
// what the planner foresaw.

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"time"

	"github.com/dagrun/dagrun/cudart"
	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/kernels"
	"github.com/dagrun/dagrun/planner"
	"github.com/dagrun/dagrun/runtime"
)

// workload is a pipeline with its real size. GrCUDA is its authors' own C++ on an H200 at that size, in milliseconds, the best
// of its variants with prefetching.
type workload struct {
	name   string
	params []dag.Override
	grcuda float64
}

func workloads() []workload {
	set := func(pairs ...string) []dag.Override {
		var list []dag.Override
		for i := 0; i < len(pairs); i += 2 {
			list = append(list, dag.Override{Name: pairs[i], Value: pairs[i+1]})
		}
		return list
	}
	return []workload{
		{"vec", set("n", "160000000"), 32.6},
		{"bs", set("n", "10000000"), 16.8},
		{"ml", set("n", "1600000"), 462},
		{"hits", set("n", "25000000", "stride", "15450849", "inverse", "10951649"), 196},
		{"img", set("side", "6400"), 80.4},
		{"dl", set("side", "12000"), 60.0},
	}
}

// The rates of the physical bound, in bytes a microsecond: pinned copies and device memory as measured on an H200.
const (
	upRate     = 55.0e3
	downRate   = 55.4e3
	memoryRate = 4.1e6
)

// suiteRow is what was found for one workload. Times are microseconds, one for each round.
type suiteRow struct {
	Name      string               `json:"name"`
	Nodes     int                  `json:"nodes"`
	Streams   int                  `json:"streams"`
	Waits     int                  `json:"waits"`
	PlanUS    float64              `json:"plan_us"`
	Times     map[string][]float64 `json:"times_us"`
	Predicted map[string]float64   `json:"predicted_us"`
	Bound     bound                `json:"bound_us"`
	GrCUDA    float64              `json:"grcuda_us"`
	Checks    string               `json:"checks"`
}

// bound is the least time of a workload by what it must move: each direction of the link and the memory work side by side.
type bound struct {
	Up     float64 `json:"up"`
	Down   float64 `json:"down"`
	Memory float64 `json:"memory"`
}

func (b bound) least() float64 { return max(b.Up, b.Down, b.Memory) }

func boundOf(g *dag.Graph) bound {
	var b bound
	for i := range g.Nodes {
		n := &g.Nodes[i]
		if n.Kind != dag.Memcpy {
			b.Memory += float64(n.Work.Bytes) / memoryRate
			continue
		}
		size := float64(n.Copy.Src.Hi - n.Copy.Src.Lo)
		if g.Buffers[n.Copy.Dst.Buffer].Place == dag.Host {
			b.Down += size / downRate
		} else {
			b.Up += size / upRate
		}
	}
	return b
}

// The contenders in the order of the table.
const (
	bySerial  = "one stream"
	byStreams = "streams"
	byGraph   = "graph"
	byHand    = "C++"
)

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

func loadPipeline(file string, params []dag.Override) (*dag.Graph, error) {
	source, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	g, found := dag.Parse(source, dag.Options{Name: file, Dir: filepath.Dir(file), Library: kernels.Library(), Params: params})
	return g, found.Err()
}

func measureWorkload(ctx context.Context, s *settings, p cudart.Platform, w workload) (row *suiteRow, err error) {
	params := w.params
	if s.small {
		params, w.grcuda = nil, 0
	}
	g, err := loadPipeline(filepath.Join(s.pipelines, w.name+".yaml"), params)
	if err != nil {
		return nil, err
	}
	row = &suiteRow{Name: w.name, Nodes: g.Len(), Times: map[string][]float64{}, Predicted: map[string]float64{}, Bound: boundOf(g), GrCUDA: w.grcuda * 1e3}
	machine := runtime.MachineOf(p)
	programs := map[string]*runtime.Program{}
	defer func() {
		for _, name := range []string{bySerial, byStreams, byGraph} {
			if programs[name] != nil {
				err = errors.Join(err, programs[name].Close())
			}
		}
	}()

	// One stream, which is also the profiled run: alone on the device, each node takes what it takes.
	plan, err := planner.New(ctx, g, planner.Options{Strategy: "serial", Streams: 1, Machine: machine})
	if err != nil {
		return nil, err
	}
	serial, err := runtime.New(ctx, g, plan, p, runtime.Options{})
	if err != nil {
		return nil, err
	}
	programs[bySerial] = serial
	trace, err := serial.Trace(ctx, 3)
	if err != nil {
		return nil, err
	}
	profile := trace.Profile(serial)
	if row.Predicted[bySerial], err = predicted(planner.Simulate(g, plan, machine, profile)); err != nil {
		return nil, err
	}
	began := time.Now()
	if plan, err = planner.New(ctx, g, planner.Options{Machine: machine, Profile: profile, Streams: s.streams}); err != nil {
		return nil, err
	}
	row.PlanUS = float64(time.Since(began).Nanoseconds()) / 1e3
	row.Streams, row.Waits = len(plan.Streams), plan.Stats.Waits
	if row.Predicted[byStreams], err = predicted(planner.Simulate(g, plan, machine, profile)); err != nil {
		return nil, err
	}
	if row.Predicted[byGraph], err = predicted(planner.SimulateGraph(g, plan, machine, profile)); err != nil {
		return nil, err
	}
	if programs[byStreams], err = runtime.New(ctx, g, plan, p, runtime.Options{}); err != nil {
		return nil, err
	}
	if programs[byGraph], err = runtime.New(ctx, g, plan, p, runtime.Options{Mode: runtime.Captured}); err != nil {
		return nil, err
	}
	hand, err := startHand(ctx, s, g, w.name)
	if err != nil {
		return nil, err
	}
	if hand != nil {
		defer func() { err = errors.Join(err, hand.close()) }()
	}
	if err := runRounds(ctx, s.rounds, programs, hand, row.Times); err != nil {
		return nil, err
	}
	row.Checks, err = checkResults(ctx, programs, hand)
	return row, err
}

func predicted(t *planner.Timeline, err error) (float64, error) {
	if err != nil {
		return 0, err
	}
	return t.MakespanUS, nil
}

// runRounds has every contender replay once a round; who begins changes from round to round. The first two rounds warm up.
func runRounds(ctx context.Context, rounds int, programs map[string]*runtime.Program, hand *handwritten, times map[string][]float64) error {
	names := []string{bySerial, byStreams, byGraph}
	if hand != nil {
		names = append(names, byHand)
	}
	for round := range rounds + 2 {
		for k := range names {
			name := names[(round+k)%len(names)]
			var us float64
			var err error
			if name == byHand {
				us, err = hand.process.replay()
			} else {
				began := time.Now()
				err = programs[name].Run(ctx, 1)
				us = float64(time.Since(began).Nanoseconds()) / 1e3
			}
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

// checkResults checks expectations and compares everyone's results bit by bit with those of one stream.
func checkResults(ctx context.Context, programs map[string]*runtime.Program, hand *handwritten) (string, error) {
	text := "met"
	for _, name := range []string{bySerial, byStreams, byGraph} {
		results, err := programs[name].Finish(ctx)
		switch {
		case errors.Is(err, os.ErrNotExist):
			text = "no reference for this size"
		case err != nil:
			return "", err
		case len(results.Failed()) > 0:
			return fmt.Sprintf("FAILED on %s: %s: %s", name, results.Failed()[0].Buffer, results.Failed()[0].First), nil
		}
	}
	if hand == nil {
		return text, nil
	}
	if err := hand.compare(ctx, programs[bySerial]); err != nil {
		return "FAILED: " + err.Error(), nil
	}
	return text + ", C++ equal", nil
}

// handwritten is the C++ program on one workload.
type handwritten struct {
	graph   *dag.Graph
	folder  string
	process *contender
}

func startHand(ctx context.Context, s *settings, g *dag.Graph, name string) (h *handwritten, err error) {
	if s.suite == "" {
		return nil, nil
	}
	h = &handwritten{graph: g}
	if h.folder, err = os.MkdirTemp("", "dagrun-bench-"); err != nil {
		return nil, err
	}
	if err = describe(ctx, g, h.folder); err == nil {
		h.process, err = startContender(s.suite, h.folder, name)
	}
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(h.folder))
	}
	return h, nil
}

func (h *handwritten) close() error {
	return errors.Join(h.process.close(), os.RemoveAll(h.folder))
}

// compare has the C++ side write its results and compares them with a program's. Zeros of either sign are told apart: kernels
// and launch shapes are the same, so every bit should be.
func (h *handwritten) compare(ctx context.Context, with *runtime.Program) error {
	if _, err := h.process.ask("dump", "dumped"); err != nil {
		return err
	}
	for i := range h.graph.Nodes {
		n := &h.graph.Nodes[i]
		if n.Kind != dag.Memcpy || h.graph.Buffers[n.Copy.Dst.Buffer].Place != dag.Host {
			continue
		}
		id := n.Copy.Dst.Buffer
		b := &h.graph.Buffers[id]
		got, err := os.ReadFile(filepath.Join(h.folder, fmt.Sprintf("result-%d.bin", id)))
		if err != nil {
			return err
		}
		want := make([]byte, b.Bytes)
		if err := with.Read(ctx, id, want); err != nil {
			return err
		}
		if !bytes.Equal(got, want) {
			return fmt.Errorf("other bits in %s than C++ has", b.Name)
		}
	}
	return nil
}

func suiteTables(rows []*suiteRow, p cudart.Platform, s settings) []table {
	sizes := "real sizes"
	if s.small {
		sizes = "the files' own sizes"
	}
	times := table{title: fmt.Sprintf("GrCUDA suite on %s, %s: milliseconds a replay, medians of %d paired rounds", p.Devices()[0].Name, sizes, s.rounds),
		head: []string{"workload", "nodes", "one stream", "streams", "graph", "C++ by hand", "GrCUDA C++", "bound", "up", "down", "memory", "results"}}
	ratios := table{title: "GrCUDA suite: ratios, medians of the rounds' own",
		head: []string{"workload", "one stream / best", "streams / C++", "graph / C++", "GrCUDA / best", "best / bound"}}
	foreseen := table{title: "GrCUDA suite: predicted and measured, after one profiled run on one stream (ms)",
		head: []string{"workload", "one stream", "predicted", "error", "streams", "predicted", "error", "graph", "predicted", "error"}}
	ms := func(us float64) string { return figure(us / 1e3) }
	speedup, errorsFound := 0.0, []float64{}
	for _, r := range rows {
		best := byStreams
		if median(r.Times[byGraph]) < median(r.Times[byStreams]) {
			best = byGraph
		}
		times.row(r.Name, fmt.Sprint(r.Nodes), ms(median(r.Times[bySerial])), ms(median(r.Times[byStreams])), ms(median(r.Times[byGraph])), ms(median(r.Times[byHand])),
			ms(r.GrCUDA), ms(r.Bound.least()), ms(r.Bound.Up), ms(r.Bound.Down), ms(r.Bound.Memory), r.Checks)
		gain := medianRatio(r.Times[bySerial], r.Times[best])
		speedup += math.Log(gain)
		ratios.row(r.Name, ratio(gain, 1), ratio(medianRatio(r.Times[byStreams], r.Times[byHand]), 1), ratio(medianRatio(r.Times[byGraph], r.Times[byHand]), 1),
			ratio(r.GrCUDA, median(r.Times[best])), ratio(median(r.Times[best]), r.Bound.least()))
		cells := []string{r.Name}
		for _, name := range []string{bySerial, byStreams, byGraph} {
			measured := median(r.Times[name])
			off := math.Abs(r.Predicted[name]-measured) / measured
			errorsFound = append(errorsFound, off)
			cells = append(cells, ms(measured), ms(r.Predicted[name]), fmt.Sprintf("%.1f%%", 100*off))
		}
		foreseen.row(cells...)
	}
	if len(rows) > 0 {
		ratios.notes = append(ratios.notes, fmt.Sprintf("Geometric mean over one stream: %.3f.", math.Exp(speedup/float64(len(rows)))))
		foreseen.notes = append(foreseen.notes, fmt.Sprintf("Median error: %.1f%%.", 100*median(errorsFound)))
	}
	return []table{times, ratios, foreseen}
}
