// The page: an HTML timeline for a browser. It is self-contained and loads nothing from the network.

package picture

import (
	"bufio"
	"cmp"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/internal/words"
	"github.com/dagrun/dagrun/planner/analysis"
	"github.com/dagrun/dagrun/planner/model"
	"github.com/dagrun/dagrun/planner/plan"
	"github.com/dagrun/dagrun/planner/proof"
)

//go:embed page.html
var pageHTML string

//go:embed page.css
var pageCSS string

//go:embed page.js
var pageJS string

//go:embed page_draw.js
var pageDrawJS string

//go:embed page_controls.js
var pageControlsJS string

//go:embed page_table.js
var pageTableJS string

// Course is a measured run, replay by replay.
type Course struct {
	Mode     string // "streams", "graph"
	Source   string // how it was measured
	Device   string
	PlainUS  float64        // duration of a replay without tracing; 0 if unknown
	TracedUS float64        // duration with tracing
	Machine  *model.Machine // that it ran on, as runtime.MachineOf describes it; nil: an H200
	Replays  []Replay
}

// Replay is one measured replay.
type Replay struct {
	Spans    []Span    // by node
	SubmitUS float64   // how long the host took to submit
	HelpedUS []float64 // by node: what other cores of a CPU worked on it; nil if unknown
}

// Span is when a node ran, in microseconds from the start of its replay.
type Span struct{ Start, End float64 }

// PageOptions say what a page shows besides the schedule.
type PageOptions struct {
	Machine  *model.Machine // that the predictions are for; nil: an H200
	Measured *Course        // a run of the schedule; nil for none
	Against  *Other         // what to compare with; nil for nothing
}

// Other is another plan of the same graph, or a run of one.
type Other struct {
	Name     string
	Schedule *Schedule
	Measured *Course // nil for none
}

// pageData is the data for the page's script. Arrays by field, instead of one object per node, keep large pages small.
type pageData struct {
	Name    string       `json:"name"`
	Unit    string       `json:"unit"` // what Device counts: "device", or "rank"
	Engines []string     `json:"engines"`
	Causes  []string     `json:"causes"`
	Texts   []string     `json:"texts"` // kinds, actions and reasons, which nodes, edges and waits refer to by index
	Nodes   pageNodes    `json:"nodes"`
	Edges   pageEdges    `json:"edges"`
	Plans   []pagePlan   `json:"plans"` // the schedule, and the one to compare with
	Courses []pageCourse `json:"courses"`
	Upper   int          `json:"upper"` // the course that is shown at first in the upper rows
	Lower   int          `json:"lower"` // and in the lower ones; -1 for none

	Recorded *recordedPage `json:"recorded,omitempty"` // of the calls of a program

	numbers map[string]int32 // by text: its index in Texts
}

// recordedPage is what a page of calls has beside the data of every page.
type recordedPage struct {
	Threads []string       `json:"threads"`
	Words   []string       `json:"words"` // by engine, for the legend
	Races   []recordedRace `json:"races"`
}

type recordedRace struct {
	From int    `json:"from"`
	To   int    `json:"to"`
	Text string `json:"text"`
}

type pageNodes struct {
	Name   []string      `json:"name"`
	Action column[int32] `json:"action"`
	Kind   column[int32] `json:"kind"`
	Engine column[int32] `json:"engine"`
	Device column[int32] `json:"device"`
	Bytes  column[int64] `json:"bytes"`
	Flops  column[int64] `json:"flops"`
	Line   column[int32] `json:"line"`
}

type pagePlan struct {
	Summary string        `json:"summary"` // a line for each rank
	Streams []string      `json:"streams"`
	Band    column[int32] `json:"band"`   // by stream: its device or rank
	Stream  column[int32] `json:"stream"` // by node
	Waits   pageWaits     `json:"waits"`  // in submission order
	Cost    column[int32] `json:"cost,omitempty"`
}

// pageCourse is one timeline: predicted or measured.
type pageCourse struct {
	Title    string             `json:"title"`
	Short    string             `json:"short"` // for column heads and row labels
	Measured bool               `json:"measured"`
	Plan     int                `json:"plan"`
	Makespan float64            `json:"makespan"`
	Start    times              `json:"start"`
	Duration times              `json:"duration"`
	Alone    times              `json:"alone,omitempty"`
	By       column[int32]      `json:"by"`
	Cause    column[int32]      `json:"cause"`
	Order    column[int32]      `json:"order"` // the nodes by start
	Path     column[dag.NodeID] `json:"path"`
	Gaps     []pageGap          `json:"gaps"`
	Held     times              `json:"held"` // by wait of the plan
	Memory   []pageMemory       `json:"memory"`
	Lines    []analysisLine     `json:"lines"`
}

