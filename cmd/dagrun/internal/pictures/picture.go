// Pictures: the format that was asked for, and whether Graphviz or dagrun itself draws it.

package pictures

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/dagrun/dagrun/cmd/dagrun/internal/cli"
	"github.com/dagrun/dagrun/cmd/dagrun/internal/flags"
	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/planner"
	"github.com/dagrun/dagrun/planner/picture"
	"github.com/dagrun/dagrun/planner/plan"
	"github.com/dagrun/dagrun/runtime"
)

// Flags are the flags of dagrun dot.
type Flags struct {
	Before, After bool
	Dependencies  bool
	Compare       string
	Out           string
	Format        string
	Axis          string
	Own           bool
	Most          int
}

// pictureForms are the formats that dagrun dot writes, and their file extensions.
var pictureForms = map[string][]string{
	"dot":     {".dot", ".gv"},
	"mermaid": {".mmd", ".mermaid"},
	"svg":     {".svg"},
	"png":     {".png"},
	"pdf":     {".pdf"},
}

// FormNames are the formats that --format accepts.
func FormNames() []string { return slices.Sorted(maps.Keys(pictureForms)) }

// Form returns the format to write: that of --format, otherwise the one that the file name implies.
func (f *Flags) Form() (string, error) {
	if f.Format != "" {
		return f.Format, flags.OneOf("--format", f.Format, FormNames()...)
	}
	if f.Out != "" && f.Out != "-" {
		extension := strings.ToLower(filepath.Ext(f.Out))
		for form, extensions := range pictureForms {
			if slices.Contains(extensions, extension) {
				return form, nil
			}
		}
		if info, err := os.Stat(f.Out); err != nil || info.Mode().IsRegular() {
			return "", fmt.Errorf("-o %s: the extension does not say which format to write; use .dot, .mmd, .svg, .png or .pdf, or --format", f.Out)
		}
	}
	if f.Compare != "" || f.Own {
		return "svg", nil
	}
	return "dot", nil
}

func (f *Flags) check(form string) error {
	drawn := form == "svg"
	switch {
	case f.Axis != "" && f.Axis != "time" && f.Axis != "level":
		return fmt.Errorf("--axis %q: want time or level", f.Axis)
	case f.Most < 0:
		return fmt.Errorf("--boxes %d: want at least 1", f.Most)
	case f.Compare != "" && (f.Before || f.After):
		return errors.New("--compare draws schedules only; leave out --before and --after")
	case f.Compare != "" && !drawn:
		return fmt.Errorf("--compare is drawn as SVG, not %s", form)
	case f.Before && f.After && !drawn:
		return fmt.Errorf("--before and --after are drawn together as SVG, not %s; name one of them", form)
	case (f.Axis != "" || f.Own || f.Most > 0) && !drawn:
		return fmt.Errorf("--axis, --own and --boxes are for dagrun's own SVG, not %s", form)
	case f.Dependencies && (f.ownOnly() || form == "mermaid"):
		return errors.New("--dependencies is for DOT and what Graphviz makes of it")
	}
	return nil
}

// ownOnly reports whether only dagrun's own SVG can show what was asked for.
func (f *Flags) ownOnly() bool {
	return f.Own || f.Compare != "" || f.Axis != "" || f.Most > 0 || f.Before && f.After
}

// Report is the JSON document of dot.
type Report struct {
	Version int    `json:"version"`
	Command string `json:"command"`
	Name    string `json:"name"`
	Format  string `json:"format"`
	File    string `json:"file,omitempty"` // that was written
	Text    string `json:"text,omitempty"` // the picture, if no file was named
}

