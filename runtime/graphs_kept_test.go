// Tests of learning that keeps graphs: each is made once, their results are those of other ways, and nothing is left behind, whichever call fails.

package runtime_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/cudart"
	"github.com/dagrun/dagrun/cudart/fault"
	"github.com/dagrun/dagrun/cudart/host"
	"github.com/dagrun/dagrun/planner"
	"github.com/dagrun/dagrun/runtime"
	"github.com/dagrun/dagrun/runtime/learn"
)

// learnedLife makes a program, learns from its replays, runs what learning chose, and closes it.
func learnedLife(t *testing.T, platform cudart.Platform, memory runtime.MemoryMode, replays int) (learned *learn.Learned, checksums []runtime.Checksum, err error) {
	ctx := context.Background()
	g := carrying(t)
	options := planner.Options{KeepAll: memory == runtime.Separate, Machine: runtime.MachineOf(platform)}
	plan, err := planner.New(ctx, g, options)
	require.NoError(t, err)
	p, err := runtime.New(ctx, g, plan, platform, runtime.Options{Memory: memory})
	if err != nil {
		return nil, nil, err
	}
	defer func() { err = errors.Join(err, p.Close()) }()
	if learned, err = p.Learn(ctx, learn.Options{Plan: options, Replays: replays, For: time.Hour}); err != nil {
		return nil, nil, err
	}
	if err := p.Run(ctx, replays-learned.Replays); err != nil {
		return nil, nil, err
	}
	results, err := p.Finish(ctx)
	if err != nil {
		return nil, nil, err
	}
	return learned, results.Checksums, nil
}

func TestLearningMakesEachGraphOnce(t *testing.T) {
	device, err := host.Open(host.Options{CheckOrder: true})
	require.NoError(t, err)
	platform := fault.Wrap(device, fault.Plan{})
	defer platform.Close()
	learned, got, err := learnedLife(t, platform, runtime.Separate, 400) // no plan needs more memory than another
	require.NoError(t, err)
	want, _ := sums(t, carrying(t), device, 400, runtime.Options{}, nil, nil)
	require.Equal(t, want, got)
	graphs := 0
	for _, w := range learned.Ways {
		if w.Mode == runtime.Captured {
			graphs++
		}
	}
	require.Greater(t, graphs, 1)
	require.Equal(t, graphs, calls(platform, "cuStreamEndCapture"))
}

// calls is how many calls have been made whose names begin so.
func calls(platform *fault.Platform, prefix string) (n int) {
	for _, call := range platform.Calls() {
		if strings.HasPrefix(call, prefix) {
			n++
		}
	}
	return n
}

func TestLearningLeavesNothingBehindWhicheverCallFails(t *testing.T) {
	const step = 7
	for k := 1; ; k += step {
		device, err := host.Open(host.Options{})
		require.NoError(t, err)
		platform := fault.Wrap(device, fault.Plan{Call: k})
		_, _, err = learnedLife(t, platform, runtime.Arena, 60)
		broken := platform.Broken()
		require.Equal(t, cudart.Live{}, device.Live(), "call %d: %v", k, err)
		err = platform.Close()
		if !broken { // learning made fewer calls; closing the platform may be the one that fails
			require.Equal(t, platform.Broken(), err != nil)
			require.Greater(t, k, 50*step)
			return
		}
		require.NoError(t, err)
	}
}
