// The auto strategy: several plans, each simulated, the best kept. Assigns no stream itself.

package planner

import (
	"errors"
	"fmt"
)

const (
	// mostTried bounds the graphs for which auto tries more than list.
	mostTried = 20_000
	// mostPolished and polishWork bound polishing: the largest graph, and how many nodes are placed again in all. That is some
	// milliseconds.
	mostPolished = 1000
	polishWork   = 400_000
	mostPolishes = 4000
)

// auto plans with list on several numbers of streams, with cover where there are streams enough, and serially, and keeps the
// plan of the least predicted makespan; among equals the fewest waits, then the fewest streams.
func (r *request) auto(streams int) (*Plan, error) {
	if n := r.g.Len(); n > mostTried {
		plan, err := r.planWith("list", streams)
		if err != nil {
			return nil, err
		}
		plan.Note = fmt.Sprintf("auto tried only list: the graph has %d nodes, and other strategies are tried up to %d", n, mostTried)
		return plan, nil
	}
	var best *Plan
	var bestStreams int
	try := func(strategy string, streams int) error {
		plan, err := r.planWith(strategy, streams)
		if errors.Is(err, ErrTooManyStreams) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := r.simulate(plan); err != nil {
			return err
		}
		if best == nil || plan.before(best) {
			best, bestStreams = plan, streams
		}
		return nil
	}
	// With one stream for kernels, copies still have streams of their own.
	for s := streams; s >= 1; s /= 2 {
		if err := try("list", s); err != nil {
			return nil, err
		}
	}
	if err := try("serial", 1); err != nil {
		return nil, err
	}
	if err := try("cover", streams); err != nil {
		return nil, err
	}
	if best.Strategy == "list" && best.Stats.Waits > 0 && r.g.Len() <= mostPolished {
		polished, err := r.polish(bestStreams)
		if err != nil {
			return nil, err
		}
		if polished != nil && polished.before(best) {
			best = polished
		}
	}
	return best, nil
}

// before compares plans of one graph by prediction.
func (p *Plan) before(other *Plan) bool {
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

// polish makes list's plan on so many streams and looks for changes that need fewer waits; nil where it is too wide for that.
func (r *request) polish(streams int) (*Plan, error) {
	p, err := r.problem(streams)
	if err != nil {
		return nil, err
	}
	a, err := planList(p)
	if err != nil {
		return nil, err
	}
	if a, err = polish(p, a, min(mostPolishes, polishWork/p.len())); a == nil || err != nil {
		return nil, err
	}
	plan, err := r.schedule(p, a, "list")
	if err != nil {
		return nil, err
	}
	return plan, r.simulate(plan)
}
