// Tests of what a loop or branch accesses as one node, of what its passes hand on, and of the text that its condition has in a hash.

package dag_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/dag/expr"
	"github.com/dagrun/dagrun/dag/outline"
)

// What a branch possibly leaves unwritten keeps its contents, which counts as reading it, unless nobody outside can tell.
func TestBranchesThatMayNotWrite(t *testing.T) {
	for _, c := range []struct {
		what   string
		beside func(b *dag.Builder, x dag.BufferID) // also declares what is around the branch, whose node comes first
		want   string
	}{
		{"used inside only", func(*dag.Builder, dag.BufferID) {}, "out"},
		{"read after it", func(b *dag.Builder, x dag.BufferID) { b.Task("after", b.In(x)) }, "inout"},
		{"read in another branch", func(b *dag.Builder, x dag.BufferID) {
			b.If("other", "t", func() { b.Task("after", b.In(x)) }, nil)
		}, "inout"},
		{"read in a loop", func(b *dag.Builder, x dag.BufferID) {
			b.Repeat("other", dag.Loop{Times: 2}, func() { b.If("inside", "t", func() { b.Task("after", b.In(x)) }, nil) })
		}, "inout"},
		{"tested by another branch", func(b *dag.Builder, x dag.BufferID) {
			b.If("other", "x(0..1) > 0", func() { b.Task("after") }, nil)
		}, "inout"},
		{"saved", func(b *dag.Builder, x dag.BufferID) { b.Save(x, "x.npy") }, "inout"},
		{"initialised", func(b *dag.Builder, x dag.BufferID) { b.Init(x, dag.Init{}) }, "inout"},
		{"expected", func(b *dag.Builder, x dag.BufferID) { b.Expect(x, dag.Expect{Kind: dag.ExpectValue}) }, "inout"},
		{"scratch that is read after it", func(b *dag.Builder, x dag.BufferID) {
			b.BufferAt(x).Scratch = true
			b.Task("after", b.In(x))
		}, "out"},
	} {
		b := dag.New("p")
		flag, x := b.Device("t", dag.Bool, 1), b.Device("x", dag.F32, 8)
		b.Memset("told", b.Whole(flag), 1)
		node := b.If("branch", "t", func() {
			b.If("inner", "t", func() { b.Task("write", b.Out(x)) }, nil)
			b.Task("use", b.In(flag))
		}, nil)
		c.beside(b, x)
		g, err := b.Graph()
		require.NoError(t, err, c.what)
		var modes []string
		for _, a := range g.Accesses(node) {
			if a.Buffer == x {
				modes = append(modes, a.Mode.String())
			}
		}
		require.Equal(t, []string{c.want}, modes, c.what)
	}
}

// A loop carries what a pass reads before it has certainly written it, and makes a pass if nothing is tested before.
func TestWhatPassesHandOn(t *testing.T) {
	for _, c := range []struct {
		loop    dag.Loop
		passes  bool
		carries []string
	}{
		{dag.Loop{Times: 3}, true, []string{"sum"}},
		{dag.Loop{Times: 0}, false, []string{"sum"}},
		{dag.Loop{Until: "sum(0..1) > 3", Most: 9}, true, []string{"sum"}},
		{dag.Loop{While: "sum(0..1) < 3", Most: 9}, false, []string{"sum"}},
	} {
		b := dag.New("p")
		out, tmp, sum := b.Device("out", dag.F32, 8), b.Device("tmp", dag.F32, 8), b.Device("sum", dag.F32, 8)
		b.Memset("zero", b.Whole(sum), 0)
		node := b.Repeat("loop", c.loop, func() {
			b.Task("fill", b.Out(tmp))
			b.Task("add", b.In(tmp), b.InOut(sum))
			b.Task("copy", b.In(sum), b.Out(out))
		})
		g, err := b.Graph()
		require.NoError(t, err)
		control := g.Nodes[node].Control
		require.Equal(t, c.passes, control.MakesAPass(), "%+v", c.loop)
		var carries []string
		for id := range g.Buffers {
			if control.Carries(dag.BufferID(id)) {
				carries = append(carries, g.Buffers[id].Name)
			}
		}
		require.Equal(t, c.carries, carries, "%+v", c.loop)
	}
	require.False(t, (*dag.Control)(nil).Carries(0))
	require.False(t, (*dag.Control)(nil).MakesAPass())
}

