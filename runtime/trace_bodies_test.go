// Tests of traces of loops and branches: each pass is shown with its number and its nodes, as streams and as a graph, and never too many.

package runtime_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/cudart"
	"github.com/dagrun/dagrun/cudart/fault"
	"github.com/dagrun/dagrun/cudart/host"
	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/dag/expr"
	"github.com/dagrun/dagrun/kernels"
	"github.com/dagrun/dagrun/planner"
	"github.com/dagrun/dagrun/planner/spread"
	"github.com/dagrun/dagrun/runtime"
	"github.com/dagrun/dagrun/tests/nests"
)

// alternating is a loop of five passes, with a loop in it that makes one pass less each time, and a branch that takes turns.
func alternating(t *testing.T) *dag.Graph {
	t.Helper()
	b := dag.New("alternating")
	b.Use(kernels.Library())
	one := func(name string, value int64) dag.Range {
		id := b.Device(name, dag.F64, 1)
		b.Init(id, dag.Init{Kind: dag.InitValue, Value: expr.Int(value)})
		return b.Whole(id)
	}
	turn, left, x := one("turn", 1), one("left", 3), one("x", 1)
	b.Memset("start", turn, 1)
	b.Memset("refill", left, 3)
	b.Repeat("outer", dag.Loop{Times: 5}, func() {
		b.Kernel("flip", "scale", dag.Args{1, -1, turn})
		b.Repeat("inner", dag.Loop{While: "left > 0", Most: 9}, func() { b.Kernel("drain", "axpy", dag.Args{1, 1, turn, left}) })
		b.If("which", "turn > 0", func() { b.Kernel("up", "scale", dag.Args{1, 2, x}) }, func() { b.Kernel("down", "scale", dag.Args{1, 0.5, x}) })
		b.If("rarely", "turn > 5", func() { b.Memset("never", x, 0) }, nil)
	})
	b.Repeat("none", dag.Loop{While: "x > 1e9", Most: 3}, func() { b.Memset("unreached", x, 0) })
	g, err := b.Graph()
	require.NoError(t, err)
	return g
}

// traced returns a trace of one replay, and checks what holds for all traces of loops and branches.
func traced(t *testing.T, g *dag.Graph, mode runtime.Mode) (*runtime.TracedReplay, []byte) {
	t.Helper()
	plan, err := planner.New(t.Context(), g, planner.Options{Streams: 3})
	require.NoError(t, err)
	platform := cpu(t)
	live := platform.Live()
	program, err := runtime.New(t.Context(), g, plan, platform, runtime.Options{Mode: mode})
	require.NoError(t, err)
	require.Equal(t, mode, program.Mode())
	before := platform.Live()
	trace, err := program.Trace(t.Context(), 2)
	require.NoError(t, err)
	require.Equal(t, before, platform.Live(), "a trace gives back what it took")
	require.Equal(t, map[bool]string{true: "nodes", false: "passes"}[mode == runtime.Streams], trace.Bodies)
	var file, again bytes.Buffer
	require.NoError(t, trace.WriteChrome(&file, g, plan, nil))
	require.NoError(t, trace.WriteChrome(&again, g, plan, nil))
	require.Equal(t, file.String(), again.String())
	require.NoError(t, program.Run(t.Context(), 1))
	loops, err := program.Loops(t.Context())
	require.NoError(t, err)
	for k := range trace.Replays {
		replay := &trace.Replays[k]
		require.Len(t, replay.Loops, len(loops))
		for k := range loops {
			require.Equal(t, loops[k].Node, replay.Loops[k].Node)
		}
		checkPasses(t, g, replay, mode)
	}
	require.NoError(t, program.Close())
	require.Equal(t, live, platform.Live())
	return &trace.Replays[1], file.Bytes()
}

