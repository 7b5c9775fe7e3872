// Tests of streams, events and copies: order, overlap, waits and times.

package host

import (
	"context"
	"fmt"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/cudart"
	"github.com/dagrun/dagrun/dag"
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
	require.NoError(t, b.Synchronize(context.Background(), 0))
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
		var all []*stream
		for range streams {
			all = append(all, t.stream())
		}
		for i := range n {
			commands = append(commands, t.kernel(all[i%streams], "noop"))
		}
		l := t.list(commands...)
		b.Run(fmt.Sprintf("streams=%d", streams), func(b *testing.B) {
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

func TestStreamsOverlap(t *testing.T) {
	// Each kernel waits for the other, so this ends only if the streams run at the same time.
	there, back := newGate(t), newGate(t)
	b := newBench(t, Options{}, func() { there.open(); back.hold() }, func() { there.hold(); back.open() })
	s, u := b.stream(), b.stream()
	require.NoError(t, b.submit(b.kernel(s, "call", scalar(0)), b.kernel(u, "call", scalar(1))))
	require.NoError(t, b.Synchronize(context.Background(), 0))
}

func TestPrioritiesWhenWorkersAreScarce(t *testing.T) {
	held := newGate(t)
	var ran []string
	b := newBench(t, Options{Workers: 1}, held.hold,
		func() { ran = append(ran, "low") }, func() { ran = append(ran, "normal") }, func() { ran = append(ran, "high") })
	first := b.stream()
	require.NoError(t, b.submit(b.kernel(first, "call", scalar(0))))
	var commands []cudart.Command
	for i, p := range []dag.Priority{dag.Low, dag.Normal, dag.High} {
		s := b.streamOn(0, p)
		for range 3 {
			commands = append(commands, b.kernel(s, "call", scalar(uint64(i+1))))
		}
	}
	require.NoError(t, b.submit(commands...))
	held.open()
	require.NoError(t, b.Synchronize(context.Background(), 0))
	require.Equal(t, []string{"high", "high", "high", "normal", "normal", "normal", "low", "low", "low"}, ran)
}

func TestHigherPriorityInterruptsAStream(t *testing.T) {
	held, submitted := newGate(t), newGate(t)
	var ran []string
	b := newBench(t, Options{Workers: 1}, func() { held.open(); submitted.hold() },
		func() { ran = append(ran, "low") }, func() { ran = append(ran, "high") })
	low, high := b.streamOn(0, dag.Low), b.streamOn(0, dag.High)
	require.NoError(t, b.submit(b.kernel(low, "call", scalar(0)), b.kernel(low, "call", scalar(1))))
	held.hold()
	require.NoError(t, b.submit(b.kernel(high, "call", scalar(2))))
	submitted.open()
	require.NoError(t, b.Synchronize(context.Background(), 0))
	require.Equal(t, []string{"high", "low"}, ran)
}

func TestPageableCopiesBlockTheHost(t *testing.T) {
	const n = 256
	for _, c := range []struct {
		name     string
		pageable bool
		copy     func(s *stream, d, h cudart.Ptr) cudart.Command
		blocks   bool
	}{
		{"pinned up", false, func(s *stream, d, h cudart.Ptr) cudart.Command { return toDevice(s, d, h, n) }, false},
		{"pinned down", false, func(s *stream, d, h cudart.Ptr) cudart.Command { return toHost(s, h, d, n) }, false},
		{"pageable up", true, func(s *stream, d, h cudart.Ptr) cudart.Command { return toDevice(s, d, h, n) }, true},
		{"pageable down", true, func(s *stream, d, h cudart.Ptr) cudart.Command { return toHost(s, h, d, n) }, true},
		{"declared pageable", false, func(s *stream, d, h cudart.Ptr) cudart.Command {
			c := toHost(s, h, d, n)
			c.DstPageable = true
			return c
		}, true},
		{"host to host", false, func(s *stream, d, h cudart.Ptr) cudart.Command {
			return cudart.Command{Kind: cudart.CopyMemory, Stream: s, Dst: h + n, DstDevice: -1, Src: h, SrcDevice: -1, Bytes: n}
		}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			held := newGate(t)
			b := newBench(t, Options{}, held.hold)
			s := b.stream()
			d := b.alloc(n)
			h, _ := b.hostKind(2*n, c.pageable)
			require.NoError(t, b.submit(b.kernel(s, "call", scalar(0))))
			returned := make(chan error, 1)
			l := b.list(c.copy(s, d, h))
			go func() { returned <- l.Submit() }()
			if !c.blocks {
				require.NoError(t, <-returned, "before the stream goes on")
				held.open()
			} else {
				// The test sees that the submission waits behind the copy, so it has not returned.
				for s.queue.waiting.Load() == 0 {
					runtime.Gosched()
				}
				require.Empty(t, returned)
				held.open()
				require.NoError(t, <-returned)
				idle, err := s.Query()
				require.NoError(t, err)
				require.True(t, idle)
			}
			require.NoError(t, b.Synchronize(context.Background(), 0))
		})
	}
}

func TestSubmissionWaitsForRoom(t *testing.T) {
	held := newGate(t)
	ran := 0
	b := newBench(t, Options{}, held.hold, func() { ran++ })
	s := b.stream()
	commands := []cudart.Command{b.kernel(s, "call", scalar(0))}
	for range maxQueued {
		commands = append(commands, b.kernel(s, "call", scalar(1)))
	}
	l := b.list(commands...)
	returned := make(chan error, 1)
	go func() { returned <- l.Submit() }()
	for s.queue.waiting.Load() == 0 {
		runtime.Gosched()
	}
	require.Equal(t, uint64(maxQueued), s.queue.submitted())
	held.open()
	require.NoError(t, <-returned)
	require.NoError(t, s.Synchronize(context.Background()))
	require.Equal(t, maxQueued, ran)
}

func TestAdoptedStreams(t *testing.T) {
	held := newGate(t)
	b := newBench(t, Options{}, held.hold)
	s := b.stream()
	a, err := b.AdoptStream(s.Handle())
	require.NoError(t, err)
	require.NoError(t, b.submit(b.kernel(a, "call", scalar(0))))
	idle, err := s.Query()
	require.NoError(t, err)
	require.False(t, idle, "one queue behind both handles")
	held.open()
	require.NoError(t, s.Synchronize(context.Background()))
	require.NoError(t, a.Close())
	requireError(t, a.Synchronize(context.Background()), invalidHandle, "is closed")
	requireError(t, b.submit(b.kernel(a, "noop")), invalidHandle, "is closed")
	require.NoError(t, b.submit(b.kernel(s, "noop")), "the owner's stream lives on")
	early, err := b.NewStream(0, dag.Normal)
	require.NoError(t, err)
	l := b.list(b.kernel(early, "noop"))
	require.NoError(t, early.Close())
	requireError(t, l.Submit(), invalidHandle, `node "noop": cuLaunchKernel: CUDA_ERROR_INVALID_HANDLE (400): invalid resource handle: stream 1 is closed`)

	legacy, err := b.AdoptStream(0)
	require.NoError(t, err)
	again, err := b.AdoptStream(legacyHandle)
	require.NoError(t, err)
	require.Equal(t, legacy.Handle(), again.Handle())
	require.NoError(t, b.submit(b.kernel(again, "noop")))
	require.NoError(t, legacy.Close())
	require.NoError(t, again.Close())
	_, err = b.AdoptStream(perThreadHandle)
	require.ErrorIs(t, err, cudart.ErrUnsupported)
	_, err = b.AdoptStream(0xdead)
	requireError(t, err, invalidHandle, "0xdead is not a stream of this platform")
}

func TestClosedStreamFinishesItsWork(t *testing.T) {
	held := newGate(t)
	ran := false
	b := newBench(t, Options{}, held.hold, func() { ran = true })
	s, err := b.NewStream(0, dag.Normal)
	require.NoError(t, err)
	require.NoError(t, b.submit(b.kernel(s, "call", scalar(0)), b.kernel(s, "call", scalar(1))))
	require.NoError(t, s.Close())
	require.NoError(t, s.Close(), "a second time does nothing")
	held.open()
	require.NoError(t, b.Synchronize(context.Background(), 0))
	require.True(t, ran)
	require.Empty(t, b.queues, "forgotten once it is empty")
}

func TestLists(t *testing.T) {
	b := newBench(t, Options{})
	s := b.stream()
	d, other := b.alloc(64), b.alloc(64)
	h, f := b.host(64)
	inc := b.kernel(s, "inc", pointer(d, 64))
	l := b.list(
		cudart.Command{Kind: cudart.RangePush, Label: "r"}, cudart.Command{Kind: cudart.Empty},
		cudart.Command{Kind: cudart.SetMemory, Stream: s, Dst: d, Bytes: 64, Width: 1},
		inc, inc, toHost(s, h, d, 64), cudart.Command{Kind: cudart.RangePop})
	require.Equal(t, 7, l.Len())
	require.NoError(t, l.Submit())
	require.NoError(t, l.SetCopy(2, other, 0), "what was submitted keeps its addresses")
	require.NoError(t, s.Synchronize(context.Background()))
	require.Equal(t, float32(2), f[0])
	requireError(t, l.SetArgs(4, one, nil), invalidValue, "the launch was encoded with 1 arguments, but 0 are given")
	require.NoError(t, l.SetArgs(4, one, []cudart.Value{pointer(other, 64)}))
	require.NoError(t, l.SetCopy(5, h, other))
	require.NoError(t, l.Submit())
	require.NoError(t, s.Synchronize(context.Background()))
	require.Equal(t, float32(1), f[0])

	requireError(t, l.SetArgs(9, one, nil), invalidValue, "there is no command 9; the list has 7")
	requireError(t, l.SetArgs(2, one, nil), invalidValue, "command 2 is of a kind that this change does not apply to")
	requireError(t, l.SetCopy(3, d, d), invalidValue, `node "inc": cuMemcpyAsync: CUDA_ERROR_INVALID_VALUE (1): invalid argument: command 3 is of a kind that this change does not apply to`)
	closed, err := b.Encode(nil, cudart.ListOptions{})
	require.NoError(t, err)
	require.NoError(t, closed.Close())
	requireError(t, closed.Submit(), invalidHandle, "the list is closed")
	require.NoError(t, closed.Close(), "a second time does nothing")
}

func BenchmarkEncode(b *testing.B) {
	const n = 1000
	t := newBench(b, Options{})
	s := t.stream()
	d := t.alloc(4096)
	commands := make([]cudart.Command, n)
	for i := range commands {
		commands[i] = t.kernel(s, "add", pointer(d, 1024), pointer(d+1024, 1024), pointer(d+2048, 1024))
	}
	b.ReportAllocs()
	for b.Loop() {
		l, err := t.Encode(commands, cudart.ListOptions{})
		if err != nil {
			b.Fatal(err)
		}
		if err := l.Close(); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/command")
}
