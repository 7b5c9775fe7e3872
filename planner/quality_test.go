// Tests of the quality of whole plans: orders of copies against Johnson's rule and the best known orders, small graphs against exact
// answers, waits of networks. The tests check limits on parts of the tables; this prints the full tables, in a few minutes:
//
//	go test ./planner -run '^$' -bench Quality

package planner

import (
	"bufio"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/planner/internal/plantest"
	"github.com/dagrun/dagrun/planner/internal/plantest/instances"
	"github.com/dagrun/dagrun/planner/internal/shop"
	"github.com/dagrun/dagrun/planner/model"
)

// shopGraph declares an instance as a pipeline: buffers of each job, copies between them and tasks, all with costs.
func shopGraph(tb testing.TB, in instances.Instance) *dag.Graph {
	tb.Helper()
	b := dag.New("shop")
	const bytes = 1024
	for j, us := range in.Jobs {
		buffer := func(place dag.Place, device int, what string) dag.BufferID {
			return b.Buffer(dag.Buffer{Name: fmt.Sprintf("%s%d", what, j), Place: place, Device: int32(device), DType: dag.U8, Shape: []int64{bytes}})
		}
		whole := func(id dag.BufferID) dag.Range { return dag.Range{Buffer: id, Lo: 0, Hi: bytes} }
		at := buffer(dag.Device, in.Route[0]/instances.PerDevice, "d")
		for k, m := range in.Route {
			device := m / instances.PerDevice
			name := fmt.Sprintf("n%d.%d", j, k)
			var id dag.NodeID
			switch m % instances.PerDevice {
			case instances.Upload:
				id = b.Copy(name, whole(at), whole(buffer(dag.Host, 0, "x")))
			case instances.Compute:
				id = b.Task(name, dag.Access{Range: whole(at), Mode: dag.ReadWrite})
			case instances.Download:
				id = b.Copy(name, whole(buffer(dag.Host, 0, "y")), whole(at))
			case instances.Peer:
				there := buffer(dag.Device, device+1, "e")
				id = b.Copy(name, whole(there), whole(at))
				at = there
			}
			node := b.At(id)
			node.Device = int32(device)
			node.HasCost, node.CostUS = true, us[k]
		}
	}
	g, err := b.Graph()
	require.NoError(tb, err)
	return g
}

// makespan plans with normal effort.
func makespan(tb testing.TB, g *dag.Graph, m *Machine, streams int) float64 {
	tb.Helper()
	plan, err := New(context.Background(), g, Options{Machine: m, Streams: streams, Effort: Normal})
	require.NoError(tb, err)
	require.LessOrEqual(tb, plan.Stats.LowerBoundUS, plan.Stats.MakespanUS*(1+1e-9))
	return plan.Stats.MakespanUS
}

// distances are the distances of plans from the best known ones, in percent.
type distances struct {
	name        string
	count       int
	optimal     int
	mean, worst float64
}

func (d *distances) add(us, best float64) {
	over := 100 * (us/best - 1)
	d.mean = (d.mean*float64(d.count) + over) / float64(d.count+1)
	d.worst = max(d.worst, over)
	d.count++
	if over < 1e-6 {
		d.optimal++
	}
}

func (d *distances) String() string {
	return fmt.Sprintf("%-52s %4d plans: mean %5.2f%%, worst %5.2f%%, %5.1f%% at the best", d.name, d.count, d.mean, d.worst, 100*float64(d.optimal)/float64(d.count))
}

// bestKnown reads the best known makespans of instances.
func bestKnown(tb testing.TB) map[string]float64 {
	tb.Helper()
	file, err := os.Open("internal/shop/testdata/best.txt")
	require.NoError(tb, err)
	defer file.Close()
	values := map[string]float64{}
	for lines := bufio.NewScanner(file); lines.Scan(); {
		name, value, _ := strings.Cut(lines.Text(), ": ")
		values[name], err = strconv.ParseFloat(value, 64)
		require.NoError(tb, err)
	}
	return values
}

// johnsonRows compares plans of two-stage shops with Johnson's rule.
func johnsonRows(tb testing.TB, seeds uint64) []*distances {
	var rows []*distances
	for _, route := range []string{"upload-kernel", "kernel-download"} {
		d := &distances{name: route + ", 8 to 20 jobs, Johnson"}
		for seed := range seeds {
			for _, jobs := range []int{8, 14, 20} {
				in := instances.Random(route, jobs, 1, seed)
				var first, second []float64
				for _, us := range in.Jobs {
					first, second = append(first, us[0]), append(second, us[1])
				}
				d.add(makespan(tb, shopGraph(tb, in), model.Clean(), 1), shop.Flow(first, second, shop.Johnson(first, second)))
			}
		}
		rows = append(rows, d)
	}
	return rows
}

