// What commands are declared to do with contents, on a device whose kernels are checked: bytes that are declared out hold nothing when a kernel
// starts, all of them must be written when it has ended, and what is computed with must have been written.

package host

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"unsafe"

	"github.com/dagrun/dagrun/cudart"
)

// piece is bytes in a row of an access, in memory of the platform.
type piece struct {
	access *cudart.Access
	memory *memory
	ptr    cudart.Ptr
	bytes  int64
}

// pieces returns the bytes of the declared accesses of a kind.
func (c *command) pieces(wanted func(a *cudart.Access) bool) []piece {
	var all []piece
	for i := range c.accesses {
		a := &c.accesses[i]
		if !wanted(a) {
			continue
		}
		strip := a.Strip()
		for k := range max(strip.Rows, 1) {
			ptr, n := strip.Row(k), strip.Width()
			for _, u := range c.uses {
				if ptr >= u.ptr && ptr+cudart.Ptr(n) <= u.ptr+cudart.Ptr(u.bytes) && n > 0 {
					all = append(all, piece{a, u.memory, ptr, n})
					break
				}
			}
		}
	}
	return all
}

func wholly(a *cudart.Access) bool { return a.Write && a.Whole }

// at is where an address is in the buffer.
func (p *piece) at(ptr cudart.Ptr) int64 { return p.access.Offset + int64(ptr-p.access.Ptr) }

// unwritten returns the error for bytes that are declared out and were not written.
func (c *command) unwritten(p *piece, lo, hi cudart.Ptr) *cudart.Error {
	return c.fail(launchFailed, "it has not written bytes %d to %d of %s, which are declared out: declare them inout, or as out only what it writes", p.at(lo),
		p.at(hi), p.access.Name)
}

// forgetOutputs notes that what is declared out holds nothing.
func (c *command) forgetOutputs() {
	for _, p := range c.pieces(wholly) {
		if w := p.memory.written; w != nil {
			w.Forget(uint64(p.ptr), p.bytes)
		}
	}
}

// checkOutputs returns an error if the kernel that has run from its PTX has not written all that is declared out.
func (c *command) checkOutputs() *cudart.Error {
	for _, p := range c.pieces(wholly) {
		if w := p.memory.written; w != nil {
			if lo, hi := w.Gap(uint64(p.ptr), p.bytes); hi > 0 {
				return c.unwritten(&p, cudart.Ptr(lo), cudart.Ptr(hi))
			}
		}
	}
	return nil
}

// checkInputs returns an error if nothing wrote some of what a kernel reads that reads all it is declared to.
func (c *command) checkInputs() *cudart.Error {
	for _, p := range c.pieces(func(a *cudart.Access) bool { return !a.Write }) {
		if w := p.memory.written; w != nil {
			if lo, hi := w.Gap(uint64(p.ptr), p.bytes); hi > 0 {
				return c.fail(launchFailed, "it reads bytes %d to %d of %s, which nothing has written", p.at(cudart.Ptr(lo)), p.at(cudart.Ptr(hi)), p.access.Name)
			}
		}
	}
	return nil
}

// spoiled is what is declared out of a function in Go, filled with a pattern before it runs: nobody sees what such a function writes.
type spoiled struct {
	pieces  []piece
	pattern []byte
}

// leastPattern is how many bytes of the pattern in a row count as not written.
const leastPattern = 8

func (c *command) spoilOutputs() *spoiled {
	s := &spoiled{pieces: c.pieces(wholly), pattern: binary.LittleEndian.AppendUint64(nil, rand.Uint64())}
	for _, p := range s.pieces {
		to := unsafe.Slice((*byte)(p.memory.at(p.ptr)), p.bytes)
		for i := range to {
			to[i] = s.pattern[i%leastPattern]
		}
	}
	return s
}

// check returns an error if the function has left some of the pattern.
func (s *spoiled) check(c *command) *cudart.Error {
	for _, p := range s.pieces {
		left := unsafe.Slice((*byte)(p.memory.at(p.ptr)), p.bytes)
		for lo := 0; lo+leastPattern <= len(left); lo += leastPattern {
			hi := lo
			for hi+leastPattern <= len(left) && bytes.Equal(left[hi:hi+leastPattern], s.pattern) {
				hi += leastPattern
			}
			if hi > lo {
				return c.unwritten(&p, p.ptr+cudart.Ptr(lo), p.ptr+cudart.Ptr(hi))
			}
		}
	}
	return nil
}
