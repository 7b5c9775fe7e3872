// Replays for learning that CUPTI records: exact durations, where events around a node also measure its launch. These replays count.

package runtime

import (
	"context"
	"errors"
	"time"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/planner"
	"github.com/dagrun/dagrun/runtime/internal/spans"
)

// recordedLaunchUS is what CUPTI counts of every kernel that the model counts between nodes: an empty kernel takes so long by its records.
const recordedLaunchUS = 0.54

// traceNodes replays n times and measures when each node ran. Where CUPTI can be used and is worth it, it tells; but the first replay of a program is
// always measured with events, which also tell which node hangs. It returns how long the first replay took too. nodes are those
// whose durations are wanted.
func (l *learner) traceNodes(ctx context.Context, n int, first bool, nodes []dag.NodeID) (replays []*spans.TracedReplay, took time.Duration, err error) {
	p, o := l.p, &l.o
	done := l.used()
	events := n
	if p.options.Recorder != nil && p.hosts == nil && l.worthRecording(nodes) {
		events = 0
		if first {
			events = 1
		}
	}
	if events > 0 {
		if replays, took, err = p.traceCounted(ctx, events, done, o.Replays, o.Progress); err != nil {
			return nil, 0, err
		}
	}
	if events < n {
		recorded, ran, reason, err := p.recordCounted(ctx, n-events, done+events, o.Replays, o.Progress)
		if err != nil {
			return nil, 0, err
		}
		replays, events, l.recorded = append(replays, recorded...), events+ran, len(recorded) > 0
		if reason != "" {
			p.log.Info("nodes are measured with events", "because", reason)
		}
	}
	if events < n {
		more, _, err := p.traceCounted(ctx, n-events, done+events, o.Replays, o.Progress)
		if err != nil {
			return nil, 0, err
		}
		replays = append(replays, more...)
	}
	return replays, took, nil
}

// recordCounted replays up to n times while CUPTI records. ran is how many replays there were: fewer if the records of one cannot be mapped to
// nodes, for the reason that is returned. The replays count: nothing is restored. Recording is off afterwards, because it slows down launches.
func (p *Program) recordCounted(ctx context.Context, n, done, total int, progress func(stage string, done, total int)) (all []*spans.TracedReplay, ran int, reason string, err error) {
	recorder, in := p.options.Recorder, p.instances[0]
	if err := recorder.Enable(); err != nil {
		return nil, 0, err.Error(), nil
	}
	defer func() {
		if offErr := recorder.Disable(); offErr != nil && reason == "" {
			reason = offErr.Error()
		}
	}()
	submit, end, err := p.recordedReplay(in)
	if err != nil {
		return nil, 0, "", err
	}
	defer func() { err = errors.Join(err, end()) }()
	want := p.expectedRecords(in)
	p.dirty = true
	for range n {
		if ctx.Err() != nil {
			return nil, ran, "", context.Cause(ctx)
		}
		if progress != nil {
			progress(StageLearn, done+ran, total)
		}
		end := p.begin(1)
		p.replays.Add(1)
		p.latest.Store(in)
		records, us, reason, err := p.recordReplay(ctx, submit, len(want))
		end(&err)
		if err != nil {
			return nil, ran, "", err
		}
		ran++
		if reason == "" {
			if err := matchRecords(want, records, p.mode != Streams, p.recordedName); err != nil {
				reason = err.Error()
			}
		}
		if reason != "" {
			return all, ran, reason, nil
		}
		all = append(all, spans.ByRecords(p.spansOf(want, records), us))
	}
	return all, ran, "", nil
}

// recordedGap is what CUPTI counts of a node that the model counts before it.
func recordedGap(g *dag.Graph, node dag.NodeID) float64 {
	if planner.EngineOf(g, node) == planner.Compute {
		return recordedLaunchUS
	}
	return 0
}
