// Tests of the measuring program on the CPU device: every table is filled, every result is correct, and the description for C++ is
// complete.

package main

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/dag"
)

func TestMeasureOnTheCPUDevice(t *testing.T) {
	tables := []string{"suite", "patterns"}
	if testing.Short() {
		tables = tables[:1]
	}
	s := settings{pipelines: "../../../pipelines", out: t.TempDir(), small: true, rounds: 2, backend: "cpu", streams: 8}
	require.NoError(t, measure(context.Background(), s, tables))
	text, err := os.ReadFile(filepath.Join(s.out, "suite.json"))
	require.NoError(t, err)
	var rows []suiteRow
	require.NoError(t, json.Unmarshal(text, &rows))
	require.Len(t, rows, 6)
	for _, r := range rows {
		require.Equal(t, "met", r.Checks, r.Name)
		for _, name := range []string{bySerial, byStreams, byGraph, byInflight} {
			require.Len(t, r.Times[name], 2, "%s %s", r.Name, name)
			require.Positive(t, median(r.Times[name]), "%s %s", r.Name, name)
			if name != byInflight {
				require.Positive(t, r.Predicted[name], "%s %s", r.Name, name)
			}
		}
		require.Positive(t, r.Least, r.Name)
	}
	for _, name := range tables {
		require.FileExists(t, filepath.Join(s.out, name+".md"))
		require.FileExists(t, filepath.Join(s.out, name+".json"))
	}
}

// Real sizes are parsed, not run: their DAGs are those of the published suite.
func TestWorkloadsHaveThePublishedShape(t *testing.T) {
	kernels := map[string]int{"vec": 3, "bs": 10, "ml": 10, "hits": 30, "img": 11, "dl": 8}
	bytes := map[string]int64{"vec": 16, "bs": 160, "ml": 1692, "hits": 72, "img": 40}
	for _, w := range workloads() {
		g, err := w.load(&settings{pipelines: "../../../pipelines"}, 1)
		require.NoError(t, err)
		launches, live := 0, int64(0)
		for i := range g.Nodes {
			if g.Nodes[i].Kind == dag.Kernel {
				launches++
			}
		}
		for i := range g.Buffers {
			if b := &g.Buffers[i]; b.Place == dag.Device && !b.Scratch {
				live += b.Bytes
			}
		}
		require.Equal(t, kernels[w.name], launches, w.name)
		if each := bytes[w.name]; each > 0 {
			n := int64(g.Params[0].Value.Float())
			if w.name == "img" {
				n *= n
			}
			require.InEpsilon(t, each*n, live, 0.21, "%s: live bytes", w.name)
		}
	}
}

func TestDescriptionHasEveryNode(t *testing.T) {
	g, err := loadPipeline("../../../pipelines/dl.yaml", nil)
	require.NoError(t, err)
	folder := t.TempDir()
	require.NoError(t, describe(context.Background(), g, folder))
	text, err := os.ReadFile(filepath.Join(folder, "workload.txt"))
	require.NoError(t, err)
	for i := range g.Nodes {
		n := &g.Nodes[i]
		require.Contains(t, string(text), " "+n.Name+" ", n.Name)
		if n.Launch != nil {
			require.Contains(t, string(text), " "+n.Launch.Kernel.Entry()+" ", n.Name)
		}
	}
	require.Equal(t, len(g.Buffers), strings.Count(string(text), "buffer "))
}
