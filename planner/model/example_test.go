// A runnable example of what a machine model predicts for a graph and for its plan.

package model_test

import (
	"fmt"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/planner/model"
	"github.com/dagrun/dagrun/planner/plan"
)

// Everything runs on one stream of an H200: the upload, the kernel and the download follow one another, so the plan takes as long as
// its critical path and no plan is faster.
func Example() {
	b := dag.New("scale")
	host, device := b.Host("x", dag.F32, 1<<20), b.Device("d_x", dag.F32, 1<<20)
	b.Copy("up", b.Whole(device), b.Whole(host))
	b.Cost(b.Task("scale", b.InOut(device)), 50)
	b.Copy("down", b.Whole(host), b.Whole(device))
	g, err := b.Graph()
	if err != nil {
		fmt.Println(err)
		return
	}
	machine := model.H200()
	for i, us := range model.Durations(g, machine, nil) {
		fmt.Printf("%-5s takes %.2f us alone\n", g.Nodes[i].Name, us)
	}
	p := &plan.Plan{
		Streams: []plan.Stream{{Ops: []plan.Op{
			{Kind: plan.Launch, Node: 0, Event: -1}, {Kind: plan.Launch, Node: 1, Event: -1}, {Kind: plan.Launch, Node: 2, Event: -1},
		}}},
		Order: []int32{0, 0, 0},
	}
	timeline, err := model.Simulate(g, p, machine, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	bound := model.LowerBound(g, machine, nil, 1)
	fmt.Printf("this plan takes %.2f us, none takes less than %.2f us (%s)\n", timeline.MakespanUS, bound.US(), bound.By())
	// Output:
	// up    takes 78.06 us alone
	// scale takes 50.00 us alone
	// down  takes 77.51 us alone
	// this plan takes 216.22 us, none takes less than 216.22 us (the critical path)
}