// What a loop in a loop certainly writes is written for what comes after it in the same pass, and what a condition tests is read where it is tested.
func TestWhatLoopsWithinHandOn(t *testing.T) {
	for _, c := range []struct {
		inner   dag.Loop
		carries bool
	}{{dag.Loop{Times: 2}, false}, {dag.Loop{}, true}, {dag.Loop{Until: "sum(0..1) > 3", Most: 2}, false}, {dag.Loop{While: "sum(0..1) > 3", Most: 2}, true}} {
		b := dag.New("p")
		tmp, sum := b.Device("tmp", dag.F32, 8), b.Device("sum", dag.F32, 8)
		node := b.Repeat("loop", dag.Loop{Times: 3}, func() {
			b.Repeat("inner", c.inner, func() { b.Task("fill", b.Out(tmp)) })
			b.Task("add", b.In(tmp), b.InOut(sum))
		})
		g, err := b.Graph()
		require.NoError(t, err)
		require.Equal(t, c.carries, g.Nodes[node].Control.Carries(tmp), "%+v", c.inner)
		inner := g.Nodes[node].Control.Bodies[0].Nodes[0].Control
		if c.carries {
			require.True(t, inner.MayOnly(dag.Range{Buffer: tmp, Hi: 4}))
		}
		require.False(t, inner.MayOnly(dag.Range{Buffer: sum, Hi: 4}))
	}
	for want, declare := range map[string]func(b *dag.Builder, write func()) dag.NodeID{
		"inout": func(b *dag.Builder, write func()) dag.NodeID {
			return b.If("n", "x > 0", write, func() { b.Task("other", dag.Range{Buffer: 0, Hi: 4}.Out()) })
		},
		"out": func(b *dag.Builder, write func()) dag.NodeID {
			return b.Repeat("n", dag.Loop{Until: "x > 0", Most: 2}, write)
		},
		"in": func(b *dag.Builder, _ func()) dag.NodeID { return b.If("n", "x > 0", func() { b.Task("none") }, nil) },
	} {
		b := dag.New("p")
		x := b.Device("x", dag.F32, 1)
		node := declare(b, func() { b.Task("write", b.Out(x)) })
		b.Task("after", b.In(x))
		g, err := b.Graph()
		require.NoError(t, err)
		require.Equal(t, []string{want}, []string{g.Accesses(node)[0].Mode.String()})
		require.Len(t, g.Accesses(node), 1)
	}
	require.False(t, (*dag.Control)(nil).MayOnly(dag.Range{Hi: 4}))
}

// Two loops whose conditions compare with other numbers do other work, whatever the buffers are called.
func TestConditionsAreHashedAsTheyAreComputed(t *testing.T) {
	hash := func(name, condition string) string {
		b := dag.New("p")
		x := b.Device(name, dag.F32, 8)
		b.Memset("zero", b.Whole(x), 0)
		b.Repeat("loop", dag.Loop{Until: condition, Most: 9}, func() { b.Task("add", b.InOut(x)) })
		g, err := b.Graph()
		require.NoError(t, err)
		return g.WorkHash()
	}
	require.Equal(t, hash("x", "x(0..1) > 3"), hash("y", "y(0..1) > 3"))
	require.NotEqual(t, hash("x", "x(0..1) > 3"), hash("x", "x(0..1) > 4"))
	require.NotEqual(t, hash("x", "x(0..1) > 3"), hash("x", "x(0..1) >= 3"))
	require.Equal(t, "operand 0 > 3", conditioned(t, "x > 3").Bound())
	require.Empty(t, (*dag.Condition)(nil).Bound())
	require.Empty(t, (&dag.Condition{}).Bound())
}

