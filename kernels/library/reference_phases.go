// References of the kernels with two phases: standardised columns, histogram.

package library

import (
	"math"

	"github.com/dagrun/dagrun/kernels/internal/launch"
	"github.com/dagrun/dagrun/kernels/internal/numbers"
)

func rowsEach(rows, cols int64) int64 {
	return max((rows+1055)/1056, 1, (8192+cols-1)/max(cols, 1))
}

// columnParts returns, tile by tile, each column's sum of x - pivot and the sum of its squares.
func columnParts[X int32 | float32 | float64](rows, cols int64, x, pivot []X) (sums, squares []float64, tiles int64) {
	each := rowsEach(rows, cols)
	tiles = (rows + each - 1) / each
	high := reduceLanes / min(cols, reduceLanes)
	sums, squares = make([]float64, tiles*cols), make([]float64, tiles*cols)
	parallel(tiles, func(t int64) {
		// Row i of a tile is added to sum i % high; these sums are joined at the end.
		s, q := make([]float64, high*cols), make([]float64, high*cols)
		for i := t * each; i < min((t+1)*each, rows); i++ {
			k := (i - t*each) % high
			for j := range cols {
				d := float64(x[i*cols+j]) - float64(pivot[j])
				s[k*cols+j] += d
				q[k*cols+j] = math.FMA(d, d, q[k*cols+j])
			}
		}
		for k := range high {
			for j := range cols {
				sums[t*cols+j] += s[k*cols+j]
				squares[t*cols+j] += q[k*cols+j]
			}
		}
	})
	return sums, squares, tiles
}

// columnMoments returns a column's mean and standard deviation from the sums of its parts, which are stride elements apart.
func columnMoments[X int32 | float32 | float64, C numbers.Element](rows, parts, stride int64, sums, squares []float64, pivot X) (mean, deviation C) {
	var s, q float64
	for t := range parts {
		s += sums[t*stride]
		q += squares[t*stride]
	}
	m := s / float64(rows)
	variance := q/float64(rows) - float64(m*m)
	mean, deviation = C(float64(pivot)+m), 1
	if variance > 0 {
		deviation = C(math.Sqrt(variance))
	}
	return mean, deviation
}

// columnStandardise takes rows, cols, x, z, scratch.
func columnStandardise[X int32 | float32 | float64, C numbers.Element](*libraryKernel) launch.Reference {
	return launch.Reference{Spans: launch.OneSpan, Run: func(c *launch.Call, _, _ int64) {
		rows, cols := launch.Integer(c.Args[0]), launch.Integer(c.Args[1])
		x, z := launch.Slice[X](c.Args[2], rows*cols), launch.Slice[C](c.Args[3], rows*cols)
		sums, squares, tiles := columnParts(rows, cols, x, x)
		mean, deviation := make([]C, cols), make([]C, cols)
		for j := range cols {
			mean[j], deviation[j] = columnMoments[X, C](rows, tiles, cols, sums[j:], squares[j:], x[j])
		}
		each := rowsEach(rows, cols)
		parallel(tiles, func(t int64) {
			for i := t * each; i < min((t+1)*each, rows); i++ {
				for j := range cols {
					z[i*cols+j] = (C(x[i*cols+j]) - mean[j]) / deviation[j]
				}
			}
		})
	}}
}

// columnSums takes rows, cols, pivot, x, sums, scratch.
func columnSums[X int32 | float32 | float64](*libraryKernel) launch.Reference {
	return launch.Reference{Spans: launch.OneSpan, Run: func(c *launch.Call, _, _ int64) {
		rows, cols := launch.Integer(c.Args[0]), launch.Integer(c.Args[1])
		pivot, x, to := launch.Slice[X](c.Args[2], cols), launch.Slice[X](c.Args[3], rows*cols), launch.Slice[float64](c.Args[4], 2*cols)
		sums, squares, tiles := columnParts(rows, cols, x, pivot)
		for j := range cols {
			var s, q float64
			for t := range tiles {
				s += sums[t*cols+j]
				q += squares[t*cols+j]
			}
			to[j], to[cols+j] = s, q
		}
	}}
}

