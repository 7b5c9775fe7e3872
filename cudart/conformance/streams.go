// Tests of streams and events: order, overlap, which record a wait waits for, what is asynchronous, and times.

package conformance

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/cudart"
	"github.com/dagrun/dagrun/dag"
)

func streamOrder(r *rig) {
	var commands []cudart.Command
	want := make([]uint32, words)
	for i := range r.host {
		r.host[i] = uint32(i)
		want[i] = uint32(i)
	}
	commands = append(commands, r.up(1, r.d, r.h))
	for k := range uint32(100) {
		commands = append(commands, r.mix(1, r.d, r.d, k))
		for i := range want {
			want[i] = mixed(want[i], want[i], k)
		}
	}
	l := r.list(nil, append(commands, r.down(1, r.g, r.d))...)
	for range 10 {
		clear(r.back)
		require.NoError(r, l.Submit())
		require.NoError(r, r.s[1].Synchronize(context.Background()))
		require.Equal(r, want, r.back)
	}
}

func queries(r *rig) {
	e, f := r.event(false), r.event(true)
	l := r.list(nil, r.record(0, f), r.hold(0), r.record(0, e), r.down(1, r.g, r.d), r.record(1, f))
	require.NoError(r, l.Submit())
	require.NoError(r, r.s[1].Synchronize(context.Background()), "a stream that is not held")
	require.NoError(r, f.Synchronize(context.Background()))
	yield()
	require.False(r, r.idle(r.s[0]))
	require.True(r, r.idle(r.s[1]))
	require.False(r, r.done(e))
	require.True(r, r.done(f))
	r.release()
	require.NoError(r, e.Synchronize(context.Background()))
	require.True(r, r.done(e))
	require.NoError(r, r.s[0].Synchronize(context.Background()))
	require.True(r, r.idle(r.s[0]))
}

func cancelledWait(r *rig) {
	l := r.list(nil, r.hold(0))
	require.NoError(r, l.Submit())
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() { ended <- r.s[0].Synchronize(ctx) }()
	yield()
	cancel()
	require.ErrorIs(r, <-ended, context.Canceled)
	require.False(r, r.idle(r.s[0]), "the stream is not affected")

	e := r.event(false)
	r.submit(r.record(0, e))
	late := errors.New("too late")
	for what, wait := range map[string]func(context.Context) error{
		"stream": r.s[0].Synchronize, "event": e.Synchronize,
		"device": func(ctx context.Context) error { return r.p.Synchronize(ctx, 0) },
	} {
		ctx, cancel := context.WithTimeoutCause(context.Background(), 2*time.Millisecond, late)
		require.ErrorIs(r, wait(ctx), late, what)
		cancel()
	}
	r.release()
	r.sync()
}

func adoptedStreams(r *rig) {
	a, err := r.p.AdoptStream(r.s[0].Handle())
	require.NoError(r, err)
	require.Equal(r, r.s[0].Device(), a.Device())
	require.Equal(r, r.s[0].Handle(), a.Handle())
	hold := r.hold(0)
	hold.Stream = a
	l := r.list(nil, hold)
	require.NoError(r, l.Submit())
	require.False(r, r.idle(r.s[0]), "one queue behind two handles")
	r.release()
	require.NoError(r, a.Synchronize(context.Background()))
	require.True(r, r.idle(r.s[0]))
	require.NoError(r, a.Close())
	r.submit(r.launch(0, "noop", one))
	require.NoError(r, r.s[0].Synchronize(context.Background()), "the owner's stream lives on")
	_, err = r.p.AdoptStream(2)
	require.ErrorIs(r, err, cudart.ErrUnsupported, "the per-thread default stream")

	legacy, err := r.p.AdoptStream(0)
	require.NoError(r, err)
	defer func() { require.NoError(r, legacy.Close()) }()
	up, mix, down := r.up(0, r.d, r.h), r.mix(0, r.d, r.d, 3), r.down(0, r.g, r.d)
	up.Stream, mix.Stream, down.Stream = legacy, legacy, legacy
	r.host[0] = 5
	chain := r.list(legacy, up, mix, down)
	require.NoError(r, chain.Submit())
	require.NoError(r, legacy.Synchronize(context.Background()))
	require.Equal(r, mixed(5, 5, 3), r.back[0])
	g := r.graph(chain.Capture(cudart.GraphOptions{}))
	r.host[0] = 6
	require.NoError(r, g.Launch(legacy))
	require.NoError(r, legacy.Synchronize(context.Background()))
	require.Equal(r, mixed(6, 6, 3), r.back[0])
}

