// Tests of removing edges, on a recording made by hand.

package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/internal/recording"
)

// diamond is a graph in which node 0 writes what 1 and 2 read, and 3 reads what 2 writes; 1 and 3 are ordered for nothing. The edge from 0 to 3 is implied.
func diamond() *recording.Process {
	run := func(address uint64, modes uint32) recording.Run {
		return recording.Run{Address: address, Bytes: 16, Modes: modes}
	}
	accesses := [][]recording.Run{
		{run(0x1000, recording.Write)},
		{run(0x1000, recording.Read), run(0x2000, recording.Write)},
		{run(0x1000, recording.Read), run(0x3000, recording.Write)},
		{run(0x3000, recording.Read)},
	}
	p := &recording.Process{Measured: true, Places: map[uint64][]recording.Frame{}, Functions: map[uint64][]recording.FunctionInfo{}, Accesses: map[uint64]*recording.AccessInfo{}}
	info := recording.GraphInfo{Sequence: 2, Graph: 90, Execution: 91}
	p.Functions[7] = []recording.FunctionInfo{{Handle: 7, Name: "kernel"}}
	call := func(kind recording.Kind, args ...uint64) {
		at := uint64(10 + 2*len(p.Calls))
		p.Calls = append(p.Calls, recording.Call{Record: recording.Record{Kind: kind}, Begin: at, End: at + 1, Args: args})
	}
	call(recording.GraphLaunch, 5, 0, 91, 0)
	for i, runs := range accesses {
		body := make([]byte, 80)
		body[0] = 7
		info.Nodes = append(info.Nodes, recording.GraphNode{Node: uint64(50 + i), Body: body})
		p.Accesses[uint64(1+i)] = &recording.AccessInfo{Runs: runs}
		call(recording.NodeAccess, 0, p.Calls[0].Begin, uint64(50+i), uint64(1+i), 7, 0, 0, 0, 0, 0, 0)
	}
	for _, e := range [][2]uint32{{0, 1}, {0, 2}, {1, 3}, {2, 3}, {0, 3}} {
		info.Edges = append(info.Edges, recording.GraphEdge{From: e[0], To: e[1]})
	}
	p.Graphs = []recording.GraphInfo{info}
	return p
}

func TestEachEdgeIsRemovedInTurn(t *testing.T) {
	var out strings.Builder
	require.Zero(t, removeEach(&out, "x.rec", diamond()), out.String())
	require.Equal(t, "x.rec: a graph of 4 nodes and 5 edges, 4 of them implied by no others. Removed in turn: 3 races found, 0 possible (what conflicts was not measured), 1 order nothing that conflicts, 0 missed, 0 false\n", out.String())
}

func TestARaceInTheGraphAsItIsIsFalse(t *testing.T) {
	p := diamond()
	p.Graphs[0].Edges = p.Graphs[0].Edges[1:] // without the edge from 0 to 1
	var out strings.Builder
	require.NotZero(t, removeEach(&out, "x.rec", p))
	require.Contains(t, out.String(), "x.rec: FALSE in the graph as it is: kernel, kernel\n")
}

func TestWhatConflicts(t *testing.T) {
	at := func(address uint64, modes uint32) []recording.Run {
		return []recording.Run{{Address: address, Bytes: 8, Modes: modes}}
	}
	for _, c := range []struct {
		x, y []recording.Run
		want bool
	}{
		{at(0, recording.Write), at(7, recording.Read), true},
		{at(0, recording.Write), at(8, recording.Write), false},
		{at(0, recording.Read), at(0, recording.Read), false},
		{at(0, recording.Atomic), at(0, recording.Atomic), false},
		{at(0, recording.Atomic), at(0, recording.Read), true},
		{append(at(0, recording.Read), at(16, recording.Read)...), at(18, recording.Write), true},
	} {
		require.Equal(t, c.want, overlap(c.x, c.y), "%v %v", c.x, c.y)
		require.Equal(t, c.want, overlap(c.y, c.x), "%v %v", c.y, c.x)
	}
}