// checkPasses checks that passes are numbered, lie in each other and follow each other, and that their numbers agree with the counts.
func checkPasses(t *testing.T, g *dag.Graph, r *runtime.TracedReplay, mode runtime.Mode) {
	t.Helper()
	type run struct {
		node string
		run  int64
	}
	ends, numbers := map[run]float64{}, map[run]int64{}
	shown, passes := map[string]int64{}, map[string]int64{}
	const tiny = 1e-6
	for k, p := range r.Passes {
		at := run{p.Node, p.Run}
		require.Equal(t, numbers[at]+1, p.First, "%+v follows the pass before", p)
		require.GreaterOrEqual(t, p.Last, p.First)
		require.GreaterOrEqual(t, p.End, p.Start)
		require.GreaterOrEqual(t, p.Start, ends[at]-tiny, "%+v starts after the pass before", p)
		ends[at], numbers[at] = p.End, p.Last
		passes[p.Node] += p.Last - p.First + 1
		if !p.LeftOut {
			shown[p.Node]++
		}
		require.Less(t, p.Within, k)
		if p.Within >= 0 {
			outer := r.Passes[p.Within]
			require.GreaterOrEqual(t, p.Start, outer.Start-tiny)
			require.LessOrEqual(t, p.End, outer.End+tiny)
		} else {
			for i := range g.Nodes {
				if g.Nodes[i].Name == p.Node {
					require.GreaterOrEqual(t, p.Start, r.Spans[i].Start-tiny)
					require.LessOrEqual(t, p.End, r.Spans[i].End+tiny)
				}
			}
		}
		require.Equal(t, mode == runtime.Streams && !p.LeftOut && p.Body != "none", len(p.Nodes) > 0, "%+v", p)
		for _, n := range p.Nodes {
			require.GreaterOrEqual(t, n.Start, p.Start)
			require.GreaterOrEqual(t, n.End, n.Start)
			require.LessOrEqual(t, n.End, p.End)
		}
	}
	for _, l := range r.Loops {
		require.Equal(t, shown[l.Node], l.Shown, l.Node)
		if did := l.Passes + l.Then + l.Otherwise; l.Shown == did {
			require.Equal(t, did, passes[l.Node], l.Node)
		} else {
			require.Less(t, l.Shown, did)
		}
	}
}

// outline is the passes of a replay without times.
func outline(r *runtime.TracedReplay) (lines []string) {
	for _, p := range r.Passes {
		line := fmt.Sprintf("%s run %d, %s %d to %d, in %d", p.Node, p.Run, p.Body, p.First, p.Last, p.Within)
		if p.LeftOut {
			line += ", left out"
		}
		lines = append(lines, line)
	}
	return lines
}

func TestPassesAreTraced(t *testing.T) {
	want := []string{
		"outer run 1, repeat 1 to 1, in -1", "outer run 1, repeat 2 to 2, in -1", "outer run 1, repeat 3 to 3, in -1", "outer run 1, repeat 4 to 4, in -1", "outer run 1, repeat 5 to 5, in -1",
		"inner run 1, repeat 1 to 1, in 0", "inner run 1, repeat 2 to 2, in 0", "inner run 1, repeat 3 to 3, in 0",
		"which run 1, else 1 to 1, in 0", "which run 2, then 1 to 1, in 1", "which run 3, else 1 to 1, in 2", "which run 4, then 1 to 1, in 3", "which run 5, else 1 to 1, in 4",
		"rarely run 1, none 1 to 1, in 0", "rarely run 2, none 1 to 1, in 1", "rarely run 3, none 1 to 1, in 2", "rarely run 4, none 1 to 1, in 3", "rarely run 5, none 1 to 1, in 4",
	}
	for _, mode := range []runtime.Mode{runtime.Streams, runtime.Captured} {
		replay, file := traced(t, alternating(t), mode)
		require.Equal(t, want, outline(replay), mode)
		var texts []string
		for _, l := range replay.Loops {
			texts = append(texts, fmt.Sprintf("%s: %s, %d shown", l.Node, l.Text(), l.Shown))
		}
		require.Equal(t, []string{"outer: 5 passes, 5 shown", "inner: 3 passes in 5 runs of at most 9, 3 shown", "which: the condition held in 2 of 5 runs, 5 shown",
			"rarely: the condition held in 0 of 5 runs, 5 shown", "none: 0 passes of at most 3, 0 shown"}, texts, mode)

		names, events, _ := tracks(t, file)
		on := map[string]int{} // slices by track and name, of both replays
		for _, e := range events {
			if e.PID == 5 {
				on[names[[2]int{e.PID, e.TID}]+": "+e.Name]++
			}
		}
		slices := map[string]int{"outer: pass 1": 2, "outer: pass 2": 2, "outer: pass 3": 2, "outer: pass 4": 2, "outer: pass 5": 2,
			"inner: pass 1": 2, "inner: pass 2": 2, "inner: pass 3": 2, "which: then": 4, "which: else": 6, "rarely: none": 10}
		if mode == runtime.Streams {
			for track, count := range map[string]int{"outer, stream 0: flip": 10, "outer, stream 0: inner": 10, "inner, stream 0: drain": 6,
				"which, then, stream 0: up": 4, "which, else, stream 0: down": 6} {
				slices[track] = count
			}
			for _, s := range []string{"0", "1"} { // which of them follows the plan
				for _, node := range []string{"which", "rarely"} {
					if track := fmt.Sprintf("outer, stream %s: %s", s, node); on[track] > 0 {
						slices[track] = 10
					}
				}
			}
		}
		require.Equal(t, slices, on, mode)
	}
}

