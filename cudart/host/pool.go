// The pool of workers: chooses which queue or graph node is served next, and shares the work of one kernel.

package host

import (
	"runtime"
	"runtime/debug"
	"slices"
	"time"

	"github.com/dagrun/dagrun/dag"
)

func (t *tasks) len() int { return len(t.items) - t.head }

func (t *tasks) push(x task) {
	if t.head > 0 && len(t.items) == cap(t.items) {
		t.items = t.items[:copy(t.items, t.items[t.head:])]
		t.head = 0
	}
	t.items = append(t.items, x)
}

func (t *tasks) pop() task {
	x := t.items[t.head]
	t.items[t.head] = task{}
	if t.head++; t.head == len(t.items) {
		t.items, t.head = t.items[:0], 0
	}
	return x
}

func level(p dag.Priority) int { return int(p) + 1 }

// one returns a slice with one queue. It is valid until the next call.
func (w *worker) one(q *queue) []*queue {
	w.queue[0] = q
	return w.queue[:]
}

// Running returns the labels of the commands that are running at this moment, in alphabetical order. It works while one of them hangs.
func (p *Platform) Running() []string {
	var labels []string
	for _, w := range p.pool.all {
		if c := w.doing.Load(); c != nil && c.label != "" {
			labels = append(labels, c.label)
		}
	}
	slices.Sort(labels)
	return slices.Compact(labels)
}

// stop ends the workers. There must be no work left.
func (p *pool) stop() {
	p.mu.Lock()
	p.closed = true
	p.wake.Broadcast()
	p.mu.Unlock()
	_ = p.group.Wait() // workers return nil
}

// ready hands queues to the workers.
func (p *pool) ready(queues []*queue) {
	p.mu.Lock()
	for _, q := range queues {
		p.add(level(q.priority), task{queue: q})
	}
	p.mu.Unlock()
}

// add queues a task. The caller holds mu.
func (p *pool) add(l int, t task) {
	p.tasks[l].push(t)
	p.waiting[l].Add(1)
	if p.idle > 0 {
		p.wake.Signal()
	}
}

// take returns the next task of the highest priority. The caller holds mu.
func (p *pool) take() (task, bool) {
	for l := levels - 1; l >= 0; l-- {
		t := &p.tasks[l]
		if t.len() == 0 {
			continue
		}
		if p.random != nil {
			p.unfair(t)
		}
		p.waiting[l].Add(-1)
		return t.pop(), true
	}
	return task{}, false
}

// unfair puts the task with the highest rank first. Ranks are random and rarely change, so that some streams run far ahead of others. That
// shows a missing wait more often than a fair shuffle.
func (p *pool) unfair(t *tasks) {
	best, rank := t.head, uint64(0)
	for i := t.head; i < len(t.items); i++ {
		r := p.random.Uint64()
		if q := t.items[i].queue; q != nil {
			if q.rank == 0 || r%32 == 0 {
				q.rank = r
			}
			r = q.rank
		}
		if r >= rank {
			best, rank = i, r
		}
	}
	t.items[t.head], t.items[best] = t.items[best], t.items[t.head]
}

// shouldYield reports whether the worker should stop serving a queue: at once for a higher priority, and from time to time for other ready
// tasks.
func (p *pool) shouldYield(priority dag.Priority, served int) bool {
	own := level(priority)
	for l := own + 1; l < levels; l++ {
		if p.waiting[l].Load() > 0 {
			return true
		}
	}
	if p.waiting[own].Load() == 0 {
		return false
	}
	return served%quantum == 0 || p.random != nil
}

// delay sometimes lets other workers run first for a while. The caller holds mu.
func (w *worker) delay() {
	w.order ^= w.order << 13
	w.order ^= w.order >> 7
	w.order ^= w.order << 17
	if w.order&1 != 0 {
		return
	}
	w.pool.mu.Unlock()
	for range w.order >> 8 & 31 {
		runtime.Gosched()
	}
	w.pool.mu.Lock()
}

// worthSharing is how long the rest of a command must take to wake other workers for it: waking one takes a few microseconds.
const worthSharing = 30 * time.Microsecond

// split runs n parts: alone if they are few or quick, otherwise together with idle workers.
func (w *worker) split(job part, n int64) *crash {
	if n <= 1 || w.pool.workers == 1 {
		return guard(job, 0, n)
	}
	first := max(1, n/int64(8*w.pool.workers))
	start := time.Now()
	if c := guard(job, 0, first); c != nil {
		return c
	}
	took := time.Since(start)
	rest := float64(took) * float64(n-first) / float64(first)
	if rest < float64(worthSharing) {
		return guard(job, first, n)
	}
	s := &w.share
	s.job, s.parts = job, n
	s.step = max(1, (n-first)/int64(4*w.pool.workers))
	s.panic.Store(nil)
	s.next.Store(first)
	p := w.pool
	p.mu.Lock()
	p.shared = append(p.shared, s)
	for range min(p.idle, int((n-first-1)/s.step)) {
		p.wake.Signal()
	}
	p.mu.Unlock()
	s.work(nil)
	p.mu.Lock()
	p.retire(s)
	p.mu.Unlock()
	s.helpers.Wait()
	s.job = nil
	return s.panic.Load()
}

// retire removes a share from the list. The caller holds mu.
func (p *pool) retire(s *share) {
	for i, o := range p.shared {
		if o == s {
			p.shared[i] = p.shared[len(p.shared)-1]
			p.shared[len(p.shared)-1] = nil
			p.shared = p.shared[:len(p.shared)-1]
			return
		}
	}
}

// work runs parts until none is left. A helper stops earlier if another task waits; helper is nil for the worker that owns the share. work
// reports whether none is left.
func (s *share) work(helper *pool) bool {
	for helper == nil || !helper.busy() {
		lo := s.next.Add(s.step) - s.step
		if lo >= s.parts {
			return true
		}
		if c := guard(s.job, lo, min(lo+s.step, s.parts)); c != nil {
			s.panic.CompareAndSwap(nil, c)
			s.next.Store(s.parts)
			return true
		}
	}
	return false
}

// busy reports whether any task waits for a worker.
func (p *pool) busy() bool {
	for l := range p.waiting {
		if p.waiting[l].Load() > 0 {
			return true
		}
	}
	return false
}

// guard runs parts and returns their panic.
func guard(job part, lo, hi int64) (c *crash) {
	defer func() {
		if v := recover(); v != nil {
			c = newCrash(v)
		}
	}()
	job.part(lo, hi)
	return nil
}

func newCrash(v any) *crash { return &crash{v, debug.Stack()} }
