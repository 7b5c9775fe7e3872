// Tests of what learning keeps of what it has measured: of nodes alike, of ways, and of what earlier runs kept.

package learn

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/cudart/host"
	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/kernels"
	"github.com/dagrun/dagrun/planner"
	"github.com/dagrun/dagrun/runtime/cache"
	"github.com/dagrun/dagrun/runtime/internal/engine"
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
