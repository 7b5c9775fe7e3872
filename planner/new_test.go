// End-to-end tests of New: options, bindings, engines, priorities, devices, explicit waits. Verify also proves every plan here.

package planner

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/planner/internal/place"
	"github.com/dagrun/dagrun/planner/internal/plantest"
	"github.com/dagrun/dagrun/planner/plan"
	"github.com/dagrun/dagrun/planner/proof"
)

func TestBindingsPrioritiesDevicesAndEnginesHoldUnderEveryStrategy(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		explicit := rapid.Bool().Draw(t, "explicit")
		g := plantest.MixedGraph(t, rapid.Uint64().Draw(t, "seed"), rapid.IntRange(1, 60).Draw(t, "nodes"), explicit)
		o := Options{
			Strategy:        rapid.SampledFrom(strategies).Draw(t, "strategy"),
			Streams:         rapid.IntRange(1, 6).Draw(t, "streams"),
			Machine:         rapid.SampledFrom([]*Machine{H200(), Unit()}).Draw(t, "machine"),
			SingleUseEvents: rapid.Bool().Draw(t, "single"),
		}
		made, err := New(context.Background(), g, o)
		if o.Strategy == "cover" && errors.Is(err, place.ErrTooManyStreams) {
			return
		}
		require.NoError(t, err)
		streamOf := make([]int32, g.Len())
		computing := map[int32]int{} // free streams that compute, by device
		type pool struct {
			device   int32
			priority dag.Priority
		}
		pools := map[pool]bool{}
		for k, s := range made.Streams {
			computes, bound := false, int32(-1)
			for _, op := range s.Ops {
				if op.Kind != plan.Launch {
					continue
				}
				node := &g.Nodes[op.Node]
				streamOf[op.Node] = int32(k)
				require.Equal(t, node.Device, s.Device)
				require.Equal(t, node.Priority, s.Priority)
				if number := node.Stream.Number(); number >= 0 {
					require.True(t, bound < 0 || bound == number, "two bound streams became one")
					bound = number
				}
				if plan.EngineOf(g, op.Node) == plan.Compute {
					computes = true
					pools[pool{node.Device, node.Priority}] = true
				}
			}
			if computes && bound < 0 {
				computing[s.Device]++
			}
			if bound >= 0 && int(bound) < len(made.Streams) {
				require.Equal(t, int(bound), k, "a bound stream has another number")
			}
		}
		home := map[int32]int32{}
		for i := range g.Nodes {
			if k := g.Nodes[i].Stream.Number(); k >= 0 {
				if at, ok := home[k]; ok {
					require.Equal(t, at, streamOf[i], "stream %d was split", k)
				}
				home[k] = streamOf[i]
			}
		}
		if o.Strategy == "list" || o.Strategy == "auto" {
			for device, count := range computing {
				atLeast := 0
				for q := range pools {
					if q.device == device {
						atLeast++
					}
				}
				require.LessOrEqual(t, count, max(o.Streams, atLeast), "device %d", device)
			}
		}
		if explicit {
			requireDeclaredWaits(t, g, made, streamOf)
			return
		}
		for wait := range made.Stats.Waits {
			require.Error(t, Verify(g, withoutWait(made, wait)), "wait %d can be left out", wait)
		}
	})
}

// withoutWait returns the plan without its k-th wait in stream order, and without the wait's record if no other wait uses it.
func withoutWait(made *Plan, k int) *Plan {
	less := *made
	less.Streams = slices.Clone(made.Streams)
	less.Order = nil
	users := map[int32]int{}
	gone := plan.Op{}
	drop := [2]int{-1, -1}
	for s := range less.Streams {
		less.Streams[s].Ops = slices.Clone(made.Streams[s].Ops)
		for at, op := range less.Streams[s].Ops {
			if op.Kind != plan.Wait {
				continue
			}
			users[int32(op.Node)]++
			if k == 0 {
				gone, drop = op, [2]int{s, at}
			}
			k--
		}
	}
	record := [2]int{-1, -1}
	if users[int32(gone.Node)] == 1 {
		for s := range less.Streams {
			for at, op := range less.Streams[s].Ops {
				if op.Kind == plan.Record && op.Node == gone.Node {
					record = [2]int{s, at}
				}
			}
		}
	}
	at := make([]int, len(made.Streams))
	for _, s := range made.Order {
		here := [2]int{int(s), at[s]}
		at[s]++
		if here != drop && here != record {
			less.Order = append(less.Order, s)
		}
	}
	for _, cut := range [][2]int{drop, record} {
		if cut[0] >= 0 {
			less.Streams[cut[0]].Ops[cut[1]].Node = -1
		}
	}
	for s := range less.Streams {
		less.Streams[s].Ops = slices.DeleteFunc(less.Streams[s].Ops, func(op plan.Op) bool { return op.Node < 0 })
	}
	return &less
}

