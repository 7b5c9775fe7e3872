// Instructions: one closure for each.

package simt

import (
	"math/bits"

	"github.com/dagrun/dagrun/internal/ptx"
)

// fewestOperands is how many operands an instruction has at least, of those whose number is not looked at elsewhere.
var fewestOperands = map[ptx.Opcode]int{
	ptx.OpMov: 2, ptx.OpCvta: 2, ptx.OpCvt: 2, ptx.OpSetp: 3, ptx.OpSet: 3, ptx.OpSelp: 4, ptx.OpSlct: 4, ptx.OpAnd: 3, ptx.OpOr: 3, ptx.OpXor: 3, ptx.OpNot: 2,
	ptx.OpAdd: 3, ptx.OpSub: 3, ptx.OpMad: 4, ptx.OpAddc: 3, ptx.OpSubc: 3, ptx.OpMadc: 4, ptx.OpShfl: 4, ptx.OpVote: 2, ptx.OpMatch: 3,
	ptx.OpRedux: 3, ptx.OpElect: 2,
	ptx.OpActivemask: 1, ptx.OpBfi: 5, ptx.OpLop3: 5, ptx.OpIsspacep: 2, ptx.OpTestp: 2, ptx.OpCopysign: 3, ptx.OpVideo: 3, ptx.OpMma: 4, ptx.OpMovmatrix: 2,
	ptx.OpCreatepolicy: 1, ptx.OpDp4a: 4, ptx.OpDp2a: 4, ptx.OpLd: 2, ptx.OpLdu: 2, ptx.OpSt: 2, ptx.OpAtom: 3, ptx.OpRed: 2, ptx.OpLdmatrix: 2, ptx.OpStmatrix: 2,
	ptx.OpTex: 2, ptx.OpMapa: 3, ptx.OpGetctarank: 2, ptx.OpAlloca: 2, ptx.OpStacksave: 1, ptx.OpStackrestore: 1, ptx.OpWmma: 2, ptx.OpMbarrier: 1,
}

// readsItsOwnWord says that the compiler of an instruction looks at every part of its word itself, so that parts which the parser does not
// name need not stop it.
func readsItsOwnWord(op ptx.Opcode) bool {
	switch op {
	case ptx.OpTex, ptx.OpWmma, ptx.OpCp, ptx.OpSt, ptx.OpRed, ptx.OpFence, ptx.OpPmevent:
		return true
	}
	return false
}

