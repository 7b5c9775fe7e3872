// Tests of what layouts and graph edges derive from ops, against reachability over every pair of ops.

package order_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/planner/internal/order"
	"github.com/dagrun/dagrun/planner/internal/plantest"
	"github.com/dagrun/dagrun/planner/plan"
)

func TestReducedIsTheTransitiveReduction(t *testing.T) {
	needed, implied := 0, 0
	plantest.EachRandomOps(t, os.Getenv("DAGRUN_LONG") != "", func(_ *rand.Rand, p *plan.Plan, nodes int, before [][]bool) {
		s := order.Read(p, nodes)
		start, from := s.Reduced(p)
		for k, to := range s.Order {
			var want []int32
			for q := range int32(nodes) {
				if !before[q][to] {
					continue
				}
				direct := true
				for between := range nodes {
					direct = direct && (!before[q][between] || !before[between][to])
				}
				if direct {
					want = append(want, q)
					needed++
				} else {
					implied++
				}
			}
			require.Equal(t, fmt.Sprint(want), fmt.Sprint(from[start[k]:start[k+1]]), "before node %d", to)
		}
	})
	require.Greater(t, needed, 10_000)
	require.Greater(t, implied, 10_000)
}

func TestFinishedIsTheLastLaunchBefore(t *testing.T) {
	some, none := 0, 0
	plantest.EachRandomOps(t, os.Getenv("DAGRUN_LONG") != "", func(rng *rand.Rand, p *plan.Plan, nodes int, before [][]bool) {
		s := order.Read(p, nodes)
		column := make([]int32, len(p.Streams))
		columns := 0
		for stream := range column {
			column[stream] = -1
			if rng.IntN(4) > 0 {
				column[stream] = int32(columns)
				columns++
			}
		}
		groups := make([][]int32, 1+rng.IntN(nodes))
		var asked []order.Asked
		for row := range groups {
			for range 1 + rng.IntN(3) {
				node := int32(rng.IntN(nodes))
				groups[row] = append(groups[row], node)
				asked = append(asked, order.Asked{Node: node, Row: int32(row)})
			}
		}
		rng.Shuffle(len(asked), func(i, k int) { asked[i], asked[k] = asked[k], asked[i] })
		got := s.Finished(p, asked, len(groups), column, columns)
		want := make([]int32, len(groups)*columns)
		for row, group := range groups {
			for q := range int32(nodes) {
				ordered := true
				for _, node := range group {
					ordered = ordered && before[q][node]
				}
				if spot := s.Spots[q]; ordered && column[spot.Stream] >= 0 {
					cell := &want[row*columns+int(column[spot.Stream])]
					*cell = max(*cell, spot.Pos)
				}
			}
		}
		require.Equal(t, want, got)
		for _, pos := range got {
			if pos > 0 {
				some++
			} else {
				none++
			}
		}
	})
	require.Greater(t, some, 5_000)
	require.Greater(t, none, 10_000)
}
