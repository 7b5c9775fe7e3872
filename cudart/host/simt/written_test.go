// Tests of the record of which bytes have been written, against a table with an entry for each byte.

package simt

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestWrittenBytesAgreeWithATable(t *testing.T) {
	const base, size = 0x7f00_1234_5640, 300
	found, none := 0, 0
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 1))
		w := NewWritten(base, size)
		bytes := make([]bool, size)
		for range 4 {
			lo := rng.IntN(size)
			n := 1 + rng.IntN(min(size-lo, 1+rng.IntN(150)))
			w.Mark(base+uint64(lo), int64(n))
			for i := lo; i < lo+n; i++ {
				bytes[i] = true
			}
			for at := range size {
				for _, n := range []int{1, 2, 3, 4, 8, 16} {
					if at+n > size {
						break
					}
					want := slices.Contains(bytes[at:at+n], true)
					require.Equal(t, want, w.any(base+uint64(at), n), "seed %d, %d bytes at %d", seed, n, at)
					if want {
						found++
					} else {
						none++
					}
				}
			}
		}
	}
	require.Positive(t, found)
	require.Positive(t, none)
}
