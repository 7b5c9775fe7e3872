// Polishing: small changes to an assignment, one at a time, each kept unless it makes the plan worse. Opens no stream.

package place

import (
	"math/bits"

	"github.com/dagrun/dagrun/planner/plan"
)

// polisher tries changes to one assignment.
type polisher struct {
	p      *Problem
	width  int32
	sync   float64
	order  []int32
	place  []int32 // of each node in the order
	stream []int32
	lanes  []lane
	loose  []int32 // nodes that may change streams
	score  score
	random uint64 // state of a generator that always starts the same

	spots    []spotted
	clock    []int32
	recorded []uint32 // the evaluation that last saw a wait for the node
	round    uint32
	last     []int32
	free     []float64
	count    []int32
	direct   []int32
	source   []int32
}

// Polish returns a better assignment after so many steps, nil where there are too many streams to keep clocks.
func Polish(p *Problem, a *Assignment, steps int) (*Assignment, error) {
	if len(a.lanes) > 64 {
		return nil, nil
	}
	// Lanes without nodes could only be opened.
	a.number(p)
	h := newPolisher(p, a)
	if len(h.loose) == 0 || h.width < 2 {
		return nil, nil
	}
	for k := range steps {
		if k%256 == 0 {
			if err := p.ctx.Err(); err != nil {
				return nil, err
			}
		}
		h.step()
	}
	order := submissionOrder(p, h.stream, h.order, len(h.lanes))
	return &Assignment{stream: h.stream, order: order, lanes: h.lanes, score: h.score}, nil
}

func newPolisher(p *Problem, a *Assignment) *polisher {
	n, width := p.len(), len(a.lanes)
	h := &polisher{p: p, width: int32(width), sync: p.sync(), order: a.order, stream: a.stream, lanes: a.lanes, random: 0x9e3779b97f4a7c15}
	h.place = make([]int32, n)
	for k, i := range h.order {
		h.place[i] = int32(k)
		if p.boundOf(i) < 0 && p.engineOf(i) == plan.Compute {
			h.loose = append(h.loose, i)
		}
	}
	h.spots = make([]spotted, n)
	h.clock = make([]int32, n*width)
	h.recorded = make([]uint32, n)
	h.last = make([]int32, width)
	h.free = make([]float64, width)
	h.count = make([]int32, width)
	h.direct = make([]int32, width)
	h.source = make([]int32, width)
	h.score = h.evaluate()
	return h
}

// evaluate times the assignment and counts its waits.
func (h *polisher) evaluate() score {
	w := h.width
	h.round++
	for k := range h.last {
		h.last[k], h.free[k], h.count[k] = -1, 0, 0
	}
	var sc score
	for _, i := range h.order {
		k := h.stream[i]
		mine := h.clock[i*w : (i+1)*w]
		if q := h.last[k]; q >= 0 {
			copy(mine, h.clock[q*w:(q+1)*w])
		} else {
			clear(mine)
		}
		start := h.free[k]
		var touched uint64
		preds := h.p.preds(i)
		for at := len(preds) - 1; at >= 0; at-- {
			q := preds[at]
			t, position := h.spots[q].lane, h.spots[q].position
			if t == k {
				continue
			}
			start = max(start, h.spots[q].finish+h.sync)
			if position <= mine[t] || touched>>t&1 == 1 && h.direct[t] > position {
				continue
			}
			touched |= 1 << t
			h.direct[t], h.source[t] = position, q
			own := mine[t]
			for b, v := range h.clock[q*w : (q+1)*w] {
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
			sc.waits++
			if q := h.source[t]; h.recorded[q] != h.round {
				h.recorded[q] = h.round
				sc.records++
			}
		}
		h.count[k]++
		mine[k] = h.count[k]
		finish := start + h.p.duration[i]
		h.spots[i] = spotted{k, h.count[k], finish}
		h.last[k] = i
		h.free[k] = finish
		sc.makespan = max(sc.makespan, finish)
	}
	return sc
}

// rand returns a number below n.
func (h *polisher) rand(n int) int {
	h.random ^= h.random << 13
	h.random ^= h.random >> 7
	h.random ^= h.random << 17
	return int((h.random >> 33) * uint64(n) >> 31)
}

// keep evaluates a change and takes it back where it makes things worse. What changes nothing is kept: it leads elsewhere.
func (h *polisher) keep(undo func()) {
	sc := h.evaluate()
	if h.score.makespan < sc.makespan || h.score.makespan == sc.makespan &&
		(h.score.waits < sc.waits || h.score.waits == sc.waits && h.score.records < sc.records) {
		undo()
		return
	}
	h.score = sc
}

// takes says whether a node may run on a lane: one of its pool that computes already and, under sync: explicit, is not bound.
func (h *polisher) takes(k, i int32) bool {
	ln := &h.lanes[k]
	return ln.computes && ln.pool == h.p.poolOf(i) && (!h.p.explicit || ln.binding < 0)
}

func (h *polisher) isLoose(i int32) bool {
	return h.p.boundOf(i) < 0 && h.p.engineOf(i) == plan.Compute
}

// step tries one change.
func (h *polisher) step() {
	switch h.rand(4) {
	case 0:
		h.move()
	case 1:
		h.swap()
	case 2:
		h.cross()
	case 3:
		h.shift()
	}
}

// move puts a node on another stream.
func (h *polisher) move() {
	i := h.loose[h.rand(len(h.loose))]
	old, k := h.stream[i], int32(h.rand(int(h.width)))
	if k == old || !h.takes(k, i) {
		return
	}
	h.stream[i] = k
	h.keep(func() { h.stream[i] = old })
}

// swap exchanges the streams of two nodes that are submitted at about the same time.
func (h *polisher) swap() {
	i := h.loose[h.rand(len(h.loose))]
	j := h.order[min(len(h.order)-1, int(h.place[i])+1+h.rand(2*int(h.width)))]
	if h.stream[i] == h.stream[j] || !h.isLoose(j) || !h.takes(h.stream[i], j) || !h.takes(h.stream[j], i) {
		return
	}
	exchange := func() { h.stream[i], h.stream[j] = h.stream[j], h.stream[i] }
	exchange()
	h.keep(exchange)
}

// cross exchanges everything that two streams run from a node on.
func (h *polisher) cross() {
	from := h.rand(len(h.order))
	a, b := int32(h.rand(int(h.width))), int32(h.rand(int(h.width)))
	if a == b || h.lanes[a] != h.lanes[b] || h.lanes[a].binding >= 0 {
		return
	}
	exchange := func() {
		for _, i := range h.order[from:] {
			switch h.stream[i] {
			case a:
				h.stream[i] = b
			case b:
				h.stream[i] = a
			}
		}
	}
	exchange()
	h.keep(exchange)
}

// shift moves a node in the order, as far as its dependencies let it.
func (h *polisher) shift() {
	from := h.rand(len(h.order))
	to := max(0, min(len(h.order)-1, from-2*int(h.width)+h.rand(4*int(h.width)+1)))
	if from == to || !h.isLoose(h.order[from]) || !h.reorder(from, to) {
		return
	}
	h.keep(func() { h.reorder(to, from) })
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
