// Workers: each takes the next work that is ready, from queues and graphs, and passes on what follows from it.

package host

import (
	"runtime/debug"
	"time"
)

func (w *worker) run() error {
	// A kernel that touches a guard page or freed memory panics instead of ending the process.
	debug.SetPanicOnFault(true)
	p := w.pool
	p.mu.Lock()
	defer p.mu.Unlock()
	for {
		if w.order != 0 {
			w.delay()
		}
		t, ok := p.take()
		switch {
		case ok:
			p.mu.Unlock()
			if t.queue != nil {
				t.queue.serve(w)
			} else {
				t.graph.run(t.node, w)
			}
			p.mu.Lock()
		case len(p.shared) > 0:
			s := p.shared[0]
			s.helpers.Add(1)
			p.mu.Unlock()
			start := time.Now()
			over := s.work(p)
			p.helped.Add(time.Since(start).Nanoseconds())
			p.mu.Lock()
			if over {
				p.retire(s)
			}
			s.helpers.Done()
		case p.closed:
			return nil
		default:
			p.idle++
			p.wake.Wait()
			p.idle--
		}
	}
}

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
