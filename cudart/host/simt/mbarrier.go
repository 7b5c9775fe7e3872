// Barriers in shared memory: mbarrier, which counts arrivals of threads and bytes of copies.

package simt

import (
	"unsafe"

	"github.com/dagrun/dagrun/internal/ptx"
)

// arrivals is the content of an mbarrier: how many arrivals a phase expects, how many are still missing, how many bytes of copies are
// still missing, and the parity of the phase.
type arrivals uint64

const (
	countBits  = 20
	countMask  = 1<<countBits - 1
	bytesShift = 2 * countBits
	bytesBits  = 23
	bytesMask  = 1<<bytesBits - 1
	phaseBit   = 63
	mostCount  = countMask
)

func newArrivals(expected, missing uint64, bytes int64, phase uint64) arrivals {
	return arrivals(expected&countMask | missing&countMask<<countBits | uint64(bytes)&bytesMask<<bytesShift | phase<<phaseBit)
}

func (a arrivals) expected() uint64 { return uint64(a) & countMask }
func (a arrivals) missing() uint64  { return uint64(a) >> countBits & countMask }
func (a arrivals) bytes() int64     { return signExtend(uint64(a)>>bytesShift&bytesMask, bytesBits) }
func (a arrivals) phase() uint64    { return uint64(a) >> phaseBit }

// change is what an operation does to an mbarrier.
type change struct {
	arrive, drop uint64 // arrivals now, and of the phases that follow
	bytes        int64  // expected, or, if negative, complete
}

// after is the mbarrier after a change. It starts the next phase where nothing is missing any more.
func (a arrivals) after(c change) arrivals {
	expected, missing, bytes, phase := a.expected()-c.drop, a.missing()-c.arrive, a.bytes()+c.bytes, a.phase()
	if missing == 0 && bytes == 0 && (c.arrive > 0 || c.bytes < 0) {
		missing, phase = expected, phase^1
	}
	return newArrivals(expected, missing, bytes, phase)
}

// count changes an mbarrier and returns its state before.
func (x *exec) count(at *located, address uint64, lane int, c change) arrivals {
	if address&7 != 0 {
		x.misaligned(address, 8, lane)
	}
	p := at.find(x, address, 8, lane)
	if x.check != nil {
		if at.kind&(writes|updates) != writes {
			x.mustBeWritten(at.window, address, 8, lane)
		}
		x.note(at.window, address, 8, lane, at.kind)
	}
	var problem string
	var old arrivals
	update(p, 8, func(word uint64) uint64 {
		old, problem = arrivals(word), ""
		switch {
		case old.missing() == 0 && old.bytes() == 0:
			problem = "this mbarrier has not been initialised"
		case c.arrive > old.missing():
			problem = "more threads arrive at this mbarrier than it expects"
		case old.bytes()+c.bytes > bytesMask/2 || old.bytes()+c.bytes < -bytesMask/2:
			problem = "this mbarrier cannot count so many bytes"
		default:
			return uint64(old.after(c))
		}
		return word
	})
	if problem != "" {
		x.fail(Stuck, lane, "%s (it expects %d, %d of them are missing)", problem, old.expected(), old.missing())
	}
	return old
}

// mbarrierAt is the place of an mbarrier, for a kind of access.
func (c *compiler) mbarrierAt(o ptx.Operand, kind uint8) *located {
	f := c.in.Form
	space := ptx.Generic
	for _, s := range f.Spaces {
		if s == ptx.Shared || s == ptx.SharedCluster {
			space = s
		}
	}
	kind |= strongs
	if !f.Has(ptx.ModCluster) {
		kind |= blockly
	}
	at := c.locateIn(o, space, kind)
	return &at
}

