// Profiles: measured durations of nodes by name, how much of their device they take, and their file format.

package model

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/internal/jsontext"
	"github.com/dagrun/dagrun/internal/words"
)

// ErrBadProfile is returned (wrapped) for a profile with an impossible duration, or a file that is not a profile.
var ErrBadProfile = errors.New("bad profile")

const (
	profileVersion  = 2 // version 1 has durations only
	maxProfileBytes = 1 << 30
)

// Validate reports the first node, by name, with an impossible duration. Errors match ErrBadProfile.
func (p *Profile) Validate() error {
	if p == nil {
		return fmt.Errorf("%w: there is none", ErrBadProfile)
	}
	for _, name := range slices.Sorted(maps.Keys(p.Nodes)) {
		switch us := p.Nodes[name]; {
		case math.IsNaN(us) || us < 0 || us > maxDurationUS:
			return fmt.Errorf("%w: node %q takes %v us: it must be from 0 to %g", ErrBadProfile, name, us, maxDurationUS)
		case !utf8.ValidString(name):
			return fmt.Errorf("%w: the name %q is not valid UTF-8", ErrBadProfile, name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(p.Shares)) {
		switch share := p.Shares[name]; {
		case !(share >= 0 && share <= 1):
			return fmt.Errorf("%w: node %q takes the part %v of its device: it must be from 0 to 1", ErrBadProfile, name, share)
		case !utf8.ValidString(name):
			return fmt.Errorf("%w: the name %q is not valid UTF-8", ErrBadProfile, name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(p.Spreads)) {
		switch us := p.Spreads[name]; {
		case !(us >= 0 && us <= maxDurationUS):
			return fmt.Errorf("%w: node %q has a spread of %v us: it must be from 0 to %g", ErrBadProfile, name, us, maxDurationUS)
		case !utf8.ValidString(name):
			return fmt.Errorf("%w: the name %q is not valid UTF-8", ErrBadProfile, name)
		}
	}
	if !utf8.ValidString(p.Machine) {
		return fmt.Errorf("%w: the machine's name %q is not valid UTF-8", ErrBadProfile, p.Machine)
	}
	return nil
}

// Encode writes the profile as a file that DecodeProfile reads, nodes sorted by name.
func (p *Profile) Encode(w io.Writer) error {
	if w == nil {
		return words.ErrNoWriter
	}
	if err := p.Validate(); err != nil {
		return err
	}
	version := 1
	if len(p.Shares)+len(p.Spreads) > 0 {
		version = profileVersion
	}
	text := strconv.AppendInt([]byte("{\n  \"version\": "), int64(version), 10)
	text = jsontext.AppendString(append(text, ",\n  \"machine\": "...), p.Machine)
	text = appendFigures(append(text, ",\n  \"nodes_us\": "...), p.Nodes)
	if len(p.Shares) > 0 {
		text = appendFigures(append(text, ",\n  \"shares\": "...), p.Shares)
	}
	if len(p.Spreads) > 0 {
		text = appendFigures(append(text, ",\n  \"spreads_us\": "...), p.Spreads)
	}
	_, err := w.Write(append(text, "\n}\n"...))
	return err
}

// appendFigures writes numbers by name, sorted.
func appendFigures(text []byte, figures map[string]float64) []byte {
	text = append(text, '{')
	for k, name := range slices.Sorted(maps.Keys(figures)) {
		if k > 0 {
			text = append(text, ',')
		}
		text = append(jsontext.AppendString(append(text, "\n    "...), name), ": "...)
		text = jsontext.AppendFloat(text, figures[name])
	}
	if len(figures) > 0 {
		text = append(text, "\n  "...)
	}
	return append(text, '}')
}

// DecodeProfile reads a profile file. Errors match ErrBadProfile and are a *FileError, except those of the reader.
func DecodeProfile(r io.Reader) (*Profile, error) {
	data, err := jsontext.ReadLimited(r, "profile", maxProfileBytes)
	if err != nil {
		return nil, err
	}
	p := &Profile{Nodes: map[string]float64{}}
	keys := []string{"version", "machine", "nodes_us", "shares", "spreads_us"}
	reader := jsontext.Reader{Data: data, Kind: ErrBadProfile}
	reader.Object(keys, 2, func(key int) {
		switch keys[key] {
		case "version":
			at := reader.At
			if v := reader.Int(math.MinInt64, math.MaxInt64); reader.Err == nil && (v < 1 || v > profileVersion) {
				reader.FailAt(at, ErrBadProfile, "this is version %d; only versions 1 to %d can be read", v, profileVersion)
			}
		case "machine":
			p.Machine = reader.Label()
		case "nodes_us":
			reader.Entries(func(name string) { p.Nodes[name] = reader.Float(maxDurationUS) })
		case "shares":
			p.Shares = map[string]float64{}
			reader.Entries(func(name string) { p.Shares[name] = reader.Float(1) })
		case "spreads_us":
			p.Spreads = map[string]float64{}
			reader.Entries(func(name string) { p.Spreads[name] = reader.Float(maxDurationUS) })
		}
	})
	if reader.Err == nil {
		reader.End()
	}
	if reader.Err != nil {
		return nil, fmt.Errorf("profile: %w", reader.Err)
	}
	return p, nil
}

// Merge returns a profile with the durations of both; for a node in both, that of the later profile. A nil profile has none.
func (p *Profile) Merge(later *Profile) *Profile {
	if p == nil {
		p = &Profile{}
	}
	if later == nil {
		later = &Profile{}
	}
	merged := &Profile{Machine: later.Machine, Nodes: make(map[string]float64, len(p.Nodes)+len(later.Nodes))}
	if merged.Machine == "" {
		merged.Machine = p.Machine
	}
	maps.Copy(merged.Nodes, p.Nodes)
	maps.Copy(merged.Nodes, later.Nodes)
	if len(p.Passes)+len(later.Passes) > 0 {
		merged.Passes = make(map[string]int64, len(p.Passes)+len(later.Passes))
		maps.Copy(merged.Passes, p.Passes)
		maps.Copy(merged.Passes, later.Passes)
	}
	if len(p.Shares)+len(later.Shares) > 0 {
		merged.Shares = maps.Clone(p.Shares)
		if merged.Shares == nil {
			merged.Shares = map[string]float64{}
		}
		maps.Copy(merged.Shares, later.Shares)
	}
	if len(p.Spreads)+len(later.Spreads) > 0 {
		merged.Spreads = maps.Clone(later.Spreads)
		if merged.Spreads == nil {
			merged.Spreads = map[string]float64{}
		}
		for name, us := range p.Spreads {
			if _, newer := later.Nodes[name]; !newer {
				merged.Spreads[name] = us
			}
		}
	}
	return merged
}

// Match compares the profile's names with the graph's: unknown are names that no node has, sorted; missing are the ids
// of nodes that are not in the profile and declare no cost, ascending. Nodes of loops and branches have names too, but no ids.
func (p *Profile) Match(g *dag.Graph) (unknown []string, missing []dag.NodeID) {
	if p == nil || g.Check() != nil {
		return nil, nil
	}
	names := make(map[string]struct{}, g.Len())
	for i := range g.Nodes {
		node := &g.Nodes[i]
		if _, ok := p.Nodes[node.Name]; !ok && !node.HasCost {
			missing = append(missing, dag.NodeID(i))
		}
	}
	g.EachGraph(func(inner *dag.Graph, _ []string) {
		for i := range inner.Nodes {
			names[inner.Nodes[i].Name] = struct{}{}
		}
	})
	for name := range p.Nodes {
		if _, ok := names[name]; !ok {
			unknown = append(unknown, name)
		}
	}
	slices.Sort(unknown)
	return unknown, missing
}

// With returns the machine as measured in a profile: with the fractions of its cores that nodes take. It changes neither.
func (m *Machine) With(p *Profile) *Machine {
	if m == nil || m.Cores == 0 || p == nil || len(p.Shares) == 0 {
		return m
	}
	measured := *m
	measured.shares = p.Shares
	return &measured
}
