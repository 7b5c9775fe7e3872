// Tests of memory within loops and branches: temporaries of a body share bytes, what passes carry does not, and the proof refuses layouts
// that were made without regard to that.

package planner_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/planner"
	"github.com/dagrun/dagrun/planner/internal/planted"
	"github.com/dagrun/dagrun/planner/internal/plantest"
	"github.com/dagrun/dagrun/planner/model"
	"github.com/dagrun/dagrun/planner/plan"
	"github.com/dagrun/dagrun/tests/nests"
)

// sharing returns, for each pair of buffers that a plan lets share bytes, both names in the order of ids.
func sharing(g *dag.Graph, p *planner.Plan) [][2]string {
	var pairs [][2]string
	for k, a := range p.Memory {
		for _, b := range p.Memory[k+1:] {
			if overlap(a, b) {
				pairs = append(pairs, [2]string{g.Buffers[a.Buffer].Name, g.Buffers[b.Buffer].Name})
			}
		}
	}
	return pairs
}

func overlap(a, b plan.Placement) bool {
	return a.Device == b.Device && a.Offset < b.Offset+b.Bytes && b.Offset < a.Offset+a.Bytes
}

// loopOf is a loop over nodes that a function declares, between an upload to x and a download of x.
func loopOf(t *testing.T, body func(b *dag.Builder, x dag.BufferID, device func(string) dag.BufferID)) *dag.Graph {
	t.Helper()
	b := dag.New("loop")
	in, out := b.Host("in", dag.F32, 64), b.Host("out", dag.F32, 64)
	device := func(name string) dag.BufferID { return b.Device(name, dag.F32, 64) }
	x := device("x")
	b.Copy("up", b.Whole(x), b.Whole(in))
	b.Repeat("solve", dag.Loop{Until: "x(0..1) < 1", Most: 9}, func() { body(b, x, device) })
	b.Copy("down", b.Whole(out), b.Whole(x))
	g, err := b.Graph()
	require.NoError(t, err)
	return g
}

