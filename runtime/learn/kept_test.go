// Tests of what learning keeps of what it has measured: of nodes alike, of ways, and of what earlier runs kept.

package learn

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/cudart"
	"github.com/dagrun/dagrun/cudart/host"
	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/kernels"
	"github.com/dagrun/dagrun/planner"
	"github.com/dagrun/dagrun/runtime/cache"
	"github.com/dagrun/dagrun/runtime/internal/engine"
	"github.com/dagrun/dagrun/runtime/internal/measure"
	"github.com/dagrun/dagrun/runtime/internal/spans"
)

// Nodes with the same work have the same samples: replay by replay, the median of theirs. One that ran beside others has those of one that ran alone.
func TestNodesAlikeShareTheirSamples(t *testing.T) {
	prints := []string{"a", "a", "b", "a", "c"}
	samples := func() [][]float64 { return [][]float64{{1, 10}, {2, 30}, {5}, {6}, nil} }
	require.Equal(t, map[string][]float64{"a": {2, 20}, "b": {5}}, sameWork(prints, samples()))
	require.Empty(t, sameWork(nil, nil))

	nodes := []dag.NodeID{0, 1, 2, 3, 4}
	all := samples()
	takeFromSame(all, nodes, prints)
	require.Equal(t, [][]float64{{2, 20}, {2, 20}, {5}, {2, 20}, nil}, all)
	all[0][0] = 99
	require.Equal(t, 2.0, all[1][0], "each has its own")
	all = samples()
	takeFromSame(all, []dag.NodeID{1}, prints)
	require.Equal(t, [][]float64{{1, 10}, {2, 20}, {5}, {6}, nil}, all, "others were not measured now")

	for _, c := range []struct {
		beside []bool
		want   [][]float64
	}{
		{[]bool{false, false, false, false, false}, samples()},
		{[]bool{true, false, false, false, false}, [][]float64{{2, 30}, {2, 30}, {5}, {6}, nil}},
		{[]bool{true, true, true, false, true}, [][]float64{{6}, {6}, {5}, {6}, nil}},
		{[]bool{false, true, false, true, false}, [][]float64{{1, 10}, {1, 10}, {5}, {1, 10}, nil}},
		{[]bool{true, true, true, true, true}, samples()},
	} {
		all := samples()
		takeFromAlone(all, nodes, prints, c.beside)
		require.Equal(t, c.want, all, "%v", c.beside)
	}
}

// Of each mode the best way is kept, and those that are close to the best of all; of a mode that was not compared, what earlier runs kept.
func TestWaysThatAreKept(t *testing.T) {
	way := func(mode engine.Mode, us float64) Way { return Way{Mode: mode, Each: engine.Series{Median: us}} }
	const s, g = engine.Streams, engine.Captured
	many := slices.Repeat([]Way{way(s, 100)}, cache.MostWays+3)
	for _, c := range []struct{ ways, earlier, want []Way }{
		{nil, nil, nil},
		{[]Way{way(s, 100), way(g, 300)}, nil, []Way{way(s, 100), way(g, 300)}},
		{[]Way{way(s, 100), way(s, 125), way(s, 126), way(g, 300), way(g, 301)}, nil, []Way{way(s, 100), way(s, 125), way(g, 300)}},
		{[]Way{way(s, 100)}, []Way{way(s, 50), way(g, 70), way(g, 60)}, []Way{way(s, 100), way(g, 70)}},
		{nil, []Way{way(s, 50), way(g, 70)}, []Way{way(s, 50), way(g, 70)}},
		{many, nil, many[:cache.MostWays-1]},
		{append(slices.Clone(many), way(g, 300)), nil, append(slices.Clone(many[:cache.MostWays-1]), way(g, 300))},
	} {
		require.Equal(t, c.want, worthKeeping(c.ways, c.earlier))
	}
}

// A run takes the way that is expected to take the least time in all. Graphs have the same nodes, so what one took longer to make counts for none;
// where there are many replays, making a graph in a moment counts for nothing.
func TestTheBestWayForSoManyReplays(t *testing.T) {
	streams, graph, slowGraph := Way{Mode: engine.Streams, Each: engine.Series{Median: 100}}, Way{Mode: engine.Captured, BuildUS: 5000, Each: engine.Series{Median: 80}}, Way{Mode: engine.Captured, BuildUS: 90000, Each: engine.Series{Median: 79}}
	for _, c := range []struct {
		ways    []Way
		replays int
		want    int
	}{
		{[]Way{streams}, 1, 0}, {[]Way{streams, graph}, 1, 0}, {[]Way{streams, graph}, 90, 0}, {[]Way{streams, graph}, 99, 0}, {[]Way{streams, graph}, 100, 1},
		{[]Way{streams, graph, slowGraph}, 1000, 2}, {[]Way{streams, slowGraph}, 1000, 0}, {[]Way{streams, slowGraph}, 5000, 1}, {[]Way{graph, streams}, 50, 1}, {[]Way{graph, graph}, 1000, 0},
	} {
		r := &Recalled{Ways: slices.Clone(c.ways)}
		require.Same(t, &r.Ways[c.want], r.Best(c.replays), "%d replays of %v", c.replays, c.ways)
	}
	require.Nil(t, (*Recalled)(nil).Best(5))
	require.Nil(t, (&Recalled{}).Best(5))
	took := streams
	took.Took = []float64{90}
	r := &Recalled{Ways: []Way{took, graph}}
	require.InDelta(t, 0.9, r.partInRuns(), 1e-9)
	require.True(t, r.Tries(&r.Ways[1]))
	require.False(t, r.Tries(&r.Ways[0]), "a run has taken it")
	require.False(t, (&Recalled{Ways: []Way{streams, graph}}).Tries(&graph), "no run has taken any")
	require.False(t, r.Tries(nil) || (*Recalled)(nil).Tries(&graph))
	r.Ways[1].Took = []float64{40, 40, 40}
	require.InDelta(t, math.Sqrt(0.9*0.5), r.partInRuns(), 1e-9, "the geometric mean")
	r.Ways[1].Took = []float64{800}
	require.Equal(t, 1.0, r.partInRuns(), "other programs may have slowed a run down")
}

