// Tests of the ranks of copies that queue for an engine.

package place

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/planner/internal/plantest"
	"github.com/dagrun/dagrun/planner/model"
)

func TestQueuedRanksFallAlongDependencies(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := plantest.Mixed(t, rapid.Uint64().Draw(t, "seed"), rapid.IntRange(1, 60).Draw(t, "nodes"))
		machine := *model.H200()
		machine.CopyEngines = rapid.IntRange(1, 3).Draw(t, "engines")
		p, err := NewProblem(context.Background(), g, &machine, model.Durations(g, &machine, nil), 4)
		require.NoError(t, err)
		plain := make([]float64, g.Len())
		for k := len(p.order) - 1; k >= 0; k-- {
			i := p.order[k]
			for _, s := range p.succs(i) {
				plain[i] = max(plain[i], plain[s])
				require.GreaterOrEqual(t, p.rank[i], p.rank[s]+p.duration[i])
			}
			plain[i] += p.duration[i]
			require.GreaterOrEqual(t, p.rank[i], plain[i])
		}
	})
}

func TestRanksTakeTurnsOfCopies(t *testing.T) {
	b := dag.New("ranks")
	host, device := b.Host("h", dag.U8, 4000), b.Device("d", dag.U8, 4000)
	part := func(buffer int32, k int64) dag.Range {
		return dag.Range{Buffer: dag.BufferID(buffer), Lo: 1000 * k, Hi: 1000 * (k + 1)}
	}
	for k := range int64(2) {
		b.Copy(fmt.Sprintf("up.%d", k), part(int32(device), k), part(int32(host), k))
	}
	for k := range int64(2) {
		b.Copy(fmt.Sprintf("down.%d", k), part(int32(host), 2+k), part(int32(device), k))
	}
	g, err := b.Graph()
	require.NoError(t, err)
	ranks := func(m *model.Machine) []float64 {
		p, err := NewProblem(context.Background(), g, m, []float64{5, 5, 10, 10}, 8)
		require.NoError(t, err)
		return p.rank
	}
	m := plantest.Free()
	assert.Equal(t, []float64{25, 15, 20, 10}, ranks(m), "what is declared first is to be ready first")
	m.CopyEngines = 2
	assert.Equal(t, []float64{15, 15, 10, 10}, ranks(m), "an engine for each")
	assert.Equal(t, []float64{15, 15, 10, 10}, ranks(model.Unit()), "copies of this machine do not contend")
}
