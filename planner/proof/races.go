// All dependencies that a plan does not enforce, each with the line that would fix it.

package proof

import (
	"cmp"
	"slices"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/planner/plan"
)

// Unenforced holds the dependencies of a graph that a plan does not enforce.
type Unenforced struct {
	// Violations are the pairs to fix, by Node and then Before, as many as were asked for. A dependency that holds once others are fixed is
	// not among them: if a stretch of two streams is unordered, only its closest pair is.
	Violations []*Violation
	Roots      int  // all pairs to fix
	Total      int  // dependencies that do not hold; in a graph with joins, a node has at most one on each stream
	Partial    bool // there may be more: the search ended when it had looked at as many as a reader could want
}

// Violations lists the dependencies that a plan does not enforce: for sync: explicit, the data races of the schedule. Each comes with both
// nodes, what they do, their streams, the bytes, and the after: line that would order them. most limits how many are listed (0: all). The
// error is a *Violation if the plan is not a schedule at all.
func Violations(g *dag.Graph, p *plan.Plan, most int) (*Unenforced, error) {
	s, v := readSchedule(g, p)
	if v != nil {
		return nil, v
	}
	o := &order{p: p, s: s, source: newPlanClocks(p, s)}
	explicit := g.Sync == dag.SyncExplicit
	if explicit {
		o, _ = declaredOrder(g, p, s, nil)
	}
	rank := s.ranks()
	var forward []pair // in submission order of the later node
	var forwardEdge, roots []dag.Edge
	u := &Unenforced{}
	note := func(edge dag.Edge) {
		u.Total++
		if rank[edge.From] < rank[edge.To] {
			forward = append(forward, pair{int32(edge.From), int32(edge.To)})
			forwardEdge = append(forwardEdge, edge)
		} else {
			roots = append(roots, edge) // no wait helps against the wrong order
		}
	}
	if len(g.Joins()) > 0 {
		u.Partial = forEachUnorderedConflict(g, o, func(from, to int32) { note(conflictOf(g, from, to)) })
	} else {
		forEachUnorderedEdge(g, o.p, o.s, o.source, func(to int32, pred int) bool {
			note(g.Edges()[g.PredEdges(dag.NodeID(to))[pred]])
			return true
		})
	}
	// Count all of them as fixed: those that others then imply need no fix of their own.
	var a *ancestry
	if explicit {
		_, a = declaredOrder(g, p, s, forward)
	} else {
		a = planAncestryAnd(p, s, forward)
	}
	needless := a.needless()
	for i := 0; i < len(forward); {
		count := 1
		for i+count < len(forward) && forward[i+count].to == forward[i].to {
			count++
		}
		last := int(a.start[rank[forward[i].to]+1])
		for k := range count {
			if !needless[last-count+k] {
				roots = append(roots, forwardEdge[i+k])
			}
		}
		i += count
	}
	u.Roots = len(roots)
	slices.SortFunc(roots, func(a, b dag.Edge) int { return cmp.Or(cmp.Compare(a.To, b.To), cmp.Compare(a.From, b.From)) })
	if most > 0 && len(roots) > most {
		roots = roots[:most]
	}
	for _, edge := range roots {
		u.Violations = append(u.Violations, hazardViolation(g, p, s, edge))
	}
	return u, nil
}

// mostListed is how many pairs are looked at for the sake of a list that somebody may read. Tests lower it.
var mostListed = 1 << 18

// forEachUnorderedConflict finds pairs of nodes that must keep their declared order and do not, in submission order of the later node:
// of the nodes of one stream that a node must come after only the last. It gives up when it has found and asked about enough, and
// reports whether it did.
func forEachUnorderedConflict(g *dag.Graph, o *order, visit func(from, to int32)) (partial bool) {
	w := new(accessWalk)
	w.follow(g, o.s)
	w.asks(len(o.p.Streams))
	w.list = true
	nothing := make([]int32, len(o.p.Streams)) // a clock
	for _, node := range o.s.order {
		w.askAfter(node, nothing)
		w.touch(node, nothing)
		if partial = len(w.asked)+len(w.swapped) >= mostListed; partial {
			break
		}
	}
	for _, pair := range w.swapped {
		visit(pair.from, pair.to)
	}
	for _, k := range unordered(o.p, o.s, o.source, w.asked) {
		visit(w.asked[k].from, w.asked[k].to)
	}
	return partial
}
