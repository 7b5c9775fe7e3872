// Every pair of nodes that a plan leaves unordered though they touch the same bytes, whatever follows from fixing others.

package proof

import (
	"cmp"
	"slices"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/planner/plan"
)

// Pairs lists every pair of nodes whose order matters and is not enforced, also those that are in order once the pairs of [Violations] are: of
// three writes that nothing orders all three pairs. Roots and Total both count them. most limits how many are listed (0: all). The error is a
// *Violation if the plan is not a schedule at all.
func Pairs(g *dag.Graph, p *plan.Plan, most int) (*Unenforced, error) {
	s, v := readSchedule(g, p)
	if v != nil {
		return nil, v
	}
	o := &order{p: p, s: s, source: newPlanClocks(p, s)}
	if g.Sync == dag.SyncExplicit {
		o, _ = declaredOrder(g, p, s, nil)
	}
	pairs, partial := conflicting(g)
	u := &Unenforced{Partial: partial}
	for _, k := range unordered(o.p, o.s, o.source, pairs) {
		if u.Total++; most <= 0 || u.Total <= most {
			u.Violations = append(u.Violations, hazardViolation(g, p, s, conflictOf(g, pairs[k].from, pairs[k].to)))
		}
	}
	u.Roots = u.Total
	return u, nil
}

// conflicting returns all pairs of nodes that must keep their declared order, by the later node and then the earlier one. It gives up when it has
// found as many as anybody could read about, and reports whether it did.
func conflicting(g *dag.Graph) (pairs []pair, partial bool) {
	byBuffer := make([][]accessOf, len(g.Buffers))
	for node := range dag.NodeID(g.Len()) {
		for _, from := range g.Nodes[node].After {
			pairs = append(pairs, pair{int32(from), int32(node)})
		}
		for _, a := range g.Accesses(node) {
			if a.Lo < a.Hi {
				byBuffer[a.Buffer] = append(byBuffer[a.Buffer], accessOf{int32(node), a})
			}
		}
	}
	for _, touches := range byBuffer {
		slices.SortStableFunc(touches, func(a, b accessOf) int { return cmp.Compare(a.access.Lo, b.access.Lo) })
		for i, a := range touches {
			for _, b := range touches[i+1:] {
				if b.access.Lo >= a.access.Hi || partial {
					break
				}
				if _, meet := shared(a.access.Range, b.access.Range); meet && a.node != b.node && (a.access.Mode|b.access.Mode)&dag.Write != 0 {
					pairs = append(pairs, pair{min(a.node, b.node), max(a.node, b.node)})
					partial = len(pairs) >= mostListed
				}
			}
		}
	}
	slices.SortFunc(pairs, func(a, b pair) int { return cmp.Or(cmp.Compare(a.to, b.to), cmp.Compare(a.from, b.from)) })
	return slices.Compact(pairs), partial
}

// accessOf is an access with its node.
type accessOf struct {
	node   int32
	access dag.Access
}