// A graph shows the passes that streams show, in any nest.
func TestTracesOfNestsAgree(t *testing.T) {
	for seed := range uint64(12) {
		g, err := nests.New(rand.New(rand.NewPCG(seed, 8))).Graph()
		require.NoError(t, err)
		if !g.HasControl() {
			continue
		}
		streams, _ := traced(t, g, runtime.Streams)
		graph, _ := traced(t, g, runtime.Captured)
		require.Equal(t, outline(streams), outline(graph), "seed %d", seed)
	}
}

// A loop of very many passes shows the first ones, and says how many it leaves out. A loop in another one does not take all the room.
func TestTracesOfManyPassesAreBounded(t *testing.T) {
	many := func(outer, inner int64) *dag.Graph {
		b := dag.New("many")
		b.Use(kernels.Library())
		x := b.Device("x", dag.F32, 1)
		b.Init(x, dag.Init{Kind: dag.InitValue, Value: expr.Int(1)})
		b.Repeat("outer", dag.Loop{Times: outer}, func() {
			b.Kernel("first", "scale", dag.Args{1, 1, b.Whole(x)})
			b.Repeat("inner", dag.Loop{Times: inner}, func() { b.Kernel("again", "scale", dag.Args{1, 1, b.Whole(x)}) })
		})
		g, err := b.Graph()
		require.NoError(t, err)
		return g
	}
	last := func(r *runtime.TracedReplay, node string) (p runtime.TracedPass) {
		for k := range r.Passes {
			if r.Passes[k].Node == node {
				p = r.Passes[k]
			}
		}
		return p
	}
	for _, c := range []struct {
		mode                               runtime.Mode
		outer, inner                       int64
		outers, inners, outerLast, oneSize int64
	}{
		{runtime.Streams, 6000, 1, 1365, 1365, 6000, 6000 - 1365},
		{runtime.Streams, 3, 1000, 3, 3 * 128, 3, 1},
		{runtime.Captured, 6000, 1, 4095, 2048, 6000, 6000 - 4094 - 1},
		{runtime.Captured, 3, 1000, 3, 3 * 256, 3, 1},
	} {
		replay, _ := traced(t, many(c.outer, c.inner), c.mode)
		require.Equal(t, c.outer, replay.Loops[0].Passes)
		require.Equal(t, c.outer*c.inner, replay.Loops[1].Passes)
		require.Less(t, len(replay.Passes), 10_000)
		end := last(replay, "outer")
		require.Equal(t, c.outer, end.Last)
		if c.outer == 3 {
			require.False(t, end.LeftOut)
			require.Equal(t, c.inners, replay.Loops[1].Shown, c.mode)
			inner := last(replay, "inner")
			require.True(t, inner.LeftOut)
			require.Equal(t, int64(1000), inner.Last)
			require.Equal(t, c.inners/3+1, inner.First)
			continue
		}
		require.True(t, end.LeftOut, c.mode)
		require.GreaterOrEqual(t, replay.Loops[0].Shown, int64(1000))
		require.Less(t, replay.Loops[0].Shown, int64(4096))
		require.Equal(t, replay.Loops[0].Shown+1, end.First)
	}
}

