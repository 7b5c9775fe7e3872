// The state of polishing an assignment: its timing, its windows, and what a change would cost.

package place

import (
	"math"
	"math/bits"
	"slices"

	"github.com/dagrun/dagrun/planner/internal/chance"
	"github.com/dagrun/dagrun/planner/plan"
)

// polisher tries changes to one assignment, in one window of the order at a time. A change is timed only from the first node that it
// concerns up to a cut: a node that comes after all nodes before it and before all nodes after it. If the cut still ends at the same time
// on the same stream, nothing after it changes.
type polisher struct {
	p       *Problem
	width   int32
	sync    float64
	order   []int32
	place   []int32 // of each node in the order
	stream  []int32
	streams []draftStream
	tail    []float64 // of each node, the longest path after it
	cuts    []int32   // of each place, the first cut there or later; the number of nodes if there is none
	random  chance.Random
	steps   int // nodes that may still be placed

	lo, hi int32   // the window: places that change. It ends after a cut or with the order.
	limit  float64 // the makespan must not exceed this
	past   []int   // costs of some rounds ago

	now, next timing
	from      int32    // next is valid from this place on
	until     int32    // and up to before this place
	records   []int32  // nodes that next records
	seen      []uint32 // by node: the round in which next recorded it
	round     uint32
	direct    []int32
	source    []int32
	run       []int32 // nodes that are moved together
	undo      []int32 // what the order held before
}

// timing holds when nodes run, what each stream is ordered after, and how many waits and records that takes.
type timing struct {
	spots    []spotted
	clock    []int32
	last     []int32   // the last node of each stream before a place, -1: last[place*width:(place+1)*width]
	waits    []int32   // before each place
	records  []int32   // likewise
	end      []float64 // the latest before each place
	recorded []int32   // of each node, the place of the first node that waits for it; after all places if there is none
}

func newTiming(n, width int) timing {
	t := timing{
		spots: make([]spotted, n), clock: make([]int32, n*width), last: make([]int32, (n+1)*width),
		waits: make([]int32, n+1), records: make([]int32, n+1), end: make([]float64, n+1), recorded: make([]int32, n),
	}
	for k := range width {
		t.last[k] = -1
	}
	for i := range t.recorded {
		t.recorded[i] = math.MaxInt32
	}
	return t
}

// An assignment may not need more waits than the one of some rounds ago (late acceptance). That number of rounds is the total number divided
// by patience, and at least leastPast: the longer the search may take, the longer it should accept worse results.
const (
	patience  = 40
	leastPast = 50
)

// window is a part of the order, from one place to before another, that begins after a cut or with the order, and ends likewise.
type window struct{ lo, hi int32 }

// windows are the parts between cuts that can lose waits.
func (h *polisher) windows() []window {
	var windows []window
	for lo, n := int32(0), int32(len(h.order)); lo < n; {
		hi := min(h.cuts[lo]+1, n)
		if h.now.waits[hi] > h.now.waits[lo] && slices.ContainsFunc(h.order[lo:hi], h.isLoose) {
			windows = append(windows, window{lo, hi})
		}
		lo = hi
	}
	return windows
}

// longest is the longest path.
func (h *polisher) longest() float64 {
	longest := 0.0
	for i, tail := range h.tail {
		longest = max(longest, h.p.duration[i]+tail)
	}
	return longest
}

// time times all of the window.
func (h *polisher) time() {
	h.evaluate(h.lo, h.hi-1, math.Inf(1), math.MaxInt)
	h.accept()
}

// latest is when a path may end that goes through the window: no later than it does now.
func (h *polisher) latest() float64 {
	makespan := h.score().makespan
	if int(h.hi) < len(h.order) {
		makespan += h.tail[h.order[h.hi-1]]
	}
	return makespan * (1 + rounding)
}

// rounding is the relative difference that sums of the same durations may have if added in different orders.
const rounding = 1e-12

// cost counts waits, then records.
func (a score) cost() int { return a.waits<<32 + a.records }

