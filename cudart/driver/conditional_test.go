// Tests of loops and branches in graphs: the nodes that the driver is asked for, old drivers, and what the driver cannot put into a body.

//go:build linux && (amd64 || arm64)

package driver

import (
	"context"
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/cudart"
	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/dag/expr"
	"github.com/dagrun/dagrun/kernels/conditions"
)

// positive is the condition x > 0 over an element of type f64.
func positive(t *testing.T) *dag.Condition {
	b := dag.New("p")
	x := b.Device("x", dag.F64, 1)
	b.Init(x, dag.Init{Kind: dag.InitValue, Value: expr.Int(1)})
	b.If("test", "x > 0", func() { b.Memset("set", b.Whole(x), 0) }, nil)
	g, err := b.Graph()
	require.NoError(t, err)
	return g.Nodes[0].Control.Condition
}

// nest is a loop over two sets, with a branch between them that has two bodies.
func nest(t *testing.T, w *bench) cudart.Command {
	set := cudart.Command{Kind: cudart.SetMemory, Stream: w.origin, Label: "set", Node: 1, Dst: w.device, Bytes: 8, Width: 1}
	branch := cudart.Command{Kind: cudart.RunBodies, Stream: w.origin, Label: "branch", Node: 2, Conditional: &cudart.Conditional{
		Test: conditions.Test{Branch: true, Condition: positive(t)}, Operands: []cudart.Ptr{w.device}, Counts: w.device + 128,
		Bodies: []cudart.Body{{Commands: []cudart.Command{set}, Deps: [][]int32{nil}}, {Commands: []cudart.Command{set, set}, Deps: [][]int32{nil, nil}}}}}
	loop := cudart.Command{Kind: cudart.RunBodies, Stream: w.origin, Label: "loop", Node: 0, Conditional: &cudart.Conditional{
		Test: conditions.Test{Times: 3, Every: 1}, Counts: w.device + 64, Clear: 2,
		Bodies: []cudart.Body{{Commands: []cudart.Command{set, branch, set}, Deps: [][]int32{nil, {0}, {1}}}}}}
	require.NoError(t, w.decide(loop.Conditional, branch.Conditional))
	return loop
}

// decide gives loops and branches the kernel that decides about them. The bench closes its module.
func (w *bench) decide(all ...*cudart.Conditional) error {
	var decider conditions.Decider
	for _, c := range all {
		decider.Add(c.Test)
	}
	if w.deciders == nil {
		m, err := w.p.Load(context.Background(), 0, decider.Module())
		if err != nil {
			return err
		}
		w.deciders = m
	}
	k, err := w.deciders.Kernel(conditions.Entry)
	for _, c := range all {
		c.Decider, c.Number = k, decider.Number(c.Condition)
	}
	return err
}

// added lists the calls that make nodes, each with the graph that it adds to, the number of nodes it waits for, and what it returned.
type added struct {
	f     function
	graph uintptr
	waits uintptr
}

func addedSince(d *fakeDriver, from int) (nodes []added) {
	for _, c := range d.log[from:] {
		switch c.f {
		case cuGraphAddKernelNode, cuGraphAddMemsetNode, cuGraphAddEmptyNode:
			nodes = append(nodes, added{c.f, c.args[1], c.args[3]})
		case cuGraphAddNode:
			nodes = append(nodes, added{c.f, c.args[1], c.args[4]})
		}
	}
	return nodes
}

