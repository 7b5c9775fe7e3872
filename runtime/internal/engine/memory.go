// Memory: checks that devices and host have enough before anything is allocated.

package engine

import (
	"github.com/dagrun/dagrun/cudart"
	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/internal/hostmem"
	"github.com/dagrun/dagrun/planner/plan"
)

// checkFits refuses a program that does not fit on a device, before anything is allocated.
func checkFits(platform cudart.Platform, g *dag.Graph, p *plan.Plan, mode MemoryMode, instances int) error {
	for device, bytes := range DeviceBytes(g, p, mode) {
		if bytes == 0 {
			continue
		}
		free, _, err := platform.MemoryInfo(int32(device))
		if err != nil {
			return err
		}
		if need := bytes * int64(instances); need > free {
			return &OutOfMemoryError{Device: int32(device), Needed: need, Free: free, Largest: largest(g, int32(device)), Err: cudart.ErrOutOfMemory}
		}
	}
	return nil
}

// checkHost refuses a program that needs more memory than the host has, for buffers, for filling them, and for copies of results after
// the run. Go ends the process if its heap cannot grow, so this must be known before anything runs.
func (p *Program) checkHost() error {
	const small = 64 << 20 // not worth a system call
	need := hostNeed(p.graph, p.plan, p.platform, p.options) + p.options.HostReserve
	if need < small {
		return nil
	}
	if free, known := hostmem.Available(); known && need > free {
		return &OutOfMemoryError{Device: -1, Needed: need, Free: free, Largest: largestOf(p.graph, func(b *dag.Buffer) bool {
			return b.Place == dag.Host || p.platform.Name() == "cpu"
		}), Err: cudart.ErrOutOfMemory}
	}
	return nil
}

// hostNeed returns the most host memory, in bytes, that a program needs: its host buffers, on the CPU device its device buffers too, and the
// copies of one buffer at a time that are needed to fill it and to check, compare and save its contents after a run.
func hostNeed(g *dag.Graph, plan *plan.Plan, platform cudart.Platform, options Options) int64 {
	need, copies := int64(0), int64(0)
	for i := range g.Buffers {
		b := &g.Buffers[i]
		extra := int64(0)
		switch {
		case b.Place == dag.Host && options.Bind[b.Name] == nil:
			need += b.Bytes
		case b.Place == dag.Device && (b.Init != nil || b.Save != "" || b.Expect != nil):
			extra += b.Bytes
		}
		if b.Expect != nil && b.Expect.Kind == dag.ExpectFile {
			extra += b.Bytes
		}
		copies = max(copies, extra)
	}
	if platform.Name() == "cpu" {
		for _, bytes := range DeviceBytes(g, plan, options.Memory) {
			need += bytes
		}
	}
	return need*int64(max(1, options.Inflight)) + copies
}
