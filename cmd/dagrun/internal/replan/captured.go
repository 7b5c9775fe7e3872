// The graph as the program captured it, as a plan to compare with: its streams, and the waits between them.

package replan

import (
	"context"
	"errors"
	"slices"

	"github.com/dagrun/dagrun/planner"
	"github.com/dagrun/dagrun/planner/model"
	"github.com/dagrun/dagrun/planner/plan"
)

// AsCaptured is the strategy that is no strategy: the streams on which the program captured the graph.
const AsCaptured = "recorded"

// Plan makes one plan by a strategy of the planner, by AsCaptured, or by auto, which takes the one that is predicted to be fastest.
func (n *CapturedGraph) Plan(ctx context.Context, o planner.Options) (*planner.Plan, error) {
	switch o.Strategy {
	case AsCaptured:
		return n.predicted(n.captured(), o)
	case "", "auto":
		best, bestUS, large := (*planner.Plan)(nil), 0.0, (*ErrMemory)(nil)
		most := o.Streams
		for _, way := range ways {
			if most > 0 && way.streams > most {
				continue
			}
			o.Strategy, o.Streams = way.strategy, way.streams
			p, _, err := n.planned(ctx, o)
			if tooLarge := (*ErrMemory)(nil); errors.As(err, &tooLarge) {
				if large == nil || tooLarge.Needs < large.Needs {
					large = tooLarge
				}
				continue
			}
			if err != nil {
				return nil, err
			}
			us, err := model.Repeated(n.dag, p, o.Machine, o.Profile, true)
			if err != nil {
				return nil, err
			}
			if best == nil || us < bestUS {
				best, bestUS = p, us
			}
		}
		if best == nil {
			return nil, large
		}
		best.Requested = "auto"
		return n.predicted(best, o)
	}
	p, _, err := n.planned(ctx, o)
	if err != nil {
		return nil, err
	}
	return n.predicted(p, o)
}

// predicted gives a plan its costs, and its times as a graph.
func (n *CapturedGraph) predicted(p *planner.Plan, o planner.Options) (*planner.Plan, error) {
	if err := model.Predict(n.dag, p, o.Machine, o.Profile, len(p.Streams)); err != nil {
		return nil, err
	}
	timeline, err := model.SimulateGraph(n.dag, p, o.Machine, o.Profile)
	if err != nil {
		return nil, err
	}
	p.Stats.MakespanUS = timeline.MakespanUS
	model.LowerBoundGraph(n.dag, o.Machine, o.Profile, len(p.Streams)).Note(p)
	return p, nil
}

// captured is the graph as the program captured it. An edge between two streams is a wait.
func (n *CapturedGraph) captured() *planner.Plan {
	p := &planner.Plan{Name: n.dag.Name, Graph: n.dag, GraphHash: n.dag.Hash(), Work: n.dag.WorkHash(), Strategy: AsCaptured, Requested: AsCaptured}
	before, followed := make([][]int, len(n.known.Nodes)), make([]bool, len(n.known.Nodes))
	for _, e := range n.graph.Edges {
		if n.known.Nodes[e[0]].Stream != n.known.Nodes[e[1]].Stream {
			before[e[1]] = append(before[e[1]], e[0])
			followed[e[0]] = true
		}
	}
	events := make([]int32, len(n.known.Nodes))
	add := func(k int, op plan.Op) {
		s := n.known.Nodes[k].Stream
		for s >= len(p.Streams) {
			p.Streams = append(p.Streams, plan.Stream{})
		}
		p.Streams[s].Ops = append(p.Streams[s].Ops, op)
		p.Order = append(p.Order, int32(s))
	}
	for _, k := range n.order {
		slices.Sort(before[k])
		for _, other := range slices.Compact(before[k]) {
			add(k, plan.Op{Kind: plan.Wait, Node: n.nodes[other], Event: events[other]})
			p.Stats.Waits++
		}
		add(k, plan.Op{Kind: plan.Launch, Node: n.nodes[k], Event: -1})
		if followed[k] {
			events[k] = p.Events
			add(k, plan.Op{Kind: plan.Record, Node: n.nodes[k], Event: p.Events})
			p.Events++
		}
	}
	p.Stats.Nodes, p.Stats.Edges, p.Stats.Streams = n.dag.Len(), len(n.dag.Edges()), len(p.Streams)
	p.Stats.Records, p.Stats.Events = int(p.Events), int(p.Events)
	for v, is := range n.known.Values {
		if at, inside := n.arena.of(n.graph.Pool, n.at[v]); inside && is.Pool {
			p.Stats.PeakDeviceBytes = max(p.Stats.PeakDeviceBytes, at+int64(is.Bytes))
		}
	}
	return p
}