func TestTemporariesOfABodyShareBytes(t *testing.T) {
	for _, c := range []struct {
		name string
		want [][2]string
		body func(b *dag.Builder, x dag.BufferID, device func(string) dag.BufferID)
	}{
		{"one after the other", [][2]string{{"a", "b"}}, func(b *dag.Builder, x dag.BufferID, device func(string) dag.BufferID) {
			first, second := device("a"), device("b")
			b.Task("make a", b.In(x), b.Out(first))
			b.Task("use a", b.In(first), b.InOut(x))
			b.Task("make b", b.In(x), b.Out(second))
			b.Task("use b", b.In(second), b.InOut(x))
		}},
		{"alive together", nil, func(b *dag.Builder, x dag.BufferID, device func(string) dag.BufferID) {
			first, second := device("a"), device("b")
			b.Task("make a", b.In(x), b.Out(first))
			b.Task("make b", b.In(x), b.Out(second))
			b.Task("use", b.In(first), b.In(second), b.InOut(x))
		}},
		{"carried", nil, func(b *dag.Builder, x dag.BufferID, device func(string) dag.BufferID) {
			sum, second := device("sum"), device("b")
			b.Task("add", b.In(x), b.InOut(sum))
			b.Task("use sum", b.In(sum), b.InOut(x))
			b.Task("make b", b.In(x), b.Out(second))
			b.Task("use b", b.In(second), b.InOut(x))
		}},
		{"in a branch only", nil, func(b *dag.Builder, x dag.BufferID, device func(string) dag.BufferID) {
			first, second := device("a"), device("b")
			b.If("some", "x(1..2) > 0", func() {
				b.Task("make a", b.In(x), b.Out(first))
				b.Task("use a", b.In(first), b.InOut(x))
			}, nil)
			b.Task("make b", b.In(x), b.Out(second))
			b.Task("use b", b.In(second), b.InOut(x))
		}},
		{"half of it in a branch only", nil, func(b *dag.Builder, x dag.BufferID, device func(string) dag.BufferID) {
			first, second := device("a"), device("b")
			b.Task("make a", b.In(x), dag.Access{Range: b.Slice(first, 0, 32), Mode: dag.Write})
			b.If("some", "x(1..2) > 0", func() { b.Task("more of a", b.In(x), b.Out(first)) }, nil)
			b.Task("use a", dag.Access{Range: b.Slice(first, 0, 32), Mode: dag.Read}, b.InOut(x))
			b.Task("make b", b.In(x), b.Out(second))
			b.Task("use b", b.In(second), b.InOut(x))
		}},
		{"in both branches", [][2]string{{"a", "b"}}, func(b *dag.Builder, x dag.BufferID, device func(string) dag.BufferID) {
			first, second := device("a"), device("b")
			b.If("some", "x(1..2) > 0", func() { b.Task("make a", b.In(x), b.Out(first)) }, func() { b.Memset("zero a", b.Whole(first), 0) })
			b.Task("use a", b.In(first), b.InOut(x))
			b.Task("make b", b.In(x), b.Out(second))
			b.Task("use b", b.In(second), b.InOut(x))
		}},
		{"in a loop within, around it too", [][2]string{{"b", "c"}}, func(b *dag.Builder, x dag.BufferID, device func(string) dag.BufferID) {
			first, second, third := device("a"), device("b"), device("c")
			b.Task("make a", b.In(x), b.Out(first))
			b.Repeat("inner", dag.Loop{Times: 3}, func() {
				b.Task("make b", b.In(first), b.Out(second))
				b.Task("use b", b.In(second), b.InOut(x))
			})
			b.Task("make c", b.In(x), b.Out(third))
			b.Task("use c", b.In(third), b.InOut(x))
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := loopOf(t, c.body)
			p, err := planner.New(t.Context(), g, planner.Options{})
			require.NoError(t, err)
			require.Equal(t, c.want, sharing(g, p))
			require.True(t, sharesRightly(g, p, p.Memory))
			peaks, err := planner.PeakBuffers(g, p)
			require.NoError(t, err)
			require.Equal(t, peaks[0].Live, peaks[0].Arena)
			timeline, err := planner.Simulate(g, p, nil, nil)
			require.NoError(t, err)
			for _, o := range model.OccupancyOf(g, p, timeline) {
				for _, step := range o.Steps {
					require.LessOrEqual(t, step.Bytes, o.Arena)
				}
			}
		})
	}
}

// Of four buffers that are used one after the other in a loop, two are alive at once. A cap of that many buffers is no less than what every plan
// needs.
func TestACapCountsWhatIsAliveAtOnceInALoop(t *testing.T) {
	g := loopOf(t, func(b *dag.Builder, x dag.BufferID, device func(string) dag.BufferID) {
		last := x
		for _, name := range []string{"a", "b", "c", "d"} {
			next := device(name)
			b.Task("make "+name, b.In(last), b.Out(next))
			last = next
		}
		b.Task("use", b.In(last), b.InOut(x))
	})
	p, err := planner.New(t.Context(), g, planner.Options{MemoryCap: 3 * 256})
	require.NoError(t, err)
	require.Equal(t, int64(3*256), p.Stats.PeakDeviceBytes)
	_, err = planner.New(t.Context(), g, planner.Options{MemoryCap: 2 * 256})
	require.EqualError(t, err, `device 0 needs at least 768 bytes, 256 bytes more than the memory cap of 512 bytes, in every plan; alive at once at "solve": "x" (256 bytes), "a" (256 bytes), "b" (256 bytes)`)
}

