// Tests that a loop or branch must declare what its bodies do: each case takes something away from what it declares.

package proof

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/planner/internal/planted"
	"github.com/dagrun/dagrun/planner/plan"
)

func TestLoopsDeclareWhatTheirBodiesDo(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(a []dag.Access) // of in, out and state, in this order
		want   string
	}{
		{"all", func([]dag.Access) {}, ""},
		{"a read of less", func(a []dag.Access) { a[0].Hi -= 4 }, `a body of "loop" reads in(7..8), which "loop" does not declare`},
		{"a read that begins later", func(a []dag.Access) { a[0].Lo += 4 }, `a body of "loop" reads in(0..1), which "loop" does not declare`},
		{"no read", func(a []dag.Access) { a[0].Lo = a[0].Hi }, `a body of "loop" reads in, which "loop" does not declare`},
		{"a write for a read", func(a []dag.Access) { a[0].Mode = dag.Write }, `a body of "loop" reads in, which "loop" does not declare`},
		{"a write of less", func(a []dag.Access) { a[1].Hi -= 8 }, `a body of "loop" writes out(6..8), which "loop" does not declare`},
		{"a read for a write", func(a []dag.Access) { a[1].Mode = dag.Read }, `a body of "loop" writes out, which "loop" does not declare`},
		{"no read of what is changed", func(a []dag.Access) { a[2].Mode = dag.Write }, `a body of "loop" reads state, which "loop" does not declare`},
		{"no write of what is changed", func(a []dag.Access) { a[2].Mode = dag.Read }, `a body of "loop" writes state, which "loop" does not declare`},
		{"more", func(a []dag.Access) { a[0].Mode = dag.ReadWrite }, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := dag.New("declared")
			in, out, state := b.Device("in", dag.F32, 8), b.Device("out", dag.F32, 8), b.Device("state", dag.F32, 8)
			b.Task("fill", b.Out(in), b.Out(state))
			b.Repeat("loop", dag.Loop{Times: 2}, func() {
				b.Task("step", b.In(in), b.Out(out), b.InOut(state))
			})
			g, err := b.Graph()
			require.NoError(t, err)
			body := byHand(t, g.Nodes[1].Control.Bodies[0], "0 step")
			p := byHand(t, g, "0 fill, 0 loop")
			p.Bodies = []plan.Body{{Node: 1, Plan: body}}
			for k, id := range []dag.BufferID{in, out, state} {
				p.Memory = append(p.Memory, plan.Placement{Buffer: id, Offset: int64(k) * 256, Bytes: 32})
			}
			require.NoError(t, Verify(g, p))
			require.Len(t, g.Accesses(1), 3)
			c.change(g.Accesses(1))
			p.Kept = keptOf(g)
			err = Verify(g, p)
			if c.want == "" {
				require.NoError(t, err)
				return
			}
			require.EqualError(t, err, c.want)
			require.ErrorIs(t, err, ErrHazard)
			v := err.(*Violation)
			require.Equal(t, "loop", v.NodeName)
			require.Equal(t, g.Buffers[v.Buffer].Name, v.BufferName)
		})
	}
}

// keptOf are the buffers that a replay reads before it writes them, so that what is declared wrongly is found as such.
func keptOf(g *dag.Graph) (kept []dag.BufferID) {
	for b, early := range walkDeclared(g, declaredSchedule(g)).readFirst {
		if early {
			kept = append(kept, dag.BufferID(b))
		}
	}
	return kept
}

// What a loop may leave unwritten must not count as written.
func TestLoopsThatMayNotRunWriteNothingForCertain(t *testing.T) {
	b := dag.New("unwritten")
	x, y := b.Device("x", dag.F32, 8), b.Device("y", dag.F32, 8)
	b.Task("fill", b.Out(x), b.Out(y))
	b.Repeat("loop", dag.Loop{While: "x(0..1) > 0", Most: 3}, func() {
		b.Task("step", b.InOut(x), b.Out(y))
	})
	b.Task("use", b.In(y))
	g, err := b.Graph()
	require.NoError(t, err)
	p := byHand(t, g, "0 fill, 0 loop, 0 use")
	p.Bodies = []plan.Body{{Node: 1, Plan: byHand(t, g.Nodes[1].Control.Bodies[0], "0 step")}}
	p.Memory = []plan.Placement{{Buffer: x, Bytes: 32}, {Buffer: y, Offset: 256, Bytes: 32}}
	require.NoError(t, Verify(g, p))
	for k, a := range g.Accesses(1) {
		if a.Buffer == y {
			require.Equal(t, dag.ReadWrite, a.Mode)
			g.Accesses(1)[k].Mode = dag.Write
		}
	}
	require.EqualError(t, Verify(g, p), `"loop" counts as writing y, but a run may leave that unwritten`)
}

