// Every form of floating-point arithmetic, held against rational arithmetic that is rounded once by the definition of the format.

package simt_test

import (
	"fmt"
	"math/big"
	"strings"
	"testing"
)

// layout is a floating-point format.
type layout struct{ exponent, fraction int }

var layouts = map[string]layout{"f16": {5, 10}, "bf16": {8, 7}, "f32": {8, 23}, "f64": {11, 52}}

func (l layout) bits() int        { return 1 + l.exponent + l.fraction }
func (l layout) bias() int        { return 1<<(l.exponent-1) - 1 }
func (l layout) infinity() uint64 { return (1<<l.exponent - 1) << l.fraction }
func (l layout) nan() uint64      { return 1<<(l.bits()-1) - 1 } // PTX's canonical one

// real is a value: a number, or an infinity, or no number.
type real struct {
	x             *big.Rat // nil: see below
	negative      bool
	infinite, nan bool
}

func (l layout) decode(v uint64) real {
	e, m := int(v>>l.fraction)&(1<<l.exponent-1), v&(1<<l.fraction-1)
	r := real{negative: v>>(l.bits()-1)&1 != 0}
	switch {
	case e == 1<<l.exponent-1 && m != 0:
		r.nan = true
		return r
	case e == 1<<l.exponent-1:
		r.infinite = true
		return r
	case e == 0:
		e = 1
	default:
		m |= 1 << l.fraction
	}
	r.x = scaled(new(big.Rat).SetInt(new(big.Int).SetUint64(m)), e-l.bias()-l.fraction)
	if r.negative {
		r.x.Neg(r.x)
	}
	return r
}

// scaled is x times a power of two.
func scaled(x *big.Rat, power int) *big.Rat {
	p := new(big.Rat).SetInt(new(big.Int).Lsh(big.NewInt(1), uint(max(power, -power))))
	if power < 0 {
		return new(big.Rat).Quo(x, p)
	}
	return new(big.Rat).Mul(x, p)
}

// exponentOf is the greatest e with 2^e <= |x|.
func exponentOf(x *big.Rat) int {
	e := x.Num().BitLen() - x.Denom().BitLen()
	if scaled(new(big.Rat).Abs(x), -e).Cmp(big.NewRat(1, 1)) < 0 {
		e--
	}
	return e
}

// how is how a form rounds.
type how struct {
	mode                 string // rn, rz, rm, rp, rna
	ftz, sat, relu, most bool
}

func howOf(word string) how {
	h := how{mode: "rn"}
	for _, part := range strings.Split(word, ".") {
		switch part {
		case "rz", "rm", "rp", "rna":
			h.mode = part
		case "ftz":
			h.ftz = true
		case "sat":
			h.sat = true
		case "relu":
			h.relu = true
		case "satfinite":
			h.most = true
		}
	}
	return h
}

// wholeOf rounds a number that is not negative to an integer.
func wholeOf(x *big.Rat, mode string, negative bool) *big.Int {
	n, rest := new(big.Int).QuoRem(x.Num(), x.Denom(), new(big.Int))
	half := new(big.Int).Lsh(rest, 1).Cmp(x.Denom())
	up := false
	switch mode {
	case "rz":
	case "rm":
		up = negative && rest.Sign() > 0
	case "rp":
		up = !negative && rest.Sign() > 0
	case "rna":
		up = half >= 0
	default:
		up = half > 0 || half == 0 && n.Bit(0) != 0
	}
	if up {
		n.Add(n, big.NewInt(1))
	}
	return n
}

// encode rounds a value.
func (l layout) encode(r real, h how) uint64 {
	sign := uint64(0)
	if r.negative {
		sign = 1 << (l.bits() - 1)
	}
	one := uint64(l.bias()) << l.fraction
	switch {
	case r.nan && h.sat:
		return 0
	case r.nan:
		return l.nan()
	case h.sat && r.negative, h.relu && r.negative:
		return 0
	case r.infinite && h.sat:
		return one
	case r.infinite && h.most:
		return sign | l.infinity() - 1
	case r.infinite:
		return sign | l.infinity()
	case r.x.Sign() == 0:
		return sign
	}
	x := new(big.Rat).Abs(r.x)
	e := max(exponentOf(x), 1-l.bias())
	n := wholeOf(scaled(x, l.fraction-e), h.mode, r.negative).Uint64()
	out := uint64(0)
	if n>>l.fraction != 0 {
		out = uint64(e+l.bias()-1)<<l.fraction + n // the leading bit adds one to the exponent
	} else {
		out = n
	}
	if out >= l.infinity() {
		out = l.infinity()
		if h.most || h.mode == "rz" || h.mode == "rm" && !r.negative || h.mode == "rp" && r.negative {
			out--
		}
	}
	if h.ftz && out < 1<<l.fraction {
		out = 0
	}
	if h.sat && out > one {
		out = one
	}
	return sign | out
}