// Of several nodes that come after themselves, the first is named.
func TestNodesAfterThemselves(t *testing.T) {
	for first := range dag.NodeID(3) {
		b := dag.New("p")
		for _, name := range []string{"a", "b", "c"} {
			b.Task(name)
		}
		for node := first; node < 3; node++ {
			b.After(node, node)
		}
		_, err := b.Graph()
		require.EqualError(t, err, `node "`+string('a'+rune(first))+`" depends on itself`)
	}
}

// Two graphs differ if their loops and branches are made otherwise; how often a loop runs is a matter of work.
func TestDifferencesOfLoops(t *testing.T) {
	type parts struct {
		loop      dag.Loop
		condition string
		body      func(b *dag.Builder, x dag.BufferID)
		otherwise func()
	}
	declare := func(change func(p *parts, b *dag.Builder, x, y dag.BufferID)) *dag.Graph {
		b := dag.New("p")
		x, y := b.Device("x", dag.F32, 8), b.Device("y", dag.F32, 8)
		p := &parts{loop: dag.Loop{Until: "x(0..1) > 3", Most: 9}, condition: "y(0..1) > 3", body: func(b *dag.Builder, x dag.BufferID) { b.Task("add", b.InOut(x)) }}
		if change != nil {
			change(p, b, x, y)
		}
		b.Memset("clear", b.Whole(x), 0)
		b.Memset("zero", b.Whole(y), 0)
		b.Repeat("loop", p.loop, func() { p.body(b, x) })
		b.If("branch", p.condition, func() { b.Task("use", b.In(x), b.In(y)) }, p.otherwise)
		g, err := b.Graph()
		require.NoError(t, err)
		return g
	}
	base := declare(nil)
	seen := map[string]string{base.Hash(): "base"}
	for _, c := range []struct {
		want   string
		change func(p *parts, b *dag.Builder, x, y dag.BufferID)
	}{
		{`node "branch" has 2 bodies, it had 1`, func(p *parts, b *dag.Builder, x, y dag.BufferID) {
			p.otherwise = func() { b.Task("otherwise", b.In(x), b.In(y)) }
		}},
		{`node "loop" is tested before each pass, it was not`, func(p *parts, _ *dag.Builder, _, _ dag.BufferID) { p.loop = dag.Loop{While: "x(0..1) > 3", Most: 9} }},
		{`node "loop" is not tested, it was`, func(p *parts, _ *dag.Builder, _, _ dag.BufferID) { p.loop = dag.Loop{Times: 9} }},
		{`node "loop" has a body in which node "more" is new`, func(p *parts, _ *dag.Builder, _, _ dag.BufferID) {
			p.body = func(b *dag.Builder, x dag.BufferID) {
				b.Task("add", b.InOut(x))
				b.Task("more", b.In(x))
			}
		}},
		{`node "branch" tests other buffers`, func(p *parts, _ *dag.Builder, _, _ dag.BufferID) { p.condition = "y(1..2) > 3" }},
	} {
		other := declare(c.change)
		require.Contains(t, outline.Difference(other, base), c.want)
		require.NotEmpty(t, outline.Difference(base, other), c.want)
		require.NotContains(t, seen, other.Hash(), c.want)
		seen[other.Hash()] = c.want
	}
	times := func(n int64) *dag.Graph {
		return declare(func(p *parts, _ *dag.Builder, _, _ dag.BufferID) { p.loop = dag.Loop{Times: n} })
	}
	require.Equal(t, times(1).Hash(), times(9).Hash())
	require.NotEqual(t, times(1).WorkHash(), times(9).WorkHash())
	require.NotEqual(t, times(0).Hash(), times(1).Hash())
	require.Contains(t, outline.Difference(times(0), times(2)), `node "loop" makes 0 passes, it made 2`)
	require.Contains(t, outline.Difference(times(2), times(0)), `node "loop" makes 2 passes, it made 0`)
	more := declare(func(p *parts, _ *dag.Builder, _, _ dag.BufferID) { p.loop.Most = 8 })
	require.Equal(t, base.Hash(), more.Hash())
	require.NotEqual(t, base.WorkHash(), more.WorkHash())
}

