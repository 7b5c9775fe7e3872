// Benchmarks of building a graph from Go calls, which takes nearly linear time from 1k to 1M nodes, of the dependencies of a million accesses to tiles, of hashing a graph and of finding a cycle. Assert no times.

package dag

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"strconv"
	"testing"
)

var benchSizes = []int{1_000, 10_000, 100_000, 1_000_000}

// benchShapes are the ways in which n nodes with three accesses each use their buffers.
var benchShapes = []struct {
	name    string
	declare func(b *Builder, n int)
}{
	// Every node writes its own buffer and reads those of two nodes declared shortly before it.
	{"stencil", func(b *Builder, n int) {
		b.Grow(n, n, 3*n)
		for i := range n {
			b.Device("b"+strconv.Itoa(i), F32, 1024)
		}
		for i := range int32(n) {
			b.Task("n"+strconv.Itoa(int(i)), b.In(BufferID(max(i-1, 0))), b.In(BufferID(max(i-64, 0))), b.Out(BufferID(i)))
		}
	}},
	// The same with equal slices of one buffer instead of buffers.
	{"slices", func(b *Builder, n int) {
		b.Grow(n, 1, 3*n)
		d := b.Device("d", F32, int64(n))
		for i := range int64(n) {
			b.Task("n"+strconv.Itoa(int(i)), b.Part(d, max(i-1, 0), int64(n)).In(), b.Part(d, max(i-64, 0), int64(n)).In(), b.Part(d, i, int64(n)).Out())
		}
	}},
	// Slices that overlap partly: each node reads around its own slice in one of two buffers and writes its slice in the other.
	{"halo", func(b *Builder, n int) {
		b.Grow(n, 2, 3*n)
		const width = 1000
		two := [2]BufferID{b.Device("even", F32, 16*width), b.Device("odd", F32, 16*width)}
		for i := range n {
			from, to := two[i/width%2], two[1-i/width%2]
			k := int64(i % width)
			b.Task("n"+strconv.Itoa(i), b.Slice(BufferID(from), max(16*k-2, 0), min(16*k+18, 16*width)).In(), b.Slice(BufferID(to), 16*k, 16*k+8).InOut(), b.Slice(BufferID(to), 16*k+8, 16*k+16).Out())
		}
	}},
	// Few whole buffers, used again and again: chains.
	{"chains", func(b *Builder, n int) {
		b.Grow(n, 16, 3*n)
		for i := range 16 {
			b.Device("b"+strconv.Itoa(i), F32, 1024)
		}
		for i := range int32(n) {
			b.Task("n"+strconv.Itoa(int(i)), b.In(BufferID(i%16)), b.In(BufferID((i+5)%16)), b.InOut(BufferID((i*7+3)%16)))
		}
	}},
	// A thousand readers of one buffer between two writers of the whole buffer; every node also writes a slice of a second buffer.
	{"readers", func(b *Builder, n int) {
		b.Grow(n, 2, 3*n)
		x, y := b.Device("x", F32, 4096), b.Device("y", F32, int64(n))
		for i := range n {
			if i%1000 == 0 {
				b.Task("n"+strconv.Itoa(i), b.Out(x), b.In(x), b.Part(y, int64(i), int64(n)).Out())
			} else {
				b.Task("n"+strconv.Itoa(i), b.In(x), b.Part(x, int64(i%64), 64).In(), b.Part(y, int64(i), int64(n)).Out())
			}
		}
	}},
}

func BenchmarkGraph(b *testing.B) {
	for _, shape := range benchShapes {
		for _, n := range benchSizes {
			b.Run(fmt.Sprintf("%s/%d", shape.name, n), func(b *testing.B) {
				b.ReportAllocs()
				edges := 0
				for b.Loop() {
					builder := New("bench")
					shape.declare(builder, n)
					g, err := builder.Graph()
					if err != nil {
						b.Fatal(err)
					}
					edges = len(g.Edges())
				}
				perNode := float64(n) * float64(b.N)
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/perNode, "ns/node")
				b.ReportMetric(float64(edges)/float64(n), "edges/node")
				var m runtime.MemStats
				runtime.ReadMemStats(&m)
				b.ReportMetric(float64(m.Sys)/1e6, "sys-MB")
			})
		}
	}
}