func newPolisher(p *Problem, a *Assignment) *polisher {
	n, width := p.len(), len(a.streams)
	h := &polisher{p: p, width: int32(width), sync: p.sync(), order: slices.Clone(a.order), stream: slices.Clone(a.stream), streams: a.streams,
		random: chance.New()}
	h.place = make([]int32, n)
	h.tail = make([]float64, n)
	for k, i := range h.order {
		h.place[i] = int32(k)
	}
	for k := n - 1; k >= 0; k-- {
		i := h.order[k]
		for _, s := range p.succs(i) {
			h.tail[i] = max(h.tail[i], p.duration[s]+h.tail[s])
		}
	}
	h.now, h.next = newTiming(n, width), newTiming(n, width)
	h.seen = make([]uint32, n)
	h.direct = make([]int32, width)
	h.source = make([]int32, width)
	h.cuts = p.cuts(h.order, h.place)
	h.hi = int32(n)
	h.time()
	return h
}

// score returns the score of the current assignment, up to the end of the window.
func (h *polisher) score() score {
	hi := int(h.hi)
	end := h.now.end[hi]
	if hi < len(h.order) {
		end = h.now.spots[h.order[hi-1]].finish
	}
	return score{end, int(h.now.waits[hi]), int(h.now.records[hi])}
}

// evaluate times the assignment after nodes between two places have changed, and counts its waits. It returns false as soon as the
// makespan is certain to exceed the limit, or there are more waits than allowed.
func (h *polisher) evaluate(from, to int32, limit float64, most int) bool {
	w := h.width
	h.round++
	h.from, h.until = from, h.hi
	cut := h.cuts[to]
	rest := h.waitsAfter(cut)
	h.records = h.records[:0]
	now, next := &h.now, &h.next
	copy(next.last[from*w:(from+1)*w], now.last[from*w:(from+1)*w])
	next.waits[from], next.records[from], next.end[from] = now.waits[from], now.records[from], now.end[from]
	waits, records, end := now.waits[from], now.records[from], now.end[from]
	for at := from; at < h.hi; at++ {
		i := h.order[at]
		k := h.stream[i]
		mine := next.clock[i*w : (i+1)*w]
		last := next.last[at*w : (at+1)*w]
		start := 0.0
		if q := last[k]; q >= 0 {
			t := h.timingOf(q)
			copy(mine, t.clock[q*w:(q+1)*w])
			start = t.spots[q].finish
		} else {
			clear(mine)
		}
		var touched uint64
		preds := h.p.preds(i)
		for c := len(preds) - 1; c >= 0; c-- {
			q := preds[c]
			timing := h.timingOf(q)
			spot := &timing.spots[q]
			t, position := spot.stream, spot.position
			if t == k {
				continue
			}
			start = max(start, spot.finish+h.sync)
			if position <= mine[t] || touched>>t&1 == 1 && h.direct[t] > position {
				continue
			}
			touched |= 1 << t
			h.direct[t], h.source[t] = position, q
			for b, v := range timing.clock[q*w : (q+1)*w] {
				mine[b] = max(mine[b], v)
			}
		}
		for ; touched != 0; touched &= touched - 1 {
			t := bits.TrailingZeros64(touched)
			if h.direct[t] <= mine[t] {
				continue
			}
			mine[t] = h.direct[t]
			waits++
			if q := h.source[t]; (now.recorded[q] >= from) && h.seen[q] != h.round {
				h.seen[q] = h.round
				h.records = append(h.records, q)
				next.recorded[q] = at
				records++
			}
		}
		finish := start + h.p.duration[i]
		if finish+h.tail[i] > limit || int(waits+rest) > most {
			h.steps -= int(at - from)
			return false
		}
		next.spots[i] = spotted{k, at + 1, finish} // the place in the order: it stays if other nodes move to the stream
		after := next.last[(at+1)*w : (at+2)*w]
		copy(after, last)
		after[k] = i
		end = max(end, finish)
		next.waits[at+1], next.records[at+1], next.end[at+1] = waits, records, end
		if at+1 == h.hi {
			// What comes after can only go on on a stream of the same kind.
			if was := &now.spots[i]; int(h.hi) < len(h.order) && was.stream != k && !h.alike(was.stream, k) {
				h.steps -= int(h.hi - from)
				return false
			}
		} else if at == cut {
			if was := &now.spots[i]; was.stream == k && math.Abs(finish-was.finish) <= rounding*finish {
				h.until = at + 1
				break
			}
			cut = h.cuts[at+1]
			rest = h.waitsAfter(cut)
		}
	}
	h.steps -= int(h.until - from)
	return true
}

