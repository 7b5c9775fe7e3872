// Published networks of convolutions, as graphs of kernels.

package planner

import (
	"math"
	"slices"

	"github.com/dagrun/dagrun/planner/internal/plantest"
)

// published collects the kernels of a network. A convolution is one kernel, or two with its activation, or three with its normalisation.
type published struct {
	plantest.Shape
	parts int // of a convolution
	unit  bool
}

// tensor is the output of a kernel.
type tensor struct {
	node           int32
	side, channels int
}

// kernel appends a kernel that makes an output with the given number of million operations.
func (n *published) kernel(million float64, side, channels int, from ...int32) tensor {
	if !n.unit {
		// At least 5 us, plus about the time that a large GPU needs for a small batch.
		n.Cost = append(n.Cost, 3+math.Round(10*million/8)/10)
	}
	slices.Sort(from)
	n.Preds = append(n.Preds, slices.Compact(from))
	return tensor{int32(len(n.Preds) - 1), side, channels}
}

// conv appends a convolution with a window of the given number of points.
func (n *published) conv(x tensor, channels, window, stride int) tensor {
	side := (x.side + stride - 1) / stride
	points := float64(side * side * channels)
	y := n.kernel(points*float64(x.channels*window)/1e6, side, channels, x.node)
	return n.finish(y, points)
}

// finish appends the rest of a convolution with so many points.
func (n *published) finish(y tensor, points float64) tensor {
	for range n.parts - 1 {
		y = n.kernel(points/1e5, y.side, y.channels, y.node)
	}
	return y
}

func (n *published) pool(x tensor, stride int) tensor {
	side := (x.side + stride - 1) / stride
	return n.kernel(float64(9*side*side*x.channels)/1e6, side, x.channels, x.node)
}

func (n *published) join(parts ...tensor) tensor {
	channels := 0
	var from []int32
	for _, p := range parts {
		channels += p.channels
		from = append(from, p.node)
	}
	side := parts[0].side
	return n.kernel(float64(side*side*channels)/1e5, side, channels, from...)
}

// googLeNet is the network of Szegedy et al., "Going deeper with convolutions", table 1, with one to three kernels for each
// convolution. Each kernel takes 1 us with unit, otherwise about its time on a large GPU.
func googLeNet(parts int, unit bool) *plantest.Shape {
	n := &published{Shape: plantest.Shape{Name: "googlenet"}, parts: parts, unit: unit}
	x := n.finish(n.kernel(112*112*64*3*49/1e6, 112, 64), 112*112*64)
	x = n.pool(x, 2)
	x = n.conv(x, 64, 1, 1)
	x = n.conv(x, 192, 9, 1)
	x = n.pool(x, 2)
	for k, c := range [][6]int{
		{64, 96, 128, 16, 32, 32}, {128, 128, 192, 32, 96, 64},
		{192, 96, 208, 16, 48, 64}, {160, 112, 224, 24, 64, 64}, {128, 128, 256, 24, 64, 64}, {112, 144, 288, 32, 64, 64}, {256, 160, 320, 32, 128, 128},
		{256, 160, 320, 32, 128, 128}, {384, 192, 384, 48, 128, 128},
	} {
		x = n.join(n.conv(x, c[0], 1, 1), n.conv(n.conv(x, c[1], 1, 1), c[2], 9, 1), n.conv(n.conv(x, c[3], 1, 1), c[4], 25, 1),
			n.conv(n.pool(x, 1), c[5], 1, 1))
		if k == 1 || k == 6 {
			x = n.pool(x, 2)
		}
	}
	x = n.kernel(0.05, 1, 1024, x.node)
	x = n.kernel(0.01, 1, 1024, x.node)
	n.kernel(1, 1, 1000, x.node)
	return &n.Shape
}

// inceptionV3 is the network of Szegedy et al., "Rethinking the inception architecture for computer vision", table 1, with
// kernels and durations like googLeNet.
func inceptionV3(parts int, unit bool) *plantest.Shape {
	n := &published{Shape: plantest.Shape{Name: "inception"}, parts: parts, unit: unit}
	x := n.finish(n.kernel(149*149*32*3*9/1e6, 149, 32), 149*149*32)
	x = n.conv(n.conv(x, 32, 9, 1), 64, 9, 1)
	x = n.pool(x, 2)
	x = n.conv(n.conv(x, 80, 1, 1), 192, 9, 1)
	x = n.pool(x, 2)
	for _, pooled := range []int{32, 64, 64} {
		x = n.join(n.conv(x, 64, 1, 1), n.conv(n.conv(x, 48, 1, 1), 64, 25, 1), n.conv(n.conv(n.conv(x, 64, 1, 1), 96, 9, 1), 96, 9, 1),
			n.conv(n.pool(x, 1), pooled, 1, 1))
	}
	x = n.join(n.conv(x, 384, 9, 2), n.conv(n.conv(n.conv(x, 64, 1, 1), 96, 9, 1), 96, 9, 2), n.pool(x, 2))
	for _, c := range []int{128, 160, 160, 192} {
		far := n.conv(x, c, 1, 1)
		for range 3 {
			far = n.conv(far, c, 7, 1)
		}
		x = n.join(n.conv(x, 192, 1, 1), n.conv(n.conv(n.conv(x, c, 1, 1), c, 7, 1), 192, 7, 1), n.conv(far, 192, 7, 1),
			n.conv(n.pool(x, 1), 192, 1, 1))
	}
	x = n.join(n.conv(n.conv(x, 192, 1, 1), 320, 9, 2), n.conv(n.conv(n.conv(n.conv(x, 192, 1, 1), 192, 7, 1), 192, 7, 1), 192, 9, 2), n.pool(x, 2))
	for range 2 {
		near := n.conv(x, 384, 1, 1)
		far := n.conv(n.conv(x, 448, 1, 1), 384, 9, 1)
		x = n.join(n.conv(x, 320, 1, 1), n.join(n.conv(near, 384, 3, 1), n.conv(near, 384, 3, 1)), n.join(n.conv(far, 384, 3, 1), n.conv(far, 384, 3, 1)),
			n.conv(n.pool(x, 1), 192, 1, 1))
	}
	x = n.kernel(0.1, 1, 2048, x.node)
	n.kernel(2, 1, 1000, x.node)
	return &n.Shape
}
