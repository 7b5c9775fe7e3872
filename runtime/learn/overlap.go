// Whether launches that overlap are faster: times the best ways to replay with them and without, in turn.

package learn

import (
	"context"
	"errors"

	"github.com/dagrun/dagrun/cudart"
	"github.com/dagrun/dagrun/runtime/internal/engine"
)

// triesOverlap reports whether learning compares launches that overlap with others.
func (l *learner) triesOverlap() bool {
	return l.o.Overlap == engine.OverlapAuto && !l.graph.HasControl() && engine.CanOverlap(l.platform) == nil // launches in bodies do not overlap
}

// overlap times the best way of each mode again, without overlapping launches and with them, and keeps the latter where they are faster. They may
// be faster on streams and slower in a graph. A way that is much slower than the best of its mode is not worth the time, unless learning is thorough.
// It leaves so many replays for others.
func (l *learner) overlap(ctx context.Context, others int) error {
	if !l.triesOverlap() || l.over(1) {
		return nil
	}
	tried := map[engine.Mode]bool{}
	for _, w := range l.learned.Ways { // the best first
		if tried[w.Mode] || !engine.Follows(l.graph, w.Plan) || w.Overlap || w.Each.Min > finalWithin*l.learned.Ways[0].Each.Min && !l.o.Thorough {
			continue
		}
		tried[w.Mode] = true
		if err := l.overlapWay(ctx, w, others); err != nil {
			return err
		}
	}
	l.sort()
	return nil
}

// overlapWay times one way in both forms, in rounds that take turns. Other ways were compared with it before, so what overlapping gains in these rounds is
// taken off the time that it took then.
func (l *learner) overlapWay(ctx context.Context, plain Way, others int) error {
	forms := [2]Way{plain, plain}
	forms[1].Overlap = true
	var samples [2][]float64
	each := max(2, min(l.roundOf(plain.Each.Median), (l.left-others)/(2*rounds)))
	for range rounds {
		if l.left-others < 2*each || l.over(1) && len(samples[0]) >= fewestTurns {
			break
		}
		for k := range forms {
			if err := l.adopt(ctx, &forms[k]); err != nil {
				if ctx.Err() != nil || errors.Is(err, cudart.ErrPoisoned) {
					return err
				}
				l.log.Info("not compared", "overlap", true, "replay", plain.Mode.String(), "because", err.Error())
				return nil
			}
			if early, _ := l.p.Overlaps(); early == 0 && forms[k].Overlap {
				return nil // nothing overlaps
			}
			us, err := l.timeRound(ctx, each-1)
			if err != nil {
				return err
			}
			samples[k] = append(samples[k], us)
		}
	}
	if len(samples[1]) == 0 {
		return nil
	}
	for k, us := range samples[1] {
		if us >= samples[0][k] { // not certainly faster
			l.log.Info("launches do not overlap", "replay", plain.Mode.String(), "us", samples[0], "overlapping", samples[1])
			return nil
		}
	}
	then := plain.Each.Median / engine.Summarize(samples[0]).Median
	for k := range samples[1] {
		samples[1][k] *= then
	}
	forms[1].Each = engine.Summarize(samples[1])
	l.learned.Ways = append(l.learned.Ways, forms[1])
	return nil
}

// fitPlain fits what was measured of nodes to the ways whose launches do not overlap, because the model knows nothing of that.
func (l *learner) fitPlain() error {
	all := l.learned.Ways
	l.learned.Ways = nil
	for _, w := range all {
		if !w.Overlap {
			l.learned.Ways = append(l.learned.Ways, w)
		}
	}
	l.learned.Given = &Unfitted{l.o.Plan.Machine, l.known, l.learned.Samples, l.recorded}
	l.learned.Samples = l.learned.Given.samples()
	err := l.fit()
	predicted := map[engine.Way]float64{}
	for _, w := range l.learned.Ways {
		predicted[w.way()] = w.Predicted
	}
	l.learned.Ways = all
	for k := range all {
		w := all[k].way()
		w.Overlap = false
		if us, ok := predicted[w]; ok {
			all[k].Predicted = us
		}
	}
	return err
}
