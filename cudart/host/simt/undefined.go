// Values that were read from memory which nobody wrote: followed through copies, and reported where something is computed from them.
// Compilers load what they then do not use, so that a load alone is no fault.

package simt

import (
	"math/bits"
)

// undefined notes that a lane's load reads what nobody wrote.
func (x *exec) undefined(lane int, window, address uint64, size int) {
	if x.check.undefined == 0 {
		x.check.of = origin{x.at, window, address, size}
	}
	x.check.undefined |= 1 << lane
}

// loaded marks the registers of a load.
func (x *exec) loaded(targets []int, m uint32) {
	f := x.frame
	bad := x.check.undefined
	if bad == 0 && f.undefined == nil {
		return
	}
	x.check.undefined = 0
	if f.undefined == nil {
		f.undefined = map[int]*undefinedLanes{}
	}
	for _, d := range targets {
		u := f.undefined[d]
		switch {
		case u == nil && bad != 0:
			f.undefined[d] = &undefinedLanes{bad, x.check.of}
		case u != nil:
			if u.lanes = u.lanes&^m | bad; bad != 0 {
				u.origin = x.check.of
			}
		}
	}
}

const (
	computes copying = iota // it is used: a fault
	copies                  // the result is undefined too
	selects                 // the result is, where it is chosen
	keeps                   // a store: bytes of local memory stay unwritten, elsewhere it is a fault
)

// follow looks after undefined values before an instruction runs.
func (x *exec) follow(o *operands, m uint32) {
	f := x.frame
	if m = o.guard.mask(x, m); m == 0 {
		return
	}
	var result undefinedLanes
	for i, slot := range o.uses {
		u := f.undefined[int(slot)]
		if u == nil || u.lanes&m == 0 {
			continue
		}
		bad := u.lanes & m
		switch o.copies {
		case selects:
			chosen := o.choose(x)
			if i == 1 {
				chosen = ^chosen
			}
			if bad &= chosen; bad == 0 {
				continue
			}
		case keeps:
			if i == 0 { // the address
				x.usesUndefined(bad, u)
			}
		case computes:
			x.usesUndefined(bad, u)
		}
		result.lanes |= bad
		result.origin = u.origin
	}
	if o.copies == keeps {
		x.check.undefined = result.lanes
		return
	}
	for _, slot := range o.sets {
		u := f.undefined[int(slot)]
		switch {
		case u != nil:
			if u.lanes = u.lanes&^m | result.lanes; result.lanes != 0 {
				u.origin = result.origin
			}
			if u.lanes == 0 {
				delete(f.undefined, int(slot))
			}
		case result.lanes != 0:
			f.undefined[int(slot)] = &undefinedLanes{result.lanes, result.origin}
		}
	}
	if len(f.undefined) == 0 {
		f.undefined = nil
	}
}

// usesUndefined reports an undefined value at the load that brought it.
func (x *exec) usesUndefined(lanes uint32, u *undefinedLanes) {
	lane := bits.TrailingZeros32(lanes)
	used := x.at
	x.at = u.at
	f := x.fault(Uninitialised, lane, "reads %s, which nobody has written", x.describe(u.window, u.address, u.size))
	if used != u.at {
		a := &Access{Block: f.Block, Thread: f.Thread, Verb: "used by"}
		a.Line, a.Instruction, a.Source = x.block.run.kernel.program.locate(x.frame.fn, used)
		f.Other = a
	}
	if u.window != inShared {
		panic(f)
	}
	// Where a barrier is missing, the threads that should have written come later: that is a race then, which says more.
	x.at = used
	if x.block.pending == nil {
		x.block.pending = f
	}
}

// storesUndefined reports a store of an undefined value.
func (x *exec) storesUndefined(sources []int, lane int) {
	for _, slot := range sources {
		if u := x.frame.undefined[slot]; u != nil && u.lanes>>lane&1 != 0 {
			x.usesUndefined(1<<lane, u)
		}
	}
}

// mustBeDefined reports a read of what nobody wrote at once.
func (x *exec) mustBeDefined() {
	if bad := x.check.undefined; bad != 0 {
		x.check.undefined = 0
		x.usesUndefined(bad, &undefinedLanes{bad, x.check.of})
	}
}
