// Tests of layouts that are wrong by themselves, whatever the order of the nodes: lists of kept buffers that cannot be.

package proof

import (
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
