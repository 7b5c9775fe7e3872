// Tests of what Restore brings back: contents whose file has been saved over, and zeros where nothing fills a buffer.

package runtime_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/dag/file"
	"github.com/dagrun/dagrun/kernels"
	"github.com/dagrun/dagrun/planner"
	"github.com/dagrun/dagrun/runtime"
)

// A program restores its initial contents, whatever it has saved to their file since.
func TestRestoreAfterSavingOverTheInitialContents(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "x.bin")
	require.NoError(t, os.WriteFile(path, []byte{1, 2, 3, 4}, 0o600))
	g, err := file.Parse([]byte(`
version: 1
name: state
buffers:
  x: {place: host, dtype: u8, shape: [4], init: {file: x.bin}, save: x.bin}
  d: {place: device, dtype: u8, shape: [4]}
nodes:
  - {name: up, memcpy: {from: x, to: d}}
  - {name: add, map: "d = d + 1"}
  - {name: down, memcpy: {from: d, to: x}}
`), file.Options{Name: "state.yaml", Dir: dir, Library: kernels.Library()})
	require.NoError(t, err)
	plan, err := planner.New(t.Context(), g, planner.Options{})
	require.NoError(t, err)
	program, err := runtime.New(t.Context(), g, plan, cpu(t), runtime.Options{})
	require.NoError(t, err)
	for range 2 {
		require.NoError(t, program.Run(t.Context(), 3))
		_, err = program.Finish(t.Context())
		require.NoError(t, err)
		saved, err := os.ReadFile(path)
		require.NoError(t, err)
		require.Equal(t, []byte{4, 5, 6, 7}, saved)
		require.NoError(t, program.Restore(t.Context()))
		require.Equal(t, []byte{1, 2, 3, 4}, program.Host(0))
	}
	require.NoError(t, program.Close())
}

// A program that has warmed up and replays no more holds what it held at first, results that nothing fills included.
func TestRestoreClearsResultsWithoutContents(t *testing.T) {
	g, err := file.Parse([]byte(`
version: 1
name: results
buffers:
  y: {place: host, dtype: f32, shape: [4]}
  d: {place: device, dtype: f32, shape: [4], expect: {value: 3}}
nodes:
  - {name: set, memset: {to: d, value: 3}}
  - {name: down, memcpy: {from: d, to: y}}
`), file.Options{Name: "results.yaml", Library: kernels.Library()})
	require.NoError(t, err)
	plan, err := planner.New(t.Context(), g, planner.Options{})
	require.NoError(t, err)
	program, err := runtime.New(t.Context(), g, plan, cpu(t), runtime.Options{})
	require.NoError(t, err)
	read := func(name string) []byte {
		id, _ := program.Buffer(name)
		contents := make([]byte, 16)
		require.NoError(t, program.Read(t.Context(), id, contents))
		return contents
	}
	require.NoError(t, program.Run(t.Context(), 2))
	require.Equal(t, read("d"), read("y"))
	require.NotEqual(t, make([]byte, 16), read("y"))
	require.NoError(t, program.Restore(t.Context()))
	require.Equal(t, make([]byte, 16), read("y"))
	require.Equal(t, make([]byte, 16), read("d"))
	require.NoError(t, program.Close())
}
