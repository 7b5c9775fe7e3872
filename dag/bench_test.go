// Benchmarks of building a graph from Go calls, which takes nearly linear time from 1k to 1M nodes. Asserts no times.

package dag

import (
	"fmt"
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
