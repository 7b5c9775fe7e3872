// Tests of a fault: how it is reported, and what still works after it.

package conformance

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/cudart"
)

// Fault makes a kernel write where it must not. The platform is closed afterwards: no later call on its device works, and with a GPU
// none in this process.
func Fault(t *testing.T, p cudart.Platform) {
	ctx := context.Background()
	d, err := p.Alloc(0, 256)
	require.NoError(t, err)
	h, err := p.AllocHost(256, false)
	require.NoError(t, err)
	s, err := p.NewStream(0, 0)
	require.NoError(t, err)
	e, err := p.NewEvent(0, false)
	require.NoError(t, err)
	m, err := p.Load(ctx, 0, Module())
	require.NoError(t, err)
	k, err := m.Kernel("store")
	require.NoError(t, err)
	store := cudart.Command{Kind: cudart.LaunchKernel, Stream: s, Label: "bad", Kernel: k, Grid: one, Block: one, Args: []cudart.Value{{Pointer: true, Ptr: 64}}}
	bad, err := p.Encode([]cudart.Command{store}, cudart.ListOptions{})
	require.NoError(t, err)
	store.Args = []cudart.Value{pointer(d, 256)}
	good, err := p.Encode([]cudart.Command{store, {Kind: cudart.RecordEvent, Stream: s, Event: e}}, cudart.ListOptions{Origin: s})
	require.NoError(t, err)
	g, err := good.Capture(cudart.GraphOptions{})
	require.NoError(t, err)
	require.NoError(t, good.Submit())
	require.NoError(t, g.Launch(s))
	require.NoError(t, s.Synchronize(ctx))

	require.NoError(t, bad.Submit(), "the fault comes when the kernel runs")
	err = s.Synchronize(ctx)
	require.ErrorIs(t, err, cudart.ErrPoisoned)
	require.ErrorContains(t, err, "CUDA_ERROR_ILLEGAL_ADDRESS (700)")
	for i, again := range []func() error{
		good.Submit,
		func() error { return g.Launch(s) },
		func() error { return s.Synchronize(ctx) },
		func() error { return p.Synchronize(ctx, 0) },
		func() error { return e.Synchronize(ctx) },
		func() error { _, err := s.Query(); return err },
		func() error { _, err := p.Alloc(0, 1); return err },
		func() error { _, err := p.NewStream(0, 0); return err },
		func() error { _, err := p.NewEvent(0, false); return err },
		func() error { _, err := p.Load(ctx, 0, Module()); return err },
	} {
		err := again()
		require.ErrorIs(t, err, cudart.ErrPoisoned, "call %d", i)
		require.ErrorContains(t, err, "CUDA_ERROR_ILLEGAL_ADDRESS (700)", "call %d", i)
	}
	for _, c := range []interface{ Close() error }{g, good, bad, m, e, s} {
		require.NoError(t, c.Close(), "there is nothing to give back, so giving back works")
	}
	require.NoError(t, p.Free(d))
	require.NoError(t, p.Free(h))
	require.Equal(t, cudart.Live{}, p.Live())
	require.NoError(t, p.Close())
}
