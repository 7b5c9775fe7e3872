// A runnable example of proving a plan that did not come from New.

package proof_test

import (
	"fmt"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/planner/plan"
	"github.com/dagrun/dagrun/planner/proof"
)

// A kernel on one stream reads what a copy on another stream writes, and no wait orders them.
func ExampleVerify() {
	b := dag.New("example")
	x, d := b.Host("x", dag.F32, 1024), b.Device("d_x", dag.F32, 1024)
	b.Copy("upload", b.Whole(d), b.Whole(x))
	b.Task("scale", b.InOut(d))
	g, err := b.Graph()
	if err != nil {
		fmt.Println(err)
		return
	}
	p := &plan.Plan{
		Streams: []plan.Stream{
			{Ops: []plan.Op{{Kind: plan.Launch, Node: 0, Event: -1}}},
			{Ops: []plan.Op{{Kind: plan.Launch, Node: 1, Event: -1}}},
		},
		Order:  []int32{0, 1},
		Memory: []plan.Placement{{Buffer: d, Bytes: 4096}},
	}
	fmt.Println(proof.Verify(g, p))
	// Output:
	// "scale" (stream 1) is not ordered after "upload" (stream 0), which it depends on (RAW d_x): stream 1 must wait before "scale" for an event recorded on stream 0 after "upload"
}