// analysisLine is one finding: "bound by", and what.
type analysisLine struct {
	Of   string `json:"of,omitempty"` // the rank, where there are several
	Head string `json:"head"`
	Text string `json:"text"`
}

// pageEdges are the dependencies by later node: those of node i are from[start[i]] to from[start[i+1]-1].
type pageEdges struct {
	Start column[int32] `json:"start"`
	From  column[int32] `json:"from"`
	Text  column[int32] `json:"text"`
}

type pageWaits struct {
	From  column[int32] `json:"from"`
	To    column[int32] `json:"to"`
	Event column[int32] `json:"event"`
	Why   column[int32] `json:"why"`
}

type pageGap struct {
	Device int32      `json:"device"`
	Engine uint8      `json:"engine"`
	Start  float64    `json:"start"`
	End    float64    `json:"end"`
	Next   dag.NodeID `json:"next"`
}

type pageMemory struct {
	Device int32         `json:"device"`
	Arena  int64         `json:"arena"`
	Kept   int64         `json:"kept"`
	Most   int64         `json:"highest"` // of Bytes
	US     times         `json:"us"`
	Bytes  column[int64] `json:"bytes"`
}

// nano rounds a time to nanoseconds: measurements are not more precise, and pages stay small.
func nano(us float64) float64 { return math.Round(us*1e3) / 1e3 }

// maxGaps is how many idle gaps a page lists, the longest first.
const maxGaps = 200

// WritePage writes a self-contained HTML page: the timeline of the schedule, with a measured run below the predicted one, and with another
// plan or run to compare with.
func (s *Schedule) WritePage(w io.Writer, o PageOptions) error {
	if err := s.drawable(w); err != nil {
		return err
	}
	data, err := s.pageData(o)
	if err != nil {
		return err
	}
	return data.write(w, s.title())
}

// write writes the page with its data.
func (d *pageData) write(w io.Writer, title string) error {
	// In Go's JSON <, > and & are written as \u003c, \u003e and \u0026, so that no name can end the script element.
	text, err := json.Marshal(d)
	if err != nil {
		return err
	}
	out := bufio.NewWriterSize(w, 1<<16)
	for rest := pageHTML; rest != ""; {
		before, after, found := strings.Cut(rest, "{{")
		out.WriteString(before)
		if !found {
			break
		}
		name, after, _ := strings.Cut(after, "}}")
		switch name {
		case "title":
			escapes.WriteString(out, clean(title))
		case "style":
			out.WriteString(pageCSS)
		case "data":
			out.Write(text)
		case "script":
			out.WriteString(pageJS)
			out.WriteString(pageDrawJS)
			out.WriteString(pageControlsJS)
			out.WriteString(pageTableJS)
		}
		rest = after
	}
	return out.Flush()
}

func (s *Schedule) pageData(o PageOptions) (*pageData, error) {
	g := s.graph
	d := &pageData{Name: clean(g.Name), Unit: "device", Upper: 0, Lower: -1}
	for e := plan.Compute; e <= plan.HostCopy; e++ {
		d.Engines = append(d.Engines, e.String())
	}
	for c := plan.NoCause; c <= plan.AfterIssue; c++ {
		d.Causes = append(d.Causes, c.String())
	}
	for i := range int32(g.Len()) {
		node, span := &g.Nodes[i], &s.timeline.Nodes[i]
		d.Nodes.Name = append(d.Nodes.Name, clean(node.Name))
		d.Nodes.Action = append(d.Nodes.Action, d.number(clean(plan.Action(g, dag.NodeID(i)))))
		d.Nodes.Kind = append(d.Nodes.Kind, d.number(clean(kindText(g, i))))
		d.Nodes.Engine = append(d.Nodes.Engine, int32(span.Engine))
		d.Nodes.Device = append(d.Nodes.Device, span.Device)
		d.Nodes.Bytes = append(d.Nodes.Bytes, sizeOf(g, i))
		d.Nodes.Flops = append(d.Nodes.Flops, node.Work.Flops)
		d.Nodes.Line = append(d.Nodes.Line, node.Pos.Line)
	}
	s.pageEdges(d)
	if err := s.addPlan(d, "", o.Machine, o.Measured); err != nil {
		return nil, err
	}
	if o.Measured != nil {
		d.Lower = len(d.Courses) - 1
	}
	other := o.Against
	if other == nil {
		return d, nil
	}
	if other.Schedule == nil || other.Schedule.graph == nil {
		return nil, errors.New("there is no schedule to compare with; make it with New")
	}
	if other.Schedule.graph.Hash() != g.Hash() {
		return nil, errors.New("the schedule to compare with is one of another graph")
	}
	d.Lower = len(d.Courses) - 1
	if err := other.Schedule.addPlan(d, clean(other.Name)+": ", o.Machine, other.Measured); err != nil {
		return nil, fmt.Errorf("%s: %w", other.Name, err)
	}
	d.Upper = len(d.Courses) - 1
	return d, nil
}

