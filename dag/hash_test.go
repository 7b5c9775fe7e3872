// Tests of hashes: every change of a graph changes its hash and is named by the difference.

package dag_test

import (
	"strings"
	"testing"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/dag/internal/fakes"
	"github.com/dagrun/dagrun/dag/outline"
	"github.com/stretchr/testify/require"
)

func TestDifferences(t *testing.T) {
	type parts struct {
		b             *dag.Builder
		x, y, h       dag.BufferID
		up, work, end dag.NodeID
	}
	declare := func(change func(p *parts)) *dag.Graph {
		b := dag.New("test")
		p := &parts{b: b, x: b.Device("x", dag.F32, 8), y: b.Device("y", dag.F32, 4, 2), h: b.Host("h", dag.F32, 8)}
		p.up = b.Copy("up", b.Whole(p.x), b.Whole(p.h))
		p.work = b.Task("work", b.In(p.x), b.Slice(p.y, 0, 2).Out())
		p.end = b.Task("end", b.In(p.y))
		b.After(p.end, p.up)
		if change != nil {
			change(p)
		}
		g, err := b.Graph()
		require.NoError(t, err)
		return g
	}
	base := declare(nil)
	require.True(t, strings.HasPrefix(base.Hash(), "sha256:"))
	require.Len(t, base.Hash(), len("sha256:")+64)
	require.Equal(t, base.Hash(), declare(nil).Hash())
	require.Empty(t, outline.Difference(base, declare(nil)))
	require.Empty(t, outline.DifferenceFrom(base, outline.Of(declare(nil))))
	require.Empty(t, outline.DifferenceFrom(base, &outline.Graph{}))

	seen := map[string]string{base.Hash(): "base"}
	for _, test := range []struct {
		want    string
		outline string // the difference that an outline shows
		change  func(p *parts)
	}{
		{`sync is explicit, it was auto`, "", func(p *parts) { p.b.Sync(dag.SyncExplicit) }},
		{`node "new" is new`, `node "new" is new`, func(p *parts) { p.b.Task("new") }},
		{`node "up" is gone`, `node "first" is new`, func(p *parts) {
			p.b.At(p.up).Name = "first"
			p.b.At(p.work).Name, p.b.At(p.end).Name = "first", "work"
			p.b.At(p.up).Name = "end"
		}},
		{`node "work" stands where "up" stood`, `node "up" waits for "work" (RAW x), it did not`, func(p *parts) {
			p.b.At(p.up).Name, p.b.At(p.work).Name = "work", "up"
		}},
		{`buffer "z" is new`, `buffer "z" is new`, func(p *parts) { p.b.BufferAt(p.y).Name = "z" }},
		{`buffer "z" is new`, ``, func(p *parts) { p.b.Host("z", dag.F32) }},
		{`buffer "y" is of type i32, it was of f32`, ``, func(p *parts) { p.b.BufferAt(p.y).DType = dag.I32 }},
		{`buffer "y" has shape [2 4], it had [4 2]`, `node "end" waits for "work" because of RAW y(0..1), it was RAW y(0..2)`, func(p *parts) { p.b.BufferAt(p.y).Shape = []int64{2, 4} }},
		{`buffer "y" has shape [8 2], it had [4 2]`, `buffer "y" has 64 bytes, it had 32`, func(p *parts) {
			p.b.BufferAt(p.y).Shape, p.b.BufferAt(p.y).Bytes = []int64{8, 2}, 64
		}},
		{`buffer "y" is on device 2, it was on 0`, `buffer "y" is on device 2, it was on 0`, func(p *parts) { p.b.OnDevice(p.y, 2) }},
		{`buffer "y" is in host memory, it was in device memory`, `buffer "y" is gone`, func(p *parts) { p.b.BufferAt(p.y).Place = dag.Host }},
		{`buffer "h" is pageable, it was not`, ``, func(p *parts) { p.b.Pageable(p.h) }},
		{`buffer "x" is scratch, it was not`, ``, func(p *parts) { p.b.BufferAt(p.x).Scratch = true }},
		{`buffer "x" has init, it had none`, ``, func(p *parts) { p.b.Init(p.x, dag.Init{}) }},
		{`buffer "x" has save, it had none`, ``, func(p *parts) { p.b.Save(p.x, "x.bin") }},
		{`buffer "x" has expect, it had none`, ``, func(p *parts) { p.b.Expect(p.x, dag.Expect{File: "y.npy"}) }},
		{`node "work" is a map, it was a task`, ``, func(p *parts) { p.b.At(p.work).Kind = dag.Map }},
		{`node "work" runs on device 1, it ran on 0`, ``, func(p *parts) { p.b.At(p.work).Device = 1 }},
		{`node "work" is bound to stream 4, it was bound to no stream`, ``, func(p *parts) { p.b.Stream(p.work, 4) }},
		{`node "work" has priority high, it had normal`, ``, func(p *parts) { p.b.Priority(p.work, dag.High) }},
		{`node "work" is allowed to use peers, it was not`, ``, func(p *parts) { p.b.At(p.work).Peer = true }},
		{`node "work" uses x(0..4) (in) where it used x (in)`, `node "work" waits for "up" because of RAW x(0..4), it was RAW x`, func(p *parts) {
			list, _ := dag.AccessesOf(&dag.DraftOf(p.b).Pipeline)
			(*list)[2].Hi = 16
		}},
		{`node "end" uses h (in), it did not`, ``, func(p *parts) {
			list, starts := dag.AccessesOf(&dag.DraftOf(p.b).Pipeline)
			*list = append(*list, p.b.In(p.h))
			(*starts)[3]++
		}},
		{`node "end" does not use y (in), it did`, `node "end" does not wait for "work" (RAW y(0..2)), it did`, func(p *parts) {
			list, starts := dag.AccessesOf(&dag.DraftOf(p.b).Pipeline)
			(*starts)[3]--
			*list = (*list)[:4]
		}},
		{`node "end" comes after "work", it did not`, ``, func(p *parts) { p.b.After(p.end, p.work) }},
		{`node "end" does not come after "up", it did`, `node "end" does not wait for "up" (after), it did`, func(p *parts) { p.b.At(p.end).After = nil }},
	} {
		other := declare(test.change)
		require.Equal(t, test.want, outline.Difference(other, base), test.want)
		require.NotEmpty(t, outline.Difference(base, other), "the other way round: %s", test.want)
		require.Equal(t, test.outline, outline.DifferenceFrom(other, outline.Of(base)), test.want)
		require.NotContains(t, seen, other.Hash(), test.want)
		seen[other.Hash()] = test.want
	}

	// Changes that a plan does not depend on.
	same := declare(func(p *parts) { dag.DraftOf(p.b).Name = "another name" })
	require.Equal(t, base.Hash(), same.Hash())
	require.Equal(t, base.WorkHash(), same.WorkHash())
	require.Empty(t, outline.Difference(same, base))
}

