// Benchmarks of deriving the dependencies of a million accesses to tiles. Asserts no times.

package dag

import (
	"math/rand/v2"
	"strconv"
	"testing"
)

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
