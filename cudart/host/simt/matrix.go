// Products of small matrices by a warp: mma. Each lane holds a fragment of each matrix.

package simt

import (
	"fmt"
	"math"
	"strings"

	"github.com/dagrun/dagrun/kernels/ptx"
)

// tileShape is that of an mma: D and C are m x n, A is m x k, B is k x n.
type tileShape struct{ m, n, k int }

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

// mma compiles mma.sync of rows by columns.
func (c *compiler) mma() op {
	o, f := c.in.Operands, c.in.Form
	shape, known := shapeOf(f)
	if !known || len(f.Types) != 4 || len(o) != 4 || strings.Contains(f.Text, ".sp") || strings.Contains(f.Text, ".block_scale") ||
		!strings.Contains(f.Text, ".row.col") {
		c.refuse("this form of mma is not supported")
		return nil
	}
	a, okA := elementOf(f.Types[1])
	b, okB := elementOf(f.Types[2])
	if !okA || !okB || a.perRegister != b.perRegister {
		c.refuse("this form of mma is not supported")
		return nil
	}
	to, from := f.Types[0], f.Types[3]
	wide := func(t ptx.Type) ptx.Type {
		if t.Bits() == 64 {
			return ptx.B64
		}
		return ptx.B32
	}
	D := c.slots(o[0], c.target)
	A := c.slots(o[1], func(e ptx.Operand) int { return c.source(e, wide(f.Types[1])) })
	B := c.slots(o[2], func(e ptx.Operand) int { return c.source(e, wide(f.Types[2])) })
	C := c.slots(o[3], func(e ptx.Operand) int { return c.source(e, wide(from)) })
	rows := shape.m / 8
	accumulators := func(t ptx.Type) int {
		if t == ptx.F16 {
			return rows
		}
		return 2 * rows
	}
	step := 4 * a.perRegister // what four lanes hold of a row in one register
	if len(D) != accumulators(to) || len(C) != accumulators(from) || len(A) != rows*shape.k/step || len(B) != shape.k/step {
		c.refuse("the fragments of this mma have other sizes")
		return nil
	}
	width := 32 / a.perRegister
	if f.Types[1] == ptx.F64 {
		width = 64
	}
	bitwise := func(x, y int64) int64 { return x & y }
	if strings.Contains(f.Text, ".xor") {
		bitwise = func(x, y int64) int64 { return x ^ y }
	}
	single := f.Types[1] == ptx.B1
	saturates := strings.Contains(f.Text, ".satfinite")
	return func(x *exec, m uint32) {
		var left, right [16 * 256]uint64
		for lane := range warpSize {
			row, quad := lane/4, lane%4
			for r, slot := range A {
				for e := range a.perRegister {
					left[(row+8*(r%rows))*shape.k+quad*a.perRegister+e+r/rows*step] = truncate(x.s[slot][lane]>>(e*width), width)
				}
			}
			for r, slot := range B {
				for e := range b.perRegister {
					right[row*shape.k+quad*b.perRegister+e+r*step] = truncate(x.s[slot][lane]>>(e*width), width)
				}
			}
		}
		var results [4]lanes
		for lane := range warpSize {
			for i := range 2 * rows {
				row, column := lane/4+8*(i/2), lane%4*2+i%2
				p, q := left[row*shape.k:][:shape.k], right[column*shape.k:][:shape.k]
				if a.integer != nil {
					sum := int64(int32(x.s[C[i]][lane]))
					for k := range p {
						if single {
							sum += bitwise(a.integer(p[k]), b.integer(q[k]))
						} else {
							sum += a.integer(p[k]) * b.integer(q[k])
						}
					}
					if saturates {
						sum = int64(int32(saturate(sum)))
					}
					results[i][lane] = uint64(uint32(sum))
					continue
				}
				sum := accumulator(x, C, from, lane, i)
				for k := range p {
					sum = math.FMA(a.float(p[k]), b.float(q[k]), sum)
				}
				switch to {
				case ptx.F64:
					results[i][lane] = bits64(sum)
				case ptx.F16:
					results[i/2][lane] |= half.narrow(sum, rounding{}) << (16 * (i % 2))
				default:
					results[i][lane] = bits32(float32(sum))
				}
			}
		}
		for i, d := range D {
			for lane := range warpSize {
				if m>>lane&1 != 0 {
					x.s[d][lane] = results[i][lane]
				}
			}
		}
	}
}

// accumulator is element i of a lane's fragment of C.
func accumulator(x *exec, C []int, t ptx.Type, lane, i int) float64 {
	switch t {
	case ptx.F64:
		return float64Of(x.s[C[i]][lane])
	case ptx.F16:
		return half.widen(x.s[C[i/2]][lane] >> (16 * (i % 2)) & 0xffff)
	}
	return float64(float32Of(x.s[C[i]][lane]))
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
