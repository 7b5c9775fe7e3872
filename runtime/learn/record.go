// Replays for learning that CUPTI records: exact durations, where events around a node also measure its launch. These replays count.

package learn

import (
	"context"
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
	o := &l.o
	done := l.used()
	events := n
	if l.trials.CanRecord() && l.worthRecording(nodes, l.p.Plan().Costs) {
		events = 0
		if first {
			events = 1
		}
	}
	if events > 0 {
		if replays, took, err = l.trials.TraceCounted(ctx, events, done, o.Replays, o.Progress); err != nil {
			return nil, 0, err
		}
	}
	if events < n {
		recorded, ran, reason, err := l.trials.RecordCounted(ctx, n-events, done+events, o.Replays, o.Progress)
		if err != nil {
			return nil, 0, err
		}
		replays, events, l.recorded = append(replays, recorded...), events+ran, len(recorded) > 0
		if reason != "" {
			l.log.Info("nodes are measured with events", "because", reason)
		}
	}
	if events < n {
		more, _, err := l.trials.TraceCounted(ctx, n-events, done+events, o.Replays, o.Progress)
		if err != nil {
			return nil, 0, err
		}
		replays = append(replays, more...)
	}
	return replays, took, nil
}

// recordedGap is what CUPTI counts of a node that the model counts before it.
func recordedGap(g *dag.Graph, node dag.NodeID) float64 {
	if planner.EngineOf(g, node) == planner.Compute {
		return recordedLaunchUS
	}
	return 0
}