// Whatever decides which plan is best is part of the key under which a choice is kept; what does not is no part of it.
func TestChoicesAreKeptByWhatDecidesThem(t *testing.T) {
	cpu, err := host.Open(host.Options{})
	require.NoError(t, err)
	defer cpu.Close()
	key := func(change func(o *Options, n *int64, name *string) engine.MemoryMode) string {
		o, n, name, memory := Options{Plan: planner.Options{Machine: planner.H200(), Strategy: "auto"}, Modes: []engine.Mode{engine.Streams}, Replays: 50}, int64(64), "d", engine.Arena
		if change != nil {
			memory = change(&o, &n, &name)
		}
		b := dag.New("p")
		b.Use(kernels.Library())
		x := b.Device(name, dag.F32, n)
		b.Kernel("k", "square", dag.Args{n, b.Whole(x), b.Whole(x)})
		g, err := b.Graph()
		require.NoError(t, err)
		return Recall(g, cpu, cache.Open(t.TempDir()), o, memory).key
	}
	seen := map[string]int{key(nil): -1}
	for k, change := range []func(o *Options, n *int64, name *string) engine.MemoryMode{
		func(o *Options, _ *int64, _ *string) engine.MemoryMode { o.Plan.Strategy = "list"; return engine.Arena },
		func(o *Options, _ *int64, _ *string) engine.MemoryMode { o.Plan.Streams = 3; return engine.Arena },
		func(o *Options, _ *int64, _ *string) engine.MemoryMode {
			o.Plan.Effort = planner.Normal
			return engine.Arena
		},
		func(o *Options, _ *int64, _ *string) engine.MemoryMode {
			o.Plan.MemoryCap = 1 << 30
			return engine.Arena
		},
		func(o *Options, _ *int64, _ *string) engine.MemoryMode { o.Plan.KeepAll = true; return engine.Arena },
		func(o *Options, _ *int64, _ *string) engine.MemoryMode {
			o.Plan.Keep = []dag.BufferID{0}
			return engine.Arena
		},
		func(o *Options, _ *int64, _ *string) engine.MemoryMode {
			o.Plan.SingleUseEvents = true
			return engine.Arena
		},
		func(o *Options, _ *int64, _ *string) engine.MemoryMode {
			o.Plan.Machine = cores(2)
			return engine.Arena
		},
		func(o *Options, _ *int64, _ *string) engine.MemoryMode {
			o.Plan.Profile = &planner.Profile{Nodes: map[string]float64{"k": 5}}
			return engine.Arena
		},
		func(o *Options, _ *int64, _ *string) engine.MemoryMode {
			o.Modes = []engine.Mode{engine.Captured}
			return engine.Arena
		},
		func(o *Options, _ *int64, _ *string) engine.MemoryMode { o.Threads = 2; return engine.Arena },
		func(o *Options, _ *int64, _ *string) engine.MemoryMode {
			o.Overlap = engine.OverlapOn
			return engine.Arena
		},
		func(_ *Options, n *int64, _ *string) engine.MemoryMode { *n = 65; return engine.Arena },
		func(_ *Options, _ *int64, name *string) engine.MemoryMode { *name = "e"; return engine.Arena },
		func(*Options, *int64, *string) engine.MemoryMode { return engine.Arena + 1 },
	} {
		made := key(change)
		require.NotEmpty(t, made)
		require.NotContains(t, seen, made, strconv.Itoa(k))
		seen[made] = k
	}
	require.Equal(t, key(nil), key(func(o *Options, _ *int64, _ *string) engine.MemoryMode {
		o.Replays, o.Plan.Profile = 70, &planner.Profile{Passes: map[string]int64{"loop": 3}}
		return engine.Arena
	}))
}

// A mode is hopeless if the best of it is predicted to be much slower than the best of the other; shares of cores are no more than all.
func TestHopelessModesAndSharesOfCores(t *testing.T) {
	field := func(streams, graphs []float64) *field {
		f := &field{}
		for _, us := range streams {
			f.ways = append(f.ways, Way{Mode: engine.Streams, Predicted: us})
		}
		for _, us := range graphs {
			f.ways = append(f.ways, Way{Mode: engine.Captured, Predicted: us})
		}
		return f
	}
	for _, c := range []struct {
		streams, graphs []float64
		want            [2]bool
	}{
		{[]float64{160, 300}, []float64{100, 500}, [2]bool{false, false}}, {[]float64{161, 300}, []float64{500, 100}, [2]bool{true, false}}, {[]float64{300, 100}, []float64{161}, [2]bool{false, true}},
		{nil, []float64{100}, [2]bool{true, false}}, {nil, nil, [2]bool{false, false}},
	} {
		f := field(c.streams, c.graphs)
		require.Equal(t, c.want, [2]bool{f.hopeless(engine.Streams), f.hopeless(engine.Captured)}, "%v", c)
	}
	for _, c := range []struct {
		share           float64
		cores           int
		slowdown, wants float64
	}{{0.5, 2, 1, 0.5}, {1, 2, 1, 1}, {0.25, 2, 1, 0.5}, {0.5, 2, 2, 1}, {1, 2, 2, 1}, {0.5, 2, 4, 1}, {0.25, 4, 1, 0.25}, {0.5, 4, 1, 0.5}, {0.25, 4, 2, 0.5}, {1, 4, 2, 1}, {0.5, 4, 2, (1 + 1.0/3) / 2}} {
		require.InDelta(t, c.wants, together([][]float64{{c.share}}, c.cores, c.slowdown)[0][0], 1e-9, "%v", c)
	}
}

// A run whose replays took less than 20 ms tells nothing of a choice.
func TestShortRunsTellNothing(t *testing.T) {
	w := &Way{Each: engine.Series{Median: 100}}
	folder := cache.Open(t.TempDir())
	for _, c := range []struct {
		us      float64
		replays int
		runs    int
	}{{200, 99, 0}, {200, 100, 1}, {100, 1000, 0}, {math.NaN(), 1000, 0}} {
		r := &Recalled{folder: folder}
		if c.runs == 0 {
			runs, again, err := r.Confirm(t.Context(), w, c.us, c.replays)
			require.NoError(t, err)
			require.Zero(t, runs)
			require.False(t, again)
			continue
		}
		var none context.Context
		runs, again, err := r.Confirm(none, w, c.us, c.replays)
		require.ErrorIs(t, err, engine.ErrNoContext, "it is long enough to be looked at")
		require.Zero(t, runs)
		require.False(t, again)
	}
	for _, r := range []*Recalled{nil, {}} {
		runs, again, err := r.Confirm(t.Context(), w, 200, 1000)
		require.NoError(t, err)
		require.False(t, again || runs > 0, "nothing is kept")
	}
}

