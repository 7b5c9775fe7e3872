// Tests of what a run says and does when its replays take another time than when their plan was chosen, and what later runs make of that time.

package runs

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/cmd/dagrun/internal/flags"
	"github.com/dagrun/dagrun/cmd/dagrun/internal/session"
	"github.com/dagrun/dagrun/cudart/host"
	"github.com/dagrun/dagrun/planner"
	"github.com/dagrun/dagrun/runtime"
	"github.com/dagrun/dagrun/runtime/learn"
)

// afterLearning returns a command, a program of a pipeline, and what prepares a run of it, after a first run has compared ways to replay it.
func afterLearning(t *testing.T) (a *Runs, program *runtime.Program, prepare func() *Prepared) {
	ctx := context.Background()
	a = silent()
	a.Flags = &flags.Values{Inflight: 1, Iterations: 100, CacheDir: t.TempDir(), Learn: flags.LearnAuto}
	platform, err := host.Open(host.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, platform.Close()) })
	g := wideGraph(t, 3, false)
	prepare = func() *Prepared {
		p := &Prepared{Graph: g, Platform: &session.Opened{Platform: platform}, Options: planner.Options{Machine: runtime.MachineOf(platform)}}
		p.Learning = a.LearningOf(p, &session.RunFlags{})
		return p
	}
	p := prepare()
	require.Nil(t, p.Learning.way)
	plan, err := planner.New(ctx, g, p.Options)
	require.NoError(t, err)
	program, err = runtime.New(ctx, g, plan, platform, runtime.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, program.Close()) })
	learned, err := program.Learn(ctx, p.Learning.Options)
	require.NoError(t, err)
	require.NotEmpty(t, learned.Ways)
	require.NoError(t, p.Learning.Recalled.Keep(ctx, learned, false))
	return a, program, prepare
}

func TestTwoRunsInARowCompareAgain(t *testing.T) {
	a, program, prepare := afterLearning(t)
	ran := func(took time.Duration) *LearnReport {
		p := prepare()
		require.NotNil(t, p.Learning.way)
		a.Settle(context.Background(), p, program, 100, 0, took)
		return p.Learning.Report()
	}
	r := ran(time.Hour)
	require.True(t, r.Drifted)
	require.False(t, r.Again)
	require.Regexp(t, `; replays take 36 s, [0-9.]+ us when this plan was chosen; if the next run differs too, plans are compared again$`, r.Text())
	r = ran(time.Millisecond)
	require.False(t, r.Drifted, "too short to tell")
	require.NotContains(t, r.Text(), "replays take")
	r = ran(time.Hour)
	require.True(t, r.Drifted)
	require.True(t, r.Again)
	require.Contains(t, r.Text(), "; the run before differed too, so the next one compares plans again")
	require.Nil(t, prepare().Learning.way)
}

func TestRunsOnAGPUKeepHowLongReplaysTook(t *testing.T) {
	a, program, prepare := afterLearning(t)
	took := func(onGPU bool, replays int, warmup, took time.Duration) []float64 {
		p := prepare()
		p.Learning.OnGPU = onGPU
		a.Settle(context.Background(), p, program, replays, warmup, took)
		own := prepare().Learning.Recalled
		for k := range own.Ways {
			if w := &own.Ways[k]; len(w.Took) > 0 {
				return w.Took
			}
		}
		return nil
	}
	each := prepare().Learning.way.Each.Median
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
	l := prepare().Learning
	l.Recalled.Tried = 3
	require.Regexp(t, `^learned earlier: .* is the best of 3 ways to replay$`, l.Report().Text())
	require.False(t, l.Report().Tries)
	l.Recalled.Ways = append(l.Recalled.Ways, learn.Way{Took: []float64{1}})
	require.Regexp(t, `^learned earlier: .* may be the best of 3 ways to replay$`, l.Report().Text())
	require.True(t, l.Report().Tries)
}
