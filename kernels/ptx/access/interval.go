// Intervals of integers, with a base: what a register may hold in any thread of a known launch.

package access

import (
	"math"

	"github.com/dagrun/dagrun/kernels/ptx"
)

// span is a base plus a number from lo to hi. A number in a register of w bits is any that is equal to it modulo 2 to the w.
type span struct {
	base   int32 // a field, elsewhere, or -1
	lo, hi int64
	ok     bool // false: any number
	mixed  bool // not ok, and it may contain an address
}

// elsewhere is the base of the module's variables and of shared and local memory.
const elsewhere int32 = -2

var (
	anything = span{base: -1}
	mixture  = span{base: -1, mixed: true}
)

func (s span) pointer() bool { return s.base != -1 || s.mixed }

func exactly(v int64) span { return between(v, v) }

func between(lo, hi int64) span { return span{base: -1, lo: lo, hi: hi, ok: true} }

// limits returns the smallest and the largest number of a type.
func limits(bits int, signed bool) (lo, hi int64) {
	switch {
	case bits >= 64 && signed:
		return math.MinInt64, math.MaxInt64
	case signed:
		return -1 << (bits - 1), 1<<(bits-1) - 1
	case bits >= 64:
		return 0, math.MaxInt64
	}
	return 0, 1<<bits - 1
}

// as returns the number as a value of a type; ok is false if nothing bounds it. Unsigned 64-bit numbers beyond the signed ones count as
// unbounded.
func (s span) as(bits int, signed bool) (lo, hi int64, ok bool) {
	lo, hi = limits(bits, signed)
	if !s.ok || s.pointer() {
		return lo, hi, bits < 64 || signed
	}
	if s.lo >= lo && s.hi <= hi {
		return s.lo, s.hi, true
	}
	if bits < 64 {
		size := int64(1) << bits
		turns := (s.lo - lo) / size
		if (s.lo-lo)%size < 0 {
			turns--
		}
		if from, to := s.lo-turns*size, s.hi-turns*size; from >= lo && to <= hi {
			return from, to, true
		}
	}
	return lo, hi, bits < 64 || signed
}

func sumOf(a, b int64) (int64, bool) {
	c := a + b
	return c, (c >= a) == (b >= 0)
}

func productOf(a, b int64) (int64, bool) {
	if a == 0 || b == 0 {
		return 0, true
	}
	c := a * b
	return c, c/b == a && !(a == -1 && b == math.MinInt64) && !(b == -1 && a == math.MinInt64)
}

func (s span) plus(t span) span {
	if s.mixed || t.mixed || s.pointer() && t.pointer() {
		return mixture
	}
	base := s.base
	if base == -1 {
		base = t.base
	}
	lo, ok1 := sumOf(s.lo, t.lo)
	hi, ok2 := sumOf(s.hi, t.hi)
	if !s.ok || !t.ok || !ok1 || !ok2 {
		return span{base: base}
	}
	return span{base: base, lo: lo, hi: hi, ok: true}
}

func (s span) negated() span {
	if s.pointer() {
		return mixture
	}
	if !s.ok || s.lo == math.MinInt64 {
		return anything
	}
	return between(-s.hi, -s.lo)
}

func (s span) times(t span) span {
	if s.pointer() || t.pointer() {
		return mixture
	}
	if !s.ok || !t.ok {
		return anything
	}
	lo, hi := int64(math.MaxInt64), int64(math.MinInt64)
	for _, a := range []int64{s.lo, s.hi} {
		for _, b := range []int64{t.lo, t.hi} {
			c, ok := productOf(a, b)
			if !ok {
				return anything
			}
			lo, hi = min(lo, c), max(hi, c)
		}
	}
	return between(lo, hi)
}

// hull returns a span that contains both.
func (s span) hull(t span) span {
	switch {
	case s.mixed || t.mixed || s.base != t.base:
		return mixture
	case !s.ok || !t.ok:
		return span{base: s.base}
	}
	return span{base: s.base, lo: min(s.lo, t.lo), hi: max(s.hi, t.hi), ok: true}
}

// comparison is the test of a setp, for the type of its operands.
type comparison uint8

const (
	noComparison comparison = iota
	equal
	unequal
	less
	atMost
	greater
	atLeast
)

// comparisonOf returns the test of a setp's form. It is unsigned by the test's name or by the type.
func comparisonOf(form *ptx.Form) (c comparison, signed bool) {
	t := form.LastType()
	signed = t.Signed()
	if t.Float() || len(form.Mods) != 1 {
		return noComparison, false
	}
	switch form.Mods[0] {
	case ptx.ModEq:
		c = equal
	case ptx.ModNe:
		c = unequal
	case ptx.ModLt, ptx.ModLo:
		c = less
	case ptx.ModLe, ptx.ModLs:
		c = atMost
	case ptx.ModGt, ptx.ModHi:
		c = greater
	case ptx.ModGe, ptx.ModHs:
		c = atLeast
	}
	return c, signed
}

// not returns the opposite test, flipped returns the test with exchanged operands.
func (c comparison) not() comparison {
	return [...]comparison{noComparison, unequal, equal, atLeast, greater, atMost, less}[c]
}

func (c comparison) flipped() comparison {
	return [...]comparison{noComparison, equal, unequal, greater, atLeast, less, atMost}[c]
}

// narrow returns the part of lo to hi that passes a test against a number from low to high; false if nothing does.
func (c comparison) narrow(lo, hi, low, high int64) (int64, int64, bool) {
	switch c {
	case equal:
		lo, hi = max(lo, low), min(hi, high)
	case unequal:
		if low == high && lo == low {
			lo++
		}
		if low == high && hi == low {
			hi--
		}
	case less:
		if high == math.MinInt64 {
			return lo, hi, false
		}
		hi = min(hi, high-1)
	case atMost:
		hi = min(hi, high)
	case greater:
		if low == math.MaxInt64 {
			return lo, hi, false
		}
		lo = max(lo, low+1)
	case atLeast:
		lo = max(lo, low)
	}
	return lo, hi, lo <= hi
}
