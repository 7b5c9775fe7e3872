// Tests of orders for spilling: moves keep every dependency and move nothing else, and greedy orders take first what needs little.

package placement

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/internal/crowd"
)

// drawOrdered makes a random graph, and which of its nodes come before which.
func drawOrdered(t *testing.T, rng *rand.Rand) (*SpillProblem, [][]bool) {
	t.Helper()
	b := dag.New("order")
	var ids []dag.BufferID
	for k := range 3 {
		ids = append(ids, b.Device(fmt.Sprint("x", k), dag.U8, 4*grain))
	}
	for k := range 4 + rng.IntN(10) {
		var accesses []dag.Access
		for range 1 + rng.IntN(2) {
			lo := grain * rng.Int64N(4)
			r := dag.Range{Buffer: ids[rng.IntN(3)], Lo: lo, Hi: lo + grain*(1+rng.Int64N(4-lo/grain))}
			accesses = append(accesses, dag.Access{Range: r, Mode: dag.Mode(1 + rng.IntN(3))})
		}
		b.Task(fmt.Sprint("n", k), accesses...)
	}
	g, err := b.Graph()
	require.NoError(t, err)
	p, err := NewSpillProblem(g, 1<<20, nil, nil)
	require.NoError(t, err)
	before := make([][]bool, g.Vertices()) // the nodes and joins that come before one
	for _, i := range g.Sequence() {
		before[i] = make([]bool, g.Vertices())
		for _, from := range g.Preds(i) {
			before[i][from] = true
			for k, is := range before[from] {
				before[i][k] = before[i][k] || is
			}
		}
	}
	return p, before
}

// A node moves as far as it is asked to. What it depends on moves with it, in the order that it had, and so does the rest behind it.
func TestMovesOfNodesKeepEveryDependency(t *testing.T) {
	joins, alone, together := 0, 0, 0
	for seed := range uint64(400) {
		rng := rand.New(rand.NewPCG(seed, 8))
		restore := func() {}
		if seed%2 == 0 {
			restore = crowd.Early(false)
		}
		p, before := drawOrdered(t, rng)
		restore()
		joins += len(p.Graph.Joins())
		o := newOrders(p)
		order := slices.Clone(p.Graph.Topological())
		for range 10 {
			a, b := int32(rng.IntN(len(order))), int32(rng.IntN(len(order)))
			was := slices.Clone(order)
			var moved, rest []dag.NodeID
			var want []dag.NodeID
			if b < a {
				o.earlier(order, a, b)
				for _, i := range was[b : a+1] {
					if i == was[a] || before[was[a]][i] {
						moved = append(moved, i)
					} else {
						rest = append(rest, i)
					}
				}
				want = slices.Concat(was[:b], moved, rest, was[a+1:])
			} else {
				o.later(order, a, b)
				for _, i := range was[a : b+1] {
					if i == was[a] || before[i][was[a]] {
						moved = append(moved, i)
					} else {
						rest = append(rest, i)
					}
				}
				want = slices.Concat(was[:a], rest, moved, was[b+1:])
			}
			require.Equal(t, want, order, "seed %d: %d to %d", seed, a, b)
			_, err := p.Ordered(order)
			require.NoError(t, err, "seed %d", seed)
			if len(moved) > 1 {
				together++
			} else {
				alone++
			}
		}
	}
	require.Positive(t, joins)
	require.Greater(t, alone, 500)
	require.Greater(t, together, 500)
}

// An order is taken if, and only if, each node comes once and after all that it depends on, joins in between or not.
func TestOrdersThatBreakDependenciesAreNone(t *testing.T) {
	taken, refused := 0, 0
	for seed := range uint64(600) {
		rng := rand.New(rand.NewPCG(seed, 10))
		restore := func() {}
		if seed%2 == 0 {
			restore = crowd.Early(false)
		}
		p, before := drawOrdered(t, rng)
		restore()
		order := slices.Clone(p.Graph.Topological())
		for range 1 + rng.IntN(3) {
			k := rng.IntN(len(order) - 1)
			order[k], order[k+1] = order[k+1], order[k]
		}
		fine := true
		for k, i := range order {
			for _, j := range order[k+1:] {
				fine = fine && !before[i][j]
			}
		}
		q, err := p.Ordered(order)
		if !fine {
			require.ErrorIs(t, err, ErrCannotSpill, "seed %d: %v", seed, order)
			refused++
			continue
		}
		require.NoError(t, err, "seed %d: %v", seed, order)
		taken++
		for at, i := range order {
			require.Equal(t, i, q.nodeAt(int32(at)))
		}
		for u, uses := range q.uses { // where nodes have come, ascending
			require.True(t, slices.IsSorted(uses))
			for at := range order {
				touches := slices.ContainsFunc(q.touchesAt(int32(at)), func(t touch) bool { return t.unit == int32(u) })
				require.Equal(t, touches, slices.Contains(uses, int32(at)))
			}
		}
	}
	require.Greater(t, taken, 100)
	require.Greater(t, refused, 100)
}

