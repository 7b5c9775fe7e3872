// Graphs that need more memory than they are given, of the kinds that work on tiles has: which order of nodes is good for them differs much.

package spread

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/planner/internal/plantest"
)

// spillInstance says which graph to make, and how much memory it is given.
type spillInstance struct {
	Family string
	Size   int
	US     float64 // of a kernel; a tile takes 76 us to copy to an H200, or back
	Seed   uint64
	Tiles  int64 // that fit
}

// spillFamilies are those that spillInstance.Graph knows.
func spillFamilies() []string {
	return []string{"reads", "updates", "cholesky", "lu", "fft", "stencil", "tree", "layers", "passes", "random"}
}

// spillMaker builds kernels on tiles of plantest.BlockBytes.
type spillMaker struct {
	b      *dag.Builder
	us     float64
	random *rand.Rand // makes times uneven; nil: they are even
	nodes  int
	tiles  map[[2]int]dag.BufferID
}

// tile is one that has contents from outside where state says so.
func (m *spillMaker) tile(i, j int, state bool) dag.BufferID {
	id, known := m.tiles[[2]int{i, j}]
	if !known {
		b := dag.Buffer{Name: fmt.Sprintf("t.%d.%d", i, j), Place: dag.Device, DType: dag.U8, Shape: []int64{plantest.BlockBytes}}
		if state {
			b.Init = &dag.Init{Kind: dag.InitRamp}
		}
		id = m.b.Buffer(b)
		m.tiles[[2]int{i, j}] = id
	}
	return id
}

func (m *spillMaker) kernel(us float64, accesses ...dag.Access) {
	if m.random != nil {
		us *= 0.5 + m.random.Float64()
	}
	m.b.Node(dag.Node{Name: fmt.Sprintf("n%d", m.nodes), Kind: dag.Task, HasCost: true, CostUS: us, Work: dag.Work{Blocks: 100_000, Threads: 256}}, accesses...)
	m.nodes++
}

// Graph makes the graph.
func (in spillInstance) Graph(t testing.TB) *dag.Graph {
	t.Helper()
	random := rand.New(rand.NewPCG(in.Seed, 61))
	if in.Family == "reads" || in.Family == "updates" {
		g, _, _ := plantest.DrawBlocks(t, random, in.Size, 4*in.Size, in.US, in.Family == "updates")
		return g
	}
	m := &spillMaker{b: dag.New(in.Family), us: in.US, tiles: map[[2]int]dag.BufferID{}}
	if in.Seed > 0 {
		m.random = random
	}
	switch in.Family {
	case "cholesky":
		m.factor(in.Size, true)
	case "lu":
		m.factor(in.Size, false)
	case "fft":
		m.fft(in.Size)
	case "stencil":
		m.stencil(in.Size)
	case "tree":
		m.tree(in.Size)
	case "layers":
		m.layers(in.Size)
	case "passes":
		m.passes(in.Size)
	case "random":
		m.drawn(in.Size, random)
	default:
		require.Fail(t, "unknown family", in.Family)
	}
	g, err := m.b.Graph()
	require.NoError(t, err)
	return g
}

// factor is a tiled Cholesky or LU factorization of a matrix in host memory.
func (m *spillMaker) factor(n int, lower bool) {
	at := func(i, j int) dag.BufferID { return m.tile(i, j, true) }
	for k := range n {
		m.kernel(m.us/2, m.b.InOut(at(k, k)))
		for i := k + 1; i < n; i++ {
			m.kernel(m.us, m.b.InOut(at(i, k)), m.b.In(at(k, k)))
			if !lower {
				m.kernel(m.us, m.b.InOut(at(k, i)), m.b.In(at(k, k)))
			}
		}
		for i := k + 1; i < n; i++ {
			for j := k + 1; j < n; j++ {
				switch {
				case lower && i == j:
					m.kernel(m.us, m.b.InOut(at(i, i)), m.b.In(at(i, k)))
				case lower && j < i:
					m.kernel(m.us, m.b.InOut(at(i, j)), m.b.In(at(i, k)), m.b.In(at(j, k)))
				case !lower:
					m.kernel(m.us, m.b.InOut(at(i, j)), m.b.In(at(i, k)), m.b.In(at(k, j)))
				}
			}
		}
	}
}

