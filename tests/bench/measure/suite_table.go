// The suite's results and their tables: times, ratios and their means, and predictions.

package main

import (
	"fmt"
	"math"

	"github.com/dagrun/dagrun/cudart"
	"github.com/dagrun/dagrun/dag"
)

// The contenders in the order of the table.
const (
	bySerial   = "one stream"
	byStreams  = "streams"
	byGraph    = "graph"
	byInflight = "in flight"
	byHand     = "C++"
)

// suiteRow holds the results for one workload. Times are microseconds, one for each round.
type suiteRow struct {
	Name      string               `json:"name"`
	Chunks    int                  `json:"chunks"`
	Flights   string               `json:"in_flight"`
	Nodes     int                  `json:"nodes"`
	Streams   int                  `json:"streams"`
	Waits     int                  `json:"waits"`
	PlanUS    float64              `json:"plan_us"`
	Times     map[string][]float64 `json:"times_us"`
	Predicted map[string]float64   `json:"predicted_us"`
	Bound     bound                `json:"bound_us"`
	GrCUDA    float64              `json:"grcuda_us"`
	Least     float64              `json:"least_us"` // what dependencies and engines leave, by the profiled durations
	Checks    string               `json:"checks"`
}

// The rates of the physical bound, in bytes per microsecond: pinned copies and device memory as measured on an H200.
const (
	upRate     = 55.0e3
	downRate   = 55.4e3
	memoryRate = 4.1e6
)

// bound is the minimum time of a workload from the bytes it must move: both directions of the link and device memory work in parallel.
type bound struct {
	Up     float64 `json:"up"`
	Down   float64 `json:"down"`
	Memory float64 `json:"memory"`
}

func (b bound) least() float64 { return max(b.Up, b.Down, b.Memory) }

func boundOf(g *dag.Graph) bound {
	var b bound
	for i := range g.Nodes {
		n := &g.Nodes[i]
		if n.Kind != dag.Memcpy {
			b.Memory += float64(n.Work.Bytes) / memoryRate
			continue
		}
		size := float64(n.Copy.Src.Hi - n.Copy.Src.Lo)
		if g.Buffers[n.Copy.Dst.Buffer].Place == dag.Host {
			b.Down += size / downRate
		} else {
			b.Up += size / upRate
		}
	}
	return b
}

func suiteTables(rows []*suiteRow, p cudart.Platform, s settings) []table {
	sizes := "real sizes"
	if s.small {
		sizes = "the files' own sizes"
	}
	times := table{title: fmt.Sprintf("GrCUDA suite on %s, %s: milliseconds per replay, medians of %d paired rounds", p.Devices()[0].Name, sizes, s.rounds),
		head: []string{"workload", "one stream", "chunks", "nodes", "streams", "graph", "C++ by hand", "in flight", "of them", "GrCUDA C++", "bound", "up",
			"down", "memory", "least", "results"}}
	ratios := table{title: "GrCUDA suite: ratios, the median over the rounds",
		head: []string{"workload", "one stream / best", "one stream / in flight", "streams / C++", "graph / C++", "GrCUDA / best", "best / bound",
			"in flight / bound"}}
	foreseen := table{title: "GrCUDA suite: predicted and measured, after one profiled run on one stream (ms)",
		head: []string{"workload", "one stream", "predicted", "error", "streams", "predicted", "error", "graph", "predicted", "error"}}
	latency, throughput, errorsFound := 0.0, 0.0, []float64{}
	for _, r := range rows {
		best := r.best()
		times.row(r.Name, ms(median(r.Times[bySerial])), fmt.Sprint(r.Chunks), fmt.Sprint(r.Nodes), ms(median(r.Times[byStreams])),
			ms(median(r.Times[byGraph])), ms(median(r.Times[byHand])),
			ms(median(r.Times[byInflight])), r.Flights, ms(r.GrCUDA), ms(r.Bound.least()), ms(r.Bound.Up), ms(r.Bound.Down), ms(r.Bound.Memory), ms(r.Least), r.Checks)
		gain, rate := medianRatio(r.Times[bySerial], r.Times[best]), medianRatio(r.Times[bySerial], r.Times[byInflight])
		latency += math.Log(gain)
		throughput += math.Log(rate)
		ratios.row(r.Name, ratio(gain, 1), ratio(rate, 1), ratio(medianRatio(r.Times[byStreams], r.Times[byHand]), 1),
			ratio(medianRatio(r.Times[byGraph], r.Times[byHand]), 1),
			ratio(r.GrCUDA, median(r.Times[best])), ratio(median(r.Times[best]), r.Bound.least()), ratio(median(r.Times[byInflight]), r.Bound.least()))
		cells := []string{r.Name}
		for _, name := range []string{bySerial, byStreams, byGraph} {
			measured := median(r.Times[name])
			off := math.Abs(r.Predicted[name]-measured) / measured
			errorsFound = append(errorsFound, off)
			cells = append(cells, ms(measured), ms(r.Predicted[name]), fmt.Sprintf("%.1f%%", 100*off))
		}
		foreseen.row(cells...)
	}
	if len(rows) > 0 {
		mean := func(logs float64) float64 { return math.Exp(logs / float64(len(rows))) }
		ratios.notes = append(ratios.notes,
			fmt.Sprintf("Latency, one replay at a time: geometric mean over one stream %.3f.", mean(latency)),
			fmt.Sprintf("Throughput, several replays in flight: geometric mean over one stream %.3f.", mean(throughput)))
		foreseen.notes = append(foreseen.notes, fmt.Sprintf("Median error: %.1f%%.", 100*median(errorsFound)))
	}
	return []table{times, ratios, foreseen}
}

// best returns the faster way to run one replay.
func (r *suiteRow) best() string {
	if median(r.Times[byGraph]) < median(r.Times[byStreams]) {
		return byGraph
	}
	return byStreams
}

func ms(us float64) string { return figure(us / 1e3) }
