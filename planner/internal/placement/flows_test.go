// Tests of which node reads what which node wrote, byte by byte.

package placement

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/dag"
)

// seen is a byte that a node finds, and who wrote it.
type seen struct {
	buffer dag.BufferID
	byte   int64
	writer int32
}

func TestFlowsAreWhatNodesFind(t *testing.T) {
	const size = 12
	reads, finals, carried, apart := 0, 0, 0, 0
	for seed := range uint64(500) {
		rng := rand.New(rand.NewPCG(seed, 9))
		b := dag.New("flows")
		var buffers []dag.BufferID
		for k := range 3 {
			buffer := dag.Buffer{Name: fmt.Sprintf("b%d", k), Place: dag.Device, DType: dag.U8, Shape: []int64{size}}
			if rng.IntN(3) == 0 {
				buffer.Save = fmt.Sprintf("b%d.npy", k)
			}
			buffers = append(buffers, b.Buffer(buffer))
		}
		buffers = append(buffers, b.Host("h", dag.U8, size))
		for k := range 2 + rng.IntN(8) {
			var accesses []dag.Access
			for range 1 + rng.IntN(2) {
				lo := rng.Int64N(size)
				hi := lo + rng.Int64N(size-lo+1)
				accesses = append(accesses, dag.Access{Range: dag.Range{Buffer: buffers[rng.IntN(4)], Lo: lo, Hi: hi}, Mode: dag.Mode(1 + rng.IntN(3))})
			}
			b.Task(fmt.Sprintf("n%d", k), accesses...)
		}
		g, err := b.Graph()
		require.NoError(t, err)
		p, err := NewProblem(g, 2, nil)
		require.NoError(t, err)
		f := findFlows(p)
		last := map[dag.BufferID][]int32{}
		written := map[dag.BufferID]bool{}
		for _, id := range buffers {
			for range size {
				last[id] = append(last[id], -1)
			}
		}
		for i := range g.Nodes {
			for _, a := range g.Accesses(dag.NodeID(i)) {
				written[a.Buffer] = written[a.Buffer] || a.Mode&dag.Write != 0 && a.Lo < a.Hi
			}
		}
		early := map[dag.BufferID]bool{}
		for i := range g.Nodes {
			want, got := map[seen]bool{}, map[seen]bool{}
			accesses := g.Accesses(dag.NodeID(i))
			for _, a := range accesses {
				for at := a.Lo; at < a.Hi && a.Mode&dag.Read != 0; at++ {
					writer := last[a.Buffer][at]
					early[a.Buffer] = early[a.Buffer] || writer < 0
					if g.Buffers[a.Buffer].Place == dag.Device && (writer >= 0 || written[a.Buffer]) {
						want[seen{a.Buffer, at, writer}] = true
						reads++
					}
				}
			}
			for _, id := range f.reads[f.start[i]:f.start[i+1]] {
				d := f.data[id]
				require.Equal(t, d.hi-d.lo, d.bytes)
				require.Positive(t, d.bytes)
				for at := d.lo; at < d.hi; at++ {
					got[seen{d.buffer, at, d.writer}] = true
				}
			}
			require.Equal(t, want, got, "seed %d, node %d", seed, i)
			for _, a := range accesses {
				for at := a.Lo; at < a.Hi && a.Mode&dag.Write != 0; at++ {
					last[a.Buffer][at] = int32(i)
				}
			}
		}
		want, got := map[seen]bool{}, map[seen]bool{}
		for _, id := range buffers[:3] {
			for at := range int64(size) {
				if writer := last[id][at]; writer >= 0 && (early[id] || g.Buffers[id].Save != "") {
					want[seen{id, at, writer}] = true
					finals++
				}
			}
		}
		for _, d := range f.final {
			require.Equal(t, d.hi-d.lo, d.bytes)
			require.Positive(t, d.bytes)
			for at := d.lo; at < d.hi; at++ {
				got[seen{d.buffer, at, d.writer}] = true
			}
		}
		require.Equal(t, want, got, "seed %d, in the end", seed)
		p.around = true
		f = findFlows(p)
		require.Empty(t, f.final)
		for id, d := range f.data {
			carry := int32(-1)
			if d.writer < 0 { // it stays where the pass before wrote it, if one node wrote all of it
				carry = last[d.buffer][d.lo]
				for _, writer := range last[d.buffer][d.lo:d.hi] {
					if writer != carry {
						carry = -1
						break
					}
				}
			}
			switch f.carry[id] {
			case carry:
				if carry >= 0 {
					carried++
				}
			case -1: // the node wrote it in two accesses
				apart++
			default:
				t.Fatalf("seed %d: %+v is carried from %d, not %d", seed, d, f.carry[id], carry)
			}
		}
	}
	require.Greater(t, carried, 20*apart)
	require.Greater(t, carried, 100)
	require.Greater(t, reads, 1000)
	require.Greater(t, finals, 1000)
}
