// Ancestry: what directly precedes each launch, by a plan's ops or by a list of edges, and the walk along it. Only nodes that another
// stream refers to have a clock of their own.

package proof

import (
	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/planner/plan"
)

// ancestry holds the direct predecessors of each node, in submission order of the nodes.
type ancestry struct {
	s       *schedule
	streams int
	start   []int32 // by place in the submission order
	from    []int32
	row     []int32 // by node: its clock. Nodes that only the next launch of their stream refers to share the clock of their stream
	rows    int

	wide   int
	low    int
	clocks []int32 // by row, wide each
	above  []int32 // what comes before the direct predecessors of the node returned last
	clock  []int32 // the same, including the direct predecessors
	at     int
}

// of returns the direct predecessors of the k-th node submitted.
func (a *ancestry) of(k int) []int32 { return a.from[a.start[k]:a.start[k+1]] }

// planAncestry reads a plan's ops: the direct predecessors of a launch are the launch before it on its stream and the nodes that its stream
// has waited for since.
func planAncestry(p *plan.Plan, s *schedule) *ancestry {
	return planAncestryAnd(p, s, nil)
}

// planAncestryAnd adds pairs as if the plan enforced them. The pairs are ordered by submission of the later node.
func planAncestryAnd(p *plan.Plan, s *schedule, more []pair) *ancestry {
	a := &ancestry{s: s, streams: len(p.Streams), start: make([]int32, 1, len(s.order)+1)}
	last := make([]int32, len(p.Streams)) // the stream's last launch, plus 1
	pending := make([][]int32, len(p.Streams))
	stands := make([]int32, p.Events) // the node that an event's record follows
	extra := map[int32][]int32{}      // what the stream had waited for between that node and the record
	stamp := make([]int32, len(s.order))
	forEachOp(p, func(_ int, stream int32, op *plan.Op) {
		switch op.Kind {
		case plan.Record:
			stands[op.Event] = int32(op.Node)
			delete(extra, op.Event)
			if len(pending[stream]) > 0 {
				extra[op.Event] = append([]int32(nil), pending[stream]...)
			}
		case plan.Wait:
			pending[stream] = append(append(pending[stream], stands[op.Event]), extra[op.Event]...)
		case plan.Launch:
			k := int32(len(a.start))
			add := func(from int32) {
				if stamp[from] != k {
					stamp[from] = k
					a.from = append(a.from, from)
				}
			}
			if last[stream] > 0 {
				add(last[stream] - 1)
			}
			for _, from := range pending[stream] {
				add(from)
			}
			for len(more) > 0 && dag.NodeID(more[0].to) == op.Node {
				add(more[0].from)
				more = more[1:]
			}
			pending[stream] = pending[stream][:0]
			last[stream] = int32(op.Node + 1)
			a.start = append(a.start, int32(len(a.from)))
		}
	})
	a.assignRows()
	return a
}

// assignRows gives each node a clock.
func (a *ancestry) assignRows() {
	a.row = make([]int32, len(a.s.spots))
	for i := range a.row {
		a.row[i] = a.s.spots[i].stream
	}
	a.rows = a.streams
	for k, node := range a.s.order {
		at := a.s.spots[node]
		for _, from := range a.of(k) {
			before := a.s.spots[from]
			if a.row[from] < int32(a.streams) && (before.stream != at.stream || before.pos+1 != at.pos) {
				a.row[from] = int32(a.rows)
				a.rows++
			}
		}
	}
	a.wide = walkWidth(a.streams, a.rows)
	a.clocks = make([]int32, a.rows*a.wide)
	a.above, a.clock = make([]int32, a.wide), make([]int32, a.wide)
}

func (a *ancestry) width() int { return a.wide }

func (a *ancestry) begin(low int) {
	a.low, a.at = low, 0
	clear(a.clocks)
}

func (a *ancestry) next() (int32, []int32) {
	if a.at == len(a.s.order) {
		return -1, nil
	}
	node := a.s.order[a.at]
	clear(a.above)
	for _, from := range a.of(a.at) {
		row := int(a.row[from]) * a.wide
		raise(a.above, a.clocks[row:row+a.wide])
	}
	copy(a.clock, a.above)
	for _, from := range a.of(a.at) {
		at := a.s.spots[from]
		if own := int(at.stream) - a.low; own >= 0 && own < a.wide && a.clock[own] < at.pos {
			a.clock[own] = at.pos
		}
	}
	row := int(a.row[node]) * a.wide
	copy(a.clocks[row:row+a.wide], a.clock)
	a.at++
	return node, a.clock
}

// needless marks the direct predecessors, by index into from, that also come before another direct predecessor.
func (a *ancestry) needless() []bool {
	found := make([]bool, len(a.from))
	for low := 0; low < a.streams; low += a.wide {
		a.begin(low)
		for k := range a.s.order {
			a.next()
			for i := a.start[k]; i < a.start[k+1]; i++ {
				at := a.s.spots[a.from[i]]
				if own := int(at.stream) - low; own >= 0 && own < a.wide && a.above[own] >= at.pos {
					found[i] = true
				}
			}
		}
	}
	return found
}
