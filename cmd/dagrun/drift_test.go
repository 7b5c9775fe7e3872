// Tests of what a run says and does when its replays take another time than when their plan was chosen.

package main

import (
	"context"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/cudart/host"
	"github.com/dagrun/dagrun/planner"
	"github.com/dagrun/dagrun/runtime"
)

func TestTwoRunsInARowCompareAgain(t *testing.T) {
	ctx := context.Background()
	a := newApp(strings.NewReader(""), io.Discard, io.Discard)
	a.flags = &flags{inflight: 1, iterations: 100, cacheDir: t.TempDir(), learn: learnAuto}
	platform, err := host.Open(host.Options{})
	require.NoError(t, err)
	defer platform.Close()
	g := wideGraph(t, 3, false)
	prepare := func() *prepared {
		p := &prepared{graph: g, platform: &opened{Platform: platform}, options: planner.Options{Machine: runtime.MachineOf(platform)}}
		p.learning = a.learningOf(p, &runFlags{})
		return p
	}
	p := prepare()
	require.Nil(t, p.learning.way)
	plan, err := planner.New(ctx, g, p.options)
	require.NoError(t, err)
	program, err := runtime.New(ctx, g, plan, platform, runtime.Options{})
	require.NoError(t, err)
	defer program.Close()
	learned, err := program.Learn(ctx, p.learning.options)
	require.NoError(t, err)
	require.NotEmpty(t, learned.Ways)
	require.NoError(t, p.learning.recalled.Keep(ctx, learned, false))

	ran := func(took time.Duration) *learnReport {
		p := prepare()
		require.NotNil(t, p.learning.way)
		a.settle(ctx, p, program, 100, took)
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
