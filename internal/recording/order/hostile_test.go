// Recordings that no recorder writes: they are refused with their offset, or said not to be covered.

package order

import (
	"fmt"
	"testing"

	"github.com/dagrun/dagrun/internal/recording"
	"github.com/stretchr/testify/require"
)

func TestCallsWithTooFewWords(t *testing.T) {
	for kind := recording.Launch; kind <= recording.Green; kind++ {
		need := kind.Words()
		if need == 0 {
			continue
		}
		p := &recording.Process{Calls: []recording.Call{{Record: recording.Record{Kind: kind, Offset: 77}, Begin: 1, End: 2, Args: make([]uint64, need-1)}}}
		_, err := Check(p, Options{Strict: true})
		require.EqualError(t, err, fmt.Sprintf("byte 77: a call (%s) has %d words, and %d are needed", kind, need-1, need))
		_, err = Steps(p)
		require.Error(t, err)
		p.Calls[0].Args = make([]uint64, need)
		_, err = Check(p, Options{Strict: true})
		require.NoError(t, err)
	}
}

func uncoveredGraph(t *testing.T, graphs ...recording.GraphInfo) map[string]int {
	t.Helper()
	p := &recording.Process{Graphs: graphs, Calls: []recording.Call{{Record: recording.Record{Kind: recording.GraphLaunch}, Begin: 10, End: 11, Args: []uint64{0, 0, 5, 0}}}}
	report, err := Check(p, Options{Strict: true})
	require.NoError(t, err)
	return report.Uncovered
}

func TestGraphsThatCannotBe(t *testing.T) {
	empty := []recording.GraphNode{{Node: 1, Type: nodeEmpty}, {Node: 2, Type: nodeEmpty}}
	child := []recording.GraphNode{{Node: 1, Type: nodeChild, Body: body(3)}}
	require.Empty(t, uncoveredGraph(t, recording.GraphInfo{Execution: 5, Nodes: empty, Edges: []recording.GraphEdge{{From: 0, To: 1}}}))
	require.Equal(t, map[string]int{"the edges of 2 nodes form a circle": 1},
		uncoveredGraph(t, recording.GraphInfo{Execution: 5, Nodes: empty, Edges: []recording.GraphEdge{{From: 0, To: 1}, {From: 1, To: 0}}}))
	for _, edge := range []recording.GraphEdge{{From: 2, To: 0}, {From: 0, To: 2}} {
		require.Equal(t, map[string]int{"an edge of a graph that has no such nodes": 1}, uncoveredGraph(t, recording.GraphInfo{Execution: 5, Nodes: empty, Edges: []recording.GraphEdge{edge}}))
	}
	require.Equal(t, map[string]int{"a graph within itself, or of more than 1048576 nodes": 1}, uncoveredGraph(t, recording.GraphInfo{Graph: 3, Execution: 5, Nodes: child}))
	require.Equal(t, map[string]int{"a launch of a graph that is not in the recording": 1}, uncoveredGraph(t, recording.GraphInfo{Sequence: 11, Execution: 5, Nodes: empty}))
	require.Equal(t, map[string]int{"a child graph that is not in the recording": 1}, uncoveredGraph(t, recording.GraphInfo{Graph: 4, Execution: 5, Nodes: child}))
	require.Equal(t, map[string]int{"a child graph that is not in the recording": 1}, uncoveredGraph(t, recording.GraphInfo{Execution: 5, Nodes: []recording.GraphNode{{Type: nodeChild}}}))
}

// Graphs may lie in graphs, but a file cannot make them do so without end.
func TestGraphsWithinGraphs(t *testing.T) {
	nested := func(depth int) map[string]int {
		graphs := []recording.GraphInfo{{Graph: 100, Execution: 5}}
		for k := range depth {
			graphs[k].Nodes = []recording.GraphNode{{Node: uint64(k), Type: nodeChild, Body: body(uint64(101 + k))}}
			graphs = append(graphs, recording.GraphInfo{Graph: uint64(101 + k)})
		}
		return uncoveredGraph(t, graphs...)
	}
	require.Empty(t, nested(32))
	require.Len(t, nested(33), 1)
}

// A graph that was never launched is passed over where it cannot be, or where no call made it.
func TestIdleGraphsThatCannotBe(t *testing.T) {
	racing := []recording.GraphNode{{Node: 1, Type: nodeSet, Body: body(1000, 8, 1, 0)}, {Node: 2, Type: nodeSet, Body: body(1000, 8, 1, 0)}}
	circle := []recording.GraphEdge{{From: 0, To: 1}, {From: 1, To: 0}}
	check := func(edges []recording.GraphEdge, made ...recording.Call) *Report {
		report, err := Check(&recording.Process{Graphs: []recording.GraphInfo{{Graph: 3, Execution: 5, Nodes: racing, Edges: edges}}, Calls: made}, Options{})
		require.NoError(t, err)
		return report
	}
	made := recording.Call{Record: recording.Record{Kind: recording.Instantiate}, Begin: 1, End: 2, Args: []uint64{5, 3}}
	other := recording.Call{Record: recording.Record{Kind: recording.Instantiate}, Begin: 1, End: 2, Args: []uint64{6, 4}}
	require.Len(t, check(nil, made).Races, 1)
	require.Empty(t, check(nil, other).Races)
	require.Empty(t, check(circle, made).Races)
}

// A descriptor of a shape that cannot be is not covered; one of the largest rank is.
func TestTensorMaps(t *testing.T) {
	for _, c := range []struct {
		words []uint64
		tail  int
		known bool
	}{
		{append([]uint64{100, 4, 5}, make([]uint64, 9)...), 128, true},
		{append([]uint64{100, 4, 5}, make([]uint64, 8)...), 128, false},
		{append([]uint64{100, 4, 6}, make([]uint64, 11)...), 128, false},
		{[]uint64{100, 4, 0}, 128, false},
		{[]uint64{100, 4, 1, 8}, 128, true},
		{[]uint64{100, 4, 1, 8}, 127, false},
		{[]uint64{100, 4, 1 << 63, 8}, 128, false},
	} {
		p := &recording.Process{Calls: []recording.Call{{Record: recording.Record{Kind: recording.TensorMap, Tail: make([]byte, c.tail)}, Begin: 1, End: 2, Args: c.words}}}
		report, err := Check(p, Options{})
		require.NoError(t, err)
		require.Equal(t, c.known, len(report.Uncovered) == 0, "%v", c.words)
	}
}

// Memory that ends where addresses end is as good as any other; what would go on behind is ignored.
func TestMemoryAtTheEndOfAddresses(t *testing.T) {
	last := ^uint64(0)
	for bytes, known := range map[uint64]bool{100: true, 101: false, 102: false, 0: false} {
		p := &recording.Process{
			Calls:   []recording.Call{{Record: recording.Record{Kind: recording.Alloc}, Begin: 1, End: 2, Args: []uint64{last - 100, bytes, 1, 0, 0, 0, 0}}},
			Tensors: []recording.TensorEvent{{Sequence: 3, Address: last - 100, Bytes: bytes, Action: recording.TensorAlloc}},
		}
		m := ran(t, p, pass{})
		require.Equal(t, known, m.allocations.at(last-50) != nil, "%d bytes", bytes)
		require.Equal(t, known, m.tensors.at(last-50) != nil, "%d bytes", bytes)
	}
}