// momentsOfParts takes parts, rows, cols, pivot, sums, mean, inverse.
func momentsOfParts[X int32 | float32 | float64, C numbers.Element](*libraryKernel) launch.Reference {
	return launch.Reference{Spans: launch.OneSpan, Run: func(c *launch.Call, _, _ int64) {
		parts, rows, cols := launch.Integer(c.Args[0]), launch.Integer(c.Args[1]), launch.Integer(c.Args[2])
		pivot, sums := launch.Slice[X](c.Args[3], cols), launch.Slice[float64](c.Args[4], 2*parts*cols)
		mean, inverse := launch.Slice[C](c.Args[5], cols), launch.Slice[C](c.Args[6], cols)
		for j := range cols {
			var deviation C
			mean[j], deviation = columnMoments[X, C](rows, parts, 2*cols, sums[j:], sums[cols+j:], pivot[j])
			inverse[j] = 1 / deviation
		}
	}}
}

// bins finds the bin of a value between low and high, as Bins in cuda/phases.cu does. high - low can overflow, and so can the number
// of bins divided by a tiny difference: in both cases everything is scaled by a power of two first.
type bins struct {
	stretch, origin, scale float64
	first, last            int64
	none                   bool // low is above high, or one of them is NaN or infinite: no value is counted
}

func evenBins(count int64, low, high float64) bins {
	b := bins{stretch: 1, last: count - 1}
	switch width := high - low; {
	case width > math.MaxFloat64:
		b.stretch = 0.5
	case width > 0 && width < 0x1p-1000:
		b.stretch = 0x1p1000
	}
	b.origin = float64(low * b.stretch)
	width := float64(high*b.stretch) - b.origin
	b.none = !(width >= 0 && width <= math.MaxFloat64)
	if b.scale = float64(count) / width; width == 0 {
		b.scale, b.first = 0, b.last // all values are high, which belongs to the last bin
	}
	return b
}

func (b *bins) at(v float64) int64 {
	return min(b.first+int64((float64(v*b.stretch)-b.origin)*b.scale), b.last)
}

// histogram takes n, bins, low, high, x, out, scratch.
func histogram[C numbers.Element](*libraryKernel) launch.Reference {
	const span = 1 << 18
	return launch.Reference{Spans: launch.OneSpan, Run: func(c *launch.Call, _, _ int64) {
		n, bins := launch.Integer(c.Args[0]), launch.Integer(c.Args[1])
		low, high := launch.Scalar[C](c.Args[2]), launch.Scalar[C](c.Args[3])
		x, out := launch.Slice[C](c.Args[4], n), launch.Slice[int64](c.Args[5], bins)
		even := evenBins(bins, float64(low), float64(high))
		if even.none {
			n = 0
		}
		parts := make([][]int64, launch.SpansOf(n, span))
		parallel(int64(len(parts)), func(s int64) {
			count := make([]int64, bins)
			for _, v := range x[s*span : min((s+1)*span, n)] {
				if v >= low && v <= high {
					count[even.at(float64(v))]++
				}
			}
			parts[s] = count
		})
		clear(out)
		for _, count := range parts {
			for b, k := range count {
				out[b] += k
			}
		}
	}}
}

// fftStage takes n, batch, half, inverse, x, y.
func fftStage[C numbers.Element](*libraryKernel) launch.Reference {
	const span = 1 << 14
	return launch.Reference{
		Spans: func(c *launch.Call) int64 {
			return launch.SpansOf(launch.Integer(c.Args[0])/2*launch.Integer(c.Args[1]), span)
		},
		Run: func(c *launch.Call, lo, hi int64) {
			n, batch, half := launch.Integer(c.Args[0]), launch.Integer(c.Args[1]), launch.Integer(c.Args[2])
			inverse := launch.Integer(c.Args[3]) != 0
			x, y := launch.Slice[C](c.Args[4], n*batch*2), launch.Slice[C](c.Args[5], n*batch*2)
			for i := lo * span; i < min(hi*span, n/2*batch); i++ {
				which, j := i/(n/2), i%(n/2)
				k := j % half
				in, out := x[which*n*2:], y[which*n*2:]
				s, cos := turns(C(k) / C(2*half))
				if !inverse {
					s = -s
				}
				ar, ai, br, bi := in[j*2], in[j*2+1], in[(j+n/2)*2], in[(j+n/2)*2+1]
				tr, ti := C(br*cos)-C(bi*s), C(br*s)+C(bi*cos)
				to := (j-k)*2 + k
				out[to*2], out[to*2+1] = ar+tr, ai+ti
				out[(to+half)*2], out[(to+half)*2+1] = ar-tr, ai-ti
			}
		},
	}
}

func turns[C numbers.Element](u C) (s, c C) {
	if v, ok := any(u).(float64); ok {
		s, c := numbers.SincosTurns64(v)
		return C(s), C(c)
	}
	s32, c32 := numbers.SincosTurns32(float32(u))
	return C(s32), C(c32)
}