// Durations count if there are enough samples, and the node declares no cost. Where there is one replay, those of first replays count.
func TestWhatIsKnownOfDurations(t *testing.T) {
	b := dag.New("known")
	for _, name := range []string{"often", "once", "declared", "shared"} {
		b.Task(name)
	}
	b.Cost(2, 7)
	g, err := b.Graph()
	require.NoError(t, err)
	r := &Recalled{graph: g, prints: []string{"a", "b", "c", "d"}}
	many := func(us float64) []float64 { return slices.Repeat([]float64{us}, usedSamples) }
	durations := cache.Durations{"a": many(10), "b": many(20)[1:], "c": many(30), "d": many(40), firstPrint("a"): many(90), firstPrint("d"): many(95)[1:],
		sharePrint("d"): {0.5, 0.25, 0.75}, sharePrint("a"): {3}, sharePrint("b"): {0.5}}
	p := r.knownOf(durations, 5)
	require.Equal(t, map[string]float64{"often": 10, "shared": 40}, p.Nodes)
	require.Equal(t, map[string]float64{"often": 1, "shared": 0.5}, p.Shares, "no share is more than all")
	p = r.knownOf(durations, 1)
	require.Equal(t, map[string]float64{"often": 90, "shared": 40}, p.Nodes)
	delete(durations, sharePrint("a"))
	require.Equal(t, map[string]float64{"shared": 0.5}, r.knownOf(durations, 5).Shares)
}

// The figures that are kept with a choice are of the machine that plans are made for, or are refused.
func TestFittedFiguresAreOfTheSameMachine(t *testing.T) {
	kept := func(m *planner.Machine) *cache.Choice {
		var text bytes.Buffer
		require.NoError(t, m.Encode(&text))
		return &cache.Choice{Machine: text.Bytes()}
	}
	fitted := planner.H200()
	fitted.GapUS *= 2
	other := *fitted
	other.Name = "another"
	for _, c := range []struct {
		machine *planner.Machine
		kept    *planner.Machine
		fine    bool
	}{{planner.H200(), fitted, true}, {planner.H200(), &other, false}, {nil, fitted, false}, {cores(2), cores(2), true}, {cores(2), cores(4), false}} {
		m, err := (&Recalled{machine: c.machine}).fitted(kept(c.kept))
		if !c.fine {
			require.EqualError(t, err, fmt.Sprintf("it was predicted with the figures of machine %q", c.kept.Name))
			require.Nil(t, m)
			continue
		}
		require.NoError(t, err)
		require.Equal(t, c.kept.GapUS, m.GapUS)
	}
	m, err := (&Recalled{machine: fitted}).fitted(&cache.Choice{})
	require.NoError(t, err)
	require.Nil(t, m)
}

// Durations that were off are corrected by at most a factor of two, and left alone where they are nearly right. Where the user gave some, a correction
// as large as that is not believed.
func TestCorrectionsAreBounded(t *testing.T) {
	b := dag.New("corrected")
	b.Task("measured")
	measured, err := b.Graph()
	require.NoError(t, err)
	b = dag.New("declared")
	b.Task("measured")
	b.Repeat("loop", dag.Loop{Times: 2}, func() { b.Cost(b.Task("declared"), 5) })
	declared, err := b.Graph()
	require.NoError(t, err)
	for _, c := range []struct {
		factor  float64
		want    []float64
		doubted bool
	}{
		{1, []float64{10, 20}, false}, {1.04, []float64{10, 20}, false}, {0.96, []float64{10, 20}, false}, {1.5, []float64{15, 30}, false},
		{0.75, []float64{7.5, 15}, false}, {1.99, []float64{19.9, 39.8}, false}, {2, []float64{20, 40}, true}, {5, []float64{20, 40}, true},
		{0.5, []float64{5, 10}, true}, {0.1, []float64{5, 10}, true},
	} {
		r := &Recalled{graph: measured, folder: cache.Open(t.TempDir()), device: "device"}
		print := cache.Fingerprint([]byte("a"))
		samples := cache.Durations{print: {10, 20}}
		require.NoError(t, r.folder.KeepDurations(t.Context(), r.device, samples, true))
		require.NoError(t, r.scale(t.Context(), samples, c.factor))
		kept, err := r.folder.Durations(r.device)
		require.NoError(t, err)
		require.InDeltaSlice(t, c.want, kept[print], 1e-9, "%g", c.factor)
		require.Equal(t, []float64{10, 20}, samples[print], "what was given stays as it is")
		require.False(t, r.doubts(c.factor, nil), "nothing was given")
		require.Equal(t, c.doubted, r.doubts(c.factor, &planner.Profile{Nodes: map[string]float64{"measured": 3}}), "%g", c.factor)
		require.False(t, r.doubts(c.factor, &planner.Profile{Nodes: map[string]float64{"another": 3}}))
		r.graph = declared
		require.Equal(t, c.doubted, r.doubts(c.factor, nil), "%g", c.factor)
	}
}

// How many passes loops made is known by what they do. What cannot be read is no error, but a warning.
func TestPassesAreKnown(t *testing.T) {
	b := dag.New("passes")
	b.Use(kernels.Library())
	x, y := b.Device("x", dag.F32, 4), b.Device("y", dag.F32, 4)
	for _, name := range []string{"two", "ten"} {
		b.Repeat(name, dag.Loop{While: "x(0..1) < 3", Most: map[string]int64{"two": 2, "ten": 10}[name]}, func() {
			b.Kernel("double "+name, "scale", dag.Args{4, 2, b.Whole(x)})
			b.Repeat("in "+name, dag.Loop{Times: 2}, func() { b.Kernel("halve "+name, "scale", dag.Args{4, 0.5, b.Whole(y)}) })
		})
	}
	g, err := b.Graph()
	require.NoError(t, err)
	dir := t.TempDir()
	folder := cache.Open(dir)
	known, warnings := KnownPasses(g, folder)
	require.Nil(t, known)
	require.Empty(t, warnings)
	keys := passKeys(g)
	require.Len(t, keys, 2, "of the others it is known")
	require.NoError(t, folder.KeepPasses(t.Context(), keys["ten"], &cache.Passes{Pipeline: "passes", Node: "ten", Runs: 2, Passes: 12, Most: 7}))
	known, warnings = KnownPasses(g, folder)
	require.Empty(t, warnings)
	require.Equal(t, map[string]int64{"ten": 6}, known.Passes)
	require.NoError(t, filepath.WalkDir(dir, func(path string, entry os.DirEntry, err error) error {
		if err == nil && entry.Type().IsRegular() {
			err = os.WriteFile(path, []byte("spoilt"), 0o600)
		}
		return err
	}))
	known, warnings = KnownPasses(g, folder)
	require.Nil(t, known)
	require.Len(t, warnings, 1)
	known, warnings = KnownPasses(g, nil)
	require.Nil(t, known)
	require.Empty(t, warnings)
}

