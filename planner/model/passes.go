// How many passes a loop counts with: as many as it made last time, if that is known.

package model

import (
	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/planner/plan"
)

// passes returns how many passes a loop is taken to make.
func (p *Profile) passes(n *dag.Node) plan.Passes {
	c := n.Control
	if c == nil || n.Kind != dag.Repeat || c.Condition == nil {
		return plan.Passes{}
	}
	if p != nil {
		if count, known := p.Passes[n.Name]; known && count >= 0 && count <= c.Times {
			return plan.Passes{Count: count, Source: plan.LearnedPasses}
		}
	}
	return plan.Passes{Count: c.Times, Source: plan.MostPasses}
}
