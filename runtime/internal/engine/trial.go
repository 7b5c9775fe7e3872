// A trial: a round of replays that learning times, for those who want to know where a program is that does not end.

package engine

import (
	"time"

	"github.com/dagrun/dagrun/planner/plan"
)

// Trial is a round of replays that learning times, or measures nodes in.
type Trial struct {
	Plan    *plan.Plan
	Graph   bool // replayed as a graph, or else as streams
	Threads int
	Overlap bool   // launches overlap
	Before  uint64 // replays of the program before the round
	Count   int    // replays of the round
	Began   time.Time
}
