// Tests of loops whose bodies move with them.

package placement

import (
	"fmt"
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
	require.Equal(t, []int32{Free, 2}, p.unit, "what is not divided is where its fixed node has to be")
	for _, c := range []struct{ before, at, want []int32 }{
		{[]int32{0, 0, 2, 0, 0}, []int32{0, 0, 2, 0, 0}, []int32{0, 0, 2, 0, 0}},
		{[]int32{0, 0, 2, 0, 0}, []int32{1, 0, 2, 0, 0}, []int32{1, 0, 2, 0, 0}},
		{[]int32{0, 0, 2, 0, 0}, []int32{0, 1, 2, 0, 0}, []int32{0, 1, 2, 1, 1}},
		{[]int32{0, 0, 2, 1, 1}, []int32{0, 1, 2, 1, 1}, []int32{0, 0, 2, 1, 1}},
		{[]int32{0, 0, 2, 0, 1}, []int32{1, 2, 2, 0, 1}, []int32{1, 0, 2, 0, 1}},
		{[]int32{0, 0, 2, 1, 0}, []int32{0, 1, 2, 1, 0}, []int32{0, 0, 2, 1, 0}},
	} {
		p.Follow(c.at, c.before)
		require.Equal(t, c.want, c.at, "from %v", c.before)
	}
}

// A loop that is not divided is where its fixed nodes have to be, those of loops in it included, if that is one device.
func TestUndividedLoopsAreWhereTheirFixedNodesAre(t *testing.T) {
	for _, c := range []struct {
		devices []int32 // of nodes in the loop, and then of one in a loop in it
		want    int32
	}{
		{[]int32{Free, Free}, Free}, {[]int32{1, Free}, 1}, {[]int32{Free, 2}, 2}, {[]int32{Free, 2, Free, 2}, 2},
		{[]int32{0, 2}, Free}, {[]int32{0, 2, 2}, Free}, {[]int32{0, 0, 0}, 0},
	} {
		b := dag.New("loops")
		task := func(name string, device int32) {
			if device == Free {
				b.Task(name)
			} else {
				fixedTask(b, name, device)
			}
		}
		b.Repeat("outer", dag.Loop{Times: 2}, func() {
			last := len(c.devices) - 1
			for k, device := range c.devices[:last] {
				task(fmt.Sprint("n", k), device)
			}
			b.Repeat("inner", dag.Loop{Times: 2}, func() { task("last", c.devices[last]) })
		})
		g, err := b.Graph()
		require.NoError(t, err)
		p, err := NewProblem(g, 3, nil)
		require.NoError(t, err)
		require.Equal(t, []int32{c.want}, p.unit, "%v", c.devices)
		for number, device := range p.Expand([]int32{max(c.want, 0)}) {
			if p.Fixed[number] != Free {
				require.Equal(t, p.Fixed[number], device)
			} else {
				require.Equal(t, max(c.want, 0), device, "what is not fixed goes with the loop")
			}
		}
	}
}