// knownRows compares plans with the best known orders, for each instance or one in every few.
func knownRows(tb testing.TB, step int) []*distances {
	values := bestKnown(tb)
	rows := map[string]*distances{}
	var order []*distances
	for k, in := range instances.Known() {
		if k%step != 0 {
			continue
		}
		name, _, _ := strings.Cut(in.Name, ",")
		name += ", best known"
		if rows[name] == nil {
			rows[name] = &distances{name: name}
			order = append(order, rows[name])
		}
		rows[name].add(makespan(tb, shopGraph(tb, in), model.Clean(), in.Streams), values[in.Name])
	}
	return order
}

// smallRows compares plans of small graphs with exact answers.
func smallRows(tb testing.TB, seeds uint64) []*distances {
	d, unproved := &distances{name: "8 to 14 nodes on 2 to 4 streams, exact"}, 0
	for seed := range seeds {
		rng := rand.New(rand.NewPCG(seed, 53))
		n := 8 + rng.IntN(7)
		streams := 2 + rng.IntN(3)
		s := &plantest.Shape{Name: "small"}
		for i := range n {
			var preds []int32
			for q := range i {
				if rng.IntN(n) < 2 {
					preds = append(preds, int32(q))
				}
			}
			s.Preds = append(s.Preds, preds)
			s.Cost = append(s.Cost, float64(1+rng.IntN(10)))
		}
		us := makespan(tb, s.Ordered(tb), Unit(), streams)
		least, proved := instances.Least(&instances.Work{US: s.Cost, Machine: make([]int32, n), Room: []int32{int32(streams)}, Preds: s.Preds}, us, 2_000_000)
		if !proved {
			unproved++
			continue
		}
		d.add(us, least)
	}
	require.LessOrEqual(tb, unproved, int(seeds/100), "too many answers were not found")
	return []*distances{d}
}

func TestOrdersOfCopiesAreNearTheBest(t *testing.T) {
	for _, d := range johnsonRows(t, 3) {
		t.Log(d)
		require.LessOrEqual(t, d.mean, 0.1, d.name)
		require.LessOrEqual(t, d.worst, 1.0, d.name)
	}
	for _, d := range knownRows(t, 2) {
		t.Log(d)
		bar := 2.0
		if strings.Contains(d.name, "chunks") {
			bar = 1
		}
		require.LessOrEqual(t, d.mean, bar, d.name)
	}
}

// Of thousands of chunks not every one can be inserted everywhere.
func TestManyChunksAreOrderedWell(t *testing.T) {
	for _, kind := range []string{"alternating", "falling", "rising", "lognormal"} {
		for _, streams := range []int{1, 4} {
			in := instances.Chunks(kind, 1200, streams, 1)
			plan, err := New(context.Background(), shopGraph(t, in), Options{Machine: model.Clean(), Streams: streams, Effort: Normal})
			require.NoError(t, err)
			require.LessOrEqual(t, plan.Stats.MakespanUS, 1.002*plan.Stats.LowerBoundUS, in.Name)
		}
	}
}

func TestSmallGraphsArePlannedOptimally(t *testing.T) {
	for _, d := range smallRows(t, 100) {
		t.Log(d)
		require.GreaterOrEqual(t, d.optimal, d.count*99/100)
		require.LessOrEqual(t, d.worst, 3.0)
	}
}

// waitRow is the cost of a network on several streams.
func waitRow(tb testing.TB, s *plantest.Shape, streams int, e Effort) (plan *Plan) {
	tb.Helper()
	plan, err := New(context.Background(), s.Ordered(tb), Options{Machine: Unit(), Streams: streams, Effort: e})
	require.NoError(tb, err)
	return plan
}

// The fewest waits that any schedule without idle time on the longest path needs, on four streams. A search of all schedules proved them.
func TestNetworksNeedNoWaitTooMany(t *testing.T) {
	for _, c := range []struct {
		network func(parts int, unit bool) *plantest.Shape
		unit    bool
		least   [3]int // by parts
	}{
		{googLeNet, false, [3]int{36, 40, 40}},
		{inceptionV3, false, [3]int{38, 40, 40}},
		{googLeNet, true, [3]int{54, 54, 54}},
		{inceptionV3, true, [3]int{44, 44, 44}},
	} {
		for i, least := range c.least {
			s := c.network(i+1, c.unit)
			plan := waitRow(t, s, 4, Normal)
			require.InEpsilon(t, plan.Stats.LowerBoundUS, plan.Stats.MakespanUS, 1e-9)
			require.Equal(t, least, plan.Stats.Waits, "%s in %d parts", s.Name, i+1)
		}
	}
}