// fft are butterflies, each step into new tiles.
func (m *spillMaker) fft(parts int) {
	at := func(step, i int) dag.BufferID { return m.tile(step, i, false) }
	for i := range parts {
		m.kernel(m.us, m.b.Out(at(0, i)))
	}
	for step := 1; 1<<step <= parts; step++ {
		for i := range parts {
			m.kernel(m.us, m.b.Out(at(step, i)), m.b.In(at(step-1, i)), m.b.In(at(step-1, i^(1<<(step-1)))))
		}
	}
}

// stencil updates tiles from themselves and their neighbours, for half as many steps as there are tiles.
func (m *spillMaker) stencil(parts int) {
	at := func(step, i int) dag.BufferID { return m.tile(step, i, false) }
	for i := range parts {
		m.kernel(m.us, m.b.Out(at(0, i)))
	}
	for step := 1; step <= parts/2; step++ {
		for i := range parts {
			accesses := []dag.Access{m.b.Out(at(step, i))}
			for j := max(0, i-1); j <= min(parts-1, i+1); j++ {
				accesses = append(accesses, m.b.In(at(step-1, j)))
			}
			m.kernel(m.us, accesses...)
		}
	}
}

// tree adds up tiles in pairs, level by level.
func (m *spillMaker) tree(leaves int) {
	at := func(level, i int) dag.BufferID { return m.tile(level, i, false) }
	for i := range leaves {
		m.kernel(m.us, m.b.Out(at(0, i)))
	}
	for level, n := 1, leaves/2; n >= 1; level, n = level+1, n/2 {
		for i := range n {
			m.kernel(m.us, m.b.Out(at(level, i)), m.b.In(at(level-1, 2*i)), m.b.In(at(level-1, 2*i+1)))
		}
	}
}

// layers go forward, and backward with what each of them has left; weights are state.
func (m *spillMaker) layers(n int) {
	act := func(i int) dag.BufferID { return m.tile(0, i, false) }
	grad := func(i int) dag.BufferID { return m.tile(1, i, false) }
	weight := func(i int) dag.BufferID { return m.tile(2, i, true) }
	m.kernel(m.us, m.b.Out(act(0)))
	for i := range n {
		m.kernel(m.us, m.b.Out(act(i+1)), m.b.In(act(i)), m.b.In(weight(i)))
	}
	m.kernel(m.us, m.b.Out(grad(n)), m.b.In(act(n)))
	for i := n - 1; i >= 0; i-- {
		m.kernel(m.us, m.b.Out(grad(i)), m.b.In(grad(i+1)), m.b.In(act(i)), m.b.In(weight(i)))
		m.kernel(m.us/2, m.b.InOut(weight(i)), m.b.In(grad(i)))
	}
}

// passes go over all tiles three times; each pass needs a sum over the last one.
func (m *spillMaker) passes(n int) {
	at := func(i int) dag.BufferID { return m.tile(0, i, false) }
	sum := func(i int) dag.BufferID { return m.tile(1, i, false) }
	for i := range n {
		m.kernel(m.us, m.b.Out(at(i)))
	}
	for pass := range 3 {
		m.kernel(1, m.b.Out(sum(pass)))
		for i := range n {
			accesses := []dag.Access{m.b.InOut(sum(pass)), m.b.InOut(at(i))}
			if pass > 0 {
				accesses = append(accesses, m.b.In(sum(pass-1)))
			}
			m.kernel(m.us, accesses...)
		}
	}
}

// drawn makes each tile from two that came before, mostly not long ago.
func (m *spillMaker) drawn(n int, random *rand.Rand) {
	at := func(i int) dag.BufferID { return m.tile(0, i, i < 4) }
	for i := 4; i < n; i++ {
		x, y := random.IntN(i), i-1-random.IntN(min(i, 8))
		if x == y {
			x = (y + 1) % i
		}
		m.kernel(m.us, m.b.Out(at(i)), m.b.In(at(x)), m.b.In(at(y)))
	}
}
