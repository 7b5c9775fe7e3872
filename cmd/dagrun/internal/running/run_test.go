// What the line of a run says of its time.

package running

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTheTimeOfARun(t *testing.T) {
	for want, r := range map[string]RunReport{
		"no replay":                      {TookUS: 3},
		"1.5 ms":                         {Iterations: 1, TookUS: 1500, EachUS: 1500},
		"20 us per replay (5 in 100 us)": {Iterations: 5, TookUS: 100, EachUS: 20},
		"15 us per replay (80 in 1.2 ms; 120 before them for learning)": {Iterations: 200, TookUS: 9000, EachUS: 45, RestUS: 15, learned: 120},
	} {
		require.Equal(t, want, r.tookText())
	}
}
