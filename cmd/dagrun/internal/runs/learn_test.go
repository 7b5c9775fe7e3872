// Tests of what a run does with what is known of its pipeline.

package runs

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/runtime/learn"
)

func TestWarmUpsOfKnownPlansAreLengthened(t *testing.T) {
	t.Parallel()
	known := Learning{OnGPU: true, way: &learn.Way{}}
	learned, onCPU, several, unknown := known, known, known, known
	learned.learned, onCPU.OnGPU, several.ranks, unknown.way = &learn.Learned{}, false, true, nil
	for _, c := range []struct {
		what   string
		l      *Learning
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
		require.Equal(t, c.least, c.l.LeastWarmUp(c.warmup), c.what)
	}
}

func TestLearningOnAGPUWakesItFirst(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		what    string
		l       *Learning
		warmup  int
		warming bool
		wake    time.Duration
	}{
		{"a warm-up", &Learning{OnGPU: true}, 20, true, awake},
		{"replays that count", &Learning{OnGPU: true, Options: learn.Options{Wake: time.Hour}}, 0, false, 0},
		{"the CPU device", &Learning{}, 20, true, 0},
		{"several ranks", &Learning{OnGPU: true, ranks: true}, 20, true, 0},
	} {
		require.True(t, c.l.Within(c.warmup, 200, c.warming), c.what)
		require.Equal(t, c.wake, c.l.Options.Wake, c.what)
	}
}

func TestLearnedText(t *testing.T) {
	ways := []WayReport{{Strategy: "list", Streams: 2, Replay: "graph", Threads: 1}}
	for want, r := range map[string]LearnReport{
		"learned earlier: list on 2 streams, as a graph":                                 {From: "cache", Tried: 1, Ways: ways},
		"learned earlier: list on 2 streams, as a graph is the best of 3 ways to replay": {From: "cache", Tried: 3, Ways: ways},
		"learned: list on 2 streams, as a graph is the best of 3 ways to replay":         {From: "replays", Tried: 3, Ways: ways},
		"learned: how long 1 node takes, from 6 replays":                                 {Measured: 1, Replays: 6},
		"learned earlier: how long 4 nodes take":                                         {Known: 4},
		"learned earlier: list on 2 streams, as a graph is the best of 3 ways to replay; replays take 158 us, 131 us when this plan was chosen; " +
			"if the next run differs too, plans are compared again": {From: "cache", Tried: 3, Ways: ways, drift: drift{runs: 1, us: 158.1, then: 131.2}},
		"learned earlier: list on 2 streams, as a graph; replays take 1.5 ms, 131 us when this plan was chosen; " +
			"the run before differed too, so the next one compares plans again": {From: "cache", Tried: 1, Ways: ways, drift: drift{runs: 2, again: true, us: 1500, then: 131.2}},
	} {
		require.Equal(t, want, r.Text())
	}
}
