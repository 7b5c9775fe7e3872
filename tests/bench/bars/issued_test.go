// Tests that plans are told apart by what they issue.

package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/planner"
)

func TestPlansAreComparedByWhatTheyIssue(t *testing.T) {
	for _, name := range []string{"taskbench-fft", "cg-until"} {
		g, err := parsePipeline("../../../pipelines/" + name + ".yaml")
		require.NoError(t, err)
		issues := func(o planner.Options) *issued {
			plan, err := planner.New(t.Context(), g, o)
			require.NoError(t, err)
			file := filepath.Join(t.TempDir(), "plan.json")
			f, err := os.Create(file)
			require.NoError(t, err)
			require.NoError(t, plan.EncodeJSON(f, g))
			require.NoError(t, f.Close())
			p, err := readIssued(file)
			require.NoError(t, err)
			require.GreaterOrEqual(t, len(p.Order), g.Len())
			require.Len(t, p.Bodies, len(plan.Bodies))
			return p
		}
		one := issues(planner.Options{Strategy: "list", Streams: 1})
		require.Equal(t, one, issues(planner.Options{Strategy: "list", Streams: 1, KeepAll: true}), "memory laid out in another way")
		require.NotEqual(t, one, issues(planner.Options{Strategy: "list", Streams: 2}), name)
	}
	_, err := readIssued(filepath.Join(t.TempDir(), "none.json"))
	require.ErrorIs(t, err, os.ErrNotExist)
}
