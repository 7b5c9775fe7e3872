// Tests of capture: the driver's rules, with its error names.

package host

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/cudart"
)

func TestCaptureRules(t *testing.T) {
	type bag struct {
		*bench
		s, u, v *stream
		e, f    cudart.Event
	}
	work := func(b *bag, s *stream, label string) cudart.Command {
		c := b.kernel(s, "noop")
		c.Label = label
		return c
	}
	for _, c := range []struct {
		name string
		do   func(b *bag) error
		code status
		text string
		end  status // result of ending the capture afterwards; 0: success
	}{
		{"synchronize", func(b *bag) error { return b.s.Synchronize(context.Background()) },
			captureUnsupported, "cuStreamSynchronize", captureInvalidated},
		{"query", func(b *bag) error { _, err := b.s.Query(); return err }, captureUnsupported, "cuStreamQuery", captureInvalidated},
		{"synchronize a forked stream", func(b *bag) error {
			require.NoError(b, b.submit(record(b.s, b.e), wait(b.u, b.e)))
			return b.u.Synchronize(context.Background())
		}, captureUnsupported, "stream 1 is capturing", captureInvalidated},
		{"synchronize a captured event", func(b *bag) error {
			require.NoError(b, b.submit(record(b.s, b.e)))
			return b.e.Synchronize(context.Background())
		}, capturedEvent, "cuEventSynchronize", 0},
		{"query a captured event", func(b *bag) error {
			require.NoError(b, b.submit(record(b.s, b.e)))
			_, err := b.e.Query()
			return err
		}, capturedEvent, "cuEventQuery", 0},
		{"begin twice", func(b *bag) error { return b.s.BeginCapture() }, illegalState, "stream 0 is capturing", 0},
		{"end on another stream", func(b *bag) error { _, err := b.v.EndCapture(cudart.GraphOptions{}); return err },
			illegalState, "stream 2 is not capturing", 0},
		{"end on a forked stream", func(b *bag) error {
			require.NoError(b, b.submit(record(b.s, b.e), wait(b.u, b.e)))
			_, err := b.u.EndCapture(cudart.GraphOptions{})
			return err
		}, captureUnmatched, "the capture began on stream 0", captureInvalidated},
		{"wait for what was not captured", func(b *bag) error {
			require.NoError(b, b.submit(record(b.v, b.e)))
			return b.submit(wait(b.s, b.e))
		}, captureIsolation, `node "wait": cuStreamWaitEvent`, captureInvalidated},
		{"go on after an error", func(b *bag) error {
			require.Error(b, b.s.Synchronize(context.Background()))
			return b.submit(work(b, b.s, "late"))
		}, captureInvalidated, `node "late": cuLaunchKernel`, captureInvalidated},
		{"merge two captures", func(b *bag) error {
			require.NoError(b, b.v.BeginCapture())
			require.NoError(b, b.submit(work(b, b.v, "other"), record(b.v, b.e)))
			err := b.submit(wait(b.s, b.e))
			_, other := b.v.EndCapture(cudart.GraphOptions{})
			requireError(b, other, captureInvalidated, "")
			return err
		}, captureMerge, `node "wait"`, captureInvalidated},
		{"leave a fork unjoined", func(b *bag) error {
			require.NoError(b, b.submit(record(b.s, b.e), wait(b.u, b.e), work(b, b.u, "loose")))
			return nil
		}, 0, "", captureUnjoined},
		{"join before the fork's last work", func(b *bag) error {
			require.NoError(b, b.submit(record(b.s, b.e), wait(b.u, b.e), work(b, b.u, "a"), record(b.u, b.f), work(b, b.u, "b"), wait(b.s, b.f)))
			return nil
		}, 0, "", captureUnjoined},
		{"fork and join", func(b *bag) error {
			return b.submit(work(b, b.s, "a"), record(b.s, b.e), wait(b.u, b.e), work(b, b.u, "b"), record(b.u, b.f), wait(b.s, b.f))
		}, 0, "", 0},
		{"a fork without work", func(b *bag) error { return b.submit(work(b, b.s, "a"), record(b.s, b.e), wait(b.u, b.e)) }, 0, "", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := newBench(t, Options{})
			b := &bag{p, p.stream(), p.stream(), p.stream(), p.event(false), p.event(false)}
			require.NoError(t, b.s.BeginCapture())
			err := c.do(b)
			if c.code == 0 {
				require.NoError(t, err)
			} else {
				requireError(t, err, c.code, c.text)
			}
			g, err := b.s.EndCapture(cudart.GraphOptions{})
			if c.end == 0 {
				require.NoError(t, err)
				require.NoError(t, g.Close())
			} else {
				requireError(t, err, c.end, "cuStreamEndCapture")
				require.Nil(t, g)
			}
			for _, s := range []*stream{b.s, b.u, b.v} {
				require.NoError(t, s.Synchronize(context.Background()), "out of capture")
			}
		})
	}
}