// input decodes a source; ftz takes denormals as zero.
func (l layout) input(v uint64, h how) real {
	r := l.decode(v)
	if h.ftz && r.x != nil && v>>l.fraction&(1<<l.exponent-1) == 0 {
		r.x = new(big.Rat)
	}
	return r
}

func (r real) zero() bool { return r.x != nil && r.x.Sign() == 0 }

// added is a + b.
func added(a, b real, h how) real {
	switch {
	case a.nan || b.nan || a.infinite && b.infinite && a.negative != b.negative:
		return real{nan: true}
	case a.infinite:
		return a
	case b.infinite:
		return b
	}
	r := real{x: new(big.Rat).Add(a.x, b.x)}
	switch r.x.Sign() {
	case 0:
		r.negative = a.negative && b.negative && a.zero() && b.zero()
		if a.negative != b.negative || !a.zero() { // x - x
			r.negative = h.mode == "rm" || a.negative && b.negative
		}
	default:
		r.negative = r.x.Sign() < 0
	}
	return r
}

// multiplied is a * b.
func multiplied(a, b real) real {
	r := real{negative: a.negative != b.negative}
	switch {
	case a.nan || b.nan || a.infinite && b.zero() || b.infinite && a.zero():
		return real{nan: true}
	case a.infinite || b.infinite:
		r.infinite = true
		return r
	}
	r.x = new(big.Rat).Mul(a.x, b.x)
	return r
}

// divided is a / b.
func divided(a, b real) real {
	r := real{negative: a.negative != b.negative}
	switch {
	case a.nan || b.nan || a.infinite && b.infinite || a.zero() && b.zero():
		return real{nan: true}
	case a.infinite || b.zero():
		r.infinite = true
		return r
	case b.infinite:
		r.x = new(big.Rat)
		return r
	}
	r.x = new(big.Rat).Quo(a.x, b.x)
	return r
}

// rooted is the square root: exact, or so close that it rounds as the exact one does.
func rooted(a real) real {
	switch {
	case a.nan || a.negative && !a.zero():
		return real{nan: true}
	case a.infinite || a.zero():
		return a
	}
	root := new(big.Float).SetPrec(400).SetRat(a.x)
	x, _ := root.Sqrt(root).Rat(nil)
	return real{x: x}
}

func negated(a real) real {
	a.negative = !a.negative
	if a.x != nil {
		a.x = new(big.Rat).Neg(a.x)
	}
	return a
}

// reals makes a form of one type, or of pairs of values of it in one register.
func reals(word, name string, sources int, f func(v [3]real, h how) real) form {
	h := howOf(word)
	one, paired := strings.CutSuffix(name, "x2")
	l := layouts[one]
	types := strings.TrimSpace(strings.Repeat(name+" ", sources+1))
	return form{word: word, types: types, want: func(v [3]uint64) (uint64, bool) {
		open := false // whether .relu makes 0 of -0
		compute := func(shift int) uint64 {
			var in [3]real
			for i := range sources {
				in[i] = l.input(v[i]>>shift&(^uint64(0)>>(64-l.bits())), h)
			}
			r := f(in, h)
			if h.relu && r.negative && r.zero() {
				open = true
			}
			return l.encode(r, h) << shift
		}
		if paired {
			return compute(0) | compute(l.bits()), !open
		}
		return compute(0), !open
	}}
}

