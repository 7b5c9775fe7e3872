// Addresses: which memory an address lies in, and what is said of one that lies in none.

package simt

import (
	"fmt"
	"math"
	"strings"
	"unsafe"

	"github.com/dagrun/dagrun/internal/ptx"
)

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

// located is where an instruction accesses memory, and how.
type located struct {
	find   memoryAt
	base   int
	offset uint64
	space  ptx.Space
	window uint64 // of its generic addresses; 0: an address says it itself
	near   int    // which of the remembered places is its own
	kind   uint8
	same   bool // all lanes have one address
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

// In a launch that is checked, the address of an argument has the argument's number in bits that addresses leave free. So what is
// computed from it stays within this argument, even where another one lies next to it.
const (
	numberShift = 48
	mostNumbers = 1<<(windowShift-numberShift) - 1
	plainMask   = uint64(1)<<numberShift - 1
)

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

// Pointers that are declared unused lead to places that are so far apart, from where systems place no memory.
const nowhere, nowhereRoom = 1 << 47, 1 << 32

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
	if i := (address - nowhere + nowhereRoom/2) / nowhereRoom; address >= nowhere-nowhereRoom/2 && i < uint64(len(x.block.run.Args)) &&
		x.block.run.Args[i].Unused {
		x.argument = int(i) + 1
		name := strings.TrimSuffix(x.block.run.argumentName(int(i)), ",")
		x.fail(OutOfBounds, lane, "an access of %d bytes through %s, which is declared unused", size, name)
	}
	x.fail(OutOfBounds, lane, "an access of %d bytes at address %#x, which belongs to no argument", size, address)
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
			return x.block.run.argumentName(i)
		}
	}
	for i, at := range k.program.places {
		if at != 0 && at == s.lo {
			return "variable " + k.program.module.Variables[i].Name
		}
	}
	return "its memory"
}

// describe names bytes of memory: "4 bytes at byte 12 of tile (shared memory)".
func (x *exec) describe(window, address uint64, size int) string {
	count := fmt.Sprintf("%d bytes", size)
	if size == 1 {
		count = "1 byte"
	}
	k := x.block.run.kernel
	switch window {
	case inShared:
		name, at := k.sharedName(address)
		return fmt.Sprintf("%s at byte %d of %s", count, at, name)
	case inLocal:
		return fmt.Sprintf("%s at byte %d of local memory", count, address)
	}
	for _, s := range x.block.run.ranges {
		if address >= s.lo && address < s.hi {
			return fmt.Sprintf("%s at byte %d of %s", count, address-s.lo, x.owner(s))
		}
	}
	return fmt.Sprintf("%s at address %#x", count, address)
}

// has reports whether a byte belongs to the argument.
func (m *memory) has(address uint64) bool {
	return address >= m.lo && address < m.hi && address < m.at(address).hi
}

// at returns the row that an address in the span lies in or after, or the span.
func (m *memory) at(address uint64) span {
	if m.row == 0 {
		return m.span
	}
	lo := address - (address-m.lo)%m.pitch
	return span{lo, lo + m.row}
}

func (a *Arg) memory() memory {
	return memory{span{a.Bits, a.Bits + uint64(a.Bytes)}, uint64(a.Row), uint64(a.Pitch)}
}

// pointer turns a checked address into a pointer.
func pointer(address uint64) unsafe.Pointer {
	return *(*unsafe.Pointer)(unsafe.Pointer(&address))
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

// sharedAt checks an access to the block's shared memory.
func (x *exec) sharedAt(offset uint64, size, lane int) unsafe.Pointer {
	if n := uint64(len(x.block.shared)); offset >= n || uint64(size) > n-offset {
		return x.elsewhere(offset, size, lane)
	}
	return unsafe.Pointer(&x.block.shared[offset])
}

// elsewhere finds the memory of an access that lies outside the block's own shared memory: in that of another block, or nowhere.
func (x *exec) elsewhere(address uint64, size, lane int) unsafe.Pointer {
	other, offset := x.block.peer(address)
	n := uint64(len(x.block.shared))
	if other == nil || offset >= n || uint64(size) > n-offset {
		at := int64(address & inShare)
		if address>>rankShift&mostRanks == mostRanks { // a negative number of 32 bits
			at = int64(int32(address))
		}
		x.fail(OutOfBounds, lane, "an access of %d bytes at byte %d of shared memory, but the block has only %d bytes", size, at, n)
	}
	if other.alive == 0 && other != x.block {
		x.fail(OutOfBounds, lane, "an access of %d bytes to the shared memory of block %s of the cluster, all of whose threads have ended", size, triple(other.index))
	}
	return unsafe.Pointer(&other.shared[offset])
}

// peer is the block of the cluster that a shared address belongs to, and the offset in its memory; nil if there is none.
func (b *block) peer(address uint64) (*block, uint64) {
	rank := address & inWindow >> rankShift
	switch {
	case rank == 0:
		return b, address & inShare
	case rank <= uint64(len(b.cluster.blocks)):
		return b.cluster.blocks[rank-1], address & inShare
	}
	return nil, 0
}
