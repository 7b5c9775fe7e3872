// Execution: warps are groups of lanes, blocks are warps with shared memory and barriers.

package simt

import (
	"math/bits"
	"sync/atomic"

	"github.com/dagrun/dagrun/internal/ptx"
)

// turn is the place of a group among those of its function.
func (g *group) turn() int32 { return g.frame.fn.blocks[g.pc].turn }

// begin prepares a warp for a block.
func (w *warp) begin(b *block, index, threads int) {
	w.index = index
	w.arrived, w.met = 0, 0
	w.live = 1<<(threads-index*warpSize) - 1 // all lanes, where as many threads or more are left
	if w.top == nil {
		w.x = exec{warp: w, block: b}
		for i := range w.lane {
			w.lane[i] = uint64(i)
			for axis, at := range b.thread(index*warpSize + i) {
				w.tid[axis][i] = uint64(at)
			}
		}
		w.top = w.newFrame(b, b.run.kernel.entry, nil, nil, 0)
		w.local = make([]byte, warpSize*b.run.kernel.stack)
		if b.run.Check != CheckNothing {
			w.valid = make([]byte, len(w.local))
			w.x.check = &checker{}
		}
	} else {
		if w.x.check != nil {
			clear(w.slots)
		}
		for _, r := range w.top.fn.unset {
			clear(w.slots[r.lo:r.hi])
		}
		clear(w.top.p)
		clear(w.local)
		clear(w.valid)
		clear(w.origins)
		w.top.carry = 0
		w.top.undefined = nil
	}
	if w.x.check != nil {
		w.x.check.block = uint32(b.number) + 1
		w.x.check.begin(b.run)
	}
	w.groups = append(w.groups[:0], group{frame: w.top, mask: w.live, waiting: -1})
}

// pick chooses the group that runs next: the one that has yielded least, then the deepest call, then the one whose place comes
// first.
func (w *warp) pick() int {
	best := -1
	for i := range w.groups {
		g := &w.groups[i]
		if g.waiting >= 0 || g.parked {
			continue
		}
		if best < 0 {
			best = i
			continue
		}
		b := &w.groups[best]
		switch {
		case g.idle != b.idle:
			if !g.idle {
				best = i
			}
		case g.age != b.age:
			if g.age < b.age {
				best = i
			}
		case g.frame.depth != b.frame.depth:
			if g.frame.depth > b.frame.depth {
				best = i
			}
		case g.turn() < b.turn():
			best = i
		}
	}
	return best
}

// run runs up to budget basic blocks and reports whether any ran.
func (w *warp) run(budget int) (ran bool) {
	turn := 0
	w.idle = false
	for budget > 0 {
		i := w.pick()
		if i < 0 {
			return ran
		}
		if w.groups[i].idle { // all groups that can run wait for other threads
			for k := range w.groups {
				w.groups[k].idle = false
			}
			w.idle = true
			return true
		}
		ran = true
		g := &w.groups[i]
		x := &w.x
		x.frame, x.s, x.p = g.frame, g.frame.s, g.frame.p
		alone := len(w.groups) == 1
		for budget > 0 {
			budget--
			if !w.step(g) {
				break // the group ended, split, or waits
			}
			if alone {
				continue
			}
			if turn++; turn >= groupTurn {
				turn = 0
				g.age++
				w.resetAges()
			}
			break
		}
		w.merge()
	}
	return ran
}

// resetAges resets the counts when every group that can run has yielded.
func (w *warp) resetAges() {
	low := int32(1 << 30)
	for i := range w.groups {
		if g := &w.groups[i]; g.waiting < 0 && !g.parked {
			low = min(low, g.age)
		}
	}
	for i := range w.groups {
		w.groups[i].age = max(0, w.groups[i].age-low)
	}
}

// merge joins groups at the same place and drops empty ones. Lanes that join a parked group may be those that it waits for.
func (w *warp) merge() {
	if len(w.groups) < 2 {
		if len(w.groups) == 1 && w.groups[0].mask == 0 {
			w.groups = w.groups[:0]
		}
		return
	}
	kept := w.groups[:0]
next:
	for _, g := range w.groups {
		if g.mask == 0 {
			continue
		}
		if g.waiting < 0 {
			for i := range kept {
				if k := &kept[i]; k.waiting < 0 && k.frame == g.frame && k.pc == g.pc {
					k.mask |= g.mask
					k.age, k.polls = min(k.age, g.age), max(k.polls, g.polls)
					k.parked = false
					continue next
				}
			}
		}
		kept = append(kept, g)
	}
	w.groups = kept
}

