// Tests of the proof: correct plans pass, every kind of fault is named, and hostile plans are refused.

package planner

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/planner/internal/plantest"
	"github.com/dagrun/dagrun/planner/plan"
	"github.com/dagrun/dagrun/planner/proof"
)

// saxpy is the textbook pipeline: two uploads, a kernel, a download, on three streams.
func saxpy(t *testing.T) (*dag.Graph, *Plan) {
	t.Helper()
	b := dag.New("saxpy")
	x, y := b.Host("x", dag.F32, 1024), b.Host("y", dag.F32, 1024)
	dx, dy := b.Device("d_x", dag.F32, 1024), b.Device("d_y", dag.F32, 1024)
	b.Copy("up_x", b.Out(dx).Range, b.In(x).Range)
	b.Copy("up_y", b.Out(dy).Range, b.In(y).Range)
	b.Task("saxpy", b.In(dx), b.InOut(dy))
	b.Copy("down", b.Out(y).Range, b.In(dy).Range)
	g, err := b.Graph()
	require.NoError(t, err)
	p := &Plan{
		Streams: []plan.Stream{
			{Ops: []plan.Op{{Kind: plan.Launch, Node: 0, Event: -1}, {Kind: plan.Wait, Node: 1, Event: 0}, {Kind: plan.Launch, Node: 2, Event: -1}, {Kind: plan.Record, Node: 2, Event: 1}}},
			{Ops: []plan.Op{{Kind: plan.Launch, Node: 1, Event: -1}, {Kind: plan.Record, Node: 1, Event: 0}}},
			{Ops: []plan.Op{{Kind: plan.Wait, Node: 2, Event: 1}, {Kind: plan.Launch, Node: 3, Event: -1}}},
		},
		Order:  []int32{0, 1, 1, 0, 0, 0, 2, 2},
		Events: 2,
	}
	plantest.PlaceApart(g, p)
	require.NoError(t, Verify(g, p))
	return g, p
}

