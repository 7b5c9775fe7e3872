// References of the kernels on pictures and grids.

package kernels

// margins are how many rows x has before and after those that results are for; some: the kernel takes them after rows and cols.
func margins(c *Call, some bool) (above, below int64, rest []Arg) {
	if !some {
		return 0, 0, c.Args[2:]
	}
	return integer(c.Args[2]), integer(c.Args[3]), c.Args[4:]
}

// gaussianBlur takes rows, cols, margins, diameter, sigma, x, y: along rows first, then along columns.
func gaussianBlur[C element](margin bool) func(*libraryKernel) Reference {
	const span = 32
	return func(*libraryKernel) Reference {
		return Reference{
			func(c *Call) int64 { return spansOf(integer(c.Args[0]), span) },
			func(c *Call, lo, hi int64) {
				rows := integer(c.Args[0])
				blurRows[C](c, margin, lo*span, min(hi*span, rows))
			},
		}
	}
}

func blurRows[C element](c *Call, margin bool, from, to int64) {
	rows, cols := integer(c.Args[0]), integer(c.Args[1])
	above, below, rest := margins(c, margin)
	diameter := int64(int32(rest[0].Bits))
	sigma, x, y := scalar[C](rest[1]), slice[C](rest[2], (above+rows+below)*cols), slice[C](rest[3], rows*cols)
	radius := diameter / 2
	weight := make([]C, diameter)
	var all C
	for k := range weight {
		d := C(int64(k) - radius)
		weight[k] = expOf(-C(d*d) / C(C(2*sigma)*sigma))
		all += weight[k]
	}
	for k := range weight {
		weight[k] /= all
	}
	half := make([]C, (to-from+2*radius)*cols)
	padded := make([]C, cols+2*radius)
	for i := range to - from + 2*radius {
		r := from - radius + i
		clear(padded)
		if r >= -above && r < rows+below {
			copy(padded[radius:], x[(r+above)*cols:(r+above+1)*cols])
		}
		for j := range cols {
			var s C
			for k, w := range weight {
				s = fusedOf(w, padded[j+int64(k)], s)
			}
			half[i*cols+j] = s
		}
	}
	for i := range to - from {
		for j := range cols {
			var s C
			for k, w := range weight {
				s = fusedOf(w, half[(i+int64(k))*cols+j], s)
			}
			y[(from+i)*cols+j] = s
		}
	}
}

// sobel takes rows, cols, margins, x, y.
func sobel[C element](margin bool) func(c *Call, rows, cols, from, to int64) {
	return func(c *Call, rows, cols, from, to int64) {
		above, below, rest := margins(c, margin)
		x, y := slice[C](rest[0], (above+rows+below)*cols), slice[C](rest[1], rows*cols)
		for r := from; r < to; r++ {
			for col := range cols {
				var p [3][3]C
				for i := range int64(3) {
					for j := range int64(3) {
						if a, b := r+i-1, col+j-1; a >= -above && a < rows+below && b >= 0 && b < cols {
							p[i][j] = x[(a+above)*cols+b]
						}
					}
				}
				h := (p[0][2] - p[0][0]) + C(2*(p[1][2]-p[1][0])) + (p[2][2] - p[2][0])
				v := (p[2][0] - p[0][0]) + C(2*(p[2][1]-p[0][1])) + (p[2][2] - p[0][2])
				y[r*cols+col] = sqrtOf(C(h*h) + C(v*v))
			}
		}
	}
}

// heat is one point's step: the value, alpha and the four neighbours.
func heat[C element](v, alpha, up, down, left, right C) C {
	return v + C(alpha*(((up+down)+(left+right))-C(4*v)))
}

