// Tests of the list of kernels, on programs made by hand.

package kernels

import (
	"encoding/binary"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/internal/recording"
)

// program has a kernel of two pointers and a number with the handle 7, and memory for it.
type program struct{ *recording.Process }

func begin() *program {
	p := &program{&recording.Process{Measured: true, Places: map[uint64][]recording.Frame{}, Accesses: map[uint64]*recording.AccessInfo{}, Functions: map[uint64][]recording.FunctionInfo{
		7: {{Handle: 7, Name: "_Z4copyPfPKfi", Registers: 12, Shared: 64, Parameters: []recording.Parameter{{Offset: 0, Bytes: 8}, {Offset: 8, Bytes: 8}, {Offset: 16, Bytes: 4}}}}}}}
	p.call(recording.Alloc, nil, 0x1000, 256, 1, 0, 0, 0, 0)
	p.call(recording.Alloc, nil, 0x2000, 512, 1, 0, 0, 0, 0)
	return p
}

func (p *program) call(kind recording.Kind, tail []byte, arguments ...uint64) *recording.Call {
	at := uint64(2*len(p.Calls) + 1)
	p.Calls = append(p.Calls, recording.Call{Record: recording.Record{Kind: kind, Tail: tail}, Begin: at, End: at + 1, Context: 1, Place: at, Args: arguments})
	return &p.Calls[len(p.Calls)-1]
}

// launch launches a kernel that was seen to make these accesses; no runs: it was not measured.
func (p *program) launch(function uint64, to, from uint64, runs ...recording.Run) *recording.AccessInfo {
	number := uint64(0)
	info := &recording.AccessInfo{Runs: runs}
	if runs != nil {
		number = uint64(len(p.Accesses) + 1)
		p.Accesses[number] = info
	}
	p.call(recording.Launch, words(to, from, 64), 0, 0, function, number, 4, 2, 1, 128, 1, 1, 32, 0, 0)
	return info
}

func words(list ...uint64) []byte {
	var b []byte
	for _, w := range list {
		b = binary.LittleEndian.AppendUint64(b, w)
	}
	return b
}

func (p *program) list(t *testing.T) []Kernel {
	t.Helper()
	list, err := Of([]*recording.Process{p.Process}, func(_ *recording.Process, place uint64) string { return fmt.Sprintf("a.cu:%d", place) })
	require.NoError(t, err)
	return list
}

func TestLaunchesOfAKernel(t *testing.T) {
	p := begin()
	p.launch(7, 0x1000, 0x2010, recording.Run{Address: 0x1000, Bytes: 256, Modes: recording.Write}, recording.Run{Address: 0x2010, Bytes: 64, Modes: recording.Read})
	p.launch(7, 0x1000, 0x2000, recording.Run{Address: 0x1080, Bytes: 8, Modes: recording.Atomic | recording.Read})
	p.launch(7, 0x9000, 0x2000)
	require.Equal(t, []Kernel{{Name: "_Z4copyPfPKfi", Demangled: "copy", Launches: 3, Measured: 2, Unknown: []Reason{{NoRoom, 1}}, Read: 72, Written: 256, Updated: 8,
		Shapes: []Shape{{Grid: [3]uint32{4, 2, 1}, Block: [3]uint32{128, 1, 1}, Shared: 32, Launches: 3}},
		Places: []Place{{"a.cu:5", 1}, {"a.cu:7", 1}, {"a.cu:9", 1}},
		Parameters: []Parameter{
			{Index: 0, Memory: "allocation", Bytes: 256, Launches: 2, Read: 1, Written: 1, Updated: 1},
			{Index: 1, Memory: "allocation", Bytes: 512, Launches: 3, Read: 1, Untouched: 1, Unknown: 1}},
		Registers: 12, Shared: 64}}, p.list(t))
}

