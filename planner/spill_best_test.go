// Tests and a benchmark of how long pipelines take whose data does not fit, against what no way to spill can beat:
//
//	go test ./planner -run '^$' -bench SpillDistance -benchtime 1x

package planner

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/planner/internal/plantest"
)

// spillDistance spills kernels on blocks, of which two thirds fit, and returns how much longer the plan takes than the least that any can: all
// kernels one after the other, or the fewest uploads or downloads of any choice of what leaves. us is the time of a kernel.
func spillDistance(tb testing.TB, seed uint64, us float64, writes bool) float64 {
	tb.Helper()
	random := rand.New(rand.NewPCG(seed, 61))
	blocks := []int{6, 9}[random.IntN(2)]
	fit, nodes := blocks*2/3, 24
	g, uses, written := plantest.DrawBlocks(tb, random, blocks, nodes, us, writes)
	m := H200()
	o := Options{MemoryCap: int64(fit) * plantest.BlockBytes, Machine: m, Effort: Normal}
	s, err := SpillGraph(context.Background(), g, o)
	require.NoError(tb, err)
	require.NotNil(tb, s)
	p, err := New(context.Background(), s.Graph, o)
	require.NoError(tb, err)
	up := float64(plantest.LeastCopies(uses, written, blocks, fit, 1, 0)) * (m.CopyUS + plantest.BlockBytes/m.HostToDevice)
	down := float64(plantest.LeastCopies(uses, written, blocks, fit, 0, 1)) * (m.CopyUS + plantest.BlockBytes/m.DeviceToHost)
	return p.Stats.MakespanUS/max(float64(nodes)*us, up, down) - 1
}

// spillTimes are those of kernels of a few times, and of a part of, what a block takes to copy.
func spillTimes() []float64 { return []float64{20, 75, 150, 300} }

func BenchmarkSpillDistance(b *testing.B) {
	for _, writes := range []bool{false, true} {
		for _, us := range spillTimes() {
			b.Run(fmt.Sprintf("writes=%t/%gus", writes, us), func(b *testing.B) {
				const seeds = 6
				worst, sum := 0.0, 0.0
				for b.Loop() {
					worst, sum = 0, 0
					for seed := range uint64(seeds) {
						away := spillDistance(b, seed, us, writes)
						worst, sum = max(worst, away), sum+away
					}
				}
				b.ReportMetric(100*worst, "%-worst")
				b.ReportMetric(100*sum/seeds, "%-mean")
			})
		}
	}
}

// The bar is 1.15 of the best plan, where kernels take about as long as the copies of what they use, or longer. Where they take less, no plan comes
// near the bound: a block can only be brought once another one has been used and has left.
func TestSpillsAreNearWhatNoneCanBeat(t *testing.T) {
	seeds := uint64(1)
	if os.Getenv("DAGRUN_LONG") != "" {
		seeds = 12
	}
	for seed := range seeds {
		for _, writes := range []bool{false, true} {
			for _, us := range spillTimes()[1:3] {
				away := spillDistance(t, seed, us, writes)
				require.GreaterOrEqual(t, away, -1e-9)
				require.LessOrEqual(t, away, 0.15, "seed %d, %g us, writes %t", seed, us, writes)
			}
		}
	}
}
