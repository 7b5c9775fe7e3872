// What can be wrong with a loop or branch in a graph.

package cudart

// Problem says what is wrong with a conditional on every platform, "" if nothing is.
func (c *Conditional) Problem() string {
	switch {
	case c == nil || len(c.Bodies) == 0 || len(c.Bodies) > 2 || len(c.Bodies) > 1 && !c.Branch:
		return "a loop has one body, and a branch one or two"
	case c.Condition == nil && (c.Branch || len(c.Operands) > 0), c.Condition != nil && len(c.Operands) != len(c.Condition.Operands):
		return "its condition needs one address for each operand"
	case c.Stamping.Room < 0 || c.Stamping.Room > 0 && c.Stamps == 0:
		return "it has no memory for its stamps"
	}
	return ""
}
