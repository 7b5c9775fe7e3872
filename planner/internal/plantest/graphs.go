// Graphs for tests and benchmarks: Task Bench patterns, random families, tiny shapes. Plans nothing.

// Package plantest has graphs and plans for tests, and slow, simple algorithms whose answers tests compare with.
package plantest

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/dag"
)

// Shape is a graph before it has buffers: the predecessors of each node, all with smaller ids unless it is shuffled, and costs.
type Shape struct {
	Name  string
	Preds [][]int32
	Cost  []float64 // us; nil: 1 each
	Bytes []int64   // size of the buffer that each node writes; nil: 1024 each
}

func (s *Shape) add(preds ...int32) int32 {
	slices.Sort(preds)
	s.Preds = append(s.Preds, slices.Compact(preds))
	return int32(len(s.Preds) - 1)
}

// Graph makes tasks that each write one device buffer of their own and read those of their predecessors.
func (s *Shape) Graph(tb testing.TB) *dag.Graph {
	tb.Helper()
	b := dag.New(s.Name)
	for i := range s.Preds {
		bytes := int64(1024)
		if s.Bytes != nil {
			bytes = s.Bytes[i]
		}
		b.Device(fmt.Sprintf("d%d", i), dag.U8, bytes)
	}
	for i, preds := range s.Preds {
		accesses := make([]dag.Access, 0, 1+len(preds))
		for _, q := range preds {
			accesses = append(accesses, b.In(dag.BufferID(q)))
		}
		s.Declare(b, i, append(accesses, b.Out(dag.BufferID(i)))...)
	}
	g, err := b.Graph()
	require.NoError(tb, err)
	return g
}

// Ordered makes tasks that access no buffers and come after their predecessors.
func (s *Shape) Ordered(tb testing.TB) *dag.Graph {
	tb.Helper()
	return MustOrder(tb, s)
}

// MustOrder is Ordered for rapid's checks, which do not implement testing.TB.
func MustOrder(t require.TestingT, s *Shape) *dag.Graph {
	b := dag.New(s.Name)
	for i, preds := range s.Preds {
		b.At(dag.NodeID(s.Declare(b, i))).After = IDs(preds)
	}
	g, err := b.Graph()
	require.NoError(t, err)
	return g
}

// Shuffled is the same shape with nodes declared in another order, so that some come after nodes that are declared later.
func (s *Shape) Shuffled(seed uint64) *Shape {
	n := len(s.Preds)
	id := rand.New(rand.NewPCG(seed, 5)).Perm(n)
	t := &Shape{Name: s.Name + " shuffled", Preds: make([][]int32, n), Cost: make([]float64, n)}
	for i, preds := range s.Preds {
		for _, q := range preds {
			t.Preds[id[i]] = append(t.Preds[id[i]], int32(id[q]))
		}
		t.Cost[id[i]] = 1
		if s.Cost != nil {
			t.Cost[id[i]] = s.Cost[i]
		}
	}
	return t
}

func (s *Shape) Declare(b *dag.Builder, i int, accesses ...dag.Access) int32 {
	id := b.Task(fmt.Sprintf("n%d", i), accesses...)
	if s.Cost != nil {
		node := b.At(id)
		node.HasCost, node.CostUS = true, s.Cost[i]
	}
	return int32(id)
}

// EdgesShape makes a shape of n nodes from a list of edges.
func EdgesShape(name string, n int, edges ...[2]int32) *Shape {
	s := &Shape{Name: name, Preds: make([][]int32, n)}
	for _, e := range edges {
		s.Preds[e[1]] = append(s.Preds[e[1]], e[0])
	}
	for i := range s.Preds {
		slices.Sort(s.Preds[i])
	}
	return s
}

// TaskBench makes a Task Bench pattern of the given width and number of steps. Only "random" uses seed.
func TaskBench(pattern string, width, steps int, seed uint64) *Shape {
	s := &Shape{Name: pattern}
	rng := rand.New(rand.NewPCG(seed, 0x7a5b))
	before := make([]int32, width)
	for t := range steps {
		now := make([]int32, width)
		for i := range width {
			now[i] = -1
			var cells []int
			switch stride := 1 << max(0, t-1); pattern {
			case "trivial":
			case "stencil":
				cells = []int{i - 1, i, i + 1}
			case "fft":
				cells = []int{i - stride, i, i + stride}
			case "sweep":
				if i > t {
					continue
				}
				cells = []int{i - 1, i}
			case "tree":
				if i%(1<<t) != 0 {
					continue
				}
				cells = []int{i, i + stride}
			case "random":
				cells = rng.Perm(width)[:2]
			default:
				panic("no pattern " + pattern)
			}
			var preds []int32
			if t > 0 {
				for _, c := range cells {
					if c >= 0 && c < width && before[c] >= 0 {
						preds = append(preds, before[c])
					}
				}
			}
			now[i] = s.add(preds...)
		}
		before = now
	}
	return s
}

