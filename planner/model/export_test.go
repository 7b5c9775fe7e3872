// What tests from outside see of the model.

package model

import (
	"github.com/dagrun/dagrun/dag"
)

// Share is the part of its device that a node takes while it runs.
func (m *Machine) Share(node *dag.Node) float64 { return m.share(node) }
