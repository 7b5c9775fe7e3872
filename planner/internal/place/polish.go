// Polishing: makes small changes to an assignment, one at a time, so that it needs fewer waits but no more time. Adds no stream.

package place

import (
	"math"
	"math/bits"
	"slices"

	"github.com/dagrun/dagrun/planner/plan"
)

// polisher tries changes to one assignment. A change is timed only from the first node that it concerns up to a cut: a node that comes after
// all nodes before it and before all nodes after it. If the cut still ends at the same time on the same stream, nothing after it changes.
type polisher struct {
	p       *Problem
	width   int32
	sync    float64
	order   []int32
	place   []int32 // of each node in the order
	stream  []int32
	streams []draftStream
	loose   []int32   // nodes that may change streams
	tail    []float64 // of each node, the longest path after it
	limit   float64   // the makespan must not exceed this
	random  uint64    // state of a generator that always starts the same
	steps   int       // nodes that may still be placed

	now, next timing
	from      int32    // next is valid from this place on
	until     int32    // and up to before this place
	cuts      []int32  // of each place, the first cut there or later; the number of nodes if there is none
	records   []int32  // nodes that next records
	seen      []uint32 // by node: the round in which next recorded it
	round     uint32
	direct    []int32
	source    []int32
	run       []int32 // nodes that are moved together
	undo      []int32 // what the order held before
	past      []int   // costs of some rounds ago
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

// Polish returns a better assignment. steps is about how many nodes it may place. It returns nil if there are too many streams for clocks.
func Polish(p *Problem, a *Assignment, steps int) (*Assignment, error) {
	if len(a.streams) > 64 {
		return nil, nil
	}
	// A stream without nodes could only be added, and no change adds one.
	a.number(p)
	h := newPolisher(p, a, steps)
	if len(h.loose) == 0 || h.width < 2 {
		return nil, nil
	}
	h.steps = steps
	best := h.score()
	stream, order := slices.Clone(h.stream), slices.Clone(h.order)
	for k := 0; h.steps > 0; k++ {
		if k%256 == 0 {
			if err := p.ctx.Err(); err != nil {
				return nil, err
			}
		}
		h.steps-- // count failed attempts too, so that the search ends
		h.step(k)
		if sc := h.score(); sc.cost() < best.cost() || sc.makespan < best.makespan*(1-rounding) {
			best = sc
			copy(stream, h.stream)
			copy(order, h.order)
		}
	}
	order = submissionOrder(p, stream, order, len(h.streams))
	return &Assignment{stream: stream, order: order, streams: h.streams, score: best}, nil
}

// rounding is the relative difference that sums of the same durations may have if added in different orders.
const rounding = 1e-12

// cost counts waits, then records.
func (a score) cost() int { return a.waits<<32 + a.records }

func newPolisher(p *Problem, a *Assignment, steps int) *polisher {
	n, width := p.len(), len(a.streams)
	h := &polisher{p: p, width: int32(width), sync: p.sync(), order: slices.Clone(a.order), stream: slices.Clone(a.stream), streams: a.streams, random: 0x9e3779b97f4a7c15}
	h.place = make([]int32, n)
	h.tail = make([]float64, n)
	for k, i := range h.order {
		h.place[i] = int32(k)
		if p.boundOf(i) < 0 && p.engineOf(i) == plan.Compute {
			h.loose = append(h.loose, i)
		}
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
	h.evaluate(0, int32(n)-1, math.Inf(1), math.MaxInt)
	h.accept()
	h.past = slices.Repeat([]int{h.score().cost()}, max(leastPast, 2*steps/(n*patience)))
	h.limit = h.score().makespan * (1 + rounding)
	return h
}

// score returns the score of the current assignment.
func (h *polisher) score() score {
	n := len(h.order)
	return score{h.now.end[n], int(h.now.waits[n]), int(h.now.records[n])}
}

// evaluate times the assignment after nodes between two places have changed, and counts its waits. It returns false as soon as the
// makespan is certain to exceed the limit, or there are more waits than allowed.
func (h *polisher) evaluate(from, to int32, limit float64, most int) bool {
	w := h.width
	n := int32(len(h.order))
	h.round++
	h.from, h.until = from, n
	cut := h.cuts[to]
	rest := h.waitsAfter(cut)
	h.records = h.records[:0]
	now, next := &h.now, &h.next
	copy(next.last[from*w:(from+1)*w], now.last[from*w:(from+1)*w])
	next.waits[from], next.records[from], next.end[from] = now.waits[from], now.records[from], now.end[from]
	waits, records, end := now.waits[from], now.records[from], now.end[from]
	for at := from; at < n; at++ {
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
			own := mine[t]
			for b, v := range timing.clock[q*w : (q+1)*w] {
				mine[b] = max(mine[b], v)
			}
			mine[t] = own
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
		mine[k] = at + 1
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
		if at == cut {
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

// waitsAfter returns how many waits there are after a cut.
func (h *polisher) waitsAfter(cut int32) int32 {
	n := len(h.order)
	if int(cut) >= n {
		return 0
	}
	return h.now.waits[n] - h.now.waits[cut+1]
}

// reached returns the score of the assignment that was evaluated.
func (h *polisher) reached() score {
	now, next, n, until := &h.now, &h.next, len(h.order), h.until
	return score{
		max(next.end[until], now.end[n]),
		int(next.waits[until] + now.waits[n] - now.waits[until]), int(next.records[until] + now.records[n] - now.records[until]),
	}
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
	w, n, from, until := h.width, int32(len(h.order)), h.from, h.until
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
	for at := until; at <= n; at++ {
		now.waits[at] += waits
		now.records[at] += records
	}
	if until == n {
		copy(now.last[n*w:], next.last[n*w:])
	}
	for i, at := range now.recorded {
		if at >= from && at < until {
			now.recorded[i] = math.MaxInt32
		}
	}
	for _, i := range h.records {
		now.recorded[i] = next.recorded[i]
	}
}

// rand returns a number below n.
func (h *polisher) rand(n int) int {
	h.random ^= h.random << 13
	h.random ^= h.random >> 7
	h.random ^= h.random << 17
	return int((h.random >> 33) * uint64(n) >> 31)
}

// keep evaluates a change from a place on. It undoes the change if it costs time, or if it needs more waits than both the current
// assignment and the one of some rounds ago.
func (h *polisher) keep(round int, from, to int32, undo func()) {
	cost := h.score().cost()
	past := &h.past[round%len(h.past)]
	most := max(cost, *past)
	if h.evaluate(from, to, h.limit, most>>32) && h.reached().cost() <= most {
		h.accept()
		cost = h.score().cost()
		h.limit = min(h.limit, h.score().makespan*(1+rounding))
	} else {
		undo()
	}
	*past = min(*past, cost)
}

// takes reports whether a node may move to a stream: a stream of its pool that already runs kernels and, under sync: explicit, is not bound.
func (h *polisher) takes(k, i int32) bool {
	st := &h.streams[k]
	return st.computes && st.pool == h.p.poolOf(i) && (!h.p.explicit || st.binding < 0)
}

func (h *polisher) isLoose(i int32) bool {
	return h.p.boundOf(i) < 0 && h.p.engineOf(i) == plan.Compute
}

// step tries one change.
func (h *polisher) step(round int) {
	switch h.rand(5) {
	case 0:
		h.move(round)
	case 1:
		h.swap(round)
	case 2:
		h.cross(round)
	case 3:
		h.shift(round)
	case 4:
		h.moveRun(round)
	}
}

// move puts a node on another stream.
func (h *polisher) move(round int) {
	i := h.loose[h.rand(len(h.loose))]
	old, k := h.stream[i], int32(h.rand(int(h.width)))
	if k == old || !h.takes(k, i) {
		return
	}
	h.stream[i] = k
	h.keep(round, h.place[i], h.place[i], func() { h.stream[i] = old })
}

// moveRun moves a chain of nodes from one stream to another, where they run one right after the other.
func (h *polisher) moveRun(round int) {
	i := h.loose[h.rand(len(h.loose))]
	old, k := h.stream[i], int32(h.rand(int(h.width)))
	if !h.takes(k, i) {
		return
	}
	// Usually from the start of the chain to its end.
	for h.rand(longRun) > 0 {
		preds := h.p.preds(i)
		if len(preds) != 1 || h.stream[preds[0]] != old || !h.isLoose(preds[0]) || h.follower(preds[0]) != i {
			break
		}
		i = preds[0]
	}
	h.run = append(h.run[:0], i)
	for last := h.follower(i); last >= 0 && len(h.p.preds(last)) == 1 && h.rand(longRun) > 0; last = h.follower(last) {
		h.run = append(h.run, last)
	}
	first, last := h.place[i], h.place[h.run[len(h.run)-1]]
	// Anywhere after the predecessors of the first and before the successors of all.
	low, high := int32(0), int32(len(h.order))
	for _, q := range h.p.preds(i) {
		low = max(low, h.place[q]+1)
	}
	for at, j := range h.run {
		for _, s := range h.p.succs(j) {
			if at+1 == len(h.run) || s != h.run[at+1] {
				high = min(high, h.place[s])
			}
		}
	}
	to := low + int32(h.rand(int(high-low)+1))
	from, end := min(first, to), max(last+1, to)
	h.undo = append(h.undo[:0], h.order[from:end]...)
	at := from
	put := func(j int32) {
		h.order[at], h.place[j] = j, at
		at++
	}
	member := 0
	for place, j := range h.undo {
		if from+int32(place) == to {
			h.putRun(put, k)
		}
		if member < len(h.run) && j == h.run[member] {
			member++
			continue
		}
		put(j)
	}
	if to == end {
		h.putRun(put, k)
	}
	h.keep(round, from, end-1, func() {
		for place, j := range h.undo {
			h.order[from+int32(place)], h.place[j] = j, from+int32(place)
		}
		for _, j := range h.run {
			h.stream[j] = old
		}
	})
}

// longRun is the average length of the chains that are moved, unless they end earlier.
const longRun = 16

func (h *polisher) putRun(put func(int32), k int32) {
	for _, j := range h.run {
		h.stream[j] = k
		put(j)
	}
}

// follower returns the first node that depends on node i and runs on the same stream, -1 for none.
func (h *polisher) follower(i int32) int32 {
	following := int32(-1)
	for _, s := range h.p.succs(i) {
		if h.stream[s] == h.stream[i] && h.isLoose(s) && (following < 0 || h.place[s] < h.place[following]) {
			following = s
		}
	}
	return following
}

// swap exchanges the streams of two nodes that are submitted at about the same time.
func (h *polisher) swap(round int) {
	i := h.loose[h.rand(len(h.loose))]
	j := h.order[min(len(h.order)-1, int(h.place[i])+1+h.rand(2*int(h.width)))]
	if h.stream[i] == h.stream[j] || !h.isLoose(j) || !h.takes(h.stream[i], j) || !h.takes(h.stream[j], i) {
		return
	}
	exchange := func() { h.stream[i], h.stream[j] = h.stream[j], h.stream[i] }
	exchange()
	h.keep(round, h.place[i], h.place[j], exchange)
}

// cross exchanges what two streams run from a node on, up to a cut or the end.
func (h *polisher) cross(round int) {
	from, to := h.rand(len(h.order)), len(h.order)
	if cut := int(h.cuts[from]); cut > from {
		to = cut
	}
	a, b := int32(h.rand(int(h.width))), int32(h.rand(int(h.width)))
	if a == b || h.streams[a] != h.streams[b] || h.streams[a].binding >= 0 {
		return
	}
	exchange := func() {
		for _, i := range h.order[from:to] {
			switch h.stream[i] {
			case a:
				h.stream[i] = b
			case b:
				h.stream[i] = a
			}
		}
	}
	exchange()
	h.keep(round, int32(from), int32(to)-1, exchange)
}

// shift moves a node in the order, as far as its dependencies let it.
func (h *polisher) shift(round int) {
	from := h.rand(len(h.order))
	to := max(0, min(len(h.order)-1, from-2*int(h.width)+h.rand(4*int(h.width)+1)))
	if from == to || !h.isLoose(h.order[from]) || !h.reorder(from, to) {
		return
	}
	h.keep(round, int32(min(from, to)), int32(max(from, to)), func() { h.reorder(to, from) })
}

func (h *polisher) reorder(from, to int) bool {
	i := h.order[from]
	if from < to {
		for _, s := range h.p.succs(i) {
			if h.place[s] <= int32(to) {
				return false
			}
		}
		copy(h.order[from:to], h.order[from+1:to+1])
	} else {
		for _, q := range h.p.preds(i) {
			if h.place[q] >= int32(to) {
				return false
			}
		}
		copy(h.order[to+1:from+1], h.order[to:from])
	}
	h.order[to] = i
	for k := min(from, to); k <= max(from, to); k++ {
		h.place[h.order[k]] = int32(k)
	}
	return true
}
