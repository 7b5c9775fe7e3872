// The sizes of graphs in benchmarks, and random graphs for property tests.

package plantest

import (
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"
)

// BenchmarkSizes are the graphs of the growth tables.
var BenchmarkSizes = []int{100, 1_000, 10_000, 100_000, 1_000_000}

func PerNode(b *testing.B, n int) {
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/node")
	b.ReportAllocs()
}

// DrawShape draws a graph of any family or a fully random one.
func DrawShape(t *rapid.T, most int) *Shape {
	kind := rapid.IntRange(-1, len(Families)-1).Draw(t, "family")
	n := rapid.IntRange(1, most).Draw(t, "nodes")
	seed := rapid.Uint64().Draw(t, "seed")
	if kind >= 0 {
		return RandomShape(kind, max(n, 2), seed)
	}
	rng := rand.New(rand.NewPCG(seed, 3))
	s := &Shape{Name: "any"}
	density := rng.Float64()
	for i := range n {
		var preds []int32
		for q := range i {
			if rng.Float64() < density*4/float64(n) {
				preds = append(preds, int32(q))
			}
		}
		s.add(preds...)
	}
	return s
}
