// Memory: loads, stores, atomics and copies. Each access is checked against the memory that the launch may access.

package simt

import (
	"math"
	"math/bits"
	"sync/atomic"
	"unsafe"

	"github.com/dagrun/dagrun/kernels/ptx"
)

// nearby is how many instructions remember the memory of their last access. A power of two.
const nearby = 32

// global checks an access to global memory. near is the memory of this instruction's last access.
func (x *exec) global(address uint64, size, lane int, near *span) unsafe.Pointer {
	if address >= near.lo && address+uint64(size) <= near.hi && address+uint64(size) > address {
		return pointer(address & plainMask)
	}
	if address>>numberShift != 0 {
		return x.numbered(address, size, lane, near)
	}
	return x.search(address, size, lane, near)
}

// search looks up an address in all memory that the launch may access.
func (x *exec) search(address uint64, size, lane int, near *span) unsafe.Pointer {
	r := x.block.run
	end := address + uint64(size)
	closest, distance := span{}, uint64(math.MaxUint64)
	for _, s := range r.ranges {
		if address >= s.lo && end <= s.hi && end > address {
			*near = s
			return pointer(address)
		}
		if d := s.away(address); d < distance {
			closest, distance = s, d
		}
	}
	if end > address && r.Reach != nil && r.Reach(address, size) {
		return pointer(address)
	}
	x.outside(address, size, lane, closest, distance)
	return nil
}

// outside reports an access that lies in nothing that the launch may access. closest is the nearest such memory.
func (x *exec) outside(address uint64, size, lane int, closest span, distance uint64) {
	switch {
	case address == 0:
		x.fail(OutOfBounds, lane, "an access through a null pointer")
	case distance < 1<<20 && address >= closest.hi:
		x.fail(OutOfBounds, lane, "an access of %d bytes, %d bytes past the end of %s", size, address-closest.hi, x.owner(closest))
	case distance < 1<<20 && address < closest.lo:
		x.fail(OutOfBounds, lane, "an access of %d bytes, %d bytes before the start of %s", size, closest.lo-address, x.owner(closest))
	case distance < 1<<20:
		x.fail(OutOfBounds, lane, "an access of %d bytes that reaches %d bytes past the end of %s", size, address+uint64(size)-closest.hi, x.owner(closest))
	}
	x.fail(OutOfBounds, lane, "an access of %d bytes at address %#x, which belongs to no argument", size, address)
}

// In a launch that is checked, the address of an argument has the argument's number in bits that addresses leave free. So what is
// computed from it stays within this argument, even where another one lies next to it.
const (
	numberShift = 48
	mostNumbers = 1<<(windowShift-numberShift) - 1
	plainMask   = uint64(1)<<numberShift - 1
)

// numbered checks an access through an address with an argument's number.
func (x *exec) numbered(address uint64, size, lane int, near *span) unsafe.Pointer {
	number := address >> numberShift
	plain := address & plainMask
	args := x.block.run.numbered
	if number > uint64(len(args)) {
		x.fail(OutOfBounds, lane, "an access of %d bytes at address %#x, which belongs to no argument", size, address)
	}
	s := &args[number-1]
	if plain < s.lo || plain+uint64(size) > s.hi {
		x.outside(plain, size, lane, s.span, s.away(plain))
		return nil
	}
	at := s.at(plain)
	if plain+uint64(size) > at.hi {
		x.fail(OutOfBounds, lane, "an access of %d bytes, %d bytes into row %d of %s, whose rows have %d bytes, %d apart",
			size, plain-at.lo, (at.lo-s.lo)/s.pitch, x.owner(s.span), s.row, s.pitch)
	}
	*near = span{at.lo | number<<numberShift, at.hi + number<<numberShift}
	return pointer(plain)
}

// memory is what belongs to an argument: a span, or rows of a span.
type memory struct {
	span
	row, pitch uint64 // the bytes of a row, and from one row to the next; row 0: all of the span
}

func (a *Arg) memory() memory {
	return memory{span{a.Bits, a.Bits + uint64(a.Bytes)}, uint64(a.Row), uint64(a.Pitch)}
}

// at returns the row that an address in the span lies in or after, or the span.
func (m *memory) at(address uint64) span {
	if m.row == 0 {
		return m.span
	}
	lo := address - (address-m.lo)%m.pitch
	return span{lo, lo + m.row}
}

// has reports whether a byte belongs to the argument.
func (m *memory) has(address uint64) bool {
	return address >= m.lo && address < m.hi && address < m.at(address).hi
}

// withoutNumber is an address as memory may hold it: another launch has other numbers.
func (x *exec) withoutNumber(v uint64, size int) uint64 {
	if x.check == nil || size != 8 {
		return v
	}
	if number := v >> numberShift; number > 0 && number <= uint64(len(x.block.run.numbered)) {
		if s, plain := x.block.run.numbered[number-1], v&plainMask; plain >= s.lo && plain <= s.hi {
			return plain
		}
	}
	return v
}

// away returns how far an address lies outside the span.
func (s span) away(address uint64) uint64 {
	switch {
	case address >= s.hi:
		return address - s.hi
	case address < s.lo:
		return s.lo - address
	}
	return 0
}