func TestVerifyNamesEachFault(t *testing.T) {
	cases := []struct {
		name  string
		spoil func(p *Plan)
		fault error
		text  string
		where string
	}{
		{"no plan", nil, plan.ErrPlanShape, `there is no plan`, ""},
		{"order too short", func(p *Plan) { p.Order = p.Order[:7] }, plan.ErrPlanShape, `the order has 7 entries, the streams have 8 ops`, ""},
		{"order names no stream", func(p *Plan) { p.Order[3] = 3 }, plan.ErrPlanShape, `order[3] is stream 3, but the plan has 3 streams`, "op 3"},
		{"order names a negative stream", func(p *Plan) { p.Order[0] = math.MinInt32 }, plan.ErrPlanShape, `order[0] is stream -2147483648, but the plan has 3 streams`, "op 0"},
		{"order takes too many", func(p *Plan) { p.Order[7] = 1 }, plan.ErrPlanShape, `order[7] takes op 2 of stream 1, which has only 2 ops`, "op 7, stream 1"},
		{"unknown kind", func(p *Plan) { p.Streams[0].Ops[0].Kind = 9 }, plan.ErrPlanShape, `op 0 of stream 0 is of unknown kind 9`, "op 0, stream 0"},
		{"too many events", func(p *Plan) { p.Events = math.MaxInt32 }, plan.ErrPlanShape, `the plan needs 2147483647 events, but has only 2 records`, ""},
		{"event out of range", func(p *Plan) { p.Streams[1].Ops[1].Event = -5 }, plan.ErrPlanShape, `op 1 of stream 1 uses event -5, but the plan has 2 events`, "op 2, stream 1"},
		{"event behind the last", func(p *Plan) { p.Streams[1].Ops[1].Event = 2 }, plan.ErrPlanShape, `op 1 of stream 1 uses event 2, but the plan has 2 events`, "op 2, stream 1, event 2"},
		{"node out of range", func(p *Plan) { p.Streams[0].Ops[0].Node = 4 }, plan.ErrOtherGraph, `stream 0 launches node 4, but the graph has 4 nodes`, "op 0, stream 0"},
		{"another graph", func(p *Plan) { p.Stats.Nodes = 7 }, plan.ErrOtherGraph, `the plan was made for a graph of 7 nodes, this one has 4`, ""},
		{"launched twice", func(p *Plan) { p.Streams[0].Ops[2].Node = 0 }, plan.ErrPlanShape, `"up_x" is launched twice, on streams 0 and 0: remove one of the launches`, "op 4, node 0 up_x, stream 0"},
		{"never launched", func(p *Plan) { *p = *plantest.WithoutOp(p, 2, 1) }, plan.ErrOtherGraph, `"down" is never launched: plan this graph again`, "node 3 down"},
		{"record of another node", func(p *Plan) { p.Streams[1].Ops[1].Node = 0 }, proof.ErrEvent, `stream 1 records event 0 after "up_x", but the launch before it is "up_y"`, "op 2, node 0 up_x, stream 1, event 0"},
		{"record before any launch", func(p *Plan) { ops := p.Streams[1].Ops; ops[0], ops[1] = ops[1], ops[0] }, proof.ErrEvent,
			`stream 1 records event 0 after "up_y", but the launch before it is none`, "op 1, node 1 up_y, stream 1, event 0"},
		{"wait of another node", func(p *Plan) { p.Streams[2].Ops[0].Node = 1 }, proof.ErrEvent, `stream 2 waits on event 1 for "up_y", but its latest record submitted follows "saxpy": record another event after "up_y"`, "op 6, stream 2, before 1 up_y, event 1"},
		{"wait before its record", func(p *Plan) { p.Order = []int32{0, 0, 1, 1, 0, 0, 2, 2} }, proof.ErrEvent,
			`stream 0 waits on event 0 before its record after "up_y" is submitted: submit that record first`, "op 1, stream 0, before 1 up_y, event 0"},
		{"wait for no record", func(p *Plan) { *p = *plantest.WithoutOp(p, 0, 3); p.Events = 1; p.Streams[2].Ops[0].Event = 0 }, proof.ErrEvent,
			`stream 2 waits on event 0 for "saxpy", but its latest record submitted follows "up_y": record another event after "saxpy"`, "op 5, stream 2, before 2 saxpy, event 0"},
		{"never recorded", func(p *Plan) { p.Streams[0].Ops[3] = plan.Op{Kind: plan.Record, Node: 2, Event: 0} }, proof.ErrEvent,
			`stream 2 waits on event 1, which is never recorded after "saxpy": record event 1 after "saxpy"`, "op 6, stream 2, before 2 saxpy, event 1"},
		{"wrong device", func(p *Plan) { p.Streams[1].Device = 1 }, proof.ErrWrongStream,
			`"up_y" runs on device 0 with normal priority, but stream 1 is on device 1 with normal priority: launch it on another stream`, "node 1 up_y, stream 1"},
		{"wrong priority", func(p *Plan) { p.Streams[2].Priority = dag.High }, proof.ErrWrongStream,
			`"down" runs on device 0 with normal priority, but stream 2 is on device 0 with high priority: launch it on another stream`, "node 3 down, stream 2"},
		{"missing wait", func(p *Plan) { *p = *plantest.WithoutOp(p, 0, 1) }, proof.ErrHazard,
			`"saxpy" (stream 0) is not ordered after "up_y" (stream 1), which it depends on (RAW d_y): stream 0 must wait before "saxpy" for an event recorded on stream 1 after "up_y"`, "op 3, node 2 saxpy, stream 0, before 1 up_y, its stream 1, buffer 3 d_y, bytes 0 to 4096, inout after out"},
		{"swapped launches", func(p *Plan) {
			ops := p.Streams[0].Ops
			ops[0].Node, ops[2].Node = 2, 0
			ops[3].Node = 0
			p.Streams[2].Ops[0].Node = 0
		}, proof.ErrHazard,
			`stream 0 launches "saxpy" before "up_x", which it depends on (RAW d_x): launch "up_x" first`, "op 0, node 2 saxpy, stream 0, before 0 up_x, its stream 0, buffer 2 d_x, bytes 0 to 4096, in after out"},
		{"deadlock", func(p *Plan) {
			p.Streams[1].Ops = []plan.Op{{Kind: plan.Wait, Node: 2, Event: 1}, {Kind: plan.Launch, Node: 1, Event: -1}, {Kind: plan.Record, Node: 1, Event: 0}}
			p.Order = []int32{0, 1, 1, 1, 0, 0, 0, 2, 2}
		}, proof.ErrDeadlock, `waits form a cycle: stream 0 waits for "up_y" on stream 1, which waits for "saxpy" on stream 0: remove one of these waits`, "op 1, stream 1, event 1"},
		{"missing placement", func(p *Plan) { p.Memory = p.Memory[:1] }, plan.ErrMemory, `the plan does not place "d_y": lay the memory out again`, "buffer 3 d_y"},
		{"no placement first", func(p *Plan) { p.Memory = p.Memory[1:] }, plan.ErrMemory, `the plan does not place "d_x": lay the memory out again`, "buffer 2 d_x"},
		{"host buffer placed", func(p *Plan) { p.Memory[0].Buffer = 0 }, plan.ErrMemory,
			`placement 0 is of "x", which is not the next device buffer: list every device buffer once, by id`, "buffer 2 d_x"},
		{"unknown buffer placed", func(p *Plan) { p.Memory = append(p.Memory, plan.Placement{Buffer: 99}) }, plan.ErrOtherGraph,
			`the plan places "buffer 99", which is not a device buffer of the graph, or places it twice: plan this graph again`, ""},
		{"other size", func(p *Plan) { p.Memory[0].Bytes = 8 }, plan.ErrOtherGraph,
			`the plan places "d_x" as 8 bytes on device 0, but it has 4096 bytes on device 0: plan this graph again`, "buffer 2 d_x"},
		{"negative offset", func(p *Plan) { p.Memory[0].Offset = -256 }, plan.ErrMemory, `"d_x" is placed at byte -256 with 4096 bytes, outside any arena`, "buffer 2 d_x"},
		{"offset past the end", func(p *Plan) { p.Memory[0].Offset = math.MaxInt64 - 255 }, plan.ErrMemory,
			`"d_x" is placed at byte 9223372036854775552 with 4096 bytes, outside any arena`, "buffer 2 d_x"},
		{"misaligned", func(p *Plan) { p.Memory[1].Offset = 4100 }, plan.ErrMemory, `"d_y" is placed at byte 4100, which is not a multiple of 256`, "buffer 3 d_y"},
		{"outside the arena", func(p *Plan) { p.Memory[1].Offset = 8192 }, plan.ErrMemory,
			`the placements need 12288 bytes, the plan's arenas have 8192: lay the memory out again`, ""},
		{"live buffers overlap", func(p *Plan) { p.Memory[1].Offset = 3840 }, plan.ErrMemory,
			`"d_x" and "d_y" share bytes [3840:4096) of device 0, but "up_y" (stream 1), which uses the second buffer, is not ordered after "up_x" (stream 0), which uses the first: place "d_y" elsewhere, or let stream 1 wait before "up_y" for an event recorded on stream 0 after "up_x"`, "op 1, node 1 up_y, stream 1, before 0 up_x, its stream 0, buffer 2 d_x, other 3 d_y, bytes 3840 to 4096"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			g, p := saxpy(t)
			if c.spoil == nil {
				p = nil
			} else {
				c.spoil(p)
			}
			err := Verify(g, p)
			require.ErrorIs(t, err, c.fault)
			require.EqualError(t, err, c.text)
			var v *Violation
			require.ErrorAs(t, err, &v)
			require.Equal(t, c.where, where(v))
			for _, id := range []int32{int32(v.Node), int32(v.Before), v.Stream, v.BeforeStream, v.Op, int32(v.Buffer), int32(v.Other)} {
				require.GreaterOrEqual(t, id, int32(-1))
			}
		})
	}
}

