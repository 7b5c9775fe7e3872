// A stream's queue: entries in submission order, served by one worker at a time.

package host

import (
	"context"
	"runtime"

	"github.com/dagrun/dagrun/cudart"
)

// maxQueued is how many entries a queue holds before Submit waits, like the driver after about a thousand launches.
const maxQueued = 1 << 14

// quantum is how many entries of one queue a worker serves while others are ready.
const quantum = 16

func (m mark) reached() bool { return m.queue == nil || m.queue.done.Load() >= m.place }

func (q *queue) submitted() uint64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.tail
}

func (q *queue) capturing() bool { return q.recording.Load() != nil }

// grow doubles the ring. A worker may still read entries from the old ring, which no longer changes.
func (q *queue) grow() {
	ring := make([]entry, 2*len(q.ring))
	for i := q.done.Load(); i < q.tail; i++ {
		ring[i&uint64(len(ring)-1)] = q.ring[i&uint64(len(q.ring)-1)]
	}
	q.ring = ring
}

// here returns the place after everything submitted so far.
func (q *queue) here() mark { return mark{q, q.submitted()} }

// notify registers a waiter, unless the place is reached. A registered queue belongs to the worker that wakes it.
func (q *queue) notify(o waiter) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	// complete stores the place before it reads waiting, and here the order is reversed, so at least one of the two sees the other's change.
	q.waiting.Add(1)
	if q.done.Load() >= o.place {
		q.waiting.Add(-1)
		return false
	}
	q.waiters = append(q.waiters, o)
	return true
}

// finish waits until a place is reached, or until the context ends; nil is a context without end.
func (q *queue) finish(ctx context.Context, place uint64) error {
	if ctx == nil {
		ctx = context.Background()
	}
	for range 8 {
		if q.done.Load() >= place {
			return nil
		}
		runtime.Gosched()
	}
	wake := q.platform.wakers.Get().(chan struct{})
	if !q.notify(waiter{place: place, wake: wake}) {
		q.platform.wakers.Put(wake)
		return nil
	}
	select {
	case <-wake:
		q.platform.wakers.Put(wake)
		return nil
	case <-ctx.Done():
	}
	q.mu.Lock()
	for i, o := range q.waiters {
		if o.wake == wake {
			q.waiters = append(q.waiters[:i], q.waiters[i+1:]...)
			q.waiting.Add(-1)
			q.mu.Unlock()
			q.platform.wakers.Put(wake)
			return context.Cause(ctx)
		}
	}
	q.mu.Unlock()
	<-wake // it was reached at the same time
	q.platform.wakers.Put(wake)
	return nil
}

// Device implements [cudart.Stream].
func (s *stream) Device() int32 { return s.queue.device.id }

// Handle implements [cudart.Stream]: a number that AdoptStream of the same platform accepts.
func (s *stream) Handle() uintptr { return s.queue.handle }

// check returns why a call on the stream is not possible.
func (s *stream) check(call string) error {
	if s.closed.Load() || s.queue.closed.Load() {
		return fail(call, invalidHandle, s.queue.device.id, "stream %d is closed", s.queue.id)
	}
	return s.queue.device.check(call)
}

var _ cudart.Stream = (*stream)(nil)
