// References of the prefix sums.

package library

import (
	"github.com/dagrun/dagrun/internal/numbers"
	"github.com/dagrun/dagrun/kernels/internal/describe"
	"github.com/dagrun/dagrun/kernels/internal/reference"
	"github.com/dagrun/dagrun/kernels/launch"
)

// A warp of a scan reads a number of times 128 neighbours, of which each lane has four each time: 8192 bytes.
const (
	scanWarp  = 8192 // bytes
	scanBlock = describe.BlockSize / 32 * scanWarp
)

// scanWarpLanes replaces each value by the sum of those up to it, in the order of a warp's lanes.
func scanWarpLanes[C numbers.Element](v *[32]C) {
	for off := 1; off < 32; off *= 2 {
		for t := 31; t >= off; t-- {
			v[t] = v[t-off] + v[t]
		}
	}
}

// scanned holds sums of a warp's part of a tile: for each 128 neighbours those of the lanes up to each, and the sum of all.
type scanned[C numbers.Element] struct {
	upTo [][32]C
	all  C
}

// scanPart sums x, which zeros follow up to the size of a part.
func scanPart[C numbers.Element](x []C, size int64) (s scanned[C]) {
	s.upTo = make([][32]C, size/128)
	for u := range s.upTo {
		for lane := range 32 {
			var v [4]C
			if i := u*128 + lane*4; i < len(x) {
				copy(v[:], x[i:])
			}
			s.upTo[u][lane] = ((v[0] + v[1]) + v[2]) + v[3]
		}
		scanWarpLanes(&s.upTo[u])
		if all := s.upTo[u][31]; u == 0 {
			s.all = all
		} else {
			s.all += all
		}
	}
	return s
}

// put writes the prefix sums of a warp's part, given the sum of what is before it.
func (s *scanned[C]) put(x, y []C, before C, inclusive bool) {
	for u := range s.upTo {
		for lane := range 32 {
			sum := before
			if lane > 0 {
				sum += s.upTo[u][lane-1]
			}
			for i := u*128 + lane*4; i < min(u*128+lane*4+4, len(x)); i++ {
				earlier := sum
				if sum += x[i]; inclusive {
					y[i] = sum
				} else {
					y[i] = earlier
				}
			}
		}
		before += s.upTo[u][31]
	}
}

// beforeTiles replaces the sums of tiles by the sums of what is before each: those of 32 tiles are added in the order of lanes, then those of 32 such
// groups, and the groups of groups one after the other.
func beforeTiles[C numbers.Element](sums []C) {
	groups := make([][32]C, (len(sums)+31)/32)
	var earlier C
	for first := 0; first < len(groups); first += 32 {
		var of [32]C
		in := groups[first:min(first+32, len(groups))]
		for g := range in {
			copy(in[g][:], sums[(first+g)*32:])
			scanWarpLanes(&in[g])
			of[g] = in[g][31]
		}
		scanWarpLanes(&of)
		for g := range in {
			before := earlier
			if g > 0 {
				before += of[g-1]
			}
			for t := range min(32, len(sums)-(first+g)*32) {
				at := (first+g)*32 + t
				if sums[at] = before; t > 0 {
					sums[at] += in[g][t-1]
				}
			}
		}
		earlier += of[31]
	}
}

// scanning takes n, x, y, scratch.
func scanning[C numbers.Element](inclusive bool) func(*libraryKernel) launch.Reference {
	return func(k *libraryKernel) launch.Reference {
		part, tile := scanWarp/k.types.T.Size(), scanBlock/k.types.T.Size()
		return launch.Reference{Spans: reference.OneSpan, Run: func(c *launch.Call, _, _ int64) {
			n := reference.Integer(c.Args[0])
			x, y := reference.Slice[C](c.Args[1], n), reference.Slice[C](c.Args[2], n)
			tiles := (n + tile - 1) / tile
			before := make([]C, tiles)
			parallel(tiles, func(t int64) {
				for from := t * tile; from < (t+1)*tile; from += part {
					if all := scanPart(x[min(from, n):min(from+part, n)], part).all; from == t*tile {
						before[t] = all
					} else {
						before[t] += all
					}
				}
			})
			beforeTiles(before)
			parallel(tiles, func(t int64) {
				var within C
				for from := t * tile; from < min((t+1)*tile, n); from += part {
					to := min(from+part, n)
					s := scanPart(x[from:to], part)
					s.put(x[from:to], y[from:to], before[t]+within, inclusive)
					within += s.all
				}
			})
		}}
	}
}
