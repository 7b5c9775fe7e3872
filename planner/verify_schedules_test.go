// Schedules for tests of the proof: small random graphs, plans made in the simplest way, and happens-before by brute force.
// Uses none of the code under test.

package planner

import (
	"math/rand/v2"

	"github.com/dagrun/dagrun/planner/internal/plantest"
	"github.com/dagrun/dagrun/planner/plan"
)

// thinned removes at most the given number of waits from a plan.
func thinned(rng *rand.Rand, p *Plan, most int) *Plan {
	for range rng.IntN(most + 1) {
		var waits [][2]int
		for s := range p.Streams {
			for i, op := range p.Streams[s].Ops {
				if op.Kind == plan.Wait {
					waits = append(waits, [2]int{s, i})
				}
			}
		}
		if len(waits) > 0 {
			w := waits[rng.IntN(len(waits))]
			p = plantest.WithoutOp(p, w[0], w[1])
		}
	}
	return p
}
