// Tests of merging two recordings of one program, made by hand: the same launches at other addresses.

package recording_test

import (
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/internal/recording"
)

// ran is a run of a program whose allocations begin at base: A of 256 bytes and B of 4096, and a kernel with the handle base+7.
type ran struct {
	*recording.Process
	base uint64
}

func (r *ran) a() uint64 { return r.base }
func (r *ran) b() uint64 { return r.base + 0x10000 }

func run(base uint64) *ran {
	r := &ran{&recording.Process{Measured: true, Accesses: map[uint64]*recording.AccessInfo{}, Places: map[uint64][]recording.Frame{base: {{Python: true, File: "a.py", Line: 3}}},
		Functions: map[uint64][]recording.FunctionInfo{base + 7: {{Handle: base + 7, Name: "gather"}}}}, base}
	r.call(recording.StreamCreate, nil, base+1, 1, 0)
	r.call(recording.Alloc, nil, r.a(), 256, 1, 0, 0, 0, 0)
	r.call(recording.Alloc, nil, r.b(), 4096, 1, 0, 0, 0, 0)
	return r
}

func (r *ran) call(kind recording.Kind, tail []byte, arguments ...uint64) uint64 {
	at := uint64(2*len(r.Calls) + 1)
	r.Calls = append(r.Calls, recording.Call{Record: recording.Record{Kind: kind, Tail: tail}, Begin: at, End: at + 1, Place: r.base, Args: arguments})
	return at
}

func (r *ran) access(runs []recording.Run) uint64 {
	number := uint64(len(r.Accesses) + 1)
	r.Accesses[number] = &recording.AccessInfo{Runs: runs}
	return number
}

// launch launches the kernel with pointers to A and into B, and says what it touched; it returns the number of the measurement.
func (r *ran) launch(blocks uint64, runs ...recording.Run) uint64 {
	number := r.access(runs)
	r.call(recording.Launch, words64(r.a(), 17, r.b()+64), r.base+1, 0, r.base+7, number, blocks, 1, 1, 32, 1, 1, 0, 0, 0)
	return number
}

func words64(list ...uint64) []byte {
	var b []byte
	for _, w := range list {
		b = binary.LittleEndian.AppendUint64(b, w)
	}
	return b
}

func TestMergeWidensWhatWasMeasured(t *testing.T) {
	p, q := run(0x1000000), run(0x7000000)
	p.launch(4, recording.Run{Address: p.a(), Bytes: 16, Modes: recording.Read}, recording.Run{Address: p.b() + 64, Bytes: 8, Modes: recording.Write})
	p.launch(4, recording.Run{Address: p.a(), Bytes: 16, Modes: recording.Read})
	q.launch(4, recording.Run{Address: q.a() + 8, Bytes: 16, Modes: recording.Read}, recording.Run{Address: q.b(), Bytes: 8, Modes: recording.Write}, recording.Run{Address: q.b() + 64, Bytes: 4, Modes: recording.Read})
	q.launch(4, recording.Run{Address: q.a(), Bytes: 16, Modes: recording.Read})
	require.Equal(t, recording.Merged{Both: 2, Widened: 1}, p.Merge(q.Process))
	require.Equal(t, []recording.Run{
		{Address: p.a(), Bytes: 24, Modes: recording.Read}, {Address: p.b(), Bytes: 8, Modes: recording.Write}, {Address: p.b() + 64, Bytes: 4, Modes: recording.Read | recording.Write}, {Address: p.b() + 68, Bytes: 4, Modes: recording.Write},
	}, p.Accesses[1].Runs)
	require.Equal(t, []recording.Run{{Address: p.a(), Bytes: 16, Modes: recording.Read}}, p.Accesses[2].Runs)
	require.False(t, p.Accesses[1].Opaque)
}

// What is asked twice is said twice: merging again changes nothing.
func TestMergeAgain(t *testing.T) {
	p, q := run(0x1000000), run(0x7000000)
	p.launch(4, recording.Run{Address: p.a(), Bytes: 4, Modes: recording.Read})
	q.launch(4, recording.Run{Address: q.a() + 100, Bytes: 4, Modes: recording.Read})
	require.Equal(t, 1, p.Merge(q.Process).Widened)
	require.Equal(t, recording.Merged{Both: 1}, p.Merge(q.Process))
}

// Launches of which one run has more than the other, or in another shape, are not compared.
func TestMergeOfOtherLaunches(t *testing.T) {
	p, q := run(0x1000000), run(0x7000000)
	p.launch(4, recording.Run{Address: p.a(), Bytes: 4, Modes: recording.Read})
	p.launch(4, recording.Run{Address: p.a(), Bytes: 4, Modes: recording.Read})
	p.launch(8, recording.Run{Address: p.a(), Bytes: 4, Modes: recording.Read})
	q.launch(4, recording.Run{Address: q.a() + 8, Bytes: 4, Modes: recording.Read})
	q.launch(16, recording.Run{Address: q.a() + 8, Bytes: 4, Modes: recording.Read})
	require.Equal(t, recording.Merged{Alone: 3}, p.Merge(q.Process))
	require.Equal(t, []recording.Run{{Address: p.a(), Bytes: 4, Modes: recording.Read}}, p.Accesses[1].Runs)

	q.Functions[q.base+7][0].Name = "scatter"
	require.Equal(t, recording.Merged{Alone: 3}, p.Merge(q.Process))
}

