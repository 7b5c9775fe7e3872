// Planning from Go calls: no GPU, no files.

package planner_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/planner"
)

// Two images are blurred and then blended. The plan needs two streams and one wait.
func ExampleNew() {
	b := dag.New("blend")
	left, right := b.Device("left", dag.F32, 1024), b.Device("right", dag.F32, 1024)
	b.Task("load_left", b.Out(left))
	b.Task("load_right", b.Out(right))
	b.Task("blur_left", b.InOut(left))
	b.Task("blur_right", b.InOut(right))
	b.Task("blend", b.InOut(left), b.In(right))
	g, err := b.Graph()
	if err != nil {
		fmt.Println(err)
		return
	}
	plan, err := planner.New(context.Background(), g, planner.Options{Machine: planner.Unit(), Streams: 2})
	if err != nil {
		fmt.Println(err)
		return
	}
	for k, stream := range plan.Streams {
		fmt.Printf("stream %d:", k)
		for _, op := range stream.Ops {
			fmt.Printf(" %v %s", op.Kind, g.Nodes[op.Node].Name)
		}
		fmt.Println()
	}
	fmt.Printf("%s: waits %d, %g us, at least %g\n", plan.Strategy, plan.Stats.Waits, plan.Stats.MakespanUS, plan.Stats.LowerBoundUS)
	// Output:
	// stream 0: launch load_left launch blur_left wait blur_right launch blend
	// stream 1: launch load_right launch blur_right record blur_right
	// list: waits 1, 3 us, at least 3
}

// A strategy that needs more streams than it is allowed says how many it needs.
func ExampleNew_tooManyStreams() {
	b := dag.New("wide")
	for i := range 4 {
		b.Task(fmt.Sprintf("part.%d", i), b.Out(b.Device(fmt.Sprintf("d.%d", i), dag.F32, 1024)))
	}
	g, err := b.Graph()
	if err != nil {
		fmt.Println(err)
		return
	}
	_, err = planner.New(context.Background(), g, planner.Options{Strategy: "cover", Streams: 3})
	fmt.Println(err)
	fmt.Println(errors.Is(err, planner.ErrTooManyStreams))
	// Output:
	// cover needs 4 compute streams on device 0, one for each node that can run at the same time, and 3 are allowed: not enough streams
	// true
}
