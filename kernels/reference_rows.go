// References of the kernels on rows: short rows in the order of columns, longer ones in 32 lanes and a tree, as the warps do.

package kernels

import "math"

const shortRow = 32

// fold joins the elements of a row in the kernels' order.
func fold[A any](cols int64, start A, join func(a, b A) A, at func(j int64) A) A {
	if cols <= shortRow {
		a := start
		for j := range cols {
			a = join(a, at(j))
		}
		return a
	}
	var lane [32]A
	for l := range lane {
		lane[l] = start
	}
	for j := range cols {
		lane[j%32] = join(lane[j%32], at(j))
	}
	for half := 16; half > 0; half /= 2 {
		for l := range half {
			lane[l] = join(lane[l], lane[l+half])
		}
	}
	return lane[0]
}

// rowSpan is how many rows make about 64 Ki elements.
func rowSpan(cols int64) int64 { return max(1, (1<<16)/max(cols, 1)) }

// byRows makes a reference that calls f for ranges of rows; arguments start with rows, cols.
func byRows(f func(c *Call, rows, cols, from, to int64)) func(*libraryKernel) Reference {
	return func(*libraryKernel) Reference {
		return Reference{
			func(c *Call) int64 { return spansOf(integer(c.Args[0]), rowSpan(integer(c.Args[1]))) },
			func(c *Call, lo, hi int64) {
				rows, cols := integer(c.Args[0]), integer(c.Args[1])
				f(c, rows, cols, lo*rowSpan(cols), min(hi*rowSpan(cols), rows))
			},
		}
	}
}

func most[C element](a, b C) C {
	if a < b {
		return b
	}
	return a
}

func total[C element](a, b C) C { return a + b }

func rowMost[C element](r []C) C {
	return fold(int64(len(r)), C(constant[C](math.Inf(-1))), most[C], func(j int64) C { return r[j] })
}

func rowMax[C element](c *Call, rows, cols, from, to int64) {
	x, y := slice[C](c.Args[2], rows*cols), slice[C](c.Args[3], rows)
	for i := from; i < to; i++ {
		y[i] = rowMost(x[i*cols : (i+1)*cols])
	}
}

func rowSum[C element](c *Call, rows, cols, from, to int64) {
	x, y := slice[C](c.Args[2], rows*cols), slice[C](c.Args[3], rows)
	for i := from; i < to; i++ {
		r := x[i*cols : (i+1)*cols]
		y[i] = fold(cols, 0, total[C], func(j int64) C { return r[j] })
	}
}

func rowLogSumExp[C element](c *Call, rows, cols, from, to int64) {
	x, most, y := slice[C](c.Args[2], rows*cols), slice[C](c.Args[3], rows), slice[C](c.Args[4], rows)
	for i := from; i < to; i++ {
		r, m := x[i*cols:(i+1)*cols], most[i]
		y[i] = logOf(fold(cols, 0, total[C], func(j int64) C { return expOf(r[j] - m) })) + m
	}
}

func rowNormalise[C element](c *Call, rows, cols, from, to int64) {
	l, x := slice[C](c.Args[2], rows), slice[C](c.Args[3], rows*cols)
	for i := from; i < to; i++ {
		for j := range cols {
			x[i*cols+j] = expOf(x[i*cols+j] - l[i])
		}
	}
}

func softmax[C element](c *Call, rows, cols, from, to int64) {
	x, y := slice[C](c.Args[2], rows*cols), slice[C](c.Args[3], rows*cols)
	for i := from; i < to; i++ {
		r, w := x[i*cols:(i+1)*cols], y[i*cols:(i+1)*cols]
		m := rowMost(r)
		s := fold(cols, 0, total[C], func(j int64) C { return expOf(r[j] - m) })
		for j := range w {
			w[j] = expOf(r[j]-m) / s
		}
	}
}

func rowArgmaxOf[C element](cols int64, at func(j int64) C) int32 {
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

func rowArgmax[C element](c *Call, rows, cols, from, to int64) {
	x, y := slice[C](c.Args[2], rows*cols), slice[int32](c.Args[3], rows)
	for i := from; i < to; i++ {
		y[i] = rowArgmaxOf(cols, func(j int64) C { return x[i*cols+j] })
	}
}

func rowArgmaxSum[C element](c *Call, rows, cols, from, to int64) {
	a, b, y := slice[C](c.Args[2], rows*cols), slice[C](c.Args[3], rows*cols), slice[int32](c.Args[4], rows)
	for i := from; i < to; i++ {
		y[i] = rowArgmaxOf(cols, func(j int64) C { return a[i*cols+j] + b[i*cols+j] })
	}
}

func addBias[C element](c *Call, rows, cols, from, to int64) {
	bias, x := slice[C](c.Args[2], cols), slice[C](c.Args[3], rows*cols)
	for i := from; i < to; i++ {
		for j := range cols {
			x[i*cols+j] += bias[j]
		}
	}
}

// concatenating joins rows; arguments rows, m, n, x, y, z. A single long row is split as well.
func concatenating[T any](*libraryKernel) Reference {
	const span = 1 << 16
	return Reference{
		func(c *Call) int64 { return spansOf(integer(c.Args[0])*(integer(c.Args[1])+integer(c.Args[2])), span) },
		func(c *Call, lo, hi int64) {
			rows, m, n := integer(c.Args[0]), integer(c.Args[1]), integer(c.Args[2])
			wide := m + n
			x, y, z := slice[T](c.Args[3], rows*m), slice[T](c.Args[4], rows*n), slice[T](c.Args[5], rows*wide)
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
