// Ways to replay, and those that learning will come back to: their graphs are kept meanwhile, because making a graph takes longer than timing it.

package runtime

import (
	"errors"
	"maps"
	"slices"

	"github.com/dagrun/dagrun/planner/plan"
)

// way is how the program replays now.
func (p *Program) way() way { return way{p.plan, p.mode, p.options.Threads, p.overlap} }

// parks reports whether a way that goes out of use is kept: graphs are, while learning compares. Streams are made in a moment, and those that
// exist share hardware queues with those in use.
func (p *Program) parks(w way) bool {
	return p.parking && w.mode == Captured && p.bodies == nil && p.hosts == nil && p.graph.Ranks <= 1
}

func (p *Program) park(w way, ops *plan.Replay, early int, instances []*instance) {
	if p.parked == nil {
		p.parked = map[way]*parked{}
	}
	p.parked[w] = &parked{ops, early, instances}
}

// has reports whether the program need not make anything to replay a way, while learning compares.
func (p *Program) has(w way) bool { return p.parking && (p.parked[w] != nil || w == p.way()) }

// freeParked frees what ways need that are not in use, but for the ones to keep.
func (p *Program) freeParked(keep ...way) (err error) {
	maps.DeleteFunc(p.parked, func(w way, kept *parked) bool {
		if slices.Contains(keep, w) {
			return false
		}
		for _, in := range kept.instances {
			err = errors.Join(err, in.strip())
		}
		return true
	})
	return err
}
