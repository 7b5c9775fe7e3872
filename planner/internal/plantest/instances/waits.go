// The exact solver that numbers of waits are compared with: it tries every schedule of a network's blocks that takes no longer than the
// critical path, except those that a bound or a better state seen before rules out.

package instances

import (
	"math/bits"
)

const (
	// mostWaitStreams, mostBlock and mostWaiting limit what a state of the search holds.
	mostWaitStreams = 4
	mostBlock       = 64
	mostWaiting     = 12
)

// LeastWaits returns the fewest waits between streams with which nodes can end within the longest path, and whether that is proved. Node i
// takes us[i] and comes after preds[i], which have smaller numbers. The first node comes before all others and the last one after all.
//
// A node that comes after all before it and before all after it is a cut. Every longest path passes through it, so that what is between two
// cuts has no time but its own longest path. Streams can stand in for each other, so these blocks can be solved one by one.
func LeastWaits(us []float64, preds [][]int32, streams, states int) (waits int, proved bool) {
	n := len(us)
	cuts := cutsOf(n, preds)
	if streams > mostWaitStreams || len(cuts) < 2 || cuts[0] != 0 || cuts[len(cuts)-1] != n-1 {
		return 0, false
	}
	for c := 1; c < len(cuts); c++ {
		b, ok := newBlock(us, preds, cuts[c-1], cuts[c], streams)
		if !ok {
			return 0, false
		}
		for b.most = 0; ; b.most++ {
			found, ended := b.search(&states)
			if !ended {
				return 0, false
			}
			if found {
				waits += b.most
				break
			}
		}
	}
	return waits, true
}

// cutsOf returns the cuts of a graph, ascending.
func cutsOf(n int, preds [][]int32) []int {
	words := (n + 63) / 64
	before := make([][]uint64, n)
	after := make([]int, n) // how many nodes come after each
	for i := range n {
		before[i] = make([]uint64, words)
		for _, q := range preds[i] {
			before[i][q>>6] |= 1 << (q & 63)
			for w, set := range before[q] {
				before[i][w] |= set
			}
		}
		for w, set := range before[i] {
			for ; set != 0; set &= set - 1 {
				after[w*64+bits.TrailingZeros64(set)]++
			}
		}
	}
	var cuts []int
	for i := range n {
		count := 0
		for _, set := range before[i] {
			count += bits.OnesCount64(set)
		}
		if count == i && after[i] == n-1-i {
			cuts = append(cuts, i)
		}
	}
	return cuts
}

// block is what runs from one cut to the next, both included. The first cut has ended when the block begins.
type block struct {
	us      []float64
	preds   []uint64 // of each node, a bit each
	succs   []uint64
	tail    []float64 // the longest path after each node
	limit   float64
	streams int
	most    int // waits that may be used
	next    map[waitKey][]waitState
}

func newBlock(us []float64, preds [][]int32, lo, hi, streams int) (*block, bool) {
	n := hi - lo + 1
	if n > mostBlock {
		return nil, false
	}
	b := &block{us: make([]float64, n), preds: make([]uint64, n), succs: make([]uint64, n), tail: make([]float64, n), streams: streams}
	for i := 1; i < n; i++ {
		b.us[i] = us[lo+i]
		for _, q := range preds[lo+i] {
			b.preds[i] |= 1 << (int(q) - lo)
			b.succs[int(q)-lo] |= 1 << i
		}
	}
	for i := n - 1; i >= 0; i-- {
		for set := b.preds[i]; set != 0; set &= set - 1 {
			q := bits.TrailingZeros64(set)
			b.tail[q] = max(b.tail[q], b.us[i]+b.tail[i])
		}
	}
	b.limit = b.tail[0] * (1 + 1e-9)
	return b, true
}

// waitKey is what two states must have in common to be compared.
type waitKey struct {
	placed uint64
	knows  [mostWaitStreams]uint64
	before [mostWaiting]uint64
	on     [mostWaiting]int8
	used   int8
}

// waitState is a schedule of some nodes of a block, in the order of their starts.
type waitState struct {
	placed uint64
	begun  float64 // the last start
	waits  int8
	used   int8 // streams with nodes; they have the lowest numbers
	free   [mostWaitStreams]float64
	knows  [mostWaitStreams]uint64 // by stream: the open nodes that it is ordered after

	// Open nodes, ascending: those that others still depend on.
	open   uint64
	end    [mostWaiting]float64
	before [mostWaiting]uint64 // the open nodes that come before it, and itself
	on     [mostWaiting]int8
}

// at is the index of an open node.
func (s *waitState) at(node int) int { return bits.OnesCount64(s.open & (1<<node - 1)) }

// search looks for a schedule with the most waits allowed, and says whether it could try all.
func (b *block) search(states *int) (found, ended bool) {
	n := len(b.us)
	first := waitState{placed: 1, used: 1, open: 1}
	first.knows[0], first.before[0] = 1, 1
	layer := []waitState{first}
	for range n - 1 {
		b.next = map[waitKey][]waitState{}
		for x := range layer {
			s := &layer[x]
			for i := 1; i < n; i++ {
				if s.placed>>i&1 != 0 || b.preds[i]&^s.placed != 0 {
					continue
				}
				// Streams without nodes are all alike.
				for k := 0; k < min(b.streams, int(s.used)+1); k++ {
					if !b.place(s, i, k) {
						return false, false
					}
				}
			}
			if len(b.next) > *states {
				return false, false
			}
		}
		layer = layer[:0:0]
		for _, list := range b.next {
			layer = append(layer, list...)
		}
		*states -= len(layer)
	}
	return len(layer) > 0, true
}

