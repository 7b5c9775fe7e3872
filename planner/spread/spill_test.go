// Tests of spilling: the proof agrees with brute force on random spills and on spills with mistakes, and what is spilled fits.

package spread

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/planner"
	"github.com/dagrun/dagrun/planner/internal/placement"
	"github.com/dagrun/dagrun/planner/internal/planted"
	"github.com/dagrun/dagrun/planner/internal/plantest"
	"github.com/dagrun/dagrun/planner/model"
	"github.com/dagrun/dagrun/planner/plan"
	proof "github.com/dagrun/dagrun/planner/proof/spread"
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
	base, rows := g, placement.Rows(g)
	var at []int32
	if devices > 1 {
		p, err := placement.NewProblem(g, devices, nil)
		require.NoError(t, err)
		at = drawPlacement(random, p)
		s, err := placement.Transform(p, at)
		require.NoError(t, err)
		base, rows = s.Graph, (&spilling{r: &request{g: g}, base: s}).rows()
	}
	limit = 256 * (1 + random.Int64N(max(1, mostRoom(base)/256)))
	p, err := placement.NewSpillProblem(base, limit, nil, rows)
	require.NoError(t, err)
	candidates, err := placement.SpillCandidates(context.Background(), p, planner.Unit(), model.Durations(base, planner.Unit(), nil), planner.Quick)
	if err != nil {
		require.ErrorIs(t, err, ErrCannotSpill)
		return nil, 0
	}
	c := candidates[random.IntN(len(candidates))]
	p, err = p.Ordered(c.Order)
	require.NoError(t, err)
	made, err = placement.Spill(p, c.List)
	require.NoError(t, err)
	if devices == 1 {
		return made, limit
	}
	made, err = SpillAt(g, Options{Devices: devices}, &plan.Spread{At: at, Order: c.Order, Spilled: c.List})
	require.NoError(t, err)
	return made, limit
}

func TestSpillsAgreeWithBruteForce(t *testing.T) {
	refused, right, moved, reordered, outOfOrder, inOrder := 0, 0, 0, 0, 0, 0
	for seed := range spreadCases() {
		random := rand.New(rand.NewPCG(seed, 31))
		devices := 1 + random.IntN(3)
		g := drawSpreadable(t, random, devices)
		s, limit := drawSpill(t, random, g, devices)
		if s == nil {
			continue
		}
		require.NoError(t, proof.Verify(g, s), "seed %d", seed)
		require.True(t, plainlyEqual(g, s), "seed %d: the spill is wrong, but was proved", seed)
		if s.Stats.Reloads > 0 {
			moved++
		}
		if seed%8 == 0 {
			_, err := planner.New(context.Background(), s.Graph, planner.Options{Machine: planner.Unit(), MemoryCap: limit})
			require.NoError(t, err, "seed %d", seed)
		}
		if len(s.Order) > 0 {
			reordered++
		}
		wrong, harmless := judgeMutants(t, random, g, s, seed)
		refused, right = refused+wrong, right+harmless
		swapped, fine := judgeSwaps(t, random, g, s, seed)
		outOfOrder, inOrder = outOfOrder+swapped, inOrder+fine
	}
	t.Logf("%d have another order than declared; of nodes that were swapped, %d were refused, %d are right all the same", reordered, outOfOrder, inOrder)
	require.Greater(t, reordered, int(spreadCases())/10)
	require.Greater(t, outOfOrder, int(spreadCases())/10)
	require.Greater(t, inOrder, int(spreadCases())/10)
	t.Logf("%d spills, %d with a mistake were refused, %d are right all the same", moved, refused, right)
	require.Greater(t, moved, int(spreadCases())/5)
	require.Greater(t, refused, int(spreadCases())/2)
	require.Greater(t, right, int(spreadCases())/20)
}

