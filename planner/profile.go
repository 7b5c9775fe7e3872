// Profiles: measured durations of nodes by name, and their file form. Measures nothing.

package planner

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"

	"github.com/dagrun/dagrun/dag"
)

// Profile holds measured durations by node name. It says nothing of nodes it does not hold: those fall back to the machine's rates.
type Profile struct {
	Machine string
	Nodes   map[string]float64 // microseconds
}

const (
	profileVersion  = 1
	maxProfileBytes = 256 << 20
	maxNameBytes    = 4096
)

type profileFile struct {
	Version int                `json:"version"`
	Machine string             `json:"machine"`
	Nodes   map[string]float64 `json:"nodes_us"`
}

// Validate names the first node, by name, whose duration cannot be right.
func (p *Profile) Validate() error {
	for _, name := range slices.Sorted(maps.Keys(p.Nodes)) {
		if us := p.Nodes[name]; math.IsNaN(us) || us < 0 || us > maxDurationUS {
			return fmt.Errorf("profile: node %q takes %v us: it must be from 0 to %g", name, us, maxDurationUS)
		}
	}
	return nil
}

// Encode writes the profile, nodes by name.
func (p *Profile) Encode(w io.Writer) error {
	if err := p.Validate(); err != nil {
		return err
	}
	nodes := p.Nodes
	if nodes == nil {
		nodes = map[string]float64{}
	}
	data, err := json.MarshalIndent(profileFile{profileVersion, p.Machine, nodes}, "", "  ")
	if err != nil {
		return fmt.Errorf("profile: %w", err)
	}
	_, err = w.Write(append(data, '\n'))
	return err
}

// DecodeProfile reads what Encode wrote.
func DecodeProfile(r io.Reader) (*Profile, error) {
	var f profileFile
	if err := decodeStrict(r, "profile", maxProfileBytes, profileVersion, &f); err != nil {
		return nil, err
	}
	p := &Profile{Machine: f.Machine, Nodes: f.Nodes}
	if p.Nodes == nil {
		p.Nodes = map[string]float64{}
	}
	if err := p.Validate(); err != nil {
		return nil, err
	}
	return p, nil
}

// Merge returns a profile with the durations of both; where both have a node, the later one's stands.
func (p *Profile) Merge(later *Profile) *Profile {
	merged := &Profile{Machine: later.Machine, Nodes: make(map[string]float64, len(p.Nodes)+len(later.Nodes))}
	if merged.Machine == "" {
		merged.Machine = p.Machine
	}
	maps.Copy(merged.Nodes, p.Nodes)
	maps.Copy(merged.Nodes, later.Nodes)
	return merged
}

// Match compares the profile's names with the graph's: unknown are names that no node has, sorted; missing are nodes that
// the profile says nothing of and that declare no cost, by id.
func (p *Profile) Match(g *dag.Graph) (unknown []string, missing []int32) {
	names := make(map[string]struct{}, g.Len())
	for i := range g.Nodes {
		node := &g.Nodes[i]
		names[node.Name] = struct{}{}
		if _, ok := p.Nodes[node.Name]; !ok && !node.HasCost {
			missing = append(missing, int32(i))
		}
	}
	for name := range p.Nodes {
		if _, ok := names[name]; !ok {
			unknown = append(unknown, name)
		}
	}
	slices.Sort(unknown)
	return unknown, missing
}
