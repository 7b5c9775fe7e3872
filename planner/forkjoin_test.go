// Tests of fork and join: which streams wait for the origin stream and which it waits for.

package planner

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/planner/plan"
)

func TestForkJoinLeavesOutWhatWaitsImply(t *testing.T) {
	launch := func(n int32) plan.Op { return plan.Op{Kind: plan.Launch, Node: dag.NodeID(n), Event: -1} }
	record := func(n, e int32) plan.Op { return plan.Op{Kind: plan.Record, Node: dag.NodeID(n), Event: e} }
	wait := func(n, e int32) plan.Op { return plan.Op{Kind: plan.Wait, Node: dag.NodeID(n), Event: e} }
	p := &Plan{Streams: []plan.Stream{
		{Ops: []plan.Op{launch(0), wait(1, 0), launch(2)}}, // joins stream 1 by its wait
		{Ops: []plan.Op{launch(1), record(1, 0)}},          // needs a fork, no join
		{Ops: []plan.Op{wait(1, 0), launch(3)}},            // needs no fork, a join
		{Ops: []plan.Op{launch(4), record(4, 1)}},          // waited for, but nothing follows the wait: a join
		{Ops: []plan.Op{launch(5), wait(4, 1)}},
		{},
	}}
	require.Equal(t, []int32{1, 3, 4}, p.Fork())
	require.Equal(t, []int32{2, 3, 4}, p.Join())
}
