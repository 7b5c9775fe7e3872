// A recorder of the calls that a program makes of a plan, which knows CUDA's rules of order: it finds what no stream and no wait orders.

package main

import (
	"context"
	"fmt"
	"maps"
	"testing"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/planner"
	"github.com/dagrun/dagrun/planner/plan"
)

// work is a launch of a node in a replay; that of replay -1 stands for what the program did on stream 0 before.
type work struct {
	replay int
	node   dag.NodeID
}

// recorder keeps for each stream and event which work has ended when they are reached.
type recorder struct {
	graph   *dag.Graph
	streams map[int32]map[work]bool
	events  map[int32]map[work]bool
	replay  int
	drop    int // the wait that is not made; -1: none
	waits   int
	faults  []string
}

func newRecorder(g *dag.Graph, drop int) *recorder {
	r := &recorder{graph: g, streams: map[int32]map[work]bool{}, events: map[int32]map[work]bool{}, drop: drop}
	for node := range g.Nodes {
		r.ended(0)[work{-1, dag.NodeID(node)}] = true
	}
	return r
}

func (r *recorder) ended(stream int32) map[work]bool {
	if r.streams[stream] == nil {
		r.streams[stream] = map[work]bool{}
	}
	return r.streams[stream]
}

func (r *recorder) must(stream int32, w work, why string) {
	if !r.ended(stream)[w] {
		r.faults = append(r.faults, fmt.Sprintf("replay %d: %s", r.replay, why))
	}
}

func (r *recorder) Launch(node dag.NodeID, stream int32) {
	for _, e := range r.graph.Edges() {
		if e.To == node {
			r.must(stream, work{r.replay, e.From}, fmt.Sprintf("%s begins before %s has ended", r.graph.Nodes[node].Name, r.graph.Nodes[e.From].Name))
		}
	}
	for other := range r.graph.Nodes {
		r.must(stream, work{r.replay - 1, dag.NodeID(other)}, r.graph.Nodes[node].Name+" begins before the replay before has ended")
	}
	r.ended(stream)[work{r.replay, node}] = true
}

func (r *recorder) Record(event, stream int32) { r.events[event] = maps.Clone(r.ended(stream)) }

func (r *recorder) Wait(stream, event int32) {
	r.waits++
	if r.waits-1 == r.drop {
		return
	}
	if r.events[event] == nil {
		r.faults = append(r.faults, fmt.Sprintf("event %d is waited for and was not recorded", event))
	}
	maps.Copy(r.ended(stream), r.events[event])
}

// twice issues a plan two times; after that, stream 0 must have waited for all of it.
func twice(p *plan.Plan, drop int) *recorder {
	r := newRecorder(p.Graph, drop)
	for r.replay = range 2 {
		issue(p, r)
	}
	for node := range p.Graph.Nodes {
		r.must(0, work{1, dag.NodeID(node)}, "stream 0 does not wait for "+p.Graph.Nodes[node].Name)
	}
	return r
}

func TestCallsOfAPlanAreOrdered(t *testing.T) {
	halves, err := declare()
	if err != nil {
		t.Fatal(err)
	}
	b := dag.New("wide") // a chain of stages, each wider than there are streams
	last := b.Device("in", dag.F32, 60)
	b.Task("first", b.Out(last))
	for stage := range 2 {
		next := b.Device(fmt.Sprint("stage ", stage), dag.F32, 60)
		for part := range int64(6) {
			b.Cost(b.Task(fmt.Sprint("part ", stage, ".", part), b.In(last), b.Part(next, part, 6).Out()), float64(5+part%4))
		}
		last = next
	}
	wide, err := b.Graph()
	if err != nil {
		t.Fatal(err)
	}
	for _, graph := range []*dag.Graph{halves, wide} {
		for _, strategy := range planner.Strategies() {
			p, err := planner.New(context.Background(), graph, planner.Options{Strategy: strategy, Streams: 16})
			if err != nil {
				t.Fatal(err)
			}
			whole := twice(p, -1)
			if len(whole.faults) > 0 {
				t.Errorf("%s, %s: %v", graph.Name, strategy, whole.faults)
			}
			for drop := range whole.waits / 2 { // the recorder misses each wait of the first replay, since none is there without need
				if len(twice(p, drop).faults) == 0 {
					t.Errorf("%s, %s: nothing is missed without wait %d", graph.Name, strategy, drop)
				}
			}
		}
	}
}
