// Tests of intervals against the numbers that they hold.

package access

import (
	"math"
	"math/big"
	"testing"

	"github.com/stretchr/testify/require"
)

// As a value of a type, an interval is what its numbers are modulo the type's size, if those follow each other, and else all values.
func TestIntervalsAsValuesOfAType(t *testing.T) {
	wrapped, all := 0, 0
	for _, signed := range []bool{false, true} {
		least, most := limits(4, signed)
		value := func(v int64) int64 { return ((v-least)%16+16)%16 + least }
		for lo := int64(-50); lo <= 50; lo++ {
			for hi := lo; hi < lo+20; hi++ {
				from, to, ok := between(lo, hi).as(4, signed)
				require.True(t, ok)
				if first := value(lo); first+hi-lo <= most {
					require.Equal(t, [2]int64{first, first + hi - lo}, [2]int64{from, to}, "%d..%d", lo, hi)
					wrapped++
				} else {
					require.Equal(t, [2]int64{least, most}, [2]int64{from, to}, "%d..%d", lo, hi)
					all++
				}
			}
		}
	}
	require.Positive(t, wrapped)
	require.Positive(t, all)
	for _, c := range []struct {
		s      span
		bits   int
		signed bool
		lo, hi int64
		ok     bool
	}{
		{between(-5, 7), 64, true, -5, 7, true},
		{between(-5, 7), 64, false, 0, math.MaxInt64, false},
		{between(5, math.MaxInt64), 64, false, 5, math.MaxInt64, true},
		{anything, 64, true, math.MinInt64, math.MaxInt64, true},
		{anything, 64, false, 0, math.MaxInt64, false},
		{anything, 32, false, 0, 1<<32 - 1, true},
		{mixture, 32, true, -1 << 31, 1<<31 - 1, true},
		{span{base: 0, lo: 1, hi: 2, ok: true}, 32, true, -1 << 31, 1<<31 - 1, true},
		{between(-1, -1), 32, false, 1<<32 - 1, 1<<32 - 1, true},
		{between(1<<63-1, 1<<63-1), 32, true, -1, -1, true},
	} {
		lo, hi, ok := c.s.as(c.bits, c.signed)
		require.Equal(t, c.ok, ok, "%+v", c)
		require.Equal(t, [2]int64{c.lo, c.hi}, [2]int64{lo, hi}, "%+v", c)
	}
}

// Sums, products and negations of intervals are the smallest intervals that hold the results; beyond 64 bits they hold anything.
func TestArithmeticOnIntervals(t *testing.T) {
	edges := []int64{math.MinInt64, math.MinInt64 + 1, -1 << 32, -3, -1, 0, 1, 2, 7, 1 << 31, 1 << 33, math.MaxInt64 - 1, math.MaxInt64}
	fits := func(v *big.Int) bool { return v.IsInt64() }
	for _, a := range edges {
		for _, b := range edges {
			x, y := big.NewInt(a), big.NewInt(b)
			sum, ok := sumOf(a, b)
			require.Equal(t, fits(new(big.Int).Add(x, y)), ok, "%d + %d", a, b)
			require.Equal(t, a+b, sum)
			product, ok := productOf(a, b)
			require.Equal(t, fits(new(big.Int).Mul(x, y)), ok, "%d * %d", a, b)
			if ok {
				require.Equal(t, a*b, product)
			}
		}
	}
	ends := []int64{-7, -2, -1, 0, 1, 3, 8}
	for i, lo := range ends {
		for _, hi := range ends[i:] {
			s := between(lo, hi)
			require.Equal(t, between(-hi, -lo), s.negated())
			for j, low := range ends {
				for _, high := range ends[j:] {
					o := between(low, high)
					least, most := int64(math.MaxInt64), int64(math.MinInt64)
					for a := lo; a <= hi; a++ {
						for b := low; b <= high; b++ {
							least, most = min(least, a*b), max(most, a*b)
						}
					}
					require.Equal(t, between(least, most), s.times(o))
					require.Equal(t, between(lo+low, hi+high), s.plus(o))
					require.Equal(t, between(min(lo, low), max(hi, high)), s.hull(o))
				}
			}
		}
	}
	whole := between(math.MinInt64, math.MaxInt64)
	require.Equal(t, anything, whole.negated())
	require.Equal(t, anything, whole.plus(exactly(1)))
	require.Equal(t, anything, whole.plus(exactly(-1)))
	require.Equal(t, anything, whole.times(exactly(2)))
	require.Equal(t, anything, exactly(3).hull(anything))
}

// One address and a number is an address; two addresses, or an address that is turned around or multiplied, may be anything.
func TestAddressesInIntervals(t *testing.T) {
	p, q := span{base: 0, lo: 8, hi: 16, ok: true}, span{base: 1, ok: true}
	require.Equal(t, span{base: 0, lo: 9, hi: 18, ok: true}, p.plus(between(1, 2)))
	require.Equal(t, span{base: 0, lo: 9, hi: 18, ok: true}, between(1, 2).plus(p))
	require.Equal(t, span{base: 0}, p.plus(anything))
	require.Equal(t, span{base: 0, lo: 0, hi: 16, ok: true}, p.hull(span{base: 0, ok: true}))
	for _, s := range []span{p.plus(q), p.plus(mixture), mixture.plus(exactly(1)), p.negated(), p.times(exactly(1)), exactly(1).times(p), p.hull(q), p.hull(exactly(1)), mixture.hull(p), mixture.negated()} {
		require.Equal(t, mixture, s)
	}
	require.True(t, p.pointer() && mixture.pointer() && !anything.pointer() && !exactly(0).pointer())
}
