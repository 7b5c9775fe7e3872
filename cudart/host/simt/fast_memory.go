// Loads and stores by many lanes of a warp from memory that its instructions have accessed before, written out as loops. Whatever these
// loops do not expect takes the general way, which also reports what is wrong.

package simt

import (
	"math/bits"
	"sync/atomic"
	"unsafe"

	"github.com/dagrun/dagrun/internal/ptx"
)

// word is what memory is accessed as.
type word interface {
	uint8 | uint16 | uint32 | uint64
}

// fastLoad is a quick version of a load, or the general one.
func fastLoad(at located, targets []int, size int, general op) op {
	for _, d := range targets {
		if d == at.base {
			return general
		}
	}
	if at.space == ptx.Param && at.same && len(targets) == 1 {
		return loadParameter(at, targets[0], size, general)
	}
	if at.kind&silent != 0 {
		return general
	}
	switch size {
	case 1:
		return loadFrom[uint8](at, targets, general)
	case 2:
		return loadFrom[uint16](at, targets, general)
	case 4:
		return loadFrom[uint32](at, targets, general)
	}
	return loadFrom[uint64](at, targets, general)
}

func loadFrom[T word](at located, targets []int, general op) op {
	switch at.space {
	case ptx.Shared:
		return loadShared[T](at, targets, general)
	case ptx.Global:
		return loadGlobal[T](at, targets, general)
	case ptx.Generic:
		return eitherSpace(at, loadShared[T](at, targets, general), loadGlobal[T](at, targets, general), general)
	}
	return general
}

// eitherSpace is an access through generic addresses: the first lane tells which loop is worth a try.
func eitherSpace(at located, shared, global, general op) op {
	return func(x *exec, m uint32) {
		if x.check != nil {
			general(x, m)
			return
		}
		switch (x.s[at.base][firstLane(m)] + at.offset) &^ inWindow {
		case inShared:
			shared(x, m)
		case 0:
			global(x, m)
		default:
			general(x, m)
		}
	}
}

// loadParameter loads a parameter of the kernel, which is the same for all lanes.
func loadParameter(at located, d, size int, general op) op {
	return func(x *exec, m uint32) {
		a := x.s[at.base][0] + at.offset
		if m != fullMask || x.check != nil || a&uint64(size-1) != 0 {
			general(x, m)
			return
		}
		v, to := read(at.find(x, a, size, 0), size), x.s[d]
		for i := range to {
			to[i] = v
		}
	}
}

// reachable is memory that lanes may access without a further look: where it starts, and the last offset at which an access fits.
type reachable struct {
	start unsafe.Pointer
	lo    uint64 // the address of its start
	last  uint64
}

// reachNear is the memory of an instruction's last access to global memory; false where an access does not fit in it.
func (x *exec) reachNear(near int, size uint64) (r reachable, ok bool) {
	n := &x.near[near]
	return reachable{pointer(n.lo), n.lo, n.hi - n.lo - size}, n.hi-n.lo >= size
}

// reachShared is the block's shared memory.
func (x *exec) reachShared(window, size uint64) (r reachable, ok bool) {
	memory := x.block.shared
	return reachable{unsafe.Pointer(unsafe.SliceData(memory)), window, uint64(len(memory)) - size}, uint64(len(memory)) >= size
}

// sharedWindow is what addresses of shared memory begin with: in its own space they have no window.
func sharedWindow(at located) uint64 {
	if at.space == ptx.Shared {
		return 0
	}
	return inShared
}

// loadShared loads from the block's own shared memory.
func loadShared[T word](at located, targets []int, general op) op {
	size := uint64(unsafe.Sizeof(T(0))) * uint64(len(targets))
	window := sharedWindow(at)
	loop := loadLoop[T](at, targets)
	checked := len(targets) == 1 && size == 4
	return func(x *exec, m uint32) {
		memory, ok := x.reachShared(window, size)
		if x.check != nil {
			ok = ok && checked && m == fullMask && x.readShared(x.s[at.base], at.offset)
		}
		if !ok || !loop(x, m, memory) {
			general(x, m)
		}
	}
}

