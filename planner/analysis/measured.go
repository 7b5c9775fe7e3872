// Measured runs as timelines: what each node waited for is found from the plan and from when nodes ran.

// Package analysis reads the timeline of a run, measured or predicted: what binds it, its critical path, why engines were idle, which waits
// held, and how much memory was in use.
package analysis

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"sort"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/planner/model"
	"github.com/dagrun/dagrun/planner/plan"
	"github.com/dagrun/dagrun/planner/proof"
)

// Replay is one measured replay of a plan. Times are microseconds from the start of its first node.
type Replay struct {
	Start, End []float64 // by node
	SubmitUS   float64   // how long the host took to submit all ops
	Graph      bool      // replayed as one CUDA graph: the host submitted everything at once
}

// unclear is how far measured times that should be equal may be apart: the resolution of a GPU's events.
const unclear = 0.5

// longestUS is the longest time that a replay may take.
const longestUS = 1e15

// Measured returns the timeline of a measured replay with the reason for each node's start. The machine says whether devices share the
// cores of a CPU and what submitting an op costs; nil is an H200.
//
// Stream order and waits are known from the plan: a node was ready when the last node that its stream waits for had ended. If it started
// later, it waited for its engine, if another node of that engine ended in between, or for the host, if its op was submitted later. When
// an op was submitted is not measured: the time of the whole submission is divided among the ops, by what the machine says they cost.
func Measured(g *dag.Graph, p *plan.Plan, m *model.Machine, r *Replay) (*plan.Timeline, error) {
	if r == nil {
		return nil, errors.New("there is no replay to read")
	}
	if err := proof.CheckOps(g, p); err != nil {
		return nil, err
	}
	if err := r.check(g); err != nil {
		return nil, err
	}
	if m == nil {
		m = model.H200()
	}
	t := &plan.Timeline{Machine: m.Name, Graph: r.Graph, Nodes: make([]plan.Span, g.Len())}
	for i := range t.Nodes {
		id := dag.NodeID(i)
		end := max(r.Start[i], r.End[i])
		t.Nodes[i] = plan.Span{Start: r.Start[i], End: end, Alone: end - r.Start[i], Device: g.Nodes[i].Device, By: -1, Engine: plan.EngineOf(g, id)}
		t.MakespanUS = max(t.MakespanUS, end)
	}
	a := &attribution{g: g, p: p, m: m, t: t}
	if !r.Graph {
		a.submissions(r)
	}
	a.engines()
	a.walk()
	return t, nil
}

func (r *Replay) check(g *dag.Graph) error {
	if len(r.Start) != g.Len() || len(r.End) != g.Len() {
		return fmt.Errorf("a replay with the starts of %d nodes and the ends of %d, for a graph of %d", len(r.Start), len(r.End), g.Len())
	}
	if !(r.SubmitUS >= 0 && r.SubmitUS <= longestUS) {
		return fmt.Errorf("a replay that took %v us to submit", r.SubmitUS)
	}
	for i := range r.Start {
		if !(r.Start[i] >= 0 && r.Start[i] <= longestUS && r.End[i] >= -longestUS && r.End[i] <= longestUS) {
			return fmt.Errorf("node %q ran from %v to %v us", g.Nodes[i].Name, r.Start[i], r.End[i])
		}
	}
	return nil
}

// attribution finds what each node of a measured timeline waited for.
type attribution struct {
	g *dag.Graph
	p *plan.Plan
	m *model.Machine
	t *plan.Timeline

	submitted []float64       // by op in Order: when the host had submitted it, an estimate; nil if that is unknown
	byEnd     map[int][]int32 // by engine: its nodes, by end
}

// submissions estimates when each op was submitted. The first node starts as soon as it is submitted, so that is where the clock starts.
func (a *attribution) submissions(r *Replay) {
	a.submitted = make([]float64, len(a.p.Order))
	cursor := make([]int32, len(a.p.Streams))
	all, first, firstStart := 0.0, 0.0, math.Inf(1)
	for at, k := range a.p.Order {
		op := &a.p.Streams[k].Ops[cursor[k]]
		cursor[k]++
		all += a.cost(op)
		a.submitted[at] = all
		if op.Kind == plan.Launch && a.t.Nodes[op.Node].Start < firstStart {
			first, firstStart = all, a.t.Nodes[op.Node].Start
		}
	}
	for at := range a.submitted {
		a.submitted[at] = max(0, (a.submitted[at]-first)/max(all, 1e-9)*r.SubmitUS)
	}
}

// cost is what an op costs the host, in any unit.
func (a *attribution) cost(op *plan.Op) float64 {
	launch, event := a.m.LaunchUS, a.m.EventUS
	if !(launch > 0 && event >= 0 && launch <= longestUS && event <= longestUS) {
		launch, event = 1, 1
	}
	if op.Kind == plan.Launch {
		return launch
	}
	return event
}

