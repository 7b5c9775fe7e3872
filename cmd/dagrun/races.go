// Races: what a schedule of the user's own leaves unordered, named alike by every command. Orders nothing itself.

package main

import (
	"errors"
	"fmt"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/planner"
)

// mostRaces is how many races are printed; mending those usually mends the rest.
const mostRaces = 20

// unenforced returns the pairs that a plan leaves unordered, at most so many (0: all), the first to mend first. All else that
// can be wrong with a plan is the error.
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

// racesAllowed reports whether the plan has races that the user takes; without that the one that check prints first is the error.
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
		return false, fmt.Errorf("%w\n  dagrun check %s lists every race; --allow-races runs it all the same", found.Violations[0], name)
	}
	return len(found.Violations) > 0, nil
}
