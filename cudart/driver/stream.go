// Streams: own ones, a caller's, and the bridge to the legacy stream.

package driver

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync/atomic"

	"github.com/dagrun/dagrun/cudart"
	"github.com/dagrun/dagrun/dag"
)

// stream is a CUstream.
type stream struct {
	p      *Platform
	d      *device
	handle uintptr
	bridge *bridge
	owned  bool
	closed atomic.Bool
}

// A bridge connects a stream of our own to the legacy stream, which can neither be captured nor overlap with other streams: our stream waits
// for the legacy stream before the submission, and the legacy stream waits for ours after it.
type bridge struct {
	legacy  uintptr
	in, out *event
}

// NewStream makes a non-blocking stream. If the device has more than two priorities, a normal stream is one step above the lowest, so that
// low is lower.
func (p *Platform) NewStream(number int32, priority dag.Priority) (cudart.Stream, error) {
	d, err := p.device(number)
	if err != nil {
		return nil, err
	}
	s, err := p.newStream(d, priority)
	if err != nil {
		return nil, err
	}
	return s, nil
}

func (p *Platform) newStream(d *device, priority dag.Priority) (*stream, error) {
	s, err := p.sequence(d)
	if err != nil {
		return nil, err
	}
	defer s.release()
	s.call(cuStreamCreateWithPriority, s.out(0), streamNonBlocking, uintptr(uint32(d.priority(priority))))
	if err := s.run(); err != nil {
		return nil, err
	}
	p.live.streams.Add(1)
	return &stream{p: p, d: d, handle: uintptr(s.outs[0]), owned: true}, nil
}

// priority returns the device's number for a priority. Lower numbers mean higher priorities.
func (d *device) priority(priority dag.Priority) int32 {
	switch {
	case priority > 0:
		return d.greatest
	case priority < 0:
		return d.least
	case d.least-d.greatest >= 2:
		return d.least - 1
	}
	return d.least
}

// AdoptStream wraps a CUstream that the caller owns. If dagrun has made nothing on the device yet, it will use the stream's context. The
// legacy stream (0 or CU_STREAM_LEGACY) is replaced by a stream that events connect to it. The per-thread stream is refused, because it is a
// different stream on every thread.
func (p *Platform) AdoptStream(handle uintptr) (cudart.Stream, error) {
	switch handle {
	case 0, streamLegacy:
		s, err := p.bridgeLegacy()
		if err != nil {
			return nil, err
		}
		return s, nil
	case streamPerThread:
		return nil, fmt.Errorf("%w: the per-thread default stream is a different stream on every thread; pass a stream of your own", cudart.ErrUnsupported)
	}
	s, _ := p.sequence(nil)
	defer s.release()
	s.call(cuStreamGetCtx, handle, s.out(0))
	if err := s.run(); err != nil {
		return nil, err
	}
	d, err := p.deviceOf(uintptr(s.outs[0]))
	if err != nil {
		return nil, err
	}
	p.live.streams.Add(1)
	return &stream{p: p, d: d, handle: handle}, nil
}

// deviceOf finds the device of a context and makes the context the one used on it.
func (p *Platform) deviceOf(context uintptr) (*device, error) {
	s := p.sequenceIn(context, nil)
	defer s.release()
	s.call(cuCtxGetDevice, s.out(0))
	if err := s.run(); err != nil {
		return nil, err
	}
	for _, d := range p.devices {
		if d.handle != int32(s.outs[0]) {
			continue
		}
		d.mu.Lock()
		defer d.mu.Unlock()
		switch d.context.Load() {
		case context:
			return d, nil
		case 0:
			return d, p.adoptContext(d, context)
		}
		return nil, fmt.Errorf("%w: the stream belongs to another context of device %d than the one in use; adopt the stream before anything else is made on the device, or create it in the primary context",
			cudart.ErrUnsupported, d.number)
	}
	return nil, fmt.Errorf("%w: the stream's device (%d) is not among this platform's", cudart.ErrNoDevice, int32(s.outs[0]))
}

// bridgeLegacy returns a stream that stands for the legacy stream of the calling thread's context, or of device 0.
func (p *Platform) bridgeLegacy() (*stream, error) {
	d := p.devices[0]
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	s, _ := p.sequence(nil)
	defer s.release()
	s.call(cuCtxGetCurrent, s.out(0))
	if err := s.run(); err != nil {
		return nil, err
	}
	if s.outs[0] != 0 {
		var err error
		if d, err = p.deviceOf(uintptr(s.outs[0])); err != nil {
			return nil, err
		}
	}
	own, err := p.newStream(d, dag.Normal)
	if err != nil {
		return nil, err
	}
	b := &bridge{legacy: streamLegacy}
	if b.in, err = p.newEvent(d, false); err == nil {
		b.out, err = p.newEvent(d, false)
	}
	if err != nil {
		if b.in != nil {
			b.in.Close()
		}
		own.Close()
		return nil, err
	}
	own.bridge = b
	return own, nil
}

// Device returns the device's number.
func (s *stream) Device() int32 { return s.d.number }

// Handle returns the CUstream that work is submitted to.
func (s *stream) Handle() uintptr { return s.handle }

// Synchronize waits until the stream is empty.
func (s *stream) Synchronize(ctx context.Context) error {
	if s.closed.Load() {
		return errStreamClosed
	}
	return s.p.wait(ctx, s.d, cuStreamSynchronize, cuStreamQuery, s.handle)
}

var errStreamClosed = errors.New("the stream is closed")

// Query reports whether the stream is empty.
func (s *stream) Query() (bool, error) {
	if s.closed.Load() {
		return false, errStreamClosed
	}
	return s.p.query(s.d, cuStreamQuery, s.handle)
}

// Close destroys the stream, unless the caller owns it.
func (s *stream) Close() error {
	if s.closed.Swap(true) {
		return nil
	}
	s.p.live.streams.Add(-1)
	if !s.owned {
		return nil
	}
	if s.bridge != nil {
		s.bridge.in.Close()
		s.bridge.out.Close()
	}
	return s.p.dispose(s.d, cuStreamDestroy, s.handle)
}
