// Benchmarks of reading files of a thousand to a hundred thousand nodes, written out or repeated by foreach.

package file

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/dagrun/dagrun/dag"
	"github.com/stretchr/testify/require"
)

// overlapFile is a pipeline that overlaps copies and compute, written with one line per node or with a foreach.
func overlapFile(nodes int, repeated bool) string {
	parts := nodes / 3
	var b strings.Builder
	fmt.Fprintf(&b, "version: 1\nname: overlap\nparams: {n: %d, k: %d}\nbuffers:\n", parts*64, parts)
	b.WriteString("  x:   {place: host, dtype: f32, shape: [n], init: {ramp: [0, 1]}}\n  d_x: {place: device, dtype: f32, shape: [n]}\n  out: {place: host, dtype: f32, shape: [n], save: out.npy}\nnodes:\n")
	if repeated {
		b.WriteString("  - foreach: {i: k}\n    nodes:\n" +
			"      - {name: up.$i,   memcpy: {from: x(i of k), to: d_x(i of k)}}\n" +
			"      - {name: work.$i, kernel: saxpy, args: [len(d_x(i of k)), 2.0, d_x(i of k), d_x(i of k)]}\n" +
			"      - {name: down.$i, memcpy: {from: d_x(i of k), to: out(i of k)}}\n")
		return b.String()
	}
	for i := range parts {
		fmt.Fprintf(&b, "  - {name: up.%d,   memcpy: {from: x(%d of k), to: d_x(%d of k)}}\n", i, i, i)
		fmt.Fprintf(&b, "  - {name: work.%d, kernel: saxpy, args: [len(d_x(%d of k)), 2.0, d_x(%d of k), d_x(%d of k)]}\n", i, i, i, i)
		fmt.Fprintf(&b, "  - {name: down.%d, memcpy: {from: d_x(%d of k), to: out(%d of k)}}\n", i, i, i)
	}
	return b.String()
}

func BenchmarkParseFile(b *testing.B) {
	for _, repeated := range []bool{false, true} {
		for _, nodes := range []int{1000, 10000, 100000} {
			b.Run(fmt.Sprintf("foreach=%t/nodes=%d", repeated, nodes), func(b *testing.B) {
				source := []byte(overlapFile(nodes, repeated))
				b.ReportAllocs()
				var g *dag.Graph
				var err error
				for b.Loop() {
					g, err = Parse(source, testOptions())
				}
				require.NoError(b, err)
				require.Equal(b, nodes/3*3, g.Len())
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(nodes), "ns/node")
				var m runtime.MemStats
				runtime.ReadMemStats(&m)
				b.ReportMetric(float64(m.Sys)/1e6, "MB-from-system")
			})
		}
	}
}
