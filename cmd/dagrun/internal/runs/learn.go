// Learning from runs: uses what earlier runs measured, and keeps what this run measures.

package runs

import (
	"context"
	"fmt"
	"time"

	"github.com/dagrun/dagrun/cmd/dagrun/internal/cli"
	"github.com/dagrun/dagrun/cmd/dagrun/internal/flags"
	"github.com/dagrun/dagrun/cmd/dagrun/internal/session"
	"github.com/dagrun/dagrun/cudart"
	"github.com/dagrun/dagrun/planner"
	"github.com/dagrun/dagrun/runtime"
	"github.com/dagrun/dagrun/runtime/learn"
)

// LearningOf looks up what is known about a pipeline. It is nil if nothing is to be learned or used, because the user asked for a plan,
// a machine or a way to run for which learning is not meant.
func (u *Runs) LearningOf(p *Prepared, own *session.RunFlags) *Learning {
	f := u.Flags
	if own == nil || f.Learn == flags.LearnOff {
		return nil
	}
	if why := u.notLearned(p, own); why != "" {
		if f.Learning {
			u.Note("nothing is learned %s", why)
		}
		return nil
	}
	l := &Learning{again: f.Learn == flags.LearnAgain, OnGPU: p.Platform.Name() == "cuda", ranks: u.Place.Ranks > 1, bodies: p.Graph.HasControl()}
	l.Options = learn.Options{Plan: p.Options, Threads: f.Threads, Replays: f.Iterations + f.Warmup, Progress: u.Progress.Report}
	if !f.Threaded {
		l.Options.Threads = 0
	}
	l.Options.Overlap = u.overlap()
	switch f.Replay {
	case flags.GraphOn, flags.GraphCaptured:
		l.Options.Modes = []runtime.Mode{runtime.Captured}
	case flags.GraphOff:
		l.Options.Modes = []runtime.Mode{runtime.Streams}
	default:
		l.Options.Modes = []runtime.Mode{runtime.Captured, runtime.Streams}
	}
	l.Recalled = learn.Recall(p.Graph, p.Platform.Platform, u.OpenCache(), l.Options, u.MemoryMode())
	for _, w := range l.Recalled.Warnings {
		u.Warn("%s", w)
	}
	if !l.again {
		l.Options.Known = l.Recalled.Known
		l.way = l.Recalled.Best(f.Iterations + f.Warmup)
		l.Options.Runs, l.Options.Seen = l.Recalled.Runs, l.Recalled.Seen
	}
	return l
}

// notLearned says because of what nothing is learned, such as "with --plan"; "" if something is.
func (u *Runs) notLearned(p *Prepared, own *session.RunFlags) string {
	f := u.Flags
	switch {
	case f.Plan != "":
		return "with --plan"
	case f.Machine != "":
		return "with --machine"
	case own.Alone:
		return "with --node-by-node"
	case own.Follow:
		return "with --debug-progress"
	case u.Sanitize.Any && u.Sanitize.Chosen && u.Sanitize.Name() != flags.SanitizeOff:
		return "with --sanitize " + f.Sanitize
	case f.Inflight > 1:
		return "with --inflight"
	case f.Replay == flags.GraphBuilt:
		return "with --graph=built"
	case u.Place.Ranks > 1 && p.Graph.HasControl():
		return "by several ranks where there are loops or branches"
	case u.Place.Ranks > 1 && !u.ranksLearn(p):
		return fmt.Sprintf("by several ranks from fewer than %d replays", fewestTogether)
	}
	return ""
}

// machineOf is what replays are predicted with: the figures that the replays corrected which chose the plan, or those that are planned with.
func (l *Learning) machineOf(p *Prepared) *planner.Machine {
	if l.way != nil && l.Recalled.Machine != nil {
		return l.Recalled.Machine
	}
	return p.Options.Machine
}

// MachineOf is the model of a device to plan for: its measured figures, if they have been kept and learning is not off.
func (u *Runs) MachineOf(platform cudart.Platform) *planner.Machine {
	if u.Flags.Learn != flags.LearnOff && u.Flags.Machine == "" {
		kept, err := learn.KeptMachine(platform, u.OpenCache())
		if err != nil {
			u.Warn("%v", err)
		}
		if kept != nil {
			u.Log.Info("planning with the figures that were measured on this device")
			return kept
		}
	}
	return runtime.MachineOf(platform)
}

func (u *Runs) MemoryMode() runtime.MemoryMode {
	if u.Flags.Memory == "separate" {
		return runtime.Separate
	}
	return runtime.Arena
}

// enoughToLengthen is how many warm-up replays must have been asked for if there may be more of them: their contents are restored, so who asks for
// that many cares about times, not about their number.
const enoughToLengthen = 16