func closedStreams(r *rig) {
	s, err := r.p.NewStream(0, dag.High)
	require.NoError(r, err)
	r.host[0] = 9
	up, mix, down := r.up(0, r.d, r.h), r.mix(0, r.d, r.d, 3), r.down(0, r.g, r.d)
	up.Stream, mix.Stream, down.Stream = s, s, s
	require.NoError(r, r.try(up, mix, down))
	require.NoError(r, s.Close())
	require.NoError(r, s.Close(), "a second time does nothing")
	r.sync()
	require.Equal(r, mixed(9, 9, 3), r.back[0], "what was submitted still ran")
	require.Error(r, r.try(up))
}

func manyLaunches(r *rig) {
	var commands []cudart.Command
	for i := range 1000 {
		commands = append(commands, r.launch(i%4, "noop", one))
	}
	l := r.list(nil, commands...)
	for range 30 {
		require.NoError(r, l.Submit(), "a full queue is waited for")
	}
	r.sync()
}

func severalGoroutines(r *rig) {
	var group sync.WaitGroup
	for i := range 4 {
		at := cudart.Ptr(i * 256)
		n := int64(64)
		up, down := r.up(i, r.d+at, r.h+at), r.down(i, r.g+at, r.d+at)
		up.Bytes, down.Bytes = 4*n, 4*n
		l := r.list(nil, up, r.mixWords(i, r.d+at, r.d+at, n, uint32(i)), down)
		group.Go(func() {
			for round := range uint32(50) {
				for j := range r.host[i*64 : i*64+64] {
					r.host[i*64+j] = round
				}
				if err := l.Submit(); err != nil {
					r.Error(err)
					return
				}
				if err := r.s[i].Synchronize(context.Background()); err != nil {
					r.Error(err)
					return
				}
				for j, got := range r.back[i*64 : i*64+64] {
					if want := mixed(round, round, uint32(i)); got != want {
						r.Errorf("goroutine %d, round %d, word %d: %d, want %d", i, round, j, got, want)
						return
					}
				}
			}
		})
	}
	group.Wait()
}

func waitTakesRecord(r *rig) {
	e := r.event(false)
	// Stream 1 waits for the first record, which is before the held kernel; stream 2 for the second, after it.
	l := r.list(nil, r.record(0, e), r.wait(1, e), r.hold(0), r.record(0, e), r.wait(2, e), r.launch(1, "noop", one), r.launch(2, "noop", one))
	require.NoError(r, l.Submit())
	require.NoError(r, r.s[1].Synchronize(context.Background()))
	yield()
	require.False(r, r.idle(r.s[2]))
	r.release()
	require.NoError(r, r.s[2].Synchronize(context.Background()))
}

func recordMovesEvent(r *rig) {
	e := r.event(true)
	l := r.list(nil, r.hold(0), r.record(0, e), r.wait(1, e), r.record(2, e))
	require.NoError(r, l.Submit())
	require.NoError(r, e.Synchronize(context.Background()), "it stands on stream 2 now, which is empty")
	require.True(r, r.done(e))
	yield()
	require.False(r, r.idle(r.s[1]), "a wait submitted before keeps the record it took")
	r.release()
	require.NoError(r, r.s[1].Synchronize(context.Background()))
}

func neverRecorded(r *rig) {
	e := r.event(true)
	require.True(r, r.done(e))
	require.NoError(r, e.Synchronize(context.Background()))
	r.submit(r.wait(0, e), r.launch(0, "noop", one))
	require.NoError(r, r.s[0].Synchronize(context.Background()), "such a wait does nothing")
	_, err := e.Since(e)
	r.named(err, "CUDA_ERROR_INVALID_HANDLE")
}

func closedEvent(r *rig) {
	e, err := r.p.NewEvent(0, false)
	require.NoError(r, err)
	l := r.list(nil, r.hold(0), r.record(0, e), r.wait(1, e))
	require.NoError(r, l.Submit())
	require.NoError(r, e.Close())
	require.NoError(r, e.Close(), "a second time does nothing")
	yield()
	require.False(r, r.idle(r.s[1]), "a wait submitted before still holds")
	r.release()
	require.NoError(r, r.s[1].Synchronize(context.Background()))
}

func times(r *rig) {
	a, b, c, untimed := r.event(true), r.event(true), r.event(true), r.event(false)
	l := r.list(nil, r.record(0, a), r.mix(0, r.d, r.d, 1), r.record(0, b), r.hold(0), r.record(0, c), r.record(0, untimed))
	require.NoError(r, l.Submit())
	require.NoError(r, b.Synchronize(context.Background()))
	_, err := c.Since(a)
	r.named(err, "CUDA_ERROR_NOT_READY")
	r.release()
	r.sync()
	ab, err := b.Since(a)
	require.NoError(r, err)
	require.GreaterOrEqual(r, ab, 0.0)
	ac, err := c.Since(a)
	require.NoError(r, err)
	bc, err := c.Since(b)
	require.NoError(r, err)
	require.InDelta(r, ac, ab+bc, 2, "microseconds add up")
	require.Positive(r, bc)
	_, err = untimed.Since(a)
	require.ErrorIs(r, err, cudart.ErrUnsupported)
}
