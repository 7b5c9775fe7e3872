// Learning with several ranks: all learn or none does, and all take a way that an earlier run chose or none does.

package runs

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/dagrun/dagrun/runtime"
	"github.com/dagrun/dagrun/runtime/learn"
)

// fewestTogether is how many replays ranks need to learn: what a communication takes in a few of them is mostly waiting.
const fewestTogether = 16

// ranksLearn reports whether several ranks learn. On GPUs they do so only if --learn was given.
func (u *Runs) ranksLearn(p *Prepared) bool {
	return u.Flags.Iterations+u.Flags.Warmup >= fewestTogether && (p.Platform.Name() == "cpu" || u.Flags.Learning)
}

// rankLearning is what a rank says before any of them learns.
type rankLearning struct {
	Learns bool           `json:"learns"`
	Modes  []runtime.Mode `json:"modes"` // of the ways that it knows from earlier runs, the best first
}

// learnTogether returns what this rank learns and uses, which is nothing if another rank does not. A way from an earlier run is one of the
// mode that rank 0 knows to be the best; if a rank knows none of that mode, all learn again.
func (u *Runs) learnTogether(ctx context.Context, l *Learning) (*Learning, error) {
	if u.World == nil {
		return l, nil
	}
	own := rankLearning{Learns: l != nil, Modes: []runtime.Mode{}}
	if l != nil && l.way != nil {
		own.Modes = append(own.Modes, l.way.Mode)
		for k := range l.Recalled.Ways {
			if mode := l.Recalled.Ways[k].Mode; mode != l.way.Mode {
				own.Modes = append(own.Modes, mode)
			}
		}
	}
	text, err := json.Marshal(own)
	if err != nil {
		return nil, err
	}
	texts, err := u.Exchange(ctx, string(text))
	if err != nil {
		return nil, err
	}
	all := make([]rankLearning, len(texts))
	for k := range texts {
		if err := json.Unmarshal([]byte(texts[k]), &all[k]); err != nil {
			return nil, fmt.Errorf("what rank %d wants to learn cannot be read: %w", k, err)
		}
	}
	if slices.ContainsFunc(all, func(other rankLearning) bool { return !other.Learns }) {
		if l != nil {
			u.Log.Info("nothing is learned", "because", "another rank does not learn")
		}
		return nil, nil
	}
	l.way = nil
	if best := all[0].Modes; len(best) > 0 && !slices.ContainsFunc(all, func(other rankLearning) bool { return !slices.Contains(other.Modes, best[0]) }) {
		k := slices.IndexFunc(l.Recalled.Ways, func(w learn.Way) bool { return w.Mode == best[0] })
		l.way = &l.Recalled.Ways[k]
	}
	return l, nil
}

// Exchange returns what all ranks pass to it, by rank.
func (u *Runs) Exchange(ctx context.Context, own string) ([]string, error) {
	return u.World.Barrier(ctx, "learn", own)
}
