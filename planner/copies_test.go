// Tests of the order of copies: pieces in declared order, what is needed soonest first, and early downloads of the first results.

package planner

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/planner/internal/plantest"
	"github.com/dagrun/dagrun/planner/plan"
)

// submitted returns the nodes of an engine in the order in which they are submitted.
func submitted(g *dag.Graph, p *Plan, e plan.Engine) []string {
	var names []string
	plantest.EachOp(p, func(_ int, _ int32, op *plan.Op) {
		if op.Kind == plan.Launch && plan.EngineOf(g, op.Node) == e {
			names = append(names, g.Nodes[op.Node].Name)
		}
	})
	return names
}

func TestPiecesAreCopiedAsDeclaredAndDownEarly(t *testing.T) {
	const n = 8
	g, profile := plantest.Pieces(t, n)
	for _, strategy := range []string{"list", "auto"} {
		for _, streams := range []int{1, 2, 4, 8} {
			made, err := New(context.Background(), g, Options{Strategy: strategy, Streams: streams, Profile: profile})
			require.NoError(t, err)
			var up, down []string
			for k := range n {
				up, down = append(up, fmt.Sprintf("up%d", k)), append(down, fmt.Sprintf("down%d", k))
			}
			require.Equal(t, up, submitted(g, made, plan.Upload))
			require.Equal(t, down, submitted(g, made, plan.Download))
			// The bound: all uploads, the last piece's blur, the value, two steps of the first piece, all downloads, and the time of submission
			// and waits. On several streams, kernels that fill the device slow each other down; only auto takes this into account.
			if strategy == "auto" {
				timeline, err := Simulate(g, made, H200(), profile)
				require.NoError(t, err)
				for k := 1; k < n; k++ {
					require.Less(t, timeline.Nodes[k-1].Start, timeline.Nodes[k].Start, "an engine that goes on with a stream keeps the order")
				}
				require.LessOrEqual(t, made.Stats.MakespanUS, 1.02*(n*1000+400+n*1000), "%d streams", streams)
			}
		}
	}
}

func TestWhatHasTheLongestWayToGoIsCopiedFirst(t *testing.T) {
	b := dag.New("tails")
	profile := &Profile{Nodes: map[string]float64{"up_large": 1000, "up_small": 2, "long": 800, "short": 20}}
	end := func(size int64, name, kernel string) {
		host, device, result := b.Host("h_"+name, dag.U8, size), b.Device("d_"+name, dag.U8, size), b.Device("r_"+name, dag.U8, size)
		b.Copy("up_"+name, dag.Range{Buffer: device, Hi: size}, dag.Range{Buffer: host, Hi: size})
		b.Node(dag.Node{Name: kernel, Kind: dag.Task}, b.In(device), b.Out(result))
	}
	end(1<<20, "large", "short")
	end(1<<10, "small", "long")
	g, err := b.Graph()
	require.NoError(t, err)
	made, err := New(context.Background(), g, Options{Strategy: "list", Profile: profile})
	require.NoError(t, err)
	require.Equal(t, []string{"up_small", "up_large"}, submitted(g, made, plan.Upload))
	require.Less(t, made.Stats.MakespanUS, 1050.0)
}

// Eight chains of three kernels that fill the device, each with a download three times as long as a kernel: the first download must
// not wait until all chains have come as far.
func TestDownloadsBeginBeforeAllKernelsEnd(t *testing.T) {
	const chains, us, bytes = 8, 30.0, 5_000_000
	b := dag.New("chains")
	host, device := b.Host("h", dag.U8, chains*bytes), b.Device("d", dag.U8, chains*bytes)
	for step := range 3 {
		for c := range int64(chains) {
			part := dag.Range{Buffer: device, Lo: c * bytes, Hi: (c + 1) * bytes}
			b.Node(dag.Node{Name: fmt.Sprintf("k%d.%d", step, c), Kind: dag.Task, HasCost: true, CostUS: us,
				Work: dag.Work{Blocks: 1 << 20, Threads: 256}}, part.InOut())
		}
	}
	for c := range int64(chains) {
		b.Copy(fmt.Sprintf("down.%d", c), dag.Range{Buffer: host, Lo: c * bytes, Hi: (c + 1) * bytes}, dag.Range{Buffer: device, Lo: c * bytes, Hi: (c + 1) * bytes})
	}
	g, err := b.Graph()
	require.NoError(t, err)
	m := H200()
	download := bytes / m.DeviceToHost
	for _, streams := range []int{2, 4, 8} {
		plan, err := New(context.Background(), g, Options{Streams: streams, Machine: m})
		require.NoError(t, err)
		assert.Less(t, plan.Stats.MakespanUS, 3*us+chains*download+6*us, "%d streams", streams)
	}
}
