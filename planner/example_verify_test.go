// Examples of proving a schedule that did not come from New, and of repairing it.

package planner_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/planner"
	"github.com/dagrun/dagrun/planner/plan"
	"github.com/dagrun/dagrun/planner/proof"
)

// handMade is a schedule written by hand: an upload on one stream, a kernel on another, and no wait between them.
func handMade() (*dag.Graph, *planner.Plan, error) {
	b := dag.New("hand made")
	x := b.Host("x", dag.F32, 1024)
	d := b.Device("d_x", dag.F32, 1024)
	b.Copy("upload", b.Whole(d), b.Whole(x))
	b.Task("scale", b.InOut(d))
	g, err := b.Graph()
	if err != nil {
		return nil, nil, err
	}
	p := &planner.Plan{
		Streams: []plan.Stream{
			{Ops: []plan.Op{{Kind: plan.Launch, Node: 0, Event: -1}}},
			{Ops: []plan.Op{{Kind: plan.Launch, Node: 1, Event: -1}}},
		},
		Order: []int32{0, 1},
	}
	return g, p, planner.LayoutMemory(context.Background(), g, p, planner.Options{})
}

func ExampleVerify() {
	g, p, err := handMade()
	if err != nil {
		fmt.Println(err)
		return
	}
	err = planner.Verify(g, p)
	fmt.Println(err)

	var v *planner.Violation
	if errors.Is(err, proof.ErrHazard) && errors.As(err, &v) {
		p.Streams[v.BeforeStream].Ops = append(p.Streams[v.BeforeStream].Ops, plan.Op{Kind: plan.Record, Node: v.Before, Event: 0})
		p.Streams[v.Stream].Ops = append([]plan.Op{{Kind: plan.Wait, Node: v.Before, Event: 0}}, p.Streams[v.Stream].Ops...)
		p.Order, p.Events = []int32{0, 0, 1, 1}, 1
	}
	fmt.Println("mended:", planner.Verify(g, p))
	// Output:
	// "scale" (stream 1) is not ordered after "upload" (stream 0), which it depends on (RAW d_x): stream 1 must wait before "scale" for an event recorded on stream 0 after "upload"
	// mended: <nil>
}

func ExampleViolations() {
	g, p, err := handMade()
	if err != nil {
		fmt.Println(err)
		return
	}
	found, err := planner.Violations(g, p, 10)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, v := range found.Violations {
		fmt.Printf("%s: add %q\n", v.NodeName, v.Line)
	}
	// Output: scale: add "after: [upload]"
}
