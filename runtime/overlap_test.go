// Tests of launches that overlap: which ones begin early, and that code which does not wait is refused.

package runtime_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/cudart"
	"github.com/dagrun/dagrun/cudart/host"
	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/internal/ptx"
	"github.com/dagrun/dagrun/kernels"
	"github.com/dagrun/dagrun/kernels/launch"
	"github.com/dagrun/dagrun/planner"
	"github.com/dagrun/dagrun/planner/proof"
	"github.com/dagrun/dagrun/runtime"
	"github.com/dagrun/dagrun/runtime/learn"
)

// overlapping is the CPU device in the guise of a GPU on which launches overlap: it loads the code as a GPU does, and tells which
// kernels of that code wait first. Its launches come one after the other.
type overlapping struct {
	cudart.Platform
	spoil func(text string) string // what happens to code on its way to the device
	early [][]string               // of each list and graph: the nodes that begin early
	slow  func(graph, early bool)  // delays a replay
	waits bool                     // whatever is loaded waits first
	loads int
}

type overlappingList struct {
	cudart.List
	device *overlapping
	early  bool
}

func (l *overlappingList) Submit() error {
	l.device.delay(false, l.early)
	return l.List.Submit()
}

func (l *overlappingList) Capture(options cudart.GraphOptions) (cudart.Graph, error) {
	g, err := l.List.Capture(options)
	if err != nil {
		return nil, err
	}
	return &overlappingGraph{g, l.device, l.early}, nil
}

type overlappingGraph struct {
	cudart.Graph
	device *overlapping
	early  bool
}

func (g *overlappingGraph) Launch(s cudart.Stream) error {
	g.device.delay(true, g.early)
	return g.Graph.Launch(s)
}

func (o *overlapping) delay(graph, early bool) {
	if o.slow != nil {
		o.slow(graph, early)
	}
}

func (o *overlapping) CanOverlap(int32) error { return nil }

type overlappingModule struct {
	cudart.Module
	waits map[string]bool
	all   bool
}

func (m *overlappingModule) Waits() bool { return m.all }

type overlappingKernel struct {
	cudart.Kernel
	waits bool
}

func (o *overlapping) Load(ctx context.Context, device int32, m *launch.Module) (cudart.Module, error) {
	loaded, err := o.Platform.Load(ctx, device, m)
	if err != nil {
		return nil, err
	}
	found := map[string]bool{}
	o.loads++
	if m.Waiting || o.waits {
		text, err := ptx.Waiting(string(m.Code))
		if err != nil {
			return nil, err
		}
		if o.spoil != nil {
			text = o.spoil(text)
		}
		parsed, err := ptx.Parse(text)
		if err != nil {
			return nil, err
		}
		for _, id := range parsed.Entries() {
			found[parsed.Functions[id].Name] = parsed.WaitsFirst(id)
		}
	}
	return &overlappingModule{loaded, found, o.waits}, nil
}

func (m *overlappingModule) Kernel(entry string) (cudart.Kernel, error) {
	k, err := m.Module.Kernel(entry)
	if err != nil {
		return nil, err
	}
	return &overlappingKernel{k, m.waits[entry]}, nil
}

func (k *overlappingKernel) Attributes() cudart.KernelAttributes {
	a := k.Kernel.Attributes()
	a.WaitsFirst = k.waits
	return a
}

// plain takes the guise off commands.
func (o *overlapping) plain(commands []cudart.Command) []cudart.Command {
	var early []string
	list := slices.Clone(commands)
	for i := range list {
		if list[i].Early {
			early = append(early, list[i].Label)
		}
		if k, ok := list[i].Kernel.(*overlappingKernel); ok {
			list[i].Kernel = k.Kernel
		}
	}
	o.early = append(o.early, early)
	return list
}

func (o *overlapping) Encode(commands []cudart.Command, options cudart.ListOptions) (cudart.List, error) {
	l, err := o.Platform.Encode(o.plain(commands), options)
	if err != nil {
		return nil, err
	}
	return &overlappingList{l, o, len(o.early[len(o.early)-1]) > 0}, nil
}

func (o *overlapping) BuildGraph(commands []cudart.Command, deps [][]int32, options cudart.GraphOptions) (cudart.Graph, error) {
	return o.Platform.BuildGraph(o.plain(commands), deps, options)
}

