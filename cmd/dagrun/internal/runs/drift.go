// How the time of replays differs from when their plan was chosen, and what is said about it.

package runs

import (
	"fmt"

	"github.com/dagrun/dagrun/cmd/dagrun/internal/cli"
)

// Drift is how the time of a run's replays differs from when their plan was chosen.
type Drift struct {
	Runs     int     // how many in a row took another time, this one included; 0 if it took the same
	Again    bool    // the next run compares plans again
	Us, Then float64 // that a replay takes, and took then
}

// text continues a line about the plan; "" if nothing differs.
func (d Drift) text() string {
	if d.Runs == 0 {
		return ""
	}
	differs := fmt.Sprintf("; replays take %s, %s when this plan was chosen; ", cli.Duration(d.Us), cli.Duration(d.Then))
	if d.Again {
		return differs + "the run before differed too, so the next one compares plans again"
	}
	return differs + "if the next run differs too, plans are compared again"
}
