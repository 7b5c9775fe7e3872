// Tests of what a run does with what is known of its pipeline.

package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/cmd/dagrun/internal/runs"
	"github.com/dagrun/dagrun/runtime"
)

func TestWarmUpsOfKnownPlansAreLengthened(t *testing.T) {
	t.Parallel()
	known := runs.Learning{OnGPU: true, Way: &runtime.LearnedWay{}}
	learned, onCPU, several, unknown := known, known, known, known
	learned.Learned, onCPU.OnGPU, several.Ranks, unknown.Way = &runtime.Learned{}, false, true, nil
	for _, c := range []struct {
		what   string
		l      *runs.Learning
		warmup int
		least  time.Duration
	}{
		{"a known plan", &known, 20, runs.Awake},
		{"few replays", &known, 15, 0},
		{"nothing known", &unknown, 20, 0},
		{"a run that learns", &learned, 20, 0},
		{"the CPU device", &onCPU, 20, 0},
		{"several ranks", &several, 20, 0},
		{"--learn=off", nil, 20, 0},
	} {
		require.Equal(t, c.least, c.l.LeastWarmUp(c.warmup), c.what)
	}
}

func TestLearningOnAGPUWakesItFirst(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		what    string
		l       *runs.Learning
		warmup  int
		warming bool
		wake    time.Duration
	}{
		{"a warm-up", &runs.Learning{OnGPU: true}, 20, true, runs.Awake},
		{"replays that count", &runs.Learning{OnGPU: true, Options: runtime.LearnOptions{Wake: time.Hour}}, 0, false, 0},
		{"the CPU device", &runs.Learning{}, 20, true, 0},
		{"several ranks", &runs.Learning{OnGPU: true, Ranks: true}, 20, true, 0},
	} {
		require.True(t, c.l.Within(c.warmup, 200, c.warming), c.what)
		require.Equal(t, c.wake, c.l.Options.Wake, c.what)
	}
}
