// Memory: loads, stores, atomics and copies. Each access is checked against the memory that the launch may access.

package simt

import (
	"math/bits"
	"sync/atomic"
	"unsafe"

	"github.com/dagrun/dagrun/internal/ptx"
)

// misaligned reports an address that is not a multiple of the access's bytes.
func (x *exec) misaligned(address uint64, size, lane int) {
	x.fail(Misaligned, lane, "an access of %d bytes at an address that is not a multiple of %d, but %d more", size, size, address%uint64(size))
}

// load reads count values of size bytes each.
func load(at located, targets []int, size int, read func(unsafe.Pointer, int) uint64, extend func(uint64) uint64) op {
	total := size * len(targets)
	return func(x *exec, m uint32) {
		from := x.s[at.base]
		for ; m != 0; m &= m - 1 {
			i := bits.TrailingZeros32(m) & 31
			a := from[i] + at.offset
			if a&uint64(total-1) != 0 {
				x.misaligned(a, total, i)
			}
			p := at.find(x, a, total, i)
			if x.check != nil {
				for k, d := range targets {
					x.reads(d, at.window, a+uint64(k*size), size, i)
				}
				if at.window != inLocal {
					x.note(at.window, a, total, i, at.kind)
				}
			}
			for k, d := range targets {
				v := read(unsafe.Add(p, k*size), size)
				if extend != nil {
					v = extend(v)
				}
				x.s[d][i] = v
			}
			if x.check != nil {
				x.sawGlobal(at.window, a, i, at.kind)
			}
		}
	}
}

// write stores the low bytes of a value.
func write(p unsafe.Pointer, size int, v uint64) {
	switch size {
	case 1:
		*(*uint8)(p) = uint8(v)
	case 2:
		*(*uint16)(p) = uint16(v)
	case 4:
		*(*uint32)(p) = uint32(v)
	default:
		*(*uint64)(p) = v
	}
}

// readStrong is like read, for memory that another thread may write at the same time.
func readStrong(p unsafe.Pointer, size int) uint64 {
	switch size {
	case 4:
		return uint64(atomic.LoadUint32((*uint32)(p)))
	case 8:
		return atomic.LoadUint64((*uint64)(p))
	}
	return read(p, size)
}

// writeStrong is like write, for memory that another thread may read or write at the same time.
func writeStrong(p unsafe.Pointer, size int, v uint64) {
	switch size {
	case 4:
		atomic.StoreUint32((*uint32)(p), uint32(v))
	case 8:
		atomic.StoreUint64((*uint64)(p), v)
	default:
		write(p, size, v)
	}
}

// store writes count values of size bytes each.
func store(at located, sources []int, size int, write func(unsafe.Pointer, int, uint64)) op {
	total := size * len(sources)
	return func(x *exec, m uint32) {
		to := x.s[at.base]
		for ; m != 0; m &= m - 1 {
			i := bits.TrailingZeros32(m) & 31
			a := to[i] + at.offset
			if a&uint64(total-1) != 0 {
				x.misaligned(a, total, i)
			}
			p := at.find(x, a, total, i)
			if x.check != nil {
				x.noteStore(&at, a, p, sources, size, i)
			}
			for k, s := range sources {
				v := x.s[s][i]
				if at.space != ptx.Local && at.space != ptx.Shared {
					v = x.withoutNumber(v, size)
				}
				write(unsafe.Add(p, k*size), size, v)
			}
		}
	}
}

// update does an atomic operation on 2, 4 or 8 bytes and returns the old value.
func update(p unsafe.Pointer, size int, f func(old uint64) uint64) uint64 {
	switch size {
	case 8:
		for {
			old := atomic.LoadUint64((*uint64)(p))
			if atomic.CompareAndSwapUint64((*uint64)(p), old, f(old)) {
				return old
			}
		}
	case 4:
		for {
			old := atomic.LoadUint32((*uint32)(p))
			if atomic.CompareAndSwapUint32((*uint32)(p), old, uint32(f(uint64(old)))) {
				return uint64(old)
			}
		}
	}
	// Two bytes are updated as part of a four-byte word.
	shift := 8 * (uintptr(p) & 2)
	word := (*uint32)(unsafe.Add(p, -int(uintptr(p)&2)))
	for {
		old := atomic.LoadUint32(word)
		part := old >> shift & 0xffff
		next := old&^(0xffff<<shift) | uint32(f(uint64(part)))&0xffff<<shift
		if atomic.CompareAndSwapUint32(word, old, next) {
			return uint64(part)
		}
	}
}

// combine computes the new value of an atomic operation from the old value and the operands.
type combine func(old, b, c uint64) uint64

