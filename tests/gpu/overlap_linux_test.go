// Chains of small kernels whose launches overlap: that results stay the same, and what is gained over C++ without.

package gpu

import (
	"context"
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/cudart/driver"
	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/kernels"
	"github.com/dagrun/dagrun/planner"
	"github.com/dagrun/dagrun/runtime"
)

// chainUS is how long a spin of a chain takes.
const chainUS = 1.0

// chainWork is a chain of launches of one kernel in C++.
func chainWork(name, kernel string) func(*testing.T) *work {
	return func(t *testing.T) *work {
		entry := must[dag.LaunchKernel](t)(kernels.Library().Kernel(kernel, kinds[kernel])).Entry()
		w := &work{name: cText(name), ptx: cText(string(kernels.LibraryModule(entry).Code)), entry: cText(entry), launches: launches, streams: 1}
		if kernel == "spin" {
			bits := math.Float64bits(chainUS)
			w.args, w.arg = 1, &bits
		}
		return w
	}
}

var kinds = map[string][]dag.DType{"spin": {dag.InvalidDType}}

// chainSide replays the same chain as a program.
func chainSide(kernel string, mode runtime.Mode, overlap runtime.Overlap) func(*testing.T, *driver.Platform) side {
	return func(t *testing.T, p *driver.Platform) side {
		b := dag.New("chain")
		b.Use(kernels.Library())
		var args []any
		if kernel == "spin" {
			args = append(args, chainUS)
		}
		last := dag.NodeID(-1)
		for k := range launches {
			node := b.Kernel(fmt.Sprintf("n%d", k), kernel, args)
			if last >= 0 {
				b.After(node, last)
			}
			last = node
		}
		g := must[*dag.Graph](t)(b.Graph())
		plan := must[*planner.Plan](t)(planner.New(context.Background(), g, planner.Options{Strategy: "list", Machine: planner.Unit()}))
		require.Len(t, plan.Streams, 1)
		made := must[*runtime.Program](t)(runtime.New(context.Background(), g, plan, p, runtime.Options{Mode: mode, Overlap: overlap}))
		closing(t, made)
		nodes, on := made.Overlaps()
		require.Equal(t, overlap == runtime.OverlapOn, on)
		if on {
			require.Equal(t, launches-1, nodes)
		}
		return side{func() error { return made.Replay(context.Background()) }, func() error { return made.Synchronize(context.Background()) }}
	}
}
