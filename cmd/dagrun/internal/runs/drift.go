// How the time of replays differs from when their plan was chosen, and what is said about it.

package runs

import (
	"fmt"

	"github.com/dagrun/dagrun/cmd/dagrun/internal/cli"
)

// drift is how the time of a run's replays differs from when their plan was chosen.
type drift struct {
	runs     int     // how many in a row took another time, this one included; 0 if it took the same
	again    bool    // the next run compares plans again
	us, then float64 // that a replay takes, and took then
}

// text continues a line about the plan; "" if nothing differs.
func (d drift) text() string {
	if d.runs == 0 {
		return ""
	}
	differs := fmt.Sprintf("; replays take %s, %s when this plan was chosen; ", cli.Duration(d.us), cli.Duration(d.then))
	if d.again {
		return differs + "the run before differed too, so the next one compares plans again"
	}
	return differs + "if the next run differs too, plans are compared again"
}