func TestPlantedFaultsOfMemoryInBodiesAreRefused(t *testing.T) {
	carried := loopOf(t, func(b *dag.Builder, x dag.BufferID, device func(string) dag.BufferID) {
		around, inside := device("around"), device("inside")
		b.Task("make around", b.In(x), b.Out(around))
		b.Repeat("inner", dag.Loop{Times: 3}, func() {
			b.Task("step", b.InOut(around), b.InOut(x))
			b.Task("make inside", b.In(x), b.Out(inside))
			b.Task("use inside", b.In(inside), b.InOut(x))
		})
	})
	branch := loopOf(t, func(b *dag.Builder, x dag.BufferID, device func(string) dag.BufferID) {
		some, other := device("some"), device("other")
		b.If("seldom", "x(1..2) > 0", func() { b.Task("make some", b.Out(some), b.InOut(x)) }, nil)
		b.Task("make other", b.In(x), b.Out(other))
		b.Task("use other", b.In(other), b.InOut(x))
	})
	for _, c := range []struct {
		g     *dag.Graph
		fault planted.Fault
		want  string
	}{
		{carried, planted.Held, `planner: the list plan is wrong: in solve: "around" and "inside" share bytes [256:512) of device 0, and "inner" (stream 0) uses both: place "inside" elsewhere`},
		{branch, planted.MayWrite, `planner: the list plan is wrong: "some" must keep its bytes during all passes of "solve", because a pass may leave it unwritten, but "other" is also placed on bytes [256:512) of device 0: place "other" elsewhere`},
	} {
		_, err := planner.New(t.Context(), c.g, planner.Options{Strategy: "list"})
		require.NoError(t, err)
		remove := planted.Plant(c.fault)
		_, err = planner.New(t.Context(), c.g, planner.Options{Strategy: "list"})
		remove()
		require.EqualError(t, err, c.want)
		require.ErrorIs(t, err, plan.ErrMemory)
	}
}

// On random nests, the proof accepts a layout exactly if reachability between all pairs of nodes, counted pass by pass, does: the planner's
// own, with faults planted in it or not, and layouts with one buffer moved.
func TestMemoryOfBodiesAgreesWithReachability(t *testing.T) {
	count := 200
	if os.Getenv("DAGRUN_LONG") != "" {
		count = 5000
	}
	faults := []planted.Fault{planted.None, planted.Held, planted.MayWrite, planted.Layout, planted.Lifetimes}
	var refused, shared [len(faultNames)]int
	moved := 0
	for seed := range uint64(count) {
		r := rand.New(rand.NewPCG(seed, 31))
		g, err := nests.New(r).Graph()
		require.NoError(t, err)
		for k, fault := range faults {
			remove := planted.Plant(fault)
			p, err := planner.New(context.Background(), g, planner.Options{Strategy: []string{"list", "roundrobin"}[seed%2], Streams: 1 + r.IntN(4)})
			remove()
			var v *planner.Violation
			if errors.As(err, &v) {
				require.NotEqual(t, planted.None, fault, "seed %d: %v", seed, err)
				refused[k]++
				continue
			}
			require.NoError(t, err)
			require.True(t, sharesRightly(g, p, p.Memory), "seed %d, %s: a wrong plan passed", seed, faultNames[k])
			shared[k] += len(sharing(g, p))
			if fault != planted.None {
				continue
			}
			for range 4 {
				c := plantest.ClonePlan(p)
				a, b := r.IntN(len(c.Memory)), r.IntN(len(c.Memory))
				c.Memory[a].Offset = c.Memory[b].Offset
				c.Stats.PeakDeviceBytes = 0
				err := planner.Verify(g, c)
				require.Equal(t, sharesRightly(g, c, c.Memory), err == nil, "seed %d, %s at %s: %v", seed, g.Buffers[c.Memory[a].Buffer].Name, g.Buffers[c.Memory[b].Buffer].Name, err)
				if err != nil {
					moved++
				}
			}
		}
	}
	t.Logf("shared pairs %v, refused %v, moved and refused %d of %d", shared, refused, moved, 4*count)
	require.Greater(t, shared[0], count/4)
	for k := 1; k < len(faults); k++ {
		require.Greater(t, refused[k], count/40, faultNames[k])
	}
}

var faultNames = [...]string{"none", "held", "may-write", "layout", "lifetimes"}

// sharesRightly reports whether no two buffers of a layout share bytes while both are alive, by brute force.
func sharesRightly(g *dag.Graph, p *planner.Plan, memory []plan.Placement) bool {
	for k, a := range memory {
		for _, b := range memory[k+1:] {
			if overlap(a, b) && (keeps(g, a.Buffer) || keeps(g, b.Buffer) || !takeTurns(g, p, a.Buffer, b.Buffer)) {
				return false
			}
		}
	}
	return true
}

