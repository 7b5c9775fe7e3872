// Loads and stores by a whole warp from memory that its instructions have accessed before, written out as loops. A warp with lanes missing, and
// whatever these loops do not expect, takes the general way, which also reports what is wrong.

package simt

import (
	"unsafe"

	"github.com/dagrun/dagrun/kernels/ptx"
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
	switch at.space {
	case ptx.Shared:
		switch {
		case len(targets) == 1 && size == 4:
			return loadShared[uint32](at, targets, general)
		case len(targets) == 1 && size == 8:
			return loadShared[uint64](at, targets, general)
		case len(targets) == 1 && size == 2:
			return loadShared[uint16](at, targets, general)
		}
	case ptx.Global:
		switch size {
		case 1:
			return loadGlobal[uint8](at, targets, general)
		case 2:
			return loadGlobal[uint16](at, targets, general)
		case 4:
			return loadGlobal[uint32](at, targets, general)
		case 8:
			return loadGlobal[uint64](at, targets, general)
		}
	}
	return general
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

// loadShared loads one value for each lane from the block's own shared memory.
func loadShared[T word](at located, targets []int, general op) op {
	base, offset, d := at.base, at.offset, targets[0]
	size := unsafe.Sizeof(T(0))
	return func(x *exec, m uint32) {
		memory := x.block.shared
		if m != fullMask || len(memory) < int(size) {
			general(x, m)
			return
		}
		if x.check != nil {
			if size != 4 || !x.readShared(x.s[base], offset) {
				general(x, m)
				return
			}
			x.loaded(targets, m)
		}
		from, to, start, end := x.s[base], x.s[d], unsafe.Pointer(unsafe.SliceData(memory)), uint64(len(memory))-uint64(size)
		for i := range to {
			a := (from[i] + offset) & inWindow
			if a&uint64(size-1) != 0 || a > end {
				general(x, m)
				return
			}
			to[i] = uint64(*(*T)(unsafe.Add(start, a)))
		}
	}
}

// loadGlobal loads one or several values for each lane.
func loadGlobal[T word](at located, targets []int, general op) op {
	base, offset, d := at.base, at.offset, targets[0]
	size := uint64(unsafe.Sizeof(T(0)))
	if total := size * uint64(len(targets)); len(targets) > 1 {
		return func(x *exec, m uint32) {
			if m != fullMask || x.check != nil {
				general(x, m)
				return
			}
			from, near := x.s[base], x.near[at.near]
			for i := range from {
				a := from[i] + offset
				if a&(total-1) != 0 || a-near.lo >= near.hi-near.lo || near.hi-a < total {
					general(x, m)
					return
				}
				p := pointer(a)
				for k, t := range targets {
					x.s[t][i] = uint64(*(*T)(unsafe.Add(p, uint64(k)*size)))
				}
			}
		}
	}
	return func(x *exec, m uint32) {
		if m != fullMask || x.check != nil {
			general(x, m)
			return
		}
		from, to, near := x.s[base], x.s[d], x.near[at.near]
		for i := range to {
			a := from[i] + offset
			if a&(size-1) != 0 || a-near.lo >= near.hi-near.lo || near.hi-a < size {
				general(x, m)
				return
			}
			to[i] = uint64(*(*T)(pointer(a)))
		}
	}
}

// fastStore is a quick version of a store, or the general one.
func fastStore(at located, sources []int, size int, general op) op {
	if len(sources) != 1 || at.kind&silent != 0 {
		return general
	}
	switch at.space {
	case ptx.Shared:
		switch size {
		case 2:
			return storeShared[uint16](at, sources[0], general)
		case 4:
			return storeShared[uint32](at, sources[0], general)
		case 8:
			return storeShared[uint64](at, sources[0], general)
		}
	case ptx.Global:
		switch size {
		case 1:
			return storeGlobal[uint8](at, sources[0], general)
		case 2:
			return storeGlobal[uint16](at, sources[0], general)
		case 4:
			return storeGlobal[uint32](at, sources[0], general)
		case 8:
			return storeGlobal[uint64](at, sources[0], general)
		}
	}
	return general
}

// storeShared stores one value of each lane in the block's own shared memory. Where a lane stops it, the general way stores all again.
func storeShared[T word](at located, source int, general op) op {
	base, offset := at.base, at.offset
	size := unsafe.Sizeof(T(0))
	return func(x *exec, m uint32) {
		memory := x.block.shared
		if m != fullMask || x.check != nil || len(memory) < int(size) {
			general(x, m)
			return
		}
		to, from, start, end := x.s[base], x.s[source], unsafe.Pointer(unsafe.SliceData(memory)), uint64(len(memory))-uint64(size)
		for i := range to {
			a := (to[i] + offset) & inWindow
			if a&uint64(size-1) != 0 || a > end {
				general(x, m)
				return
			}
			*(*T)(unsafe.Add(start, a)) = T(from[i])
		}
	}
}

// storeGlobal stores one value of each lane.
func storeGlobal[T word](at located, source int, general op) op {
	base, offset := at.base, at.offset
	size := uint64(unsafe.Sizeof(T(0)))
	return func(x *exec, m uint32) {
		if m != fullMask || x.check != nil {
			general(x, m)
			return
		}
		to, from, near := x.s[base], x.s[source], x.near[at.near]
		for i := range to {
			a := to[i] + offset
			if a&(size-1) != 0 || a-near.lo >= near.hi-near.lo || near.hi-a < size {
				general(x, m)
				return
			}
			*(*T)(pointer(a)) = T(from[i])
		}
	}
}
