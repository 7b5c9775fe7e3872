// Tests of what the proof derives from ops, against reachability over every pair of ops.

package proof

import (
	"fmt"
	"math/rand/v2"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/planner/internal/plantest"
	"github.com/dagrun/dagrun/planner/plan"
)

// eachRandomPlan visits random plans with their schedules.
func eachRandomPlan(t *testing.T, visit func(p *plan.Plan, s *schedule, before [][]bool)) {
	t.Helper()
	plantest.EachRandomOps(t, os.Getenv("DAGRUN_LONG") != "", func(_ *rand.Rand, p *plan.Plan, nodes int, before [][]bool) {
		b := dag.New("random")
		for i := range nodes {
			b.Task(fmt.Sprintf("n%d", i))
		}
		g, err := b.Graph()
		require.NoError(t, err)
		s, v := readSchedule(g, p)
		require.Nil(t, v)
		visit(p, s, before)
	})
}

func TestClocksAgreeWithReachability(t *testing.T) {
	ordered, not := 0, 0
	eachRandomPlan(t, func(p *plan.Plan, s *schedule, before [][]bool) {
		var pairs []pair
		var want []int32
		for from := range int32(len(before)) {
			for to := range int32(len(before)) {
				if from == to {
					continue
				}
				if before[from][to] {
					ordered++
				} else {
					want = append(want, int32(len(pairs)))
					not++
				}
				pairs = append(pairs, pair{from, to})
			}
		}
		require.Equal(t, fmt.Sprint(want), fmt.Sprint(unordered(p, s, newPlanClocks(p, s), pairs)), "by ops")
		require.Equal(t, fmt.Sprint(want), fmt.Sprint(unordered(p, s, planAncestry(p, s), pairs)), "by direct predecessors")
	})
	require.Greater(t, ordered, 10_000)
	require.Greater(t, not, 10_000)
}

func TestNeedlessPredecessorsAreThoseThatOthersImply(t *testing.T) {
	needless, needed := 0, 0
	eachRandomPlan(t, func(p *plan.Plan, s *schedule, before [][]bool) {
		a := planAncestry(p, s)
		found := a.needless()
		for k, to := range s.order {
			for i := a.start[k]; i < a.start[k+1]; i++ {
				implied := false
				for between := range before {
					implied = implied || before[a.from[i]][between] && before[between][to]
				}
				require.Equal(t, implied, found[i], "%d before %d", a.from[i], to)
				if implied {
					needless++
				} else {
					needed++
				}
			}
		}
	})
	require.Greater(t, needless, 1000)
	require.Greater(t, needed, 10_000)
}
