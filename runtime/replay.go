// Replay: handing a prepared program to the device, again and again. Allocates nothing per replay.

package runtime

import (
	"context"
	"fmt"
	"time"

	"github.com/dagrun/dagrun/cudart"
)

// Replay submits the whole program once and returns without waiting for it. Replays are ordered on the device; with several
// in flight, each waits only for the one before it that used the same buffers.
func (p *Program) Replay() error {
	in := p.instances[p.next]
	p.next++
	if p.next == len(p.instances) {
		p.next = 0
	}
	p.dirty = true
	return p.submit(in)
}

func (p *Program) submit(in *instance) error {
	if in.graph != nil && p.mode != Streams {
		return in.graph.Launch(in.streams[0])
	}
	return in.list.Submit()
}

// last is the instance of the latest replay, or the first before any.
func (p *Program) last() *instance {
	return p.instances[(p.next+len(p.instances)-1)%len(p.instances)]
}

// Synchronize waits until every replay has finished and returns the first error of their work.
func (p *Program) Synchronize(ctx context.Context) error {
	for _, in := range p.instances {
		if err := in.streams[0].Synchronize(ctx); err != nil {
			return err
		}
	}
	return nil
}

// Run replays the program that many times and waits. It stops submitting when the context ends, and waits no longer then.
func (p *Program) Run(ctx context.Context, iterations int) error {
	for i := range iterations {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := p.Replay(); err != nil {
			return err
		}
		p.report("replay", i+1, iterations)
	}
	return p.Synchronize(ctx)
}

// makeGraphs gives every instance its executable graph: one never overlaps itself.
func (p *Program) makeGraphs(mode Mode) error {
	for _, in := range p.instances {
		if in.graph != nil {
			continue
		}
		options := cudart.GraphOptions{Origin: in.streams[0], Priorities: true}
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

// chooseMode makes graphs where they are wanted; Auto measures both ways for a moment and restores the contents.
func (p *Program) chooseMode(ctx context.Context) error {
	switch p.options.Mode {
	case Streams:
		return nil
	case Captured, Built:
		return p.makeGraphs(p.options.Mode)
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

// probe returns the microseconds of a replay, the best of a few short runs.
func (p *Program) probe(ctx context.Context) (float64, error) {
	const rounds, moment = 5, 4 * time.Millisecond
	if err := p.Run(ctx, 2*len(p.instances)); err != nil {
		return 0, err
	}
	best, replays := 0.0, len(p.instances)
	for round := 0; round < rounds; round++ {
		start := time.Now()
		for range replays {
			if err := p.Replay(); err != nil {
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
