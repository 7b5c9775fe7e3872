// The planning model of a device, from what the device reports. Measures nothing.

package measure

import (
	goruntime "runtime"
	"strings"

	"github.com/dagrun/dagrun/cudart"
	"github.com/dagrun/dagrun/planner"
)

// MachineOf returns a planning model of a platform's devices, from what the first of them reports. Without a device, it is that of an H200.
func MachineOf(platform cudart.Platform) *planner.Machine {
	if platform == nil {
		return planner.H200()
	}
	infos := platform.Devices()
	if len(infos) == 0 {
		return planner.H200()
	}
	info := &infos[0]
	if platform.Name() == "cpu" {
		return cpuMachine(info)
	}
	m := planner.H200()
	m.Name, m.DeviceBytes, m.Capability = info.Name, info.Memory, 10*info.Capability[0]+info.Capability[1]
	if strings.Contains(info.Name, "H200") {
		return m
	}
	m.Multiprocessors, m.BlocksPerSM, m.ThreadsPerSM, m.SharedPerSM = info.Multiprocessors, info.BlocksPerSM, info.ThreadsPerSM, info.SharedPerSM
	if info.CopyEngines > 1 {
		m.CopyEngines = info.CopyEngines / 2 // engines are counted for both directions
	}
	if info.MemoryClockKHz > 0 && info.MemoryBusBits > 0 {
		// Two transfers per clock. On an H200, large kernels reach five sixths of that.
		m.Memory = float64(info.MemoryClockKHz) * 1e3 * 2 * float64(info.MemoryBusBits) / 8 / 1e6 * 5 / 6
		m.DeviceToDevice = m.Memory / 2
	}
	if info.ClockKHz > 0 {
		m.MemoryPerSM = bytesPerClock * float64(info.ClockKHz) / 1e3
		m.Flops = float64(info.Multiprocessors) * multiplyAdds(info.Capability) * 2 * float64(info.ClockKHz) / 1e3
	}
	switch {
	case info.Capability[0] < 8:
		m.HostToDevice, m.DeviceToHost, m.PeerToPeer = 12_000, 12_500, 12_000
	case info.Capability[0] == 8:
		m.HostToDevice, m.DeviceToHost, m.PeerToPeer = 25_000, 26_000, 25_000
	}
	return m
}

// bytesPerClock is what a multiprocessor reads from the second-level cache.
const bytesPerClock = 64

// multiplyAdds returns how many f32 multiply-adds one multiprocessor of a generation starts per clock.
func multiplyAdds(capability [2]int) float64 {
	switch capability {
	case [2]int{6, 0}, [2]int{7, 0}, [2]int{7, 2}, [2]int{7, 5}, [2]int{8, 0}:
		return 64
	}
	return 128
}

// cpuMachine models the CPU device: about one core per stream, copies made by a core, and submission by appending to a queue. A worker takes
// 0.05 to 0.15 us from one node to the next, and much longer to wake another. In a graph it takes less: graphs of 130 nodes that do nothing took 5.3
// to 6.9 us.
func cpuMachine(info *cudart.Info) *planner.Machine {
	workers := max(1, info.Multiprocessors)
	return &planner.Machine{
		Name: "cpu", LaunchUS: 0.1, EventUS: 0.05, SyncUS: 0.3, GapUS: 0.1, GraphNodeUS: 0.045, GraphIssueUS: 0.045, KernelUS: 0.2, CopyUS: 0.2,
		HostToDevice: 15_000, DeviceToHost: 15_000, DeviceToDevice: 15_000, PeerToPeer: 15_000, HostToHost: 15_000,
		Memory: 7_500 * float64(workers), Flops: 1_000 * float64(workers),
		Multiprocessors: workers, BlocksPerSM: 1, ThreadsPerSM: 1024, SharedPerSM: info.SharedPerSM, BusyThreads: 1, CopyEngines: workers,
		Cores: min(workers, goruntime.GOMAXPROCS(0)), DeviceBytes: info.Memory,
	}
}
