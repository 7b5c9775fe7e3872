// Ways to replay, and those that learning will come back to: their graphs are kept meanwhile, because making a graph takes longer than timing it.

package engine

import (
	"errors"
	"maps"
	"slices"

	"github.com/dagrun/dagrun/planner/plan"
)

// Way is how the program replays now.
func (p *Program) Way() Way { return Way{p.plan, p.mode, p.options.Threads, p.overlap} }

// parks reports whether a way that goes out of use is kept: graphs are, while learning compares. Streams are made in a moment, and those that
// exist share hardware queues with those in use.
func (p *Program) parks(w Way) bool {
	return p.parking && w.Mode == Captured && p.bodies == nil && p.hosts == nil && p.graph.Ranks <= 1
}

func (p *Program) park(w Way, ops *plan.Replay, early int, instances []*instance) {
	if p.parked == nil {
		p.parked = map[Way]*parked{}
	}
	p.parked[w] = &parked{ops, early, instances}
}

// Has reports whether the program need not make anything to replay a way, while learning compares.
func (p *Program) Has(w Way) bool { return p.parking && (p.parked[w] != nil || w == p.Way()) }

// FreeParked frees what ways need that are not in use, but for the ones to keep.
func (p *Program) FreeParked(keep ...Way) (err error) {
	maps.DeleteFunc(p.parked, func(w Way, kept *parked) bool {
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
