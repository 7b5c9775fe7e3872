// Tests of pairing nodes with those that follow them on their streams, against every pairing of small graphs.

package place

import (
	"context"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/planner/internal/plantest"
	"github.com/dagrun/dagrun/planner/model"
)

// reaches says which nodes depend on which.
func reaches(g *dag.Graph) [][]bool {
	n := g.Len()
	before := make([][]bool, n)
	for i := range before {
		before[i] = make([]bool, n)
	}
	for _, e := range g.Edges() {
		before[e.From][e.To] = true
	}
	for k := range n {
		for i := range n {
			for j := range n {
				before[i][j] = before[i][j] || before[i][k] && before[k][j]
			}
		}
	}
	return before
}

// bestPairing tries every pairing of nodes with nodes that depend on them, and returns the most dependencies of the reduction that one has, and the most
// pairs of those that have as many.
func bestPairing(n int, direct, depends func(i, j int) bool) (dependencies, pairs int) {
	taken := make([]bool, n)
	var try func(i, d, p int)
	try = func(i, d, p int) {
		if i == n {
			if d > dependencies || d == dependencies && p > pairs {
				dependencies, pairs = d, p
			}
			return
		}
		try(i+1, d, p)
		for j := range n {
			if taken[j] || !depends(i, j) {
				continue
			}
			taken[j] = true
			if direct(i, j) {
				try(i+1, d+1, p+1)
			} else {
				try(i+1, d, p+1)
			}
			taken[j] = false
		}
	}
	try(0, 0, 0)
	return dependencies, pairs
}

func TestPairingsAreTheBestOfAll(t *testing.T) {
	indirect, left := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		for range 20 { // some kinds are rare
			s := plantest.DrawShape(t, 7)
			if rapid.Bool().Draw(t, "shuffled") {
				s = s.Shuffled(rapid.Uint64().Draw(t, "order"))
			}
			g := plantest.MustOrder(t, s)
			n := g.Len()
			if n > 8 {
				continue
			}
			rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
			free := make([]bool, n)
			for i := range free {
				free[i] = rng.IntN(5) > 0
			}
			p, err := NewProblem(context.Background(), g, model.Unit(), model.Durations(g, model.Unit(), nil), 3)
			require.NoError(t, err)
			before := reaches(g)
			depends := func(i, j int) bool { return free[i] && free[j] && before[i][j] }
			direct := func(i, j int) bool {
				for k := range n {
					if before[i][k] && before[k][j] {
						return false
					}
				}
				return before[i][j]
			}
			m, err := match(p, func(i int32) bool { return free[i] })
			require.NoError(t, err)
			dependencies, pairs := 0, 0
			for i, next := range m.next {
				if next < 0 {
					continue
				}
				require.True(t, depends(i, int(next)))
				require.Equal(t, int32(i), m.prev[next])
				pairs++
				if direct(i, int(next)) {
					dependencies++
				} else {
					indirect++
				}
			}
			for j, prev := range m.prev {
				require.True(t, prev < 0 || m.next[prev] == int32(j))
			}
			most, mostPairs := bestPairing(n, direct, depends)
			require.Equal(t, [2]int{most, mostPairs}, [2]int{dependencies, pairs})
			left += n - pairs
		}
	})
	require.Positive(t, indirect)
	require.Positive(t, left)
}

// What a longer path implies is left out of the reduction, and nothing else is.
func TestReductionsLeaveOutWhatPathsImply(t *testing.T) {
	kept, left := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		for range 10 { // some kinds are rare
			s := plantest.DrawShape(t, 20)
			if rapid.Bool().Draw(t, "shuffled") {
				s = s.Shuffled(rapid.Uint64().Draw(t, "order"))
			}
			g := plantest.MustOrder(t, s)
			n := g.Len()
			p, err := NewProblem(context.Background(), g, model.Unit(), model.Durations(g, model.Unit(), nil), 3)
			require.NoError(t, err)
			before := reaches(g)
			keep, first, err := reduce(p, p.order, nil)
			require.NoError(t, err)
			for i := range int32(n) {
				for k, q := range p.preds(i) {
					implied := false
					for between := range n {
						implied = implied || before[q][between] && before[between][i]
					}
					require.Equal(t, !implied, keep[first[i]+int32(k)], "%d before %d", q, i)
					if implied {
						left++
					} else {
						kept++
					}
				}
			}
		}
	})
	require.Positive(t, left)
	require.Positive(t, kept)
}
