// Spans against a table with an entry for each byte.

package order

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestRandomSpans(t *testing.T) {
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 4))
		const bytes = 200
		s := spans[int]{full: 2 + r.IntN(4)}
		var table [bytes]int
		for name := 1; name < 60; name++ {
			low := r.Uint64N(bytes)
			high := low + 1 + r.Uint64N(min(bytes-low, 1+r.Uint64N(60)))
			if low > 0 {
				low, high = low-1, high-1
			}
			put := r.IntN(4) > 0
			if put {
				s.put(low, high, name)
			} else {
				s.drop(low, high)
			}
			// What is overlapped goes away as a whole.
			gone := slices.Clone(table[low:high])
			for i, is := range table {
				if is != 0 && slices.Contains(gone, is) {
					table[i] = 0
				}
			}
			for i := low; i < high && put; i++ {
				table[i] = name
			}
			for i, is := range table {
				require.Equal(t, is, s.at(uint64(i)), "seed %d, byte %d", seed, i)
			}
			from := r.Uint64N(bytes)
			to := from + 1 + r.Uint64N(bytes-from)
			var want []int
			for _, is := range table[from:to] {
				if is != 0 && !slices.Contains(want, is) {
					want = append(want, is)
				}
			}
			require.Equal(t, want, s.overlapping(from, to), "seed %d", seed)
			require.Equal(t, s.overlapping(0, bytes), s.all(), "seed %d", seed)
		}
	}
}
