// Tests of the graphs that residencies make: of small ones in full, and of residencies that are none.

package placement

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/planner/plan"
)

// inFull describes the buffers and nodes of a graph, a line each: where a buffer is and which bytes of the original it has, and what nodes access.
func inFull(s *plan.Spread, original *dag.Graph) string {
	var text strings.Builder
	g := s.Graph
	for k := range g.Buffers {
		b := &g.Buffers[k]
		where := "host"
		if b.Place == dag.Device {
			where = fmt.Sprint("device ", b.Device)
		}
		fmt.Fprintf(&text, "%s: %v on %s", b.Name, b.Shape, where)
		if from := s.Buffers[k]; original.Buffers[from.Buffer].Name != b.Name || from.Lo > 0 {
			fmt.Fprintf(&text, ", %s from %d", original.Buffers[from.Buffer].Name, from.Lo)
		}
		for _, is := range []struct {
			so   bool
			what string
		}{{b.Init != nil, "init"}, {b.Save != "", "save"}, {b.Expect != nil, "expect"}, {b.Fixed, "fixed"}, {b.Scratch, "scratch"}} {
			if is.so {
				fmt.Fprint(&text, ", ", is.what)
			}
		}
		fmt.Fprintln(&text)
	}
	var nodes func(g *dag.Graph, indent string)
	nodes = func(g *dag.Graph, indent string) {
		for i := range g.Nodes {
			n := &g.Nodes[i]
			fmt.Fprintf(&text, "%s%s", indent, n.Name)
			if n.Device > 0 {
				fmt.Fprintf(&text, " on %d", n.Device)
			}
			if n.Fixed {
				fmt.Fprint(&text, ", fixed")
			}
			if n.Priority != dag.Normal {
				fmt.Fprintf(&text, ", %s", n.Priority)
			}
			if n.Control != nil {
				fmt.Fprintln(&text, ":")
				for _, body := range n.Control.Bodies {
					nodes(body, indent+"  ")
				}
				continue
			}
			for _, a := range g.Accesses(dag.NodeID(i)) {
				fmt.Fprintf(&text, ", %s %s", a.Mode, g.RangeText(a.Range))
			}
			for _, from := range n.After {
				fmt.Fprintf(&text, ", after %s", g.Nodes[from].Name)
			}
			fmt.Fprintln(&text)
		}
	}
	nodes(g, "- ")
	return text.String()
}

// spilledInFull makes the graph of residencies of one buffer each.
func spilledInFull(t *testing.T, b *dag.Builder, list ...plan.Residency) string {
	t.Helper()
	g, err := b.Graph()
	require.NoError(t, err)
	p, err := NewSpillProblem(g, 8*grain, nil, nil)
	require.NoError(t, err)
	s, err := Spill(p, list)
	require.NoError(t, err)
	return inFull(s, g)
}

// What leaves is copied to a home in host memory that has no more than what is moved. The first part has the name, and each waits for what used its
// memory.
func TestSpilledGraphs(t *testing.T) {
	b := dag.New("scratch")
	x, y := b.Device("x", dag.U8, 2, grain), b.Device("y", dag.F32, 64)
	b.OnDevice(x, 1)
	b.OnDevice(y, 1)
	b.BufferAt(x).Fixed, b.BufferAt(y).Scratch = true, true
	fixedTask(b, "left", 1, b.Slice(x, 0, 1).Out())
	fixedTask(b, "other", 1, b.Slice(x, 1, 2).Out(), b.Out(y))
	fixedTask(b, "again", 1, b.Slice(x, 0, 1).In())
	b.After(2, 1)
	require.Equal(t, `
x(0..1)@host: [1 256] on host, x from 0
x: [1 256] on device 1
x(1..2)@1: [1 256] on device 1, x from 256
x(0..1)@1: [1 256] on device 1, x from 0
y: [64] on device 1, scratch
- left on 1, out x
- x(0..1) out on 1, in x, out x(0..1)@host
- other on 1, out x(1..2)@1, out y, after left, after x(0..1) out
- x(0..1) in on 1, in x(0..1)@host, out x(0..1)@1, after other
- again on 1, in x(0..1)@1, after other
`, "\n"+spilledInFull(t, b,
		plan.Residency{Buffer: x, Hi: grain}, plan.Residency{Buffer: x, Lo: grain, Hi: 2 * grain, First: 1, Last: 1},
		plan.Residency{Buffer: y, Hi: grain, First: 1, Last: 1, Offset: grain},
		plan.Residency{Buffer: x, Hi: grain, First: 2, Last: 2}))
}

