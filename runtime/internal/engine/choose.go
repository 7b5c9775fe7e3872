// Whether a program replays as streams or as a graph: Auto measures both.

package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/dagrun/dagrun/cudart"
	"github.com/dagrun/dagrun/dag"
)

// chooseMode makes graphs if the mode needs them. For Auto, it briefly measures both modes and then restores the contents.
func (p *Program) chooseMode(ctx context.Context) error {
	if why := p.graph.NotInGraph(); why != "" && p.options.Mode != Streams {
		p.replayAsStreams(why)
		return p.connectRanks()
	}
	if p.cannotCapture() && p.options.Mode != Streams {
		const why = "communication with other ranks cannot be in a graph together with library calls"
		if p.options.Mode != Auto {
			return errors.New(why + "; use --graph=off")
		}
		p.mode, p.choice = Streams, "streams: "+why
		p.log.Info("chose how to replay", "mode", p.mode.String(), "because", why)
		return nil
	}
	switch p.options.Mode {
	case Streams:
		return p.connectRanks()
	case Captured, Built:
		return p.withoutGraph(p.makeGraphs(p.options.Mode))
	}
	if p.options.Recorder != nil { // recording would slow down the measurement
		if err := p.options.Recorder.Disable(); err != nil {
			return err
		}
	}
	if err := p.withoutGraph(p.makeGraphs(Captured)); err != nil || p.mode == Streams {
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
	mode, err := p.agreed(ctx, int(fasterMode(streams, graph)))
	if err != nil {
		return err
	}
	p.mode = Mode(mode)
	p.choice = fmt.Sprintf("%s: a replay took %.1f us as streams, %.1f us as a graph", p.mode, streams, graph)
	p.log.Info("chose how to replay", "mode", p.mode.String(), "streams_us", streams, "graph_us", graph)
	return p.Restore(ctx)
}

// cannotCapture reports whether NCCL's work would have to be captured together with library calls. A graph with calls is built node by node, from a
// capture of each call, and NCCL's work can only be captured where it runs.
func (p *Program) cannotCapture() bool {
	return p.platform.Name() == "cuda" && p.communicates() && slices.ContainsFunc(p.graph.Nodes, func(n dag.Node) bool { return n.Kind == dag.Call })
}

// connectRanks captures a replay and drops the graph. NCCL makes its connections at the first call of each kind, which takes a tenth of
// a second; a capture makes the calls without running anything, so that the first replay takes no longer than others.
func (p *Program) connectRanks() error {
	if p.bodies != nil || p.platform.Name() != "cuda" || !p.communicates() || p.cannotCapture() {
		return nil
	}
	in := p.instances[0]
	g, err := in.list.Capture(cudart.GraphOptions{Origin: in.streams[0]})
	if err != nil {
		return err
	}
	return g.Close()
}

func fasterMode(streams, graph float64) Mode {
	if streams <= graph {
		return Streams
	}
	return Captured
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
		var err error
		if replays, err = p.agreed(ctx, replays); err != nil {
			return 0, err
		}
	}
	return best, nil
}

// makeGraphs gives every instance its own executable graph, because launches of one graph never overlap.
func (p *Program) makeGraphs(mode Mode) error {
	for _, in := range p.instances {
		if in.graph != nil {
			continue
		}
		options := cudart.GraphOptions{Origin: in.streams[0], Priorities: p.ranked}
		err := p.takeCounts(in)
		if err != nil {
			return err
		}
		if mode == Built || p.bodies != nil {
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
