// Tests of graphs: shape, order, updates, priorities and times.

package host

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/cudart"
	"github.com/dagrun/dagrun/dag"
)

func (b *bench) graph(commands []cudart.Command, deps [][]int32, o cudart.GraphOptions) cudart.Graph {
	g, err := b.BuildGraph(commands, deps, o)
	require.NoError(b, err)
	b.Cleanup(func() { require.NoError(b, g.Close()) })
	return g
}

func TestGraphRunsInOrderAndSideBySide(t *testing.T) {
	there, back := make(chan struct{}, 1), make(chan struct{}, 1)
	b := newBench(t, Options{},
		func() { there <- struct{}{}; <-back }, func() { <-there; back <- struct{}{} })
	s := b.stream()
	d := b.alloc(64)
	h, f := b.host(64)
	nothing := b.kernel(s, "call", scalar(99))
	nothing.Grid = [3]uint32{1, 0, 1}
	g := b.graph([]cudart.Command{
		{Kind: cudart.Empty},
		b.kernel(s, "call", scalar(0)), // these two wait for each other
		b.kernel(s, "call", scalar(1)),
		{Kind: cudart.SetMemory, Dst: d, Bytes: 64, Width: 4},
		b.kernel(s, "inc", pointer(d, 64)),
		toHost(s, h, d, 64),
		nothing, // would panic
	}, [][]int32{nil, {0}, {0}, {0}, {1, 2, 3}, {4}, nil}, cudart.GraphOptions{Origin: s})
	require.Equal(t, 7, g.Nodes())
	require.NoError(t, g.Upload(s))
	for range 3 {
		require.NoError(t, g.Launch(s))
		require.NoError(t, s.Synchronize(context.Background()))
		require.Equal(t, float32(1), f[0])
		f[0] = 0
	}
}

func TestGraphNeverOverlapsItself(t *testing.T) {
	held := newGate(t)
	var running, most, runs atomic.Int32
	b := newBench(t, Options{}, held.hold, func() {
		if n := running.Add(1); n > most.Load() {
			most.Store(n)
		}
		runs.Add(1)
		running.Add(-1)
	})
	s := b.stream()
	g := b.graph([]cudart.Command{b.kernel(s, "call", scalar(1))}, [][]int32{nil}, cudart.GraphOptions{})
	streams := []*stream{b.stream(), b.stream(), b.stream()}
	require.NoError(t, b.submit(b.kernel(streams[0], "call", scalar(0))))
	for range 50 {
		for _, u := range streams {
			require.NoError(t, g.Launch(u))
		}
	}
	idle, err := streams[1].Query()
	require.NoError(t, err)
	require.False(t, idle, "its launch comes after the one on the held stream")
	held.open()
	require.NoError(t, b.Synchronize(context.Background(), 0))
	require.Equal(t, int32(1), most.Load())
	require.Equal(t, int32(150), runs.Load())
}

