// A benchmark of placements on graphs of other kinds than those of testdata/best: random layers, wavefronts, microbatches in stages, attention,
// reductions of long chains, and layers of which some nodes are pinned. It prints how much longer the chosen placement takes than the best of the
// named policies, and than the best that a long search finds:
//
//	go test ./planner -run '^$' -bench SpreadUnseen -benchtime 1x

package spread

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/planner"
	"github.com/dagrun/dagrun/planner/internal/placement"
	"github.com/dagrun/dagrun/planner/plan"
)

// makes writes a tile that did not exist before.
func (t *tiled) makes(us float64, write [2]int, reads ...[2]int) { t.makesOn(-1, us, write, reads...) }

// makesOn is makes on a device; -1: on any.
func (t *tiled) makesOn(device int32, us float64, write [2]int, reads ...[2]int) {
	accesses := []dag.Access{t.b.Out(t.tile(write[0], write[1]))}
	for _, r := range reads {
		accesses = append(accesses, t.b.In(t.tile(r[0], r[1])))
	}
	if t.random != nil {
		us *= 0.5 + t.random.Float64()
	}
	node := dag.Node{Name: fmt.Sprintf("n%d", t.nodes), Kind: dag.Task, HasCost: true, CostUS: us, Work: dag.Work{Blocks: 100_000, Threads: 256}}
	if device >= 0 {
		node.Device, node.Fixed = device, true
	}
	t.b.Node(node, accesses...)
	t.written = append(t.written, write)
	t.nodes++
}

// layeredTiles has random layers: each node reads one to three tiles of the last two layers. pinned nodes belong on a device.
func layeredTiles(layers, width, devices int, pinned float64, us float64, bytes int64, random *rand.Rand) *tiled {
	t := newTiled("layered", bytes, random)
	for l := range layers {
		for i := range width {
			var reads [][2]int
			seen := map[[2]int]bool{}
			for range 1 + random.IntN(3) {
				from := [2]int{max(0, l-1-random.IntN(2)), random.IntN(width)}
				if l > 0 && !seen[from] {
					seen[from] = true
					reads = append(reads, from)
				}
			}
			device := int32(-1)
			if random.Float64() < pinned {
				device = int32(random.IntN(devices))
			}
			t.makesOn(device, us, [2]int{l, i}, reads...)
		}
	}
	return t
}

func wavefrontTiles(n int, us float64, bytes int64, random *rand.Rand) *tiled {
	t := newTiled("wavefront", bytes, random)
	for i := range n {
		for j := range n {
			var reads [][2]int
			if i > 0 {
				reads = append(reads, [2]int{i - 1, j})
			}
			if j > 0 {
				reads = append(reads, [2]int{i, j - 1})
			}
			t.makes(us, [2]int{i, j}, reads...)
		}
	}
	return t
}

// stageTiles are microbatches that go through stages and back. Each stage has weights and sums up their gradients.
func stageTiles(stages, batches int, us float64, bytes int64, random *rand.Rand) *tiled {
	t := newTiled("stages", bytes, random)
	act := func(s, m int) [2]int { return [2]int{s, m} }
	grad := func(s, m int) [2]int { return [2]int{100 + s, m} }
	weight, sum := func(s int) [2]int { return [2]int{200, s} }, func(s int) [2]int { return [2]int{201, s} }
	for s := range stages {
		t.makes(1, weight(s))
		t.makes(1, sum(s))
	}
	for m := range batches {
		t.makes(1, act(0, m))
		for s := range stages {
			t.makes(us, act(s+1, m), act(s, m), weight(s))
		}
	}
	for m := range batches {
		t.makes(1, grad(stages, m), act(stages, m))
		for s := stages - 1; s >= 0; s-- {
			t.makes(us, grad(s, m), grad(s+1, m), act(s, m), weight(s))
			t.task(us, sum(s), grad(s+1, m), act(s, m))
		}
	}
	return t
}

