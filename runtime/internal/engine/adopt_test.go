// A test of adopting plans: the bodies of loops follow.

package engine

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/cudart/host"
	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/kernels"
	"github.com/dagrun/dagrun/planner"
)

func TestBodiesFollowThePlanThatIsAdopted(t *testing.T) {
	b := dag.New("halving")
	b.Use(kernels.Library())
	x, left := b.Device("x", dag.F32, 8), b.Device("left", dag.F64, 1)
	b.Memset("start", b.Whole(left), 64)
	loop := b.Repeat("loop", dag.Loop{Until: "left < 1", Most: 50}, func() {
		b.Kernel("half", "scale", dag.Args{1, 0.5, b.Whole(left)})
		b.Kernel("double", "scale", dag.Args{8, 2, b.Whole(x)})
	})
	g, err := b.Graph()
	require.NoError(t, err)
	platform, err := host.Open(host.Options{CheckOrder: true})
	require.NoError(t, err)
	defer platform.Close()
	first, err := planner.New(t.Context(), g, planner.Options{Strategy: "serial"})
	require.NoError(t, err)
	p, err := New(t.Context(), g, first, platform, planner.GraphEdges, Options{})
	require.NoError(t, err)
	defer p.Close()
	require.Same(t, first.BodyOf(loop, 0), p.bodies[loop][0].plan)
	for _, streams := range []int{2, 1} {
		plan, err := planner.New(t.Context(), g, planner.Options{Streams: streams})
		require.NoError(t, err)
		require.NoError(t, p.Trials().Adopt(t.Context(), Way{Plan: plan, Mode: Streams, Threads: 1}))
		require.Same(t, plan.BodyOf(loop, 0), p.bodies[loop][0].plan)
		require.NoError(t, p.Run(t.Context(), 1))
	}
}