// instruction compiles c.in. It returns nil if the instruction does nothing, or cannot be run, which refuse has stored.
func (c *compiler) instruction() op {
	in := c.in
	f := in.Form
	if !f.Known && !readsItsOwnWord(f.Op) {
		c.refuse("")
		return nil
	}
	if len(in.Operands) < fewestOperands[f.Op] {
		c.refuse("an operand is missing")
		return nil
	}
	if f.Op == ptx.OpWmma {
		return c.wmma()
	}
	switch f.Op.Class() {
	case ptx.Memory:
		return c.memory()
	case ptx.Sync:
		return c.sync()
	}
	o := in.Operands
	switch f.Op {
	case ptx.OpMov:
		return c.move()
	case ptx.OpCvta:
		return c.convertAddress()
	case ptx.OpCvt:
		return c.convert()
	case ptx.OpSetp:
		return c.setPredicate()
	case ptx.OpSet:
		return c.set()
	case ptx.OpSelp:
		t := f.Type()
		d, a, b, p := c.target(o[0]), c.source(o[1], t), c.source(o[2], t), c.truth(o[3])
		n := t.Bits()
		c.operands.copies, c.operands.choose = selects, p
		keep := truncate(^uint64(0), n)
		return func(x *exec, m uint32) {
			D, A, B := x.s[d], x.s[a], x.s[b]
			yes := p(x)
			if m == fullMask {
				fastSelect(D, A, B, yes, keep)
				return
			}
			for ; m != 0; m &= m - 1 {
				i := bits.TrailingZeros32(m) & 31
				if yes>>i&1 != 0 {
					D[i] = truncate(A[i], n)
				} else {
					D[i] = truncate(B[i], n)
				}
			}
		}
	case ptx.OpSlct:
		t, by := f.Type(), f.LastType()
		n := t.Bits()
		positive := func(v uint64) bool { return int32(v) >= 0 }
		if by == ptx.F32 {
			positive = func(v uint64) bool { return float32Of(v) >= 0 }
		}
		return func3(func(a, b, k uint64) uint64 {
			if positive(k) {
				return truncate(a, n)
			}
			return truncate(b, n)
		}).op(c.target(o[0]), c.source(o[1], t), c.source(o[2], t), c.source(o[3], by))
	case ptx.OpAnd, ptx.OpOr, ptx.OpXor, ptx.OpNot:
		if f.Type() == ptx.Pred {
			return c.logic()
		}
	case ptx.OpAddc, ptx.OpSubc, ptx.OpMadc:
		return c.withCarry()
	case ptx.OpAdd, ptx.OpSub, ptx.OpMad:
		if f.Has(ptx.ModCc) {
			return c.withCarry()
		}
	case ptx.OpShfl:
		return c.shuffle()
	case ptx.OpVote:
		return c.vote()
	case ptx.OpMatch:
		d, p := c.pair(o[0])
		return match(f.Has(ptx.ModAll), d, p, c.source(o[1], f.Type()), f.Type().Bits())
	case ptx.OpRedux:
		return c.reduceLanes()
	case ptx.OpElect:
		d, p := c.pair(o[0])
		return elect(d, p)
	case ptx.OpActivemask:
		d := c.target(o[0])
		return func(x *exec, m uint32) {
			for left := m; left != 0; left &= left - 1 {
				x.s[d][bits.TrailingZeros32(left)&31] = uint64(m)
			}
		}
	case ptx.OpBfi:
		t := f.Type()
		n := t.Bits()
		d, a, b, p, l := c.target(o[0]), c.source(o[1], t), c.source(o[2], t), c.source(o[3], ptx.U32), c.source(o[4], ptx.U32)
		return func(x *exec, m uint32) {
			for ; m != 0; m &= m - 1 {
				i := bits.TrailingZeros32(m) & 31
				x.s[d][i] = insert(x.s[a][i], x.s[b][i], uint32(x.s[p][i])&0xff, uint32(x.s[l][i])&0xff, n)
			}
		}
	case ptx.OpLop3:
		if len(o) < 5 || o[4].Kind != ptx.Integer || f.Type() != ptx.B32 {
			c.refuse("this form of lop3 is not supported")
			return nil
		}
		if len(o) == 6 {
			return c.lookupWithPredicate()
		}
		return lookup(uint32(o[4].Value)).op(c.target(o[0]), c.source(o[1], ptx.B32), c.source(o[2], ptx.B32), c.source(o[3], ptx.B32))
	case ptx.OpIsspacep:
		return c.isSpace()
	case ptx.OpTestp:
		test := testProperty(f)
		p, a := c.predicate(o[0]), c.source(o[1], f.Type())
		return func(x *exec, m uint32) {
			yes := uint32(0)
			for left := m; left != 0; left &= left - 1 {
				if i := bits.TrailingZeros32(left) & 31; test(x.s[a][i]) {
					yes |= 1 << i
				}
			}
			x.p[p] = x.p[p]&^m | yes
		}
	case ptx.OpCopysign:
		sign := uint64(1) << (f.Type().Bits() - 1)
		return func2(func(a, b uint64) uint64 { return b&^sign | a&sign }).op(c.target(o[0]), c.source(o[1], f.Type()), c.source(o[2], f.Type()))
	case ptx.OpMapa:
		return c.mapAddress()
	case ptx.OpGetctarank:
		return c.rankOf()
	case ptx.OpVideo:
		return c.video()
	case ptx.OpMma:
		return c.mma()
	case ptx.OpMovmatrix:
		return moveMatrix(c.target(o[0]), c.source(o[1], ptx.B32))
	case ptx.OpCreatepolicy: // caches do not change what a kernel computes
		d := c.target(o[0])
		return func(x *exec, m uint32) {
			for ; m != 0; m &= m - 1 {
				x.s[d][firstLane(m)] = 0
			}
		}
	case ptx.OpDp4a, ptx.OpDp2a:
		return dotProduct(f).op(c.target(o[0]), c.source(o[1], ptx.B32), c.source(o[2], ptx.B32), c.source(o[3], ptx.B32))
	}
	return c.arithmetic()
}

