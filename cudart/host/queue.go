// A stream's queue: entries in submission order, served by one worker at a time.

package host

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/dagrun/dagrun/cudart"
	"github.com/dagrun/dagrun/dag"
)

// maxQueued is how many entries a queue holds before Submit waits, like the driver after about a thousand launches.
const maxQueued = 1 << 14

// quantum is how many entries of one queue a worker serves while others are ready.
const quantum = 16

// mark is a place in a queue. It is reached when all entries before it are done. Because queues are in order, a record needs no entry, and a
// wait only stores the place that the event had when the wait was submitted; neither allocates memory.
type mark struct {
	queue *queue
	place uint64
}

func (m mark) reached() bool { return m.queue == nil || m.queue.done.Load() >= m.place }

// entry is one thing to do. The queue waits until wait is reached, then does whatever is not nil.
type entry struct {
	wait    mark
	command *command
	event   *event // a timed event: store the time if version is still its last record
	version uint64
	graph   *graph
	table   *table
}

// waiter is notified when a place is reached: a queue that is stopped at a wait, or a goroutine.
type waiter struct {
	place uint64
	queue *queue
	wake  chan struct{}
}

type queue struct {
	platform *Platform
	device   *device
	priority dag.Priority
	id       int32
	handle   uintptr
	sequence sequence // of the order checker
	closed   atomic.Bool

	mu      sync.Mutex
	ring    []entry // a power of two
	tail    uint64  // entries submitted
	active  bool    // a worker serves the queue or will do so, or the queue is stopped at a wait
	waiters []waiter

	waiting   atomic.Int32  // len(waiters)
	done      atomic.Uint64 // entries done; only the worker that serves the queue changes it
	recording atomic.Pointer[capture]
	frontier  []int32 // while capturing: the nodes that the next one depends on; guarded by Platform.capture
	rank      uint64  // while timing is perturbed: the highest is served first; guarded by pool.mu
}

func (q *queue) submitted() uint64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.tail
}

func (q *queue) capturing() bool { return q.recording.Load() != nil }

// batch collects idle queues that got work, so that workers are woken once for many commands.
type batch struct {
	pool   *pool
	queues []*queue
}

func (b *batch) flush() {
	if len(b.queues) > 0 {
		b.pool.ready(b.queues)
		b.queues = b.queues[:0]
	}
}

// submit appends an entry and returns the place after it.
func (q *queue) submit(e *entry, b *batch) mark {
	q.mu.Lock()
	for q.tail-q.done.Load() >= maxQueued {
		room := q.tail - maxQueued/2
		q.mu.Unlock()
		b.flush()
		q.finish(context.Background(), room)
		q.mu.Lock()
	}
	if q.tail-q.done.Load() == uint64(len(q.ring)) {
		q.grow()
	}
	q.ring[q.tail&uint64(len(q.ring)-1)] = *e
	q.tail++
	m := mark{q, q.tail}
	wake := !q.active
	q.active = true
	q.mu.Unlock()
	if wake {
		b.queues = append(b.queues, q)
	}
	return m
}

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

// serve runs entries until the queue is empty, is stopped at a wait, or should yield to another.
func (q *queue) serve(w *worker) {
	for served := 0; ; {
		q.mu.Lock()
		next, limit, ring := q.done.Load(), q.tail, q.ring
		if next == limit {
			q.active = false
			q.mu.Unlock()
			return
		}
		q.mu.Unlock()
		for ; next < limit; next++ {
			e := &ring[next&uint64(len(ring)-1)]
			if !e.wait.reached() && e.wait.queue.notify(waiter{place: e.wait.place, queue: q}) {
				return
			}
			if e.graph != nil {
				if !e.graph.begin(q, e.table, w) {
					return // the worker that runs the graph's last node continues here
				}
			} else if e.command != nil {
				e.command.execute(w)
			} else if e.event != nil {
				e.event.stamp(e.version)
			}
			q.complete(next+1, w)
			if served++; w.pool.shouldYield(q.priority, served) {
				w.pool.ready(w.one(q))
				return
			}
		}
	}
}

// complete marks all entries before a place as done and notifies waiters.
func (q *queue) complete(place uint64, w *worker) {
	q.done.Store(place)
	if q.waiting.Load() == 0 {
		return
	}
	q.mu.Lock()
	kept := q.waiters[:0]
	for _, o := range q.waiters {
		switch {
		case o.place > place:
			kept = append(kept, o)
		case o.queue != nil:
			w.woken = append(w.woken, o.queue)
		default:
			o.wake <- struct{}{}
		}
	}
	clear(q.waiters[len(kept):])
	q.waiters = kept
	q.waiting.Store(int32(len(kept)))
	q.mu.Unlock()
	if len(w.woken) > 0 {
		w.pool.ready(w.woken)
		w.woken = w.woken[:0]
	}
}

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

// stream is a handle of a queue.
type stream struct {
	queue   *queue
	adopted bool
	closed  atomic.Bool
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

// Synchronize implements [cudart.Stream].
func (s *stream) Synchronize(ctx context.Context) error {
	const call = "cuStreamSynchronize"
	if err := s.check(call); err != nil {
		return err
	}
	q := s.queue
	if err := q.refuseCapture(call); err != nil {
		return err
	}
	c := q.platform.order.stands(q)
	if err := q.finish(ctx, q.submitted()); err != nil {
		return err
	}
	q.platform.order.waited(c)
	return q.device.check(call)
}

// Query implements [cudart.Stream].
func (s *stream) Query() (bool, error) {
	const call = "cuStreamQuery"
	if err := s.check(call); err != nil {
		return false, err
	}
	if err := s.queue.refuseCapture(call); err != nil {
		return false, err
	}
	c := s.queue.platform.order.stands(s.queue)
	if !s.queue.here().reached() {
		return false, nil
	}
	s.queue.platform.order.waited(c)
	return true, s.queue.device.check(call)
}

// Close implements [cudart.Stream]. Work already submitted still runs.
func (s *stream) Close() error {
	if s.closed.Swap(true) {
		return nil
	}
	s.queue.platform.streams.Add(-1)
	if !s.adopted {
		s.queue.closed.Store(true)
		s.queue.platform.order.retire(s.queue.sequence)
		s.queue.platform.prune()
	}
	return nil
}

var _ cudart.Stream = (*stream)(nil)
