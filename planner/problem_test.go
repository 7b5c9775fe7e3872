// Ranks: what is urgent where copies take turns.

package planner

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/dag"
)

// Eight chains of three kernels that fill the device, each with a download three times as long as a kernel: the first download must
// not wait until all chains have come as far.
func TestDownloadsBeginBeforeAllKernelsEnd(t *testing.T) {
	const chains, us, bytes = 8, 30.0, 5_000_000
	b := dag.New("chains")
	host, device := b.Host("h", dag.U8, chains*bytes), b.Device("d", dag.U8, chains*bytes)
	for step := range 3 {
		for c := range int64(chains) {
			part := dag.Range{Buffer: device, Lo: c * bytes, Hi: (c + 1) * bytes}
			b.Node(dag.Node{Name: fmt.Sprintf("k%d.%d", step, c), Kind: dag.Task, Stream: -1, HasCost: true, CostUS: us,
				Work: dag.Work{Blocks: 1 << 20, Threads: 256}}, part.InOut())
		}
	}
	for c := range int64(chains) {
		b.Copy(fmt.Sprintf("down.%d", c), dag.Range{Buffer: host, Lo: c * bytes, Hi: (c + 1) * bytes}, dag.Range{Buffer: device, Lo: c * bytes, Hi: (c + 1) * bytes})
	}
	g, err := b.Graph()
	require.NoError(t, err)
	m := H200()
	download := bytes / m.DeviceToHost
	for _, streams := range []int{2, 4, 8} {
		plan, err := New(context.Background(), g, Options{Streams: streams, Machine: m})
		require.NoError(t, err)
		assert.Less(t, plan.Stats.MakespanUS, 3*us+chains*download+6*us, "%d streams", streams)
	}
}

func TestRanksTakeTurnsOfCopies(t *testing.T) {
	b := dag.New("ranks")
	host, device := b.Host("h", dag.U8, 4000), b.Device("d", dag.U8, 4000)
	part := func(buffer int32, k int64) dag.Range {
		return dag.Range{Buffer: buffer, Lo: 1000 * k, Hi: 1000 * (k + 1)}
	}
	for k := range int64(2) {
		b.Copy(fmt.Sprintf("up.%d", k), part(device, k), part(host, k))
	}
	for k := range int64(2) {
		b.Copy(fmt.Sprintf("down.%d", k), part(host, 2+k), part(device, k))
	}
	g, err := b.Graph()
	require.NoError(t, err)
	ranks := func(m *Machine) []float64 {
		p, err := newProblem(context.Background(), g, m, []float64{5, 5, 10, 10}, 8)
		require.NoError(t, err)
		return p.rank
	}
	m := free()
	assert.Equal(t, []float64{25, 15, 20, 10}, ranks(m), "what is declared first is to be ready first")
	m.CopyEngines = 2
	assert.Equal(t, []float64{15, 15, 10, 10}, ranks(m), "an engine for each")
	assert.Equal(t, []float64{15, 15, 10, 10}, ranks(Unit()), "copies of this machine do not contend")
}
