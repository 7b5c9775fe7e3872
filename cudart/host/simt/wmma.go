// Products of small matrices by a warp as wmma has them: load, store and mma. PTX leaves open which lane holds which element. Here each lane
// holds a run of a matrix's elements, row by row. Where registers have room for more, as for f16, they hold the same elements again.

package simt

import (
	"strings"
	"unsafe"

	"github.com/dagrun/dagrun/internal/ptx"
)

// wmma compiles an instruction of the family.
func (c *compiler) wmma() op {
	f := c.in.Form
	shape, ok := wmmaShape(f)
	if !ok || !hasOnly(f, "b", "c", "d") {
		c.refuse("this form of wmma is not supported")
		return nil
	}
	var g op
	switch {
	case f.Has(ptx.ModMma):
		g = c.wmmaProduct(shape)
	default:
		g = c.wmmaMove(shape)
	}
	if g == nil {
		c.refuse("this form of wmma is not supported")
	}
	return g
}

func wmmaShape(f *ptx.Form) (tileShape, bool) {
	for _, s := range []tileShape{{16, 16, 16}, {32, 8, 16}, {8, 32, 16}, {16, 16, 8}, {8, 8, 4}, {8, 8, 32}, {8, 8, 128}} {
		if hasPart(f, s.String()) {
			return s, true
		}
	}
	return tileShape{}, false
}

// fragment is how a matrix lies in the registers of a warp.
type fragment struct {
	rows, columns int
	width         int // bits of an element
	perRegister   int
}

// fragmentOf is the fragment of matrix a, b, c or d.
func fragmentOf(matrix string, s tileShape, t ptx.Type) (f fragment, ok bool) {
	switch matrix {
	case "a":
		f.rows, f.columns = s.m, s.k
	case "b":
		f.rows, f.columns = s.k, s.n
	default:
		f.rows, f.columns = s.m, s.n
		switch t {
		case ptx.F16:
			f.width, f.perRegister = 16, 2
		case ptx.F32, ptx.S32:
			f.width, f.perRegister = 32, 1
		case ptx.F64:
			f.width, f.perRegister = 64, 1
		}
		return f, f.width > 0
	}
	e, ok := elementOf(t)
	f.width, f.perRegister = t.Bits(), e.perRegister
	return f, ok
}

// each is how many different elements a lane holds.
func (f fragment) each() int { return f.rows * f.columns / warpSize }

// fits says whether so many registers can hold the fragment.
func (f fragment) fits(registers int) bool {
	held := registers * f.perRegister
	return f.each() > 0 && held >= f.each() && held%f.each() == 0
}

// at is the place of element i of a lane's registers in the matrix, row by row.
func (f fragment) at(lane, i int) int { return lane*f.each() + i%f.each() }

// register is where element i of a lane is in its registers.
func (f fragment) register(i int) (register, shift int) {
	return i / f.perRegister, i % f.perRegister * f.width
}

