// Passes: how many passes loops made when they ran last, under a key of everything in the pipeline that the number depends on.

package cache

import (
	"context"
	"encoding/json"
	"fmt"
	"time"
)

// Passes is what a loop did in the last replay of a run.
type Passes struct {
	Pipeline string    `json:"pipeline"`
	Node     string    `json:"node"`
	Runs     int64     `json:"runs"`   // more than one in the body of another loop
	Passes   int64     `json:"passes"` // of all runs
	Most     int64     `json:"most"`   // of one run
	At       time.Time `json:"at"`
}

// Each is how many passes one run made, rounded up.
func (p *Passes) Each() int64 { return (p.Passes + p.Runs - 1) / p.Runs }

const (
	passesKind    = "passes"
	passesVersion = 1
	mostLoops     = 1000
	mostPasses    = 1 << 40
)

type passesFile struct {
	Version int    `json:"version"`
	Key     string `json:"key"`
	Passes
}

// check refuses passes that no loop could have made.
func (p *Passes) check() error {
	if p.Runs < 1 || p.Passes < 0 || p.Most < 1 || p.Most > mostPasses || p.Runs > mostPasses || p.Passes/p.Runs > p.Most || p.Passes/p.Runs == p.Most &&
		p.Passes%p.Runs > 0 {
		return fmt.Errorf("%w: a loop made %d passes in %d runs, of at most %d each", ErrDamaged, p.Passes, p.Runs, p.Most)
	}
	return nil
}

// Passes returns what is kept under a key, nil if there is nothing. The error says why a file is ignored.
func (f *Folder) Passes(key string) (*Passes, error) { return kept(f, passesKind, key, decodePasses) }

func decodePasses(body []byte, key string) (*Passes, error) {
	var file passesFile
	if err := decodeEntry(body, &file); err != nil {
		return nil, err
	}
	if file.Version != passesVersion || key != "" && file.Key != key {
		return nil, fmt.Errorf("%w: it is of another loop or version", ErrDamaged)
	}
	return &file.Passes, file.Passes.check()
}

// KeepPasses keeps what a loop did under a key, replacing what it did before.
func (f *Folder) KeepPasses(ctx context.Context, key string, p *Passes) error {
	if f == nil {
		return nil
	}
	if err := p.check(); err != nil {
		return err
	}
	body, err := json.Marshal(passesFile{passesVersion, key, *p})
	if err != nil {
		return err
	}
	return f.keepText(ctx, passesKind, key, body, mostLoops)
}
