// Tests of what the simulator adds where work changes engines and where branches of a graph wait for each other, and of the rates that few blocks reach.

package model_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/planner/internal/plantest"
	"github.com/dagrun/dagrun/planner/model"
)

func TestSimulateChangesOfEngines(t *testing.T) {
	b := dag.New("changes")
	host, device, result := b.Host("h", dag.U8, 9000), b.Device("d", dag.U8, 9000), b.Host("r", dag.U8, 9000)
	b.Copy("up", b.Whole(device), b.Whole(host))
	b.Task("first", b.InOut(device))
	b.Task("second", b.InOut(device))
	b.Copy("down", b.Whole(result), b.Whole(device))
	g, err := b.Graph()
	require.NoError(t, err)
	m := plantest.Free()
	m.GapUS, m.GraphNodeUS, m.EngineUS = 1, 0.5, 3
	one := plantest.ByHand(t, g, "0 0 0 0", "launch up, launch first, launch second, launch down")
	assert.Equal(t, "up 0-10 start\nfirst 13-14 stream order up\nsecond 15-16 stream order first\ndown 19-29 stream order second\n", simulated(t, g, one, m))
	two := plantest.ByHand(t, g, "0 0 1 1 1 1 0 0", "launch up, record 0, wait 1, launch down", "wait 0, launch first, launch second, record 1")
	assert.Equal(t, "up 0-10 start\nfirst 13-14 wait up\nsecond 15-16 stream order first\ndown 19-29 wait second\n", simulated(t, g, two, m),
		"waits are no different, and a copy after a kernel is not delayed twice for the copy before that")
	timeline, err := model.SimulateGraph(g, one, m, nil)
	require.NoError(t, err)
	assert.InDelta(t, 10+3+1+0.5+1+3+10, timeline.MakespanUS, 1e-9)
	m.EngineUS = 0.25
	assert.Equal(t, "up 0-10 start\nfirst 11-12 stream order up\nsecond 13-14 stream order first\ndown 15-25 stream order second\n", simulated(t, g, one, m),
		"never less than the gap")
}

func TestSimulateALateChangeOfEnginesAfterAnEarlierEnd(t *testing.T) {
	b := dag.New("late")
	host, device, other := b.Host("h", dag.U8, 9000), b.Device("d", dag.U8, 9000), b.Device("o", dag.U8, 8)
	b.Copy("up", b.Whole(device), b.Whole(host))
	b.Task("beside", b.InOut(other))
	b.Task("both", b.InOut(device), b.InOut(other))
	g, err := b.Graph()
	require.NoError(t, err)
	m := plantest.Free()
	m.GapUS, m.EngineUS = 1, 5
	p := plantest.ByHand(t, g, "0 0 1 1 1", "launch up, record 0", "launch beside, wait 0, launch both")
	g.Nodes[1].CostUS, g.Nodes[1].HasCost = 12, true
	assert.Equal(t, "up 0-10 start\nbeside 0-12 start\nboth 15-16 wait up\n", simulated(t, g, p, m), "the kernel ended last, but the copy is what the node waits for")
}

func TestSimulateWaitsBetweenBranchesOfAGraph(t *testing.T) {
	b := dag.New("branches")
	x, y := b.Device("x", dag.U8, 8), b.Device("y", dag.U8, 8)
	kernel := func(name string, bytes int64, accesses ...dag.Access) {
		b.Node(dag.Node{Name: name, Kind: dag.Kernel, Work: dag.Work{Bytes: bytes, Blocks: 1, Threads: 32}}, accesses...)
	}
	kernel("a", 8, b.InOut(x))
	kernel("b", 0, b.InOut(y))
	kernel("c", 8, b.InOut(x), b.InOut(y))
	kernel("d", 8, b.In(x), b.InOut(y))
	g, err := b.Graph()
	require.NoError(t, err)
	m := plantest.Free()
	m.GraphEdgeUS = 2
	p := plantest.ByHand(t, g, "0 0 1 1 1 0 0 1", "launch a, record 0, wait 1, launch d", "launch b, wait 0, launch c, record 1")
	p.Order = []int32{0, 0, 1, 1, 1, 1, 0, 0}
	timeline, err := model.SimulateGraph(g, p, m, nil)
	require.NoError(t, err)
	starts := make([]float64, 0, 4)
	for _, s := range timeline.Nodes {
		starts = append(starts, s.Start)
	}
	assert.InDeltaSlice(t, []float64{0, 0, 1 + 2, 4 + 2}, starts, 1e-9, "c waits for a, and d for c")
	timeline, err = model.Simulate(g, p, m, nil)
	require.NoError(t, err)
	assert.InDelta(t, 3, timeline.MakespanUS, 1e-9, "streams have sync_us")
}

func TestFewBlocksReachPartOfTheMemory(t *testing.T) {
	b := dag.New("rates")
	x := b.Device("x", dag.U8, 1<<20)
	kernel := func(name string, work dag.Work) {
		b.Node(dag.Node{Name: name, Kind: dag.Kernel, Work: work}, b.InOut(x))
	}
	kernel("one block", dag.Work{Bytes: 1 << 20, Blocks: 1, Threads: 256, Steps: 4})
	kernel("four blocks", dag.Work{Bytes: 1 << 20, Blocks: 4, Threads: 256, Steps: 4})
	kernel("many", dag.Work{Bytes: 1 << 20, Blocks: 4096, Threads: 256, Steps: 4})
	b.Memset("set", b.Whole(x), 0)
	g, err := b.Graph()
	require.NoError(t, err)
	m := model.H200()
	m.MemoryPerSM, m.Memory, m.StepUS, m.FillUS = 1<<17, 1<<22, 0.1, 0.7
	assert.InDeltaSlice(t, []float64{8.4, 2.4, 0.65, 0.95}, model.Durations(g, m, nil), 1e-9)
}
