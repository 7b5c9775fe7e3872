// Tests of an allocation's shadow against a model that keeps the history of every byte separately.

package host

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestShadowAgainstBytes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		size := rapid.Int64Range(1, 3000).Draw(t, "size")
		longest := rapid.Int64Range(1, size).Draw(t, "longest")
		type history struct {
			write epoch
			reads map[epoch]bool
		}
		model := make([]history, size)
		o := newOrder()
		var s shadow
		// Every access is on its own sequence and the clock is empty, so nothing is ordered and every conflict is found.
		for n := range rapid.IntRange(1, 600).Draw(t, "accesses") {
			lo := rapid.Int64Range(0, size-1).Draw(t, "lo")
			hi := min(size, lo+rapid.Int64Range(1, longest).Draw(t, "length"))
			write := rapid.IntRange(0, 3).Draw(t, "write") == 0
			e := epoch{sequence: sequence(n), node: -1, time: 1, by: &command{}}
			expected := false
			for _, b := range model[lo:hi] {
				expected = expected || b.write.by != nil || write && len(b.reads) > 0
			}
			found := s.access(lo, hi, e, write, o, nil)
			require.Equal(t, expected, found.with.by != nil)
			if expected {
				require.True(t, lo <= found.from && found.from < found.to && found.to <= hi)
				for _, b := range model[found.from:found.to] {
					require.True(t, b.write == found.with || write && b.reads[found.with])
				}
			}
			for i := lo; i < hi; i++ {
				b := &model[i]
				if write {
					*b = history{write: e}
					continue
				}
				if b.reads == nil {
					b.reads = map[epoch]bool{}
				}
				b.reads[e] = true
			}
		}
		at, spans := int64(0), 0
		for _, l := range s.leaves {
			require.NotEmpty(t, l)
			require.LessOrEqual(t, len(l), leafSpans)
			for _, x := range l {
				require.True(t, at <= x.lo && x.lo < x.hi)
				for _, b := range model[at:x.lo] {
					require.True(t, b.write.by == nil && len(b.reads) == 0, "bytes between spans were never touched")
				}
				for _, b := range model[x.lo:x.hi] {
					require.Equal(t, b.write, x.write)
					require.Len(t, x.reads, len(b.reads))
				}
				at = x.hi
				spans++
			}
		}
	})
}
