// Tests of the ranks of copies that queue for an engine, of streams that nodes are bound to, and of streams that run kernels.

package place

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/planner/internal/plantest"
	"github.com/dagrun/dagrun/planner/model"
	"github.com/dagrun/dagrun/planner/plan"
)

func TestQueuedRanksFallAlongDependencies(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := plantest.Mixed(t, rapid.Uint64().Draw(t, "seed"), rapid.IntRange(1, 60).Draw(t, "nodes"))
		machine := *model.H200()
		machine.CopyEngines = rapid.IntRange(1, 3).Draw(t, "engines")
		p, err := NewProblem(context.Background(), g, &machine, model.Durations(g, &machine, nil), 4)
		require.NoError(t, err)
		plain := make([]float64, g.Len())
		for k := len(p.order) - 1; k >= 0; k-- {
			i := p.order[k]
			for _, s := range p.succs(i) {
				plain[i] = max(plain[i], plain[s])
				require.GreaterOrEqual(t, p.rank[i], p.rank[s]+p.duration[i])
			}
			plain[i] += p.duration[i]
			require.GreaterOrEqual(t, p.rank[i], plain[i])
		}
	})
}

func TestRanksTakeTurnsOfCopies(t *testing.T) {
	b := dag.New("ranks")
	host, device := b.Host("h", dag.U8, 4000), b.Device("d", dag.U8, 4000)
	part := func(buffer int32, k int64) dag.Range {
		return dag.Range{Buffer: dag.BufferID(buffer), Lo: 1000 * k, Hi: 1000 * (k + 1)}
	}
	for k := range int64(2) {
		b.Copy(fmt.Sprintf("up.%d", k), part(int32(device), k), part(int32(host), k))
	}
	for k := range int64(2) {
		b.Copy(fmt.Sprintf("down.%d", k), part(int32(host), 2+k), part(int32(device), k))
	}
	g, err := b.Graph()
	require.NoError(t, err)
	ranks := func(m *model.Machine) []float64 {
		p, err := NewProblem(context.Background(), g, m, []float64{5, 5, 10, 10}, 8)
		require.NoError(t, err)
		return p.rank
	}
	m := plantest.Free()
	assert.Equal(t, []float64{25, 15, 20, 10}, ranks(m), "what is declared first is to be ready first")
	m.CopyEngines = 2
	assert.Equal(t, []float64{15, 15, 10, 10}, ranks(m), "an engine for each")
	assert.Equal(t, []float64{15, 15, 10, 10}, ranks(model.Unit()), "copies of this machine do not contend")
}

// Nodes that are bound to one stream must run on one device, with one priority.
func TestBindingsThatConflict(t *testing.T) {
	for want, change := range map[string]func(n *dag.Node){
		"": func(*dag.Node) {},
		`stream 0: "a" runs on device 0 and "b" on device 1: conflicting stream bindings`: func(n *dag.Node) { n.Device = 1 },
		`stream 0: "a" has normal priority and "b" high: conflicting stream bindings`:     func(n *dag.Node) { n.Priority = dag.High },
		`stream 0: "a" runs on device 0 and "b" on device 2: conflicting stream bindings`: func(n *dag.Node) { n.Device, n.Priority = 2, dag.Low },
	} {
		b := dag.New("bound")
		b.Stream(b.Task("a"), 0)
		second := b.Task("b")
		b.Stream(second, 0)
		g, err := b.Graph()
		require.NoError(t, err)
		change(&g.Nodes[second])
		_, err = NewProblem(context.Background(), g, model.Unit(), model.Durations(g, model.Unit(), nil), 2)
		if want == "" {
			require.NoError(t, err)
			continue
		}
		require.ErrorIs(t, err, ErrStreamConflict)
		require.EqualError(t, err, want)
	}
}

// Streams that only copy do not count, nor do those of other devices and priorities.
func TestComputingStreams(t *testing.T) {
	b := dag.New("computing")
	x, y, h := b.Device("x", dag.U8, 4), b.Device("y", dag.U8, 4), b.Host("h", dag.U8, 4)
	b.Copy("up", b.Whole(x), b.Whole(h))
	b.Task("a")
	b.Task("b")
	b.Task("c")
	b.Copy("over", b.Whole(y), b.Whole(x))
	g, err := b.Graph()
	require.NoError(t, err)
	launch := func(nodes ...dag.NodeID) plan.Stream {
		s := plan.Stream{}
		for _, node := range nodes {
			s.Ops = append(s.Ops, plan.Op{Kind: plan.Launch, Node: node}, plan.Op{Kind: plan.Record, Node: node})
		}
		return s
	}
	p := &plan.Plan{Streams: []plan.Stream{launch(0), launch(0, 1, 2), launch(3), {}}}
	require.Equal(t, 2, Computing(g, p))
	p.Streams[2].Priority = dag.High
	require.Equal(t, 1, Computing(g, p))
	p.Streams[2].Priority, p.Streams[2].Device = p.Streams[1].Priority, 1
	require.Equal(t, 1, Computing(g, p))
	p.Streams[1].Device = 1
	require.Equal(t, 2, Computing(g, p))
	require.Zero(t, Computing(g, &plan.Plan{Streams: []plan.Stream{launch(0, 4)}}))
}
