// The page: an HTML timeline for a browser. It is self-contained and loads nothing from the network.

package picture

import (
	"bufio"
	"cmp"
	_ "embed"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/planner"
)

//go:embed page.html
var pageHTML string

//go:embed page.css
var pageCSS string

//go:embed page.js
var pageJS string

//go:embed page_controls.js
var pageControlsJS string

//go:embed page_table.js
var pageTableJS string

// Course is a measured run, replay by replay.
type Course struct {
	Mode     string // "streams", "graph"
	Source   string // how it was measured
	Device   string
	PlainUS  float64 // duration of a replay without tracing; 0 if unknown
	TracedUS float64 // duration with tracing
	Replays  []Replay
}

// Replay is one measured replay.
type Replay struct {
	Spans    []Span  // by node
	SubmitUS float64 // how long the host took to submit
}

// Span is when a node ran, in microseconds from the start of its replay.
type Span struct{ Start, End float64 }

// pageData is the data for the page's script. Arrays by field, instead of one object per node, keep large pages small.
type pageData struct {
	Name      string         `json:"name"`
	Strategy  string         `json:"strategy"`
	Machine   string         `json:"machine"`
	Graph     bool           `json:"graph"`
	Makespan  float64        `json:"makespan"`
	Bound     float64        `json:"bound"`
	Streams   []string       `json:"streams"`
	Engines   []string       `json:"engines"`
	Causes    []string       `json:"causes"`
	Texts     []string       `json:"texts"` // reasons for dependencies, which refer to them by index
	Nodes     pageNodes      `json:"nodes"`
	Edges     pageEdges      `json:"edges"`
	Waits     []pageWait     `json:"waits"`
	Path      []dag.NodeID   `json:"path"`
	Gaps      []pageGap      `json:"gaps"`
	Memory    []pageMemory   `json:"memory"`
	Measured  *pageCourse    `json:"measured,omitempty"`
	Predicted pagePrediction `json:"predicted"`
}

type pageNodes struct {
	Name   []string `json:"name"`
	Action []string `json:"action"`
	Kind   []string `json:"kind"`
	Engine []int32  `json:"engine"`
	Device []int32  `json:"device"`
	Stream []int32  `json:"stream"`
	Bytes  []int64  `json:"bytes"`
	Flops  []int64  `json:"flops"`
	Line   []int32  `json:"line"`
	Cost   []string `json:"cost,omitempty"` // where the cost of each node comes from
}

type pagePrediction struct {
	Start []float64 `json:"start"`
	End   []float64 `json:"end"`
	Alone []float64 `json:"alone"`
	By    []int32   `json:"by"`
	Cause []int32   `json:"cause"`
}

// pageEdges are the dependencies by later node: those of node i are from[start[i]] to from[start[i+1]-1].
type pageEdges struct {
	Start []int32 `json:"start"`
	From  []int32 `json:"from"`
	Text  []int32 `json:"text"`
}

type pageWait struct {
	From  int32  `json:"from"`
	To    int32  `json:"to"`
	Event int32  `json:"event"`
	Why   string `json:"why"`
}

type pageGap struct {
	Device int32      `json:"device"`
	Engine uint8      `json:"engine"`
	Start  float64    `json:"start"`
	End    float64    `json:"end"`
	Next   dag.NodeID `json:"next"`
}

type pageMemory struct {
	Device int32     `json:"device"`
	Arena  int64     `json:"arena"`
	Kept   int64     `json:"kept"`
	US     []float64 `json:"us"`
	Bytes  []int64   `json:"bytes"`
}

type pageCourse struct {
	Mode    string       `json:"mode"`
	Source  string       `json:"source"`
	Device  string       `json:"device"`
	Plain   float64      `json:"plain"`
	Traced  float64      `json:"traced"`
	Replays []pageReplay `json:"replays"`
}

type pageReplay struct {
	Submit float64   `json:"submit"`
	Start  []float64 `json:"start"`
	End    []float64 `json:"end"`
}

// nano rounds a time to nanoseconds: measurements are not more precise, and pages stay small.
func nano(us float64) float64 { return math.Round(us*1e3) / 1e3 }

// maxGaps is how many idle gaps a page lists, the longest first.
const maxGaps = 200

// WritePage writes a self-contained HTML page: the timeline of the schedule, with a measured run (nil: none)
// below the predicted one.
func (s *Schedule) WritePage(w io.Writer, measured *Course) error {
	if err := s.drawable(w); err != nil {
		return err
	}
	data, err := s.pageData(measured)
	if err != nil {
		return err
	}
	// In Go's JSON <, > and & are written as \u003c, \u003e and \u0026, so that no name can end the script element.
	text, err := json.Marshal(data)
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
			escapes.WriteString(out, clean(s.title()))
		case "style":
			out.WriteString(pageCSS)
		case "data":
			out.Write(text)
		case "script":
			out.WriteString(pageJS)
			out.WriteString(pageControlsJS)
			out.WriteString(pageTableJS)
		}
		rest = after
	}
	return out.Flush()
}