// remembering is a graph of two chains of measured nodes and a node with a declared cost, on the CPU device, with a cache and its folder.
func remembering(t *testing.T) (g *dag.Graph, cpu *host.Platform, folder *cache.Folder, dir string) {
	t.Helper()
	b := dag.New("remembering")
	b.Use(kernels.Library())
	for k := range 2 {
		n := 64 + int64(k)
		x, z := b.Device(fmt.Sprintf("x%d", k), dag.F32, n), b.Device(fmt.Sprintf("z%d", k), dag.F32, n)
		b.Kernel(fmt.Sprintf("first%d", k), "square", dag.Args{n, b.Whole(x), b.Whole(z)})
		b.Kernel(fmt.Sprintf("second%d", k), "scale", dag.Args{n, 2, b.Whole(z)})
	}
	y := b.Device("y", dag.F32, 70)
	b.Cost(b.Kernel("declared", "square", dag.Args{70, b.Whole(y), b.Whole(y)}), 5)
	g, err := b.Graph()
	require.NoError(t, err)
	cpu, err = host.Open(host.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, cpu.Close()) })
	dir = t.TempDir()
	return g, cpu, cache.Open(dir), dir
}

// Of a choice in the cache only what is proved and was asked for is taken. If anything is not, the whole choice is ignored, and a warning says why.
func TestChoicesThatAreIgnored(t *testing.T) {
	g, cpu, folder, _ := remembering(t)
	planned := func(change func(o *planner.Options)) []byte {
		o := planner.Options{Machine: measure.MachineOf(cpu), Strategy: "list", Streams: 2, KeepAll: true, SingleUseEvents: true}
		if change != nil {
			change(&o)
		}
		plan, err := planner.New(t.Context(), g, o)
		require.NoError(t, err)
		var text bytes.Buffer
		require.NoError(t, plan.EncodeJSON(&text, g))
		return text.Bytes()
	}
	way := func(graph bool, threads int, plan []byte) cache.Way {
		return cache.Way{Graph: graph, Threads: threads, EachUS: 100, SpreadUS: 3, BuildUS: 7, Plan: plan}
	}
	text := func(change func(m *planner.Machine)) []byte {
		m := *measure.MachineOf(cpu)
		change(&m)
		var text bytes.Buffer
		require.NoError(t, m.Encode(&text))
		return text.Bytes()
	}
	serial, err := planner.New(t.Context(), g, planner.Options{Strategy: "serial", KeepAll: true})
	require.NoError(t, err)
	needs := engine.DeviceBytes(g, serial, engine.Arena)[0]
	one := planned(func(o *planner.Options) { o.Strategy, o.Streams = "serial", 0 })
	good, forgetful := planned(nil), planned(func(o *planner.Options) { o.KeepAll = false })
	both := []engine.Mode{engine.Captured, engine.Streams}
	for _, c := range []struct {
		what    string
		options Options
		choice  cache.Choice
		ways    int
		warning string
	}{
		{"both modes", Options{}, cache.Choice{Ways: []cache.Way{way(true, 1, good), way(false, 1, good)}}, 2, ""},
		{"no plan", Options{}, cache.Choice{Ways: []cache.Way{way(false, 1, []byte("{}"))}}, 0, "ignored"},
		{"two threads", Options{}, cache.Choice{Ways: []cache.Way{way(false, 2, good)}}, 1, ""},
		{"as many threads as were asked for", Options{Threads: 2}, cache.Choice{Ways: []cache.Way{way(false, 2, good)}}, 1, ""},
		{"other threads", Options{Threads: 3}, cache.Choice{Ways: []cache.Way{way(false, 2, good)}}, 0, "another way than was asked for"},
		{"a graph is launched by one thread, whatever was asked for", Options{Threads: 3}, cache.Choice{Ways: []cache.Way{way(true, 1, good)}}, 1, ""},
		{"a mode that was not asked for", Options{Modes: both[:1]}, cache.Choice{Ways: []cache.Way{way(false, 1, good)}}, 0, "another way than was asked for"},
		{"one good way does not save another", Options{Modes: both[:1]}, cache.Choice{Ways: []cache.Way{way(true, 1, good), way(false, 1, good)}}, 1,
			"another way"},
		{"over the memory cap", Options{Plan: planner.Options{MemoryCap: 16}}, cache.Choice{Ways: []cache.Way{way(false, 1, good)}}, 0,
			"more than the memory cap"},
		{"just the memory cap", Options{Plan: planner.Options{MemoryCap: needs}}, cache.Choice{Ways: []cache.Way{way(false, 1, one)}}, 1, ""},
		{"a byte more than the memory cap", Options{Plan: planner.Options{MemoryCap: needs - 1}}, cache.Choice{Ways: []cache.Way{way(false, 1, one)}},
			0, "the memory cap"},
		{"below the memory cap", Options{Plan: planner.Options{MemoryCap: 1 << 20}}, cache.Choice{Ways: []cache.Way{way(false, 1, good)}}, 1, ""},
		{"bytes are not kept", Options{Plan: planner.Options{Keep: []dag.BufferID{3}}}, cache.Choice{Ways: []cache.Way{way(false, 1, forgetful)}}, 0,
			`"z1" does not keep its bytes`},
		{"no bytes are kept", Options{Plan: planner.Options{KeepAll: true}}, cache.Choice{Ways: []cache.Way{way(false, 1, forgetful)}}, 0,
			`"z0" does not keep its bytes`},
		{"bytes need not be kept", Options{}, cache.Choice{Ways: []cache.Way{way(false, 1, forgetful)}}, 1, ""},
		{"bytes are kept", Options{Plan: planner.Options{KeepAll: true}}, cache.Choice{Ways: []cache.Way{way(false, 1, good)}}, 1, ""},
		{"fitted figures", Options{}, cache.Choice{Machine: text(func(m *planner.Machine) { m.LaunchUS = 40 }), Ways: []cache.Way{way(false, 1, good)}}, 1, ""},
		{"another machine", Options{}, cache.Choice{Machine: text(func(m *planner.Machine) { m.Name = "theirs" }), Ways: []cache.Way{way(false, 1,
			good)}}, 0, `figures of machine "theirs"`},
		{"other cores", Options{}, cache.Choice{Machine: text(func(m *planner.Machine) { m.Cores++ }), Ways: []cache.Way{way(false, 1, good)}}, 0,
			"figures of machine"},
		{"no machine", Options{}, cache.Choice{Machine: []byte("{}"), Ways: []cache.Way{way(false, 1, good)}}, 0, "ignored"},
		{"figures that no device has", Options{}, cache.Choice{Machine: text(func(m *planner.Machine) { m.LaunchUS = 1e9 }),
			Ways: []cache.Way{way(false, 1, good)}}, 0, "no device takes more"},
	} {
		r := Recall(g, cpu, folder, c.options, engine.Arena)
		c.choice.At, c.choice.Tried, c.choice.Drifted = time.Now().UTC(), 9, 1
		require.NoError(t, folder.KeepChoice(t.Context(), r.key, &c.choice), c.what)
		r = Recall(g, cpu, folder, c.options, engine.Arena)
		require.Len(t, r.Ways, c.ways, c.what)
		if c.warning != "" {
			require.Len(t, r.Warnings, 1, c.what)
			require.Contains(t, r.Warnings[0], "a plan in the cache is ignored: ", c.what)
			require.Contains(t, r.Warnings[0], c.warning, c.what)
			require.Zero(t, r.Tried, c.what)
			require.NoError(t, folder.ForgetChoice(r.key))
			continue
		}
		require.Empty(t, r.Warnings, c.what)
		require.Equal(t, []int{9, 1}, []int{r.Tried, r.drifts}, c.what)
		require.True(t, r.at.Equal(c.choice.At), c.what)
		require.Equal(t, len(c.choice.Machine) > 0, r.Machine != nil, c.what)
		for k, w := range r.Ways {
			of := &c.choice.Ways[k]
			require.Equal(t, of.Graph, w.Mode == engine.Captured, c.what)
			require.Equal(t, engine.Series{Count: 1, Min: 100, Median: 100, Mean: 100, Spread: 3}, w.Each, c.what)
			require.Equal(t, 7.0, w.BuildUS)
			require.Equal(t, of.Threads, w.Threads)
			predicted, err := predictEach(g, w.way(), cmp.Or(r.Machine, measure.MachineOf(cpu)), nil)
			require.NoError(t, err)
			require.Equal(t, predicted, w.Predicted, "%s: by the figures that are kept with it", c.what)
		}
		require.NoError(t, folder.ForgetChoice(r.key))
	}
}

