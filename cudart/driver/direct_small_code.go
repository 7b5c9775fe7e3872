// The kernel of small direct all-reduces, as PTX. Each rank writes its elements to all of them, and combines what has come.

package driver

import (
	"fmt"

	"github.com/dagrun/dagrun/dag"
)

const (
	smallBlocks = 32 // of the kernel, at most
	smallUnit   = 8  // bytes of elements that a thread sends at once
	smallSlot   = 16 // bytes of a slot: two halves of a unit, each followed by a word that is 1 once the half has come

	// directSmall is how many bytes a rank sends to others at most in a small all-reduce.
	directSmall = 1 << 20
)

// smallPasses is how many units a thread combines at most.
func smallPasses(ranks int) int {
	const each = smallBlocks * directThreads * smallUnit
	return (directSmall/(ranks-1) + each - 1) / each
}

// smallRow is how many bytes of slots a block has for one rank in one round.
func smallRow(ranks int) int { return smallPasses(ranks) * directThreads * smallSlot }

// smallSlots is how many bytes of slots each rank has: for each block those of two rounds, in each of them those of every rank.
func smallSlots(ranks int) int { return 2 * smallBlocks * ranks * smallRow(ranks) }

// smallGrid is how many blocks combine so many bytes.
func smallGrid(bytes int64) uintptr {
	const each = smallUnit * directThreads
	return uintptr(min(smallBlocks, (bytes+each-1)/each))
}

// smallCode writes PTX for one rank of several. Block b of a rank goes with block b of the others. Its threads write the rank's elements into the slots
// that the other ranks keep for it, wait until those of the others have come to its own, empty these, and combine the elements in the order of the ranks. No
// rank waits until others have read: rounds take turns with two sets of slots, and a rank has come to a round only after the one before it, so that once
// something has come from it, its slots of the round before are empty. The arguments are where this rank reads and writes, how many elements there are, its
// counts of rounds, one for each block, a word that becomes 1 when communication ends early, and the slots of each rank.
func smallCode(ranks, own int, t dag.DType, op dag.Reduction) string {
	return newDirectWriter(ranks, own, t, op).small()
}

func (w *directWriter) small() string {
	w.open([]string{"count", "rounds", "stop"}, "slots")
	w.line(".reg .pred %%p, %%q")
	w.line(".reg .b32 %%thread, %%threads, %%block, %%blocks, %%round, %%polls, %%t, %%one, %%low, %%high, %%e<%d>", 2*w.ranks)
	w.line(".reg .b64 %%from, %%to, %%count, %%rounds, %%stop, %%slots, %%units, %%i, %%first, %%step, %%at, %%place, %%firstPlace, %%k, %%x, %%y, %%d<%d>, %%there<%d>", w.ranks, w.ranks)
	w.smallBegin()
	w.smallSend()
	w.smallCombine()
	w.line("bar.sync 0")
	w.line("setp.eq.u32 %%p, %%thread, 0")
	w.line("@%%p st.volatile.global.u32 [%%rounds], %%round")
	w.line("ret")
	w.WriteString("}\n")
	return w.String()
}

// smallBegin finds the block's round, its units, and its places among the slots.
func (w *directWriter) smallBegin() {
	w.line("mov.u32 %%thread, %%tid.x")
	w.line("mov.u32 %%threads, %%ntid.x")
	w.line("mov.u32 %%block, %%ctaid.x")
	w.line("mov.u32 %%blocks, %%nctaid.x")
	for _, name := range []string{"from", "to", "count", "rounds", "stop"} {
		w.line("ld.param.u64 %%%s, [%s]", name, name)
	}
	for r := range w.ranks {
		w.line("ld.param.u64 %%there%d, [slots%d]", r, r)
	}
	w.line("mad.wide.u32 %%rounds, %%block, 4, %%rounds")
	w.line("ld.volatile.global.u32 %%round, [%%rounds]")
	w.line("add.u32 %%round, %%round, 1")
	w.line("mov.u32 %%one, 1")
	w.line("mov.u64 %%units, %%count")
	if w.size == 4 { // two to a unit
		w.line("add.u64 %%units, %%units, 1")
		w.line("shr.u64 %%units, %%units, 1")
	}
	w.line("mul.wide.u32 %%first, %%block, %%threads")
	w.line("cvt.u64.u32 %%x, %%thread")
	w.line("add.u64 %%first, %%first, %%x")
	w.line("mul.wide.u32 %%step, %%blocks, %%threads")
	w.line("and.b32 %%t, %%round, 1")
	w.line("mad.lo.u32 %%t, %%t, %d, %%block", smallBlocks)
	w.line("mul.wide.u32 %%firstPlace, %%t, %d", w.ranks*smallRow(w.ranks))
	w.line("mad.wide.u32 %%firstPlace, %%thread, %d, %%firstPlace", smallSlot)
}

