// Tests of sets of bytes against tables that have a truth value for each byte.

package dag

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

const (
	tableRows  = 7
	tablePitch = 9
)

// table has a truth value for each byte of two buffers.
type table [2][tableRows * tablePitch]bool

func (b *table) each(r Range, visit func(*bool)) {
	for i := r.Lo; i < r.Hi; i++ {
		if r.Pitch == 0 || (i-r.Lo)%int64(r.Pitch) <= (r.Hi-r.Lo-1)%int64(r.Pitch) {
			visit(&b[r.Buffer][i])
		}
	}
}

func (b *table) add(list ...Range) *table {
	for _, r := range list {
		b.each(r, func(at *bool) { *at = true })
	}
	return b
}

// someRange draws bytes that follow each other, or a tile.
func someRange(t *rapid.T) Range {
	id := BufferID(rapid.IntRange(0, 1).Draw(t, "buffer"))
	part := func(name string, most int64) (lo, hi int64) {
		lo = rapid.Int64Range(0, most).Draw(t, name)
		return lo, rapid.Int64Range(lo, most).Draw(t, name)
	}
	if rapid.Bool().Draw(t, "tile") {
		top, bottom := part("row", tableRows)
		left, right := part("column", tablePitch)
		return rangeOf(id, tablePitch, box{top, bottom, left, right})
	}
	lo, hi := part("byte", tableRows*tablePitch)
	return Range{Buffer: id, Lo: lo, Hi: hi}
}

func someSet(t *rapid.T) (*rangeSet, *table) {
	var s rangeSet
	list := rapid.SliceOfN(rapid.Custom(someRange), 0, 6).Draw(t, "ranges")
	for _, r := range list {
		s.add(r)
	}
	return &s, new(table).add(list...)
}

func TestSetsOfBytes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, want := someSet(t)
		other, without := someSet(t)
		var both table
		for b := range want {
			for i := range want[b] {
				both[b][i] = want[b][i] && without[b][i]
			}
		}
		r := someRange(t)
		meets := false
		want.each(r, func(at *bool) { meets = meets || *at })
		require.Equal(t, meets, s.meets(r))

		require.Equal(t, want, new(table).add(s.ranges()...))
		require.Equal(t, without, new(table).add(other.ranges()...))
		meeting := *s
		meeting.intersect(other)
		require.Equal(t, &both, new(table).add(meeting.ranges()...))
		all := new(table).add(append(s.ranges(), other.ranges()...)...)
		s.addAll(other)
		require.Equal(t, all, new(table).add(s.ranges()...))
		left := new(table).add(r)
		for b := range left {
			for i := range left[b] {
				left[b][i] = left[b][i] && !without[b][i] || all[b][i]
			}
		}
		s.addExcept(r, other)
		require.Equal(t, left, new(table).add(s.ranges()...))
		total := int64(0)
		for _, r := range s.ranges() {
			total += r.Bytes()
		}
		count := int64(0)
		for b := range left {
			for _, is := range left[b] {
				if is {
					count++
				}
			}
		}
		require.Equal(t, count, total, "no byte is in two ranges")
	})
}

func TestEffectsAreCut(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var e effect
		var want [3]*table
		for k, set := range []*rangeSet{&e.reads, &e.may, &e.must} {
			one, table := someSet(t)
			*set, want[k] = *one, table
		}
		var found [3]table
		var seen []Range
		for b := range BufferID(2) {
			e.cut(b, func(r Range, reads, may, must bool) {
				require.False(t, slices.ContainsFunc(seen, r.Overlaps), "no byte is in two pieces")
				seen = append(seen, r)
				for k, is := range []bool{reads, may, must} {
					if is {
						found[k].add(r)
					}
				}
			})
		}
		for k := range want {
			require.Equal(t, want[k], &found[k])
		}
	})
}

func TestTilesThatMeetBecomeOneRange(t *testing.T) {
	var s rangeSet
	for i := range int64(4) {
		for j := range int64(4) {
			s.add(rangeOf(0, 64, box{8 * ((3 * i) % 4), 8*((3*i)%4) + 8, 16 * j, 16*j + 16}))
		}
	}
	require.Equal(t, []Range{{Buffer: 0, Lo: 0, Hi: 32 * 64}}, s.ranges())
}
