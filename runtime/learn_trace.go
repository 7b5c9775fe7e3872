// Replays for learning: measures the time before and after each node. These replays count.

package runtime

import (
	"context"
	"errors"
	"github.com/dagrun/dagrun/runtime/internal/spans"
	"time"
)

// traceCounted replays n times with a timed event before and after every node, and returns how long the first took too. The replays count:
// nothing is restored.
func (p *Program) traceCounted(ctx context.Context, n, done, total int, progress func(stage string, done, total int)) (all []*spans.TracedReplay, first time.Duration, err error) {
	began := time.Now()
	t := &tracer{program: p, in: p.instances[0]}
	defer func() {
		p.tracing.Store(nil)
		err = errors.Join(err, t.close())
	}()
	if err := t.prepare(); err != nil {
		return nil, 0, err
	}
	p.tracing.Store(t)
	for i := range n {
		if progress != nil {
			progress(StageLearn, done+i, total)
		}
		p.replays.Add(1)
		p.latest.Store(t.in)
		replay, err := t.replay(ctx)
		if err != nil {
			p.keepRunning()
			return nil, 0, err
		}
		if all = append(all, replay); i == 0 {
			first = time.Since(began)
		}
	}
	return all, first, nil
}

// StageLearn is the stage of Options.Progress during the replays of learning.
const StageLearn = "learn from replay"

// Running returns the nodes that are running, such as one that hangs, while learning measures nodes, and on the CPU device also while it compares
// plans. After learning was stopped, it returns those that were running at that moment; nil at any other time.
func (p *Program) Running() []string {
	if p == nil {
		return nil
	}
	if stuck := p.stuck.Load(); stuck != nil {
		return *stuck
	}
	t := p.tracing.Load()
	if t == nil {
		if p.learning.Load() {
			if tells, ok := p.platform.(tellsRunning); ok {
				return tells.Running()
			}
		}
		return nil
	}
	var names []string
	for i := range t.before {
		if t.before[i] == nil {
			continue
		}
		begun, err := t.before[i].Query()
		if err != nil || !begun {
			continue
		}
		if ended, err := t.after[i].Query(); err == nil && !ended {
			names = append(names, p.graph.Nodes[i].Name)
		}
	}
	return names
}

// tellsRunning is a platform that knows at any time which nodes are running.
type tellsRunning interface{ Running() []string }

// keepRunning notes which nodes are running, for Running.
func (p *Program) keepRunning() {
	if p.stuck.Load() == nil {
		names := p.Running()
		p.stuck.Store(&names)
	}
}

// Trial returns the round of replays that learning is timing. After learning was stopped, it returns the one that had not ended; nil at any
// other time.
func (p *Program) Trial() *Trial {
	if p == nil {
		return nil
	}
	return p.trial.Load()
}

// begin notes that a round of replays begins. The returned function notes that it has ended, unless there is an error.
func (p *Program) begin(replays int) (end func(err *error)) {
	p.trial.Store(&Trial{Plan: p.plan, Graph: p.mode != Streams, Threads: p.options.Threads, Overlap: p.overlap, Before: p.replays.Load(), Count: replays, Began: time.Now()})
	return func(err *error) {
		if *err == nil {
			p.trial.Store(nil)
		}
	}
}

// timeReplays replays n times as fast as it goes and returns the microseconds of one.
func (p *Program) timeReplays(ctx context.Context, n int) (us float64, err error) {
	defer p.begin(n)(&err)
	start := time.Now()
	if err := p.replayTimes(ctx, n, func(int) {}); err != nil {
		return 0, err
	}
	if err := p.Synchronize(ctx); err != nil {
		return 0, err
	}
	return float64(time.Since(start).Nanoseconds()) / 1e3 / float64(n), nil
}