// Work is hashed separately from structure: a plan made for a kernel of 10 us is correct for one of 100,000 us, but probably slow.
func TestDifferencesOfWork(t *testing.T) {
	type parts struct {
		alpha, value any
		options      []dag.LaunchOption
		text         string
	}
	declare := func(change func(*dag.Builder, *parts), after ...func(*dag.Builder)) *dag.Graph {
		b := dag.New("test")
		b.Use(fakes.Kernels)
		p := &parts{alpha: 2.0, value: 1, text: "y = 2*x"}
		if change != nil {
			change(b, p)
		}
		x, y := b.Device("x", dag.F32, 8), b.Device("y", dag.F32, 8)
		b.Memset("clear", b.Whole(x), p.value)
		b.Kernel("work", "saxpy", dag.Args{8, p.alpha, b.Whole(x), b.Whole(y)}, p.options...)
		b.Map("double", p.text, nil)
		for _, f := range after {
			f(b)
		}
		g, err := b.Graph()
		require.NoError(t, err)
		return g
	}
	base := declare(nil)
	require.True(t, strings.HasPrefix(base.WorkHash(), "sha256:"))
	require.NotEqual(t, base.Hash(), base.WorkHash())
	require.Equal(t, base.WorkHash(), declare(nil).WorkHash())
	seen := map[string]string{base.WorkHash(): "base"}
	work := func(g *dag.Builder) *dag.Node { return g.At(1) }
	for _, test := range []struct {
		want   string
		change func(*dag.Builder, *parts)
		after  func(*dag.Builder)
	}{
		{`node "work" has alpha=3, it had alpha=2`, func(_ *dag.Builder, p *parts) { p.alpha = 3.0 }, nil},
		{`node "work" has grid=[5 1 1], it had grid=[1 1 1]`, func(_ *dag.Builder, p *parts) { p.options = []dag.LaunchOption{dag.Grid(5)} }, nil},
		{`node "work" has block=[64 1 1], it had block=[256 1 1]`, func(_ *dag.Builder, p *parts) { p.options = []dag.LaunchOption{dag.Block(64)} }, nil},
		{`node "work" has shared=16, it had no shared`, func(_ *dag.Builder, p *parts) { p.options = []dag.LaunchOption{dag.Shared(16)} }, nil},
		{`node "double" has formula=y = 3*x, it had formula=y = 2*x`, func(_ *dag.Builder, p *parts) { p.text = "y = 3*x" }, nil},
		{`module "mine" is new`, func(b *dag.Builder, _ *parts) { b.Module("mine", "a.cu", fakes.UserKernels) }, nil},
		{`node "work" has cost=12 us, it had no cost`, nil, func(b *dag.Builder) { b.Cost(1, 12) }},
		{`node "work" has cost=0 us, it had no cost`, nil, func(b *dag.Builder) { b.Cost(1, 0) }},
		{`node "work" has kernel=scale, it had kernel=saxpy`, nil, func(b *dag.Builder) { work(b).Launch.Name = "scale" }},
		{`node "work" has n=7, it had n=8`, nil, func(b *dag.Builder) { work(b).Launch.Args[0].Bits = 7 }},
		{`node "work" has no alpha, it had alpha=2`, nil, func(b *dag.Builder) { work(b).Launch.Args = work(b).Launch.Args[:1] }},
	} {
		var after []func(*dag.Builder)
		if test.after != nil {
			after = append(after, test.after)
		}
		other := declare(test.change, after...)
		require.Equal(t, base.Hash(), other.Hash(), test.want)
		require.Equal(t, test.want, outline.Difference(other, base))
		require.NotEmpty(t, outline.Difference(base, other), "the other way round: %s", test.want)
		require.Equal(t, test.want, outline.WorkDifference(other, outline.WorkOf(base)))
		require.NotContains(t, seen, other.WorkHash(), test.want)
		seen[other.WorkHash()] = test.want
	}
	for _, test := range []struct {
		want   string
		change func(*dag.Work)
	}{
		{`node "work" has estimated bytes=7, it had no estimated bytes`, func(w *dag.Work) { w.Bytes = 7 }},
		{`node "work" has estimated operations=7, it had estimated operations=8`, func(w *dag.Work) { w.Flops = 7 }},
		{`node "work" has estimated blocks=7, it had estimated blocks=1`, func(w *dag.Work) { w.Blocks = 7 }},
		{`node "work" has estimated threads=7, it had estimated threads=256`, func(w *dag.Work) { w.Threads = 7 }},
		{`node "work" has estimated shared=7, it had no estimated shared`, func(w *dag.Work) { w.Shared = 7 }},
		{`node "work" has estimated us=7, it had no estimated us`, func(w *dag.Work) { w.US = 7 }},
	} {
		other := declare(nil, func(b *dag.Builder) { test.change(&work(b).Work) })
		require.Equal(t, test.want, outline.Difference(other, base))
		require.NotContains(t, seen, other.WorkHash(), test.want)
		seen[other.WorkHash()] = test.want
	}

	// Modules that are missing or come from another file, and nodes whose costs are known in only one of the graphs.
	withModule := func(path string) *dag.Graph {
		return declare(func(b *dag.Builder, _ *parts) { b.Module("mine", path, fakes.UserKernels) })
	}
	require.Equal(t, `module "mine" is gone`, outline.Difference(base, withModule("a.cu")))
	require.Equal(t, `module "mine" is b.cu, it was a.cu`, outline.Difference(withModule("b.cu"), withModule("a.cu")))
	require.Equal(t, `node "work" has no cost, it had cost=12 us`, outline.Difference(base, declare(nil, func(b *dag.Builder) { b.Cost(1, 12) })))
	require.Empty(t, outline.WorkDifference(base, &outline.Work{}))

	same := declare(func(_ *dag.Builder, p *parts) { p.value = 3 })
	require.Equal(t, base.WorkHash(), same.WorkHash(), "a memset takes as long whatever it writes")
	require.Empty(t, outline.Difference(same, base))
}