// mbarrier compiles the operations on an mbarrier.
func (c *compiler) mbarrier() op {
	o, f := c.in.Operands, c.in.Form
	if f.Type() != ptx.B64 {
		c.refuse("")
		return nil
	}
	first := 0
	for first < len(o) && o[first].Kind != ptx.Address {
		first++
	}
	rest := len(o) - first - 1 // operands after the address
	arrives := f.Has(ptx.ModArrive) || f.Has(ptx.ModArriveDrop)
	switch {
	case f.Has(ptx.ModPendingCount) && len(o) == 2:
		return func1(func(a uint64) uint64 { return arrivals(a).missing() }).op(c.target(o[0]), c.source(o[1], ptx.B64))
	case f.Has(ptx.ModInit) && first == 0 && rest == 1:
		return c.newMbarrier(o)
	case f.Has(ptx.ModInval) && first == 0 && rest == 0:
		at := c.mbarrierAt(o[0], writes|release)
		return func(x *exec, m uint32) {
			for ; m != 0; m &= m - 1 {
				i := firstLane(m)
				*(*uint64)(x.mbarrierPlace(at, i)) = 0
			}
		}
	case (f.Has(ptx.ModTestWait) || f.Has(ptx.ModTryWait)) && first == 1 && rest >= 1:
		return c.testMbarrier(o)
	case arrives && first <= 1 && rest <= 1, (f.Has(ptx.ModExpectTx) || f.Has(ptx.ModCompleteTx)) && first == 0 && rest == 1:
		return c.arriveAt(o, first, rest, arrives)
	}
	c.refuse("this form of mbarrier is not supported")
	return nil
}

// mbarrierPlace checks an mbarrier's address.
func (x *exec) mbarrierPlace(at *located, lane int) unsafe.Pointer {
	address := x.s[at.base][lane] + at.offset
	if address&7 != 0 {
		x.misaligned(address, 8, lane)
	}
	p := at.find(x, address, 8, lane)
	if x.check != nil {
		if at.kind&(writes|updates) != writes {
			x.mustBeWritten(at.window, address, 8, lane)
		}
		x.note(at.window, address, 8, lane, at.kind)
	}
	return p
}

// newMbarrier compiles mbarrier.init.
func (c *compiler) newMbarrier(o []ptx.Operand) op {
	at, n := c.mbarrierAt(o[0], writes|release), c.source(o[1], ptx.U32)
	return func(x *exec, m uint32) {
		for ; m != 0; m &= m - 1 {
			i := firstLane(m)
			count := uint64(uint32(x.s[n][i]))
			if count == 0 || count > mostCount {
				x.fail(Stuck, i, "an mbarrier for %d arrivals; 1 to %d are possible", count, mostCount)
			}
			*(*uint64)(x.mbarrierPlace(at, i)) = uint64(newArrivals(count, count, 0, 0))
		}
	}
}

// testMbarrier compiles test_wait and try_wait: whether a phase is over. try_wait does not wait longer than test_wait.
func (c *compiler) testMbarrier(o []ptx.Operand) op {
	parity := c.in.Form.Has(ptx.ModParity)
	t := ptx.B64
	if parity {
		t = ptx.U32
	}
	p, at, phase := c.predicate(o[0]), c.mbarrierAt(o[1], acquire), c.source(o[2], t)
	return func(x *exec, m uint32) {
		x.polls = true
		yes := uint32(0)
		for left := m; left != 0; left &= left - 1 {
			i := firstLane(left)
			now := arrivals(readStrong(x.mbarrierPlace(at, i), 8))
			if now.missing() == 0 && now.bytes() == 0 {
				x.fail(Stuck, i, "this mbarrier has not been initialised")
			}
			asked := arrivals(x.s[phase][i]).phase()
			if parity {
				asked = x.s[phase][i] & 1
			}
			if now.phase() != asked {
				yes |= 1 << i
			}
		}
		x.p[p] = x.p[p]&^m | yes
	}
}

// arriveAt compiles arrive, arrive_drop, expect_tx and complete_tx.
func (c *compiler) arriveAt(o []ptx.Operand, first, rest int, arrives bool) op {
	f := c.in.Form
	target := -1
	if first == 1 && o[0].Kind != ptx.Discard {
		target = c.target(o[0])
	}
	at, n := c.mbarrierAt(o[first], writes|updates|acquire|release), -1
	if rest == 1 {
		n = c.source(o[first+1], ptx.U32)
	}
	drops, expects, completes := f.Has(ptx.ModArriveDrop), f.Has(ptx.ModExpectTx), f.Has(ptx.ModCompleteTx)
	return func(x *exec, m uint32) {
		x.polls = true
		for ; m != 0; m &= m - 1 {
			i := firstLane(m)
			given := uint64(1)
			if n >= 0 {
				given = uint64(uint32(x.s[n][i]))
			}
			var by change
			if arrives {
				by.arrive = given
			}
			switch {
			case expects:
				by.bytes = int64(given)
				by.arrive = min(by.arrive, 1)
			case completes:
				by.bytes = -int64(given)
			}
			if drops {
				by.drop = by.arrive
			}
			state := x.count(at, x.s[at.base][i]+at.offset, i, by)
			if target >= 0 {
				x.s[target][i] = uint64(state)
			}
		}
	}
}
