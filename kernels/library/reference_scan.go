// References of the prefix sums.

package library

import (
	"github.com/dagrun/dagrun/kernels/internal/launch"
	"github.com/dagrun/dagrun/kernels/internal/numbers"
)

const (
	scanOwn  = 16
	scanTile = reduceLanes * scanOwn
)

// scanLanes replaces each value by the sum of those before it, in the kernels' order, and returns the sum of all: first in each warp, then
// over the warps.
func scanLanes[C numbers.Element](v *[reduceLanes]C) (all C) {
	for from := 0; from < reduceLanes; from += 32 {
		w := v[from : from+32]
		for off := 1; off < 32; off *= 2 {
			for t := 31; t >= off; t-- {
				w[t] = w[t-off] + w[t]
			}
		}
		before := all
		all += w[31]
		for t := 31; t > 0; t-- {
			w[t] = before + w[t-1]
		}
		w[0] = before
	}
	return all
}

func scanOwnSums[C numbers.Element](x []C) (v [reduceLanes]C) {
	for t := range v {
		for u := range scanOwn {
			var e C
			if i := t*scanOwn + u; i < len(x) {
				e = x[i]
			}
			if u == 0 {
				v[t] = e
			} else {
				v[t] += e
			}
		}
	}
	return v
}

// scanning takes n, x, y, scratch.
func scanning[C numbers.Element](inclusive bool) func(*libraryKernel) launch.Reference {
	reference := launch.Reference{Spans: launch.OneSpan, Run: func(c *launch.Call, _, _ int64) {
		n := launch.Integer(c.Args[0])
		x, y := launch.Slice[C](c.Args[1], n), launch.Slice[C](c.Args[2], n)
		tiles := (n + scanTile - 1) / scanTile
		parts := make([]C, tiles)
		parallel(tiles, func(t int64) {
			v := scanOwnSums(x[t*scanTile : min((t+1)*scanTile, n)])
			parts[t] = scanLanes(&v)
		})
		var before C
		for from := int64(0); from < tiles; from += reduceLanes {
			var v [reduceLanes]C
			copy(v[:], parts[from:])
			all := scanLanes(&v)
			for t := range min(reduceLanes, tiles-from) {
				parts[from+t] = before + v[t]
			}
			before += all
		}
		parallel(tiles, func(t int64) {
			lo, hi := t*scanTile, min((t+1)*scanTile, n)
			v := scanOwnSums(x[lo:hi])
			scanLanes(&v)
			for lane := range int64(reduceLanes) {
				sum := parts[t] + v[lane]
				for i := lo + lane*scanOwn; i < min(lo+(lane+1)*scanOwn, hi); i++ {
					before := sum
					if sum += x[i]; inclusive {
						y[i] = sum
					} else {
						y[i] = before
					}
				}
			}
		})
	}}
	return func(*libraryKernel) launch.Reference { return reference }
}
