// Tests of memory layouts: they are sound, as small as possible on small graphs, and near the heaviest antichain on large ones.

package layout

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/planner/effort"
	"github.com/dagrun/dagrun/planner/internal/order"
	"github.com/dagrun/dagrun/planner/internal/plantest"
	"github.com/dagrun/dagrun/planner/internal/plantest/planned"
	"github.com/dagrun/dagrun/planner/plan"
	"github.com/dagrun/dagrun/planner/proof"
)

// sharingBuffers are the device buffers that may share bytes.
func sharingBuffers(g *dag.Graph) []int32 {
	kept, used := Kept(g), usedBuffers(g)
	var sharing []int32
	for i := range g.Buffers {
		if b := &g.Buffers[i]; b.Place == dag.Device && !kept[i] && used[i] && b.Bytes > 0 {
			sharing = append(sharing, int32(i))
		}
	}
	return sharing
}

func placeQuick(l *lifetimes, nodes int) []int64 {
	return placeSharing(context.Background(), l, nodes, effort.Quick)
}

func readSharing(t require.TestingT, g *dag.Graph, p *plan.Plan, entries int) *lifetimes {
	require.NoError(t, proof.CheckOps(g, p))
	return readLifetimes(readSteps(g, p), sharingBuffers(g), entries)
}

func TestLifetimesAgreeWithBruteForce(t *testing.T) {
	apart, together, unsure := 0, 0, 0
	rapid.Check(t, func(t *rapid.T) {
		for range 20 { // a pair that too few columns leave undecided is rare
			g := plantest.DrawGraph(t, 14, false)
			p := plantest.DrawDullPlan(t, g, 4)
			before := plantest.BruteBefore(g, p)
			few := rapid.SampledFrom([]int{order.Entries, 5, 2, 1}).Draw(t, "entries")
			if few < order.Entries || rapid.Bool().Draw(t, "wide") {
				p = plantest.Spread(p)
			}
			l := readSharing(t, g, p, few)
			for a := range l.buffers {
				for b := range a {
					free := l.apart(int32(a), int32(b))
					want := !plantest.BruteAlive(g, before, l.buffers[a], l.buffers[b])
					switch {
					case free != want && (free || few == order.Entries):
						t.Fatalf("buffers %d and %d: apart %v, brute force %v", l.buffers[a], l.buffers[b], free, want)
					case free:
						apart++
					case want:
						unsure++
					default:
						together++
					}
				}
			}
		}
	})
	require.Positive(t, apart)
	require.Positive(t, together)
	require.Positive(t, unsure, "too few columns must show")
}

// The conflicts that the search uses must be those that the lifetimes give for each pair.
func TestCrossingsAreAllPairs(t *testing.T) {
	crossed := 0
	for seed := range uint64(20) {
		for family := range plantest.Families {
			g, p := layoutSample(t, family, 40, 4, seed)
			for _, entries := range []int{order.Entries, 60} {
				l := readSharing(t, g, p, entries)
				got := map[[2]int32]bool{}
				l.acrossStreams(func(a, b int32) { got[[2]int32{min(a, b), max(a, b)}] = true })
				for b := range int32(len(l.buffers)) {
					for a := range b {
						overlap := l.first[a] <= l.last[b] && l.first[b] <= l.last[a]
						require.Equal(t, !overlap && !l.apart(a, b), got[[2]int32{a, b}])
					}
				}
				crossed += len(got)
			}
		}
	}
	require.Greater(t, crossed, 1000)
}

// bruteOptimum tries every order, placing each buffer on top of the earlier ones that it may not share bytes with.
func bruteOptimum(l *lifetimes) int64 {
	n := len(l.buffers)
	best := int64(1 << 62)
	order := make([]int, 0, n)
	offset := make([]int64, n)
	var extend func(peak int64)
	extend = func(peak int64) {
		if len(order) == n {
			best = min(best, peak)
			return
		}
		for k := range n {
			if slices.Contains(order, k) {
				continue
			}
			offset[k] = 0
			for _, q := range order {
				if !l.apart(int32(k), int32(q)) {
					offset[k] = max(offset[k], offset[q]+l.bytes[q])
				}
			}
			order = append(order, k)
			extend(max(peak, offset[k]+l.bytes[k]))
			order = order[:len(order)-1]
		}
	}
	extend(0)
	return best
}

