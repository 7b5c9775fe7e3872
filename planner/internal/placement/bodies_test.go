// Tests of placements of the nodes of loops and branches.

package placement

import (
	"context"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/planner/effort"
	"github.com/dagrun/dagrun/planner/model"
)

// A policy deals out the nodes of each body as it deals out those of a graph. What is tested is where its first element is written, if a body does so.
func TestPoliciesDealOutBodies(t *testing.T) {
	for _, c := range []struct {
		name    string
		declare func(b *dag.Builder, x, y, z dag.BufferID)
		at      []int32 // by number, those of bodies after all nodes of the graph
		want    []int32
	}{
		{"a loop", func(b *dag.Builder, x, y, z dag.BufferID) {
			b.Task("before", b.Out(x))
			b.Repeat("loop", dag.Loop{Times: 2}, func() {
				b.Task("a", b.InOut(x))
				b.Task("b", b.InOut(y))
				b.Task("c", b.InOut(z))
			})
		}, []int32{1, 1, 1, 1, 1}, []int32{1, 1, 0, 1, 0}},
		{"a loop that tests what its second node writes", func(b *dag.Builder, x, y, z dag.BufferID) {
			b.Repeat("loop", dag.Loop{While: "y(0..1) < 3", Most: 4}, func() {
				b.Task("a", b.InOut(x))
				b.Task("b", b.InOut(y))
				b.Task("c", b.Slice(y, 1, 8).InOut())
			})
		}, []int32{0, 0, 0, 0}, []int32{1, 0, 1, 0}},
		{"a loop that tests what it does not write", func(b *dag.Builder, x, y, z dag.BufferID) {
			b.Repeat("loop", dag.Loop{While: "y(0..1) < 3", Most: 4}, func() {
				b.Task("a", b.InOut(x))
				b.Task("b", b.Slice(y, 1, 8).InOut())
				b.Task("c", b.InOut(z), b.In(y))
			})
		}, []int32{0, 0, 0, 0}, []int32{0, 0, 1, 0}},
		{"a loop with a buffer that a kernel elsewhere reaches", func(b *dag.Builder, x, y, z dag.BufferID) {
			b.Node(dag.Node{Name: "peer", Kind: dag.Task, Peer: true}, b.In(x))
			b.Repeat("loop", dag.Loop{Times: 2}, func() {
				b.Task("a", b.InOut(y))
				b.Task("b", b.InOut(x))
				b.Task("c", b.InOut(z))
			})
		}, []int32{0, 0, 0, 0, 0}, []int32{0, 0, 0, 0, 1}},
		{"a branch", func(b *dag.Builder, x, y, z dag.BufferID) {
			b.If("if", "x(0..1) < 3", func() {
				b.Task("a", b.InOut(y))
				b.Task("b", b.InOut(x))
			}, func() {
				b.Task("c", b.InOut(y))
				b.Task("d", b.InOut(z))
			})
		}, []int32{0, 0, 0, 0, 0}, []int32{1, 0, 1, 0, 1}},
		{"a loop in a loop, with a node that is fixed", func(b *dag.Builder, x, y, z dag.BufferID) {
			b.Repeat("outer", dag.Loop{Times: 2}, func() {
				b.Task("a", b.InOut(x))
				b.Repeat("inner", dag.Loop{Times: 2}, func() {
					fixedTask(b, "fixed", 1, b.InOut(x))
					b.Task("b", b.InOut(y))
					b.Task("c", b.InOut(z))
				})
				b.Task("d", b.InOut(z))
			})
		}, []int32{0, 0, 0, 0, 1, 0, 0}, []int32{0, 0, 1, 1, 1, 0, 1}},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := dag.New("bodies")
			c.declare(b, b.Device("x", dag.U8, 64), b.Device("y", dag.U8, 64), b.Device("z", dag.U8, 64))
			g, err := b.Graph()
			require.NoError(t, err)
			p, err := NewProblem(g, 2, nil)
			require.NoError(t, err)
			d := NewDivider(p, model.Unit(), nil, 1, effort.Quick)
			before := slices.Clone(c.at)
			loops := d.Divisible()
			require.Len(t, loops, 1)
			divided, err := d.Divide(context.Background(), c.at, loops[0], RoundRobin)
			require.NoError(t, err)
			require.Equal(t, [][]int32{c.want}, divided)
			require.Equal(t, before, c.at, "what is divided is a copy")
		})
	}
}

// Nothing but the loop and what is in it moves, the fixed apart, and the best is among the few that are worth judging. Loops that have nothing to place
// are not divided.
func TestOnlyWhatIsInALoopIsDivided(t *testing.T) {
	moved := 0
	for seed := range uint64(60) {
		rng := rand.New(rand.NewPCG(seed, 15))
		b := dag.New("divided")
		var ids []dag.BufferID
		for _, name := range []string{"x", "y", "z"} {
			ids = append(ids, b.Device(name, dag.U8, 64))
		}
		count := 0
		task := func(free bool) {
			count++
			if x := ids[rng.IntN(3)]; free && rng.IntN(4) > 0 {
				b.Task(string(rune('a'+count)), b.In(ids[rng.IntN(3)]), b.InOut(x))
			} else {
				fixedTask(b, string(rune('a'+count)), int32(rng.IntN(3)), b.InOut(x))
			}
		}
		some := func(free bool) func() {
			return func() {
				for range 1 + rng.IntN(3) {
					task(free)
				}
			}
		}
		task(true)
		b.Repeat("loop", dag.Loop{Times: 2}, func() {
			some(true)()
			b.If("if", "x(0..1) < 3", some(true), some(true))
		})
		b.Repeat("fixed", dag.Loop{Times: 2}, some(false))
		task(true)
		g, err := b.Graph()
		require.NoError(t, err)
		p, err := NewProblem(g, 3, nil)
		require.NoError(t, err)
		d := NewDivider(p, model.Unit(), nil, 1, effort.Quick)
		at := slices.Clone(p.Fixed)
		for i := range at {
			if at[i] == Free {
				at[i] = int32(rng.IntN(3))
			}
		}
		loop := dag.NodeID(1)
		require.NotContains(t, d.Divisible(), dag.NodeID(2))
		divided, err := d.Divide(context.Background(), at, loop, Auto)
		require.NoError(t, err)
		require.NotEmpty(t, divided)
		inside := make([]bool, len(at))
		p.within(int32(loop), func(l *level, k dag.NodeID) { inside[l.first+int32(k)] = true })
		for _, placed := range divided {
			require.NoError(t, p.check(placed), "seed %d", seed)
			for i := range at {
				if !inside[i] {
					require.Equal(t, at[i], placed[i], "seed %d, node %d", seed, i)
				} else if placed[i] != at[i] {
					moved++
				}
			}
		}
	}
	require.Greater(t, moved, 100)
}