// attentionTiles has heads with blocks of queries that go over blocks of keys, and a projection of all heads.
func attentionTiles(heads, blocks int, us float64, bytes int64, random *rand.Rand) *tiled {
	t := newTiled("attention", bytes, random)
	for i := range blocks {
		t.makes(us, [2]int{0, i})
	}
	for h := range heads {
		q, k, o := 1+3*h, 2+3*h, 3+3*h
		for i := range blocks {
			t.makes(us, [2]int{q, i}, [2]int{0, i})
			t.makes(us, [2]int{k, i}, [2]int{0, i})
		}
		for i := range blocks {
			t.makes(us, [2]int{o, i}, [2]int{q, i}, [2]int{k, 0})
			for j := 1; j <= i; j++ {
				t.task(us, [2]int{o, i}, [2]int{q, i}, [2]int{k, j})
			}
		}
	}
	for i := range blocks {
		var reads [][2]int
		for h := range heads {
			reads = append(reads, [2]int{3 + 3*h, i})
		}
		t.makes(2*us, [2]int{3 * (heads + 1), i}, reads...)
	}
	return t
}

// reduceTiles adds up the ends of long chains, a few at a time.
func reduceTiles(leaves, long, fan int, us float64, bytes int64, random *rand.Rand) *tiled {
	t := newTiled("reduce", bytes, random)
	for i := range leaves {
		t.makes(us, [2]int{0, i})
		for range long {
			t.task(us, [2]int{0, i})
		}
	}
	for level, n := 1, leaves; n > 1; level++ {
		next := (n + fan - 1) / fan
		for i := range next {
			var reads [][2]int
			for j := i * fan; j < min(n, (i+1)*fan); j++ {
				reads = append(reads, [2]int{level - 1, j})
			}
			t.makes(us, [2]int{level, i}, reads...)
		}
		n = next
	}
	return t
}

// unseenSpread is a graph of those, and how much memory a device has: a part of what one device would need; 0: enough.
type unseenSpread struct {
	name    string
	devices int
	make    func() *tiled
	memory  float64
}

func unseenSpreads() []unseenSpread {
	var list []unseenSpread
	for k, devices := range []int{2, 4, 8} {
		for _, kib := range []int64{1 << 10, 16 << 10} {
			seed, us, bytes := uint64(100*k)+uint64(kib), 60.0+40*float64(k), kib<<10
			add := func(name string, memory float64, make func(random *rand.Rand) *tiled) {
				list = append(list, unseenSpread{fmt.Sprintf("%s/%dKiB/%d", name, kib, devices), devices, func() *tiled { return make(rand.New(rand.NewPCG(seed, 71))) }, memory})
			}
			add("layered", 0, func(random *rand.Rand) *tiled { return layeredTiles(9, 11, devices, 0, us, bytes, random) })
			add("pinned", 0, func(random *rand.Rand) *tiled { return layeredTiles(10, 9, devices, 0.2, us, bytes, random) })
			add("wavefront", 0, func(random *rand.Rand) *tiled { return wavefrontTiles(11, us, bytes, random) })
			add("stages", 0, func(random *rand.Rand) *tiled { return stageTiles(6, 7, us, bytes, random) })
			add("attention", 0, func(random *rand.Rand) *tiled { return attentionTiles(5, 5, us, bytes, random) })
			add("reduce", 0, func(random *rand.Rand) *tiled { return reduceTiles(21, 3, 4, us, bytes, random) })
			add("cholesky", 0.7, func(random *rand.Rand) *tiled { return choleskyTiles(7, us, bytes, random) })
			add("stencil", 0.7, func(random *rand.Rand) *tiled { return stencilTiles(13, 9, us, bytes, random) })
		}
	}
	return list
}

func BenchmarkSpreadUnseen(b *testing.B) {
	for _, in := range unseenSpreads() {
		b.Run(in.name, func(b *testing.B) {
			t := in.make()
			g, err := t.b.Graph()
			require.NoError(b, err)
			o := Options{Devices: in.devices, Options: planner.Options{Effort: planner.Normal}}
			if in.memory > 0 {
				o.MemoryCap = int64(in.memory * float64(mostRoom(g)))
			}
			var tries []plan.SpreadTry
			for b.Loop() {
				tries, err = Compare(context.Background(), g, o)
				require.NoError(b, err)
			}
			require.Empty(b, tries[0].Refused)
			named := math.Inf(1)
			for _, try := range tries[1:] {
				if try.Refused == "" {
					named = min(named, try.MakespanUS)
				}
			}
			b.ReportMetric(100*(tries[0].MakespanUS/named-1), "%-over-named")
			if in.memory == 0 { // the long search knows no limits
				best := newReference(b, g, in.devices, 5).search(t, in.devices, min(4_000, 300_000/g.Len()))
				b.ReportMetric(100*(tries[0].MakespanUS/best-1), "%-over-search")
			}
			require.Equal(b, placement.Auto, tries[0].Policy)
		})
	}
}
