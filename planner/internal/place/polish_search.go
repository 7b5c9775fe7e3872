// Polishing: makes small changes to an assignment, one at a time, so that it needs fewer waits but no more time. Adds no stream.

package place

import "slices"

// Polish returns a better assignment. steps is about how many nodes it may place. It returns nil if there are too many streams for clocks.
func Polish(p *Problem, a *Assignment, steps int) (*Assignment, error) {
	if len(a.streams) > 64 {
		return nil, nil
	}
	// A stream without nodes could only be added, and no change adds one.
	a.number(p)
	h := newPolisher(p, a)
	if h.width < 2 || !slices.ContainsFunc(h.order, h.isLoose) {
		return nil, nil
	}
	h.steps = steps
	n := int32(len(h.order))
	whole := window{0, n}
	if windows := h.windows(); !slices.Contains(windows, whole) {
		// What one window takes is of no use to another where none can take less.
		makespan, rest := h.score().makespan, 0
		if longest := h.longest(); makespan > longest*(1+rounding) {
			rest = steps / 2
		}
		if err := h.searchEach(windows, rest); err != nil {
			return nil, err
		}
	}
	if err := h.search(whole, h.steps); err != nil {
		return nil, err
	}
	order := submissionOrder(p, h.stream, h.order, len(h.streams))
	return &Assignment{stream: h.stream, order: order, streams: h.streams, score: h.score()}, nil
}

// searchEach searches windows one after the other, each with its share of the steps, until only so many are left.
func (h *polisher) searchEach(windows []window, rest int) error {
	nodes := 0
	for _, w := range windows {
		nodes += int(w.hi - w.lo)
	}
	done := int32(0)
	for _, w := range windows {
		// What is before follows the streams that it was exchanged to.
		h.lo, h.hi = done, w.hi
		h.time()
		done = w.hi
		size := int(w.hi - w.lo)
		if err := h.search(w, (h.steps-rest)*size/nodes); err != nil {
			return err
		}
		nodes -= size
	}
	return nil
}

// search changes what is in a window until the steps are spent, and leaves the best that it came by.
func (h *polisher) search(w window, steps int) error {
	h.lo, h.hi = w.lo, w.hi
	h.time()
	best := h.score()
	end := int32(-1) // the stream that what comes after the window follows
	if int(h.hi) < len(h.order) {
		end = h.stream[h.order[h.hi-1]]
	}
	order := slices.Clone(h.order[h.lo:h.hi])
	stream := make([]int32, len(order))
	note := func() {
		copy(order, h.order[h.lo:h.hi])
		for k, i := range order {
			stream[k] = h.stream[i]
		}
	}
	note()
	h.past = slices.Repeat([]int{best.cost()}, max(leastPast, 2*steps/(len(order)*patience)))
	h.limit = h.latest()
	for k, until := 0, h.steps-steps; h.steps > until; k++ {
		if k%256 == 0 {
			if err := h.p.ctx.Err(); err != nil {
				return err
			}
		}
		h.steps-- // count failed attempts too, so that the search ends
		h.step(k)
		if sc := h.score(); sc.cost() < best.cost() || sc.makespan < best.makespan*(1-rounding) {
			best = sc
			note()
		}
	}
	for k, i := range order {
		h.order[int(h.lo)+k], h.place[i] = i, h.lo+int32(k)
		h.stream[i] = stream[k]
	}
	h.time()
	if end >= 0 {
		h.exchange(end, h.stream[h.order[h.hi-1]], h.hi, int32(len(h.order)))
	}
	return nil
}