func TestEveryFormOfFloats(t *testing.T) {
	var forms []form
	add := func(v [3]real, h how) real { return added(v[0], v[1], h) }
	sub := func(v [3]real, h how) real { return added(v[0], negated(v[1]), h) }
	mul := func(v [3]real, h how) real { return multiplied(v[0], v[1]) }
	div := func(v [3]real, h how) real { return divided(v[0], v[1]) }
	fma := func(v [3]real, h how) real { return added(multiplied(v[0], v[1]), v[2], h) }
	root := func(v [3]real, h how) real { return rooted(v[0]) }
	inverse := func(v [3]real, h how) real { return divided(real{x: big.NewRat(1, 1)}, v[0]) }
	for _, mode := range []string{".rn", ".rz", ".rm", ".rp"} {
		for _, ftz := range []string{"", ".ftz"} {
			for _, sat := range []string{"", ".sat"} {
				for word, f := range map[string]func([3]real, how) real{"add": add, "sub": sub, "mul": mul} {
					forms = append(forms, reals(word+mode+ftz+sat+".f32", "f32", 2, f))
				}
				forms = append(forms, reals("fma"+mode+ftz+sat+".f32", "f32", 3, fma))
			}
			forms = append(forms, reals("div"+mode+ftz+".f32", "f32", 2, div), reals("sqrt"+mode+ftz+".f32", "f32", 1, root), reals("rcp"+mode+ftz+".f32", "f32", 1, inverse),
				reals("add"+mode+ftz+".f32x2", "f32x2", 2, add), reals("mul"+mode+ftz+".f32x2", "f32x2", 2, mul), reals("fma"+mode+ftz+".f32x2", "f32x2", 3, fma))
		}
		forms = append(forms, reals("add"+mode+".f64", "f64", 2, add), reals("sub"+mode+".f64", "f64", 2, sub), reals("mul"+mode+".f64", "f64", 2, mul), reals("div"+mode+".f64", "f64", 2, div),
			reals("fma"+mode+".f64", "f64", 3, fma), reals("mad"+mode+".f64", "f64", 3, fma), reals("sqrt"+mode+".f64", "f64", 1, root), reals("rcp"+mode+".f64", "f64", 1, inverse))
	}
	for _, x2 := range []string{"", "x2"} {
		for _, suffix := range []string{"", ".rn", ".rn.ftz", ".rn.sat", ".rn.ftz.sat"} {
			for word, f := range map[string]func([3]real, how) real{"add": add, "sub": sub, "mul": mul} {
				forms = append(forms, reals(word+suffix+".f16"+x2, "f16"+x2, 2, f))
				if suffix == "" || suffix == ".rn" {
					forms = append(forms, reals(word+suffix+".bf16"+x2, "bf16"+x2, 2, f))
				}
			}
		}
		for _, suffix := range []string{"", ".ftz", ".sat", ".relu", ".ftz.sat", ".ftz.relu"} {
			forms = append(forms, reals("fma.rn"+suffix+".f16"+x2, "f16"+x2, 3, fma))
		}
		forms = append(forms, reals("fma.rn.bf16"+x2, "bf16"+x2, 3, fma), reals("fma.rn.relu.bf16"+x2, "bf16"+x2, 3, fma))
	}
	for _, f := range append(append(forms, signForms()...), orderForms()...) {
		f.check(t)
	}
}

// signForms are abs, neg, copysign and testp.
func signForms() (forms []form) {
	for name, l := range layouts {
		top := uint64(1) << (l.bits() - 1)
		add := func(word, types string, f func(a, b uint64) uint64) {
			forms = append(forms, form{word, types, func(v [3]uint64) (uint64, bool) { return f(v[0], v[1]), !l.decode(v[0]).nan }})
		}
		add("abs."+name, name+" "+name, func(a, _ uint64) uint64 { return a &^ top })
		add("neg."+name, name+" "+name, func(a, _ uint64) uint64 { return a ^ top })
		if name == "f32" || name == "f64" {
			add("copysign."+name, name+" "+name+" "+name, func(a, b uint64) uint64 { return a&top | b&^top })
		}
		if name == "f32" || name == "f16" {
			flushed := func(a uint64) uint64 {
				if a&l.infinity() == 0 {
					return a & top
				}
				return a
			}
			add("abs.ftz."+name, name+" "+name, func(a, _ uint64) uint64 { return flushed(a) &^ top })
			add("neg.ftz."+name, name+" "+name, func(a, _ uint64) uint64 { return flushed(a) ^ top })
		}
		if name != "f32" && name != "f64" {
			pair := name + "x2"
			each := func(word string, f func(a uint64) uint64) {
				forms = append(forms, form{word + "." + pair, pair + " " + pair, func(v [3]uint64) (uint64, bool) {
					a, b := v[0]&0xffff, v[0]>>16
					return f(a) | f(b)<<16, !l.decode(a).nan && !l.decode(b).nan
				}})
			}
			each("abs", func(a uint64) uint64 { return a &^ top })
			each("neg", func(a uint64) uint64 { return a ^ top })
			continue
		}
		for property, holds := range map[string]func(r real, normal bool) bool{
			"finite": func(r real, _ bool) bool { return r.x != nil }, "infinite": func(r real, _ bool) bool { return r.infinite },
			"number": func(r real, _ bool) bool { return !r.nan }, "notanumber": func(r real, _ bool) bool { return r.nan },
			"normal": func(r real, normal bool) bool { return r.x != nil && normal }, "subnormal": func(r real, normal bool) bool { return r.x != nil && !normal && !r.zero() },
		} {
			forms = append(forms, form{"testp." + property + "." + name, "pred " + name, func(v [3]uint64) (uint64, bool) {
				return truth(holds(l.decode(v[0]), v[0]&l.infinity() != 0)).Uint64(), true
			}})
		}
	}
	return forms
}

