// A benchmark of how long spilling takes to plan, at 30 to 10,000 nodes:
//
//	go test ./planner -run '^$' -bench SpillPlanning -benchtime 1x

package spread

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/planner"
	"github.com/dagrun/dagrun/planner/internal/plantest"
	"github.com/dagrun/dagrun/planner/plan"
)

// spillSizes are graphs of about 30, 300, 1,000 and 10,000 nodes, given about half of the memory that they keep in use.
func spillSizes() []spillInstance {
	var list []spillInstance
	add := func(family string, tiles func(size int) int64, sizes ...int) {
		for _, size := range sizes {
			list = append(list, spillInstance{Family: family, Size: size, US: 20, Seed: 1, Tiles: tiles(size)})
		}
	}
	add("cholesky", func(n int) int64 { return int64(n * (n + 1) / 4) }, 5, 11, 17, 38)
	add("stencil", func(n int) int64 { return int64(n) }, 7, 24, 44, 140)
	add("layers", func(n int) int64 { return int64(n) }, 10, 100, 333, 3333)
	add("random", func(n int) int64 { return int64(n / 8) }, 34, 304, 1004, 10004)
	return list
}

func BenchmarkSpillPlanning(b *testing.B) {
	for _, effort := range []planner.Effort{planner.Quick, planner.Normal} {
		for _, in := range spillSizes() {
			g := in.Graph(b)
			b.Run(fmt.Sprintf("%s/%s/%d", effort, in.Family, g.Len()), func(b *testing.B) {
				o := Options{Options: planner.Options{MemoryCap: in.Tiles * plantest.BlockBytes, Effort: effort}}
				var s *plan.Spread
				for b.Loop() {
					var err error
					s, err = Spill(context.Background(), g, o)
					require.NoError(b, err)
					require.NotNil(b, s, "it fits")
				}
				b.ReportMetric(float64(b.Elapsed().Milliseconds())/float64(b.N), "ms/op")
				b.ReportMetric(float64(s.Stats.Reloads), "reloads")
			})
		}
	}
}
