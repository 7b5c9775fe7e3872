// Tests of graphs that cover refuses.

package place

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/planner/internal/plantest"
)

func TestCoverRefusesLargeGraphs(t *testing.T) {
	p := &Problem{ctx: context.Background(), g: plantest.Chains(1, mostCovered+1).Ordered(t)}
	_, err := Cover(p)
	require.ErrorIs(t, err, ErrGraphTooLarge)
	require.EqualError(t, err, "cover takes graphs of up to 50000 nodes, this one has 50001; list takes any: graph too large for the strategy")
}
