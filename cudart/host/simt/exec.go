// Execution: warps are groups of lanes, blocks are warps with shared memory and barriers.

package simt

import (
	"math/bits"
	"sync/atomic"

	"github.com/dagrun/dagrun/kernels/ptx"
)

const (
	warpSize  = 32
	fullMask  = ^uint32(0)
	barriers  = 16
	groupTurn = 1 << 10 // basic blocks that a group runs before other groups of its warp get a turn
	warpTurn  = 1 << 10 // the same for a warp among those of its block
	pollTurn  = 8       // passes of a polling loop before all others get a turn
)

// lanes is one register: a value for each lane, zero-extended to 64 bits.
type lanes [warpSize]uint64

// op is an instruction. It works on the lanes of the mask, which is never empty.
type op func(x *exec, m uint32)

// exec is the state that an instruction works on.
type exec struct {
	s         []*lanes // registers, constants and special registers, by slot
	p         []uint32 // predicates
	frame     *frame
	warp      *warp
	block     *block
	at        int32        // the instruction that runs
	steps     uint64       // instructions that its lanes have run since the block last gave way
	check     *checker     // nil: bounds and alignment are all that is checked
	sameValue bool         // the store that runs leaves memory as it is
	polls     bool         // since the last jump back it has read what other threads write
	argument  int          // that a message has named last
	near      [nearby]span // where the last global accesses were, by instruction
	spare     lanes        // what a loop over all lanes computes where only some of them run
}

// ending tells how a basic block ends.
type ending uint8

const (
	endNext ending = iota // continues with the next block
	endJump
	endTable
	endCall
	endReturn
	endExit
	endBarrier
	endTrap
)

// basic is a basic block: instructions for all its lanes, and how it ends.
type basic struct {
	ops      []op
	at       []int32                        // by op: its instruction
	operands []operands                     // by op
	need     func(x *exec, m uint32) uint32 // the lanes that must have come before it runs; nil: none
	end      ending
	last     int32 // the instruction that ends it
	guard    guard
	to       int32   // endJump
	turn     int32   // its place in the order in which lanes at different places run
	table    []int32 // endTable
	index    int     // endTable: the slot
	call     *call
	bar      *barrierOp
	closing  operands // of the instruction that ends it
}

// guard is the predicate of an instruction; register -1 stands for none.
type guard struct {
	register int32
	negated  bool
}

func (g guard) mask(x *exec, m uint32) uint32 {
	if g.register < 0 {
		return m
	}
	if g.negated {
		return m &^ x.p[g.register]
	}
	return m & x.p[g.register]
}

// function is a compiled function.
type function struct {
	f       *ptx.Function
	id      ptx.FunctionID
	blocks  []basic
	slots   int // registers with memory of their own: slots 0 to slots-1
	preds   int
	extras  []extra // the slots after them
	frame   int64   // bytes of a lane's local memory
	number  uint32  // among the kernel's functions
	results []place // where they are left
	params  []place

	// Of an entry: what its first block runs once a warp has run it in the same launch, nil where that is everything; and the registers
	// that may be read before they are written.
	later   []op
	laterAt []int32
	unset   []slotRange
}

// extra is a slot that is not a register: a constant, a special register, or an address in a lane's local memory.
type extra struct {
	constant *lanes
	special  specialSlot
	local    bool
	generic  bool
	offset   int64
}

type specialSlot struct {
	special ptx.Special
	part    int
}

// place is where a parameter or result of a function is: a register, or bytes of its local memory.
type place struct {
	slot      int // -1: in memory
	offset    int64
	size      int64
	predicate int // its number plus one
	more      int // further slots, of a register that is a vector
}

// frame is one call of a function. Lanes that made the same chain of calls share it.
type frame struct {
	fn        *function
	parent    *frame
	back      int32 // the block of the parent that follows the call
	call      *call
	depth     int32
	local     int64 // where its local memory starts
	carry     uint32
	s         []*lanes
	p         []uint32
	children  map[*call]*frame
	undefined map[int]*undefinedLanes // registers that hold what nobody wrote, by slot
}

// group is the lanes at the start of the same basic block of the same frame.
type group struct {
	frame   *frame
	pc      int32
	mask    uint32
	polls   int32 // passes of a polling loop
	idle    bool  // it polls memory that other threads write, so it runs last
	age     int32 // how often it has yielded
	waiting int8  // the barrier that it waits at, or -1
	parked  bool  // it waits for the lanes that it needs
}

// turn is the place of a group among those of its function.
func (g *group) turn() int32 { return g.frame.fn.blocks[g.pc].turn }

