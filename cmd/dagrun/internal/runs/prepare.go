// Making a pipeline ready: reading it, opening its device, planning, and the options of its program.

package runs

import (
	"context"
	"errors"
	"time"

	"github.com/dagrun/dagrun/cmd/dagrun/internal/cli"
	"github.com/dagrun/dagrun/cmd/dagrun/internal/flags"
	"github.com/dagrun/dagrun/cmd/dagrun/internal/session"
	"github.com/dagrun/dagrun/cudart/cupti"
	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/planner"
	"github.com/dagrun/dagrun/runtime"
	"github.com/dagrun/dagrun/runtime/learn"
)

// Limit returns how many streams the user allowed; 0 if unspecified.
func (u *Runs) Limit() int {
	if u.Flags.Limited {
		return u.Flags.Streams
	}
	return 0
}

// Predicted returns the model's prediction for the program as it replays now.
func (u *Runs) Predicted(p *Prepared, program *runtime.Program) (float64, error) {
	machine, profile := p.Options.Machine, p.Options.Profile
	if l := p.Learning; l != nil && l.learned != nil {
		machine, profile = l.learned.Machine, l.learned.Profile
	} else if l != nil {
		machine, profile = l.machineOf(p), learn.MergeProfiles(l.Options.Known, profile)
	}
	return program.PredictEach(machine, profile)
}

// Preparing reports the stages before the first replay. Replays are counted when they have finished, not when they are submitted.
func (u *Runs) Preparing(stage string, done, total int) {
	if stage != cli.StageReplay {
		u.Progress.Report(stage, done, total)
	}
}

// NoteStreams tells someone who asked for a graph that the program runs as streams, and why.
func (u *Runs) NoteStreams(program *runtime.Program, mode runtime.Mode) {
	if why := program.NoGraph(); why != "" && (mode == runtime.Captured || mode == runtime.Built) {
		u.NoteNoGraph(why)
	}
}

func (u *Runs) NoteNoGraph(why string) {
	u.Note("it runs as streams, not as a graph: %s; the host tests the conditions of loops and branches", why)
}

// PreferGraph makes a pipeline with loops or branches run as a graph on a GPU, unless the user or an earlier run chose otherwise: in streams, the host waits
// for the device before each test, which takes longer than a conditional node.
func (u *Runs) PreferGraph(p *Prepared, o *runtime.Options) {
	if p.Graph.HasControl() && p.Platform.Name() == "cuda" && u.Flags.Replay == flags.GraphAuto && !u.Flags.Chosen && o.Mode == runtime.Streams &&
		!p.Learning.chose() {
		o.Mode = runtime.Captured
	}
}

// Prepare reads a pipeline, opens its device and plans for that device. outputs refuses output files that must not be written, before
// anything runs. own is nil for commands that do not learn.
func (u *Runs) Prepare(ctx context.Context, name string, own *session.RunFlags, outputs func(*dag.Graph) error) (*Prepared, error) {
	g, err := u.LoadGraph(ctx, name)
	if err != nil {
		return nil, err
	}
	if err := outputs(g); err != nil {
		return nil, err
	}
	u.Sanitize = u.SanitizeFor(g)
	session.UnpackLibrary(g)
	p := &Prepared{Name: name, Graph: g}
	if u.Flags.Plan != "" {
		if p.Graph, err = u.SpreadAsPlanned(ctx, g); err != nil {
			return nil, err
		}
		g = p.Graph
		if p.Plan, err = u.LoadPlan(ctx, g, planner.Options{}); err != nil {
			return nil, err
		}
	}
	platform, err := u.OpenPlatform(u.DevicesFor(g), u.queuesFor(p, own))
	if err != nil {
		return nil, err
	}
	if err := u.SanitizeOn(platform); err != nil {
		return nil, errors.Join(err, platform.Close())
	}
	p.Platform = platform
	if err := u.JoinRanks(ctx, g, platform, own); err != nil {
		return nil, errors.Join(err, platform.Close())
	}
	if p.Options, err = u.PlanOptions(ctx, u.MachineOf(platform.Platform)); err == nil {
		p.Graph, err = u.SpreadOver(ctx, p.Graph, &p.Options, len(platform.Devices()))
	}
	if err == nil {
		err = u.PlanPrepared(ctx, p, own)
	}
	if err != nil {
		return nil, errors.Join(err, platform.Close())
	}
	return p, nil
}

// PlanPrepared plans with what earlier runs learned, or takes the plan that they found best.
func (u *Runs) PlanPrepared(ctx context.Context, p *Prepared, own *session.RunFlags) (err error) {
	u.MatchProfile(p.Graph, p.Options.Profile)
	u.recallPasses(p.Graph, &p.Options)
	if p.Learning, err = u.learnTogether(ctx, u.LearningOf(p, own)); err != nil || p.Plan != nil {
		return err
	}
	if p.Learning != nil {
		if way := p.Learning.way; way != nil {
			p.Plan, u.EachReplay = way.Plan, time.Duration(way.Each.Median*1e3)
			u.Log.Info("took the plan that an earlier run chose", "strategy", way.Plan.Strategy, "streams", len(way.Plan.Streams), "replay", way.Mode.String())
			return nil
		}
		p.Options.Profile = learn.MergeProfiles(p.Learning.Options.Known, p.Options.Profile)
	}
	p.Plan, err = u.LoadPlan(ctx, p.Graph, p.Options)
	return err
}

// ProgramOptions returns the runtime's options from the flags.
func (u *Runs) ProgramOptions(l *Learning) runtime.Options {
	o := runtime.Options{Confined: u.Flags.Confined, Inflight: u.Flags.Inflight, Threads: u.Flags.Threads, Memory: u.MemoryMode(), Logger: u.Log,
		Progress: u.Preparing}
	o.Overlap = u.overlap()
	if l != nil && l.way == nil && l.OnGPU && !l.bodies {
		o.Recorder = &cupti.Late{}
	}
	switch {
	case l != nil && l.way != nil:
		o.Mode, o.Threads, o.Overlap = l.way.Mode, l.way.Threads, runtime.OverlapOff
		if l.way.Overlap {
			o.Overlap = runtime.OverlapOn
		}
	case u.Flags.Replay == flags.GraphCaptured, u.Flags.Replay == flags.GraphOn:
		o.Mode = runtime.Captured
	case u.Flags.Replay == flags.GraphBuilt:
		o.Mode = runtime.Built
	case u.Flags.Replay == flags.GraphAuto && u.Flags.Chosen && (l == nil || l.bodies || u.Flags.Iterations < learn.FewestToCompare):
		o.Mode = runtime.Auto // learning does not choose the mode
	}
	return o
}
