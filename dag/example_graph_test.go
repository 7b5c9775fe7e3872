// Runnable examples of the builder and of hazards.

package dag_test

import (
	"fmt"

	"github.com/dagrun/dagrun/dag"
)

// Two halves of a buffer are copied up and worked on independently; every edge knows why it is there.
func ExampleNew() {
	b := dag.New("halves")
	x, out := b.Host("x", dag.F32, 1024), b.Host("out", dag.F32, 1024)
	d := b.Device("d_x", dag.F32, 1024)
	b.Init(x, dag.Init{Kind: dag.InitRamp, B: 0.5})
	for i := range int64(2) {
		part := b.Part(d, i, 2)
		b.Copy(fmt.Sprint("up.", i), part, b.Part(x, i, 2))
		b.Cost(b.Task(fmt.Sprint("work.", i), part.InOut()), 20)
	}
	b.Copy("down", b.Whole(out), b.Whole(d))
	g, err := b.Graph()
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, e := range g.Edges() {
		fmt.Printf("%s -> %s: %s\n", g.Nodes[e.From].Name, g.Nodes[e.To].Name, g.EdgeText(e))
	}
	// Output:
	// up.0 -> work.0: RAW d_x(0..512)
	// work.0 -> down: RAW d_x(0..512)
	// up.1 -> work.1: RAW d_x(512..1024)
	// work.1 -> down: RAW d_x(512..1024)
}

// All mistakes are reported at once, each with its node.
func ExampleBuilder_Graph() {
	b := dag.New("wrong")
	x, d := b.Host("x", dag.F32, 100), b.Device("d_x", dag.F32, 50)
	b.Copy("up", b.Whole(d), b.Whole(x))
	b.Copy("shift", b.Slice(d, 1, 50), b.Slice(d, 0, 49))
	_, err := b.Graph()
	fmt.Println(err)
	// Output:
	// node "up": memcpy: the sizes differ: x has 100 elements, d_x has 50 elements
	// node "shift": memcpy: source and destination overlap in d_x(1..49)
}

// A cycle is an error that callers can tell from others.
func ExampleCycleError() {
	b := dag.New("circle")
	first, second := b.Task("first"), b.Task("second")
	b.After(first, second)
	b.After(second, first)
	_, err := b.Graph()
	fmt.Println(err)
	// Output: dependency cycle: first -> second -> first
}
