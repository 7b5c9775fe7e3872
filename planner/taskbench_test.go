// Tests of the Task Bench table: records, waits and predicted makespans of every strategy on the published patterns.

package planner

import (
	"context"
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/planner/internal/plantest"
	"github.com/dagrun/dagrun/planner/model"
	"github.com/dagrun/dagrun/planner/plan"
)

// finishTimes simulates a plan on the unit machine: a launch starts as soon as its stream and its waits allow.
func finishTimes(tb testing.TB, made *Plan, duration []float64) float64 {
	tb.Helper()
	at := make([]int, len(made.Streams))
	clock := make([]float64, len(made.Streams))
	event := make([]float64, made.Events)
	longest := 0.0
	for _, k := range made.Order {
		op := made.Streams[k].Ops[at[k]]
		at[k]++
		switch op.Kind {
		case plan.Wait:
			clock[k] = max(clock[k], event[op.Event])
		case plan.Launch:
			clock[k] += duration[op.Node]
			longest = max(longest, clock[k])
		case plan.Record:
			event[op.Event] = clock[k]
		}
	}
	for k := range at {
		require.Len(tb, made.Streams[k].Ops, at[k], "the order leaves ops of stream %d out", k)
	}
	return longest
}

// benchRow is a row of the table: one graph, or several whose means are compared.
type benchRow struct {
	name   string
	graphs []*dag.Graph
	// The limits for list on 4 streams, in the order of comparison. Zero records: not compared.
	makespan, waits, records float64
}

const randomSeeds = 20

func benchRows(tb testing.TB) []benchRow {
	tb.Helper()
	rows := []benchRow{
		{"stencil", []*dag.Graph{plantest.TaskBench("stencil", 8, 8, 0).Graph(tb)}, 16, 42, 39},
		{"fft", []*dag.Graph{plantest.TaskBench("fft", 8, 8, 0).Graph(tb)}, 16, 17, 14},
		{"sweep", []*dag.Graph{plantest.TaskBench("sweep", 8, 8, 0).Graph(tb)}, 11, 18, 18},
		{"tree", []*dag.Graph{plantest.TaskBench("tree", 8, 4, 0).Graph(tb)}, 5, 3, 3},
		{"random", nil, 16, 39, 0},
		{"chain of 32", []*dag.Graph{plantest.Chains(1, 32).Graph(tb)}, 32, 0, 0},
		{"5 chains of 16", []*dag.Graph{plantest.Chains(5, 16).Graph(tb)}, 20, 3, 3},
	}
	for seed := range uint64(randomSeeds) {
		rows[4].graphs = append(rows[4].graphs, plantest.TaskBench("random", 8, 8, seed+1).Graph(tb))
	}
	return rows
}

// counts returns a strategy's mean records, waits and makespan over a row on the unit machine.
func (r *benchRow) counts(tb testing.TB, strategy string, streams int) (records, waits, makespan float64, err error) {
	tb.Helper()
	for _, g := range r.graphs {
		plan, err := New(context.Background(), g, Options{Strategy: strategy, Streams: streams, Machine: Unit()})
		if err != nil {
			return 0, 0, 0, err
		}
		records += float64(plan.Stats.Records)
		waits += float64(plan.Stats.Waits)
		makespan += finishTimes(tb, plan, model.Durations(g, Unit(), nil))
	}
	n := float64(len(r.graphs))
	return records / n, waits / n, makespan / n, nil
}

func TestListMeetsTheTaskBenchTable(t *testing.T) {
	for _, r := range benchRows(t) {
		t.Run(r.name, func(t *testing.T) {
			records, waits, makespan, err := r.counts(t, "list", 4)
			require.NoError(t, err)
			t.Logf("%.1f records, %.1f waits, makespan %.2f", records, waits, makespan)
			require.LessOrEqual(t, makespan, r.makespan)
			if makespan == r.makespan {
				require.LessOrEqual(t, waits, r.waits)
				if waits == r.waits && r.records > 0 {
					require.LessOrEqual(t, records, r.records)
				}
			}
		})
	}
}

func TestRoundRobinIsTheBaselineOfTheTable(t *testing.T) {
	want := map[string][3]float64{"stencil": {56, 98, 16}, "sweep": {28, 28, 12}, "tree": {10, 10, 5}, "chain of 32": {0, 0, 32}}
	for _, r := range benchRows(t) {
		if w, ok := want[r.name]; ok {
			records, waits, makespan, err := r.counts(t, "roundrobin", 4)
			require.NoError(t, err)
			require.Equal(t, w, [3]float64{records, waits, makespan}, r.name)
		}
	}
}

// BenchmarkTaskBench prints the table for every strategy. Its timings mean nothing.
func BenchmarkTaskBench(b *testing.B) {
	rows := benchRows(b)
	b.Run("table", func(b *testing.B) {
		for b.Loop() {
		}
		fmt.Printf("\n%-16s", "4 streams")
		for _, strategy := range strategies {
			fmt.Printf("%20s", strategy)
		}
		fmt.Println("   (records/waits/makespan)")
		for _, r := range rows {
			fmt.Printf("%-16s", r.name)
			for _, strategy := range strategies {
				records, waits, makespan, err := r.counts(b, strategy, 4)
				if err != nil {
					fmt.Printf("%20s", "needs more streams")
					continue
				}
				cell := fmt.Sprintf("%.0f/%.0f/%.0f", records, waits, makespan)
				if waits != math.Trunc(waits) {
					cell = fmt.Sprintf("%.1f/%.1f/%.1f", records, waits, makespan)
				}
				fmt.Printf("%20s", cell)
			}
			fmt.Println()
		}
	})
}
