// Tests of the edges of a CUDA graph: they are exact and minimal, and every wrong list is refused.

package planner

import (
	"context"
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/planner/internal/plantest"
	"github.com/dagrun/dagrun/planner/plan"
	"github.com/dagrun/dagrun/planner/proof"
)

func TestGraphEdgesOfSaxpy(t *testing.T) {
	g, p := saxpy(t)
	edges, err := GraphEdges(g, p)
	require.NoError(t, err)
	require.Equal(t, []plan.GraphEdge{{From: plan.GraphRoot, To: 0}, {From: plan.GraphRoot, To: 1}, {From: 0, To: 2}, {From: 1, To: 2}, {From: 2, To: 3}}, edges)
	require.NoError(t, proof.VerifyEdges(g, p, edges))
	require.NoError(t, proof.VerifyEdges(g, p, []plan.GraphEdge{{From: 0, To: 2}, {From: 1, To: 2}, {From: 2, To: 3}, {From: 2, To: 3}, {From: 0, To: 3}}), "more than needed is right too")
}

func TestVerifyEdgesNamesEachFault(t *testing.T) {
	g, p := saxpy(t)
	for _, c := range []struct {
		name  string
		edges []plan.GraphEdge
		fault error
		text  string
	}{
		{"none", nil, proof.ErrHazard, `"saxpy" (stream 0) is not ordered after "up_x" (stream 0)`},
		{"hazard", []plan.GraphEdge{{From: 0, To: 2}, {From: 2, To: 3}}, proof.ErrHazard,
			`"saxpy" (stream 0) is not ordered after "up_y" (stream 1), which it depends on (RAW d_y): add an edge from "up_y" to "saxpy"`},
		{"no such node", []plan.GraphEdge{{From: 0, To: 4}}, plan.ErrOtherGraph, `edge 0 links nodes 0 and 4, but the graph has 4 nodes`},
		{"root as successor", []plan.GraphEdge{{From: 0, To: plan.GraphRoot}}, plan.ErrOtherGraph, `edge 0 links nodes 0 and -1, but the graph has 4 nodes`},
		{"wild", []plan.GraphEdge{{From: math.MinInt32, To: math.MaxInt32}}, plan.ErrOtherGraph, `edge 0 links nodes -2147483648 and 2147483647, but the graph has 4 nodes`},
		{"itself", []plan.GraphEdge{{From: 2, To: 2}}, proof.ErrDeadlock, `edge 0 makes "saxpy" wait for "saxpy", which the plan submits later: remove the edge`},
		{"backwards", []plan.GraphEdge{{From: 3, To: 2}}, proof.ErrDeadlock, `edge 0 makes "saxpy" wait for "down", which the plan submits later: remove the edge`},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := proof.VerifyEdges(g, p, c.edges)
			require.ErrorIs(t, err, c.fault)
			require.ErrorContains(t, err, c.text)
		})
	}
}

// Stream order that no hazard requires counts too: buffers that share bytes rely on it.
func TestVerifyEdgesWantsStreamOrder(t *testing.T) {
	b := dag.New("shared")
	for _, name := range []string{"x", "y"} {
		d := b.Device("d_"+name, dag.U8, 512)
		b.Task("make_"+name, b.Out(d))
		b.Task("use_"+name, b.In(d))
	}
	g, err := b.Graph()
	require.NoError(t, err)
	p := plantest.DullPlan(g, 1, make([]int32, 4), []int32{0, 1, 2, 3})
	p.Memory[1].Offset = 0
	require.NoError(t, Verify(g, p))
	edges, err := GraphEdges(g, p)
	require.NoError(t, err)
	require.Equal(t, []plan.GraphEdge{{From: 0, To: 1}, {From: 1, To: 2}, {From: 2, To: 3}}, edges)
	require.NoError(t, proof.VerifyEdges(g, p, edges))
	err = proof.VerifyEdges(g, p, []plan.GraphEdge{{From: 0, To: 1}, {From: 2, To: 3}})
	require.ErrorIs(t, err, proof.ErrHazard)
	require.EqualError(t, err, `"make_y" does not come after "use_x", which is before it on stream 0: add an edge from "use_x" to "make_y"`)
}

// A record that directly follows a wait also covers what the wait waited for.
func TestGraphEdgesOfRecordAfterWait(t *testing.T) {
	b := dag.New("relay")
	for _, name := range []string{"a", "b", "c"} {
		b.Task(name)
	}
	b.At(2).After = []dag.NodeID{0}
	g, err := b.Graph()
	require.NoError(t, err)
	p := &Plan{
		Streams: []plan.Stream{
			{Ops: []plan.Op{{Kind: plan.Launch, Node: 0, Event: -1}, {Kind: plan.Record, Node: 0, Event: 0}}},
			{Ops: []plan.Op{{Kind: plan.Launch, Node: 1, Event: -1}, {Kind: plan.Wait, Node: 0, Event: 0}, {Kind: plan.Record, Node: 1, Event: 1}}},
			{Ops: []plan.Op{{Kind: plan.Wait, Node: 1, Event: 1}, {Kind: plan.Launch, Node: 2, Event: -1}}},
		},
		Order:  []int32{0, 0, 1, 1, 1, 2, 2},
		Events: 2,
	}
	require.NoError(t, Verify(g, p))
	edges, err := GraphEdges(g, p)
	require.NoError(t, err)
	require.Equal(t, []plan.GraphEdge{{From: plan.GraphRoot, To: 0}, {From: plan.GraphRoot, To: 1}, {From: 0, To: 2}, {From: 1, To: 2}}, edges)
	require.NoError(t, proof.VerifyEdges(g, p, edges))
}

