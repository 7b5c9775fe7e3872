// Tests of the sweep step by step: its pieces always tile the arena, and each buffer goes where the rule says.

package layout

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/planner/internal/order"
	"github.com/dagrun/dagrun/planner/internal/plantest"
	"github.com/dagrun/dagrun/planner/internal/scratch"
)

// pieces lists the pieces from the bottom, after checking that they tile the arena and that those which have ended are listed by size.
func (s *sweep) checked(t *testing.T) (list []int32) {
	t.Helper()
	above := int32(-1)
	for i := s.top; i >= 0; i = s.pieces[i].below {
		require.Equal(t, above, s.pieces[i].above)
		require.Less(t, s.pieces[i].lo, s.pieces[i].hi)
		if above >= 0 {
			require.Equal(t, s.pieces[i].hi, s.pieces[above].lo)
		}
		list, above = append(list, i), i
	}
	slices.Reverse(list)
	if len(list) > 0 {
		require.Zero(t, s.pieces[list[0]].lo)
	}
	listed := map[int32]bool{}
	for class := range s.oldest {
		before := int32(-1)
		for i := s.oldest[class]; i >= 0; i = s.pieces[i].next {
			require.False(t, listed[i])
			listed[i] = true
			require.Equal(t, before, s.pieces[i].prev)
			require.Equal(t, class, sizeClass(s.pieces[i].hi-s.pieces[i].lo))
			before = i
		}
		require.Equal(t, before, s.newest[class])
		require.Equal(t, s.oldest[class] >= 0, s.filled[class/64]>>(class%64)&1 == 1)
	}
	for _, i := range list {
		require.Equal(t, s.pieces[i].ended, listed[i])
		delete(listed, i)
	}
	require.Empty(t, listed, "a piece that is no longer there")
	return list
}

// where returns the offsets that the rule allows: the smallest piece that is large enough and done, or else the shortest run of neighbours that are
// done, or else the end of the arena.
func (s *sweep) where(list []int32, k int32, bytes int64) (offsets []int64, kind string) {
	least := int64(1 << 62)
	note := func(lo, room int64) {
		if room >= bytes && room < least {
			offsets, least = nil, room
		}
		if room == least {
			offsets = append(offsets, lo)
		}
	}
	done := func(i int32) bool { return s.pieces[i].ended && s.l.before(s.pieces[i].owner, k) }
	for _, i := range list {
		if done(i) {
			note(s.pieces[i].lo, s.pieces[i].hi-s.pieces[i].lo)
		}
	}
	if offsets != nil {
		return offsets, "piece"
	}
	end, run := int64(0), int64(-1) // where the run that ends here begins
	for at, i := range list {
		end = s.pieces[i].hi
		if !done(i) {
			run = -1
			continue
		}
		if run < 0 {
			run = s.pieces[i].lo
		}
		if at+1 == len(list) || !done(list[at+1]) {
			note(run, end-run)
		}
	}
	switch {
	case offsets != nil:
		return offsets, "run"
	case run >= 0:
		return []int64{run}, "end of a run"
	}
	return []int64{end}, "end"
}

func TestTheSweepFollowsItsRule(t *testing.T) {
	kinds := map[string]int{}
	for seed := range uint64(4) {
		for family := range plantest.Families {
			for _, streams := range []int{1, 3} {
				g, p := layoutSample(t, family, 60, streams, seed)
				l := readSharing(t, g, p, order.Entries)
				n := len(l.buffers)
				want := sweepLayout(l, g.Len())
				s := &sweep{l: l, top: -1, pieceOf: make([]int32, n), stepsLeft: sweepSteps}
				for i := range s.oldest {
					s.oldest[i], s.newest[i] = -1, -1
				}
				byFirst := make([]int32, n)
				for k := range byFirst {
					byFirst[k] = int32(k)
				}
				slices.SortStableFunc(byFirst, func(a, b int32) int { // by first use, and of one node the largest first
					if l.first[a] != l.first[b] {
						return int(l.first[a] - l.first[b])
					}
					return int(l.bytes[b]-l.bytes[a]) / 256
				})
				byLast := scratch.CountingSort(n, g.Len(), nil, func(k int32) int32 { return l.last[k] })
				for _, k := range byFirst {
					for len(byLast) > 0 && l.last[byLast[0]] < l.first[k] {
						s.end(s.pieceOf[byLast[0]])
						byLast = byLast[1:]
					}
					offsets, kind := s.where(s.checked(t), k, l.bytes[k])
					kinds[kind]++
					at := s.place(k)
					require.Contains(t, offsets, at, "seed %d, family %d: a %s for buffer %d of %d bytes", seed, family, kind, k, l.bytes[k])
					require.Equal(t, want[k], at)
					own := s.pieces[s.pieceOf[k]]
					require.Equal(t, piece{lo: at, hi: at + l.bytes[k], owner: k, below: own.below, above: own.above, class: own.class, prev: own.prev, next: own.next}, own)
				}
				s.checked(t)
				requireApart(t, l, want)
			}
		}
	}
	for _, kind := range []string{"piece", "run", "end of a run", "end"} {
		require.Greater(t, kinds[kind], 20, kind)
	}
}

