// Tests of how long each of many replays takes, and of what the host takes to submit nodes.

package model_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/planner"
	"github.com/dagrun/dagrun/planner/internal/plantest"
	"github.com/dagrun/dagrun/planner/model"
)

// repeated predicts one of many replays as streams and as a graph, and one alone as streams.
func repeated(t *testing.T, g *dag.Graph, p *planner.Plan, m *model.Machine) (streams, graph, alone float64) {
	t.Helper()
	streams, err := model.Repeated(g, p, m, nil, false)
	require.NoError(t, err)
	graph, err = model.Repeated(g, p, m, nil, true)
	require.NoError(t, err)
	timeline, err := model.Simulate(g, p, m, nil)
	require.NoError(t, err)
	return streams, graph, timeline.MakespanUS
}

func TestRepeatedTakesWhatTheSlowerOfHostAndDeviceTakes(t *testing.T) {
	m := plantest.Model() // a launch takes 2, a record or wait 0.5, a gap 1, a gap in a graph 0.5
	m.GraphLaunchUS = 3

	// The host submits for 4 us while the device works for 31.
	g := plantest.KernelGraph(t, plantest.KernelSpec{Us: 10}, plantest.KernelSpec{Us: 20})
	streams, graph, alone := repeated(t, g, plantest.ByHand(t, g, "0 0", "launch a, launch b"), m)
	assert.Equal(t, 32.0, streams, "two nodes and a gap after each")
	assert.Equal(t, 33.5, graph, "two nodes, a gap and a launch of the graph")
	assert.Equal(t, 33.0, alone, "the device waits for the first launch")

	// The host submits for 4 us what the device does in 2.
	g = plantest.KernelGraph(t, plantest.KernelSpec{Us: 0.5}, plantest.KernelSpec{Us: 0.5})
	streams, _, alone = repeated(t, g, plantest.ByHand(t, g, "0 0", "launch a, launch b"), m)
	assert.Equal(t, 4.0, streams)
	assert.Equal(t, 4.5, alone, "and then the last node runs")

	// Fork and join are two records and two waits.
	streams, _, _ = repeated(t, g, plantest.ByHand(t, g, "0 1", "launch a", "launch b"), m)
	assert.Equal(t, 6.0, streams)

	streams, graph, alone = repeated(t, g, plantest.ByHand(t, g, "0 0", "launch a, launch b"), model.Unit())
	assert.Equal(t, []float64{1, 1, 1}, []float64{streams, graph, alone})
}

func TestCopiesAreSubmittedInLessTime(t *testing.T) {
	b := dag.New("copies")
	host, device := b.Host("h", dag.U8, 18000), b.Device("d", dag.U8, 18000)
	b.Copy("up", b.Whole(device), b.Whole(host))
	b.Copy("down", b.Whole(host), b.Whole(device))
	b.Cost(b.Task("work"), 1)
	g, err := b.Graph()
	require.NoError(t, err)
	p := plantest.ByHand(t, g, "1 0 0", "launch up, launch down", "launch work")
	m := plantest.Model()
	starts := func() []float64 {
		timeline, err := model.Simulate(g, p, m, nil)
		require.NoError(t, err)
		require.GreaterOrEqual(t, timeline.MakespanUS, model.LowerBound(g, m, nil, 2).US())
		return []float64{timeline.Host[0].End, timeline.Host[1].End, timeline.Host[2].End}
	}
	assert.Equal(t, []float64{2, 4, 6}, starts())
	m.CopyLaunchUS = 0.5
	assert.Equal(t, []float64{2, 2.5, 3}, starts())
	assert.Equal(t, 3.0+1, model.LowerBound(g, m, nil, 2).HostUS, "and the shortest node")
}

func TestSetsAreSubmittedInLessTimeThanCopies(t *testing.T) {
	b := dag.New("sets")
	device := b.Device("d", dag.U8, 18000)
	b.Memset("set", b.Whole(device), 0)
	b.Cost(b.Task("work"), 1)
	g, err := b.Graph()
	require.NoError(t, err)
	m := plantest.Model() // a launch takes 2
	m.CopyLaunchUS = 0.5
	timeline, err := model.Simulate(g, plantest.ByHand(t, g, "0 0", "launch set, launch work"), m, nil)
	require.NoError(t, err)
	assert.InDeltaSlice(t, []float64{0.3, 2.3}, []float64{timeline.Host[0].End, timeline.Host[1].End}, 1e-9)
}

// The ranks that the first and the last of a line exchange with may not exist.
func TestAnExchangeWithNobodyTakesNoTime(t *testing.T) {
	b := dag.New("edge")
	x := b.Device("x", dag.F32, 4)
	b.Cost(b.Task("first", dag.Access{Range: b.Whole(x), Mode: dag.ReadWrite}), 5)
	b.Communicate("halo", dag.Communication{Verb: dag.Exchange, Transfers: []dag.Transfer{{Rank: -1, Range: b.Slice(x, 0, 1)}, {Receive: true, Rank: 1, Range: b.Slice(x, 3, 4)}}})
	b.Cost(b.Task("last", dag.Access{Range: b.Whole(x), Mode: dag.ReadWrite}), 5)
	g, err := b.Graph()
	require.NoError(t, err)
	m := plantest.Model() // a launch takes 2, a gap 1
	timeline, err := model.Simulate(g, plantest.ByHand(t, g, "0 0 0", "launch first, launch halo, launch last"), m, nil)
	require.NoError(t, err)
	assert.Equal(t, 4.0, timeline.Host[2].End, "two launches")
	assert.Equal(t, 2.0+5+1+5, timeline.MakespanUS, "and one gap")
}

func TestWaitsInGraphs(t *testing.T) {
	m := plantest.Model()
	m.GraphEdgeUS, m.GraphIssueUS, m.GraphNodeUS = 1, 0, 0
	b := dag.New("join")
	x := b.Device("x", dag.U8, 3)
	part := func(k int64) dag.Range { return dag.Range{Buffer: x, Lo: k, Hi: k + 1} }
	for k, name := range []string{"a", "b", "c"} {
		id := b.Task(name, dag.Access{Range: part(int64(k)), Mode: dag.Write})
		b.Cost(id, 10)
		b.At(id).Work = dag.Work{Bytes: 1} // no empty kernel
	}
	b.Cost(b.Task("d", dag.Access{Range: b.Whole(x), Mode: dag.Read}), 10)
	g, err := b.Graph()
	require.NoError(t, err)
	p := plantest.ByHand(t, g, "0 1 1 2 2 0 0 0", "launch a, wait 0, wait 1, launch d", "launch b, record 0", "launch c, record 1")
	timeline, err := model.SimulateGraph(g, p, m, nil)
	require.NoError(t, err)
	assert.InDelta(t, 10+1.741, timeline.Nodes[3].Start, 0.001, "two waits take 2 to the power of 0.8")
}
