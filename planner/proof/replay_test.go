// Tests of the proof of replays and of single ops: every way in which a replay can differ from its plan is refused, and said where.

package proof

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/planner/plan"
)

// byHand makes a plan of ops in their order of submission, as in "0 a, 0 record 0, 1 wait 0, 1 b": node a on stream 0, a record of event 0 after
// it, and on stream 1 a wait for that and node b.
func byHand(t *testing.T, g *dag.Graph, text string) *plan.Plan {
	t.Helper()
	p := &plan.Plan{}
	last, recorded := map[int32]dag.NodeID{}, map[int32]dag.NodeID{}
	for _, one := range strings.Split(text, ", ") {
		var stream, event int32
		var word string
		if n, _ := fmt.Sscanf(one, "%d %s %d", &stream, &word, &event); n < 3 {
			_, err := fmt.Sscanf(one, "%d %s", &stream, &word)
			require.NoError(t, err, one)
		}
		for int(stream) >= len(p.Streams) {
			p.Streams = append(p.Streams, plan.Stream{})
		}
		op := plan.Op{Event: event}
		switch word {
		case "record":
			op.Kind, op.Node = plan.Record, last[stream]
			recorded[event] = op.Node
			p.Events = max(p.Events, event+1)
		case "wait":
			op.Kind, op.Node = plan.Wait, recorded[event]
		default:
			op = plan.Op{Kind: plan.Launch, Node: -1, Event: -1}
			for i := range g.Nodes {
				if g.Nodes[i].Name == word {
					op.Node = dag.NodeID(i)
				}
			}
			last[stream] = op.Node
		}
		p.Streams[stream].Ops = append(p.Streams[stream].Ops, op)
		p.Order = append(p.Order, stream)
	}
	return p
}

// tasks makes a graph of nodes without accesses.
func tasks(t *testing.T, names ...string) *dag.Graph {
	t.Helper()
	b := dag.New("tasks")
	for _, name := range names {
		b.Task(name)
	}
	g, err := b.Graph()
	require.NoError(t, err)
	return g
}

