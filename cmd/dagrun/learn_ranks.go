// Learning with several ranks: all learn or none does, and all take a way that an earlier run chose or none does.

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/dagrun/dagrun/runtime"
)

// fewestTogether is how many replays ranks need to learn: what a communication takes in a few of them is mostly waiting.
const fewestTogether = 16

// ranksLearn reports whether several ranks learn. On GPUs they do so only if --learn was given.
func (a *app) ranksLearn(p *prepared) bool {
	return a.Flags.Iterations+a.Flags.Warmup >= fewestTogether && (p.platform.Name() == "cpu" || a.Flags.Learning)
}

// rankLearning is what a rank says before any of them learns.
type rankLearning struct {
	Learns bool           `json:"learns"`
	Modes  []runtime.Mode `json:"modes"` // of the ways that it knows from earlier runs, the best first
}

// learnTogether returns what this rank learns and uses, which is nothing if another rank does not. A way from an earlier run is one of the
// mode that rank 0 knows to be the best; if a rank knows none of that mode, all learn again.
func (a *app) learnTogether(ctx context.Context, l *learning) (*learning, error) {
	if a.World == nil {
		return l, nil
	}
	own := rankLearning{Learns: l != nil, Modes: []runtime.Mode{}}
	if l != nil && l.way != nil {
		own.Modes = append(own.Modes, l.way.Mode)
		for k := range l.recalled.Ways {
			if mode := l.recalled.Ways[k].Mode; mode != l.way.Mode {
				own.Modes = append(own.Modes, mode)
			}
		}
	}
	text, err := json.Marshal(own)
	if err != nil {
		return nil, err
	}
	texts, err := a.exchange(ctx, string(text))
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
			a.Log.Info("nothing is learned", "because", "another rank does not learn")
		}
		return nil, nil
	}
	l.way = nil
	if best := all[0].Modes; len(best) > 0 && !slices.ContainsFunc(all, func(other rankLearning) bool { return !slices.Contains(other.Modes, best[0]) }) {
		k := slices.IndexFunc(l.recalled.Ways, func(w runtime.LearnedWay) bool { return w.Mode == best[0] })
		l.way = &l.recalled.Ways[k]
	}
	return l, nil
}

// exchange returns what all ranks pass to it, by rank.
func (a *app) exchange(ctx context.Context, own string) ([]string, error) {
	return a.World.Barrier(ctx, "learn", own)
}
