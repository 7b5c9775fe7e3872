// Benchmarks of hashing a graph and of finding a cycle, at a million nodes. Asserts no times.

package dag

import (
	"strconv"
	"testing"
)

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
