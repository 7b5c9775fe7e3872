// Options of the CPU device, and simulated links: copies then take as long as over real links.

package host

import (
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/dagrun/dagrun/cudart/host/simt"
	"github.com/dagrun/dagrun/kernels"
)

// Links makes copies take time. Rates are bytes per microsecond; a rate of 0 is unlimited. Each device has a link of its own in each direction to
// the host, and one to the other devices, and a link makes one copy at a time.
type Links struct {
	LatencyUS      float64 // of each copy
	HostToDevice   float64
	DeviceToHost   float64
	DeviceToDevice float64 // between two devices; within a device, copies are not slowed
}

func (l *Links) check() error {
	for _, v := range []float64{l.LatencyUS, l.HostToDevice, l.DeviceToHost, l.DeviceToDevice} {
		if math.IsNaN(v) || v < 0 || math.IsInf(v, 0) {
			return fmt.Errorf("CPU device: links with %v; rates and latency must not be negative", v)
		}
	}
	return nil
}

// link is a connection in one direction.
type link struct {
	mu   sync.Mutex
	free time.Time // when it has made all copies so far
}

// links are those of one device: from the host, to the host, to other devices.
type links [3]link

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
	References map[string]kernels.Reference
	// Sanitize is what kernels that run from their PTX are checked for, beside the bounds and the alignment of each access.
	Sanitize simt.Check
	// MaxSteps is how many instructions a launch that runs from PTX may run, all threads together; 0 sets no limit.
	MaxSteps uint64
	// PTX runs every kernel from its PTX, those with a Go version too.
	PTX bool
	// Links makes copies take as long as over links; nil: they take what they take.
	Links *Links
	// Print receives what kernels print when they run from PTX; nil drops it. Several goroutines may call it at the same time.
	Print func(text string)
}
