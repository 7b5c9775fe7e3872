// Tests of the priorities that a program asks the device for.

package runtime_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/cudart"
	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/kernels"
	"github.com/dagrun/dagrun/planner"
	"github.com/dagrun/dagrun/runtime"
)

// asked is a platform that records the priorities it is asked for.
type asked struct {
	cudart.Platform
	streams, nodes map[dag.Priority]bool
	graphs         []cudart.GraphOptions
}

func (a *asked) NewStream(device int32, priority dag.Priority) (cudart.Stream, error) {
	a.streams[priority] = true
	return a.Platform.NewStream(device, priority)
}

func (a *asked) BuildGraph(commands []cudart.Command, deps [][]int32, options cudart.GraphOptions) (cudart.Graph, error) {
	a.graphs = append(a.graphs, options)
	for _, c := range commands {
		if c.Node >= 0 {
			a.nodes[c.Priority] = true
		}
	}
	return a.Platform.BuildGraph(commands, deps, options)
}

// Work without priorities runs at the lowest one, like all CUDA streams without a priority. It runs at a higher one only if other
// work of the program has low priority.
func TestNormalWorkHasAHigherPriorityOnlyBesideLow(t *testing.T) {
	type set = map[dag.Priority]bool
	for _, c := range []struct {
		declared []dag.Priority
		want     set
		ranked   bool
	}{
		{[]dag.Priority{dag.Normal, dag.Normal}, set{dag.Low: true}, false},
		{[]dag.Priority{dag.Normal, dag.High}, set{dag.Low: true, dag.High: true}, true},
		{[]dag.Priority{dag.Normal, dag.Low}, set{dag.Normal: true, dag.Low: true}, true},
		{[]dag.Priority{dag.Normal, dag.Low, dag.High}, set{dag.Normal: true, dag.Low: true, dag.High: true}, true},
	} {
		b := dag.New("ranks")
		b.Use(kernels.Library())
		for i, priority := range c.declared {
			b.Priority(b.Kernel(string(rune('a'+i)), "noop", nil), priority)
		}
		g, err := b.Graph()
		require.NoError(t, err)
		plan, err := planner.New(context.Background(), g, planner.Options{})
		require.NoError(t, err)
		platform := &asked{Platform: cpu(t), streams: set{}, nodes: set{}}
		program, err := runtime.New(context.Background(), g, plan, platform, runtime.Options{Mode: runtime.Built})
		require.NoError(t, err)
		require.NoError(t, program.Run(context.Background(), 2))
		require.NoError(t, program.Close())
		require.Equal(t, c.want, platform.streams, "%v", c.declared)
		require.Equal(t, c.want, platform.nodes, "%v", c.declared)
		require.Len(t, platform.graphs, 1)
		require.Equal(t, c.ranked, platform.graphs[0].Priorities, "%v", c.declared)
	}
}
