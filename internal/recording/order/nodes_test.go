// Tests of which node of a graph a measurement is of, where the executable graph has nodes of its own.

package order

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/internal/recording"
)

// replay is a graph that was launched: the pointers that its nodes' kernels are given, and what was measured.
type replay struct {
	pointers [][]uint64
	kernels  []uint64 // by node
	blocks   []uint64 // threads of a block, by node
	measured []measured
}

// measured is a measurement of a node of the executable graph: a kernel, its block, and the first bytes of the stretches of eight that it touched.
type measured struct {
	node, kernel, block uint64
	touched             []uint64
}

// matched returns which measurement each node is said to have, -1 for none.
func (r replay) matched(t *testing.T) []int {
	t.Helper()
	p := &recording.Process{Measured: true, Accesses: map[uint64]*recording.AccessInfo{},
		Functions: map[uint64][]recording.FunctionInfo{1: {{Name: "one"}}, 2: {{Name: "two"}}}}
	info := recording.GraphInfo{Execution: 5}
	for i, pointers := range r.pointers {
		info.Nodes = append(info.Nodes, recording.GraphNode{Node: uint64(100 + i), Body: append(body(r.kernels[i], 1, 1, 1, r.blocks[i], 1, 1, 0, 0, 0), body(pointers...)...)})
	}
	p.Graphs = []recording.GraphInfo{info}
	for i, m := range r.measured {
		number := uint64(i + 1)
		p.Accesses[number] = &recording.AccessInfo{}
		for _, low := range m.touched {
			p.Accesses[number].Runs = append(p.Accesses[number].Runs, recording.Run{Address: low, Bytes: 8, Modes: recording.Write})
		}
		p.Calls = append(p.Calls, recording.Call{Record: recording.Record{Kind: recording.NodeAccess}, Begin: 10, Args: []uint64{5, 10, m.node, number, m.kernel, 1, 1, 1, m.block, 1, 1}})
	}
	x, err := newIndex(p)
	require.NoError(t, err)
	m := newMachine(p, x, Options{}, pass{})
	numbers := m.numbers(m.graphOf(0), 10)
	out := make([]int, len(r.pointers))
	for i := range out {
		out[i] = int(numbers[uint64(100+i)]) - 1
	}
	return out
}

func TestMeasurementsOfNodes(t *testing.T) {
	const a, b, c = 0x1000, 0x2000, 0x3000
	for _, test := range []struct {
		name string
		replay
		want []int
	}{
		{"the graph's own nodes", replay{[][]uint64{{a}, {a}}, []uint64{1, 1}, []uint64{32, 32},
			[]measured{{101, 1, 32, []uint64{a}}, {100, 1, 32, []uint64{a}}}}, []int{1, 0}},
		{"other nodes, made in the order of the graph", replay{[][]uint64{{a, b}, {a, b}}, []uint64{1, 1}, []uint64{32, 32},
			[]measured{{201, 1, 32, []uint64{a}}, {200, 1, 32, []uint64{b}}}}, []int{1, 0}},
		{"in that order, a node that touched nothing", replay{[][]uint64{{a}, {b}}, []uint64{1, 1}, []uint64{32, 32},
			[]measured{{200, 1, 32, nil}, {201, 1, 32, []uint64{b}}}}, []int{0, 1}},
		{"in another order: they are told apart by the kernel", replay{[][]uint64{{a}, {a}}, []uint64{1, 2}, []uint64{32, 32},
			[]measured{{200, 2, 32, []uint64{a}}, {201, 1, 32, []uint64{a}}}}, []int{1, 0}},
		{"by the shape of the launch", replay{[][]uint64{{a}, {a}}, []uint64{1, 1}, []uint64{32, 64},
			[]measured{{200, 1, 64, []uint64{a}}, {201, 1, 32, []uint64{a}}}}, []int{1, 0}},
		{"by what the parameters point to", replay{[][]uint64{{a}, {b}}, []uint64{1, 1}, []uint64{32, 32},
			[]measured{{200, 1, 32, []uint64{b}}, {201, 1, 32, []uint64{a}}}}, []int{1, 0}},
		{"by where a stretch begins, before what lies within one", replay{[][]uint64{{a + 4}, {a}, {b}}, []uint64{1, 1, 1}, []uint64{32, 32, 32},
			[]measured{{200, 1, 32, []uint64{b}}, {201, 1, 32, []uint64{a - 2, c}}, {202, 1, 32, []uint64{a}}}}, []int{1, 2, 0}},
		{"a single one of its kernel fits though it touched something else", replay{[][]uint64{{a}, {b}}, []uint64{1, 2}, []uint64{32, 32},
			[]measured{{200, 2, 32, []uint64{b}}, {201, 1, 32, []uint64{c}}}}, []int{1, 0}},
		{"one measurement, and two nodes that it may be of", replay{[][]uint64{{a}, {b}}, []uint64{1, 1}, []uint64{32, 32},
			[]measured{{200, 1, 32, []uint64{b}}}}, []int{-1, 0}},
		{"two that fit equally well and touched different bytes say nothing", replay{[][]uint64{{a, b}, {c}}, []uint64{1, 1}, []uint64{32, 32},
			[]measured{{200, 1, 32, []uint64{b}}, {201, 1, 32, []uint64{a}}}}, []int{-1, -1}},
		{"two that touched the same", replay{[][]uint64{{a}, {a}, {c}}, []uint64{1, 1, 1}, []uint64{32, 32, 32},
			[]measured{{200, 1, 32, []uint64{c}}, {201, 1, 32, []uint64{a}}, {202, 1, 32, []uint64{a}}}}, []int{1, 2, 0}},
		{"a stretch that goes on from another begins with that", replay{[][]uint64{{a + 8}, {b}}, []uint64{1, 1}, []uint64{32, 32},
			[]measured{{200, 1, 32, []uint64{b}}, {201, 1, 32, []uint64{a, a + 8}}}}, []int{1, 0}},
		{"a node fits what lies within a stretch", replay{[][]uint64{{a + 4}, {b}}, []uint64{1, 1}, []uint64{32, 32},
			[]measured{{200, 1, 32, []uint64{b}}, {201, 1, 32, []uint64{a}}}}, []int{1, 0}},
		{"what fits none is of none", replay{[][]uint64{{a}, {b}}, []uint64{1, 1}, []uint64{32, 32},
			[]measured{{300, 1, 32, []uint64{c}}}}, []int{-1, -1}},
		{"none", replay{[][]uint64{{a}}, []uint64{1}, []uint64{32}, nil}, []int{-1}},
	} {
		require.Equal(t, test.want, test.matched(t), test.name)
	}
}

// A measurement that is missing in the file says nothing of its node.
func TestMeasurementThatIsMissing(t *testing.T) {
	m := newMachine(&recording.Process{}, &index{}, Options{}, pass{})
	require.Zero(t, m.fits(&signed{parameters: body(0x1000)}, 7))
	require.True(t, m.touches(&signed{}, 7))
}