// compared is the order of two numbers.
func compared(a, b real) int {
	value := func(r real) *big.Rat {
		if !r.infinite {
			return r.x
		}
		x := scaled(big.NewRat(1, 1), 5000)
		if r.negative {
			x.Neg(x)
		}
		return x
	}
	return value(a).Cmp(value(b))
}

// orderForms are min, max, setp, set and slct on floats.
func orderForms() (forms []form) {
	for name, l := range layouts {
		narrow := name == "f16" || name == "bf16"
		for _, least := range []bool{true, false} {
			word := map[bool]string{true: "min", false: "max"}[least]
			for _, modifiers := range []string{"", ".ftz", ".NaN", ".ftz.NaN", ".xorsign.abs", ".ftz.NaN.xorsign.abs"} {
				if name == "f64" && modifiers != "" || name == "bf16" && strings.Contains(modifiers, ".ftz") {
					continue
				}
				choose := func(v [3]real, h how) real {
					a, b := v[0], v[1]
					sign := false
					if strings.Contains(modifiers, "xorsign") {
						sign = a.negative != b.negative
						for _, r := range []*real{&a, &b} {
							if r.negative {
								*r = negated(*r)
							}
						}
					}
					r := a
					switch {
					case a.nan && b.nan || strings.Contains(modifiers, "NaN") && (a.nan || b.nan):
						return real{nan: true}
					case a.nan:
						r = b
					case b.nan:
					case compared(a, b) == 0: // -0 is less than 0
						if a.negative != least {
							r = b
						}
					case (compared(a, b) < 0) != least:
						r = b
					}
					if sign {
						r = negated(r)
					}
					return r
				}
				forms = append(forms, reals(word+modifiers+"."+name, name, 2, choose))
				if narrow {
					forms = append(forms, reals(word+modifiers+"."+name+"x2", name+"x2", 2, choose))
				}
			}
		}
		for _, c := range []string{"eq", "ne", "lt", "le", "gt", "ge", "equ", "neu", "ltu", "leu", "gtu", "geu", "num", "nan"} {
			holds := func(v [3]uint64) bool {
				a, b := l.decode(v[0]), l.decode(v[1])
				none := a.nan || b.nan
				switch {
				case c == "num":
					return !none
				case c == "nan":
					return none
				case none:
					return len(c) == 3
				}
				return comparisonHolds(c[:2], compared(a, b))
			}
			forms = append(forms, form{"setp." + c + "." + name, "pred " + name + " " + name, func(v [3]uint64) (uint64, bool) { return truth(holds(v)).Uint64(), true }},
				form{"set." + c + ".u32." + name, "u32 " + name + " " + name, func(v [3]uint64) (uint64, bool) { return 0xffffffff * truth(holds(v)).Uint64(), true }})
			if narrow {
				one := l.encode(real{x: big.NewRat(1, 1)}, how{})
				forms = append(forms, form{fmt.Sprintf("set.%s.%[2]sx2.%[2]sx2", c, name), fmt.Sprintf("%[1]sx2 %[1]sx2 %[1]sx2", name), func(v [3]uint64) (uint64, bool) {
					low, high := [3]uint64{v[0] & 0xffff, v[1] & 0xffff}, [3]uint64{v[0] >> 16, v[1] >> 16}
					return one*truth(holds(low)).Uint64() | one*truth(holds(high)).Uint64()<<16, true
				}})
			}
		}
	}
	for _, ftz := range []bool{false, true} {
		forms = append(forms, form{"slct" + map[bool]string{true: ".ftz"}[ftz] + ".b32.f32", "b32 b32 b32 f32", func(v [3]uint64) (uint64, bool) {
			r := layouts["f32"].input(v[2], how{ftz: ftz})
			if !r.nan && (!r.negative || r.zero()) {
				return v[0], true
			}
			return v[1], true
		}})
	}
	return forms
}