func TestConditionalNodes(t *testing.T) {
	for _, c := range []struct {
		version int32
		split   bool
	}{{12040, true}, {12080, false}, {13000, false}} {
		d := newFakeDriver(t)
		d.version = c.version
		p := d.open(t)
		w, err := newBench(p)
		require.NoError(t, err)
		loop := nest(t, w)
		from := d.mark()
		g, err := p.BuildGraph([]cudart.Command{loop}, [][]int32{nil}, cudart.GraphOptions{Origin: w.origin})
		require.NoError(t, err)
		var graph uintptr
		for handle, maker := range d.alive {
			if maker == cuGraphCreate {
				graph = handle
			}
		}
		body := d.bodies[0][0]
		want := []added{{cuGraphAddKernelNode, graph, 0}, {cuGraphAddNode, graph, 1}, {cuGraphAddMemsetNode, body, 0}, {cuGraphAddKernelNode, body, 1}}
		if c.split {
			then, otherwise := d.bodies[1][0], d.bodies[2][0]
			want = append(want, added{cuGraphAddNode, body, 1}, added{cuGraphAddMemsetNode, then, 0},
				added{cuGraphAddNode, body, 1}, added{cuGraphAddMemsetNode, otherwise, 0}, added{cuGraphAddMemsetNode, otherwise, 0}, added{cuGraphAddEmptyNode, body, 2})
		} else {
			then, otherwise := d.bodies[1][0], d.bodies[1][1]
			want = append(want, added{cuGraphAddNode, body, 1}, added{cuGraphAddMemsetNode, then, 0},
				added{cuGraphAddMemsetNode, otherwise, 0}, added{cuGraphAddMemsetNode, otherwise, 0})
		}
		want = append(want, added{cuGraphAddMemsetNode, body, 1}, added{cuGraphAddKernelNode, body, 1})
		require.Equal(t, want, addedSince(d, from), "CUDA %d", c.version)
		var kinds, loops, counts []uint32
		for _, r := range d.records {
			if len(r) == 256 {
				kinds, loops, counts = append(kinds, binary.LittleEndian.Uint32(r)), append(loops, binary.LittleEndian.Uint32(r[24:])), append(counts, binary.LittleEndian.Uint32(r[28:]))
				require.Equal(t, uint64(p.devices[0].context.Load()), binary.LittleEndian.Uint64(r[40:]))
				require.NotZero(t, binary.LittleEndian.Uint64(r[16:]))
			}
		}
		if c.split {
			require.Equal(t, [][]uint32{{13, 13, 13}, {1, 0, 0}, {1, 1, 1}}, [][]uint32{kinds, loops, counts})
		} else {
			require.Equal(t, [][]uint32{{13, 13}, {1, 0}, {1, 2}}, [][]uint32{kinds, loops, counts})
		}
		require.NoError(t, g.Close())
		require.NoError(t, w.close())
		require.NoError(t, p.Close())
		d.clean(t)
	}
}

