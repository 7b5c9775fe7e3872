// Clocks: at each launch of a plan, what is known to have finished on each stream. For plans that are known to be whole.

package order

import (
	"github.com/dagrun/dagrun/planner/internal/scratch"
	"github.com/dagrun/dagrun/planner/plan"
)

// clockWidth is how many source streams one walk follows. Clocks of every stream against every stream would take gigabytes
// for thousands of streams; a walk per block of them takes time only for blocks that something is asked about.
const clockWidth = 64

// ClockEntries bounds the clocks that a walk keeps, to 64 MiB.
const ClockEntries = 1 << 24

// walkWidth is how many source streams a walk follows that keeps so many clocks.
func walkWidth(streams, clocks int) int {
	width := min(streams, clockWidth)
	if clocks*width > ClockEntries {
		width = min(width, max(8, ClockEntries/clocks))
	}
	return width
}

// Clocks reads a plan's ops. It keeps a clock per stream and per event, none per node.
type Clocks struct {
	p       *plan.Plan
	s       *Schedule
	wide    int
	low     int
	streams []int32 // by stream, wide each
	events  []int32 // by event, wide each
	cursor  []int32 // by stream, its next op
	at      int     // position in p.Order
	last    int32   // the node returned last, which its stream's clock does not count yet
}

func NewClocks(p *plan.Plan, s *Schedule) *Clocks {
	c := &Clocks{}
	c.follow(p, s)
	return c
}

// follow makes the clocks those of a plan.
func (c *Clocks) follow(p *plan.Plan, s *Schedule) {
	n := len(p.Streams)
	c.p, c.s, c.wide, c.last = p, s, walkWidth(n, n+int(p.Events)), -1
	c.streams, c.events, c.cursor = scratch.Sized(c.streams, n*c.wide), scratch.Sized(c.events, int(p.Events)*c.wide), scratch.Sized(c.cursor, n)
}

func (c *Clocks) Width() int { return c.wide }

func (c *Clocks) Begin(low int) {
	c.low, c.at, c.last = low, 0, -1
	clear(c.streams)
	clear(c.events)
	clear(c.cursor)
}

func (c *Clocks) Next() (int32, []int32) {
	order, streams, w := c.p.Order, c.p.Streams, c.wide
	if c.last >= 0 {
		at := c.s.Spots[c.last]
		if own := int(at.Stream) - c.low; own >= 0 && own < w {
			c.streams[int(at.Stream)*w+own] = at.Pos
		}
	}
	for c.at < len(order) {
		stream := order[c.at]
		c.at++
		op := &streams[stream].Ops[c.cursor[stream]]
		c.cursor[stream]++
		row := c.streams[int(stream)*w : int(stream)*w+w]
		switch op.Kind {
		case plan.Launch:
			c.last = op.Node
			return op.Node, row
		case plan.Record:
			copy(c.events[int(op.Event)*w:int(op.Event)*w+w], row)
		case plan.Wait:
			raise(row, c.events[int(op.Event)*w:int(op.Event)*w+w])
		}
	}
	c.last = -1
	return -1, nil
}

// raise makes a clock know what another knows.
func raise(clock, other []int32) {
	clock = clock[:len(other)]
	for i, done := range other {
		clock[i] = max(clock[i], done)
	}
}
