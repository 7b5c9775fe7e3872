// Benchmarks of spreading: how much faster several devices are by the model, and how long choosing them takes.

package spread

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/planner"
	"github.com/dagrun/dagrun/planner/internal/plantest"
	"github.com/dagrun/dagrun/planner/model"
	"github.com/dagrun/dagrun/planner/plan"
)

// tiled declares kernels that fill a device, on tiles of a matrix.
type tiled struct {
	b     *dag.Builder
	tiles map[[2]int]dag.BufferID
	bytes int64
	nodes int

	written [][2]int   // by node: the tile that it writes
	random  *rand.Rand // makes costs uneven; nil: they are even
}

func newTiled(name string, bytes int64, random *rand.Rand) *tiled {
	return &tiled{b: dag.New(name), tiles: map[[2]int]dag.BufferID{}, bytes: bytes, random: random}
}

func (t *tiled) tile(i, j int) dag.BufferID {
	id, known := t.tiles[[2]int{i, j}]
	if !known {
		id = t.b.Buffer(dag.Buffer{Name: fmt.Sprintf("t.%d.%d", i, j), Place: dag.Device, DType: dag.U8, Shape: []int64{t.bytes}})
		t.tiles[[2]int{i, j}] = id
	}
	return id
}

// task writes a tile, over its old contents, and reads others.
func (t *tiled) task(us float64, write [2]int, reads ...[2]int) {
	accesses := []dag.Access{t.b.InOut(t.tile(write[0], write[1]))}
	for _, r := range reads {
		accesses = append(accesses, t.b.In(t.tile(r[0], r[1])))
	}
	if t.random != nil {
		us *= 0.5 + t.random.Float64()
	}
	node := dag.Node{Name: fmt.Sprintf("n%d", t.nodes), Kind: dag.Task, HasCost: true, CostUS: us, Work: dag.Work{Blocks: 100_000, Threads: 256}}
	t.b.Node(node, accesses...)
	t.written = append(t.written, write)
	t.nodes++
}

// first makes every tile be written before it is read, in no time to speak of.
func (t *tiled) first(rows int, used func(i, j int) bool) {
	for i := range rows {
		for j := range rows {
			if used(i, j) {
				t.b.Node(dag.Node{Name: fmt.Sprintf("set.%d.%d", i, j), Kind: dag.Task, HasCost: true, CostUS: 1, Work: dag.Work{Blocks: 100_000, Threads: 256}}, t.b.Out(t.tile(i, j)))
				t.written = append(t.written, [2]int{i, j})
			}
		}
	}
}

func choleskyTiles(tiles int, us float64, bytes int64, random *rand.Rand) *tiled {
	t := newTiled("cholesky", bytes, random)
	t.first(tiles, func(i, j int) bool { return j <= i })
	for k := range tiles {
		t.task(us/2, [2]int{k, k})
		for i := k + 1; i < tiles; i++ {
			t.task(us, [2]int{i, k}, [2]int{k, k})
		}
		for i := k + 1; i < tiles; i++ {
			for j := k + 1; j <= i; j++ {
				t.task(us, [2]int{i, j}, [2]int{i, k}, [2]int{j, k})
			}
		}
	}
	return t
}

func luTiles(tiles int, us float64, bytes int64, random *rand.Rand) *tiled {
	t := newTiled("lu", bytes, random)
	t.first(tiles, func(i, j int) bool { return true })
	for k := range tiles {
		t.task(us, [2]int{k, k})
		for i := k + 1; i < tiles; i++ {
			t.task(us, [2]int{i, k}, [2]int{k, k})
			t.task(us, [2]int{k, i}, [2]int{k, k})
		}
		for i := k + 1; i < tiles; i++ {
			for j := k + 1; j < tiles; j++ {
				t.task(us, [2]int{i, j}, [2]int{i, k}, [2]int{k, j})
			}
		}
	}
	return t
}

func fftTiles(parts int, us float64, bytes int64, random *rand.Rand) *tiled {
	t := newTiled("fft", bytes, random)
	for step := 1; step <= parts; step *= 2 {
		for i := range parts {
			reads := [][2]int{}
			if step > 1 {
				reads = append(reads, [2]int{step / 2, i}, [2]int{step / 2, i ^ (step / 2)})
			}
			t.task(us, [2]int{step, i}, reads...)
		}
	}
	return t
}

func stencilTiles(parts, steps int, us float64, bytes int64, random *rand.Rand) *tiled {
	t := newTiled("stencil", bytes, random)
	for s := range steps {
		for i := range parts {
			var reads [][2]int
			for _, j := range []int{i - 1, i, i + 1} {
				if s > 0 && j >= 0 && j < parts {
					reads = append(reads, [2]int{s - 1, j})
				}
			}
			t.task(us, [2]int{s, i}, reads...)
		}
	}
	return t
}

func treeTiles(leaves int, us float64, bytes int64, random *rand.Rand) *tiled {
	t := newTiled("in-tree", bytes, random)
	for level, n := 0, leaves; n >= 1; level, n = level+1, n/2 {
		for i := range n {
			var reads [][2]int
			if level > 0 {
				reads = [][2]int{{level - 1, 2 * i}, {level - 1, 2*i + 1}}
			}
			t.task(us, [2]int{level, i}, reads...)
		}
	}
	return t
}

// spreadFamilies are graphs that tiled work has. A tile takes 256 us and 33.5 MB: 2,048 rows and columns in double precision.
func spreadFamilies() []func() *tiled {
	const us, bytes = 256, 32 << 20
	return []func() *tiled{
		func() *tiled { return choleskyTiles(16, us, bytes, nil) }, func() *tiled { return luTiles(10, us, bytes, nil) }, func() *tiled { return fftTiles(32, us, bytes, nil) },
		func() *tiled { return stencilTiles(32, 16, us, bytes/32, nil) }, func() *tiled { return treeTiles(128, us, bytes, nil) },
	}
}

func BenchmarkSpreadFamilies(b *testing.B) {
	for _, make := range spreadFamilies() {
		for _, devices := range []int{2, 4, 8} {
			t := make()
			g, err := t.b.Graph()
			require.NoError(b, err)
			b.Run(fmt.Sprintf("%s/%d", g.Name, devices), func(b *testing.B) {
				o := Options{Devices: devices, Options: planner.Options{Effort: planner.Normal}}
				work, best := 0.0, 0.0
				for _, us := range model.Durations(g, planner.H200(), nil) {
					work += us
				}
				var s *plan.Spread
				for b.Loop() {
					s, err = New(context.Background(), g, o)
					require.NoError(b, err)
				}
				for _, try := range s.Stats.Tried {
					if best == 0 || try.MakespanUS < best {
						best = try.MakespanUS
					}
				}
				b.ReportMetric(s.Stats.OneUS/best, "x-one-device")
				b.ReportMetric(best/max(work/float64(devices), model.LowerBound(g, planner.H200(), nil, 8).CriticalPathUS), "x-bound")
			})
		}
	}
}

func BenchmarkSpreadGrowth(b *testing.B) {
	for _, n := range []int{1_000, 10_000, 100_000} {
		t := stencilTiles(100, n/100, 20, 1<<20, nil)
		g, err := t.b.Graph()
		require.NoError(b, err)
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			for b.Loop() {
				_, err := New(context.Background(), g, Options{Devices: 4, Options: planner.Options{Effort: planner.Normal}})
				require.NoError(b, err)
			}
			plantest.PerNode(b, n)
		})
	}
}
