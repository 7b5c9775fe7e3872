// Machine code that comes with PTX: a GPU that can run it loads it instead, so that its driver has nothing to compile.

package driver

import (
	"errors"
	"fmt"
	"maps"
	"os"

	"github.com/dagrun/dagrun/kernels/launch"
)

// forcePTX is the variable with which users tell CUDA to compile PTX even where a program has machine code.
const forcePTX = "CUDA_FORCE_PTX_JIT"

// machineCode is loaded machine code: a CUmodule for each kernel.
type machineCode struct {
	architecture string
	entries      []string // in the order in which they were loaded
	handles      map[string]uintptr
	params       map[string]int  // how many parameters each kernel has
	waiting      map[string]bool // the kernels that wait for the launches before them before they do anything else
}

// loadMachine loads the machine code of a module on a device. An error says why the module's PTX must be loaded.
func (p *Platform) loadMachine(d *device, code *launch.Module) (*machineCode, error) {
	if os.Getenv(forcePTX) == "1" {
		return nil, fmt.Errorf("%s is 1", forcePTX)
	}
	machine, err := code.Machine(d.info.Capability, code.Waiting)
	switch {
	case err != nil:
		return nil, err
	case machine == nil || len(machine.Kernels) == 0:
		return nil, errors.New("there is no machine code")
	}
	c := &machineCode{architecture: machine.Architecture, handles: map[string]uintptr{}, params: map[string]int{}, waiting: map[string]bool{}}
	for _, k := range machine.Kernels {
		handle, err := p.loadImage(d, code.Name, launch.Cubin, k.Cubin)
		if err != nil {
			return nil, errors.Join(err, c.unload(p, d))
		}
		c.entries, c.handles[k.Entry], c.waiting[k.Entry] = append(c.entries, k.Entry), handle, k.Waits
		maps.Copy(c.params, launch.CubinParameters(k.Cubin))
	}
	return c, nil
}

// holding returns the CUmodule that has a kernel, and any of them for what none has.
func (c *machineCode) holding(entry string) uintptr {
	if handle, ok := c.handles[entry]; ok {
		return handle
	}
	return c.handles[c.entries[0]]
}

func (c *machineCode) unload(p *Platform, d *device) error {
	var all []error
	for _, entry := range c.entries {
		all = append(all, p.dispose(d, cuModuleUnload, c.handles[entry]))
	}
	return errors.Join(all...)
}
