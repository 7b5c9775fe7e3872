// --devices and --spread: one pipeline over several devices.

package session

import (
	"context"
	"fmt"

	"github.com/dagrun/dagrun/cmd/dagrun/internal/cli"
	"github.com/dagrun/dagrun/cmd/dagrun/internal/flags"
	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/internal/words"
	"github.com/dagrun/dagrun/planner"
	"github.com/dagrun/dagrun/planner/plan"
	"github.com/dagrun/dagrun/planner/spread"
)

// AssumedDevices is how many devices "all" stands for where no device is opened.
const AssumedDevices = 2

// DevicesFor returns how many devices have to be opened for a graph as declared.
func (u *Session) DevicesFor(g *dag.Graph) int {
	u.spreads = g.Devices > 0
	return max(g.UsedDevices(), int(g.Devices))
}

// SpreadOver spreads a graph that says so over the devices that there are, or that it asks for.
func (u *Session) SpreadOver(ctx context.Context, g *dag.Graph, options *planner.Options, available int) (*dag.Graph, error) {
	if u.Flags.Plan != "" {
		return g, nil // the plan has decided
	}
	u.Spread, u.Declared = nil, g
	o := spread.Options{Options: *options, Devices: int(g.Devices), Policy: u.Flags.Spread, Spill: u.spills(*options)}
	if o.Strategy == flags.AllStrategies {
		o.Strategy = "auto" // bench compares strategies afterwards, all of the same graph
	}
	if g.Devices == dag.AllDevices {
		o.Devices = available
	}
	if o.Spill && o.MemoryCap == 0 {
		var err error
		if o.MemoryCap, err = u.spillCap(g, &o.Options); err != nil {
			return nil, err
		}
	}
	defer func() { options.Spread = u.Spread }()
	if o.Devices <= 1 && g.Devices != dag.AllDevices && u.Flags.Devices == "" && o.Policy != "auto" {
		return nil, fmt.Errorf("--spread %q chooses among devices, but the pipeline is for one; add --devices N", o.Policy)
	}
	if o.Devices <= 1 {
		return u.spillOver(ctx, g, o)
	}
	u.Progress.Report("choose devices", 0, 0)
	s, err := spread.New(ctx, g, o)
	if err != nil {
		return nil, err
	}
	u.Spread = s
	u.noteSpill(s)
	u.Log.Info("spread", "devices", s.Devices, "policy", s.Policy, "copies", s.Stats.Copies, "bytes", s.Stats.Bytes)
	for _, t := range s.Stats.Tried {
		u.Log.Info("compared", "policy", t.Policy, "predicted_us", fmt.Sprintf("%.1f", t.MakespanUS), "copies", t.Copies)
	}
	return s.Graph, nil
}

// SpreadAsPlanned spreads a graph as the plan that --plan names says.
func (u *Session) SpreadAsPlanned(ctx context.Context, g *dag.Graph) (*dag.Graph, error) {
	u.Spread, u.Declared = nil, g
	recorded, err := cli.DecodeFile(ctx, u.Flags.Plan, spread.Decode)
	if err == nil {
		err = u.onPlannedDevices(recorded)
	}
	if err != nil || recorded == nil {
		return g, err
	}
	if recorded.Original != g.Hash() || len(recorded.At) != spread.Nodes(g) && (len(recorded.At) > 0 || len(recorded.Spilled) == 0) {
		return nil, fmt.Errorf("%s: %w: it spreads another pipeline over devices, or this one with other params", u.Flags.Plan, plan.ErrOtherGraph)
	}
	o := spread.Options{Devices: recorded.Devices, Policy: recorded.Requested}
	var s *plan.Spread
	if len(recorded.Spilled) > 0 {
		s, err = spread.SpillAt(g, o, recorded)
	} else {
		s, err = spread.At(g, o, recorded.At)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", u.Flags.Plan, err)
	}
	s.Policy, s.Stats.OneUS, s.Stats.UnspilledUS = recorded.Policy, recorded.Stats.OneUS, recorded.Stats.UnspilledUS
	u.Spread = s
	return s.Graph, nil
}

// onPlannedDevices refuses another number of devices than that of the plan that --plan names; all stands for that number.
func (u *Session) onPlannedDevices(recorded *plan.Spread) error {
	planned := 1
	if recorded != nil {
		planned = max(recorded.Devices, 1)
	}
	if asked := flags.DeviceCount(u.Flags.Devices); asked > 0 && asked != planned {
		return fmt.Errorf("%s is for %s, and --devices says %d; leave --devices out, or make a plan for as many (--save-plan)", u.Flags.Plan,
			words.Count(planned, "device", "devices"), asked)
	}
	return nil
}