// A size is in the class of those that are at most a quarter larger.
func TestSizeClassesAscend(t *testing.T) {
	last, first := -1, int64(0)
	for units := range int64(100_000) {
		class := sizeClass(units * 256)
		require.Contains(t, []int{last, last + 1}, class)
		if class > last {
			last, first = class, units
		}
		require.LessOrEqual(t, units, first+first/4)
	}
	require.Less(t, sizeClass(1<<62), 256)
}

// Where everything has finished, the next buffer begins at the bottom, however large it is.
func TestASweepBeginsAgainAtTheBottom(t *testing.T) {
	const n = 6
	l := &lifetimes{buffers: make([]int32, n), bytes: make([]int64, n), first: make([]int32, n), last: make([]int32, n), endless: make([]bool, n), columns: 1,
		start: make([]int32, n), endStart: make([]int32, n+1), ends: make([]mark, n)}
	for k := range int32(n) {
		l.bytes[k], l.first[k], l.last[k] = int64(k+1)*256, k, k
		l.start[k], l.ends[k], l.endStart[k+1] = k, mark{0, k + 1}, k+1
	}
	require.Equal(t, make([]int64, n), sweepLayout(l, n))
	l.last[1], l.ends[1] = 3, mark{0, 4} // buffers 2 and 3 lie above it
	require.Equal(t, []int64{0, 0, 512, 512, 0, 0}, sweepLayout(l, n))
	l.first[1], l.start[1] = 0, 0 // what one node brings to life comes largest first
	require.Equal(t, []int64{512, 0, 512, 512, 0, 0}, sweepLayout(l, n))
}

// The next class with pieces is found among all of them, from any class on.
func TestTheNextClassWithPieces(t *testing.T) {
	s := &sweep{}
	for _, class := range []int{3, 63, 64, 65, 130, 191, 192, 255} {
		s.filled[class/64] |= 1 << (class % 64)
	}
	next := -1
	for class := 255; class >= 0; class-- {
		if s.filled[class/64]>>(class%64)&1 == 1 {
			next = class
		}
		require.Equal(t, next, s.nextClass(class))
	}
	require.Equal(t, -1, s.nextClass(256))
}

// Runs are looked for as long as there are steps, one for each piece from the top.
func TestRunsAreLookedForWhileThereAreSteps(t *testing.T) {
	const n = 4
	for _, c := range []struct {
		steps, left int
		found       int32
	}{{10, 6, 0}, {4, 0, 0}, {3, 0, -1}, {0, 0, -1}} {
		l := &lifetimes{buffers: make([]int32, n+1), endless: make([]bool, n+1), columns: 1, start: []int32{0, 0, 0, 0, 9}, endStart: []int32{0, 1, 2, 3, 4, 4}, ends: make([]mark, n)}
		s := &sweep{l: l, top: -1, pieceOf: make([]int32, n+1), stepsLeft: c.steps}
		for i := range s.oldest {
			s.oldest[i], s.newest[i] = -1, -1
		}
		for k := range int32(n) {
			l.bytes = append(l.bytes, 256)
			s.pieces = append(s.pieces, piece{lo: int64(k) * 256, hi: int64(k+1) * 256, owner: k, ended: true, below: k - 1, above: k + 1})
		}
		s.pieces[n-1].above, s.top = -1, n-1
		require.Equal(t, c.found, s.findRun(n, 1024), "%d steps", c.steps)
		require.Equal(t, c.left, s.stepsLeft)
	}
}
