// Tests of loops and branches on several devices: random nests give the bits and the passes of one device, wherever their nodes run. With
// DAGRUN_LONG set, 10,000 nests are tried.

package runtime_test

import (
	"math/rand/v2"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/cudart"
	"github.com/dagrun/dagrun/cudart/host"
	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/planner"
	"github.com/dagrun/dagrun/planner/spread"
	"github.com/dagrun/dagrun/runtime"
	"github.com/dagrun/dagrun/tests/nests"
)

func TestNestsOnSeveralDevicesGiveTheSameBits(t *testing.T) {
	count := 100
	switch {
	case os.Getenv("DAGRUN_LONG") != "":
		count = 10_000
	case testing.Short():
		count = 40
	}
	strategies := []string{"list", "roundrobin", "serial", "heft", "auto"}
	policies := spread.Policies()
	divided := 0
	for seed := range uint64(count) {
		r := rand.New(rand.NewPCG(seed, 12))
		nest := nests.New(r)
		g, err := nest.Graph()
		require.NoError(t, err)
		devices := 2 + r.IntN(3)
		var s *planner.Spread
		if seed%8 == 0 {
			s, err = spread.New(t.Context(), g, spread.Options{Devices: devices, Policy: policies[r.IntN(len(policies))]})
		} else {
			at := make([]int32, spread.Nodes(g))
			for i := range at {
				at[i] = int32(r.IntN(devices))
			}
			s, err = spread.At(g, spread.Options{Devices: devices}, at)
		}
		require.NoError(t, err, "seed %d", seed)
		plan := planner.Options{Strategy: strategies[r.IntN(len(strategies))], Streams: 1 + r.IntN(6)}
		device := host.Options{CheckOrder: true, Devices: devices, Perturb: 1 + r.Uint64N(1<<40)}
		options := runtime.Options{Mode: runtime.Mode(r.IntN(4)), Memory: runtime.MemoryMode(r.IntN(2)), Inflight: 1 + r.IntN(2)}
		if len(s.Graph.Carried()) > 0 { // a temporary of several branches: what the last one that ran left there
			options.Inflight = 1
		}
		require.Equal(t, nest.Out(), outcome(t, s.Graph, plan, device, options, 1+r.IntN(3)), "seed %d", seed)
		if s.Graph.NotInGraph() != "" {
			divided++
		}
	}
	require.Greater(t, divided, count/3, "bodies on several devices")
}

// A body none of whose nodes runs where its condition is read.
func TestBodiesElsewhereThanTheirConditions(t *testing.T) {
	g := countdown(t, dag.Loop{Until: "x < 1", Most: 50})
	s, err := spread.At(g, spread.Options{Devices: 2}, []int32{0, 1})
	require.NoError(t, err)
	require.Equal(t, `"half" in "halve" runs on device 1, not 0, which the body of a conditional graph node cannot`, s.Graph.NotInGraph())
	p, err := host.Open(host.Options{CheckOrder: true, Devices: 2})
	require.NoError(t, err)
	plan, err := planner.New(t.Context(), s.Graph, planner.Options{})
	require.NoError(t, err)
	for _, mode := range []runtime.Mode{runtime.Streams, runtime.Captured, runtime.Auto} {
		program, err := runtime.New(t.Context(), s.Graph, plan, p, runtime.Options{Mode: mode})
		require.NoError(t, err)
		require.Equal(t, runtime.Streams, program.Mode())
		for range 2 {
			require.NoError(t, program.Run(t.Context(), 1))
			loops, err := program.Loops(t.Context())
			require.NoError(t, err)
			require.Equal(t, "10 passes of at most 50", loops[0].Text())
			require.NoError(t, program.Restore(t.Context()))
		}
		require.NoError(t, program.Close())
	}
	require.Equal(t, cudart.Live{}, p.Live())
	require.NoError(t, p.Close())
}
