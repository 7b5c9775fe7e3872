// Tests of comparing two programs node by node: of several wrong results, the node that made the first one is named.

package tests

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/cudart/host"
	"github.com/dagrun/dagrun/dag/file"
	"github.com/dagrun/dagrun/kernels/launch"
	"github.com/dagrun/dagrun/planner"
	"github.com/dagrun/dagrun/runtime"
)

func TestCompareNodesNamesTheFirstThatDiffers(t *testing.T) {
	g := loadPipeline(t, "custom", file.Override{Name: "n", Value: "4000"})
	// The third part goes wrong, in its element 5.
	add2 := func(wrong bool) launch.Reference {
		return launch.Reference{Run: func(c *launch.Call, _, _ int64) {
			n := int64(c.Args[0].Bits)
			x, y := floats(c.Args[1], n), floats(c.Args[2], n)
			for i := range x {
				y[i] = x[i] + 2
			}
			if wrong && x[0] == 2000 {
				y[5] = 7
			}
		}}
	}
	open := func(wrong bool) *runtime.Program {
		p, err := host.Open(host.Options{References: map[string]launch.Reference{"add2": add2(wrong)}})
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, p.Close()) })
		plan, err := planner.New(context.Background(), g, planner.Options{Strategy: "serial", KeepAll: true})
		require.NoError(t, err)
		program, err := runtime.New(context.Background(), g, plan, p, runtime.Options{})
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, program.Close()) })
		return program
	}
	ctx := context.Background()
	found, err := runtime.CompareNodes(ctx, open(true), open(false), 2)
	require.NoError(t, err)
	require.NotNil(t, found)
	require.Equal(t, "add2.2", found.Node)
	require.Equal(t, 0, found.Replay)
	require.Equal(t, int64(1), found.Check.Wrong)
	require.Equal(t, "d_y", found.Check.Buffer)

	found, err = runtime.CompareNodes(ctx, open(false), open(false), 2)
	require.NoError(t, err)
	require.Nil(t, found)
	_, err = runtime.CompareNodes(ctx, nil, open(false), 1)
	require.EqualError(t, err, "two programs are needed to compare their nodes")
}
