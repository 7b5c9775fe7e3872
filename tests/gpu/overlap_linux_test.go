// Chains of small kernels whose launches overlap: that results stay the same, and what is gained over C++ without.

package gpu

import (
	"context"
	"fmt"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/cudart/driver"
	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/kernels"
	"github.com/dagrun/dagrun/kernels/library"
	"github.com/dagrun/dagrun/planner"
	"github.com/dagrun/dagrun/runtime"
)

const (
	chainUS      = 1.0     // how long a spin of a chain takes
	chainNumbers = 1 << 18 // that a scale of a chain multiplies, which takes 1.4 us in a graph
)

// chainWork is a chain of launches of one kernel in C++.
func chainWork(name, kernel string) func(*testing.T) *work {
	return func(t *testing.T) *work {
		l := chainGraph(t, kernel).Nodes[0].Launch
		entry := l.Kernel.Entry()
		w := &work{name: cText(name), ptx: cText(string(library.Module(entry).Code)), entry: cText(entry), launches: launches, streams: 1,
			blocks: int64(l.Grid[0]), threads: int64(l.Block[0])}
		var values []uint64
		for k, a := range l.Args {
			if a.IsBuffer {
				w.memory, w.pointer = a.Range.Hi-a.Range.Lo, int64(k)
			}
			values = append(values, a.Bits)
		}
		w.args, w.arg = int64(len(values)), unsafe.SliceData(values)
		return w
	}
}

// chainGraph is a chain of launches of one kernel.
func chainGraph(t *testing.T, kernel string) *dag.Graph {
	b := dag.New("chain")
	b.Use(kernels.Library())
	var args []any
	switch kernel {
	case "spin":
		args = append(args, chainUS)
	case "scale":
		args = append(args, chainNumbers, 1.0, b.Whole(b.Device("x", dag.F32, chainNumbers)))
	}
	last := dag.NodeID(-1)
	for k := range launches {
		node := b.Kernel(fmt.Sprintf("n%d", k), kernel, args)
		if last >= 0 {
			b.After(node, last)
		}
		last = node
	}
	return must[*dag.Graph](t)(b.Graph())
}

// chainSide replays the same chain as a program.
func chainSide(kernel string, mode runtime.Mode, overlap runtime.Overlap) func(*testing.T, *driver.Platform) side {
	return func(t *testing.T, p *driver.Platform) side {
		g := chainGraph(t, kernel)
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