// wmmaMove compiles wmma.load and wmma.store.
func (c *compiler) wmmaMove(shape tileShape) op {
	o, f := c.in.Operands, c.in.Form
	parts := strings.Split(f.Text, ".")
	t := f.Type()
	stores := f.Has(ptx.ModStore)
	if len(parts) < 3 || stores != (parts[2] == "d") || len(o) > 3 || !stores && !f.Has(ptx.ModLoad) {
		return nil
	}
	frame, ok := fragmentOf(parts[2], shape, t)
	if !ok {
		return nil
	}
	kind := strength(f)
	place, values := o[1], o[0]
	if stores {
		kind |= writes
		place, values = o[0], o[1]
	}
	at := c.locateIn(place, f.Space(), kind)
	slots := c.slots(values, func(e ptx.Operand) int {
		if stores {
			return c.source(e, registerType(t))
		}
		return c.target(e)
	})
	if !frame.fits(len(slots)) {
		return nil
	}
	byRows := f.Has(ptx.ModRow)
	stride := c.constant(uint64(frame.columns))
	if !byRows {
		stride = c.constant(uint64(frame.rows))
	}
	if len(o) == 3 {
		stride = c.source(o[2], ptx.U32)
	}
	size := max(frame.width/8, 1)
	// locate checks the memory of an element, and returns it with the element's first bit there.
	locate := func(x *exec, lane, element int) (unsafe.Pointer, int) {
		row, column := element/frame.columns, element%frame.columns
		number := uint64(row)*uint64(uint32(x.s[stride][lane])) + uint64(column)
		if !byRows {
			number = uint64(column)*uint64(uint32(x.s[stride][lane])) + uint64(row)
		}
		bit := number * uint64(frame.width)
		a := x.s[at.base][lane] + at.offset + bit/8
		if a%uint64(size) != 0 {
			x.misaligned(a, size, lane)
		}
		p := at.find(x, a, size, lane)
		if x.check != nil {
			if !stores {
				x.mustBeWritten(at.window, a, size, lane)
			}
			x.note(at.window, a, size, lane, at.kind)
		}
		return p, int(bit % 8)
	}
	if stores {
		return func(x *exec, m uint32) {
			for ; m != 0; m &= m - 1 {
				lane := firstLane(m)
				for i := range frame.each() {
					p, _ := locate(x, lane, frame.at(lane, i))
					r, shift := frame.register(i)
					write(p, size, x.s[slots[r]][lane]>>shift)
				}
			}
		}
	}
	return func(x *exec, m uint32) {
		loaded := make([]lanes, len(slots))
		for left := m; left != 0; left &= left - 1 {
			lane := firstLane(left)
			for i := range len(slots) * frame.perRegister {
				p, bit := locate(x, lane, frame.at(lane, i))
				r, shift := frame.register(i)
				loaded[r][lane] |= truncate(read(p, size)>>bit, frame.width) << shift
			}
		}
		x.give(slots, loaded, m)
	}
}

// wmmaProduct compiles wmma.mma. Where it names only the types of the result and of C, A and B are of f16.
func (c *compiler) wmmaProduct(shape tileShape) op {
	o, f := c.in.Operands, c.in.Form
	types := f.Types
	if len(types) == 2 {
		types = []ptx.Type{types[0], ptx.F16, ptx.F16, types[1]}
	}
	if len(types) != 4 || len(o) != 4 {
		return nil
	}
	p, ok := productOf(f, types[0], types[1], types[2], types[3])
	frames := [4]fragment{}
	for i, matrix := range []string{"d", "a", "b", "c"} {
		var known bool
		frames[i], known = fragmentOf(matrix, shape, types[i])
		ok = ok && known
	}
	if !ok {
		return nil
	}
	D, A, B, C := c.fragments(types[0], types[1], types[2], types[3])
	slots := [4][]int{D, A, B, C}
	for i, frame := range frames {
		if !frame.fits(len(slots[i])) {
			return nil
		}
	}
	// gather is a matrix's elements, each at index row * columns + column, or the other way round.
	gather := func(x *exec, which int, byColumns bool) []uint64 {
		frame := frames[which]
		elements := make([]uint64, frame.rows*frame.columns)
		for lane := range warpSize {
			for i := range frame.each() {
				at := frame.at(lane, i)
				if byColumns {
					at = at%frame.columns*frame.rows + at/frame.columns
				}
				r, shift := frame.register(i)
				elements[at] = truncate(x.s[slots[which][r]][lane]>>shift, frame.width)
			}
		}
		return elements
	}
	return func(x *exec, m uint32) {
		left, right, added := gather(x, 1, false), gather(x, 2, true), gather(x, 3, false)
		results := make([]lanes, len(D))
		frame := frames[0]
		for lane := range warpSize {
			for i := range len(D) * frame.perRegister {
				at := frame.at(lane, i)
				row, column := at/frame.columns, at%frame.columns
				r, shift := frame.register(i)
				results[r][lane] |= p.of(left[row*shape.k:][:shape.k], right[column*shape.k:][:shape.k], added[at]) << shift
			}
		}
		x.give(D, results, m)
	}
}