// where lists what a violation refers to.
func where(v *Violation) string {
	var parts []string
	add := func(known bool, format string, args ...any) {
		if known {
			parts = append(parts, fmt.Sprintf(format, args...))
		}
	}
	add(v.Op >= 0, "op %d", v.Op)
	add(v.Node >= 0, "node %d %s", v.Node, v.NodeName)
	add(v.Stream >= 0, "stream %d", v.Stream)
	add(v.Before >= 0, "before %d %s", v.Before, v.BeforeName)
	add(v.BeforeStream >= 0, "its stream %d", v.BeforeStream)
	add(v.Event >= 0, "event %d", v.Event)
	add(v.Buffer >= 0, "buffer %d %s", v.Buffer, v.BufferName)
	add(v.Other >= 0, "other %d %s", v.Other, v.OtherName)
	add(v.Hi > 0, "bytes %d to %d", v.Lo, v.Hi)
	add(v.Access != 0, "%v after %v", v.Access, v.BeforeAccess)
	return strings.Join(parts, ", ")
}

func TestVerifyBoundStreams(t *testing.T) {
	b := dag.New("bound")
	for i, name := range []string{"a", "b", "c"} {
		b.At(b.Task(name)).Stream = dag.OnStream([]int32{4, 4, 7}[i])
	}
	g, err := b.Graph()
	require.NoError(t, err)
	launches := func(streams ...[]int32) *Plan {
		p := &Plan{}
		for s, nodes := range streams {
			p.Streams = append(p.Streams, plan.Stream{})
			for _, n := range nodes {
				p.Streams[s].Ops = append(p.Streams[s].Ops, plan.Op{Kind: plan.Launch, Node: dag.NodeID(n), Event: -1})
				p.Order = append(p.Order, int32(s))
			}
		}
		return p
	}
	require.NoError(t, Verify(g, launches([]int32{0, 1}, []int32{2})))
	err = Verify(g, launches([]int32{0}, []int32{1}, []int32{2}))
	require.ErrorIs(t, err, proof.ErrWrongStream)
	require.EqualError(t, err, `"a" and "b" are both bound to stream 4, but run on the plan's streams 0 and 1: launch both on one stream`)
	var v *Violation
	require.ErrorAs(t, err, &v)
	require.Equal(t, "node 1 b, stream 1, before 0 a, its stream 0", where(v))
	err = Verify(g, launches([]int32{0, 1, 2}))
	require.EqualError(t, err, `"b" is bound to stream 4 and "c" to stream 7, but both run on the plan's stream 0: launch them on two streams`)
	require.ErrorAs(t, err, &v)
	require.Equal(t, "node 2 c, stream 0, before 1 b, its stream 0", where(v))
}

