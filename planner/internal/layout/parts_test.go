// Tests of layouts in parts: they are sound, and low also where there are too many buffers for a search.

package layout

import (
	"cmp"
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/planner/internal/order"
	"github.com/dagrun/dagrun/planner/internal/plantest"
	"github.com/dagrun/dagrun/planner/plan"
)

// requireApart checks that buffers that overlap in the arena are ordered.
func requireApart(t *testing.T, l *lifetimes, offsets []int64) {
	t.Helper()
	for b := range int32(len(l.buffers)) {
		require.GreaterOrEqual(t, offsets[b], int64(0))
		for a := range b {
			if offsets[a] < offsets[b]+l.bytes[b] && offsets[b] < offsets[a]+l.bytes[a] && !l.apart(a, b) {
				t.Fatalf("buffers %d and %d overlap", a, b)
			}
		}
	}
}

func TestLayoutsInPartsAreSound(t *testing.T) {
	made := 0
	for family := range plantest.Families {
		for _, streams := range []int{1, 4} {
			g, p := layoutSample(t, family, 120, streams, 3)
			for _, entries := range []int{order.Entries, 120} { // too few columns leave some buffers without an end
				l := readSharing(t, g, p, entries)
				for _, size := range []int{1, 7, 32, 500} {
					offsets, taken := layoutInParts(context.Background(), l, g.Len(), size, math.MaxInt64, math.MaxInt64)
					requireApart(t, l, offsets)
					require.Positive(t, taken)
					none, _ := layoutInParts(context.Background(), l, g.Len(), size, peakOf(l, offsets), math.MaxInt64)
					require.Nil(t, none, "it ends no lower than itself")
					few, spent := layoutInParts(context.Background(), l, g.Len(), size, math.MaxInt64, taken/8)
					require.Nil(t, few, "family %d, size %d", family, size)
					require.LessOrEqual(t, spent, taken)
					made++
				}
			}
		}
	}
	require.Greater(t, made, 100)
	ended, end := context.WithCancel(context.Background())
	end()
	g, p := layoutSample(t, 0, 120, 4, 3)
	none, _ := layoutInParts(ended, readSharing(t, g, p, order.Entries), g.Len(), 32, math.MaxInt64, math.MaxInt64)
	require.Nil(t, none)
}

// Where buffers are too many for a search, layouts must not end much higher than just below that number.
func TestLayoutsOfManyBuffersAreLowToo(t *testing.T) {
	for _, family := range []int{0, 6, 9} {
		var above [2]float64 // the busiest moment
		for k, n := range []int{searchLimit * 9 / 10, searchLimit * 5 / 4} {
			g, p := layoutSample(t, family, n, 8, 1)
			l := readSharing(t, g, p, order.Entries)
			require.Equal(t, k == 1, len(l.buffers) > searchLimit)
			least, _ := l.busiest(g.Len())
			above[k] = float64(peakOf(l, placeQuick(l, g.Len()))) / float64(least)
			swept := float64(peakOf(l, sweepLayout(l, g.Len()))) / float64(least)
			t.Logf("%s, %d buffers: %.3f of the busiest moment, %.3f by one sweep", plantest.Families[family].Name, len(l.buffers), above[k], swept)
			require.Less(t, above[k], 1+(swept-1)*0.8)
		}
		require.Less(t, above[1], above[0]*1.1)
	}
}

// A buffer goes into the smallest gap that is large enough between those that it excludes, the lowest of several, or else on top of them.
func TestPartsFollowTheirRule(t *testing.T) {
	gaps, tops := 0, 0
	for seed := range uint64(6) {
		for family := range plantest.Families {
			g, p := layoutSample(t, family, 50, 1+int(seed%3), seed)
			l := readSharing(t, g, p, order.Entries)
			parts := &partLayout{l: l, offset: make([]int64, len(l.buffers))}
			rng := rand.New(rand.NewPCG(seed, uint64(family)))
			for _, at := range rng.Perm(len(l.buffers)) {
				k := int32(at)
				var taken [][2]int64 // what it excludes, by offset
				for _, q := range parts.placed {
					if !l.apart(k, q) {
						taken = append(taken, [2]int64{parts.offset[q], parts.offset[q] + l.bytes[q]})
					}
				}
				want, least, end := int64(-1), int64(1<<62), int64(0)
				for _, r := range taken {
					if room := r[0] - end; room >= l.bytes[k] && room < least {
						want, least = end, room
					}
					end = max(end, r[1])
				}
				if want >= 0 {
					gaps++
				} else {
					want = end
					tops++
				}
				peak := want + l.bytes[k]
				require.False(t, parts.place(k, peak), "it would end at the peak")
				require.True(t, parts.place(k, peak+1))
				require.Equal(t, want, parts.offset[k], "seed %d, family %d, buffer %d", seed, family, k)
				require.True(t, slices.IsSortedFunc(parts.placed, func(a, b int32) int { return cmp.Compare(parts.offset[a], parts.offset[b]) }))
			}
		}
	}
	require.Greater(t, gaps, 50)
	require.Greater(t, tops, 500)
}

// With clocks for few streams only, those are the ones whose buffers have the most bytes, of equal ones the first.
func TestColumnsAreOfTheStreamsWithTheMostBytes(t *testing.T) {
	l := &lifetimes{bytes: []int64{512, 256, 1024, 256}}
	stays := []stay{{buffer: 0, stream: 3}, {buffer: 1, stream: 1}, {buffer: 2, stream: 0}, {buffer: 3, stream: 1}, {buffer: 1, stream: 4}}
	p := &plan.Plan{Streams: make([]plan.Stream, 5)}
	for most, want := range map[int][]int32{1: {0, -1, -1, -1, -1}, 2: {0, 1, -1, -1, -1}, 3: {0, 1, -1, 2, -1}, 4: {0, 1, -1, 2, 3}, 5: {0, 1, 2, 3, 4}, 9: {0, 1, 2, 3, 4}} {
		require.Equal(t, want, l.chooseColumns(p, stays, most), "%d", most)
		require.Equal(t, min(most, 5), l.columns)
	}
}

// Of what a part has, the largest come first, counted in bytes and places of the order; of equally large ones those with more bytes.
func TestPartsPlaceTheLargestFirst(t *testing.T) {
	l := &lifetimes{buffers: []int32{0, 1, 2, 3}, bytes: []int64{1024, 512, 512, 768}, first: []int32{0, 0, 0, 0}, last: []int32{0, 2, 2, 1},
		columns: 1, start: make([]int32, 4), endStart: []int32{0, 1, 2, 3, 4}, ends: []mark{{0, 1}, {0, 1}, {0, 1}, {0, 1}}, endless: make([]bool, 4)}
	offsets, _ := layoutInParts(context.Background(), l, 3, 4, math.MaxInt64, math.MaxInt64)
	require.Equal(t, []int64{1792, 768, 1280, 0}, offsets)
	offsets, _ = layoutInParts(context.Background(), l, 3, 2, math.MaxInt64, math.MaxInt64)
	require.Equal(t, []int64{512, 0, 2304, 1536}, offsets, "two parts")
}
