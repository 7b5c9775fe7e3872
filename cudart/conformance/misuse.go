// Tests of what a platform refuses: senseless arguments and closed objects. Each call returns an error; none panics.

package conformance

import (
	"context"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/cudart"
	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/kernels/launch"
)

// Misuse runs the tests of refusals, which need no device that computes.
func Misuse(t *testing.T, p cudart.Platform) {
	before := p.Live()
	t.Run("bad arguments", func(t *testing.T) { badArguments(newRig(t, p)) })
	t.Run("closed things", func(t *testing.T) { closedThings(newRig(t, p)) })
	require.Equal(t, before, p.Live(), "something was not given back")
}

// refused requires an error of every call, and that the platform works afterwards.
func (r *rig) refused(calls map[string]func() error) {
	r.Helper()
	for name, call := range calls {
		require.NotPanics(r, func() { require.Error(r, call(), name) }, name)
	}
	r.sync()
}

// second returns the error of a call that also returns a value.
func second[T any](call func() (T, error)) func() error {
	return func() error { _, err := call(); return err }
}

func badArguments(r *rig) {
	ctx := context.Background()
	gone, cancel := context.WithCancel(ctx)
	cancel()
	code := Module()
	calls := map[string]func() error{
		"load nothing":                    second(func() (cudart.Module, error) { return r.p.Load(ctx, 0, nil) }),
		"load on no device":               second(func() (cudart.Module, error) { return r.p.Load(ctx, 99, code) }),
		"load when the context has ended": second(func() (cudart.Module, error) { return r.p.Load(gone, 0, code) }),
		"a kernel that is not there":      second(func() (cudart.Kernel, error) { return r.module.Kernel("absent") }),
		"too much shared memory":          func() error { return r.kernels["noop"].SetMaxShared(math.MaxUint32) },
		"wait for no device":              func() error { return r.p.Synchronize(ctx, -1) },
		"time between nothing":            second(func() (float64, error) { return r.event(true).Since(nil) }),
		"register nothing":                second(func() (cudart.Ptr, error) { return r.p.RegisterHost(nil) }),
		"free what is none":               func() error { return r.p.Free(12345) },
		"free within":                     func() error { return r.p.Free(r.d + 8) },
		"negative host memory":            second(func() (cudart.Ptr, error) { return r.p.AllocHost(math.MinInt64, false) }),
		"event on no device":              second(func() (cudart.Event, error) { return r.p.NewEvent(-5, false) }),
		"stream of each thread":           second(func() (cudart.Stream, error) { return r.p.AdoptStream(2) }),
		"a graph of fewer dependencies": second(func() (cudart.Graph, error) {
			return r.p.BuildGraph(make([]cudart.Command, 2), nil, cudart.GraphOptions{})
		}),
		"a graph that depends on itself": second(func() (cudart.Graph, error) {
			return r.p.BuildGraph([]cudart.Command{r.set(0, r.d, 4)}, [][]int32{{0}}, cudart.GraphOptions{})
		}),
	}
	for name, change := range map[string]func(*cudart.Command){
		"no kind":                func(c *cudart.Command) { c.Kind = 99 },
		"no stream":              func(c *cudart.Command) { c.Stream = nil },
		"no kernel":              func(c *cudart.Command) { c.Kernel = nil },
		"a record of no event":   func(c *cudart.Command) { c.Kind, c.Event = cudart.RecordEvent, nil },
		"a wait for no event":    func(c *cudart.Command) { c.Kind, c.Event = cudart.WaitEvent, nil },
		"a block of no threads":  func(c *cudart.Command) { c.Block = [3]uint32{} },
		"a block of all threads": func(c *cudart.Command) { c.Block = [3]uint32{math.MaxUint32, math.MaxUint32, math.MaxUint32} },
		"a grid of all blocks":   func(c *cudart.Command) { c.Grid = [3]uint32{math.MaxUint32, math.MaxUint32, math.MaxUint32} },
		"all shared memory":      func(c *cudart.Command) { c.Shared = math.MaxUint32 },
		"a copy of less than nothing": func(c *cudart.Command) {
			c.Kind, c.Dst, c.Src, c.Bytes = cudart.CopyMemory, r.d, r.e, math.MinInt64
		},
		"a set of no width": func(c *cudart.Command) { c.Kind, c.Dst, c.Bytes, c.Width = cudart.SetMemory, r.d, 4, 0 },
	} {
		c := r.launch(0, "noop", one)
		change(&c)
		calls["encode "+name] = second(func() (cudart.List, error) {
			l, err := r.p.Encode([]cudart.Command{c}, cudart.ListOptions{})
			if err != nil {
				return nil, err
			}
			r.Cleanup(func() { require.NoError(r, l.Close()) })
			return l, l.Submit()
		})
		if name == "no stream" {
			continue // commands of a graph need no stream
		}
		calls["graph of "+name] = second(func() (cudart.Graph, error) {
			return r.p.BuildGraph([]cudart.Command{c}, [][]int32{nil}, cudart.GraphOptions{})
		})
	}
	g := r.graph(r.p.BuildGraph([]cudart.Command{r.launch(0, "noop", one), r.set(0, r.d, 4)}, [][]int32{nil, {0}}, cudart.GraphOptions{}))
	calls["upload to no stream"] = func() error { return g.Upload(nil) }
	calls["launch on no stream"] = func() error { return g.Launch(nil) }
	calls["update from no list"] = func() error { return g.Update(nil) }
	calls["arguments of a set"] = func() error { return g.SetArgs(1, one, nil) }
	calls["arguments of no node"] = func() error { return g.SetArgs(math.MaxInt, one, nil) }
	calls["too many arguments"] = func() error { return g.SetArgs(0, one, make([]cudart.Value, 5)) }
	calls["addresses of a launch"] = func() error { return g.SetCopy(0, r.d, r.d) }
	calls["addresses of no node"] = func() error { return g.SetCopy(-1, r.d, r.d) }
	l := r.list(nil, r.launch(0, "noop", one))
	calls["capture without an origin"] = second(func() (cudart.Graph, error) { return l.Capture(cudart.GraphOptions{}) })
	r.refused(calls)

	many, err := r.p.Encode([]cudart.Command{r.set(0, r.d, 4)}, cudart.ListOptions{Threads: math.MinInt})
	require.NoError(r, err, "fewer threads than one are one")
	require.NoError(r, many.Submit())
	require.NoError(r, many.Close())
	var none context.Context
	require.NoError(r, r.s[0].Synchronize(none), "no context is one that never ends")
	require.NoError(r, r.p.Synchronize(none, 0))
}

