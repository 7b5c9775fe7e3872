// Clocks: the walk of a plan's ops that answers which pairs of nodes are ordered. Holds no clock per node: a clock per stream
// and per event is all that a walk in submission order needs.

package planner

import "github.com/dagrun/dagrun/dag"

// clockWidth is how many source streams one walk follows. Clocks of every stream against every stream would take gigabytes
// for thousands of streams; a walk per block of them takes time only for blocks that something is asked about.
const clockWidth = 64

// walkWidth is how many source streams a walk over this plan follows: fewer where there are so many events that their clocks
// would fill more than 64 MiB.
func walkWidth(p *Plan) int {
	width := min(len(p.Streams), clockWidth)
	if entries := 1 << 24; int(p.Events)*width > entries {
		width = min(width, max(8, entries/int(p.Events)))
	}
	return width
}

// pair asks whether from has finished before to starts.
type pair struct{ from, to int32 }

// clocks is the state of one walk: for each stream and each event, and for each of a block of source streams, which launches of
// that stream are known to have finished, as the position of the last one.
type clocks struct {
	p       *Plan
	width   int
	streams []int32 // by stream, width each
	events  []int32 // by event, width each
	next    []int32 // by stream, its next op
	at      int     // position in p.Order
}

func newClocks(p *Plan, width int) *clocks {
	n := len(p.Streams)
	return &clocks{p: p, width: width, streams: make([]int32, n*width), events: make([]int32, int(p.Events)*width), next: make([]int32, n)}
}

// restart begins another walk, for other source streams.
func (c *clocks) restart() {
	c.at = 0
	clear(c.streams)
	clear(c.events)
	clear(c.next)
}

// advance walks to the next launch and returns its node, its stream and the stream's clock from before the launch; node -1 at
// the end. The caller then enters the launch into the clock.
func (c *clocks) advance() (node, stream int32, clock []int32) {
	order, streams, w := c.p.Order, c.p.Streams, c.width
	for c.at < len(order) {
		stream := order[c.at]
		c.at++
		op := &streams[stream].Ops[c.next[stream]]
		c.next[stream]++
		row := c.streams[int(stream)*w : int(stream)*w+w]
		switch op.Kind {
		case Launch:
			return op.Node, stream, row
		case Record:
			copy(c.events[int(op.Event)*w:int(op.Event)*w+w], row)
		case Wait:
			for i, done := range c.events[int(op.Event)*w : int(op.Event)*w+w] {
				if row[i] < done {
					row[i] = done
				}
			}
		}
	}
	return -1, 0, nil
}

// forEachUnorderedEdge finds the dependencies of a graph that a plan does not enforce, in submission order of the later node and, for one, in the
// order of its predecessors. It stops when visit returns false.
func forEachUnorderedEdge(g *dag.Graph, p *Plan, s *schedule, visit func(to int32, pred int) bool) {
	if len(p.Streams) > walkWidth(p) {
		forEachUnorderedEdgeOfMany(g, p, s, visit)
		return
	}
	spots := s.spots
	c := newClocks(p, len(p.Streams))
	for {
		node, stream, clock := c.advance()
		if node < 0 {
			return
		}
		for k, from := range g.Preds(node) {
			if before := spots[from]; clock[before.stream] < before.pos {
				if !visit(node, k) {
					return
				}
			}
		}
		clock[stream] = spots[node].pos
	}
}

// forEachUnorderedEdgeOfMany does the same for many streams: most dependencies are enforced by the same stream or by a wait
// right before the launch, and only the rest is worth clocks.
func forEachUnorderedEdgeOfMany(g *dag.Graph, p *Plan, s *schedule, visit func(to int32, pred int) bool) {
	var asked []pair
	var preds []int32
	eventNode := make([]int32, p.Events)
	waits := make([][]int32, len(p.Streams)) // nodes waited for since the stream's last launch
	covered := make([]int32, len(p.Streams))
	forEachOp(p, func(_ int, stream int32, op *Op) {
		switch op.Kind {
		case Record:
			eventNode[op.Event] = op.Node
		case Wait:
			waits[stream] = append(waits[stream], eventNode[op.Event])
		case Launch:
			for _, w := range waits[stream] {
				covered[s.spots[w].stream] = max(covered[s.spots[w].stream], s.spots[w].pos)
			}
			own := covered[stream]
			covered[stream] = max(own, s.spots[op.Node].pos-1)
			for k, from := range g.Preds(op.Node) {
				if before := s.spots[from]; covered[before.stream] < before.pos {
					asked = append(asked, pair{from, op.Node})
					preds = append(preds, int32(k))
				}
			}
			covered[stream] = 0
			for _, w := range waits[stream] {
				covered[s.spots[w].stream] = 0
			}
			waits[stream] = waits[stream][:0]
		}
	})
	for _, k := range unordered(p, s, asked) {
		if !visit(asked[k].to, int(preds[k])) {
			return
		}
	}
}

// unordered returns the indices of the pairs that a plan does not order, ascending. Pairs may come in any order.
func unordered(p *Plan, s *schedule, pairs []pair) []int32 {
	if len(pairs) == 0 {
		return nil
	}
	// Two counting sorts: by the place of the later node in the submission order, then by block of source streams.
	rank := make([]int32, len(s.spots))
	for k, node := range s.order {
		rank[node] = int32(k)
	}
	byRank := countingSort(len(pairs), len(s.order), nil, func(k int32) int32 { return rank[pairs[k].to] })
	width := int32(walkWidth(p))
	blocks := (len(p.Streams) + int(width) - 1) / int(width)
	asked := countingSort(len(pairs), blocks, byRank, func(k int32) int32 { return s.spots[pairs[k].from].stream / width })

	bad := make([]bool, len(pairs))
	count := 0
	c := newClocks(p, int(width))
	for len(asked) > 0 {
		low := s.spots[pairs[asked[0]].from].stream / width * width
		c.restart()
		for len(asked) > 0 && s.spots[pairs[asked[0]].from].stream-low < width {
			node, stream, clock := c.advance()
			for len(asked) > 0 && pairs[asked[0]].to == node {
				before := s.spots[pairs[asked[0]].from]
				if before.stream-low >= width {
					break
				}
				if clock[before.stream-low] < before.pos {
					bad[asked[0]] = true
					count++
				}
				asked = asked[1:]
			}
			if own := stream - low; own >= 0 && own < width {
				clock[own] = s.spots[node].pos
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

// countingSort orders 0..n-1 (or the given order, which it keeps among equals) by a key below keys.
func countingSort(n, keys int, order []int32, key func(int32) int32) []int32 {
	start := make([]int32, keys+1)
	for k := range n {
		start[key(int32(k))+1]++
	}
	for k := range keys {
		start[k+1] += start[k]
	}
	sorted := make([]int32, n)
	for i := range n {
		k := int32(i)
		if order != nil {
			k = order[i]
		}
		at := key(k)
		sorted[start[at]] = k
		start[at]++
	}
	return sorted
}
