// Random schedules of one rank: what the proof says of it agrees with reachability over every pair of its nodes. The parser orders all
// communication of a rank, so any nodes stand for it here.

package ranks

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/dag"
)

// randomSchedule makes an explicit schedule of nodes that touch parts of two buffers, on two streams or none, and picks some of them.
func randomSchedule(t *testing.T, rng *rand.Rand) (*dag.Graph, []op) {
	b := dag.New("schedule")
	b.Sync(dag.SyncExplicit)
	buffers := []dag.BufferID{b.Device("x", dag.U8, 8), b.Device("y", dag.U8, 8)}
	var ops []op
	for k := range 2 + rng.IntN(9) {
		n := dag.Node{Name: fmt.Sprintf("n%d", k), Kind: dag.Task}
		if rng.IntN(2) == 0 {
			n.Stream = dag.OnStream(int32(rng.IntN(2)))
		}
		for q := range dag.NodeID(k) {
			if rng.IntN(4) == 0 {
				n.After = append(n.After, q)
			}
		}
		if rng.IntN(3) == 0 {
			if len(ops) > 0 && rng.IntN(3) > 0 {
				n.After = append(n.After, ops[len(ops)-1].node)
			}
			ops = append(ops, op{node: dag.NodeID(k), name: n.Name, line: int32(k)})
		}
		var accesses []dag.Access
		for range 1 + rng.IntN(2) {
			lo := rng.Int64N(8)
			hi := lo + 1 + rng.Int64N(8-lo)
			if rng.IntN(8) == 0 {
				hi = lo // touches nothing
			}
			accesses = append(accesses, dag.Access{Range: dag.Range{Buffer: buffers[rng.IntN(2)], Lo: lo, Hi: hi}, Mode: dag.Mode(1 + rng.IntN(3))})
		}
		b.Node(n, accesses...)
	}
	g, err := b.Graph()
	require.NoError(t, err)
	return g, ops
}

// plainlyAlone compares every pair of nodes.
func plainlyAlone(g *dag.Graph, ops []op) (found []string) {
	n := len(g.Nodes)
	before := make([][]bool, n)
	for i := range before {
		before[i] = make([]bool, n)
	}
	for j := range n {
		for _, i := range g.Nodes[j].After {
			before[i][j] = true
		}
		for i := range j {
			if s := g.Nodes[j].Stream.Number(); s >= 0 && g.Nodes[i].Stream.Number() == s {
				before[i][j] = true
			}
		}
	}
	for k := range n {
		for i := range n {
			for j := range n {
				before[i][j] = before[i][j] || before[i][k] && before[k][j]
			}
		}
	}
	communicates := make([]bool, n)
	for k, o := range ops {
		communicates[o.node] = true
		if k > 0 && !before[ops[k-1].node][o.node] {
			found = append(found, fmt.Sprintf("rank 7: nothing orders %s before %s; all communication of a rank needs one order", ops[k-1].at(), o.at()))
		}
	}
	if len(found) > 0 {
		return found
	}
	for i := range n {
		if communicates[i] {
			continue
		}
		for _, a := range g.Accesses(dag.NodeID(i)) {
			if text := plainlyMeanwhile(g, ops, before, i, a); text != "" {
				found = append(found, text)
			}
		}
	}
	return found
}

// plainlyMeanwhile finds the first of some nodes that a node's access disturbs.
func plainlyMeanwhile(g *dag.Graph, ops []op, before [][]bool, i int, a dag.Access) string {
	for _, o := range ops {
		if before[i][o.node] || before[o.node][i] {
			continue
		}
		for _, b := range g.Accesses(o.node) {
			if a.Buffer != b.Buffer || min(a.Hi, b.Hi) <= max(a.Lo, b.Lo) || (a.Mode|b.Mode)&dag.Write == 0 {
				continue
			}
			does, done := "reads", "sends"
			if a.Mode&dag.Write != 0 {
				does = "writes"
			}
			if b.Mode&dag.Write != 0 {
				done = "receives"
			}
			return fmt.Sprintf("rank 7: %q %s %s while %s %s it, because nothing orders the two", g.Nodes[i].Name, does, g.RangeText(a.Range), o.at(), done)
		}
	}
	return ""
}

func TestOneRankAgreesWithReachability(t *testing.T) {
	right, unordered, disturbed := 0, 0, 0
	for seed := range uint64(5000) {
		g, ops := randomSchedule(t, rand.New(rand.NewPCG(seed, 9)))
		var got []string
		for _, v := range alone(g, ops, 7) {
			require.Equal(t, []int32{7}, v.Ranks)
			got = append(got, v.Text)
		}
		want := plainlyAlone(g, ops)
		require.Equal(t, want, got, "seed %d", seed)
		switch {
		case len(want) == 0:
			right++
		case strings.Contains(want[0], "one order"):
			unordered++
		default:
			disturbed++
		}
	}
	require.Greater(t, right, 500)
	require.Greater(t, unordered, 500)
	require.Greater(t, disturbed, 500)
}

// A node that disturbs much is not told about for ever.
func TestDisturbancesOfOneRankAreAtMostTwenty(t *testing.T) {
	for _, c := range [][2]int{{19, 19}, {20, 20}, {25, 20}} {
		b := dag.New("many")
		b.Sync(dag.SyncExplicit)
		x := b.Device("x", dag.U8, 8)
		b.Task("sum", b.InOut(x))
		for k := range c[0] {
			b.Task(fmt.Sprintf("n%d", k), b.In(x))
		}
		g, err := b.Graph()
		require.NoError(t, err)
		require.Len(t, alone(g, []op{{node: 0, name: "sum"}}, 0), c[1])
	}
}

// In a pipeline with sync: auto, hazards order nodes; two bodies of a branch are looked at one by one, and so is a body within a body.
func TestBodiesOfOneRankAreCheckedToo(t *testing.T) {
	b := dag.New("bodies")
	x, y := b.Device("x", dag.U8, 8), b.Device("y", dag.U8, 8)
	b.Task("before", b.Out(x))
	b.Repeat("loop", dag.Loop{Times: 2}, func() {
		b.Task("a", b.InOut(x))
		b.Task("b", b.InOut(x))
		b.Repeat("inner", dag.Loop{Times: 2}, func() {
			b.Task("c", b.InOut(x))
			b.Task("d", b.InOut(y))
		})
	})
	g, err := b.Graph()
	require.NoError(t, err)
	inner := op{node: 2, name: "inner", control: &control{bodies: [][]op{{{node: 0, name: "c"}, {node: 1, name: "d"}}}}}
	ops := []op{{node: 0, name: "before"}, {node: 1, name: "loop", control: &control{bodies: [][]op{{{node: 0, name: "a"}, {node: 1, name: "b"}, inner}}}}}
	require.Equal(t, []Violation{{[]int32{3}, `rank 3: nothing orders "c" before "d"; all communication of a rank needs one order`}}, aloneWithBodies(g, ops, 3))
}
