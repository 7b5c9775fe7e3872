// A graph of 5,000 nodes, and how long planning it takes: go test -run - -bench Large ./cmd/dagrun/internal/replan

package replan

import (
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/require"
)

// large makes a known graph like those of networks: branches of kernels, each of which reads what the one before it wrote, and kernels that join them. Tensors
// lie where one that is no longer needed lay, as an allocator places them.
func large(nodes, branches int) (*Known, *Graph) {
	const pool, size = uint64(1 << 40), uint64(64 << 10)
	places := uint64(3*branches + 2)
	g := &Graph{Version: 1, Pool: []Extent{{pool, places * size}}, Device: "a GPU", Torch: "2"}
	known := &Known{Version: 1, Device: g.Device, Torch: g.Torch, recorded: g}
	var free []uint64
	for k := range places {
		free = append(free, pool+(places-1-k)*size)
	}
	value := func() int {
		at := free[len(free)-1]
		free = free[:len(free)-1]
		known.Values = append(known.Values, Value{Bytes: size, Pool: true, At: at, Born: len(known.Values)})
		return len(known.Values) - 1
	}
	node := func(reads []int, us float64) int {
		k, out := len(g.Nodes), value()
		is := Node{Type: kernelNode, Function: "k", Grid: [3]int{20, 1, 1}, Block: [3]int{256, 1, 1}}
		seen := Seen{}
		for n, v := range append(reads, out) {
			is.Bytes = binary.LittleEndian.AppendUint64(is.Bytes, known.Values[v].At)
			is.Parameters = append(is.Parameters, [2]int{8 * n, 8})
			seen.Words = append(seen.Words, Word{Offset: 8 * n, Value: v, Touched: true})
			seen.Uses = append(seen.Uses, Use{Value: v, Read: n < len(reads), Write: n == len(reads)})
		}
		seen.Node = is
		if k > 0 {
			g.Edges = append(g.Edges, [3]int{k - 1, k, 0})
		}
		g.Nodes, known.Nodes, g.US = append(g.Nodes, is), append(known.Nodes, seen), append(g.US, us)
		for _, v := range reads {
			free = append(free, known.Values[v].At)
		}
		return out
	}
	joined := node(nil, 3)
	for len(g.Nodes) < nodes {
		ends := make([]int, branches)
		for b := range ends { // all branches read what the last join wrote, which is free after the last of them
			at := known.Values[joined].At
			ends[b] = node([]int{joined}, 2+float64(b))
			if b < branches-1 {
				free = free[:len(free)-1]
			}
			known.Values[joined].At = at
			for range 1 + b%3 {
				ends[b] = node([]int{ends[b]}, 2+float64(b))
			}
		}
		joined = node(ends, 4)
	}
	for _, us := range g.US {
		g.Chain += us
	}
	return known, g
}

func TestALargeGraph(t *testing.T) {
	known, g := large(1000, 6)
	plans := made(t, known, g, Options{})
	require.Equal(t, len(known.Values), plans.Moved)
	for _, p := range plans.Plans {
		require.Less(t, p.US, plans.Chain+1)
	}
}

func BenchmarkLarge(b *testing.B) {
	known, g := large(5000, 6)
	b.ReportMetric(float64(len(g.Nodes)), "nodes")
	for b.Loop() {
		if _, err := Make(b.Context(), known, g, Options{}); err != nil {
			b.Fatal(err)
		}
	}
}
