// Tests in which every call of a small program fails in turn: the error names the call, and everything made before is released.

package fault_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/dagrun/dagrun/cudart"
	"github.com/dagrun/dagrun/cudart/conformance"
	"github.com/dagrun/dagrun/cudart/fault"
	"github.com/dagrun/dagrun/cudart/host"
	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/kernels/launch"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// program makes one object of every kind, uses it and releases it, even if a call fails.
func program(p cudart.Platform) (err error) {
	end := func(close func() error) { err = errors.Join(err, close()) }
	if _, _, err := p.MemoryInfo(0); err != nil {
		return err
	}
	if err := p.EnablePeer(0, 1); err != nil {
		return err
	}
	d, err := p.Alloc(0, 64)
	if err != nil {
		return err
	}
	defer end(func() error { return p.Free(d) })
	h, err := p.AllocHost(64, false)
	if err != nil {
		return err
	}
	defer end(func() error { return p.Free(h) })
	own, err := p.RegisterHost(make([]byte, 64))
	if err != nil {
		return err
	}
	defer end(func() error { return p.UnregisterHost(own) })
	s, err := p.NewStream(0, dag.High)
	if err != nil {
		return err
	}
	defer end(s.Close)
	u, err := p.AdoptStream(s.Handle())
	if err != nil {
		return err
	}
	defer end(u.Close)
	e, err := p.NewEvent(0, true)
	if err != nil {
		return err
	}
	defer end(e.Close)
	m, err := p.Load(context.Background(), 0, &launch.Module{Name: "m", References: map[string]launch.Reference{
		"noop": {Run: func(*launch.Call, int64, int64) {}},
	}})
	if err != nil {
		return err
	}
	defer end(m.Close)
	k, err := m.Kernel("noop")
	if err != nil {
		return err
	}
	if _, _, err := k.Occupancy(0); err != nil {
		return err
	}
	if err := k.SetMaxShared(64 << 10); err != nil {
		return err
	}
	one := [3]uint32{1, 1, 1}
	commands := []cudart.Command{
		{Kind: cudart.CopyMemory, Stream: s, Label: "up", Node: 0, Dst: d, Src: h, SrcDevice: -1, Bytes: 64},
		{Kind: cudart.SetMemory, Stream: s, Label: "set", Node: 1, Dst: d, Bytes: 64, Width: 2},
		{Kind: cudart.LaunchKernel, Stream: s, Label: "run", Node: 2, Kernel: k, Grid: one, Block: one},
		{Kind: cudart.RecordEvent, Stream: s, Label: "note", Node: -1, Event: e},
		{Kind: cudart.WaitEvent, Stream: u, Label: "hold", Node: -1, Event: e},
	}
	l, err := p.Encode(commands, cudart.ListOptions{Origin: s})
	if err != nil {
		return err
	}
	defer end(l.Close)
	defer end(func() error { return p.Synchronize(context.Background(), 0) })
	if err := l.Submit(); err != nil {
		return err
	}
	if err := s.Synchronize(context.Background()); err != nil {
		return err
	}
	if err := e.Synchronize(context.Background()); err != nil {
		return err
	}
	if _, err := e.Since(e); err != nil {
		return err
	}
	if _, err := e.Query(); err != nil {
		return err
	}
	if _, err := s.Query(); err != nil {
		return err
	}
	g, err := p.BuildGraph(commands, [][]int32{nil, {0}, {1}, {2}, {3}}, cudart.GraphOptions{Origin: s})
	if err != nil {
		return err
	}
	defer end(g.Close)
	if err := errors.Join(g.Upload(s), g.SetArgs(2, one, nil), g.SetCopy(1, d, 0), g.Launch(s)); err != nil {
		return err
	}
	c, err := l.Capture(cudart.GraphOptions{Origin: s})
	if err != nil {
		return err
	}
	defer end(c.Close)
	return c.Update(l)
}

func open(t testing.TB, plan fault.Plan) *fault.Platform {
	p, err := host.Open(host.Options{Devices: 2})
	require.NoError(t, err)
	return fault.Wrap(p, plan)
}

func TestEveryCallFailsInTurn(t *testing.T) {
	p := open(t, fault.Plan{})
	require.NoError(t, program(p))
	calls := p.Calls()
	require.NoError(t, p.Close())
	require.Greater(t, len(calls), 35)
	for _, sticky := range []bool{false, true} {
		for k := 1; k <= len(calls); k++ {
			p := open(t, fault.Plan{Call: k, Sticky: sticky})
			err := program(p)
			require.True(t, p.Broken())
			var e *cudart.Error
			require.ErrorAs(t, err, &e, "call %d", k)
			require.Equal(t, calls[k-1], e.Call)
			require.Equal(t, fmt.Sprintf("call %d fails on purpose", k), e.Text)
			require.Equal(t, cudart.Live{}, p.Live(), "call %d, %s", k, calls[k-1])
			err = p.Close()
			if sticky {
				require.ErrorIs(t, err, cudart.ErrPoisoned)
			} else {
				require.NoError(t, err)
			}
		}
	}
}

// If no call is made to fail, the platform behaves as the one it wraps.
func TestConformance(t *testing.T) {
	p := open(t, fault.Plan{})
	conformance.Run(t, p)
	require.NoError(t, p.Close())
}

func TestCommandsAreNamed(t *testing.T) {
	for label, call := range map[string]string{"up": "cuMemcpyAsync", "set": "cuMemsetD16Async", "run": "cuLaunchKernel", "note": "cuEventRecord", "hold": "cuStreamWaitEvent"} {
		p := open(t, fault.Plan{Call: 1, Only: call, Error: &cudart.Error{Name: "CUDA_ERROR_LAUNCH_FAILED", Code: 719}})
		err := program(p)
		require.EqualError(t, err, fmt.Sprintf("node %q: %s: CUDA_ERROR_LAUNCH_FAILED (719)", label, call))
		require.NoError(t, p.Close())
	}
}

func Example() {
	inner, err := host.Open(host.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	p := fault.Wrap(inner, fault.Plan{Call: 2, Only: "cuMemAlloc"})
	first, err := p.Alloc(0, 1024)
	fmt.Println(err)
	_, err = p.Alloc(0, 1024)
	fmt.Println(err)
	fmt.Println(p.Free(first), p.Close())
	// Output:
	// <nil>
	// cuMemAlloc: CUDA_ERROR_UNKNOWN (999): call 2 fails on purpose
	// <nil> <nil>
}
