// Races: what a hand-made schedule leaves unordered, described the same way by every command.

package main

import (
	"errors"
	"fmt"

	"github.com/dagrun/dagrun/dag"
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

// racesAllowed reports whether the plan has races and the user allows them. If they are not allowed, the error is the race that check
// prints first.
func racesAllowed(name string, g *dag.Graph, plan *planner.Plan, allowed bool) (bool, error) {
	found, err := unenforced(g, plan, 0)
	if err != nil {
		return false, err
	}
	for _, v := range found.Violations {
		if !errors.Is(v, planner.ErrRace) {
			return false, v
		}
	}
	if len(found.Violations) > 0 && !allowed {
		return false, fmt.Errorf("%w\n  dagrun check %s lists the races; --allow-races runs it all the same", found.Violations[0], name)
	}
	return len(found.Violations) > 0, nil
}
