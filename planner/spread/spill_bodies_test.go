// Tests of spilling pipelines with loops and branches: all that a body uses is on the device while it runs, in whatever order nodes come.

package spread

import (
	"context"
	"math/rand/v2"
	"os"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/planner"
	"github.com/dagrun/dagrun/planner/internal/planted"
	"github.com/dagrun/dagrun/planner/plan"
	proof "github.com/dagrun/dagrun/planner/proof/spread"
)

func TestSpilledNestsAgreeWithBruteForce(t *testing.T) {
	cases, moved, reordered, refused, harmless, right := uint64(400), 0, 0, 0, 0, 0
	if os.Getenv("DAGRUN_LONG") != "" {
		cases = 10_000
	}
	for seed := range cases {
		random := rand.New(rand.NewPCG(seed, 83))
		devices := 1 + random.IntN(3)
		g := drawNested(t, random, devices, 1+random.IntN(3))
		s, limit := drawSpill(t, random, g, devices)
		if s == nil || !g.HasControl() {
			continue
		}
		require.NoError(t, proof.Verify(g, s), "seed %d", seed)
		require.True(t, plainlyEqual(g, s), "seed %d: the spill is wrong, but was proved", seed)
		if s.Stats.Reloads > 0 {
			moved++
		}
		if len(s.Order) > 0 {
			reordered++
		}
		if seed%8 == 0 {
			_, err := planner.New(context.Background(), s.Graph, planner.Options{Machine: planner.Unit(), MemoryCap: limit, Spread: s})
			require.NoError(t, err, "seed %d", seed)
		}
		for range 2 {
			changed := swapped(t, random, s)
			if changed == nil {
				continue
			}
			switch err := proof.Verify(g, changed); {
			case err == nil:
				require.True(t, plainlyEqual(g, changed), "seed %d: a wrong order was proved", seed)
				right++
			case plainlyEqual(g, changed): // wrong in runs that the dice did not make
				harmless++
			default:
				require.ErrorIs(t, err, proof.ErrWrong)
				refused++
			}
		}
	}
	t.Logf("%d spills with copies, %d in another order; of nodes that were swapped, %d were refused, %d although no run differed, %d are right", moved, reordered, refused, harmless, right)
	require.Greater(t, moved, int(cases)/10)
	require.Greater(t, reordered, int(cases)/20)
	require.Greater(t, refused, int(cases)/20)
	require.Greater(t, right, int(cases)/20)
	require.Less(t, harmless, refused)
}

// swapped changes the order of a node of the graph and one that comes soon after it.
func swapped(t *testing.T, random *rand.Rand, s *plan.Spread) *plan.Spread {
	t.Helper()
	n := s.Graph.Len()
	if n < 2 {
		return nil
	}
	i := random.IntN(n - 1)
	j := min(n-1, i+1+random.IntN(3))
	order := make([]dag.NodeID, n)
	for k := range order {
		order[k] = dag.NodeID(k)
	}
	order[i], order[j] = order[j], order[i]
	changed := *s
	changed.Nodes = slices.Clone(s.Nodes)
	b := s.Graph.Empty()
	for k := range s.Graph.Buffers {
		b.Buffer(s.Graph.Buffers[k])
	}
	for k, from := range order {
		changed.Nodes[k] = s.Nodes[from]
		addLike(b, s.Graph, from)
	}
	var err error
	changed.Graph, err = b.Graph()
	require.NoError(t, err)
	return &changed
}

// addLike declares a node as it is in another graph, with its bodies but without after.
func addLike(b *dag.Builder, g *dag.Graph, i dag.NodeID) {
	node := g.Nodes[i]
	node.After = nil
	if node.Control == nil {
		b.Node(node, g.Accesses(i)...)
		return
	}
	var operands []dag.Range
	if node.Control.Condition != nil {
		operands = node.Control.Condition.Operands
	}
	var bodies []func()
	for _, body := range node.Control.Bodies {
		bodies = append(bodies, func() {
			for k := range body.Nodes {
				addLike(b, body, dag.NodeID(k))
			}
		})
	}
	b.ControlLike(node, operands, bodies...)
}

func TestPlantedFaultsOfSpilledNestsAreRefused(t *testing.T) {
	for _, c := range []struct {
		name  string
		fault planted.Fault
	}{{"a lost reload", planted.Reload}, {"a late reload", planted.LateReload}, {"a stale reload", planted.Unsaved}, {"a copy to the host before the last write", planted.EarlySave}} {
		t.Run(c.name, func(t *testing.T) {
			refused, harmless := 0, 0
			for seed := range uint64(300) {
				random := rand.New(rand.NewPCG(seed, 89))
				g := drawNested(t, random, 1, 2)
				remove := planted.Plant(c.fault)
				s, _ := drawSpill(t, random, g, 1)
				remove()
				if s == nil {
					continue
				}
				switch err := proof.Verify(g, s); {
				case err == nil:
					require.True(t, plainlyEqual(g, s), "seed %d: the spill is wrong, but was proved", seed)
				case plainlyEqual(g, s):
					harmless++
				default:
					refused++
				}
			}
			require.Greater(t, refused, 8)
			require.Less(t, harmless, refused)
		})
	}
}
