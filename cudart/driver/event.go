// Events. Those that are not timed have timing disabled, because a time stamp costs a barrier.

package driver

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync/atomic"

	"github.com/dagrun/dagrun/cudart"
)

// event is a CUevent.
type event struct {
	p      *Platform
	d      *device
	handle uintptr
	timed  bool
	closed atomic.Bool
}

// NewEvent makes an event.
func (p *Platform) NewEvent(number int32, timed bool) (cudart.Event, error) {
	d, err := p.device(number)
	if err != nil {
		return nil, err
	}
	e, err := p.newEvent(d, timed)
	if err != nil {
		return nil, err
	}
	return e, nil
}

func (p *Platform) newEvent(d *device, timed bool) (*event, error) {
	s, err := p.sequence(d)
	if err != nil {
		return nil, err
	}
	defer s.release()
	flags := uintptr(eventDisableTiming)
	if timed {
		flags = 0
	}
	s.call(cuEventCreate, s.out(0), flags)
	if err := s.run(); err != nil {
		return nil, err
	}
	p.live.events.Add(1)
	return &event{p: p, d: d, handle: uintptr(s.outs[0]), timed: timed}, nil
}

// Query reports whether the last record has happened. It is true for an event that was never recorded.
func (e *event) Query() (bool, error) {
	if e.closed.Load() {
		return false, errEventClosed
	}
	return e.p.query(e.d, cuEventQuery, e.handle)
}

// Synchronize waits for the last record.
func (e *event) Synchronize(ctx context.Context) error {
	if e.closed.Load() {
		return errEventClosed
	}
	return e.p.wait(ctx, e.d, cuEventSynchronize, cuEventQuery, e.handle)
}

var errEventClosed = errors.New("the event is closed")

// Since returns the microseconds from an earlier event to this one.
func (e *event) Since(earlier cudart.Event) (float64, error) {
	from, ok := earlier.(*event)
	if !ok || from.p != e.p {
		return 0, fmt.Errorf("the earlier event belongs to another platform")
	}
	if from.closed.Load() || e.closed.Load() {
		return 0, errEventClosed
	}
	if !from.timed || !e.timed {
		return 0, fmt.Errorf("%w: to measure the time between two events, both must be timed", cudart.ErrUnsupported)
	}
	s, err := e.p.sequence(e.d)
	if err != nil {
		return 0, err
	}
	defer s.release()
	s.call(cuEventElapsedTime, s.out(0), from.handle, e.handle)
	if err := s.run(); err != nil {
		return 0, err
	}
	return float64(math.Float32frombits(uint32(s.outs[0]))) * 1000, nil
}

// Close destroys the event.
func (e *event) Close() error {
	if e.closed.Swap(true) {
		return nil
	}
	e.p.live.events.Add(-1)
	return e.p.dispose(e.d, cuEventDestroy, e.handle)
}