// awake is how long a GPU that was idle copies more slowly, up to a sixth on an H200.
const awake = 20 * time.Millisecond

// LeastWarmUp is how long a warm-up of so many replays lasts at least: until a GPU is awake.
func LeastWarmUp(onGPU bool, warmup int) time.Duration {
	if !onGPU || warmup < enoughToLengthen {
		return 0
	}
	return awake
}

// LeastWarmUp is how long the warm-up of a run of a known plan lasts at least. Runs that learn warm a GPU up before they measure anything.
func (l *Learning) LeastWarmUp(warmup int) time.Duration {
	if l == nil || l.ranks || l.way == nil || l.learned != nil {
		return 0
	}
	return LeastWarmUp(l.OnGPU, warmup)
}

// Within limits what is learned in a stage, and reports whether anything is: nothing if enough runs have compared plans, or if this is not the
// stage that has enough replays. A GPU's later runs compare nothing: a process that has done so replays graphs up to 8% more slowly. Contents are
// restored after the warm-up, so learning may lengthen it.
func (l *Learning) Within(warmup, iterations int, warming bool) bool {
	const manyMore = 1_000_000
	switch {
	case l == nil || l.way != nil && (l.Recalled.Settled() || l.ranks || l.OnGPU) || l.learned != nil:
		return false
	case warming && warmup >= enoughToLengthen:
		l.Options.Replays, l.Options.Extra, l.Options.After = warmup, manyMore, iterations
		if l.Options.Wake = LeastWarmUp(l.OnGPU, warmup); l.ranks {
			l.Options.Extra, l.Options.Wake = iterations, 0
		}
	case warming || iterations == 0 || l.way != nil && iterations < learn.FewestToCompare:
		return false
	default:
		l.Options.Replays, l.Options.Extra, l.Options.After, l.Options.Wake = iterations, 0, 0, 0
	}
	return true
}

// tells reports whether replays that took so long, after a warm-up, tell how long those of other processes take, which may take the same way or
// another.
func (l *Learning) tells(warmup, took time.Duration) bool {
	return l.OnGPU && !l.ranks && !l.Recalled.Settled() && (warmup >= awake || took >= 5*awake)
}

// Learn uses replays of a program, and keeps what they show. It returns how many it used.
func (u *Runs) Learn(ctx context.Context, p *Prepared, own *session.RunFlags, program *runtime.Program) (int, error) {
	l := p.Learning
	if err := program.CanLearn(); err != nil {
		if u.Flags.Learning {
			u.Note("nothing is learned: %v", err)
		} else {
			u.Log.Info("nothing is learned", "because", err.Error())
		}
		return 0, nil
	}
	u.Running = program.Running
	stop := u.WatchHang(ctx, p, own, program.Trial)
	if l.way != nil { // the other mode was compared before, and graphs are slower in a process that has used several streams
		l.Options.Modes, l.Options.Ways = []runtime.Mode{l.way.Mode}, []learn.Way{*l.way}
		for k := range l.Recalled.Ways {
			if w := &l.Recalled.Ways[k]; w != l.way && w.Mode == l.way.Mode {
				l.Options.Ways = append(l.Options.Ways, *w)
			}
		}
	}
	learned, err := program.Learn(ctx, l.Options)
	if err != nil {
		return 0, err
	}
	stop()
	l.learned = learned
	if len(learned.Ways) > 0 {
		u.EachReplay = time.Duration(learned.Ways[0].Each.Median * 1e3)
	}
	for _, w := range learned.Ways {
		u.Log.Info("compared", "strategy", w.Plan.Strategy, "streams", len(w.Plan.Streams), "replay", w.Mode.String(), "threads", w.Threads, "overlap", w.Overlap,
			"us", fmt.Sprintf("%.1f", w.Each.Median), "predicted_us", fmt.Sprintf("%.1f", w.Predicted))
	}
	if err := l.Recalled.Keep(ctx, learned, l.again); err != nil && ctx.Err() == nil {
		u.Warn("what was learned is not kept: %v", err)
	}
	return learned.Replays, nil
}

