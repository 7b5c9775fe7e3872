package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/cmd/dagrun/internal/cli"
	"github.com/dagrun/dagrun/internal/recording"
	"github.com/dagrun/dagrun/runtime/cache"
)

const vitRecording = "internal/replan/testdata/vit.rec"

// described is what the Python package writes of the graph that a recording has.
func described(t *testing.T) map[string]any {
	t.Helper()
	r, err := recording.ReadFile(vitRecording)
	require.NoError(t, err)
	for _, note := range r.Processes[0].Notes {
		if note.Code == recording.NoteGraph {
			about := map[string]any{}
			decoder := json.NewDecoder(bytes.NewReader([]byte(note.Text)))
			decoder.UseNumber()
			require.NoError(t, decoder.Decode(&about))
			about["driver"] = 13000
			return about
		}
	}
	t.Fatal("the recording has no graph")
	return nil
}

// What the Python package asks the command, in turn: is there a plan, then plans for the durations that were measured, then one of them is kept, and found.
func TestAPlanIsKeptForLaterProcesses(t *testing.T) {
	t.Setenv(cache.Variable, t.TempDir())
	file := filepath.Join(t.TempDir(), "vit.rec")
	text, err := os.ReadFile(vitRecording)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(file, text, 0o644))
	ask := func(about map[string]any, more ...string) map[string]any {
		t.Helper()
		graph := filepath.Join(t.TempDir(), "graph.json")
		text, err := json.Marshal(about)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(graph, text, 0o644))
		var out, wrong bytes.Buffer
		require.Equal(t, cli.StatusOK, newApp(nil, &out, &wrong).execute(t.Context(), append([]string{"plan", file, "--graph", graph}, more...)), wrong.String())
		answer := map[string]any{}
		if out.Len() > 0 {
			decoder := json.NewDecoder(&out)
			decoder.UseNumber()
			require.NoError(t, decoder.Decode(&answer))
		}
		return answer
	}
	nothing := map[string]any{"plans": nil, "report": ""}
	about := described(t)
	require.Equal(t, nothing, ask(about))
	us := make([]any, len(about["nodes"].([]any)))
	for k := range us {
		us[k] = 4
	}
	about["us"], about["chain"] = us, 52
	plans := ask(about)
	require.NotEmpty(t, plans["plans"])
	about["chosen"] = map[string]any{"plans": plans, "best": 0, "us": []any{52, 43}, "report": "52 us before"}
	require.Empty(t, ask(about))

	found := ask(described(t))
	require.Equal(t, "52 us before", found["report"])
	require.Equal(t, plans["plans"].([]any)[:1], found["plans"].(map[string]any)["plans"])
	require.Equal(t, nothing, ask(described(t), "--stay"), "what may not be moved is planned otherwise")
	run := func(words ...string) string {
		t.Helper()
		var out, wrong bytes.Buffer
		require.Equal(t, cli.StatusOK, newApp(nil, &out, &wrong).execute(t.Context(), words), wrong.String())
		require.Contains(t, wrong.String(), "note: durations are those that a program measured on NVIDIA H100 80GB HBM3 when it planned this graph\n")
		return out.String()
	}
	require.Regexp(t, `3\.45 +48 % +measured`, run("plan", file, "--learn=auto", "--explain"))
	table := run("bench", file)
	require.Regexp(t, `recorded +1 +0 +graph +21.73 MiB +\d+.\d +52.0\n`, table)
	require.Contains(t, table, "\nmeasured by the program on NVIDIA H100 80GB HBM3: 52 us before\n")
	other := described(t)
	other["driver"] = 13010
	require.Equal(t, map[string]any{"plans": nil, "report": "", "why": "it was made with driver 13000, and this is 13010"}, ask(other))
	require.NoError(t, os.Chtimes(file, time.Time{}, time.Unix(1, 0)))
	require.Equal(t, "the recording has been made again since", ask(described(t))["why"])
}
