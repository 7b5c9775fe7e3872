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
		what       string
		l          *learning
		warmup     int
		took, each time.Duration
		more       int
	}{
		{"a short one", &known, 20, 2 * time.Millisecond, 100 * time.Microsecond, 180},
		{"replays of no time", &known, 20, 0, 0, 20_000},
		{"one that is long enough", &known, 20, 20 * time.Millisecond, 100 * time.Microsecond, 0},
		{"few replays", &known, 15, 0, 100 * time.Microsecond, 0},
		{"nothing known", &unknown, 20, 0, 100 * time.Microsecond, 0},
		{"a run that learns", &learned, 20, 0, 100 * time.Microsecond, 0},
		{"the CPU device", &onCPU, 20, 0, 100 * time.Microsecond, 0},
		{"several ranks", &several, 20, 0, 100 * time.Microsecond, 0},
		{"--learn=off", nil, 20, 0, 100 * time.Microsecond, 0},
	} {
		require.Equal(t, c.more, c.l.lengthens(c.warmup, c.took, c.each), c.what)
	}
}