// What is wrong with a loop or branch is said with its name; nodes in it have its priority.
func TestLoopsThatAreWrong(t *testing.T) {
	b := dag.New("p")
	x := b.Device("x", dag.F32, 8)
	use := func(name string) func() { return func() { b.Task(name, b.In(x)) } }
	for k, c := range []struct {
		loop dag.Loop
		want string
	}{
		{dag.Loop{Times: -1}, "-1 passes; there can be from 0 to 1099511627776"},
		{dag.Loop{Times: dag.MaxPasses + 1}, "1099511627777 passes; there can be from 0 to 1099511627776"},
		{dag.Loop{Times: dag.MaxPasses}, ""},
		{dag.Loop{Until: "x(0..1) > 3", While: "x(0..1) > 3", Most: 1}, "a loop has one of Times, Until and While"},
		{dag.Loop{Until: "x(0..1) > 3", Times: 1, Most: 1}, "a loop has one of Times, Until and While"},
		{dag.Loop{Times: 3, Most: 1}, "Most, Every, OrStop and Expect belong to a loop with Until or While"},
		{dag.Loop{Times: 3, Every: 1}, "Most, Every, OrStop and Expect belong to a loop with Until or While"},
		{dag.Loop{Times: 3, OrStop: true}, "Most, Every, OrStop and Expect belong to a loop with Until or While"},
		{dag.Loop{Times: 3, Expect: new(int64)}, "Most, Every, OrStop and Expect belong to a loop with Until or While"},
		{dag.Loop{Until: "x(0..1) > 3"}, "a loop with Until or While needs Most: how many passes it may take"},
		{dag.Loop{Until: "x(0..1) > 3", Most: 1}, ""},
		{dag.Loop{Until: "x(0..1) > 3", Most: 1, Every: -1}, "the condition is tested every -1 passes; the number must be at least 1"},
	} {
		b = dag.New("p")
		x = b.Device("x", dag.F32, 8)
		b.Repeat("loop", c.loop, use("n"))
		if _, err := b.Graph(); c.want == "" {
			require.NoError(t, err, k)
		} else {
			require.EqualError(t, err, `node "loop": `+c.want, k)
		}
	}
	for _, priority := range []dag.Priority{dag.Low, dag.Normal, dag.High} {
		b = dag.New("p")
		x = b.Device("x", dag.F32, 8)
		loop := b.Repeat("loop", dag.Loop{Times: 2}, func() { b.Repeat("inner", dag.Loop{Times: 2}, use("n")) })
		b.Priority(loop, priority)
		g, err := b.Graph()
		require.NoError(t, err)
		g.EachGraph(func(g *dag.Graph, _ []string) {
			for i := range g.Nodes {
				require.Equal(t, priority, g.Nodes[i].Priority, g.Nodes[i].Name)
			}
		})
	}
	b = dag.New("p")
	b.Device("d", dag.F32, -1)
	b.Device("e", 99, 1)
	_, err := b.Graph()
	require.ErrorContains(t, err, `buffer "d": dimension 0 of the shape is -1; it must not be negative`)
	require.ErrorContains(t, err, `buffer "e": `)
}

