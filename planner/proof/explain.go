// Why each dependency holds: by one stream, by a wait, or by waits for other nodes that imply it.

package proof

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/planner/plan"
)

// How says what enforces a dependency.
type How uint8

const (
	NotEnforced  How = iota // nothing does
	BySameStream            // both nodes are on one stream, in this order
	ByWait                  // the later node's stream waits for the earlier node right before it
	ByEarlier               // waits that enforce other dependencies imply it
)

var howNames = [...]string{"not enforced", "same stream", "wait", "already ordered"}

func (h How) String() string {
	if int(h) >= len(howNames) {
		return fmt.Sprintf("How(%d)", uint8(h))
	}
	return howNames[h]
}

// Enforcement is how a plan enforces one dependency.
type Enforcement struct {
	Edge int32 // index into the graph's Edges; it leads to To
	// From is the node that must have finished: the edge's own or, if the edge comes from a join, the last node on its stream of those
	// that lead to the join.
	From, To dag.NodeID
	How      How
	// Waits lead from the later node back to the stream of the earlier one: the first wait is on the later node's stream, and each further one
	// is on the stream that the one before it waits for. Empty for BySameStream and NotEnforced.
	Waits []WaitLink
}

// WaitLink is one wait of a chain.
type WaitLink struct {
	Op     int32 // index of the wait into Plan.Order
	Stream int32 // the stream that waits
	Event  int32
	Node   dag.NodeID // the node that the wait names: the event is recorded after it
	On     int32      // the stream of Node
	Held   dag.NodeID // the first node that the wait holds back, -1 for none
}

// Explain returns for every dependency of a graph how a plan enforces it, in the order of the graph's edges. An edge from a join is
// explained for each stream, for the last node on it that leads to the join; edges to joins are left out. The plan need not pass [Verify].
// An error is a *Violation that tells why the plan is not a schedule.
func Explain(g *dag.Graph, p *plan.Plan) ([]Enforcement, error) {
	s, v := readSchedule(g, p)
	if v != nil {
		return nil, v
	}
	found := make([]Enforcement, 0, len(g.Edges()))
	lasts := lastBefore(g, s)
	for k, e := range g.Edges() {
		switch {
		case g.IsJoin(e.To):
		case g.IsJoin(e.From):
			for _, from := range lasts[int(e.From)-g.Len()] {
				found = append(found, Enforcement{Edge: int32(k), From: dag.NodeID(from), To: e.To})
			}
		default:
			found = append(found, Enforcement{Edge: int32(k), From: e.From, To: e.To})
		}
	}
	var asked []int32 // those between streams
	for k := range found {
		from, to := s.spots[found[k].From], s.spots[found[k].To]
		switch {
		case from.stream != to.stream:
			asked = append(asked, int32(k))
		case from.pos < to.pos:
			found[k].How = BySameStream
		}
	}
	if len(asked) == 0 {
		return found, nil
	}
	x := newExplainer(p, s)
	rank := s.ranks()
	order := countingSort(len(asked), len(s.order), nil, func(k int32) int32 { return rank[found[asked[k]].To] })
	blocks := (len(p.Streams) + x.wide - 1) / x.wide
	order = countingSort(len(asked), blocks, order, func(k int32) int32 { return s.spots[found[asked[k]].From].stream / int32(x.wide) })
	for i, k := range order {
		order[i] = asked[k]
	}
	for len(order) > 0 {
		low := int(s.spots[found[order[0]].From].stream) / x.wide * x.wide
		end := 0
		for end < len(order) && int(s.spots[found[order[end]].From].stream) < low+x.wide {
			end++
		}
		x.walk(low, order[:end], found)
		order = order[end:]
	}
	return found, nil
}

// lastBefore returns the nodes that lead to each join, of those on one stream only the last.
func lastBefore(g *dag.Graph, s *schedule) [][]int32 {
	lasts := make([][]int32, len(g.Joins()))
	latest := map[int32]int32{} // by stream
	note := func(node int32) {
		at := s.spots[node]
		if known, ok := latest[at.stream]; !ok || s.spots[known].pos < at.pos {
			latest[at.stream] = node
		}
	}
	for _, i := range g.Sequence() {
		if !g.IsJoin(i) {
			continue
		}
		clear(latest)
		for _, from := range g.Preds(i) {
			if !g.IsJoin(from) {
				note(int32(from))
				continue
			}
			for _, node := range lasts[int(from)-g.Len()] {
				note(node)
			}
		}
		lasts[int(i)-g.Len()] = slices.Sorted(maps.Values(latest))
	}
	return lasts
}

// rise is when a stream learned that launches of a source stream have finished.
type rise struct{ op, pos int32 }

// explainer walks a plan and remembers by which wait each stream learned what.
type explainer struct {
	p        *plan.Plan
	s        *schedule
	wide     int
	index    []int32 // by op in Plan.Order: its place on its stream
	recordOp []int32 // for a wait, its record
	held     []int32 // for a wait, the first launch after it on its stream, -1 for none
	streams  []int32
	events   []int32
	rises    [][]rise // by stream, wide each
}

