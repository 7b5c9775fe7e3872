// Waiting for streams and events.

package driver

import (
	"context"
	"runtime"
	"time"
)

// shortestPause is how long wait pauses at least between two queries. Before that is a small enough part of the time waited, it does not pause at all.
const shortestPause = 100 * time.Microsecond

// wait waits for a stream or an event. If ctx can end, it polls at growing intervals, each at most a 512th of the time waited so far, and
// returns the context's error if that comes first.
func (p *Platform) wait(ctx context.Context, d *device, synchronize, query function, handle uintptr) error {
	if ctx == nil || ctx.Done() == nil {
		s, err := p.sequence(d)
		if err != nil {
			return err
		}
		defer s.release()
		s.call(synchronize, handle)
		return s.run()
	}
	began := time.Now()
	for {
		if err := ctx.Err(); err != nil {
			return context.Cause(ctx)
		}
		done, err := p.query(d, query, handle)
		if done || err != nil {
			return err
		}
		runtime.Gosched() // a thread that pauses still counts as running Go code
		if length := min(time.Since(began)/512, time.Millisecond); length >= shortestPause {
			pause(length)
		}
	}
}

// query asks whether a stream or an event is done.
func (p *Platform) query(d *device, f function, handle uintptr) (bool, error) {
	s, err := p.sequence(d)
	if err != nil {
		return false, err
	}
	defer s.release()
	s.call(f, handle)
	switch code, failed := s.callAll(); code {
	case 0:
		return true, nil
	case codeNotReady:
		return false, nil
	default:
		return false, d.fail(p.lib, failed, code)
	}
}
