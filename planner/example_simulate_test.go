// Examples of what a plan tells without running it.

package planner_test

import (
	"bytes"
	"context"
	"fmt"
	"os"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/planner"
	"github.com/dagrun/dagrun/planner/model"
)

// pipeline uploads a buffer, works on it and downloads it.
func pipeline() *dag.Graph {
	b := dag.New("example")
	x := b.Host("x", dag.F32, 1<<20)
	d := b.Device("d_x", dag.F32, 1<<20)
	b.Copy("up", b.Whole(d), b.Whole(x))
	b.Cost(b.Task("work", b.InOut(d)), 50)
	b.Copy("down", b.Whole(x), b.Whole(d))
	g, err := b.Graph()
	if err != nil {
		panic(err)
	}
	return g
}

func ExampleSimulate() {
	g := pipeline()
	machine := planner.H200()
	plan, err := planner.New(context.Background(), g, planner.Options{Strategy: "serial", Machine: machine})
	if err != nil {
		panic(err)
	}
	timeline, err := planner.Simulate(g, plan, machine, nil)
	if err != nil {
		panic(err)
	}
	for _, i := range timeline.CriticalPath() {
		span := timeline.Nodes[i]
		fmt.Printf("%-5s %7.2f to %7.2f us on %v, after: %v\n", g.Nodes[i].Name, span.Start, span.End, span.Engine, span.Cause)
	}
	fmt.Printf("lower bound %.2f us\n", model.LowerBound(g, machine, nil, 8).US())
	// Output:
	// up       2.65 to   80.71 us on h2d, after: host
	// work    84.71 to  134.71 us on compute, after: stream order
	// down   138.71 to  216.22 us on d2h, after: stream order
	// lower bound 216.22 us
}

func ExampleDecodePlan() {
	g := pipeline()
	plan, err := planner.New(context.Background(), g, planner.Options{})
	if err != nil {
		panic(err)
	}
	var file bytes.Buffer
	if err := plan.EncodeJSON(&file, g); err != nil {
		panic(err)
	}
	read, err := planner.DecodePlan(&file, g)
	if err != nil {
		panic(err)
	}
	fmt.Println(len(read.Streams), "stream,", read.Stats.Waits, "waits")
	// Output: 1 stream, 0 waits
}

func ExamplePlan_WriteText() {
	g := pipeline()
	plan, err := planner.New(context.Background(), g, planner.Options{Strategy: "serial", Machine: planner.Unit()})
	if err != nil {
		panic(err)
	}
	if err := model.Predict(g, plan, planner.Unit(), nil, 1); err != nil {
		panic(err)
	}
	if err := plan.WriteText(os.Stdout, g, nil); err != nil {
		panic(err)
	}
	// Output:
	// example: 3 nodes on 1 stream, strategy serial, machine unit
	//
	// stream 0
	//   up    h2d x -> d_x
	//   work  task
	//   down  d2h d_x -> x
	//
	// 0 records, 0 waits, 0 events for 3 dependencies
	// predicted 52.00 us; lower bound 52.00 us (the critical path), so this plan is optimal
	// costs: 1 declared, 2 by formula
	// device memory 4 MiB
}
