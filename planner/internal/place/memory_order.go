// Finds an order of nodes that keeps few bytes alive, for plans that must fit a memory cap.

package place

import (
	"cmp"
	"math/bits"
	"slices"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/planner/plan"
)

const (
	// mostBeamNodes limits the graphs for which a beam search is made: each state of the beam holds a copy of the graph's counters.
	mostBeamNodes = 600
	// memoryWindow is how many ready nodes are compared in large graphs: those that became ready last.
	memoryWindow = 256
)

// memoryGraph is a graph with the buffers that each node uses.
type memoryGraph struct {
	p        *Problem
	preds    adjacency
	useStart []int32 // by node, into uses
	uses     []int32 // buffers, each once per node
	bytes    []int64 // by buffer
	users    []int32 // by buffer
}

// LowMemoryOrder finds a submission order that keeps few bytes of the given buffers alive.
func LowMemoryOrder(p *Problem, buffers []int32) []int32 { return newMemoryGraph(p, buffers).order() }

// newMemoryGraph finds which nodes use which of the given buffers.
func newMemoryGraph(p *Problem, buffers []int32) *memoryGraph {
	g := p.g
	f := &memoryGraph{p: p, useStart: make([]int32, p.len()+1), bytes: make([]int64, len(buffers)), users: make([]int32, len(buffers))}
	index := make([]int32, len(g.Buffers)) // plus 1
	for k, b := range buffers {
		index[b] = int32(k) + 1
		f.bytes[k] = plan.AlignUp(g.Buffers[b].Bytes)
	}
	for i := range int32(p.len()) {
		first := len(f.uses)
		for _, a := range g.Accesses(dag.NodeID(i)) {
			if k := index[a.Buffer] - 1; k >= 0 && a.Lo < a.Hi && !slices.Contains(f.uses[first:], k) {
				f.uses = append(f.uses, k)
				f.users[k]++
			}
		}
		f.useStart[i+1] = int32(len(f.uses))
	}
	f.link()
	return f
}

// link collects the order that is required: the graph's dependencies, declared ones, and the order of nodes on bound streams.
func (f *memoryGraph) link() {
	p := f.p
	n := p.len()
	before := make([]int32, n) // on its bound stream, plus 1
	last := make([]int32, len(p.bindings))
	for _, i := range p.order {
		if b := p.boundOf(i); b >= 0 {
			before[i] = last[b]
			last[b] = i + 1
		}
	}
	a := &f.preds
	a.predStart = make([]int32, p.g.Vertices()+1)
	for i := range int32(p.g.Vertices()) {
		first := len(a.pred)
		a.pred = append(a.pred, Numbers(p.g.Preds(dag.NodeID(i)))...)
		if i < int32(n) && p.explicit {
			a.pred = append(a.pred, p.preds(i)...)
		}
		if i < int32(n) && before[i] > 0 {
			a.pred = append(a.pred, before[i]-1)
		}
		slices.Sort(a.pred[first:])
		a.pred = a.pred[:first+len(slices.Compact(a.pred[first:]))]
		a.predStart[i+1] = int32(len(a.pred))
	}
	a.reverse()
}

func (f *memoryGraph) usesOf(i int32) []int32 { return f.uses[f.useStart[i]:f.useStart[i+1]] }

func (f *memoryGraph) succsOf(i int32) []int32 {
	return f.preds.succ[f.preds.succStart[i]:f.preds.succStart[i+1]]
}

// step returns how many bytes become alive if a node runs next, and how many are no longer alive after it.
func (f *memoryGraph) step(left []int32, i int32) (take, give int64) {
	for _, k := range f.usesOf(i) {
		if left[k] == f.users[k] {
			take += f.bytes[k]
		}
		if left[k] == 1 {
			give += f.bytes[k]
		}
	}
	return take, give
}

// peak returns the most bytes that are alive at once if nodes run one after the other in this order.
func (f *memoryGraph) peak(order []int32) int64 {
	left := slices.Clone(f.users)
	live, peak := int64(0), int64(0)
	for _, i := range order {
		take, give := f.step(left, i)
		for _, k := range f.usesOf(i) {
			left[k]--
		}
		peak = max(peak, live+take)
		live += take - give
	}
	return peak
}

// order finds an order with a low peak.
func (f *memoryGraph) order() []int32 {
	best, peak := f.p.order, f.peak(f.p.order)
	try := func(order []int32) {
		if got := f.peak(order); got < peak {
			best, peak = order, got
		}
	}
	try(f.greedy())
	try(f.depthFirst())
	if f.p.len() <= mostBeamNodes {
		try(f.beam())
	}
	return best
}

// missing counts the predecessors of each node and join, and lists the nodes without any, in the problem's order.
func (f *memoryGraph) missing() (count, ready []int32) {
	count = make([]int32, len(f.preds.predStart)-1)
	for i := range count {
		count[i] = f.preds.predStart[i+1] - f.preds.predStart[i]
	}
	for _, i := range f.p.order {
		if count[i] == 0 {
			ready = append(ready, i)
		}
	}
	return count, ready
}

// finish counts a node or join as done and appends the nodes that become ready.
func (f *memoryGraph) finish(missing, ready []int32, i int32) []int32 {
	for _, to := range f.succsOf(i) {
		switch missing[to]--; {
		case missing[to] > 0:
		case int(to) < f.p.len():
			ready = append(ready, to)
		default:
			ready = f.finish(missing, ready, to)
		}
	}
	return ready
}

