// Instructions on known numbers: the byte that a thread is said to access is the one that arithmetic in any precision says.

package access

import (
	"fmt"
	"math/big"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/internal/ptx"
)

// known is an instruction of a type: its word, the number of its sources, and its exact result, of which the target keeps the low bits;
// nil where PTX leaves the result open.
type known struct {
	word    string
	sources int // negative: the last is a number of 32 bits
	want    func(v [3]*big.Int) *big.Int
}

// kernelOf is a kernel that reads the byte of p at the result of some code in %h, %r or %a, all 16, 32 or 64 bits of it with a sign.
func kernelOf(code string, bits int, guard string) string {
	widen := map[int]string{16: "cvt.s64.s16 %a9, %h9;", 32: "cvt.s64.s32 %a9, %r9;", 64: ""}[bits]
	return head + ".entry k(.param .u64 p)\n{ .reg .b16 %h<12>; .reg .b32 %r<12>; .reg .b64 %a<12>, %p; .reg .pred c, d;\nld.param.u64 %p, [p];\n" +
		code + "\n" + widen + " add.s64 %a10, %p, %a9; " + guard + " ld.global.u8 %r10, [%a10]; ret; }"
}

// accessed returns which byte of p, which has none, one thread reads; false if it reads none.
func accessed(t *testing.T, text string) (at int64, escapes bool) {
	t.Helper()
	m, err := ptx.Parse(text)
	require.NoError(t, err, text)
	one := Launch{Grid: [3]uint32{1, 1, 1}, Block: [3]uint32{1, 1, 1}}
	w, escapes := Escape(m, m.Entries()[0], one, map[int]int64{0: 0})
	return w.Lo, escapes
}

func low(v *big.Int, bits int, signed bool) *big.Int {
	size := new(big.Int).Lsh(big.NewInt(1), uint(bits))
	v = new(big.Int).Mod(v, size)
	if signed && v.Bit(bits-1) == 1 {
		v.Sub(v, size)
	}
	return v
}

func TestThreadsAccessWhatArithmeticSays(t *testing.T) {
	b := big.NewInt
	choose := func(first bool, x, y *big.Int) *big.Int {
		if first {
			return x
		}
		return y
	}
	for _, name := range []string{"u16", "s16", "u32", "s32", "u64", "s64"} {
		bits, signed := map[string]int{"16": 16, "32": 32, "64": 64}[name[1:]], name[0] == 's'
		reg, plain := map[int]string{16: "%h", 32: "%r", 64: "%a"}[bits], fmt.Sprintf("b%d", bits)
		by := func(v *big.Int) uint { return uint(low(v, 32, false).Uint64()) }
		all := []known{
			{"add." + name, 2, func(v [3]*big.Int) *big.Int { return new(big.Int).Add(v[0], v[1]) }},
			{"sub." + name, 2, func(v [3]*big.Int) *big.Int { return new(big.Int).Sub(v[0], v[1]) }},
			{"mul.lo." + name, 2, func(v [3]*big.Int) *big.Int { return new(big.Int).Mul(v[0], v[1]) }},
			{"mad.lo." + name, 3, func(v [3]*big.Int) *big.Int { return new(big.Int).Add(new(big.Int).Mul(v[0], v[1]), v[2]) }},
			{"min." + name, 2, func(v [3]*big.Int) *big.Int { return choose(v[0].Cmp(v[1]) < 0, v[0], v[1]) }},
			{"max." + name, 2, func(v [3]*big.Int) *big.Int { return choose(v[0].Cmp(v[1]) > 0, v[0], v[1]) }},
			{"and." + plain, 2, func(v [3]*big.Int) *big.Int { return new(big.Int).And(v[0], v[1]) }},
			{"or." + plain, 2, func(v [3]*big.Int) *big.Int { return new(big.Int).Or(v[0], v[1]) }},
			{"xor." + plain, 2, func(v [3]*big.Int) *big.Int { return new(big.Int).Xor(v[0], v[1]) }},
			{"not." + plain, 1, func(v [3]*big.Int) *big.Int { return new(big.Int).Not(v[0]) }},
			{"mov." + plain, 1, func(v [3]*big.Int) *big.Int { return v[0] }},
			{"div." + name, 2, func(v [3]*big.Int) *big.Int {
				if v[1].Sign() == 0 {
					return nil
				}
				return new(big.Int).Quo(v[0], v[1])
			}},
			{"rem." + name, 2, func(v [3]*big.Int) *big.Int {
				if v[1].Sign() == 0 {
					return nil
				}
				return new(big.Int).Rem(v[0], v[1])
			}},
			{"shl." + plain, -2, func(v [3]*big.Int) *big.Int { return new(big.Int).Lsh(v[0], min(by(v[1]), 64)) }},
			{"shr." + name, -2, func(v [3]*big.Int) *big.Int { return new(big.Int).Rsh(v[0], min(by(v[1]), 64)) }},
		}
		if signed {
			all = append(all, known{"neg." + name, 1, func(v [3]*big.Int) *big.Int { return new(big.Int).Neg(v[0]) }})
		}
		edges := []*big.Int{b(0), b(1), b(2), b(7), b(31), b(1<<(bits/2) + 3), low(b(-1), bits, signed), low(b(-6), bits, signed)}
		top := new(big.Int).Lsh(b(1), uint(bits-1))
		edges = append(edges, low(top, bits, signed), low(new(big.Int).Sub(top, b(1)), bits, signed))
		for _, f := range all {
			for _, x := range edges {
				for _, y := range edges {
					v := [3]*big.Int{x, y, edges[3]}
					sources := f.sources
					code := fmt.Sprintf("mov.%s %s1, %d; mov.%[1]s %[2]s2, %[4]d; mov.%[1]s %[2]s3, %[5]d; ", plain, reg, low(x, bits, true), low(y, bits, true), low(v[2], bits, true))
					operands := []string{reg + "9", reg + "1", reg + "2", reg + "3"}
					if sources < 0 { // by a number of 32 bits
						sources, operands[2] = -sources, "%r4"
						code += fmt.Sprintf("mov.b32 %%r4, %d; ", low(y, 32, true))
					}
					code += f.word + " " + strings.Join(operands[:1+sources], ", ") + ";"
					want := f.want(v)
					if want == nil {
						continue
					}
					at, escapes := accessed(t, kernelOf(code, bits, ""))
					require.True(t, escapes, code)
					require.Equal(t, low(want, bits, true).Int64(), at, code)
				}
				if f.sources == 1 {
					break
				}
			}
		}
	}
}