func overlappingDevice(t *testing.T) *overlapping {
	device, err := host.Open(host.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, device.Close()) })
	return &overlapping{Platform: device}
}

// overlapChain copies up, doubles a few times on one stream, joins with a map of another buffer, and copies down.
func overlapChain(t *testing.T) *dag.Graph {
	b := dag.New("chain")
	b.Use(kernels.Library())
	const n = 64
	x, y := b.Host("x", dag.F32, n), b.Host("out", dag.F32, n)
	b.Init(x, dag.Init{Kind: dag.InitRamp, A: 0, B: 1})
	d, e := b.Device("d", dag.F32, n), b.Device("e", dag.F32, n)
	b.Stream(b.Copy("up", b.Whole(d), b.Whole(x)), 0)
	for k := range 3 {
		b.Stream(b.Kernel(fmt.Sprintf("double%d", k), "scale", dag.Args{n, 2, b.Whole(d)}), 0)
	}
	b.Stream(b.Kernel("fill", "fill", dag.Args{n, 1, b.Whole(e)}), 1)
	b.Stream(b.Kernel("more", "scale", dag.Args{n, 3, b.Whole(e)}), 1)
	b.Stream(b.Kernel("add", "saxpy", dag.Args{n, 1, b.Whole(e), b.Whole(d)}), 0)
	b.Stream(b.Kernel("last", "scale", dag.Args{n, 2, b.Whole(d)}), 0)
	b.Stream(b.Copy("down", b.Whole(y), b.Whole(d)), 0)
	g, err := b.Graph()
	require.NoError(t, err)
	return g
}

func TestLaunchesOverlapAfterLaunches(t *testing.T) {
	g := overlapChain(t)
	plan, err := planner.New(context.Background(), g, planner.Options{})
	require.NoError(t, err)
	results := map[string][]byte{}
	for _, mode := range []runtime.Mode{runtime.Streams, runtime.Captured, runtime.Built} {
		for _, overlap := range []runtime.Overlap{runtime.OverlapOff, runtime.OverlapAuto, runtime.OverlapOn} {
			device := overlappingDevice(t)
			p, err := runtime.New(context.Background(), g, plan, device, runtime.Options{Mode: mode, Overlap: overlap})
			require.NoError(t, err)
			var want []string
			if overlap == runtime.OverlapOn {
				want = []string{"double1", "double2", "more", "last"}
			}
			nodes, on := p.Overlaps()
			require.Equal(t, overlap == runtime.OverlapOn, on)
			require.Equal(t, len(want), nodes)
			require.ElementsMatch(t, want, device.early[len(device.early)-1], "%s", mode)
			require.NoError(t, p.Run(context.Background(), 2))
			id, ok := p.Buffer("out")
			require.True(t, ok)
			results[mode.String()+overlap.String()] = slices.Clone(p.Host(id))
			// Where times are taken around nodes, none begins early.
			_, err = p.Trace(context.Background(), 1)
			require.NoError(t, err)
			require.Empty(t, device.early[len(device.early)-1])
			require.NoError(t, p.Close())
		}
	}
	for name, got := range results {
		require.Equal(t, results["streamsoff"], got, name)
	}
}

func TestCodeThatDoesNotWaitIsRefused(t *testing.T) {
	g := overlapChain(t)
	plan, err := planner.New(context.Background(), g, planner.Options{})
	require.NoError(t, err)
	for _, spoil := range []func(string) string{
		func(text string) string { return strings.ReplaceAll(text, "griddepcontrol.wait;", "") },
		func(text string) string {
			return strings.ReplaceAll(text, "griddepcontrol.wait;", "bar.sync 0; griddepcontrol.wait;")
		},
	} {
		for _, mode := range []runtime.Mode{runtime.Streams, runtime.Captured, runtime.Built} {
			device := overlappingDevice(t)
			device.spoil = spoil
			_, err := runtime.New(context.Background(), g, plan, device, runtime.Options{Mode: mode, Overlap: runtime.OverlapOn})
			require.ErrorIs(t, err, proof.ErrEarly)
			require.EqualError(t, err, `"more" begins before the end of "fill", but its code does not first wait for that: launch "more" when all before it has ended`)
		}
	}
}