// layoutSample is a graph of a random family, with its plan.
func layoutSample(tb testing.TB, family, nodes, streams int, seed uint64) (*dag.Graph, *plan.Plan) {
	tb.Helper()
	g := plantest.RandomShape(family, nodes, seed).Graph(tb)
	return g, planned.ListPlan(tb, g, streams)
}

func TestLayoutOfSmallGraphsIsOptimal(t *testing.T) {
	equal, all, onePass := 0, 0, 0
	for seed := range uint64(6) {
		for family := range plantest.Families {
			for _, streams := range []int{1, 2, 4} {
				g, p := layoutSample(t, family, 6, streams, seed)
				l := readSharing(t, g, p, order.Entries)
				if len(l.buffers) > 8 {
					continue
				}
				all++
				want := bruteOptimum(l)
				got := peakOf(l, placeSharing(context.Background(), l, g.Len(), effort.Quick))
				require.GreaterOrEqual(t, got, want)
				if got == want {
					equal++
				}
				if peakOf(l, sweepLayout(l, g.Len())) == want {
					onePass++
				}
			}
		}
	}
	t.Logf("%d of %d small graphs at the optimum, %d with the sweep alone", equal, all, onePass)
	require.Greater(t, all, 100)
	require.GreaterOrEqual(t, float64(equal), 0.9*float64(all))
}

func TestHeaviestAntichain(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := plantest.DrawGraph(t, 14, false)
		p := plantest.DrawDullPlan(t, g, 4)
		l := readSharing(t, g, p, order.Entries)
		want := int64(0)
		for set := range 1 << len(l.buffers) {
			bytes := int64(0)
			for a := range l.buffers {
				if set>>a&1 == 0 {
					continue
				}
				bytes += l.bytes[a]
				for b := range a {
					if set>>b&1 == 1 && l.apart(int32(a), int32(b)) {
						bytes = -1 << 40
					}
				}
			}
			want = max(want, bytes)
		}
		got := int64(0)
		set := heaviestAntichain(l)
		for _, a := range set {
			got += l.bytes[a]
			for _, b := range set {
				require.True(t, a == b || !l.apart(a, b))
			}
		}
		require.Equal(t, want, got)
		least, _ := l.busiest(g.Len())
		require.LessOrEqual(t, least, want)
	})
}

// layoutRatios are the peaks of layouts divided by the bytes of the heaviest antichain.
func layoutRatios(tb testing.TB, family int, sizes, streams []int, seeds uint64, place func(l *lifetimes, nodes int) []int64) []float64 {
	tb.Helper()
	var ratios []float64
	for _, nodes := range sizes {
		for _, most := range streams {
			for seed := range seeds {
				g, p := layoutSample(tb, family, nodes, most, seed)
				l := readSharing(tb, g, p, order.Entries)
				heaviest := int64(0)
				for _, k := range heaviestAntichain(l) {
					heaviest += l.bytes[k]
				}
				peak := peakOf(l, place(l, g.Len()))
				require.GreaterOrEqual(tb, peak, heaviest)
				ratios = append(ratios, float64(peak)/float64(heaviest))
			}
		}
	}
	return ratios
}

// meanAnd95th returns the mean and the 95th percentile of ratios.
func meanAnd95th(ratios []float64) (mean, p95 float64) {
	ratios = slices.Sorted(slices.Values(ratios))
	for _, r := range ratios {
		mean += r / float64(len(ratios))
	}
	return mean, ratios[(len(ratios)*95+99)/100-1]
}

func TestLayoutIsNearTheHeaviestAntichain(t *testing.T) {
	var all []float64
	for family := range plantest.Families {
		all = append(all, layoutRatios(t, family, []int{40, 160}, []int{2, 8}, 1, placeQuick)...)
	}
	mean, p95 := meanAnd95th(all)
	t.Logf("%d layouts: mean %.3f, p95 %.3f of the heaviest antichain", len(all), mean, p95)
	require.LessOrEqual(t, mean, 1.10)
	require.LessOrEqual(t, p95, 1.25)
}

// Graphs with thousands of buffers are laid out by the sweep.
func TestSweepOfManyBuffers(t *testing.T) {
	for family := range plantest.Families {
		g, p := layoutSample(t, family, 3000, 8, 1)
		l := readSharing(t, g, p, order.Entries)
		least, _ := l.busiest(g.Len())
		sum := int64(0)
		for _, b := range l.bytes {
			sum += b
		}
		swept := sweepLayout(l, g.Len())
		t.Logf("%-16s %5d buffers: %.3f of the most alive in submission order, which is %.3f of all", plantest.Families[family].Name, len(l.buffers),
			float64(peakOf(l, swept))/float64(least), float64(least)/float64(sum))
		require.NoError(t, Memory(context.Background(), g, p, Kept(g), effort.Quick))
		require.NoError(t, proof.Verify(g, p))
	}
}