// An event may be recorded again only after every wait for its old record has been submitted.
func TestVerifyEventReuse(t *testing.T) {
	b := dag.New("reuse")
	d := b.Device("d", dag.U8, 256)
	e := b.Device("e", dag.U8, 256)
	b.Task("a", b.Out(d))
	b.Task("b", b.Out(e))
	b.Task("c", b.In(d))
	b.Task("d", b.In(e))
	g, err := b.Graph()
	require.NoError(t, err)
	p := &Plan{
		Streams: []plan.Stream{
			{Ops: []plan.Op{{Kind: plan.Launch, Node: 0, Event: -1}, {Kind: plan.Record, Node: 0, Event: 0}, {Kind: plan.Launch, Node: 1, Event: -1}, {Kind: plan.Record, Node: 1, Event: 0}}},
			{Ops: []plan.Op{{Kind: plan.Wait, Node: 0, Event: 0}, {Kind: plan.Launch, Node: 2, Event: -1}, {Kind: plan.Wait, Node: 1, Event: 0}, {Kind: plan.Launch, Node: 3, Event: -1}}},
		},
		Order:  []int32{0, 0, 1, 0, 0, 1, 1, 1},
		Events: 1,
	}
	plantest.PlaceApart(g, p)
	require.NoError(t, Verify(g, p))
	require.EqualError(t, proof.VerifySingleUse(g, p), `event 0 is recorded after "a" and again after "b": plan with one event per record`)
	p.Order = []int32{0, 0, 0, 0, 1, 1, 1, 1}
	require.EqualError(t, Verify(g, p), `stream 1 waits on event 0 for "a", but its latest record submitted follows "b": record another event after "a"`)
	p.Streams[0].Ops[3].Event, p.Streams[1].Ops[2].Event, p.Events = 1, 1, 2
	require.NoError(t, Verify(g, p))
	require.NoError(t, proof.VerifySingleUse(g, p))
}

