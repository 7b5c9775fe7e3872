// Tests of contents: what Restore brings back (those whose file has been saved over, and zeros where nothing fills a buffer), and what host functions and kernels in Go declare to write, on a CPU device that checks.

package runtime_test

import (
	"context"
	"encoding/binary"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/cudart/host"
	"github.com/dagrun/dagrun/cudart/host/simt"
	"github.com/dagrun/dagrun/dag"
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

func TestHostFunctionsWriteWhatTheyDeclareOut(t *testing.T) {
	run := func(count int, level simt.Check, mode dag.Mode) error {
		b := dag.New("counted")
		y := b.Host("y", dag.I64, 16)
		b.HostFunction("count", "count", dag.Access{Range: b.Whole(y), Mode: mode})
		g, err := b.Graph()
		require.NoError(t, err)
		plan, err := planner.New(t.Context(), g, planner.Options{})
		require.NoError(t, err)
		platform, err := host.Open(host.Options{Sanitize: level})
		require.NoError(t, err)
		defer func() { require.NoError(t, platform.Close()) }()
		program, err := runtime.New(t.Context(), g, plan, platform, runtime.Options{Functions: map[string]runtime.HostFunction{
			"count": func(_ context.Context, c *runtime.HostCall) error {
				for i := range count {
					binary.LittleEndian.PutUint64(c.Buffer("y")[8*i:], uint64(i))
				}
				return nil
			}}})
		require.NoError(t, err)
		defer func() { require.NoError(t, program.Close()) }()
		return program.Run(t.Context(), 2)
	}
	require.NoError(t, run(16, simt.CheckFast, dag.Write))
	require.ErrorContains(t, run(12, simt.CheckFast, dag.Write), "it has not written bytes 96 to 128 of y, which are declared out: declare them inout, or as out only what it writes")
	require.NoError(t, run(12, simt.CheckFast, dag.ReadWrite))
	require.NoError(t, run(12, simt.CheckNothing, dag.Write))
}

// What one run saves, another can expect, in device memory and in host memory; a run that computes something else says so.
func TestFilesThatAreSavedCanBeExpected(t *testing.T) {
	dir := t.TempDir()
	run := func(a float64, change func(b *dag.Builder, id dag.BufferID, name string)) *runtime.Results {
		b := dag.New("files")
		b.Use(kernels.Library())
		d, h := b.Device("d", dag.F32, 8), b.Host("h", dag.F32, 8)
		b.Init(d, dag.Init{Kind: dag.InitRamp, A: a, B: 1})
		b.Kernel("double", "scale", dag.Args{8, 2, b.Whole(d)})
		b.Copy("down", b.Whole(h), b.Whole(d))
		change(b, d, "d.npy")
		change(b, h, "h.bin")
		g, err := b.Graph()
		require.NoError(t, err)
		program := start(t, g, cpu(t), runtime.Options{})
		defer program.Close()
		require.NoError(t, program.Run(t.Context(), 1))
		results, err := program.Finish(t.Context())
		require.NoError(t, err)
		return results
	}
	saved := run(3, func(b *dag.Builder, id dag.BufferID, name string) { b.Save(id, filepath.Join(dir, name)) })
	require.Len(t, saved.Saved, 2)
	expect := func(b *dag.Builder, id dag.BufferID, name string) {
		b.Expect(id, dag.Expect{Kind: dag.ExpectFile, File: filepath.Join(dir, name)})
	}
	results := run(3, expect)
	require.Empty(t, results.Failed())
	require.Len(t, results.Checks, 2)
	for _, c := range results.Checks {
		require.True(t, c.OK)
		require.EqualValues(t, 8, c.Elements)
	}
	require.Len(t, run(4, expect).Failed(), 2)
}