// place adds the state with one more node on a stream, unless it is ruled out. It returns false if a state cannot hold it.
func (b *block) place(s *waitState, i, k int) bool {
	start, knows := s.free[k], s.knows[k]
	missing, implied := uint64(0), uint64(0)
	for set := b.preds[i] &^ knows; set != 0; set &= set - 1 {
		q := bits.TrailingZeros64(set)
		at := s.at(q)
		missing |= 1 << q
		implied |= s.before[at] &^ (1 << q)
		start = max(start, s.end[at])
	}
	missing &^= implied
	end := start + b.us[i]
	c := *s
	c.waits += int8(bits.OnesCount64(missing))
	if int(c.waits) > b.most || start < s.begun-1e-9 || end+b.tail[i] > b.limit {
		return true
	}
	for set := missing; set != 0; set &= set - 1 {
		knows |= s.before[s.at(bits.TrailingZeros64(set))]
	}
	c.placed |= 1 << i
	c.begun = max(start, s.begun)
	c.used = max(c.used, int8(k+1))
	c.free[k], c.knows[k] = end, knows|1<<i
	c.open = 0
	for set := s.open | 1<<i; set != 0; set &= set - 1 {
		if q := bits.TrailingZeros64(set); b.succs[q]&^c.placed != 0 {
			c.open |= 1 << q
		}
	}
	if bits.OnesCount64(c.open) > mostWaiting {
		return false
	}
	c.end, c.before, c.on = [mostWaiting]float64{}, [mostWaiting]uint64{}, [mostWaiting]int8{}
	for set, at := c.open, 0; set != 0; set, at = set&(set-1), at+1 {
		if q := bits.TrailingZeros64(set); q == i {
			c.end[at], c.before[at], c.on[at] = end, c.knows[k]&c.open, int8(k)
		} else {
			from := s.at(q)
			c.end[at], c.before[at], c.on[at] = s.end[from], s.before[from]&c.open, s.on[from]
		}
	}
	for x := range c.knows {
		c.knows[x] &= c.open
	}
	if b.mayEnd(&c) {
		b.insert(c)
	}
	return true
}

// mayEnd reports whether the waits and the time that are left can suffice. All streams but one that nobody has waited for since their last
// node need another wait, and a stream is not used without one.
func (b *block) mayEnd(s *waitState) bool {
	n := len(b.us)
	if s.placed == 1<<n-1 {
		return true
	}
	loose := 0
	for k := range int(s.used) {
		for set, at := s.open, 0; set != 0; set, at = set&(set-1), at+1 {
			if int(s.on[at]) != k {
				continue
			}
			known := false
			for other, knows := range s.knows {
				known = known || other != k && knows&(set&-set) != 0
			}
			if !known {
				loose++
				break
			}
		}
	}
	rest := b.most - int(s.waits) - max(0, loose-1)
	if rest < 0 {
		return false
	}
	end := b.limit - b.us[n-1] // all but the last node must have ended
	room := 0.0
	for k := range min(b.streams, int(s.used)+rest) {
		room += max(0, end-max(s.begun, s.free[k]))
	}
	for i := range n - 1 {
		if s.placed>>i&1 == 0 {
			room -= b.us[i]
		}
	}
	return room > -1e-6
}

// insert keeps a state unless another is as good in every respect, and drops those that it is as good as.
func (b *block) insert(s waitState) {
	// Streams in an order that does not depend on how they came to be used.
	var order [mostWaitStreams]int
	for k := range order {
		order[k] = k
		for at := k; at > 0 && k < int(s.used); at-- {
			x, y := order[at-1], order[at]
			if s.knows[x] > s.knows[y] || s.knows[x] == s.knows[y] && s.free[x] <= s.free[y] {
				break
			}
			order[at-1], order[at] = y, x
		}
	}
	sorted := s
	var number [mostWaitStreams]int8
	for to, from := range order {
		sorted.free[to], sorted.knows[to] = s.free[from], s.knows[from]
		number[from] = int8(to)
	}
	for at := range bits.OnesCount64(s.open) {
		sorted.on[at] = number[s.on[at]]
	}
	key := waitKey{sorted.placed, sorted.knows, sorted.before, sorted.on, sorted.used}
	list := b.next[key]
	for x := range list {
		if list[x].noWorse(&sorted) {
			return
		}
	}
	kept := list[:0]
	for x := range list {
		if !sorted.noWorse(&list[x]) {
			kept = append(kept, list[x])
		}
	}
	b.next[key] = append(kept, sorted)
}

// noWorse reports whether all that can follow another state of the same key can follow this one, with no more waits. What is ready before
// the other's last start is ready early enough.
func (s *waitState) noWorse(other *waitState) bool {
	if s.waits > other.waits || s.begun > other.begun {
		return false
	}
	for k, free := range s.free {
		if free > other.free[k] && free > other.begun {
			return false
		}
	}
	for k, end := range s.end {
		if end > other.end[k] && end > other.begun {
			return false
		}
	}
	return true
}
