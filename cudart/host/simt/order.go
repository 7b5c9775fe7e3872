// What is ordered before what within a launch, by PTX's memory model: barriers, __syncwarp, and fences with strong accesses.
//
// Each block counts its synchronisations; the count is the time of its accesses. A thread is ordered after an access of another if it
// knows the other's time to be past: from a barrier of the block, of the warp, or because it read, with a strong access, what the
// other had written with a strong access after a fence. Three leniences follow what kernels do and GPUs honour: an atomic operation
// acquires without a fence of its own; so does a barrier of the block, or of the warp, for what its threads have read before; and where each thread of a
// block has a fence between what it has written and a barrier of the block, any of them may release all of that after the barrier.

package simt

import (
	"math/bits"
	"slices"
)

func (b *board) find(address uint64, add bool) *releases {
	b.mu.Lock()
	defer b.mu.Unlock()
	r := b.at[address]
	if r == nil && add {
		if b.at == nil {
			b.at = map[uint64]*releases{}
		}
		r = &releases{last: map[uint32]int{}}
		b.at[address] = r
		b.any.Store(true)
	}
	return r
}

func (b *board) clear() {
	b.at = nil
	b.any.Store(false)
}

// before says whether the thread of me is ordered after an earlier access.
func (x *exec) before(old, me *stamp) bool {
	b, w := x.block, &x.check.order
	if old.block == me.block {
		if old.thread == me.thread || old.time < b.base {
			return true
		}
		theirs, mine := old.thread/warpSize, me.thread/warpSize
		switch {
		case theirs != mine:
			if b.pairs != nil && old.time < b.pairs[mine][theirs] {
				return true
			}
		case old.time < w.known || w.lanes != nil && old.time < w.lanes[me.thread%warpSize][old.thread%warpSize]:
			return true
		}
	}
	mine := w.acquired[me.thread%warpSize]
	if len(mine) == 0 && b.acquired == nil || old.time >= b.run.told.of(old.block).Load() {
		return false
	}
	if b.acquired != nil && !b.heard.known[b.acquired] {
		b.heard.hear(b.acquired, me.block)
	}
	return old.time < b.heard.past[old.block] || slices.ContainsFunc(b.heard.single[old.block], old.isPast) || b.heard.beside(mine, old, me.block)
}

// isPast says whether a release of the access' block tells that it is past.
func (old *stamp) isPast(r *released) bool {
	return old.time < r.base || old.thread == r.thread && old.time < r.time || r.pairs != nil && old.time < r.pairs[old.thread/warpSize] ||
		old.thread/warpSize == r.thread/warpSize && (old.time < r.known || r.row != nil && old.time < r.row[old.thread%warpSize])
}

// hear goes through what the block has acquired since it was called last.
func (h *heard) hear(all *knowledge, block uint32) {
	if h.seen == nil {
		*h = heard{map[heardOf]int{}, map[*knowledge]bool{}, map[uint32]uint32{}, map[uint32][]*released{}}
	}
	h.follow(all, &heard{}, block, func(r *released) bool {
		if r.time <= h.past[r.block] {
			return false
		}
		if r.base > h.past[r.block] {
			h.past[r.block] = r.base
			h.single[r.block] = slices.DeleteFunc(h.single[r.block], func(other *released) bool { return other.time <= r.base })
		}
		if r.time > r.base {
			h.single[r.block] = append(h.single[r.block], r)
		}
		return false
	})
}

// beside says whether what a lane has seen tells that an access is past, where what its block has heard does not.
func (h *heard) beside(mine []seen, old *stamp, block uint32) bool {
	if len(mine) == 0 {
		return false
	}
	own := heard{seen: map[heardOf]int{}, known: map[*knowledge]bool{}}
	return own.follow(&knowledge{seen: mine}, h, block, func(r *released) bool { return r.block == old.block && old.isPast(r) })
}

// follow calls a function for each release for a block that is in what is known, in what those knew who released that, and so on, but for
// what was heard already, here or elsewhere. It ends once the function returns true, and returns that.
func (h *heard) follow(all *knowledge, elsewhere *heard, block uint32, each func(r *released) bool) bool {
	for next := []*knowledge{all}; len(next) > 0; {
		k := next[len(next)-1]
		next = next[:len(next)-1]
		for ; k != nil && !h.known[k] && !elsewhere.known[k]; k = k.before {
			h.known[k] = true
			for _, s := range k.seen {
				whole, part := heardOf{at: s.at}, heardOf{s.at, s.only}
				from := max(h.seen[whole], elsewhere.seen[whole], h.seen[part], elsewhere.seen[part])
				if from >= s.n {
					continue
				}
				h.seen[part] = s.n
				s.at.mu.Lock()
				log, told := s.at.log[from:s.n], s.at.told
				s.at.mu.Unlock()
				for i := range log {
					if r := &log[i]; s.of(r) && (!r.cta || r.block == block) && each(r) {
						return true
					}
				}
				for _, t := range told {
					if from <= t.at && t.at < s.n && s.of(&log[t.at-from]) {
						next = append(next, t.knowledge)
					}
				}
			}
		}
	}
	return false
}

