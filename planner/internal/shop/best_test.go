// Tests of the quality of orders: against exact values for few jobs, against the best known values for more.
//
// The best known values are in testdata/best.txt. This searches again, for minutes, and writes better values to the file:
//
//	go test ./planner/internal/shop -run TestBestKnown -search
//
// The tests check a part of these tables, which this prints in full:
//
//	go test ./planner/internal/shop -run '^$' -bench Orders

package shop

import (
	"bufio"
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/planner/internal/chance"
	"github.com/dagrun/dagrun/planner/internal/plantest/instances"
)

var searchLong = flag.Bool("search", false, "search for better values than those in testdata/best.txt and write them there")

const bestFile = "testdata/best.txt"

// usualSteps is the most steps that planning with normal effort spends.
const usualSteps = 1_000_000

func best(tb testing.TB, in instances.Instance, steps int) float64 {
	tb.Helper()
	w := workOf(in)
	order := declaredOrder(w)
	s, err := Best(context.Background(), w, [][]int32{order}, LowerBound(w, w.Ways(order), Jobs(w)).US, steps)
	require.NoError(tb, err)
	requireSchedule(tb, w, s)
	return s.Makespan
}

// requireSchedule checks that a schedule is valid, using only its order and lanes.
func requireSchedule(tb testing.TB, w *Work, s Schedule) {
	tb.Helper()
	require.Len(tb, s.Order, w.Len())
	end := make([]float64, w.Len())
	done := make([]bool, w.Len())
	free := map[[2]int32]float64{}
	makespan := 0.0
	for _, i := range s.Order {
		require.False(tb, done[i])
		m := w.Machine[i]
		require.Less(tb, s.Lane[i], w.Room[m])
		at := free[[2]int32{m, s.Lane[i]}]
		for _, q := range w.preds(i) {
			require.True(tb, done[q], "operation %d comes before %d, which it depends on", i, q)
			at = max(at, end[q])
		}
		end[i] = at + w.US[i]
		done[i] = true
		free[[2]int32{m, s.Lane[i]}] = end[i]
		makespan = max(makespan, end[i])
	}
	require.InDelta(tb, s.Makespan, makespan, 1e-6)
}

func readBest(tb testing.TB) map[string]float64 { return readValues(tb, bestFile) }

// readValues reads the makespans of instances by name.
func readValues(tb testing.TB, name string) map[string]float64 {
	tb.Helper()
	values := map[string]float64{}
	file, err := os.Open(name)
	if *searchLong && os.IsNotExist(err) {
		return values
	}
	require.NoError(tb, err)
	defer file.Close()
	for lines := bufio.NewScanner(file); lines.Scan(); {
		name, value, _ := strings.Cut(lines.Text(), ": ")
		us, err := strconv.ParseFloat(value, 64)
		require.NoError(tb, err)
		values[name] = us
	}
	return values
}

// reference searches for a long time, from several random orders.
func reference(tb testing.TB, in instances.Instance) float64 {
	tb.Helper()
	w := workOf(in)
	order := declaredOrder(w)
	jobs := Jobs(w)
	bound := LowerBound(w, w.Ways(order), jobs).US
	const steps = 10_000_000
	least := best(tb, in, 2*steps)
	for seed := uint64(1); seed <= 3 && least > bound*(1+near); seed++ {
		s := newSearch(w, steps)
		s.enough = bound * (1 + near)
		s.random = chance.Random(seed)
		// Jobs in a random order, each with its operations.
		at := rand.New(rand.NewPCG(seed, 47)).Perm(len(in.Jobs))
		per := w.Len() / len(in.Jobs)
		for k := range order {
			order[k] = int32(at[k/per]*per + k%per)
		}
		s.offer(order)
		s.measureTails()
		newDispatcher(s, jobs).construct(context.Background())
		s.improve(context.Background(), jobs)
		least = min(least, s.makespan)
	}
	return least
}

