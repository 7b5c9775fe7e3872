// dagrun trace FILE: measures when each node ran, and writes a file for Perfetto and a table that compares it with the prediction.

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/dagrun/dagrun/cudart/cupti"
	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/internal/recording"
	"github.com/dagrun/dagrun/planner"
	"github.com/dagrun/dagrun/planner/analysis"
	"github.com/dagrun/dagrun/runtime"
)

func (a *app) traceCommand() *cobra.Command {
	var out, html, against string
	c := &cobra.Command{
		Use:   "trace FILE",
		Short: "Measure when each node runs; a timeline for Perfetto",
		Long: `Replay a pipeline, measure when each node ran and write the timeline, with the prediction
beside it, in the Trace Event Format: open it at https://ui.perfetto.dev or chrome://tracing.
Where NVIDIA's CUPTI is found (it comes with the CUDA toolkit; CUDA_HOME says where) the times are
those of the kernels and copies themselves, otherwise those of an event before and after every node.

The last replay is explained: what limits it (submission, an engine, or a chain of nodes), its
critical path, why engines were idle, which waits delayed nodes, and how much memory was in use.
A traced replay takes longer than a plain one; by how much is printed.

Of a recording (dagrun record), the timeline has the calls of the program at the times of the host.
For a graph passed to dagrun.replan, fast.trace(FILE) in the program measures when each node runs.`,
		Example: `  dagrun trace pipelines/chunks.yaml
  dagrun trace pipelines/chunks.yaml --html chunks.html
  dagrun trace pipelines/chunks.yaml --output json -o /dev/null | jq .analysis.binds
  dagrun trace infer.rec --html infer.html         a recording of dagrun record`,
		Args: oneFile,
		RunE: func(c *cobra.Command, args []string) error {
			if err := a.checkFlags(c); err != nil {
				return err
			}
			if recording.Recognize(args[0]) {
				if err := onlyFlags(c, args[0], "out", "html", "confined"); err != nil {
					return err
				}
				return a.traceRecording(c.Context(), args[0], out, html)
			}
			if a.flags.iterations < 1 {
				return errors.New("--iterations 0: want at least 1 to trace")
			}
			if err := a.findPlace(); err != nil {
				return err
			}
			a.progress.begin()
			ctx, done := a.limited(c.Context())
			defer done()
			return a.amongRanks(ctx, func(ctx context.Context) error { return a.tracePipeline(ctx, args[0], out, html, against) })
		},
	}
	a.deviceRunFlags(c)
	a.rankFlags(c)
	f, values := c.Flags(), a.values(c)
	a.graphFlag(c, graphOff, "replay as one CUDA graph: the `mode` is auto (if that is faster), on (--graph alone), off, or built (nodes are added one by one)")
	f.IntVar(&values.iterations, "iterations", 3, "trace `N` replays, after a warm-up")
	f.StringVarP(&out, "out", "o", "", "write the timeline to this `file` (default: the pipeline's name with .trace.json)")
	f.StringVar(&html, "html", "", "also write a page with the timeline to this `file`; it needs no network")
	f.StringVar(&against, "against", "", againstUsage)
	a.cacheFlag(c)
	return c
}

// tracedNode is one node in the table: medians over the replays.
type tracedNode struct {
	Node      string  `json:"node"`                  // its name
	Stream    int32   `json:"stream"`                // that it ran on
	Start     float64 `json:"start_us"`              // from the start of the first node
	End       float64 `json:"end_us"`                // from the start of the first node
	US        float64 `json:"duration_us"`           // measured
	Predicted float64 `json:"predicted_duration_us"` // predicted
}

// traceReport is the JSON document of trace.
type traceReport struct {
	Version   int              `json:"version"`              // 1
	Command   string           `json:"command"`              // trace
	Name      string           `json:"name"`                 // the pipeline
	Backend   string           `json:"backend"`              // cuda or cpu
	Device    string           `json:"device"`               // the first device
	File      string           `json:"file"`                 // the timeline that was written
	Page      string           `json:"page,omitempty"`       // the page of --html
	Cores     int              `json:"cores,omitempty"`      // of a CPU that ran everything
	Predicted float64          `json:"predicted_us"`         // what the plan was predicted to take
	Nodes     []tracedNode     `json:"nodes"`                // of the last replay, by start
	BodyNodes []tracedBodyNode `json:"body_nodes,omitempty"` // the nodes in loops and branches, as far as the last replay shows them
	Rank      *rankReport      `json:"rank,omitempty"`       // with several ranks
	*runtime.Trace
	Analysis *analysis.Analysis `json:"analysis"` // of the last replay
	Plan     json.RawMessage    `json:"plan"`     // the plan that ran
}

