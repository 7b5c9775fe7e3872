// Loops and branches in hashes, and how two of them differ.

package dag

import (
	"fmt"
	"strings"
)

// hashStructure adds what makes a plan correct.
func (c *Control) hashStructure(h *hasher) {
	if c == nil {
		return
	}
	h.numbers(int64(len(c.Bodies)), flag(c.While), flag(c.Condition != nil), flag(c.Times == 0))
	if c.Condition != nil {
		for _, r := range c.Condition.Operands {
			h.numbers(int64(r.Buffer), r.Lo, r.Hi)
		}
	}
	for _, body := range c.Bodies {
		h.text(body.Hash())
	}
}

// hashWork adds what the node does.
func (c *Control) hashWork(h *hasher) {
	if c == nil {
		return
	}
	h.numbers(c.Times, c.Every)
	h.text(c.Condition.bound())
	for _, body := range c.Bodies {
		h.text(body.WorkHash())
	}
}

// bound is the condition with the values of params in it.
func (c *Condition) bound() string {
	if c == nil {
		return ""
	}
	return strings.ReplaceAll(c.Expr.String(), operandMark, "operand ")
}

// workParts says what the node does, each part as name=value.
func (c *Control) workParts(kind Kind) []string {
	var parts []string
	if kind == Repeat {
		parts = append(parts, fmt.Sprintf("passes=%d", c.Times), fmt.Sprintf("tested every=%d", c.Every))
	}
	if c.Condition != nil {
		parts = append(parts, "condition="+c.Condition.bound())
	}
	for k, body := range c.Bodies {
		parts = append(parts, fmt.Sprintf("work of body %d=%s", k, body.WorkHash()))
	}
	return parts
}

// difference says how a loop or branch differs from an older one in structure, or "".
func (c *Control) difference(old *Control) string {
	if c == nil || old == nil {
		return ""
	}
	switch {
	case len(c.Bodies) != len(old.Bodies):
		return fmt.Sprintf("has %d bodies, it had %d", len(c.Bodies), len(old.Bodies))
	case c.While != old.While:
		return changed(c.While, "tested before each pass")
	case (c.Condition == nil) != (old.Condition == nil):
		return changed(c.Condition != nil, "tested")
	case (c.Times == 0) != (old.Times == 0):
		return fmt.Sprintf("makes %d passes, it made %d", c.Times, old.Times)
	}
	for k, body := range c.Bodies {
		if d := body.FirstDifference(old.Bodies[k]); d != "" {
			return "has a body in which " + d
		}
	}
	if c.Condition != nil && fmt.Sprint(c.Condition.Operands) != fmt.Sprint(old.Condition.Operands) {
		return "tests other buffers"
	}
	return ""
}