// of says whether a release is of those that were seen.
func (s *seen) of(r *released) bool { return s.only == 0 || s.only == r.block }

// add puts what was seen among what is known.
func add(to []seen, more ...seen) []seen {
next:
	for _, s := range more {
		for i := range to {
			if to[i].at == s.at && to[i].only == s.only {
				if s.n > to[i].n {
					kept := append([]seen(nil), to...) // others may hold it as it is
					kept[i].n = s.n
					to = kept
				}
				continue next
			}
		}
		to = append(to[:len(to):len(to)], s)
	}
	return to
}

// tick is a new time of the block.
func (b *block) tick() uint32 {
	b.now++
	return b.now
}

// promote acquires what lanes have read.
func (w *warpOrder) promote(m uint32) {
	for m &= w.waits; m != 0; m &= m - 1 {
		lane := bits.TrailingZeros32(m) & 31
		w.acquired[lane] = add(w.acquired[lane], w.pending[lane]...)
		w.pending[lane] = nil
		w.waits &^= 1 << lane
	}
}

// promoteWithin acquires what lanes have read from threads of their block. The rest waits for a fence for all threads.
func (w *warpOrder) promoteWithin(block, m uint32) {
	for m &= w.waits; m != 0; m &= m - 1 {
		lane := bits.TrailingZeros32(m) & 31
		for _, s := range w.pending[lane] {
			s.only = block
			w.acquired[lane] = add(w.acquired[lane], s)
		}
	}
}

// state is what a lane knows now, of accesses before a time.
func (x *exec) state(lane int, time uint32) fenced {
	w := &x.check.order
	f := fenced{time: time, base: x.block.base, known: w.known, acquired: x.block.acquired}
	mine, last := w.acquired[lane], w.cta[lane].acquired
	switch {
	case len(mine) == 0:
	case last != nil && last.before == x.block.acquired && slices.Equal(last.seen, mine):
		f.acquired = last
	default:
		f.acquired = &knowledge{mine, x.block.acquired}
	}
	if w.lanes != nil {
		row := w.lanes[lane]
		f.row = &row
	}
	if x.block.pairs != nil {
		f.pairs = x.block.pairs[x.warp.index]
	}
	return f
}

// fenceLanes is a fence.
func (x *exec) fenceLanes(m uint32, cta bool) {
	w := &x.check.order
	if cta {
		w.promoteWithin(x.check.block, m)
	} else {
		w.promote(m)
	}
	now := x.block.tick()
	for ; m != 0; m &= m - 1 {
		lane := bits.TrailingZeros32(m) & 31
		f := x.state(lane, now)
		w.cta[lane] = f
		if !cta {
			w.gpu[lane] = f
		}
	}
}

// sees notes what has been released at an address that a strong access reads.
func (x *exec) sees(board *board, address uint64, lane int, kind uint8) {
	if kind&(writes|updates) == writes || !board.any.Load() {
		return
	}
	r := board.find(address, false)
	if r == nil {
		return
	}
	r.mu.Lock()
	s := seen{at: r, n: len(r.log)}
	r.mu.Unlock()
	if kind&blockly != 0 {
		s.only = x.check.block
	}
	w := &x.check.order
	switch {
	case s.n == 0:
	case kind&(updates|acquire) != 0:
		w.acquired[lane] = add(w.acquired[lane], s)
	default:
		w.pending[lane] = add(w.pending[lane], s)
		w.waits |= 1 << lane
	}
}

// sawGlobal notes again what has been released, after a strong access to global memory has read: another block may have released what
// was read since the access was entered.
func (x *exec) sawGlobal(window, address uint64, lane int, kind uint8) {
	if kind&strongs == 0 || kind&silent != 0 || window != 0 || address&^inWindow != 0 {
		return
	}
	x.sees(&x.block.run.board, address&plainMask, lane, kind)
}

// synchronise is what a strong access at an address does beside accessing it.
func (x *exec) synchronise(address uint64, lane int, kind uint8) {
	if kind&strongs == 0 {
		return
	}
	w := &x.check.order
	board := &x.block.run.board
	if address&^inWindow == inShared {
		board = &x.block.board
	}
	x.sees(board, address, lane, kind)
	if kind&writes == 0 {
		return
	}
	me := x.stampOf(lane, kind)
	gpu, cta := w.gpu[lane], w.cta[lane]
	if kind&release != 0 {
		f := x.state(lane, x.block.tick())
		if cta = f; kind&blockly == 0 {
			gpu = f
		}
	}
	if gpu.time == 0 && cta.time == 0 {
		return
	}
	r := board.find(address, true)
	r.mu.Lock()
	defer r.mu.Unlock()
	if gpu.time != 0 && kind&blockly == 0 {
		x.block.tell(r, released{fenced: gpu, block: me.block, thread: me.thread})
	}
	if cta.time > gpu.time || kind&blockly != 0 {
		x.block.tell(r, released{fenced: cta, block: me.block, thread: me.thread, cta: true})
	}
}