// A plan whose events are used again can be submitted by one thread only.
func TestSeveralThreadsNeedEventsOfTheirOwn(t *testing.T) {
	b := dag.New("crossing")
	b.Use(kernels.Library())
	var last [2]dag.NodeID
	for step := range 6 {
		now := [2]dag.NodeID{b.Kernel(fmt.Sprintf("a%d", step), "noop", nil), b.Kernel(fmt.Sprintf("b%d", step), "noop", nil)}
		if step > 0 {
			b.After(now[0], last[0], last[1])
			b.After(now[1], last[0], last[1])
		}
		last = now
	}
	g, err := b.Graph()
	require.NoError(t, err)
	cpu, err := host.Open(host.Options{})
	require.NoError(t, err)
	defer cpu.Close()
	for _, single := range []bool{false, true} {
		plan, err := planner.New(t.Context(), g, planner.Options{Strategy: "roundrobin", Streams: 2, SingleUseEvents: single})
		require.NoError(t, err)
		var text bytes.Buffer
		require.NoError(t, plan.EncodeJSON(&text, g))
		for threads := 1; threads <= 2; threads++ {
			r := Recall(g, cpu, cache.Open(t.TempDir()), Options{}, engine.Arena)
			err := r.choose(&cache.Choice{Ways: []cache.Way{{Threads: threads, Plan: text.Bytes()}}}, Options{}.orDefault(cpu))
			require.Equal(t, threads == 1 || single, err == nil, "%d threads: %v", threads, err)
		}
	}
}

// A cache that cannot be used is none: nothing is recalled and nothing is kept, and that is no error.
func TestNothingIsRecalledWithoutACache(t *testing.T) {
	g, cpu, folder, dir := remembering(t)
	for _, r := range []*Recalled{nil, Recall(g, cpu, nil, Options{}, engine.Arena), Recall(g, nil, folder, Options{}, engine.Arena),
		Recall(&dag.Graph{}, cpu, folder, Options{}, engine.Arena)} {
		w := &Way{Plan: &planner.Plan{}, Each: engine.Series{Median: 1}}
		require.NoError(t, r.Keep(t.Context(), &Learned{Samples: make([][]float64, 99)}, false))
		require.NoError(t, r.Correct(t.Context(), w, 100, Options{}))
		require.NoError(t, r.CorrectBodies(t.Context(), w, 100, nil, Options{}))
		runs, again, err := r.Confirm(t.Context(), w, 1e6, 100)
		require.NoError(t, err)
		require.Zero(t, runs)
		require.False(t, again)
		require.True(t, r == nil || r.Known == nil && r.Ways == nil && r.Warnings == nil)
	}
	left, err := filepath.Glob(filepath.Join(dir, "*", "*"))
	require.NoError(t, err)
	require.Empty(t, left)
}

