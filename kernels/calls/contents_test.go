// Calls write all that they declare out, and what they write does not depend on what was there before.

package calls_test

import (
	"fmt"
	"math"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/kernels/launch"
)

// outputsOf runs the only call of a graph in Go, with inputs of ones and everything that it declares out filled with a byte, and returns the
// bytes that are declared out.
func outputsOf(t *testing.T, g *dag.Graph, fill byte) []byte {
	t.Helper()
	launched := g.Nodes[0].Launch
	k := launched.Kernel.(interface {
		Module() *launch.Module
		Entry() string
	})
	memory := make([][]uint64, len(g.Buffers))
	bytesOf := func(b dag.BufferID) []byte {
		return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(memory[b]))), 8*len(memory[b]))
	}
	for i := range g.Buffers {
		memory[i] = make([]uint64, g.Buffers[i].Bytes/8+1)
		for j := range g.Buffers[i].Bytes / g.Buffers[i].DType.Size() {
			if component := g.Buffers[i].DType.Component(); component == dag.F32 {
				component.Store(bytesOf(dag.BufferID(i)), j, uint64(math.Float32bits(1+float32(j%7))))
			}
		}
	}
	each := func(visit func(b dag.BufferID, at int64)) {
		for _, a := range g.Accesses(0) {
			if a.Mode != dag.Write || g.Buffers[a.Buffer].Scratch {
				continue
			}
			for at := a.Lo; at < a.Hi; at++ {
				if _, width := a.Box(); !a.Tile() || (at-a.Lo)%int64(a.Pitch) < width {
					visit(a.Buffer, at)
				}
			}
		}
	}
	each(func(b dag.BufferID, at int64) { bytesOf(b)[at] = fill })
	call := &launch.Call{Grid: launched.Grid, Block: launched.Block}
	for _, a := range launched.Args {
		arg := launch.Arg{Bits: a.Bits}
		if a.IsBuffer {
			arg = launch.Arg{Memory: unsafe.Pointer(&bytesOf(a.Range.Buffer)[a.Range.Lo]), Bytes: a.Range.Hi - a.Range.Lo}
		}
		call.Args = append(call.Args, arg)
	}
	r := k.Module().References[k.Entry()]
	r.Run(call, 0, r.Spans(call))
	var out []byte
	each(func(b dag.BufferID, at int64) { out = append(out, bytesOf(b)[at]) })
	return out
}

func TestCallsWriteAllThatTheyDeclareOut(t *testing.T) {
	for _, node := range []string{
		"call: cublas.gemm, args: {a: a, b: b, c: c}",
		"call: cublas.gemm, args: {a: a, b: b, c: c, alpha: 0}",
		"call: cublas.gemm, args: {a: a(0..2)(4..8), b: a(4..8)(0..3), c: c(1..3)(5..8)}",
		"call: cublas.gemm, args: {ta: true, tb: true, a: w(..)(0..8), b: b, c: c}",
		"call: cublas.gemm_batched, args: {batches: 4, tb: true, a: a, b: b, c: c(..)(0..2)}",
	} {
		g, err := parse("  - {name: x, " + node + "}\n")
		require.NoError(t, err, node)
		compareOutputs(t, g, node)
	}
	for _, node := range []string{
		"call: cufft.c2c, args: {x: c, y: e}", "call: cufft.c2c, args: {dims: 2, inverse: true, x: c, y: e}", "call: cufft.r2c, args: {x: x, y: h}",
		"call: cufft.r2c, args: {dims: 2, x: x, y: h}", "call: cufft.c2r, args: {x: h, y: x}", "call: cufft.c2c, args: {x: c(1..4)(2..5), y: e(2..5)(4..7)}",
	} {
		g, err := parseSpectrum(node)
		require.NoError(t, err, node)
		compareOutputs(t, g, node)
	}
}

func compareOutputs(t *testing.T, g *dag.Graph, node string) {
	t.Helper()
	first, second := outputsOf(t, g, 0xa5), outputsOf(t, g, 0x5a)
	require.NotEmpty(t, first, node)
	require.Equal(t, fmt.Sprintf("%x", first), fmt.Sprintf("%x", second), node)
}