// A node of a body that fails in a traced pass is named, and nothing is left behind.
func TestATraceOfAFailingBodyNamesTheNode(t *testing.T) {
	g := alternating(t)
	plan, err := planner.New(t.Context(), g, planner.Options{})
	require.NoError(t, err)
	failed := 0
	for call := 1; call < 200; call += 13 {
		platform := cpu(t)
		broken := fault.Wrap(platform, fault.Plan{Only: "cuLaunchKernel", Call: call})
		program, err := runtime.New(t.Context(), g, plan, broken, runtime.Options{})
		require.NoError(t, err)
		if _, err := program.Trace(t.Context(), 1); err != nil {
			var device *cudart.Error
			require.ErrorAs(t, err, &device)
			require.Contains(t, []string{"start", "refill", "flip", "drain", "up", "down"}, device.Label)
			failed++
		}
		require.NoError(t, program.Close())
		require.Zero(t, platform.Live())
	}
	require.Greater(t, failed, 5)
}

func TestForgedPassesAreRefused(t *testing.T) {
	g := alternating(t)
	plan, err := planner.New(t.Context(), g, planner.Options{})
	require.NoError(t, err)
	good := runtime.TracedPass{Node: "outer", Within: -1, Run: 1, First: 1, Last: 1, Body: "repeat", End: 1}
	for _, c := range []struct {
		change func(*runtime.TracedPass)
		want   string
	}{
		{func(p *runtime.TracedPass) {}, ""},
		{func(p *runtime.TracedPass) { p.Node = "flip" }, `the trace has a pass of "flip", which is no loop or branch of the graph`},
		{func(p *runtime.TracedPass) { p.Within = 0 }, `pass 1 to 1 of "outer" is in entry 0 of the passes, which is not before it`},
		{func(p *runtime.TracedPass) { p.Nodes = []runtime.BodySpan{{Node: "flip", Stream: 99}} }, `a trace in which node "flip" of "outer" runs from 0 us to 0 us on stream 99 cannot be written`},
	} {
		p := good
		c.change(&p)
		trace := &runtime.Trace{Bodies: "nodes", Replays: []runtime.TracedReplay{{Spans: make([]runtime.Span, g.Len()), Passes: []runtime.TracedPass{p}}}}
		err := trace.WriteChrome(&bytes.Buffer{}, g, plan, nil)
		if c.want == "" {
			require.NoError(t, err)
		} else {
			require.EqualError(t, err, c.want)
		}
	}
}

// Passes of bodies that run on several devices are ordered in a trace as they are without one, and all are shown.
func TestPassesOnSeveralDevicesAreTraced(t *testing.T) {
	elsewhere := 0
	for seed := range uint64(16) {
		r := rand.New(rand.NewPCG(seed, 12))
		g, err := nests.New(r).Graph()
		require.NoError(t, err)
		at := make([]int32, spread.Nodes(g))
		for i := range at {
			at[i] = int32(r.IntN(2))
		}
		s, err := spread.At(g, spread.Options{Devices: 2}, at)
		require.NoError(t, err)
		platform, err := host.Open(host.Options{CheckOrder: true, Devices: 2, Perturb: 1 + r.Uint64N(1<<40)})
		require.NoError(t, err)
		plan, err := planner.New(t.Context(), s.Graph, planner.Options{})
		require.NoError(t, err)
		program, err := runtime.New(t.Context(), s.Graph, plan, platform, runtime.Options{})
		require.NoError(t, err)
		trace, err := program.Trace(t.Context(), 2)
		require.NoError(t, err, "seed %d", seed)
		require.NoError(t, trace.WriteChrome(&bytes.Buffer{}, s.Graph, plan, nil))
		for _, l := range trace.Replays[1].Loops {
			passes := int64(0)
			for _, p := range trace.Replays[1].Passes {
				if p.Node == l.Node {
					passes++
				}
			}
			require.Equal(t, l.Passes+l.Then+l.Otherwise, passes, "seed %d, %s", seed, l.Node)
		}
		if s.Graph.NotInGraph() != "" {
			elsewhere++
		}
		require.NoError(t, program.Close())
		require.Equal(t, cudart.Live{}, platform.Live())
		require.NoError(t, platform.Close())
	}
	require.Greater(t, elsewhere, 4)
}
