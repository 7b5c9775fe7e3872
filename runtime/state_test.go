// Tests of what Restore brings back: contents whose file has been saved over, and zeros where nothing fills a buffer.

package runtime_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/kernels"
	"github.com/dagrun/dagrun/planner"
	"github.com/dagrun/dagrun/runtime"
)

// A program restores its initial contents, whatever it has saved to their file since.
func TestRestoreAfterSavingOverTheInitialContents(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "x.bin")
	require.NoError(t, os.WriteFile(file, []byte{1, 2, 3, 4}, 0o600))
	g, err := dag.Parse([]byte(`
version: 1
name: state
buffers:
  x: {place: host, dtype: u8, shape: [4], init: {file: x.bin}, save: x.bin}
  d: {place: device, dtype: u8, shape: [4]}
nodes:
  - {name: up, memcpy: {from: x, to: d}}
  - {name: add, map: "d = d + 1"}
  - {name: down, memcpy: {from: d, to: x}}
`), dag.Options{Name: "state.yaml", Dir: dir, Library: kernels.Library()})
	require.NoError(t, err)
	plan, err := planner.New(t.Context(), g, planner.Options{})
	require.NoError(t, err)
	program, err := runtime.New(t.Context(), g, plan, cpu(t), runtime.Options{})
	require.NoError(t, err)
	for range 2 {
		require.NoError(t, program.Run(t.Context(), 3))
		_, err = program.Finish(t.Context())
		require.NoError(t, err)
		saved, err := os.ReadFile(file)
		require.NoError(t, err)
		require.Equal(t, []byte{4, 5, 6, 7}, saved)
		require.NoError(t, program.Restore(t.Context()))
		require.Equal(t, []byte{1, 2, 3, 4}, program.Host(0))
	}
	require.NoError(t, program.Close())
}

// A program that has warmed up and replays no more holds what it held at first, host buffers that nothing fills included.
func TestRestoreClearsHostBuffersWithoutContents(t *testing.T) {
	b := dag.New("outputs")
	b.Use(kernels.Library())
	y, d := b.Host("y", dag.F32, 4), b.Device("d", dag.F32, 4)
	b.Memset("set", b.Whole(d), 3)
	b.Copy("down", b.Whole(y), b.Whole(d))
	g, err := b.Graph()
	require.NoError(t, err)
	plan, err := planner.New(t.Context(), g, planner.Options{})
	require.NoError(t, err)
	program, err := runtime.New(t.Context(), g, plan, cpu(t), runtime.Options{})
	require.NoError(t, err)
	require.NoError(t, program.Run(t.Context(), 2))
	require.NotEqual(t, make([]byte, 16), program.Host(y))
	require.NoError(t, program.Restore(t.Context()))
	require.Equal(t, make([]byte, 16), program.Host(y))
	require.NoError(t, program.Close())
}