func (s *Schedule) pageData(measured *Course) (*pageData, error) {
	g, t, n := s.graph, s.timeline, s.graph.Len()
	d := &pageData{Name: clean(g.Name), Strategy: s.plan.Strategy, Machine: clean(t.Machine), Graph: t.Graph, Makespan: nano(t.MakespanUS),
		Bound: nano(s.plan.Stats.LowerBoundUS), Path: s.path, Waits: []pageWait{}, Gaps: []pageGap{}, Memory: []pageMemory{}}
	for k := range s.plan.Streams {
		d.Streams = append(d.Streams, s.streamText(k))
	}
	for e := planner.Compute; e <= planner.HostCopy; e++ {
		d.Engines = append(d.Engines, e.String())
	}
	for c := planner.NoCause; c <= planner.AfterIssue; c++ {
		d.Causes = append(d.Causes, c.String())
	}
	for i := range int32(n) {
		node, span := &g.Nodes[i], &t.Nodes[i]
		d.Nodes.Name = append(d.Nodes.Name, clean(node.Name))
		d.Nodes.Action = append(d.Nodes.Action, clean(planner.Action(g, dag.NodeID(i))))
		d.Nodes.Kind = append(d.Nodes.Kind, clean(kindText(g, i)))
		d.Nodes.Engine = append(d.Nodes.Engine, int32(span.Engine))
		d.Nodes.Device = append(d.Nodes.Device, span.Device)
		d.Nodes.Stream = append(d.Nodes.Stream, span.Stream)
		d.Nodes.Bytes = append(d.Nodes.Bytes, sizeOf(g, i))
		d.Nodes.Flops = append(d.Nodes.Flops, node.Work.Flops)
		d.Nodes.Line = append(d.Nodes.Line, node.Pos.Line)
		if len(s.plan.Costs) == n {
			d.Nodes.Cost = append(d.Nodes.Cost, s.plan.Costs[i].Source.String())
		}
		d.Predicted.Start = append(d.Predicted.Start, nano(span.Start))
		d.Predicted.End = append(d.Predicted.End, nano(span.End))
		d.Predicted.Alone = append(d.Predicted.Alone, nano(span.Alone))
		d.Predicted.By = append(d.Predicted.By, int32(span.By))
		d.Predicted.Cause = append(d.Predicted.Cause, int32(span.Cause))
	}
	s.pageEdges(d)
	for k := range s.waits {
		w := &s.waits[k]
		d.Waits = append(d.Waits, pageWait{w.from, w.to, w.event, clean(s.reason(w))})
	}
	atLeast := 0.0
	_, gaps := t.Engines(0)
	for len(gaps) > maxGaps {
		atLeast = max(t.MakespanUS/1e4, atLeast*2)
		_, gaps = t.Engines(atLeast)
	}
	for _, gap := range gaps {
		d.Gaps = append(d.Gaps, pageGap{gap.Device, uint8(gap.Engine), nano(gap.Start), nano(gap.End), gap.Next})
	}
	for _, o := range planner.OccupancyOf(g, s.plan, t) {
		m := pageMemory{Device: o.Device, Arena: o.Arena, Kept: o.Kept}
		for _, step := range o.Steps {
			m.US = append(m.US, nano(step.US))
			m.Bytes = append(m.Bytes, step.Bytes)
		}
		d.Memory = append(d.Memory, m)
	}
	if measured == nil {
		return d, nil
	}
	d.Measured = &pageCourse{Mode: measured.Mode, Source: measured.Source, Device: clean(measured.Device), Plain: nano(measured.PlainUS), Traced: nano(measured.TracedUS)}
	for k := range measured.Replays {
		replay := &measured.Replays[k]
		if len(replay.Spans) != n {
			return nil, fmt.Errorf("replay %d has %d spans for a graph of %d nodes", k, len(replay.Spans), n)
		}
		r := pageReplay{Submit: nano(replay.SubmitUS)}
		for _, span := range replay.Spans {
			r.Start = append(r.Start, nano(span.Start))
			r.End = append(r.End, nano(span.End))
		}
		d.Measured.Replays = append(d.Measured.Replays, r)
	}
	return d, nil
}

func (s *Schedule) pageEdges(d *pageData) {
	number := map[string]int32{}
	edges := s.graph.Edges()
	d.Edges.Start = append(d.Edges.Start, 0)
	// By later node. For dependencies through a join, only the last node before it on each stream is listed.
	before := slices.Clone(s.enforced)
	slices.SortStableFunc(before, func(a, b planner.Enforcement) int {
		return cmp.Or(cmp.Compare(a.To, b.To), cmp.Compare(a.From, b.From))
	})
	for i := range int32(s.graph.Len()) {
		for ; len(before) > 0 && before[0].To == dag.NodeID(i); before = before[1:] {
			text := clean(s.graph.EdgeText(edges[before[0].Edge]))
			k, ok := number[text]
			if !ok {
				k = int32(len(d.Texts))
				number[text] = k
				d.Texts = append(d.Texts, text)
			}
			d.Edges.From = append(d.Edges.From, int32(before[0].From))
			d.Edges.Text = append(d.Edges.Text, k)
		}
		d.Edges.Start = append(d.Edges.Start, int32(len(d.Edges.From)))
	}
}