// Where the other run's bytes cannot be found here, the arguments count too.
func TestMergeOfWhatCannotBeFound(t *testing.T) {
	global := recording.Run{Address: 0x500, Bytes: 4, Modes: recording.Write}
	for what, q := range map[string]*ran{
		"memory of another size": func() *ran {
			q := run(0x7000000)
			q.Calls[1].Args[1] = 512
			q.launch(4, recording.Run{Address: q.a(), Bytes: 4, Modes: recording.Read}, global)
			return q
		}(),
		"more without a pointer": func() *ran {
			q := run(0x7000000)
			q.launch(4, recording.Run{Address: q.a(), Bytes: 4, Modes: recording.Read}, global, recording.Run{Address: 0x900, Bytes: 4, Modes: recording.Write})
			return q
		}(),
		"something else without a pointer": func() *ran {
			q := run(0x7000000)
			q.launch(4, recording.Run{Address: q.a(), Bytes: 4, Modes: recording.Read}, recording.Run{Address: 0x900, Bytes: 4, Modes: recording.Read})
			return q
		}(),
	} {
		p := run(0x1000000)
		p.launch(4, recording.Run{Address: p.a(), Bytes: 4, Modes: recording.Read}, global)
		require.Equal(t, recording.Merged{Both: 1, Widened: 1, Opaque: 1}, p.Merge(q.Process), what)
		require.True(t, p.Accesses[1].Opaque, what)
	}
	p, q := run(0x1000000), run(0x7000000)
	p.launch(4, global)
	global.Address = 0x700
	q.launch(4, global)
	require.Equal(t, recording.Merged{Both: 1}, p.Merge(q.Process), "a variable of the module, where it is now")
}

// A measurement that lacks something makes the other lack it.
func TestMergeOfIncompleteMeasurements(t *testing.T) {
	p, q := run(0x1000000), run(0x7000000)
	p.launch(4, recording.Run{Address: p.a(), Bytes: 4, Modes: recording.Read})
	p.launch(8, recording.Run{Address: p.a(), Bytes: 4, Modes: recording.Read})
	q.Accesses[q.launch(4, recording.Run{Address: q.a(), Bytes: 4, Modes: recording.Read})].Lost = true
	q.Accesses[q.launch(8)].Unmeasured = true
	require.Equal(t, recording.Merged{Both: 1, Widened: 1, Alone: 1}, p.Merge(q.Process))
	require.True(t, p.Accesses[1].Lost)
	require.False(t, p.Accesses[2].Lost)
}

// Tensors are what pointers point into, where they are known: the two runs may have them in other places of a segment.
func TestMergeByTensors(t *testing.T) {
	p, q := run(0x1000000), run(0x7000000)
	for k, r := range []*ran{p, q} {
		at := r.b() + uint64(512*k)
		r.Tensors = []recording.TensorEvent{{Sequence: 6, Action: recording.TensorAlloc, Address: at, Bytes: 128}}
		r.call(recording.Launch, words64(at), r.base+1, 0, r.base+7, r.access([]recording.Run{{Address: at + uint64(k), Bytes: 1, Modes: recording.Write}}), 1, 1, 1, 32, 1, 1, 0, 0, 0)
	}
	require.Equal(t, recording.Merged{Both: 1, Widened: 1}, p.Merge(q.Process))
	require.Equal(t, []recording.Run{{Address: p.b(), Bytes: 2, Modes: recording.Write}}, p.Accesses[1].Runs)
}

// Nodes of graphs are told apart by the order of their handles, and given what their graph says.
func TestMergeOfNodes(t *testing.T) {
	p, q := run(0x1000000), run(0x7000000)
	for k, r := range []*ran{p, q} {
		body := func(pointer uint64) recording.GraphNode {
			return recording.GraphNode{Type: 0, Body: words64(r.base+7, 2, 1, 1, 32, 1, 1, 0, 0, 0, pointer)}
		}
		r.Graphs = []recording.GraphInfo{{Sequence: 1, Execution: r.base + 5, Nodes: []recording.GraphNode{body(r.a()), {Type: 5}, body(r.b())}}}
		launch := r.call(recording.GraphLaunch, nil, r.base+1, 0, r.base+5, 1)
		at := []uint64{r.b() + 4*uint64(k), r.a()}
		for n := range 2 { // they ran in the other order
			r.call(recording.NodeAccess, nil, r.base+5, launch, r.base+uint64(100-n), r.access([]recording.Run{{Address: at[n], Bytes: 4, Modes: recording.Write}}), r.base+7, 2, 1, 1, 32, 1, 1)
		}
	}
	require.Equal(t, recording.Merged{Both: 2, Widened: 1}, p.Merge(q.Process))
	require.Equal(t, []recording.Run{{Address: p.b(), Bytes: 8, Modes: recording.Write}}, p.Accesses[1].Runs)
	require.Equal(t, []recording.Run{{Address: p.a(), Bytes: 4, Modes: recording.Write}}, p.Accesses[2].Runs)
}

// A real recording merged with itself is as it was.
func TestMergeWithItself(t *testing.T) {
	for _, name := range []string{"seed.rec", "graph-transformer.rec", "vmaf-1583.rec"} {
		r, err := recording.ReadFile("order/testdata/recordings/" + name)
		require.NoError(t, err)
		again, err := recording.ReadFile("order/testdata/recordings/" + name)
		require.NoError(t, err)
		m := r.Processes[0].Merge(again.Processes[0])
		require.NotZero(t, m.Both, name)
		require.Equal(t, recording.Merged{Both: m.Both}, m, name)
		require.NoError(t, r.Close())
		require.NoError(t, again.Close())
	}
}