// The schedules of bodies come by node and body, one for each.
func TestEveryBodyHasItsSchedule(t *testing.T) {
	b := dag.New("bodies")
	x, y := b.Device("x", dag.F32, 8), b.Device("y", dag.F32, 8)
	b.Task("fill", b.Out(x), b.Out(y))
	b.If("choose", "x(0..1) > 1", func() { b.Task("one", b.InOut(x)) }, func() { b.Task("other", b.InOut(y)) })
	b.Repeat("loop", dag.Loop{Times: 2}, func() { b.Task("step", b.InOut(x)) })
	g, err := b.Graph()
	require.NoError(t, err)
	bodies := []plan.Body{
		{Node: 1, Body: 0, Plan: byHand(t, g.Nodes[1].Control.Bodies[0], "0 one")},
		{Node: 1, Body: 1, Plan: byHand(t, g.Nodes[1].Control.Bodies[1], "0 other")},
		{Node: 2, Body: 0, Plan: byHand(t, g.Nodes[2].Control.Bodies[0], "0 step")},
	}
	p := byHand(t, g, "0 fill, 0 choose, 0 loop")
	p.Memory = []plan.Placement{{Buffer: x, Bytes: 32}, {Buffer: y, Offset: 256, Bytes: 32}}
	for _, c := range []struct {
		name  string
		spoil func(list []plan.Body) []plan.Body
		want  string
	}{
		{"as it is", func(list []plan.Body) []plan.Body { return list }, ""},
		{"none", func([]plan.Body) []plan.Body { return nil }, `body 0 of "choose"`},
		{"one too few", func(list []plan.Body) []plan.Body { return list[:2] }, `body 0 of "loop"`},
		{"of another node", func(list []plan.Body) []plan.Body { list[1].Node = 2; return list }, `body 1 of "choose"`},
		{"of another body", func(list []plan.Body) []plan.Body { list[1].Body = 0; return list }, `body 1 of "choose"`},
		{"without a plan", func(list []plan.Body) []plan.Body { list[1].Plan = nil; return list }, `body 1 of "choose"`},
		{"in another order", func(list []plan.Body) []plan.Body { list[0], list[1] = list[1], list[0]; return list }, `body 0 of "choose"`},
	} {
		p.Bodies = c.spoil(append([]plan.Body(nil), bodies...))
		err := Verify(g, p)
		if c.want == "" {
			require.NoError(t, err, c.name)
			continue
		}
		require.ErrorIs(t, err, plan.ErrPlanShape, c.name)
		require.EqualError(t, err, "the plan has no schedule for "+c.want+": plan this graph again", c.name)
	}
	p.Bodies = append(append([]plan.Body(nil), bodies...), bodies[2])
	require.EqualError(t, Verify(g, p), "the plan has the schedules of 4 bodies, the graph has 3: plan this graph again")
	p = byHand(t, tasks(t, "only"), "0 only")
	p.Bodies = bodies[:1]
	require.EqualError(t, Verify(tasks(t, "only"), p), "the plan has the bodies of loops or branches, but the graph has none: plan this graph again")
}

// What is wrong with the plan of a body is said as for any plan, and where.
func TestPlansOfBodiesAreProved(t *testing.T) {
	b := dag.New("bodies")
	x, y := b.Device("x", dag.F32, 8), b.Device("y", dag.F32, 8)
	b.Repeat("outer", dag.Loop{Times: 2}, func() {
		b.Repeat("inner", dag.Loop{Times: 2}, func() {
			b.Task("one", b.InOut(x))
			b.Task("two", b.InOut(y))
			b.Task("three", b.In(x), b.InOut(y))
		})
	})
	g, err := b.Graph()
	require.NoError(t, err)
	outer := g.Nodes[0].Control.Bodies[0]
	inner := outer.Nodes[0].Control.Bodies[0]
	const right = "0 one, 0 record 0, 1 two, 1 wait 0, 1 three"
	for _, c := range []struct {
		ops   string
		spoil func(outer, inner *plan.Plan)
		fault planted.Fault
		want  string
	}{
		{right, nil, planted.None, ""},
		{"0 one, 1 two, 1 three", nil, planted.None,
			`in outer: in inner: "three" (stream 1) is not ordered after "one" (stream 0), which it depends on (RAW x): ` +
				`stream 1 must wait before "three" for an event recorded on stream 0 after "one"`},
		{right, func(_, inner *plan.Plan) { inner.Order = inner.Order[1:] }, planted.None, "in outer: in inner: the order has 4 entries, the streams have 5 ops"},
		{right, func(_, inner *plan.Plan) { inner.Memory = []plan.Placement{{Buffer: x, Bytes: 32}} }, planted.None,
			"in outer: in inner: a body has a memory layout of its own: plan this graph again"},
		{right, func(outer, _ *plan.Plan) { outer.Kept = []dag.BufferID{x} }, planted.None,
			"in outer: a body has a memory layout of its own: plan this graph again"},
		{right, nil, planted.Fork,
			`in outer: in inner: "two" (stream 1) can start before the replay before it has finished: ` +
				`stream 1 must wait for an event recorded on stream 0 at the start`},
		{right, nil, planted.Join,
			`in outer: in inner: "three" (stream 1) may still run when the next replay starts: ` +
				`stream 0 must wait at the end for an event recorded on stream 1 after "three"`},
	} {
		p, middle, innermost := byHand(t, g, "0 outer"), byHand(t, outer, "0 inner"), byHand(t, inner, c.ops)
		p.Memory = []plan.Placement{{Buffer: x, Bytes: 32}, {Buffer: y, Offset: 256, Bytes: 32}}
		p.Kept = []dag.BufferID{x, y}
		p.Bodies, middle.Bodies = []plan.Body{{Plan: middle}}, []plan.Body{{Plan: innermost}}
		if c.spoil != nil {
			c.spoil(middle, innermost)
		}
		remove := planted.Plant(c.fault)
		err := Verify(g, p)
		remove()
		if c.want == "" {
			require.NoError(t, err)
		} else {
			require.EqualError(t, err, c.want)
		}
	}
}