func TestGraphUpdates(t *testing.T) {
	held := newGate(t)
	b := newBench(t, Options{}, held.hold)
	s := b.stream()
	d, other := b.alloc(64), b.alloc(64)
	h, f := b.host(128)
	inc := b.kernel(s, "inc", pointer(d, 64))
	g := b.graph([]cudart.Command{
		{Kind: cudart.SetMemory, Dst: d, Bytes: 64, Width: 1}, inc, toHost(s, h, d, 64),
	}, [][]int32{nil, {0}, {1}}, cudart.GraphOptions{})
	require.NoError(t, b.submit(b.kernel(s, "call", scalar(0))))
	require.NoError(t, g.Launch(s))
	require.NoError(t, g.SetCopy(0, other, 0))
	require.NoError(t, g.SetArgs(1, one, []cudart.Value{pointer(other, 64)}))
	require.NoError(t, g.SetCopy(2, h+64, other))
	require.NoError(t, g.Launch(s))
	held.open()
	require.NoError(t, s.Synchronize(context.Background()))
	require.Equal(t, []float32{1, 1}, []float32{f[0], f[16]}, "the first launch kept its parameters, the second had the new ones")
	requireError(t, g.SetArgs(0, one, nil), invalidValue, "command 0 is of a kind that this change does not apply to")
	requireError(t, g.SetArgs(3, one, nil), invalidValue, "there is no command 3; the list has 3")
	requireError(t, g.SetArgs(1, [3]uint32{1, 1 << 20, 1}, []cudart.Value{pointer(d, 64)}), invalidValue, "grid.y is 1048576; up to 65535 is possible")
	require.NoError(t, g.SetArgs(1, [3]uint32{}, []cudart.Value{pointer(d, 64)}), "a launch of nothing")
	requireError(t, g.SetCopy(1, d, d), invalidValue, "command 1 is of a kind that this change does not apply to")

	captured, err := b.list(inc, inc).Capture(cudart.GraphOptions{Origin: s})
	require.NoError(t, err)
	require.ErrorIs(t, captured.SetArgs(0, one, nil), cudart.ErrUnsupported)
	encode := func(commands ...cudart.Command) cudart.List {
		l, err := b.Encode(commands, cudart.ListOptions{Origin: s})
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, l.Close()) })
		return l
	}
	zero := cudart.Command{Kind: cudart.SetMemory, Stream: s, Label: "zero", Dst: d, Bytes: 64, Width: 1}
	requireError(t, captured.Update(encode(inc)), graphExecUpdateError, "the number of nodes differs")
	requireError(t, captured.Update(encode(inc, zero)), graphExecUpdateError, "the kind of node \"zero\" differs")
	u := b.stream()
	e, j := b.event(false), b.event(false)
	requireError(t, captured.Update(encode(record(s, e), wait(u, e), b.kernel(u, "noop"), inc, record(u, j), wait(s, j))),
		graphExecUpdateError, "the dependencies of node \"inc\" differ")
	next := b.kernel(s, "inc", pointer(other, 64))
	require.NoError(t, captured.Update(encode(next, next)))
	require.NoError(t, b.submit(cudart.Command{Kind: cudart.SetMemory, Stream: s, Dst: other, Bytes: 64, Width: 1}))
	require.NoError(t, captured.Launch(s))
	require.NoError(t, b.submit(toHost(s, h, other, 64)))
	require.NoError(t, s.Synchronize(context.Background()))
	require.Equal(t, float32(2), f[0])
	require.NoError(t, captured.Close())
	require.NoError(t, captured.Close(), "a second time does nothing")
	for _, err := range []error{captured.Launch(s), captured.Upload(s), captured.Update(encode(next, next)), captured.SetCopy(0, 0, 0)} {
		requireError(t, err, invalidHandle, "the graph is closed")
	}
}

func TestGraphRefuses(t *testing.T) {
	b := newBench(t, Options{})
	s := b.stream()
	label := func(l string) cudart.Command {
		c := b.kernel(s, "noop")
		c.Label = l
		return c
	}
	commands := []cudart.Command{label("a"), label("b"), label("c")}
	for want, deps := range map[string][][]int32{
		`node "b": cuGraphInstantiate: CUDA_ERROR_INVALID_VALUE (1): invalid argument: it depends on command 2, which does not come before it`:  {nil, {2}, {1}},
		`node "c": cuGraphInstantiate: CUDA_ERROR_INVALID_VALUE (1): invalid argument: it depends on command -1, which does not come before it`: {nil, nil, {-1}},
		`node "b": cuGraphInstantiate: CUDA_ERROR_INVALID_VALUE (1): invalid argument: it depends on command 0 twice`:                           {nil, {0, 0}, nil},
		`cuGraphInstantiate: CUDA_ERROR_INVALID_VALUE (1): invalid argument: there are 3 commands, but dependencies for 2`:                      {nil, nil},
	} {
		_, err := b.BuildGraph(commands, deps, cudart.GraphOptions{})
		require.EqualError(t, err, want)
	}
	commands[1].Grid = [3]uint32{1, 70000, 1}
	_, err := b.BuildGraph(commands, make([][]int32, 3), cudart.GraphOptions{})
	requireError(t, err, invalidValue, `node "b": cuLaunchKernel: CUDA_ERROR_INVALID_VALUE (1): invalid argument: grid.y is 70000; up to 65535 is possible`)
}

