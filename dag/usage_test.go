// Tests of what a graph knows about the use of its buffers.

package dag_test

import (
	"testing"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/dag/internal/fakes"
	"github.com/stretchr/testify/require"
)

func TestCarriedIsExactToTheByte(t *testing.T) {
	b := dag.New("test")
	x := b.Device("x", dag.U8, 16)     // its upper half is read, then written: carried
	y := b.Device("y", dag.U8, 16)     // its lower half is written before it is read: not carried
	in := b.Device("in", dag.U8, 16)   // only read: an input, not carried
	acc := b.Device("acc", dag.U8, 16) // read and written by one node
	part := b.Device("part", dag.U8, 16)
	b.Task("a", b.Slice(x, 0, 8).Out(), b.Slice(y, 0, 8).Out(), b.In(in))
	b.Task("b", b.Slice(x, 4, 12).In(), b.Slice(y, 2, 6).In(), b.InOut(acc))
	b.Task("c", b.Slice(x, 11, 16).Out(), b.Slice(y, 8, 16).Out())
	// Some bytes are read before anything wrote them; other bytes are written, but never the same ones.
	b.Task("d", b.Slice(part, 0, 4).In())
	b.Task("e", b.Slice(part, 4, 8).Out())
	b.Init(in, dag.Init{Kind: dag.InitZeros})
	g, err := b.Graph()
	require.NoError(t, err)
	require.Equal(t, []dag.BufferID{x, acc}, g.Carried())
	require.Equal(t, []dag.UnwrittenRead{{Buffer: x, Node: 1, Lo: 8, Hi: 12}, {Buffer: in, Node: 0, Lo: 0, Hi: 16}, {Buffer: acc, Node: 1, Lo: 0, Hi: 16}, {Buffer: part, Node: 3, Lo: 0, Hi: 4}}, g.ReadFirst())
	require.Equal(t, []dag.UnwrittenRead{{Buffer: x, Node: 1, Lo: 8, Hi: 12}, {Buffer: acc, Node: 1, Lo: 0, Hi: 16}, {Buffer: part, Node: 3, Lo: 0, Hi: 4}}, g.Unwritten())
}

func TestUnused(t *testing.T) {
	b := dag.New("test")
	b.Use(fakes.Kernels)
	b.Device("never", dag.F32, 4)
	empty, d := b.Device("empty", dag.F32, 0), b.Device("d", dag.F32, 4)
	b.Host("alone", dag.F32, 4)
	b.Kernel("k", "saxpy", dag.Args{0, 1, b.Whole(empty), b.Whole(d)})
	g, err := b.Graph()
	require.NoError(t, err)
	require.Equal(t, []dag.BufferID{0, 3}, g.Unused())
}

func TestUnread(t *testing.T) {
	b := dag.New("test")
	d, e, h := b.Device("d", dag.U8, 16), b.Device("e", dag.U8, 16), b.Host("h", dag.U8, 16)
	saved, carried := b.Device("saved", dag.U8, 16), b.Device("carried", dag.U8, 16)
	zero := b.Device("zero", dag.U8, 16)
	b.Init(zero, dag.Init{Kind: dag.InitZeros})
	b.Save(saved, "saved.npy")
	overwritten := b.Memset("overwritten", b.Whole(d), 1)
	b.Memset("half", b.Slice(d, 0, 8), 2)
	rest := b.Memset("rest", b.Slice(d, 8, 16), 2)
	toHost := b.Copy("to the host", b.Slice(h, 0, 8), b.Slice(d, 0, 8))
	// The copied bytes are overwritten before anything reads them.
	gone := b.Copy("gone", b.Whole(h), b.Whole(zero))
	b.Copy("last on the host", b.Whole(h), b.Whole(zero))
	dead := b.Memset("dead", b.Whole(e), 0)
	b.Memset("kept", b.Slice(saved, 3, 4), 0)
	b.Task("reads", b.In(carried))
	b.Memset("next time", b.Whole(carried), 0)
	b.Task("task", b.Out(e))
	b.Memset("nothing", b.Slice(e, 2, 2), 0)
	g, err := b.Graph()
	require.NoError(t, err)
	require.Equal(t, []dag.NodeID{overwritten, rest, toHost, gone, dead}, g.Unread())
}

func TestExplicitSyncKeepsDeclaredEdges(t *testing.T) {
	b := dag.New("test")
	b.Sync(dag.SyncExplicit)
	x, y := b.Device("x", dag.F32, 4), b.Device("y", dag.F32, 4)
	first := b.Task("first", b.Out(x), b.Out(y))
	second := b.Task("second", b.In(x))
	b.After(second, first, first)
	third := b.Task("third", b.Slice(y, 1, 2).In())
	fourth := b.Task("fourth")
	b.After(fourth, third)
	g, err := b.Graph()
	require.NoError(t, err)
	var got []string
	for _, e := range g.Edges() {
		text := g.Nodes[e.From].Name + " -> " + g.Nodes[e.To].Name + ": " + g.EdgeText(e)
		if g.Enforced(e) {
			text += ", enforced"
		}
		got = append(got, text)
	}
	require.Equal(t, []string{"first -> second: RAW x, enforced", "first -> third: RAW y(1..2)", "third -> fourth: after, enforced"}, got)
	g.Sync = dag.SyncAuto
	require.True(t, g.Enforced(g.Edges()[1]))
}

func TestEdgesNameTheStrongestReason(t *testing.T) {
	b := dag.New("test")
	x, y, z := b.Device("x", dag.U8, 16), b.Device("y", dag.U8, 16), b.Device("z", dag.U8, 16)
	first := b.Task("first", b.Out(z), b.Out(y), b.In(x))
	second := b.Task("second", b.Out(x), b.Slice(z, 2, 4).In(), b.Slice(z, 9, 11).In(), b.Slice(y, 0, 1).In(), b.Slice(z, 5, 7).Out())
	g, err := b.Graph()
	require.NoError(t, err)
	require.Equal(t, []dag.Edge{{From: first, To: second, Buffer: y, Why: dag.RAW, Lo: 0, Hi: 1}}, g.Edges())
}