// loadGlobal loads from global memory.
func loadGlobal[T word](at located, targets []int, general op) op {
	size := uint64(unsafe.Sizeof(T(0))) * uint64(len(targets))
	loop := loadLoop[T](at, targets)
	return func(x *exec, m uint32) {
		if memory, ok := x.reachNear(at.near, size); !ok || x.check != nil || !loop(x, m, memory) {
			general(x, m)
		}
	}
}

// loadLoop loads one or several values for each lane. It returns false at a lane whose access does not fit; what it has loaded by then
// is loaded again.
func loadLoop[T word](at located, targets []int) func(x *exec, m uint32, memory reachable) bool {
	base, offset := at.base, at.offset
	size := uint64(unsafe.Sizeof(T(0)))
	switch len(targets) {
	case 1:
		return func(x *exec, m uint32, memory reachable) bool {
			from, to := x.s[base], x.s[targets[0]]
			if m == fullMask {
				for i := range to {
					a := from[i] + offset
					if a&(size-1) != 0 || a-memory.lo > memory.last {
						return false
					}
					to[i] = uint64(*(*T)(unsafe.Add(memory.start, a-memory.lo)))
				}
				return true
			}
			for ; m != 0; m &= m - 1 {
				i := bits.TrailingZeros32(m) & 31
				a := from[i] + offset
				if a&(size-1) != 0 || a-memory.lo > memory.last {
					return false
				}
				to[i] = uint64(*(*T)(unsafe.Add(memory.start, a-memory.lo)))
			}
			return true
		}
	case 2:
		return func(x *exec, m uint32, memory reachable) bool {
			from, first, second := x.s[base], x.s[targets[0]], x.s[targets[1]]
			for ; m != 0; m &= m - 1 {
				i := bits.TrailingZeros32(m) & 31
				a := from[i] + offset
				if a&(2*size-1) != 0 || a-memory.lo > memory.last {
					return false
				}
				v := (*[2]T)(unsafe.Add(memory.start, a-memory.lo))
				first[i], second[i] = uint64(v[0]), uint64(v[1])
			}
			return true
		}
	case 4:
		return func(x *exec, m uint32, memory reachable) bool {
			from, first, second, third, fourth := x.s[base], x.s[targets[0]], x.s[targets[1]], x.s[targets[2]], x.s[targets[3]]
			for ; m != 0; m &= m - 1 {
				i := bits.TrailingZeros32(m) & 31
				a := from[i] + offset
				if a&(4*size-1) != 0 || a-memory.lo > memory.last {
					return false
				}
				v := (*[4]T)(unsafe.Add(memory.start, a-memory.lo))
				first[i], second[i], third[i], fourth[i] = uint64(v[0]), uint64(v[1]), uint64(v[2]), uint64(v[3])
			}
			return true
		}
	}
	return func(*exec, uint32, reachable) bool { return false }
}

// fastStore is a quick version of a store, or the general one.
func fastStore(at located, sources []int, size int, general op) op {
	if at.kind&silent != 0 {
		return general
	}
	switch size {
	case 1:
		return storeTo[uint8](at, sources, general)
	case 2:
		return storeTo[uint16](at, sources, general)
	case 4:
		return storeTo[uint32](at, sources, general)
	}
	return storeTo[uint64](at, sources, general)
}

// storeTo stores in shared or global memory. Where a lane stops it, the general way stores all again.
func storeTo[T word](at located, sources []int, general op) op {
	size := uint64(unsafe.Sizeof(T(0))) * uint64(len(sources))
	window := sharedWindow(at)
	loop := storeLoop[T](at, sources)
	shared := func(x *exec, m uint32) {
		if memory, ok := x.reachShared(window, size); !ok || x.check != nil || !loop(x, m, memory) {
			general(x, m)
		}
	}
	global := func(x *exec, m uint32) {
		if memory, ok := x.reachNear(at.near, size); !ok || x.check != nil || !loop(x, m, memory) {
			general(x, m)
		}
	}
	switch at.space {
	case ptx.Shared:
		return shared
	case ptx.Global:
		return global
	case ptx.Generic:
		return eitherSpace(at, shared, global, general)
	}
	return general
}

