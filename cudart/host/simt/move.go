// Instructions that move values: between registers and vectors, clocks, addresses of other state spaces, and conversions.

package simt

import (
	"math/bits"
	"time"

	"github.com/dagrun/dagrun/internal/ptx"
)

// move compiles mov: between registers, of predicates, of clocks, and between a register and the parts of a vector.
func (c *compiler) move() op {
	o, t := c.in.Operands, c.in.Form.Type()
	c.operands.copies = copies
	if c.in.Form.Vector > 1 || t == ptx.B128 {
		return c.moveVector()
	}
	switch {
	case t == ptx.Pred:
		p, source := c.predicate(o[0]), c.truth(o[1])
		return func(x *exec, m uint32) { x.p[p] = x.p[p]&^m | source(x)&m }
	case c.isVector(o[0]):
		parts := c.slots(o[0], c.target)
		n := t.Bits() / len(parts)
		a := c.source(o[1], t)
		return func(x *exec, m uint32) {
			for ; m != 0; m &= m - 1 {
				i := bits.TrailingZeros32(m) & 31
				v := x.s[a][i]
				for k, d := range parts {
					x.s[d][i] = truncate(v>>(n*k), n)
				}
			}
		}
	case c.isVector(o[1]):
		n := t.Bits() / c.lengthOf(o[1])
		parts := c.slots(o[1], func(e ptx.Operand) int {
			return c.source(e, map[int]ptx.Type{8: ptx.B8, 16: ptx.B16, 32: ptx.B32, 64: ptx.B64}[n])
		})
		d := c.target(o[0])
		return func(x *exec, m uint32) {
			for ; m != 0; m &= m - 1 {
				i := bits.TrailingZeros32(m) & 31
				v := uint64(0)
				for k, s := range parts {
					v |= truncate(x.s[s][i], n) << (n * k)
				}
				x.s[d][i] = v
			}
		}
	}
	if o[1].Kind == ptx.SpecialKind {
		if clock := clockOf(ptx.Special(o[1].Index)); clock != nil {
			d := c.target(o[0])
			return func(x *exec, m uint32) {
				now := clock()
				for ; m != 0; m &= m - 1 {
					x.s[d][bits.TrailingZeros32(m)&31] = now
				}
			}
		}
	}
	n := t.Bits()
	d, a := c.target(o[0]), c.source(o[1], t)
	return func(x *exec, m uint32) {
		D, A := x.s[d], x.s[a]
		if m == fullMask && n == 64 {
			*D = *A
			return
		}
		if m == fullMask && n == 32 {
			for i := range D {
				D[i] = uint64(uint32(A[i]))
			}
			return
		}
		for ; m != 0; m &= m - 1 {
			i := bits.TrailingZeros32(m) & 31
			D[i] = truncate(A[i], n)
		}
	}
}

// moveVector compiles a mov of several values.
func (c *compiler) moveVector() op {
	o, t := c.in.Operands, c.in.Form.Type()
	if t == ptx.B128 {
		t = ptx.B64
	}
	to := c.slots(o[0], c.target)
	var from []int
	if o[1].Kind == ptx.SpecialKind && o[1].Part == ptx.Whole {
		for _, part := range []ptx.Part{ptx.X, ptx.Y, ptx.Z, ptx.W}[:min(len(to), 4)] {
			component := o[1]
			component.Part = part
			from = append(from, c.source(component, t))
		}
	} else {
		from = c.slots(o[1], func(e ptx.Operand) int { return c.source(e, t) })
	}
	if len(to) != len(from) || len(to) > 8 {
		c.refuse("the two sides of the move have different lengths")
		return nil
	}
	n := t.Bits()
	return func(x *exec, m uint32) {
		for ; m != 0; m &= m - 1 {
			i := firstLane(m)
			var values [8]uint64
			for k, s := range from {
				values[k&7] = truncate(x.s[s][i], n)
			}
			for k, d := range to {
				x.s[d][i] = values[k&7]
			}
		}
	}
}

// began is the time at which clocks started.
var began = time.Now()

