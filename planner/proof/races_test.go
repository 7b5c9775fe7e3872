// Tests of the list of what a plan does not enforce: where it ends, and that it says so.

package proof

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/internal/crowd"
	"github.com/dagrun/dagrun/planner/plan"
)

// Forty nodes write a part each, forty read all of it, on four streams without waits: each reader lacks the last writer of the other streams.
func TestListsOfViolationsSayWhereTheyEnd(t *testing.T) {
	defer func(most int) { mostListed = most }(mostListed)
	defer crowd.Early(false)()
	const n = 40
	b := dag.New("crowd")
	x := b.Device("x", dag.U8, n)
	p := &plan.Plan{Streams: make([]plan.Stream, 4)}
	for k := range 2 * n {
		if k < n {
			b.Task(fmt.Sprintf("w%d", k), b.Slice(x, int64(k), int64(k+1)).Out())
		} else {
			b.Task(fmt.Sprintf("r%d", k), b.In(x))
		}
		s := int32(k % 4)
		p.Streams[s].Ops = append(p.Streams[s].Ops, plan.Op{Kind: plan.Launch, Node: dag.NodeID(k), Event: -1})
		p.Order = append(p.Order, s)
	}
	g, err := b.Graph()
	require.NoError(t, err)
	require.NotEmpty(t, g.Joins())

	all, err := Violations(g, p, 0)
	require.NoError(t, err)
	require.False(t, all.Partial)
	require.Equal(t, 3*n, all.Total)
	require.Equal(t, 12, all.Roots, "for the first reader of each stream; the others come after it")
	require.Len(t, all.Violations, all.Roots)
	require.Equal(t, `"r40" (stream 0) is not ordered after "w37" (stream 1), which it depends on (RAW x(37..38)): stream 0 must wait before "r40" for an event recorded on stream 1 after "w37"`, all.Violations[0].Error())
	for _, most := range []int{1, 11, 12, 13} {
		some, err := Violations(g, p, most)
		require.NoError(t, err)
		require.Equal(t, all.Violations[:min(most, 12)], some.Violations)
		require.Equal(t, [2]int{all.Roots, all.Total}, [2]int{some.Roots, some.Total})
	}
	// A reader is asked about with the last writer of each stream, its own included.
	for most, total := range map[int]int{4*n + 1: 3 * n, 4 * n: 3 * n, 4*n - 1: 3 * n, 5: 6, 4: 3, 1: 3} {
		mostListed = most
		some, err := Violations(g, p, 0)
		require.NoError(t, err)
		require.Equal(t, total, some.Total, "with %d", most)
		require.Equal(t, most <= 4*n, some.Partial, "with %d", most)
	}
	mostListed = 1 << 18
	swapped := &plan.Plan{Streams: make([]plan.Stream, 1)} // the readers first, so that no wait helps
	for k := range 2 * n {
		swapped.Streams[0].Ops = append(swapped.Streams[0].Ops, plan.Op{Kind: plan.Launch, Node: dag.NodeID((k + n) % (2 * n)), Event: -1})
		swapped.Order = append(swapped.Order, 0)
	}
	whole, err := Violations(g, swapped, 0)
	require.NoError(t, err)
	require.False(t, whole.Partial)
	mostListed = 5
	some, err := Violations(g, swapped, 0)
	require.NoError(t, err)
	require.True(t, some.Partial)
	require.Less(t, some.Total, whole.Total)
	mostListed = 1 << 18
	p.Order[0] = 9
	_, err = Violations(g, p, 0)
	require.EqualError(t, err, "order[0] is stream 9, but the plan has 4 streams")
}

// In an explicit schedule the pairs that a declaration would order are told, whatever else the plan happens to order.
func TestRacesOfAnExplicitScheduleAreClosestPairs(t *testing.T) {
	b := dag.New("explicit")
	b.Sync(dag.SyncExplicit)
	x := b.Device("x", dag.U8, 8)
	b.Task("a", b.Out(x))
	b.Task("b", b.InOut(x))
	b.Task("c", b.In(x))
	b.Task("d", b.In(x))
	b.Task("e", b.Out(x))
	g, err := b.Graph()
	require.NoError(t, err)
	u, err := Violations(g, byHand(t, g, "0 a, 0 b, 0 c, 0 d, 0 e"), 0)
	require.NoError(t, err)
	var pairs []string
	for _, v := range u.Violations {
		require.ErrorIs(t, v, ErrRace)
		require.ErrorIs(t, v, ErrHazard)
		require.NotErrorIs(t, v, ErrEvent)
		pairs = append(pairs, v.BeforeName+" "+v.NodeName+" "+v.Line)
	}
	require.Equal(t, []string{"a b after: [a]", "b c after: [b]", "b d after: [b]", "c e after: [c]", "d e after: [d]"}, pairs)
	u, err = Violations(g, byHand(t, g, "0 e, 0 d, 0 c, 0 b, 0 a"), 0)
	require.NoError(t, err)
	require.Equal(t, len(g.Edges()), u.Total)
	require.Equal(t, u.Total, u.Roots, "no wait helps against the wrong order")
}

