// Products of small matrices by a warp: mma. Each lane holds a fragment of each matrix.

package simt

import (
	"fmt"
	"math"
	"strings"

	"github.com/dagrun/dagrun/internal/ptx"
)

// tileShape is that of an mma: D and C are m x n, A is m x k, B is k x n.
type tileShape struct{ m, n, k int }

func (s tileShape) String() string { return fmt.Sprintf("m%dn%dk%d", s.m, s.n, s.k) }

func shapeOf(f *ptx.Form) (s tileShape, ok bool) {
	for _, word := range strings.Split(f.Text, ".") {
		if n, err := fmt.Sscanf(word, "m%dn%dk%d", &s.m, &s.n, &s.k); n == 3 && err == nil {
			return s, s.n == 8 && (s.m == 8 || s.m == 16)
		}
	}
	return s, false
}

// element is how a matrix's numbers lie in a register: how many, and how one is read.
type element struct {
	perRegister int
	float       func(bits uint64) float64
	integer     func(bits uint64) int64
}

func elementOf(t ptx.Type) (e element, ok bool) {
	switch t {
	case ptx.F16:
		return element{perRegister: 2, float: half.widen}, true
	case ptx.BF16:
		return element{perRegister: 2, float: brain.widen}, true
	case ptx.TF32:
		// The lower bits of the fraction are not looked at.
		return element{perRegister: 1, float: func(v uint64) float64 { return float64(float32Of(v &^ 0x1fff)) }}, true
	case ptx.F64:
		return element{perRegister: 1, float: float64Of}, true
	case ptx.E4M3:
		return element{perRegister: 4, float: tiny4.widenTiny}, true
	case ptx.E5M2:
		return element{perRegister: 4, float: tiny5.widenTiny}, true
	case ptx.S8:
		return element{perRegister: 4, integer: func(v uint64) int64 { return int64(int8(v)) }}, true
	case ptx.U8:
		return element{perRegister: 4, integer: func(v uint64) int64 { return int64(uint8(v)) }}, true
	case ptx.S4:
		return element{perRegister: 8, integer: func(v uint64) int64 { return signExtend(v, 4) }}, true
	case ptx.U4:
		return element{perRegister: 8, integer: func(v uint64) int64 { return int64(v & 15) }}, true
	case ptx.B1:
		return element{perRegister: 32, integer: func(v uint64) int64 { return int64(v & 1) }}, true
	}
	return element{}, false
}

// product is how the elements of a product of two matrices come about.
type product struct {
	a, b     element
	width    int // of an element of A and B
	to, from ptx.Type
	single   bool // of single bits, which are counted
	xor      bool
	limited  bool // .satfinite
}

// productOf returns the product of matrices of two types, or false.
func productOf(f *ptx.Form, to, a, b, from ptx.Type) (p product, ok bool) {
	p = product{to: to, from: from, single: a == ptx.B1, xor: f.Has(ptx.ModXor), limited: f.Has(ptx.ModSatfinite)}
	var okB bool
	p.a, ok = elementOf(a)
	p.b, okB = elementOf(b)
	p.width = 32 / max(p.a.perRegister, 1)
	if a == ptx.F64 {
		p.width = 64
	}
	return p, ok && okB && p.a.perRegister == p.b.perRegister
}

// of is one element: of a row of A, a column of B and an element of C.
func (p *product) of(row, column []uint64, c uint64) uint64 {
	if p.a.integer == nil {
		sum := accumulated(p.from, c)
		for k := range row {
			sum = math.FMA(p.a.float(row[k]), p.b.float(column[k]), sum)
		}
		switch p.to {
		case ptx.F64:
			return bits64(sum)
		case ptx.F16:
			return half.narrow(sum, rounding{most: p.limited})
		}
		return bits32(float32(sum))
	}
	sum := int64(int32(c))
	for k := range row {
		switch v, w := p.a.integer(row[k]), p.b.integer(column[k]); {
		case !p.single:
			sum += v * w
		case p.xor:
			sum += v ^ w
		default:
			sum += v & w
		}
	}
	if p.limited {
		return saturate(sum)
	}
	return uint64(uint32(sum))
}

