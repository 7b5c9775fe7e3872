// Tests of what a loop or branch accesses as one node, of what its passes hand on, and of the text that its condition has in a hash.

package dag_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/dag"
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