// Greedy orders keep every dependency whatever their taste, and the search gives up on those that would take too long.
func TestGreedyOrdersKeepEveryDependency(t *testing.T) {
	other := 0
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 11))
		restore := func() {}
		if seed%2 == 0 {
			restore = crowd.Early(false)
		}
		p, _ := drawOrdered(t, rng)
		restore()
		p.Limit = max(p.Least(), grain*rng.Int64N(12))
		how := taste{deep: rng.IntN(2) == 0, memory: rng.Float64(), shared: rng.IntN(2) == 0, noise: float64(rng.IntN(2)) * rng.Float64()}
		order, seen := p.greedyOrder(how, rand.New(rand.NewPCG(seed, 0)), 1<<30)
		_, err := p.Ordered(order)
		require.NoError(t, err, "seed %d", seed)
		again, looked := p.greedyOrder(how, rand.New(rand.NewPCG(seed, 0)), seen)
		require.Equal(t, order, again, "seed %d: so much is not too much", seed)
		require.Equal(t, seen, looked)
		none, looked := p.greedyOrder(how, rand.New(rand.NewPCG(seed, 0)), 0)
		require.Nil(t, none)
		require.LessOrEqual(t, looked, seen)
		if !slices.IsSorted(order) {
			other++
		}
	}
	require.Greater(t, other, 50)
}

// greedyOf declares kernels that each use some blocks, and orders them. A capital is a block that is written without being read; those with ! have
// contents from outside.
func greedyOf(t *testing.T, fit int64, how taste, kernels ...string) string {
	t.Helper()
	b := dag.New("greedy")
	ids := map[byte]dag.BufferID{}
	state := map[byte]bool{}
	for _, k := range kernels {
		for i := 1; i < len(k); i++ {
			state[k[i-1]] = state[k[i-1]] || k[i] == '!'
		}
	}
	for n, k := range kernels {
		var accesses []dag.Access
		for i := range len(k) {
			name := k[i] | 0x20
			if k[i] == '!' {
				continue
			}
			if _, known := ids[name]; !known {
				buffer := dag.Buffer{Name: string(name), Place: dag.Device, DType: dag.U8, Shape: []int64{grain}}
				if state[name] {
					buffer.Init = &dag.Init{Kind: dag.InitRamp}
				}
				ids[name] = b.Buffer(buffer)
			}
			if k[i] == name {
				accesses = append(accesses, b.In(ids[name]))
			} else {
				accesses = append(accesses, b.Out(ids[name]))
			}
		}
		b.Task(fmt.Sprint("n", n), accesses...)
	}
	g, err := b.Graph()
	require.NoError(t, err)
	p, err := NewSpillProblem(g, fit*grain, nil, nil)
	require.NoError(t, err)
	order, _ := p.greedyOrder(how, nil, 1<<30)
	return fmt.Sprint(order)
}

func TestGreedyOrdersTakeFirstWhatNeedsLittle(t *testing.T) {
	for _, c := range []struct {
		name    string
		fit     int64
		how     taste
		kernels []string
		want    string
	}{
		{"as declared where nothing differs", 4, taste{}, []string{"A", "B", "C"}, "[0 1 2]"},
		{"what is on the device before what has to come", 1, taste{}, []string{"a!", "b!", "a!", "b!"}, "[0 2 1 3]"},
		{"both are there, once they have come", 2, taste{}, []string{"a!", "b!", "a!", "b!"}, "[0 2 1 3]"},
		{"what needs one block before what needs two", 4, taste{}, []string{"a!b!", "c!", "c!"}, "[1 2 0]"},
		{"a block that is written counts less than one that is copied", 4, taste{memory: 0.25}, []string{"a!", "B", "C"}, "[1 2 0]"},
		{"a block that is written counts as much", 4, taste{memory: 1}, []string{"a!", "B", "C"}, "[0 1 2]"},
		{"memory that is free afterwards counts", 4, taste{memory: 1}, []string{"A", "B", "aC", "C", "b"}, "[0 2 3 1 4]"},
		{"what has just become ready comes first", 8, taste{deep: true}, []string{"A", "B", "a", "b"}, "[0 2 1 3]"},
		{"what others wait for too counts less", 4, taste{shared: true}, []string{"a!", "b!", "b!"}, "[1 2 0]"},
		{"all that has come is there", 8, taste{}, []string{"a!", "Ba!", "Cb", "Dc", "a!", "d"}, "[0 1 2 3 4 5]"},
		{"what was used longest ago has left for c, and comes last", 2, taste{}, []string{"a!", "Ba!", "Cb", "Dc", "a!", "d"}, "[0 1 2 3 5 4]"},
	} {
		require.Equal(t, c.want, greedyOf(t, c.fit, c.how, c.kernels...), c.name)
	}
}
