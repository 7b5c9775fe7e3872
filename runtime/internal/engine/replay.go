// Replay: submitting a prepared program to the device, again and again. Allocates nothing per replay.

package engine

import (
	"context"
	"errors"
	"fmt"
	"runtime"

	"github.com/dagrun/dagrun/cudart"
	"github.com/dagrun/dagrun/dag"
)

// Replay submits the whole program once and returns without waiting for the device.
func (p *Program) Replay(ctx context.Context) error {
	if err := p.usable(ctx); err != nil {
		return err
	}
	in := p.instances[p.next]
	if err := in.await(ctx); err != nil {
		return err
	}
	in.loose = true
	return p.replay(ctx, in)
}

// replay submits in, which is the next instance.
func (p *Program) replay(ctx context.Context, in *instance) error {
	p.next++
	if p.next == len(p.instances) {
		p.next = 0
	}
	p.dirty = true
	p.latest.Store(in)
	p.replays.Add(1) // before it is submitted, because Communicating counts the one that is
	if err := p.submit(ctx, in); err != nil {
		p.replays.Add(^uint64(0))
		return err
	}
	return nil
}

func (p *Program) submit(ctx context.Context, in *instance) error {
	if err := p.beginHosts(ctx, in); err != nil {
		return err
	}
	in.forget()
	if in.graph != nil && p.mode != Streams {
		in.count()
		return in.graph.Launch(in.streams[0])
	}
	return submitList(ctx, in.list)
}

// OnDone calls f once everything replayed so far has finished, with the first error of that work.
func (p *Program) OnDone(f func(error)) error {
	if err := p.usable(context.Background()); err != nil {
		return err
	}
	switch {
	case f == nil:
		return errors.New("OnDone needs a function to call")
	}
	type mark struct {
		event cudart.Event
		list  cudart.List
	}
	var marks []mark
	closeAll := func() {
		for _, m := range marks {
			if m.list != nil {
				m.list.Close()
			}
			m.event.Close()
		}
	}
	for _, in := range p.instances {
		e, err := p.platform.NewEvent(in.streams[0].Device(), false)
		if err != nil {
			closeAll()
			return err
		}
		marks = append(marks, mark{event: e})
		m := &marks[len(marks)-1]
		record := cudart.Command{Kind: cudart.RecordEvent, Stream: in.streams[0], Event: e, Node: -1, Label: "done"}
		if m.list, err = p.platform.Encode([]cudart.Command{record}, cudart.ListOptions{Origin: in.streams[0]}); err == nil {
			err = m.list.Submit()
		}
		if err != nil {
			closeAll()
			return err
		}
	}
	p.callbacks.Go(func() {
		var first error
		for _, m := range marks {
			if err := m.event.Synchronize(context.Background()); err != nil && first == nil {
				first = err
			}
		}
		closeAll()
		if first == nil {
			first = p.hosts.failure()
		}
		f(first)
	})
	return nil
}

// Replays returns how many replays were submitted since the program was created, including warm-up and measurements.
func (p *Program) Replays() uint64 {
	if p == nil {
		return 0
	}
	return p.replays.Load()
}

// Unfinished returns the nodes of the latest replay that had not finished when their progress words were read, in submission order.
func (p *Program) Unfinished() []string {
	if p == nil || len(p.instances) == 0 {
		return nil
	}
	in := p.latest.Load()
	if in == nil {
		in = p.instances[0]
	}
	if in.progress == 0 {
		return nil
	}
	words := p.platform.HostBytes(in.progress, 4*int64(p.graph.Len()))
	var names []string
	for _, c := range in.lowered.commands {
		if c.Node >= 0 && c.Kind != cudart.RecordEvent && c.Kind != cudart.WaitEvent && dag.U32.Load(words, int64(c.Node)) == 0 {
			names = append(names, c.Label)
		}
	}
	return names
}

// last returns the instance of the latest replay, or the first instance if there was no replay.
func (p *Program) last() *instance {
	return p.instances[(p.next+len(p.instances)-1)%len(p.instances)]
}

// Synchronize waits until every replay has finished and every then of ReplayThen has returned.
func (p *Program) Synchronize(ctx context.Context) error {
	if err := p.usable(ctx); err != nil {
		return err
	}
	for _, in := range p.instances {
		if err := in.streams[0].Synchronize(ctx); err != nil {
			return err
		}
		if err := in.await(ctx); err != nil {
			return err
		}
	}
	return p.hosts.failure()
}

// Run replays the program the given number of times and waits.
func (p *Program) Run(ctx context.Context, iterations int) error {
	if err := p.CheckReplays(ctx, "run", iterations, 0); err != nil {
		return err
	}
	if err := p.replayTimes(ctx, iterations, func(done int) { p.report("replay", done, iterations) }); err != nil {
		return err
	}
	return p.Synchronize(ctx)
}

// replayTimes submits replays, and says after each how many there were.
func (p *Program) replayTimes(ctx context.Context, iterations int, report func(done int)) error {
	defer p.keepThread()()
	for i := range iterations {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err := p.Replay(ctx); err != nil {
			return err
		}
		report(i + 1)
	}
	return nil
}

// keepThread makes the caller submit from one thread of the system until it calls what is returned. After the Go scheduler moved it to another,
// the host submits to a GPU more slowly for a while: 64 launches took 191 us (183 to 199) from one thread and 198 (188 to 243) otherwise. It does
// nothing where submission waits for other goroutines, because each wait would then change threads twice.
func (p *Program) keepThread() (release func()) {
	if p.platform.Name() == "cpu" || p.options.Threads > 1 || p.hosts != nil {
		return func() {}
	}
	runtime.LockOSThread()
	return runtime.UnlockOSThread
}

// CheckReplays refuses an invalid number of replays, and what usable refuses.
func (p *Program) CheckReplays(ctx context.Context, what string, replays, least int) error {
	if err := p.usable(ctx); err != nil {
		return err
	}
	if replays < least {
		return fmt.Errorf("%s %d replays: the number must be at least %d", what, replays, least)
	}
	return nil
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
