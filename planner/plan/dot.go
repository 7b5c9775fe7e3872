// Writes graphs and plans as DOT, for Graphviz. The same input gives the same bytes.

package plan

import (
	"bufio"
	"fmt"
	"io"
	"strconv"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/internal/words"
)

// WriteGraphDOT writes a graph as it was declared: its nodes, coloured by engine, and every dependency with its reason.
func WriteGraphDOT(w io.Writer, g *dag.Graph) error {
	if w == nil {
		return words.ErrNoWriter
	}
	if err := g.Check(); err != nil {
		return err
	}
	d := &dotWriter{Writer: bufio.NewWriterSize(w, 1<<16), g: g}
	d.head(fmt.Sprintf("%s: %s, %s", g.Name, words.Count(g.Len(), "node", "nodes"), g.DependenciesText()))
	for i := range g.Nodes {
		d.node("  ", int32(i), colour(int(EngineOf(g, dag.NodeID(i))), light))
	}
	d.edges()
	d.bodies()
	d.WriteString("}\n")
	return d.Flush()
}

// WriteDOT writes the plan of g: a cluster and a colour for each stream with its ops in order, and a dashed edge from each record to each of its
// waits, with the dependency that the wait enforces. The clusters of a device are in one for the device, if there are several.
func (p *Plan) WriteDOT(w io.Writer, g *dag.Graph) error { return p.writeDOT(w, g, false) }

// WriteDOTWithDependencies is WriteDOT with every dependency and its reason, also where the order of a stream enforces it. Of more than some 20
// nodes, that is hard to read.
func (p *Plan) WriteDOTWithDependencies(w io.Writer, g *dag.Graph) error {
	return p.writeDOT(w, g, true)
}

func (p *Plan) writeDOT(w io.Writer, g *dag.Graph, dependencies bool) error {
	if w == nil {
		return words.ErrNoWriter
	}
	if err := p.checkNodes(g); err != nil {
		return err
	}
	d := &dotWriter{Writer: bufio.NewWriterSize(w, 1<<16), g: g}
	d.head(fmt.Sprintf("%s: %s on %s, %s", p.Name, words.Count(g.Len(), "node", "nodes"), words.Count(len(p.Streams), "stream", "streams"),
		words.Count(p.Stats.Waits, "wait", "waits")))
	for k, band := range p.Bands() {
		d.band(p, k, &band)
	}
	if dependencies {
		d.edges()
	}
	if err := d.waits(p); err != nil {
		return err
	}
	d.bodies()
	d.WriteString("}\n")
	return d.Flush()
}

// dotWriter writes text; bufio keeps the first error for Flush.
type dotWriter struct {
	*bufio.Writer
	g       *dag.Graph
	path    []int // of a body: the node and body around it, outermost first
	scratch []byte
}

func (d *dotWriter) head(title string) {
	d.WriteString("digraph plan {\n  graph [label=")
	d.label(title)
	d.WriteString(", labelloc=t, fontname=\"Helvetica\", newrank=true];\n" +
		"  node [shape=box, style=\"rounded,filled\", fillcolor=white, fontname=\"Helvetica\"];\n" +
		"  edge [fontname=\"Helvetica\", fontsize=10];\n")
}

// label writes a quoted label that shows the text as it is: in DOT a backslash starts an escape and an ampersand an HTML
// entity, in quoted labels too.
func (d *dotWriter) label(text string) {
	b := append(d.scratch[:0], '"')
	for _, r := range text {
		switch {
		case r == '"' || r == '\\':
			b = append(b, '\\', byte(r))
		case r == '\n':
			b = append(b, `\n`...)
		case r == '&':
			b = append(b, "&amp;"...)
		case r < ' ' || r == 0x7f:
			b = append(b, "\uFFFD"...)
		default:
			b = append(b, string(r)...)
		}
	}
	d.scratch = append(b, '"')
	d.Write(d.scratch)
}

func (d *dotWriter) id(kind byte, parts ...int) {
	d.scratch = append(d.scratch[:0], kind)
	for _, list := range [][]int{d.path, parts} {
		for _, n := range list {
			if len(d.scratch) > 1 {
				d.scratch = append(d.scratch, '_')
			}
			d.scratch = strconv.AppendInt(d.scratch, int64(n), 10)
		}
	}
	d.Write(d.scratch)
}

func (d *dotWriter) node(indent string, i int32, fill string) {
	d.WriteString(indent)
	d.id('n', int(i))
	d.WriteString(" [label=")
	d.label(d.g.Nodes[i].Name + "\n" + Action(d.g, dag.NodeID(i)))
	d.WriteString(`, fillcolor="`)
	d.WriteString(fill)
	d.WriteString("\"];\n")
}

// band writes the streams of a device.
func (d *dotWriter) band(p *Plan, number int, b *Band) {
	if p.Banded() {
		fmt.Fprintf(d, "  subgraph cluster_device_%d {\n    graph [label=\"%s\", labelloc=t, style=\"filled\", color=\"#5b6570\", fillcolor=\"#f3f5f7\", fontcolor=\"#1b1f24\"];\n", number, b.Title())
		defer d.WriteString("  }\n")
	}
	for _, k := range b.Streams {
		d.stream(p, k)
	}
}

