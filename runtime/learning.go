// What a program can do with what replays took: learn from them, and predict them.

package runtime

import (
	"context"

	"github.com/dagrun/dagrun/planner"
	"github.com/dagrun/dagrun/planner/plan"
	"github.com/dagrun/dagrun/runtime/internal/engine"
	"github.com/dagrun/dagrun/runtime/learn"
)

// Learn uses some of the requested replays: it measures how long nodes take, plans again, tries the most promising plans, and leaves
// the program with the best. The replays count like those of Run, and Learned.Replays says how many there were. The program's plan must
// be one of LearnOptions.Plan. Of a program with loops or branches on the CPU device it only measures nodes, those of bodies too. It cannot learn
// with several replays in flight, on a stream of the caller's, with a plan that leaves hazards unenforced, or with DebugProgress; CanLearn says so.
// If the context ends after nodes have been measured, Learn returns what it has learned until then, along with the error, unless there are loops,
// branches or several ranks.
func (p *Program) Learn(ctx context.Context, o learn.Options) (learned *learn.Learned, err error) {
	return learn.From(ctx, p.inner(), o)
}

// Predict returns the predicted timeline of a replay as the program replays now: its plan, as streams or as a graph, from its threads. The
// profile may be nil; a nil machine is that of the program's platform.
func (p *Program) Predict(machine *planner.Machine, profile *planner.Profile) (*plan.Timeline, error) {
	e := p.inner()
	if e == nil {
		return nil, engine.ErrNoProgram
	}
	if machine == nil {
		machine = MachineOf(e.Platform())
	}
	return p.Way().Predict(e.Graph(), machine, profile)
}

// PredictEach predicts how many microseconds each of many replays takes that follow each other without a pause. The arguments are those of Predict.
func (p *Program) PredictEach(machine *planner.Machine, profile *planner.Profile) (us float64, err error) {
	e := p.inner()
	if e == nil {
		return 0, engine.ErrNoProgram
	}
	if machine == nil {
		machine = MachineOf(e.Platform())
	}
	return p.Way().PredictEach(e.Graph(), machine, profile)
}

// Way is how the program replays now. Each and all that was measured is missing.
func (p *Program) Way() *learn.Way {
	e := p.inner()
	if e == nil {
		return nil
	}
	w := e.Way()
	return &learn.Way{Plan: w.Plan, Mode: w.Mode, Threads: w.Threads, Overlap: w.Overlap}
}

// CanLearn returns why the program cannot learn, or nil.
func (p *Program) CanLearn() error { return p.inner().CanLearn() }

// Running returns the nodes that are running, such as one that hangs, while learning measures nodes, and on the CPU device also while it compares
// plans. After learning was stopped, it returns those that were running at that moment; nil at any other time.
func (p *Program) Running() []string { return p.inner().Trials().Running() }

// Trial returns the round of replays that learning is timing. After learning was stopped, it returns the one that had not ended; nil at any
// other time.
func (p *Program) Trial() *Trial { return p.inner().Trials().Trial() }

// Trial is a round of replays that learning times, or measures nodes in.
type Trial = engine.Trial
