// Tests of ranges and tiles in the proof, against tables that have a truth value for each byte.

package proof

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/dagrun/dagrun/dag"
)

// bytesOfRange lists the bytes of a range or tile of rows of tablePitch bytes.
func bytesOfRange(r dag.Range) (list []int64) {
	for at := r.Lo; at < r.Hi; at++ {
		if r.Pitch == 0 || at%tablePitch >= r.Lo%tablePitch && at%tablePitch <= (r.Hi-1)%tablePitch {
			list = append(list, at)
		}
	}
	return list
}

// What two accesses share is told as the smallest range or tile around it: it begins and ends where they do, in rows and columns.
func TestSharedIsAsSmallAsItCanBe(t *testing.T) {
	shares, tiles, apart := 0, 0, 0
	rapid.Check(t, func(t *rapid.T) {
		for range 60 { // some kinds are rare
			a, b := someRange(t), someRange(t)
			var both []int64
			if a.Buffer == b.Buffer {
				for _, at := range bytesOfRange(a) {
					if slices.Contains(bytesOfRange(b), at) {
						both = append(both, at)
					}
				}
			}
			got, ok := shared(a, b)
			require.Equal(t, len(both) > 0, ok)
			again, _ := shared(b, a)
			if !ok {
				apart++
				continue
			}
			shares++
			require.Equal(t, got, again, "whichever is named first")
			want := dag.Range{Buffer: a.Buffer, Lo: both[0], Hi: both[len(both)-1] + 1}
			if a.Pitch != 0 || b.Pitch != 0 {
				top, bottom := both[0]/tablePitch, both[len(both)-1]/tablePitch
				left, right := int64(tablePitch), int64(0)
				for _, at := range both {
					left, right = min(left, at%tablePitch), max(right, at%tablePitch+1)
				}
				want.Lo, want.Hi = top*tablePitch+left, bottom*tablePitch+right
				if bottom > top && right-left < tablePitch {
					want.Pitch = tablePitch
					tiles++
				}
			}
			require.Equal(t, want, got)
		}
	})
	require.Positive(t, shares)
	require.Positive(t, tiles)
	require.Positive(t, apart)
}

// Rows that all accesses use alike are one line of bytes in the proof. Two accesses share a byte of a line exactly if they share a byte.
func TestLinesKeepWhichAccessesMeet(t *testing.T) {
	meet, apart := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		for range 10 { // some kinds are rare
			b := dag.New("tiles")
			buffers := []dag.BufferID{b.Device("x", dag.U8, tableRows, tablePitch), b.Device("y", dag.U8, tableRows, tablePitch)}
			var list []dag.Range
			for _, r := range rapid.SliceOfN(rapid.Custom(someRange), 2, 8).Draw(t, "ranges") {
				r.Buffer = buffers[r.Buffer]
				list = append(list, r)
				b.Task("n", dag.Access{Range: r, Mode: dag.Read})
				b.At(dag.NodeID(len(list) - 1)).Name = string(rune('a' + len(list)))
			}
			g, err := b.Graph()
			if err != nil {
				t.Fatal(err)
			}
			bands := lines(g)
			tiled := map[dag.BufferID]bool{}
			for _, r := range list {
				tiled[r.Buffer] = tiled[r.Buffer] || r.Pitch != 0
			}
			require.Equal(t, tiled[0] || tiled[1], bands != nil)
			if bands == nil {
				continue
			}
			runs := func(r dag.Range) (parts [][2]int64) {
				bad := bands[r.Buffer].runs(&dag.Access{Range: r}, func(lo, hi int64) pair {
					require.Less(t, lo, hi)
					if n := len(parts); n > 0 {
						require.Less(t, parts[n-1][1], lo, "ascending, and as few as there can be")
					}
					parts = append(parts, [2]int64{lo, hi})
					return nobody
				})
				require.Equal(t, nobody, bad)
				for stop := range parts { // a bad pair ends it, even one with node 0
					visited := 0
					bad := bands[r.Buffer].runs(&dag.Access{Range: r}, func(lo, hi int64) pair {
						visited++
						if visited == stop+1 {
							return pair{1, 0}
						}
						return nobody
					})
					require.Equal(t, pair{1, 0}, bad)
					require.Equal(t, stop+1, visited)
				}
				return parts
			}
			for _, one := range list {
				for _, other := range list {
					if one.Buffer != other.Buffer {
						continue
					}
					want := slices.ContainsFunc(bytesOfRange(one), func(at int64) bool { return slices.Contains(bytesOfRange(other), at) })
					got := false
					for _, x := range runs(one) {
						for _, y := range runs(other) {
							got = got || x[0] < y[1] && y[0] < x[1]
						}
					}
					require.Equal(t, want, got, "%v and %v", one, other)
					if got {
						meet++
					} else {
						apart++
					}
				}
			}
		}
	})
	require.Positive(t, meet)
	require.Positive(t, apart)
}

// The runs of a buffer know for each byte who wrote it last, however many pieces it falls into.
func TestRunsAgreeWithBytes(t *testing.T) {
	for _, size := range []int64{6, 40, 3000} {
		for seed := range uint64(12) {
			rng := rand.New(rand.NewPCG(seed, uint64(size)))
			w := &accessWalk{s: &schedule{}}
			b := &byteRuns{first: byteRun{lo: lowest, hi: highest, writer: -1}}
			writers := make([]int32, size)
			for i := range writers {
				writers[i] = -1
			}
			for k := range int32(size) {
				lo := rng.Int64N(size)
				hi := lo + 1 + rng.Int64N(size-lo)
				if seed%4 > 0 {
					hi = min(size, lo+1+rng.Int64N(int64(seed%4)))
				}
				w.s.spots = append(w.s.spots, spot{0, k + 1})
				if at := b.from(w, lo, hi); b.chunks == nil {
					b.first.writer = k
				} else {
					b.join(at, hi, k)
				}
				for i := lo; i < hi; i++ {
					writers[i] = k
				}
			}
			b.from(w, 0, size)
			require.NotNil(t, b.chunks)
			end := int64(lowest)
			for at := b.find(lowest); at.chunk < len(b.chunks); at = b.next(at) {
				r := b.at(at)
				require.Equal(t, end, r.lo, "without gaps")
				require.Less(t, r.lo, r.hi)
				for i := max(r.lo, 0); i < min(r.hi, size); i++ {
					require.Equal(t, writers[i], r.writer, "byte %d", i)
					require.Equal(t, at, b.find(i))
				}
				end = r.hi
			}
			require.Equal(t, int64(highest), end)
			for _, chunk := range b.chunks {
				require.NotEmpty(t, chunk.runs)
				require.LessOrEqual(t, len(chunk.runs), runsInChunk)
			}
		}
	}
}