// What a node's memory was used for before, it waits for in every plan. So no plan has to look for a layout.
func TestSpilledGraphsFitWithEveryStrategy(t *testing.T) {
	for _, in := range []spillInstance{{Family: "cholesky", Size: 6, US: 20, Tiles: 9}, {Family: "fft", Size: 8, US: 20, Tiles: 6}, {Family: "random", Size: 48, US: 20, Seed: 2, Tiles: 8}} {
		g := in.Graph(t)
		o := Options{Options: planner.Options{MemoryCap: in.Tiles * plantest.BlockBytes}}
		s, err := Spill(context.Background(), g, o)
		require.NoError(t, err)
		require.Len(t, s.Offsets, len(s.Graph.Buffers))
		for _, strategy := range planner.Strategies() {
			p, err := planner.New(context.Background(), s.Graph, planner.Options{Strategy: strategy, Spread: s}) // nothing else is handed back
			require.NoError(t, err, strategy)
			require.True(t, liesAt(p, s.Offsets), strategy)
			require.LessOrEqual(t, p.Stats.PeakDeviceBytes, o.MemoryCap)
			require.Same(t, s, p.Spread)
		}
		s.Offsets = make([]int64, len(s.Offsets)) // what cannot be is not taken
		p, err := planner.New(context.Background(), s.Graph, planner.Options{Spread: s})
		require.NoError(t, err)
		require.False(t, liesAt(p, s.Offsets))
		require.LessOrEqual(t, p.Stats.PeakDeviceBytes, o.MemoryCap, "the plan has the memory cap of the spread graph")
		_, err = planner.New(context.Background(), g, planner.Options{Spread: s})
		require.ErrorIs(t, err, planner.ErrBadOption)
		require.EqualError(t, err, fmt.Sprintf("Options.Spread made another graph than %q: bad option", g.Name))
	}
}

// The smallest memory cap that an error names works, and a smaller one does not.
func TestSmallestCapsWork(t *testing.T) {
	named := 0
	for seed := range uint64(60) {
		random := rand.New(rand.NewPCG(seed, 97))
		g := drawNested(t, random, 1, random.IntN(3))
		o := Options{Options: planner.Options{Machine: planner.Unit(), MemoryCap: 1}}
		_, err := Spill(context.Background(), g, o)
		var refused *cannotSpill
		if !errors.As(err, &refused) {
			require.NoError(t, err, "seed %d", seed)
			continue // nothing is on a device
		}
		require.Greater(t, refused.smallest, int64(0), "seed %d: %v", seed, err)
		require.ErrorContains(t, err, "; the smallest memory cap that works is "+exactly(refused.smallest)+" (without spilling: ")
		named++
		o.MemoryCap = refused.smallest
		made, err := Spill(context.Background(), g, o)
		require.NoError(t, err, "seed %d", seed)
		if made != nil {
			p, err := planner.New(context.Background(), made.Graph, planner.Options{Machine: planner.Unit(), Spread: made})
			require.NoError(t, err, "seed %d", seed)
			require.LessOrEqual(t, p.Stats.PeakDeviceBytes, o.MemoryCap)
		}
		o.MemoryCap = refused.smallest - 1
		_, err = Spill(context.Background(), g, o)
		require.ErrorIs(t, err, ErrCannotSpill, "seed %d", seed)
	}
	require.Greater(t, named, 20)
	require.Equal(t, []string{"1 byte", "1023 bytes", "1 KiB", "1025 KiB", "3 GiB"}, []string{exactly(1), exactly(1023), exactly(1024), exactly(1025 << 10), exactly(3 << 30)})
}

// judgeSwaps changes the order of a node and one that comes soon after it. The proof must refuse that if, and only if, something else is computed.
func judgeSwaps(t *testing.T, random *rand.Rand, g *dag.Graph, s *plan.Spread, seed uint64) (refused, right int) {
	t.Helper()
	for range 2 {
		n := s.Graph.Len()
		if n < 2 {
			return refused, right
		}
		i := random.IntN(n - 1)
		j := min(n-1, i+1+random.IntN(3))
		changed := *s
		changed.Nodes = slices.Clone(s.Nodes)
		changed.Nodes[i], changed.Nodes[j] = s.Nodes[j], s.Nodes[i]
		b := s.Graph.Empty()
		for k := range s.Graph.Buffers {
			b.Buffer(s.Graph.Buffers[k])
		}
		for k := range n {
			at := dag.NodeID(k)
			switch k {
			case i:
				at = dag.NodeID(j)
			case j:
				at = dag.NodeID(i)
			}
			node := s.Graph.Nodes[at]
			node.After = nil
			b.Node(node, s.Graph.Accesses(at)...)
		}
		var err error
		changed.Graph, err = b.Graph()
		require.NoError(t, err)
		err = proof.Verify(g, &changed)
		require.Equal(t, plainlyEqual(g, &changed), err == nil, "seed %d, nodes %d and %d: %v", seed, i, j, err)
		if err != nil {
			require.ErrorIs(t, err, proof.ErrWrong)
			refused++
		} else {
			right++
		}
	}
	return refused, right
}

