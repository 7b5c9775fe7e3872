// Joins resolved while nodes get their streams: of the nodes that lead to a join, only the last on each stream matters. Chooses nothing.

package place

import (
	"fmt"
	"slices"
)

// mostResolved bounds the nodes that stand for joins, and with them the waits of a plan. They take 128 MiB. Tests lower it.
var mostResolved = 32 << 20

// resolver finds what nodes must wait for where the graph has joins. A node that depends on thousands by way of a join has no more to
// wait for than the last of these on each stream.
type resolver struct {
	p      *Problem
	stream func(node int32) int32
	later  func(a, b int32) bool // of two nodes of one stream, a comes after b
	joins  [][2]int32            // by join: its nodes, as a range of nodes; unresolved while the end is 0
	nodes  []int32
	latest []int32 // by stream: the last node found there, plus 1
	found  []int32 // the streams of these
	answer []int32
}

// newResolver returns one for so many streams. Before a node is asked about, what it depends on must have streams.
func (p *Problem) newResolver(streams int, stream func(node int32) int32, later func(a, b int32) bool) *resolver {
	r := &resolver{p: p, stream: stream, later: later}
	if p.joined() {
		r.joins, r.latest = make([][2]int32, p.vertices()-p.len()), make([]int32, streams)
	}
	return r
}

// before returns the nodes that a node must come after, ascending; of those that joins stand for, the last on each stream. The answer is
// valid until the next call.
func (r *resolver) before(i int32) []int32 {
	if !r.p.joined() {
		return r.p.preds(i)
	}
	r.resolveJoins(i)
	r.gather(i)
	return r.answer
}

// resolveJoins resolves the joins that lead to a node or join.
func (r *resolver) resolveJoins(i int32) {
	n := int32(r.p.len())
	for _, q := range r.p.preds(i) {
		if q < n || r.joins[q-n][1] > 0 {
			continue
		}
		r.resolveJoins(q)
		r.gather(q)
		first := len(r.nodes)
		r.nodes = append(r.nodes, r.answer...)
		r.joins[q-n] = [2]int32{int32(first), int32(len(r.nodes))}
	}
}

// gather sets the answer for a node or join whose joins are resolved.
func (r *resolver) gather(i int32) {
	n := int32(r.p.len())
	for _, q := range r.p.preds(i) {
		if q < n {
			r.note(q)
			continue
		}
		at := r.joins[q-n]
		for _, node := range r.nodes[at[0]:at[1]] {
			r.note(node)
		}
	}
	r.answer = r.answer[:0]
	for _, k := range r.found {
		r.answer = append(r.answer, r.latest[k]-1)
		r.latest[k] = 0
	}
	r.found = r.found[:0]
	slices.Sort(r.answer)
}

func (r *resolver) note(node int32) {
	k := r.stream(node)
	switch known := r.latest[k] - 1; {
	case known < 0:
		r.found = append(r.found, k)
		r.latest[k] = node + 1
	case r.later(node, known):
		r.latest[k] = node + 1
	}
}

// tooMany refuses a plan that would compare too many nodes, of which count stand for joins and nodes after them.
func (p *Problem) tooMany(count, streams int) error {
	if count <= mostResolved {
		return nil
	}
	return fmt.Errorf("on %d streams, the %d nodes depend on more than %d streams in all, the limit; plan with fewer streams: %w",
		streams, p.len(), mostResolved, ErrGraphTooLarge)
}
