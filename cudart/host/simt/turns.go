// The order in which lanes of a warp that are at different places take turns: paths that branch off come before the place where they
// join, and a loop before what follows it. A compiler lays code out in another order, in which lanes would meet again only by chance.

package simt

import (
	"cmp"
	"slices"
)

// orderTurns gives each basic block of a function its turn. The order is a weak topological one (Bourdoncle 1993): a jump goes to a
// later block, or back to the head of a loop, whose blocks follow each other without others between them.
func (fn *function) orderTurns() {
	o := turnOrder{fn: fn, number: make([]int32, len(fn.blocks)), next: int32(len(fn.blocks)) - 1}
	for i := range fn.blocks {
		fn.blocks[i].turn = int32(len(fn.blocks)) // no jump leads to what keeps this
	}
	o.visit(0)
}

// turnOrder numbers blocks from the last to the first.
type turnOrder struct {
	fn      *function
	number  []int32 // by block: when the search came to it; 0: not yet
	visited int32
	open    []int32 // blocks whose loop may not be complete
	next    int32
}

const turnDone = int32(1<<31 - 1)

// visit orders what can be reached from a block, and then the block itself unless it belongs to a loop that began before it. It returns
// the number of the first block that can be reached again.
func (o *turnOrder) visit(block int32) (head int32) {
	o.open = append(o.open, block)
	o.visited++
	own := o.visited
	o.number[block], head = own, own
	for _, to := range o.fn.successors(block) {
		first := o.number[to]
		if first == 0 {
			first = o.visit(to)
		}
		head = min(head, first)
	}
	if head != own {
		return head
	}
	o.number[block] = turnDone
	for {
		last := o.open[len(o.open)-1]
		o.open = o.open[:len(o.open)-1]
		if last == block {
			break
		}
		o.number[last] = 0 // the loop is ordered again without its head
	}
	for _, to := range o.fn.successors(block) {
		if o.number[to] == 0 { // only in a loop
			o.visit(to)
		}
	}
	o.fn.blocks[block].turn = o.next
	o.next--
	return head
}

// successors are the blocks that may follow a block in its function, later ones first: of two paths, the one that the text has first then
// comes first.
func (fn *function) successors(block int32) []int32 {
	b := &fn.blocks[block]
	following := block+1 < int32(len(fn.blocks)) && (b.guard.register >= 0 || b.end == endNext || b.end == endCall || b.end == endBarrier)
	switch b.end {
	case endJump:
		switch {
		case !following:
			return []int32{b.to}
		case b.to > block:
			return []int32{b.to, block + 1}
		}
		return []int32{block + 1, b.to}
	case endTable:
		all := make([]int32, 0, len(b.table)+1)
		all = append(all, b.table...)
		if following {
			all = append(all, block+1)
		}
		slices.SortFunc(all, func(x, y int32) int { return cmp.Compare(y, x) })
		return all
	}
	if following {
		return []int32{block + 1}
	}
	return nil
}