// wake lets parked groups check again.
func (w *warp) wake() {
	for i := range w.groups {
		w.groups[i].parked = false
	}
}

// step runs one basic block of a group, and reports whether the group continues unchanged.
func (w *warp) step(g *group) bool {
	x := &w.x
	b := &g.frame.fn.blocks[g.pc]
	mask := g.mask
	if b.need != nil {
		x.at = b.at[0]
		if g.frame.undefined != nil { // which lanes it names may be undefined too
			x.follow(&b.operands[0], b.operands[0].guard.mask(x, mask))
		}
		need := b.need(x, mask)
		if need&w.live&^mask != 0 { // some of the lanes are elsewhere
			g.parked = true
			return false
		}
		if part := mask & need; part != mask && part != 0 {
			// Lanes that named another set run after these. A block with needs contains nothing else.
			rest := group{frame: g.frame, pc: g.pc, mask: mask &^ part, age: g.age, waiting: -1}
			g.mask = part
			g.pc++
			w.groups = append(w.groups, rest)
			b.ops[0](x, part)
			w.wake()
			return false
		} else if part == 0 && x.check != nil {
			x.unnamed(b, need, mask)
		}
	}
	steps := (len(b.ops) + 1) * bits.OnesCount32(mask)
	x.steps += uint64(steps)
	if x.check != nil {
		x.check.count(int64(steps))
		x.checkedOps(b, mask)
	} else {
		ops, at := b.ops, b.at
		if g.pc == 0 && g.frame.fn.later != nil {
			if w.prepared {
				ops, at = g.frame.fn.later, g.frame.fn.laterAt
			}
			w.prepared = true
		}
		for i, f := range ops {
			x.at = at[i]
			f(x, mask)
		}
	}
	x.at = b.last
	if b.need != nil && len(w.groups) > 1 {
		w.wake()
	}
	switch b.end {
	case endNext:
		g.pc++
		return true
	case endJump:
		taken := b.guard.mask(x, mask)
		switch taken {
		case mask:
			back := b.to <= g.pc
			g.pc = b.to
			return !back || !w.polled(g)
		case 0:
			g.pc++
			return true
		}
		back := group{frame: g.frame, pc: b.to, mask: taken, age: g.age, polls: g.polls, waiting: -1}
		if b.to <= g.pc {
			w.polled(&back)
		}
		g.mask = mask &^ taken
		g.pc++
		w.groups = append(w.groups, back)
		return false
	}
	return w.end(g, b, mask)
}

// fullSteps is in how many instructions of a launch CheckUsual finds everything. Each warp has its share, so that what is found depends on
// nothing but the launch.
const fullSteps = 1 << 26

// begin prepares for a block.
func (c *checker) begin(r *Run) {
	c.level, c.full = r.Check, 0
	if r.Check == CheckUsual {
		c.level = CheckFull
		warps := r.blocks * uint64((r.threads+warpSize-1)/warpSize)
		c.full = int64(max(1, fullSteps/warps))
	}
	c.order.begin()
}

// count notes instructions that a warp is about to run.
func (c *checker) count(steps int64) {
	if c.full == 0 {
		return
	}
	if c.full -= steps; c.full <= 0 {
		c.level, c.full = CheckFast, 0
	}
}

// checkedOps runs a block's instructions and follows undefined values.
func (x *exec) checkedOps(b *basic, mask uint32) {
	for i, f := range b.ops {
		x.at = b.at[i]
		if x.frame.undefined != nil {
			x.follow(&b.operands[i], b.operands[i].guard.mask(x, mask))
		}
		f(x, mask)
	}
}

// unnamed reports lanes that run an operation of a warp which names other lanes.
func (x *exec) unnamed(b *basic, named, mask uint32) {
	if active := b.operands[0].guard.mask(x, mask); active&^named != 0 {
		x.fail(Diverged, firstLane(active&^named), "the lanes that this operation is for, %#x, are without this one, which is lane %d", named,
			firstLane(active&^named))
	}
}

// polled notes that a group jumped back, and says whether it gives way: it may be waiting for a value that another thread writes.
func (w *warp) polled(g *group) bool {
	if !w.x.polls {
		g.polls = 0
		return false
	}
	w.x.polls = false
	if g.polls++; g.polls < pollTurn {
		return false
	}
	g.polls, g.idle = 0, true
	return true
}