// A condition that was changed by hand reads single elements on the device of its node, whose types it states.
func TestConditionsByHand(t *testing.T) {
	for _, c := range []struct {
		want   string
		change func(p *dag.Pipeline, c *dag.Condition)
	}{
		{"", func(*dag.Pipeline, *dag.Condition) {}},
		{"it has 0 operands and 2 types", func(_ *dag.Pipeline, c *dag.Condition) { c.Operands = nil }},
		{"it has 2 operands and 1 types", func(_ *dag.Pipeline, c *dag.Condition) { c.Types = c.Types[:1] }},
		{"it has 0 operands and 0 types", func(_ *dag.Pipeline, c *dag.Condition) { c.Operands, c.Types = nil, nil }},
		{"there is no buffer with id 9", func(_ *dag.Pipeline, c *dag.Condition) { c.Operands[1].Buffer = 9 }},
		{`"y" is in host memory; a condition reads device buffers`, func(p *dag.Pipeline, _ *dag.Condition) { p.Buffers[1].Place = dag.Host }},
		{`"y" is on device 1, and the node on device 0`, func(p *dag.Pipeline, _ *dag.Condition) { p.Buffers[1].Device = 1 }},
		{`"y" is of type f32, not i32`, func(_ *dag.Pipeline, c *dag.Condition) { c.Types[1] = dag.I32 }},
		{"a condition reads single elements, and y(0..2) has 2; write a slice such as x(0..1)", func(_ *dag.Pipeline, c *dag.Condition) { c.Operands[1].Hi = 8 }},
		{"a term of the expression is nil", func(_ *dag.Pipeline, c *dag.Condition) { c.Expr = &expr.Expr{} }},
		{"it must be true or false, not a number", func(_ *dag.Pipeline, c *dag.Condition) { c.Expr = &expr.Expr{Root: c.Expr.Root.Args[0]} }},
		{`unknown name "z"`, func(_ *dag.Pipeline, c *dag.Condition) {
			c.Expr = &expr.Expr{Root: &expr.Term{Op: expr.Variable, Name: "z"}}
		}},
	} {
		b := dag.New("p")
		x, y := b.Device("x", dag.F32, 8), b.Device("y", dag.F32, 8)
		node := b.If("branch", "x(0..1) > y(0..1)", func() { b.Task("use", b.In(x), b.In(y)) }, nil)
		g, err := b.Graph()
		require.NoError(t, err)
		p := g.Pipeline
		c.change(p, p.Nodes[node].Control.Condition)
		if c.want == "" {
			require.NoError(t, p.Problem())
		} else {
			require.EqualError(t, p.Problem(), `node "branch": condition: `+c.want)
		}
	}
	require.Equal(t, dag.FloatNumber, (*dag.Condition)(nil).Kind(nil))
	short := conditioned(t, "x > 3")
	short.Types = nil
	require.False(t, short.Holds(func(int) uint64 { return 1 }))
}

// A pipeline whose bodies are graphs already gives the same graph again.
func TestGraphsOfLoopsAreDerivedAgain(t *testing.T) {
	b := dag.New("p")
	x, y := b.Device("x", dag.F32, 8), b.Device("y", dag.F32, 8)
	b.Task("fill", b.Out(x))
	loop := b.Repeat("loop", dag.Loop{Times: 2}, func() {
		b.Task("add", b.InOut(x))
		b.If("inner", "x(0..1) > 3", func() { b.Task("use", b.In(x), b.Out(y)) }, func() { b.Task("other", b.In(x)) })
	})
	require.Len(t, b.At(loop).Control.Declared(), 1)
	b.Task("end", b.In(y))
	g, err := b.Graph()
	require.NoError(t, err)
	again, err := g.Pipeline.Graph()
	require.NoError(t, err)
	require.Equal(t, g.Hash(), again.Hash())
	require.Equal(t, g.Edges(), again.Edges())
	var seen []string
	again.EachGraph(func(g *dag.Graph, path []string) {
		require.NoError(t, g.Check())
		seen = append(seen, strings.Join(path, "/")+":"+g.Nodes[0].Name)
		for i := range g.Nodes {
			require.Empty(t, g.Nodes[i].Control.Declared())
		}
	})
	require.Equal(t, []string{":fill", "loop:add", "loop/inner:use", "loop/inner:other"}, seen)
	require.True(t, again.HasControl())
	control := g.Nodes[loop].Control.Bodies[0].Nodes[1].Control
	require.Equal(t, []string{"", "else"}, []string{control.BodyName(0), control.BodyName(1)})
	require.Equal(t, "if x(0..1) > 3, else", control.Action(dag.Branch))
	require.Equal(t, "repeat 2 times", g.Nodes[loop].Control.Action(dag.Repeat))
	require.Equal(t, "kernel", (*dag.Control)(nil).Action(dag.Kernel))
	condition := &dag.Condition{Text: "x < 1"}
	require.Equal(t, "repeat until x < 1, at most 1 time", (&dag.Control{Condition: condition, Times: 1, Every: 1}).Action(dag.Repeat))
	require.Equal(t, "repeat while x < 1, at most 9 times, tested every 2", (&dag.Control{Condition: condition, While: true, Times: 9, Every: 2}).Action(dag.Repeat))
	require.Equal(t, "if x < 1", (&dag.Control{Condition: condition, Bodies: []*dag.Graph{nil}}).Action(dag.Branch))
}