func (d *dotWriter) stream(p *Plan, k int32) {
	s := &p.Streams[k]
	title := fmt.Sprintf("stream %d%s", k, p.declared(d.g, int(k)))
	if s.Priority != dag.Normal {
		title += fmt.Sprintf(", %v priority", s.Priority)
	}
	dark := colour(int(k), dark)
	fmt.Fprintf(d, "  subgraph cluster_%d {\n    graph [label=\"%s\", labelloc=t, style=\"rounded\", color=\"%s\", fontcolor=\"%s\"];\n", k, title, dark, dark)
	fill := colour(int(k), light)
	for i := range s.Ops {
		op := &s.Ops[i]
		if op.Kind == Launch {
			d.node("    ", int32(op.Node), fill)
			continue
		}
		d.WriteString("    ")
		d.op(int(k), i, op)
		fmt.Fprintf(d, " [label=\"%v %d\", shape=plain, style=\"\", fontsize=10, fontcolor=\"%s\"];\n", op.Kind, op.Event, dark)
	}
	for i := 1; i < len(s.Ops); i++ {
		d.WriteString("    ")
		d.op(int(k), i-1, &s.Ops[i-1])
		d.WriteString(" -> ")
		d.op(int(k), i, &s.Ops[i])
		d.WriteString(" [color=\"")
		d.WriteString(dark)
		d.WriteString("\", penwidth=2, arrowhead=none, weight=8];\n")
	}
	d.WriteString("  }\n")
}

func (d *dotWriter) op(stream, i int, op *Op) {
	switch op.Kind {
	case Launch:
		d.id('n', int(op.Node))
	case Record:
		d.id('r', stream, i)
	default:
		d.id('w', stream, i)
	}
}

// edges draws dependencies, and joins as points.
func (d *dotWriter) edges() {
	for k := range d.g.Joins() {
		d.WriteString("  ")
		d.id('j', k)
		d.WriteString(" [shape=point, width=0.08, tooltip=")
		d.label(dag.JoinName(k))
		d.WriteString("];\n")
	}
	edges := d.g.Edges()
	for k := range edges {
		e := &edges[k]
		d.WriteString("  ")
		d.end(e.From)
		d.WriteString(" -> ")
		d.end(e.To)
		d.WriteString(" [label=")
		d.label(d.g.EdgeText(*e))
		d.WriteString(", color=\"#555555\"")
		if e.Buffer < 0 {
			d.WriteString(", arrowhead=empty")
		}
		d.WriteString("];\n")
	}
}

func (d *dotWriter) end(i dag.NodeID) {
	if d.g.IsJoin(i) {
		d.id('j', int(i)-d.g.Len())
		return
	}
	d.id('n', int(i))
}

// waits draws an edge to each wait from the record it waits for: the last one of its event submitted before it.
func (d *dotWriter) waits(p *Plan) error {
	type place struct{ stream, op int }
	reasons := newWaitReasons(d.g, p)
	record := make(map[int32]place)
	cursor := make([]int, len(p.Streams))
	for _, k := range p.Order {
		if k < 0 || int(k) >= len(cursor) || cursor[k] >= len(p.Streams[k].Ops) {
			return fmt.Errorf("%w: the submission order has more ops of stream %d than the stream has", ErrPlanShape, k)
		}
		at := cursor[k]
		cursor[k]++
		op := &p.Streams[k].Ops[at]
		switch op.Kind {
		case Record:
			record[op.Event] = place{int(k), at}
		case Wait:
			from, ok := record[op.Event]
			if !ok {
				return fmt.Errorf("%w: stream %d, op %d waits for event %d before it is recorded", ErrPlanShape, k, at, op.Event)
			}
			d.WriteString("  ")
			d.id('r', from.stream, from.op)
			d.WriteString(" -> ")
			d.id('w', int(k), at)
			label := fmt.Sprintf("wait_event %d", op.Event)
			if edge, ok := reasons.of(k, int32(at)); ok {
				label += "\n" + d.g.EdgeText(d.g.Edges()[edge])
			}
			d.WriteString(" [style=dashed, label=")
			d.label(label)
			d.WriteString("];\n")
		}
	}
	return nil
}

// shade is the intensity of a colour, at most 256.
type shade struct{ saturation, value int }

var (
	light = shade{60, 255}
	dark  = shade{200, 160}
)

// colour returns the k-th colour of a sequence in which neighbours are easy to tell apart: their hues differ by the golden ratio. It
// uses integers, so that every processor gives the same colours.
func colour(k int, s shade) string {
	hue := (140 + k*949) % 1536
	low := s.value * (256 - s.saturation) / 256
	rise := (s.value - low) * (hue % 256) / 256
	r, g, b := 0, 0, 0
	switch hue / 256 {
	case 0:
		r, g, b = s.value, low+rise, low
	case 1:
		r, g, b = s.value-rise, s.value, low
	case 2:
		r, g, b = low, s.value, low+rise
	case 3:
		r, g, b = low, s.value-rise, s.value
	case 4:
		r, g, b = low+rise, low, s.value
	default:
		r, g, b = s.value, low, s.value-rise
	}
	return fmt.Sprintf("#%02x%02x%02x", r, g, b)
}

// bodies draws each body as a cluster that the node points to.
func (d *dotWriter) bodies() {
	for i := range d.g.Nodes {
		n := &d.g.Nodes[i]
		if n.Control == nil {
			continue
		}
		for k, g := range n.Control.Bodies {
			inner := &dotWriter{Writer: d.Writer, g: g, path: append(append([]int{}, d.path...), i, k)}
			d.WriteString("  subgraph cluster_")
			inner.id('b')
			d.WriteString(" {\n    graph [label=")
			d.label(bodyTitle(d.g, dag.NodeID(i), int32(k)))
			d.WriteString(", labelloc=t, style=\"dashed,rounded\", color=\"#555555\"];\n")
			for j := range g.Nodes {
				inner.node("    ", int32(j), colour(int(EngineOf(g, dag.NodeID(j))), light))
			}
			inner.edges()
			inner.bodies()
			d.WriteString("  }\n  ")
			d.id('n', i)
			d.WriteString(" -> ")
			inner.id('n', 0)
			d.WriteString(" [style=dotted, arrowhead=none, color=\"#555555\"];\n")
		}
	}
}