func newExplainer(p *plan.Plan, s *schedule) *explainer {
	n := len(p.Streams)
	x := &explainer{p: p, s: s, wide: walkWidth(n, n+int(p.Events)),
		index: make([]int32, len(p.Order)), recordOp: make([]int32, len(p.Order)), held: make([]int32, len(p.Order))}
	x.streams = make([]int32, n*x.wide)
	x.events = make([]int32, int(p.Events)*x.wide)
	x.rises = make([][]rise, n*x.wide)
	latest := make([]int32, p.Events)
	open := make([][]int32, n) // waits since the stream's last launch
	next := make([]int32, n)
	forEachOp(p, func(at int, stream int32, op *plan.Op) {
		x.index[at] = next[stream]
		next[stream]++
		switch op.Kind {
		case plan.Record:
			latest[op.Event] = int32(at)
		case plan.Wait:
			x.recordOp[at], x.held[at] = latest[op.Event], -1
			open[stream] = append(open[stream], int32(at))
		case plan.Launch:
			for _, wait := range open[stream] {
				x.held[wait] = int32(op.Node)
			}
			open[stream] = open[stream][:0]
		}
	})
	return x
}

// walk explains the given dependencies, in submission order of the later node. Their sources are on the followed streams, which start at low.
func (x *explainer) walk(low int, asked []int32, found []Enforcement) {
	w := x.wide
	clear(x.streams)
	clear(x.events)
	for i := range x.rises {
		x.rises[i] = x.rises[i][:0]
	}
	forEachOp(x.p, func(at int, stream int32, op *plan.Op) {
		row := x.streams[int(stream)*w : int(stream)*w+w]
		switch op.Kind {
		case plan.Record:
			copy(x.events[int(op.Event)*w:int(op.Event)*w+w], row)
		case plan.Wait:
			for i, pos := range x.events[int(op.Event)*w : int(op.Event)*w+w] {
				if row[i] < pos {
					row[i] = pos
					if int(stream) != low+i {
						x.rises[int(stream)*w+i] = append(x.rises[int(stream)*w+i], rise{int32(at), pos})
					}
				}
			}
		case plan.Launch:
			for len(asked) > 0 && found[asked[0]].To == op.Node {
				e := &found[asked[0]]
				from := x.s.spots[e.From]
				if row[int(from.stream)-low] >= from.pos {
					e.Waits = x.chain(stream, from, low)
					e.How = ByEarlier
					if len(e.Waits) == 1 && e.Waits[0].Held == op.Node {
						e.How = ByWait
					}
				}
				asked = asked[1:]
			}
			if own := int(stream) - low; own >= 0 && own < w {
				row[own] = x.s.spots[op.Node].pos
			}
		}
	})
}

// chain follows the waits by which a stream came to be ordered after a launch, back to the stream of that launch.
func (x *explainer) chain(stream int32, from spot, low int) []WaitLink {
	var links []WaitLink
	for stream != from.stream {
		rises := x.rises[int(stream)*x.wide+int(from.stream)-low]
		first, _ := slices.BinarySearchFunc(rises, from.pos, func(r rise, pos int32) int { return int(r.pos) - int(pos) })
		op := rises[first].op
		wait := &x.p.Streams[stream].Ops[x.index[op]]
		on := x.p.Order[x.recordOp[op]]
		links = append(links, WaitLink{Op: op, Stream: stream, Event: wait.Event, Node: wait.Node, On: on, Held: dag.NodeID(x.held[op])})
		stream = on
	}
	return links
}

// Text describes the enforcement: "stream 1 waits on event 3 before ...".
func (e *Enforcement) Text(g *dag.Graph) string {
	if e == nil {
		return NotEnforced.String()
	}
	if e.How == ByWait && len(e.Waits) == 0 {
		return e.How.String()
	}
	switch e.How {
	case BySameStream:
		return "same stream"
	case NotEnforced:
		return "not enforced"
	case ByWait:
		w := e.Waits[0]
		if w.Node == e.From {
			return fmt.Sprintf("stream %d waits on event %d", w.Stream, w.Event)
		}
		return fmt.Sprintf("stream %d waits on event %d, recorded after %q, which follows %q on stream %d",
			w.Stream, w.Event, plan.NodeName(g, w.Node), plan.NodeName(g, e.From), w.On)
	}
	var text strings.Builder
	text.WriteString("already ordered: ")
	for i, w := range e.Waits {
		if i > 0 {
			text.WriteString(", and ")
		}
		fmt.Fprintf(&text, "stream %d waited on event %d (%q, stream %d)", w.Stream, w.Event, plan.NodeName(g, w.Node), w.On)
		if w.Held >= 0 {
			fmt.Fprintf(&text, " before %q", plan.NodeName(g, w.Held))
		}
	}
	return text.String()
}
