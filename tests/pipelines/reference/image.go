// The picture pipeline: computes the result of img.yaml from the definition of each filter.

package main

import (
	"math"

	"github.com/dagrun/dagrun/dag/expr"
)

// picture is rows of points; reading outside of it gives zero.
type picture struct {
	side   int
	points []float64
}

func newPicture(side int, at func(y, x int) float64) picture {
	p := picture{side, make([]float64, side*side)}
	inRows(side, func(y int) {
		for x := range side {
			p.points[y*side+x] = at(y, x)
		}
	})
	return p
}

func (p picture) at(y, x int) float64 {
	if y < 0 || x < 0 || y >= p.side || x >= p.side {
		return 0
	}
	return p.points[y*p.side+x]
}

// blurred weighs the square around each point by a Gaussian in two dimensions, normed to 1.
func (p picture) blurred(diameter int, sigma float64) picture {
	r := diameter / 2
	total := 0.0
	weights := make([]float64, diameter*diameter)
	for k := range weights {
		dy, dx := float64(k/diameter-r), float64(k%diameter-r)
		weights[k] = math.Exp(-(dy*dy + dx*dx) / (2 * sigma * sigma))
		total += weights[k]
	}
	return newPicture(p.side, func(y, x int) float64 {
		sum := 0.0
		for dy := -r; dy <= r; dy++ {
			for dx := -r; dx <= r; dx++ {
				sum += weights[(dy+r)*diameter+dx+r] * p.at(y+dy, x+dx)
			}
		}
		return sum / total
	})
}

// edges is the length of the gradient that Sobel's two masks find.
func (p picture) edges() picture {
	mask := [3]float64{1, 2, 1}
	return newPicture(p.side, func(y, x int) float64 {
		var h, v float64
		for k := -1; k <= 1; k++ {
			h += mask[k+1] * (p.at(y+k, x+1) - p.at(y+k, x-1))
			v += mask[k+1] * (p.at(y+1, x+k) - p.at(y-1, x+k))
		}
		return math.Hypot(h, v)
	})
}

func imageReference(side int) ([]float64, []int) {
	image := newPicture(side, func(y, x int) float64 {
		// The buffer holds float32: so do the points from which everything is computed.
		i := int64(y*side + x)
		return float64(float32(float64((y/8+x/8)%2)*0.4 + float64(x)*0.3/float64(side) + float64(expr.Rand(5, i, 1000))*0.0003))
	})
	small, large, soft := image.blurred(3, 1), image.blurred(5, 10), image.blurred(3, 5)
	edgesSmall, edgesLarge := small.edges(), large.edges()
	low, high := math.Inf(1), math.Inf(-1)
	for _, v := range edgesLarge.points {
		low, high = math.Min(low, v), math.Max(high, v)
	}
	result := newPicture(side, func(y, x int) float64 {
		sharp := math.Max(0, math.Min(1, 1.5*image.at(y, x)-0.5*soft.at(y, x)))
		mask := math.Min(1, 5*(edgesLarge.at(y, x)-low)/(high-low))
		combined := sharp*mask + large.at(y, x)*(1-mask)
		m := edgesSmall.at(y, x)
		return combined*m + small.at(y, x)*(1-m)
	})
	return result.points, []int{side, side}
}
