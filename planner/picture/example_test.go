// A runnable example: from a graph to a chart.

package picture_test

import (
	"context"
	"log"
	"os"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/planner"
	"github.com/dagrun/dagrun/planner/picture"
)

// A plan as a chart in text. The same Schedule is drawn as SVG by a Sheet and as a page by WritePage.
func Example() {
	b := dag.New("two chains")
	x, y := b.Device("x", dag.F32, 1024), b.Device("y", dag.F32, 1024)
	b.Cost(b.Task("fill x", b.Out(x)), 30)
	b.Cost(b.Task("fill y", b.Out(y)), 20)
	b.Cost(b.Task("add", b.InOut(x), b.In(y)), 20)
	g, err := b.Graph()
	if err != nil {
		log.Fatal(err)
	}
	machine := planner.Unit()
	plan, err := planner.New(context.Background(), g, planner.Options{Strategy: "serial", Machine: machine})
	if err != nil {
		log.Fatal(err)
	}
	timeline, err := planner.Simulate(g, plan, machine, nil)
	if err != nil {
		log.Fatal(err)
	}
	schedule, err := picture.New(g, plan, timeline)
	if err != nil {
		log.Fatal(err)
	}
	if err := schedule.WriteGantt(os.Stdout, picture.GanttOptions{Width: 60, ASCII: true}); err != nil {
		log.Fatal(err)
	}
	// Output:
	// stream 0  |fill x##############|fill y########|add##########
	//           0 us                                50 us
	//           | start of a node   # on the critical path
}
