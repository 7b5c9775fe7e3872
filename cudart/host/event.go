// Events: places in queues, and times. A wait uses the place that the event has when the wait is submitted.

package host

import (
	"context"
	"time"

	"github.com/dagrun/dagrun/cudart"
)

// NewEvent implements [cudart.Platform].
func (p *Platform) NewEvent(id int32, timed bool) (cudart.Event, error) {
	d, err := p.device("cuEventCreate", id)
	if err != nil {
		return nil, err
	}
	p.events.Add(1)
	return &event{platform: p, device: d, timed: timed}, nil
}

// check returns why a call on the event is not possible. The caller holds mu.
func (e *event) check(call string) error {
	if e.closed {
		return fail(call, invalidHandle, e.device.id, "the event is closed")
	}
	if e.capture != nil && e.capture.ended {
		return fail(call, invalidValue, e.device.id, "the event was last recorded in a capture, which has ended") // as a GPU answers
	}
	if e.capture != nil {
		return fail(call, capturedEvent, e.device.id, "")
	}
	return e.device.check(call)
}

// last returns the mark and the clock of the last record.
func (e *event) last(call string) (mark, clock, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.mark, e.clock, e.check(call)
}

// record sets the event to a mark.
func (e *event) record(m mark) {
	e.mark = m
	e.capture, e.nodes = nil, e.nodes[:0]
}

// stamp stores the time, unless the event has been recorded again.
func (e *event) stamp(version uint64) {
	e.mu.Lock()
	if e.version == version {
		e.at, e.stamped = time.Now(), version
		e.helped = e.platform.pool.helped.Load()
	}
	e.mu.Unlock()
}

// Query implements [cudart.Event].
func (e *event) Query() (bool, error) {
	m, c, err := e.last("cuEventQuery")
	if err != nil || !m.reached() {
		return false, err
	}
	e.platform.order.waited(c)
	return true, e.device.check("cuEventQuery")
}

// Synchronize implements [cudart.Event].
func (e *event) Synchronize(ctx context.Context) error {
	m, c, err := e.last("cuEventSynchronize")
	if err != nil {
		return err
	}
	if m.queue != nil {
		if err := m.queue.finish(ctx, m.place); err != nil {
			return err
		}
	}
	e.platform.order.waited(c)
	return e.device.check("cuEventSynchronize")
}

// Since implements [cudart.Event].
func (e *event) Since(earlier cudart.Event) (float64, error) {
	const call = "cuEventElapsedTime"
	to, err := e.time(call)
	if err != nil {
		return 0, err
	}
	o, ok := earlier.(*event)
	if !ok || o.platform != e.platform || o.device != e.device {
		return 0, fail(call, invalidHandle, e.device.id, "the events belong to different devices")
	}
	from, err := o.time(call)
	if err != nil {
		return 0, err
	}
	return float64(to.Sub(from).Nanoseconds()) / 1e3, nil
}

// Helped returns the microseconds that workers helped others with their commands between an earlier event and this one. If one command ran in
// between and nothing else, it kept that many more cores busy.
func (e *event) Helped(earlier cudart.Event) (float64, error) {
	if _, err := e.Since(earlier); err != nil {
		return 0, err
	}
	o := earlier.(*event)
	o.mu.Lock()
	from := o.helped
	o.mu.Unlock()
	e.mu.Lock()
	defer e.mu.Unlock()
	return float64(e.helped-from) / 1e3, nil
}

// time returns when the last record happened.
func (e *event) time(call string) (time.Time, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if err := e.check(call); err != nil {
		return time.Time{}, err
	}
	switch {
	case !e.timed:
		untimed := fail(call, invalidHandle, e.device.id, "the event is not timed")
		untimed.Err = cudart.ErrUnsupported
		return time.Time{}, untimed
	case e.version == 0:
		return time.Time{}, fail(call, invalidHandle, e.device.id, "the event was never recorded")
	case !e.mark.reached():
		return time.Time{}, fail(call, notReady, e.device.id, "")
	case e.stamped != e.version:
		return time.Time{}, fail(call, invalidHandle, e.device.id, "the device had a fault before the event")
	}
	return e.at, nil
}

// Close implements [cudart.Event]. Waits already submitted keep the record they wait for.
func (e *event) Close() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return nil
	}
	e.closed = true
	e.platform.events.Add(-1)
	return nil
}
