// Timing replays in rounds. Ranks that learn together count the slowest of them, so that all decide the same.

package learn

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/dagrun/dagrun/cudart"
	"github.com/dagrun/dagrun/runtime/internal/engine"
)

// roundTime is how long a round takes at least, if there are enough replays.
const roundTime = 2 * time.Millisecond

// roundOf is how many replays of so many microseconds make a round.
func (l *learner) roundOf(us float64) int {
	long := roundTime
	if l.o.Thorough {
		long *= 10
	}
	return max(1, int(float64(long.Nanoseconds())/1e3/max(us, 0.1)))
}

// perRound is how many replays a round of try has at most, where so many are for a way.
func perRound(share int) int { return max(1, (share-warmUp)/rounds) }

// try times one way to replay in rounds of at most so many replays, which are short, because the best are timed again.
func (l *learner) try(ctx context.Context, w *Way, most int) error {
	l.learned.Seen = append(l.learned.Seen, w.print())
	if ok, err := l.adoptIfPossible(ctx, w); !ok || err != nil {
		return err
	}
	part := 0.5
	if l.platform.Name() != "cpu" {
		part = 0.25
	}
	samples, err := l.timeRounds(ctx, most, part)
	if err != nil {
		return err
	}
	w.Each = engine.Summarize(samples)
	if w.Each.Count > 0 && (l.best == 0 || w.Each.Median < l.best) {
		l.best = w.Each.Median
	}
	return nil
}

// timeRounds times the program as it replays now, in rounds of at most so many replays and of a part of the usual time; none if there are too few.
// Single replays come first: one pays for what is done once, and predictions may be far off. The fastest time so far tells how many replays make a
// round, because something else may have slowed down the others. A way to replay that is much slower than the best is not timed to the end.
func (l *learner) timeRounds(ctx context.Context, most int, part float64) (samples []float64, err error) {
	least := math.Inf(1)
	for k := range warmUp + rounds {
		n := min(1, most, l.left)
		if k >= warmUp {
			n = min(max(1, int(part*float64(l.roundOf(least)))), most, l.left)
		}
		if n == 0 {
			break
		}
		us, err := l.time(ctx, n)
		if err != nil {
			return nil, err
		}
		if least = min(least, us); k < warmUp {
			continue
		}
		if samples = append(samples, us); len(samples) > 1 && l.best > 0 && slices.Min(samples) > hopeless*l.best {
			break
		}
	}
	return samples, nil
}

// timeRound times n replays just after the program has changed how it replays, and returns the microseconds of one. The first replay after a change
// is slower, and does not count.
func (l *learner) timeRound(ctx context.Context, n int) (us float64, err error) {
	for _, n := range []int{1, n} {
		if us, err = l.time(ctx, n); err != nil {
			return 0, err
		}
	}
	return us, nil
}

// time uses n replays, and returns how many microseconds one takes on the slowest rank.
func (l *learner) time(ctx context.Context, n int) (us float64, err error) {
	us, err = l.trials.TimeReplays(ctx, n)
	if l.left -= n; err != nil || l.graph.Ranks <= 1 {
		return us, err
	}
	all, err := asked(ctx, l, us)
	if err != nil {
		return 0, err
	}
	return slices.Max(all), nil
}

// adopt makes the program replay a way, and notes what it takes to make its graph: the least of all times, since the driver may be busy with other
// processes for a tenth of a second.
func (l *learner) adopt(ctx context.Context, w *Way) error {
	start, had := time.Now(), l.trials.Has(w.way())
	err := l.trials.Adopt(ctx, w.way())
	if us := float64(time.Since(start).Nanoseconds()) / 1e3; err == nil && w.Mode == engine.Captured && !had && (w.BuildUS == 0 || us < w.BuildUS) {
		w.BuildUS = us
	}
	return err
}

// adoptIfPossible adopts a way if all ranks can. A device may refuse it: there may be no room for another arena, or no way to capture.
func (l *learner) adoptIfPossible(ctx context.Context, w *Way) (bool, error) {
	err := l.adopt(ctx, w)
	if err != nil && (ctx.Err() != nil || errors.Is(err, cudart.ErrPoisoned)) {
		return false, err
	}
	if err != nil {
		l.log.Info("not compared", "strategy", w.Plan.Strategy, "replay", w.Mode.String(), "because", err.Error())
	}
	if l.graph.Ranks <= 1 {
		return err == nil, nil
	}
	all, other := asked(ctx, l, err == nil)
	return other == nil && !slices.Contains(all, false), other
}

// turn is what rank 0 decides before a round, or the only rank.
type turn struct {
	Replays int
	Over    bool // there is no time for more
}

// decides returns what rank 0 passes to it.
func (l *learner) decides(ctx context.Context, own turn) (turn, error) {
	if l.graph.Ranks <= 1 {
		return own, nil
	}
	all, err := asked(ctx, l, own)
	if err != nil {
		return turn{}, err
	}
	return all[0], nil
}

// asked returns what all ranks have to say, by rank.
func asked[T any](ctx context.Context, l *learner, own T) ([]T, error) {
	text, err := json.Marshal(own)
	if err != nil {
		return nil, err
	}
	texts, err := l.trials.Exchange(ctx, string(text))
	if err != nil {
		return nil, err
	}
	all := make([]T, len(texts))
	for k := range texts {
		if err := json.Unmarshal([]byte(texts[k]), &all[k]); err != nil {
			return nil, fmt.Errorf("what rank %d has learned cannot be read: %w", k, err)
		}
	}
	if len(all) != int(l.graph.Ranks) {
		return nil, fmt.Errorf("%d ranks have learned, and there are %d", len(all), l.graph.Ranks)
	}
	return all, nil
}
