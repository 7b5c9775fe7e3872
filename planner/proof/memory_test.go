// Tests of layouts that are wrong by themselves, whatever the order of the nodes: lists of kept buffers that cannot be.

package proof

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/planner/plan"
)

func TestListsOfKeptBuffersAreChecked(t *testing.T) {
	b := dag.New("kept")
	host, x, y := b.Host("h", dag.U8, 256), b.Device("x", dag.U8, 256), b.Device("y", dag.U8, 256)
	b.Task("make", b.Out(x), b.Out(y))
	g, err := b.Graph()
	require.NoError(t, err)
	p := byHand(t, g, "0 make")
	p.Memory = []plan.Placement{{Buffer: x, Bytes: 256}, {Buffer: y, Offset: 256, Bytes: 256}}
	for _, right := range [][]dag.BufferID{nil, {x}, {y}, {x, y}} {
		p.Kept = right
		require.NoError(t, Verify(g, p))
	}
	const must = ": the list must have device buffers only, each once, in the order of ids: plan this graph again"
	for _, c := range []struct {
		kept []dag.BufferID
		text string
	}{
		{[]dag.BufferID{host}, `entry 0 of the plan's kept buffers is "h"` + must},
		{[]dag.BufferID{x, x}, `entry 1 of the plan's kept buffers is "x"` + must},
		{[]dag.BufferID{y, x}, `entry 1 of the plan's kept buffers is "x"` + must},
		{[]dag.BufferID{-1}, `entry 0 of the plan's kept buffers is "buffer -1"` + must},
		{[]dag.BufferID{x, 3}, `entry 1 of the plan's kept buffers is "buffer 3"` + must},
	} {
		p.Kept = c.kept
		err := Verify(g, p)
		require.ErrorIs(t, err, plan.ErrMemory)
		require.EqualError(t, err, c.text)
	}
}

// The contents of a buffer that something outside of a replay reads or wrote must be kept, and those of no other.
func TestWhatMattersOutsideOfAReplayIsKept(t *testing.T) {
	const fix = ", but the plan does not keep its bytes: plan this graph again"
	for _, c := range []struct {
		change func(g *dag.Graph)
		want   string
	}{
		{func(*dag.Graph) {}, ""},
		{func(g *dag.Graph) { g.Buffers[0].Init = &dag.Init{} }, `"x" has contents before the first replay` + fix},
		{func(g *dag.Graph) { g.Buffers[0].Save = "x.npy" }, `"x" is read after the last replay` + fix},
		{func(g *dag.Graph) { g.Buffers[1].Expect = &dag.Expect{} }, `"y" is read after the last replay` + fix},
		{func(g *dag.Graph) { g.Accesses(0)[0].Mode = dag.Read }, `"x" is read before it is written` + fix},
		{func(g *dag.Graph) { g.Accesses(0)[0].Mode = dag.Read; g.Buffers[0].Scratch = true }, ""},
	} {
		b := dag.New("kept")
		x, y := b.Device("x", dag.U8, 256), b.Device("y", dag.U8, 256)
		b.Task("a", b.Out(x), b.Out(y))
		g, err := b.Graph()
		require.NoError(t, err)
		p := byHand(t, g, "0 a")
		p.Memory = []plan.Placement{{Buffer: x, Bytes: 256}, {Buffer: y, Offset: 256, Bytes: 256}}
		c.change(g)
		if c.want == "" {
			require.NoError(t, Verify(g, p))
			continue
		}
		err = Verify(g, p)
		require.ErrorIs(t, err, plan.ErrMemory)
		require.EqualError(t, err, c.want)
		require.Equal(t, c.want[1:2], err.(*Violation).BufferName)
		p.Kept = []dag.BufferID{x, y}
		require.NoError(t, Verify(g, p))
	}
}

func TestArenasTogetherEndBeforeTwoToTheSixtyThird(t *testing.T) {
	const high = math.MaxInt64 - 511 // as high as a buffer of 256 bytes can lie
	for bytes, want := range map[int64]string{255: "", 256: "the arenas together need more than 2^63 - 1 bytes"} {
		b := dag.New("arenas")
		x, y := b.Device("x", dag.U8, 256), b.Device("y", dag.U8, bytes)
		b.OnDevice(y, 1)
		g, err := b.Graph()
		require.NoError(t, err)
		p := &plan.Plan{Memory: []plan.Placement{{Buffer: x, Offset: high, Bytes: 256}, {Buffer: y, Device: 1, Bytes: bytes}}}
		err = Verify(g, p)
		if want == "" {
			require.NoError(t, err)
			continue
		}
		require.ErrorIs(t, err, plan.ErrMemory)
		require.EqualError(t, err, want)
	}
}
