// What becomes of a command that failed: the error names it, and the context is poisoned.

package host

import "github.com/dagrun/dagrun/cudart"

// The values of use.arg for a copy.
const (
	destination = -1
	source      = -2
)

// resolve looks up every range that the command touches.
func (c *command) resolve() {
	for i := range c.uses {
		u := &c.uses[i]
		u.memory, _ = c.platform.memory.misuse(u.ptr, u.bytes)
		if u.memory != nil && u.arg >= 0 {
			c.call.Args[u.arg].Memory = u.memory.at(u.ptr)
		}
	}
}

// fail returns an error that names the command.
func (c *command) fail(s status, detail string, args ...any) *cudart.Error {
	id := int32(-1)
	if c.device != nil {
		id = c.device.id
	}
	return c.blame(fail(c.name, s, id, detail, args...))
}

func (c *command) blame(e *cudart.Error) *cudart.Error {
	e.Label, e.Node, e.Index = c.label, c.node, c.index
	return e
}

// poison makes the context unusable. Only the first fault is kept.
func (d *device) poison(e *cudart.Error) { d.fault.CompareAndSwap(nil, e) }
