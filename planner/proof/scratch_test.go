// Tests of sorting by small keys and of the width of clocks.

package proof

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestCountingSortIsStable(t *testing.T) {
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 8))
		n, keys := rng.IntN(20), 1+rng.IntN(5)
		key := make([]int32, n)
		order := make([]int32, n)
		for k := range key {
			key[k], order[k] = int32(rng.IntN(keys)), int32(k)
		}
		by := func(k int32) int32 { return key[k] }
		want := slices.Clone(order)
		slices.SortStableFunc(want, func(a, b int32) int { return int(key[a] - key[b]) })
		require.Equal(t, want, countingSort(n, keys, nil, by))
		rng.Shuffle(n, func(i, j int) { order[i], order[j] = order[j], order[i] })
		given := slices.Clone(order)
		slices.SortStableFunc(order, func(a, b int32) int { return int(key[a] - key[b]) })
		require.Equal(t, order, countingSort(n, keys, given, by))
	}
}

// A slice that is used again has the length that is asked for, and zeros where they are asked for.
func TestSlicesAreUsedAgain(t *testing.T) {
	old := []int32{1, 2, 3, 4}
	require.Equal(t, []int32{1, 2}, sized(old, 2))
	require.Len(t, sized(old, 9), 9)
	require.Equal(t, []int32{0, 0, 0}, zeroed(old, 3))
	require.Equal(t, []int32{0, 0, 0, 4}, old)
	require.Equal(t, make([]int32, 9), zeroed(old, 9))
}

// A walk follows all streams up to 64, and fewer where that would take more than 64 MiB, but at least 8.
func TestClocksTakeLittleMemory(t *testing.T) {
	for _, c := range [][3]int{{0, 5, 0}, {3, 5, 3}, {64, 1000, 64}, {65, 1000, 64}, {4000, 5000, 64}, {4000, 1 << 18, 64}, {4000, 1<<18 + 1, 63}, {4000, 1 << 19, 32}, {4000, 1 << 21, 8}, {4000, 1 << 24, 8}, {5, 1 << 24, 5}, {20, 1 << 20, 16}} {
		width := walkWidth(c[0], c[1])
		require.Equal(t, c[2], width, "%d streams, %d clocks", c[0], c[1])
		require.True(t, width <= 8 || 4*width*c[1] <= 64<<20)
	}
}
