// Where values lie: first in the memory that the graph has already, then in new memory behind it. Two values share bytes if the plan orders everything that
// touches one before everything that touches the other.

package replan

import (
	"cmp"
	"slices"
)

// lying is a value that has a place or gets one.
type lying struct {
	value       int
	size        int64
	first, last []int // nodes that touch it, no others of which come before, or after
	begins      int   // positions in the order of the plan
	ends        int
	at          int64
}

// arena is the memory that values are placed in, from 0 on: the free parts of what is there, and as much new memory behind as they need.
type arena struct {
	taken [][2]int64 // sorted: bytes that are not to be used
	own   int64      // from here on it is new memory
}

// of returns where in the arena an address of the program lies.
func (a *arena) of(pool []Extent, address uint64) (int64, bool) {
	base := int64(0)
	for _, e := range pool {
		if e.holds(address) {
			return base + int64(address-e[0]), true
		}
		base += int64(e[1])
	}
	return 0, false
}

// reach tells which nodes come after which.
type reach struct {
	words int
	bits  []uint64
}

func newReach(nodes int, edges [][2]int, order []int) *reach {
	r := &reach{words: (nodes + 63) / 64}
	r.bits = make([]uint64, nodes*r.words)
	after := make([][]int, nodes)
	for _, e := range edges {
		after[e[0]] = append(after[e[0]], e[1])
	}
	for at := len(order) - 1; at >= 0; at-- {
		k := order[at]
		row := r.row(k)
		for _, next := range after[k] {
			row[next/64] |= 1 << (next % 64)
			for w, bits := range r.row(next) {
				row[w] |= bits
			}
		}
	}
	return r
}

func (r *reach) row(k int) []uint64 { return r.bits[k*r.words : (k+1)*r.words] }

func (r *reach) before(a, b int) bool { return r.bits[a*r.words+b/64]>>(b%64)&1 != 0 }

func (r *reach) all(first, then []int) bool {
	for _, a := range first {
		for _, b := range then {
			if !r.before(a, b) {
				return false
			}
		}
	}
	return true
}

// apart tells whether one of two values is dead before anything touches the other.
func (r *reach) apart(a, b *lying) bool { return r.all(a.last, b.first) || r.all(b.last, a.first) }

// ends returns the nodes of a list that no other of the list comes before (first), or after (last).
func (r *reach) ends(nodes []int) (first, last []int) {
	for _, k := range nodes {
		if !slices.ContainsFunc(nodes, func(other int) bool { return r.before(other, k) }) {
			first = append(first, k)
		}
		if !slices.ContainsFunc(nodes, func(other int) bool { return r.before(k, other) }) {
			last = append(last, k)
		}
	}
	return first, last
}

// mostRecent is how many values that are dead are looked at for their place.
const mostRecent = 48

// place gives each value a place and returns the end of what is used. Values take the place of the one that died last, because its bytes are still in the L2
// cache. With tight, the largest choose first and take the lowest place that is free, which needs less memory.
//
// Values in stays have their place already, and share it while nothing touches them.
func (a *arena) place(values, stays []*lying, r *reach, tight bool) int64 {
	slices.SortStableFunc(values, func(x, y *lying) int {
		if tight {
			return cmp.Or(cmp.Compare(y.size, x.size), cmp.Compare(x.begins, y.begins))
		}
		return cmp.Or(cmp.Compare(x.begins, y.begins), cmp.Compare(y.size, x.size))
	})
	placed := slices.SortedStableFunc(slices.Values(stays), func(x, y *lying) int { return cmp.Compare(y.ends, x.ends) }) // the last to die first
	end := int64(0)
	for _, v := range values {
		v.at = a.choose(v, placed, r, tight)
		end = max(end, v.at+v.size)
		at, _ := slices.BinarySearchFunc(placed, v, func(x, v *lying) int { return cmp.Compare(v.ends, x.ends) })
		placed = slices.Insert(placed, at, v)
	}
	return end
}

func (a *arena) choose(v *lying, placed []*lying, r *reach, tight bool) int64 {
	var others []*lying // that v may not touch, by place
	for _, u := range placed {
		if !r.apart(u, v) {
			others = append(others, u)
		}
	}
	slices.SortFunc(others, func(x, y *lying) int { return cmp.Compare(x.at, y.at) })
	tried := 0
	for _, u := range placed {
		if tight || tried == mostRecent {
			break
		}
		if u.ends > v.begins || u.size < v.size {
			continue
		}
		tried++
		if a.blocked(u.at, v.size, others) < 0 {
			return u.at
		}
	}
	at := int64(0)
	for next := a.blocked(at, v.size, others); next >= 0; next = a.blocked(at, v.size, others) {
		at = next
	}
	return at
}

// blocked returns where whatever lies in a place ends, or -1 if nothing does.
func (a *arena) blocked(at, size int64, others []*lying) int64 {
	for _, t := range a.taken {
		if t[0] < at+size && at < t[1] {
			return t[1]
		}
	}
	end := int64(-1)
	for _, u := range others {
		if u.at < at+size && at < u.at+u.size {
			end = max(end, u.at+u.size)
		}
	}
	return end
}