func TestConditionalsThatTheDriverCannotMake(t *testing.T) {
	d := newFakeDriver(t)
	p := d.open(t)
	w, err := newBench(p)
	require.NoError(t, err)
	far, err := p.NewStream(1, dag.Normal)
	require.NoError(t, err)
	body := func(c cudart.Command) cudart.Command {
		loop := nest(t, w)
		loop.Conditional.Bodies[0] = cudart.Body{Commands: []cudart.Command{c}, Deps: [][]int32{nil}}
		return loop
	}
	copying := cudart.Command{Kind: cudart.CopyMemory, Stream: w.origin, Label: "move", Dst: w.device, Src: w.host, SrcDevice: -1, Bytes: 8}
	pageable, within, across := copying, copying, copying
	pageable.SrcPageable = true
	within.Dst, within.DstDevice = w.host+64, -1
	across.SrcDevice = 1
	for _, c := range []struct {
		command cudart.Command
		want    string
	}{
		{body(pageable), `not supported: node "move": it copies pageable host memory, which the body of a conditional graph node cannot`},
		{body(within), `not supported: node "move": it copies within host memory, which the body of a conditional graph node cannot`},
		{body(across), `not supported: node "move": it copies to or from another device, which the body of a conditional graph node cannot`},
		{body(cudart.Command{Kind: cudart.SetMemory, Stream: far, Label: "set", Dst: w.device, DstDevice: 1, Bytes: 8, Width: 1}),
			`not supported: node "set": it sets memory elsewhere, which the body of a conditional graph node cannot`},
	} {
		_, err := p.BuildGraph([]cudart.Command{c.command}, [][]int32{nil}, cudart.GraphOptions{Origin: w.origin})
		require.ErrorIs(t, err, cudart.ErrUnsupported)
		require.EqualError(t, err, c.want)
	}
	_, err = p.Encode([]cudart.Command{nest(t, w)}, cudart.ListOptions{Origin: w.origin})
	require.EqualError(t, err, `not supported: node "loop": a loop or branch is part of a graph, not of a list`)
	p.lib.version = 12030
	_, err = p.BuildGraph([]cudart.Command{nest(t, w)}, [][]int32{nil}, cudart.GraphOptions{Origin: w.origin})
	require.ErrorIs(t, err, cudart.ErrUnsupported)
	require.EqualError(t, err, `not supported: node "loop": the driver (CUDA 12.3) has no conditional graph nodes, which came with CUDA 12.4`)
	p.lib.version = 12040
	bad := nest(t, w)
	bad.Conditional.Bodies = nil
	_, err = p.BuildGraph([]cudart.Command{bad}, [][]int32{nil}, cudart.GraphOptions{Origin: w.origin})
	require.EqualError(t, err, `node "loop": a loop has one body, and a branch one or two`)
	for _, c := range []struct {
		spoil func(*cudart.Command, *cudart.Conditional)
		want  string
	}{
		{func(_ *cudart.Command, v *cudart.Conditional) { v.Decider = nil }, `node "loop": the kernel that decides about it is not one of this platform's`},
		{func(_ *cudart.Command, v *cudart.Conditional) { v.Decider = w.kernel }, `node "loop": kernel scale takes 2 arguments, but 11 are given`},
		{func(_ *cudart.Command, v *cudart.Conditional) { v.Bodies[0].Commands[1].Conditional.Number = 0 }, `node "branch": the kernel that decides about it does not know its condition`},
		{func(c *cudart.Command, _ *cudart.Conditional) { c.Stream = far }, `node "loop": kernel dagrun_decide is loaded on device 0 and its stream is on device 1`},
		{func(_ *cudart.Command, v *cudart.Conditional) {
			require.NoError(t, w.deciders.Close())
			w.deciders = nil
		}, `node "loop": the module of kernel dagrun_decide is closed`},
	} {
		bad := nest(t, w)
		c.spoil(&bad, bad.Conditional)
		_, err := p.BuildGraph([]cudart.Command{bad}, [][]int32{nil}, cudart.GraphOptions{Origin: w.origin})
		require.EqualError(t, err, c.want)
	}
	require.NoError(t, far.Close())
	require.NoError(t, w.close())
	require.NoError(t, p.Close())
	d.clean(t)
}

// Every call of making such a graph fails in turn: nothing is left behind.
func TestConditionalsWhoseCallsFail(t *testing.T) {
	d := newFakeDriver(t)
	p := d.open(t)
	w, err := newBench(p)
	require.NoError(t, err)
	commands := []cudart.Command{nest(t, w)}
	live := p.Live()
	for k := 1; ; k++ {
		before, from := len(d.alive), d.mark()
		d.calls, d.failAt, d.failCode = 0, k, 999
		g, err := p.BuildGraph(commands, [][]int32{nil}, cudart.GraphOptions{Origin: w.origin})
		reached := d.calls >= k
		d.failAt = 0
		if err == nil {
			require.NoError(t, g.Close())
		}
		require.Equal(t, live, p.Live(), "call %d", k)
		if !reached {
			require.Greater(t, k, 20)
			break
		}
		// Only what the driver failed to destroy may remain.
		failed := d.log[from+k-1].f
		if failed != cuGraphDestroy && failed != cuModuleUnload && failed != cuCtxPushCurrent && failed != cuCtxPopCurrent {
			require.Len(t, d.alive, before, "call %d (%s)", k, failed.name())
		}
	}
}