// end handles the rarer ways in which a basic block ends.
func (w *warp) end(g *group, b *basic, mask uint32) bool {
	x := &w.x
	taken := b.guard.mask(x, mask)
	if taken == 0 {
		g.pc++
		return true
	}
	if g.frame.undefined != nil {
		x.follow(&b.closing, taken)
	}
	frame, pc := g.frame, g.pc
	if rest := mask &^ taken; rest != 0 {
		g.mask, g.pc = rest, pc+1
		w.groups = append(w.groups, group{frame: frame, pc: pc, mask: taken, age: g.age, waiting: -1})
		g = &w.groups[len(w.groups)-1]
	}
	switch b.end {
	case endTable:
		w.jumpTable(g, b, taken)
	case endCall:
		w.enter(g, b, taken)
	case endReturn:
		if frame.parent == nil {
			w.leave(g)
			break
		}
		w.leaveCall(g, taken)
	case endExit:
		w.leave(g)
	case endTrap:
		x.fail(Trapped, bits.TrailingZeros32(taken), "the kernel stopped itself (trap)")
	case endBarrier:
		if b.bar.cluster {
			x.block.meet(w, g, b.bar, taken)
			break
		}
		x.block.arrive(w, g, b.bar, taken)
	}
	return false
}

// leave ends lanes.
func (w *warp) leave(g *group) {
	w.live &^= g.mask
	w.x.block.alive -= bits.OnesCount32(g.mask)
	ended := g.mask
	g.mask = 0
	w.wake()
	w.x.block.settle()
	w.x.block.cluster.leave(w, ended)
}

// jumpTable sends each lane to its entry of a table.
func (w *warp) jumpTable(g *group, b *basic, mask uint32) {
	frame, age := g.frame, g.age
	index := w.x.s[b.index]
	first := true
	for mask != 0 {
		lane := bits.TrailingZeros32(mask)
		k := uint32(index[lane])
		if int(k) >= len(b.table) {
			w.x.fail(BadCall, lane, "the branch table has %d entries, but the index is %d", len(b.table), k)
		}
		same := uint32(0)
		for m := mask; m != 0; m &= m - 1 {
			if i := bits.TrailingZeros32(m); uint32(index[i]) == k {
				same |= 1 << i
			}
		}
		mask &^= same
		if first {
			g.mask, g.pc = same, b.table[k]
			first = false
			continue
		}
		w.groups = append(w.groups, group{frame: frame, pc: b.table[k], mask: same, age: age, waiting: -1})
	}
}

// arrive makes a group wait at a barrier.
func (b *block) arrive(w *warp, g *group, o *barrierOp, mask uint32) {
	lane := bits.TrailingZeros32(mask)
	x := &w.x
	name := x.s[o.name][lane]
	if name >= barriers {
		x.fail(Stuck, lane, "there is no barrier %d: a block has %d", name, barriers)
	}
	bar := &b.bars[name]
	if o.count >= 0 {
		bar.want = int(uint32(x.s[o.count][lane]))
		bar.counts = true
	}
	n := bits.OnesCount32(mask)
	bar.here += n
	if o.reduce != ptx.ModOther {
		p := mask
		if o.source >= 0 {
			p = x.p[o.source] & mask
			if o.negated {
				p = mask &^ x.p[o.source]
			}
		}
		bar.ones += bits.OnesCount32(p)
	}
	if x.check != nil {
		if bar.times == nil {
			bar.times = make([]uint32, len(b.warps))
		}
		bar.times[w.index] = b.tick()
	}
	if o.arrive {
		bar.arrive = true
		g.pc++
	} else {
		g.waiting = int8(name)
	}
	b.settleOne(int(name))
}

// settle opens barriers that wait only for threads that have ended.
func (b *block) settle() {
	for i := range b.bars {
		if b.bars[i].here > 0 && !b.bars[i].counts {
			b.settleOne(i)
		}
	}
}

// settleOne opens a barrier if all its threads have arrived.
func (b *block) settleOne(name int) {
	bar := &b.bars[name]
	want := b.alive
	if bar.counts {
		want = bar.want
	}
	if bar.here < want {
		return
	}
	if b.history != nil {
		if b.pending != nil {
			panic(b.pending)
		}
		b.together(bar, name)
		b.opened(bar, name)
	}
	for _, w := range b.warps {
		for i := range w.groups {
			g := &w.groups[i]
			if int(g.waiting) != name || g.mask == 0 {
				continue
			}
			if o := g.frame.fn.blocks[g.pc].bar; o.reduce != ptx.ModOther {
				o.result(g, bar)
			}
			g.waiting = -1
			g.pc++
		}
	}
	*bar = barrier{}
}

