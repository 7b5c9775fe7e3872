// Tests of division by a number that all lanes share.

package simt_test

import (
	"math/big"
	"testing"
)

func TestQuotientsOfASharedDivisor(t *testing.T) {
	for _, name := range []string{"u32", "s32", "u64", "s64"} {
		mask := ^uint64(0) >> (64 - widthOf(name))
		divisors := append(edgesOf(name, false), 5, 10, 13, 641, 0xfffffffe, 0xffffffff, 0x100000000, mask-1, mask-9)
		values := edgesOf(name, false)
		for v := range uint64(40) {
			values = append(values, v, 0x7fffffff-v, 0xffffffff-v, 13*v+1<<20, (0x100000000-v)&mask)
		}
		for word, f := range map[string]func(a, b *big.Int) *big.Int{
			"div.": func(a, b *big.Int) *big.Int { return new(big.Int).Quo(a, b) },
			"rem.": func(a, b *big.Int) *big.Int { return new(big.Int).Rem(a, b) },
		} {
			divide := integers(word+name, name+" "+name+" "+name, func(v [3]*big.Int) *big.Int { return f(v[0], v[1]) })
			code := word + name + " " + registerOf(name, "d") + ", " + registerOf(name, "a") + ", " + registerOf(name, "b") + ";"
			for _, by := range divisors {
				if by&mask != 0 { // PTX leaves a division by 0 open
					divide.run(t, code, name, [3][]uint64{values, {by & mask}, {0}})
				}
			}
		}
	}
}
