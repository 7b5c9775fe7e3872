// The instructions on parts of words: vadd, vsub, vabsdiff, vmin, vmax, vshl, vshr, vset and vmad, and those on two halves or four
// bytes at once.

package simt

import (
	"strings"

	"github.com/dagrun/dagrun/internal/ptx"
)

// part reads the bytes of a word that a selector names, as a type.
func part(v uint64, p ptx.Part, t ptx.Type) int64 {
	n := 32
	switch {
	case p >= ptx.Byte0 && p <= ptx.Byte3:
		v, n = v>>(8*int(p-ptx.Byte0)), 8
	case p == ptx.Half0 || p == ptx.Half1:
		v, n = v>>(16*int(p-ptx.Half0)), 16
	}
	if t.Signed() {
		return signExtend(v, n)
	}
	return int64(truncate(v, n))
}

// merge puts a result into the bytes of another word that a selector names.
func merge(v uint64, p ptx.Part, into uint64) uint64 {
	switch {
	case p >= ptx.Byte0 && p <= ptx.Byte3:
		shift := 8 * int(p-ptx.Byte0)
		return into&^(0xff<<shift) | v&0xff<<shift
	case p == ptx.Half0 || p == ptx.Half1:
		shift := 16 * int(p-ptx.Half0)
		return into&^(0xffff<<shift) | v&0xffff<<shift
	}
	return v
}

// limits are the least and the greatest number of a type's width.
func limits(signed bool, n int) (low, high int64) {
	if signed {
		return -1 << (n - 1), 1<<(n-1) - 1
	}
	return 0, 1<<n - 1
}

// videoOperation is the first step of such an instruction, or nil.
func videoOperation(name string, f *ptx.Form) func(a, b int64) int64 {
	wrap := f.Has(ptx.ModWrap)
	count := func(b int64) int64 {
		if wrap {
			return b & 31
		}
		return min(int64(uint32(b)), 32)
	}
	switch name {
	case "vadd":
		return func(a, b int64) int64 { return a + b }
	case "vsub":
		return func(a, b int64) int64 { return a - b }
	case "vabsdiff":
		return func(a, b int64) int64 { return max(a-b, b-a) }
	case "vmin":
		return func(a, b int64) int64 { return min(a, b) }
	case "vmax":
		return func(a, b int64) int64 { return max(a, b) }
	case "vavrg":
		return func(a, b int64) int64 { return (a + b + 1) >> 1 }
	case "vshl":
		return func(a, b int64) int64 { return int64(uint32(uint64(uint32(a)) << count(b))) }
	case "vshr":
		return func(a, b int64) int64 { return a >> count(b) }
	case "vset":
		test := ordered(f.First(ptx.ModEq, ptx.ModNe, ptx.ModLt, ptx.ModLe, ptx.ModGt, ptx.ModGe),
			func(a, b uint64) int { return compare(int64(a), int64(b)) })
		if test == nil {
			return nil
		}
		return func(a, b int64) int64 {
			if test(uint64(a), uint64(b)) {
				return 1
			}
			return 0
		}
	}
	return nil
}

// video compiles an instruction of the family.
func (c *compiler) video() op {
	o, f := c.in.Operands, c.in.Form
	name, _, _ := strings.Cut(f.Text, ".")
	types := f.Types
	plain := strings.TrimRight(name, "24")
	g := videoOperation(plain, f)
	switch {
	case name == "vmad" && len(types) == 3 && len(o) == 4:
		return c.videoMultiply()
	case g == nil || len(types) < 2 || len(o) < 3:
		c.refuse("")
		return nil
	case plain != name:
		return c.videoParts(g, strings.HasSuffix(name, "4"))
	}
	signedResult := types[0].Signed()
	ta, tb := types[len(types)-2], types[len(types)-1]
	if plain == "vset" {
		signedResult = false
	}
	d, a, b := c.target(whole(o[0])), c.source(whole(o[1]), ptx.B32), c.source(whole(o[2]), ptx.B32)
	third := -1
	if len(o) > 3 {
		third = c.source(o[3], ptx.B32)
	}
	sat := f.Has(ptx.ModSat)
	second := f.First(ptx.ModAdd, ptx.ModMin, ptx.ModMax)
	pa, pb, pd := o[1].Part, o[2].Part, o[0].Part
	width := 32
	switch {
	case pd >= ptx.Byte0 && pd <= ptx.Byte3:
		width = 8
	case pd == ptx.Half0 || pd == ptx.Half1:
		width = 16
	}
	one := func(va, vb, vc uint64) uint64 {
		v := g(part(va, pa, ta), part(vb, pb, tb))
		if sat {
			low, high := limits(signedResult, width)
			v = min(max(v, low), high)
		}
		switch {
		case third < 0:
			return uint64(uint32(v))
		case pd != ptx.Whole:
			return uint64(uint32(merge(uint64(v), pd, vc)))
		}
		w, r := int64(int32(vc)), int64(int32(v))
		if !signedResult {
			w, r = int64(uint32(vc)), int64(uint32(v))
		}
		switch second {
		case ptx.ModMin:
			r = min(r, w)
		case ptx.ModMax:
			r = max(r, w)
		default:
			r += w
		}
		return uint64(uint32(r))
	}
	if third < 0 {
		return func2(func(a, b uint64) uint64 { return one(a, b, 0) }).op(d, a, b)
	}
	return func3(one).op(d, a, b, third)
}