// addPlan adds the plan, its prediction, and the replays of a run.
func (s *Schedule) addPlan(d *pageData, prefix string, predictedOn *model.Machine, measured *Course) error {
	p := pagePlan{Summary: prefix + clean(s.pageSummary(measured))}
	for k := range s.plan.Streams {
		p.Streams = append(p.Streams, s.streamText(k))
		p.Band = append(p.Band, s.plan.Streams[k].Device)
	}
	for i := range s.timeline.Nodes {
		p.Stream = append(p.Stream, s.timeline.Nodes[i].Stream)
		if len(s.plan.Costs) == s.graph.Len() {
			p.Cost = append(p.Cost, d.number(s.plan.Costs[i].Source.String()))
		}
	}
	for k := range s.waits {
		w := &s.waits[k]
		p.Waits.From = append(p.Waits.From, w.from)
		p.Waits.To = append(p.Waits.To, w.to)
		p.Waits.Event = append(p.Waits.Event, w.event)
		p.Waits.Why = append(p.Waits.Why, d.number(clean(s.reason(w))))
	}
	d.Plans = append(d.Plans, p)
	c := pageCourse{Title: prefix + "predicted", Short: prefix + "predicted"}
	for i := range s.timeline.Nodes {
		c.Alone = append(c.Alone, s.timeline.Nodes[i].Alone)
	}
	if err := s.addCourse(d, c, s.timeline, analysis.Run{Machine: predictedOn, Guess: s.plan.GuessText(s.graph)}); err != nil || measured == nil {
		return err
	}
	for k := range measured.Replays {
		r := &measured.Replays[k]
		if len(r.Spans) != s.graph.Len() {
			return fmt.Errorf("replay %d has %d spans for a graph of %d nodes", k, len(r.Spans), s.graph.Len())
		}
		times := &analysis.Replay{Start: make([]float64, len(r.Spans)), End: make([]float64, len(r.Spans)), SubmitUS: r.SubmitUS, Graph: measured.Mode != "streams"}
		for i, span := range r.Spans {
			times.Start[i], times.End[i] = span.Start, span.End
		}
		t, err := analysis.Measured(s.graph, s.plan, measured.Machine, times)
		if err != nil {
			return fmt.Errorf("replay %d: %w", k, err)
		}
		run := analysis.Run{Machine: measured.Machine, SubmitUS: r.SubmitUS, HelpedUS: r.HelpedUS}
		c := pageCourse{Title: fmt.Sprintf("%smeasured, replay %d of %d", prefix, k+1, len(measured.Replays)), Short: prefix + "measured", Measured: true}
		if err := s.addCourse(d, c, t, run); err != nil {
			return err
		}
	}
	return nil
}

// sort orders the nodes by start.
func (c *pageCourse) sort() {
	c.Order = c.Order[:0]
	for i := range c.Start {
		c.Order = append(c.Order, int32(i))
	}
	slices.SortFunc(c.Order, func(a, b int32) int {
		return cmp.Or(cmp.Compare(c.Start[a], c.Start[b]), cmp.Compare(a, b))
	})
}

