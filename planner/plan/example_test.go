// A runnable example: a plan written by hand, as text and as the ops of one replay.

package plan_test

import (
	"fmt"
	"os"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/planner/plan"
)

// The first stream makes x, the second makes y and then reads both, so it waits for an event of the first. A replay adds
// event 1 at the start, for which the second stream waits, and event 2 at the end, for which the first stream waits.
func Example() {
	b := dag.New("sum")
	x, y := b.Device("x", dag.F32, 256), b.Device("y", dag.F32, 256)
	b.Task("make_x", b.Out(x))
	b.Task("make_y", b.Out(y))
	b.Task("add", b.In(x), b.InOut(y))
	b.Task("print", b.In(x), b.In(y))
	g, err := b.Graph()
	if err != nil {
		fmt.Println(err)
		return
	}
	p := &plan.Plan{
		Name: "sum", Strategy: "manual", Requested: "manual",
		Streams: []plan.Stream{
			{Ops: []plan.Op{{Kind: plan.Launch, Node: 0, Event: -1}, {Kind: plan.Record, Node: 0, Event: 0}}},
			{Ops: []plan.Op{
				{Kind: plan.Launch, Node: 1, Event: -1}, {Kind: plan.Wait, Node: 0, Event: 0},
				{Kind: plan.Launch, Node: 2, Event: -1}, {Kind: plan.Launch, Node: 3, Event: -1},
			}},
		},
		Order:  []int32{0, 0, 1, 1, 1, 1},
		Events: 1,
		Stats:  plan.Stats{Edges: len(g.Edges()), Records: 1, Waits: 1},
	}
	if err := p.WriteText(os.Stdout, g, nil); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println()
	for _, op := range p.Replay(1).Ops {
		fmt.Printf("stream %d: %v", op.Stream, op.Kind)
		if op.Kind == plan.Launch {
			fmt.Printf(" %s\n", g.Nodes[op.Node].Name)
		} else {
			fmt.Printf(" event %d\n", op.Event)
		}
	}
	// Output:
	// sum: 4 nodes on 2 streams, strategy manual
	//
	// stream 0
	//   make_x    task
	//   record 0
	//
	// stream 1
	//   make_y    task
	//   wait 0    make_x (stream 0): add, RAW x
	//   add       task
	//   print     task
	//
	// 1 record, 1 wait, 1 event for 4 dependencies
	//
	// stream 0: record event 1
	// stream 1: wait event 1
	// stream 0: launch make_x
	// stream 0: record event 0
	// stream 1: launch make_y
	// stream 1: wait event 0
	// stream 1: launch add
	// stream 1: launch print
	// stream 1: record event 2
	// stream 0: wait event 2
}
