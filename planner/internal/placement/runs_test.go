// Tests of what is known of bytes: which devices hold them, and which have been written, against tables with an entry for each byte.

package placement

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/dag"
)

func TestHoldersAgreeWithBytes(t *testing.T) {
	const size = 40
	held, missing := 0, 0
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 1))
		var r runs
		bytes := make([]uint64, size)
		for range 12 {
			lo := rng.Int64N(size)
			hi := lo + rng.Int64N(size-lo+1)
			switch holders := uint64(1 + rng.IntN(15)); {
			case rng.IntN(3) > 0:
				r.write(lo, hi, holders)
				for i := lo; i < hi; i++ {
					bytes[i] = holders
				}
			case lo < hi: // a device more holds what is there
				first, end := r.cut(lo, hi)
				for k := first; k < end; k++ {
					r[k].holders |= 16
				}
				for i := lo; i < hi; i++ {
					if bytes[i] != 0 {
						bytes[i] |= 16
					}
				}
			}
			for k := range r {
				require.Less(t, r[k].lo, r[k].hi)
				require.True(t, k == 0 || r[k-1].hi <= r[k].lo, "ascending")
				for i := r[k].lo; i < r[k].hi; i++ {
					require.Equal(t, bytes[i], r[k].holders, "seed %d, byte %d", seed, i)
				}
			}
			lo = rng.Int64N(size)
			hi = lo + 1 + rng.Int64N(size-lo)
			want := ^uint64(0)
			for i := lo; i < hi; i++ {
				want &= bytes[i]
			}
			require.Equal(t, want, r.common(lo, hi), "seed %d, %d..%d", seed, lo, hi)
			if want != 0 {
				held++
			} else {
				missing++
			}
		}
	}
	require.Greater(t, held, 300)
	require.Greater(t, missing, 300)
}

// Copies of one piece form a tree: whoever has it and has sent the fewest sends next, and whoever got it begins then.
func TestTheHolderThatIsFreeFirstSends(t *testing.T) {
	x := run{holders: 1}
	var from []int32
	for to := int32(1); to < 8; to++ {
		from = append(from, x.send(to, 8))
	}
	require.Equal(t, []int32{0, 0, 1, 0, 1, 2, 3}, from)
	require.Equal(t, uint64(255), x.holders)
	nobody := run{}
	require.Equal(t, int32(-1), nobody.send(1, 8))
	require.Zero(t, nobody.holders)
}

func TestContentsAgreeWithBytes(t *testing.T) {
	const rows, pitch = 6, 8
	all, some := 0, 0
	for seed := range uint64(2000) {
		rng := rand.New(rand.NewPCG(seed, 2))
		u := &unit{lo: pitch * rng.Int64N(rows-1), hi: rows * pitch}
		u.usedLo, u.usedHi = u.lo, u.hi
		tiled := rng.IntN(2) == 0
		var c contents
		written := map[int64]bool{}
		for range 1 + rng.IntN(6) {
			var r dag.Range
			if tiled {
				top, left := rng.Int64N(rows-1), rng.Int64N(pitch-1)
				bottom, right := top+2+rng.Int64N(rows-top-1), left+1+rng.Int64N(pitch-left-1)
				r = dag.Range{Lo: top*pitch + left, Hi: (bottom-1)*pitch + right, Pitch: pitch}
			} else {
				r.Lo = rng.Int64N(rows * pitch)
				r.Hi = r.Lo + 1 + rng.Int64N(rows*pitch-r.Lo)
			}
			c.write(r, u)
			for at := r.Lo; at < r.Hi; at++ {
				if inside := at >= u.lo && at < u.hi; inside && (r.Pitch == 0 || at%pitch >= r.Lo%pitch && at%pitch <= (r.Hi-1)%pitch) {
					written[at] = true
				}
			}
		}
		copied := map[int64]bool{}
		c.each(u, func(r dag.Range) {
			require.Less(t, r.Lo, r.Hi, "seed %d: nothing is copied", seed)
			list := bytesOf(r)
			for _, at := range list {
				copied[at] = true
			}
		})
		require.Equal(t, written, copied, "seed %d", seed)
		if c.all {
			all++
			require.Len(t, written, int(u.hi-u.lo), "seed %d", seed)
		} else {
			some++
			require.True(t, tiled || len(written) < int(u.hi-u.lo), "seed %d: bytes that follow each other are known to be all", seed)
		}
	}
	require.Greater(t, all, 50)
	require.Greater(t, some, 50)
}

// bytesOf lists the bytes of a range or tile.
func bytesOf(r dag.Range) (list []int64) {
	rows, width := r.Box()
	for row := range rows {
		for k := range width {
			list = append(list, r.Lo+row*int64(r.Pitch)+k)
		}
	}
	slices.Sort(list)
	return list
}
