// Tests of spilling: the proof agrees with brute force on random spills and on spills with mistakes, and what is spilled fits.

package planner

import (
	"context"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/planner/internal/planted"
	"github.com/dagrun/dagrun/planner/internal/spread"
	"github.com/dagrun/dagrun/planner/plan"
	"github.com/dagrun/dagrun/planner/proof"
)

// mostRoom returns the bytes of the device that has the most, as an arena counts them.
func mostRoom(g *dag.Graph) int64 {
	rooms := map[int32]int64{}
	most := int64(0)
	for k := range g.Buffers {
		if b := &g.Buffers[k]; b.InArena() {
			rooms[b.Device] += plan.AlignUp(b.Bytes)
			most = max(most, rooms[b.Device])
		}
	}
	return most
}

// drawSpill spills a random graph in some way, on one device or on several. It returns nil where a node needs nearly everything at once.
func drawSpill(t *testing.T, random *rand.Rand, g *dag.Graph, devices int) (made *plan.Spread, limit int64) {
	t.Helper()
	base := g
	var at []int32
	if devices > 1 {
		p, err := spread.NewProblem(g, devices, nil)
		require.NoError(t, err)
		at = drawPlacement(random, p)
		s, err := spread.Transform(p, at)
		require.NoError(t, err)
		base = s.Graph
	}
	limit = 256 * (1 + random.Int64N(max(1, mostRoom(base)/256)))
	p, err := spread.NewSpillProblem(base, limit, nil)
	require.NoError(t, err)
	candidates, err := spread.SpillCandidates(context.Background(), p, Unit(), Durations(base, Unit(), nil), Quick)
	if err != nil {
		require.ErrorIs(t, err, ErrCannotSpill)
		return nil, 0
	}
	c := candidates[random.IntN(len(candidates))]
	made, err = spread.Spill(p, c.List)
	require.NoError(t, err)
	if devices == 1 {
		return made, limit
	}
	made, err = SpillAt(g, Options{Devices: devices}, at, c.List)
	require.NoError(t, err)
	return made, limit
}

func TestSpillsAgreeWithBruteForce(t *testing.T) {
	refused, right, moved := 0, 0, 0
	for seed := range spreadCases() {
		random := rand.New(rand.NewPCG(seed, 31))
		devices := 1 + random.IntN(3)
		g := drawSpreadable(t, random, devices)
		s, limit := drawSpill(t, random, g, devices)
		if s == nil {
			continue
		}
		require.NoError(t, proof.Spread(g, s), "seed %d", seed)
		require.True(t, plainlyEqual(g, s), "seed %d: the spill is wrong, but was proved", seed)
		if s.Stats.Reloads > 0 {
			moved++
		}
		if seed%8 == 0 {
			_, err := New(context.Background(), s.Graph, Options{Machine: Unit(), MemoryCap: limit})
			require.NoError(t, err, "seed %d", seed)
		}
		wrong, harmless := judgeMutants(t, random, g, s, seed)
		refused, right = refused+wrong, right+harmless
	}
	t.Logf("%d spills, %d with a mistake were refused, %d are right all the same", moved, refused, right)
	require.Greater(t, moved, int(spreadCases())/5)
	require.Greater(t, refused, int(spreadCases())/2)
	require.Greater(t, right, int(spreadCases())/20)
}

func TestPlantedFaultsOfSpillsAreRefused(t *testing.T) {
	for _, c := range []struct {
		name  string
		fault planted.Fault
	}{{"a lost reload", planted.Reload}, {"a late reload", planted.LateReload}, {"a stale reload", planted.Unsaved}, {"a copy to the host before the last write", planted.EarlySave}} {
		t.Run(c.name, func(t *testing.T) {
			refused := 0
			for seed := range uint64(300) {
				random := rand.New(rand.NewPCG(seed, 37))
				g := drawSpreadable(t, random, 1)
				remove := planted.Plant(c.fault)
				s, _ := drawSpill(t, random, g, 1)
				remove()
				if s == nil {
					continue
				}
				err := proof.Spread(g, s)
				require.Equal(t, plainlyEqual(g, s), err == nil, "seed %d: %v", seed, err)
				if err != nil {
					refused++
				}
			}
			require.Greater(t, refused, 20)
		})
	}
}
