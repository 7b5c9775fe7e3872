// The steps that lifetimes are read from: the nodes of a plan, with the bodies of loops and branches unfolded in their places.

package layout

import (
	"slices"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/planner/internal/order"
	"github.com/dagrun/dagrun/planner/internal/planted"
	"github.com/dagrun/dagrun/planner/plan"
)

// steps are a plan whose launches are accesses to buffers. Without loops and branches, they are the nodes of the graph.
//
// A loop or branch becomes a step before its bodies, then the nodes of each body, on streams of that body, then a step after them. The
// first and the last step access what the node holds during all passes. What is left are the temporaries of its bodies, which are alive
// only from their first to their last access in one pass.
type steps struct {
	g      *dag.Graph
	plan   *plan.Plan
	order  *order.Schedule
	own    [][]dag.Access // by step; nil: the accesses of the nodes
	origin []dag.NodeID   // by step: the node of the graph that it belongs to; nil: its own
}

func readSteps(g *dag.Graph, p *plan.Plan) *steps {
	s := &steps{g: g, plan: p}
	if g.HasControl() && len(p.Bodies) > 0 {
		s.unfold()
	}
	s.order = order.Read(s.plan, s.len())
	return s
}

func (s *steps) len() int {
	if s.own != nil {
		return len(s.own)
	}
	return s.g.Len()
}

func (s *steps) accesses(step int32) []dag.Access {
	if s.own != nil {
		return s.own[step]
	}
	return s.g.Accesses(dag.NodeID(step))
}

// nodeOf returns the node of the graph that a step belongs to.
func (s *steps) nodeOf(step int32) dag.NodeID {
	if s.origin != nil {
		return s.origin[step]
	}
	return dag.NodeID(step)
}

func (s *steps) unfold() {
	u := &unfolding{s: s, flat: &plan.Plan{Events: s.plan.Events}}
	s.own, s.origin = [][]dag.Access{}, []dag.NodeID{}
	streams := make([]int32, len(s.plan.Streams))
	for k := range streams {
		streams[k] = u.stream()
	}
	top := level{s.g, s.plan, onlyUsers(s.g), anyBuffer(s.g)}
	next := make([]int32, len(s.plan.Streams))
	for _, stream := range s.plan.Order {
		op := s.plan.Streams[stream].Ops[next[stream]]
		next[stream]++
		u.node = op.Node
		u.op(&top, op, streams[stream], 0)
	}
	s.plan = u.flat
}

// level is a graph that is unfolded: the whole, or a body.
type level struct {
	g     *dag.Graph
	plan  *plan.Plan
	users []dag.NodeID // by buffer, as of onlyUsers
	open  []bool       // by buffer: it may be a temporary of bodies in this graph
}

// unfolding is the state of unfold.
type unfolding struct {
	s    *steps
	flat *plan.Plan
	node dag.NodeID // of the outermost graph
}

func (u *unfolding) stream() int32 {
	u.flat.Streams = append(u.flat.Streams, plan.Stream{})
	return int32(len(u.flat.Streams) - 1)
}

func (u *unfolding) add(stream int32, op plan.Op) {
	s := &u.flat.Streams[stream]
	s.Ops = append(s.Ops, op)
	u.flat.Order = append(u.flat.Order, stream)
}

func (u *unfolding) step(stream int32, accesses []dag.Access) {
	u.add(stream, plan.Op{Kind: plan.Launch, Node: dag.NodeID(len(u.s.own)), Event: -1})
	u.s.own, u.s.origin = append(u.s.own, accesses), append(u.s.origin, u.node)
}

// op adds an op of a graph's plan, whose events are numbered from base on.
func (u *unfolding) op(l *level, op plan.Op, stream, base int32) {
	switch {
	case op.Kind != plan.Launch:
		op.Event += base
		u.add(stream, op)
	case l.g.Nodes[op.Node].Control == nil:
		u.step(stream, l.g.Accesses(op.Node))
	default:
		u.control(l, op.Node, stream)
	}
}

// control adds a loop or branch, whose bodies begin and end on its stream.
func (u *unfolding) control(l *level, node dag.NodeID, stream int32) {
	inner := temporaries(l.g, node, l.users, l.open)
	var held []dag.Access
	for _, a := range l.g.Accesses(node) {
		if !inner[a.Buffer] {
			held = append(held, a)
		}
	}
	u.step(stream, held)
	for k, body := range l.g.Nodes[node].Control.Bodies {
		schedule := l.plan.BodyOf(node, k)
		if schedule == nil { // the plan was made by hand, and the proof will say so
			u.step(stream, l.g.Accesses(node))
			continue
		}
		streams := make([]int32, len(schedule.Streams))
		for at := range streams {
			if streams[at] = stream; at > 0 {
				streams[at] = u.stream()
			}
		}
		inside := level{body, schedule, onlyUsers(body), inner}
		replay, base := schedule.Replay(1), u.flat.Events
		u.flat.Events += replay.Events
		for _, op := range replay.Ops {
			u.op(&inside, op.Op, streams[op.Stream], base)
		}
	}
	u.step(stream, held)
}

// many stands for several nodes.
const many = dag.NodeID(-2)

// onlyUsers returns, by buffer, the only node of a graph that uses it, -1 if none does, or many.
func onlyUsers(g *dag.Graph) []dag.NodeID {
	users := make([]dag.NodeID, len(g.Buffers))
	for b := range users {
		users[b] = -1
	}
	for i := range dag.NodeID(g.Len()) {
		for _, a := range g.Accesses(i) {
			if users[a.Buffer] != i && users[a.Buffer] != -1 {
				users[a.Buffer] = many
			} else {
				users[a.Buffer] = i
			}
		}
	}
	return users
}

// temporaries tells which of the open buffers are temporaries of the bodies of a node: no other node of its graph uses them, nor does its
// own condition, and if it is a loop, then no pass leaves anything in them for the next.
func temporaries(g *dag.Graph, node dag.NodeID, users []dag.NodeID, open []bool) []bool {
	c := g.Nodes[node].Control
	inner := make([]bool, len(g.Buffers))
	for _, a := range g.Accesses(node) {
		b := a.Buffer
		alone, carried := users[b] == node, c.Carries(b) && !g.Buffers[b].Scratch
		inner[b] = open[b] && (alone && (!carried || planted.Is(planted.MayWrite)) || planted.Is(planted.Held))
	}
	if c.Condition != nil {
		for _, r := range c.Condition.Operands {
			inner[r.Buffer] = false
		}
	}
	return inner
}

// anyBuffer is open to be a temporary in every buffer.
func anyBuffer(g *dag.Graph) []bool {
	open := make([]bool, len(g.Buffers))
	for b := range open {
		open[b] = true
	}
	return open
}

// withinControl calls visit with what each node in the bodies of a loop or branch accesses of the temporaries there, and returns those.
func withinControl(g *dag.Graph, node dag.NodeID, users []dag.NodeID, open []bool, visit func([]dag.Access)) []bool {
	inner := temporaries(g, node, users, open)
	for _, body := range g.Nodes[node].Control.Bodies {
		users := onlyUsers(body)
		for i := range dag.NodeID(body.Len()) {
			if body.Nodes[i].Control != nil {
				withinControl(body, i, users, inner, visit)
				continue
			}
			visit(slices.DeleteFunc(slices.Clone(body.Accesses(i)), func(a dag.Access) bool { return !inner[a.Buffer] }))
		}
	}
	return inner
}
