// Tests of host memory: a program's need is known before it allocates any.

package engine

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/cudart"
	"github.com/dagrun/dagrun/cudart/host"
	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/planner"
)

func TestHostNeed(t *testing.T) {
	const n = 4096
	b := dag.New("need")
	x, d := b.Host("x", dag.F32, n), b.Device("d", dag.F32, n)
	b.Expect(d, dag.Expect{Kind: dag.ExpectFile, File: "want.npy"})
	b.Copy("up", b.Whole(d), b.Whole(x))
	g, err := b.Graph()
	require.NoError(t, err)
	plan, err := planner.New(t.Context(), g, planner.Options{})
	require.NoError(t, err)
	platform, err := host.Open(host.Options{})
	require.NoError(t, err)
	defer platform.Close()
	// Two buffers, a copy of the device's result and the file that it is compared with.
	require.EqualValues(t, 4*4*n, hostNeed(g, plan, platform, Options{}))
	require.EqualValues(t, (3*2+2)*4*n, hostNeed(g, plan, platform, Options{Inflight: 3}))
	require.EqualValues(t, 3*4*n, hostNeed(g, plan, platform, Options{Bind: map[string][]byte{"x": make([]byte, 4*n)}}))

	_, err = New(t.Context(), g, plan, platform, planner.GraphEdges, Options{HostReserve: 1 << 60})
	var short *OutOfMemoryError
	require.ErrorAs(t, err, &short)
	require.ErrorIs(t, err, cudart.ErrOutOfMemory)
	require.EqualValues(t, -1, short.Device)
	require.ErrorContains(t, err, "the host is out of memory: the run needs, with its results, 1 EiB, ")
	require.ErrorContains(t, err, " are free; largest buffers: x 16 KiB, d 16 KiB")
	_, err = New(t.Context(), g, plan, gpu{platform}, planner.GraphEdges, Options{HostReserve: 1 << 60})
	require.ErrorContains(t, err, " are free; largest buffers: x 16 KiB", "device buffers are elsewhere")
	require.NotContains(t, err.Error(), "d 16 KiB")
}

// gpu is a platform whose device memory is not the host's.
type gpu struct{ cudart.Platform }

func (gpu) Name() string { return "cuda" }