// accumulated is the value of an element of C.
func accumulated(t ptx.Type, v uint64) float64 {
	switch t {
	case ptx.F64:
		return float64Of(v)
	case ptx.F16:
		return half.widen(v & 0xffff)
	}
	return float64(float32Of(v))
}

// registerType is what the registers of a fragment are.
func registerType(t ptx.Type) ptx.Type {
	if t.Bits() == 64 {
		return ptx.B64
	}
	return ptx.B32
}

// fragments are the slots of the four matrices of a product.
func (c *compiler) fragments(to, a, b, from ptx.Type) (D, A, B, C []int) {
	o := c.in.Operands
	of := func(o ptx.Operand, t ptx.Type) []int {
		return c.slots(o, func(e ptx.Operand) int { return c.source(e, registerType(t)) })
	}
	return c.slots(o[0], c.target), of(o[1], a), of(o[2], b), of(o[3], from)
}

// mma compiles mma.sync of rows by columns.
func (c *compiler) mma() op {
	o, f := c.in.Operands, c.in.Form
	shape, known := shapeOf(f)
	if !known || len(f.Types) != 4 || len(o) != 4 || strings.Contains(f.Text, ".sp") || strings.Contains(f.Text, ".block_scale") {
		c.refuse("this form of mma is not supported")
		return nil
	}
	if shape == (tileShape{8, 8, 4}) && f.Types[1] == ptx.F16 {
		return c.mmaByQuads()
	}
	p, ok := productOf(f, f.Types[0], f.Types[1], f.Types[2], f.Types[3])
	if !ok || !strings.Contains(f.Text, ".row.col") {
		c.refuse("this form of mma is not supported")
		return nil
	}
	to, from, n := f.Types[0], f.Types[3], p.a.perRegister
	D, A, B, C := c.fragments(to, f.Types[1], f.Types[2], from)
	rows := shape.m / 8
	accumulators := func(t ptx.Type) int {
		if t == ptx.F16 {
			return rows
		}
		return 2 * rows
	}
	step := 4 * n // what four lanes hold of a row in one register
	if len(D) != accumulators(to) || len(C) != accumulators(from) || len(A) != rows*shape.k/step || len(B) != shape.k/step {
		c.refuse("the fragments of this mma have other sizes")
		return nil
	}
	return func(x *exec, m uint32) {
		var left, right [16 * 256]uint64
		for lane := range warpSize {
			row, quad := lane/4, lane%4
			for r, slot := range A {
				for e := range n {
					left[(row+8*(r%rows))*shape.k+quad*n+e+r/rows*step] = truncate(x.s[slot][lane]>>(e*p.width), p.width)
				}
			}
			for r, slot := range B {
				for e := range n {
					right[row*shape.k+quad*n+e+r*step] = truncate(x.s[slot][lane]>>(e*p.width), p.width)
				}
			}
		}
		var results [4]lanes
		for lane := range warpSize {
			for i := range 2 * rows {
				row, column := lane/4+8*(i/2), lane%4*2+i%2
				added := uint64(0)
				if from == ptx.F16 {
					added = x.s[C[i/2]][lane] >> (16 * (i % 2))
				} else {
					added = x.s[C[i]][lane]
				}
				v := p.of(left[row*shape.k:][:shape.k], right[column*shape.k:][:shape.k], added)
				if to == ptx.F16 {
					results[i/2][lane] |= v << (16 * (i % 2))
				} else {
					results[i][lane] = v
				}
			}
		}
		x.give(D, results[:], m)
	}
}

// give writes a fragment to its registers.
func (x *exec) give(targets []int, values []lanes, m uint32) {
	for i, d := range targets {
		for left := m; left != 0; left &= left - 1 {
			lane := firstLane(left)
			x.s[d][lane] = values[i][lane]
		}
	}
}

