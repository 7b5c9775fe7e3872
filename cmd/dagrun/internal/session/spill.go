// --spill: pipelines that need more memory than a device has.

package session

import (
	"context"
	"errors"

	"github.com/dagrun/dagrun/cmd/dagrun/internal/flags"
	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/internal/words"
	"github.com/dagrun/dagrun/planner"
	"github.com/dagrun/dagrun/planner/plan"
	"github.com/dagrun/dagrun/planner/spread"
)

// spills reports whether data may leave the device. On the CPU device that frees no memory, so there it takes a memory cap.
func (u *Session) spills(o planner.Options) bool {
	onCPU := o.Machine != nil && o.Machine.Cores > 0
	return u.Flags.Spill == flags.SpillAuto && (o.MemoryCap > 0 || !onCPU)
}

// spillOver spills a graph on the devices that it names, if no plan of it fits.
func (u *Session) spillOver(ctx context.Context, g *dag.Graph, o spread.Options) (*dag.Graph, error) {
	if !o.Spill || u.Place.Ranks > 1 {
		return g, nil
	}
	u.Progress.Report("plan", 0, 0)
	s, err := spread.Spill(ctx, g, o)
	if errors.Is(err, spread.ErrCannotSpill) && u.Flags.MemoryCap == "" { // allocating will tell how much is missing
		u.Log.Info("not spilled: " + err.Error())
		return g, nil
	}
	if err != nil || s == nil {
		return g, err
	}
	u.Spread = s
	u.noteSpill(s)
	return s.Graph, nil
}

func (u *Session) noteSpill(s *plan.Spread) {
	if len(s.Spilled) > 0 {
		u.Log.Info("spilled", "to_host", s.Stats.Spills, "back", s.Stats.Reloads, "bytes", words.Bytes(s.Stats.SpilledBytes))
	}
}

// spillCap returns how much memory a pipeline may use on a device without --memory-cap: what is free, where a device is open and the pipeline
// might not fit, and else what the machine has.
func (u *Session) spillCap(g *dag.Graph, o *planner.Options) (int64, error) {
	machine := o.Machine
	if machine == nil {
		machine = planner.H200()
	}
	sum := int64(0)
	for k := range g.Buffers {
		if g.Buffers[k].InArena() {
			sum += g.Buffers[k].Bytes
		}
	}
	if sum < machine.DeviceBytes/8*7 || u.MemoryInfo == nil {
		return machine.DeviceBytes, nil
	}
	const reserve = 64 // the part of the memory that modules and events may need
	free, _, err := u.MemoryInfo(0)
	return free - free/reserve, err
}