// owner names the argument or variable whose memory a span is.
func (x *exec) owner(s span) string {
	k := x.block.run.kernel
	for i, a := range x.block.run.Args {
		if a.Pointer && a.Bits == s.lo && a.Bits+uint64(a.Bytes) == s.hi {
			x.argument = i + 1
			return "argument " + parameterName(k, i)
		}
	}
	for i, at := range k.program.places {
		if at != 0 && at == s.lo {
			return "variable " + k.program.module.Variables[i].Name
		}
	}
	return "its memory"
}

// pointer turns a checked address into a pointer.
func pointer(address uint64) unsafe.Pointer {
	return *(*unsafe.Pointer)(unsafe.Pointer(&address))
}

// sharedAt checks an access to the block's shared memory.
func (x *exec) sharedAt(offset uint64, size, lane int) unsafe.Pointer {
	if n := uint64(len(x.block.shared)); offset >= n || uint64(size) > n-offset {
		return x.elsewhere(offset, size, lane)
	}
	return unsafe.Pointer(&x.block.shared[offset])
}

// localAt checks an access to a lane's local memory.
func (x *exec) localAt(offset uint64, size, lane int) unsafe.Pointer {
	n := uint64(x.block.run.kernel.stack)
	if offset >= n || uint64(size) > n-offset {
		x.fail(OutOfBounds, lane, "an access of %d bytes at byte %d of local memory, but a thread has only %d bytes", size, int64(offset), n)
	}
	return unsafe.Pointer(&x.warp.local[uint64(lane)*n+offset])
}

// paramAt checks an access to the kernel's parameters.
func (x *exec) paramAt(offset uint64, size, lane int) unsafe.Pointer {
	p := x.block.run.params
	if offset >= uint64(len(p)) || uint64(size) > uint64(len(p))-offset {
		x.fail(OutOfBounds, lane, "an access of %d bytes at byte %d of the parameters, which have only %d bytes", size, int64(offset), len(p))
	}
	return unsafe.Pointer(&p[offset])
}

// resolve checks an access through a generic address.
func (x *exec) resolve(address uint64, size, lane int) unsafe.Pointer {
	switch address &^ inWindow {
	case 0:
		return x.global(address, size, lane, &x.near[0])
	case inShared:
		return x.sharedAt(address&inWindow, size, lane)
	case inLocal:
		return x.localAt(address&inWindow, size, lane)
	case inParam:
		return x.paramAt(address&inWindow, size, lane)
	}
	x.fail(OutOfBounds, lane, "an access of %d bytes at address %#x, where there is no memory", size, address)
	return nil
}

// memoryAt finds the memory of an access to one space.
type memoryAt func(x *exec, address uint64, size, lane int) unsafe.Pointer

// finder returns the function that finds the memory of accesses to a space.
func finder(space ptx.Space, near int) memoryAt {
	switch space {
	case ptx.Shared, ptx.SharedCluster: // addresses have 32 bits
		return func(x *exec, address uint64, size, lane int) unsafe.Pointer {
			return x.sharedAt(uint64(uint32(address)), size, lane)
		}
	case ptx.Local:
		return func(x *exec, address uint64, size, lane int) unsafe.Pointer {
			return x.localAt(address&inWindow, size, lane)
		}
	case ptx.Global, ptx.Const:
		return func(x *exec, address uint64, size, lane int) unsafe.Pointer {
			return x.global(address, size, lane, &x.near[near])
		}
	}
	return func(x *exec, address uint64, size, lane int) unsafe.Pointer {
		if address < inShared {
			return x.global(address, size, lane, &x.near[near])
		}
		return x.resolve(address, size, lane)
	}
}

// misaligned reports an address that is not a multiple of the access's bytes.
func (x *exec) misaligned(address uint64, size, lane int) {
	x.fail(Misaligned, lane, "an access of %d bytes at an address that is not a multiple of %d, but %d more", size, size, address%uint64(size))
}

// load reads count values of size bytes each.
func load(at located, targets []int, size int, read func(unsafe.Pointer, int) uint64, extend func(uint64) uint64) op {
	total := size * len(targets)
	return func(x *exec, m uint32) {
		from, all := x.s[at.base], m
		for ; m != 0; m &= m - 1 {
			i := bits.TrailingZeros32(m) & 31
			a := from[i] + at.offset
			if a&uint64(total-1) != 0 {
				x.misaligned(a, total, i)
			}
			p := at.find(x, a, total, i)
			if x.check != nil {
				x.note(at.window, a, total, i, at.kind)
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
		if x.check != nil {
			x.loaded(targets, all)
		}
	}
}

// read is a value of 1, 2, 4 or 8 bytes.
func read(p unsafe.Pointer, size int) uint64 {
	switch size {
	case 1:
		return uint64(*(*uint8)(p))
	case 2:
		return uint64(*(*uint16)(p))
	case 4:
		return uint64(*(*uint32)(p))
	}
	return *(*uint64)(p)
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
		if x.check != nil {
			x.check.undefined = 0
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

// atomics is atom (with a target) and red (target -1). inside combines in shared memory, outside elsewhere.
func atomics(at located, target, b, c, size int, adds bool, inside, outside combine) op {
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
				x.note(at.window, a, size, i, at.kind)
				x.mustBeDefined()
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
					x.note(0, b, n, i, 0)
					x.mustBeDefined()
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
				x.note(at.window, a, 16, k, at.kind)
				x.mustBeDefined()
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
