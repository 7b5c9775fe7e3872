// Plans with the strategy that was asked for. The auto strategy makes several plans, simulates each and keeps the best.

package planner

import (
	"errors"
	"fmt"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/planner/internal/place"
	"github.com/dagrun/dagrun/planner/model"
	"github.com/dagrun/dagrun/planner/plan"
)

// mostCoverStreams is the most compute streams per device that cover may use if the user set no limit.
const mostCoverStreams = 128

// plan plans with this many streams, including memory layout and predictions.
func (r *request) plan(streams int) (*Plan, error) {
	var plan *Plan
	var err error
	if r.o.Strategy == "auto" {
		plan, err = r.auto(streams)
	} else {
		if r.o.Strategy == "cover" && !r.limited && streams == r.o.Streams {
			streams = mostCoverStreams
		}
		plan, err = r.planWith(candidate{strategy: r.o.Strategy, streams: streams})
	}
	if err != nil {
		return nil, err
	}
	return plan, r.predict(plan)
}

// mostTried is the size of the largest graph for which auto tries more than list.
const mostTried = 20_000

// auto plans with list on several numbers of streams, with cover if there are enough streams, and serially. It keeps the plan with the least
// predicted makespan; among equals the one with the fewest waits, then the fewest streams.
func (r *request) auto(streams int) (*Plan, error) {
	if n := r.g.Len(); n > mostTried {
		plan, err := r.planWith(candidate{strategy: "list", streams: streams})
		if err != nil {
			return nil, err
		}
		plan.Note = fmt.Sprintf("auto tried only list: the graph has %d nodes, and the other strategies are tried only up to %d", n, mostTried)
		return plan, nil
	}
	var tried, inLine []candidate
	queues := r.queuesCopies()
	// With one stream for kernels, copies still have streams of their own.
	for s := streams; s >= 1; s /= 2 {
		tried = append(tried, candidate{strategy: "list", streams: s})
		if queues {
			inLine = append(inLine, candidate{strategy: "list", streams: s, inLine: true})
		}
		if r.o.InOrder {
			tried = append(tried, candidate{strategy: "list", streams: s, declared: true})
		}
	}
	tried = append(tried, inLine...)
	tried = append(tried, candidate{strategy: "serial", streams: 1}, candidate{strategy: "cover", streams: streams})
	if r.o.Effort > Quick {
		tried = append(tried, candidate{strategy: "heft", streams: streams}, candidate{strategy: "roundrobin", streams: streams})
	}
	var best *Plan
	var plans []*Plan
	var err error
	for _, c := range tried {
		var plan *Plan
		plan, err = r.planWith(c)
		if errors.Is(err, place.ErrTooManyStreams) || errors.Is(err, place.ErrGraphTooLarge) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if err := r.simulate(plan); err != nil {
			return nil, err
		}
		if best == nil || betterPlan(plan, best) {
			best = plan
		}
		plans = append(plans, plan)
	}
	if r.o.InOrder {
		best = leanest(plans, best)
	}
	if best, err = r.search(best, streams); err != nil {
		return nil, err
	}
	return best, nil
}

// queuesCopies reports whether two copies of one device ever need the same engine.
func (r *request) queuesCopies() bool {
	if r.o.Machine.Unit {
		return false
	}
	seen := map[int32]bool{}
	for i := range r.g.Nodes {
		e := plan.EngineOf(r.g, dag.NodeID(i))
		if e == plan.Compute {
			continue
		}
		c := model.CopierOf(e, r.g.Nodes[i].Device)
		if seen[c] {
			return true
		}
		seen[c] = true
	}
	return false
}
