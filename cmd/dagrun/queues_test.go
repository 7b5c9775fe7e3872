// Tests of how many hardware queues a run asks for.

package main

import (
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/cudart"
	"github.com/dagrun/dagrun/planner"
	"github.com/dagrun/dagrun/runtime"
)

// queuedPlatform remembers how many queues it was asked for.
type queuedPlatform struct {
	cudart.Platform
	asked []int
}

func (p *queuedPlatform) SetQueues(n int) error {
	p.asked = append(p.asked, n)
	return nil
}

func TestMoreQueuesAreAskedForOnlyForMoreStreams(t *testing.T) {
	both := []runtime.Mode{runtime.Captured, runtime.Streams}
	learns := func(way *runtime.LearnedWay, modes []runtime.Mode) *learning {
		return &learning{way: way, options: runtime.LearnOptions{Modes: modes}}
	}
	for _, c := range []struct {
		name        string
		streams     int
		flags       flags
		learning    *learning
		environment string
		more        bool
	}{
		{name: "8 streams", streams: 8},
		{name: "9 streams", streams: 9, more: true},
		{name: "the environment decides", streams: 9, environment: "16"},
		{name: "as a graph", streams: 9, flags: flags{replay: graphOn}},
		{name: "3 replays of 3 streams in flight", streams: 3, flags: flags{inflight: 3}, more: true},
		{name: "2 replays of 4 streams in flight", streams: 4, flags: flags{inflight: 2}},
		{name: "plans will be compared, as graphs too", streams: 9, flags: flags{iterations: 200}, learning: learns(nil, both)},
		{name: "plans will be compared, as streams only", streams: 9, flags: flags{iterations: 200}, learning: learns(nil, both[1:]), more: true},
		{name: "too few replays to compare plans", streams: 9, flags: flags{iterations: 1}, learning: learns(nil, both), more: true},
		{name: "an earlier run chose streams", streams: 9, flags: flags{iterations: 200}, learning: learns(&runtime.LearnedWay{Mode: runtime.Streams, Threads: 1}, both), more: true},
		{name: "an earlier run chose a graph", streams: 9, flags: flags{iterations: 200}, learning: learns(&runtime.LearnedWay{Mode: runtime.Captured, Threads: 1}, both)},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Setenv(queuesVariable, c.environment)
			a := newApp(strings.NewReader(""), io.Discard, io.Discard)
			a.flags = &c.flags
			a.flags.inflight = max(1, a.flags.inflight)
			platform := &queuedPlatform{}
			p := &prepared{platform: &opened{Platform: platform}, plan: &planner.Plan{Streams: make([]planner.Stream, c.streams)}, learning: c.learning}
			require.NoError(t, a.askForQueues(p))
			var want []int
			if c.more {
				want = []int{mostQueues}
			}
			require.Equal(t, want, platform.asked)
		})
	}
}
