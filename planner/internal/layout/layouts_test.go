// Layouts of drawn plans as they were reviewed: a change of a search that changes a layout shows here, in the bytes that it takes and where
// buffers lie. -rewrite writes them anew.

package layout_test

import (
	"context"
	"flag"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/planner"
	"github.com/dagrun/dagrun/planner/effort"
	"github.com/dagrun/dagrun/planner/internal/layout"
	"github.com/dagrun/dagrun/planner/internal/plantest"
	"github.com/dagrun/dagrun/planner/internal/plantest/planned"
	"github.com/dagrun/dagrun/planner/plan"
	"github.com/dagrun/dagrun/tests/nests"
)

var rewrite = flag.Bool("rewrite", false, "write golden files anew instead of comparing with them")

func sumOf(values ...any) string {
	sum := fnv.New32a()
	fmt.Fprintln(sum, values...)
	return fmt.Sprintf("%08x", sum.Sum32())
}

// described lays a plan out in every way that is quick enough, and says what every plan of the graph needs.
func described(t *testing.T, g *dag.Graph, p *plan.Plan, efforts ...effort.Effort) string {
	t.Helper()
	var text strings.Builder
	kept := layout.Kept(g)
	least, err := layout.Least(g, kept)
	require.NoError(t, err)
	peaks, err := layout.PeakBuffers(g, p, kept)
	require.NoError(t, err)
	for k := range least {
		fmt.Fprintf(&text, "  device %d: every plan needs %d bytes at node %d for %d buffers, this plan %d at node %d for %d\n", least[k].Device,
			least[k].Live, least[k].Node, len(least[k].Buffers), peaks[k].Live, peaks[k].Node, len(peaks[k].Buffers))
	}
	for _, hard := range efforts {
		require.NoError(t, layout.Memory(context.Background(), g, p, kept, hard))
		fmt.Fprintf(&text, "  effort %d: %d bytes of %d, %s", hard, p.Stats.PeakDeviceBytes, p.Stats.SumDeviceBytes, sumOf(p.Memory, p.Kept))
		text.WriteString("\n")
	}
	limit := int64(0)
	for _, peak := range peaks {
		limit = max(limit, peak.Live)
	}
	plantest.PlaceApart(g, p)
	verdict, taken := layout.Fit(context.Background(), g, p, kept, limit, 20_000)
	fmt.Fprintf(&text, "  in %d bytes: %d after %d steps, %s\n", limit, verdict, taken, sumOf(p.Memory))
	fmt.Fprintf(&text, "  edges %s\n\n", sumOf(layout.Edges(p, g.Len())))
	return text.String()
}

func TestLayoutsAreThoseThatWereReviewed(t *testing.T) {
	var text strings.Builder
	for family := range plantest.Families {
		for k, n := range []int{20, 90} {
			s := plantest.RandomShape(family, n, uint64(family))
			g := s.Graph(t)
			streams := 1 + (family+k)%4
			fmt.Fprintf(&text, "%s on %d streams\n%s", s.Name, streams, described(t, g, planned.ListPlan(t, g, streams), effort.Quick, effort.Normal))
		}
	}
	for _, streams := range []int{1, 4} {
		s := plantest.RandomShape(0, 1300, 1)
		g := s.Graph(t)
		fmt.Fprintf(&text, "%s on %d streams\n%s", s.Name, streams, described(t, g, planned.ListPlan(t, g, streams), effort.Quick))
	}
	for seed := range uint64(4) {
		g := plantest.MixedGraph(t, seed, 60, false)
		fmt.Fprintf(&text, "mixed %d\n%s", seed, described(t, g, planned.ListPlan(t, g, 3), effort.Quick, effort.Normal))
	}
	for seed := range uint64(12) {
		g, err := nests.New(rand.New(rand.NewPCG(seed, 5))).Graph()
		require.NoError(t, err)
		p, err := planner.New(context.Background(), g, planner.Options{Strategy: "list", Streams: 1 + int(seed)%3})
		require.NoError(t, err)
		fmt.Fprintf(&text, "nest %d\n%s", seed, described(t, g, p, effort.Quick, effort.Normal))
	}
	const file = "testdata/layouts.txt"
	if *rewrite {
		require.NoError(t, os.WriteFile(file, []byte(text.String()), 0o644))
		return
	}
	want, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, string(want), text.String(), "%s is out of date; if the change is meant: go test ./planner/internal/layout -run %s -rewrite, and review the diff", file, t.Name())
}