// together reports threads that a barrier joins although they wait at different places: lanes of a warp always, and warps where the
// barrier is for the whole block.
func (b *block) together(bar *barrier, name int) {
	var first *group
	var firstWarp *warp
	for _, w := range b.warps {
		if bar.counts {
			first = nil
		}
		for i := range w.groups {
			g := &w.groups[i]
			if int(g.waiting) != name || g.mask == 0 {
				continue
			}
			if first == nil {
				first, firstWarp = g, w
				continue
			}
			if g.pc == first.pc && g.frame.fn == first.frame.fn {
				continue
			}
			x := &w.x
			x.frame, x.at = g.frame, g.frame.fn.blocks[g.pc].last
			f := x.fault(Diverged, firstLane(g.mask), "this thread waits at a barrier while thread %s of its block waits at another place",
				triple(b.thread(firstWarp.index*warpSize+firstLane(first.mask))))
			f.Other = &Access{Block: f.Block, Thread: b.thread(firstWarp.index*warpSize + firstLane(first.mask))}
			f.Other.Line, f.Other.Instruction, f.Other.Source = b.run.kernel.program.locate(first.frame.fn, first.frame.fn.blocks[first.pc].last)
			panic(f)
		}
	}
	if first != nil && !bar.counts {
		b.meetAgain(first, firstWarp, name)
	}
}

// meetAgain reports a barrier that threads come to again, without others that have been there with them and have ended since, and one that lanes
// come to without others of their warp that have been at a barrier before: compilers unroll loops, so that each pass has barriers of its own.
// Threads that end before they meet any are left out: programs rely on that.
func (b *block) meetAgain(first *group, firstWarp *warp, name int) {
	site := first.frame.fn.blocks[first.pc].bar
	before := b.met[site]
	if before == nil {
		if b.met == nil {
			b.met = map[*barrierOp][]uint32{}
		}
		before = make([]uint32, len(b.warps))
		b.met[site] = before
	}
	if b.came == nil {
		b.came = make([]uint32, len(b.warps))
	}
	for k, w := range b.warps {
		here := uint32(0)
		for i := range w.groups {
			if int(w.groups[i].waiting) == name {
				here |= w.groups[i].mask
			}
		}
		missing, does := before[k]&^here, "of its block does not come to again: it has ended"
		if missing == 0 && here != 0 {
			missing, does = b.came[k]&^here, "does not come to: it has ended, other than the rest of its warp"
		}
		if missing != 0 {
			x := &firstWarp.x
			x.frame, x.at = first.frame, first.frame.fn.blocks[first.pc].last
			x.fail(Diverged, firstLane(first.mask), "this thread waits at a barrier that thread %s %s", triple(b.thread(k*warpSize+firstLane(missing))), does)
		}
		before[k] = here
		b.came[k] |= here
	}
}

// result gives the waiting lanes what the barrier counted.
func (o *barrierOp) result(g *group, bar *barrier) {
	if o.reduce == ptx.ModPopc {
		for m := g.mask; m != 0; m &= m - 1 {
			g.frame.s[o.target][bits.TrailingZeros32(m)&31] = uint64(bar.ones)
		}
		return
	}
	yes := bar.ones > 0
	if o.reduce == ptx.ModAnd {
		yes = bar.ones == bar.here
	}
	g.frame.p[o.target] &^= g.mask
	if yes {
		g.frame.p[o.target] |= g.mask
	}
}

// turn runs each warp for a while, and reports whether the block has ended and whether any warp ran.
func (b *block) turn() (ended, ran bool) {
	b.polling = true
	for _, w := range b.warps {
		if len(w.groups) > 0 && w.run(warpTurn) {
			ran = true
			b.polling = b.polling && w.idle
		}
	}
	return b.alive == 0, ran
}

// stuck reports threads that wait for others that will never arrive.
func (b *block) stuck() {
	for _, w := range b.warps {
		for i := range w.groups {
			g := &w.groups[i]
			x := &w.x
			x.frame = g.frame
			bb := &g.frame.fn.blocks[g.pc]
			lane := bits.TrailingZeros32(g.mask)
			if g.waiting == clusterPlace {
				x.at = bb.last
				x.fail(Stuck, lane, "the threads at the barrier of the cluster wait forever: only %d of %d arrived", b.cluster.arrived, b.cluster.alive())
			}
			if g.waiting >= 0 {
				bar := &b.bars[g.waiting]
				want := b.alive
				if bar.counts {
					want = bar.want
				}
				x.at = bb.last
				x.fail(Stuck, lane, "the threads at barrier %d wait forever: only %d of %d arrived", g.waiting, bar.here, want)
			}
			x.at = bb.at[0]
			x.fail(Stuck, lane, "the lanes at this operation wait forever: it names lanes that never arrive")
		}
	}
}

// fence orders memory among the threads of the process.
func fence(word *atomic.Uint32) { word.Add(1) }