func closedThings(r *rig) {
	ctx := context.Background()
	s, err := r.p.NewStream(0, dag.Normal)
	require.NoError(r, err)
	e, err := r.p.NewEvent(0, true)
	require.NoError(r, err)
	m, err := r.p.Load(ctx, 0, &launch.Module{Name: "m", Kind: launch.PTX, Code: []byte(ptx), References: Module().References})
	require.NoError(r, err)
	k, err := m.Kernel("noop")
	require.NoError(r, err)
	launch := cudart.Command{Kind: cudart.LaunchKernel, Stream: r.s[0], Kernel: k, Grid: one, Block: one}
	set := r.set(0, r.d, 4)
	l, err := r.p.Encode([]cudart.Command{r.launch(0, "noop", one), set}, cudart.ListOptions{Origin: r.s[0]})
	require.NoError(r, err)
	g, err := r.p.BuildGraph([]cudart.Command{r.launch(0, "noop", one), set}, [][]int32{nil, nil}, cudart.GraphOptions{})
	require.NoError(r, err)
	open := r.list(r.s[0], r.launch(0, "noop", one))
	running := r.graph(r.p.BuildGraph([]cudart.Command{set}, [][]int32{nil}, cudart.GraphOptions{}))
	for range 2 { // closing a second time does nothing
		for _, c := range []interface{ Close() error }{s, e, m, l, g} {
			require.NoError(r, c.Close())
		}
	}
	other := r.event(true)
	encode := func(c cudart.Command) func() error {
		return func() error { return r.try(c) }
	}
	onClosed := set
	onClosed.Stream = s
	r.refused(map[string]func() error{
		"wait for a stream":    func() error { return s.Synchronize(ctx) },
		"ask a stream":         second(s.Query),
		"work on a stream":     encode(onClosed),
		"launch on a stream":   func() error { return running.Launch(s) },
		"wait for an event":    func() error { return e.Synchronize(ctx) },
		"ask an event":         second(e.Query),
		"time since an event":  second(func() (float64, error) { return other.Since(e) }),
		"time until an event":  second(func() (float64, error) { return e.Since(other) }),
		"record an event":      encode(r.record(0, e)),
		"wait on an event":     encode(r.wait(0, e)),
		"a kernel of a module": second(func() (cudart.Kernel, error) { return m.Kernel("noop") }),
		"launch of a kernel":   encode(launch),
		"submit a list":        l.Submit,
		"capture a list":       second(func() (cudart.Graph, error) { return l.Capture(cudart.GraphOptions{}) }),
		"arguments of a list":  func() error { return l.SetArgs(0, one, nil) },
		"addresses of a list":  func() error { return l.SetCopy(1, r.e, 0) },
		"launch a graph":       func() error { return g.Launch(r.s[0]) },
		"upload a graph":       func() error { return g.Upload(r.s[0]) },
		"arguments of a graph": func() error { return g.SetArgs(0, one, nil) },
		"addresses of a graph": func() error { return g.SetCopy(1, r.e, 0) },
		"update a graph":       func() error { return g.Update(open) },
		"update from a list":   func() error { return running.Update(l) },
	})
}