// waitsAfter returns how many waits there are between a cut and the end of the window.
func (h *polisher) waitsAfter(cut int32) int32 {
	if cut >= h.hi {
		return 0
	}
	return h.now.waits[h.hi] - h.now.waits[cut+1]
}

// reached returns what the evaluated assignment costs, up to the end of the window.
func (h *polisher) reached() int {
	now, next, until, hi := &h.now, &h.next, h.until, h.hi
	return score{
		waits:   int(next.waits[until] + now.waits[hi] - now.waits[until]),
		records: int(next.records[until] + now.records[hi] - now.records[until]),
	}.cost()
}

// cuts returns, for each place of an order and the one after the last, the first cut there or later: a node that comes after every node
// before it and before every node after it. It has the same place in every order.
func (p *Problem) cuts(order, place []int32) []int32 {
	n := int32(len(order))
	cuts := make([]int32, n+1)
	furthest, last := int32(-1), int32(-1) // the last place that an earlier node leads to, and the last earlier node that leads nowhere
	isCut := make([]bool, n)
	for k, i := range order {
		isCut[k] = furthest <= int32(k) && last < 0
		for _, s := range p.succs(i) {
			furthest = max(furthest, place[s])
		}
		if len(p.succs(i)) == 0 {
			last = int32(k)
		}
	}
	cuts[n] = n
	rootless := true // no later node is without predecessors
	for k := n - 1; k >= 0; k-- {
		cuts[k] = cuts[k+1]
		if isCut[k] && rootless {
			cuts[k] = k
		}
		rootless = rootless && len(p.preds(order[k])) > 0
	}
	return cuts
}

// timingOf returns the timing that is valid for a node: next from the place of the change on.
func (h *polisher) timingOf(i int32) *timing {
	if h.place[i] >= h.from {
		return &h.next
	}
	return &h.now
}

// accept makes the evaluated timing the current one.
func (h *polisher) accept() {
	w, from, until := h.width, h.from, h.until
	now, next := &h.now, &h.next
	for _, i := range h.order[from:until] {
		now.spots[i] = next.spots[i]
		copy(now.clock[i*w:(i+1)*w], next.clock[i*w:(i+1)*w])
	}
	copy(now.last[from*w:until*w], next.last[from*w:until*w])
	waits, records := next.waits[until]-now.waits[until], next.records[until]-now.records[until]
	copy(now.waits[from:until], next.waits[from:until])
	copy(now.records[from:until], next.records[from:until])
	copy(now.end[from:until+1], next.end[from:until+1])
	for at := until; at <= h.hi; at++ {
		now.waits[at] += waits
		now.records[at] += records
	}
	if until == h.hi {
		copy(now.last[until*w:(until+1)*w], next.last[until*w:(until+1)*w])
	}
	// Nothing waits for what is before the cut that the window begins after.
	for _, i := range h.order[max(0, h.lo-1):until] {
		if at := now.recorded[i]; at >= from && at < until {
			now.recorded[i] = math.MaxInt32
		}
	}
	for _, i := range h.records {
		now.recorded[i] = next.recorded[i]
	}
}

// keep evaluates a change from a place on. It undoes the change if it costs time, or if it needs more waits than both the current
// assignment and the one of some rounds ago.
func (h *polisher) keep(round int, from, to int32, undo func()) {
	cost := h.score().cost()
	past := &h.past[round%len(h.past)]
	most := max(cost, *past)
	if h.evaluate(from, to, h.limit, most>>32) && h.reached() <= most {
		h.accept()
		cost = h.score().cost()
		h.limit = min(h.limit, h.latest())
	} else {
		undo()
	}
	*past = min(*past, cost)
}

// alike says whether streams can stand in for each other.
func (h *polisher) alike(a, b int32) bool {
	return h.streams[a] == h.streams[b] && h.streams[a].binding < 0
}

func (h *polisher) isLoose(i int32) bool {
	return h.p.boundOf(i) < 0 && h.p.engineOf(i) == plan.Compute
}
