// Streams, events and copies: order, overlap, waits and times.

package host

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/cudart"
)

func TestVectorSumOverThreeStreams(t *testing.T) {
	const n = 1 << 16
	b := newBench(t, Options{})
	hx, x := b.host(4 * n)
	hy, y := b.host(4 * n)
	hz, z := b.host(4 * n)
	for i := range x {
		x[i], y[i] = float32(i), float32(2*i)
	}
	dx, dy, dz := b.alloc(4*n), b.alloc(4*n), b.alloc(4*n)
	s, u, v := b.stream(), b.stream(), b.stream()
	ex, ey := b.event(false), b.event(true)
	commands := []cudart.Command{
		toDevice(s, dx, hx, 4*n), record(s, ex),
		toDevice(u, dy, hy, 4*n), record(u, ey),
		wait(v, ex), wait(v, ey),
		b.kernel(v, "add", pointer(dx, 4*n), pointer(dy, 4*n), pointer(dz, 4*n)),
		toHost(v, hz, dz, 4*n),
	}
	l := b.list(commands...)
	require.NoError(t, l.Submit())
	require.NoError(t, v.Synchronize(context.Background()))
	for i := range z {
		require.Equal(t, float32(3*i), z[i])
	}

	for i := range x {
		x[i] = 1
	}
	origin := b.stream()
	fork := b.event(false)
	join := b.event(false)
	commands = append([]cudart.Command{record(origin, fork), wait(s, fork), wait(u, fork)}, commands...)
	commands = append(commands, record(v, join), wait(origin, join))
	g, err := b.list(commands...).Capture(cudart.GraphOptions{Origin: origin})
	require.NoError(t, err)
	require.Equal(t, 4, g.Nodes())
	require.NoError(t, g.Launch(origin))
	require.NoError(t, g.Launch(u))
	require.NoError(t, b.Synchronize(0))
	for i := range z {
		require.Equal(t, float32(2*i+1), z[i])
	}
	require.NoError(t, g.Close())
}

func BenchmarkSubmitNoops(b *testing.B) {
	const n = 1000
	for _, streams := range []int{1, 4} {
		t := newBench(b, Options{})
		var commands []cudart.Command
		var all []*Stream
		for range streams {
			all = append(all, t.stream())
		}
		for i := range n {
			commands = append(commands, t.kernel(all[i%streams], "noop"))
		}
		l := t.list(commands...)
		b.Run(map[int]string{1: "one stream", 4: "four streams"}[streams], func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if err := l.Submit(); err != nil {
					b.Fatal(err)
				}
				for _, s := range all {
					if err := s.Synchronize(context.Background()); err != nil {
						b.Fatal(err)
					}
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/command")
		})
	}
}
