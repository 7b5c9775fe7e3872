// References of the kernels on rows. As in the kernels, short rows are reduced in column order, longer ones in the lanes of a warp or a
// block, and a tree. Sums and largest elements of very long rows are made of those of their parts.

package library

import (
	"math"

	"github.com/dagrun/dagrun/internal/numbers"
	"github.com/dagrun/dagrun/kernels/internal/describe"
	"github.com/dagrun/dagrun/kernels/internal/reference"
	"github.com/dagrun/dagrun/kernels/launch"
)

// shortRow and warpRow are the longest rows that one thread and one warp reduce; a block reduces longer ones. softmax keeps a row in registers,
// so that its threads and warps take shorter rows.
const shortRow, warpRow, softmaxShortRow, softmaxWarpRow = 32, 2048, 16, 512

// fold reduces the elements of a row in the kernels' order.
func fold[A any](cols int64, start A, join func(a, b A) A, at func(j int64) A) A {
	return foldIn(shortRow, warpRow, cols, start, join, at)
}

// foldIn is fold with other limits for a thread and a warp.
func foldIn[A any](shortRow, warpRow, cols int64, start A, join func(a, b A) A, at func(j int64) A) A {
	if cols <= shortRow {
		a := start
		for j := range cols {
			a = join(a, at(j))
		}
		return a
	}
	if cols <= warpRow {
		return foldLanes(32, cols, start, join, at)
	}
	return foldLanes(describe.BlockSize, cols, start, join, at)
}

// foldLanes reduces elements in the lanes of a warp or a block, and a tree.
func foldLanes[A any](count int, cols int64, start A, join func(a, b A) A, at func(j int64) A) A {
	var lanes [describe.BlockSize]A
	wide := lanes[:count]
	for l := range wide {
		wide[l] = start
	}
	for j := range cols {
		l := j % int64(len(wide))
		wide[l] = join(wide[l], at(j))
	}
	for warp := 0; warp < len(wide); warp += 32 {
		lane := wide[warp : warp+32]
		for half := 16; half > 0; half /= 2 {
			for l := range half {
				lane[l] = join(lane[l], lane[l+half])
			}
		}
		if warp > 0 {
			wide[0] = join(wide[0], lane[0])
		}
	}
	return wide[0]
}

// Rows of more than longRow columns are reduced in parts of rowPart.
const longRow, rowPart = 65536, 32768

// foldElements is fold for the elements as they are, and for long rows.
func foldElements[C numbers.Element](r []C, start C, join func(a, b C) C) C {
	cols := int64(len(r))
	if cols <= longRow {
		return fold(cols, start, join, func(j int64) C { return r[j] })
	}
	var parts []C
	for ; len(r) > 0; r = r[min(len(r), rowPart):] {
		parts = append(parts, foldLanes(describe.BlockSize, int64(min(len(r), rowPart)), start, join, func(j int64) C { return r[j] }))
	}
	return foldLanes(describe.BlockSize, int64(len(parts)), start, join, func(j int64) C { return parts[j] })
}

// rowSpan is the number of rows that have about 64 Ki elements.
func rowSpan(cols int64) int64 { return max(1, (1<<16)/max(cols, 1)) }

// byRows makes a reference that calls f for ranges of rows; arguments start with rows, cols.
func byRows(f func(c *launch.Call, rows, cols, from, to int64)) func(*libraryKernel) launch.Reference {
	return func(*libraryKernel) launch.Reference {
		return launch.Reference{
			Spans: func(c *launch.Call) int64 {
				return reference.SpansOf(reference.Integer(c.Args[0]), rowSpan(reference.Integer(c.Args[1])))
			},
			Run: func(c *launch.Call, lo, hi int64) {
				rows, cols := reference.Integer(c.Args[0]), reference.Integer(c.Args[1])
				f(c, rows, cols, lo*rowSpan(cols), min(hi*rowSpan(cols), rows))
			},
		}
	}
}

func most[C numbers.Element](a, b C) C {
	if a < b {
		return b
	}
	return a
}

func total[C numbers.Element](a, b C) C { return a + b }

func rowMost[C numbers.Element](r []C) C {
	return foldElements(r, C(constant[C](math.Inf(-1))), most[C])
}

func rowMax[C numbers.Element](c *launch.Call, rows, cols, from, to int64) {
	x, y := reference.Slice[C](c.Args[2], rows*cols), reference.Slice[C](c.Args[3], rows)
	for i := from; i < to; i++ {
		y[i] = rowMost(x[i*cols : (i+1)*cols])
	}
}

