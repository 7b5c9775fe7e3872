// Tests of hangs while plans are compared: a new process names the node, and saves nothing.

package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/cmd/dagrun/internal/cli"
	"github.com/dagrun/dagrun/cmd/dagrun/internal/flags"
	"github.com/dagrun/dagrun/cmd/dagrun/internal/runs"
	"github.com/dagrun/dagrun/cmd/dagrun/internal/session"
	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/planner"
	"github.com/dagrun/dagrun/runtime"
)

// searched runs the search for a hang of a pipeline, and returns what the command then says, and which node it names.
func searched(t *testing.T, pipeline string, limit time.Duration) (text, node string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "hang.yaml")
	require.NoError(t, os.WriteFile(file, []byte(pipeline), 0o600))
	var stdout, stderr bytes.Buffer
	a := newApp(bytes.NewReader(nil), &stdout, &stderr)
	a.Flags = &flags.Values{Backend: "cpu", Strategy: "serial", Memory: "arena", MaxEdges: dag.MaxEdges}
	g, err := a.LoadGraph(context.Background(), file)
	require.NoError(t, err)
	plan, err := planner.New(context.Background(), g, planner.Options{})
	require.NoError(t, err)
	trial := &runtime.Trial{Plan: plan, Graph: true, Before: 2, Count: 3, Began: time.Now()}
	h := &runs.Hang{Trial: func() *runtime.Trial { return trial }}
	a.Hung = h.Says
	h.Found.Store(a.running.SearchHang(context.Background(), &runs.Prepared{Name: file, Graph: g}, &session.RunFlags{}, selfAsCommand(t), trial, limit))
	files, err := filepath.Glob(filepath.Join(filepath.Dir(file), "*"))
	require.NoError(t, err)
	require.Equal(t, []string{file}, files)
	return a.Left(), a.FailureOf(context.DeadlineExceeded, cli.StatusTimeout).Node
}

func TestHangIsFoundInANewProcess(t *testing.T) {
	text, node := searched(t, `version: 1
name: hang
nodes:
  - {name: quick, kernel: spin, args: [10]}
  - {name: slow, kernel: spin, args: [1e15]}
`, time.Second)
	require.Regexp(t, `^; replays 3 to 5 were being timed: \w+ on \d+ streams?, as a graph; in another process, where nodes ran one at a time, node "slow" did not end$`, text)
	require.Equal(t, "slow", node)
}

func TestHangThatIsNotFoundInANewProcess(t *testing.T) {
	text, node := searched(t, `version: 1
name: ends
buffers:
  x: {place: device, dtype: f32, shape: [4], init: 1}
  y: {place: host, dtype: f32, shape: [4], save: y.npy}
nodes:
  - {name: back, memcpy: {from: x, to: y}}
`, time.Minute)
	require.Contains(t, text, "where nodes ran one at a time, 5 replays ended, so nodes hang only side by side or now and then")
	require.Empty(t, node)
}

// The new process has time to end after its limit, and most of the time that is left.
func TestSearchesForHangsEndEarlier(t *testing.T) {
	require.Equal(t, 1500*time.Millisecond, runs.SearchLimit(runs.LeastSearch))
	require.Equal(t, 12*time.Second, runs.SearchLimit(15*time.Second))
	require.Equal(t, time.Hour-3*time.Second, runs.SearchLimit(time.Hour))
}
