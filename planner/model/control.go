// What loops and branches cost.

package model

import (
	"github.com/dagrun/dagrun/dag"
)

// control estimates a loop or branch: each pass takes what no plan of the body on the usual number of streams can beat, and each test
// takes a kernel. A loop counts with the most passes that it may make, a branch with the longer body.
func (m *Machine) control(n *dag.Node, p *Profile) float64 {
	c := n.Control
	longest := 0.0
	for _, body := range c.Bodies {
		longest = max(longest, LowerBoundWith(body, m, Durations(body, m, p), DefaultStreams, false).US())
	}
	test := m.KernelUS
	if m.Unit {
		test = 0
	}
	if n.Kind == dag.Branch {
		return longest + test
	}
	us := float64(c.Times) * longest
	if c.Condition != nil {
		us += float64((c.Times+c.Every-1)/max(c.Every, 1)) * test
	}
	return us
}
