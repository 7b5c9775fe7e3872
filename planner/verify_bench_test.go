// Benchmarks of the cost per node of the proof, the edge list and the memory layout, from a hundred nodes to a million.

package planner

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/planner/internal/place"
	"github.com/dagrun/dagrun/planner/internal/plantest"
	"github.com/dagrun/dagrun/planner/proof"
)

// grown plans a graph with about three edges per node on eight streams.
func grown(b *testing.B, n int) (*dag.Graph, *Plan) {
	b.Helper()
	g := plantest.GrowthShape(n).Ordered(b)
	p, err := New(context.Background(), g, Options{Strategy: "list", Streams: 8})
	require.NoError(b, err)
	return g, p
}

func BenchmarkVerify(b *testing.B) {
	for _, n := range plantest.BenchmarkSizes {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			g, p := grown(b, n)
			for b.Loop() {
				if err := Verify(g, p); err != nil {
					b.Fatal(err)
				}
			}
			plantest.PerNode(b, n)
		})
	}
}

// BenchmarkVerifyMemory has one buffer per node; most buffers share their bytes with dozens of others.
func BenchmarkVerifyMemory(b *testing.B) {
	for _, n := range plantest.BenchmarkSizes {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			g := plantest.GrowthShape(n).Graph(b)
			p, err := New(context.Background(), g, Options{Strategy: "list", Streams: 8})
			require.NoError(b, err)
			require.NoError(b, LayoutMemory(context.Background(), g, p, Options{}))
			for b.Loop() {
				if err := Verify(g, p); err != nil {
					b.Fatal(err)
				}
			}
			plantest.PerNode(b, n)
		})
	}
}

func BenchmarkGraphEdges(b *testing.B) {
	for _, n := range plantest.BenchmarkSizes {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			g, p := grown(b, n)
			for b.Loop() {
				if _, err := GraphEdges(g, p); err != nil {
					b.Fatal(err)
				}
			}
			plantest.PerNode(b, n)
		})
	}
}

func BenchmarkVerifyEdges(b *testing.B) {
	for _, n := range plantest.BenchmarkSizes {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			g, p := grown(b, n)
			edges, err := GraphEdges(g, p)
			require.NoError(b, err)
			for b.Loop() {
				if err := proof.VerifyEdges(g, p, edges); err != nil {
					b.Fatal(err)
				}
			}
			plantest.PerNode(b, n)
		})
	}
}

// BenchmarkVerifyManyStreams has as many streams as nodes in a layer: too many for clocks of every stream against every other.
func BenchmarkVerifyManyStreams(b *testing.B) {
	for _, streams := range []int{100, 1_000, 10_000} {
		b.Run(fmt.Sprint(streams), func(b *testing.B) {
			g := plantest.GrowthShape(50_000).Ordered(b)
			streamOf := make([]int32, g.Len())
			for i := range streamOf {
				streamOf[i] = int32(i % streams)
			}
			p := plantest.DullPlan(g, streams, streamOf, place.Numbers(g.Topological()))
			for b.Loop() {
				if err := Verify(g, p); err != nil {
					b.Fatal(err)
				}
			}
			plantest.PerNode(b, g.Len())
		})
	}
}
