// Functions of the host in lists and graphs of the CPU device.

package host

import "github.com/dagrun/dagrun/cudart"

// setFunction gives a command the function that it runs. Its declared accesses must lie in live memory.
func (c *command) setFunction(function func()) *cudart.Error {
	if function == nil {
		return c.fail(invalidValue, "there is no function to run")
	}
	c.function = function
	for _, a := range c.accesses {
		arg := source
		if a.Write {
			arg = destination
		}
		if a.Bytes > 0 {
			c.uses = append(c.uses, use{ptr: a.Ptr, bytes: a.Strip().Span(), arg: arg})
		}
	}
	c.resolve()
	return nil
}