// However a plan submits nodes, its violations come by the later node as declared, and then the earlier one.
func TestViolationsComeInDeclaredOrder(t *testing.T) {
	b := dag.New("order")
	for k, name := range []string{"x", "y", "z"} {
		d := b.Device(name, dag.U8, 4)
		b.Task(fmt.Sprintf("make%d", k), b.Out(d))
		b.Task(fmt.Sprintf("use%d", k), b.In(d))
	}
	g, err := b.Graph()
	require.NoError(t, err)
	for _, order := range []string{
		"0 make2, 1 use2, 2 use1, 3 make1, 4 make0, 5 use0", "0 use0, 1 make0, 2 make1, 3 use1, 4 use2, 5 make2", "0 make0, 1 use0, 2 make1, 3 use1, 4 make2, 5 use2",
	} {
		u, err := Violations(g, byHand(t, g, order), 0)
		require.NoError(t, err)
		var found []string
		for _, v := range u.Violations {
			found = append(found, v.BeforeName+" "+v.NodeName)
		}
		require.Equal(t, []string{"make0 use0", "make1 use1", "make2 use2"}, found, order)
	}
}

// Nodes on a stream each that all write two buffers: every two of them are a pair, however many are listed, until the search has had enough.
func TestPairsAreAllOrAsManyAsAreLookedAt(t *testing.T) {
	defer func(most int) { mostListed = most }(mostListed)
	const n, every = 6, 15
	b := dag.New("race")
	z, x, y := b.Device("z", dag.U8, 4), b.Device("x", dag.U8, 4), b.Device("y", dag.U8, 4)
	text := ""
	for k := range n {
		b.Task(fmt.Sprintf("w%d", k), b.In(z), b.Slice(y, int64(k%2), int64(k%2)+1).In(), b.Out(x), b.Out(y)) // that all read z is no conflict
		text += fmt.Sprintf(", %d w%d", k, k)
	}
	g, err := b.Graph()
	require.NoError(t, err)
	p := byHand(t, g, text[2:])
	all, err := Pairs(g, p, 0)
	require.NoError(t, err)
	require.Equal(t, [2]int{every, every}, [2]int{all.Roots, all.Total})
	require.False(t, all.Partial)
	at := 0
	for to := range n {
		for from := range to {
			v := all.Violations[at]
			require.Equal(t, [2]int32{int32(from), int32(to)}, [2]int32{int32(v.Before), int32(v.Node)})
			require.Contains(t, v.Problem, fmt.Sprintf("which it depends on (WAR y(%d..%d))", from%2, from%2+1))
			at++
		}
	}
	require.Len(t, all.Violations, at)
	for _, most := range []int{1, every - 1, every, every + 1} {
		some, err := Pairs(g, p, most)
		require.NoError(t, err)
		require.Equal(t, all.Violations[:min(most, every)], some.Violations)
		require.Equal(t, every, some.Total)
	}
	for _, most := range []int{1, 7, every} {
		mostListed = most
		some, err := Pairs(g, p, 0)
		require.NoError(t, err)
		require.Equal(t, most, some.Total)
		require.True(t, some.Partial)
	}
}

// What only after: orders is a pair too, whether or not other pairs imply it.
func TestPairsOfAfter(t *testing.T) {
	b := dag.New("after")
	first, second, third := b.Task("a"), b.Task("b"), b.Task("c")
	b.After(second, first)
	b.After(third, first, second)
	g, err := b.Graph()
	require.NoError(t, err)
	for plan, want := range map[string][]string{
		"0 a, 1 b, 2 c":                       {"a b", "a c", "b c"},
		"0 a, 0 record 0, 1 wait 0, 1 b, 2 c": {"a c", "b c"},
		"0 a, 0 b, 0 c":                       nil,
	} {
		u, err := Pairs(g, byHand(t, g, plan), 0)
		require.NoError(t, err)
		var pairs []string
		for _, v := range u.Violations {
			pairs = append(pairs, v.BeforeName+" "+v.NodeName)
		}
		require.Equal(t, want, pairs, plan)
	}
}

// A node that is submitted before one of its after: is told, and what comes after it is looked at as well.
func TestAfterAgainstTheOrderOfSubmission(t *testing.T) {
	b := dag.New("against")
	b.Sync(dag.SyncExplicit)
	x := b.Device("x", dag.U8, 4)
	a, late := b.Task("a", b.Out(x)), b.Task("b", b.In(x))
	b.After(late, a)
	b.After(b.Task("c", b.InOut(x)), late)
	g, err := b.Graph()
	require.NoError(t, err)
	u, err := Violations(g, byHand(t, g, "0 b, 0 a, 1 c"), 0)
	require.NoError(t, err)
	var found []string
	for _, v := range u.Violations {
		found = append(found, v.Error())
	}
	require.Equal(t, []string{
		`stream 0 launches "b" before "a", which it depends on (RAW x): launch "a" first`,
		`"c" (stream 1) is not ordered after "a" (stream 0), which it depends on (RAW x): add "after: [b, a]" to "c"`,
	}, found)
}

// The search for pairs ends at about a quarter of a million, more than anybody reads.
func TestPairsThatAreTooManyToList(t *testing.T) {
	for nodes, partial := range map[int]bool{724: false, 725: true} {
		b := dag.New("many")
		x := b.Device("x", dag.U8, 4)
		p := &plan.Plan{Streams: make([]plan.Stream, nodes)}
		for k := range nodes {
			node := b.Task(fmt.Sprintf("w%d", k), b.Out(x))
			p.Streams[k].Ops = []plan.Op{{Kind: plan.Launch, Node: node, Event: -1}}
			p.Order = append(p.Order, int32(k))
		}
		g, err := b.Graph()
		require.NoError(t, err)
		u, err := Pairs(g, p, 1)
		require.NoError(t, err)
		require.Equal(t, partial, u.Partial)
		require.Equal(t, min(nodes*(nodes-1)/2, 1<<18), u.Total)
	}
}
