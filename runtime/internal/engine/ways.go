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

// keeps reports whether a way that goes out of use is kept: graphs are, while learning compares. Streams are made in a moment, and those that
// exist share hardware queues with those in use.
func (t *Trials) keeps(w Way) bool {
	p := t.program
	return t.keeping && w.Mode == Captured && p.bodies == nil && p.hosts == nil && p.graph.Ranks <= 1
}

func (t *Trials) keep(w Way, ops *plan.Replay, early int, instances []*instance) {
	if t.kept == nil {
		t.kept = map[Way]*keptWay{}
	}
	t.kept[w] = &keptWay{ops, early, instances}
}

// Has reports whether the program need not make anything to replay a way, while learning compares.
func (t *Trials) Has(w Way) bool { return t.keeping && (t.kept[w] != nil || w == t.program.Way()) }

// FreeKept frees what ways need that are not in use, but for the ones to keep.
func (t *Trials) FreeKept(keep ...Way) (err error) {
	maps.DeleteFunc(t.kept, func(w Way, kept *keptWay) bool {
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
