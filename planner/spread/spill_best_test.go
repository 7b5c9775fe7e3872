// A test and a benchmark of how long pipelines take whose data does not fit, against the best known ways to spill them, which
// testdata/best/spill.txt keeps with the numbers that make the graphs. They come from a search that shared nothing with the planner's.
//
//	go test ./planner/spread -run '^$' -bench SpillDistance -benchtime 1x

package spread

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/planner"
	"github.com/dagrun/dagrun/planner/internal/plantest"
)

// spillBest is a graph that does not fit with the shortest predicted time that is known.
type spillBest struct {
	spillInstance
	best float64
}

const spillBestFile = "testdata/best/spill.txt"

func spillInstances(tb testing.TB) []spillBest {
	tb.Helper()
	text, err := os.ReadFile(spillBestFile)
	require.NoError(tb, err)
	var list []spillBest
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		var in spillBest
		_, err := fmt.Sscan(line, &in.Family, &in.Size, &in.US, &in.Seed, &in.Tiles, &in.best)
		require.NoError(tb, err, line)
		list = append(list, in)
	}
	require.Len(tb, list, 72)
	return list
}

func (in *spillBest) name() string {
	return fmt.Sprintf("%s/%d/%gus/seed%d/%d", in.Family, in.Size, in.US, in.Seed, in.Tiles)
}

// options are those that an instance is spilled and planned with.
func (in *spillBest) options(effort planner.Effort) Options {
	return Options{Options: planner.Options{MemoryCap: in.Tiles * plantest.BlockBytes, Effort: effort}}
}

// spilledTime spills a graph, and returns how long its plan takes.
func (in *spillBest) spilledTime(tb testing.TB, effort planner.Effort) float64 {
	tb.Helper()
	s, err := Spill(context.Background(), in.Graph(tb), in.options(effort))
	require.NoError(tb, err, in.name())
	require.NotNil(tb, s, "%s fits", in.name())
	p, err := planner.New(context.Background(), s.Graph, in.options(planner.Normal).Options)
	require.NoError(tb, err, in.name())
	require.LessOrEqual(tb, p.Stats.PeakDeviceBytes, in.Tiles*plantest.BlockBytes)
	return p.Stats.MakespanUS
}

// The bar is 15% for each instance. DAGRUN_LONG=1 tries all of them, otherwise only the smaller ones.
func TestSpillsAreNearTheBestKnown(t *testing.T) {
	const bar = 0.15
	count := 0
	for _, in := range spillInstances(t) {
		small := in.Size <= 9 && in.US == 20
		if os.Getenv("DAGRUN_LONG") == "" && (!small || testing.Short()) {
			continue
		}
		count++
		require.LessOrEqual(t, in.spilledTime(t, planner.Normal)/in.best-1, bar, in.name())
	}
	t.Logf("%d instances", count)
}

func BenchmarkSpillDistance(b *testing.B) {
	byFamily := map[string][]spillBest{}
	for _, in := range spillInstances(b) {
		byFamily[in.Family] = append(byFamily[in.Family], in)
	}
	for _, family := range spillFamilies() {
		b.Run(family, func(b *testing.B) {
			worst, sum := 0.0, 0.0
			for b.Loop() {
				worst, sum = 0, 0
				for _, in := range byFamily[family] {
					away := in.spilledTime(b, planner.Normal)/in.best - 1
					worst, sum = max(worst, away), sum+away
				}
			}
			b.ReportMetric(100*worst, "%-worst")
			b.ReportMetric(100*sum/float64(len(byFamily[family])), "%-mean")
		})
	}
}