// mmaByQuads compiles mma.m8n8k4 of f16: four products at once, each by four lanes of the lower and four of the upper half of the warp.
func (c *compiler) mmaByQuads() op {
	f := c.in.Form
	to, from := f.Types[0], f.Types[3]
	p, ok := productOf(f, to, ptx.F16, f.Types[2], from)
	var layouts []ptx.Mod
	for _, mod := range f.Mods {
		if mod == ptx.ModRow || mod == ptx.ModCol {
			layouts = append(layouts, mod)
		}
	}
	count := map[ptx.Type]int{ptx.F16: 4, ptx.F32: 8}
	D, A, B, C := c.fragments(to, ptx.F16, ptx.F16, from)
	if !ok || f.Types[2] != ptx.F16 || len(layouts) != 2 || len(D) != count[to] || len(C) != count[from] || len(A) != 2 || len(B) != 2 {
		c.refuse("the fragments of this mma have other sizes")
		return nil
	}
	rowsA, rowsB := layouts[0] == ptx.ModRow, layouts[1] == ptx.ModRow
	// place is where element i of a lane's accumulator is.
	place := func(t ptx.Type, lane, i int) (row, column int) {
		upper := lane / 16 * 4
		if t == ptx.F16 {
			return lane%4 + upper, i
		}
		return lane&1 + i&2 + upper, i&4 + lane&2 + i&1
	}
	return func(x *exec, m uint32) {
		var left, right [4][8 * 4]uint64 // rows of A, columns of B
		var added [4][8 * 8]uint64
		for lane := range warpSize {
			quad, upper := lane%16/4, lane/16*4
			for i := range 4 {
				a, b := x.s[A[i/2]][lane]>>(16*(i%2))&0xffff, x.s[B[i/2]][lane]>>(16*(i%2))&0xffff
				row, column := lane%4+upper, i
				if !rowsA {
					row, column = i+upper, lane%4
				}
				left[quad][row*4+column] = a
				row, column = i, lane%4+upper
				if rowsB {
					row, column = lane%4, i+upper
				}
				right[quad][column*4+row] = b
			}
			for i := range 8 {
				row, column := place(from, lane, i)
				if from == ptx.F16 {
					added[quad][row*8+column] = x.s[C[i/2]][lane] >> (16 * (i % 2)) & 0xffff
				} else {
					added[quad][row*8+column] = x.s[C[i]][lane]
				}
			}
		}
		var results [8]lanes
		for lane := range warpSize {
			quad := lane % 16 / 4
			for i := range 8 {
				row, column := place(to, lane, i)
				v := p.of(left[quad][row*4:][:4], right[quad][column*4:][:4], added[quad][row*8+column])
				if to == ptx.F16 {
					results[i/2][lane] |= v << (16 * (i % 2))
				} else {
					results[i][lane] = v
				}
			}
		}
		x.give(D, results[:], m)
	}
}

// moveMatrix is movmatrix: the transpose of an 8 x 8 matrix of 16 bits, of which each lane holds two neighbours.
func moveMatrix(d, a int) op {
	return func(x *exec, m uint32) {
		from := *x.s[a]
		at := func(row, column int) uint64 { return from[row*4+column/2] >> (16 * (column % 2)) & 0xffff }
		for lane := range warpSize {
			if m>>lane&1 != 0 {
				row, column := lane/4, lane%4*2
				x.s[d][lane] = at(column, row) | at(column+1, row)<<16
			}
		}
	}
}

// storeMatrix is stmatrix of 8 x 8 matrices of 16 bits: lane 8k+r gives the address of row r of matrix k.
func storeMatrix(at located, sources []int, transposed bool) op {
	return func(x *exec, m uint32) {
		for k, s := range sources {
			for row := range 8 {
				lane := 8*k + row
				a := x.s[at.base][lane] + at.offset
				if a&15 != 0 {
					x.misaligned(a, 16, lane)
				}
				to := (*[8]uint16)(at.find(x, a, 16, lane))
				if x.check != nil {
					x.note(at.window, a, 16, lane, at.kind)
				}
				for column := range 8 {
					from, part := row*4+column/2, column%2
					if transposed {
						from, part = column*4+row/2, row%2
					}
					to[column] = uint16(x.s[s][from] >> (16 * part))
				}
			}
		}
	}
}
