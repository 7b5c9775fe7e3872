// Choices: which plan of a pipeline was best, and how it was replayed, under a key of everything that the choice depends on.

package cache

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/dagrun/dagrun/internal/words"
)

// Choice is what was found best for one pipeline.
type Choice struct {
	Pipeline string    `json:"pipeline"`
	Device   string    `json:"device"`
	At       time.Time `json:"at"`
	Tried    int       `json:"tried"` // how many ways to replay it were measured
	Runs     int       `json:"runs"`  // how many runs compared them
	Seen     []string  `json:"seen"`  // fingerprints of all ways that were measured
	Ways     []Way     `json:"ways"`  // the best, as streams and as a graph, and those that are close to it
	// Drifted is how many of the last runs in a row took another time than when the choice was made.
	Drifted int `json:"drifted,omitempty"`
	// Machine is a machine file: the figures that replays were predicted best with. Empty if those of the device predict them.
	Machine json.RawMessage `json:"machine,omitempty"`
}

// Way is a plan and how it was replayed.
type Way struct {
	Graph    bool            `json:"graph"`
	Threads  int             `json:"threads"`
	Overlap  bool            `json:"overlap,omitempty"` // launches overlap
	EachUS   float64         `json:"each_us"`           // of a replay, where many follow each other
	SpreadUS float64         `json:"spread_us"`         // median deviation of that
	BuildUS  float64         `json:"build_us"`          // before the first replay, beyond what every plan needs
	RunsUS   []float64       `json:"runs_us,omitempty"` // of a replay, in runs that took it from the start
	Plan     json.RawMessage `json:"plan"`
}

// MostWays is how many ways to replay a choice has at most, MostSeen of how many it has fingerprints, and MostTook how many runs of a way it has.
const (
	MostWays = 4
	MostSeen = 256
	MostTook = 5
)

const (
	choiceVersion = 2
	mostThreads   = 256
	mostRuns      = 1_000_000
)

type choiceFile struct {
	Version int    `json:"version"`
	Key     string `json:"key"`
	Choice
}

// check refuses a choice that no dagrun could have made.
func (c *Choice) check() error {
	if len(c.Ways) == 0 || len(c.Ways) > MostWays || c.Tried < 0 || c.Runs < 0 || c.Runs > mostRuns || c.Drifted < 0 || c.Drifted > mostRuns ||
		len(c.Seen) > MostSeen {
		return fmt.Errorf("%w: it has %d ways to replay", ErrDamaged, len(c.Ways))
	}
	if err := checkSize("machine file", c.Machine, mostMachineBytes); err != nil {
		return fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	for _, w := range c.Ways {
		if len(w.RunsUS) > MostTook {
			return fmt.Errorf("%w: it has %d runs of one way", ErrDamaged, len(w.RunsUS))
		}
		for _, us := range append([]float64{w.EachUS, w.SpreadUS, w.BuildUS}, w.RunsUS...) {
			if !(us >= 0 && us <= longestUS) {
				return fmt.Errorf("%w: a time is %v us", ErrDamaged, us)
			}
		}
		if w.Threads < 1 || w.Threads > mostThreads {
			return fmt.Errorf("%w: it has %d threads", ErrDamaged, w.Threads)
		}
	}
	return nil
}

// Choice returns the choice kept under a key, nil if there is none. The error says why a file is ignored.
func (f *Folder) Choice(key string) (*Choice, error) { return kept(f, choicesKind, key, decodeChoice) }

func decodeChoice(body []byte, key string) (*Choice, error) {
	var file choiceFile
	if err := decodeEntry(body, &file); err != nil {
		return nil, err
	}
	if file.Version != choiceVersion || key != "" && file.Key != key {
		return nil, fmt.Errorf("%w: it is of another pipeline or version", ErrDamaged)
	}
	return &file.Choice, file.Choice.check()
}

// KeepChoice keeps a choice under a key, replacing an earlier one.
func (f *Folder) KeepChoice(ctx context.Context, key string, c *Choice) error {
	if f == nil {
		return nil
	}
	if err := c.check(); err != nil {
		return err
	}
	var body bytes.Buffer
	encoder := json.NewEncoder(&body)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(choiceFile{choiceVersion, key, *c}); err != nil {
		return err
	}
	name := f.entry(choicesKind, key)
	if body.Len() > mostFileBytes-1024 {
		return fmt.Errorf("cannot write %s: the plan takes %s, and files of the cache at most %s", name, words.Bytes(int64(body.Len())), words.Bytes(mostFileBytes))
	}
	if err := write(ctx, choicesKind, name, body.Bytes()); err != nil {
		return err
	}
	return trim(filepath.Dir(name), mostChoices, mostBytes)
}

// ForgetChoice removes the choice kept under a key.
func (f *Folder) ForgetChoice(key string) error {
	if f == nil {
		return nil
	}
	name := f.entry(choicesKind, key)
	if err := os.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("cannot remove %s: %w", name, err)
	}
	return nil
}

// Key makes the key of a choice from everything that it depends on. Parts may hold anything.
func Key(parts ...string) string {
	var text []byte
	for _, part := range parts {
		text = fmt.Appendf(text, "%d:%s", len(part), part)
	}
	return Fingerprint(text)
}
