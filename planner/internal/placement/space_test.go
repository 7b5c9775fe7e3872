// Tests of spaces: the intervals of ranges and tiles have exactly their bytes, and meet exactly if those meet.

package placement

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/dag"
)

const spaceRows, spacePitch = 6, 8

// drawSpace draws ranges and tiles of a buffer, and makes its space.
func drawSpace(rng *rand.Rand) (*space, []dag.Range) {
	s := &space{}
	var list []dag.Range
	for range 2 + rng.IntN(5) {
		var r dag.Range
		if rng.IntN(2) == 0 {
			top, left := rng.Int64N(spaceRows), rng.Int64N(spacePitch)
			bottom, right := top+1+rng.Int64N(spaceRows-top), left+1+rng.Int64N(spacePitch-left)
			r = dag.Range{Lo: top*spacePitch + left, Hi: (bottom-1)*spacePitch + right}
			if bottom-top > 1 && right-left < spacePitch {
				r.Pitch, s.pitch = spacePitch, spacePitch
			}
		} else {
			r.Lo = rng.Int64N(spaceRows * spacePitch)
			r.Hi = r.Lo + 1 + rng.Int64N(spaceRows*spacePitch-r.Lo)
		}
		list = append(list, r)
	}
	if s.pitch > 0 {
		for _, r := range list {
			s.cut(r)
		}
		s.cuts = append(s.cuts, 0, spaceRows)
		slices.Sort(s.cuts)
		s.cuts = slices.Compact(s.cuts)
	}
	return s, list
}

func TestIntervalsHaveTheBytesOfRanges(t *testing.T) {
	tiled, parts := 0, 0
	for seed := range uint64(2000) {
		rng := rand.New(rand.NewPCG(seed, 3))
		s, list := drawSpace(rng)
		size := s.size(spaceRows * spacePitch)
		if s.pitch > 0 {
			tiled++
		}
		of := make([][]interval, len(list))
		for k, r := range list {
			of[k] = s.of(r, nil)
			var bytes []int64
			sum := int64(0)
			for _, x := range of[k] {
				require.True(t, 0 <= x.lo && x.lo < x.hi && x.hi <= size, "seed %d", seed)
				sum += s.bytes(x)
				for _, back := range s.ranges(7, x) {
					require.Equal(t, dag.BufferID(7), back.Buffer)
					bytes = append(bytes, bytesOf(back)...)
				}
			}
			slices.Sort(bytes)
			require.Equal(t, bytesOf(r), bytes, "seed %d: %v", seed, r)
			require.EqualValues(t, len(bytes), sum)
			// Any part of an interval has some of the bytes, as many as it says, and the rest has the others.
			x := of[k][rng.IntN(len(of[k]))]
			at := x.lo + rng.Int64N(x.hi-x.lo+1)
			var both []int64
			for _, part := range []interval{{x.lo, at}, {at, x.hi}} {
				n := 0
				for _, back := range s.ranges(7, part) {
					both = append(both, bytesOf(back)...)
					n += len(bytesOf(back))
				}
				require.EqualValues(t, n, s.bytes(part))
				parts++
			}
			var whole []int64
			for _, back := range s.ranges(7, x) {
				whole = append(whole, bytesOf(back)...)
			}
			slices.Sort(both)
			slices.Sort(whole)
			require.Equal(t, whole, both, "seed %d", seed)
		}
		for k := range list {
			for j := range list {
				want := slices.ContainsFunc(bytesOf(list[k]), func(at int64) bool { return slices.Contains(bytesOf(list[j]), at) })
				got := slices.ContainsFunc(of[k], func(x interval) bool {
					return slices.ContainsFunc(of[j], func(y interval) bool { return x.lo < y.hi && y.lo < x.hi })
				})
				require.Equal(t, want, got, "seed %d: %v and %v", seed, list[k], list[j])
			}
		}
		require.Empty(t, s.of(dag.Range{Lo: 5, Hi: 5}, nil))
	}
	require.Greater(t, tiled, 500)
	require.Positive(t, parts)
}

// Two ranges are joined only if together they are one range or tile, and then it has the bytes of both.
func TestRangesBelowEachOtherAreJoined(t *testing.T) {
	joined, apart := 0, 0
	for seed := range uint64(3000) {
		rng := rand.New(rand.NewPCG(seed, 4))
		s, list := drawSpace(rng)
		a := list[0]
		for _, b := range list[1:] {
			if rng.IntN(3) == 0 && s.pitch > 0 { // right below
				rows := (a.Hi-1)/spacePitch - a.Lo/spacePitch + 1
				b = dag.Range{Lo: a.Lo + rows*spacePitch, Hi: a.Hi + rows*spacePitch, Pitch: a.Pitch}
			} else if rng.IntN(3) == 0 {
				b.Lo, b.Pitch = a.Hi, 0
				b.Hi = b.Lo + 1 + rng.Int64N(12)
			}
			both, ok := s.below(a, b)
			if !ok {
				require.Equal(t, a, both)
				apart++
				continue
			}
			joined++
			want := append(bytesOf(a), bytesOf(b)...)
			slices.Sort(want)
			require.Equal(t, want, bytesOf(both), "seed %d: %v and %v", seed, a, b)
		}
	}
	require.Greater(t, joined, 300)
	require.Greater(t, apart, 300)
}

// A piece has what is used of it, begins and ends where it may, and is no larger than that needs.
func TestBoundsOfPieces(t *testing.T) {
	for seed := range uint64(3000) {
		rng := rand.New(rand.NewPCG(seed, 5))
		pitch, align := int64(0), int64(256)
		if rng.IntN(2) == 0 {
			pitch = []int64{8, 96, 256, 300, 512}[rng.IntN(5)]
		}
		if rng.IntN(4) == 0 {
			align = 512
		}
		bytes := 1 + rng.Int64N(20_000)
		if pitch > 0 {
			bytes = pitch * (1 + rng.Int64N(40))
		}
		u := use{lo: rng.Int64N(bytes + 1)}
		u.hi = u.lo + rng.Int64N(bytes-u.lo+1)
		lo, hi := bounds(u, bytes, pitch, align)
		unit := align
		if pitch > 0 {
			for unit = pitch; unit%align != 0; {
				unit += pitch
			}
		}
		require.True(t, 0 <= lo && lo <= u.lo && u.hi <= hi && lo < hi && hi <= bytes, "seed %d", seed)
		require.Zero(t, lo%unit)
		require.True(t, hi == bytes || hi%unit == 0)
		if u.lo < u.hi {
			require.True(t, u.lo-lo < unit && hi-u.hi < unit, "seed %d: no larger than it must be", seed)
		} else {
			require.LessOrEqual(t, hi-lo, unit)
		}
	}
}
