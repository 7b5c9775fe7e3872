// Tests of replays in flight on the CPU device: correct results pass, wrong results and failures are reported.

package main

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/cudart"
	"github.com/dagrun/dagrun/cudart/host"
	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/dag/file"
	"github.com/dagrun/dagrun/runtime"
)

func saxpyInflight(t *testing.T, p cudart.Platform, alpha string, inflight int) (*dag.Graph, *runtime.Program) {
	g, err := loadPipeline("../../../pipelines/saxpy.yaml", []file.Override{{Name: "alpha", Value: alpha}, {Name: "n", Value: "5000"}})
	require.NoError(t, err)
	program, err := newInflight(context.Background(), g, p, onOneStream(runtime.MachineOf(p)), inflight)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, program.Close()) })
	return g, program
}

func TestInflightResultsAreCompared(t *testing.T) {
	ctx := context.Background()
	p, err := host.Open(host.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, p.Close()) })
	g, program := saxpyInflight(t, p, "2", 3)
	_, same := saxpyInflight(t, p, "2", 1)
	_, other := saxpyInflight(t, p, "2.5", 1)
	require.NoError(t, same.Run(ctx, 1))
	require.NoError(t, other.Run(ctx, 1))
	require.NoError(t, compareInflight(ctx, g, program, same, 3))
	require.ErrorContains(t, compareInflight(ctx, g, program, other, 3), "replay 6: the bits of out differ from those of the run on one stream")
	for _, inflight := range []int{1, 3} {
		us, err := steadyState(ctx, program, inflight)
		require.NoError(t, err)
		require.Positive(t, us)
	}
	require.ErrorContains(t, turns(ctx, program, 3, 4, nil, func(k int, _ *runtime.Turn) error {
		if k == 2 {
			return errors.New("third is wrong")
		}
		return nil
	}), "third is wrong")
}