func rowSum[C numbers.Element](c *launch.Call, rows, cols, from, to int64) {
	x, y := reference.Slice[C](c.Args[2], rows*cols), reference.Slice[C](c.Args[3], rows)
	for i := from; i < to; i++ {
		y[i] = foldElements(x[i*cols:(i+1)*cols], 0, total[C])
	}
}

func rowLogSumExp[C numbers.Element](c *launch.Call, rows, cols, from, to int64) {
	x, most, y := reference.Slice[C](c.Args[2], rows*cols), reference.Slice[C](c.Args[3], rows), reference.Slice[C](c.Args[4], rows)
	for i := from; i < to; i++ {
		r, m := x[i*cols:(i+1)*cols], most[i]
		y[i] = numbers.Log(fold(cols, 0, total[C], func(j int64) C { return numbers.Exp(r[j] - m) })) + m
	}
}

func rowNormalise[C numbers.Element](c *launch.Call, rows, cols, from, to int64) {
	l, x := reference.Slice[C](c.Args[2], rows), reference.Slice[C](c.Args[3], rows*cols)
	for i := from; i < to; i++ {
		for j := range cols {
			x[i*cols+j] = numbers.Exp(x[i*cols+j] - l[i])
		}
	}
}

func softmax[C numbers.Element](c *launch.Call, rows, cols, from, to int64) {
	x, y := reference.Slice[C](c.Args[2], rows*cols), reference.Slice[C](c.Args[3], rows*cols)
	for i := from; i < to; i++ {
		r, w := x[i*cols:(i+1)*cols], y[i*cols:(i+1)*cols]
		m := rowMost(r) // the same in any order
		s := foldIn(softmaxShortRow, softmaxWarpRow, cols, 0, total[C], func(j int64) C { return numbers.Exp(r[j] - m) })
		for j := range w {
			w[j] = numbers.Exp(r[j]-m) / s
		}
	}
}

func rowArgmaxOf[C numbers.Element](cols int64, at func(j int64) C) int32 {
	join := func(a, b place[C]) place[C] {
		if b.index >= 0 && (a.index < 0 || a.value < b.value || a.value == b.value && b.index < a.index) {
			return b
		}
		return a
	}
	return int32(fold(cols, place[C]{index: -1}, join, func(j int64) place[C] {
		v := at(j)
		if v != v {
			return place[C]{index: -1}
		}
		return place[C]{v, j}
	}).index)
}

func rowArgmax[C numbers.Element](c *launch.Call, rows, cols, from, to int64) {
	x, y := reference.Slice[C](c.Args[2], rows*cols), reference.Slice[int32](c.Args[3], rows)
	for i := from; i < to; i++ {
		y[i] = rowArgmaxOf(cols, func(j int64) C { return x[i*cols+j] })
	}
}

func rowArgmaxSum[C numbers.Element](c *launch.Call, rows, cols, from, to int64) {
	a, b, y := reference.Slice[C](c.Args[2], rows*cols), reference.Slice[C](c.Args[3], rows*cols), reference.Slice[int32](c.Args[4], rows)
	for i := from; i < to; i++ {
		y[i] = rowArgmaxOf(cols, func(j int64) C { return a[i*cols+j] + b[i*cols+j] })
	}
}

func addBias[C numbers.Element](c *launch.Call, rows, cols, from, to int64) {
	bias, x := reference.Slice[C](c.Args[2], cols), reference.Slice[C](c.Args[3], rows*cols)
	for i := from; i < to; i++ {
		for j := range cols {
			x[i*cols+j] += bias[j]
		}
	}
}

// concatenating takes rows, m, n, x, y, z. Spans may split a row, so a single long row runs on several cores too.
func concatenating[T any](*libraryKernel) launch.Reference {
	const span = 1 << 16
	return launch.Reference{
		Spans: func(c *launch.Call) int64 {
			return reference.SpansOf(reference.Integer(c.Args[0])*(reference.Integer(c.Args[1])+reference.Integer(c.Args[2])), span)
		},
		Run: func(c *launch.Call, lo, hi int64) {
			rows, m, n := reference.Integer(c.Args[0]), reference.Integer(c.Args[1]), reference.Integer(c.Args[2])
			wide := m + n
			x, y, z := reference.Slice[T](c.Args[3], rows*m), reference.Slice[T](c.Args[4], rows*n), reference.Slice[T](c.Args[5], rows*wide)
			for i, end := lo*span, min(hi*span, rows*wide); i < end; {
				row, j := i/wide, i%wide
				if j < m {
					i += int64(copy(z[i:end], x[row*m+j:(row+1)*m]))
				} else {
					i += int64(copy(z[i:end], y[row*n+j-m:(row+1)*n]))
				}
			}
		},
	}
}
