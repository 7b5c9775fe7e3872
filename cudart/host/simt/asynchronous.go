// Copies and stores that a GPU makes in the background and counts in an mbarrier: cp.async, cp.async.bulk, cp.reduce.async.bulk, st.async,
// red.async and st.bulk. Here they are made at once, which is one of the times at which they may be made.

package simt

import (
	"strings"
	"unsafe"

	"github.com/dagrun/dagrun/internal/ptx"
)

// knownParts are the parts of instruction words that the parser names.
var knownParts = func() map[string]bool {
	all := map[string]bool{"v2": true, "v4": true, "v8": true}
	for m := ptx.ModOther + 1; m.String() != ptx.ModOther.String(); m++ {
		all[m.String()] = true
	}
	for t := ptx.NoType + 1; t.String() != ptx.NoType.String(); t++ {
		all[t.String()] = true
	}
	for _, s := range []string{"generic", "param", "global", "const", "shared", "shared::cta", "shared::cluster", "local"} {
		all[s] = true
	}
	return all
}()

// hasPart reports whether an instruction's word has a part.
func hasPart(f *ptx.Form, part string) bool {
	for _, p := range strings.Split(f.Text, ".")[1:] {
		if p == part {
			return true
		}
	}
	return false
}

// hasOnly reports whether the parts of an instruction's word that the parser does not name are among these, or hints for caches.
func hasOnly(f *ptx.Form, parts ...string) bool {
next:
	for _, p := range strings.Split(f.Text, ".")[1:] {
		if knownParts[p] || strings.HasPrefix(p, "L1::") || strings.HasPrefix(p, "L2::") || p == "L1" || p == "L2" {
			continue
		}
		for _, known := range parts {
			if p == known {
				continue next
			}
		}
		return false
	}
	return true
}

const countsBytes = "mbarrier::complete_tx::bytes"

// piece is how many bytes of a large copy are checked together.
const piece = 16

// copy compiles cp.async, cp.async.bulk and cp.reduce.async.bulk. Waiting for them does nothing.
func (c *compiler) copy() op {
	o, f := c.in.Operands, c.in.Form
	switch {
	case !f.Has(ptx.ModAsync) || f.Has(ptx.ModTensor) || !hasOnly(f, countsBytes, "bulk_group", "read", "reduce", "prefetch", "mbarrier", "noinc"):
	case f.Has(ptx.ModCommitGroup), f.Has(ptx.ModWaitGroup), f.Has(ptx.ModWaitAll), hasPart(f, "prefetch"):
		return nil
	case hasPart(f, "mbarrier"):
		return c.copyArrives()
	case f.Has(ptx.ModBulk):
		return c.copyBulk()
	case len(o) >= 3 && o[2].Kind == ptx.Integer && (o[2].Value == 4 || o[2].Value == 8 || o[2].Value == 16):
		return c.copyFew()
	}
	c.refuse("")
	return nil
}

// copyFew compiles cp.async of 4, 8 or 16 bytes. Behind the size may be how many of them to read, or a predicate to read none; the rest
// becomes zero.
func (c *compiler) copyFew() op {
	o, f := c.in.Operands, c.in.Form
	to := c.locateIn(o[0], ptx.Shared, writes)
	from := c.locateIn(o[1], ptx.Global, 0)
	used := -1
	var ignored func(x *exec) uint32
	if hint := hasPart(f, "L2::cache_hint"); hint && len(o) > 4 || !hint && len(o) > 3 {
		if c.isPredicate(o[3]) {
			ignored = c.truth(o[3])
		} else {
			used = c.source(o[3], ptx.U32)
		}
	}
	return copyAsync(to, from, int(o[2].Value), used, ignored)
}

// copyArrives compiles cp.async.mbarrier.arrive. All copies are made by then. Without .noinc the arrival is one that the mbarrier does not
// expect, so that it changes nothing.
func (c *compiler) copyArrives() op {
	o, f := c.in.Operands, c.in.Form
	if !f.Has(ptx.ModArrive) || len(o) != 1 {
		c.refuse("")
		return nil
	}
	at := c.mbarrierAt(o[0], writes|updates|acquire|release)
	if !hasPart(f, "noinc") {
		return nil
	}
	return func(x *exec, m uint32) {
		for ; m != 0; m &= m - 1 {
			i := firstLane(m)
			x.count(at, x.s[at.base][i]+at.offset, i, change{arrive: 1})
		}
	}
}

