// Clocks: at each launch of a plan, what is known to have finished on each stream. For plans that are known to be whole.

package planner

// ordClockWidth is how many source streams one walk follows. Clocks of every stream against every stream would take gigabytes
// for thousands of streams; a walk per block of them takes time only for blocks that something is asked about.
const ordClockWidth = 64

// ordClockEntries bounds the clocks that a walk keeps, to 64 MiB.
const ordClockEntries = 1 << 24

// ordWidth is how many source streams a walk follows that keeps so many clocks.
func ordWidth(streams, clocks int) int {
	width := min(streams, ordClockWidth)
	if clocks*width > ordClockEntries {
		width = min(width, max(8, ordClockEntries/clocks))
	}
	return width
}

// ordClocks reads a plan's ops. It keeps a clock per stream and per event, none per node.
type ordClocks struct {
	p       *Plan
	s       *ordSchedule
	wide    int
	low     int
	streams []int32 // by stream, wide each
	events  []int32 // by event, wide each
	cursor  []int32 // by stream, its next op
	at      int     // position in p.Order
	last    int32   // the node returned last, which its stream's clock does not count yet
}

func newOrdClocks(p *Plan, s *ordSchedule) *ordClocks {
	c := &ordClocks{}
	c.follow(p, s)
	return c
}

// follow makes the clocks those of a plan.
func (c *ordClocks) follow(p *Plan, s *ordSchedule) {
	n := len(p.Streams)
	c.p, c.s, c.wide, c.last = p, s, ordWidth(n, n+int(p.Events)), -1
	c.streams, c.events, c.cursor = sized(c.streams, n*c.wide), sized(c.events, int(p.Events)*c.wide), sized(c.cursor, n)
}

func (c *ordClocks) width() int { return c.wide }

func (c *ordClocks) begin(low int) {
	c.low, c.at, c.last = low, 0, -1
	clear(c.streams)
	clear(c.events)
	clear(c.cursor)
}

func (c *ordClocks) next() (int32, []int32) {
	order, streams, w := c.p.Order, c.p.Streams, c.wide
	if c.last >= 0 {
		at := c.s.spots[c.last]
		if own := int(at.stream) - c.low; own >= 0 && own < w {
			c.streams[int(at.stream)*w+own] = at.pos
		}
	}
	for c.at < len(order) {
		stream := order[c.at]
		c.at++
		op := &streams[stream].Ops[c.cursor[stream]]
		c.cursor[stream]++
		row := c.streams[int(stream)*w : int(stream)*w+w]
		switch op.Kind {
		case Launch:
			c.last = op.Node
			return op.Node, row
		case Record:
			copy(c.events[int(op.Event)*w:int(op.Event)*w+w], row)
		case Wait:
			ordRaise(row, c.events[int(op.Event)*w:int(op.Event)*w+w])
		}
	}
	c.last = -1
	return -1, nil
}

// ordRaise makes a clock know what another knows.
func ordRaise(clock, other []int32) {
	clock = clock[:len(other)]
	for i, done := range other {
		clock[i] = max(clock[i], done)
	}
}
