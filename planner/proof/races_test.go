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
