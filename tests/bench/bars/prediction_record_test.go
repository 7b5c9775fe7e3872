// Tests that a record holds what predictions are made from.

package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/planner"
	"github.com/dagrun/dagrun/runtime"
	"github.com/dagrun/dagrun/runtime/learn"
)

func TestRecordsHoldWhatPredictionsAreMadeFrom(t *testing.T) {
	g, err := parsePipeline("../../../pipelines/taskbench-fft.yaml")
	require.NoError(t, err)
	var plans []*planner.Plan
	for streams := 1; streams <= 4; streams++ {
		plan, err := planner.New(t.Context(), g, planner.Options{Strategy: "list", Streams: streams})
		require.NoError(t, err)
		plans = append(plans, plan)
	}
	way := func(k int, us float64) learn.Way {
		return learn.Way{Plan: plans[k], Mode: runtime.Captured, Threads: 1, Each: runtime.Series{Count: 3, Median: us}}
	}
	r := &record{Pipeline: "taskbench-fft", Given: &learn.Unfitted{Machine: planner.H200(), Samples: make([][]float64, g.Len())},
		Learned: []learn.Way{way(0, 98), way(1, 58), way(3, 44)},
		Ways:    []*predictedWay{{Plan: plans[2], Asked: "list 3", Mode: runtime.Captured, Rounds: []*runtime.Timing{{Wall: 49}, {Wall: 50}, {Wall: 48}}}}}
	require.NoError(t, r.predictAgain(g))
	folder := t.TempDir()
	require.NoError(t, r.write(folder))
	again, err := readRecord(folder + "/taskbench-fft" + recordEnding)
	require.NoError(t, err)
	require.Equal(t, r.Ways, again.Ways)
	was := again.Ways[0].Predicted
	again.Ways[0].Predicted = 0
	require.NoError(t, again.predictAgain(g))
	require.Equal(t, was, again.Ways[0].Predicted)

	slowed := &predictedWay{Plan: plans[2], Mode: runtime.Streams, Rounds: []*runtime.Timing{{Wall: 490}, {Wall: 500}, {Wall: 480}}, Hosts: []float64{1.5, 1.5, 1.5}}
	again.Ways = append(again.Ways, slowed)
	require.NoError(t, again.predictAgain(g))
	require.InEpsilon(t, 1.5*slowed.Predicted, slowed.Now, 0.05, "the host takes longer to submit what takes as long as that")

	s := settings{replay: folder, pipelines: "../../../pipelines"}
	require.NoError(t, s.replayPrediction())
	s.replay = t.TempDir()
	require.ErrorContains(t, s.replayPrediction(), "no records in")
}