// Where a pointer points in its slice is part of the work, and of nothing that orders nodes.
func TestDifferencesOfPointers(t *testing.T) {
	declare := func(from, to int64) *dag.Graph {
		b := dag.New("test")
		b.Module("mine", "mine.ptx", fakes.UserKernels)
		d := b.Device("d", dag.F32, 8)
		b.Kernel("work", "mine.blur", dag.Args{4, b.Part(d, 0, 2).In().At(from), b.Part(d, 1, 2).Out().At(to)}, dag.Grid(1))
		g, err := b.Graph()
		require.NoError(t, err)
		return g
	}
	from, to := declare(0, 0), declare(3, 0)
	require.Equal(t, from.Hash(), to.Hash())
	require.NotEqual(t, from.WorkHash(), to.WorkHash())
	require.NotEqual(t, declare(0, 3).WorkHash(), to.WorkHash())
	require.Equal(t, `node "work" has from={at: 3}, it had no from`, outline.Difference(to, from))
}

// Launches that differ in what their arguments are have other work, and communications that differ in what they do have too.
func TestHashesOfLaunchesAndCommunications(t *testing.T) {
	declare := func(change func(l *dag.Launch, c *dag.Communication, e *dag.Communication)) string {
		b := dag.New("test")
		b.Ranks(0, 4)
		b.Module("m", "m.cu", moduleOf(sceneParams(dag.KernelParam{Texture: true, Size: 8}, dag.KernelParam{Size: 4, DType: dag.I32})...))
		d, e := b.Device("d", dag.F32, 8), b.Device("e", dag.F32, 8)
		kernel := b.Kernel("k", "m.k", dag.Args{dag.Values{dag.Values{1, 2, 3}, 4, nil, dag.Values{dag.Values{5, 6, 7}, nil}, 8}, b.Whole(d).Through(dag.Texture{}), 9}, dag.Grid(1), dag.Block(1))
		sum := b.Communicate("sum", dag.Communication{Verb: dag.AllReduce, Reduction: dag.Sum, From: b.Slice(d, 0, 4), To: b.Slice(d, 0, 4), More: []dag.Pair{{From: b.Slice(e, 0, 2), To: b.Slice(e, 2, 4)}}})
		swap := b.Communicate("swap", dag.Communication{Verb: dag.Exchange, Transfers: []dag.Transfer{{Rank: 1, Range: b.Slice(d, 4, 8)}, {Rank: 2, Receive: true, Range: b.Slice(e, 0, 4)}}})
		if change != nil {
			change(b.At(kernel).Launch, b.At(sum).Communication, b.At(swap).Communication)
		}
		g, err := b.Graph()
		require.NoError(t, err)
		return g.WorkHash()
	}
	seen := map[string]int{declare(nil): -1}
	for k, change := range []func(l *dag.Launch, c *dag.Communication, e *dag.Communication){
		func(l *dag.Launch, _, _ *dag.Communication) { l.Args[1].Texture.Width = 4 },
		func(l *dag.Launch, _, _ *dag.Communication) { l.Args[0].Struct = l.Args[0].Struct[1:] },
		func(l *dag.Launch, _, _ *dag.Communication) { l.Args[2].Bits = 7 },
		func(l *dag.Launch, _, _ *dag.Communication) { l.Cooperative = true },
		func(_ *dag.Launch, c, _ *dag.Communication) { c.Reduction = dag.Max },
		func(_ *dag.Launch, c, _ *dag.Communication) { c.Root = 1 },
		func(_ *dag.Launch, c, _ *dag.Communication) { c.Among = dag.Among{Count: 2, Step: 1} },
		func(_ *dag.Launch, c, _ *dag.Communication) { c.Among = dag.Among{Count: 2, Step: 2} },
		func(_ *dag.Launch, c, _ *dag.Communication) { c.Among = dag.Among{Count: 1, Step: 2} },
		func(_ *dag.Launch, c, _ *dag.Communication) { c.More = nil },
		func(_ *dag.Launch, c, _ *dag.Communication) { c.More[0].From.Lo = 4; c.More[0].To.Hi = 12 },
		func(_ *dag.Launch, c, _ *dag.Communication) { c.More[0].From.Hi = 4; c.More[0].To.Hi = 12 },
		func(_ *dag.Launch, c, _ *dag.Communication) { c.More[0].From.Hi = 4; c.More[0].To.Lo = 12 },
		func(_ *dag.Launch, c, _ *dag.Communication) {
			c.More[0].From = dag.Range{Buffer: 0, Lo: 16, Hi: 24}
		},
		func(_ *dag.Launch, c, _ *dag.Communication) {
			c.More[0].To = dag.Range{Buffer: 0, Lo: 24, Hi: 32}
		},
		func(_ *dag.Launch, _, e *dag.Communication) { e.Transfers[0].Rank = 3 },
		func(_ *dag.Launch, _, e *dag.Communication) { e.Transfers[0].Receive = true },
		func(_ *dag.Launch, _, e *dag.Communication) { e.Transfers[1].Range.Lo = 4 },
		func(_ *dag.Launch, _, e *dag.Communication) { e.Transfers[1].Range.Hi = 12 },
		func(_ *dag.Launch, _, e *dag.Communication) { e.Transfers[0].Range.Buffer = 1 },
	} {
		hash := declare(change)
		require.NotContains(t, seen, hash, "change %d", k)
		seen[hash] = k
	}
}

