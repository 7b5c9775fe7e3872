// Turns: replays of a service, each with its own input and its own result, in order, several on their way at once. Plans nothing.

package runtime

import (
	"context"
	"fmt"

	"github.com/dagrun/dagrun/dag"
)

// Turn is one replay of ReplayThen and the host buffers it uses. It is valid inside the functions it is given to.
type Turn struct {
	// Number counts the turns of a program from 0.
	Number  uint64
	program *Program
	in      *instance
	then    func(*Turn, error)
	idle    chan struct{} // holds a token while no turn uses the instance
}

// Host returns the memory that this replay's host buffer has: input before the replay, result after it.
func (t *Turn) Host(buffer int32) []byte {
	b := &t.program.graph.Buffers[buffer]
	if b.Place != dag.Host {
		return nil
	}
	return t.program.platform.HostBytes(t.in.memory.address[buffer], b.Bytes)
}

// ReplayThen submits one replay and returns without waiting for it. before, which may be nil, runs first, on the caller's goroutine,
// and writes the replay's input; then runs once the replay has finished, with its error, and reads the result. The calls of then
// come one at a time, in the order of the replays, on a goroutine of the program's own.
//
// With Options.Inflight K, up to K turns are on their way: each has buffers of its own, so the input of the next is written while
// others compute. ReplayThen waits where the buffers whose turn it is are still in use, by a replay or by a then that has not
// returned, and gives up when the context ends. A then must not call the program's methods, Counters apart. Nothing is allocated per turn
// but by before and then themselves.
func (p *Program) ReplayThen(ctx context.Context, before func(*Turn), then func(*Turn, error)) error {
	if p.turns == nil {
		p.startTurns()
	}
	in := p.instances[p.next]
	t := &in.turn
	select {
	case <-t.idle:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if in.loose { // a Replay may still read what before is to write
		if err := in.streams[0].Synchronize(ctx); err != nil {
			t.idle <- struct{}{}
			return err
		}
		in.loose = false
	}
	t.Number, t.then = p.turnNumber, then
	if before != nil {
		before(t)
	}
	if err := p.replay(in); err != nil {
		t.idle <- struct{}{}
		return err
	}
	p.turnNumber++
	p.turns <- t
	return nil
}

// startTurns makes the goroutine that waits for turns. It ends with Close.
func (p *Program) startTurns() {
	p.turns = make(chan *Turn, len(p.instances))
	for _, in := range p.instances {
		in.turn = Turn{program: p, in: in, idle: make(chan struct{}, 1)}
		in.turn.idle <- struct{}{}
	}
	p.callbacks.Go(func() {
		for t := range p.turns {
			err := t.in.streams[0].Synchronize(context.Background())
			if err != nil {
				err = fmt.Errorf("replay %d: %w", t.Number, err)
				p.failed.Add(1)
			}
			p.finished.Add(1)
			t.then(t, err)
			t.idle <- struct{}{}
		}
	})
}

// endTurns lets the goroutine finish what is on its way.
func (p *Program) endTurns() {
	if p.turns != nil {
		close(p.turns)
	}
}

// await waits until no turn uses an instance, its then included.
func (in *instance) await(ctx context.Context) error {
	if in.turn.idle == nil {
		return nil
	}
	select {
	case <-in.turn.idle:
		in.turn.idle <- struct{}{}
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
