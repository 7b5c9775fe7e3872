// Races: what a hand-made schedule leaves unordered, described the same way by every command.

package session

import (
	"errors"
	"fmt"

	"github.com/dagrun/dagrun/cmd/dagrun/internal/cli"
	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/internal/words"
	"github.com/dagrun/dagrun/planner"
	"github.com/dagrun/dagrun/planner/proof"
)

// MostRaces is how many races are printed; fixing those usually fixes the rest.
const MostRaces = 20

// Unenforced returns the pairs that a plan leaves unordered, at most the given number (0: all), in the order to fix them. The error is
// any other fault of the plan.
func Unenforced(g *dag.Graph, plan *planner.Plan, most int) (*proof.Unenforced, error) {
	err := planner.Verify(g, plan)
	switch {
	case err == nil:
		return new(proof.Unenforced), nil
	case !errors.Is(err, proof.ErrHazard):
		return nil, err
	}
	return planner.Violations(g, plan, most)
}

// EveryPair returns every pair that a plan leaves unordered. With all it is what is to be listed, otherwise only their number is of interest.
func EveryPair(g *dag.Graph, plan *planner.Plan, found *proof.Unenforced, all bool) (*proof.Unenforced, error) {
	if found.Roots == 0 {
		return found, nil
	}
	most := 1
	if all {
		most = 0
	}
	return proof.Pairs(g, plan, most)
}

// RacesAllowed returns the races of a plan if the user allows them. If they are not allowed, the error is the race that check prints first.
func RacesAllowed(name string, g *dag.Graph, plan *planner.Plan, allowed bool) ([]*planner.Violation, error) {
	found, err := Unenforced(g, plan, 0)
	if err != nil {
		return nil, err
	}
	for _, v := range found.Violations {
		if !errors.Is(v, proof.ErrRace) {
			return nil, v
		}
	}
	if len(found.Violations) > 0 && !allowed {
		return nil, fmt.Errorf("%w\n  dagrun check %s lists the races; --allow-races runs it all the same", found.Violations[0], name)
	}
	return found.Violations, nil
}

// Race is a pair of accesses that nothing orders.
type Race struct {
	First  RaceSide   `json:"first"`
	Second RaceSide   `json:"second"`
	Buffer string     `json:"buffer"`
	Bytes  [2]int64   `json:"bytes"`
	Box    [][2]int64 `json:"box,omitempty"`
	Why    string     `json:"why"`
	Fix    string     `json:"fix"`

	Place string `json:"-"` // what both sides touch, as a pipeline file writes it
}

type RaceSide struct {
	Node   string `json:"node"`
	Stream int32  `json:"stream"`
	Access string `json:"access"`
	Line   int32  `json:"line,omitempty"`
}

func (s *RaceSide) text() string {
	if s.Line == 0 {
		return s.Node
	}
	return fmt.Sprintf("%s (line %d)", s.Node, s.Line)
}

// RacesOf describes races.
func RacesOf(g *dag.Graph, violations []*planner.Violation) []Race {
	races := []Race{}
	for _, v := range violations {
		r := Race{
			First:  sideOf(g, v.Before, v.BeforeName, v.BeforeStream, v.BeforeAccess),
			Second: sideOf(g, v.Node, v.NodeName, v.Stream, v.Access),
			Buffer: v.BufferName, Bytes: [2]int64{v.Lo, v.Hi}, Why: v.Why.String(), Fix: v.Line,
		}
		place := g.EdgeRange(dag.Edge{Buffer: v.Buffer, Tile: v.Tile, Lo: v.Lo, Hi: v.Hi})
		r.Place = g.RangeText(place)
		if rows, columns, ok := g.TileBox(place); ok {
			r.Box = [][2]int64{rows, columns}
		}
		races = append(races, r)
	}
	return races
}

// sideOf describes one of the two. Its stream has the number that the file gives it, if it gives one.
func sideOf(g *dag.Graph, node dag.NodeID, name string, stream int32, mode dag.Mode) RaceSide {
	n := &g.Nodes[node]
	if written := n.Stream.Number(); written >= 0 {
		stream = written
	}
	return RaceSide{name, stream, mode.String(), n.Pos.Line}
}

// PrintAllowed says which races a run was allowed to have.
func (u *Session) PrintAllowed(races []Race) {
	if len(races) == 0 {
		return
	}
	r := &races[0]
	more := ""
	if len(races) > 1 {
		more = ", and others that check lists"
	}
	_ = u.Stdout.Printf("  %s: nothing orders %s and %s on %s (%s)%s\n", u.Paint(u.Stdout, cli.Red, words.Count(len(races), "race", "races")+" allowed"),
		r.First.text(), r.Second.text(), r.Place, r.Why, more)
}
