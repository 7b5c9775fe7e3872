// References of the kernels on pictures and grids.

package library

import (
	"github.com/dagrun/dagrun/internal/numbers"
	"github.com/dagrun/dagrun/kernels/internal/reference"
	"github.com/dagrun/dagrun/kernels/launch"
)

// margins returns how many extra rows x has before and after the rows of the result, and the arguments after that. Only some
// kernels take margins, after rows and cols.
func margins(c *launch.Call, some bool) (above, below int64, rest []launch.Arg) {
	if !some {
		return 0, 0, c.Args[2:]
	}
	return reference.Integer(c.Args[2]), reference.Integer(c.Args[3]), c.Args[4:]
}

// gaussianBlur takes rows, cols, margins, diameter, sigma, x, y: along rows first, then along columns.
func gaussianBlur[C numbers.Element](margin bool) func(*libraryKernel) launch.Reference {
	const span = 32
	return func(*libraryKernel) launch.Reference {
		return launch.Reference{
			Spans: func(c *launch.Call) int64 { return reference.SpansOf(reference.Integer(c.Args[0]), span) },
			Run: func(c *launch.Call, lo, hi int64) {
				rows := reference.Integer(c.Args[0])
				blurRows[C](c, margin, lo*span, min(hi*span, rows))
			},
		}
	}
}

func blurRows[C numbers.Element](c *launch.Call, margin bool, from, to int64) {
	rows, cols := reference.Integer(c.Args[0]), reference.Integer(c.Args[1])
	above, below, rest := margins(c, margin)
	diameter := int64(int32(rest[0].Bits))
	sigma, x, y := reference.Scalar[C](rest[1]), reference.Slice[C](rest[2], (above+rows+below)*cols), reference.Slice[C](rest[3], rows*cols)
	radius := diameter / 2
	weight := make([]C, diameter)
	var all C
	for k := range weight {
		d := C(int64(k) - radius)
		weight[k] = numbers.Exp(-C(d*d) / C(C(2*sigma)*sigma))
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
				s = numbers.FMA(w, padded[j+int64(k)], s)
			}
			half[i*cols+j] = s
		}
	}
	for i := range to - from {
		for j := range cols {
			var s C
			for k, w := range weight {
				s = numbers.FMA(w, half[(i+int64(k))*cols+j], s)
			}
			y[(from+i)*cols+j] = s
		}
	}
}

// sobel takes rows, cols, margins, x, y.
func sobel[C numbers.Element](margin bool) func(c *launch.Call, rows, cols, from, to int64) {
	return func(c *launch.Call, rows, cols, from, to int64) {
		above, below, rest := margins(c, margin)
		x, y := reference.Slice[C](rest[0], (above+rows+below)*cols), reference.Slice[C](rest[1], rows*cols)
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
				y[r*cols+col] = numbers.Sqrt(C(h*h) + C(v*v))
			}
		}
	}
}

// heat is the new value of one point, from its old value, alpha and its four neighbours.
func heat[C numbers.Element](v, alpha, up, down, left, right C) C {
	return v + C(alpha*(((up+down)+(left+right))-C(4*v)))
}

// stencil5 takes rows, cols, alpha, x, y. With a halo of 1, x has an extra row above and below.
func stencil5[C numbers.Element](halo int64) func(c *launch.Call, rows, cols, from, to int64) {
	return func(c *launch.Call, rows, cols, from, to int64) {
		alpha, x, y := reference.Scalar[C](c.Args[2]), reference.Slice[C](c.Args[3], (rows+2*halo)*cols), reference.Slice[C](c.Args[4], rows*cols)
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

func stencil3[C numbers.Element](*libraryKernel) launch.Reference {
	return launch.Reference{Spans: reference.ElementwiseSpans, Run: func(c *launch.Call, lo, hi int64) {
		n := reference.Integer(c.Args[0])
		alpha, x, y := reference.Scalar[C](c.Args[1]), reference.Slice[C](c.Args[2], n), reference.Slice[C](c.Args[3], n)
		for i := lo * reference.ElementwiseSpan; i < min(hi*reference.ElementwiseSpan, n); i++ {
			v := x[i]
			if i > 0 && i < n-1 {
				v += C(alpha * ((x[i-1] + x[i+1]) - C(2*v)))
			}
			y[i] = v
		}
	}}
}

// conv2d takes rows, cols, in, out, size, stride, pad, then above and below if it has margins, x, weights, y. Spans are rows of the
// result.
func conv2d(positive, margin bool) func(*libraryKernel) launch.Reference {
	zeros := func(c *launch.Call) (above, below int64, rest []launch.Arg) {
		if margin {
			return reference.Integer(c.Args[7]), reference.Integer(c.Args[8]), c.Args[9:]
		}
		return reference.Integer(c.Args[6]), reference.Integer(c.Args[6]), c.Args[7:]
	}
	high := func(c *launch.Call) int64 {
		above, below, _ := zeros(c)
		return (reference.Integer(c.Args[0])+above+below-reference.Integer(c.Args[4]))/reference.Integer(c.Args[5]) + 1
	}
	return func(*libraryKernel) launch.Reference {
		return launch.Reference{Spans: high, Run: func(c *launch.Call, lo, hi int64) {
			rows, cols, in, out := reference.Integer(c.Args[0]), reference.Integer(c.Args[1]), reference.Integer(c.Args[2]), reference.Integer(c.Args[3])
			size, stride, pad := reference.Integer(c.Args[4]), reference.Integer(c.Args[5]), reference.Integer(c.Args[6])
			above, _, rest := zeros(c)
			wide := (cols+2*pad-size)/stride + 1
			x, weights := reference.Slice[float32](rest[0], rows*cols*in), reference.Slice[float32](rest[1], out*size*size*in)
			y := reference.Slice[float32](rest[2], high(c)*wide*out)
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
									sum = numbers.FMA32(v, w[ch], sum)
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

// meanPool takes rows, cols, channels, size, stride, x, y. Spans are rows of the result.
func meanPool[C numbers.Element](*libraryKernel) launch.Reference {
	high := func(c *launch.Call) int64 {
		return (reference.Integer(c.Args[0])-reference.Integer(c.Args[3]))/reference.Integer(c.Args[4]) + 1
	}
	return launch.Reference{Spans: high, Run: func(c *launch.Call, lo, hi int64) {
		rows, cols, channels, size, stride := reference.Integer(c.Args[0]), reference.Integer(c.Args[1]), reference.Integer(c.Args[2]), reference.Integer(c.Args[3]),
			reference.Integer(c.Args[4])
		wide := (cols-size)/stride + 1
		x, y := reference.Slice[C](c.Args[5], rows*cols*channels), reference.Slice[C](c.Args[6], high(c)*wide*channels)
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
