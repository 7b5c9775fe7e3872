// What a pass of a body certainly does with bytes: followed from the accesses of the innermost nodes.

package proof

import (
	"slices"

	"github.com/dagrun/dagrun/dag"
)

// certainty is what a body or node does with bytes: which it may read before it has certainly written them, which it may write, and
// which it certainly writes.
type certainty struct{ reads, may, must byteSet }

// controlCertainty follows the bodies of a loop or branch.
func controlCertainty(n *dag.Node) certainty {
	c := n.Control
	var all certainty
	for k, body := range c.Bodies {
		one := graphCertainty(body)
		for _, r := range one.reads {
			all.reads.add(r)
		}
		for _, r := range one.may {
			all.may.add(r)
		}
		if k == 0 {
			all.must = one.must
		} else {
			all.must = all.must.both(&one.must)
		}
	}
	mayNotRun := n.Kind == dag.Branch && len(c.Bodies) < 2 || n.Kind == dag.Repeat && (c.While || c.Times < 1)
	if mayNotRun {
		all.must = nil
	}
	if c.Condition != nil {
		for _, r := range c.Condition.Operands {
			if n.Kind == dag.Branch || c.While {
				all.reads.add(r)
				continue
			}
			for _, left := range (byteSet{r}).without(&all.must) {
				all.reads.add(left)
			}
		}
	}
	return all
}

// graphCertainty follows one pass of a body, in declared order.
func graphCertainty(g *dag.Graph) certainty {
	var all certainty
	for i := range g.Nodes {
		one := certainty{}
		if g.Nodes[i].Control != nil {
			one = controlCertainty(&g.Nodes[i])
		} else {
			for _, a := range g.Accesses(dag.NodeID(i)) {
				if a.Mode&dag.Read != 0 {
					one.reads.add(a.Range)
				}
				if a.Mode&dag.Write != 0 {
					one.may.add(a.Range)
					if a.Pitch == 0 { // a tile leaves bytes between its rows
						one.must.add(a.Range)
					}
				}
			}
		}
		for _, r := range one.reads.without(&all.must) {
			all.reads.add(r)
		}
		for _, r := range one.may {
			all.may.add(r)
		}
		for _, r := range one.must {
			all.must.add(r)
		}
	}
	return all
}

// byteSet is a set of bytes: ranges by buffer and place, disjoint, neighbours joined.
type byteSet []dag.Range

// add puts the bytes of a range into the set, and for a tile also those between its rows.
func (s *byteSet) add(r dag.Range) {
	r.Pitch = 0
	if r.Lo >= r.Hi {
		return
	}
	list := *s
	first := 0
	for first < len(list) && (list[first].Buffer < r.Buffer || list[first].Buffer == r.Buffer && list[first].Hi < r.Lo) {
		first++
	}
	end := first
	for end < len(list) && list[end].Buffer == r.Buffer && list[end].Lo <= r.Hi {
		r.Lo, r.Hi = min(r.Lo, list[end].Lo), max(r.Hi, list[end].Hi)
		end++
	}
	*s = slices.Replace(list, first, end, r)
}

// without returns the bytes that another set does not have.
func (s byteSet) without(other *byteSet) byteSet {
	var rest byteSet
	for _, r := range s {
		for _, o := range *other {
			if o.Buffer != r.Buffer || o.Hi <= r.Lo || r.Hi <= o.Lo {
				continue
			}
			rest.add(dag.Range{Buffer: r.Buffer, Lo: r.Lo, Hi: o.Lo})
			r.Lo = min(o.Hi, r.Hi)
		}
		rest.add(r)
	}
	return rest
}

// both returns the bytes that both sets have.
func (s byteSet) both(other *byteSet) byteSet {
	missing := s.without(other)
	return s.without(&missing)
}

// outside returns the first bytes that another set does not have.
func (s byteSet) outside(other *byteSet) (dag.Range, bool) {
	rest := s.without(other)
	if len(rest) == 0 {
		return dag.Range{}, false
	}
	return rest[0], true
}

// has reports whether the set has bytes of a buffer.
func (s byteSet) has(b dag.BufferID) bool {
	for _, r := range s {
		if r.Buffer == b {
			return true
		}
	}
	return false
}