// greedy always runs the node after which the fewest bytes are alive; among equals the node that allocates the fewest, then the one that
// became ready last.
func (f *memoryGraph) greedy() []int32 {
	missing, ready := f.missing()
	slices.Reverse(ready)
	left := slices.Clone(f.users)
	order := make([]int32, 0, f.p.len())
	for len(ready) > 0 {
		chosen, least, leastTake := -1, int64(0), int64(0)
		for k := len(ready) - 1; k >= max(0, len(ready)-memoryWindow); k-- {
			take, give := f.step(left, ready[k])
			if chosen < 0 || cmp.Or(cmp.Compare(take-give, least), cmp.Compare(take, leastTake)) < 0 {
				chosen, least, leastTake = k, take-give, take
			}
		}
		i := ready[chosen]
		ready = slices.Delete(ready, chosen, chosen+1)
		order = append(order, i)
		for _, k := range f.usesOf(i) {
			left[k]--
		}
		ready = f.finish(missing, ready, i)
	}
	return order
}

// depthFirst runs everything that one final node needs before it turns to the next, inputs with more bytes first.
func (f *memoryGraph) depthFirst() []int32 {
	n, vertices := f.p.len(), len(f.preds.predStart)-1
	weight := make([]int64, vertices) // bytes the node uses
	for i := range int32(n) {
		for _, k := range f.usesOf(i) {
			weight[i] += f.bytes[k]
		}
	}
	preds := slices.Clone(f.preds.pred)
	for i := range vertices {
		slices.SortStableFunc(preds[f.preds.predStart[i]:f.preds.predStart[i+1]], func(a, b int32) int { return cmp.Compare(weight[b], weight[a]) })
	}
	order := make([]int32, 0, n)
	next := slices.Clone(f.preds.predStart[:vertices])
	seen := make([]bool, vertices)
	var stack []int32
	for _, root := range f.p.order {
		if len(f.succsOf(root)) > 0 || seen[root] {
			continue
		}
		seen[root] = true
		for stack = append(stack[:0], root); len(stack) > 0; {
			i := stack[len(stack)-1]
			if next[i] == f.preds.predStart[i+1] {
				if int(i) < n {
					order = append(order, i)
				}
				stack = stack[:len(stack)-1]
				continue
			}
			q := preds[next[i]]
			next[i]++
			if !seen[q] {
				seen[q] = true
				stack = append(stack, q)
			}
		}
	}
	return order
}

// beamState is a set of nodes that have run.
type beamState struct {
	hash       uint64  // of the set
	left       []int32 // by buffer
	missing    []int32 // by node
	ready      []int32
	live, peak int64
	parent     int32 // in history
}

// beamStep is one node of an order, linked to the one before.
type beamStep struct{ node, parent int32 }

// beamMove is a state and a node that could run next.
type beamMove struct {
	state, ready int32
	live, peak   int64
	hash         uint64
}

// beam keeps the most promising sets of nodes, step by step: those with the lowest peak, then the fewest bytes alive.
func (f *memoryGraph) beam() []int32 {
	n := f.p.len()
	width := min(1000, max(8, 10_000/max(1, n)))
	missing, ready := f.missing()
	states := []*beamState{{left: slices.Clone(f.users), missing: missing, ready: ready}}
	var history []beamStep
	for range n {
		var moves []beamMove
		for k, s := range states {
			for r, i := range s.ready {
				take, give := f.step(s.left, i)
				moves = append(moves, beamMove{int32(k), int32(r), s.live + take - give, max(s.peak, s.live+take), s.hash ^ nodeHash(i)})
			}
		}
		slices.SortFunc(moves, func(a, b beamMove) int {
			return cmp.Or(cmp.Compare(a.peak, b.peak), cmp.Compare(a.live, b.live), cmp.Compare(a.hash, b.hash), cmp.Compare(a.state, b.state))
		})
		var after []*beamState
		for k, m := range moves {
			if len(after) == width {
				break
			}
			if k > 0 && moves[k-1].hash == m.hash && moves[k-1].peak == m.peak {
				continue // the same nodes in another order
			}
			after = append(after, f.move(states[m.state], m, &history))
		}
		states = after
	}
	order := make([]int32, n)
	at := states[0].parent
	for k := n - 1; k >= 0; k-- {
		order[k] = history[at].node
		at = history[at].parent
	}
	return order
}

func (f *memoryGraph) move(s *beamState, m beamMove, history *[]beamStep) *beamState {
	i := s.ready[m.ready]
	*history = append(*history, beamStep{i, s.parent})
	t := &beamState{hash: m.hash, left: slices.Clone(s.left), missing: slices.Clone(s.missing),
		ready: slices.Clone(s.ready), live: m.live, peak: m.peak, parent: int32(len(*history) - 1)}
	t.ready = slices.Delete(t.ready, int(m.ready), int(m.ready)+1)
	for _, k := range f.usesOf(i) {
		t.left[k]--
	}
	t.ready = f.finish(t.missing, t.ready, i)
	return t
}

// nodeHash spreads node ids over 64 bits, so that the exclusive or of a set of nodes tells sets apart.
func nodeHash(i int32) uint64 {
	x := (uint64(i) + 1) * 0x9e3779b97f4a7c15
	x ^= x >> 29
	return bits.RotateLeft64(x*0xbf58476d1ce4e5b9, 31)
}
