// Clocks: walks that find out which pairs of nodes are ordered. At each launch, a clock tells which launches of each stream have finished.
// Clocks follow from a plan's ops or a list of edges, never from the graph.

package proof

import (
	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/planner/plan"
)

// clockSource walks launches in submission order, each with what has finished before it starts.
type clockSource interface {
	// width is how many source streams one walk follows.
	width() int
	// begin starts a walk that follows the source streams from low.
	begin(low int)
	// next returns a node and, for each source stream followed, the position of the last launch that has finished before the
	// node starts. The node is -1 at the end.
	next() (node int32, clock []int32)
}

// planClocks reads a plan's ops. It keeps a clock per stream and per event, none per node.
type planClocks struct {
	p       *plan.Plan
	s       *schedule
	wide    int
	low     int
	streams []int32 // by stream, wide each
	events  []int32 // by event, wide each
	cursor  []int32 // by stream, its next op
	at      int     // position in p.Order
	last    int32   // the node returned last, which its stream's clock does not count yet
}

func newPlanClocks(p *plan.Plan, s *schedule) *planClocks {
	c := &planClocks{}
	c.follow(p, s)
	return c
}

// follow sets the clocks up for a plan.
func (c *planClocks) follow(p *plan.Plan, s *schedule) {
	n := len(p.Streams)
	c.p, c.s, c.wide = p, s, walkWidth(n, n+int(p.Events))
	c.streams, c.events, c.cursor = sized(c.streams, n*c.wide), sized(c.events, int(p.Events)*c.wide), sized(c.cursor, n)
}

func (c *planClocks) width() int { return c.wide }

func (c *planClocks) begin(low int) {
	c.low, c.at, c.last = low, 0, -1
	clear(c.streams)
	clear(c.events)
	clear(c.cursor)
}

func (c *planClocks) next() (int32, []int32) {
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
		case plan.Launch:
			c.last = int32(op.Node)
			return int32(op.Node), row
		case plan.Record:
			copy(c.events[int(op.Event)*w:int(op.Event)*w+w], row)
		case plan.Wait:
			raise(row, c.events[int(op.Event)*w:int(op.Event)*w+w])
		}
	}
	return -1, nil
}

// forEachUnorderedEdge visits the edges between nodes of a graph that are not enforced, in submission order of the later node, and for one
// node in the order of its predecessors. It stops when visit returns false.
func forEachUnorderedEdge(g *dag.Graph, p *plan.Plan, s *schedule, source clockSource, visit func(to int32, pred int) bool) {
	if len(p.Streams) > source.width() {
		forEachUnorderedEdgeOfMany(g, p, s, source, visit)
		return
	}
	spots := s.spots
	source.begin(0)
	for {
		node, clock := source.next()
		if node < 0 {
			return
		}
		for k, from := range g.Preds(dag.NodeID(node)) {
			if g.IsJoin(from) {
				continue
			}
			if before := spots[from]; clock[before.stream] < before.pos {
				if !visit(node, k) {
					return
				}
			}
		}
	}
}

// forEachUnorderedEdgeOfMany does the same for many streams. It needs clocks only for the few dependencies that are enforced neither by one
// stream nor by a wait right before the launch.
func forEachUnorderedEdgeOfMany(g *dag.Graph, p *plan.Plan, s *schedule, source clockSource, visit func(to int32, pred int) bool) {
	direct, ok := source.(*ancestry)
	if !ok {
		direct = planAncestry(p, s)
	}
	var asked []pair
	var preds []int32
	covered := make([]int32, len(p.Streams))
	for k, node := range s.order {
		for _, from := range direct.of(k) {
			at := s.spots[from]
			covered[at.stream] = max(covered[at.stream], at.pos)
		}
		for i, from := range g.Preds(dag.NodeID(node)) {
			if g.IsJoin(from) {
				continue
			}
			if before := s.spots[from]; covered[before.stream] < before.pos {
				asked = append(asked, pair{int32(from), node})
				preds = append(preds, int32(i))
			}
		}
		for _, from := range direct.of(k) {
			covered[s.spots[from].stream] = 0
		}
	}
	for _, k := range unordered(p, s, source, asked) {
		if !visit(asked[k].to, int(preds[k])) {
			return
		}
	}
}

// unordered returns the indices of the pairs that are not ordered, ascending. Pairs may come in any order.
func unordered(p *plan.Plan, s *schedule, source clockSource, pairs []pair) []int32 {
	if len(pairs) == 0 {
		return nil
	}
	// Two counting sorts: by the place of the later node in the submission order, then by block of source streams.
	rank := s.ranks()
	asked := countingSort(len(pairs), len(s.order), nil, func(k int32) int32 { return rank[pairs[k].to] })
	width := source.width()
	if blocks := (len(p.Streams) + width - 1) / width; blocks > 1 {
		asked = countingSort(len(pairs), blocks, asked, func(k int32) int32 { return s.spots[pairs[k].from].stream / int32(width) })
	}
	bad := make([]bool, len(pairs))
	count := 0
	for len(asked) > 0 {
		low := int(s.spots[pairs[asked[0]].from].stream) / width * width
		source.begin(low)
		end := 0 // of this block's questions
		for end < len(asked) && int(s.spots[pairs[asked[end]].from].stream) < low+width {
			end++
		}
		block := asked[:end]
		asked = asked[end:]
		for len(block) > 0 {
			node, clock := source.next()
			for len(block) > 0 && pairs[block[0]].to == node {
				if before := s.spots[pairs[block[0]].from]; clock[int(before.stream)-low] < before.pos {
					bad[block[0]] = true
					count++
				}
				block = block[1:]
			}
		}
	}
	found := make([]int32, 0, count)
	for k := range bad {
		if bad[k] {
			found = append(found, int32(k))
		}
	}
	return found
}