// atomics is atom (with a target) and red (target -1). inside combines in shared memory, outside elsewhere. What replaces reads only for
// its target, as a load does.
func atomics(at located, target, b, c, size int, adds, replaces bool, inside, outside combine) op {
	return func(x *exec, m uint32) {
		x.polls = true
		if adds && x.check == nil && x.fastAdd(&at, target, b, m) {
			return
		}
		from, second := x.s[at.base], x.s[b]
		third := second
		if c >= 0 {
			third = x.s[c]
		}
		for ; m != 0; m &= m - 1 {
			i := bits.TrailingZeros32(m) & 31
			a := from[i] + at.offset
			if a&uint64(size-1) != 0 {
				x.misaligned(a, size, i)
			}
			p := at.find(x, a, size, i)
			if x.check != nil {
				if replaces {
					x.reads(target, at.window, a, size, i)
				} else {
					x.mustBeWritten(at.window, a, size, i)
				}
				x.note(at.window, a, size, i, at.kind)
			}
			v, w := x.withoutNumber(second[i], size), x.withoutNumber(third[i], size)
			f := outside
			if at.space == ptx.Shared || a&^inWindow == inShared {
				f = inside
			}
			old := update(p, size, func(old uint64) uint64 { return f(old, v, w) })
			if target >= 0 {
				x.s[target][i] = old
			}
			if x.check != nil {
				x.sawGlobal(at.window, a, i, at.kind)
			}
		}
	}
}

// combiner returns the operation of an atom or red.
func combiner(mod ptx.Mod, t ptx.Type) combine {
	bitsOf := t.Bits()
	signed := t.Signed()
	less := func(a, b uint64) bool {
		if signed {
			return signExtend(a, bitsOf) < signExtend(b, bitsOf)
		}
		return a < b
	}
	switch mod {
	case ptx.ModAnd:
		return func(old, b, _ uint64) uint64 { return old & b }
	case ptx.ModOr:
		return func(old, b, _ uint64) uint64 { return old | b }
	case ptx.ModXor:
		return func(old, b, _ uint64) uint64 { return old ^ b }
	case ptx.ModExch:
		return func(_, b, _ uint64) uint64 { return b }
	case ptx.ModCas:
		return func(old, b, c uint64) uint64 {
			if old == truncate(b, bitsOf) {
				return c
			}
			return old
		}
	case ptx.ModInc:
		return func(old, b, _ uint64) uint64 {
			if uint32(old) >= uint32(b) {
				return 0
			}
			return old + 1
		}
	case ptx.ModDec:
		return func(old, b, _ uint64) uint64 {
			if uint32(old) == 0 || uint32(old) > uint32(b) {
				return b
			}
			return old - 1
		}
	case ptx.ModMin, ptx.ModMax:
		if t.Float() {
			f := floatMinMax(t, mod == ptx.ModMin, false, false, noMagnitudes)
			return func(old, b, _ uint64) uint64 { return f(old, b) }
		}
		return func(old, b, _ uint64) uint64 {
			b = truncate(b, bitsOf)
			if less(b, old) == (mod == ptx.ModMin) {
				return b
			}
			return old
		}
	case ptx.ModAdd:
		if t.Float() {
			f := floatBinary(t, addition, rounding{})
			return func(old, b, _ uint64) uint64 { return f(old, b) }
		}
		return func(old, b, _ uint64) uint64 { return old + b }
	}
	return nil
}

// copyAsync is cp.async: it copies at once, which is one of the times at which it may.
func copyAsync(target, source located, size int, used int, ignored func(x *exec) uint32) op {
	return func(x *exec, m uint32) {
		none := uint32(0)
		if ignored != nil {
			none = ignored(x)
		}
		for ; m != 0; m &= m - 1 {
			i := bits.TrailingZeros32(m) & 31
			a, b := x.s[target.base][i]+target.offset, x.s[source.base][i]+source.offset
			n := size
			if used >= 0 {
				n = int(min(uint32(x.s[used][i]), uint32(size)))
			}
			if none>>i&1 != 0 {
				n = 0
			}
			if a&uint64(size-1) != 0 {
				x.misaligned(a, size, i)
			}
			if b&uint64(size-1) != 0 {
				x.misaligned(b, size, i)
			}
			to := unsafe.Slice((*byte)(target.find(x, a, size, i)), size)
			var from []byte
			if n > 0 {
				from = unsafe.Slice((*byte)(source.find(x, b, n, i)), n)
			}
			if x.check != nil {
				if n > 0 {
					x.mustBeWritten(0, b, n, i)
					x.note(0, b, n, i, 0)
				}
				x.note(inShared, a, size, i, writes)
			}
			clear(to[copy(to, from):])
		}
	}
}

// loadMatrix is ldmatrix of 8 x 8 matrices of 16 bits: lane 8k+r gives the address of row r of matrix k.
func loadMatrix(at located, targets []int, transposed bool) op {
	return func(x *exec, m uint32) {
		var rows [32][8]uint16
		for k := range 8 * len(targets) {
			a := x.s[at.base][k] + at.offset
			if a&15 != 0 {
				x.misaligned(a, 16, k)
			}
			rows[k] = *(*[8]uint16)(at.find(x, a, 16, k))
			if x.check != nil {
				x.mustBeWritten(at.window, a, 16, k)
				x.note(at.window, a, 16, k, at.kind)
			}
		}
		for k, d := range targets {
			to := x.s[d]
			for lane := range 32 {
				if m>>lane&1 == 0 {
					continue
				}
				row, column := lane/4, lane%4*2
				low, high := rows[8*k+row][column], rows[8*k+row][column+1]
				if transposed {
					low, high = rows[8*k+column][row], rows[8*k+column+1][row]
				}
				to[lane] = uint64(low) | uint64(high)<<16
			}
		}
	}
}
