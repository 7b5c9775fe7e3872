// What each byte of memory has seen: whether it was written, and by whom it was written and read last.

package simt

import (
	"math/bits"
	"sync"
	"sync/atomic"
)

// Check says what a launch is checked for beside bounds and alignment.
type Check uint8

// The levels of checks.
const (
	CheckNothing Check = iota
	CheckFast          // all but races of a write with an earlier read of global memory
	CheckFull          // everything
	CheckUsual         // everything in the first instructions of a launch, and what CheckFast finds in those after them
)

// How an access touches memory.
const (
	writes  uint8 = 1 << iota
	strongs       // other threads may make it at the same time: volatile, relaxed, acquire, release, atomics
	blockly       // strong only towards threads of the block
	updates       // reads and writes in one step
	acquire
	release
	silent // what it reads may be undefined, and its races are not looked at: parameters, constants
)

// Written tells which bytes of a piece of memory have ever been written. It may be used by several goroutines at once.
type Written struct {
	base uint64
	bits []atomic.Uint64 // one for each byte
}

// NewWritten is for memory from an address on, of which nothing has been written.
func NewWritten(base uint64, bytes int64) *Written {
	return &Written{base: base, bits: make([]atomic.Uint64, (bytes+63)/64)}
}

// Mark notes that bytes were written.
func (w *Written) Mark(address uint64, bytes int64) {
	at := address - w.base
	for bytes > 0 {
		shift := at & 63
		n := min(bytes, int64(64-shift))
		mask := ^uint64(0) >> (64 - n) << shift
		if word := &w.bits[at>>6]; word.Load()&mask != mask {
			word.Or(mask)
		}
		at += uint64(n)
		bytes -= n
	}
}

// Forget notes that the contents of bytes are of no use any more, as if they had never been written.
func (w *Written) Forget(address uint64, bytes int64) {
	at := address - w.base
	for bytes > 0 {
		shift := at & 63
		n := min(bytes, int64(64-shift))
		w.bits[at>>6].And(^(^uint64(0) >> (64 - n) << shift))
		at += uint64(n)
		bytes -= n
	}
}

// Gap returns the first bytes in a row, from lo up to hi, that were not written; hi is 0 if all were.
func (w *Written) Gap(address uint64, bytes int64) (lo, hi uint64) {
	at, end := address-w.base, address-w.base+uint64(bytes)
	// next is the first place from at on that was written, or was not.
	next := func(at uint64, written bool) uint64 {
		for at < end {
			word := w.bits[at>>6].Load()
			if !written {
				word = ^word
			}
			if word >>= at & 63; word != 0 {
				return min(end, at+uint64(bits.TrailingZeros64(word)))
			}
			at = at&^63 + 64
		}
		return end
	}
	if at = next(at, false); at == end {
		return 0, 0
	}
	return w.base + at, w.base + next(at, true)
}

// any says whether at least one of at most 16 bytes was written.
func (w *Written) any(address uint64, bytes int) bool {
	at := address - w.base
	shift := at & 63
	n := min(bytes, int(64-shift))
	if w.bits[at>>6].Load()>>shift&(1<<n-1) != 0 {
		return true
	}
	return n < bytes && w.bits[at>>6+1].Load()&(1<<(bytes-n)-1) != 0
}

// stamp is one access to a word: by whom, when, from where. No access has block 0.
type stamp struct {
	block  uint32 // its number in the grid plus one
	time   uint32
	site   uint32
	thread uint16
	kind   uint8
}

const siteShift = 20 // a site is a function and an instruction of it

// cell is what a word of four bytes, or one byte, has seen: the last write, and two reads since by threads that are not ordered.
type cell struct {
	write, read, other stamp
}

const (
	pageShift = 12
	pageBytes = 1 << pageShift
)

// page is the history of global memory, page by page.
type page struct {
	mu    sync.Mutex
	words [pageBytes / 4]cell
	bytes *[pageBytes]cell // of words that were accessed in parts
	parts [pageBytes / 4 / 64]uint64
}

func (p *page) part(word uint64) {
	if p.parts[word>>6]>>(word&63)&1 != 0 {
		return
	}
	if p.bytes == nil {
		p.bytes = &[pageBytes]cell{}
	}
	p.parts[word>>6] |= 1 << (word & 63)
	for i := range uint64(4) {
		p.bytes[word*4+i] = p.words[word]
	}
}

// history is that of a launch's global memory.
type history struct {
	shards [64]struct {
		mu    sync.Mutex
		pages map[uint64]*page
	}
}

func (h *history) page(number uint64) *page {
	s := &h.shards[number%64]
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.pages == nil {
		s.pages = map[uint64]*page{}
	}
	p := s.pages[number]
	if p == nil {
		p = &page{}
		s.pages[number] = p
	}
	return p
}

// blockHistory is that of a block's shared memory.
type blockHistory struct {
	words []cell
	bytes []cell
	parts []uint64 // of words: bit is set once it was accessed in parts
	valid []byte   // by byte: not 0 once it was written
}

// part has a word's bytes each have their own history from now on.
func (h *blockHistory) part(word uint64) {
	if h.parts[word>>6]>>(word&63)&1 != 0 {
		return
	}
	if h.bytes == nil {
		h.bytes = make([]cell, len(h.words)*4)
	}
	h.parts[word>>6] |= 1 << (word & 63)
	for i := range uint64(4) {
		h.bytes[word*4+i] = h.words[word]
	}
}
