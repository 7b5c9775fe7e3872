// The plan as text for people: streams, ops, the reason of every wait, what it comes to. Made to be read, not parsed.

package planner

import (
	"bufio"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode"

	"github.com/dagrun/dagrun/dag"
)

// WriteText writes the plan of g for people. With a timeline each node has its predicted start and end; nil leaves them out.
func (p *Plan) WriteText(w io.Writer, g *dag.Graph, t *Timeline) error {
	if err := p.checkNodes(g); err != nil {
		return err
	}
	if t != nil && len(t.Nodes) != g.Len() {
		return fmt.Errorf("a timeline of %d nodes for a graph of %d", len(t.Nodes), g.Len())
	}
	out := bufio.NewWriterSize(w, 1<<16)
	reasons := newWaitReasons(g, p)
	nodes, streams := plural(g.Len(), "node", "nodes"), plural(len(p.Streams), "stream", "streams")
	fmt.Fprintf(out, "%s: %s on %s", p.Name, nodes, streams)
	switch {
	case p.Strategy == p.Requested || p.Requested == "":
		fmt.Fprintf(out, ", strategy %s", p.Strategy)
	default:
		fmt.Fprintf(out, ", strategy %s (asked for: %s)", p.Strategy, p.Requested)
	}
	if p.Machine != "" {
		fmt.Fprintf(out, ", machine %s", p.Machine)
	}
	out.WriteByte('\n')
	if p.Note != "" {
		fmt.Fprintf(out, "%s\n", p.Note)
	}

	const widest = 32 // longer names push their line only
	column := 0
	for i := range g.Nodes {
		column = max(column, min(widest, textWidth(g.Nodes[i].Name)))
	}
	if p.Events > 0 {
		column = max(column, len("record "+strconv.Itoa(int(p.Events-1))))
	}
	for k := range p.Streams {
		s := &p.Streams[k]
		fmt.Fprintf(out, "\nstream %d", k)
		if p.manyDevices() {
			fmt.Fprintf(out, "  device %d", s.Device)
		}
		if s.Priority != dag.Normal {
			fmt.Fprintf(out, "  %v priority", s.Priority)
		}
		out.WriteByte('\n')
		if t != nil && len(s.Ops) > 0 {
			fmt.Fprintf(out, "  %10s %10s\n", "start us", "end us")
		}
		for i, op := range s.Ops {
			out.WriteString("  ")
			if t != nil {
				if op.Kind == Launch {
					fmt.Fprintf(out, "%10.2f %10.2f  ", t.Nodes[op.Node].Start, t.Nodes[op.Node].End)
				} else {
					fmt.Fprintf(out, "%23s", "")
				}
			}
			name, note := "", ""
			switch op.Kind {
			case Launch:
				name, note = g.Nodes[op.Node].Name, action(g, op.Node)
			case Record:
				name = "record " + strconv.Itoa(int(op.Event))
			case Wait:
				name, note = "wait "+strconv.Itoa(int(op.Event)), reasons.text(int32(k), int32(i))
			}
			out.WriteString(name)
			if note != "" {
				fmt.Fprintf(out, "%*s%s", 2+max(0, column-textWidth(name)), "", note)
			}
			out.WriteByte('\n')
		}
	}
	p.writeTotals(out, t)
	return out.Flush()
}

func (p *Plan) writeTotals(out *bufio.Writer, t *Timeline) {
	s := &p.Stats
	fmt.Fprintf(out, "\n%s, %s, %s for %s\n", plural(s.Records, "record", "records"), plural(s.Waits, "wait", "waits"),
		plural(int(p.Events), "event", "events"), plural(s.Edges, "dependency", "dependencies"))
	makespan := s.MakespanUS
	if t != nil {
		makespan = t.MakespanUS
	}
	if makespan > 0 {
		fmt.Fprintf(out, "predicted %.2f us", makespan)
		if s.LowerBoundUS > 0 {
			fmt.Fprintf(out, "; no plan can beat %.2f us", s.LowerBoundUS)
		}
		if s.CriticalPathUS > 0 && s.CriticalPathUS != s.LowerBoundUS {
			fmt.Fprintf(out, "; the longest chain takes %.2f us", s.CriticalPathUS)
		}
		out.WriteByte('\n')
	}
	if s.SumDeviceBytes > 0 {
		fmt.Fprintf(out, "device memory %s", byteText(s.PeakDeviceBytes))
		if s.PeakDeviceBytes != s.SumDeviceBytes {
			fmt.Fprintf(out, ", %s if no buffers shared bytes", byteText(s.SumDeviceBytes))
		}
		out.WriteByte('\n')
	}
}

func (p *Plan) manyDevices() bool {
	for k := range p.Streams {
		if p.Streams[k].Device != p.Streams[0].Device || p.Streams[k].Device != 0 {
			return true
		}
	}
	return false
}

// action says what a node does in a few words.
func action(g *dag.Graph, i int32) string {
	node := &g.Nodes[i]
	switch {
	case node.Copy != nil:
		return fmt.Sprintf("%v %s -> %s", EngineOf(g, i), g.RangeText(node.Copy.Src), g.RangeText(node.Copy.Dst))
	case node.Set != nil:
		return "set " + g.RangeText(node.Set.Dst)
	case node.Launch != nil && node.Launch.Map != nil:
		return "map " + node.Launch.Map.Text
	case node.Launch != nil && node.Launch.Kernel != nil:
		return "kernel " + node.Launch.Kernel.Entry()
	}
	return node.Kind.String()
}

func plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return strconv.Itoa(n) + " " + many
}

