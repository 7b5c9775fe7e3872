// Tests of loops whose bodies move with them.

package placement

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/dag"
)

// The body of a loop follows it to another device, fixed nodes apart; a loop that was divided stays.
func TestBodiesFollowTheirLoops(t *testing.T) {
	b := dag.New("loops")
	x, y := b.Device("x", dag.U8, 64), b.Device("y", dag.U8, 64)
	b.Task("before", b.Out(x))
	b.Repeat("outer", dag.Loop{Times: 2}, func() {
		fixed := b.Task("fixed", b.InOut(y))
		b.At(fixed).Fixed, b.At(fixed).Device = true, 2
		b.Repeat("inner", dag.Loop{Times: 2}, func() { b.Task("free", b.InOut(x)) })
	})
	g, err := b.Graph()
	require.NoError(t, err)
	p, err := NewProblem(g, 3, nil)
	require.NoError(t, err)
	require.Equal(t, []int32{Free, Free, 2, Free, Free}, p.Fixed, "before, outer, fixed, inner, free")
	for _, c := range []struct{ before, at, want []int32 }{
		{[]int32{0, 0, 2, 0, 0}, []int32{0, 0, 2, 0, 0}, []int32{0, 0, 2, 0, 0}},
		{[]int32{0, 0, 2, 0, 0}, []int32{1, 0, 2, 0, 0}, []int32{1, 0, 2, 0, 0}},
		{[]int32{0, 0, 2, 0, 0}, []int32{0, 1, 2, 0, 0}, []int32{0, 1, 2, 1, 1}},
		{[]int32{0, 0, 2, 1, 1}, []int32{0, 1, 2, 1, 1}, []int32{0, 0, 2, 1, 1}},
		{[]int32{0, 0, 2, 0, 1}, []int32{1, 2, 2, 0, 1}, []int32{1, 0, 2, 0, 1}},
	} {
		p.Follow(c.at, c.before)
		require.Equal(t, c.want, c.at, "from %v", c.before)
	}
}
