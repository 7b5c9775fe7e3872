// Fitting once more what a GPU timed before, on any machine: for judging another model by the same measurements.

package learn

import (
	"errors"
	"slices"
	"time"

	"github.com/dagrun/dagrun/cudart"
	"github.com/dagrun/dagrun/dag"
)

// Refit corrects durations and figures of the machine by ways to replay that a GPU has timed. It replays nothing.
func Refit(g *dag.Graph, given *Unfitted, timed []Way) (*Learned, error) {
	if g == nil || given == nil || given.Machine == nil || len(given.Samples) != g.Len() {
		return nil, errors.New("fitting again needs a graph, a machine, and the samples of each node")
	}
	l := &learner{graph: g, platform: elsewhere{}, known: given.Known, recorded: given.Recorded}
	l.o.Plan.Machine, l.o.For = given.Machine, time.Second // as where it was given one
	l.learned = Learned{Machine: given.Machine, Samples: given.samples(), Ways: slices.Clone(timed)}
	l.learned.Profile = l.profile()
	for k := range l.learned.Ways {
		l.learned.Ways[k].Predicted = 0 // by another model
	}
	if err := l.fitPlain(); err != nil {
		return nil, err
	}
	return &l.learned, nil
}

// elsewhere is a GPU of another machine, whose name does not matter.
type elsewhere struct{ cudart.Platform }

func (elsewhere) Name() string           { return "cuda" }
func (elsewhere) Devices() []cudart.Info { return []cudart.Info{{}} }