// arithmetic compiles instructions with one target and one to three sources.
func (c *compiler) arithmetic() op {
	o, f := c.in.Operands, c.in.Form
	t := f.Type()
	_, small := formatOf(t)
	float := t == ptx.F32 || t == ptx.F64 || t == ptx.F32X2 || small
	if t.Float() && !float {
		c.refuse("")
		return nil
	}
	wanted := func(i int) ptx.Type {
		switch {
		case (f.Op == ptx.OpShl || f.Op == ptx.OpShr || f.Op == ptx.OpSzext || f.Op == ptx.OpBmsk) && i == 2, f.Op == ptx.OpBfe && i > 1,
			f.Op == ptx.OpShf && i == 3, f.Op == ptx.OpPrmt, f.Op == ptx.OpFns:
			return ptx.U32
		case f.Has(ptx.ModWide) && i == 3:
			return map[int]ptx.Type{16: ptx.B32, 32: ptx.B64}[t.Bits()]
		}
		return t
	}
	switch len(o) {
	case 2:
		g := integerUnary(f)
		if float {
			g = floatUnary(f)
		}
		if g != nil {
			d, a := c.target(o[0]), c.source(o[1], wanted(1))
			return fast1(f, d, a, g.op(d, a))
		}
	case 3:
		g := func2(nil)
		if float {
			g = c.floatPair(t)
		} else {
			g = integerBinary(f)
		}
		if g != nil {
			d, a, b := c.target(o[0]), c.source(o[1], wanted(1)), c.source(o[2], wanted(2))
			return fast2(f, d, a, b, g.op(d, a, b))
		}
	case 4:
		g := func3(nil)
		switch {
		case float && (f.Op == ptx.OpFma || f.Op == ptx.OpMad):
			g = floatFused(t, roundingOf(f))
		case float && (f.Op == ptx.OpMin || f.Op == ptx.OpMax):
			two := c.floatPair(t)
			g = func(a, b, d uint64) uint64 { return two(two(a, b), d) }
		case !float:
			g = integerTernary(f)
		}
		if g != nil {
			d, a, b, e := c.target(o[0]), c.source(o[1], wanted(1)), c.source(o[2], wanted(2)), c.source(o[3], wanted(3))
			if f.Op == ptx.OpBfe && o[2].Kind == ptx.Integer && o[3].Kind == ptx.Integer {
				return fastExtract(t, d, a, uint32(o[2].Value)&0xff, uint32(o[3].Value)&0xff, g.op(d, a, b, e))
			}
			return fast3(f, d, a, b, e, g.op(d, a, b, e))
		}
	}
	c.refuse("")
	return nil
}

// lookupWithPredicate compiles lop3.and and lop3.or: a predicate tells whether the result is not 0, combined with another one.
func (c *compiler) lookupWithPredicate() op {
	o, f := c.in.Operands, c.in.Form
	d, p := c.pair(o[0])
	with := c.truth(o[5])
	both := f.Has(ptx.ModAnd)
	if p < 0 || !both && !f.Has(ptx.ModOr) {
		c.refuse("this form of lop3 is not supported")
		return nil
	}
	compute := lookup(uint32(o[4].Value)).op(d, c.source(o[1], ptx.B32), c.source(o[2], ptx.B32), c.source(o[3], ptx.B32))
	return func(x *exec, m uint32) {
		other := with(x) // before the predicate is written, which may be the same
		compute(x, m)
		yes := uint32(0)
		for left := m; left != 0; left &= left - 1 {
			if i := firstLane(left); uint32(x.s[d][i]) != 0 {
				yes |= 1 << i
			}
		}
		if both {
			yes &= other
		} else {
			yes |= other
		}
		x.p[p] = x.p[p]&^m | yes&m
	}
}

// floatPair returns an instruction of two sources on floats.
func (c *compiler) floatPair(t ptx.Type) func2 {
	f := c.in.Form
	r := roundingOf(f)
	switch f.Op {
	case ptx.OpAdd:
		return floatBinary(t, addition, r)
	case ptx.OpSub:
		return floatBinary(t, subtraction, r)
	case ptx.OpMul:
		return floatBinary(t, multiplication, r)
	case ptx.OpDiv:
		return floatBinary(t, division, r)
	case ptx.OpMin, ptx.OpMax:
		return floatMinMax(t, f.Op == ptx.OpMin, f.Has(ptx.ModNaN), r.ftz, magnitudesOf(f))
	}
	return nil
}