// Contents from outside are in host memory, under the name of the buffer; copies of the pipeline use them there. What stays is as it was.
func TestSpilledState(t *testing.T) {
	b := dag.New("state")
	x, y, z := b.Device("x", dag.U8, 2*grain), b.Device("y", dag.U8, grain), b.Device("z", dag.U8, grain)
	b.Init(x, dag.Init{Kind: dag.InitRamp})
	b.Save(x, "x.npy")
	b.Init(z, dag.Init{Kind: dag.InitRamp})
	b.Task("change", b.Slice(x, 0, grain).InOut(), b.In(z))
	b.Copy("copy", b.Whole(y), b.Slice(x, grain, 2*grain))
	b.Task("use", b.In(y), b.Slice(x, 0, grain).In())
	b.Copy("down", b.Whole(b.Host("h", dag.U8, 2*grain)), b.Whole(x))
	require.Equal(t, `
x: [512] on host, init, save
x(0..256)@0: [256] on device 0, x from 0
x(0..256)@0 #2: [256] on device 0, x from 0
y@host: [256] on host, y from 0
y: [256] on device 0
z: [256] on device 0, init
h: [512] on host
- x(0..256) in, in x(0..256), out x(0..256)@0
- change, inout x(0..256)@0, in z
- x(0..256) out, in x(0..256)@0, out x(0..256)
- copy, in x(256..512), out y@host
- y in, in y@host, out y, after x(0..256) in, after change, after x(0..256) out
- x(0..256) in #2, in x(0..256), out x(0..256)@0 #2
- use, in y, in x(0..256)@0 #2
- down, in x, out h
`, "\n"+spilledInFull(t, b,
		plan.Residency{Buffer: z, Hi: grain, Last: 3, Offset: 2 * grain, Stays: true},
		plan.Residency{Buffer: x, Hi: grain}, plan.Residency{Buffer: y, Hi: grain, First: 2, Last: 2},
		plan.Residency{Buffer: x, Hi: grain, First: 2, Last: 2, Offset: grain}))
}

// Loops and branches are as they were, on the parts that are on the device meanwhile.
func TestSpilledLoops(t *testing.T) {
	b := dag.New("loop")
	x, y := b.Device("x", dag.U8, grain), b.Device("y", dag.U8, grain)
	b.Task("make", b.Out(x))
	b.Repeat("loop", dag.Loop{Times: 3}, func() {
		b.Task("fill", b.Out(y))
		b.After(b.Task("empty"), b.Task("change", b.InOut(y)))
	})
	b.If("if", "x(0..1) < 3", func() { b.Task("once", b.InOut(x)) }, nil)
	b.Task("use", b.In(y))
	require.Equal(t, `
x@host: [256] on host, x from 0
x: [256] on device 0
x@0: [256] on device 0, x from 0
y@host: [256] on host, y from 0
y: [256] on device 0
y@0: [256] on device 0, y from 0
- make, out x
- x out, in x, out x@host
- loop:
-   fill, out y
-   empty, after change
-   change, inout y
- y out, in y, out y@host
- x in, in x@host, out x@0, after loop, after y out
- if:
-   once, inout x@0
- y in, in y@host, out y@0, after x in, after if
- use, in y@0
`, "\n"+spilledInFull(t, b,
		plan.Residency{Buffer: x, Hi: grain}, plan.Residency{Buffer: y, Hi: grain, First: 1, Last: 1}, plan.Residency{Buffer: x, Hi: grain, First: 2, Last: 2},
		plan.Residency{Buffer: y, Hi: grain, First: 3, Last: 3}))
}

