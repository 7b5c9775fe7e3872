// Replay: submitting a prepared program to the device, again and again. Allocates nothing per replay.

package runtime

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/dagrun/dagrun/cudart"
	"github.com/dagrun/dagrun/dag"
)

// Replay submits the whole program once and returns without waiting for the device. Replays are ordered on the device. With several in
// flight, each waits only for the previous one that used the same buffers. Replay itself waits only if a callback of ReplayThen still uses
// the buffers, and gives up when the context ends.
//
// To get each replay's own result, use ReplayThen.
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
	p.replays.Add(1)
	return p.submit(ctx, in)
}

func (p *Program) submit(ctx context.Context, in *instance) error {
	in.forget()
	if in.graph != nil && p.mode != Streams {
		return in.graph.Launch(in.streams[0])
	}
	return submitList(ctx, in.list)
}

// OnDone calls f once everything replayed so far has finished, with the first error of that work. It returns at once; f runs on a
// goroutine of its own, and Close waits for it.
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

// Unfinished returns the nodes of the latest replay that had not finished when their progress words were read, in submission order. It
// works while the device hangs. Options.DebugProgress must be set, and the latest replay must be the first.
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

// Synchronize waits until every replay has finished and every then of ReplayThen has returned. It returns the first error of that work.
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
	return nil
}

// Run replays the program the given number of times and waits. When the context ends, it neither submits nor waits any longer.
func (p *Program) Run(ctx context.Context, iterations int) error {
	if err := p.checkReplays(ctx, "run", iterations, 0); err != nil {
		return err
	}
	for i := range iterations {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err := p.Replay(ctx); err != nil {
			return err
		}
		p.report("replay", i+1, iterations)
	}
	return p.Synchronize(ctx)
}

// checkReplays refuses an invalid number of replays, and what usable refuses.
func (p *Program) checkReplays(ctx context.Context, what string, replays, least int) error {
	if err := p.usable(ctx); err != nil {
		return err
	}
	if replays < least {
		return fmt.Errorf("%s %d replays: the number must be at least %d", what, replays, least)
	}
	return nil
}

// makeGraphs gives every instance its own executable graph, because launches of one graph never overlap.
func (p *Program) makeGraphs(mode Mode) error {
	for _, in := range p.instances {
		if in.graph != nil {
			continue
		}
		options := cudart.GraphOptions{Origin: in.streams[0], Priorities: p.ranked}
		var err error
		if mode == Built {
			in.graph, err = p.buildGraph(in, options)
		} else {
			in.graph, err = in.list.Capture(options)
		}
		if err != nil {
			return err
		}
		if err := in.graph.Upload(in.streams[0]); err != nil {
			return err
		}
	}
	return nil
}

// chooseMode makes graphs if the mode needs them. For Auto, it briefly measures both modes and then restores the contents.
func (p *Program) chooseMode(ctx context.Context) error {
	if p.bodies != nil && p.options.Mode != Streams {
		p.mode = Streams
		p.choice = noGraph
		p.log.Info("chose how to replay", "mode", p.mode.String(), "because", noGraph)
		return nil
	}
	switch p.options.Mode {
	case Streams:
		return nil
	case Captured, Built:
		return p.makeGraphs(p.options.Mode)
	}
	if p.options.Recorder != nil { // recording would slow down the measurement
		if err := p.options.Recorder.Disable(); err != nil {
			return err
		}
	}
	if err := p.makeGraphs(Captured); err != nil {
		return err
	}
	p.mode = Streams
	streams, err := p.probe(ctx)
	if err != nil {
		return err
	}
	p.mode = Captured
	graph, err := p.probe(ctx)
	if err != nil {
		return err
	}
	p.mode = Captured
	if streams <= graph {
		p.mode = Streams
	}
	p.choice = fmt.Sprintf("%s: a replay took %.1f us as streams, %.1f us as a graph", p.mode, streams, graph)
	p.log.Info("chose how to replay", "mode", p.mode.String(), "streams_us", streams, "graph_us", graph)
	return p.Restore(ctx)
}

// probe returns how many microseconds a replay takes: the best of a few short runs.
func (p *Program) probe(ctx context.Context) (float64, error) {
	const rounds, moment = 5, 4 * time.Millisecond
	if err := p.Run(ctx, 2*len(p.instances)); err != nil {
		return 0, err
	}
	best, replays := 0.0, len(p.instances)
	for round := 0; round < rounds; round++ {
		start := time.Now()
		for range replays {
			if err := p.Replay(ctx); err != nil {
				return 0, err
			}
		}
		if err := p.Synchronize(ctx); err != nil {
			return 0, err
		}
		took := time.Since(start)
		if us := float64(took.Nanoseconds()) / 1e3 / float64(replays); round == 0 || us < best {
			best = us
		}
		if took < moment {
			replays = min(replays*4, 1<<14)
		}
	}
	return best, nil
}
