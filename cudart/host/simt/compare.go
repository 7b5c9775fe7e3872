// Comparisons: setp and set.

package simt

import (
	"math/bits"

	"github.com/dagrun/dagrun/internal/ptx"
)

// comparisonOf is the modifier that says how a setp or set compares.
func (c *compiler) comparisonOf() ptx.Mod {
	return c.in.Form.First(ptx.ModEq, ptx.ModNe, ptx.ModLt, ptx.ModLe, ptx.ModGt, ptx.ModGe, ptx.ModLo, ptx.ModLs, ptx.ModHi, ptx.ModHs, ptx.ModEqu, ptx.ModNeu,
		ptx.ModLtu, ptx.ModLeu, ptx.ModGtu, ptx.ModGeu, ptx.ModNum, ptx.ModNan)
}

// comparison is the test of a setp or set.
func (c *compiler) comparison(t ptx.Type) func(a, b uint64) bool {
	f := c.in.Form
	mod := c.comparisonOf()
	var test func(a, b uint64) bool
	if t.Float() {
		if _, small := formatOf(t); small || t == ptx.F32 || t == ptx.F64 {
			if t != ptx.F16X2 && t != ptx.BF16X2 {
				test = floatCompare(mod, t, f.Has(ptx.ModFtz))
			}
		}
	} else {
		test = integerCompare(mod, t)
	}
	if test == nil {
		c.refuse("this comparison is not supported")
		return func(_, _ uint64) bool { return false }
	}
	return test
}

// combinePredicate is the .and, .or or .xor of a setp or set with a further predicate.
func (c *compiler) combinePredicate(at int) func(x *exec, yes uint32) uint32 {
	o, f := c.in.Operands, c.in.Form
	if len(o) <= at {
		return nil
	}
	with := c.truth(o[at])
	switch f.First(ptx.ModAnd, ptx.ModOr, ptx.ModXor) {
	case ptx.ModAnd:
		return func(x *exec, yes uint32) uint32 { return yes & with(x) }
	case ptx.ModOr:
		return func(x *exec, yes uint32) uint32 { return yes | with(x) }
	case ptx.ModXor:
		return func(x *exec, yes uint32) uint32 { return yes ^ with(x) }
	}
	c.refuse("a comparison with a third operand must say how to combine it")
	return nil
}

// compareLanes returns a mask of the lanes for which a test holds.
func compareLanes(x *exec, m uint32, a, b int, test func(a, b uint64) bool) uint32 {
	A, B := x.s[a], x.s[b]
	yes := uint32(0)
	for ; m != 0; m &= m - 1 {
		if i := bits.TrailingZeros32(m) & 31; test(A[i], B[i]) {
			yes |= 1 << i
		}
	}
	return yes
}

// setPredicate compiles setp.
func (c *compiler) setPredicate() op {
	o, t := c.in.Operands, c.in.Form.LastType()
	p, q := -1, -1
	if o[0].Kind == ptx.Pair {
		pair := c.f.Elements(o[0])
		p, q = c.predicate(pair[0]), c.predicate(pair[1])
	} else {
		p = c.predicate(o[0])
	}
	if t == ptx.F16X2 || t == ptx.BF16X2 {
		return c.setPredicateHalves(p, q)
	}
	test := c.comparison(t)
	a, b := c.source(o[1], t), c.source(o[2], t)
	with := c.combinePredicate(3)
	fast := fastCompare(c.comparisonOf(), t, c.in.Form.Has(ptx.ModFtz))
	return func(x *exec, m uint32) {
		var yes uint32
		if fast != nil {
			yes = fast(x.s[a], x.s[b])
		} else {
			yes = compareLanes(x, m, a, b, test)
		}
		no := ^yes
		if with != nil {
			yes, no = with(x, yes), with(x, no)
		}
		x.p[p] = x.p[p]&^m | yes&m
		if q >= 0 {
			x.p[q] = x.p[q]&^m | no&m
		}
	}
}

// set compiles set: the result is all ones or 1.0 if the test holds.
func (c *compiler) set() op {
	o, f := c.in.Operands, c.in.Form
	to, t := f.Types[0], f.LastType()
	truth := truncate(0xffffffff, to.Bits())
	switch to {
	case ptx.F32:
		truth = bits32(1)
	case ptx.F16, ptx.F16X2:
		truth = 0x3c00
	case ptx.BF16, ptx.BF16X2:
		truth = 0x3f80
	}
	if t == ptx.F16X2 || t == ptx.BF16X2 {
		return c.setHalves(truth)
	}
	test := c.comparison(t)
	d, a, b := c.target(o[0]), c.source(o[1], t), c.source(o[2], t)
	with := c.combinePredicate(3)
	return func(x *exec, m uint32) {
		yes := compareLanes(x, m, a, b, test)
		if with != nil {
			yes = with(x, yes)
		}
		for ; m != 0; m &= m - 1 {
			i := bits.TrailingZeros32(m) & 31
			x.s[d][i] = truth * uint64(yes>>i&1)
		}
	}
}

// setHalves compiles a set of two halves, each with its own result.
func (c *compiler) setHalves(truth uint64) op {
	o, f := c.in.Operands, c.in.Form
	test := c.comparison(halfOf(f.LastType()))
	truth &= 0xffff
	d, a, b := c.target(o[0]), c.source(o[1], ptx.B32), c.source(o[2], ptx.B32)
	with := c.combinePredicate(3)
	return func(x *exec, m uint32) {
		low, high := compareHalves(x, m, a, b, test, with)
		for ; m != 0; m &= m - 1 {
			i := firstLane(m)
			x.s[d][i] = truth*uint64(low>>i&1) | truth<<16*uint64(high>>i&1)
		}
	}
}

// compareHalves returns the lanes for which a test holds of the lower halves, and those for which it holds of the upper ones.
func compareHalves(x *exec, m uint32, a, b int, test func(a, b uint64) bool, with func(x *exec, yes uint32) uint32) (low, high uint32) {
	low = compareLanes(x, m, a, b, func(a, b uint64) bool { return test(a&0xffff, b&0xffff) })
	high = compareLanes(x, m, a, b, func(a, b uint64) bool { return test(a>>16&0xffff, b>>16&0xffff) })
	if with != nil {
		low, high = with(x, low), with(x, high)
	}
	return low, high
}

// halfOf is the type of each half of a pair.
func halfOf(t ptx.Type) ptx.Type {
	if t == ptx.BF16X2 {
		return ptx.BF16
	}
	return ptx.F16
}

// setPredicateHalves compiles a setp of two halves: the first predicate is that of the lower half.
func (c *compiler) setPredicateHalves(p, q int) op {
	o := c.in.Operands
	test := c.comparison(halfOf(c.in.Form.LastType()))
	a, b := c.source(o[1], ptx.B32), c.source(o[2], ptx.B32)
	with := c.combinePredicate(3)
	return func(x *exec, m uint32) {
		low, high := compareHalves(x, m, a, b, test, with)
		x.p[p] = x.p[p]&^m | low&m
		if q >= 0 {
			x.p[q] = x.p[q]&^m | high&m
		}
	}
}