// Races of an explicit schedule come last, so that a caller who allows them knows that the rest is right.
func TestVerifyExplicitSchedule(t *testing.T) {
	build := func(after bool) (*dag.Graph, *Plan) {
		b := dag.New("explicit")
		d := b.Device("d", dag.F32, 16)
		b.Task("first", b.Out(d))
		b.Task("second", b.In(d))
		if after {
			b.At(1).After = []dag.NodeID{0}
		}
		g, err := b.Graph()
		require.NoError(t, err)
		g.Sync = dag.SyncExplicit
		p := &Plan{Streams: []plan.Stream{{Ops: []plan.Op{{Kind: plan.Launch, Node: 0, Event: -1}}}, {Ops: []plan.Op{{Kind: plan.Launch, Node: 1, Event: -1}}}}, Order: []int32{0, 1}}
		plantest.PlaceApart(g, p)
		return g, p
	}
	g, p := build(false)
	err := Verify(g, p)
	require.ErrorIs(t, err, proof.ErrRace)
	require.ErrorIs(t, err, proof.ErrHazard)
	require.EqualError(t, err, `"second" (stream 1) is not ordered after "first" (stream 0), which it depends on (RAW d): add "after: [first]" to "second"`)
	p.Memory[0].Offset = 3
	require.ErrorIs(t, Verify(g, p), plan.ErrMemory)

	g, p = build(true)
	err = Verify(g, p)
	require.NotErrorIs(t, err, proof.ErrRace)
	require.ErrorIs(t, err, proof.ErrHazard)
}

func TestVerifyAgreesWithBruteForce(t *testing.T) {
	verdicts := map[bool]int{}
	rapid.Check(t, func(t *rapid.T) {
		g := plantest.DrawGraph(t, 12, false)
		p := plantest.DrawDullPlan(t, g, 4)
		rng := plantest.DrawSource(t)
		if err := Verify(g, p); err != nil {
			t.Fatalf("a right plan is refused: %v", err)
		}
		// Remove some waits and move some buffers onto others.
		p = thinned(rng, p, 3)
		for range plantest.Between(rng, 0, 3) {
			k := plantest.Between(rng, 0, len(p.Memory)-1)
			p.Memory[k].Offset = int64(plantest.Between(rng, 0, 8)) * 256
		}
		p.Stats.PeakDeviceBytes = 1 << 20
		err := Verify(g, p)
		want := plantest.BruteRight(g, p)
		verdicts[want]++
		if (err == nil) != want {
			t.Fatalf("Verify says %v, brute force %v", err, want)
		}
		if err != nil && !errors.Is(err, proof.ErrHazard) && !errors.Is(err, plan.ErrMemory) {
			t.Fatalf("unexpected fault %v", err)
		}
	})
	require.Positive(t, verdicts[true])
	require.Positive(t, verdicts[false])
}

// The same with more streams than one pass handles.
func TestVerifyOnManyStreams(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := plantest.DrawGraph(t, 12, false)
		p := plantest.DrawDullPlan(t, g, 4)
		wide := plantest.Spread(p)
		if err := Verify(g, wide); err != nil {
			t.Fatalf("a right plan is refused: %v", err)
		}
		for s := range wide.Streams {
			for i, op := range wide.Streams[s].Ops {
				if op.Kind != plan.Wait {
					continue
				}
				cut := plantest.WithoutOp(wide, s, i)
				if err := Verify(g, cut); (err == nil) != plantest.BruteRight(g, cut) {
					t.Fatalf("without the wait at stream %d, op %d Verify says %v", s, i, err)
				}
			}
		}
	})
}