// An order in a plan file is checked like everything else in it.
func TestOrdersThatBreakDependenciesAreRefused(t *testing.T) {
	b := dag.New("orders")
	x := b.Buffer(dag.Buffer{Name: "x", Place: dag.Device, DType: dag.U8, Shape: []int64{256}})
	y := b.Buffer(dag.Buffer{Name: "y", Place: dag.Device, DType: dag.U8, Shape: []int64{256}, Save: "y.bin"})
	b.Node(dag.Node{Name: "make", Kind: dag.Task}, b.Out(x))
	b.Node(dag.Node{Name: "other", Kind: dag.Task}, b.Out(y))
	b.Node(dag.Node{Name: "use", Kind: dag.Task}, b.In(x), b.InOut(y))
	g, err := b.Graph()
	require.NoError(t, err)
	list := []plan.Residency{{Buffer: x, Hi: 256, Last: 2}, {Buffer: y, Hi: 256, Last: 2, Offset: 256}}
	s, err := SpillAt(g, Options{}, &plan.Spread{Order: []dag.NodeID{1, 0, 2}, Spilled: list})
	require.NoError(t, err)
	require.Equal(t, []dag.NodeID{1, 0, 2}, s.Order)
	for _, c := range []struct {
		order []dag.NodeID
		want  string
	}{
		{[]dag.NodeID{0, 2, 1}, `the pipeline cannot be spilled to host memory: an order with "use" before what it depends on`},
		{[]dag.NodeID{0, 1}, "the pipeline cannot be spilled to host memory: an order of 2 nodes for a graph of 3"},
		{[]dag.NodeID{0, 0, 1}, "the pipeline cannot be spilled to host memory: an order that has node 0 twice or has no such node"},
		{[]dag.NodeID{0, 1, 3}, "the pipeline cannot be spilled to host memory: an order that has node 3 twice or has no such node"},
	} {
		_, err := SpillAt(g, Options{}, &plan.Spread{Order: c.order, Spilled: list})
		require.EqualError(t, err, c.want)
		require.ErrorIs(t, err, ErrCannotSpill)
	}
	_, err = SpillAt(g, Options{}, nil)
	require.EqualError(t, err, "the pipeline cannot be spilled to host memory: nothing says what is on the device when")
}

// A node may come after one that is declared later, also in a loop.
func TestNodesThatComeAfterLaterOnesAreSpilled(t *testing.T) {
	for name, declare := range map[string]func(b *dag.Builder, x, y, z dag.BufferID){
		"in the pipeline": func(b *dag.Builder, x, y, z dag.BufferID) {
			first := b.Task("first", b.InOut(x))
			b.Task("then", b.InOut(y))
			b.After(first, b.Task("last", b.InOut(z)))
			b.Task("end", b.InOut(x))
		},
		"in a loop": func(b *dag.Builder, x, y, z dag.BufferID) {
			b.Repeat("loop", dag.Loop{Times: 2}, func() {
				first := b.Task("first", b.InOut(x))
				b.Task("then")
				b.After(first, b.Task("last", b.In(y)))
			})
			b.Task("end", b.InOut(z), b.InOut(y))
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := dag.New("later")
			var ids []dag.BufferID
			for _, name := range []string{"x", "y", "z"} {
				ids = append(ids, b.Device(name, dag.U8, 256))
				b.Init(ids[len(ids)-1], dag.Init{Kind: dag.InitRamp})
			}
			declare(b, ids[0], ids[1], ids[2])
			g, err := b.Graph()
			require.NoError(t, err)
			s, err := Spill(context.Background(), g, Options{Options: planner.Options{MemoryCap: 512}})
			require.NoError(t, err)
			require.Positive(t, s.Stats.Reloads)
			require.True(t, plainlyEqual(g, s))
			again, err := SpillAt(g, Options{}, s)
			require.NoError(t, err)
			require.Equal(t, s.Graph.Hash(), again.Graph.Hash())
		})
	}
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
				err := proof.Verify(g, s)
				require.Equal(t, plainlyEqual(g, s), err == nil, "seed %d: %v", seed, err)
				if err != nil {
					refused++
				}
			}
			require.Greater(t, refused, 20)
		})
	}
}
