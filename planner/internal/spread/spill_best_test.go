// Tests of what is chosen to leave the device: beside the fewest copies that any choice can do with, found by trying all choices.

package spread

import (
	"context"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/planner/internal/effort"
	"github.com/dagrun/dagrun/planner/internal/plantest"
	"github.com/dagrun/dagrun/planner/model"
)

func TestSpillsTakeFewCopiesMoreThanTheBest(t *testing.T) {
	for _, writes := range []bool{false, true} {
		ours, best, worst := 0, 0, 0.0
		for seed := range uint64(12) {
			random := rand.New(rand.NewPCG(seed, 41))
			blocks := 5 + random.IntN(2)
			fit := 3 + random.IntN(blocks-4)
			g, uses, written := plantest.DrawBlocks(t, random, blocks, 18, 1, writes)
			p, err := NewSpillProblem(g, int64(fit)*plantest.BlockBytes, nil)
			require.NoError(t, err)
			times := model.Durations(g, model.H200(), nil)
			found, err := SpillCandidates(context.Background(), p, model.H200(), times, effort.Normal)
			require.NoError(t, err)
			fewest := math.MaxInt
			for _, c := range found {
				s, err := Spill(p, c.List)
				require.NoError(t, err)
				fewest = min(fewest, s.Stats.Spills+s.Stats.Reloads)
			}
			least := plantest.LeastCopies(uses, written, blocks, fit, 1, 1)
			require.GreaterOrEqual(t, fewest, least, "seed %d", seed)
			ours, best, worst = ours+fewest, best+least, max(worst, float64(fewest)/float64(max(1, least)))
		}
		// The search looks for the shortest time, in which copies out can run beside those back, so with writes only the sums are near.
		const most = 1.15
		if !writes {
			require.LessOrEqual(t, worst, most)
		}
		require.LessOrEqual(t, float64(ours), most*float64(best))
		t.Logf("writes %t: %d copies, at least %d; at worst %.2f of the fewest", writes, ours, best, worst)
	}
}
