// Tests of layouts within a limit: one is found exactly if there is one, and it stays within the limit beside what is kept.

package layout

import (
	"context"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/planner/internal/order"
	"github.com/dagrun/dagrun/planner/internal/plantest"
	"github.com/dagrun/dagrun/planner/proof"
)

// placeApart gives every buffer bytes of its own, and returns where the last ends.
func placeApart(t *testing.T, g *dag.Graph) (offsets []int64, end int64) {
	t.Helper()
	offsets = make([]int64, len(g.Buffers))
	for k := range g.Buffers {
		if g.Buffers[k].InArena() {
			offsets[k] = end
			end = alignedTo(end+g.Buffers[k].Bytes, 512)
		}
	}
	return offsets, end
}

func TestALayoutIsFoundExactlyIfThereIsOne(t *testing.T) {
	verdicts := map[Verdict]int{}
	above := 0
	for seed := range uint64(10) {
		for family := range plantest.Families {
			rng := rand.New(rand.NewPCG(seed, uint64(family)))
			g, p := layoutSample(t, family, 7, 1+rng.IntN(3), seed)
			kept := Kept(g)
			for k := range kept {
				kept[k] = kept[k] || g.Buffers[k].InArena() && rng.IntN(4) == 0
			}
			offsets, end := placeApart(t, g)
			require.NoError(t, At(g, p, kept, offsets))
			used := usedBuffers(g)
			a := readArena(g, 0, kept, used, slices.Clone(offsets))
			if len(a.sharing) > 7 {
				continue
			}
			l := readLifetimes(readSteps(g, p), a.sharing, order.Entries)
			lowest := a.base + max(a.least, bruteOptimum(l))
			if alive, _ := l.busiest(g.Len()); lowest > a.base+alive {
				above++
			}
			for _, limit := range []int64{lowest - 256, lowest - 1, lowest, lowest + 1, lowest + 300, end, end - 1} {
				c := plantest.ClonePlan(p)
				verdict, taken := Fit(context.Background(), g, c, kept, limit, 1_000_000)
				verdicts[verdict]++
				if limit < lowest {
					require.Equal(t, CannotFit, verdict, "seed %d, family %d, %d bytes of %d", seed, family, limit, lowest)
					require.Equal(t, p, c, "the plan stays as it is")
					continue
				}
				require.Equal(t, Fits, verdict, "seed %d, family %d, %d bytes of %d", seed, family, limit, lowest)
				require.NoError(t, proof.Verify(g, c))
				require.LessOrEqual(t, ArenaEnds(c)[0], limit)
				require.Equal(t, ArenaEnds(c)[0], c.Stats.PeakDeviceBytes)
				require.Equal(t, p.Kept, c.Kept)
				if ArenaEnds(p)[0] <= limit {
					require.Zero(t, taken, "it fits already")
				}
			}
		}
	}
	require.Greater(t, verdicts[Fits], 300)
	require.Greater(t, verdicts[CannotFit], 150)
	require.Greater(t, above, 10, "the lowest layout takes more than what is alive together")
}