// What a run measured is what the next one knows: medians of at least three samples, of nodes that declare no cost.
func TestWhatIsMeasuredIsKnownLater(t *testing.T) {
	g, cpu, folder, dir := remembering(t)
	recall := func(replays int) *Recalled {
		r := Recall(g, cpu, folder, Options{Replays: replays}, engine.Arena)
		require.Empty(t, r.Warnings)
		return r
	}
	require.Nil(t, recall(5).Known)
	require.NoError(t, recall(5).Keep(t.Context(), &Learned{
		Samples: [][]float64{{10, 30, 20}, {7, 8}, nil, {5, 5, 5}, {9, 9, 9}},
		Shares:  [][]float64{{0.5, 0.25, 0.5}, {0.5}, nil, {3}, nil},
		First:   []float64{100, 0, 300, 400, 500},
	}, false))
	known := recall(5).Known
	require.Equal(t, map[string]float64{"first0": 20, "second1": 5}, known.Nodes, "two samples are too few, and a cost is declared")
	require.Equal(t, map[string]float64{"first0": 10, "second1": 0}, known.Spreads)
	require.Equal(t, map[string]float64{"first0": 0.5, "second1": 1}, known.Shares, "a node takes no more than all")
	require.Equal(t, cpu.Devices()[0].Name, known.Machine)
	require.Equal(t, known, recall(1).Known, "one first replay is too little to go by")
	for range 2 {
		require.NoError(t, recall(5).Keep(t.Context(), &Learned{First: []float64{110, 0, 300, 400, 500}}, false))
	}
	require.Equal(t, map[string]float64{"first0": 110, "first1": 300, "second1": 400}, recall(1).Known.Nodes, "a run of one replay is a process's first")
	require.Equal(t, known, recall(2).Known)
	require.NoError(t, recall(5).Keep(t.Context(), &Learned{Samples: [][]float64{{80, 80, 80}}}, false))
	require.Equal(t, 55.0, recall(5).Known.Nodes["first0"], "three samples of each")
	require.NoError(t, recall(5).Keep(t.Context(), &Learned{Samples: [][]float64{{80, 80, 80}}}, true))
	require.Equal(t, 80.0, recall(5).Known.Nodes["first0"], "the last alone")
	for _, l := range []*Learned{{Samples: make([][]float64, 6)}, {Shares: make([][]float64, 6)}, {First: make([]float64, 6)}} {
		require.ErrorContains(t, recall(5).Keep(t.Context(), l, false), "of 6 nodes, but the graph has 5")
	}
	require.NoError(t, recall(5).Keep(t.Context(), nil, false))
	files, err := filepath.Glob(filepath.Join(dir, "durations", "*", "*"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, name := range files {
		require.NoError(t, os.WriteFile(name, []byte("damaged"), 0o600))
	}
	r := Recall(g, cpu, folder, Options{}, engine.Arena)
	require.Len(t, r.Warnings, len(files), "one for each file")
	require.Nil(t, r.Known)
	require.NoError(t, r.Correct(t.Context(), &Way{Plan: &planner.Plan{}}, 100, Options{}), "the warning was enough")
}

// A warning is about one file, however many errors were joined, and is no longer than people read.
func TestWarningsAreApartAndShort(t *testing.T) {
	r := &Recalled{}
	r.warn(nil)
	require.Empty(t, r.Warnings)
	r.warn(errors.Join(errors.New("one"), errors.Join(errors.New("two"), errors.New(strings.Repeat("x", 5000)))))
	require.Len(t, r.Warnings, 3)
	require.Equal(t, []string{"one", "two"}, r.Warnings[:2])
	require.LessOrEqual(t, len(r.Warnings[2]), longestWarning+len("…"))
}

// The figures that replays corrected are kept where they differ from those that were planned with. Ones that were kept before stay, unless all is replaced.
func TestFittedFiguresAreKept(t *testing.T) {
	given, fitted, earlier := cores(2), cores(2), cores(2)
	fitted.LaunchUS, earlier.LaunchUS = 3, 5
	for _, c := range []struct {
		before, now *planner.Machine
		replace     bool
		want        *planner.Machine
	}{
		{nil, nil, false, nil}, {nil, given, false, nil}, {nil, fitted, false, fitted}, {nil, fitted, true, fitted},
		{earlier, nil, false, earlier}, {earlier, given, false, earlier}, {earlier, fitted, false, fitted},
		{earlier, nil, true, nil}, {earlier, given, true, nil}, {earlier, fitted, true, fitted},
	} {
		choice := &cache.Choice{}
		require.NoError(t, (&Recalled{machine: given, Machine: c.before}).keepFitted(choice, c.now, c.replace))
		if c.want == nil {
			require.Empty(t, choice.Machine, "%v", c)
			continue
		}
		kept, err := decodeMeasured(choice.Machine)
		require.NoError(t, err)
		require.Equal(t, c.want.LaunchUS, kept.LaunchUS, "%v", c)
	}
	broken := cores(2)
	broken.LaunchUS = -1
	require.Error(t, (&Recalled{machine: given}).keepFitted(&cache.Choice{}, broken, false))
}

// A run tells whether replays still take what they did when their plan was chosen, if it is long enough. Two in a row that tell another time end the choice.
func TestRunsConfirmAChoice(t *testing.T) {
	g, cpu, folder, _ := remembering(t)
	recall := func() *Recalled { return Recall(g, cpu, folder, Options{}, engine.Arena) }
	plan, err := planner.New(t.Context(), g, planner.Options{})
	require.NoError(t, err)
	choose := func(drifted int) *Recalled {
		require.NoError(t, recall().Keep(t.Context(), &Learned{Ways: []Way{{Plan: plan, Mode: engine.Streams, Threads: 1, Each: engine.Series{Count: 3,
			Median: 100}}}}, true))
		choice, err := folder.Choice(recall().key)
		require.NoError(t, err)
		choice.Drifted = drifted
		require.NoError(t, folder.KeepChoice(t.Context(), recall().key, choice))
		return recall()
	}
	for _, c := range []struct {
		before  int
		us      float64
		replays int
		runs    int
		again   bool
		after   int // -1: the choice is forgotten
		what    string
	}{
		{0, 100, 1000, 0, false, 0, "as then"},
		{0, 200, 1000, 1, false, 1, "another time"},
		{0, 200, 100, 1, false, 1, "just long enough"},
		{0, 200, 99, 0, false, 0, "too short to tell"},
		{1, 200, 1000, 2, true, -1, "another time again"},
		{1, 50, 1000, 2, true, -1, "another time again, if a shorter one"},
		{1, 100, 1000, 0, false, 0, "as then, after another time"},
		{1, 200, 99, 0, false, 1, "too short to change anything"},
		{1, math.NaN(), 1000, 0, false, 1, "no time"},
	} {
		r := choose(c.before)
		runs, again, err := r.Confirm(t.Context(), r.Best(1), c.us, c.replays)
		require.NoError(t, err, c.what)
		require.Equal(t, c.runs, runs, c.what)
		require.Equal(t, c.again, again, c.what)
		choice, err := folder.Choice(r.key)
		require.NoError(t, err)
		if c.after < 0 {
			require.Nil(t, choice, c.what)
		} else {
			require.Equal(t, c.after, choice.Drifted, c.what)
		}
	}
	r := choose(0)
	w := r.Best(1)
	choose(0)
	runs, again, err := r.Confirm(t.Context(), w, 200, 1000)
	require.NoError(t, err)
	require.Equal(t, []any{1, false}, []any{runs, again})
	require.Zero(t, recall().drifts, "another process has chosen since")
	require.NoError(t, folder.ForgetChoice(r.key))
	_, _, err = r.Confirm(t.Context(), w, 200, 1000)
	require.NoError(t, err)
	require.Empty(t, recall().Ways, "another process has forgotten it since")
	var none context.Context
	_, _, err = r.Confirm(none, w, 200, 1000)
	require.ErrorIs(t, err, engine.ErrNoContext)
}

// A correction of more than twice or less than half is doubted where the user gave durations, in the pipeline, in the body of a loop or in a profile.
func TestLargeCorrectionsAreDoubtedWhereDurationsWereGiven(t *testing.T) {
	graph := func(inner bool, declared bool) *dag.Graph {
		b := dag.New("given")
		b.Use(kernels.Library())
		node := func() {
			k := b.Kernel("k", "spin", dag.Args{1.0})
			if declared {
				b.Cost(k, 5)
			}
		}
		if inner {
			b.Repeat("loop", dag.Loop{Times: 3}, node)
		} else {
			node()
		}
		g, err := b.Graph()
		require.NoError(t, err)
		return g
	}
	of := func(name string) *planner.Profile { return &planner.Profile{Nodes: map[string]float64{name: 5}} }
	for _, c := range []struct {
		g       *dag.Graph
		profile *planner.Profile
		given   bool
	}{
		{graph(false, false), nil, false}, {graph(false, false), of("other"), false}, {graph(false, false), of("k"), true},
		{graph(false, true), nil, true}, {graph(false, true), of("other"), true},
		{graph(true, false), nil, false}, {graph(true, false), of("k"), true}, {graph(true, true), nil, true},
	} {
		r := &Recalled{graph: c.g}
		for factor, large := range map[float64]bool{0: true, 0.5: true, 0.51: false, 1: false, 1.99: false, 2: true, 50: true} {
			require.Equal(t, large && c.given, r.doubts(factor, c.profile), "%v times", factor)
		}
	}
}

// Durations are scaled by at most 2, and left alone where that changes less than a twentieth.
func TestDurationsInTheCacheAreScaled(t *testing.T) {
	for factor, want := range map[float64]float64{1: 100, 1.04: 100, 0.96: 100, 1.06: 106, 0.94: 94, 1.5: 150, 0.5: 50, 2: 200, 7: 200, 0.01: 50, 0: 50} {
		folder := cache.Open(t.TempDir())
		print := cache.Fingerprint([]byte("work"))
		durations := cache.Durations{print: {100, 100, 100}}
		require.NoError(t, folder.KeepDurations(t.Context(), "device", durations, true))
		require.NoError(t, (&Recalled{folder: folder, device: "device"}).scale(t.Context(), durations, factor))
		require.Equal(t, 100.0, durations[print][0], "what was read is left alone")
		kept, err := folder.Durations("device")
		require.NoError(t, err)
		require.InDeltaSlice(t, []float64{want, want, want}, kept[print], 1e-6, "%v times", factor)
	}
}

// Passes are kept of loops that end by a condition, by what they do; others make as many as they say.
func TestPassesOfLoopsAreKept(t *testing.T) {
	folder := cache.Open(t.TempDir())
	b := dag.New("loops")
	b.Use(kernels.Library())
	x := b.Device("x", dag.F64, 1)
	half := func(name string) func() { return func() { b.Kernel(name, "scale", dag.Args{1, 0.5, b.Whole(x)}) } }
	b.Memset("start", b.Whole(x), 1000)
	b.Repeat("outer", dag.Loop{Times: 3}, func() {
		b.Memset("restart", b.Whole(x), 1000)
		b.Repeat("inner", dag.Loop{Until: "x < 1", Most: 500}, half("half"))
	})
	b.Repeat("last", dag.Loop{Until: "x < 0.1", Most: 500}, half("quarter"))
	g, err := b.Graph()
	require.NoError(t, err)
	known := func() map[string]int64 {
		profile, warnings := KnownPasses(g, folder)
		require.Empty(t, warnings)
		if profile == nil {
			return nil
		}
		return profile.Passes
	}
	require.Nil(t, known())
	require.NoError(t, KeepPasses(t.Context(), g, folder, nil))
	require.NoError(t, KeepPasses(t.Context(), g, folder, []spans.Loop{{Node: "outer", Runs: 1, Passes: 3, Most: 3}, {Node: "last", Runs: 0},
		{Node: "unknown", Runs: 1, Passes: 5}}))
	require.Nil(t, known(), "one has no condition, one never ran, and one is not of this graph")
	require.NoError(t, KeepPasses(t.Context(), g, folder, []spans.Loop{{Node: "inner", Runs: 3, Passes: 30, Most: 10}}))
	require.Equal(t, map[string]int64{"inner": 10}, known())
	require.NoError(t, KeepPasses(t.Context(), g, folder, []spans.Loop{{Node: "inner", Runs: 3, Passes: 60, Most: 20}, {Node: "last", Runs: 1,
		Passes: 4, Most: 4}}))
	require.Equal(t, map[string]int64{"inner": 20, "last": 4}, known())
	for _, nothing := range []func() (*planner.Profile, []string){
		func() (*planner.Profile, []string) { return KnownPasses(g, nil) },
		func() (*planner.Profile, []string) { return KnownPasses(&dag.Graph{}, folder) },
	} {
		profile, warnings := nothing()
		require.Nil(t, profile)
		require.Empty(t, warnings)
	}
	require.NoError(t, KeepPasses(t.Context(), g, nil, []spans.Loop{{Node: "inner", Runs: 3}}))
}

// Ranks, queues and durations that a user gave decide which plan is best; a profile of passes alone says as much as none. What cannot be written has no key.
func TestKeysOfChoices(t *testing.T) {
	g, cpu, _, _ := remembering(t)
	key := func(ranks int32, queues int, device string, p *planner.Profile, m *planner.Machine) string {
		of := *g
		pipeline := *g.Pipeline
		of.Pipeline = &pipeline
		of.Ranks = ranks
		return choiceKey(&Recalled{graph: &of, device: device, prints: Fingerprints(g)}, Options{Plan: planner.Options{Profile: p, Machine: m}},
			engine.Arena, queues)
	}
	m := measure.MachineOf(cpu)
	nodes := func(us float64) *planner.Profile {
		return &planner.Profile{Nodes: map[string]float64{"first0": us}, Passes: map[string]int64{"loop": 3}}
	}
	plain := key(1, 8, "d", nil, m)
	require.NotEmpty(t, plain)
	require.Equal(t, plain, key(0, 8, "d", nil, m), "no ranks are one")
	require.Equal(t, plain, key(1, 8, "d", &planner.Profile{Passes: map[string]int64{"loop": 3}}, m))
	all := []string{plain, key(2, 8, "d", nil, m), key(3, 8, "d", nil, m), key(1, 9, "d", nil, m), key(1, 8, "e", nil, m), key(1, 8, "d", nodes(5),
		m), key(1, 8, "d", nodes(6), m), key(1, 8, "d", nil, nil)}
	slices.Sort(all)
	require.Len(t, slices.Compact(all), 8)
	given := nodes(5)
	require.Equal(t, key(1, 8, "d", &planner.Profile{Nodes: given.Nodes}, m), key(1, 8, "d", given, m), "runs find out how many passes loops make")
	require.Equal(t, nodes(5), given, "it is left alone")
	require.Empty(t, key(1, 8, "d", nodes(-1), m))
	broken := *m
	broken.LaunchUS = -1
	require.Empty(t, key(1, 8, "d", nil, &broken))
}

// A machine that was measured on a device is found on it again, if its figures can be.
func TestMachinesAreKeptByTheirFirstDevice(t *testing.T) {
	cpu, err := host.Open(host.Options{})
	require.NoError(t, err)
	defer cpu.Close()
	dir := t.TempDir()
	folder := cache.Open(dir)
	m := measure.MachineOf(cpu)
	m.LaunchUS = 7
	for _, nothing := range []error{KeepMachine(t.Context(), cpu, nil, m), KeepMachine(t.Context(), nil, folder, m), KeepMachine(t.Context(),
		withoutDevices{cpu}, folder, m)} {
		require.NoError(t, nothing)
	}
	kept, err := KeptMachine(cpu, folder)
	require.NoError(t, err)
	require.Nil(t, kept)
	require.NoError(t, KeepMachine(t.Context(), cpu, folder, m))
	kept, err = KeptMachine(cpu, folder)
	require.NoError(t, err)
	require.Equal(t, 7.0, kept.LaunchUS)
	kept, err = KeptMachine(timed{cpu}, folder)
	require.NoError(t, err)
	require.Nil(t, kept, "another device")
	kept, err = KeptMachine(withoutDevices{cpu}, folder)
	require.NoError(t, err)
	require.Nil(t, kept)
	var none context.Context
	require.ErrorIs(t, KeepMachine(none, cpu, folder, m), engine.ErrNoContext)
	m.LaunchUS = 1e9
	require.ErrorContains(t, KeepMachine(t.Context(), cpu, folder, m), "no device takes more")
	var text bytes.Buffer
	require.NoError(t, m.Encode(&text))
	require.NoError(t, folder.KeepMachine(t.Context(), machineKey(cpu), text.Bytes()))
	kept, err = KeptMachine(cpu, folder)
	require.ErrorContains(t, err, "the measurements kept for "+cpu.Devices()[0].Name+" are ignored")
	require.Nil(t, kept)
}

// withoutDevices is a platform that has none.
type withoutDevices struct{ *host.Platform }

func (withoutDevices) Devices() []cudart.Info { return nil }

// Durations of nodes in bodies are corrected so that replays are predicted right with the passes that loops made, by a factor of two at most. Those that the
// user gave stay, and so do those around the loop.
func TestDurationsInBodiesAreCorrected(t *testing.T) {
	cpu, err := host.Open(host.Options{})
	require.NoError(t, err)
	defer cpu.Close()
	graph := func(declared bool) *dag.Graph {
		b := dag.New("halving")
		b.Use(kernels.Library())
		x, y := b.Device("x", dag.F64, 1), b.Device("y", dag.F64, 1)
		b.Memset("start", b.Whole(x), 1000)
		b.Repeat("loop", dag.Loop{Until: "x < 1", Most: 500}, func() {
			b.Kernel("half", "scale", dag.Args{1, 0.5, b.Whole(x)})
			if k := b.Kernel("other", "scale", dag.Args{1, 2, b.Whole(y)}); declared {
				b.Cost(k, 140)
			}
		})
		g, err := b.Graph()
		require.NoError(t, err)
		return g
	}
	machine := measure.MachineOf(cpu)
	passes := []spans.Loop{{Node: "loop", Kind: "repeat", Runs: 1, Passes: 40}}
	profile := func(half, other float64) *planner.Profile {
		return &planner.Profile{Nodes: map[string]float64{"start": 1000, "half": half, "other": other}, Passes: map[string]int64{"loop": 40}}
	}
	for _, c := range []struct {
		what      string
		declared  bool
		given     *planner.Profile
		half, oth float64 // that replays took
		want      map[string]float64
	}{
		{"slower", false, nil, 600, 300, map[string]float64{"start": 1000, "half": 600, "other": 300}},
		{"faster", false, nil, 280, 140, map[string]float64{"start": 1000, "half": 280, "other": 140}},
		{"as predicted", false, nil, 400, 200, map[string]float64{"start": 1000, "half": 400, "other": 200}},
		{"close enough", false, nil, 410, 204, map[string]float64{"start": 1000, "half": 400, "other": 200}},
		{"much slower", false, nil, 4000, 2000, map[string]float64{"start": 1000, "half": 800, "other": 400}},
		{"much faster", false, nil, 40, 20, map[string]float64{"start": 1000, "half": 200, "other": 100}},
		{"beside a declared cost", true, nil, 600, 140, map[string]float64{"start": 1000, "half": 600}},
		{"much slower beside a declared cost", true, nil, 4000, 140, map[string]float64{"start": 1000, "half": 400}},
		{"beside one that the user gave", false, &planner.Profile{Nodes: map[string]float64{"other": 140}}, 600, 140, map[string]float64{"start": 1000,
			"half": 600, "other": 200}},
		{"much slower beside one that the user gave", false, &planner.Profile{Nodes: map[string]float64{"other": 140}}, 4000, 140,
			map[string]float64{"start": 1000, "half": 400, "other": 200}},
	} {
		g, folder := graph(c.declared), cache.Open(t.TempDir())
		o := Options{Plan: planner.Options{Machine: machine, Profile: c.given}}
		plan, err := planner.New(t.Context(), g, o.Plan)
		require.NoError(t, err)
		w := &Way{Plan: plan, Mode: engine.Streams, Threads: 1}
		r := Recall(g, cpu, folder, o, engine.Arena)
		inner := map[string][]float64{"half": {400, 400, 400}, "other": {200, 200, 200}}
		require.NoError(t, r.Keep(t.Context(), &Learned{Samples: [][]float64{{1000, 1000, 1000}, nil}, Inner: inner}, false))
		us, err := predictEach(g, w.way(), machine, profile(c.half, c.oth))
		require.NoError(t, err)
		for _, nothing := range []float64{0, -1, math.NaN()} {
			require.NoError(t, r.CorrectBodies(t.Context(), w, nothing, passes, o))
		}
		require.NoError(t, r.CorrectBodies(t.Context(), nil, us, passes, o))
		require.NoError(t, r.CorrectBodies(t.Context(), &Way{}, us, passes, o))
		require.NoError(t, r.CorrectBodies(t.Context(), w, us, passes, o), c.what)
		known := Recall(g, cpu, folder, o, engine.Arena).Known.Nodes
		require.Len(t, known, len(c.want), c.what)
		for name, want := range c.want {
			require.InEpsilon(t, want, known[name], 0.01, "%s: %s", c.what, name)
		}
	}
	g, cpu, folder, _ := remembering(t)
	r := Recall(g, cpu, folder, Options{}, engine.Arena)
	require.NoError(t, r.CorrectBodies(t.Context(), &Way{Plan: &planner.Plan{}}, 100, nil, Options{}), "there are no bodies")
}
