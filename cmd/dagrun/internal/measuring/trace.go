// dagrun trace FILE: measures when each node ran, and writes a file for Perfetto and a table that compares it with the prediction.

package measuring

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

	"github.com/dagrun/dagrun/cmd/dagrun/internal/cli"
	"github.com/dagrun/dagrun/cmd/dagrun/internal/flags"
	"github.com/dagrun/dagrun/cmd/dagrun/internal/pictures"
	"github.com/dagrun/dagrun/cmd/dagrun/internal/runs"
	"github.com/dagrun/dagrun/cmd/dagrun/internal/session"
	"github.com/dagrun/dagrun/cudart/cupti"
	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/internal/recording"
	"github.com/dagrun/dagrun/planner"
	"github.com/dagrun/dagrun/planner/analysis"
	"github.com/dagrun/dagrun/planner/model"
	"github.com/dagrun/dagrun/planner/plan"
	"github.com/dagrun/dagrun/runtime"
	"github.com/dagrun/dagrun/runtime/learn"
)

func (u *Commands) TraceCommand() *cobra.Command {
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
		Args: flags.OneFile,
		RunE: func(c *cobra.Command, args []string) error {
			if err := u.CheckFlags(c); err != nil {
				return err
			}
			if recording.Recognize(args[0]) {
				if err := cli.OnlyFlags(c, args[0], "out", "html", "confined"); err != nil {
					return err
				}
				return u.Recordings.TraceRecording(c.Context(), args[0], out, html)
			}
			if u.Flags.Iterations < 1 {
				return errors.New("--iterations 0: want at least 1 to trace")
			}
			if err := u.FindPlace(); err != nil {
				return err
			}
			u.Progress.Begin()
			ctx, done := u.WithTimeout(c.Context())
			defer done()
			return u.AmongRanks(ctx, func(ctx context.Context) error { return u.tracePipeline(ctx, args[0], out, html, against) })
		},
	}
	u.DeviceRunFlags(c)
	u.RankFlags(c)
	f, values := c.Flags(), u.ValuesOf(c)
	u.GraphFlag(c, flags.GraphOff, "replay as one CUDA graph: the `mode` is auto (if that is faster), on (--graph alone), off, or built (nodes are added one by one)")
	f.IntVar(&values.Iterations, "iterations", 3, "trace `N` replays, after a warm-up")
	f.StringVarP(&out, "out", "o", "", "write the timeline to this `file` (default: the pipeline's name with .trace.json)")
	f.StringVar(&html, "html", "", "also write a page with the timeline to this `file`; it needs no network")
	f.StringVar(&against, "against", "", pictures.AgainstUsage)
	u.CacheFlag(c)
	u.SanitizeFlag(c)
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

// TraceReport is the JSON document of trace.
type TraceReport struct {
	Version   int                 `json:"version"`              // 1
	Command   string              `json:"command"`              // trace
	Name      string              `json:"name"`                 // the pipeline
	Backend   string              `json:"backend"`              // cuda or cpu
	Device    string              `json:"device"`               // the first device
	File      string              `json:"file"`                 // the timeline that was written
	Page      string              `json:"page,omitempty"`       // the page of --html
	Cores     int                 `json:"cores,omitempty"`      // of a CPU that ran everything
	Predicted float64             `json:"predicted_us"`         // what the plan was predicted to take
	Nodes     []tracedNode        `json:"nodes"`                // of the last replay, by start
	BodyNodes []tracedBodyNode    `json:"body_nodes,omitempty"` // the nodes in loops and branches, as far as the last replay shows them
	Rank      *session.RankReport `json:"rank,omitempty"`       // with several ranks
	*runtime.Trace
	Analysis *analysis.Analysis `json:"analysis"` // of the last replay
	Plan     json.RawMessage    `json:"plan"`     // the plan that ran
}

