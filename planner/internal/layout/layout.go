// Memory layout: where each device buffer lives in its device's arena. Decides no order of nodes; Verify proves the result.

// Package layout decides where buffers lie and which edges a CUDA graph of a plan needs.
package layout

import (
	"fmt"
	"math"
	"slices"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/planner/internal/order"
	"github.com/dagrun/dagrun/planner/plan"
)

// searchLimit is how many buffers a layout is searched for with all pairs in a table; more are placed in one sweep.
const searchLimit = 2000

// Memory places every device buffer of a plan anew and fills in Memory, Kept, Stats.PeakDeviceBytes and Stats.SumDeviceBytes. The
// plan's ops are known to be whole. kept says by buffer whether its bytes must stay its own.
func Memory(g *dag.Graph, p *plan.Plan, kept []bool) error {
	devices, sum, err := arenaSizes(g)
	if err != nil {
		return err
	}
	p.Stats.SumDeviceBytes, p.Stats.PeakDeviceBytes = sum, 0
	p.Memory, p.Kept = nil, nil
	if len(devices) == 0 {
		return nil
	}
	used := usedBuffers(g)
	offset := make([]int64, len(g.Buffers))
	var s *order.Schedule
	for _, device := range devices {
		// What keeps its bytes lies below what is shared: there it cannot cut the shared bytes into pieces.
		base, end := int64(0), int64(0)
		var sharing []int32
		for i := range g.Buffers {
			b := &g.Buffers[i]
			switch {
			case b.Place != dag.Device || b.Device != device:
			case kept[i]:
				offset[i] = base
				base += plan.AlignUp(b.Bytes)
			case used[i] && b.Bytes > 0:
				sharing = append(sharing, int32(i))
			}
		}
		if len(sharing) > 0 {
			if s == nil {
				s = order.Read(p, g.Len())
			}
			l := readLifetimes(g, p, s, sharing, order.ClockEntries)
			offsets := placeSharing(l, len(s.Order))
			for k, b := range sharing {
				offset[b] = base + offsets[k]
				end = max(end, offsets[k]+l.bytes[k])
			}
		}
		for i := range g.Buffers {
			b := &g.Buffers[i]
			if b.Place == dag.Device && b.Device == device && !kept[i] && !used[i] {
				offset[i] = base
				end = max(end, plan.AlignUp(b.Bytes))
			}
		}
		p.Stats.PeakDeviceBytes += base + end
	}
	for i := range g.Buffers {
		if b := &g.Buffers[i]; b.Place == dag.Device {
			if kept[i] {
				p.Kept = append(p.Kept, int32(i))
			}
			p.Memory = append(p.Memory, plan.Placement{Buffer: int32(i), Device: b.Device, Offset: offset[i], Bytes: b.Bytes})
		}
	}
	return nil
}

// arenaSizes returns the devices that have buffers, ascending, and what all device buffers take side by side.
func arenaSizes(g *dag.Graph) (devices []int32, sum int64, err error) {
	seen := map[int32]bool{}
	for i := range g.Buffers {
		b := &g.Buffers[i]
		if b.Place != dag.Device {
			continue
		}
		if !seen[b.Device] {
			seen[b.Device] = true
			devices = append(devices, b.Device)
		}
		if b.Bytes > math.MaxInt64-plan.ArenaAlign-sum {
			return nil, 0, fmt.Errorf("the device buffers up to %q need more bytes than can be counted: %w", plan.BufferName(g, int32(i)), plan.ErrMemory)
		}
		sum += plan.AlignUp(b.Bytes)
	}
	slices.Sort(devices)
	return devices, sum, nil
}

// usedBuffers says by buffer whether any node accesses it.
func usedBuffers(g *dag.Graph) []bool {
	used := make([]bool, len(g.Buffers))
	for i := range int32(g.Len()) {
		for _, a := range g.Accesses(i) {
			if a.Lo < a.Hi {
				used[a.Buffer] = true
			}
		}
	}
	return used
}

// placeSharing finds offsets for buffers that may share bytes.
func placeSharing(l *lifetimes, nodes int) []int64 {
	least, _ := l.busiest(nodes)
	swept := sweepLayout(l, nodes)
	if len(l.buffers) > searchLimit || peakOf(l, swept) == least {
		return swept
	}
	return searchLayout(l, swept, least)
}

// peakOf is where a layout ends.
func peakOf(l *lifetimes, offsets []int64) int64 {
	peak := int64(0)
	for k, lo := range offsets {
		peak = max(peak, lo+l.bytes[k])
	}
	return peak
}