func (a *app) tracePipeline(ctx context.Context, name, out, html, against string) (err error) {
	recorder := a.recorder()
	p, err := a.prepare(ctx, name, nil, func(g *dag.Graph) error {
		if out == "" {
			out = traceName(name, g)
		}
		a.flags.sanitize = sanitizeAuto // as in the runs that learned
		a.sanitize = a.sanitizeFor(g)
		return a.checkOutputs(g, []namedFile{{role: "-o", name: out}, {role: "--html", name: html}}, nil)
	})
	if err != nil {
		return err
	}
	defer func() { err = closing(err, p.platform) }()
	if _, err := racesAllowed(p.name, p.graph, p.plan, false); err != nil {
		return err
	}
	other, err := a.against(ctx, p.graph, against, html, p.options)
	if err != nil {
		return err
	}
	trace, err := a.measureTrace(ctx, p, recorder)
	if err != nil {
		return a.pinFault(ctx, p, err, &runFlags{})
	}
	predict := planner.Simulate
	if trace.Mode != runtime.Streams.String() {
		predict = planner.SimulateGraph
	}
	p.options.Profile = a.knownTo(p)
	predicted, err := predict(p.graph, p.plan, p.options.Machine, p.options.Profile)
	if err != nil {
		return err
	}
	if err := predictAgain(p.graph, p.plan, p.options, a.flags.streams); err != nil {
		return err
	}
	machine, device := runtime.MachineOf(p.platform), p.platform.Devices()[0].Name
	write := func(w io.Writer) error { return trace.WriteChrome(w, p.graph, p.plan, predicted) }
	if a.world != nil {
		all, err := a.gatherTraces(ctx, p, trace)
		if err != nil {
			return err
		}
		if a.place.Rank > 0 { // rank 0 writes the files of all
			out, html = "", ""
		}
		if html != "" {
			if err := saveRanksPage(ctx, html, all, device, p.options.Machine, machine); err != nil {
				return err
			}
		}
		write = func(w io.Writer) error { return runtime.WriteChromeRanks(w, all) }
	} else if html != "" {
		if err := savePage(ctx, html, p.graph, p.plan, predicted, p.options.Machine, courseOf(trace, device, machine), other); err != nil {
			return err
		}
	}
	if out == "-" {
		a.answered = true
		return write(a.stdout)
	}
	if out != "" {
		if err := writeOut(ctx, out, write); err != nil {
			return err
		}
	}
	report := &traceReport{Version: jsonVersion, Command: "trace", Name: p.graph.Name, Backend: p.platform.Name(), Device: device, Cores: machine.Cores,
		File: out, Page: html, Predicted: predicted.MakespanUS, Nodes: tracedNodes(p, trace, predicted), Trace: trace, Rank: a.rankReport(),
		BodyNodes: tracedBodies(p.graph, p.plan, &trace.Replays[len(trace.Replays)-1])}
	if report.Analysis, err = trace.Analyse(p.graph, p.plan, machine, len(trace.Replays)-1); err != nil {
		return err
	}
	if a.flags.output == "json" {
		var plan bytes.Buffer
		if err := p.plan.EncodeJSON(&plan, p.graph); err != nil {
			return err
		}
		report.Plan = plan.Bytes()
		return a.answer(report)
	}
	guess, _, unknown := strings.Cut(p.plan.GuessText(p.graph), ":")
	if unknown {
		guess = ", a guess with " + guess
	}
	return a.printTrace(report, guess, p.platform)
}

// knownTo is what earlier runs learned about a pipeline's nodes on this device, and what a profile says.
func (a *app) knownTo(p *prepared) *planner.Profile {
	if a.flags.machine != "" {
		return p.options.Profile
	}
	recalled := runtime.Recall(p.graph, p.platform.Platform, a.openCache(), runtime.LearnOptions{Plan: p.options, Replays: replaysOfRuns}, a.memoryMode())
	for _, w := range recalled.Warnings {
		a.warn("%s", w)
	}
	return runtime.MergeProfiles(recalled.Known, p.options.Profile)
}

// traceName is the file that a timeline is written to unless -o names one.
func traceName(pipeline string, g *dag.Graph) string {
	if pipeline == "-" {
		return filepath.Base(g.Name) + ".trace.json"
	}
	return strings.TrimSuffix(filepath.Base(pipeline), filepath.Ext(pipeline)) + ".trace.json"
}