// A loop or branch is on the device of what it tests, or else of its first node; host functions of its bodies go with it, unless they have a device of their own.
func TestHomesOfLoops(t *testing.T) {
	b := dag.New("p")
	x, y, h := b.Device("x", dag.F32, 8), b.Device("y", dag.F32, 8), b.Host("h", dag.F32, 8)
	b.OnDevice(x, 1)
	b.OnDevice(y, 2)
	body := func(k string) func() {
		return func() {
			b.HostFunction("called "+k, "f", b.InOut(h))
			fixed := b.HostFunction("fixed "+k, "f", b.InOut(h))
			b.At(fixed).Fixed, b.At(fixed).Device = k == "2", 3
			b.Memset("set "+k, b.Whole(x), 0)
			b.Memset("last "+k, b.Whole(y), 0)
		}
	}
	nodes := []dag.NodeID{
		b.If("tests", "y(0..1) > 0", body("0"), nil),
		b.Repeat("counts", dag.Loop{Times: 2}, body("1")),
		b.Repeat("begins elsewhere", dag.Loop{Times: 2}, body("2")),
		b.Repeat("host only", dag.Loop{Times: 2}, func() { b.HostFunction("called", "f", b.InOut(h)) }),
	}
	g, err := b.Graph()
	require.NoError(t, err)
	for k, want := range [][]int32{{2, 2, 2, 1, 2}, {1, 1, 1, 1, 2}, {3, 3, 3, 1, 2}, {0, 0}} {
		n := &g.Nodes[nodes[k]]
		got := []int32{n.Device}
		for i := range n.Control.Bodies[0].Nodes {
			got = append(got, n.Control.Bodies[0].Nodes[i].Device)
		}
		require.Equal(t, want, got, n.Name)
	}
}

