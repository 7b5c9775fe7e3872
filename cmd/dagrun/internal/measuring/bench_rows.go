// The rows of bench: which plans there are of a graph, and what is told of each.

package measuring

import (
	"context"
	"reflect"
	"slices"

	"github.com/dagrun/dagrun/cmd/dagrun/internal/flags"
	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/planner"
	"github.com/dagrun/dagrun/runtime"
)

// benchCounts are the stream counts that bench tries unless --streams names one.
var benchCounts = []int{1, 2, 4, 8}

// benchRow is one plan, replayed one way.
type benchRow struct {
	Strategy  string          `json:"strategy"`          // "auto" for what dagrun FILE does
	Asked     int             `json:"asked_streams"`     // how many streams per device the strategy was allowed
	Streams   int             `json:"streams"`           // how many it used
	Waits     int             `json:"waits"`             // of the plan
	Replay    string          `json:"replay"`            // "streams" or "graph"
	Memory    int64           `json:"peak_device_bytes"` // of all devices
	Predicted float64         `json:"predicted_us"`      // of one replay
	Timing    *runtime.Timing `json:"timing"`            // of the timed replays; null of a recording

	plan *planner.Plan
}

// BenchReport is the JSON document of bench.
type BenchReport struct {
	Version    int        `json:"version"`           // 1
	Command    string     `json:"command"`           // bench
	Name       string     `json:"name"`              // the pipeline
	Backend    string     `json:"backend"`           // cuda or cpu; empty for a recording
	Device     string     `json:"device"`            // the first device
	Machine    string     `json:"machine"`           // that the plans are for
	Nodes      int        `json:"nodes"`             // of the pipeline
	Iterations int        `json:"iterations"`        // timed replays of each row
	Warmup     int        `json:"warmup"`            // replays before those
	Rows       []benchRow `json:"rows"`              // one for each plan and kind of replay
	Refused    []refusal  `json:"refused"`           // plans that could not be made
	Best       int        `json:"best"`              // index of the row with the least wall time
	Tied       []int      `json:"tied,omitempty"`    // indices of the other rows that are not slower by more than replays differ
	BestLine   string     `json:"best_command"`      // the command line that runs the best row
	Profile    string     `json:"profile,omitempty"` // the file of --save-profile
	Params     []string   `json:"params,omitempty"`  // those that are swept

	place string
}

// SweepReport is the JSON document of bench for a sweep.
type SweepReport struct {
	Version  int            `json:"version"`        // 1
	Command  string         `json:"command"`        // bench
	Points   []*BenchReport `json:"points"`         // one for each combination of params
	Best     int            `json:"best"`           // index of the point with the row of the least wall time
	Tied     []int          `json:"tied,omitempty"` // indices of the other points that are not slower by more than replays differ
	BestLine string         `json:"best_command"`   // the command line that runs the best row of the best point
}

// refusal is a strategy that found no plan.
type refusal struct {
	Strategy string `json:"strategy"` // that made no plan
	Streams  int    `json:"streams"`  // that it was allowed per device
	Reason   string `json:"reason"`   // why not
}

// benchPlans makes the plans to measure, each different plan once. A plan from a file is the only one.
func (u *Commands) benchPlans(ctx context.Context, g *dag.Graph, options planner.Options, report *BenchReport) ([]benchRow, error) {
	var rows []benchRow
	add := func(strategy string, asked int, plan *planner.Plan) {
		for i := range rows {
			if reflect.DeepEqual(rows[i].plan.Streams, plan.Streams) && reflect.DeepEqual(rows[i].plan.Order, plan.Order) {
				return
			}
		}
		rows = append(rows, benchRow{Strategy: strategy, Asked: asked, Streams: len(plan.Streams), Waits: plan.Stats.Waits,
			Memory: plan.Stats.PeakDeviceBytes, plan: plan})
	}
	if u.Flags.Plan != "" {
		plan, err := u.LoadPlan(ctx, g, options)
		if err != nil {
			return nil, err
		}
		add(plan.Strategy, len(plan.Streams), plan)
		return rows, nil
	}
	counts, strategies := benchCounts, u.Strategies()
	if u.Flags.Limited {
		counts = []int{u.Flags.Streams}
	}
	if u.Flags.Strategy != flags.AllStrategies {
		strategies = []string{u.Flags.Strategy}
	}
	var last error
	for _, strategy := range strategies {
		if strategy == "auto" && len(strategies) > 1 {
			continue // it chooses among the others, and has its own row
		}
		for _, streams := range counts {
			options.Strategy, options.Streams = strategy, streams
			plan, err := u.NewPlan(ctx, g, options)
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
			if err != nil {
				last = err
				report.Refused = append(report.Refused, refusal{strategy, streams, err.Error()})
				continue
			}
			add(strategy, streams, plan)
		}
	}
	if len(rows) == 0 {
		return nil, last
	}
	return rows, nil
}

// starOf marks the fastest row, or all that are tied.
func starOf(k, best int, tied []int) string {
	switch {
	case slices.Contains(tied, k), k == best && len(tied) > 0:
		return "="
	case k == best:
		return "*"
	}
	return ""
}