// Plans are kept with the hashes of their graphs, so that these stay what they are from one release to the next.
func TestHashesStayWhatTheyAre(t *testing.T) {
	b := dag.New("test")
	b.Ranks(0, 4)
	b.Use(fakes.Kernels)
	b.Module("m", "m.cu", tables{nonsenseLibrary{&nonsense{params: sceneParams(dag.KernelParam{Texture: true, Size: 8}, dag.KernelParam{Size: 4, DType: dag.I32}, dag.KernelParam{Size: 8})}}, []dag.Symbol{{Name: "taps"}}})
	d, e, h := b.Device("d", dag.F32, 8), b.Device("e", dag.F32, 8, 8), b.Host("h", dag.F32, 8)
	taps := b.Buffer(dag.Buffer{Name: "t", Place: dag.Device, DType: dag.F32, Shape: []int64{4}, Symbol: "m.taps"})
	b.OnDevice(b.Device("far", dag.F64, 3), 1)
	b.Pageable(h)
	b.Init(d, dag.Init{})
	b.Save(h, "h.npy")
	b.Expect(e, dag.Expect{Kind: dag.ExpectValue})
	up := b.Copy("up", b.Whole(d), b.Whole(h))
	k := b.Kernel("k", "m.k", dag.Args{dag.Values{dag.Values{1, 2, 3}, 4, nil, dag.Values{dag.Values{5, 6, 7}, nil}, 8}, b.Whole(d).Through(dag.Texture{}), 9, b.Tile(e, 0, 4, 2, 4).Out().At(3)},
		dag.Grid(4, 6, 2), dag.Block(32, 2), dag.Shared(16), dag.Cluster(2, 1, 2), dag.Cooperative(), dag.WithPeers())
	b.Map("double", "d = 2*d", nil)
	b.Kernel("sum", "sum", dag.Args{8, b.Whole(d), b.Whole(taps)})
	b.Cost(k, 2.5)
	b.At(k).Work.US = 1.5
	b.Priority(b.Task("task", b.In(e)), dag.High)
	b.After(b.HostFunction("call", "f", b.In(h)), up)
	b.Stream(up, 3)
	b.Communicate("all", dag.Communication{Verb: dag.AllReduce, Reduction: dag.Sum, Among: dag.Among{First: 0, Count: 2, Step: 2}, From: b.Slice(d, 0, 4), To: b.Slice(d, 0, 4), More: []dag.Pair{{From: b.Slice(e, 0, 2), To: b.Slice(e, 2, 4)}}})
	b.Communicate("swap", dag.Communication{Verb: dag.Exchange, Transfers: []dag.Transfer{{Rank: 1, Range: b.Slice(d, 0, 4)}, {Rank: 2, Receive: true, Range: b.Slice(e, 0, 4)}}})
	b.Repeat("loop", dag.Loop{While: "d(0..1) < 3", Most: 9, Every: 2}, func() {
		b.If("branch", "d(1..2) > 0", func() { b.Memset("set", b.Slice(d, 2, 4), 1) }, func() { b.Memset("other", b.Slice(d, 4, 6), 1) })
	})
	b.Repeat("none", dag.Loop{}, func() { b.Memset("never", b.Whole(d), 1) })
	g, err := b.Graph()
	require.NoError(t, err)
	require.Equal(t, "sha256:211cb34f705e5d2a29ccaa6fb058777544c77b35fd9dc9394bd20b75cc1d3e41", g.Hash())
	require.Equal(t, "sha256:acfaf0521caf67221eae5c04e67d02689e035ee96d15f2698d299dd421d5a3fd", g.WorkHash())
}