// whole is an operand without its selector.
func whole(o ptx.Operand) ptx.Operand {
	if o.Part >= ptx.Byte0 {
		o.Part = ptx.Whole
	}
	return o
}

// videoMultiply is vmad: a product of parts plus a number, shifted.
func (c *compiler) videoMultiply() op {
	o, f := c.in.Operands, c.in.Form
	t := f.Types
	shift := 0
	switch {
	case f.Has(ptx.ModShr7):
		shift = 7
	case f.Has(ptx.ModShr15):
		shift = 15
	}
	pa, pb := o[1].Part, o[2].Part
	negated := [3]bool{o[1].Negated, o[2].Negated, o[3].Negated}
	plain := func(o ptx.Operand) ptx.Operand {
		o = whole(o)
		o.Negated = false
		return o
	}
	sat, more, signed := f.Has(ptx.ModSat), f.Has(ptx.ModPo), t[0].Signed()
	return func3(func(a, b, k uint64) uint64 {
		v := part(a, pa, t[1]) * part(b, pb, t[2])
		if negated[0] != negated[1] {
			v = -v
		}
		w := int64(uint32(k))
		if signed || t[1].Signed() || t[2].Signed() {
			w = int64(int32(k))
		}
		if negated[2] {
			w = -w
		}
		v += w
		if more {
			v++
		}
		v >>= shift
		if sat {
			low, high := limits(signed, 32)
			v = min(max(v, low), high)
		}
		return uint64(uint32(v))
	}).op(c.target(whole(o[0])), c.source(plain(o[1]), ptx.B32), c.source(plain(o[2]), ptx.B32), c.source(plain(o[3]), ptx.B32))
}

// videoParts is an instruction on two halves or four bytes: each result in its place, or with .add their sum and c.
func (c *compiler) videoParts(g func(a, b int64) int64, bytes bool) op {
	o, f := c.in.Operands, c.in.Form
	ta, tb := f.Types[len(f.Types)-2], f.Types[len(f.Types)-1]
	n := 16
	if bytes {
		n = 8
	}
	for _, e := range o {
		if e.Part != ptx.Whole {
			c.refuse("selectors of this instruction are not supported")
			return nil
		}
	}
	signed, sat, sums := f.Types[0].Signed() && len(f.Types) > 2, f.Has(ptx.ModSat), f.Has(ptx.ModAdd)
	read := func(v uint64, i int, t ptx.Type) int64 {
		if t.Signed() {
			return signExtend(v>>(i*n), n)
		}
		return int64(truncate(v>>(i*n), n))
	}
	if len(o) < 4 {
		c.refuse("")
		return nil
	}
	return func3(func(a, b, k uint64) uint64 {
		r := uint64(0)
		total := int64(int32(k))
		for i := range 32 / n {
			v := g(read(a, i, ta), read(b, i, tb))
			if sat {
				low, high := limits(signed, n)
				v = min(max(v, low), high)
			}
			total += v
			r |= truncate(uint64(v), n) << (i * n)
		}
		if sums {
			return uint64(uint32(total))
		}
		return r
	}).op(c.target(o[0]), c.source(o[1], ptx.B32), c.source(o[2], ptx.B32), c.source(o[3], ptx.B32))
}