// copyBulk compiles cp.async.bulk and cp.reduce.async.bulk.
func (c *compiler) copyBulk() op {
	o, f := c.in.Operands, c.in.Form
	counts, reduces := hasPart(f, countsBytes), hasPart(f, "reduce")
	if len(f.Spaces) < 2 || len(o) < 3 || counts && len(o) < 4 {
		c.refuse("")
		return nil
	}
	to, from := c.locateIn(o[0], f.Spaces[0], writes), c.locateIn(o[1], f.Spaces[1], 0)
	n := c.source(o[2], ptx.U32)
	var counter *located
	if counts {
		counter = c.asyncMbarrier(o[3])
	}
	var merge func(old, b, c uint64) uint64
	size := piece
	if reduces {
		t := f.Type()
		merge, size = combiner(f.First(ptx.ModAnd, ptx.ModOr, ptx.ModXor, ptx.ModAdd, ptx.ModInc, ptx.ModDec, ptx.ModMin, ptx.ModMax), t), t.Size()
		if merge == nil || size < 2 || size > 8 {
			c.refuse("")
			return nil
		}
		to.kind |= updates | strongs
	}
	return func(x *exec, m uint32) {
		for ; m != 0; m &= m - 1 {
			i := firstLane(m)
			a, b, bytes := x.s[to.base][i]+to.offset, x.s[from.base][i]+from.offset, int(uint32(x.s[n][i]))
			for _, address := range [2]uint64{a, b} {
				if address%piece != 0 {
					x.misaligned(address, piece, i)
				}
			}
			if bytes%piece != 0 {
				x.fail(Misaligned, i, "a copy of %d bytes, which is not a multiple of %d", bytes, piece)
			}
			for at := 0; at < bytes; at += size {
				p, q := to.find(x, a+uint64(at), size, i), from.find(x, b+uint64(at), size, i)
				if x.check != nil {
					x.mustBeWritten(from.window, b+uint64(at), size, i)
					x.note(from.window, b+uint64(at), size, i, from.kind)
					if reduces {
						x.mustBeWritten(to.window, a+uint64(at), size, i)
					}
					x.note(to.window, a+uint64(at), size, i, to.kind)
				}
				if reduces {
					v := read(q, size)
					update(p, size, func(old uint64) uint64 { return merge(old, v, 0) })
					continue
				}
				*(*[piece]byte)(p) = *(*[piece]byte)(q)
			}
			if counter != nil {
				x.count(counter, x.s[counter.base][i]+counter.offset, i, change{bytes: -int64(bytes)})
			}
		}
	}
}

// asyncMbarrier is the mbarrier that counts the bytes of a copy or store.
func (c *compiler) asyncMbarrier(o ptx.Operand) *located {
	at := c.locateIn(o, ptx.SharedCluster, writes|updates|acquire|release|strongs)
	return &at
}

// storeAsync compiles st.async and red.async.
func (c *compiler) storeAsync() op {
	o, f := c.in.Operands, c.in.Form
	t := f.Type()
	if len(o) != 3 || !hasPart(f, countsBytes) || !hasOnly(f, countsBytes) || f.Space() != ptx.SharedCluster || t.Size() < 4 || t.Size() > 8 {
		c.refuse("")
		return nil
	}
	to := c.locateIn(o[0], ptx.SharedCluster, writes)
	sources := c.slots(o[1], func(e ptx.Operand) int { return c.source(e, t) })
	counter := c.asyncMbarrier(o[2])
	merge := combine(func(_, b, _ uint64) uint64 { return b })
	if f.Op == ptx.OpRed {
		to.kind |= updates | strongs
		merge = combiner(f.First(ptx.ModAnd, ptx.ModOr, ptx.ModXor, ptx.ModAdd, ptx.ModInc, ptx.ModDec, ptx.ModMin, ptx.ModMax), t)
		if merge == nil || len(sources) != 1 {
			c.refuse("")
			return nil
		}
	}
	size := t.Size()
	total := size * len(sources)
	return func(x *exec, m uint32) {
		for ; m != 0; m &= m - 1 {
			i := firstLane(m)
			a := x.s[to.base][i] + to.offset
			if a%uint64(total) != 0 {
				x.misaligned(a, total, i)
			}
			p := to.find(x, a, total, i)
			if x.check != nil {
				if to.kind&updates != 0 {
					x.mustBeWritten(to.window, a, total, i)
				}
				x.note(to.window, a, total, i, to.kind)
			}
			for k, s := range sources {
				v := truncate(x.s[s][i], 8*size)
				update(unsafe.Add(p, k*size), size, func(old uint64) uint64 { return merge(old, v, 0) })
			}
			x.count(counter, x.s[counter.base][i]+counter.offset, i, change{bytes: -int64(total)})
		}
	}
}

// storeBulk compiles st.bulk, which writes zeros to shared memory.
func (c *compiler) storeBulk() op {
	o, f := c.in.Operands, c.in.Form
	if len(o) != 3 || o[2].Kind != ptx.Integer || o[2].Value != 0 || !hasOnly(f) {
		c.refuse("")
		return nil
	}
	to, n := c.locate(o[0], f), c.source(o[1], ptx.U64)
	to.kind |= writes
	return func(x *exec, m uint32) {
		for ; m != 0; m &= m - 1 {
			i := firstLane(m)
			a, bytes := x.s[to.base][i]+to.offset, x.s[n][i]
			if a%8 != 0 || bytes%8 != 0 {
				x.misaligned(a|bytes, 8, i)
			}
			for at := uint64(0); at < bytes; at += 8 {
				p := to.find(x, a+at, 8, i)
				if x.check != nil {
					x.note(to.window, a+at, 8, i, to.kind)
				}
				*(*uint64)(p) = 0
			}
		}
	}
}