// Chains makes n chains of the given length, declared one after the other.
func Chains(n, length int) *Shape {
	s := &Shape{Name: fmt.Sprintf("%d chains of %d", n, length)}
	for range n {
		for k := range length {
			if k == 0 {
				s.add()
			} else {
				s.add(int32(len(s.Preds) - 1))
			}
		}
	}
	return s
}

// Families are the random families, each with a generator that makes about n nodes.
var Families = []struct {
	Name string
	make func(rng *rand.Rand, n int) *Shape
}{
	{"layered", layeredShape},
	{"series-parallel", seriesParallelShape},
	{"erdos", erdosShape},
	{"in-tree", inTreeShape},
	{"out-tree", outTreeShape},
	{"fork-join", forkJoinShape},
	{"cholesky", choleskyShape},
	{"lu", luShape},
	{"fft", fftShape},
	{"wavefront", wavefrontShape},
}

// RandomShape makes a graph of a family with mixed costs and sizes.
func RandomShape(family int, n int, seed uint64) *Shape {
	rng := rand.New(rand.NewPCG(seed, uint64(family)<<32|uint64(n)))
	s := Families[family].make(rng, n)
	s.Name = fmt.Sprintf("%s n=%d seed=%d", Families[family].Name, n, seed)
	s.mix(rng)
	return s
}

// mix gives nodes costs that differ by up to two orders of magnitude, most of them small, and buffers likewise.
func (s *Shape) mix(rng *rand.Rand) {
	s.Cost = make([]float64, len(s.Preds))
	s.Bytes = make([]int64, len(s.Preds))
	for i := range s.Preds {
		s.Cost[i] = math.Round(100*math.Exp(rng.NormFloat64()*0.8)*5) / 100
		s.Bytes[i] = 256 * int64(1+rng.IntN(64))
	}
}

func layeredShape(rng *rand.Rand, n int) *Shape {
	s := &Shape{}
	width := max(2, int(math.Sqrt(float64(n))))
	var before []int32
	for len(s.Preds) < n {
		var now []int32
		for range 1 + rng.IntN(2*width-1) {
			if len(s.Preds) == n {
				break
			}
			var preds []int32
			for range min(len(before), 1+rng.IntN(3)) {
				preds = append(preds, before[rng.IntN(len(before))])
			}
			now = append(now, s.add(preds...))
		}
		before = now
	}
	return s
}

func seriesParallelShape(rng *rand.Rand, n int) *Shape {
	s := &Shape{}
	// Each block of the given size has one entry and one exit.
	var block func(size int, entry []int32) int32
	block = func(size int, entry []int32) int32 {
		if size <= 2 || rng.IntN(4) == 0 && size < 8 {
			last := s.add(entry...)
			for range size - 1 {
				last = s.add(last)
			}
			return last
		}
		if rng.IntN(3) == 0 {
			cut := 1 + rng.IntN(size-1)
			return block(size-cut, []int32{block(cut, entry)})
		}
		first := s.add(entry...)
		rest := size - 2
		var ends []int32
		for rest > 0 {
			part := min(rest, 1+rng.IntN(max(1, size/2)))
			ends = append(ends, block(part, []int32{first}))
			rest -= part
		}
		if len(ends) == 0 {
			ends = []int32{first}
		}
		return s.add(ends...)
	}
	block(n, nil)
	return s
}

func erdosShape(rng *rand.Rand, n int) *Shape {
	s := &Shape{}
	degree := 1 + rng.Float64()*3 // mean in-degree, except near the start
	for i := range n {
		var preds []int32
		for count := degree; count > 0; count-- {
			if i > 0 && rng.Float64() < min(count, float64(i)/float64(n)*4) {
				preds = append(preds, int32(rng.IntN(i)))
			}
		}
		s.add(preds...)
	}
	return s
}

func outTreeShape(rng *rand.Rand, n int) *Shape {
	s := &Shape{}
	s.add()
	for i := 1; i < n; i++ {
		// Parents are chosen among the latest nodes, so that trees grow deep as well as wide.
		back := 1 + rng.IntN(min(i, 2+int(math.Sqrt(float64(n)))))
		s.add(int32(i - back))
	}
	return s
}

func inTreeShape(rng *rand.Rand, n int) *Shape {
	out := outTreeShape(rng, n)
	s := &Shape{Preds: make([][]int32, n)}
	for child, parents := range out.Preds {
		for _, parent := range parents {
			to := n - 1 - int(parent)
			s.Preds[to] = append(s.Preds[to], int32(n-1-child))
		}
	}
	for i := range s.Preds {
		slices.Sort(s.Preds[i])
	}
	return s
}