// eachUnit writes a loop over the units of a thread: %i is the unit, and %place where its slots for rank 0 are.
func (w *directWriter) eachUnit(do func()) {
	again, done := w.label(), w.label()
	w.line("mov.u64 %%i, %%first")
	w.line("mov.u64 %%place, %%firstPlace")
	w.WriteString(again + ":\n")
	w.line("setp.ge.u64 %%p, %%i, %%units")
	w.line("@%%p bra %s", done)
	do()
	w.line("add.u64 %%i, %%i, %%step")
	w.line("mad.wide.u32 %%place, %%threads, %d, %%place", smallSlot)
	w.line("bra %s", again)
	w.WriteString(done + ":\n")
}

// unit names the registers with the elements of a unit of a rank.
func (w *directWriter) unit(rank int) []string {
	if w.size == 8 {
		return []string{fmt.Sprintf("%%d%d", rank)}
	}
	return []string{fmt.Sprintf("%%e%d", 2*rank), fmt.Sprintf("%%e%d", 2*rank+1)}
}

// smallOwn reads this rank's elements of a unit. The last unit may have one element instead of two, which %q says.
func (w *directWriter) smallOwn() {
	own := w.unit(w.own)
	w.line("shl.b64 %%at, %%i, 3")
	w.line("add.u64 %%at, %%at, %%from")
	if w.size == 8 {
		w.line("ld.global.b64 %s, [%%at]", own[0])
		return
	}
	w.line("shl.b64 %%x, %%i, 1")
	w.line("add.u64 %%x, %%x, 1")
	w.line("setp.lt.u64 %%q, %%x, %%count")
	w.line("mov.b32 %s, 0", own[1])
	w.line("ld.global.b32 %s, [%%at]", own[0])
	w.line("@%%q ld.global.b32 %s, [%%at+4]", own[1])
}

func (w *directWriter) smallSend() {
	w.eachUnit(func() {
		w.smallOwn()
		own := w.unit(w.own)
		if w.size == 8 {
			w.line("mov.b64 {%%low, %%high}, %s", own[0])
			own = []string{"%low", "%high"}
		}
		w.line("mov.b64 %%x, {%s, %%one}", own[0])
		w.line("mov.b64 %%y, {%s, %%one}", own[1])
		for k := 1; k < w.ranks; k++ {
			r := (w.own + k) % w.ranks
			w.line("add.u64 %%at, %%there%d, %%place", r)
			w.line("st.volatile.global.v2.b64 [%%at+%d], {%%x, %%y}", w.own*smallRow(w.ranks))
		}
	})
}

// smallCombine waits for the units of the other ranks, and combines them.
func (w *directWriter) smallCombine() {
	over := w.label()
	w.eachUnit(func() {
		again, come := w.label(), w.label()
		w.smallOwn()
		w.line("mov.u32 %%polls, 0")
		w.line("add.u64 %%at, %%there%d, %%place", w.own)
		w.WriteString(again + ":\n")
		w.line("mov.u32 %%t, 1")
		for _, r := range w.others() {
			of := w.unit(r)
			if w.size == 8 {
				of = []string{"%low", "%high"}
			}
			w.line("ld.volatile.global.v2.b64 {%%x, %%y}, [%%at+%d]", r*smallRow(w.ranks))
			for k, word := range []string{"%x", "%y"} {
				w.line("mov.b64 {%s, %%one}, %s", of[k], word)
				w.line("and.b32 %%t, %%t, %%one")
			}
			if w.size == 8 {
				w.line("mov.b64 %s, {%%low, %%high}", w.unit(r)[0])
			}
		}
		w.line("setp.ne.u32 %%p, %%t, 0")
		w.line("@%%p bra %s", come)
		w.waitOn("%p", again)
		w.line("bra %s", over)
		w.WriteString(come + ":\n")
		w.line("mov.u64 %%x, 0")
		for _, r := range w.others() {
			w.line("st.volatile.global.v2.b64 [%%at+%d], {%%x, %%x}", r*smallRow(w.ranks))
		}
		w.combine(w.unit)
		w.line("shl.b64 %%at, %%i, 3")
		w.line("add.u64 %%at, %%at, %%to")
		result := w.unit(0)
		w.line("st.global.b%d [%%at], %s", 8*w.size, result[0])
		if w.size == 4 {
			w.line("@%%q st.global.b32 [%%at+4], %s", result[1])
		}
	})
	w.WriteString(over + ":\n")
}

// others are the ranks but this one.
func (w *directWriter) others() []int {
	var list []int
	for r := range w.ranks {
		if r != w.own {
			list = append(list, r)
		}
	}
	return list
}
