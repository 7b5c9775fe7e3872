// Tests that explanations are true op by op, and that violations are listed as the closest pairs of nodes.

package planner

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/planner/internal/plantest"
	"github.com/dagrun/dagrun/planner/plan"
	"github.com/dagrun/dagrun/planner/proof"
)

func TestExplainSaysWhatEnforcesEachDependency(t *testing.T) {
	b := dag.New("explained")
	var d []dag.BufferID
	for i := range 4 {
		d = append(d, b.Device(fmt.Sprintf("d%d", i), dag.U8, 64))
	}
	b.Task("a", b.Out(d[0]))
	b.Task("b", b.In(d[0]), b.Out(d[1]))
	b.Task("c", b.In(d[0]), b.In(d[1]), b.Out(d[2]))
	b.Task("d", b.In(d[0]), b.In(d[2]))
	b.Task("e", b.In(d[1]), b.Out(d[3]))
	g, err := b.Graph()
	require.NoError(t, err)
	p := &Plan{
		Streams: []plan.Stream{
			{Ops: []plan.Op{{Kind: plan.Launch, Node: 0, Event: -1}, {Kind: plan.Record, Node: 0, Event: 0}}},
			{Ops: []plan.Op{{Kind: plan.Wait, Node: 0, Event: 0}, {Kind: plan.Launch, Node: 1, Event: -1}, {Kind: plan.Record, Node: 1, Event: 1}}},
			{Ops: []plan.Op{{Kind: plan.Wait, Node: 1, Event: 1}, {Kind: plan.Launch, Node: 2, Event: -1}, {Kind: plan.Launch, Node: 3, Event: -1}}},
			{Ops: []plan.Op{{Kind: plan.Launch, Node: 4, Event: -1}}},
		},
		Order:  []int32{0, 0, 1, 1, 1, 2, 2, 2, 3},
		Events: 2,
	}
	list, err := Explain(g, p)
	require.NoError(t, err)
	var lines []string
	for _, e := range list {
		edge := g.Edges()[e.Edge]
		lines = append(lines, fmt.Sprintf("%s -> %s: %s", g.Nodes[edge.From].Name, g.Nodes[edge.To].Name, e.Text(g)))
	}
	require.Equal(t, []string{
		`a -> b: stream 1 waits on event 0`,
		`a -> c: already ordered: stream 2 waited on event 1 ("b", stream 1) before "c", and stream 1 waited on event 0 ("a", stream 0) before "b"`,
		`a -> d: already ordered: stream 2 waited on event 1 ("b", stream 1) before "c", and stream 1 waited on event 0 ("a", stream 0) before "b"`,
		`b -> c: stream 2 waits on event 1`,
		`b -> e: not enforced`,
		`c -> d: same stream`,
	}, lines)
	p.Order[0] = 77
	_, err = Explain(g, p)
	require.ErrorIs(t, err, plan.ErrPlanShape)
}

func TestExplainOfLaterRecord(t *testing.T) {
	b := dag.New("later")
	d := b.Device("d", dag.U8, 64)
	b.Task("a", b.Out(d))
	b.Task("b")
	b.Task("c", b.In(d))
	g, err := b.Graph()
	require.NoError(t, err)
	p := &Plan{
		Streams: []plan.Stream{{Ops: []plan.Op{{Kind: plan.Launch, Node: 0, Event: -1}, {Kind: plan.Launch, Node: 1, Event: -1}, {Kind: plan.Record, Node: 1, Event: 0}}}, {Ops: []plan.Op{{Kind: plan.Wait, Node: 1, Event: 0}, {Kind: plan.Launch, Node: 2, Event: -1}}}},
		Order:   []int32{0, 0, 0, 1, 1},
		Events:  1,
	}
	list, err := Explain(g, p)
	require.NoError(t, err)
	require.Equal(t, []proof.Enforcement{{Edge: 0, From: 0, To: 2, How: proof.ByWait, Waits: []proof.WaitLink{{Op: 3, Stream: 1, Event: 0, Node: 1, On: 0, Held: 2}}}}, list)
	require.Equal(t, `stream 1 waits on event 0, recorded after "b", which follows "a" on stream 0`, list[0].Text(g))
}

func TestExplanationsHold(t *testing.T) {
	seen := map[proof.How]int{}
	rapid.Check(t, func(t *rapid.T) {
		g := plantest.DrawGraph(t, 14, false)
		p := thinned(plantest.DrawSource(t), plantest.DrawDullPlan(t, g, 5), 3)
		if rapid.Bool().Draw(t, "wide") {
			p = plantest.Spread(p)
		}
		before := plantest.BruteBefore(g, p)
		_, on, place := plantest.Launches(p, g.Len())
		list, err := Explain(g, p)
		require.NoError(t, err)
		require.Len(t, list, len(g.Edges()))
		ops := make([]plan.Op, len(p.Order))
		latest := map[int32]int{}
		recordOf := map[int]int{}
		plantest.EachOp(p, func(at int, stream int32, op *plan.Op) {
			ops[at] = *op
			switch op.Kind {
			case plan.Record:
				latest[op.Event] = at
			case plan.Wait:
				recordOf[at] = latest[op.Event]
			}
		})
		for k, e := range list {
			require.EqualValues(t, k, e.Edge)
			edge := g.Edges()[k]
			from, to := on[edge.From], on[edge.To]
			seen[e.How]++
			require.Equal(t, before[edge.From][edge.To], e.How != proof.NotEnforced)
			require.Equal(t, from == to && place[edge.From] < place[edge.To], e.How == proof.BySameStream)
			if e.How == proof.NotEnforced || e.How == proof.BySameStream {
				require.Empty(t, e.Waits)
				continue
			}
			stream, until := to, int(place[edge.To])
			for _, w := range e.Waits {
				require.Equal(t, stream, w.Stream)
				require.Equal(t, stream, p.Order[w.Op])
				require.Less(t, int(w.Op), until)
				require.Equal(t, plan.Op{Kind: plan.Wait, Node: w.Node, Event: w.Event}, ops[w.Op])
				until = recordOf[int(w.Op)]
				require.Equal(t, w.On, p.Order[until])
				stream = w.On
			}
			require.Equal(t, from, stream)
			require.LessOrEqual(t, int(place[edge.From]), until)
			require.Equal(t, e.How == proof.ByWait, len(e.Waits) == 1 && e.Waits[0].Held == edge.To)
			require.NotEmpty(t, e.Text(g))
		}
	})
	for how := proof.NotEnforced; how <= proof.ByEarlier; how++ {
		require.Positive(t, seen[how], how)
	}
}