func forkJoinShape(rng *rand.Rand, n int) *Shape {
	s := &Shape{}
	last := s.add()
	width := 4 + rng.IntN(29)
	for len(s.Preds) < n-1 {
		var ends []int32
		for range min(width, n-1-len(s.Preds)) {
			ends = append(ends, s.add(last))
		}
		last = s.add(ends...)
	}
	return s
}

func choleskyShape(_ *rand.Rand, n int) *Shape {
	tiles := 2
	for t := tiles + 1; t*(t+1)*(t+2)/6 <= n; t++ {
		tiles = t
	}
	s := &Shape{}
	w := newTileWriters(tiles)
	for k := range tiles {
		w.task(s, k, k) // potrf
		for i := k + 1; i < tiles; i++ {
			w.task(s, i, k, [2]int{k, k}) // trsm
		}
		for i := k + 1; i < tiles; i++ {
			for j := k + 1; j <= i; j++ {
				w.task(s, i, j, [2]int{i, k}, [2]int{j, k}) // syrk, gemm
			}
		}
	}
	return s
}

func luShape(_ *rand.Rand, n int) *Shape {
	tiles := 2
	for t := tiles + 1; t*(t+1)*(2*t+1)/6 <= n; t++ {
		tiles = t
	}
	s := &Shape{}
	w := newTileWriters(tiles)
	for k := range tiles {
		w.task(s, k, k)
		for i := k + 1; i < tiles; i++ {
			w.task(s, i, k, [2]int{k, k})
			w.task(s, k, i, [2]int{k, k})
		}
		for i := k + 1; i < tiles; i++ {
			for j := k + 1; j < tiles; j++ {
				w.task(s, i, j, [2]int{i, k}, [2]int{k, j})
			}
		}
	}
	return s
}

// tileWriters knows the last task that wrote each tile of a matrix.
type tileWriters struct {
	tiles int
	last  []int32
}

func newTileWriters(tiles int) *tileWriters {
	return &tileWriters{tiles, slices.Repeat([]int32{-1}, tiles*tiles)}
}

// task adds a task that updates tile (i, j) and reads other tiles.
func (w *tileWriters) task(s *Shape, i, j int, reads ...[2]int) {
	var preds []int32
	for _, r := range append(reads, [2]int{i, j}) {
		if q := w.last[r[0]*w.tiles+r[1]]; q >= 0 {
			preds = append(preds, q)
		}
	}
	w.last[i*w.tiles+j] = s.add(preds...)
}

func fftShape(_ *rand.Rand, n int) *Shape {
	width := 2
	for w := 4; w*(int(math.Log2(float64(w)))+1) <= n; w *= 2 {
		width = w
	}
	s := &Shape{}
	for i := range width {
		_ = i
		s.add()
	}
	for stride := 1; stride < width; stride *= 2 {
		first := int32(len(s.Preds) - width)
		for i := range width {
			s.add(first+int32(i), first+int32(i^stride))
		}
	}
	return s
}

func wavefrontShape(_ *rand.Rand, n int) *Shape {
	side := max(2, int(math.Sqrt(float64(n))))
	s := &Shape{}
	for y := range side {
		for x := range side {
			var preds []int32
			if x > 0 {
				preds = append(preds, int32(y*side+x-1))
			}
			if y > 0 {
				preds = append(preds, int32((y-1)*side+x))
			}
			s.add(preds...)
		}
	}
	return s
}

// GrowthShape is the graph of the growth table: n nodes in layers of about a thousand, with about three predecessors each in the
// three layers before.
func GrowthShape(n int) *Shape {
	rng := rand.New(rand.NewPCG(1, uint64(n)))
	layer := min(1000, max(4, n/10))
	s := &Shape{Name: fmt.Sprintf("growth %d", n), Preds: make([][]int32, 0, n)}
	for i := range n {
		if i < layer {
			s.add()
			continue
		}
		first := i - i%layer
		reach := min(first, 3*layer)
		preds := make([]int32, 3)
		for k := range preds {
			preds[k] = int32(first - 1 - rng.IntN(reach))
		}
		s.add(preds...)
	}
	s.Cost = make([]float64, n)
	for i := range s.Cost {
		s.Cost[i] = float64(1 + rng.IntN(20))
	}
	return s
}

// IDs converts numbers to ids of nodes.
func IDs(numbers []int32) []dag.NodeID {
	nodes := make([]dag.NodeID, len(numbers))
	for k, n := range numbers {
		nodes[k] = dag.NodeID(n)
	}
	return nodes
}
