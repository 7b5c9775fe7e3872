// Writes a plan as text for people: streams, ops, the reason for every wait, and totals.

package plan

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/internal/words"
)

// WriteText writes the plan of g for people. With a timeline each node has its predicted start and end; nil leaves them out.
func (p *Plan) WriteText(w io.Writer, g *dag.Graph, t *Timeline) error {
	if w == nil {
		return words.ErrNoWriter
	}
	if err := p.checkNodes(g); err != nil {
		return err
	}
	if t != nil && len(t.Nodes) != g.Len() {
		return fmt.Errorf("the timeline has %d nodes, the graph %d", len(t.Nodes), g.Len())
	}
	out := bufio.NewWriterSize(w, 1<<16)
	nodes, streams := words.Count(g.Len(), "node", "nodes"), words.Count(len(p.Streams), "stream", "streams")
	fmt.Fprintf(out, "%s: %s on %s", p.Name, nodes, streams)
	switch {
	case p.Strategy == p.Requested || p.Requested == "":
		fmt.Fprintf(out, ", strategy %s", p.Strategy)
	default:
		// Asked for by itself, the strategy that auto took would use other numbers of streams, and not search on.
		fmt.Fprintf(out, ", strategy %s (by %s)", p.Requested, p.Strategy)
	}
	if p.Machine != "" {
		fmt.Fprintf(out, ", machine %s", p.Machine)
	}
	out.WriteByte('\n')
	if p.Note != "" {
		fmt.Fprintf(out, "%s\n", p.Note)
	}
	p.writeSpread(out)

	p.writeStreams(out, g, t)
	if err := p.writeBodies(out, g); err != nil {
		return err
	}
	writeAsGraph(out, g)
	p.writeTotals(out, g, t)
	return out.Flush()
}

// declared is what a file calls a stream, " (stream: 2 in the file)", where the plan has another number for it.
func (p *Plan) declared(g *dag.Graph, stream int) string {
	for _, op := range p.Streams[stream].Ops {
		if number := g.Nodes[op.Node].Stream.Number(); op.Kind == Launch && number >= 0 && number != int32(stream) {
			return fmt.Sprintf(" (stream: %d in the file)", number)
		}
	}
	return ""
}

// writeStreams writes the ops of each stream.
func (p *Plan) writeStreams(out *bufio.Writer, g *dag.Graph, t *Timeline) {
	reasons := newWaitReasons(g, p)
	const widest = 32 // longer names misalign only their own line
	column := 0
	for i := range g.Nodes {
		column = max(column, min(widest, words.Width(g.Nodes[i].Name)))
	}
	if p.Events > 0 {
		column = max(column, len("record "+strconv.Itoa(int(p.Events-1))))
	}
	for k := range p.Streams {
		s := &p.Streams[k]
		fmt.Fprintf(out, "\nstream %d%s", k, p.declared(g, k))
		if p.Banded() {
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
				name, note = g.Nodes[op.Node].Name, Action(g, op.Node)
			case Record:
				name = "record " + strconv.Itoa(int(op.Event))
			case Wait:
				name, note = "wait "+strconv.Itoa(int(op.Event)), reasons.text(int32(k), int32(i))
			}
			out.WriteString(name)
			if note != "" {
				fmt.Fprintf(out, "%*s%s", 2+max(0, column-words.Width(name)), "", note)
			}
			out.WriteByte('\n')
		}
	}
}

// given says what a lower bound takes as given: how the graph was made that is planned.
func (p *Plan) given() string {
	switch {
	case p.Spread == nil:
		return ""
	case len(p.Spread.Spilled) > 0:
		return " for these copies to host memory and back"
	}
	return " for this placement"
}

