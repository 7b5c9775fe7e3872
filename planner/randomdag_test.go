// Tests and benchmarks on random graphs: the distance of plans from the lower bound by family, and the cost of planning by size.

package planner

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/planner/internal/plantest"
	"github.com/dagrun/dagrun/planner/model"
)

var randomStreams = []int{1, 2, 4, 8}

// randomCase is a random graph with the values that all its plans are compared with.
type randomCase struct {
	family int
	g      *dag.Graph
	cost   []float64
	width  int // largest antichain
}

func randomCases(tb testing.TB, sizes []int, seeds uint64) []randomCase {
	tb.Helper()
	var cases []randomCase
	for family := range plantest.Families {
		for _, n := range sizes {
			for seed := range seeds {
				s := plantest.RandomShape(family, n, seed+1)
				g := s.Ordered(tb)
				// Without priorities, devices and bindings, cover uses one stream for each node that can run at the same time.
				p, err := New(context.Background(), g, Options{Strategy: "cover", Streams: g.Len(), Machine: Unit()})
				require.NoError(tb, err)
				width := len(p.Streams)
				cases = append(cases, randomCase{family, g, s.Cost, width})
			}
		}
	}
	return cases
}

// ratio is a strategy's makespan over the lower bound, and its waits.
func (c *randomCase) ratio(tb testing.TB, strategy string, streams int) (ratio float64, waits int, err error) {
	tb.Helper()
	r, err := newRequest(context.Background(), c.g, Options{Strategy: strategy, Machine: Unit()})
	require.NoError(tb, err)
	var plan *Plan
	if strategy == "auto" {
		plan, err = r.auto(streams)
	} else {
		plan, err = r.planWith(candidate{strategy: strategy, streams: streams})
	}
	if err != nil {
		return 0, 0, err
	}
	bound := model.LowerBound(c.g, Unit(), nil, streams).US()
	return finishTimes(tb, plan, c.cost) / bound, plan.Stats.Waits, nil
}

func TestListIsNearTheLowerBound(t *testing.T) {
	sum, count := 0.0, 0
	perFamily := make([][2]float64, len(plantest.Families))
	for _, c := range randomCases(t, []int{50, 200, 1000}, 2) {
		for _, streams := range randomStreams {
			list, _, err := c.ratio(t, "list", streams)
			require.NoError(t, err)
			baseline, _, err := c.ratio(t, "roundrobin", streams)
			require.NoError(t, err)
			require.LessOrEqual(t, list, 1.02*baseline, "%s on %d streams is worse than roundrobin", c.g.Name, streams)
			if c.width >= streams {
				sum += list
				count++
				perFamily[c.family][0] += list
				perFamily[c.family][1]++
			}
		}
	}
	for k, f := range perFamily {
		t.Logf("%-16s %.4f", plantest.Families[k].Name, f[0]/f[1])
	}
	t.Logf("%-16s %.4f over %d plans", "all", sum/float64(count), count)
	require.LessOrEqual(t, sum/float64(count), 1.05)
}

// BenchmarkRandomDAG prints mean makespan over the lower bound by family, for every strategy, over all graphs and stream counts
// whose largest antichain has at least as many nodes as there are streams. Its timings mean nothing.
func BenchmarkRandomDAG(b *testing.B) {
	cases := randomCases(b, []int{50, 200, 1000, 5000}, 2)
	b.Run("table", func(b *testing.B) {
		for b.Loop() {
		}
		type cell struct {
			ratio, waits float64
			count        int
		}
		table := make([][]cell, len(plantest.Families)+1)
		for k := range table {
			table[k] = make([]cell, len(strategies))
		}
		worst := 0.0
		for _, c := range cases {
			for _, streams := range randomStreams {
				ratios := map[string]float64{}
				for k, strategy := range strategies {
					ratio, waits, err := c.ratio(b, strategy, streams)
					if err != nil {
						continue
					}
					ratios[strategy] = ratio
					if c.width < streams {
						continue
					}
					for _, row := range []int{c.family, len(plantest.Families)} {
						table[row][k].ratio += ratio
						table[row][k].waits += float64(waits)
						table[row][k].count++
					}
				}
				worst = max(worst, ratios["list"]/ratios["roundrobin"])
			}
		}
		fmt.Printf("\n%-16s", "mixed costs")
		for _, strategy := range strategies {
			fmt.Printf("%18s", strategy)
		}
		fmt.Println("   (mean makespan over lower bound, mean waits; S 1, 2, 4, 8)")
		for k, row := range table {
			name := "all"
			if k < len(plantest.Families) {
				name = plantest.Families[k].Name
			}
			fmt.Printf("%-16s", name)
			for _, c := range row {
				if c.count == 0 {
					fmt.Printf("%18s", "-")
					continue
				}
				fmt.Printf("%18s", fmt.Sprintf("%.4f %6.0f", c.ratio/float64(c.count), c.waits/float64(c.count)))
			}
			fmt.Println()
		}
		fmt.Printf("list is at worst %.4f of roundrobin\n", worst)
	})
}

// BenchmarkGrowth shows how the cost of planning grows: list on 8 streams with its waits, and Verify. Simulation and memory
// layout are measured separately. Costs are declared, and nodes have three dependencies each.
func BenchmarkGrowth(b *testing.B) {
	for _, n := range plantest.BenchmarkSizes {
		// Graphs are made when first needed, so that sizes that a filter leaves out cost nothing.
		made := sync.OnceValues(func() (*request, *Plan) {
			r, err := newRequest(context.Background(), plantest.GrowthShape(n).Ordered(b), Options{Strategy: "list"})
			require.NoError(b, err)
			plan, err := r.planWith(candidate{strategy: "list", streams: 8})
			require.NoError(b, err)
			return r, plan
		})
		perNode := func(b *testing.B) {
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/node")
		}
		b.Run(fmt.Sprintf("list+Verify/n=%d", n), func(b *testing.B) {
			b.ReportAllocs()
			made, _ := made()
			g := made.g
			for b.Loop() {
				r, err := newRequest(context.Background(), g, Options{Strategy: "list"})
				require.NoError(b, err)
				plan, err := r.planWith(candidate{strategy: "list", streams: 8})
				require.NoError(b, err)
				if err := Verify(g, plan); err != nil {
					b.Fatal(err)
				}
			}
			perNode(b)
		})
		b.Run(fmt.Sprintf("simulate/n=%d", n), func(b *testing.B) {
			r, plan := made()
			for b.Loop() {
				require.NoError(b, r.simulate(plan))
			}
			perNode(b)
		})
	}
}

// BenchmarkEffort shows the time of each effort for graphs of 300 nodes, memory layout included.
func BenchmarkEffort(b *testing.B) {
	for family := range plantest.Families {
		g := plantest.RandomShape(family, 300, 1).Graph(b)
		for _, e := range []Effort{Quick, Normal} {
			b.Run(fmt.Sprintf("%s/%v", plantest.Families[family].Name, e), func(b *testing.B) {
				for b.Loop() {
					_, err := New(context.Background(), g, Options{Effort: e})
					require.NoError(b, err)
				}
			})
		}
	}
}
