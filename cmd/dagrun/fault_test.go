// Tests of faults that a device reports late: the replay in a new process names the node, or says that the fault did not happen again.

package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/cmd/dagrun/internal/cli"
	"github.com/dagrun/dagrun/cmd/dagrun/internal/flags"
	"github.com/dagrun/dagrun/cmd/dagrun/internal/runs"
	"github.com/dagrun/dagrun/cmd/dagrun/internal/session"
	"github.com/dagrun/dagrun/cudart"
	"github.com/dagrun/dagrun/cudart/host"
	"github.com/dagrun/dagrun/dag"
)

// pinned runs the search for a fault of a pipeline as if a GPU had reported it late. self is the command that is started.
func pinned(t *testing.T, pipeline, self string, platform cudart.Platform) (printed string, found error) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	a := newApp(bytes.NewReader(nil), &stdout, &stderr)
	a.Self = func() (string, error) { return self, nil }
	a.Flags = &flags.Values{Backend: "cpu", Strategy: "serial", Streams: 8, Iterations: 1, Memory: "arena", MaxEdges: dag.MaxEdges}
	late := &cudart.Error{Call: "cuStreamSynchronize", Name: "CUDA_ERROR_ILLEGAL_ADDRESS", Code: 700, Text: "an illegal memory access was encountered", Node: -1, Index: -1}
	found = a.running.PinFault(context.Background(), &runs.Prepared{Name: pipeline, Platform: &session.Opened{Platform: platform}}, late, &session.RunFlags{})
	require.Equal(t, cli.StatusDevice, cli.StatusOf(found))
	return stderr.String(), found
}

func openCPU(t *testing.T) *host.Platform {
	t.Helper()
	cpu, err := host.Open(host.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, cpu.Close()) })
	return cpu
}

const lateFault = `dagrun: cuStreamSynchronize: CUDA_ERROR_ILLEGAL_ADDRESS (700): an illegal memory access was encountered
  GPU faults are reported late; replaying node by node in a new process to find the faulty node
`

func TestFaultIsPinnedToItsNode(t *testing.T) {
	file := filepath.Join(t.TempDir(), "fault.yaml")
	require.NoError(t, os.WriteFile(file, []byte(`version: 1
name: fault
buffers:
  offsets: {place: device, dtype: i32, shape: [9], init: {ramp: [0, 1]}}
  columns: {place: device, dtype: i32, shape: [8], init: 1000000}
  values: {place: device, dtype: f32, shape: [8], init: 1}
  y: {place: device, dtype: f32, shape: [8], expect: {value: 1}}
nodes:
  - {name: harmless, kernel: noop, args: []}
  - {name: multiply, kernel: spmv_csr, args: [8, 8, 8, offsets, columns, values, values, y]}
`), 0o644))
	printed, found := pinned(t, file, selfAsCommand(t), openCPU(t))
	require.Equal(t, lateFault, printed)
	require.EqualError(t, found, `node "multiply" (stream 0): cuLaunchKernel: CUDA_ERROR_LAUNCH_FAILED (719): unspecified launch failure: panic: runtime error: index out of range [1000000] with length 8`)
}

// A new process that refuses its command line has not run the nodes.
func TestFaultThatIsNotLookedFor(t *testing.T) {
	_, found := pinned(t, filepath.Join(t.TempDir(), "gone.yaml"), selfAsCommand(t), openCPU(t))
	require.ErrorContains(t, found, "the replay node by node could not run (")
	require.ErrorContains(t, found, "gone.yaml: no such file")
}

func TestFaultThatDoesNotComeBack(t *testing.T) {
	printed, found := pinned(t, filepath.Join("..", "..", "pipelines", "saxpy.yaml"), selfAsCommand(t), openCPU(t))
	require.Equal(t, lateFault, printed)
	require.ErrorContains(t, found, "the fault did not happen again: every node ran alone without one")
}
