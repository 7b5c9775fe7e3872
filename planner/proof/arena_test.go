// Tests of the record of which placement used each range of bytes last, against an array of bytes.

package proof

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestArenaAgreesWithBytes(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 7))
	for _, size := range []int{12, 60, 1200} {
		for round := range 12 {
			o := &arena{}
			bytes := make([]int32, size)
			for i := range bytes {
				bytes[i] = -1
			}
			for k := range int32(size) {
				lo := rng.IntN(size - 1)
				hi := lo + 1 + rng.IntN(size-1-lo)
				if round%4 > 0 {
					hi = min(hi, lo+1+round%4)
				}
				var want, got []int32
				for i := lo; i < hi; i++ {
					if bytes[i] >= 0 {
						want = append(want, bytes[i])
					}
					bytes[i] = k
				}
				o.take(int64(lo), int64(hi), k, func(q int32) { got = append(got, q) })
				slices.Sort(want)
				slices.Sort(got)
				require.Equal(t, slices.Compact(want), slices.Compact(got))
			}
			end := int64(-1)
			for _, chunk := range o.chunks {
				require.NotEmpty(t, chunk)
				require.LessOrEqual(t, len(chunk), rangesInChunk+2)
				for _, e := range chunk {
					require.Less(t, e.lo, e.hi)
					require.LessOrEqual(t, end, e.lo)
					end = e.hi
				}
			}
		}
	}
}

// A range may take the end of one chunk, whole chunks after it, and the beginning of another.
func TestARangeTakesWholeChunks(t *testing.T) {
	const size = 1000
	o := &arena{}
	for k := range int32(size) {
		o.take(int64(k), int64(k)+1, k, func(int32) {})
	}
	require.Greater(t, len(o.chunks), 5)
	for lo := int64(0); lo < size; lo += 53 {
		for hi := lo + 1; hi <= size; hi += 37 {
			c := &arena{chunks: make([][]arenaRange, len(o.chunks))}
			for k := range c.chunks {
				c.chunks[k] = slices.Clone(o.chunks[k])
			}
			var taken []int32
			c.take(lo, hi, size, func(q int32) { taken = append(taken, q) })
			require.Len(t, taken, int(hi-lo))
			at := int64(0)
			for _, chunk := range c.chunks {
				require.NotEmpty(t, chunk)
				for _, e := range chunk {
					want := arenaRange{at, at + 1, int32(at)}
					if at == lo {
						want = arenaRange{lo, hi, size}
					}
					require.Equal(t, want, e)
					at = e.hi
				}
			}
			require.EqualValues(t, size, at)
		}
	}
}