// Settle compares the time of a replay with its time when the plan was chosen, and corrects the durations that were learned. If the times
// differ too much in two runs in a row, the next one compares plans again. took is the time of the replays after learning, and warmup what came
// before.
func (u *Runs) Settle(ctx context.Context, p *Prepared, program *runtime.Program, replays int, warmup, took time.Duration) {
	const enough = 20
	l := p.Learning
	if l == nil || replays < enough {
		return
	}
	us := float64(took.Nanoseconds()) / 1e3 / float64(replays)
	way, compared := l.way, l.learned != nil && len(l.learned.Ways) > 0
	if compared {
		way = &l.learned.Ways[0]
	}
	if err := l.correct(ctx, p, program, way, us); err != nil && ctx.Err() == nil {
		u.Warn("what was learned is not corrected: %v", err)
	}
	if l.way == nil || compared {
		return
	}
	runs, again, err := l.Recalled.Confirm(ctx, l.way, us, replays)
	if err != nil && ctx.Err() == nil {
		u.Warn("%v", err)
	}
	l.drift = drift{runs: runs, again: again, us: us, then: l.way.Each.Median}
	if !again && l.tells(warmup, took) {
		if err := l.Recalled.NoteRun(ctx, l.way, us); err != nil && ctx.Err() == nil {
			u.Warn("how long this run took is not kept: %v", err)
		}
	}
}

// correct corrects the durations that were learned by what a replay took; those of nodes in bodies by what loops did too.
func (l *Learning) correct(ctx context.Context, p *Prepared, program *runtime.Program, way *learn.Way, us float64) error {
	if !p.Graph.HasControl() {
		return l.Recalled.Correct(ctx, way, us, l.Options)
	}
	loops, err := program.Loops(ctx)
	if err != nil {
		return err
	}
	return l.Recalled.CorrectBodies(ctx, program.Way(), us, loops, l.Options)
}

// LearnReport is the part of a run's JSON about learning.
type LearnReport struct {
	From     string      `json:"from"`           // "cache": the plan was chosen by an earlier run; "replays": by this one; "": not by comparing
	Known    int         `json:"known_nodes"`    // nodes whose durations earlier runs measured
	Measured int         `json:"measured_nodes"` // nodes that this run measured
	Replays  int         `json:"replays"`        // replays used for learning
	Tried    int         `json:"tried"`          // ways to replay that were compared
	Unquiet  string      `json:"unquiet,omitempty"`
	Drifted  bool        `json:"drifted,omitempty"`
	Again    bool        `json:"compares_again,omitempty"` // in the next run
	Tries    bool        `json:"tries,omitempty"`          // a way from the cache, to find out whether it is faster than those that earlier runs took
	Ways     []WayReport `json:"ways"`

	drift drift
}

func (l *Learning) Report() *LearnReport {
	if l == nil {
		return nil
	}
	r := &LearnReport{Ways: []WayReport{}, Drifted: l.drift.runs > 0, Again: l.drift.again, drift: l.drift}
	if l.Options.Known != nil {
		r.Known = len(l.Options.Known.Nodes)
	}
	if l.way != nil && (l.learned == nil || len(l.learned.Ways) == 0) {
		r.From, r.Tried, r.Ways = "cache", l.Recalled.Tried, append(r.Ways, ReportWay(l.way))
		r.Tries = l.Recalled.Tries(l.way)
	}
	if l.learned != nil {
		r.Replays, r.Unquiet, r.Tried = l.learned.Replays, l.learned.Unquiet, max(r.Tried, len(l.learned.Ways))
		for i, samples := range l.learned.Samples {
			if len(samples) > 0 || l.learned.First != nil && l.learned.First[i] > 0 {
				r.Measured++
			}
		}
		r.Measured += len(l.learned.Inner)
		for k := range l.learned.Ways {
			r.From = "replays"
			r.Ways = append(r.Ways, ReportWay(&l.learned.Ways[k]))
		}
	}
	return r
}

// Text is one line: what was learned or used, "" for nothing. It has times only if they differ from when the plan was chosen.
func (r *LearnReport) Text() string {
	if r == nil {
		return ""
	}
	best := func() string { return r.Ways[0].Text() }
	switch {
	case r.From == "cache" && r.Tried == 1:
		return "learned earlier: " + best() + r.drift.text()
	case r.From == "replays" && r.Tried == 1:
		return "learned: " + best()
	case r.From == "cache":
		verb := "is"
		if r.Tries {
			verb = "may be"
		}
		return fmt.Sprintf("learned earlier: %s %s the best of %s", best(), verb, cli.Counted(r.Tried, "way")+" to replay") + r.drift.text()
	case r.From == "replays":
		text := fmt.Sprintf("learned: %s is the best of %s", best(), cli.Counted(r.Tried, "way")+" to replay")
		if r.Unquiet != "" {
			text += "; not certain, since " + r.Unquiet
		}
		return text
	case r.Measured > 0:
		return fmt.Sprintf("learned: how long %s, from %s", NodesTake(r.Measured), cli.Counted(r.Replays, "replay"))
	case r.Known > 0:
		return "learned earlier: how long " + NodesTake(r.Known)
	}
	return ""
}

// NodesTake is "1 node takes" or "n nodes take".
func NodesTake(n int) string {
	if n == 1 {
		return "1 node takes"
	}
	return cli.Counted(n, "node") + " take"
}
