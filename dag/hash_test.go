// Tests of hashes: every change of a graph changes its hash and is named by the difference.

package dag

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestDifferences(t *testing.T) {
	type parts struct {
		b             *Builder
		x, y, h       BufferID
		up, work, end NodeID
	}
	declare := func(change func(p *parts)) *Graph {
		b := New("test")
		p := &parts{b: b, x: b.Device("x", F32, 8), y: b.Device("y", F32, 4, 2), h: b.Host("h", F32, 8)}
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
	require.Empty(t, base.FirstDifference(declare(nil)))
	require.Empty(t, base.DifferenceFrom(declare(nil).Outline()))
	require.Empty(t, base.DifferenceFrom(&Outline{}))

	seen := map[string]string{base.Hash(): "base"}
	for _, test := range []struct {
		want    string
		outline string // the difference that an outline shows
		change  func(p *parts)
	}{
		{`sync is explicit, it was auto`, "", func(p *parts) { p.b.Sync(SyncExplicit) }},
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
		{`buffer "z" is new`, ``, func(p *parts) { p.b.Host("z", F32) }},
		{`buffer "y" is of type i32, it was of f32`, ``, func(p *parts) { p.b.BufferAt(p.y).DType = I32 }},
		{`buffer "y" has shape [2 4], it had [4 2]`, `node "end" waits for "work" because of RAW y(0..1), it was RAW y(0..2)`, func(p *parts) { p.b.BufferAt(p.y).Shape = []int64{2, 4} }},
		{`buffer "y" has shape [8 2], it had [4 2]`, `buffer "y" has 64 bytes, it had 32`, func(p *parts) {
			p.b.BufferAt(p.y).Shape, p.b.BufferAt(p.y).Bytes = []int64{8, 2}, 64
		}},
		{`buffer "y" is on device 2, it was on 0`, `buffer "y" is on device 2, it was on 0`, func(p *parts) { p.b.OnDevice(p.y, 2) }},
		{`buffer "y" is in host memory, it was in device memory`, `buffer "y" is gone`, func(p *parts) { p.b.BufferAt(p.y).Place = Host }},
		{`buffer "h" is pageable, it was not`, ``, func(p *parts) { p.b.Pageable(p.h) }},
		{`buffer "x" is scratch, it was not`, ``, func(p *parts) { p.b.BufferAt(p.x).Scratch = true }},
		{`buffer "x" has init, it had none`, ``, func(p *parts) { p.b.Init(p.x, Init{}) }},
		{`buffer "x" has save, it had none`, ``, func(p *parts) { p.b.Save(p.x, "x.bin") }},
		{`buffer "x" has expect, it had none`, ``, func(p *parts) { p.b.Expect(p.x, Expect{File: "y.npy"}) }},
		{`node "work" is a map, it was a task`, ``, func(p *parts) { p.b.At(p.work).Kind = Map }},
		{`node "work" runs on device 1, it ran on 0`, ``, func(p *parts) { p.b.At(p.work).Device = 1 }},
		{`node "work" is bound to stream 4, it was bound to no stream`, ``, func(p *parts) { p.b.Stream(p.work, 4) }},
		{`node "work" has priority high, it had normal`, ``, func(p *parts) { p.b.Priority(p.work, High) }},
		{`node "work" is allowed to use peers, it was not`, ``, func(p *parts) { p.b.At(p.work).Peer = true }},
		{`node "work" uses x(0..4) (in) where it used x (in)`, `node "work" waits for "up" because of RAW x(0..4), it was RAW x`, func(p *parts) {
			p.b.pipeline.accesses[2].Hi = 16
		}},
		{`node "end" uses h (in), it did not`, ``, func(p *parts) {
			p.b.pipeline.accesses = append(p.b.pipeline.accesses, p.b.In(p.h))
			p.b.pipeline.accessStart[3]++
		}},
		{`node "end" does not use y (in), it did`, `node "end" does not wait for "work" (RAW y(0..2)), it did`, func(p *parts) {
			p.b.pipeline.accessStart[3]--
			p.b.pipeline.accesses = p.b.pipeline.accesses[:4]
		}},
		{`node "end" comes after "work", it did not`, ``, func(p *parts) { p.b.After(p.end, p.work) }},
		{`node "end" does not come after "up", it did`, `node "end" does not wait for "up" (after), it did`, func(p *parts) { p.b.At(p.end).After = nil }},
	} {
		other := declare(test.change)
		require.Equal(t, test.want, other.FirstDifference(base), test.want)
		require.NotEmpty(t, base.FirstDifference(other), "the other way round: %s", test.want)
		require.Equal(t, test.outline, other.DifferenceFrom(base.Outline()), test.want)
		require.NotContains(t, seen, other.Hash(), test.want)
		seen[other.Hash()] = test.want
	}

	// Changes that a plan does not depend on.
	same := declare(func(p *parts) { p.b.pipeline.Name = "another name" })
	require.Equal(t, base.Hash(), same.Hash())
	require.Equal(t, base.WorkHash(), same.WorkHash())
	require.Empty(t, same.FirstDifference(base))
}

// Work is hashed separately from structure: a plan made for a kernel of 10 us is correct for one of 100,000 us, but probably slow.
func TestDifferencesOfWork(t *testing.T) {
	type parts struct {
		alpha, value any
		options      []LaunchOption
		text         string
	}
	declare := func(change func(*Builder, *parts), after ...func(*Builder)) *Graph {
		b := New("test")
		b.Use(kernelsForTests)
		p := &parts{alpha: 2.0, value: 1, text: "y = 2*x"}
		if change != nil {
			change(b, p)
		}
		x, y := b.Device("x", F32, 8), b.Device("y", F32, 8)
		b.Memset("clear", b.Whole(x), p.value)
		b.Kernel("work", "saxpy", Args{8, p.alpha, b.Whole(x), b.Whole(y)}, p.options...)
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
	work := func(g *Builder) *Node { return g.At(1) }
	for _, test := range []struct {
		want   string
		change func(*Builder, *parts)
		after  func(*Builder)
	}{
		{`node "work" has alpha=3, it had alpha=2`, func(_ *Builder, p *parts) { p.alpha = 3.0 }, nil},
		{`node "work" has grid=[5 1 1], it had grid=[1 1 1]`, func(_ *Builder, p *parts) { p.options = []LaunchOption{Grid(5)} }, nil},
		{`node "work" has block=[64 1 1], it had block=[256 1 1]`, func(_ *Builder, p *parts) { p.options = []LaunchOption{Block(64)} }, nil},
		{`node "work" has shared=16, it had no shared`, func(_ *Builder, p *parts) { p.options = []LaunchOption{Shared(16)} }, nil},
		{`node "double" has formula=y = 3*x, it had formula=y = 2*x`, func(_ *Builder, p *parts) { p.text = "y = 3*x" }, nil},
		{`module "mine" is new`, func(b *Builder, _ *parts) { b.Module("mine", "a.cu", userKernels) }, nil},
		{`node "work" has cost=12 us, it had no cost`, nil, func(b *Builder) { b.Cost(1, 12) }},
		{`node "work" has cost=0 us, it had no cost`, nil, func(b *Builder) { b.Cost(1, 0) }},
		{`node "work" has kernel=scale, it had kernel=saxpy`, nil, func(b *Builder) { work(b).Launch.Name = "scale" }},
		{`node "work" has n=7, it had n=8`, nil, func(b *Builder) { work(b).Launch.Args[0].Bits = 7 }},
		{`node "work" has no alpha, it had alpha=2`, nil, func(b *Builder) { work(b).Launch.Args = work(b).Launch.Args[:1] }},
	} {
		var after []func(*Builder)
		if test.after != nil {
			after = append(after, test.after)
		}
		other := declare(test.change, after...)
		require.Equal(t, base.Hash(), other.Hash(), test.want)
		require.Equal(t, test.want, other.FirstDifference(base))
		require.NotEmpty(t, base.FirstDifference(other), "the other way round: %s", test.want)
		require.Equal(t, test.want, other.WorkDifferenceFrom(base.WorkOutline()))
		require.NotContains(t, seen, other.WorkHash(), test.want)
		seen[other.WorkHash()] = test.want
	}
	for _, test := range []struct {
		want   string
		change func(*Work)
	}{
		{`node "work" has estimated bytes=7, it had no estimated bytes`, func(w *Work) { w.Bytes = 7 }},
		{`node "work" has estimated operations=7, it had estimated operations=8`, func(w *Work) { w.Flops = 7 }},
		{`node "work" has estimated blocks=7, it had estimated blocks=1`, func(w *Work) { w.Blocks = 7 }},
		{`node "work" has estimated threads=7, it had estimated threads=256`, func(w *Work) { w.Threads = 7 }},
		{`node "work" has estimated shared=7, it had no estimated shared`, func(w *Work) { w.Shared = 7 }},
		{`node "work" has estimated us=7, it had no estimated us`, func(w *Work) { w.US = 7 }},
	} {
		other := declare(nil, func(b *Builder) { test.change(&work(b).Work) })
		require.Equal(t, test.want, other.FirstDifference(base))
		require.NotContains(t, seen, other.WorkHash(), test.want)
		seen[other.WorkHash()] = test.want
	}

	// Modules that are missing or come from another file, and nodes whose costs are known in only one of the graphs.
	withModule := func(path string) *Graph {
		return declare(func(b *Builder, _ *parts) { b.Module("mine", path, userKernels) })
	}
	require.Equal(t, `module "mine" is gone`, base.FirstDifference(withModule("a.cu")))
	require.Equal(t, `module "mine" is b.cu, it was a.cu`, withModule("b.cu").FirstDifference(withModule("a.cu")))
	require.Equal(t, `node "work" has no cost, it had cost=12 us`, base.FirstDifference(declare(nil, func(b *Builder) { b.Cost(1, 12) })))
	require.Empty(t, base.WorkDifferenceFrom(&WorkOutline{}))

	same := declare(func(_ *Builder, p *parts) { p.value = 3 })
	require.Equal(t, base.WorkHash(), same.WorkHash(), "a memset takes as long whatever it writes")
	require.Empty(t, same.FirstDifference(base))
}