func keeps(g *dag.Graph, b dag.BufferID) bool {
	for _, u := range g.ReadFirst() {
		if u.Buffer == b {
			return true
		}
	}
	return g.Buffers[b].Init != nil || g.Buffers[b].Save != ""
}

// takeTurns reports whether one of two buffers is finished with before the other is begun, in each pass of the innermost body that has all
// accesses to both.
func takeTurns(g *dag.Graph, p *planner.Plan, a, b dag.BufferID) bool {
	users := func(buffer dag.BufferID) (nodes []dag.NodeID) {
		for i := range g.Nodes {
			for _, access := range g.Accesses(dag.NodeID(i)) {
				if access.Buffer == buffer {
					nodes = append(nodes, dag.NodeID(i))
					break
				}
			}
		}
		return nodes
	}
	first, second := users(a), users(b)
	if len(first) == 1 && len(second) == 1 && first[0] == second[0] {
		return takeTurnsInside(g, p, first[0], a, b)
	}
	before := plantest.BruteBeforeOf(p, g.Len())
	all := func(from, to []dag.NodeID) bool {
		for _, i := range from {
			for _, k := range to {
				if !before[i][k] {
					return false
				}
			}
		}
		return true
	}
	return all(first, second) || all(second, first)
}

func takeTurnsInside(g *dag.Graph, p *planner.Plan, node dag.NodeID, a, b dag.BufferID) bool {
	n := &g.Nodes[node]
	if n.Control == nil {
		return false
	}
	if n.Control.Condition != nil {
		for _, r := range n.Control.Condition.Operands {
			if r.Buffer == a || r.Buffer == b {
				return false
			}
		}
	}
	for k, body := range n.Control.Bodies {
		if n.Kind == dag.Repeat && (passesOn(body, a) || passesOn(body, b)) {
			return false
		}
		if !takeTurns(body, p.BodyOf(node, k), a, b) {
			return false
		}
	}
	return true
}

// passesOn reports whether a pass of a body reads a byte of a buffer that it may not have written before, or may leave one unwritten that it
// writes in other passes.
func passesOn(body *dag.Graph, buffer dag.BufferID) bool {
	written, possibly := make([]bool, body.Buffers[buffer].Bytes), make([]bool, body.Buffers[buffer].Bytes)
	if !follow(body, buffer, written, possibly) {
		return true
	}
	for k := range written {
		if possibly[k] && !written[k] {
			return true
		}
	}
	return false
}

// follow marks the bytes of a buffer that a graph certainly and possibly writes, and reports whether it reads only what was certainly written.
func follow(g *dag.Graph, buffer dag.BufferID, written, possibly []bool) bool {
	for i := range g.Nodes {
		n := &g.Nodes[i]
		c := n.Control
		if c == nil {
			for _, a := range g.Accesses(dag.NodeID(i)) {
				for at := a.Lo; a.Buffer == buffer && a.Mode&dag.Read != 0 && at < a.Hi; at++ {
					if !written[at] {
						return false
					}
				}
			}
			for _, a := range g.Accesses(dag.NodeID(i)) {
				for at := a.Lo; a.Buffer == buffer && a.Mode&dag.Write != 0 && at < a.Hi; at++ {
					written[at], possibly[at] = true, true
				}
			}
			continue
		}
		after := append([]bool(nil), written...)
		for k, body := range c.Bodies {
			own := append([]bool(nil), written...)
			if !follow(body, buffer, own, possibly) {
				return false
			}
			for at := range after {
				after[at] = own[at] && (k == 0 || after[at])
			}
		}
		certain := n.Kind == dag.Branch && len(c.Bodies) == 2 || n.Kind == dag.Repeat && !c.While && c.Times > 0
		if c.Condition != nil {
			for _, r := range c.Condition.Operands {
				known := written
				if n.Kind == dag.Repeat && !c.While {
					known = after
				}
				for at := r.Lo; r.Buffer == buffer && at < r.Hi; at++ {
					if !known[at] {
						return false
					}
				}
			}
		}
		if certain {
			copy(written, after)
		}
	}
	return true
}
