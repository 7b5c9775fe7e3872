// The Task Bench table: records, waits and makespan of every strategy on the published patterns. Asserts no times.

package planner

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
)

// finishTimes runs a plan on the unit machine as its streams say: a launch starts when its stream and its waits let it.
func finishTimes(tb testing.TB, plan *Plan, duration []float64) float64 {
	tb.Helper()
	at := make([]int, len(plan.Streams))
	clock := make([]float64, len(plan.Streams))
	event := make([]float64, plan.Events)
	longest := 0.0
	for _, k := range plan.Order {
		op := plan.Streams[k].Ops[at[k]]
		at[k]++
		switch op.Kind {
		case Wait:
			clock[k] = max(clock[k], event[op.Event])
		case Launch:
			clock[k] += duration[op.Node]
			longest = max(longest, clock[k])
		case Record:
			event[op.Event] = clock[k]
		}
	}
	for k := range at {
		require.Len(tb, plan.Streams[k].Ops, at[k], "the order leaves ops of stream %d out", k)
	}
	return longest
}

func TestTaskBenchRoundRobinAndSerial(t *testing.T) {
	g := taskBench("stencil", 8, 8, 1).graph(t)
	plan, err := New(context.Background(), g, Options{Strategy: "roundrobin", Streams: 4, Machine: Unit()})
	require.NoError(t, err)
	require.Equal(t, []int{56, 98}, []int{plan.Stats.Records, plan.Stats.Waits})
	require.Equal(t, 16.0, finishTimes(t, plan, Durations(g, Unit(), nil)))
	plan, err = New(context.Background(), g, Options{Strategy: "serial"})
	require.NoError(t, err)
	require.Equal(t, []int{0, 0, 1}, []int{plan.Stats.Records, plan.Stats.Waits, plan.Stats.Streams})
}
