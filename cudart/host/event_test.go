// Tests of events: which record a wait waits for, recording again, times, and misuse.

package host

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/cudart"
	"github.com/dagrun/dagrun/dag"
)

func TestAWaitIsForTheRecordSubmittedBeforeIt(t *testing.T) {
	first, second := newGate(t), newGate(t)
	b := newBench(t, Options{}, first.hold, second.hold)
	s, u := b.stream(), b.stream()
	e := b.event(false)
	require.NoError(t, b.submit(
		b.kernel(s, "call", scalar(0)), record(s, e), wait(u, e), b.kernel(u, "noop"),
		b.kernel(s, "call", scalar(1)), record(s, e),
	))
	for _, s := range []*stream{s, u} {
		idle, err := s.Query()
		require.NoError(t, err)
		require.False(t, idle)
	}
	first.open()
	require.NoError(t, u.Synchronize(context.Background()), "the wait took the first record")
	done, err := e.Query()
	require.NoError(t, err)
	require.False(t, done, "the event stands at the second")
	second.open()
	require.NoError(t, e.Synchronize(context.Background()))
	done, err = e.Query()
	require.NoError(t, err)
	require.True(t, done)
}

func TestRecordOnAnotherStreamMovesTheEvent(t *testing.T) {
	held := newGate(t)
	b := newBench(t, Options{}, held.hold)
	s, u, v := b.stream(), b.stream(), b.stream()
	e := b.event(true)
	require.NoError(t, b.submit(b.kernel(s, "call", scalar(0)), record(s, e), wait(v, e), record(u, e)))
	require.NoError(t, e.Synchronize(context.Background()), "recorded on the idle stream")
	idle, err := v.Query()
	require.NoError(t, err)
	require.False(t, idle, "its wait took the record on the held stream")
	held.open()
	require.NoError(t, v.Synchronize(context.Background()))
}

func TestEventNeverRecorded(t *testing.T) {
	b := newBench(t, Options{})
	s := b.stream()
	e := b.event(true)
	require.NoError(t, b.submit(wait(s, e), b.kernel(s, "noop")))
	require.NoError(t, s.Synchronize(context.Background()), "such a wait does nothing")
	done, err := e.Query()
	require.NoError(t, err)
	require.True(t, done)
	require.NoError(t, e.Synchronize(context.Background()))
	_, err = e.Since(e)
	requireError(t, err, invalidHandle, "the event was never recorded")
}

func TestTimes(t *testing.T) {
	held := newGate(t)
	var from, to time.Time
	b := newBench(t, Options{Devices: 2}, held.hold, func() { from = time.Now() }, func() { to = time.Now() })
	s := b.stream()
	a, z, untimed := b.event(true), b.event(true), b.event(false)
	require.NoError(t, b.submit(
		record(s, a), b.kernel(s, "call", scalar(1)), b.kernel(s, "call", scalar(0)), b.kernel(s, "call", scalar(2)), record(s, z), record(s, untimed)))
	_, err := z.Since(a)
	requireError(t, err, notReady, "cuEventElapsedTime")
	held.open()
	require.NoError(t, s.Synchronize(context.Background()))
	us, err := z.Since(a)
	require.NoError(t, err)
	require.GreaterOrEqual(t, us, float64(to.Sub(from).Nanoseconds())/1e3)
	back, err := a.Since(z)
	require.NoError(t, err)
	require.Equal(t, -us, back)
	_, err = untimed.Since(a)
	requireError(t, err, invalidHandle, "the event is not timed")
	other, err := b.NewEvent(1, true)
	require.NoError(t, err)
	_, err = a.Since(other)
	requireError(t, err, invalidHandle, "the events belong to different devices")
	requireError(t, b.submit(record(s, other)), invalidHandle, "an event of device 1 cannot be recorded on a stream of device 0")
	require.NoError(t, b.submit(wait(b.streamOn(1, dag.Normal), a)), "waits cross devices")
	require.NoError(t, other.Close())
	require.NoError(t, other.Close(), "a second time does nothing")
	_, err = other.Query()
	requireError(t, err, invalidHandle, "the event is closed")
	requireError(t, b.submit(record(s, other)), invalidHandle, "the event is closed")
	requireError(t, b.submit(wait(s, other)), invalidHandle, "the event is closed")
}

func TestClosedEventStillHolds(t *testing.T) {
	held := newGate(t)
	b := newBench(t, Options{}, held.hold)
	s, u := b.stream(), b.stream()
	e, err := b.NewEvent(0, false)
	require.NoError(t, err)
	require.NoError(t, b.submit(b.kernel(s, "call", scalar(0)), record(s, e), wait(u, e)))
	require.NoError(t, e.Close())
	idle, err := u.Query()
	require.NoError(t, err)
	require.False(t, idle)
	held.open()
	require.NoError(t, u.Synchronize(context.Background()))
}

func TestSynchronizeEndsWithItsContext(t *testing.T) {
	held := newGate(t)
	b := newBench(t, Options{}, held.hold)
	s := b.stream()
	require.NoError(t, b.submit(b.kernel(s, "call", scalar(0))))
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() { ended <- s.Synchronize(ctx) }()
	cancel()
	require.ErrorIs(t, <-ended, context.Canceled)
	held.open()
	require.NoError(t, s.Synchronize(context.Background()))
	s.queue.mu.Lock() // the worker that woke this goroutine may still hold it, and writes waiting before it lets go
	defer s.queue.mu.Unlock()
	require.Zero(t, s.queue.waiting.Load())
}

func TestForeignHandles(t *testing.T) {
	b, other := newBench(t, Options{}), newBench(t, Options{})
	s, u := b.stream(), other.stream()
	for _, c := range []cudart.Command{
		b.kernel(u, "noop"), other.kernel(s, "noop"), record(s, other.event(false)), wait(s, nil), {Kind: cudart.LaunchKernel, Stream: s},
	} {
		_, err := b.Encode([]cudart.Command{c}, cudart.ListOptions{})
		requireError(t, err, invalidHandle, "belongs to another platform")
	}
	_, err := b.Encode(nil, cudart.ListOptions{Origin: u})
	requireError(t, err, invalidHandle, "")
	requireError(t, b.submit(b.kernel(nil, "noop")), invalidHandle, "the command has no stream")
	var e *cudart.Error
	require.True(t, errors.As(err, &e))
}
