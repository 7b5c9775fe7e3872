// The proof of a spread: loops and branches, whose bodies are followed as they may run.

package spread

import (
	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/planner/proof"
)

// followLevel follows all nodes of a level.
func (c *spreadCheck) followLevel(l *spreadLevel) *proof.Violation {
	for i := range l.g.Nodes {
		follow := c.follow
		if l.g.Nodes[i].Control != nil {
			follow = c.followControl
		}
		if v := follow(l, dag.NodeID(i)); v != nil {
			return v
		}
	}
	return nil
}

// followControl follows a loop until nothing new can happen in a pass, or all bodies of a branch.
func (c *spreadCheck) followControl(l *spreadLevel, i dag.NodeID) *proof.Violation {
	from := l.nodes[i]
	n, bodies := &l.g.Nodes[i], l.inner[from]
	number := l.first + int32(from)
	begin := number + int32(len(c.names))
	if c.moved {
		wanted := c.wanted
		c.wanted, c.moved = c.wantedIn(from), false // bodies have the declared order
		defer func() { c.wanted, c.moved = wanted, true }()
	}
	used := c.changedBy(l, i)
	if n.Kind == dag.Branch || n.Control.While {
		if v := c.tests(l, i); v != nil {
			return v
		}
	}
	entry, before := c.right(used), c.before(used)
	var after [][]extent
	if n.Kind == dag.Branch {
		if len(bodies) == 1 {
			after = entry
		}
		for _, body := range bodies {
			c.assume(used, before, entry, begin)
			if v := c.followLevel(body); v != nil {
				return v
			}
			after = inBoth(after, c.right(used))
		}
		c.assume(used, before, after, number)
		return nil
	}
	// Each round takes bytes away from what a pass can rely on, so this ends.
	for head := entry; ; {
		c.assume(used, before, head, begin)
		if v := c.followLevel(bodies[0]); v != nil {
			return v
		}
		if v := c.tests(l, i); v != nil {
			return v
		}
		end := c.right(used)
		next := inBoth(head, end)
		settled := true
		for k := range next {
			settled = settled && covers(next[k], head[k])
		}
		if settled {
			after = end
			break
		}
		head = next
	}
	if n.Control.While || n.Control.Times == 0 {
		after = inBoth(after, entry)
	}
	c.assume(used, before, after, number)
	return nil
}

// tests checks that a condition, if there is one, reads what it reads in the original.
func (c *spreadCheck) tests(l *spreadLevel, i dag.NodeID) *proof.Violation {
	condition := l.g.Nodes[i].Control.Condition
	if condition == nil {
		return nil
	}
	declared := l.original.Nodes[l.nodes[i]].Control.Condition.Operands
	for k, r := range condition.Operands {
		if v := c.reads(l, i, declared[k], r.In()); v != nil {
			return v
		}
	}
	return nil
}

// inBoth returns the places that are in both lists, piece by piece. nil stands for all places.
func inBoth(a, b [][]extent) [][]extent {
	if a == nil {
		return b
	}
	list := make([][]extent, len(a))
	for k := range a {
		for i, j := 0, 0; i < len(a[k]) && j < len(b[k]); {
			x, y := a[k][i], b[k][j]
			if lo, hi := max(x.lo, y.lo), min(x.hi, y.hi); lo < hi {
				list[k] = append(list[k], extent{lo, hi})
			}
			if x.hi < y.hi {
				i++
			} else {
				j++
			}
		}
	}
	return list
}
