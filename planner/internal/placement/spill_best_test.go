// Tests of what is chosen to leave the device: beside the fewest copies that any choice can do with, found by trying all choices.

package placement

import (
	"context"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/planner/effort"
	"github.com/dagrun/dagrun/planner/internal/plantest"
	"github.com/dagrun/dagrun/planner/model"
)

// The search looks for the shortest time. Copies out run beside those back, so the direction with more of them counts.
func TestSpillsTakeFewCopiesMoreThanTheBest(t *testing.T) {
	for _, writes := range []bool{false, true} {
		ours, best, above := 0, 0, 0
		for seed := range uint64(12) {
			random := rand.New(rand.NewPCG(seed, 41))
			blocks := 5 + random.IntN(2)
			fit := 3 + random.IntN(blocks-4)
			g, uses, written := plantest.DrawBlocks(t, random, blocks, 18, 1, writes)
			p, err := NewSpillProblem(g, int64(fit)*plantest.BlockBytes, nil, nil)
			require.NoError(t, err)
			times := model.Durations(g, model.H200(), nil)
			found, err := SpillCandidates(context.Background(), p, model.H200(), times, effort.Normal)
			require.NoError(t, err)
			up, down, fewest := leastCopies(uses, written, blocks, fit, 1, 0), leastCopies(uses, written, blocks, fit, 0, 1), math.MaxInt
			for _, c := range found {
				ordered, err := p.Ordered(c.Order)
				require.NoError(t, err)
				s, err := Spill(ordered, c.List)
				require.NoError(t, err)
				require.GreaterOrEqual(t, s.Stats.Reloads, up, "seed %d", seed)
				require.GreaterOrEqual(t, s.Stats.Spills, down, "seed %d", seed)
				fewest = min(fewest, max(s.Stats.Spills, s.Stats.Reloads))
			}
			least := max(up, down, (leastCopies(uses, written, blocks, fit, 1, 1)+1)/2)
			ours, best, above = ours+fewest, best+least, max(above, fewest-least)
		}
		t.Logf("writes %t: %d copies one way, at least %d; at most %d more than the fewest", writes, ours, best, above)
		if writes { // what is changed last can only leave afterwards, while nothing comes back any more, so the fewest copies are not the fastest
			require.LessOrEqual(t, float64(ours), 1.25*float64(best))
			continue
		}
		require.LessOrEqual(t, float64(ours), 1.15*float64(best))
		require.LessOrEqual(t, above, 1)
	}
}
