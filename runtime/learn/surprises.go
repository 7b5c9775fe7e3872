// Ways that took much longer than the others let expect: they are timed once more, because a host or a device that is slow for some tens of
// milliseconds slows down all rounds of a way.

package learn

import (
	"context"
	"slices"

	"github.com/dagrun/dagrun/runtime/internal/engine"
)

const (
	surprise      = 1.08 // times what is expected: timed once more
	promise       = 1.05 // times the best way: what is expected of a way at most to be timed once more
	mostSurprises = 3    // ways that are timed once more
)

// timeSurprises times the most surprising ways once more, with so many replays each, and keeps their better times. It leaves so many replays for
// others, takes at most a quarter of the rest for a way, and ends when so much of learning's time is over. Ranks would have to agree about all of
// that, and time nothing once more.
func (l *learner) timeSurprises(ctx context.Context, share, others int, until float64) error {
	if l.graph.Ranks > 1 {
		return nil
	}
	var done []int
	for range mostSurprises {
		k := surprising(l.learned.Ways, done)
		if k < 0 || l.over(until) || share > (l.left-others)/4 {
			return nil
		}
		done = append(done, k)
		again := l.learned.Ways[k]
		if err := l.try(ctx, &again, perRound(share)); err != nil {
			return err
		}
		if w := &l.learned.Ways[k]; again.Each.Count > 0 && again.Each.Median < w.Each.Median {
			w.Each = again.Each
		}
	}
	return nil
}

// surprising returns which of the ways took much longer than expected although it should be about as fast as the best, the fastest by
// expectation; -1 if there is none, or only those that were timed once more already. A way is expected to be as much off its prediction as the ways
// are in the median.
func surprising(ways []Way, done []int) int {
	var off []float64
	best := 0.0
	for k := range ways {
		if w := &ways[k]; w.Predicted > 0 && w.Each.Median > 0 {
			off = append(off, w.Each.Median/w.Predicted)
			if best == 0 || w.Each.Median < best {
				best = w.Each.Median
			}
		}
	}
	usual, found := engine.Summarize(off).Median, -1
	for k := range ways {
		w := &ways[k]
		expected := usual * w.Predicted
		if w.Predicted > 0 && w.Each.Median > surprise*expected && expected <= promise*best && !slices.Contains(done, k) && (found < 0 || w.Predicted < ways[found].Predicted) {
			found = k
		}
	}
	return found
}
