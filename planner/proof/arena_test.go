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
				if round%4 > 0 && k%500 != 499 { // a long range now and then takes whole chunks of short ones
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
