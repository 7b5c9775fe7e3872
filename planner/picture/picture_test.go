// Tests of the pictures: what must be in them, that nothing overlaps or leaves its box, that no name becomes markup, and that the
// same input gives the same bytes. tests/pictures tests how a browser shows them.

package picture

import (
	"bytes"
	"context"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/internal/words"
	"github.com/dagrun/dagrun/kernels"
	"github.com/dagrun/dagrun/planner"
)

// hostile names would become markup in one of the forms, or end a text early, if they were not escaped.
var hostile = []string{
	`<script>alert(1)</script>`, `</script><img src=x onerror=alert(1)>`, `"quoted" & 'single' <b>`, "🚀🧑‍🚀 שלום עולם", "\u202egnirts desrever\u2066",
	`]]> --> <!-- ${x} {{data}} %s \`, strings.Repeat("very long ", 22), "a;b|c#d[e](f){g}~`h`", "]:::h2d\"] end subgraph",
}

// pipeline is chains of upload, task and download, and a task that needs all of them; size says how many chains.
func pipeline(t testing.TB, size int, name func(kind string, i int) string) *dag.Graph {
	b := dag.New(name("pipeline", 0))
	all := b.Device("all", dag.F32, int64(max(1, size)))
	var reads []dag.Access
	for i := range size {
		h, d := b.Host(fmt.Sprintf("h%d", i), dag.F32, 1<<16), b.Device(fmt.Sprintf("d%d", i), dag.F32, 1<<16)
		b.Copy(name("up", i), b.Whole(d), b.Whole(h))
		b.Cost(b.Task(name("work", i), b.InOut(d)), float64(3+i%5))
		reads = append(reads, b.In(d))
	}
	b.Task(name("sum", 0), append(reads, b.Out(all))...)
	g, err := b.Graph()
	require.NoError(t, err)
	return g
}

func plainName(kind string, i int) string { return fmt.Sprintf("%s.%d", kind, i) }

func hostileName(kind string, i int) string { return hostile[i%len(hostile)] + kind + strconv.Itoa(i) }

func schedule(t testing.TB, g *dag.Graph, strategy string) *Schedule {
	plan, err := planner.New(context.Background(), g, planner.Options{Strategy: strategy})
	require.NoError(t, err)
	timeline, err := planner.Simulate(g, plan, planner.H200(), nil)
	require.NoError(t, err)
	s, err := New(g, plan, timeline)
	require.NoError(t, err)
	return s
}

func svg(t testing.TB, o SheetOptions, panels ...any) string {
	sheet := NewSheet(o)
	for _, p := range panels {
		switch p := p.(type) {
		case *Schedule:
			sheet.AddSchedule(p)
		case *dag.Graph:
			sheet.AddGraph(p)
		}
	}
	var b bytes.Buffer
	require.NoError(t, sheet.WriteSVG(&b))
	return b.String()
}

// drawnBox is a node's box in an SVG.
type drawnBox struct {
	row        string
	x, y, w, h float64
	title      string
	texts      []drawnText
}

type drawnText struct {
	x, y, size float64
	upright    bool
	text       string
}

// read parses an SVG as XML, checks that it contains only the elements that pictures use, and returns its boxes.
func read(t testing.TB, source string) (boxes []drawnBox, count map[string]int) {
	count = map[string]int{}
	allowed := []string{"svg", "g", "title", "style", "defs", "pattern", "marker", "path", "rect", "line", "circle", "text"}
	decoder := xml.NewDecoder(strings.NewReader(source))
	var stack []string
	var box *drawnBox
	var text *drawnText
	for {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			return boxes, count
		}
		require.NoError(t, err)
		switch e := token.(type) {
		case xml.StartElement:
			require.Contains(t, allowed, e.Name.Local)
			attr := map[string]string{}
			for _, a := range e.Attr {
				require.False(t, strings.HasPrefix(strings.ToLower(a.Name.Local), "on"), "an event attribute %s", a.Name.Local)
				attr[a.Name.Local] = a.Value
			}
			number := func(name string) float64 {
				if attr[name] == "" {
					return 0
				}
				v, err := strconv.ParseFloat(attr[name], 64)
				require.NoError(t, err)
				return v
			}
			class := e.Name.Local + "." + strings.ReplaceAll(attr["class"], " ", ".")
			count[class]++
			switch {
			case class == "g.node":
				boxes = append(boxes, drawnBox{row: attr["data-row"]})
				box = &boxes[len(boxes)-1]
			case box != nil && e.Name.Local == "rect" && box.w == 0:
				box.x, box.y, box.w, box.h = number("x"), number("y"), number("width"), number("height")
			case box != nil && e.Name.Local == "text":
				box.texts = append(box.texts, drawnText{number("x"), number("y"), number("font-size"), attr["transform"] != "", ""})
				text = &box.texts[len(box.texts)-1]
			}
			stack = append(stack, class)
		case xml.EndElement:
			if stack[len(stack)-1] == "g.node" {
				box = nil
			}
			if e.Name.Local == "text" {
				text = nil
			}
			stack = stack[:len(stack)-1]
		case xml.CharData:
			switch {
			case text != nil:
				text.text += string(e)
			case box != nil && stack[len(stack)-1] == "title.":
				box.title += string(e)
			}
		}
	}
}

// checkBoxes checks that no two boxes overlap, that the boxes of a row are in order, and that each text is inside its box.
func checkBoxes(t testing.TB, boxes []drawnBox) {
	last := map[string]*drawnBox{}
	for k := range boxes {
		b := &boxes[k]
		require.Greater(t, b.w, 0.0)
		if before := last[b.row]; before != nil && before.y == b.y {
			require.GreaterOrEqual(t, b.x, before.x+before.w-0.11, "in row %s %q overlaps the box before", b.row, b.title)
		}
		last[b.row] = b
		for _, text := range b.texts {
			length := textWidth(text.text) * text.size
			if text.upright {
				require.LessOrEqual(t, length, b.h, "%q", text.text)
				require.LessOrEqual(t, text.size, b.w)
				continue
			}
			require.GreaterOrEqual(t, text.x-length/2, b.x-0.2, "%q leaves its box", text.text)
			require.LessOrEqual(t, text.x+length/2, b.x+b.w+0.2, "%q leaves its box", text.text)
			require.LessOrEqual(t, text.y, b.y+b.h)
		}
	}
	for i := range boxes {
		for k := range boxes[:i] {
			a, b := &boxes[i], &boxes[k]
			overlap := a.x+0.11 < b.x+b.w && b.x+0.11 < a.x+a.w && a.y < b.y+b.h && b.y < a.y+a.h
			require.False(t, overlap, "%q and %q overlap", a.title, b.title)
		}
	}
}

func TestScheduleAtSeveralSizes(t *testing.T) {
	for _, size := range []int{1, 2, 25, 110} { // 3, 5, 51 and 221 nodes
		for _, axis := range []Axis{Time, Level} {
			t.Run(fmt.Sprintf("%d/%d", size, axis), func(t *testing.T) {
				s := schedule(t, pipeline(t, size, plainName), "list")
				source := svg(t, SheetOptions{Axis: axis, Limit: DefaultLimit}, s)
				boxes, count := read(t, source)
				require.Len(t, boxes, s.graph.Len())
				checkBoxes(t, boxes)
				require.Equal(t, len(s.waits), count["g.arrow"])
				require.Equal(t, len(s.plan.Streams), count["rect.row"])
				if len(s.plan.Streams) > 1 {
					require.Equal(t, 1, count["g.forks"])
				}
				titles := map[string]bool{}
				for i := range boxes {
					titles[strings.SplitN(boxes[i].title, "\n", 2)[0]] = true
				}
				for i := range s.graph.Nodes {
					require.True(t, titles[s.graph.Nodes[i].Name], "no box for %s", s.graph.Nodes[i].Name)
				}
				require.Equal(t, source, svg(t, SheetOptions{Axis: axis, Limit: DefaultLimit}, s), "not the same twice")
			})
		}
	}
}

func TestLargeSchedulesAreGrouped(t *testing.T) {
	s := schedule(t, pipeline(t, 400, plainName), "list")
	boxes, _ := read(t, svg(t, SheetOptions{}, s))
	require.LessOrEqual(t, len(boxes), DefaultLimit)
	require.Greater(t, len(boxes), DefaultLimit/8)
	checkBoxes(t, boxes)
	drawn := 0
	l := newStreamRows(s, Time, screen)
	for k := range l.blocks {
		drawn += len(l.blocks[k].nodes)
	}
	require.Equal(t, s.graph.Len(), drawn)
	require.LessOrEqual(t, l.width(), 1900.0, "a picture that nobody asked to be wide fits a screen")
	require.Greater(t, newStreamRows(s, Time, asked(240)).width(), 1900.0)
	require.LessOrEqual(t, newLayers(deep(t), screen).width(), 3400.0, "twelve columns, however deep the graph")
	boxes, _ = read(t, svg(t, SheetOptions{Limit: 1}, s))
	require.Len(t, boxes, len(s.plan.Streams), "a row is at least one box")
}

// deep is a chain of 500 nodes.
func deep(t *testing.T) *dag.Graph {
	t.Helper()
	b := dag.New("deep")
	b.Use(kernels.Library())
	d := b.Device("d", dag.F32, 8)
	for i := range 500 {
		b.Kernel(fmt.Sprintf("step.%d", i), "scale", dag.Args{8, 2, b.Whole(d)})
	}
	g, err := b.Graph()
	require.NoError(t, err)
	return g
}

func TestGroupsKeepWhatAForeachMadeTogether(t *testing.T) {
	g := pipeline(t, 6, plainName)
	byKind := gather(g, [][]int32{{0, 2, 4, 6, 8, 10}, {1, 3, 5, 7, 9, 11}}, 2)
	require.Len(t, byKind, 2)
	assert.Equal(t, "up.* ×6", byKind[0].name(g))
	assert.Equal(t, "up.0 … up.5", byKind[0].detail(g))
	byRound := gather(g, [][]int32{{0, 1, 2, 3, 4, 5}}, 3)
	require.Len(t, byRound, 3)
	assert.Equal(t, "*.1 ×2", byRound[1].name(g))
	any := gather(g, [][]int32{{0, 1, 2, 3, 4, 5}}, 2)
	require.Len(t, any, 2)
	assert.Equal(t, "4 nodes", any[0].name(g))
}

func TestGraphAsDeclared(t *testing.T) {
	for _, size := range []int{1, 2, 20} {
		g := pipeline(t, size, plainName)
		boxes, count := read(t, svg(t, SheetOptions{}, g))
		require.Len(t, boxes, g.Len())
		checkBoxes(t, boxes)
		require.Equal(t, len(g.Edges()), count["g.arrow"])
		column := map[string]float64{}
		for _, b := range boxes {
			column[strings.SplitN(b.title, ":", 2)[0]] = b.x
		}
		for _, e := range g.Edges() {
			require.Less(t, column[g.Nodes[e.From].Name], column[g.Nodes[e.To].Name], "a dependency does not go to the right")
		}
	}
}

func TestComparisonHasOneScale(t *testing.T) {
	g := pipeline(t, 6, plainName)
	a, b := schedule(t, g, "list"), schedule(t, g, "serial")
	boxes, count := read(t, svg(t, SheetOptions{}, a, b))
	require.Len(t, boxes, 2*g.Len())
	require.Equal(t, 2, count["g.panel"])
	end := 0.0
	for _, x := range boxes[:g.Len()] {
		end = max(end, x.x+x.w)
	}
	longer := 0.0
	for _, x := range boxes[g.Len():] {
		longer = max(longer, x.x+x.w)
	}
	ratio := (longer - rowLabel) / (end - rowLabel)
	require.InDelta(t, b.timeline.MakespanUS/a.timeline.MakespanUS, ratio, 0.02)
}

func TestHostileNamesAreText(t *testing.T) {
	g := pipeline(t, 2*len(hostile), hostileName)
	s := schedule(t, g, "list")
	for _, panel := range []any{g, s} {
		boxes, _ := read(t, svg(t, SheetOptions{}, panel))
		checkBoxes(t, boxes)
	}
	source := svg(t, SheetOptions{}, g, s)
	boxes, _ := read(t, source)
	require.NotContains(t, source, "<script")
	require.NotContains(t, source, "\u202e")
	titles := ""
	for i := range boxes {
		titles += boxes[i].title + "\n"
	}
	for i := range g.Nodes {
		require.Contains(t, titles, clean(g.Nodes[i].Name))
	}

	page := writePage(t, s, nil)
	require.Equal(t, 2, strings.Count(page, "<script"), "the data and the script, and no other")
	require.Equal(t, 2, strings.Count(page, "</script"))
	require.NotContains(t, page, "<img")
	data := pageOf(t, page)
	for i := range g.Nodes {
		require.Equal(t, clean(g.Nodes[i].Name), data.Nodes.Name[i])
	}

	for _, write := range []func(io.Writer) error{s.WriteMermaid, func(w io.Writer) error { return WriteGraphMermaid(w, g) }} {
		var b bytes.Buffer
		require.NoError(t, write(&b))
		checkMermaid(t, b.String())
	}
	for _, ascii := range []bool{false, true} {
		var b bytes.Buffer
		require.NoError(t, s.WriteGantt(&b, GanttOptions{Width: 100, ASCII: ascii}))
		require.NotContains(t, b.String(), "\u202e")
		if ascii {
			require.Equal(t, -1, strings.IndexFunc(b.String(), func(r rune) bool { return r > '~' }))
		}
	}
}

var entity = regexp.MustCompile(`#[0-9]+;`)

// checkMermaid checks that every line has one of the intended forms, with names only inside quotes.
func checkMermaid(t testing.TB, source string) {
	for _, line := range strings.Split(strings.TrimSuffix(source, "\n"), "\n") {
		line = entity.ReplaceAllString(line, "")
		outside, inside := "", false
		for _, r := range line {
			if r == '"' {
				inside = !inside
				continue
			}
			if !inside {
				outside += string(r)
				continue
			}
			require.NotContains(t, "[]{}()|;`", string(r), "%s", line)
		}
		require.False(t, inside, "an open quote: %s", line)
		outside = strings.TrimSpace(outside)
		word := strings.Fields(outside)[0]
		ok := slices.Contains([]string{"flowchart", "classDef", "subgraph", "direction", "end"}, word) || strings.HasPrefix(word, "n")
		require.True(t, ok, "%s", line)
	}
	require.NotContains(t, source, "<script")
	require.NotContains(t, source, "<img")
}

func TestMermaid(t *testing.T) {
	s := schedule(t, pipeline(t, 2, plainName), "list")
	var b bytes.Buffer
	require.NoError(t, s.WriteMermaid(&b))
	checkMermaid(t, b.String())
	assert.Equal(t, len(s.waits), strings.Count(b.String(), "==>"))
	assert.Equal(t, len(s.plan.Streams), strings.Count(b.String(), "subgraph"))
	assert.Equal(t, "#60;#35;#34;", mermaidText(`<#"`))
}

func TestWaitsSayWhatTheyAreFor(t *testing.T) {
	s := schedule(t, pipeline(t, 3, plainName), "list")
	require.NotEmpty(t, s.waits)
	for i := range s.waits {
		w := &s.waits[i]
		assert.NotEqual(t, w.fromStream, w.toStream)
		assert.Contains(t, s.reason(w), "RAW d", "every wait of this pipeline is for data")
		assert.Contains(t, s.waitText(w), "recorded after "+s.graph.Nodes[w.from].Name)
	}
}

func TestGanttFitsItsWidth(t *testing.T) {
	s := schedule(t, pipeline(t, 9, plainName), "list")
	for _, width := range []int{1, 40, 80, 133, 400} {
		for _, ascii := range []bool{false, true} {
			var b bytes.Buffer
			require.NoError(t, s.WriteGantt(&b, GanttOptions{Width: width, ASCII: ascii}))
			lines := strings.Split(b.String(), "\n")
			require.Len(t, lines, len(s.plan.Streams)+3)
			for _, line := range lines[:len(lines)-2] {
				require.LessOrEqual(t, utf8.RuneCountInString(line), max(40, width))
			}
		}
	}
	var b bytes.Buffer
	require.NoError(t, s.WriteGantt(&b, GanttOptions{Width: 80, Rows: 2}))
	assert.Contains(t, b.String(), "and "+words.Count(len(s.plan.Streams)-2, "more stream", "more streams"))
}

func TestGanttByHand(t *testing.T) {
	b := dag.New("two")
	x, y := b.Device("x", dag.F32, 4), b.Device("y", dag.F32, 4)
	b.Cost(b.Task("first", b.Out(x)), 20)
	b.Cost(b.Task("second", b.Out(y)), 10)
	b.Cost(b.Task("last", b.In(x), b.In(y)), 20)
	for node, stream := range []int32{0, 1, 0} {
		b.Stream(dag.NodeID(node), stream)
	}
	g, err := b.Graph()
	require.NoError(t, err)
	plan, err := planner.New(context.Background(), g, planner.Options{Strategy: "list", Machine: planner.Unit()})
	require.NoError(t, err)
	timeline, err := planner.Simulate(g, plan, planner.Unit(), nil)
	require.NoError(t, err)
	s, err := New(g, plan, timeline)
	require.NoError(t, err)
	var out bytes.Buffer
	require.NoError(t, s.WriteGantt(&out, GanttOptions{Width: 50, ASCII: true}))
	require.Equal(t, `stream 0  |first##############|last###############
stream 1  |second---..............................
          0 us                20 us
          | start of a node   # on the critical path
`, out.String())
}

// Names in wide characters, with marks on others, and too long ones are shown as far as there is room, and all rows keep their width.
func TestGanttOfWideNames(t *testing.T) {
	b := dag.New("wide")
	x, y, z := b.Device("x", dag.F32, 4), b.Device("y", dag.F32, 4), b.Device("z", dag.F32, 4)
	for node, name := range []string{"日本語", "e\u0301te\u0301", "とても長い名前のノードですよね本当に"} {
		b.Cost(b.Task(name, b.Out([]dag.BufferID{x, y, z}[node])), 20)
		b.Stream(dag.NodeID(node), int32(node))
	}
	g, err := b.Graph()
	require.NoError(t, err)
	plan, err := planner.New(context.Background(), g, planner.Options{Strategy: "list", Machine: planner.Unit()})
	require.NoError(t, err)
	timeline, err := planner.Simulate(g, plan, planner.Unit(), nil)
	require.NoError(t, err)
	s, err := New(g, plan, timeline)
	require.NoError(t, err)
	var out bytes.Buffer
	require.NoError(t, s.WriteGantt(&out, GanttOptions{Width: 40}))
	rows := strings.Split(out.String(), "\n")
	require.Equal(t, []string{"stream 0  ▌日本語" + strings.Repeat("█", 23), "stream 1  ▌e\u0301te\u0301" + strings.Repeat("░", 26), "stream 2  ▌とても長い名前のノードです…░░"}, rows[:3])
	for _, row := range rows[:3] {
		require.Equal(t, 40, words.Width(row))
	}
}

func writePage(t testing.TB, s *Schedule, c *Course) string {
	var b bytes.Buffer
	require.NoError(t, s.WritePage(&b, PageOptions{Measured: c}))
	return b.String()
}

func pageOf(t testing.TB, page string) *pageData {
	_, rest, ok := strings.Cut(page, `<script type="application/json" id="data">`)
	require.True(t, ok)
	text, _, ok := strings.Cut(rest, "</script>")
	require.True(t, ok)
	data := new(pageData)
	require.NoError(t, json.Unmarshal([]byte(text), data))
	return data
}

func TestPageHoldsEverything(t *testing.T) {
	s := schedule(t, pipeline(t, 5, plainName), "list")
	n := s.graph.Len()
	spans := make([]Span, n)
	for i := range spans {
		spans[i] = Span{s.timeline.Nodes[i].Start * 2, s.timeline.Nodes[i].End * 2}
	}
	page := writePage(t, s, &Course{Mode: "streams", Device: "</script>", PlainUS: 3, TracedUS: 4, Replays: []Replay{{Spans: spans, SubmitUS: 7}, {Spans: spans}}})
	for _, never := range []string{"http://", "https://", "@import", "url("} {
		require.NotContains(t, page, never, "the page must need nothing but itself")
	}
	require.NotContains(t, page, "{{")
	d := pageOf(t, page)
	require.Len(t, d.Nodes.Name, n)
	require.Len(t, d.Courses, 3, "the prediction and two replays")
	require.Equal(t, []int{0, 2}, []int{d.Upper, d.Lower})
	require.Len(t, d.Plans, 1)
	require.Len(t, d.Plans[0].Waits.From, len(s.waits))
	require.Equal(t, column[dag.NodeID](s.path), d.Courses[0].Path)
	require.Equal(t, []analysisLine{{Head: "a guess", Text: "1 node unknown: run with --iterations 200, or dagrun tune, and plan with --learn=auto"}}, d.Courses[0].Lines)
	for k, c := range d.Courses {
		require.Len(t, c.Start, n)
		require.Len(t, c.Duration, n)
		require.Len(t, c.Held, len(s.waits))
		require.NotEmpty(t, c.Path)
		require.NotEmpty(t, c.Gaps)
		require.Len(t, c.Memory, 1)
		require.True(t, k == 0 || strings.HasPrefix(c.Lines[0].Head, "bound by "), c.Lines[0].Head)
	}
	require.Len(t, d.Edges.Start, n+1)
	require.Len(t, d.Edges.From, len(s.graph.Edges()))
	require.ErrorContains(t, s.WritePage(io.Discard, PageOptions{Measured: &Course{Replays: []Replay{{Spans: spans[1:]}}}}), "replay 0 has 10 spans for a graph of 11 nodes")
}

func TestPageComparesTwoPlans(t *testing.T) {
	g := pipeline(t, 5, plainName)
	s, serial := schedule(t, g, "list"), schedule(t, g, "serial")
	var b bytes.Buffer
	require.NoError(t, s.WritePage(&b, PageOptions{Against: &Other{Name: "serial.json", Schedule: serial}}))
	d := pageOf(t, b.String())
	require.Len(t, d.Plans, 2)
	require.Len(t, d.Plans[1].Streams, 1)
	require.Equal(t, []int{1, 0}, []int{d.Upper, d.Lower}, "what it is compared with is above")
	require.Equal(t, "serial.json: predicted", d.Courses[1].Title)
	require.Equal(t, nano(serial.timeline.MakespanUS), d.Courses[1].Makespan)
	require.Contains(t, d.Plans[1].Summary, "serial.json: 11 nodes on 1 stream, 0 waits; strategy serial")
	require.EqualError(t, s.WritePage(io.Discard, PageOptions{Against: &Other{Schedule: schedule(t, pipeline(t, 3, plainName), "list")}}),
		"the schedule to compare with is one of another graph")
	require.EqualError(t, s.WritePage(io.Discard, PageOptions{Against: &Other{}}), "there is no schedule to compare with; make it with New")
}

func TestNewRefusesWhatDoesNotFit(t *testing.T) {
	g := pipeline(t, 2, plainName)
	s := schedule(t, g, "list")
	_, err := New(pipeline(t, 3, plainName), s.plan, s.timeline)
	require.EqualError(t, err, "a timeline of 5 nodes for a graph of 7")
	other := *s.plan
	other.Order = other.Order[1:]
	_, err = New(g, &other, s.timeline)
	require.Error(t, err)
}

func TestWords(t *testing.T) {
	assert.Equal(t, "3.25 us", words.Time(3.25))
	assert.Equal(t, "12.35 ms", words.Time(12345.6))
	assert.Equal(t, "2 s", words.Time(2e6))
	assert.Equal(t, "1 byte", words.Bytes(1))
	assert.Equal(t, "1.5 KiB", words.Bytes(1536))
	assert.Equal(t, "4 MiB", words.Bytes(4<<20))
	assert.Equal(t, "up.*.x*", family("up.13.x7"))
	assert.Equal(t, ".13.7", round("up.13.x7"))
	assert.Equal(t, "plain", family("plain"))
	assert.Equal(t, "", cut("wide", 0.5))
	assert.Equal(t, 50.0, roundStep(23))
	assert.Equal(t, 100.0, roundStep(51))
	assert.Equal(t, "a\ufffdb", clean("a\x00b"))
}

func TestCutTextsFit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.String().Draw(t, "text")
		width := rapid.Float64Range(0, 20).Draw(t, "width")
		short := cut(text, width)
		if textWidth(short) > width+1e-9 {
			t.Fatalf("%q is %g wide, more than %g", short, textWidth(short), width)
		}
		if !utf8.ValidString(clean(text)) {
			t.Fatalf("%q is not UTF-8", clean(text))
		}
	})
}

