// ReplayThen: replays with their own input and result, for services. Several can be in flight; results come in order.

package engine

import (
	"context"
	"errors"
	"fmt"

	"github.com/dagrun/dagrun/dag"
)

// Host returns the memory of a host buffer in this replay: its input before the replay, its result after it.
func (t *Turn) Host(buffer dag.BufferID) []byte {
	if t == nil || !t.program.isBuffer(int32(buffer)) {
		return nil
	}
	b := &t.program.graph.Buffers[buffer]
	if b.Place != dag.Host {
		return nil
	}
	return t.program.platform.HostBytes(t.in.memory.address[buffer], b.Bytes)
}

// ReplayThen submits one replay and returns without waiting for it.
func (p *Program) ReplayThen(ctx context.Context, before func(*Turn), then func(*Turn, error)) error {
	if err := p.usable(ctx); err != nil {
		return err
	}
	switch {
	case then == nil:
		return errors.New("ReplayThen needs a function to call with the result")
	}
	if p.turns.queue == nil {
		p.turns.start()
	}
	in := p.instances[p.next]
	t := &in.turn
	select {
	case <-t.idle:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	submitted := false
	defer func() {
		if !submitted { // an error, or before panicked
			t.idle <- struct{}{}
		}
	}()
	if in.loose { // a Replay may still read what before will write
		if err := in.streams[0].Synchronize(ctx); err != nil {
			return err
		}
		in.loose = false
	}
	t.Number, t.then = p.turns.number, then
	if before != nil {
		before(t)
	}
	if err := p.replay(ctx, in); err != nil {
		return err
	}
	submitted = true
	p.turns.number++
	p.turns.queue <- t
	return nil
}

// start makes the goroutine that waits for turns. It ends with Close.
func (q *turns) start() {
	p := q.program
	q.queue = make(chan *Turn, len(p.instances))
	for _, in := range p.instances {
		in.turn = Turn{program: p, in: in, idle: make(chan struct{}, 1)}
		in.turn.idle <- struct{}{}
	}
	p.callbacks.Go(q.finishAll)
}

// finishAll waits for turns in order until Close. If a then ends the goroutine (runtime.Goexit, as a failing test does), another
// goroutine continues with the next turn.
func (q *turns) finishAll() {
	ended := false
	defer func() {
		if !ended {
			q.program.callbacks.Go(q.finishAll)
		}
	}()
	for t := range q.queue {
		q.finish(t)
	}
	ended = true
}

func (q *turns) finish(t *Turn) {
	defer func() { t.idle <- struct{}{} }()
	err := t.in.streams[0].Synchronize(context.Background())
	if err == nil {
		err = t.in.run.failure()
	}
	if err != nil {
		err = fmt.Errorf("replay %d: %w", t.Number, err)
		q.failed.Add(1)
	}
	q.finished.Add(1)
	t.then(t, err)
}

// end lets the goroutine finish the turns in flight and end.
func (q *turns) end() {
	if q.queue != nil {
		close(q.queue)
	}
}
