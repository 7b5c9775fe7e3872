// Values that were read from memory which nobody wrote: followed through copies, calls and local memory, and reported where something is
// computed from them. Compilers load what they then do not use, so that a load alone is no fault.

package simt

const (
	computes copying = iota // it is used: a fault
	copies                  // the result is undefined too
	selects                 // the result is, where it is chosen
	keeps                   // a store: noteStore sees to the values
)

// placeOf is the kind of memory that a lane's access is to, and the place there.
func placeOf(window, address uint64) (uint64, uint64) {
	if window == 0 {
		window = address &^ inWindow
	}
	switch window {
	case 0:
		return window, address & plainMask
	case inShared: // addresses have 32 bits
		return window, uint64(uint32(address))
	}
	return window, address & inWindow
}

// unwritten says whether a lane's read is of what nobody wrote.
func (x *exec) unwritten(window, address uint64, size, lane int) bool {
	switch window, address = placeOf(window, address); window {
	case 0:
		w := x.written(address)
		return w != nil && !w.any(address, size)
	case inShared:
		b, offset := x.block.peer(address)
		return !anyOf(b.history.valid[offset : offset+uint64(size)])
	case inLocal:
		at := x.warp.stackAt(lane, int64(address))
		return !anyOf(x.warp.valid[at : at+int64(size)])
	}
	return false
}

// written is what is known of an address's memory, nil where nothing is.
func (x *exec) written(address uint64) *Written {
	w := x.check.written
	if w != nil && address-w.base < uint64(len(w.bits))*64 {
		return w
	}
	for _, w := range x.block.run.Written {
		if address-w.base < uint64(len(w.bits))*64 {
			x.check.written = w
			return w
		}
	}
	return nil
}

// stackAt is where a place in a lane's local memory is among those of its warp.
func (w *warp) stackAt(lane int, offset int64) int64 {
	return int64(lane)*w.x.block.run.kernel.stack + offset
}

// keep notes that bytes of local memory hold an undefined value.
func (w *warp) keep(at, size int64, of origin) {
	clear(w.valid[at : at+size])
	if w.origins == nil {
		w.origins = map[int64]origin{}
	}
	w.origins[at] = of
}

func anyOf(valid []byte) bool {
	for _, v := range valid {
		if v != 0 {
			return true
		}
	}
	return false
}

func fill(valid []byte, with byte) {
	for i := range valid {
		valid[i] = with
	}
}

// originOf is where an undefined value comes from that a lane reads here: what was stored there may have been undefined before.
func (x *exec) originOf(window, address uint64, size, lane int) origin {
	switch window, address = placeOf(window, address); window {
	case inShared:
		address &= inShare
	case inLocal:
		if of, known := x.warp.origins[x.warp.stackAt(lane, int64(address))]; known {
			return of
		}
	}
	return origin{x.frame.fn, x.at, window, address, size}
}

// reads marks the register that a lane loads into, where nobody wrote what it reads.
func (x *exec) reads(target int, window, address uint64, size, lane int) {
	if x.unwritten(window, address, size, lane) {
		x.frame.mark(target, lane, x.originOf(window, address, size, lane))
	}
}

// mustBeWritten reports a read of what nobody wrote at once.
func (x *exec) mustBeWritten(window, address uint64, size, lane int) {
	if x.unwritten(window, address, size, lane) {
		x.usesUndefined(lane, x.originOf(window, address, size, lane))
	}
}

// mark notes that a lane's value of a register is undefined.
func (f *frame) mark(slot, lane int, of origin) {
	u := f.undefined[slot]
	if u == nil {
		if f.undefined == nil {
			f.undefined = map[int]*undefinedLanes{}
		}
		u = &undefinedLanes{}
		f.undefined[slot] = u
	}
	u.lanes |= 1 << lane
	u.from[lane] = of
}

// replace notes that the lanes of a mask have another value of a register, which is undefined in those of by; nil: in none.
func (f *frame) replace(slot int, m uint32, by *undefinedLanes) {
	if u := f.undefined[slot]; u != nil {
		if u.lanes &^= m; u.lanes == 0 {
			delete(f.undefined, slot)
		}
	}
	if by != nil {
		for left := by.lanes & m; left != 0; left &= left - 1 {
			f.mark(slot, firstLane(left), by.from[firstLane(left)])
		}
	}
	if len(f.undefined) == 0 {
		f.undefined = nil
	}
}

// follow looks after undefined values before an instruction runs in the lanes of a mask.
func (x *exec) follow(o *operands, m uint32) {
	f := x.frame
	if m == 0 {
		return
	}
	var results [8]*undefinedLanes // of the targets; most instructions give all of them the same
	each := o.copies == copies && len(o.uses) == len(o.sets) && len(o.sets) <= len(results)
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
			bad &= chosen
		case keeps:
			if i == 0 { // the address
				x.usesUndefined(firstLane(bad), u.from[firstLane(bad)])
			}
			continue
		case computes:
			x.usesUndefined(firstLane(bad), u.from[firstLane(bad)])
		}
		result := &results[0]
		if each {
			result = &results[i]
		}
		if *result == nil {
			*result = &undefinedLanes{}
		}
		for ; bad != 0; bad &= bad - 1 {
			lane := firstLane(bad)
			(*result).lanes |= 1 << lane
			(*result).from[lane] = u.from[lane]
		}
	}
	for i, slot := range o.sets {
		if each {
			f.replace(int(slot), m, results[i])
		} else {
			f.replace(int(slot), m, results[0])
		}
	}
}

// usesUndefined reports an undefined value at the load that brought it.
func (x *exec) usesUndefined(lane int, u origin) {
	f := x.fault(Uninitialised, lane, "reads %s, which nobody has written", x.describe(u.window, u.address, u.size))
	program := x.block.run.kernel.program
	if used := (origin{fn: x.frame.fn, at: x.at}); used.fn != u.fn || used.at != u.at {
		f.Other = &Access{Block: f.Block, Thread: f.Thread, Verb: "used by", Line: f.Line, Instruction: f.Instruction, Source: f.Source}
		f.Line, f.Instruction, f.Source = program.locate(u.fn, u.at)
	}
	if u.window != inShared {
		panic(f)
	}
	// Where a barrier is missing, the threads that should have written come later: that is a race then, which says more.
	if x.block.pending == nil {
		x.block.pending = f
	}
}
