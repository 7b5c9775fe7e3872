// Instructions that touch memory or order accesses: loads, stores, atomics, copies, fences.

package simt

import (
	"github.com/dagrun/dagrun/internal/ptx"
)

// sync compiles barriers of warps, fences and waits.
func (c *compiler) sync() op {
	switch f := c.in.Form; f.Op {
	case ptx.OpBar: // of the warp: that all have come is what matters
		return func(x *exec, m uint32) {
			if x.check != nil {
				x.warpBarrier(m)
			}
		}
	case ptx.OpMbarrier:
		return c.mbarrier()
	case ptx.OpMembar, ptx.OpFence:
		if !hasOnly(f, "proxy", "alias", "async", "global", "mbarrier_init", "sync_restrict::shared::cta", "sync_restrict::shared::cluster") {
			break
		}
		cta := f.Has(ptx.ModCta)
		return func(x *exec, m uint32) {
			fence(&x.block.run.fence)
			if x.check != nil {
				x.fenceLanes(m, cta)
			}
		}
	case ptx.OpPmevent:
		if hasOnly(f, "mask") {
			return nil
		}
	case ptx.OpNanosleep, ptx.OpGriddepcontrol, ptx.OpSetmaxnreg:
		return nil
	}
	c.refuse("")
	return nil
}

// memory compiles loads, stores, atomics, copies and prefetches.
func (c *compiler) memory() op {
	o, f := c.in.Operands, c.in.Form
	t := f.Type()
	switch f.Op {
	case ptx.OpLd, ptx.OpLdu:
		if t == ptx.B128 {
			t = ptx.B64
		}
		if t.Size() == 0 || t.Bits() > 64 {
			break
		}
		targets := c.slots(o[0], c.target)
		at := c.locate(o[1], f)
		var extend func(uint64) uint64
		if t.Signed() && t.Bits() < 64 {
			n := t.Bits()
			first := o[0]
			if first.Kind == ptx.Vector {
				first = c.f.Elements(first)[0]
			}
			wide := 64
			if first.Kind == ptx.RegisterKind {
				wide = c.f.Registers[first.Index].Type.Bits()
			}
			if wide > n {
				extend = func(v uint64) uint64 { return truncate(uint64(signExtend(v, n)), wide) }
			}
		}
		if at.kind&strongs == 0 {
			general := load(at, targets, t.Size(), read, extend)
			if extend != nil {
				return general
			}
			return fastLoad(at, targets, t.Size(), general)
		}
		polled := load(at, targets, t.Size(), readStrong, extend)
		return func(x *exec, m uint32) {
			x.polls = true
			polled(x, m)
		}
	case ptx.OpSt:
		if t == ptx.B128 {
			t = ptx.B64
		}
		switch {
		case f.Has(ptx.ModAsync):
			return c.storeAsync()
		case f.Has(ptx.ModBulk):
			return c.storeBulk()
		}
		if t.Size() == 0 || t.Bits() > 64 || !f.Known {
			break
		}
		at := c.locate(o[0], f)
		at.kind |= writes
		sources := c.slots(o[1], func(e ptx.Operand) int { return c.source(e, t) })
		c.operands.copies = keeps
		if at.kind&strongs != 0 {
			return store(at, sources, t.Size(), writeStrong)
		}
		return fastStore(at, sources, t.Size(), store(at, sources, t.Size(), write))
	case ptx.OpAtom, ptx.OpRed:
		if f.Has(ptx.ModAsync) {
			return c.storeAsync()
		}
		return c.atomic()
	case ptx.OpPrefetch, ptx.OpPrefetchu, ptx.OpApplypriority, ptx.OpDiscard:
		return nil
	case ptx.OpLdmatrix:
		if f.Has(ptx.ModM8n8) && t == ptx.B16 {
			return loadMatrix(c.locate(o[1], f), c.slots(o[0], c.target), f.Has(ptx.ModTrans))
		}
	case ptx.OpStmatrix:
		if f.Has(ptx.ModM8n8) && t == ptx.B16 {
			at := c.locate(o[0], f)
			at.kind |= writes
			return storeMatrix(at, c.slots(o[1], func(e ptx.Operand) int { return c.source(e, ptx.B32) }), f.Has(ptx.ModTrans))
		}
	case ptx.OpCp:
		return c.copy()
	case ptx.OpTex:
		return c.fetch()
	}
	c.refuse("")
	return nil
}

func (c *compiler) atomic() op {
	o, f := c.in.Operands, c.in.Form
	t := f.Type()
	g := combiner(f.First(ptx.ModAnd, ptx.ModOr, ptx.ModXor, ptx.ModExch, ptx.ModCas, ptx.ModInc, ptx.ModDec, ptx.ModMin, ptx.ModMax, ptx.ModAdd), t)
	if g == nil || t.Size() < 2 || t.Size() > 8 || f.Vector > 1 || t == ptx.F32X2 || !f.Known {
		c.refuse("")
		return nil
	}
	target := -1
	if f.Op == ptx.OpAtom {
		target = c.target(o[0])
		o = o[1:]
	}
	at := c.locate(o[0], f)
	at.kind |= writes | updates
	b, third := c.source(o[1], t), -1
	if len(o) > 2 {
		third = c.source(o[2], t)
	}
	adds := f.Has(ptx.ModAdd) && t.Size() == 4 && (t == ptx.U32 || t == ptx.S32)
	outside := g
	if f.Has(ptx.ModAdd) && t == ptx.F32 { // only shared memory keeps denormals
		sum := floatBinary(t, addition, rounding{ftz: true})
		outside = func(old, b, _ uint64) uint64 { return sum(old, b) }
	}
	return atomics(at, target, b, third, t.Size(), adds, f.Has(ptx.ModExch) && target >= 0, g, outside)
}
