// References of the kernels that move elements by index or by a condition, and of sums of segments.

package library

import (
	"github.com/dagrun/dagrun/kernels/internal/reference"
	"github.com/dagrun/dagrun/kernels/launch"
)

// selected writes the elements that keeps chooses to y, then zeros, and how many they are.
func selected[T any](x, y []T, count *int64, keeps func(i int) bool) {
	at := 0
	for i, v := range x {
		if keeps(i) {
			y[at] = v
			at++
		}
	}
	clear(y[at:])
	*count = int64(at)
}

// compacting takes n, keep, x, y, count, scratch. Elements are moved as bits.
func compacting[T uint32 | uint64, X int32 | uint8](*libraryKernel) launch.Reference {
	return launch.Reference{Spans: reference.OneSpan, Run: func(c *launch.Call, _, _ int64) {
		n := reference.Integer(c.Args[0])
		keep := reference.Slice[X](c.Args[1], n)
		selected(reference.Slice[T](c.Args[2], n), reference.Slice[T](c.Args[3], n), &reference.Slice[int64](c.Args[4], 1)[0],
			func(i int) bool { return keep[i] != 0 })
	}}
}

// differing takes n, x, y, count, scratch.
func differing[T key](*libraryKernel) launch.Reference {
	return launch.Reference{Spans: reference.OneSpan, Run: func(c *launch.Call, _, _ int64) {
		n := reference.Integer(c.Args[0])
		x := reference.Slice[T](c.Args[1], n)
		selected(x, reference.Slice[T](c.Args[2], n), &reference.Slice[int64](c.Args[3], 1)[0], func(i int) bool { return i == 0 || compareKeys(x[i-1], x[i]) != 0 })
	}}
}

// gathering takes n, m, index, x, y. Elements are moved as bits.
func gathering[T uint32 | uint64, X int32 | int64](*libraryKernel) launch.Reference {
	return launch.Reference{
		Spans: reference.ElementwiseSpans,
		Run: func(c *launch.Call, lo, hi int64) {
			n, m := reference.Integer(c.Args[0]), reference.Integer(c.Args[1])
			index, x, y := reference.Slice[X](c.Args[2], n), reference.Slice[T](c.Args[3], m), reference.Slice[T](c.Args[4], n)
			for i := lo * reference.ElementwiseSpan; i < min(hi*reference.ElementwiseSpan, n); i++ {
				y[i] = 0
				if at := int64(index[i]); at >= 0 && at < m {
					y[i] = x[at]
				}
			}
		},
	}
}

// scattering takes n, m, index, x, y, scratch. Elements are moved as bits.
func scattering[T uint32 | uint64, X int32 | int64](*libraryKernel) launch.Reference {
	return launch.Reference{Spans: reference.OneSpan, Run: func(c *launch.Call, _, _ int64) {
		n, m := reference.Integer(c.Args[0]), reference.Integer(c.Args[1])
		index, x, y := reference.Slice[X](c.Args[2], n), reference.Slice[T](c.Args[3], n), reference.Slice[T](c.Args[4], m)
		for i, v := range x {
			if at := int64(index[i]); at >= 0 && at < m {
				y[at] = v
			}
		}
	}}
}

// warpPerSegment tells whether segments are so long on average that each has a warp. The kernel decides by the same rule.
func warpPerSegment(n, segments int64) bool { return (n-1)/8 >= segments }

// segmentSum takes n, segments, offsets, x, y. As in the kernel, long segments are summed in 32 lanes and a tree.
func segmentSum[T int32 | float32 | float64, S int64 | float32 | float64, X int32 | int64](*libraryKernel) launch.Reference {
	const span = 1 << 10
	return launch.Reference{
		Spans: func(c *launch.Call) int64 { return reference.SpansOf(reference.Integer(c.Args[1]), span) },
		Run: func(c *launch.Call, lo, hi int64) {
			n, segments := reference.Integer(c.Args[0]), reference.Integer(c.Args[1])
			offsets, x, y := reference.Slice[X](c.Args[2], segments+1), reference.Slice[T](c.Args[3], n), reference.Slice[S](c.Args[4], segments)
			lanes := 1
			if warpPerSegment(n, segments) {
				lanes = 32
			}
			for s := lo * span; s < min(hi*span, segments); s++ {
				var sums [32]S
				from, to := max(0, min(int64(offsets[s]), n)), min(int64(offsets[s+1]), n)
				for j := from; j < to; j++ {
					sums[int(j-from)%lanes] += S(x[j])
				}
				for half := lanes / 2; half > 0; half /= 2 {
					for l := range half {
						sums[l] += sums[l+half]
					}
				}
				y[s] = sums[0]
			}
		},
	}
}
