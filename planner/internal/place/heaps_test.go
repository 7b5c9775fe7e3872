// Tests of what the list strategy decides by: its heaps, and which of two passes is better.

package place

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// Whatever is pushed and popped in between, a heap gives the smallest first.
func TestHeapsGiveTheSmallestFirst(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		var urgent urgencyHeap
		var ends finishingHeap
		var sorted []urgency
		var ending []finishing
		for step := range 60 {
			if rng.IntN(3) > 0 {
				rank, node := float64(rng.IntN(8)), int32(step)
				urgent.push(urgencyOf(rank, uint32(node)))
				sorted = append(sorted, urgencyOf(rank, uint32(node)))
				ends.push(finishing{rank, node})
				ending = append(ending, finishing{rank, node})
				continue
			}
			if len(sorted) == 0 {
				continue
			}
			slices.Sort(sorted)
			require.Equal(t, sorted[0], urgent[0])
			sorted = sorted[1:]
			urgent.pop()
			slices.SortFunc(ending, func(a, b finishing) int {
				if a.at < b.at || a.at == b.at && a.node < b.node {
					return -1
				}
				return 1
			})
			require.Equal(t, ending[0], ends[0])
			ending = ending[1:]
			ends.pop()
		}
		require.Len(t, urgent, len(sorted))
		require.Len(t, ends, len(ending))
	}
	require.Less(t, urgencyOf(3, 7), urgencyOf(2, 1), "the longest path is the most urgent")
	require.Less(t, urgencyOf(3, 1), urgencyOf(3, 7))
	require.Equal(t, []any{2.5, uint32(7)}, []any{urgencyOf(2.5, 7).rank(), urgencyOf(2.5, 7).tie()})
}

// Makespans that differ by less than durations are known are equal, and then waits decide, and records.
func TestPassesAreComparedByTimeThenWaits(t *testing.T) {
	base := score{makespan: 1000, waits: 5, records: 3}
	for _, c := range []struct {
		other  score
		better bool
	}{
		{score{995, 9, 9}, true}, {score{996, 5, 3}, true}, {score{996, 6, 3}, false}, {score{1004, 4, 3}, true}, {score{1004.5, 4, 3}, false}, {score{1000, 5, 2}, true}, {score{1000, 5, 4}, false},
		{score{1000, 4, 9}, true}, {score{999, 5, 3}, true}, {score{1000, 5, 3}, false}, {score{1001, 5, 3}, false},
	} {
		require.Equal(t, c.better, c.other.better(base), "%v", c.other)
	}
	for _, c := range []struct {
		unfinished score
		least      float64
		beyond     bool
	}{
		{score{1004, 0, 0}, 0, false}, {score{1005, 0, 0}, 0, true}, {score{500, 6, 0}, 0, false}, {score{500, 6, 0}, 996, true}, {score{996, 6, 0}, 0, true}, {score{995, 6, 0}, 995, false}, {score{1000, 5, 9}, 1000, false},
	} {
		require.Equal(t, c.beyond, c.unfinished.beyond(base, c.least), "%v, at least %v", c.unfinished, c.least)
	}
}
