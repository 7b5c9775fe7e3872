// Tests of what a loop or branch accesses as one node, of what its passes hand on, and of the text that its condition has in a hash.

package dag_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/dag"
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
		{dag.Loop{Times: -1}, "-1 passes; there can be from 0 to 9223372036854775807"},
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
			require.ErrorContains(t, err, `node "loop": `, k)
			if c.loop.Times >= 0 {
				require.ErrorContains(t, err, c.want, k)
			}
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