// writeTotals writes what all ops together are and take.
func (p *Plan) writeTotals(out *bufio.Writer, g *dag.Graph, t *Timeline) {
	s := &p.Stats
	fmt.Fprintf(out, "\n%s, %s, %s for %s\n", words.Count(s.Records, "record", "records"), words.Count(s.Waits, "wait", "waits"),
		words.Count(int(p.Events), "event", "events"), words.Count(s.Edges, "dependency", "dependencies"))
	makespan := s.MakespanUS
	if t != nil {
		makespan = t.MakespanUS
	}
	if guess := p.GuessText(g); makespan > 0 && guess != "" {
		fmt.Fprintf(out, "predicted %.2f us, a guess with %s\n", makespan, guess)
	} else if makespan > 0 {
		fmt.Fprintf(out, "predicted %.2f us", makespan)
		if s.LowerBoundUS > 0 {
			fmt.Fprintf(out, "; lower bound %.2f us", s.LowerBoundUS)
			if s.LowerBoundBy != "" {
				fmt.Fprintf(out, " (%s)", s.LowerBoundBy)
			}
			if above := 100 * aboveBound(makespan, s.LowerBoundUS); above == 0 {
				out.WriteString(", so this plan is optimal" + p.given())
			} else {
				fmt.Fprintf(out, ", so this plan is at most %.2f%% above the optimum%s", max(0.01, above), p.given())
			}
		}
		if s.CriticalPathUS > 0 && s.CriticalPathUS != s.LowerBoundUS {
			fmt.Fprintf(out, "; the longest chain takes %.2f us", s.CriticalPathUS)
		}
		out.WriteByte('\n')
	}
	if text := p.costText(g); text != "" {
		fmt.Fprintf(out, "costs: %s\n", text)
	}
	if text := p.passesText(g); text != "" {
		fmt.Fprintf(out, "loops: %s\n", text)
	}
	if s.SumDeviceBytes > 0 {
		fmt.Fprintf(out, "device memory %s", words.Bytes(s.PeakDeviceBytes))
		if s.PeakDeviceBytes != s.SumDeviceBytes {
			fmt.Fprintf(out, ", %s without sharing", words.Bytes(s.SumDeviceBytes))
		}
		out.WriteByte('\n')
	}
}

// Action says what a node does: h2d x -> d_x, set d, kernel scale, map y = a*x. A node that does not exist does nothing.
func Action(g *dag.Graph, i dag.NodeID) string {
	if i < 0 || int(i) >= g.Len() || g.Check() != nil {
		return "nothing"
	}
	node := &g.Nodes[i]
	switch {
	case node.Copy != nil:
		return fmt.Sprintf("%v %s -> %s", EngineOf(g, dag.NodeID(i)), g.RangeText(node.Copy.Src), g.RangeText(node.Copy.Dst))
	case node.Set != nil:
		return "set " + g.RangeText(node.Set.Dst)
	case node.Launch != nil && node.Launch.Map != nil:
		return "map " + node.Launch.Map.Text
	case node.Launch != nil:
		return node.Kind.String() + " " + node.Launch.Name
	case node.Communication != nil:
		return communicationText(g, node.Communication)
	case node.Function != "":
		return "host " + node.Function
	case node.Control != nil:
		return node.Control.Action(node.Kind)
	}
	return node.Kind.String()
}

func communicationText(g *dag.Graph, c *dag.Communication) string {
	if len(c.More) > 0 {
		return bucketText(g, c)
	}
	switch {
	case c.Verb != dag.Exchange && c.From == c.To:
		return fmt.Sprintf("%s %s", c.Verb, g.RangeText(c.From))
	case c.Verb != dag.Exchange:
		return fmt.Sprintf("%s %s -> %s", c.Verb, g.RangeText(c.From), g.RangeText(c.To))
	}
	text := ""
	for k, t := range c.Transfers {
		if k > 0 {
			text += ", "
		}
		peer := fmt.Sprintf("rank %d", t.Rank)
		if t.Rank < 0 || t.Rank >= max(g.Ranks, 1) {
			peer = "nobody"
		}
		if t.Receive {
			text += fmt.Sprintf("recv %s from %s", g.RangeText(t.Range), peer)
		} else {
			text += fmt.Sprintf("send %s to %s", g.RangeText(t.Range), peer)
		}
	}
	return text
}

// bucketText names the first few all-reduces of a bucket.
func bucketText(g *dag.Graph, c *dag.Communication) string {
	const named = 4
	text, bytes := fmt.Sprintf("%s %s", c.Verb, g.RangeText(c.To)), c.To.Bytes()
	for k := range c.More {
		if bytes += c.More[k].To.Bytes(); k+1 < named {
			text += ", " + g.RangeText(c.More[k].To)
		}
	}
	if more := len(c.More) + 1 - named; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return fmt.Sprintf("%s in one bucket of %s", text, words.Bytes(bytes))
}

