// Tests of the order that a graph's edges give, where a node's clock is needed after the next node of its stream has one.

package proof

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/planner/plan"
)

// Node d comes after a, and c, which follows a on its stream, after x. That does not order x before d.
func TestEdgesFromANodeDoNotCountForTheNextOnItsStream(t *testing.T) {
	b := dag.New("edges")
	shared := b.Device("shared", dag.U8, 4)
	for _, name := range []string{"a", "b", "x", "z", "y", "c", "d"} {
		switch name {
		case "x":
			b.Task(name, b.Out(shared))
		case "d":
			b.Task(name, b.In(shared))
		default:
			b.Task(name)
		}
	}
	g, err := b.Graph()
	require.NoError(t, err)
	p := byHand(t, g, "0 a, 1 b, 2 x, 3 z, 3 y, 0 c, 1 d")
	p.Memory = []plan.Placement{{Buffer: shared, Bytes: 4}}
	const nodeA, nodeB, nodeX, nodeZ, nodeY, nodeC, nodeD = 0, 1, 2, 3, 4, 5, 6
	edges := []plan.GraphEdge{{From: nodeA, To: nodeY}, {From: nodeZ, To: nodeY}, {From: nodeY, To: nodeC}, {From: nodeX, To: nodeC}, {From: nodeA, To: nodeD}, {From: nodeB, To: nodeD}}
	err = VerifyEdges(g, p, edges)
	require.ErrorIs(t, err, ErrHazard)
	require.EqualError(t, err, `"d" (stream 1) is not ordered after "x" (stream 2), which it depends on (RAW shared): add an edge from "x" to "d"`)
	require.NoError(t, VerifyEdges(g, p, append(edges, plan.GraphEdge{From: nodeC, To: nodeD})))
}

// Under sync: explicit, edges must keep what after: and the layout need. That leaves races, which are said last.
func TestEdgesOfAnExplicitSchedule(t *testing.T) {
	b := dag.New("explicit")
	b.Sync(dag.SyncExplicit)
	x, y := b.Device("x", dag.U8, 4), b.Device("y", dag.U8, 4)
	b.Task("a", b.Out(x))
	b.After(b.Task("b", b.In(x)), 0)
	b.Task("c", b.Out(y))
	g, err := b.Graph()
	require.NoError(t, err)
	p := byHand(t, g, "0 a, 1 b, 2 c")
	p.Memory = []plan.Placement{{Buffer: x, Bytes: 4}, {Buffer: y, Offset: 256, Bytes: 4}}
	require.NoError(t, VerifyEdges(g, p, []plan.GraphEdge{{From: 0, To: 1}}))
	const missing = `"b" (stream 1) is not ordered after "a" (stream 0), which it depends on (`
	err = VerifyEdges(g, p, nil)
	require.EqualError(t, err, missing+`after): add an edge from "a" to "b"`)
	require.NotErrorIs(t, err, ErrRace)
	shared := *p
	shared.Memory = []plan.Placement{{Buffer: x, Bytes: 4}, {Buffer: y, Bytes: 4}}
	err = VerifyEdges(g, &shared, []plan.GraphEdge{{From: 0, To: 1}})
	require.ErrorIs(t, err, plan.ErrMemory)
	require.ErrorContains(t, err, `: add an edge from "b" to "c"`)
	require.NoError(t, VerifyEdges(g, &shared, []plan.GraphEdge{{From: 0, To: 1}, {From: 1, To: 2}}))
	early := *p
	early.Memory = p.Memory[:1]
	require.EqualError(t, VerifyEdges(g, &early, []plan.GraphEdge{{From: 0, To: 1}}), `the plan does not place "y": lay the memory out again`)

	g.Nodes[1].After = nil
	require.ErrorIs(t, VerifyEdges(g, p, nil), ErrRace)
	err = VerifyEdges(g, p, []plan.GraphEdge{{From: 0, To: 1}})
	require.ErrorIs(t, err, ErrRace, "an edge declares nothing")
	require.EqualError(t, err, missing+`RAW x): add "after: [a]" to "b"`)
	require.ErrorIs(t, VerifyEdges(g, &shared, []plan.GraphEdge{{From: 0, To: 1}}), plan.ErrMemory, "all else comes before races")

	p.Order = p.Order[1:]
	const short = "the order has 2 entries, the streams have 3 ops"
	require.EqualError(t, VerifyEdges(g, p, nil), short)
	require.EqualError(t, VerifyEarly(g, p, nil, nil, nil), short)
	_, err = Pairs(g, p, 0)
	require.EqualError(t, err, short)
}

// The edges of a body must keep apart what shares bytes of the layout around it.
func TestEdgesOfABody(t *testing.T) {
	b := dag.New("body")
	x, y, z := b.Device("x", dag.U8, 256), b.Device("y", dag.U8, 256), b.Device("z", dag.U8, 256)
	b.Repeat("loop", dag.Loop{Times: 2}, func() {
		b.Task("make_y", b.Out(y))
		b.Task("use_y", b.In(y), b.Out(x))
		b.Task("make_z", b.Out(z))
	})
	g, err := b.Graph()
	require.NoError(t, err)
	body := g.Nodes[0].Control.Bodies[0]
	p := byHand(t, body, "0 make_y, 0 use_y, 1 make_z")
	memory := []plan.Placement{{Buffer: y, Offset: 256, Bytes: 256}, {Buffer: z, Offset: 256, Bytes: 256}}
	edges := []plan.GraphEdge{{From: 0, To: 1}}
	err = VerifyBodyEdges(body, p, edges, memory)
	require.ErrorIs(t, err, plan.ErrMemory)
	require.ErrorContains(t, err, `: add an edge from "use_y" to "make_z"`)
	require.NoError(t, VerifyBodyEdges(body, p, append(edges, plan.GraphEdge{From: 1, To: 2}), memory))
	require.NoError(t, VerifyBodyEdges(body, p, edges, memory[:1]))
	require.EqualError(t, VerifyBodyEdges(body, p, nil, memory),
		`"use_y" (stream 0) is not ordered after "make_y" (stream 0), which it depends on (RAW y): add an edge from "make_y" to "use_y"`)
	for _, wrong := range []dag.BufferID{-1, 3} {
		memory[1].Buffer = wrong
		err := VerifyBodyEdges(body, p, edges, memory)
		require.ErrorIs(t, err, plan.ErrMemory)
		require.EqualError(t, err, fmt.Sprintf("placement 1 of the layout is of buffer %d, but there are 3 buffers", wrong))
	}
}