// recorder switches CUPTI on, which must happen before the driver is opened; nil if there is no CUPTI, or no GPU is asked for.
func (a *app) recorder() runtime.Recorder {
	if n, err := cpuDevices(a.flags.backend, 1); n > 0 || err != nil || a.place.Ranks > 1 {
		return nil // the clocks of ranks are compared by events
	}
	library, err := cupti.Prepare()
	if err != nil {
		a.log.Info("nodes are traced by events", "because", err)
		return nil
	}
	a.log.Info("nodes are traced by CUPTI", "library", library.Name(), "interface", library.Version())
	return library
}

func (a *app) measureTrace(ctx context.Context, p *prepared, recorder runtime.Recorder) (trace *runtime.Trace, err error) {
	options := a.programOptions(nil)
	if p.platform.Name() == "cuda" {
		options.Recorder = recorder
	}
	program, err := runtime.New(ctx, p.graph, p.plan, p.platform.Platform, options)
	if err != nil {
		return nil, err
	}
	defer func() { err = closing(err, program) }()
	a.noteStreams(program, options.Mode)
	a.progress.report("trace", 0, 0)
	return program.Trace(ctx, a.flags.iterations)
}

// tracedNodes returns the last replay's nodes in order of their starts.
func tracedNodes(p *prepared, trace *runtime.Trace, predicted *planner.Timeline) []tracedNode {
	spans := trace.Replays[len(trace.Replays)-1].Spans
	nodes := make([]tracedNode, 0, len(spans))
	for i := range spans {
		s := &spans[i]
		nodes = append(nodes, tracedNode{Node: p.graph.Nodes[i].Name, Stream: s.Stream, Start: s.Start, End: s.End, US: s.End - s.Start,
			Predicted: predicted.Nodes[i].End - predicted.Nodes[i].Start})
	}
	slices.SortStableFunc(nodes, func(x, y tracedNode) int {
		switch {
		case x.Start < y.Start:
			return -1
		case x.Start > y.Start:
			return 1
		}
		return 0
	})
	return nodes
}

// printTrace prints a table; guess says that what is predicted is one.
func (a *app) printTrace(r *traceReport, guess string, platform *opened) error {
	a.progress.clear()
	if !a.flags.quiet {
		last := 0.0
		for i := range r.Nodes {
			last = max(last, r.Nodes[i].End)
		}
		_ = a.stdout.printf("%s: %s traced on %s, %s without tracing, %s predicted%s; %s, %s\n\n", r.Name, a.paint(a.stdout, bold, duration(last)), platform.place(),
			duration(r.PlainUS), duration(r.Predicted), guess, counted(len(r.Replays), "replay"), measuredBy(r.Trace))
		for _, line := range r.Analysis.Lines() {
			if err := a.stdout.printf("%s\n", line); err != nil {
				return err
			}
		}
		fmt.Fprintln(a.stdout)
		table := newTable("start us", "end us", "takes us", "predicted us", "stream", "node")
		for i := range r.Nodes[:min(len(r.Nodes), mostTraced)] {
			n := &r.Nodes[i]
			table.row(fixed(n.Start), fixed(n.End), fixed(n.US), fixed(n.Predicted), strconv.Itoa(int(n.Stream)), n.Node)
		}
		if err := table.write(a.stdout, a.lineWidth()); err != nil {
			return err
		}
		if more := len(r.Nodes) - mostTraced; more > 0 {
			fmt.Fprintf(a.stdout, "and %s more\n", counted(more, "node"))
		}
		fmt.Fprintln(a.stdout)
		if err := a.printBodies(r.Trace, r.BodyNodes); err != nil {
			return err
		}
	}
	if a.flags.quiet {
		return nil
	}
	if r.Page != "" {
		fmt.Fprintf(a.stdout, "wrote %s; open it in a browser\n", r.Page)
	}
	if r.File == "" { // another rank has written it
		return nil
	}
	_, err := fmt.Fprintf(a.stdout, "wrote %s; open it at https://ui.perfetto.dev\n", r.File)
	return err
}

// measuredBy returns the name of what measured the times.
func measuredBy(t *runtime.Trace) string {
	switch {
	case t.Source == "cupti":
		return "measured by CUPTI"
	case t.Fallback != "":
		return "measured by events, since CUPTI's records could not be used: " + t.Fallback
	}
	return "measured by events"
}