// waitReasons finds the dependency behind each wait.
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

// of returns the dependency that a wait enforces: the one from the latest node that the other stream has run by then to the next
// node of this stream. If there is none, it is the one from the node that the wait names to the first later node of this stream that depends
// on it. If that does not exist either, the wait enforces an order that no dependency requires, such as that of buffers that share bytes.
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
		if r.g.IsJoin(q) {
			continue
		}
		if r.stream[q] == r.stream[waited] && r.place[q] <= r.place[waited] && (best < 0 || r.place[q] > r.place[best]) {
			best, edge = int32(q), edges[k]
		}
	}
	if dag.NodeID(best) != waited {
		for k, q := range preds {
			if r.g.IsJoin(q) && r.touches(waited, &r.g.Edges()[edges[k]]) {
				return edges[k], true
			}
		}
	}
	if best >= 0 {
		return edge, true
	}
	first := int32(-1)
	for _, to := range r.g.Succs(waited) {
		if !r.g.IsJoin(to) && r.stream[to] == stream && r.place[to] > op && (first < 0 || r.place[to] < r.place[first]) {
			first = int32(to)
		}
	}
	if first < 0 {
		return 0, false
	}
	for k, q := range r.g.Preds(dag.NodeID(first)) {
		if q == waited {
			edge = r.g.PredEdges(dag.NodeID(first))[k]
		}
	}
	return edge, true
}

// touches reports whether a node may be one of those that an edge from a join stands for: whether it accesses bytes of the edge in the mode
// of the edge.
func (r *waitReasons) touches(node dag.NodeID, e *dag.Edge) bool {
	mode := dag.Read
	if e.Why == dag.RAW {
		mode = dag.Write
	}
	for _, a := range r.g.Accesses(node) {
		if a.Mode&mode != 0 && a.Overlaps(r.g.EdgeRange(*e)) {
			return true
		}
	}
	return false
}

func (r *waitReasons) text(stream, op int32) string {
	waited := r.p.Streams[stream].Ops[op].Node
	text := fmt.Sprintf("%s (stream %d)", r.g.Nodes[waited].Name, r.stream[waited])
	k, ok := r.of(stream, op)
	if !ok {
		return text
	}
	e := &r.g.Edges()[k]
	if e.From != waited && !r.g.IsJoin(e.From) {
		return fmt.Sprintf("%s: %s, %s of %s", text, r.g.Nodes[e.To].Name, r.g.EdgeText(*e), r.g.Nodes[e.From].Name)
	}
	return fmt.Sprintf("%s: %s, %s", text, r.g.Nodes[e.To].Name, r.g.EdgeText(*e))
}

// writeAsGraph says what becomes of loops and branches if the plan is replayed as a graph.
func writeAsGraph(out *bufio.Writer, g *dag.Graph) {
	if !g.HasControl() {
		return
	}
	if why := g.NotInGraph(); why != "" {
		fmt.Fprintf(out, "\nit cannot be a graph: %s; the host tests the conditions\n", why)
		return
	}
	out.WriteString("\nas a graph, the device tests the conditions (drivers since CUDA 12.4); as streams, the host does\n")
}

// writeBodies writes the bodies' schedules, indented.
func (p *Plan) writeBodies(out *bufio.Writer, g *dag.Graph) error {
	for _, b := range p.Bodies {
		body := bodyOf(g, b.Node, b.Body)
		if body == nil || b.Plan == nil {
			return fmt.Errorf("%w: the plan has body %d of node %d, which the graph does not have", ErrPlanShape, b.Body, b.Node)
		}
		if err := b.Plan.checkNodes(body); err != nil {
			return err
		}
		var text bytes.Buffer
		inner := bufio.NewWriter(&text)
		b.Plan.writeStreams(inner, body, nil)
		if err := b.Plan.writeBodies(inner, body); err != nil {
			return err
		}
		if err := inner.Flush(); err != nil {
			return err
		}
		fmt.Fprintf(out, "\nin %s\n", bodyTitle(g, b.Node, b.Body))
		for _, line := range strings.Split(strings.Trim(text.String(), "\n"), "\n") {
			if line != "" {
				line = "  " + line
			}
			fmt.Fprintf(out, "%s\n", line)
		}
	}
	return nil
}