// addCourse adds a timeline of the last plan of the page, with its analysis.
func (s *Schedule) addCourse(d *pageData, c pageCourse, t *plan.Timeline, run analysis.Run) error {
	a, err := analysis.Of(s.graph, s.plan, t, run)
	if err != nil {
		return err
	}
	c.Plan, c.Makespan, c.Path = len(d.Plans)-1, nano(t.MakespanUS), t.CriticalPath()
	c.Gaps, c.Memory, c.Lines = []pageGap{}, []pageMemory{}, []analysisLine{}
	for i := range t.Nodes {
		span := &t.Nodes[i]
		c.Start = append(c.Start, nano(span.Start))
		c.Duration = append(c.Duration, nano(span.End)-nano(span.Start))
		c.By = append(c.By, int32(span.By))
		c.Cause = append(c.Cause, int32(span.Cause))
	}
	c.sort()
	atLeast := 0.0
	_, gaps := t.Engines(0)
	for len(gaps) > maxGaps {
		atLeast = max(t.MakespanUS/1e4, atLeast*2)
		_, gaps = t.Engines(atLeast)
	}
	for _, gap := range gaps {
		c.Gaps = append(c.Gaps, pageGap{gap.Device, uint8(gap.Engine), nano(gap.Start), nano(gap.End), gap.Next})
	}
	c.Held = analysis.HeldUS(s.graph, s.plan, t)
	for _, o := range model.OccupancyOf(s.graph, s.plan, t) {
		m := pageMemory{Device: o.Device, Arena: o.Arena, Kept: o.Kept}
		for _, step := range o.Steps {
			m.US = append(m.US, step.US)
			m.Bytes = append(m.Bytes, step.Bytes)
			m.Most = max(m.Most, step.Bytes)
		}
		c.Memory = append(c.Memory, m)
	}
	for _, line := range a.Lines() {
		head, text, _ := strings.Cut(line, ": ")
		c.Lines = append(c.Lines, analysisLine{Head: clean(head), Text: clean(text)})
	}
	d.Courses = append(d.Courses, c)
	return nil
}

// pageSummary is the plan, and its run, in a line.
func (s *Schedule) pageSummary(measured *Course) string {
	text := words.Count(s.graph.Len(), "node", "nodes") + " on " + words.Count(len(s.plan.Streams), "stream",
		"streams") + ", " + words.Count(len(s.waits), "wait", "waits")
	if s.plan.Strategy != "" {
		text += "; strategy " + s.plan.Strategy
	}
	text += "; predicted " + words.Time(s.timeline.MakespanUS)
	if s.timeline.Machine != "" {
		text += " on " + s.timeline.Machine
	}
	if s.timeline.Graph {
		text += " as one graph"
	}
	if guess := s.plan.GuessText(s.graph); guess != "" {
		text += ", a guess with " + guess
	} else if bound := s.plan.Stats.LowerBoundUS; bound > 0 {
		text += ", lower bound " + words.Time(bound)
	}
	if measured == nil {
		return text + "."
	}
	text += "; measured as " + measured.Mode
	if measured.Device != "" {
		text += " on " + measured.Device
	}
	text += ": " + words.Time(measured.TracedUS) + " traced"
	if measured.PlainUS > 0 {
		text += ", " + words.Time(measured.PlainUS) + " without tracing"
	}
	return text + "."
}

func (s *Schedule) pageEdges(d *pageData) {
	edges := s.graph.Edges()
	d.Edges.Start = append(d.Edges.Start, 0)
	// By later node. For dependencies through a join, only the last node before it on each stream is listed.
	before := slices.Clone(s.enforced)
	slices.SortStableFunc(before, func(a, b proof.Enforcement) int {
		return cmp.Or(cmp.Compare(a.To, b.To), cmp.Compare(a.From, b.From))
	})
	for i := range int32(s.graph.Len()) {
		for ; len(before) > 0 && before[0].To == dag.NodeID(i); before = before[1:] {
			d.Edges.From = append(d.Edges.From, int32(before[0].From))
			d.Edges.Text = append(d.Edges.Text, d.number(clean(s.graph.EdgeText(edges[before[0].Edge]))))
		}
		d.Edges.Start = append(d.Edges.Start, int32(len(d.Edges.From)))
	}
}

// number returns the number of a text, and adds it if it is new.
func (d *pageData) number(text string) int32 {
	k, ok := d.numbers[text]
	if !ok {
		if d.numbers == nil {
			d.numbers = map[string]int32{}
		}
		k = int32(len(d.Texts))
		d.numbers[text] = k
		d.Texts = append(d.Texts, text)
	}
	return k
}
