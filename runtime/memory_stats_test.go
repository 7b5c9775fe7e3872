// Tests of memory figures: planned, allocated and shared bytes, and when each buffer is used.

package runtime_test

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/kernels"
	"github.com/dagrun/dagrun/planner"
	"github.com/dagrun/dagrun/runtime"
)

// stages copies from one device buffer to the next, so that the first and the third can share bytes.
func stages(t *testing.T) *dag.Graph {
	t.Helper()
	b := dag.New("stages")
	b.Use(kernels.Library())
	const n = 256 // 1,024 bytes
	in, out := b.Host("in", dag.F32, n), b.Host("out", dag.F32, n)
	var d []dag.BufferID
	for i := range 3 {
		d = append(d, b.Device(fmt.Sprintf("d%d", i), dag.F32, n))
	}
	b.Copy("up", b.Whole(d[0]), b.Whole(in))
	b.Copy("first", b.Whole(d[1]), b.Whole(d[0]))
	b.Copy("second", b.Whole(d[2]), b.Whole(d[1]))
	b.Copy("down", b.Whole(out), b.Whole(d[2]))
	g, err := b.Graph()
	require.NoError(t, err)
	return g
}

func TestMemoryFigures(t *testing.T) {
	ctx := context.Background()
	g := stages(t)
	plan, err := planner.New(ctx, g, planner.Options{})
	require.NoError(t, err)
	for _, c := range []struct {
		memory            runtime.MemoryMode
		inflight          int
		planned, reserved int64
		host              int64
		shares            []bool
	}{
		{runtime.Arena, 1, 2048, 2048, 2048, []bool{true, false, true}},
		{runtime.Arena, 3, 2048, 6144, 6144, []bool{true, false, true}},
		{runtime.Separate, 2, 3072, 6144, 4096, []bool{false, false, false}},
	} {
		platform := cpu(t)
		program, err := runtime.New(ctx, g, plan, platform, runtime.Options{Memory: c.memory, Inflight: c.inflight})
		require.NoError(t, err)
		m := program.Memory()
		require.Equal(t, c.planned, m.Planned)
		require.EqualValues(t, 3072, m.Buffers)
		require.Equal(t, c.reserved, m.Reserved)
		require.Equal(t, c.host, m.Host)
		require.Equal(t, c.inflight, m.Instances)
		require.Len(t, m.PerBuffer, 3)
		lives := map[string][2]string{"d0": {"up", "first"}, "d1": {"first", "second"}, "d2": {"second", "down"}}
		for _, b := range m.PerBuffer {
			require.Equal(t, lives[b.Name], [2]string{b.First, b.Last}, b.Name)
			require.EqualValues(t, 1024, b.Bytes)
			require.Equal(t, c.shares[b.Name[1]-'0'], b.Shares, "%s, %v", b.Name, c.memory)
		}
		counters := program.Counters()
		require.Equal(t, c.reserved, counters.DeviceBytes)
		require.Equal(t, c.host, counters.HostBytes)
		require.Equal(t, c.inflight, counters.Inflight)
		require.Equal(t, g.Len(), counters.Nodes)
		require.Equal(t, len(plan.Streams), counters.Streams)
		require.Equal(t, waits(plan)+len(plan.Fork())+len(plan.Join()), counters.Waits)
		_, err = json.Marshal(counters)
		require.NoError(t, err)
		require.NoError(t, program.Close())
	}
}
