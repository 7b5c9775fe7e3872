// Tests of what passes of a loop leave for later passes: its bytes must be its own, and nothing else is refused.

package proof

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/planner/plan"
)

// Not every pass writes "some", so it must keep its bytes. All others may share theirs, as "x" and "y" do.
func TestWhatAPassMayLeaveUnwrittenKeepsItsBytes(t *testing.T) {
	const refused = `"some" must keep its bytes during all passes of "loop", because a pass may leave it unwritten, but "other" is also placed on bytes `
	const fix = `: place "other" elsewhere`
	for _, c := range []struct {
		name  string
		spoil func(g *dag.Graph, some, other *plan.Placement)
		want  string
	}{
		{"before the other", func(_ *dag.Graph, some, _ *plan.Placement) { some.Offset = 0 }, ""},
		{"behind the other", func(_ *dag.Graph, some, _ *plan.Placement) { some.Offset = 512 }, ""},
		{"on all of the other", func(_ *dag.Graph, some, _ *plan.Placement) { some.Offset = 256 }, refused + "[256:512) of device 0" + fix},
		{"on its first byte", func(_ *dag.Graph, some, _ *plan.Placement) { some.Offset = 1 }, refused + "[256:257) of device 0" + fix},
		{"on its last byte", func(_ *dag.Graph, some, _ *plan.Placement) { some.Offset = 511 }, refused + "[511:512) of device 0" + fix},
		{"on another device", func(_ *dag.Graph, some, _ *plan.Placement) { some.Device = 1 }, ""},
		{"both on another device", func(_ *dag.Graph, some, other *plan.Placement) { some.Device, other.Device = 1, 1 }, refused + "[256:512) of device 1" + fix},
		{"without bytes", func(_ *dag.Graph, some, _ *plan.Placement) { some.Bytes, some.Offset = 0, 300 }, ""},
		{"on one without bytes", func(_ *dag.Graph, _, other *plan.Placement) { other.Bytes, other.Offset = 0, 300 }, ""},
		{"without contents", func(g *dag.Graph, _, _ *plan.Placement) { g.Buffers[0].Scratch = true }, ""},
	} {
		b := dag.New("passes")
		some, other, x, y := b.Device("some", dag.F32, 64), b.Device("other", dag.F32, 64), b.Device("x", dag.F32, 64), b.Device("y", dag.F32, 64)
		b.Repeat("loop", dag.Loop{Times: 3}, func() {
			b.Task("make x", b.Out(x))
			b.If("seldom", "x(1..2) > 0", func() { b.Task("make some", b.Out(some)) }, nil)
			b.Task("make others", b.Out(other), b.Out(y))
		})
		b.If("once", "x(1..2) > 0", func() {
			b.If("as seldom", "x(1..2) > 0", func() { b.Task("make some once", b.Out(some)) }, nil)
		}, nil)
		g, err := b.Graph()
		require.NoError(t, err)
		memory := []plan.Placement{{Buffer: some, Offset: 256, Bytes: 256}, {Buffer: other, Offset: 256, Bytes: 256},
			{Buffer: x, Offset: 4096, Bytes: 256}, {Buffer: y, Offset: 4096, Bytes: 256}}
		c.spoil(g, &memory[0], &memory[1])
		err = violationError(carriedApart(g, 0, memory))
		if c.want == "" {
			require.NoError(t, err, c.name)
		} else {
			require.EqualError(t, err, c.want, c.name)
			v := err.(*Violation)
			require.ErrorIs(t, v, plan.ErrMemory)
			require.Equal(t, [3]string{"loop", "some", "other"}, [3]string{v.NodeName, v.BufferName, v.OtherName})
			require.Equal(t, [2]dag.BufferID{some, other}, [2]dag.BufferID{v.Buffer, v.Other})
		}
		require.Nil(t, carriedApart(g, 1, memory), "a branch makes one pass")
	}
}