// Residencies in a plan file are checked before anything is made of them.
func TestResidenciesThatCannotBeAreRefused(t *testing.T) {
	b := dag.New("wrong")
	h, x, y := b.Host("h", dag.U8, 2*grain), b.Device("x", dag.U8, 2*grain), b.Device("y", dag.U8, grain)
	b.Task("left", b.Slice(x, 0, grain).Out())
	b.Task("right", b.Slice(x, grain, 2*grain).Out())
	b.Task("use", b.Slice(x, 0, grain).In(), b.Out(y))
	b.Copy("over", b.Whole(x), b.Whole(h))
	g, err := b.Graph()
	require.NoError(t, err)
	p, err := NewSpillProblem(g, 3*grain, nil, nil)
	require.NoError(t, err)
	left := plan.Residency{Buffer: x, Hi: grain, Last: 2}
	right := plan.Residency{Buffer: x, Lo: grain, Hi: 2 * grain, First: 1, Last: 1, Offset: grain}
	last := plan.Residency{Buffer: y, Hi: grain, First: 2, Last: 2, Offset: 2 * grain}
	with := func(r plan.Residency, change func(r *plan.Residency)) plan.Residency {
		change(&r)
		return r
	}
	_, err = Spill(p, []plan.Residency{left, right, last})
	require.NoError(t, err)
	order, memory, bytes := "does not come in order, or does not end", "lies outside of the device's memory", "has other bytes than those that are used together"
	for _, c := range []struct {
		list []plan.Residency
		want string
	}{
		{[]plan.Residency{with(left, func(r *plan.Residency) { r.Buffer = -1 })}, "residency 0 is of no device buffer"},
		{[]plan.Residency{with(left, func(r *plan.Residency) { r.Buffer = 3 })}, "residency 0 is of no device buffer"},
		{[]plan.Residency{with(left, func(r *plan.Residency) { r.Buffer = h })}, "residency 0 is of no device buffer"},
		{[]plan.Residency{right, left}, "residency 1 " + order},
		{[]plan.Residency{left, with(right, func(r *plan.Residency) { r.Last = 0 })}, "residency 1 " + order},
		{[]plan.Residency{with(left, func(r *plan.Residency) { r.Last = 4 })}, "residency 0 " + order},
		{[]plan.Residency{with(left, func(r *plan.Residency) { r.First = -1 })}, "residency 0 " + order},
		{[]plan.Residency{with(left, func(r *plan.Residency) { r.Offset = -grain })}, "residency 0 " + memory},
		{[]plan.Residency{with(left, func(r *plan.Residency) { r.Offset = 3*grain + 1 })}, "residency 0 " + memory},
		{[]plan.Residency{with(left, func(r *plan.Residency) { r.Offset = 2*grain + 1 })}, "residency 0 " + memory},
		{[]plan.Residency{with(left, func(r *plan.Residency) { r.Hi++ })}, "residency 0 " + bytes},
		{[]plan.Residency{with(left, func(r *plan.Residency) { r.Hi-- })}, "residency 0 " + bytes},
		{[]plan.Residency{with(left, func(r *plan.Residency) { r.Lo++ })}, "residency 0 " + bytes},
		{[]plan.Residency{{Buffer: x, Hi: 2 * grain, Last: 3, Stays: true}, left}, "residency 1 " + bytes},
		{[]plan.Residency{left, with(left, func(r *plan.Residency) { r.Offset = grain }), right, last},
			"residency 1 begins before the last of these bytes has ended"},
		{[]plan.Residency{left, with(right, func(r *plan.Residency) { r.Offset = 0 }), last}, "residency 1 lies where another one is"},
		{[]plan.Residency{left, with(right, func(r *plan.Residency) { r.Offset = grain - 1 }), last}, "residency 1 lies where another one is"},
		{[]plan.Residency{with(left, func(r *plan.Residency) { r.Offset = grain + 1 }), right, last}, "residency 1 lies where another one is"},
		{[]plan.Residency{left, last}, `"right" finds x(256..512) not on the device`},
		{[]plan.Residency{with(left, func(r *plan.Residency) { r.Last = 1 }), right, last}, `"use" finds x(0..256) not on the device`},
		{[]plan.Residency{with(left, func(r *plan.Residency) { r.Last = 3 }), right, last}, `"over" writes what is also on the device`},
	} {
		_, err := Spill(p, c.list)
		require.EqualError(t, err, "the pipeline cannot be spilled to host memory: "+c.want)
		require.ErrorIs(t, err, ErrCannotSpill)
	}
}
