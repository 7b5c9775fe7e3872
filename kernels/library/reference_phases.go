// References of the kernels with two phases: standardised columns, histogram.

package library

import (
	"math"

	"github.com/dagrun/dagrun/internal/numbers"
	"github.com/dagrun/dagrun/kernels/internal/reference"
	"github.com/dagrun/dagrun/kernels/launch"
)

// columnsOf returns how many neighbouring columns a thread has: 4 or 2 if their number is divisible by that.
func columnsOf(cols int64) int64 {
	switch {
	case cols%4 == 0:
		return 4
	case cols%2 == 0:
		return 2
	}
	return 1
}

// columnStrips says how the kernels on columns divide a matrix: into strips, whose width is what the lanes of a block have, and in each strip into
// high tiles of at most each rows, such that a tile has least elements or more.
func columnStrips(rows, cols, least int64) (strip, wide, each, high int64) {
	strip = reduceLanes * columnsOf(cols)
	wide = (cols + strip - 1) / strip
	across, most := max(min(cols, strip), 1), max(columnTiles/max(wide, 1), 1)
	each = max((rows+most-1)/most, (least+across-1)/across)
	return strip, wide, each, (rows + each - 1) / each
}

// columnTiles is how many tiles a matrix has at most. Those that are summed have at least so many elements, those to which the result is applied fewer.
const columnTiles, sumElements, applyElements = 264, 8192, 2048

// columnTotals returns each column's sum of x - pivot and the sum of its squares.
func columnTotals[X int32 | float32 | float64](rows, cols int64, x, pivot []X) (sums, squares []float64) {
	const chunk, group = 16, 32
	strip, wide, each, high := columnStrips(rows, cols, sumElements)
	parts, squareParts := make([]float64, high*cols), make([]float64, high*cols)
	parallel(high*wide, func(tile int64) {
		// Row i of a tile is added to sum i % across. These sums are joined at the end: 16 neighbours at a time, and then the results.
		t, first := tile/wide, tile%wide*strip
		width := min(cols-first, strip)
		across := strip / width
		s, q := make([]float64, across*width), make([]float64, across*width)
		for i := t * each; i < min((t+1)*each, rows); i++ {
			k := (i - t*each) % across * width
			for j := range width {
				d := float64(x[i*cols+first+j]) - float64(pivot[first+j])
				s[k+j] += d
				q[k+j] = math.FMA(d, d, q[k+j])
			}
		}
		for j := range width {
			for from := int64(0); from < across; from += chunk {
				var sum, square float64
				for k := from; k < min(from+chunk, across); k++ {
					sum += s[k*width+j]
					square += q[k*width+j]
				}
				parts[t*cols+first+j] += sum
				squareParts[t*cols+first+j] += square
			}
		}
	})
	// The parts of each 32 tiles are added up, and then these sums.
	add := func(parts []float64) []float64 {
		all := make([]float64, cols)
		for j := range cols {
			for from := int64(0); from < high; from += group {
				sum := 0.0
				for t := from; t < min(from+group, high); t++ {
					sum += parts[t*cols+j]
				}
				all[j] += sum
			}
		}
		return all
	}
	return add(parts), add(squareParts)
}

// columnMoments returns a column's mean and standard deviation.
func columnMoments[X int32 | float32 | float64, C numbers.Element](rows int64, sum, squares float64, pivot X) (mean, deviation C) {
	m := sum / float64(rows)
	variance := squares/float64(rows) - float64(m*m)
	mean, deviation = C(float64(pivot)+m), 1
	if variance > 0 {
		deviation = C(math.Sqrt(variance))
	}
	return mean, deviation
}

// columnStandardise takes rows, cols, x, z, scratch.
func columnStandardise[X int32 | float32 | float64, C numbers.Element](*libraryKernel) launch.Reference {
	return launch.Reference{Spans: reference.OneSpan, Run: func(c *launch.Call, _, _ int64) {
		rows, cols := reference.Integer(c.Args[0]), reference.Integer(c.Args[1])
		x, z := reference.Slice[X](c.Args[2], rows*cols), reference.Slice[C](c.Args[3], rows*cols)
		if rows == 0 {
			return
		}
		sums, squares := columnTotals(rows, cols, x, x)
		mean, deviation := make([]C, cols), make([]C, cols)
		for j := range cols {
			mean[j], deviation[j] = columnMoments[X, C](rows, sums[j], squares[j], x[j])
		}
		_, _, each, high := columnStrips(rows, cols, applyElements)
		parallel(high, func(t int64) {
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
	return launch.Reference{Spans: reference.OneSpan, Run: func(c *launch.Call, _, _ int64) {
		rows, cols := reference.Integer(c.Args[0]), reference.Integer(c.Args[1])
		pivot, x, to := reference.Slice[X](c.Args[2], cols), reference.Slice[X](c.Args[3], rows*cols), reference.Slice[float64](c.Args[4], 2*cols)
		sums, squares := columnTotals(rows, cols, x, pivot)
		copy(to, sums)
		copy(to[cols:], squares)
	}}
}

// momentsOfParts takes parts, rows, cols, pivot, sums, mean, inverse.
func momentsOfParts[X int32 | float32 | float64, C numbers.Element](*libraryKernel) launch.Reference {
	return launch.Reference{Spans: reference.OneSpan, Run: func(c *launch.Call, _, _ int64) {
		parts, rows, cols := reference.Integer(c.Args[0]), reference.Integer(c.Args[1]), reference.Integer(c.Args[2])
		pivot, sums := reference.Slice[X](c.Args[3], cols), reference.Slice[float64](c.Args[4], 2*parts*cols)
		mean, inverse := reference.Slice[C](c.Args[5], cols), reference.Slice[C](c.Args[6], cols)
		for j := range cols {
			var sum, squares float64
			for t := range parts {
				sum += sums[2*t*cols+j]
				squares += sums[(2*t+1)*cols+j]
			}
			var deviation C
			mean[j], deviation = columnMoments[X, C](rows, sum, squares, pivot[j])
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
	return launch.Reference{Spans: reference.OneSpan, Run: func(c *launch.Call, _, _ int64) {
		n, bins := reference.Integer(c.Args[0]), reference.Integer(c.Args[1])
		low, high := reference.Scalar[C](c.Args[2]), reference.Scalar[C](c.Args[3])
		x, out := reference.Slice[C](c.Args[4], n), reference.Slice[int64](c.Args[5], bins)
		even := evenBins(bins, float64(low), float64(high))
		if even.none {
			n = 0
		}
		parts := make([][]int64, reference.SpansOf(n, span))
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
			return reference.SpansOf(reference.Integer(c.Args[0])/2*reference.Integer(c.Args[1]), span)
		},
		Run: func(c *launch.Call, lo, hi int64) {
			n, batch, half := reference.Integer(c.Args[0]), reference.Integer(c.Args[1]), reference.Integer(c.Args[2])
			inverse := reference.Integer(c.Args[3]) != 0
			x, y := reference.Slice[C](c.Args[4], n*batch*2), reference.Slice[C](c.Args[5], n*batch*2)
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
