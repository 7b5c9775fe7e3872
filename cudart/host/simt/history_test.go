// Which bytes were written, against a plain list of truths.

package simt_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/dagrun/dagrun/cudart/host/simt"
)

func TestWrittenBytesAreThoseThatWereMarked(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const base, n = 4096, 300
		w, is := simt.NewWritten(base, n), make([]bool, n)
		part := func() (lo, hi int) {
			lo = rapid.IntRange(0, n-1).Draw(t, "lo")
			return lo, rapid.IntRange(lo+1, n).Draw(t, "hi")
		}
		for range rapid.IntRange(0, 12).Draw(t, "steps") {
			lo, hi := part()
			mark := rapid.Bool().Draw(t, "mark")
			if mark {
				w.Mark(base+uint64(lo), int64(hi-lo))
			} else {
				w.Forget(base+uint64(lo), int64(hi-lo))
			}
			for i := lo; i < hi; i++ {
				is[i] = mark
			}
		}
		lo, hi := part()
		first := lo
		for first < hi && is[first] {
			first++
		}
		end := first
		for end < hi && !is[end] {
			end++
		}
		from, to := w.Gap(base+uint64(lo), int64(hi-lo))
		if first == hi {
			require.Zero(t, to)
			return
		}
		require.Equal(t, []uint64{base + uint64(first), base + uint64(end)}, []uint64{from, to})
	})
}

// A gap begins and ends at any byte, also at the first one of a word of 64.
func TestGapsOfEveryPlace(t *testing.T) {
	const base, n = 4096, 200
	for lo := range n {
		for _, length := range []int{1, 63, 64, 65, 130} {
			hi := min(lo+length, n)
			w := simt.NewWritten(base, n)
			w.Mark(base, n)
			w.Forget(base+uint64(lo), int64(hi-lo))
			from, to := w.Gap(base, n)
			require.Equal(t, []uint64{base + uint64(lo), base + uint64(hi)}, []uint64{from, to})
		}
	}
}
