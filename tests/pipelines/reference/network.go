// The network pipelines: computes the results of dl.yaml and inception.yaml from the definition of each layer.

package main

import (
	"math"

	"github.com/dagrun/dagrun/dag/expr"
)

// layer is points with channels last.
type layer struct {
	side, channels int
	values         []float64
}

func newLayer(side, channels int, at func(y, x, c int) float64) layer {
	l := layer{side, channels, make([]float64, side*side*channels)}
	inRows(side, func(y int) {
		for x := range side {
			for c := range channels {
				l.values[(y*side+x)*channels+c] = at(y, x, c)
			}
		}
	})
	return l
}

func (l layer) at(y, x, c int) float64 {
	if y < 0 || x < 0 || y >= l.side || x >= l.side {
		return 0
	}
	return l.values[(y*l.side+x)*l.channels+c]
}

// convolved is a convolution with ReLU; pad is as wide as the window reaches out.
func (l layer) convolved(out, size, stride int, weights func(i int) float64) layer {
	pad := size / 2
	w := make([]float64, out*size*size*l.channels)
	for i := range w {
		w[i] = weights(i)
	}
	return newLayer((l.side+2*pad-size)/stride+1, out, func(y, x, o int) float64 {
		sum := 0.0
		for ky := range size {
			for kx := range size {
				for c := range l.channels {
					sum += w[((o*size+ky)*size+kx)*l.channels+c] * l.at(y*stride+ky-pad, x*stride+kx-pad, c)
				}
			}
		}
		return math.Max(0, sum)
	})
}

func (l layer) pooled(size, stride int) layer {
	return newLayer((l.side-size)/stride+1, l.channels, func(y, x, c int) float64 {
		sum := 0.0
		for ky := range size {
			for kx := range size {
				sum += l.at(y*stride+ky, x*stride+kx, c)
			}
		}
		return sum / float64(size*size)
	})
}

// drawn returns the values of the files' init expressions: thousandths starting at shift, rounded to float32.
func drawn(seed, count int64, shift float64) func(i int) float64 {
	return func(i int) float64 {
		return float64(float32(float64(expr.Rand(seed, int64(i), count))/1000 + shift))
	}
}

func networkReference(side int) ([]float64, []int) {
	var joined []float64
	for b := range int64(2) {
		pixel := drawn(10+b, 1000, 0)
		p := newLayer(side, 1, func(y, x, _ int) float64 { return pixel(y*side + x) })
		last := p.convolved(8, 3, 2, drawn(20+b, 2001, -1)).pooled(5, 5).convolved(16, 3, 2, drawn(30+b, 2001, -1))
		joined = append(joined, last.values...)
	}
	weight, sum := drawn(40, 2001, -1), 0.0
	for i, v := range joined {
		sum += v * weight(i)
	}
	return []float64{sum}, []int{1}
}

// inceptionReference is a block of four branches over 16 channels: 1x1; 1x1 then 3x3; 1x1 then 5x5; 3x3. Each ends in 8 channels.
func inceptionReference(side int) ([]float64, []int) {
	value := drawn(50, 1000, 0)
	x := newLayer(side, 16, func(y, x, c int) float64 { return value((y*side+x)*16 + c) })
	weights := func(k int64) func(int) float64 { return drawn(60+k, 2001, -1) }
	branches := []layer{
		x.convolved(8, 1, 1, weights(0)),
		x.convolved(4, 1, 1, weights(1)).convolved(8, 3, 1, weights(2)),
		x.convolved(4, 1, 1, weights(3)).convolved(8, 5, 1, weights(4)),
		x.convolved(8, 3, 1, weights(5)),
	}
	joined := newLayer(side, 32, func(y, x, c int) float64 { return branches[c/8].at(y, x, c%8) })
	return joined.values, []int{side, side, 32}
}