// engineOf numbers the engine of a node. The devices of a CPU share its cores: they are one engine for everything.
func (a *attribution) engineOf(i dag.NodeID) int {
	if a.m.Cores > 0 {
		return 0
	}
	return int(a.t.Nodes[i].Device)*int(plan.EngineKinds) + int(a.t.Nodes[i].Engine)
}

func (a *attribution) engines() {
	a.byEnd = map[int][]int32{}
	for i := range a.t.Nodes {
		e := a.engineOf(dag.NodeID(i))
		a.byEnd[e] = append(a.byEnd[e], int32(i))
	}
	for _, nodes := range a.byEnd {
		slices.SortStableFunc(nodes, func(x, y int32) int {
			switch {
			case a.t.Nodes[x].End < a.t.Nodes[y].End:
				return -1
			case a.t.Nodes[x].End > a.t.Nodes[y].End:
				return 1
			}
			return 0
		})
	}
}

// moment is a time and its cause.
type moment struct {
	us    float64
	by    dag.NodeID
	cause plan.Cause
}

// walk goes through the ops as they are submitted, and explains each node's start.
func (a *attribution) walk() {
	p := a.p
	ready := make([]moment, len(p.Streams)) // when the stream may go on, by stream order and waits
	for k := range ready {
		ready[k].by = -1
	}
	recorded := make([]moment, p.Events)
	cursor := make([]int32, len(p.Streams))
	pageable := dag.NodeID(-1) // the last copy before that the host waited for
	for at, k := range p.Order {
		op := &p.Streams[k].Ops[cursor[k]]
		cursor[k]++
		switch op.Kind {
		case plan.Record:
			recorded[op.Event] = ready[k]
		case plan.Wait:
			if r := recorded[op.Event]; r.us > ready[k].us {
				ready[k] = moment{r.us, r.by, plan.AfterWait}
			}
		case plan.Launch:
			s := &a.t.Nodes[op.Node]
			s.Stream = k
			from := a.reason(op.Node, at, ready[k], pageable)
			s.By, s.Cause = from.by, from.cause
			ready[k] = moment{s.End, op.Node, plan.AfterOrder}
			if !a.t.Graph && a.m.Cores == 0 && isPageable(a.g, op.Node) {
				pageable = op.Node
			}
		}
	}
}

// reason is what a node waited for last before it started.
func (a *attribution) reason(i dag.NodeID, at int, ready moment, pageable dag.NodeID) moment {
	start := a.t.Nodes[i].Start
	best := ready
	if ready.by < 0 || a.t.Nodes[ready.by].Start > start {
		best = moment{by: -1} // it waited for no node, or the measurement has them in the wrong order
	}
	// A later moment explains the start better if it leaves less time unexplained than it explains. An engine that does one thing at a time
	// needs no such margin.
	better := func(m moment, sure bool) {
		if m.us > best.us && m.us <= start+unclear && (sure || m.us-best.us >= start-m.us) {
			best = m
		}
	}
	if a.submitted != nil {
		better(moment{a.submitted[at], -1, plan.AfterHost}, false)
		if pageable >= 0 && a.t.Nodes[pageable].Start < start {
			better(moment{a.t.Nodes[pageable].End, pageable, plan.AfterHost}, false)
		}
	}
	if by := a.lastOnEngine(i, best.us); by >= 0 {
		oneByOne := a.m.Cores == 0 && a.m.CopyEngines <= 1 && a.t.Nodes[i].Engine != plan.Compute
		better(moment{a.t.Nodes[by].End, by, plan.AfterQueue}, oneByOne)
	}
	return best
}

// lastOnEngine is the node that ended last before node i started, after a time, of those on its engine that started before it; -1 for none.
func (a *attribution) lastOnEngine(i dag.NodeID, after float64) dag.NodeID {
	s := &a.t.Nodes[i]
	nodes := a.byEnd[a.engineOf(i)]
	k := sort.Search(len(nodes), func(k int) bool { return a.t.Nodes[nodes[k]].End > s.Start+unclear }) - 1
	for ; k >= 0; k-- {
		q := &a.t.Nodes[nodes[k]]
		if q.End <= after {
			return -1
		}
		if q.Start < s.Start {
			return dag.NodeID(nodes[k])
		}
	}
	return -1
}

func isPageable(g *dag.Graph, i dag.NodeID) bool {
	c := g.Nodes[i].Copy
	return c != nil && (g.Buffers[c.Src.Buffer].Pageable || g.Buffers[c.Dst.Buffer].Pageable)
}
