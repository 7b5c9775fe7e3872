// Tests of steps where a plan lacks the schedule of a body: the proof refuses that, but first it has to be laid out.

package layout_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/planner"
	"github.com/dagrun/dagrun/planner/effort"
	"github.com/dagrun/dagrun/planner/internal/layout"
	"github.com/dagrun/dagrun/planner/plan"
)

// Temporaries of a body without a schedule are all alive while the loop runs; those of one that has a schedule share bytes.
func TestTemporariesOfABodyWithoutAScheduleShareNoBytes(t *testing.T) {
	b := dag.New("loops")
	var small []dag.BufferID
	for k := range 2 {
		x, y, z := b.Device(fmt.Sprintf("x%d", k), dag.U8, 256), b.Device(fmt.Sprintf("y%d", k), dag.U8, 256), b.Device(fmt.Sprintf("z%d", k), dag.U8, 256)
		small = append(small, y, z)
		b.Repeat(fmt.Sprintf("loop%d", k), dag.Loop{Times: 2}, func() {
			b.Task(fmt.Sprintf("one%d", k), b.Out(y), b.Out(x))
			b.Task(fmt.Sprintf("two%d", k), b.In(y), b.InOut(x))
			b.Task(fmt.Sprintf("three%d", k), b.Out(z), b.InOut(x))
			b.Task(fmt.Sprintf("four%d", k), b.In(z), b.InOut(x))
		})
	}
	g, err := b.Graph()
	require.NoError(t, err)
	p, err := planner.New(context.Background(), g, planner.Options{Strategy: "serial"})
	require.NoError(t, err)
	share := func() [2]bool {
		at := map[dag.BufferID]plan.Placement{}
		for _, m := range p.Memory {
			at[m.Buffer] = m
		}
		return [2]bool{at[small[0]].Offset == at[small[1]].Offset, at[small[2]].Offset == at[small[3]].Offset}
	}
	require.Equal(t, [2]bool{true, true}, share())
	p.Bodies = p.Bodies[:1]
	require.NoError(t, layout.Memory(context.Background(), g, p, layout.Kept(g), effort.Quick))
	require.Equal(t, [2]bool{true, false}, share())
	require.EqualError(t, planner.Verify(g, p), `the plan has no schedule for body 0 of "loop1": plan this graph again`)
}
