// Commands on their way to the driver: what is known of each, where it comes from, and what is wrong with it.

package driver

import (
	"fmt"

	"github.com/dagrun/dagrun/cudart"
)

// launchConfig is CUlaunchConfig, with room for the attributes that it points to.
type launchConfig struct {
	grid, block [3]uint32
	shared      uint32
	_           uint32
	stream      uintptr
	attributes  uintptr
	count       uint32
	fixed       uint32 // padding in CUlaunchConfig; here how many attributes the launch always has
	list        [3]launchAttribute
}

// launchAttribute is CUlaunchAttribute.
type launchAttribute struct {
	id    uint32
	_     uint32
	value [16]uint32
}

// checked is a command with its interfaces resolved.
type checked struct {
	cudart.Command
	stream *stream
	kernel *kernel
	event  *event
	bodies *bodies // of a loop or branch
}

// encoded holds submitters and their memory.
type encoded struct {
	p          *Platform
	memory     arena
	submitters []*submitter
	places     []place
	early      []bool // by command: a launch that begins early; nil if there is none
	stop       *uint64
	calls      map[int]callRow // by command
	functions  []uintptr       // of the host, registered for the rows
}

// place tells where a command's row is.
type place struct {
	submitter, row int32 // row is -1 if the command needs none
	args           []uint64
	config         *launchConfig // of a launch with attributes
}

// bodies are what a conditional runs, and the kernel that decides about it.
type bodies struct {
	commands [][]checked
	decider  *kernel
}

func nothing(grid [3]uint32) bool { return grid[0] == 0 || grid[1] == 0 || grid[2] == 0 }

func (c *checked) wrong(index int, format string, args ...any) error {
	if c.Label != "" {
		return fmt.Errorf("node %q: %s", c.Label, fmt.Sprintf(format, args...))
	}
	return fmt.Errorf("command %d: %s", index, fmt.Sprintf(format, args...))
}

// refused returns an error for what the driver cannot do in a graph.
func (c *checked) refused(index int, format string, args ...any) error {
	return fmt.Errorf("%w: %w", cudart.ErrUnsupported, c.wrong(index, format, args...))
}

// notInBody says what a command does that the body of a conditional node cannot, or "".
func (c *checked) notInBody(device int32) string {
	switch c.Kind {
	case cudart.LaunchKernel:
		if c.kernel.d.number != device {
			return fmt.Sprintf("it runs on device %d, and the node around it on device %d", c.kernel.d.number, device)
		}
		if c.kernel.call != nil {
			return "it calls a vendor's library"
		}
	case cudart.CopyMemory:
		switch {
		case c.SrcPageable || c.DstPageable:
			return "it copies pageable host memory"
		case c.SrcDevice < 0 && c.DstDevice < 0:
			return "it copies within host memory"
		case c.SrcDevice >= 0 && c.SrcDevice != device || c.DstDevice >= 0 && c.DstDevice != device:
			return "it copies to or from another device"
		}
	case cudart.SetMemory:
		if c.DstDevice != device {
			return "it sets memory elsewhere"
		}
	case cudart.RunHost:
		return "it runs a host function"
	case cudart.RecordEvent, cudart.WaitEvent:
		return "it uses an event"
	}
	return ""
}

// callRow is the executable graph of a call of a list.
type callRow struct {
	d    *device
	exec uintptr
}
