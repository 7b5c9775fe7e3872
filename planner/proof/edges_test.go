// Tests of the order that a graph's edges give, where a node's clock is needed after the next node of its stream has one.

package proof

import (
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
