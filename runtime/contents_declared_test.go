// Tests of what host functions and kernels in Go declare to write, on a CPU device that checks.

package runtime_test

import (
	"context"
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/cudart/host"
	"github.com/dagrun/dagrun/cudart/host/simt"
	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/planner"
	"github.com/dagrun/dagrun/runtime"
)

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