// A product of twice as many bits keeps all of them; a conversion keeps the low bits of its source's type, with the sign or without.
func TestThreadsWidenAsTheTypeSays(t *testing.T) {
	for _, from := range []string{"u16", "s16", "u32", "s32"} {
		bits, signed := map[string]int{"16": 16, "32": 32}[from[1:]], from[0] == 's'
		reg := map[int]string{16: "%h", 32: "%r"}[bits]
		wide := map[int]string{16: "%r", 32: "%a"}[bits]
		for _, x := range []int64{0, 1, 3, 1<<(bits-1) - 1, 1 << (bits - 1), 1<<bits - 1} {
			for _, y := range []int64{1, 5, 1 << (bits - 1), 1<<bits - 2} {
				a, b := low(big.NewInt(x), bits, signed), low(big.NewInt(y), bits, signed)
				code := fmt.Sprintf("mov.b%d %s1, %d; mov.b%[1]d %[2]s2, %[4]d; ", bits, reg, low(a, bits, true), low(b, bits, true))
				product := new(big.Int).Mul(a, b)
				for word, want := range map[string]*big.Int{
					fmt.Sprintf("mul.wide.%s %s9, %s1, %[3]s2;", from, wide, reg):                                        product,
					fmt.Sprintf("mov.b%d %s3, -9; mad.wide.%s %[2]s9, %[4]s1, %[4]s2, %[2]s3;", 2*bits, wide, from, reg): new(big.Int).Sub(product, big.NewInt(9)),
					fmt.Sprintf("cvt.u64.%s %%a9, %s1;", from, reg):                                                      a,
				} {
					n := 2 * bits
					if strings.HasPrefix(word, "cvt") {
						n = 64
					}
					at, escapes := accessed(t, kernelOf(code+word, n, ""))
					require.True(t, escapes, word)
					require.Equal(t, low(want, n, true).Int64(), at, code+word)
				}
			}
		}
	}
}

// A thread passes a test if the numbers do, by the type's sign; where it cannot, nothing is accessed.
func TestThreadsPassTestsAsTheTypeSays(t *testing.T) {
	holds := map[string]func(c int) bool{
		"eq": func(c int) bool { return c == 0 }, "ne": func(c int) bool { return c != 0 }, "lt": func(c int) bool { return c < 0 },
		"le": func(c int) bool { return c <= 0 }, "gt": func(c int) bool { return c > 0 }, "ge": func(c int) bool { return c >= 0 },
		"lo": func(c int) bool { return c < 0 }, "ls": func(c int) bool { return c <= 0 }, "hi": func(c int) bool { return c > 0 }, "hs": func(c int) bool { return c >= 0 },
	}
	for _, name := range []string{"u16", "s16", "u32", "s32", "u64", "s64"} {
		bits, signed := map[string]int{"16": 16, "32": 32, "64": 64}[name[1:]], name[0] == 's'
		reg := map[int]string{16: "%h", 32: "%r", 64: "%a"}[bits]
		top := new(big.Int).Lsh(big.NewInt(1), uint(bits-1))
		edges := []*big.Int{big.NewInt(0), big.NewInt(1), low(big.NewInt(-1), bits, signed), low(top, bits, signed), low(new(big.Int).Sub(top, big.NewInt(1)), bits, signed)}
		for word, passes := range holds {
			if signed && strings.Contains("lo ls hi hs", word) {
				continue
			}
			for _, x := range edges {
				for _, y := range edges {
					for _, negated := range []bool{false, true} {
						code := fmt.Sprintf("mov.b%d %s1, %d; mov.b%[1]d %[2]s2, %[4]d; and.b%[1]d %[2]s9, %[2]s1, 1; setp.%[5]s.%[6]s c, %[2]s1, %[2]s2;", bits, reg, low(x, bits, true), low(y, bits, true), word, name)
						guard, pass := "@c", passes(x.Cmp(y))
						if negated {
							guard, pass = "@!c", !pass
						}
						at, escapes := accessed(t, kernelOf(code, bits, guard))
						require.Equal(t, pass, escapes, code+guard)
						if pass {
							require.EqualValues(t, x.Bit(0), at, code)
						}
					}
				}
			}
		}
	}
}