// The replay of a plan on two streams: the fork is a record and a wait (ops 0 and 1), the join another record and wait (ops 7 and 8).
func TestReplaysThatAreNotThePlanAreRefused(t *testing.T) {
	swap := func(i, j int) func(r *plan.Replay) {
		return func(r *plan.Replay) { r.Ops[i], r.Ops[j] = r.Ops[j], r.Ops[i] }
	}
	insert := func(at int, ops ...plan.ReplayOp) func(r *plan.Replay) {
		return func(r *plan.Replay) { r.Ops = append(r.Ops[:at:at], append(ops, r.Ops[at:]...)...) }
	}
	record := func(event, stream int32) plan.ReplayOp {
		return plan.ReplayOp{Op: plan.Op{Kind: plan.Record, Node: -1, Event: event}, Stream: stream}
	}
	wait := func(event, stream int32) plan.ReplayOp {
		return plan.ReplayOp{Op: plan.Op{Kind: plan.Wait, Node: -1, Event: event}, Stream: stream}
	}
	launch := func(node dag.NodeID, event, stream int32) plan.ReplayOp {
		return plan.ReplayOp{Op: plan.Op{Kind: plan.Launch, Node: node, Event: event}, Stream: stream}
	}
	for _, c := range []struct {
		name  string
		spoil func(r *plan.Replay)
		fault error
		where string // op, stream and event
		text  string
	}{
		{"nothing", func(r *plan.Replay) {}, nil, "", ""},
		{"launches of two streams swapped", swap(2, 3), plan.ErrPlanShape, "2 1 -1", "op 2 of the replay is not the plan's next op"},
		{"launches of one stream swapped", swap(2, 5), plan.ErrPlanShape, "2 0 -1", "op 2 of the replay is not the plan's next op"},
		{"a launch on another stream", func(r *plan.Replay) { r.Ops[2].Stream = 1 }, plan.ErrPlanShape, "2 1 -1", "op 2 of the replay is not the plan's next op"},
		{"another node", func(r *plan.Replay) { r.Ops[2].Node = 1 }, plan.ErrPlanShape, "2 0 -1", "op 2 of the replay is not the plan's next op"},
		{"a record of another event", func(r *plan.Replay) { r.Ops[4].Event = -1 }, plan.ErrPlanShape, "4 1 -1", "op 4 of the replay is not the plan's next op"},
		{"a launch too many", insert(9, launch(0, -1, 0)), plan.ErrPlanShape, "9 0 -1", "op 9 of the replay is not the plan's next op"},
		{"a launch with an event of the replay", insert(9, launch(0, 1, 0)), plan.ErrPlanShape, "9 0 -1", "op 9 of the replay is not the plan's next op"},
		{"a record too many", insert(9, record(0, 0)), plan.ErrPlanShape, "9 0 -1", "op 9 of the replay is not the plan's next op"},
		{"the last launch left out", func(r *plan.Replay) { r.Ops = append(r.Ops[:6:6], r.Ops[7:]...) }, plan.ErrPlanShape, "-1 -1 -1", "the replay has 4 of the plan's 5 ops"},
		{"no ops", func(r *plan.Replay) { r.Ops = nil; r.Events = 2 }, plan.ErrPlanShape, "-1 -1 -1", "the replay has 0 of the plan's 5 ops"},
		{"a stream before the first", func(r *plan.Replay) { r.Ops[3].Stream = -1 }, plan.ErrPlanShape, "3 -1 -1", "op 3 of the replay is on stream -1, but the plan has 2 streams"},
		{"a stream behind the last", func(r *plan.Replay) { r.Ops[3].Stream = 2 }, plan.ErrPlanShape, "3 -1 -1", "op 3 of the replay is on stream 2, but the plan has 2 streams"},
		{"fewer events than the plan", func(r *plan.Replay) { r.Events = 0 }, plan.ErrPlanShape, "-1 -1 -1", "the replay does not have the plan's 1 events"},
		{"more events than ops", func(r *plan.Replay) { r.Events = 12 }, plan.ErrPlanShape, "-1 -1 -1", "the replay does not have the plan's 1 events"},
		{"as many events as there can be", func(r *plan.Replay) { r.Events = 11 }, nil, "", ""},
		{"an event that there is not", func(r *plan.Replay) { r.Ops[0].Event = 3 }, plan.ErrPlanShape, "0 0 -1", "op 0 of the replay is of kind 1 on event 3, but the replay has 3 events"},
		{"an op of no kind", func(r *plan.Replay) { r.Ops[0].Kind = 3 }, plan.ErrPlanShape, "0 0 -1", "op 0 of the replay is of kind 3 on event 1, but the replay has 3 events"},
		{"a record twice", insert(1, record(1, 0)), ErrEvent, "1 0 1", "the replay records event 1 twice: record two events"},
		{"a wait before its record", swap(0, 1), ErrEvent, "0 1 1", "stream 1 waits on event 1 before the replay records it, so it waits for an earlier replay: submit that record first"},
		{"a wait twice", insert(2, wait(1, 1)), nil, "", ""},
		{"no fork", func(r *plan.Replay) { r.Ops = r.Ops[2:] }, ErrHazard, "1 1 -1",
			`"b" (stream 1) can start before the replay before it has finished: stream 1 must wait for an event recorded on stream 0 at the start`},
		{"a fork behind the first launch of the stream", func(r *plan.Replay) { r.Ops[1], r.Ops[2], r.Ops[3] = r.Ops[2], r.Ops[3], r.Ops[1] }, ErrHazard, "2 1 -1",
			`"b" (stream 1) can start before the replay before it has finished: stream 1 must wait for an event recorded on stream 0 at the start`},
		{"a fork from the stream itself", func(r *plan.Replay) { r.Ops[0].Stream = 1 }, ErrHazard, "3 1 -1",
			`"b" (stream 1) can start before the replay before it has finished: stream 1 must wait for an event recorded on stream 0 at the start`},
		{"no join", func(r *plan.Replay) { r.Ops = r.Ops[:7] }, ErrHazard, "6 1 -1",
			`"d" (stream 1) may still run when the next replay starts: stream 0 must wait at the end for an event recorded on stream 1 after "d"`},
		{"a join before the last launch of the stream", swap(6, 7), ErrHazard, "7 1 -1",
			`"d" (stream 1) may still run when the next replay starts: stream 0 must wait at the end for an event recorded on stream 1 after "d"`},
		{"a join of the wrong stream", func(r *plan.Replay) { r.Ops[7].Stream = 0 }, ErrHazard, "6 1 -1",
			`"d" (stream 1) may still run when the next replay starts: stream 0 must wait at the end for an event recorded on stream 1 after "d"`},
		{"a join in another stream", func(r *plan.Replay) { r.Ops[8].Stream = 1 }, ErrHazard, "6 1 -1",
			`"d" (stream 1) may still run when the next replay starts: stream 0 must wait at the end for an event recorded on stream 1 after "d"`},
		{"no replay in flight", func(r *plan.Replay) { r.Instances = 0 }, plan.ErrPlanShape, "-1 -1 -1", "0 replays in flight: there must be at least 1"},
		{"many replays in flight", func(r *plan.Replay) { r.Instances = 9 }, nil, "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := tasks(t, "a", "b", "c", "d")
			p := byHand(t, g, "0 a, 1 b, 1 record 0, 0 c, 1 d")
			r := p.Replay(1)
			require.Len(t, r.Ops, 9)
			c.spoil(r)
			err := Replay(g, p, r)
			if c.fault == nil {
				require.NoError(t, err)
				return
			}
			require.EqualError(t, err, c.text)
			require.ErrorIs(t, err, c.fault)
			v := err.(*Violation)
			require.Equal(t, c.where, fmt.Sprint(v.Op, v.Stream, v.Event))
		})
	}
}

