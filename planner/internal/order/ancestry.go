// Ancestry: what directly precedes each launch, by a plan's ops, and the walk that follows it. Keeps a clock for those nodes only
// that something else than their own stream looks back at.

package order

import (
	"github.com/dagrun/dagrun/planner/plan"
)

// Ancestry holds the direct predecessors of each node, in submission order of the nodes.
type Ancestry struct {
	s       *Schedule
	streams int
	Start   []int32 // by place in the submission order
	From    []int32
	row     []int32 // by node: its clock. Nodes that only their stream's next launch looks back at share their stream's
	rows    int

	wide   int
	low    int
	clocks []int32 // by row, wide each
	above  []int32 // what the direct predecessors of the node returned last have before them
	clock  []int32 // the same with the direct predecessors themselves
	at     int
}

// Of are the direct predecessors of the k-th node submitted.
func (a *Ancestry) Of(k int) []int32 { return a.From[a.Start[k]:a.Start[k+1]] }

// NewAncestry reads a plan's ops: before a launch come the launch before it on its stream and what its stream has waited
// for since.
func NewAncestry(p *plan.Plan, s *Schedule) *Ancestry {
	a := &Ancestry{s: s, streams: len(p.Streams), Start: make([]int32, 1, len(s.Order)+1)}
	last := make([]int32, len(p.Streams)) // the stream's last launch, plus 1
	pending := make([][]int32, len(p.Streams))
	stands := make([]int32, p.Events) // the node that an event's record follows
	extra := map[int32][]int32{}      // what the stream had waited for between that node and the record
	stamp := make([]int32, len(s.Order))
	forEachOp(p, func(_ int, stream int32, op *plan.Op) {
		switch op.Kind {
		case plan.Record:
			stands[op.Event] = op.Node
			delete(extra, op.Event)
			if len(pending[stream]) > 0 {
				extra[op.Event] = append([]int32(nil), pending[stream]...)
			}
		case plan.Wait:
			pending[stream] = append(append(pending[stream], stands[op.Event]), extra[op.Event]...)
		case plan.Launch:
			k := int32(len(a.Start))
			add := func(from int32) {
				if stamp[from] != k {
					stamp[from] = k
					a.From = append(a.From, from)
				}
			}
			if last[stream] > 0 {
				add(last[stream] - 1)
			}
			for _, from := range pending[stream] {
				add(from)
			}
			pending[stream] = pending[stream][:0]
			last[stream] = op.Node + 1
			a.Start = append(a.Start, int32(len(a.From)))
		}
	})
	a.assignRows()
	return a
}

// assignRows gives each node a clock.
func (a *Ancestry) assignRows() {
	a.row = make([]int32, len(a.s.Spots))
	for i := range a.row {
		a.row[i] = a.s.Spots[i].Stream
	}
	a.rows = a.streams
	for k, node := range a.s.Order {
		at := a.s.Spots[node]
		for _, from := range a.Of(k) {
			before := a.s.Spots[from]
			if a.row[from] < int32(a.streams) && (before.Stream != at.Stream || before.Pos+1 != at.Pos) {
				a.row[from] = int32(a.rows)
				a.rows++
			}
		}
	}
	a.wide = walkWidth(a.streams, a.rows)
	a.clocks = make([]int32, a.rows*a.wide)
	a.above, a.clock = make([]int32, a.wide), make([]int32, a.wide)
}

func (a *Ancestry) begin(low int) {
	a.low, a.at = low, 0
	clear(a.clocks)
}

func (a *Ancestry) next() (int32, []int32) {
	if a.at == len(a.s.Order) {
		return -1, nil
	}
	node := a.s.Order[a.at]
	clear(a.above)
	for _, from := range a.Of(a.at) {
		row := int(a.row[from]) * a.wide
		raise(a.above, a.clocks[row:row+a.wide])
	}
	copy(a.clock, a.above)
	for _, from := range a.Of(a.at) {
		at := a.s.Spots[from]
		if own := int(at.Stream) - a.low; own >= 0 && own < a.wide && a.clock[own] < at.Pos {
			a.clock[own] = at.Pos
		}
	}
	row := int(a.row[node]) * a.wide
	copy(a.clocks[row:row+a.wide], a.clock)
	a.at++
	return node, a.clock
}

// Needless finds the direct predecessors that another direct predecessor already has before it, by index into from.
func (a *Ancestry) Needless() []bool {
	found := make([]bool, len(a.From))
	for low := 0; low < a.streams; low += a.wide {
		a.begin(low)
		for k := range a.s.Order {
			a.next()
			for i := a.Start[k]; i < a.Start[k+1]; i++ {
				at := a.s.Spots[a.From[i]]
				if own := int(at.Stream) - low; own >= 0 && own < a.wide && a.above[own] >= at.Pos {
					found[i] = true
				}
			}
		}
	}
	return found
}