// tileShapes declare about a million accesses of tiles of one buffer.
var tileShapes = []struct {
	name    string
	declare func(b *Builder)
}{
	// A product of matrices of 70 x 70 tiles, all three in one buffer: three accesses a node.
	{"product", func(b *Builder) {
		const k, tile = 70, 16
		b.Grow(k*k*k+1, 1, 3*k*k*k+1)
		all := b.Device("abc", F32, 3*k*tile, k*tile)
		at := func(m, i, j int64) Range { return b.PartTile(all, m*k+i, 3*k, j, k) }
		b.Task("up", b.Out(all))
		for i := range int64(k) {
			for j := range int64(k) {
				for p := range int64(k) {
					b.Task("n"+strconv.FormatInt((i*k+j)*k+p, 10), at(0, i, p).In(), at(1, p, j).In(), at(2, i, j).InOut())
				}
			}
		}
	}},
	// A Cholesky factorisation of 126 x 126 tiles.
	{"cholesky", func(b *Builder) {
		const k = 126
		a := b.Device("a", F64, k*32, k*32)
		declareCholesky(b, k, func(i, j int64) Range { return b.PartTile(a, i, k, j, k) })
	}},
	// Steps of a stencil on 64 x 64 tiles that read one element around their tile, from one buffer to another and back.
	{"halo", func(b *Builder) {
		const k, n = 64, 500_000
		b.Grow(n, 2, 2*n)
		two := [2]BufferID{b.Device("even", F32, k*16, k*16), b.Device("odd", F32, k*16, k*16)}
		for i := range int64(n) {
			step, x, y := i/(k*k), i/k%k, i%k
			b.Task("n"+strconv.FormatInt(i, 10), b.HaloTile(two[step%2], x, k, y, k, 1).In(), b.PartTile(two[1-step%2], x, k, y, k).Out())
		}
	}},
	// Tiles of 8 x 8 that begin anywhere in 1024 x 1024.
	{"anywhere", func(b *Builder) {
		const n = 500_000
		b.Grow(n, 1, 2*n)
		a := b.Device("a", F32, 1024, 1024)
		random := rand.New(rand.NewPCG(1, 2))
		tile := func() Range {
			x, y := random.Int64N(1017), random.Int64N(1017)
			return b.Tile(a, x, x+8, y, y+8)
		}
		for i := range n {
			b.Task("n"+strconv.Itoa(i), tile().In(), tile().Out())
		}
	}},
	// Panels of rows and of columns, all of which cross.
	{"panels", func(b *Builder) {
		const n, k = 500_000, 100
		b.Grow(n, 1, 2*n)
		a := b.Device("a", F32, 16*k, 16*k)
		for i := range int64(n) {
			b.Task("n"+strconv.FormatInt(i, 10), b.PartTile(a, 0, 1, i%k, k).In(), b.PartTile(a, i/k%k, k, i%k, k).Out())
		}
	}},
}

// declareCholesky declares the blocked factorisation of k x k tiles.
func declareCholesky(b *Builder, k int64, at func(i, j int64) Range) {
	name := func(kind string, n ...int64) string {
		for _, x := range n {
			kind += "." + strconv.FormatInt(x, 10)
		}
		return kind
	}
	for p := range k {
		b.Task(name("potrf", p), at(p, p).InOut())
		for i := p + 1; i < k; i++ {
			b.Task(name("trsm", p, i), at(p, p).In(), at(i, p).InOut())
		}
		for i := p + 1; i < k; i++ {
			b.Task(name("syrk", p, i), at(i, p).In(), at(i, i).InOut())
			for j := p + 1; j < i; j++ {
				b.Task(name("gemm", p, i, j), at(i, p).In(), at(j, p).In(), at(i, j).InOut())
			}
		}
	}
}

func BenchmarkTiles(b *testing.B) {
	for _, shape := range tileShapes {
		b.Run(shape.name, func(b *testing.B) {
			builder := New(shape.name)
			shape.declare(builder)
			p := builder.pipeline
			for b.Loop() {
				g, err := newGraph(&p.Pipeline)
				if err != nil {
					b.Fatal(err)
				}
				b.ReportMetric(float64(len(g.Edges())), "edges")
			}
			b.ReportMetric(float64(len(p.accesses)), "accesses")
		})
	}
}

func BenchmarkHash(b *testing.B) {
	for _, n := range benchSizes {
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			builder := New("bench")
			benchShapes[0].declare(builder, n)
			g, err := builder.Graph()
			if err != nil {
				b.Fatal(err)
			}
			for b.Loop() {
				g.Hash()
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(n)/float64(b.N), "ns/node")
		})
	}
}

func BenchmarkCycle(b *testing.B) {
	for _, n := range benchSizes {
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			builder := New("ring")
			builder.Grow(n, 0, 0)
			for i := range n {
				builder.After(builder.Task("n"+strconv.Itoa(i)), NodeID((i+n-1)%n))
			}
			for b.Loop() {
				if _, err := builder.Graph(); err == nil {
					b.Fatal("no cycle found")
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(n)/float64(b.N), "ns/node")
		})
	}
}