// requireDeclaredWaits checks that the waits are exactly those that after: declares across streams, and that bound nodes keep their order.
func requireDeclaredWaits(t require.TestingT, g *dag.Graph, made *Plan, streamOf []int32) {
	type wait struct{ from, to int32 }
	want, got := map[wait]int{}, map[wait]int{}
	for i := range g.Nodes {
		for _, q := range g.Nodes[i].After {
			if streamOf[q] != streamOf[i] {
				want[wait{int32(q), int32(i)}] = 1
			}
		}
	}
	for _, s := range made.Streams {
		var waiting []int32
		last := int32(-1)
		for _, op := range s.Ops {
			switch op.Kind {
			case plan.Wait:
				waiting = append(waiting, int32(op.Node))
			case plan.Launch:
				for _, q := range waiting {
					got[wait{q, int32(op.Node)}]++
				}
				waiting = nil
				if g.Nodes[op.Node].Stream.Number() >= 0 {
					require.Less(t, last, op.Node, "bound nodes change their order")
				}
				last = int32(op.Node)
			}
		}
	}
	require.Equal(t, want, got)
}

func TestAnUploadDoesNotQueueBehindAKernelItDoesNotNeed(t *testing.T) {
	b := dag.New("overlap")
	x, d := b.Host("x", dag.U8, 4<<20), b.Device("d", dag.U8, 4<<20)
	y := b.Host("y", dag.U8, 4<<20)
	for i := range int64(4) {
		part := func(buffer dag.BufferID) dag.Range { return dag.Range{Buffer: buffer, Lo: i << 20, Hi: (i + 1) << 20} }
		b.Copy(fmt.Sprintf("up.%d", i), part(d), part(x))
		work := b.Task(fmt.Sprintf("work.%d", i), dag.Access{Range: part(d), Mode: dag.ReadWrite})
		b.At(work).HasCost, b.At(work).CostUS = true, 60
		b.Copy(fmt.Sprintf("down.%d", i), part(y), part(d))
	}
	g, err := b.Graph()
	require.NoError(t, err)

	// With one stream per chain no wait is needed. The bound does not include the cost of an engine changing streams, nor all of a change of engines.
	m := H200()
	m.CopySwitchUS, m.EngineUS = 0, 0
	plan, err := New(context.Background(), g, Options{Strategy: "list", Streams: 4, Machine: m})
	require.NoError(t, err)
	require.Zero(t, plan.Stats.Waits)
	require.LessOrEqual(t, plan.Stats.MakespanUS, 1.02*plan.Stats.LowerBoundUS)

	// With one compute stream, the kernels follow each other without gaps, because copies have their own streams.
	plan, err = New(context.Background(), g, Options{Strategy: "list", Streams: 1, Machine: m})
	require.NoError(t, err)
	require.LessOrEqual(t, plan.Stats.MakespanUS, 1.02*plan.Stats.LowerBoundUS)
	serial, err := New(context.Background(), g, Options{Strategy: "serial"})
	require.NoError(t, err)
	require.Greater(t, serial.Stats.MakespanUS, 1.3*plan.Stats.MakespanUS)
}

func TestAChainOfCopiesAndAKernelNeedsNoWait(t *testing.T) {
	b := dag.New("saxpy")
	x, y, out := b.Host("x", dag.F32, 1<<20), b.Host("y", dag.F32, 1<<20), b.Host("out", dag.F32, 1<<20)
	dx, dy := b.Device("d_x", dag.F32, 1<<20), b.Device("d_y", dag.F32, 1<<20)
	b.Copy("up_x", b.Out(dx).Range, b.In(x).Range)
	b.Copy("up_y", b.Out(dy).Range, b.In(y).Range)
	b.Task("saxpy", b.In(dx), b.InOut(dy))
	b.Copy("down", b.Out(out).Range, b.In(dy).Range)
	g, err := b.Graph()
	require.NoError(t, err)
	plan, err := New(context.Background(), g, Options{Strategy: "list"})
	require.NoError(t, err)
	require.Zero(t, plan.Stats.Waits)
	require.Equal(t, 1, plan.Stats.Streams)
}

