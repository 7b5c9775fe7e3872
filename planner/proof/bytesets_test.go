// Tests of the proof's sets of bytes against tables that have a truth value for each byte.

package proof

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/dagrun/dagrun/dag"
)

const (
	tableRows  = 6
	tablePitch = 8
)

// table has a truth value for each byte of two buffers.
type table [2][tableRows * tablePitch]bool

func (b *table) add(list ...dag.Range) *table {
	for _, r := range list {
		for i := r.Lo; i < r.Hi; i++ {
			if r.Pitch == 0 || i%tablePitch >= r.Lo%tablePitch && i%tablePitch <= (r.Hi-1)%tablePitch {
				b[r.Buffer][i] = true
			}
		}
	}
	return b
}

func someRange(t *rapid.T) dag.Range {
	part := func(name string, most int64) (lo, hi int64) {
		lo = rapid.Int64Range(0, most-1).Draw(t, name)
		return lo, rapid.Int64Range(lo+1, most).Draw(t, name)
	}
	r := dag.Range{Buffer: dag.BufferID(rapid.IntRange(0, 1).Draw(t, "buffer"))}
	if !rapid.Bool().Draw(t, "tile") {
		r.Lo, r.Hi = part("byte", tableRows*tablePitch)
		return r
	}
	top, bottom := part("row", tableRows)
	left, right := part("column", tablePitch)
	r.Lo, r.Hi = top*tablePitch+left, (bottom-1)*tablePitch+right
	if bottom > top+1 && right-left < tablePitch {
		r.Pitch = tablePitch
	}
	return r
}

func TestSetsOfTheProof(t *testing.T) {
	some := func(t *rapid.T) (s byteSet, b table) {
		for _, r := range rapid.SliceOfN(rapid.Custom(someRange), 0, 6).Draw(t, "ranges") {
			s.add(r)
			b.add(r)
		}
		return s, b
	}
	rapid.Check(t, func(t *rapid.T) {
		s, has := some(t)
		other, without := some(t)
		var both, left table
		missing := false
		bytes := int64(0)
		for b := range has {
			for i := range has[b] {
				both[b][i] = has[b][i] && without[b][i]
				left[b][i] = has[b][i] && !without[b][i]
				missing = missing || left[b][i]
				if has[b][i] {
					bytes++
				}
			}
		}
		require.Equal(t, &has, new(table).add(s...))
		for _, r := range s {
			bytes -= r.Bytes()
		}
		require.Zero(t, bytes, "no byte is in two ranges")
		require.Equal(t, &left, new(table).add(s.without(&other)...))
		require.Equal(t, &both, new(table).add(s.both(&other)...))
		_, found := s.outside(&other)
		require.Equal(t, missing, found)
	})
}
