// Replays that learning measures or times, by whatever way the program replays. They count: nothing is restored.

package engine

import (
	"context"
	"errors"
	"time"

	"github.com/dagrun/dagrun/runtime/internal/spans"
)

// TraceCounted replays n times with a timed event before and after every node, and returns how long the first took too. The replays count:
// nothing is restored.
func (t *Trials) TraceCounted(ctx context.Context, n, done, total int, progress func(stage string, done, total int)) (all []*spans.TracedReplay,
	first time.Duration, err error) {
	began, p := time.Now(), t.program
	traces := &tracer{program: p, in: p.instances[0]}
	defer func() {
		t.tracing.Store(nil)
		err = errors.Join(err, traces.close())
	}()
	if err := traces.prepare(); err != nil {
		return nil, 0, err
	}
	t.tracing.Store(traces)
	for i := range n {
		if progress != nil {
			progress(StageLearn, done+i, total)
		}
		p.replays.Add(1)
		p.latest.Store(traces.in)
		replay, err := traces.replay(ctx)
		if err != nil {
			t.KeepRunning()
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
// plans.
func (t *Trials) Running() []string {
	if t == nil {
		return nil
	}
	if stuck := t.stuck.Load(); stuck != nil {
		return *stuck
	}
	traces := t.tracing.Load()
	if traces == nil {
		if t.learning.Load() {
			if tells, ok := t.program.platform.(TellsRunning); ok {
				return tells.Running()
			}
		}
		return nil
	}
	var names []string
	for i := range traces.before {
		if traces.before[i] == nil {
			continue
		}
		begun, err := traces.before[i].Query()
		if err != nil || !begun {
			continue
		}
		if ended, err := traces.after[i].Query(); err == nil && !ended {
			names = append(names, t.program.graph.Nodes[i].Name)
		}
	}
	return names
}

// TellsRunning is a platform that knows at any time which nodes are running.
type TellsRunning interface{ Running() []string }

// KeepRunning notes which nodes are running, for Running.
func (t *Trials) KeepRunning() {
	if t.stuck.Load() == nil {
		names := t.Running()
		t.stuck.Store(&names)
	}
}

// Trial returns the round of replays that learning is timing.
func (t *Trials) Trial() *Trial {
	if t == nil {
		return nil
	}
	return t.trial.Load()
}

// begin notes that a round of replays begins. The returned function notes that it has ended, unless there is an error.
func (t *Trials) begin(replays int) (end func(err *error)) {
	p := t.program
	t.trial.Store(&Trial{Plan: p.plan, Graph: p.mode != Streams, Threads: p.options.Threads, Overlap: p.overlap, Before: p.replays.Load(),
		Count: replays, Began: time.Now()})
	return func(err *error) {
		if *err == nil {
			t.trial.Store(nil)
		}
	}
}

// RecordCounted replays up to n times while CUPTI records. ran is how many replays there were: fewer if the records of one cannot be mapped to
// nodes, for the reason that is returned. Recording is off afterwards, because it slows down launches.
func (t *Trials) RecordCounted(ctx context.Context, n, done, total int, progress func(stage string, done, total int)) (all []*spans.TracedReplay, ran int,
	reason string, err error) {
	p := t.program
	recorder, in := p.options.Recorder, p.instances[0]
	if err := recorder.Enable(); err != nil {
		return nil, 0, err.Error(), nil
	}
	defer func() {
		if offErr := recorder.Disable(); offErr != nil && reason == "" {
			reason = offErr.Error()
		}
	}()
	r, err := newRecording(p, in)
	if err != nil {
		return nil, 0, "", err
	}
	defer func() { err = errors.Join(err, r.close()) }()
	p.dirty = true
	for range n {
		if ctx.Err() != nil {
			return nil, ran, "", context.Cause(ctx)
		}
		if progress != nil {
			progress(StageLearn, done+ran, total)
		}
		end := t.begin(1)
		p.replays.Add(1)
		p.latest.Store(in)
		records, us, reason, err := r.replay(ctx)
		end(&err)
		if err != nil {
			return nil, ran, "", err
		}
		ran++
		if reason == "" {
			if err := r.match(records); err != nil {
				reason = err.Error()
			}
		}
		if reason != "" {
			return all, ran, reason, nil
		}
		all = append(all, spans.ByRecords(r.spans(records), us))
	}
	return all, ran, "", nil
}

// TimeReplays replays n times as fast as it goes and returns the microseconds of one.
func (t *Trials) TimeReplays(ctx context.Context, n int) (us float64, err error) {
	defer t.begin(n)(&err)
	p, start := t.program, time.Now()
	if err := p.replayTimes(ctx, n, func(int) {}); err != nil {
		return 0, err
	}
	if err := p.Synchronize(ctx); err != nil {
		return 0, err
	}
	return float64(time.Since(start).Nanoseconds()) / 1e3 / float64(n), nil
}

// CanRecord reports whether a Recorder can tell when nodes run.
func (t *Trials) CanRecord() bool { return t.program.options.Recorder != nil && t.program.hosts == nil }

// Begin begins to learn: ways to replay that go out of use are kept until the returned function is called.
func (t *Trials) Begin() (end func() error) {
	t.learning.Store(true)
	t.keeping = true
	return func() error {
		t.learning.Store(false)
		t.keeping = false
		return t.FreeKept()
	}
}

// LoadingTook is how long New took to load kernels.
func (t *Trials) LoadingTook() time.Duration { return t.program.loading }

// Exchange returns what all ranks passed to it, by rank.
func (t *Trials) Exchange(ctx context.Context, own string) ([]string, error) {
	return t.program.options.Exchange(ctx, own)
}

// CanLearn returns why the program cannot learn, or nil.
func (p *Program) CanLearn() error {
	switch {
	case p == nil || p.platform == nil:
		return ErrNoProgram
	case p.closed:
		return ErrClosed
	case p.options.Inflight > 1:
		return errors.New("several replays in flight")
	case p.options.Origin != nil:
		return errors.New("replays are put into the caller's stream")
	case p.options.Unsafe:
		return errors.New("the plan leaves hazards unenforced, so that plans may differ in their results")
	case p.bodies != nil && p.graph.Ranks > 1:
		return errors.New("the pipeline has loops or branches, and several ranks")
	case p.options.DebugProgress:
		return errors.New("progress is tracked for debugging")
	case p.mode == Built:
		return errors.New("the graph is built node by node")
	case p.turns.queue != nil:
		return errors.New("ReplayThen is in use")
	case p.graph.Ranks > 1 && p.options.Exchange == nil:
		return errors.New("several ranks learn together, and Options.Exchange is not set")
	}
	for i := range p.launches {
		if p.launches[i] != p.graph.Nodes[i].Launch {
			return errors.New("nodes have been updated")
		}
	}
	return nil
}
