// Tests of layouts within a limit: one is found exactly if there is one, and it stays within the limit beside what is kept.

package layout

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/planner/internal/order"
	"github.com/dagrun/dagrun/planner/internal/plantest"
	"github.com/dagrun/dagrun/planner/internal/plantest/planned"
	"github.com/dagrun/dagrun/planner/plan"
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

// chained makes a graph on one stream in which each node writes a buffer and reads the one before, beside a buffer that nobody uses.
func chained(t *testing.T, nodes int, unused int64) (*dag.Graph, *plan.Plan) {
	t.Helper()
	b := dag.New("chained")
	b.Device("unused", dag.U8, unused)
	for k := range nodes {
		accesses := []dag.Access{b.Out(b.Device(fmt.Sprintf("b%d", k), dag.U8, 256))}
		if k > 0 {
			accesses = append(accesses, b.In(dag.BufferID(k)))
		}
		b.Task(fmt.Sprintf("n%d", k), accesses...)
	}
	g, err := b.Graph()
	require.NoError(t, err)
	p := planned.ListPlan(t, g, 1)
	offsets, _ := placeApart(t, g)
	require.NoError(t, At(g, p, Kept(g), offsets))
	return g, p
}

// A buffer that nobody uses lies anywhere, but must lie somewhere.
func TestALimitHoldsForUnusedBuffersToo(t *testing.T) {
	for unused, lowest := range map[int64]int64{256: 512, 4096: 4096} {
		g, p := chained(t, 6, unused)
		verdict, _ := Fit(context.Background(), g, p, Kept(g), lowest-1, 1_000_000)
		require.Equal(t, CannotFit, verdict)
		verdict, _ = Fit(context.Background(), g, p, Kept(g), lowest, 1_000_000)
		require.Equal(t, Fits, verdict)
		require.LessOrEqual(t, ArenaEnds(p)[0], lowest)
		require.NoError(t, proof.Verify(g, p))
	}
}

// Where the search gives up, nothing is said of the plan, and its layout stays: it does not fit just because nobody proved that it cannot.
func TestNothingIsSaidWhereTheSearchGivesUp(t *testing.T) {
	given := 0
	for seed := range uint64(20) {
		for family := range plantest.Families {
			g, p := layoutSample(t, family, 40, 3, seed)
			offsets, _ := placeApart(t, g)
			require.NoError(t, At(g, p, Kept(g), offsets))
			l := readSharing(t, g, p, order.Entries)
			alive, _ := l.busiest(g.Len())
			a := readArena(g, 0, Kept(g), usedBuffers(g), slices.Clone(offsets))
			limit := a.base + max(a.least, alive)
			before := plantest.ClonePlan(p)
			verdict, taken := Fit(context.Background(), g, p, Kept(g), limit, 1)
			switch verdict {
			case MayFit:
				given++
				require.Equal(t, before, p)
			case Fits:
				require.LessOrEqual(t, ArenaEnds(p)[0], limit)
			case CannotFit:
				again, _ := Fit(context.Background(), g, before, Kept(g), limit, 100_000_000)
				require.Equal(t, CannotFit, again, "seed %d, family %d: said after %d steps", seed, family, taken)
			}
		}
	}
	require.Greater(t, given, 5)

	g, p := chained(t, searchLimit+1, 256)
	before := plantest.ClonePlan(p)
	verdict, taken := Fit(context.Background(), g, p, Kept(g), 4096, 1_000_000)
	require.Equal(t, MayFit, verdict, "there are too many buffers for the search")
	require.Zero(t, taken)
	require.Equal(t, before, p)
}
