// Tests of what plans of spread graphs say.

package plan_test

import (
	"fmt"
	"io"
	"math"
	"testing"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/planner/plan"
	"github.com/stretchr/testify/require"
)

// A plan filled in by hand could have billions of devices to list.
func TestPlansOfTooManyDevicesAreRefused(t *testing.T) {
	b := dag.New("few")
	b.Task("only", b.Whole(b.Device("d_x", dag.F32, 4)).Out())
	g, err := b.Graph()
	require.NoError(t, err)
	for _, devices := range []int{-1, dag.MostDevices + 1, math.MaxInt32} {
		p := &plan.Plan{Spread: &plan.Spread{Devices: devices}}
		want := fmt.Sprintf("malformed plan: the graph is spread over %d devices, and there can be from 1 to 64", devices)
		for _, err := range []error{p.WriteText(io.Discard, g, nil), p.EncodeJSON(io.Discard, g)} {
			require.ErrorIs(t, err, plan.ErrPlanShape)
			require.EqualError(t, err, want)
		}
	}
}