func TestReplayOfNothing(t *testing.T) {
	g := tasks(t)
	p := &plan.Plan{}
	require.NoError(t, Replay(g, p, p.Replay(1)))
	require.EqualError(t, Replay(g, p, nil), "the replay does not have the plan's 0 events")
	p.Order = []int32{0}
	require.EqualError(t, Replay(g, p, p.Replay(1)), "the order has 1 entries, the streams have 0 ops")
}

// Replays side by side each begin with the contents of their own memory, so none may leave anything for the next.
func TestReplaysSideBySideLeaveNothing(t *testing.T) {
	b := dag.New("state")
	x, state := b.Device("x", dag.U8, 16), b.Device("state", dag.U8, 16)
	b.Task("fill", b.Out(x))
	b.Task("count", b.In(x), b.InOut(state))
	g, err := b.Graph()
	require.NoError(t, err)
	p := byHand(t, g, "0 fill, 0 count")
	require.NoError(t, Replay(g, p, p.Replay(1)))
	err = Replay(g, p, p.Replay(2))
	require.EqualError(t, err, `2 replays in flight cannot run side by side: each changes bytes of "state" that the next one reads: keep 1 replay in flight`)
	require.ErrorIs(t, err, ErrHazard)
	require.Equal(t, "state", err.(*Violation).BufferName)
	require.Equal(t, state, err.(*Violation).Buffer)
}

// A join may lead over several streams, and an event that is recorded again later says nothing about what follows its first record.
func TestJoinsAreFollowedBackwards(t *testing.T) {
	g := tasks(t, "a", "b", "c")
	p := byHand(t, g, "0 a, 1 b, 1 record 0, 2 wait 0, 2 c")
	r := p.Replay(1)
	require.Equal(t, []int32{2}, p.Join(), "b ends before c, so the origin waits for c alone")
	require.NoError(t, Replay(g, p, r))

	g = tasks(t, "a", "b", "c", "d")
	p = byHand(t, g, "0 a, 1 b, 1 record 0, 0 wait 0, 0 c, 0 record 0, 1 wait 0, 1 d")
	require.NoError(t, Replay(g, p, p.Replay(1)))
	p = byHand(t, g, "0 a, 1 b, 1 record 0, 0 record 0, 0 wait 0, 0 c, 0 d")
	r = p.Replay(1)
	require.NoError(t, Replay(g, p, r))
	r.Ops = r.Ops[:len(r.Ops)-2]
	require.EqualError(t, Replay(g, p, r), `"b" (stream 1) may still run when the next replay starts: stream 0 must wait at the end for an event recorded on stream 1 after "b"`)
}

func TestEventsOfSeveralThreadsAreRecordedOnce(t *testing.T) {
	g := tasks(t, "a", "b", "c")
	require.NoError(t, VerifySingleUse(g, byHand(t, g, "0 a, 0 record 0, 0 record 1, 1 wait 0, 1 b, 1 record 2, 1 c")))
	err := VerifySingleUse(g, byHand(t, g, "0 a, 0 record 0, 1 b, 1 c, 1 record 0"))
	require.EqualError(t, err, `event 0 is recorded after "a" and again after "c": plan with one event per record`)
	v := err.(*Violation)
	require.ErrorIs(t, v, ErrEvent)
	require.Equal(t, "4 1 0: 2 c, 0 a", fmt.Sprintf("%d %d %d: %d %s, %d %s", v.Op, v.Stream, v.Event, v.Node, v.NodeName, v.Before, v.BeforeName))
	// The first of two faults is told, and events that the plan does not have are left to Verify.
	p := byHand(t, g, "0 a, 0 record 0, 0 record 0, 0 b, 0 record 0")
	require.EqualError(t, VerifySingleUse(g, p), `event 0 is recorded after "a" and again after "a": plan with one event per record`)
	for _, event := range []int32{-1, 1, 2} {
		p = byHand(t, g, "0 a, 0 record 0, 0 record 0")
		p.Streams[0].Ops[1].Event, p.Streams[0].Ops[2].Event, p.Events = event, event, 1
		require.NoError(t, VerifySingleUse(g, p))
	}
	require.Error(t, VerifySingleUse(g, nil))
}