// Draw writes the picture that the flags ask for.
func (u *Pictures) Draw(ctx context.Context, g *dag.Graph, f *Flags) error {
	if err := u.CheckOutputs(g, []cli.NamedFile{{Role: "-o", Name: f.Out}}, nil); err != nil {
		return err
	}
	form, err := f.Form()
	if err != nil {
		return err
	}
	if err := f.check(form); err != nil {
		return err
	}
	write, err := u.picture(ctx, g, f, form)
	if err != nil {
		return err
	}
	u.Progress.Report("draw", 0, 0)
	report := Report{Version: cli.JSONVersion, Command: "dot", Name: g.Name, Format: form}
	toFile := f.Out != "" && f.Out != "-"
	switch {
	case toFile:
		report.File = f.Out
		err = u.Write(ctx, f.Out, write)
	case u.Flags.Output != "json":
		return write(u.Stdout.Document())
	case form == "png" || form == "pdf":
		return fmt.Errorf("--output json cannot hold a %s; write it to a file with -o", form)
	default:
		var text strings.Builder
		err = write(&text)
		report.Text = text.String()
	}
	if err != nil || u.Flags.Output != "json" {
		return err
	}
	return u.Answer(report)
}

// mostForGraphviz is how many nodes and dependencies Graphviz lays out within a second. Each dependency has a label, which costs it as much as
// a node: 42 nodes with 125 dependencies take 2 s, 112 with 192 take 12 s.
const mostForGraphviz = 150

func sizeText(g *dag.Graph) string {
	return cli.Counted(g.Len(), "node") + " and " + Dependencies(len(g.Edges()))
}

// picture lets Graphviz draw if it is installed and DOT can express what was asked for; otherwise dagrun draws.
func (u *Pictures) picture(ctx context.Context, g *dag.Graph, f *Flags, form string) (func(io.Writer) error, error) {
	if form == "dot" || form == "mermaid" {
		return u.written(ctx, g, f, form)
	}
	graphviz, err := exec.LookPath("dot")
	if form == "svg" && err == nil && !f.ownOnly() && g.Len()+len(g.Edges()) > mostForGraphviz {
		u.Note("drawn by dagrun itself: Graphviz would take long for %s; it draws what --format dot writes", sizeText(g))
		return u.sheet(ctx, g, f)
	}
	if form != "svg" && err != nil {
		return nil, cli.WithStatus(cli.StatusInternal, fmt.Errorf("%s needs Graphviz, and its command dot is not on PATH; install graphviz, or write .svg", form))
	}
	if err == nil && !f.ownOnly() {
		if form != "svg" && g.Len()+len(g.Edges()) > mostForGraphviz {
			u.Note("Graphviz may take minutes for %s; -o x.svg is drawn by dagrun itself, at once", sizeText(g))
		}
		write, err := u.written(ctx, g, f, "dot")
		if err != nil {
			return nil, err
		}
		return func(w io.Writer) error { return convert(ctx, graphviz, form, write, w) }, nil
	}
	return u.sheet(ctx, g, f)
}

// written returns a picture as text that another program lays out.
func (u *Pictures) written(ctx context.Context, g *dag.Graph, f *Flags, form string) (func(io.Writer) error, error) {
	if f.Before {
		if form == "mermaid" {
			return func(w io.Writer) error { return picture.WriteGraphMermaid(w, g) }, nil
		}
		return func(w io.Writer) error { return plan.WriteGraphDOT(w, g) }, nil
	}
	plan, options, err := u.Planned(ctx, g)
	if err != nil {
		return nil, err
	}
	if form == "dot" && f.Dependencies {
		return func(w io.Writer) error { return plan.WriteDOTWithDependencies(w, g) }, nil
	}
	if form == "dot" {
		return func(w io.Writer) error { return plan.WriteDOT(w, g) }, nil
	}
	schedule, err := u.schedule(g, plan, options)
	if err != nil {
		return nil, err
	}
	return schedule.WriteMermaid, nil
}