// What is not known has a reason, and a launch of which something is missing leaves nothing untouched.
func TestReasonsForWhatIsNotKnown(t *testing.T) {
	some := recording.Run{Address: 0x1000, Bytes: 4, Modes: recording.Write}
	for want, change := range map[string]func(p *program){
		NotAsked:   func(p *program) { p.Measured = false; p.launch(7, 0x1000, 0x2000) },
		LeftAlone:  func(p *program) { p.Functions[7][0].Unpatched = true; p.launch(7, 0x1000, 0x2000) },
		NoRoom:     func(p *program) { p.launch(7, 0x1000, 0x2000, some).Unmeasured = true },
		NotThere:   func(p *program) { p.launch(7, 0x1000, 0x2000, some); delete(p.Accesses, 1) },
		OpaqueCode: func(p *program) { p.Functions[7][0].Opaque = true; p.launch(7, 0x1000, 0x2000, some) },
		TooMany:    func(p *program) { p.launch(7, 0x1000, 0x2000, some).Lost = true },
	} {
		p := begin()
		change(p)
		k := p.list(t)[0]
		require.Equal(t, []Reason{{want, 1}}, k.Unknown, want)
		require.Zero(t, k.Measured, want)
		require.Equal(t, 1, k.Parameters[1].Unknown, want)
		require.Zero(t, k.Parameters[1].Untouched, want)
	}
}

// Kernels of a graph count at each of its launches, those of child graphs too; measurements tell of as many as there are.
func TestKernelsInGraphs(t *testing.T) {
	p := begin()
	kernel := recording.GraphNode{Node: 0x50, Type: nodeKernel, Body: words(7, 8, 1, 1, 32, 1, 1, 0, 0, 2|1<<16|1<<32)}
	p.Graphs = []recording.GraphInfo{
		{Sequence: 1, Graph: 0x60, Nodes: []recording.GraphNode{kernel}},
		{Sequence: 2, Graph: 0x61, Execution: 0x70, Nodes: []recording.GraphNode{kernel, {Node: 0x51, Type: nodeChild, Body: words(0x60)}}},
		{Sequence: 1000, Graph: 0x61, Execution: 0x70, Nodes: nil}, // what it was changed to afterwards
	}
	launch := p.call(recording.GraphLaunch, nil, 0, 0, 0x70, 1).Begin
	p.Accesses[1] = &recording.AccessInfo{Runs: []recording.Run{{Address: 0x1000, Bytes: 16, Modes: recording.Write}}}
	node := p.call(recording.NodeAccess, nil, 0x70, launch, 0x50, 1, 7, 8, 1, 1, 32, 1, 1)
	node.Begin, node.End = launch, launch
	p.call(recording.GraphLaunch, nil, 0, 0, 0x70, 0)
	k := p.list(t)
	require.Len(t, k, 1)
	require.Equal(t, 4, k[0].Launches)
	require.Equal(t, 4, k[0].InGraphs)
	require.Equal(t, 1, k[0].Measured)
	require.Equal(t, uint64(16), k[0].Written)
	require.Equal(t, []Reason{{InGraph, 3}}, k[0].Unknown)
	require.Equal(t, []Shape{{Grid: [3]uint32{8, 1, 1}, Block: [3]uint32{32, 1, 1}, Cluster: [3]uint32{2, 1, 1}, Launches: 4}}, k[0].Shapes)
	require.Empty(t, k[0].Parameters)
}

// A file may say that a graph is made of itself, twice.
func TestGraphOfItself(t *testing.T) {
	p := begin()
	kernel, child := recording.GraphNode{Type: nodeKernel, Body: words(7, 8, 1, 1, 32, 1, 1, 0, 0, 0)}, recording.GraphNode{Type: nodeChild, Body: words(0x60)}
	nodes := []recording.GraphNode{kernel}
	for range 1000 {
		nodes = append(nodes, child)
	}
	p.Graphs = []recording.GraphInfo{{Sequence: 1, Graph: 0x60, Nodes: nodes}, {Sequence: 2, Graph: 0x60, Execution: 0x70, Nodes: nodes}}
	p.call(recording.GraphLaunch, nil, 0, 0, 0x70, 0)
	require.Less(t, p.list(t)[0].Launches, mostNodes)
}

func TestDemangled(t *testing.T) {
	for mangled, want := range map[string]string{
		"":                                 "",
		"reduce":                           "reduce",
		"_Z4copyPfPKfi":                    "copy",
		"_ZN2at6native6reduceIfLi4EEEvPT_": "at::native::reduce<float, 4>",
		"_ZN43_GLOBAL__N__b6de9c8c_10_Sum_cu_9c3sumEPf": "_ZN43_GLOBAL__N__b6de9c8c_10_Sum_cu_9c3sumEPf",
	} {
		require.Equal(t, want, Demangled(mangled))
	}
	long := "_Z" + strings.Repeat("N1a", longestMangled)
	require.Equal(t, long, Demangled(long))
	require.LessOrEqual(t, len(Demangled("_Z1fI"+strings.Repeat("S_", 5000)+"E")), 1<<longestDemangled)
}