// logic compiles and, or, xor and not of predicates.
func (c *compiler) logic() op {
	o := c.in.Operands
	p, a := c.predicate(o[0]), c.truth(o[1])
	b := a
	if len(o) > 2 {
		b = c.truth(o[2])
	}
	var f func(a, b uint32) uint32
	switch c.in.Form.Op {
	case ptx.OpAnd:
		f = func(a, b uint32) uint32 { return a & b }
	case ptx.OpOr:
		f = func(a, b uint32) uint32 { return a | b }
	case ptx.OpXor:
		f = func(a, b uint32) uint32 { return a ^ b }
	default:
		f = func(a, _ uint32) uint32 { return ^a }
	}
	return func(x *exec, m uint32) { x.p[p] = x.p[p]&^m | f(a(x), b(x))&m }
}

// withCarry compiles add, sub and mad with a carry in or out.
func (c *compiler) withCarry() op {
	o, f := c.in.Operands, c.in.Form
	t := f.Type()
	n := t.Bits()
	in := f.Op == ptx.OpAddc || f.Op == ptx.OpSubc || f.Op == ptx.OpMadc
	out := f.Has(ptx.ModCc)
	minus := f.Op == ptx.OpSub || f.Op == ptx.OpSubc
	multiply := f.Op == ptx.OpMad || f.Op == ptx.OpMadc
	if n != 32 && n != 64 {
		c.refuse("")
		return nil
	}
	d, a, b := c.target(o[0]), c.source(o[1], t), c.source(o[2], t)
	addend := b
	if multiply {
		addend = c.source(o[3], t)
	}
	high, signed := f.Has(ptx.ModHi), t.Signed()
	return func(x *exec, m uint32) {
		carries := x.frame.carry
		for ; m != 0; m &= m - 1 {
			i := bits.TrailingZeros32(m) & 31
			p, q := truncate(x.s[a][i], n), truncate(x.s[addend][i], n)
			if multiply {
				hi, lo := multiplied(p, x.s[b][i], n, signed)
				if p = lo; high {
					p = hi
				}
			}
			carry := uint64(0)
			if in {
				carry = uint64(carries >> i & 1)
				if minus { // the flag of a subtraction is the carry of adding the complement
					carry ^= 1
				}
			}
			var v, over uint64
			if minus {
				v, over = bits.Sub64(p, q, carry)
			} else if v, over = bits.Add64(p, q, carry); n == 32 {
				over = v >> 32 & 1
			}
			x.s[d][i] = truncate(v, n)
			if minus {
				over ^= 1
			}
			if out {
				carries = carries&^(1<<i) | uint32(over)<<i
			}
		}
		x.frame.carry = carries
	}
}

// pair is a register with an optional predicate: d or d|p.
func (c *compiler) pair(o ptx.Operand) (d, p int) {
	if o.Kind != ptx.Pair {
		return c.target(o), -1
	}
	parts := c.f.Elements(o)
	return c.target(parts[0]), c.predicate(parts[1])
}

func (c *compiler) shuffle() op {
	o, f := c.in.Operands, c.in.Form
	d, p := c.pair(o[0])
	return shuffle(f.First(ptx.ModUp, ptx.ModDown, ptx.ModBfly, ptx.ModIdx), d, p, c.source(o[1], ptx.B32), c.source(o[2], ptx.B32), c.source(o[3], ptx.B32))
}

func (c *compiler) vote() op {
	o, f := c.in.Operands, c.in.Form
	mode := f.First(ptx.ModAll, ptx.ModAny, ptx.ModUni, ptx.ModBallot)
	source := c.truth(o[1])
	if mode == ptx.ModBallot {
		return vote(mode, c.target(o[0]), 0, source)
	}
	return vote(mode, 0, c.predicate(o[0]), source)
}

func (c *compiler) reduceLanes() op {
	o, f := c.in.Operands, c.in.Form
	t := f.Type()
	g := combiner(f.First(ptx.ModAdd, ptx.ModMin, ptx.ModMax, ptx.ModAnd, ptx.ModOr, ptx.ModXor), t)
	switch least := f.Has(ptx.ModMin); {
	case t == ptx.F32 && (least || f.Has(ptx.ModMax)):
		of := magnitudesOf(f)
		two := floatMinMax(t, least, f.Has(ptx.ModNaN), false, of)
		g = func(a, b, _ uint64) uint64 { return two(a, b) }
		if of == plainMagnitudes { // also of one lane
			return reduce(g, c.target(o[0]), c.source(o[1], t), func(v uint64) uint64 { return two(v, v) })
		}
	case g == nil || t.Bits() != 32 || t.Float():
		c.refuse("")
		return nil
	}
	return reduce(g, c.target(o[0]), c.source(o[1], t), func(v uint64) uint64 { return v })
}
