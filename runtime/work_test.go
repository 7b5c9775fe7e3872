// Tests of plans for other work: correct in structure, but chosen for other times.

package runtime_test

import (
	"bytes"
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/cudart/host"
	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/planner"
	"github.com/dagrun/dagrun/planner/plan"
	"github.com/dagrun/dagrun/runtime"
)

func TestNewRefusesAPlanForOtherWork(t *testing.T) {
	build := func(us float64) *dag.Graph {
		b := dag.New("set")
		out, d := b.Host("out", dag.F32, 4), b.Device("d", dag.F32, 4)
		b.Cost(b.Memset("set", b.Whole(d), 1), us)
		b.Copy("down", b.Whole(out), b.Whole(d))
		g, err := b.Graph()
		require.NoError(t, err)
		return g
	}
	short, long := build(10), build(100_000)
	made, err := planner.New(context.Background(), short, planner.Options{})
	require.NoError(t, err)
	platform, err := host.Open(host.Options{})
	require.NoError(t, err)
	defer func() { require.NoError(t, platform.Close()) }()
	_, err = runtime.New(context.Background(), long, made, platform, runtime.Options{})
	require.ErrorIs(t, err, plan.ErrOtherGraph)
	require.EqualError(t, err, "plan of another graph: the pipeline has the same structure, but kernels, arguments, launch shapes or costs have changed since it was planned: plan again")

	// A plan that was read from a file contains the work that its nodes were planned for.
	var file bytes.Buffer
	require.NoError(t, made.EncodeJSON(&file, short))
	read, err := planner.DecodePlan(&file, long)
	require.NoError(t, err)
	_, err = runtime.New(context.Background(), long, read, platform, runtime.Options{})
	require.ErrorIs(t, err, plan.ErrOtherGraph)
	require.EqualError(t, err, `plan of another graph: node "set" has cost=100000 us, it had cost=10 us when it was planned: plan again`)

	program, err := runtime.New(context.Background(), short, made, platform, runtime.Options{})
	require.NoError(t, err)
	require.NoError(t, program.Close())
}