// byteText is a size for people.
func byteText(n int64) string {
	units := []string{"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"}
	if n < 1024 {
		return plural(int(n), "byte", "bytes")
	}
	v := float64(n) / 1024
	k := 0
	for v >= 1023.995 && k < len(units)-1 {
		v /= 1024
		k++
	}
	return strings.TrimSuffix(strconv.FormatFloat(v, 'f', 2, 64), ".00") + " " + units[k]
}

// wide holds what terminals give two columns: the scripts and signs of East Asia, and emoji. It is never changed.
var wide = &unicode.RangeTable{
	R16: []unicode.Range16{
		{0x1100, 0x115f, 1}, {0x231a, 0x231b, 1}, {0x23e9, 0x23ec, 1}, {0x23f0, 0x23f3, 3}, {0x25fd, 0x25fe, 1}, {0x2614, 0x2615, 1},
		{0x2648, 0x2653, 1}, {0x267f, 0x2693, 20}, {0x26a1, 0x26a1, 1}, {0x26aa, 0x26ab, 1}, {0x26bd, 0x26be, 1}, {0x26c4, 0x26c5, 1},
		{0x26ce, 0x26d4, 6}, {0x26ea, 0x26ea, 1}, {0x26f2, 0x26f3, 1}, {0x26f5, 0x26fa, 5}, {0x26fd, 0x2705, 8}, {0x270a, 0x270b, 1},
		{0x2728, 0x2728, 1}, {0x274c, 0x274e, 2}, {0x2753, 0x2755, 1}, {0x2757, 0x2757, 1}, {0x2795, 0x2797, 1}, {0x27b0, 0x27bf, 15},
		{0x2b1b, 0x2b1c, 1}, {0x2b50, 0x2b55, 5}, {0x2e80, 0x303e, 1}, {0x3041, 0xa4cf, 1}, {0xa960, 0xa97c, 1}, {0xac00, 0xd7a3, 1},
		{0xf900, 0xfaff, 1}, {0xfe30, 0xfe6b, 1}, {0xff01, 0xff60, 1}, {0xffe0, 0xffe6, 1},
	},
	R32: []unicode.Range32{
		{0x16fe0, 0x18cff, 1}, {0x1b000, 0x1b2ff, 1}, {0x1f004, 0x1f004, 1}, {0x1f0cf, 0x1f0cf, 1}, {0x1f18e, 0x1f18e, 1}, {0x1f191, 0x1f19a, 1},
		{0x1f200, 0x1f320, 1}, {0x1f32d, 0x1f64f, 1}, {0x1f680, 0x1f6ff, 1}, {0x1f7e0, 0x1f7f0, 1}, {0x1f90c, 0x1f9ff, 1}, {0x1fa70, 0x1faff, 1},
		{0x20000, 0x3fffd, 1},
	},
}

// textWidth is how many columns a terminal gives a text.
func textWidth(s string) int {
	width := 0
	for _, r := range s {
		switch {
		case r < 0x300:
			width++
		case unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf):
		case unicode.Is(wide, r):
			width += 2
		default:
			width++
		}
	}
	return width
}

// waitReasons finds what a wait is for.
type waitReasons struct {
	g      *dag.Graph
	p      *Plan
	stream []int32 // of each node
	place  []int32 // of each node in its stream's ops
}

func newWaitReasons(g *dag.Graph, p *Plan) *waitReasons {
	r := &waitReasons{g: g, p: p, stream: make([]int32, g.Len()), place: make([]int32, g.Len())}
	for k := range p.Streams {
		for i, op := range p.Streams[k].Ops {
			if op.Kind == Launch {
				r.stream[op.Node], r.place[op.Node] = int32(k), int32(i)
			}
		}
	}
	return r
}

// of returns the dependency that a wait enforces: the one from the latest node that the waited stream has run by then to the
// next node of its own, else the first to a later one. No such edge means that the wait keeps an order that no data asks
// for, such as that of buffers that share bytes.
func (r *waitReasons) of(stream, op int32) (edge int32, ok bool) {
	ops := r.p.Streams[stream].Ops
	waited := ops[op].Node
	next := op + 1
	for int(next) < len(ops) && ops[next].Kind != Launch {
		next++
	}
	if int(next) == len(ops) {
		return 0, false
	}
	node := ops[next].Node
	best := int32(-1)
	preds, edges := r.g.Preds(node), r.g.PredEdges(node)
	for k, q := range preds {
		if r.stream[q] == r.stream[waited] && r.place[q] <= r.place[waited] && (best < 0 || r.place[q] > r.place[best]) {
			best, edge = q, edges[k]
		}
	}
	if best >= 0 {
		return edge, true
	}
	first := int32(-1)
	for _, to := range r.g.Succs(waited) {
		if r.stream[to] == stream && r.place[to] > op && (first < 0 || r.place[to] < r.place[first]) {
			first = to
		}
	}
	if first < 0 {
		return 0, false
	}
	for k, q := range r.g.Preds(first) {
		if q == waited {
			edge = r.g.PredEdges(first)[k]
		}
	}
	return edge, true
}

func (r *waitReasons) text(stream, op int32) string {
	waited := r.p.Streams[stream].Ops[op].Node
	text := fmt.Sprintf("%s (stream %d)", r.g.Nodes[waited].Name, r.stream[waited])
	k, ok := r.of(stream, op)
	if !ok {
		return text
	}
	e := &r.g.Edges()[k]
	if e.From != waited {
		return fmt.Sprintf("%s: %s, %s of %s", text, r.g.Nodes[e.To].Name, r.g.EdgeText(*e), r.g.Nodes[e.From].Name)
	}
	return fmt.Sprintf("%s: %s, %s", text, r.g.Nodes[e.To].Name, r.g.EdgeText(*e))
}