func TestEventAfterItsCapture(t *testing.T) {
	b := newBench(t, Options{})
	s, u := b.stream(), b.stream()
	e := b.event(false)
	require.NoError(t, s.BeginCapture())
	require.NoError(t, b.submit(record(s, e)))
	g, err := s.EndCapture(cudart.GraphOptions{})
	require.NoError(t, err)
	require.NoError(t, g.Close())
	requireError(t, b.submit(wait(u, e)), capturedEvent, "its capture has ended")
	require.NoError(t, b.submit(record(s, e), wait(u, e)))
	require.NoError(t, e.Synchronize(context.Background()), "recorded anew")
}

func TestDeviceSynchronizeWhileCapturing(t *testing.T) {
	b := newBench(t, Options{})
	s := b.stream()
	require.NoError(t, s.BeginCapture())
	requireError(t, b.Synchronize(context.Background(), 0), captureUnsupported, "cuCtxSynchronize")
	g, err := s.EndCapture(cudart.GraphOptions{})
	require.NoError(t, err)
	require.Zero(t, g.Nodes())
	require.NoError(t, g.Launch(s))
	require.NoError(t, b.Synchronize(context.Background(), 0))
	require.NoError(t, g.Close())
	legacy, err := b.AdoptStream(0)
	require.NoError(t, err)
	requireError(t, legacy.(*stream).BeginCapture(), captureUnsupported, "the default stream cannot capture")
	require.NoError(t, legacy.Close())
}

func TestListCapture(t *testing.T) {
	b := newBench(t, Options{})
	s, u := b.stream(), b.stream()
	e := b.event(false)
	d := b.alloc(64)
	loose := b.list(record(s, e), wait(u, e), b.kernel(u, "inc", pointer(d, 64)))
	_, err := loose.Capture(cudart.GraphOptions{Origin: s})
	requireError(t, err, captureUnjoined, `cuStreamEndCapture: CUDA_ERROR_STREAM_CAPTURE_UNJOINED (904): capturing stream has unjoined work: `+
		`nothing waits for node "inc", the last on stream 1`)
	_, err = loose.Capture(cudart.GraphOptions{})
	requireError(t, err, invalidHandle, "a capture needs an origin stream of this platform")
	require.NoError(t, loose.Submit(), "the streams run again, the event is recorded again")
	gone, err := b.NewEvent(0, false)
	require.NoError(t, err)
	l := b.list(b.kernel(s, "noop"), record(s, gone))
	require.NoError(t, gone.Close())
	_, err = l.Capture(cudart.GraphOptions{Origin: s})
	requireError(t, err, invalidHandle, `node "record": cuEventRecord`)
	require.NoError(t, b.Synchronize(context.Background(), 0))
}

// What a list submits to streams that do not join its capture runs at once.
func TestStreamsOutsideACaptureRun(t *testing.T) {
	ran := make(chan struct{})
	b := newBench(t, Options{}, func() { close(ran) })
	s, u := b.stream(), b.stream()
	g, err := b.list(b.kernel(s, "noop"), b.kernel(u, "call", scalar(0))).Capture(cudart.GraphOptions{Origin: s})
	require.NoError(t, err)
	require.Equal(t, 1, g.Nodes())
	<-ran
	require.NoError(t, g.Close())
}

// A capture that is no longer valid takes neither commands nor graphs.
func TestWhatAnInvalidCaptureRefuses(t *testing.T) {
	b := newBench(t, Options{})
	s := b.stream()
	e := b.event(false)
	inner, err := b.list(b.kernel(s, "noop")).Capture(cudart.GraphOptions{Origin: s})
	require.NoError(t, err)
	require.NoError(t, s.BeginCapture())
	_, err = s.Query()
	requireError(t, err, captureUnsupported, "stream 0 is capturing")
	for _, call := range []func() error{
		func() error { return inner.Launch(s) }, func() error { return b.submit(b.kernel(s, "noop")) }, func() error { return b.submit(record(s, e)) },
		func() error { return b.submit(wait(s, e)) },
	} {
		requireError(t, call(), captureInvalidated, "")
	}
	_, err = s.EndCapture(cudart.GraphOptions{})
	requireError(t, err, captureInvalidated, "")
	require.NoError(t, inner.Launch(s), "the stream runs again")
	require.NoError(t, s.Synchronize(context.Background()))
	require.NoError(t, inner.Close())
}

func TestGraphInsideACapture(t *testing.T) {
	b := newBench(t, Options{})
	s, u := b.stream(), b.stream()
	d := b.alloc(64)
	h, f := b.host(64)
	inner, err := b.list(b.kernel(s, "inc", pointer(d, 64)), b.kernel(s, "inc", pointer(d, 64))).Capture(cudart.GraphOptions{Origin: s})
	require.NoError(t, err)
	require.NoError(t, u.BeginCapture())
	require.NoError(t, b.submit(cudart.Command{Kind: cudart.SetMemory, Stream: u, Dst: d, Bytes: 64, Width: 1}))
	require.NoError(t, inner.Launch(u))
	require.NoError(t, b.submit(toHost(u, h, d, 64)))
	outer, err := u.EndCapture(cudart.GraphOptions{})
	require.NoError(t, err)
	for range 2 {
		require.NoError(t, outer.Launch(s))
		require.NoError(t, s.Synchronize(context.Background()))
		require.Equal(t, float32(2), f[0])
	}
	require.NoError(t, inner.Close())
	require.NoError(t, outer.Close())
}