// warp is 32 lanes of a block.
type warp struct {
	index int
	live  uint32
	// Lanes that have arrived at the barrier of the cluster, since it last opened and before.
	arrived, met uint32
	groups       []group
	idle         bool // all its groups poll memory that other threads write
	top          *frame
	local        []byte // 32 stacks, one after the other
	valid        []byte // by byte of local: not 0 once it was written; nil where nothing is checked
	lane         lanes
	tid          [3]lanes
	x            exec
	slots        []lanes // of the top frame
	prepared     bool    // its registers hold what the first basic block computes once for all blocks of the launch
}

// newFrame makes the frame of a call.
func (w *warp) newFrame(b *block, fn *function, parent *frame, c *call, back int32) *frame {
	f := &frame{fn: fn, parent: parent, back: back, call: c}
	if parent != nil {
		f.depth = parent.depth + 1
		f.local = parent.local + parent.fn.frame
	}
	registers := make([]lanes, fn.slots)
	f.p = make([]uint32, fn.preds)
	f.s = make([]*lanes, 0, fn.slots+len(fn.extras))
	for i := range fn.slots {
		f.s = append(f.s, &registers[i])
	}
	for _, e := range fn.extras {
		switch {
		case e.constant != nil:
			f.s = append(f.s, e.constant)
		case e.local:
			address := uint64(f.local + e.offset)
			if e.generic {
				address |= inLocal
			}
			r := &lanes{}
			for k := range r {
				r[k] = address
			}
			f.s = append(f.s, r)
		default:
			f.s = append(f.s, b.special(w, e.special))
		}
	}
	if parent == nil {
		w.slots = registers[:fn.slots]
	}
	return f
}

// begin prepares a warp for a block.
func (w *warp) begin(b *block, index, threads int) {
	w.index = index
	w.arrived, w.met = 0, 0
	w.live = fullMask
	if left := threads - index*warpSize; left < warpSize {
		w.live = 1<<left - 1
	}
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
			w.x.check = &checker{level: b.run.Check}
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
		w.top.carry = 0
		w.top.undefined = nil
	}
	if w.x.check != nil {
		w.x.check.block = uint32(b.number) + 1
		w.x.check.order.begin()
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
			if g.frame.undefined != nil {
				x.follow(&b.operands[0], part)
			}
			b.ops[0](x, part)
			w.wake()
			return false
		}
	}
	x.steps += uint64(len(b.ops)+1) * uint64(bits.OnesCount32(mask))
	if x.check != nil {
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

// checkedOps runs a block's instructions and follows undefined values.
func (x *exec) checkedOps(b *basic, mask uint32) {
	for i, f := range b.ops {
		x.at = b.at[i]
		if x.frame.undefined != nil {
			x.follow(&b.operands[i], mask)
		}
		f(x, mask)
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

// block is one block that runs.
type block struct {
	run     *Run
	cluster *cluster
	rank    int // in the cluster
	index   [3]uint32
	threads int
	alive   int
	warps   []*warp
	shared  []byte
	polling bool // all its warps poll memory that other threads write, so other blocks run first
	bars    [barriers]barrier
	ctaid   [3]lanes
	// The index of its cluster.
	clusterid [3]lanes
	other     map[specialSlot]*lanes

	// What is checked needs the rest.
	number   uint64 // in the grid
	grace    int    // turns that are left once a later block has failed
	now      uint32 // the count of synchronisations; it goes on from block to block, so that what earlier blocks did is past
	base     uint32 // the time before which all accesses of the block are past
	pairs    [][]uint32
	acquired []seen
	board    board
	history  *blockHistory
	pending  *Fault // to be reported at the next barrier or at the end
}

// barrier is one of a block's barriers.
type barrier struct {
	want   int // number of threads; 0: all that are alive
	here   int
	ones   int // threads whose predicate was true
	counts bool
	arrive bool     // some came without waiting
	times  []uint32 // by warp: when it came, where that is checked
}

// barrierOp is a bar or barrier instruction.
type barrierOp struct {
	name    int // slot
	count   int // slot, or -1
	arrive  bool
	cluster bool    // the barrier of the cluster
	reduce  ptx.Mod // ModPopc, ModAnd, ModOr; ModOther: none
	target  int     // slot or predicate of the result
	source  int     // predicate, -1: constant
	negated bool
}

// thread is the index of a thread in its block.
func (b *block) thread(i int) [3]uint32 { return b.run.threadIndex(i) }

func (r *Run) threadIndex(i int) [3]uint32 {
	n := r.block
	return [3]uint32{uint32(i) % n[0], uint32(i) / n[0] % n[1], uint32(i) / n[0] / n[1]}
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
}

// firstLane is the lowest lane of a mask.
func firstLane(m uint32) int { return bits.TrailingZeros32(m) & 31 }

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
