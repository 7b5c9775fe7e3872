// Tests that --save-plan writes the plan that ran, which learning may have chosen.

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestSavePlanWritesThePlanThatRan(t *testing.T) {
	saved, cache := filepath.Join(t.TempDir(), "plan.json"), t.TempDir()
	file := "../../pipelines/taskbench-trivial.yaml"
	run := func(args ...string) (ran struct {
		Strategy       string
		Streams, Waits int
		Learning       struct{ From string }
	}) {
		var out, errors bytes.Buffer
		a := newApp(strings.NewReader(""), &out, &errors)
		require.Zero(t, a.execute(context.Background(), append([]string{file, "--backend", "cpu", "--output", "json", "--cache-dir", cache}, args...)), errors.String())
		require.NoError(t, json.Unmarshal(out.Bytes(), &ran))
		return ran
	}
	for _, from := range []string{"replays", "replays", "replays", "cache"} {
		ran := run("--iterations", "300", "--save-plan", saved)
		require.Equal(t, from, ran.Learning.From)
		text, err := os.ReadFile(saved)
		require.NoError(t, err)
		var plan struct {
			Strategy string
			Streams  []any
			Stats    struct{ Waits int }
		}
		require.NoError(t, json.Unmarshal(text, &plan))
		require.Equal(t, ran.Strategy, plan.Strategy)
		require.Len(t, plan.Streams, ran.Streams)
		require.Equal(t, ran.Waits, plan.Stats.Waits)
		require.Equal(t, ran.Streams, run("--plan", saved).Streams)
	}
}
