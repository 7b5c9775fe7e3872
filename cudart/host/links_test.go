// Tests of simulated links: copies on one link take at least their time one after the other, and arrive unchanged.

package host_test

import (
	"context"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/cudart"
	"github.com/dagrun/dagrun/cudart/host"
	"github.com/dagrun/dagrun/dag"
)

func TestCopiesTakeTheTimeOfTheirLink(t *testing.T) {
	const bytes = 1 << 16
	links := &host.Links{LatencyUS: 100, HostToDevice: 64, DeviceToHost: 32, DeviceToDevice: 128}
	p, err := host.Open(host.Options{Devices: 2, Links: links})
	require.NoError(t, err)
	from, err := p.AllocHost(bytes, true)
	require.NoError(t, err)
	to, err := p.AllocHost(bytes, true)
	require.NoError(t, err)
	var device [2]cudart.Ptr
	for d := range device {
		device[d], err = p.Alloc(int32(d), bytes)
		require.NoError(t, err)
	}
	for k := range bytes {
		p.HostBytes(from, bytes)[k] = byte(k * 7)
	}
	s, err := p.NewStream(0, dag.Normal)
	require.NoError(t, err)
	list, err := p.Encode([]cudart.Command{
		{Kind: cudart.CopyMemory, Stream: s, Dst: device[0], Src: from, Bytes: bytes, DstDevice: 0, SrcDevice: -1},
		{Kind: cudart.CopyMemory, Stream: s, Dst: device[1], Src: device[0], Bytes: bytes, DstDevice: 1, SrcDevice: 0},
		{Kind: cudart.CopyMemory, Stream: s, Dst: to, Src: device[1], Bytes: bytes, DstDevice: -1, SrcDevice: 1},
	}, cudart.ListOptions{})
	require.NoError(t, err)
	began := time.Now()
	require.NoError(t, list.Submit())
	require.NoError(t, s.Synchronize(context.Background()))
	want := time.Duration((300 + bytes/64.0 + bytes/32.0 + bytes/128.0) * float64(time.Microsecond))
	require.GreaterOrEqual(t, time.Since(began), want)
	require.Equal(t, p.HostBytes(from, bytes), p.HostBytes(to, bytes))
	require.NoError(t, list.Close())
	require.NoError(t, s.Close())
	for _, address := range []cudart.Ptr{from, to, device[0], device[1]} {
		require.NoError(t, p.Free(address))
	}
	require.NoError(t, p.Close())
}

func TestLinksMustBePossible(t *testing.T) {
	for _, v := range []float64{-1, math.NaN(), math.Inf(1)} {
		_, err := host.Open(host.Options{Links: &host.Links{HostToDevice: v}})
		require.ErrorContains(t, err, "rates and latency must not be negative")
	}
}
