// Tests of what a run does with what is known of its pipeline.

package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/runtime"
)

func TestWarmUpsOfKnownPlansAreLengthened(t *testing.T) {
	t.Parallel()
	known := learning{onGPU: true, way: &runtime.LearnedWay{}}
	learned, onCPU, several, unknown := known, known, known, known
	learned.learned, onCPU.onGPU, several.ranks, unknown.way = &runtime.Learned{}, false, true, nil
	for _, c := range []struct {
		what   string
		l      *learning
		warmup int
		least  time.Duration
	}{
		{"a known plan", &known, 20, awake},
		{"few replays", &known, 15, 0},
		{"nothing known", &unknown, 20, 0},
		{"a run that learns", &learned, 20, 0},
		{"the CPU device", &onCPU, 20, 0},
		{"several ranks", &several, 20, 0},
		{"--learn=off", nil, 20, 0},
	} {
		require.Equal(t, c.least, c.l.leastWarmUp(c.warmup), c.what)
	}
}

func TestLearningOnAGPUWakesItFirst(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		what    string
		l       *learning
		warmup  int
		warming bool
		wake    time.Duration
	}{
		{"a warm-up", &learning{onGPU: true}, 20, true, awake},
		{"replays that count", &learning{onGPU: true, options: runtime.LearnOptions{Wake: time.Hour}}, 0, false, 0},
		{"the CPU device", &learning{}, 20, true, 0},
		{"several ranks", &learning{onGPU: true, ranks: true}, 20, true, 0},
	} {
		require.True(t, c.l.within(c.warmup, 200, c.warming), c.what)
		require.Equal(t, c.wake, c.l.options.Wake, c.what)
	}
}