// BenchmarkMemory lays out the memory of graphs of the random families on 1, 2, 4 and 8 streams: the time of one layout, and
// the peak divided by the bytes of the heaviest antichain.
func BenchmarkMemory(b *testing.B) {
	var all []float64
	for family := range plantest.Families {
		b.Run(plantest.Families[family].Name, func(b *testing.B) {
			g, p := layoutSample(b, family, 250, 4, 1)
			for b.Loop() {
				if err := Memory(context.Background(), g, p, Kept(g), effort.Quick); err != nil {
					b.Fatal(err)
				}
			}
			ratios := layoutRatios(b, family, []int{50, 100, 250, 500}, []int{1, 2, 4, 8}, 3, placeQuick)
			all = append(all, ratios...)
			mean, p95 := meanAnd95th(ratios)
			b.ReportMetric(mean, "mean/antichain")
			b.ReportMetric(p95, "p95/antichain")
		})
	}
	if len(all) == 0 {
		return
	}
	b.Run("all-families", func(b *testing.B) {
		var mean, p95 float64
		for b.Loop() {
			mean, p95 = meanAnd95th(all)
		}
		b.ReportMetric(mean, "mean/antichain")
		b.ReportMetric(p95, "p95/antichain")
	})
}

// BenchmarkLayouts compares the layouts of normal effort with those of a search of up to ten seconds, and both with the bytes of the heaviest
// antichain. Its timings mean nothing.
func BenchmarkLayouts(b *testing.B) {
	for _, n := range []int{200, 500, 1000} {
		for _, streams := range []int{4, 8} {
			b.Run(fmt.Sprintf("nodes=%d/streams=%d", n, streams), func(b *testing.B) {
				for b.Loop() {
				}
				var over, above [2]float64 // mean and worst, in percent
				count := 0.0
				for family := range plantest.Families {
					g, p := layoutSample(b, family, n, streams, 1)
					l := readSharing(b, g, p, order.Entries)
					heaviest := int64(0)
					for _, k := range heaviestAntichain(l) {
						heaviest += l.bytes[k]
					}
					normal := peakOf(l, placeSharing(context.Background(), l, g.Len(), effort.Normal))
					long := peakOf(l, placeSharing(context.Background(), l, g.Len(), effort.Thorough))
					count++
					add := func(row *[2]float64, peak, least int64) {
						percent := 100 * (float64(peak)/float64(least) - 1)
						row[0] += (percent - row[0]) / count
						row[1] = max(row[1], percent)
					}
					add(&over, normal, long)
					add(&above, long, heaviest)
				}
				fmt.Printf("%d nodes on %d streams: normal over thorough mean %.2f%%, worst %.2f%%; thorough over the antichain mean %.2f%%, worst %.2f%%\n",
					n, streams, over[0], over[1], above[0], above[1])
			})
		}
	}
}

// BenchmarkMemoryGrowth has one buffer per node, on eight streams.
func BenchmarkMemoryGrowth(b *testing.B) {
	for _, n := range plantest.BenchmarkSizes {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			g := plantest.GrowthShape(n).Graph(b)
			p := planned.ListPlan(b, g, 8)
			for b.Loop() {
				if err := Memory(context.Background(), g, p, Kept(g), effort.Quick); err != nil {
					b.Fatal(err)
				}
			}
			plantest.PerNode(b, n)
			l := readSharing(b, g, p, order.Entries)
			least, _ := l.busiest(n)
			b.ReportMetric(float64(p.Stats.PeakDeviceBytes)/float64(least), "peak/busiest")
			b.ReportMetric(float64(p.Stats.SumDeviceBytes)/float64(p.Stats.PeakDeviceBytes), "sum/peak")
		})
	}
}

func BenchmarkHeaviestAntichain(b *testing.B) {
	for _, n := range []int{100, 250, 400} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			g, p := layoutSample(b, 0, n, 4, 1)
			l := readSharing(b, g, p, order.Entries)
			for b.Loop() {
				heaviestAntichain(l)
			}
			plantest.PerNode(b, n)
		})
	}
}
