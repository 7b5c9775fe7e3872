// Tests of the limit on the size of plan files.

package plan

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/dag"
)

func TestDecodePlanStopsAtItsLimit(t *testing.T) {
	g, err := dag.New("small").Graph()
	require.NoError(t, err)
	_, err = DecodePlan(strings.NewReader(strings.Repeat(" ", int(planLimit(g))+1)), g)
	require.EqualError(t, err, fmt.Sprintf("plan: larger than %d bytes", planLimit(g)))
}