func (u *Commands) tracePipeline(ctx context.Context, name, out, html, against string) (err error) {
	recorder := u.recorder()
	p, err := u.Prepare(ctx, name, nil, func(g *dag.Graph) error {
		if out == "" {
			out = traceName(name, g)
		}
		u.Sanitize = u.SanitizeFor(g) // as in the runs that learned
		return u.CheckOutputs(g, []cli.NamedFile{{Role: "-o", Name: out}, {Role: "--html", Name: html}}, nil)
	})
	if err != nil {
		return err
	}
	defer func() { err = cli.Closing(err, p.Platform) }()
	if _, err := session.RacesAllowed(p.Name, p.Graph, p.Plan, false); err != nil {
		return err
	}
	other, err := u.Against(ctx, p.Graph, against, html, p.Options)
	if err != nil {
		return err
	}
	trace, err := u.measureTrace(ctx, p, recorder)
	if err != nil {
		return u.PinFault(ctx, p, err, &session.RunFlags{})
	}
	predict := planner.Simulate
	if trace.Mode != runtime.Streams.String() {
		predict = model.SimulateGraph
	}
	p.Options.Profile = u.knownTo(p)
	predicted, err := predict(p.Graph, p.Plan, p.Options.Machine, p.Options.Profile)
	if err != nil {
		return err
	}
	if err := runs.PredictAgain(p.Graph, p.Plan, p.Options, u.Flags.Streams); err != nil {
		return err
	}
	machine, device := runtime.MachineOf(p.Platform), p.Platform.Devices()[0].Name
	write := func(w io.Writer) error { return trace.WriteChrome(w, p.Graph, p.Plan, predicted) }
	if u.World != nil {
		all, err := u.gatherTraces(ctx, p, trace)
		if err != nil {
			return err
		}
		if u.Place.Rank > 0 { // rank 0 writes the files of all
			out, html = "", ""
		}
		if html != "" {
			if err := saveRanksPage(ctx, html, all, device, p.Options.Machine, machine); err != nil {
				return err
			}
		}
		write = func(w io.Writer) error { return runtime.WriteChromeRanks(w, all) }
	} else if html != "" {
		if err := pictures.SavePage(ctx, html, p.Graph, p.Plan, predicted, p.Options.Machine, pictures.CourseOf(trace, device, machine), other); err != nil {
			return err
		}
	}
	if out == "-" {
		u.Answered = true
		return write(u.Stdout)
	}
	if out != "" {
		if err := cli.WriteOut(ctx, out, write); err != nil {
			return err
		}
	}
	report := &TraceReport{Version: cli.JSONVersion, Command: "trace", Name: p.Graph.Name, Backend: p.Platform.Name(), Device: device, Cores: machine.Cores,
		File: out, Page: html, Predicted: predicted.MakespanUS, Nodes: tracedNodes(p, trace, predicted), Trace: trace, Rank: u.RankReport(),
		BodyNodes: tracedBodies(p.Graph, p.Plan, &trace.Replays[len(trace.Replays)-1])}
	if report.Analysis, err = trace.Analyse(p.Graph, p.Plan, machine, len(trace.Replays)-1); err != nil {
		return err
	}
	if u.Flags.Output == "json" {
		var plan bytes.Buffer
		if err := p.Plan.EncodeJSON(&plan, p.Graph); err != nil {
			return err
		}
		report.Plan = plan.Bytes()
		return u.Answer(report)
	}
	guess, _, unknown := strings.Cut(p.Plan.GuessText(p.Graph), ":")
	if unknown {
		guess = ", a guess with " + guess
	}
	return u.printTrace(report, guess, p.Platform)
}

// knownTo is what earlier runs learned about a pipeline's nodes on this device, and what a profile says.
func (u *Commands) knownTo(p *runs.Prepared) *planner.Profile {
	if u.Flags.Machine != "" {
		return p.Options.Profile
	}
	recalled := learn.Recall(p.Graph, p.Platform.Platform, u.OpenCache(), learn.Options{Plan: p.Options, Replays: runs.ReplaysOfRuns}, u.MemoryMode())
	for _, w := range recalled.Warnings {
		u.Warn("%s", w)
	}
	return learn.MergeProfiles(recalled.Known, p.Options.Profile)
}