func TestGraphPriorities(t *testing.T) {
	var ran []dag.Priority
	note := func(p dag.Priority) func() { return func() { ran = append(ran, p) } }
	b := newBench(t, Options{Workers: 1}, note(dag.Low), note(dag.Normal), note(dag.High))
	s := b.stream()
	var commands []cudart.Command
	var deps [][]int32
	commands, deps = append(commands, cudart.Command{Kind: cudart.Empty}), append(deps, nil)
	for range 2 {
		for i := range 3 {
			c := b.kernel(s, "call", scalar(uint64(i)))
			c.Priority = dag.Priority(i - 1)
			commands, deps = append(commands, c), append(deps, []int32{0})
		}
	}
	g := b.graph(commands, deps, cudart.GraphOptions{Priorities: true})
	require.NoError(t, g.Launch(s))
	require.NoError(t, s.Synchronize(context.Background()))
	require.Equal(t, []dag.Priority{1, 1, 0, 0, -1, -1}, ran)
}

func TestTimedRecordsAreNodes(t *testing.T) {
	b := newBench(t, Options{})
	s := b.stream()
	from, to, untimed := b.event(true), b.event(true), b.event(false)
	d := b.alloc(1 << 20)
	g := b.graph([]cudart.Command{
		record(s, from), b.kernel(s, "inc", pointer(d, 1<<20)), record(s, untimed), record(s, to), wait(s, untimed),
	}, [][]int32{nil, {0}, {1}, {2}, {3}}, cudart.GraphOptions{})
	require.Equal(t, 5, g.Nodes(), "untimed records and waits only order")
	for range 3 {
		require.NoError(t, g.Launch(s))
		require.NoError(t, to.Synchronize(context.Background()))
		us, err := to.Since(from)
		require.NoError(t, err)
		require.Positive(t, us)
	}
	require.NoError(t, b.submit(record(s, to)))
	require.NoError(t, to.Synchronize(context.Background()))

	captured, err := b.list(record(s, from), b.kernel(s, "inc", pointer(d, 1<<20)), record(s, untimed), record(s, to)).Capture(cudart.GraphOptions{Origin: s})
	require.NoError(t, err)
	require.Equal(t, 3, captured.Nodes(), "an untimed record is none, and a timed one is if nothing in the list waits for it")
	require.NoError(t, captured.Launch(s))
	require.NoError(t, to.Synchronize(context.Background()))
	us, err := to.Since(from)
	require.NoError(t, err)
	require.Positive(t, us)
	require.NoError(t, captured.Close())
}

func TestFaultInAGraph(t *testing.T) {
	b := newBench(t, Options{})
	s := b.stream()
	ran := false
	module := testModule(func() { panic("boom") }, func() { ran = true })
	m, err := b.Load(context.Background(), 0, module)
	require.NoError(t, err)
	b.module, m = m, b.module
	bad, after := b.kernel(s, "call", scalar(0)), b.kernel(s, "call", scalar(1))
	bad.Label, bad.Node = "bad", 3
	g := b.graph([]cudart.Command{bad, after}, [][]int32{nil, {0}}, cudart.GraphOptions{})
	require.NoError(t, g.Launch(s))
	e := requireError(t, s.Synchronize(context.Background()), launchFailed, `node "bad": cuLaunchKernel: CUDA_ERROR_LAUNCH_FAILED (719): unspecified launch failure: panic: boom`)
	require.Equal(t, int32(3), e.Node)
	require.False(t, ran, "what depends on it is skipped")
	require.ErrorIs(t, g.Launch(s), cudart.ErrPoisoned)
	require.NoError(t, b.module.Close())
	b.module = m
}

func BenchmarkGraph(b *testing.B) {
	const n = 1000
	for _, width := range []int32{1, 8} {
		t := newBench(b, Options{})
		s := t.stream()
		var commands []cudart.Command
		var deps [][]int32
		for i := range int32(n) {
			commands = append(commands, t.kernel(s, "noop"))
			if i < width {
				deps = append(deps, nil)
			} else {
				deps = append(deps, []int32{i - width})
			}
		}
		g := t.graph(commands, deps, cudart.GraphOptions{})
		b.Run(fmt.Sprintf("chains=%d", width), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if err := g.Launch(s); err != nil {
					b.Fatal(err)
				}
				if err := s.Synchronize(context.Background()); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/node")
		})
	}
}