// tell adds a release of the block; the caller holds mu.
func (b *block) tell(r *releases, e released) {
	told := b.run.told.of(e.block)
	for latest := told.Load(); e.time > latest && !told.CompareAndSwap(latest, e.time); {
		latest = told.Load()
	}
	news := e.acquired != nil
	if at, ok := r.last[e.block]; ok {
		last := &r.log[at]
		if last.thread == e.thread && last.time == e.time && last.cta == e.cta {
			return // a thread that polls with an atomic operation
		}
		news = news && last.acquired != e.acquired
	}
	at := len(r.log)
	if news {
		r.told = append(r.told, telling{e.acquired, at})
	}
	r.log, r.last[e.block] = append(r.log, e), at
}

// warpBarrier orders the lanes of a __syncwarp.
func (x *exec) warpBarrier(m uint32) {
	w := &x.check.order
	w.promote(m)
	now := x.block.tick()
	var all []seen
	for left := m; left != 0; left &= left - 1 {
		all = add(all, w.acquired[bits.TrailingZeros32(left)&31]...)
	}
	if all != nil {
		for left := m; left != 0; left &= left - 1 {
			w.acquired[bits.TrailingZeros32(left)&31] = all
		}
	}
	if x.warp.live&^m == 0 {
		w.known = now
		return
	}
	if w.lanes == nil {
		w.lanes = &[warpSize][warpSize]uint32{}
	}
	var row [warpSize]uint32
	for left := m; left != 0; left &= left - 1 {
		lane := bits.TrailingZeros32(left) & 31
		for k, t := range w.lanes[lane] {
			row[k] = max(row[k], t)
		}
	}
	for left := m; left != 0; left &= left - 1 {
		row[bits.TrailingZeros32(left)&31] = now
	}
	for left := m; left != 0; left &= left - 1 {
		w.lanes[bits.TrailingZeros32(left)&31] = row
	}
}

// joinAll orders all threads of the block after all that they have done.
func (b *block) joinAll() {
	b.base = b.tick()
	var all []seen
	for _, w := range b.warps {
		o := &w.x.check.order
		o.promote(o.waits)
		for lane := range o.acquired {
			all = add(all, o.acquired[lane]...)
			o.acquired[lane] = nil
		}
	}
	b.acquire(all)
	if b.flushed() {
		f := fenced{time: b.base, base: b.base, acquired: b.acquired}
		for _, w := range b.warps {
			for lane := range w.x.check.order.gpu {
				w.x.check.order.gpu[lane], w.x.check.order.cta[lane] = f, f
			}
		}
	}
}

// acquire adds to what all threads of the block know.
func (b *block) acquire(all []seen) {
	if len(all) > 0 {
		b.acquired = &knowledge{all, b.acquired}
	}
}

// flushed says whether each thread that has written to global memory has had a fence since, for threads of all blocks.
func (b *block) flushed() bool {
	wrote := false
	for _, w := range b.warps {
		o := &w.x.check.order
		for lane, time := range o.wrote {
			if time > 0 && o.gpu[lane].time < time {
				return false
			}
			wrote = wrote || time > 0
		}
	}
	return wrote
}

// opened orders the threads of a barrier of the block: those that waited after all that came.
func (b *block) opened(bar *barrier, name int) {
	if !bar.arrive && (!bar.counts || bar.want >= b.threads) {
		b.joinAll()
		return
	}
	if b.pairs == nil {
		b.pairs = make([][]uint32, len(b.warps))
		for i := range b.pairs {
			b.pairs[i] = make([]uint32, len(b.warps))
		}
	}
	row := make([]uint32, len(b.warps))
	var all []seen
	for v, w := range b.warps {
		if bar.times[v] == 0 {
			continue
		}
		for k, t := range b.pairs[v] {
			row[k] = max(row[k], t)
		}
		row[v] = max(row[v], bar.times[v])
		for lane := range w.x.check.order.acquired {
			all = add(all, w.x.check.order.acquired[lane]...)
		}
	}
	for v, w := range b.warps {
		waits := false
		for i := range w.groups {
			waits = waits || int(w.groups[i].waiting) == name
		}
		if !waits {
			continue
		}
		o := &w.x.check.order
		o.promote(o.waits)
		b.pairs[v] = row // releases may hold the row before
		o.known = max(o.known, row[v])
		for lane := range o.acquired {
			o.acquired[lane] = add(o.acquired[lane], all...)
		}
	}
}

// begin forgets what threads of an earlier block knew.
func (w *warpOrder) begin() {
	*w = warpOrder{}
}

func (x *exec) stampOf(lane int, kind uint8) stamp {
	return stamp{block: x.check.block, thread: uint16(x.warp.index*warpSize + lane), time: x.block.now,
		site: x.frame.fn.number<<siteShift | uint32(x.at), kind: kind}
}