// sheet returns dagrun's own SVG.
func (u *Pictures) sheet(ctx context.Context, g *dag.Graph, f *Flags) (func(io.Writer) error, error) {
	o := picture.SheetOptions{Limit: f.Most}
	if f.Axis == "level" {
		o.Axis = picture.Level
	}
	sheet := picture.NewSheet(o)
	if f.Before {
		sheet.AddGraph(g)
	}
	if f.Before && !f.After {
		return sheet.WriteSVG, nil
	}
	learned, err := u.OptionsFor(ctx, g)
	if err != nil {
		return nil, err
	}
	options := learned.Options
	add := func(plan *planner.Plan) error {
		schedule, err := u.schedule(g, plan, options)
		if err == nil {
			sheet.AddSchedule(schedule)
		}
		return err
	}
	if f.Compare == "" {
		plan, _, err := u.Planned(ctx, g)
		if err != nil {
			return nil, err
		}
		return sheet.WriteSVG, add(plan)
	}
	for _, name := range strings.Split(f.Compare, ",") {
		options.Strategy = strings.TrimSpace(name)
		plan, err := u.NewPlan(ctx, g, options)
		if err != nil {
			return nil, fmt.Errorf("--compare %s: %w", options.Strategy, err)
		}
		if err := add(plan); err != nil {
			return nil, err
		}
	}
	return sheet.WriteSVG, nil
}

// schedule returns a plan with its predicted timeline on the machine that it is planned for.
func (u *Pictures) schedule(g *dag.Graph, plan *planner.Plan, o planner.Options) (*picture.Schedule, error) {
	timeline, err := u.Simulate(g, plan, o)
	if err != nil {
		return nil, err
	}
	return picture.New(g, plan, timeline)
}

// convert lets Graphviz lay out the text that write writes.
func convert(ctx context.Context, graphviz, form string, write func(io.Writer) error, w io.Writer) error {
	var source, complaint bytes.Buffer
	if err := write(&source); err != nil {
		return err
	}
	command := exec.CommandContext(ctx, graphviz, "-T"+form)
	command.Stdin, command.Stdout, command.Stderr = &source, w, &complaint
	if err := command.Run(); err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		line, _, _ := strings.Cut(strings.TrimSpace(complaint.String()), "\n")
		return fmt.Errorf("%s -T%s: %w: %s", graphviz, form, err, line)
	}
	return nil
}

// PrintGantt prints the predicted timeline as a text chart below the plan.
func (u *Pictures) PrintGantt(g *dag.Graph, plan *planner.Plan, timeline *plan.Timeline, ascii bool) error {
	if u.Flags.Quiet || g.Len() == 0 {
		return nil
	}
	schedule, err := picture.New(g, plan, timeline)
	if err != nil {
		return err
	}
	fmt.Fprintln(u.Stdout)
	return schedule.WriteGantt(u.Stdout, picture.GanttOptions{Width: u.ChartWidth(), ASCII: ascii})
}

// SavePage writes the page with the timeline. The trace may be nil, and so may what to compare with.
func SavePage(ctx context.Context, name string, g *dag.Graph, plan *planner.Plan, timeline *plan.Timeline, machine *planner.Machine,
	measured *picture.Course, against *picture.Other) error {
	schedule, err := picture.New(g, plan, timeline)
	if err != nil {
		return err
	}
	return cli.WriteOut(ctx, name, func(w io.Writer) error {
		return schedule.WritePage(w, picture.PageOptions{Machine: machine, Measured: measured, Against: against})
	})
}

// CourseOf is a trace as a page shows it.
func CourseOf(trace *runtime.Trace, device string, machine *planner.Machine) *picture.Course {
	course := &picture.Course{Mode: trace.Mode, Source: trace.Source, Device: device, PlainUS: trace.PlainUS, TracedUS: trace.TracedUS, Machine: machine}
	for k := range trace.Replays {
		replay := &trace.Replays[k]
		spans := make([]picture.Span, len(replay.Spans))
		for i := range replay.Spans {
			spans[i] = picture.Span{Start: replay.Spans[i].Start, End: replay.Spans[i].End}
		}
		course.Replays = append(course.Replays, picture.Replay{Spans: spans, SubmitUS: replay.SubmitUS, HelpedUS: replay.HelpedUS})
	}
	return course
}

func Dependencies(n int) string {
	if n == 1 {
		return "1 dependency"
	}
	return fmt.Sprintf("%d dependencies", n)
}