func TestViolationsOfAnExplicitSchedule(t *testing.T) {
	b := dag.New("race")
	d, e := b.Device("d", dag.F32, 64), b.Device("e", dag.F32, 64)
	half := b.Out(d)
	half.Lo = 128
	b.Task("make", b.Out(d))
	b.Task("more", b.InOut(d))
	b.Task("use", b.In(d), b.Out(e))
	b.Task("again", half)
	b.Task("setup")
	for i, stream := range []int32{0, 0, 1, 1, 1} {
		b.At(dag.NodeID(i)).Stream = dag.OnStream(stream)
	}
	b.At(3).After = []dag.NodeID{4}
	g, err := b.Graph()
	require.NoError(t, err)
	g.Sync = dag.SyncExplicit
	p := &Plan{
		Streams: []plan.Stream{{Ops: []plan.Op{{Kind: plan.Launch, Node: 0, Event: -1}, {Kind: plan.Launch, Node: 1, Event: -1}}}, {Ops: []plan.Op{{Kind: plan.Launch, Node: 4, Event: -1}, {Kind: plan.Launch, Node: 2, Event: -1}, {Kind: plan.Launch, Node: 3, Event: -1}}}},
		Order:   []int32{0, 0, 1, 1, 1},
	}
	plantest.PlaceApart(g, p)
	require.ErrorIs(t, Verify(g, p), proof.ErrRace)
	u, err := Violations(g, p, 0)
	require.NoError(t, err)
	require.Equal(t, 1, u.Roots)
	require.Equal(t, 1, u.Total)
	v := u.Violations[0]
	require.Equal(t, `"use" (stream 1) is not ordered after "more" (stream 0), which it depends on (RAW d): add "after: [more]" to "use"`, v.Error())
	require.Equal(t, "after: [more]", v.Line)
	require.Equal(t, []dag.Mode{dag.ReadWrite, dag.Read}, []dag.Mode{v.BeforeAccess, v.Access})
	require.Equal(t, []int32{1, 2, 0, 1, 0}, []int32{int32(v.Before), int32(v.Node), v.BeforeStream, v.Stream, int32(v.Buffer)})
	require.EqualValues(t, 3, v.Op)

	p.Streams[1].Ops[1], p.Streams[1].Ops[2] = p.Streams[1].Ops[2], p.Streams[1].Ops[1]
	u, err = Violations(g, p, 1)
	require.NoError(t, err)
	require.Len(t, u.Violations, 1)
	require.Equal(t, 2, u.Roots)
	u, err = Violations(g, p, 0)
	require.NoError(t, err)
	require.Equal(t, `"use" (stream 1) is not ordered after "more" (stream 0), which it depends on (RAW d): add "after: [more]" to "use"`, u.Violations[0].Error())
	require.Equal(t, `stream 1 launches "again" before "use", which it depends on (WAR d(32..64)): launch "use" first`, u.Violations[1].Error())
	require.Equal(t, "after: [setup, use]", u.Violations[1].Line)
}

// Ordering exactly the listed pairs removes all violations, and no listed pair can be left out.
func TestViolationsAreRoots(t *testing.T) {
	several, implied := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		g := plantest.DrawGraph(t, 14, false)
		p := thinned(plantest.DrawSource(t), plantest.DrawDullPlan(t, g, 4), 20)
		if rapid.Bool().Draw(t, "wide") {
			p = plantest.Spread(p)
		}
		order, _, _ := plantest.Launches(p, g.Len())
		u, err := Violations(g, p, 0)
		require.NoError(t, err)
		require.Len(t, u.Violations, u.Roots)
		held := func(without int) int {
			var edges []plan.GraphEdge
			for i, row := range plantest.BruteBefore(g, p) {
				for j, before := range row {
					if before {
						edges = append(edges, plan.GraphEdge{From: dag.NodeID(i), To: dag.NodeID(j)})
					}
				}
			}
			for k, v := range u.Violations {
				if k != without {
					edges = append(edges, plan.GraphEdge{From: v.Before, To: v.Node})
				}
			}
			missing := 0
			before := plantest.BruteClosure(g.Len(), order, edges)
			for _, e := range g.Edges() {
				if !before[e.From][e.To] {
					missing++
				}
			}
			return missing
		}
		require.Zero(t, held(-1))
		for k := range u.Violations {
			require.Positive(t, held(k))
		}
		if u.Roots > 1 {
			several++
		}
		if u.Total > u.Roots {
			implied++
		}
	})
	require.Positive(t, several)
	require.Positive(t, implied)
}