func TestErrorsOfNew(t *testing.T) {
	b := dag.New("conflict")
	first, second := b.Task("first"), b.Task("second")
	b.At(first).Stream, b.At(second).Stream = dag.OnStream(2), dag.OnStream(2)
	conflict, err := b.Graph()
	require.NoError(t, err)
	conflict.Nodes[second].Priority = dag.High // the builder refuses this, other makers of graphs may not
	b = dag.New("devices")
	first, second = b.Task("first"), b.Task("second")
	b.At(first).Stream, b.At(second).Stream = dag.OnStream(0), dag.OnStream(0)
	devices, err := b.Graph()
	require.NoError(t, err)
	devices.Nodes[second].Device = 1
	chain := plantest.Chains(1, 3).Ordered(t)
	for _, c := range []struct {
		g    *dag.Graph
		o    Options
		is   error
		text string
	}{
		{chain, Options{Effort: 3}, place.ErrBadOption, `effort 3: the efforts are quick, normal, thorough: bad option`},
		{chain, Options{Strategy: "lists"}, place.ErrUnknownStrategy, `unknown strategy "lists": the strategies are serial, roundrobin, heft, cover, list, auto`},
		{chain, Options{Streams: -1}, place.ErrBadOption, "-1 streams: the number must not be negative: bad option"},
		{chain, Options{Streams: 1e9}, place.ErrBadOption, "1000000000 streams: there can be at most 65536: bad option"},
		{chain, Options{MemoryCap: -5}, place.ErrBadOption, "a memory cap of -5 bytes: it must not be negative: bad option"},
		{chain, Options{Keep: []dag.BufferID{7}}, place.ErrBadOption, "Options.Keep names buffer 7, but the graph has only 0 buffers: bad option"},
		{conflict, Options{}, place.ErrStreamConflict, `stream 2: "first" has normal priority and "second" high: conflicting stream bindings`},
		{devices, Options{}, place.ErrStreamConflict, `stream 0: "first" runs on device 0 and "second" on device 1: conflicting stream bindings`},
	} {
		_, err := New(context.Background(), c.g, c.o)
		require.ErrorIs(t, err, c.is)
		require.EqualError(t, err, c.text)
	}
}

func TestAutoSaysWhatItDidNotTry(t *testing.T) {
	g := plantest.Chains(3, 7000).Ordered(t)
	plan, err := New(context.Background(), g, Options{Machine: Unit()})
	require.NoError(t, err)
	require.Equal(t, []string{"list", "auto"}, []string{plan.Strategy, plan.Requested})
	require.Equal(t, "auto tried only list: the graph has 21000 nodes, and the other strategies are tried only up to 20000", plan.Note)
	var text strings.Builder
	require.NoError(t, plan.WriteText(&text, g, nil))
	require.Contains(t, text.String(), "\n"+plan.Note+"\n")
}

func TestAutoIsNeverWorseThanWhatItTries(t *testing.T) {
	for family := range plantest.Families {
		g := plantest.RandomShape(family, 120, 5).Ordered(t)
		auto, err := New(context.Background(), g, Options{})
		require.NoError(t, err)
		for _, strategy := range []string{"serial", "cover", "list"} {
			other, err := New(context.Background(), g, Options{Strategy: strategy})
			if errors.Is(err, place.ErrTooManyStreams) {
				continue
			}
			require.NoError(t, err)
			require.False(t, betterPlan(other, auto), "%s: %s", g.Name, strategy)
		}
	}
}

func TestPolishingSavesWaitsAndNoTime(t *testing.T) {
	for _, r := range benchRows(t) {
		_, listWaits, listMakespan, err := r.counts(t, "list", 4)
		require.NoError(t, err)
		_, waits, makespan, err := r.counts(t, "auto", 4)
		require.NoError(t, err)
		require.LessOrEqual(t, makespan, listMakespan, r.name)
		require.LessOrEqual(t, waits, listWaits, r.name)
		if r.name == "stencil" || r.name == "random" {
			require.Less(t, waits, 0.9*listWaits, r.name)
		}
	}
}

func TestNewStopsWhenItsContextIsDone(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	g := plantest.TaskBench("stencil", 8, 8, 0).Graph(t)
	for _, strategy := range strategies {
		_, err := New(ctx, g, Options{Strategy: strategy})
		require.ErrorIs(t, err, context.Canceled, strategy)
	}
}

func TestPlansAreTheSameEveryTimeAndFromManyGoroutines(t *testing.T) {
	g := plantest.MixedGraph(t, 3, 60, false)
	for _, strategy := range []string{"serial", "roundrobin", "list", "auto"} {
		want, err := New(context.Background(), g, Options{Strategy: strategy})
		require.NoError(t, err)
		plans := make([]*Plan, 4)
		var wait sync.WaitGroup
		for k := range plans {
			wait.Go(func() { plans[k], _ = New(context.Background(), g, Options{Strategy: strategy}) })
		}
		wait.Wait()
		for _, plan := range plans {
			require.Equal(t, want, plan, strategy)
		}
	}
}

func TestEventsAreReusedUnlessAskedNotTo(t *testing.T) {
	g := plantest.TaskBench("stencil", 8, 8, 0).Graph(t)
	reused, err := New(context.Background(), g, Options{Strategy: "list", Streams: 4})
	require.NoError(t, err)
	require.Less(t, reused.Stats.Events, reused.Stats.Records)
	single, err := New(context.Background(), g, Options{Strategy: "list", Streams: 4, SingleUseEvents: true})
	require.NoError(t, err)
	require.Equal(t, single.Stats.Records, single.Stats.Events)
	require.NoError(t, proof.VerifySingleUse(g, single))
}

func TestTheEmptyGraphHasAnEmptyPlan(t *testing.T) {
	g, err := dag.New("empty").Graph()
	require.NoError(t, err)
	for _, strategy := range strategies {
		plan, err := New(context.Background(), g, Options{Strategy: strategy})
		require.NoError(t, err, strategy)
		require.Zero(t, plan.Stats.Streams, strategy)
		require.Empty(t, plan.Order, strategy)
	}
}
