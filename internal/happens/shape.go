// Shapes: the order within a unit, computed once for all the units that have it.

package happens

import (
	"container/heap"
	"fmt"

	"github.com/dagrun/dagrun/internal/words"
)

// Shape is the order of the nodes of a unit. The nodes are put on chains, each node after another of its chain; a node knows, for each
// chain, up to where it comes after it.
type Shape struct {
	order  []int32 // such that each node comes after all that it must follow, and otherwise by number
	chain  []int32 // by node
	place  []int32 // on its chain, from 1
	chains int32
	after  []int32  // by node and chain
	bits   []uint64 // instead, where there are many chains: by node, what it comes after
	edges  [][2]int32
	into   [][]int32 // by node: indices of the edges that lead to it
	needed []bool    // by edge
}

// NewShape returns the order that edges, pairs of from and to, make among nodes. It fails if they form a circle, or are too many beside each other.
func NewShape(nodes int, edges [][2]int32) (*Shape, error) {
	followers, waiting := make([][]int32, nodes), make([]int32, nodes)
	s := &Shape{edges: edges, into: make([][]int32, nodes), needed: make([]bool, len(edges)), chain: make([]int32, nodes), place: make([]int32, nodes)}
	for i, edge := range edges {
		if edge[0] < 0 || int(edge[0]) >= nodes || edge[1] < 0 || int(edge[1]) >= nodes {
			return nil, fmt.Errorf("an edge leads from node %d to node %d, and there are %d nodes", edge[0], edge[1], nodes)
		}
		followers[edge[0]] = append(followers[edge[0]], edge[1])
		waiting[edge[1]]++
		s.into[edge[1]] = append(s.into[edge[1]], int32(i))
	}
	var ready smallest
	for node := range nodes {
		if waiting[node] == 0 {
			ready = append(ready, int32(node)) // in order, which is a heap
		}
		s.chain[node] = -1
	}
	for len(ready) > 0 {
		node := heap.Pop(&ready).(int32)
		s.order = append(s.order, node)
		if s.chain[node] < 0 {
			s.chain[node], s.place[node] = s.chains, 1
			s.chains++
		}
		continued := false
		for _, follower := range followers[node] {
			if !continued && s.chain[follower] < 0 {
				s.chain[follower], s.place[follower] = s.chain[node], s.place[node]+1
				continued = true
			}
			if waiting[follower]--; waiting[follower] == 0 {
				heap.Push(&ready, follower)
			}
		}
	}
	if len(s.order) < nodes {
		return nil, fmt.Errorf("the edges of %d nodes form a circle", nodes-len(s.order))
	}
	long := int(s.chains) <= max(nodes/wide, narrow)
	bytes := 4 * nodes * int(s.chains)
	if !long {
		bytes = 8 * nodes * s.words()
	}
	if bytes > mostBytes {
		return nil, fmt.Errorf("the order of %d nodes in %d rows takes %s, more than the %s that are allowed", nodes, s.chains, words.Bytes(int64(bytes)),
			words.Bytes(mostBytes))
	}
	if !long {
		s.bits = make([]uint64, nodes*s.words())
	} else {
		s.after = make([]int32, nodes*int(s.chains))
	}
	for _, node := range s.order {
		for _, follower := range followers[node] {
			s.follow(node, follower)
		}
	}
	return s, nil
}

// A chain takes 32 times the memory of a bit for each node. Few chains are faster than bits.
const (
	wide   = 32
	narrow = 64

	mostBytes = 256 << 20
)

func (s *Shape) words() int { return (len(s.chain) + 63) / 64 }

// follow makes a node come after another, and after all that the other comes after.
func (s *Shape) follow(node, follower int32) {
	if s.bits != nil {
		words := s.words()
		own, row := s.bits[int(node)*words:][:words], s.bits[int(follower)*words:][:words]
		for i, word := range own {
			row[i] |= word
		}
		row[node/64] |= 1 << (node % 64)
		return
	}
	row := s.row(follower)
	for chain, place := range s.row(node) {
		row[chain] = max(row[chain], place)
	}
	row[s.chain[node]] = max(row[s.chain[node]], s.place[node])
}

func (s *Shape) row(node int32) []int32 {
	return s.after[int(node)*int(s.chains):][:s.chains]
}

// Before says whether a node comes before another.
func (s *Shape) Before(a, b int32) bool {
	if s.bits != nil {
		return s.bits[int(b)*s.words()+int(a/64)]>>(a%64)&1 != 0
	}
	return s.row(b)[s.chain[a]] >= s.place[a]
}

// need notes the edges of a way from a node to a later one, those that are needed already if there is a choice.
func (s *Shape) need(from, to int32) {
	for to != from {
		best := int32(-1)
		for _, edge := range s.into[to] {
			before := s.edges[edge][0]
			if (before == from || s.Before(from, before)) && (best < 0 || s.needed[edge] && !s.needed[best]) {
				best = edge
			}
		}
		s.needed[best] = true
		to = s.edges[best][0]
	}
}

// Needless returns the indices of the edges that no conflict needed in all units that were told. Without all of them, the same conflicts would have an order.
func (s *Shape) Needless() []int {
	var out []int
	for i, needed := range s.needed {
		if !needed {
			out = append(out, i)
		}
	}
	return out
}

// Nodes returns the number of nodes.
func (s *Shape) Nodes() int { return len(s.chain) }

// Order returns the nodes, each after all that it must follow, and otherwise by number.
func (s *Shape) Order() []int32 { return s.order }

// Chain returns a number that a node shares only with nodes that come before or after it.
func (s *Shape) Chain(node int32) int { return int(s.chain[node]) }

// smallest is a heap of nodes, the one with the lowest number first.
type smallest []int32

func (s smallest) Len() int           { return len(s) }
func (s smallest) Less(a, b int) bool { return s[a] < s[b] }
func (s smallest) Swap(a, b int)      { s[a], s[b] = s[b], s[a] }
func (s *smallest) Push(node any)     { *s = append(*s, node.(int32)) }
func (s *smallest) Pop() any {
	last := len(*s) - 1
	node := (*s)[last]
	*s = (*s)[:last]
	return node
}
