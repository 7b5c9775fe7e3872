// What a warp need not do again for each of its blocks: instructions at the start of a kernel whose results are the same for all blocks of
// a launch, and clearing registers that are written before they are read.

package simt

import (
	"slices"

	"github.com/dagrun/dagrun/internal/ptx"
)

// repeatable are the instructions whose results depend on their sources alone.
var repeatable = []ptx.Opcode{ptx.OpMov, ptx.OpCvta, ptx.OpCvt, ptx.OpAdd, ptx.OpSub, ptx.OpMul, ptx.OpMad, ptx.OpFma, ptx.OpDiv, ptx.OpRem, ptx.OpShl,
	ptx.OpShr, ptx.OpAnd, ptx.OpOr, ptx.OpXor, ptx.OpNot, ptx.OpNeg, ptx.OpAbs, ptx.OpMin, ptx.OpMax, ptx.OpBfe}

// once finds what is done once. Where functions are called, registers are left and set in other ways, and everything is done again.
func (c *compiler) once() {
	fn := c.fn
	fn.unset = []slotRange{{0, fn.slots}}
	for i := range fn.blocks {
		if fn.blocks[i].end == endCall {
			return
		}
	}
	fn.unset = fn.readFirst()
	first := &fn.blocks[0]
	if first.need != nil {
		return
	}
	same := c.sameForAllBlocks(first)
	if !slices.Contains(same, true) {
		return
	}
	fn.later, fn.laterAt = []op{}, []int32{}
	for i := range first.ops {
		if !same[i] {
			fn.later, fn.laterAt = append(fn.later, first.ops[i]), append(fn.laterAt, first.at[i])
		}
	}
}

// sameForAllBlocks says which instructions of the first basic block compute the same for all blocks of a launch.
func (c *compiler) sameForAllBlocks(first *basic) []bool {
	fn := c.fn
	sets := make([]int, fn.slots) // how many instructions write a slot
	for i := range fn.blocks {
		b := &fn.blocks[i]
		for k := range b.operands {
			for _, slot := range b.operands[k].sets {
				sets[slot]++
			}
		}
		for _, slot := range b.closing.sets {
			sets[slot]++
		}
	}
	constant := make([]bool, fn.slots)
	holds := func(slot int32) bool {
		if int(slot) < fn.slots {
			return constant[slot]
		}
		e := &fn.extras[int(slot)-fn.slots]
		return e.constant != nil || !e.local && (e.special.special == ptx.Ntid || e.special.special == ptx.Nctaid)
	}
	same := make([]bool, len(first.ops))
	for i := range first.ops {
		o, in := &first.operands[i], &c.f.Code[first.at[i]]
		if o.guard.register >= 0 || len(o.uses) == 0 || len(o.sets) != 1 || sets[o.sets[0]] != 1 || !c.repeats(in) {
			continue
		}
		if same[i] = !slices.ContainsFunc(o.uses, func(slot int32) bool { return !holds(slot) }); same[i] {
			constant[o.sets[0]] = true
		}
	}
	return same
}

// repeats says whether an instruction gives the same where its sources are the same.
func (c *compiler) repeats(in *ptx.Instruction) bool {
	f := in.Form
	if f.Op == ptx.OpLd {
		return f.Space() == ptx.Param && in.Operands[1].Kind == ptx.Address && in.Operands[1].Extra >= 0
	}
	return slices.Contains(repeatable, f.Op) && !f.Has(ptx.ModCc)
}

// readFirst are the slots that may be read before they are written.
func (fn *function) readFirst() (ranges []slotRange) {
	n := len(fn.blocks)
	reads, sets := make([]slotSet, n), make([]slotSet, n)
	for i := range fn.blocks {
		b := &fn.blocks[i]
		reads[i], sets[i] = newSlotSet(fn.slots), newSlotSet(fn.slots)
		note := func(o *operands, all bool) {
			for _, slot := range o.uses {
				if int(slot) < fn.slots && !sets[i].has(slot) {
					reads[i].add(slot)
				}
			}
			for _, slot := range o.sets {
				switch {
				case all:
					sets[i].add(slot)
				case !sets[i].has(slot): // lanes that the guard leaves out keep what they have
					reads[i].add(slot)
				}
			}
		}
		for k := range b.operands {
			note(&b.operands[k], b.operands[k].guard.register < 0)
		}
		note(&b.closing, false)
	}
	for changed := true; changed; {
		changed = false
		for i := n - 1; i >= 0; i-- {
			for _, next := range fn.successors(int32(i)) {
				changed = reads[i].addWithout(reads[next], sets[i]) || changed
			}
		}
	}
	for slot := range fn.slots {
		if !reads[0].has(int32(slot)) {
			continue
		}
		if last := len(ranges) - 1; last >= 0 && ranges[last].hi == slot {
			ranges[last].hi++
			continue
		}
		ranges = append(ranges, slotRange{slot, slot + 1})
	}
	return ranges
}

// slotSet is a set of slots.
type slotSet []uint64

func newSlotSet(n int) slotSet        { return make(slotSet, (n+63)/64) }
func (s slotSet) add(slot int32)      { s[slot/64] |= 1 << (slot % 64) }
func (s slotSet) has(slot int32) bool { return s[slot/64]>>(slot%64)&1 != 0 }

// addWithout adds the slots of more that are not in without, and reports whether any is new.
func (s slotSet) addWithout(more, without slotSet) (changed bool) {
	for i := range s {
		v := s[i] | more[i]&^without[i]
		changed = changed || v != s[i]
		s[i] = v
	}
	return changed
}