// auto is never worse than heft nor roundrobin, whatever the graph.
func TestAutoIsNoWorseThanHeftAndRoundRobin(t *testing.T) {
	for family := range plantest.Families {
		for _, n := range []int{40, 300} {
			g := plantest.RandomShape(family, n, 5).Ordered(t)
			auto := makespan(t, g, Unit(), 4)
			for _, strategy := range []string{"heft", "roundrobin"} {
				other, err := New(context.Background(), g, Options{Strategy: strategy, Machine: Unit(), Streams: 4})
				require.NoError(t, err)
				require.LessOrEqual(t, auto, other.Stats.MakespanUS*(1+1e-9), "%s against %s", g.Name, strategy)
			}
		}
	}
	for seed := range uint64(20) {
		g := plantest.MixedGraph(t, seed, 40, false)
		for _, m := range []*Machine{H200(), model.Clean()} {
			auto := makespan(t, g, m, 4)
			for _, strategy := range []string{"heft", "roundrobin"} {
				other, err := New(context.Background(), g, Options{Strategy: strategy, Machine: m, Streams: 4})
				require.NoError(t, err)
				require.LessOrEqual(t, auto, other.Stats.MakespanUS*(1+1e-9), "seed %d on %s against %s", seed, m.Name, strategy)
			}
		}
	}
}

// BenchmarkQuality prints the tables in full. Its timings mean nothing.
func BenchmarkQuality(b *testing.B) {
	table := func(name string, rows func(b *testing.B)) {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
			}
			rows(b)
		})
	}
	distances := func(rows []*distances) {
		for _, d := range rows {
			fmt.Println(d)
		}
	}
	table("johnson", func(b *testing.B) { distances(johnsonRows(b, 50)) })
	table("known", func(b *testing.B) { distances(knownRows(b, 1)) })
	table("small", func(b *testing.B) { distances(smallRows(b, 2000)) })
	table("waits", func(b *testing.B) {
		for _, s := range []*plantest.Shape{googLeNet(3, false), inceptionV3(3, false), googLeNet(3, true), inceptionV3(3, true)} {
			for _, streams := range []int{2, 4} {
				for _, e := range []Effort{Quick, Normal, Thorough} {
					start := time.Now()
					plan := waitRow(b, s, streams, e)
					fmt.Printf("%s, %d nodes, %d streams, %v: %d waits in %.1f us, %v\n", s.Name, len(s.Preds), streams, e, plan.Stats.Waits, plan.Stats.MakespanUS, time.Since(start).Round(time.Millisecond))
				}
			}
		}
	})
}

// If all chunks are alike, the plan reaches the bound, wherever the bottleneck is, and says so.
func TestTheBoundOfEvenChunksIsReached(t *testing.T) {
	for _, us := range [][]float64{{40, 40, 40}, {40, 25, 10}, {10, 40, 10}, {10, 25, 40}} {
		for _, streams := range []int{1, 2, 4} {
			in := instances.Instance{Streams: streams, Devices: 1, Route: instances.Routes["upload-kernel-download"]}
			for range 12 {
				in.Jobs = append(in.Jobs, us)
			}
			g := shopGraph(t, in)
			plan, err := New(context.Background(), g, Options{Machine: model.Clean(), Streams: streams, Effort: Normal})
			require.NoError(t, err)
			require.InEpsilon(t, plan.Stats.LowerBoundUS, plan.Stats.MakespanUS, 0.02, "%v on %d streams", us, streams)
			require.NotEmpty(t, plan.Stats.LowerBoundBy)
		}
	}
}

func TestPlansSayWhichBoundTheyAreMeasuredBy(t *testing.T) {
	for _, c := range []struct {
		us   []float64
		want string
	}{
		{[]float64{40, 10, 10}, "predicted 340.00 us; lower bound 340.00 us (the uploads of device 0), so this plan is optimal"},
		{[]float64{10, 40, 10}, "predicted 340.00 us; lower bound 340.00 us (the streams for kernels), so this plan is optimal"},
	} {
		in := instances.Instance{Streams: 1, Devices: 1, Route: instances.Routes["upload-kernel-download"]}
		for range 8 {
			in.Jobs = append(in.Jobs, c.us)
		}
		g := shopGraph(t, in)
		plan, err := New(context.Background(), g, Options{Machine: model.Clean(), Streams: 1, Effort: Normal})
		require.NoError(t, err)
		var text strings.Builder
		require.NoError(t, plan.WriteText(&text, g, nil))
		require.Contains(t, text.String(), c.want)
	}
	// Jobs that use two engines one after the other; both are always busy.
	in := instances.Random("upload-kernel", 10, 1, 2)
	plan, err := New(context.Background(), shopGraph(t, in), Options{Machine: model.Clean(), Streams: 1, Effort: Normal})
	require.NoError(t, err)
	require.Equal(t, plan.Stats.MakespanUS, plan.Stats.LowerBoundUS)
}