// Each loop or branch that cannot be part of a CUDA graph says which of its nodes is to blame, and how to change it.
func TestWhatNoGraphCanHold(t *testing.T) {
	type buffers struct{ d, e, far, pinned, pageable dag.BufferID }
	exchange := func(b *dag.Builder, transfers ...dag.Transfer) {
		b.Communicate("n", dag.Communication{Verb: dag.Exchange, Transfers: transfers})
	}
	for _, c := range []struct {
		why, fix string
		ranks    int
		body     func(b *dag.Builder, of buffers)
	}{
		{"", "", 0, func(b *dag.Builder, of buffers) { b.Node(dag.Node{Name: "n", Kind: dag.Memcpy}, b.In(of.far)) }},
		{"", "", 0, func(b *dag.Builder, of buffers) { b.Memset("n", b.Whole(of.d), 0) }},
		{"", "", 0, func(b *dag.Builder, of buffers) { b.Copy("n", b.Whole(of.d), b.Whole(of.pinned)) }},
		{"", "", 0, func(b *dag.Builder, of buffers) { b.Copy("n", b.Whole(of.pinned), b.Whole(of.d)) }},
		{"", "", 0, func(b *dag.Builder, of buffers) { b.Copy("n", b.Whole(of.e), b.Whole(of.d)) }},
		{"copies pageable host memory", `let "pageable" be pinned, or move the copy out of the body`, 0, func(b *dag.Builder, of buffers) { b.Copy("n", b.Whole(of.d), b.Whole(of.pageable)) }},
		{"copies pageable host memory", `let "pageable" be pinned, or move the copy out of the body`, 0, func(b *dag.Builder, of buffers) { b.Copy("n", b.Whole(of.pageable), b.Whole(of.d)) }},
		{"copies pageable host memory", `let "pageable" be pinned, or move the copy out of the body`, 0, func(b *dag.Builder, of buffers) { b.Copy("n", b.Whole(of.pageable), b.Whole(of.pinned)) }},
		{"copies within host memory", "keep the data on the device, or move the copy out of the body", 0, func(b *dag.Builder, of buffers) {
			b.Copy("n", b.Whole(of.pinned), b.Whole(b.Host("another", dag.F32, 8)))
		}},
		{"copies to or from another device", "move the copy out of the body", 0, func(b *dag.Builder, of buffers) { b.Copy("n", b.Whole(of.far), b.Whole(of.d)) }},
		{"runs on device 1, not 0", "keep all of it on one device", 0, func(b *dag.Builder, of buffers) { b.Copy("n", b.Whole(of.d), b.Whole(of.far)) }},
		{"runs a host function", "move it out of the body", 0, func(b *dag.Builder, of buffers) { b.HostFunction("n", "f", b.In(of.pinned)) }},
		{"", "", 1, func(b *dag.Builder, of buffers) {
			exchange(b, dag.Transfer{Range: b.Whole(of.d)}, dag.Transfer{Range: b.Whole(of.e), Receive: true}, dag.Transfer{Range: b.Whole(of.d), Rank: 1}, dag.Transfer{Range: b.Whole(of.d), Rank: -1})
		}},
		{"communicates with other ranks", "use foreach in place of the loop, or move it out of the body", 1, func(b *dag.Builder, of buffers) {
			exchange(b, dag.Transfer{Range: b.Slice(of.d, 0, 4)}, dag.Transfer{Range: b.Slice(of.e, 0, 4), Receive: true}, dag.Transfer{Range: b.Slice(of.d, 4, 8)}, dag.Transfer{Range: b.Slice(of.e, 4, 8), Receive: true})
		}},
		{"communicates with other ranks", "use foreach in place of the loop, or move it out of the body", 2, func(b *dag.Builder, of buffers) { exchange(b, dag.Transfer{Range: b.Whole(of.d), Rank: 1}) }},
		{"", "", 1, func(b *dag.Builder, of buffers) {
			b.Communicate("n", dag.Communication{Verb: dag.AllReduce, Reduction: dag.Sum, From: b.Whole(of.d), To: b.Whole(of.d)})
		}},
		{"communicates with other ranks", "use foreach in place of the loop, or move it out of the body", 2, func(b *dag.Builder, of buffers) {
			b.Communicate("n", dag.Communication{Verb: dag.AllReduce, Reduction: dag.Sum, From: b.Whole(of.d), To: b.Whole(of.d)})
		}},
	} {
		b := dag.New("p")
		if c.ranks > 0 {
			b.Ranks(0, c.ranks)
		}
		of := buffers{b.Device("d", dag.F32, 8), b.Device("e", dag.F32, 8), b.Device("far", dag.F32, 8), b.Host("pinned", dag.F32, 8), b.Host("pageable", dag.F32, 8)}
		b.OnDevice(of.far, 1)
		b.Pageable(of.pageable)
		b.If("branch", "d(0..1) > 0", func() {
			c.body(b, of)
			b.HostFunction("later", "f")
		}, nil)
		g, err := b.Graph()
		require.NoError(t, err)
		found := g.Fallbacks()
		require.Len(t, found, 1, "the first node is named: %s", c.why)
		require.Equal(t, "branch", found[0].Control.Name)
		if c.why == "" {
			require.Equal(t, "later", found[0].Because.Name)
			continue
		}
		require.Equal(t, []string{"n", c.why, c.fix}, []string{found[0].Because.Name, found[0].Why, found[0].Fix})
		require.Equal(t, `"n" in "branch" `+c.why+", which the body of a conditional graph node cannot", g.NotInGraph())
	}
	many := func(n int) string {
		b := dag.New("p")
		for k := range n {
			name := string('a' + rune(k))
			b.Repeat(name, dag.Loop{Times: 2}, func() { b.HostFunction("in "+name, "f") })
		}
		g, err := b.Graph()
		require.NoError(t, err)
		return g.NotInGraph()
	}
	named := `"in a" in "a" runs a host function, "in b" in "b" runs a host function, "in c" in "c" runs a host function`
	require.Equal(t, named+` and "in d" in "d" runs a host function, which the body of a conditional graph node cannot`, many(4))
	require.Equal(t, named+`, "in d" in "d" runs a host function and so do 1 other loop or branch, which the body of a conditional graph node cannot`, many(5))
	require.Contains(t, many(6), "and so do 2 other loops and branches, which")
}
