// What a pass of a body certainly does with bytes: followed from the accesses of the innermost nodes.

package proof

import "github.com/dagrun/dagrun/dag"

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
					one.must.add(a.Range)
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

// has reports whether the set has bytes of a buffer.
func (s byteSet) has(b dag.BufferID) bool {
	for _, r := range s {
		if r.Buffer == b {
			return true
		}
	}
	return false
}
