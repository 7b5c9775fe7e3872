// Tests of the mistakes that tests ask for: each is made wherever it can be, in the last copy that allows it. Otherwise tests of the proof would try less
// than they say.

package placement

import (
	"context"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/planner/effort"
	"github.com/dagrun/dagrun/planner/internal/planted"
	"github.com/dagrun/dagrun/planner/model"
	"github.com/dagrun/dagrun/planner/plan"
)

func TestMistakesOfSpreadsAreMadeWhereTheyCanBe(t *testing.T) {
	made := map[planted.Fault]int{}
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 16))
		p, times := drawPlaceable(t, rng, 2+rng.IntN(2))
		at := p.Expand(roundRobin(newEstimator(p, round(), times, 1)))
		right := walk(p, at).steps
		last := func(can func(k int) bool) int {
			for k := len(right) - 1; k >= 0; k-- {
				if right[k].node == plan.Inserted && can(k) {
					return k
				}
			}
			return -1
		}
		for _, fault := range []planted.Fault{planted.Missing, planted.Late, planted.Source} {
			remove := planted.Plant(fault)
			wrong := walk(p, at).steps
			remove()
			want := slices.Clone(right)
			var k int
			switch fault {
			case planted.Missing:
				if k = last(func(int) bool { return true }); k >= 0 {
					want = slices.Delete(want, k, k+1)
				}
			case planted.Late:
				if k = last(func(k int) bool { return k+1 < len(right) && right[k+1].node != plan.Inserted }); k >= 0 {
					want[k], want[k+1] = want[k+1], want[k]
				}
			case planted.Source:
				if k = last(func(int) bool { return p.Devices > 2 }); k >= 0 {
					want[k].from = 3 - want[k].from - want[k].to // the other one
				}
			}
			require.Equal(t, want, wrong, "seed %d, fault %d", seed, fault)
			if k >= 0 {
				made[fault]++
			}
		}
	}
	for _, fault := range []planted.Fault{planted.Missing, planted.Late, planted.Source} {
		require.Greater(t, made[fault], 50, "fault %d", fault)
	}
}

func TestMistakesOfSpillsAreMadeWhereTheyCanBe(t *testing.T) {
	made := map[planted.Fault]int{}
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 17))
		p := drawSpillable(t, rng)
		p.Limit = max(p.Least(), grain)
		found, err := SpillCandidates(context.Background(), p, model.Unit(), make([]float64, p.Graph.Len()), effort.Quick)
		require.NoError(t, err)
		p, err = p.Ordered(found[0].Order)
		require.NoError(t, err)
		walked, err := p.steps(found[0].List)
		require.NoError(t, err)
		right := make([]action, len(walked.steps))
		for k := range walked.steps {
			right[k] = walked.steps[k].do
		}
		last := func(can func(k int) bool) int {
			for k := len(right) - 1; k >= 0; k-- {
				if can(k) {
					return k
				}
			}
			return -1
		}
		for _, fault := range []planted.Fault{planted.Reload, planted.Unsaved, planted.LateReload, planted.EarlySave} {
			remove := planted.Plant(fault)
			walked, err := p.steps(found[0].List)
			remove()
			require.NoError(t, err)
			want := slices.Clone(right)
			var k int
			switch fault {
			case planted.Reload:
				if k = last(func(k int) bool { return right[k] == load }); k >= 0 {
					want[k] = skipped
				}
			case planted.Unsaved:
				if k = last(func(k int) bool { return right[k] == storeOut }); k >= 0 {
					want[k] = skipped
				}
			case planted.LateReload:
				if k = last(func(k int) bool { return right[k] == load && k+1 < len(right) && right[k+1] == compute }); k >= 0 {
					want[k], want[k+1] = want[k+1], want[k]
				}
			case planted.EarlySave:
				if k = last(func(k int) bool { return right[k] == storeOut && k > 0 && right[k-1] == compute }); k >= 0 {
					want[k], want[k-1] = want[k-1], want[k]
				}
			}
			for at := range walked.steps {
				require.Equal(t, want[at], walked.steps[at].do, "seed %d, fault %d, step %d", seed, fault, at)
				if k >= 0 && (fault == planted.LateReload || fault == planted.EarlySave) {
					require.Empty(t, walked.steps[at].after, "steps have changed places")
				}
			}
			if k >= 0 {
				made[fault]++
			}
		}
	}
	for _, fault := range []planted.Fault{planted.Reload, planted.Unsaved, planted.LateReload, planted.EarlySave} {
		require.Greater(t, made[fault], 50, "fault %d", fault)
	}
}