// traceName is the file that a timeline is written to unless -o names one.
func traceName(pipeline string, g *dag.Graph) string {
	if pipeline == "-" {
		return filepath.Base(g.Name) + ".trace.json"
	}
	return strings.TrimSuffix(filepath.Base(pipeline), filepath.Ext(pipeline)) + ".trace.json"
}

// recorder switches CUPTI on, which must happen before the driver is opened; nil if there is no CUPTI, or no GPU is asked for.
func (u *Commands) recorder() runtime.Recorder {
	if n, err := flags.CPUDevices(u.Flags.Backend, 1); n > 0 || err != nil || u.Place.Ranks > 1 {
		return nil // the clocks of ranks are compared by events
	}
	library, err := cupti.Prepare()
	if err != nil {
		u.Log.Info("nodes are traced by events", "because", err)
		return nil
	}
	u.Log.Info("nodes are traced by CUPTI", "library", library.Name(), "interface", library.Version())
	return library
}

func (u *Commands) measureTrace(ctx context.Context, p *runs.Prepared, recorder runtime.Recorder) (trace *runtime.Trace, err error) {
	options := u.ProgramOptions(nil)
	if p.Platform.Name() == "cuda" {
		options.Recorder = recorder
	}
	program, err := runtime.New(ctx, p.Graph, p.Plan, p.Platform.Platform, options)
	if err != nil {
		return nil, err
	}
	defer func() { err = cli.Closing(err, program) }()
	u.NoteStreams(program, options.Mode)
	u.Progress.Report("trace", 0, 0)
	return program.Trace(ctx, u.Flags.Iterations)
}

// tracedNodes returns the last replay's nodes in order of their starts.
func tracedNodes(p *runs.Prepared, trace *runtime.Trace, predicted *plan.Timeline) []tracedNode {
	spans := trace.Replays[len(trace.Replays)-1].Spans
	nodes := make([]tracedNode, 0, len(spans))
	for i := range spans {
		s := &spans[i]
		nodes = append(nodes, tracedNode{Node: p.Graph.Nodes[i].Name, Stream: s.Stream, Start: s.Start, End: s.End, US: s.End - s.Start,
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
func (u *Commands) printTrace(r *TraceReport, guess string, platform *session.Opened) error {
	u.Progress.Clear()
	if !u.Flags.Quiet {
		last := 0.0
		for i := range r.Nodes {
			last = max(last, r.Nodes[i].End)
		}
		_ = u.Stdout.Printf("%s: %s traced on %s, %s without tracing, %s predicted%s; %s, %s\n\n", r.Name,
			u.Paint(u.Stdout, cli.Bold, cli.Duration(last)), platform.Place(), cli.Duration(r.PlainUS), cli.Duration(r.Predicted), guess,
			cli.Counted(len(r.Replays), "replay"), measuredBy(r.Trace))
		for _, line := range r.Analysis.Lines() {
			if err := u.Stdout.Printf("%s\n", line); err != nil {
				return err
			}
		}
		fmt.Fprintln(u.Stdout)
		table := cli.NewTable("start us", "end us", "takes us", "predicted us", "stream", "node")
		for i := range r.Nodes[:min(len(r.Nodes), mostTraced)] {
			n := &r.Nodes[i]
			table.Row(cli.Fixed(n.Start), cli.Fixed(n.End), cli.Fixed(n.US), cli.Fixed(n.Predicted), strconv.Itoa(int(n.Stream)), n.Node)
		}
		if err := table.Write(u.Stdout, u.LineWidth()); err != nil {
			return err
		}
		if more := len(r.Nodes) - mostTraced; more > 0 {
			fmt.Fprintf(u.Stdout, "and %s more\n", cli.Counted(more, "node"))
		}
		fmt.Fprintln(u.Stdout)
		if err := u.printBodies(r.Trace, r.BodyNodes); err != nil {
			return err
		}
	}
	if u.Flags.Quiet {
		return nil
	}
	if r.Page != "" {
		fmt.Fprintf(u.Stdout, "wrote %s; open it in a browser\n", r.Page)
	}
	if r.File == "" { // another rank has written it
		return nil
	}
	_, err := fmt.Fprintf(u.Stdout, "wrote %s; open it at https://ui.perfetto.dev\n", r.File)
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
