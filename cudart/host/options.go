// Options of the CPU device.

package host

import (
	"github.com/dagrun/dagrun/cudart/host/simt"
	"github.com/dagrun/dagrun/kernels/launch"
)

// Options describes the CPU devices. The zero value is one device with all cores and all memory.
type Options struct {
	// Devices is how many devices there are; 0 means 1. All share the workers.
	Devices int
	// Memory is the size of each device's memory in bytes; 0 means the machine's memory, divided by Devices.
	Memory int64
	// Workers is how many commands run at once. 0 means one per core, but at least 4, so that streams overlap on any machine.
	Workers int
	// Perturb, if not 0, is the seed of random disturbances, which help to find missing waits: streams are served in a changing, unfair
	// order, by few workers (unless Workers is set), and new memory holds garbage. A program without missing waits gives the same results
	// for every seed.
	Perturb uint64
	// CheckOrder makes the device track which command is ordered after which. A command that conflicts with an earlier one, and is not
	// ordered after it, is refused with a [cudart.RaceError], whatever the timing was. Only the first such error is reliable, because
	// the refused command is missing afterwards.
	CheckOrder bool
	// References are Go implementations of kernels, by entry name, for modules that have none of their own.
	References map[string]launch.Reference
	// Sanitize is what kernels that run from their PTX are checked for, beside the bounds and the alignment of each access.
	Sanitize simt.Check
	// MaxSteps is how many instructions a launch that runs from PTX may run, all threads together; 0 sets no limit.
	MaxSteps uint64
	// PTX runs every kernel from its PTX, those with a Go version too.
	PTX bool
	// Print receives what kernels print when they run from PTX; nil drops it. Several goroutines may call it at the same time.
	Print func(text string)
	// Compilers compile CUDA C, such as &kernels.Compilers{}; nil: modules of CUDA C cannot be loaded.
	Compilers launch.Compiler
}
