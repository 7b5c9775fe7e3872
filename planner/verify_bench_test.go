// What the proof, the edge list and the memory layout cost, per node, from a hundred nodes to a million.

package planner

import (
	"context"
	"fmt"
	"testing"

	"github.com/dagrun/dagrun/dag"
	"github.com/stretchr/testify/require"
)

// benchmarkSizes are the graphs of the growth tables.
var benchmarkSizes = []int{100, 1_000, 10_000, 100_000, 1_000_000}

// grown plans a graph of about three edges a node on eight streams.
func grown(b *testing.B, n int) (*dag.Graph, *Plan) {
	b.Helper()
	g := growthShape(n).ordered(b)
	p, err := New(context.Background(), g, Options{Strategy: "list", Streams: 8})
	require.NoError(b, err)
	return g, p
}

func perNode(b *testing.B, n int) {
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/node")
	b.ReportAllocs()
}

func BenchmarkVerify(b *testing.B) {
	for _, n := range benchmarkSizes {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			g, p := grown(b, n)
			for b.Loop() {
				if err := Verify(g, p); err != nil {
					b.Fatal(err)
				}
			}
			perNode(b, n)
		})
	}
}

// BenchmarkVerifyMemory has a buffer a node, most of which share their bytes with dozens of others.
func BenchmarkVerifyMemory(b *testing.B) {
	for _, n := range benchmarkSizes {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			g := growthShape(n).graph(b)
			p, err := New(context.Background(), g, Options{Strategy: "list", Streams: 8})
			require.NoError(b, err)
			require.NoError(b, LayoutMemory(g, p, Options{}))
			for b.Loop() {
				if err := Verify(g, p); err != nil {
					b.Fatal(err)
				}
			}
			perNode(b, n)
		})
	}
}

func BenchmarkGraphEdges(b *testing.B) {
	for _, n := range benchmarkSizes {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			g, p := grown(b, n)
			for b.Loop() {
				if _, err := GraphEdges(g, p); err != nil {
					b.Fatal(err)
				}
			}
			perNode(b, n)
		})
	}
}

func BenchmarkVerifyEdges(b *testing.B) {
	for _, n := range benchmarkSizes {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			g, p := grown(b, n)
			edges, err := GraphEdges(g, p)
			require.NoError(b, err)
			for b.Loop() {
				if err := VerifyEdges(g, p, edges); err != nil {
					b.Fatal(err)
				}
			}
			perNode(b, n)
		})
	}
}

// BenchmarkVerifyManyStreams has as many streams as nodes in a layer, where clocks of all against all do not fit.
func BenchmarkVerifyManyStreams(b *testing.B) {
	for _, streams := range []int{100, 1_000, 10_000} {
		b.Run(fmt.Sprint(streams), func(b *testing.B) {
			g := growthShape(50_000).ordered(b)
			streamOf := make([]int32, g.Len())
			for i := range streamOf {
				streamOf[i] = int32(i % streams)
			}
			p := dullPlan(g, streams, streamOf, g.Topological())
			for b.Loop() {
				if err := Verify(g, p); err != nil {
					b.Fatal(err)
				}
			}
			perNode(b, g.Len())
		})
	}
}

// BenchmarkMemory lays out the memory of graphs of the random families on 1, 2, 4 and 8 streams: the time of one layout, and
// the peak over the bytes of the heaviest antichain.
func BenchmarkMemory(b *testing.B) {
	var all []float64
	for family := range families {
		b.Run(families[family].name, func(b *testing.B) {
			g, p := layoutSample(b, family, 250, 4, 1)
			for b.Loop() {
				if err := LayoutMemory(g, p, Options{}); err != nil {
					b.Fatal(err)
				}
			}
			ratios := layoutRatios(b, family, []int{50, 100, 250, 500}, []int{1, 2, 4, 8}, 3, placeSharing)
			all = append(all, ratios...)
			mean, p95 := meanAnd95th(ratios)
			b.ReportMetric(mean, "mean/antichain")
			b.ReportMetric(p95, "p95/antichain")
		})
	}
	if len(all) == 0 {
		return
	}
	b.Run("all-families", func(b *testing.B) {
		var mean, p95 float64
		for b.Loop() {
			mean, p95 = meanAnd95th(all)
		}
		b.ReportMetric(mean, "mean/antichain")
		b.ReportMetric(p95, "p95/antichain")
	})
}

// BenchmarkMemoryGrowth has a buffer a node, on eight streams.
func BenchmarkMemoryGrowth(b *testing.B) {
	for _, n := range benchmarkSizes {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			g := growthShape(n).graph(b)
			p, err := New(context.Background(), g, Options{Strategy: "list", Streams: 8})
			require.NoError(b, err)
			for b.Loop() {
				if err := LayoutMemory(g, p, Options{}); err != nil {
					b.Fatal(err)
				}
			}
			perNode(b, n)
			l := readSharing(b, g, p, clockEntries)
			least, _ := l.busiest(n)
			b.ReportMetric(float64(p.Stats.PeakDeviceBytes)/float64(least), "peak/busiest")
			b.ReportMetric(float64(p.Stats.SumDeviceBytes)/float64(p.Stats.PeakDeviceBytes), "sum/peak")
		})
	}
}

func BenchmarkHeaviestAntichain(b *testing.B) {
	for _, n := range []int{100, 250, 400} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			g, p := layoutSample(b, 0, n, 4, 1)
			l := readSharing(b, g, p, clockEntries)
			for b.Loop() {
				heaviestAntichain(l)
			}
			perNode(b, n)
		})
	}
}