// stencil5 takes rows, cols, alpha, x, y; halo: x has a row more above and below.
func stencil5[C element](halo int64) func(c *Call, rows, cols, from, to int64) {
	return func(c *Call, rows, cols, from, to int64) {
		alpha, x, y := scalar[C](c.Args[2]), slice[C](c.Args[3], (rows+2*halo)*cols), slice[C](c.Args[4], rows*cols)
		for r := from; r < to; r++ {
			for col := range cols {
				i := (r+halo)*cols + col
				v := x[i]
				if col > 0 && col < cols-1 && (halo > 0 || r > 0 && r < rows-1) {
					v = heat(v, alpha, x[i-cols], x[i+cols], x[i-1], x[i+1])
				}
				y[r*cols+col] = v
			}
		}
	}
}

func stencil3[C element](*libraryKernel) Reference {
	return Reference{elementwiseSpans, func(c *Call, lo, hi int64) {
		n := integer(c.Args[0])
		alpha, x, y := scalar[C](c.Args[1]), slice[C](c.Args[2], n), slice[C](c.Args[3], n)
		for i := lo * elementwiseSpan; i < min(hi*elementwiseSpan, n); i++ {
			v := x[i]
			if i > 0 && i < n-1 {
				v += C(alpha * ((x[i-1] + x[i+1]) - C(2*v)))
			}
			y[i] = v
		}
	}}
}

// conv2d takes rows, cols, in, out, size, stride, pad, above and below where the zeros there are given, x, weights, y; spans are
// rows of the result.
func conv2d(positive, margin bool) func(*libraryKernel) Reference {
	zeros := func(c *Call) (above, below int64, rest []Arg) {
		if margin {
			return integer(c.Args[7]), integer(c.Args[8]), c.Args[9:]
		}
		return integer(c.Args[6]), integer(c.Args[6]), c.Args[7:]
	}
	high := func(c *Call) int64 {
		above, below, _ := zeros(c)
		return (integer(c.Args[0])+above+below-integer(c.Args[4]))/integer(c.Args[5]) + 1
	}
	return func(*libraryKernel) Reference {
		return Reference{high, func(c *Call, lo, hi int64) {
			rows, cols, in, out := integer(c.Args[0]), integer(c.Args[1]), integer(c.Args[2]), integer(c.Args[3])
			size, stride, pad := integer(c.Args[4]), integer(c.Args[5]), integer(c.Args[6])
			above, _, rest := zeros(c)
			wide := (cols+2*pad-size)/stride + 1
			x, weights := slice[float32](rest[0], rows*cols*in), slice[float32](rest[1], out*size*size*in)
			y := slice[float32](rest[2], high(c)*wide*out)
			for r := lo; r < hi; r++ {
				for col := range wide {
					for o := range out {
						var sum float32
						for ky := range size {
							a := r*stride + ky - above
							if a < 0 || a >= rows {
								continue
							}
							for kx := range size {
								b := col*stride + kx - pad
								if b < 0 || b >= cols {
									continue
								}
								w := weights[(o*size*size+ky*size+kx)*in:][:in]
								for ch, v := range x[(a*cols+b)*in:][:in] {
									sum = fma32(v, w[ch], sum)
								}
							}
						}
						if positive && sum < 0 {
							sum = 0
						}
						y[(r*wide+col)*out+o] = sum
					}
				}
			}
		}}
	}
}

// meanPool takes rows, cols, channels, size, stride, x, y; spans are rows of the result.
func meanPool[C element](*libraryKernel) Reference {
	high := func(c *Call) int64 { return (integer(c.Args[0])-integer(c.Args[3]))/integer(c.Args[4]) + 1 }
	return Reference{high, func(c *Call, lo, hi int64) {
		rows, cols, channels, size, stride := integer(c.Args[0]), integer(c.Args[1]), integer(c.Args[2]), integer(c.Args[3]), integer(c.Args[4])
		wide := (cols-size)/stride + 1
		x, y := slice[C](c.Args[5], rows*cols*channels), slice[C](c.Args[6], high(c)*wide*channels)
		for r := lo; r < hi; r++ {
			for col := range wide {
				for ch := range channels {
					var s C
					for a := range size {
						for b := range size {
							s += x[((r*stride+a)*cols+col*stride+b)*channels+ch]
						}
					}
					y[(r*wide+col)*channels+ch] = s / C(size*size)
				}
			}
		}
	}}
}
