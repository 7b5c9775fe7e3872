package main

import (
	"context"
	"fmt"
	"log"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/planner"
	"github.com/dagrun/dagrun/planner/plan"
)

// cuda is what a plan makes a program call. Here the calls are printed.
type cuda interface {
	Launch(node dag.NodeID, stream int32) // your copy or kernel, on that stream
	Record(event, stream int32)           // cudaEventRecord
	Wait(stream, event int32)             // cudaStreamWaitEvent
}

// declare says what each node reads and writes; which node comes after which follows from that.
func declare() (*dag.Graph, error) {
	b := dag.New("halves")
	x, y := b.Device("x", dag.F32, 1<<20), b.Device("y", dag.F32, 1<<20)
	for i := range int64(2) {
		half, out := b.Part(x, i, 2), b.Part(y, i, 2)
		b.Cost(b.Task(fmt.Sprint("load ", i), half.Out()), 80) // microseconds
		b.Cost(b.Task(fmt.Sprint("scale ", i), half.In(), out.Out()), 40)
	}
	b.Cost(b.Task("sum", b.In(y)), 10)
	return b.Graph() // the error lists every mistake
}

// issue makes the calls of one replay. It begins after what stream 0 was given before, and what stream 0 is given next begins after it.
func issue(p *plan.Plan, calls cuda) {
	for _, op := range p.Replay(1).Ops {
		switch op.Kind {
		case plan.Launch:
			calls.Launch(op.Node, op.Stream)
		case plan.Record:
			calls.Record(op.Event, op.Stream)
		case plan.Wait:
			calls.Wait(op.Stream, op.Event)
		}
	}
}

type printer struct{ graph *dag.Graph }

func (p printer) Launch(node dag.NodeID, stream int32) {
	fmt.Printf("stream %d: %s\n", stream, p.graph.Nodes[node].Name)
}
func (printer) Record(event, stream int32) { fmt.Printf("stream %d: record %d\n", stream, event) }
func (printer) Wait(stream, event int32)   { fmt.Printf("stream %d: wait for %d\n", stream, event) }

func main() {
	graph, err := declare()
	if err != nil {
		log.Fatal(err)
	}
	made, err := planner.New(context.Background(), graph, planner.Options{}) // proved before it is returned
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(len(made.Streams), "streams,", made.Replay(1).Events, "events")
	issue(made, printer{made.Graph})
}
