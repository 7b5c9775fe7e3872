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
	Roots      int // all pairs to fix
	Total      int // dependencies that do not hold
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
	var forwardEdge, roots []int32
	u := &Unenforced{}
	forEachUnorderedEdge(g, o.p, o.s, o.source, func(to int32, pred int) bool {
		edge := g.PredEdges(dag.NodeID(to))[pred]
		from := g.Edges()[edge].From
		u.Total++
		if rank[from] < rank[to] {
			forward = append(forward, pair{int32(from), to})
			forwardEdge = append(forwardEdge, edge)
		} else {
			roots = append(roots, edge) // no wait helps against the wrong order
		}
		return true
	})
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
	edges := g.Edges()
	slices.SortFunc(roots, func(a, b int32) int {
		return cmp.Or(cmp.Compare(edges[a].To, edges[b].To), cmp.Compare(edges[a].From, edges[b].From))
	})
	if most > 0 && len(roots) > most {
		roots = roots[:most]
	}
	for _, k := range roots {
		u.Violations = append(u.Violations, hazardViolation(g, p, s, edges[k]))
	}
	return u, nil
}
