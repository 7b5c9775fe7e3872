// Races: what a hand-made schedule leaves unordered, described the same way by every command.

package main

import (
	"errors"
	"fmt"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/internal/words"
	"github.com/dagrun/dagrun/planner"
)

// mostRaces is how many races are printed; fixing those usually fixes the rest.
const mostRaces = 20

// unenforced returns the pairs that a plan leaves unordered, at most the given number (0: all), in the order to fix them. The error is
// any other fault of the plan.
func unenforced(g *dag.Graph, plan *planner.Plan, most int) (*planner.Unenforced, error) {
	err := planner.Verify(g, plan)
	switch {
	case err == nil:
		return new(planner.Unenforced), nil
	case !errors.Is(err, planner.ErrHazard):
		return nil, err
	}
	return planner.Violations(g, plan, most)
}

// everyPair returns every pair that a plan leaves unordered. With all it is what is to be listed, otherwise only their number is of interest.
func everyPair(g *dag.Graph, plan *planner.Plan, found *planner.Unenforced, all bool) (*planner.Unenforced, error) {
	if found.Roots == 0 {
		return found, nil
	}
	most := 1
	if all {
		most = 0
	}
	return planner.Pairs(g, plan, most)
}

// racesAllowed returns the races of a plan if the user allows them. If they are not allowed, the error is the race that check prints first.
func racesAllowed(name string, g *dag.Graph, plan *planner.Plan, allowed bool) ([]*planner.Violation, error) {
	found, err := unenforced(g, plan, 0)
	if err != nil {
		return nil, err
	}
	for _, v := range found.Violations {
		if !errors.Is(v, planner.ErrRace) {
			return nil, v
		}
	}
	if len(found.Violations) > 0 && !allowed {
		return nil, fmt.Errorf("%w\n  dagrun check %s lists the races; --allow-races runs it all the same", found.Violations[0], name)
	}
	return found.Violations, nil
}

// race is a pair of accesses that nothing orders.
type race struct {
	First  raceSide   `json:"first"`
	Second raceSide   `json:"second"`
	Buffer string     `json:"buffer"`
	Bytes  [2]int64   `json:"bytes"`
	Box    [][2]int64 `json:"box,omitempty"`
	Why    string     `json:"why"`
	Fix    string     `json:"fix"`
}

type raceSide struct {
	Node   string `json:"node"`
	Stream int32  `json:"stream"`
	Access string `json:"access"`
	Line   int32  `json:"line,omitempty"`
}

func (s *raceSide) text() string {
	if s.Line == 0 {
		return s.Node
	}
	return fmt.Sprintf("%s (line %d)", s.Node, s.Line)
}

// racesOf describes races.
func racesOf(g *dag.Graph, violations []*planner.Violation) []race {
	races := []race{}
	for _, v := range violations {
		races = append(races, race{
			First:  raceSide{v.BeforeName, v.BeforeStream, v.BeforeAccess.String(), g.Nodes[v.Before].Pos.Line},
			Second: raceSide{v.NodeName, v.Stream, v.Access.String(), g.Nodes[v.Node].Pos.Line},
			Buffer: v.BufferName, Bytes: [2]int64{v.Lo, v.Hi}, Box: boxOf(g, v), Why: v.Why.String(), Fix: v.Line,
		})
	}
	return races
}

// place says what both sides touch.
func (r *race) place() string {
	if r.Box != nil {
		return fmt.Sprintf("%s(%d..%d)(%d..%d)", r.Buffer, r.Box[0][0], r.Box[0][1], r.Box[1][0], r.Box[1][1])
	}
	return fmt.Sprintf("%s[%d:%d]", r.Buffer, r.Bytes[0], r.Bytes[1])
}

// boxOf returns the rows and columns of the tile that a race is about, nil if it is about no tile.
func boxOf(g *dag.Graph, v *planner.Violation) [][2]int64 {
	rows, columns, ok := g.TileBox(g.EdgeRange(dag.Edge{Buffer: v.Buffer, Tile: v.Tile, Lo: v.Lo, Hi: v.Hi}))
	if !ok {
		return nil
	}
	return [][2]int64{rows, columns}
}

// printAllowed says which races a run was allowed to have.
func (a *app) printAllowed(races []race) {
	if len(races) == 0 {
		return
	}
	r := &races[0]
	more := ""
	if len(races) > 1 {
		more = ", and others that check lists"
	}
	_ = a.stdout.printf("  %s: nothing orders %s and %s on %s (%s)%s\n", a.paint(a.stdout, red, words.Count(len(races), "race", "races")+" allowed"),
		r.First.text(), r.Second.text(), r.place(), r.Why, more)
}