// An SVG shows every name that a pipeline may have unchanged.
func TestAnyNameSurvivesXML(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.StringN(1, 40, 200).Draw(t, "name")
		var b bytes.Buffer
		k := newSVGWriter(&b)
		k.title(name)
		k.Flush()
		var got string
		if err := xml.Unmarshal(b.Bytes(), &got); err != nil {
			t.Fatalf("%q: %v", b.String(), err)
		}
		if got != clean(name) {
			t.Fatalf("%q became %q", name, got)
		}
	})
}

func TestLayoutHasNoInfinities(t *testing.T) {
	b := dag.New("nothing")
	g, err := b.Graph()
	require.NoError(t, err)
	s := schedule(t, g, "list")
	for _, axis := range []Axis{Time, Level} {
		source := svg(t, SheetOptions{Axis: axis, Limit: DefaultLimit}, g, s)
		read(t, source)
		require.NotContains(t, source, "NaN")
		require.NotContains(t, source, "Inf")
	}
	var out bytes.Buffer
	require.NoError(t, s.WriteGantt(&out, GanttOptions{Width: 80}))
	require.Empty(t, out.String())
	writePage(t, s, nil)
	require.False(t, math.IsNaN(roundStep(1)))
}

func BenchmarkSVG(b *testing.B) {
	for _, nodes := range []int{100, 1000} {
		for _, limit := range []int{DefaultLimit, 1 << 20} {
			s := schedule(b, pipeline(b, nodes/2, plainName), "list")
			b.Run(fmt.Sprintf("n=%d/boxes=%d", nodes, limit), func(b *testing.B) {
				for b.Loop() {
					sheet := NewSheet(SheetOptions{Limit: limit})
					sheet.AddSchedule(s)
					if err := sheet.WriteSVG(io.Discard); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(nodes), "ns/node")
			})
		}
	}
}

func BenchmarkPage(b *testing.B) {
	s := schedule(b, pipeline(b, 5000, plainName), "list")
	for b.Loop() {
		if err := s.WritePage(io.Discard, PageOptions{}); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(s.graph.Len()), "ns/node")
}
