// The options of the planner, made from the values of flags.

package session

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/dagrun/dagrun/cmd/dagrun/internal/cli"
	"github.com/dagrun/dagrun/cmd/dagrun/internal/flags"
	"github.com/dagrun/dagrun/planner"
	"github.com/dagrun/dagrun/planner/effort"
	"github.com/dagrun/dagrun/planner/model"
	"github.com/dagrun/dagrun/runtime/learn"
)

// PlanOptions turns the plan flags into the planner's options. device is the machine if --machine names none.
func (u *Session) PlanOptions(ctx context.Context, device *planner.Machine) (planner.Options, error) {
	f := u.Flags
	o := planner.Options{Strategy: f.Strategy, Streams: f.Streams, Machine: device, KeepAll: f.Memory == "separate", SingleUseEvents: f.Threads > 1}
	o.InOrder, o.InGraph = u.inOrder, u.InGraph
	if !f.Limited {
		o.Streams = 0
	}
	var err error
	if o.Effort, err = effort.Parse(f.Effort); err != nil {
		return o, err
	}
	if f.Machine != "" {
		if o.Machine, err = LoadMachine(ctx, f.Machine); err != nil {
			return o, err
		}
	}
	if f.Profile != "" {
		if o.Profile, err = cli.DecodeFile(ctx, f.Profile, model.DecodeProfile); err != nil {
			return o, err
		}
	}
	if o.MemoryCap, err = u.MemoryCap(); err != nil {
		return o, err
	}
	if u.Captured != nil {
		o.MemoryCap = 0 // the network keeps to it
		o.Profile = learn.MergeProfiles(u.Captured.Durations(), o.Profile)
	}
	o.Spread = u.Spread
	return o, nil
}

// LoadMachine loads a machine by its built-in name or from its file.
func LoadMachine(ctx context.Context, name string) (*planner.Machine, error) {
	m, err := model.MachineByName(name)
	if err == nil {
		return m, nil
	}
	if _, statErr := os.Stat(name); errors.Is(statErr, os.ErrNotExist) && !strings.ContainsAny(name, "/.") {
		return nil, fmt.Errorf("--machine %q: want h200, clean, unit or a file%s", name, flags.DidYouMean(name, model.MachineNames()))
	}
	return cli.DecodeFile(ctx, name, model.DecodeMachine)
}