func TestGraphEdgesAreTheReduction(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := plantest.DrawGraph(t, 14, false)
		p := plantest.DrawDullPlan(t, g, 5)
		if rapid.Bool().Draw(t, "wide") {
			p = plantest.Spread(p)
		}
		order, _, _ := plantest.Launches(p, g.Len())
		edges, err := GraphEdges(g, p)
		require.NoError(t, err)
		want := plantest.BruteBefore(g, p)
		require.Equal(t, want, plantest.BruteClosure(g.Len(), order, edges))
		roots := map[int32]bool{}
		for i := range g.Len() {
			roots[int32(i)] = true
		}
		for k, e := range edges {
			if e.From == plan.GraphRoot {
				require.True(t, roots[int32(e.To)])
				continue
			}
			delete(roots, int32(e.To))
			fewer := slices.Delete(slices.Clone(edges), k, k+1)
			require.NotEqual(t, want, plantest.BruteClosure(g.Len(), order, fewer), "edge %v can be left out", e)
		}
		linked := 0
		for _, e := range edges {
			if e.From == plan.GraphRoot {
				linked++
			}
		}
		if len(roots) > 1 {
			require.Len(t, roots, linked)
		} else {
			require.Zero(t, linked)
		}
	})
}

func TestVerifyEdgesAgreesWithBruteForce(t *testing.T) {
	verdicts := map[bool]int{}
	rapid.Check(t, func(t *rapid.T) {
		g := plantest.DrawGraph(t, 10, false)
		p := plantest.DrawDullPlan(t, g, 4)
		rng := plantest.DrawSource(t)
		p.Stats.PeakDeviceBytes = 1 << 20
		for range plantest.Between(rng, 0, 2) {
			p.Memory[rng.IntN(len(p.Memory))].Offset = int64(plantest.Between(rng, 0, 12)) * 256
		}
		if rng.IntN(2) == 0 {
			p = plantest.Spread(p)
		}
		edges, err := GraphEdges(g, p)
		require.NoError(t, err)
		for range plantest.Between(rng, 0, 2) {
			if len(edges) > 0 {
				k := rng.IntN(len(edges))
				edges = slices.Delete(edges, k, k+1)
			}
		}
		order, stream, at := plantest.Launches(p, g.Len())
		before := plantest.BruteClosure(g.Len(), order, edges)
		want := true
		for _, e := range g.Edges() {
			want = want && before[e.From][e.To]
		}
		for _, a := range order {
			for _, b := range order {
				if stream[a] == stream[b] && at[a] < at[b] {
					want = want && before[a][b]
				}
			}
		}
		for i, a := range p.Memory {
			for _, b := range p.Memory[:i] {
				if a.Offset < b.Offset+b.Bytes && b.Offset < a.Offset+a.Bytes && plantest.BruteAlive(g, before, int32(a.Buffer), int32(b.Buffer)) {
					want = false
				}
			}
		}
		err = proof.VerifyEdges(g, p, edges)
		verdicts[want]++
		if (err == nil) != want {
			t.Fatalf("VerifyEdges says %v, brute force %v", err, want)
		}
	})
	require.Positive(t, verdicts[true])
	require.Positive(t, verdicts[false])
}

func TestVerifyEarlyNamesEachFault(t *testing.T) {
	b := dag.New("early")
	d := b.Device("d", dag.U8, 512)
	for _, name := range []string{"a", "b", "c"} {
		b.Task(name, b.InOut(d))
	}
	g, err := b.Graph()
	require.NoError(t, err)
	p, err := New(context.Background(), g, Options{Strategy: "serial"})
	require.NoError(t, err)
	g.Nodes[0].Kind, g.Nodes[1].Kind, g.Nodes[2].Kind = dag.Kernel, dag.Kernel, dag.Memset
	yes := func(dag.NodeID) bool { return true }
	edges := []plan.GraphEdge{{From: 0, To: 1}, {From: 1, To: 2}}
	require.NoError(t, proof.VerifyEarly(g, p, nil, []dag.NodeID{1}, yes))
	require.NoError(t, proof.VerifyEarly(g, p, edges, []dag.NodeID{1}, yes))
	for _, c := range []struct {
		edges []plan.GraphEdge
		early dag.NodeID
		waits func(dag.NodeID) bool
		text  string
	}{
		{nil, 1, func(dag.NodeID) bool { return false }, `"b" begins before the end of "a", but its code does not first wait for that: launch "b" when all before it has ended`},
		{nil, 1, nil, `"b" begins before the end of "a", but its code does not first wait for that: launch "b" when all before it has ended`},
		{nil, 0, yes, `"a" begins early, but no launch comes just before it on its stream: launch "a" when all before it has ended`},
		{nil, 2, yes, `"c" begins early, but it is not a kernel: launch "c" when all before it has ended`},
		{[]plan.GraphEdge{{From: plan.GraphRoot, To: 1}, {From: 0, To: 1}}, 1, yes, `"b" begins early, but it does not depend on one other node alone: launch "b" when all before it has ended`},
		{edges, 0, yes, `"a" begins early, but it does not depend on one other node alone: launch "a" when all before it has ended`},
		{edges, 3, yes, `node 3 begins early, but the graph has 3 nodes`},
	} {
		require.EqualError(t, proof.VerifyEarly(g, p, c.edges, []dag.NodeID{c.early}, c.waits), c.text)
	}
	require.ErrorIs(t, proof.VerifyEarly(g, p, nil, []dag.NodeID{2}, yes), proof.ErrEarly)
	g.Nodes[0].Kind = dag.Memcpy
	require.EqualError(t, proof.VerifyEarly(g, p, nil, []dag.NodeID{1}, yes), `"b" begins before the end of "a", which is not a kernel: launch "b" when all before it has ended`)
}
