// Options: how to change a graph, and the errors of graphs that cannot be changed so.

package spread

import (
	"github.com/dagrun/dagrun/planner"
	"github.com/dagrun/dagrun/planner/internal/placement"
)

// Options says how to change a graph.
type Options struct {
	planner.Options        // how what comes of it will be planned
	Devices         int    // how many devices there are; 0: 1
	Policy          string // "auto" (also ""), or one of Policies
	Spill           bool   // where no placement fits, data may leave the devices for a while
}

var (
	// ErrCannot is matched by the error for a graph that cannot be spread.
	ErrCannot = placement.ErrCannot
	// ErrCannotSpill is matched by the error for a graph that needs more memory than a device has even with spilling.
	ErrCannotSpill = placement.ErrCannotSpill
)

// Policies lists the names that Options.Policy accepts.
func Policies() []string { return placement.Names() }
