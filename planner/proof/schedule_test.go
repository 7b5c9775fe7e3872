// Tests of how many ops a plan may have: as many as their places can be numbered.

package proof

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/planner/plan"
)

// Streams that share a list of ops have too many of them without taking memory.
func TestPlansHaveFewerThanTwoToTheThirtyFirstOps(t *testing.T) {
	g := tasks(t, "a")
	ops := make([]plan.Op, 1<<16)
	p := &plan.Plan{Streams: make([]plan.Stream, 1<<15)}
	for k := range p.Streams {
		p.Streams[k].Ops = ops
	}
	last := &p.Streams[len(p.Streams)-1].Ops
	*last = ops[:1<<15-1]
	require.EqualError(t, CheckOps(g, p), "the order has 0 entries, the streams have 2147450879 ops")
	*last = ops[:1<<15]
	require.EqualError(t, CheckOps(g, p), "the plan has 32768 streams and 2147450880 ops; together these must be fewer than 2^31")
	require.ErrorIs(t, CheckOps(g, p), plan.ErrPlanShape)
}
