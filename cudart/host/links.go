// Options of the CPU device, and simulated links: copies then take as long as over real links.

package host

import (
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/dagrun/dagrun/cudart/host/simt"
	"github.com/dagrun/dagrun/kernels/launch"
)

// Links makes copies take time. Rates are bytes per microsecond; a rate of 0 is unlimited. Each device has a link of its own in each direction to
// the host, and one to the other devices, and a link makes one copy at a time. Buses are shared by several links.
type Links struct {
	LatencyUS      float64 // of each copy
	HostToDevice   float64
	DeviceToHost   float64
	DeviceToDevice float64 // between two devices; within a device, copies are not slowed

	// Between lists the buses that a copy from one device to another uses, by their place in Rates; the host is device -1. A bus is busy with a
	// copy for as long as the copy's bytes take at the rate of the bus, and the next copy waits for it.
	Between func(from, to int32) []int32
	Rates   []float64
}

func (l *Links) check() error {
	for _, v := range append([]float64{l.LatencyUS, l.HostToDevice, l.DeviceToHost, l.DeviceToDevice}, l.Rates...) {
		if math.IsNaN(v) || v < 0 || math.IsInf(v, 0) {
			return fmt.Errorf("CPU device: links with %v; rates and latency must not be negative", v)
		}
	}
	return nil
}

// roads are the links and buses of all devices, each with the time when it has made all copies so far.
type roads struct {
	mu    sync.Mutex
	links map[[2]int32]time.Time // by device, and way
	buses []time.Time
}

// The ways from and to a device.
const (
	wayFromHost = iota
	wayToHost
	wayToDevice
)

// reserve takes a link and buses for a copy, after the copies that have them, and returns when the copy ends.
func (r *roads) reserve(l *Links, on [2]int32, rate float64, buses []int32, bytes int64) time.Time {
	last := func(rate float64) time.Duration {
		if rate <= 0 {
			return 0
		}
		return time.Duration(min(float64(bytes)/rate, 1e12) * float64(time.Microsecond))
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.links == nil {
		r.links, r.buses = map[[2]int32]time.Time{}, make([]time.Time, len(l.Rates))
	}
	begin, took := time.Now(), last(rate)
	if free := r.links[on]; free.After(begin) {
		begin = free
	}
	for _, b := range buses {
		if r.buses[b].After(begin) {
			begin = r.buses[b]
		}
		took = max(took, last(l.Rates[b]))
	}
	for _, b := range buses {
		r.buses[b] = begin.Add(last(l.Rates[b]))
	}
	end := begin.Add(took + time.Duration(min(l.LatencyUS, 1e12)*float64(time.Microsecond)))
	r.links[on] = end
	return end
}

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
	// Links makes copies take as long as over links; nil: they take what they take.
	Links *Links
	// Print receives what kernels print when they run from PTX; nil drops it. Several goroutines may call it at the same time.
	Print func(text string)
	// Compilers compile CUDA C, such as &kernels.Compilers{}; nil: modules of CUDA C cannot be loaded.
	Compilers launch.Compiler
}