// clockOf reads a special register that changes; a clock cycle is a nanosecond here.
func clockOf(s ptx.Special) func() uint64 {
	cycles := func() uint64 { return uint64(time.Since(began).Nanoseconds()) }
	wall := func() uint64 { return uint64(time.Now().UnixNano()) }
	switch s {
	case ptx.Clock:
		return func() uint64 { return uint64(uint32(cycles())) }
	case ptx.ClockHi:
		return func() uint64 { return cycles() >> 32 }
	case ptx.Clock64:
		return cycles
	case ptx.Globaltimer:
		return wall
	case ptx.GlobaltimerLo:
		return func() uint64 { return uint64(uint32(wall())) }
	case ptx.GlobaltimerHi:
		return func() uint64 { return wall() >> 32 }
	}
	return nil
}

// convertAddress compiles cvta.
func (c *compiler) convertAddress() op {
	o, f := c.in.Operands, c.in.Form
	w := window(f.Space())
	d, a := c.target(o[0]), c.source(o[1], ptx.B64)
	if f.Has(ptx.ModTo) {
		if f.Space() == ptx.Param { // accesses through it treat it as generic
			w = 0
		}
		return loop1(func(D, A *lanes) {
			for i := range D {
				D[i] = A[i] &^ w
			}
		}).op(d, a, func1(func(a uint64) uint64 { return a &^ w }).op(d, a))
	}
	return loop1(func(D, A *lanes) {
		for i := range D {
			D[i] = A[i] | w
		}
	}).op(d, a, func1(func(a uint64) uint64 { return a | w }).op(d, a))
}

// isSpace compiles isspacep.
func (c *compiler) isSpace() op {
	o, f := c.in.Operands, c.in.Form
	w := window(f.Space())
	constants := f.Space() == ptx.Const
	p, a := c.predicate(o[0]), c.source(o[1], ptx.B64)
	return func(x *exec, m uint32) {
		yes := uint32(0)
		for left := m; left != 0; left &= left - 1 {
			i := bits.TrailingZeros32(left) & 31
			v := x.s[a][i]
			same := v&^inWindow == w
			if w == 0 {
				same = same && x.block.run.kernel.program.constant(v) == constants
			}
			if same {
				yes |= 1 << i
			}
		}
		x.p[p] = x.p[p]&^m | yes
	}
}

// constant reports whether an address lies in a constant variable.
func (p *Program) constant(address uint64) bool {
	for i, at := range p.places {
		if v := &p.module.Variables[i]; at != 0 && v.Space == ptx.Const && address >= at && address < at+uint64(v.Size) {
			return true
		}
	}
	return false
}

// convert compiles cvt. Its result is as wide as the register.
func (c *compiler) convert() op {
	o, f := c.in.Operands, c.in.Form
	if f.Has(ptx.ModPack) && len(o) > 2 {
		g := packingIntegers(f)
		if g == nil {
			c.refuse("")
			return nil
		}
		d, a, b := c.target(o[0]), c.source(o[1], ptx.S32), c.source(o[2], ptx.S32)
		if len(o) > 3 {
			return g.op(d, a, b, c.source(o[3], ptx.B32))
		}
		return g.op(d, a, b, c.constant(0))
	}
	if len(o) == 3 {
		if g := packing(f); g != nil {
			return g.op(c.target(o[0]), c.source(o[1], ptx.F32), c.source(o[2], ptx.F32))
		}
		c.refuse("")
		return nil
	}
	g := conversion(f)
	if g == nil || len(o) > 2 || f.Has(ptx.ModRs) {
		c.refuse("")
		return nil
	}
	to, wide := f.Types[0], 0
	if to.Signed() && o[0].Kind == ptx.RegisterKind {
		n := to.Bits()
		if wide = c.f.Registers[o[0].Index].Type.Bits(); wide > n {
			inner := g
			g = func(a uint64) uint64 { return truncate(uint64(signExtend(inner(a), n)), wide) }
		}
	}
	d, a := c.target(o[0]), c.source(o[1], f.Types[1])
	if len(f.Types) != 2 {
		return g.op(d, a)
	}
	return fastConvert(f, wide, d, a, g)
}