func TestOverlapNeedsADevice(t *testing.T) {
	g := overlapChain(t)
	plan, err := planner.New(context.Background(), g, planner.Options{})
	require.NoError(t, err)
	device, err := host.Open(host.Options{})
	require.NoError(t, err)
	defer device.Close()
	_, err = runtime.New(context.Background(), g, plan, device, runtime.Options{Overlap: runtime.OverlapOn})
	require.EqualError(t, err, "not supported: launches overlap on NVIDIA GPUs only")
	require.ErrorIs(t, err, cudart.ErrUnsupported)
	_, err = runtime.New(context.Background(), g, plan, device, runtime.Options{Overlap: 7})
	require.EqualError(t, err, "unknown choice: Overlap(7)")
	require.EqualError(t, runtime.CanOverlap(nil), "there is no platform")
}

// Code that waits although launches do not overlap need not be loaded again for launches that do.
func TestCodeThatWaitsIsLoadedOnce(t *testing.T) {
	g := overlapChain(t)
	plan, err := planner.New(context.Background(), g, planner.Options{})
	require.NoError(t, err)
	for _, waits := range []bool{false, true} {
		device := overlappingDevice(t)
		device.waits = waits
		p, err := runtime.New(context.Background(), g, plan, device, runtime.Options{Overlap: runtime.OverlapAuto})
		require.NoError(t, err)
		ways := []learn.Way{{Plan: plan, Threads: 1}, {Plan: plan, Threads: 1, Overlap: true}} // both are timed, whichever is faster
		learned, err := p.Learn(context.Background(), learn.Options{Replays: 100, Overlap: runtime.OverlapAuto, Ways: ways, Runs: 1, For: time.Hour, Modes: []runtime.Mode{runtime.Streams}})
		require.NoError(t, err)
		timed := map[bool]bool{}
		for _, w := range learned.Ways {
			timed[w.Overlap] = true
		}
		require.Len(t, timed, 2)
		require.Equal(t, map[bool]int{false: 2, true: 1}[waits], device.loads)
		require.NoError(t, p.Close())
	}
}

// Time is that of a bubble, in which only sleeping takes any: replays take exactly as long as they are told to.
func TestLearningComparesLaunchesThatOverlap(t *testing.T) {
	synctest.Test(t, learningComparesLaunchesThatOverlap)
}

func learningComparesLaunchesThatOverlap(t *testing.T) {
	g := overlapChain(t)
	plan, err := planner.New(context.Background(), g, planner.Options{})
	require.NoError(t, err)
	const usual, delay = time.Millisecond, 3 * time.Millisecond
	for _, c := range []struct {
		overlap runtime.Overlap
		slow    func(graph, early bool) bool
		with    []runtime.Mode // where launches overlap in the ways that were kept
	}{
		{runtime.OverlapOff, func(_, early bool) bool { return !early }, nil},
		{runtime.OverlapOn, func(_, early bool) bool { return early }, []runtime.Mode{runtime.Streams, runtime.Captured}},
		{runtime.OverlapAuto, func(_, early bool) bool { return !early }, []runtime.Mode{runtime.Streams, runtime.Captured}},
		{runtime.OverlapAuto, func(_, early bool) bool { return early }, nil},
		{runtime.OverlapAuto, func(graph, early bool) bool { return graph == early }, []runtime.Mode{runtime.Streams}},
		{runtime.OverlapAuto, func(graph, early bool) bool { return graph != early }, []runtime.Mode{runtime.Captured}},
	} {
		device := overlappingDevice(t)
		p, err := runtime.New(context.Background(), g, plan, device, runtime.Options{Overlap: c.overlap})
		require.NoError(t, err)
		device.slow = func(graph, early bool) {
			if time.Sleep(usual); c.slow(graph, early) {
				time.Sleep(delay)
			}
		}
		learned, err := p.Learn(context.Background(), learn.Options{Replays: 120, For: time.Minute, Overlap: c.overlap})
		require.NoError(t, err)
		var with []runtime.Mode
		for _, w := range learned.Ways {
			if w.Overlap {
				with = append(with, w.Mode)
			}
			require.True(t, w.Overlap || c.overlap != runtime.OverlapOn)
		}
		slices.Sort(with)
		require.Equal(t, c.with, slices.Compact(with))
		_, on := p.Overlaps()
		require.Equal(t, learned.Ways[0].Overlap, on)
		require.NoError(t, p.Close())
	}
}