// storeLoop stores one or several values of each lane, and returns false at a lane whose access does not fit.
func storeLoop[T word](at located, sources []int) func(x *exec, m uint32, memory reachable) bool {
	base, offset := at.base, at.offset
	size := uint64(unsafe.Sizeof(T(0)))
	switch len(sources) {
	case 1:
		return func(x *exec, m uint32, memory reachable) bool {
			to, from := x.s[base], x.s[sources[0]]
			if m == fullMask {
				for i := range to {
					a := to[i] + offset
					if a&(size-1) != 0 || a-memory.lo > memory.last {
						return false
					}
					*(*T)(unsafe.Add(memory.start, a-memory.lo)) = T(from[i])
				}
				return true
			}
			for ; m != 0; m &= m - 1 {
				i := bits.TrailingZeros32(m) & 31
				a := to[i] + offset
				if a&(size-1) != 0 || a-memory.lo > memory.last {
					return false
				}
				*(*T)(unsafe.Add(memory.start, a-memory.lo)) = T(from[i])
			}
			return true
		}
	case 2:
		return func(x *exec, m uint32, memory reachable) bool {
			to, first, second := x.s[base], x.s[sources[0]], x.s[sources[1]]
			for ; m != 0; m &= m - 1 {
				i := bits.TrailingZeros32(m) & 31
				a := to[i] + offset
				if a&(2*size-1) != 0 || a-memory.lo > memory.last {
					return false
				}
				*(*[2]T)(unsafe.Add(memory.start, a-memory.lo)) = [2]T{T(first[i]), T(second[i])}
			}
			return true
		}
	case 4:
		return func(x *exec, m uint32, memory reachable) bool {
			to, first, second, third, fourth := x.s[base], x.s[sources[0]], x.s[sources[1]], x.s[sources[2]], x.s[sources[3]]
			for ; m != 0; m &= m - 1 {
				i := bits.TrailingZeros32(m) & 31
				a := to[i] + offset
				if a&(4*size-1) != 0 || a-memory.lo > memory.last {
					return false
				}
				v := (*[4]T)(unsafe.Add(memory.start, a-memory.lo))
				v[0], v[1], v[2], v[3] = T(first[i]), T(second[i]), T(third[i]), T(fourth[i])
			}
			return true
		}
	}
	return func(*exec, uint32, reachable) bool { return false }
}

// fastAdd adds integers of 4 bytes atomically, where only bounds are checked. No other worker runs at the same time on shared memory. It
// returns false where an access does not fit, before it changes anything.
func (x *exec) fastAdd(at *located, target, b int, m uint32) bool {
	from, second := x.s[at.base], x.s[b]
	memory, ok := reachable{}, false
	shared := at.space == ptx.Shared || at.space == ptx.Generic && (from[firstLane(m)]+at.offset)&^inWindow == inShared
	if shared {
		memory, ok = x.reachShared(sharedWindow(*at), 4)
	} else {
		memory, ok = x.reachNear(at.near, 4)
	}
	if !ok {
		return false
	}
	for left := m; left != 0; left &= left - 1 {
		if a := from[bits.TrailingZeros32(left)&31] + at.offset; a&3 != 0 || a-memory.lo > memory.last {
			return false
		}
	}
	for ; m != 0; m &= m - 1 {
		i := bits.TrailingZeros32(m) & 31
		p, v := (*uint32)(unsafe.Add(memory.start, from[i]+at.offset-memory.lo)), uint32(second[i])
		var old uint32
		if shared {
			old = *p
			*p = old + v
		} else {
			old = atomic.AddUint32(p, v) - v
		}
		if target >= 0 {
			x.s[target][i] = uint64(old)
		}
	}
	return true
}
