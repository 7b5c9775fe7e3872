// Tests of what a run says and does when its replays take another time than when their plan was chosen, and what later runs make of that time.

package main

import (
	"context"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/cmd/dagrun/internal/flags"
	"github.com/dagrun/dagrun/cmd/dagrun/internal/session"
	"github.com/dagrun/dagrun/cudart/host"
	"github.com/dagrun/dagrun/planner"
	"github.com/dagrun/dagrun/runtime"
)

// afterLearning returns a command, a program of a pipeline, and what prepares a run of it, after a first run has compared ways to replay it.
func afterLearning(t *testing.T) (a *app, program *runtime.Program, prepare func() *prepared) {
	ctx := context.Background()
	a = newApp(strings.NewReader(""), io.Discard, io.Discard)
	a.Flags = &flags.Values{Inflight: 1, Iterations: 100, CacheDir: t.TempDir(), Learn: flags.LearnAuto}
	platform, err := host.Open(host.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, platform.Close()) })
	g := wideGraph(t, 3, false)
	prepare = func() *prepared {
		p := &prepared{graph: g, platform: &session.Opened{Platform: platform}, options: planner.Options{Machine: runtime.MachineOf(platform)}}
		p.learning = a.learningOf(p, &session.RunFlags{})
		return p
	}
	p := prepare()
	require.Nil(t, p.learning.way)
	plan, err := planner.New(ctx, g, p.options)
	require.NoError(t, err)
	program, err = runtime.New(ctx, g, plan, platform, runtime.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, program.Close()) })
	learned, err := program.Learn(ctx, p.learning.options)
	require.NoError(t, err)
	require.NotEmpty(t, learned.Ways)
	require.NoError(t, p.learning.recalled.Keep(ctx, learned, false))
	return a, program, prepare
}

func TestTwoRunsInARowCompareAgain(t *testing.T) {
	a, program, prepare := afterLearning(t)
	ran := func(took time.Duration) *learnReport {
		p := prepare()
		require.NotNil(t, p.learning.way)
		a.settle(context.Background(), p, program, 100, 0, took)
		return p.learning.report()
	}
	r := ran(time.Hour)
	require.True(t, r.Drifted)
	require.False(t, r.Again)
	require.Regexp(t, `; replays take 36 s, [0-9.]+ us when this plan was chosen; if the next run differs too, plans are compared again$`, r.text())
	r = ran(time.Millisecond)
	require.False(t, r.Drifted, "too short to tell")
	require.NotContains(t, r.text(), "replays take")
	r = ran(time.Hour)
	require.True(t, r.Drifted)
	require.True(t, r.Again)
	require.Contains(t, r.text(), "; the run before differed too, so the next one compares plans again")
	require.Nil(t, prepare().learning.way)
}

func TestRunsOnAGPUKeepHowLongReplaysTook(t *testing.T) {
	a, program, prepare := afterLearning(t)
	took := func(onGPU bool, replays int, warmup, took time.Duration) []float64 {
		p := prepare()
		p.learning.onGPU = onGPU
		a.settle(context.Background(), p, program, replays, warmup, took)
		own := prepare().learning.recalled
		for k := range own.Ways {
			if w := &own.Ways[k]; len(w.Took) > 0 {
				return w.Took
			}
		}
		return nil
	}
	each := prepare().learning.way.Each.Median
	hundred := time.Duration(100 * each * 1e3)
	require.Empty(t, took(false, 100, awake, hundred), "the CPU device compares ways instead")
	require.Empty(t, took(true, 19, awake, hundred), "too few replays")
	require.Empty(t, took(true, 100, awake-1, 4*awake), "too short a warm-up, and too short a run to make up for it")
	kept := took(true, 100, awake, hundred)
	require.Len(t, kept, 1)
	require.InEpsilon(t, each, kept[0], 0.001)
}

func TestRunsSayThatTheyTryAWay(t *testing.T) {
	_, _, prepare := afterLearning(t)
	l := prepare().learning
	l.recalled.Tried = 3
	require.Regexp(t, `^learned earlier: .* is the best of 3 ways to replay$`, l.report().text())
	require.False(t, l.report().Tries)
	l.recalled.Ways = append(l.recalled.Ways, runtime.LearnedWay{Took: []float64{1}})
	require.Regexp(t, `^learned earlier: .* may be the best of 3 ways to replay$`, l.report().text())
	require.True(t, l.report().Tries)
}
