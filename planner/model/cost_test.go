// Tests of the cost model: engines, durations, shares.

package model_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/planner/model"
	"github.com/dagrun/dagrun/planner/plan"
)

func TestEngines(t *testing.T) {
	b := dag.New("engines")
	host, host2 := b.Host("h", dag.F32, 4), b.Host("h2", dag.F32, 4)
	device, device2 := b.Device("d", dag.F32, 4), b.Device("d2", dag.F32, 4)
	other := b.Buffer(dag.Buffer{Name: "o", Place: dag.Device, Device: 1, DType: dag.F32, Shape: []int64{4}})
	whole := func(buffer dag.BufferID) dag.Range { return dag.Range{Buffer: buffer, Hi: 16} }
	b.Copy("up", whole(device), whole(host))
	b.Copy("down", whole(host), whole(device))
	b.Copy("local", whole(device2), whole(device))
	b.Copy("peer", whole(other), whole(device))
	b.Copy("host", whole(host2), whole(host))
	b.Node(dag.Node{Name: "set", Kind: dag.Memset, Set: &dag.Set{Dst: whole(device)}}, b.Out(device))
	b.Node(dag.Node{Name: "hostset", Kind: dag.Memset, Set: &dag.Set{Dst: whole(host)}}, b.Out(host))
	b.Task("task", b.InOut(device))
	g, err := b.Graph()
	require.NoError(t, err)
	var got []string
	for i := range g.Nodes {
		got = append(got, g.Nodes[i].Name+" "+plan.EngineOf(g, dag.NodeID(i)).String())
	}
	assert.Equal(t, []string{"up h2d", "down d2h", "local d2d", "peer peer", "host host", "set compute", "hostset host", "task compute"}, got)
}

func TestDurations(t *testing.T) {
	b := dag.New("durations")
	host := b.Host("h", dag.F32, 1<<20)
	device := b.Device("d", dag.F32, 1<<20)
	b.Copy("up", dag.Range{Buffer: device, Hi: 1 << 22}, dag.Range{Buffer: host, Hi: 1 << 22})
	kernel := func(name string, work dag.Work) {
		b.Node(dag.Node{Name: name, Kind: dag.Kernel, Work: work}, b.InOut(device))
	}
	kernel("wide", dag.Work{Bytes: 41_000_000, Blocks: 1 << 20, Threads: 256})
	kernel("narrow", dag.Work{Bytes: 41_000_000, Blocks: 66, Threads: 512})
	kernel("math", dag.Work{Bytes: 8, Flops: 670_000_000, Blocks: 1 << 20, Threads: 256})
	kernel("tiny", dag.Work{Bytes: 8, Blocks: 1, Threads: 32})
	kernel("unknown", dag.Work{})
	kernel("timed", dag.Work{Blocks: 1, Threads: 1, US: 20})
	kernel("timed but slow", dag.Work{Bytes: 41_000_000, Blocks: 1 << 20, Threads: 256, US: 3})
	costed := b.Task("costed", b.InOut(device))
	b.At(costed).HasCost, b.At(costed).CostUS = true, 12.5
	b.Task("profiled", b.InOut(device))
	g, err := b.Graph()
	require.NoError(t, err)

	profile := &model.Profile{Nodes: map[string]float64{"profiled": 7, "costed": 99}}
	got := model.Durations(g, model.H200(), profile)
	want := []float64{1.8 + float64(1<<22)/55_000, 10, 10, 10, 0.1, 0.1, 20, 10, 99, 7}
	assert.InDeltaSlice(t, want, got, 1e-9)
	assert.Equal(t, []float64{1, 1, 1, 1, 1, 1, 1, 1, 12.5, 1}, model.Durations(g, model.Unit(), nil))

	m := model.H200()
	shares := make([]float64, g.Len())
	for i := range shares {
		shares[i] = m.Share(&g.Nodes[i])
	}
	assert.InDeltaSlice(t, []float64{0, 1, 0.5, 1, 32. / (132 * 512), 0, 1. / (132 * 32), 1, 0, 0}, shares, 1e-9)
}