func TestBestKnown(t *testing.T) {
	values := readBest(t)
	var lines []string
	for _, in := range instances.Known() {
		if *searchLong {
			us := reference(t, in)
			if old, ok := values[in.Name]; ok {
				us = min(us, old)
			}
			values[in.Name] = us
			lines = append(lines, fmt.Sprintf("%s: %v\n", in.Name, us))
		}
		w := workOf(in)
		bound := LowerBound(w, w.Ways(declaredOrder(w)), Jobs(w)).US
		require.Contains(t, values, in.Name)
		require.LessOrEqual(t, bound, values[in.Name]*(1+near), "the bound of %s is above what was reached", in.Name)
	}
	if *searchLong {
		require.NoError(t, os.MkdirAll("testdata", 0o755))
		require.NoError(t, os.WriteFile(bestFile, []byte(strings.Join(lines, "")), 0o644))
	}
}

// row is the distances of some instances from their best known values.
type row struct {
	name        string
	count       int
	mean, worst float64
}

func (r *row) add(us, best float64) {
	over := 100 * (us/best - 1)
	r.mean = (r.mean*float64(r.count) + over) / float64(r.count+1)
	r.worst = max(r.worst, over)
	r.count++
}

func (r *row) String() string {
	return fmt.Sprintf("%-44s %3d instances: mean %5.2f%%, worst %5.2f%%", r.name, r.count, r.mean, r.worst)
}

// tables compares orders with the best values, every instance or some of each kind.
func tables(tb testing.TB, full bool) (johnson, shops, chunky []*row) {
	tb.Helper()
	seeds := uint64(3)
	if full {
		seeds = 50
	}
	for _, route := range []string{"upload-kernel", "kernel-download"} {
		r := &row{name: route + ", 8 to 20 jobs, Johnson"}
		for seed := range seeds {
			for _, jobs := range []int{8, 14, 20} {
				in := instances.Random(route, jobs, 1, seed)
				var first, second []float64
				for _, us := range in.Jobs {
					first, second = append(first, us[0]), append(second, us[1])
				}
				r.add(best(tb, in, usualSteps), Flow(first, second, Johnson(first, second)))
			}
		}
		johnson = append(johnson, r)
	}
	// Compare with exact values where the search through all orders finishes.
	exactJobs, states := []int{5}, 50_000
	if full {
		exactJobs, states = []int{5, 6, 7, 8, 9, 10}, 1_000_000
	}
	for _, route := range []string{"upload-kernel-download", "two devices"} {
		for _, streams := range []int{1, 2, 4} {
			r := &row{name: fmt.Sprintf("%s, %d streams, exact", route, streams)}
			for _, jobs := range exactJobs {
				for seed := range uint64(2) {
					in := instances.Random(route, jobs, streams, seed)
					us := best(tb, in, usualSteps)
					if least, proved := solve(workOf(in), us, states); proved {
						r.add(us, least)
					}
				}
			}
			shops = append(shops, r)
		}
	}
	values := readBest(tb)
	at := map[string]*row{}
	for k, in := range instances.Known() {
		if !full && k%3 != 0 {
			continue
		}
		name, _, _ := strings.Cut(in.Name, ",")
		if at[name] == nil {
			at[name] = &row{name: name + ", best known"}
			if strings.Contains(name, "chunks") {
				chunky = append(chunky, at[name])
			} else {
				shops = append(shops, at[name])
			}
		}
		at[name].add(best(tb, in, usualSteps), values[in.Name])
	}
	return johnson, shops, chunky
}

func TestOrdersAreNearTheBest(t *testing.T) {
	johnson, shops, chunky := tables(t, false)
	for _, r := range slices.Concat(johnson, shops, chunky) {
		t.Log(r)
	}
	for _, r := range johnson {
		require.Less(t, r.worst, 1e-6, r.name)
	}
	for _, r := range shops {
		require.Positive(t, r.count, r.name)
		require.LessOrEqual(t, r.mean, 2.0, r.name)
	}
	for _, r := range chunky {
		require.LessOrEqual(t, r.mean, 1.0, r.name)
	}
}

// BenchmarkOrders prints how far orders are from the best ones. Its timings mean nothing.
func BenchmarkOrders(b *testing.B) {
	johnson, shops, chunky := tables(b, true)
	b.Run("table", func(b *testing.B) {
		for b.Loop() {
		}
		for _, r := range slices.Concat(johnson, shops, chunky) {
			fmt.Println(r)
		}
	})
}
