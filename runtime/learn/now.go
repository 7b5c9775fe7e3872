// How fast the host submits now, against when learning timed ways to replay. On a machine that is shared, it submits up to 1.4 times as slowly
// for tenths of a second to seconds, whatever thread or core submits.

package learn

import (
	"context"
	"errors"
	"math"
	"time"

	"github.com/dagrun/dagrun/cudart"
	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/planner"
	"github.com/dagrun/dagrun/runtime/internal/engine"
)

const (
	nowWarmUp = 5                    // replays of a program that was just made
	nowRound  = 4 * time.Millisecond // how long replays are timed
	slower    = 1.25                 // a host so many times as slow tells which ways depend on it
	depends   = 0.7                  // the part of that, as logarithms, that a way must take longer then
	mostNow   = 2.0                  // times as slow or as fast at most: more is something else
)

// Now returns what was learned for the host as fast as it is now. It replays one of the ways that learning timed, for some milliseconds, and notes
// in Host how much longer that takes than it did. Where no way that learning timed depends on how fast the host submits, it returns the same.
func (l *Learned) Now(ctx context.Context, g *dag.Graph, platform cudart.Platform) (*Learned, error) {
	switch {
	case l == nil:
		return nil, errors.New("nothing was learned to predict from")
	case g == nil:
		return nil, errors.New("timing again needs a graph")
	case platform == nil:
		return nil, errors.New("timing again needs a platform to run on")
	}
	w, err := l.dependent(g)
	if err != nil || w == nil {
		return l, err
	}
	us, err := w.now(ctx, g, platform)
	if err != nil {
		return nil, err
	}
	now := *l
	now.Host = max(1/mostNow, min(mostNow, us/w.Each.Median))
	return &now, nil
}

// dependent returns the way that depends most on how fast one thread submits; nil if none does.
func (l *Learned) dependent(g *dag.Graph) (best *Way, err error) {
	most := depends
	for k := range l.Ways {
		w := &l.Ways[k]
		if w.Mode != engine.Streams || w.Threads > 1 || w.Overlap || !(w.Each.Median > 0) {
			continue
		}
		as, err := predictEach(g, w.way(), l.Machine, l.Profile)
		if err != nil {
			return nil, err
		}
		slow, err := predictEach(g, w.way(), submittedAt(slower, l.Machine), l.Profile)
		if err != nil {
			return nil, err
		}
		if part := math.Log(slow/max(as, 0.01)) / math.Log(slower); part > most+1e-9 {
			best, most = w, part
		}
	}
	return best, nil
}

// now makes a program that replays this way, and times it.
func (w *Way) now(ctx context.Context, g *dag.Graph, platform cudart.Platform) (us float64, err error) {
	p, err := engine.New(ctx, g, w.Plan, platform, planner.GraphEdges, engine.Options{Mode: w.Mode})
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, p.Close()) }()
	if err := p.Run(ctx, nowWarmUp); err != nil {
		return 0, err
	}
	long := float64(nowRound.Nanoseconds()) / 1e3
	return p.Trials().TimeReplays(ctx, max(1, int(long/max(w.Each.Median, 1))))
}