// Whatever ids a plan holds, Verify returns.
func TestVerifySurvivesHostilePlans(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := plantest.DrawGraph(t, 6, true)
		p := plantest.DrawDullPlan(t, g, 3)
		wild := rapid.OneOf(rapid.Int32Range(-2, 8), rapid.SampledFrom([]int32{math.MinInt32, math.MaxInt32}))
		for range rapid.IntRange(1, 4).Draw(t, "faults") {
			s := rapid.IntRange(0, len(p.Streams)-1).Draw(t, "stream")
			ops := p.Streams[s].Ops
			switch what := rapid.IntRange(0, 6).Draw(t, "what"); {
			case what == 0:
				p.Events = wild.Draw(t, "events")
			case what == 1 && len(p.Order) > 0:
				p.Order[rapid.IntRange(0, len(p.Order)-1).Draw(t, "at")] = wild.Draw(t, "order")
			case what == 2 && len(p.Memory) > 0:
				m := &p.Memory[rapid.IntRange(0, len(p.Memory)-1).Draw(t, "at")]
				m.Buffer, m.Device = dag.BufferID(wild.Draw(t, "buffer")), wild.Draw(t, "device")
			case what == 3 && len(p.Memory) > 0:
				m := &p.Memory[rapid.IntRange(0, len(p.Memory)-1).Draw(t, "at")]
				m.Offset, m.Bytes = rapid.Int64().Draw(t, "offset"), rapid.Int64().Draw(t, "bytes")
			case len(ops) > 0:
				op := &ops[rapid.IntRange(0, len(ops)-1).Draw(t, "op")]
				*op = plan.Op{Kind: plan.OpKind(rapid.IntRange(0, 4).Draw(t, "kind")), Node: dag.NodeID(wild.Draw(t, "node")), Event: wild.Draw(t, "event")}
			}
		}
		before := plantest.ClonePlan(p)
		err := Verify(g, p)
		require.Equal(t, before, p, "Verify changed the plan")
		_ = proof.VerifySingleUse(g, p)
		if err == nil && !plantest.BruteRight(g, p) {
			t.Fatal("a wrong plan passed")
		}
	})
}

// The graph alone decides what a plan must keep; buffers that a plan keeps share no bytes.
func TestVerifyKeptBuffers(t *testing.T) {
	b := dag.New("kept")
	out := b.Host("out", dag.U8, 100)
	sum := b.Device("sum", dag.U8, 100)
	first, second := b.Device("first", dag.U8, 100), b.Device("second", dag.U8, 100)
	b.Task("add", b.InOut(sum))
	b.Task("make", b.Out(first))
	b.Task("use", b.In(first), b.Out(second))
	b.Task("down", b.In(second), b.Out(out))
	g, err := b.Graph()
	require.NoError(t, err)
	p, err := New(context.Background(), g, Options{Strategy: "serial"})
	require.NoError(t, err)
	require.Equal(t, []dag.BufferID{sum}, p.Kept)

	forgotten := plantest.ClonePlan(p)
	forgotten.Kept = nil
	require.EqualError(t, Verify(g, forgotten), `"sum" is read before it is written, but the plan does not keep its bytes: plan this graph again`)
	require.ErrorIs(t, Verify(g, forgotten), plan.ErrMemory)

	onSum := plantest.ClonePlan(p)
	onSum.Memory[1].Offset = onSum.Memory[0].Offset
	require.EqualError(t, Verify(g, onSum), `"sum" must keep its bytes for the whole program, but "first" is also placed on bytes [0:100) of device 0: place "first" elsewhere`)

	more, err := New(context.Background(), g, Options{Strategy: "serial", Keep: []dag.BufferID{first}})
	require.NoError(t, err)
	require.Equal(t, []dag.BufferID{sum, first}, more.Kept)
	onFirst := plantest.ClonePlan(more)
	onFirst.Memory[2].Offset = onFirst.Memory[1].Offset
	require.ErrorContains(t, Verify(g, onFirst), `"first" must keep its bytes for the whole program, but "second" is also placed on`)
	all, err := New(context.Background(), g, Options{KeepAll: true})
	require.NoError(t, err)
	require.Equal(t, []dag.BufferID{sum, first, second}, all.Kept)

	for _, kept := range [][]dag.BufferID{{out, sum}, {first, sum}, {sum, sum}, {-1, sum}, {sum, 9}} {
		wrong := plantest.ClonePlan(p)
		wrong.Kept = kept
		require.ErrorContains(t, Verify(g, wrong), "the list must have device buffers only, each once, in the order of ids: plan this graph again", kept)
	}
}
