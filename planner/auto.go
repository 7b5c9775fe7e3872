// The auto strategy: makes several plans, simulates each and keeps the best.

package planner

import (
	"errors"
	"fmt"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/planner/internal/place"
	"github.com/dagrun/dagrun/planner/model"
)

// mostTried bounds the graphs for which auto tries more than list.
const mostTried = 20_000

// auto plans with list on several numbers of streams, with cover where there are streams enough, and serially, and keeps the
// plan of the least predicted makespan; among equals the fewest waits, then the fewest streams.
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
	}
	tried = append(tried, inLine...)
	tried = append(tried, candidate{strategy: "serial", streams: 1}, candidate{strategy: "cover", streams: streams})
	if r.o.Effort > Quick {
		tried = append(tried, candidate{strategy: "heft", streams: streams}, candidate{strategy: "roundrobin", streams: streams})
	}
	var best *Plan
	var err error
	for _, c := range tried {
		var plan *Plan
		plan, err = r.planWith(c)
		if errors.Is(err, place.ErrTooManyStreams) {
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
	}
	if best, err = r.search(best, streams); err != nil {
		return nil, err
	}
	return best, nil
}

// queuesCopies says whether two copies of a device ever want the same engine.
func (r *request) queuesCopies() bool {
	if r.o.Machine.Unit {
		return false
	}
	seen := map[int32]bool{}
	for i := range r.g.Nodes {
		e := EngineOf(r.g, dag.NodeID(i))
		if e == Compute {
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

// betterPlan compares plans of one graph by prediction.
func betterPlan(p, other *Plan) bool {
	a, b := &p.Stats, &other.Stats
	if near := 1e-9 * b.MakespanUS; a.MakespanUS < b.MakespanUS-near || a.MakespanUS > b.MakespanUS+near {
		return a.MakespanUS < b.MakespanUS
	}
	if a.Waits != b.Waits {
		return a.Waits < b.Waits
	}
	if a.Streams != b.Streams {
		return a.Streams < b.Streams
	}
	return a.Records < b.Records
}
