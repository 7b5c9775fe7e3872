// The changes that polishing tries: nodes and chains of nodes change streams and places.

package place

// takes reports whether a node may move to a stream: a stream of its pool that already runs kernels and, under sync: explicit, is not bound.
func (h *polisher) takes(k, i int32) bool {
	st := &h.streams[k]
	return st.computes && st.pool == h.p.poolOf(i) && (!h.p.explicit || st.binding < 0)
}

// step tries one change.
func (h *polisher) step(round int) {
	switch h.random.Below(5) {
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

// pick returns a node of the window.
func (h *polisher) pick() int32 { return h.order[h.lo+int32(h.random.Below(int(h.hi-h.lo)))] }

// move puts a node on another stream.
func (h *polisher) move(round int) {
	i := h.pick()
	if !h.isLoose(i) {
		return
	}
	old, k := h.stream[i], int32(h.random.Below(int(h.width)))
	if k == old || !h.takes(k, i) {
		return
	}
	h.stream[i] = k
	h.keep(round, h.place[i], h.place[i], func() { h.stream[i] = old })
}

// moveRun moves a chain of nodes from one stream to another, where they run one right after the other.
func (h *polisher) moveRun(round int) {
	i := h.pick()
	if !h.isLoose(i) {
		return
	}
	old, k := h.stream[i], int32(h.random.Below(int(h.width)))
	if !h.takes(k, i) {
		return
	}
	// Usually from the start of the chain to its end.
	for h.random.Below(longRun) > 0 {
		preds := h.p.preds(i)
		if len(preds) != 1 || h.place[preds[0]] < h.lo || h.stream[preds[0]] != old || !h.isLoose(preds[0]) || h.follower(preds[0]) != i {
			break
		}
		i = preds[0]
	}
	h.run = append(h.run[:0], i)
	for last := h.follower(i); last >= 0 && h.place[last] < h.hi && len(h.p.preds(last)) == 1 && h.random.Below(longRun) > 0; last = h.follower(last) {
		h.run = append(h.run, last)
	}
	first, last := h.place[i], h.place[h.run[len(h.run)-1]]
	// Anywhere after the predecessors of the first and before the successors of all.
	low, high := h.lo, h.hi
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
	to := low + int32(h.random.Below(int(high-low)+1))
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
	i := h.pick()
	if !h.isLoose(i) {
		return
	}
	j := h.order[min(int(h.hi)-1, int(h.place[i])+1+h.random.Below(2*int(h.width)))]
	if h.stream[i] == h.stream[j] || !h.isLoose(j) || !h.takes(h.stream[i], j) || !h.takes(h.stream[j], i) {
		return
	}
	exchange := func() { h.stream[i], h.stream[j] = h.stream[j], h.stream[i] }
	exchange()
	h.keep(round, h.place[i], h.place[j], exchange)
}

// cross exchanges what two streams run from a node on, up to a cut or the end of the window.
func (h *polisher) cross(round int) {
	from := h.lo + int32(h.random.Below(int(h.hi-h.lo)))
	to := h.hi
	if cut := h.cuts[from]; cut > from && cut < to {
		to = cut
	}
	a, b := int32(h.random.Below(int(h.width))), int32(h.random.Below(int(h.width)))
	if a == b || !h.alike(a, b) {
		return
	}
	h.exchange(a, b, from, to)
	h.keep(round, from, to-1, func() { h.exchange(a, b, from, to) })
}

// exchange puts what two streams run from one place to before another on the other stream.
func (h *polisher) exchange(a, b, from, to int32) {
	if a == b {
		return
	}
	for _, i := range h.order[from:to] {
		switch h.stream[i] {
		case a:
			h.stream[i] = b
		case b:
			h.stream[i] = a
		}
	}
}

// shift moves a node in the order, as far as its dependencies let it.
func (h *polisher) shift(round int) {
	from := int(h.lo) + h.random.Below(int(h.hi-h.lo))
	to := max(int(h.lo), min(int(h.hi)-1, from-2*int(h.width)+h.random.Below(4*int(h.width)+1)))
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
