// Tests of how many lanes a program takes: too many are slow, but change no verdict.

package order

import (
	"fmt"
	"strings"
	"testing"

	"github.com/dagrun/dagrun/internal/recording"
	"github.com/stretchr/testify/require"
)

func ran(t *testing.T, p *recording.Process, pass pass) *machine {
	t.Helper()
	x, err := newIndex(p)
	require.NoError(t, err)
	m := newMachine(p, x, Options{}, pass)
	m.run()
	return m
}

func TestStreamsHaveOneLane(t *testing.T) {
	m := ran(t, millionLaunches(2000, 8, 2), pass{assume: true, programmatic: true})
	require.Len(t, m.streams, 8)
	for _, s := range m.streams {
		require.Len(t, s.tracks, 1)
	}
}

// Programmatic launches in a row take a lane each up to a limit, and those after a launch that waits take the same again.
func TestRowsOfProgrammaticLaunchesHaveFewLanes(t *testing.T) {
	var text strings.Builder
	text.WriteString("stream s\nalloc A 1000\n")
	row := func(launches int) {
		fmt.Fprintln(&text, "launch whole on s")
		for i := range launches {
			fmt.Fprintf(&text, "launch part on s programmatic writes A[%d:%d]\n", i, i+1)
		}
	}
	row(10)
	row(10)
	m := ran(t, read(text.String()), pass{assume: true})
	require.Len(t, m.acts, 22)
	for _, s := range m.streams {
		require.Len(t, s.tracks, 11)
	}
	row(200)
	m = ran(t, read(text.String()), pass{assume: true})
	for _, s := range m.streams {
		require.Len(t, s.tracks, 64)
	}
	require.Empty(t, m.found(nil, ""))
}

// What nobody learned is not looked for: a second pass is made only for programs of several threads, one of which waited.
func TestPassesThatAreNeeded(t *testing.T) {
	all := pass{assume: true, programmatic: true}
	require.False(t, ran(t, millionLaunches(3000, 8, 1), all).leaned)
	require.True(t, ran(t, millionLaunches(3000, 8, 2), all).leaned)
	require.False(t, ran(t, millionLaunches(3000, 8, 2), all).loosened)
	const waits = "stream s\nthread: 2 launch one on s\nthread: 1 synchronize s\nthread: 1 launch two on s\n"
	require.False(t, ran(t, read(waits), all).leaned, "the thread that waited makes the next call")
	require.True(t, ran(t, read(waits+"thread: 2 launch three on s\n"), all).leaned, "another does")
}
