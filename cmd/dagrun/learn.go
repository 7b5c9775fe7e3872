// Learning from runs: uses what earlier runs measured, and keeps what this run measures.

package main

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
)

// learningOf looks up what is known about a pipeline. It is nil if nothing is to be learned or used, because the user asked for a plan,
// a machine or a way to run for which learning is not meant.
func (a *app) learningOf(p *prepared, own *session.RunFlags) *learning {
	f := a.Flags
	if own == nil || f.Learn == flags.LearnOff {
		return nil
	}
	if why := a.notLearned(p, own); why != "" {
		if f.Learning {
			a.Note("nothing is learned %s", why)
		}
		return nil
	}
	l := &learning{again: f.Learn == flags.LearnAgain, onGPU: p.platform.Name() == "cuda", ranks: a.Place.Ranks > 1, bodies: p.graph.HasControl()}
	l.options = runtime.LearnOptions{Plan: p.options, Threads: f.Threads, Replays: f.Iterations + f.Warmup, Progress: a.Progress.Report}
	if !f.Threaded {
		l.options.Threads = 0
	}
	l.options.Overlap = a.overlap()
	switch f.Replay {
	case flags.GraphOn, flags.GraphCaptured:
		l.options.Modes = []runtime.Mode{runtime.Captured}
	case flags.GraphOff:
		l.options.Modes = []runtime.Mode{runtime.Streams}
	default:
		l.options.Modes = []runtime.Mode{runtime.Captured, runtime.Streams}
	}
	l.recalled = runtime.Recall(p.graph, p.platform.Platform, a.OpenCache(), l.options, a.memoryMode())
	for _, w := range l.recalled.Warnings {
		a.Warn("%s", w)
	}
	if !l.again {
		l.options.Known = l.recalled.Known
		l.way = l.recalled.Best(f.Iterations + f.Warmup)
		l.options.Runs, l.options.Seen = l.recalled.Runs, l.recalled.Seen
	}
	return l
}

// notLearned says because of what nothing is learned, such as "with --plan"; "" if something is.
func (a *app) notLearned(p *prepared, own *session.RunFlags) string {
	f := a.Flags
	switch {
	case f.Plan != "":
		return "with --plan"
	case f.Machine != "":
		return "with --machine"
	case own.Alone:
		return "with --node-by-node"
	case own.Follow:
		return "with --debug-progress"
	case a.Sanitize.Any && a.Sanitize.Chosen && a.Sanitize.Name() != flags.SanitizeOff:
		return "with --sanitize " + f.Sanitize
	case f.Inflight > 1:
		return "with --inflight"
	case f.Replay == flags.GraphBuilt:
		return "with --graph=built"
	case a.Place.Ranks > 1 && p.graph.HasControl():
		return "by several ranks where there are loops or branches"
	case a.Place.Ranks > 1 && !a.ranksLearn(p):
		return fmt.Sprintf("by several ranks from fewer than %d replays", fewestTogether)
	}
	return ""
}

// machineOf is what replays are predicted with: the figures that the replays corrected which chose the plan, or those that are planned with.
func (l *learning) machineOf(p *prepared) *planner.Machine {
	if l.way != nil && l.recalled.Machine != nil {
		return l.recalled.Machine
	}
	return p.options.Machine
}

// machineOf is the model of a device to plan for: its measured figures, if they have been kept and learning is not off.
func (a *app) machineOf(platform cudart.Platform) *planner.Machine {
	if a.Flags.Learn != flags.LearnOff && a.Flags.Machine == "" {
		kept, err := runtime.KeptMachine(platform, a.OpenCache())
		if err != nil {
			a.Warn("%v", err)
		}
		if kept != nil {
			a.Log.Info("planning with the figures that were measured on this device")
			return kept
		}
	}
	return runtime.MachineOf(platform)
}

func (a *app) memoryMode() runtime.MemoryMode {
	if a.Flags.Memory == "separate" {
		return runtime.Separate
	}
	return runtime.Arena
}

// enoughToLengthen is how many warm-up replays must have been asked for if there may be more of them: their contents are restored, so who asks for
// that many cares about times, not about their number.
const enoughToLengthen = 16

// awake is how long a GPU that was idle copies more slowly, up to a sixth on an H200.
const awake = 20 * time.Millisecond

// leastWarmUp is how long a warm-up of so many replays lasts at least: until a GPU is awake.
func leastWarmUp(onGPU bool, warmup int) time.Duration {
	if !onGPU || warmup < enoughToLengthen {
		return 0
	}
	return awake
}

// leastWarmUp is how long the warm-up of a run of a known plan lasts at least. Runs that learn warm a GPU up before they measure anything.
func (l *learning) leastWarmUp(warmup int) time.Duration {
	if l == nil || l.ranks || l.way == nil || l.learned != nil {
		return 0
	}
	return leastWarmUp(l.onGPU, warmup)
}

// within limits what is learned in a stage, and reports whether anything is: nothing if enough runs have compared plans, or if this is not the
// stage that has enough replays. A GPU's later runs compare nothing: a process that has done so replays graphs up to 8% more slowly. Contents are
// restored after the warm-up, so learning may lengthen it.
func (l *learning) within(warmup, iterations int, warming bool) bool {
	const manyMore = 1_000_000
	switch {
	case l == nil || l.way != nil && (l.recalled.Settled() || l.ranks || l.onGPU) || l.learned != nil:
		return false
	case warming && warmup >= enoughToLengthen:
		l.options.Replays, l.options.Extra, l.options.After = warmup, manyMore, iterations
		if l.options.Wake = leastWarmUp(l.onGPU, warmup); l.ranks {
			l.options.Extra, l.options.Wake = iterations, 0
		}
	case warming || iterations == 0 || l.way != nil && iterations < runtime.FewestToCompare:
		return false
	default:
		l.options.Replays, l.options.Extra, l.options.After, l.options.Wake = iterations, 0, 0, 0
	}
	return true
}

// tells reports whether replays that took so long, after a warm-up, tell how long those of other processes take, which may take the same way or
// another.
func (l *learning) tells(warmup, took time.Duration) bool {
	return l.onGPU && !l.ranks && !l.recalled.Settled() && (warmup >= awake || took >= 5*awake)
}

// learn uses replays of a program, and keeps what they show. It returns how many it used.
func (a *app) learn(ctx context.Context, p *prepared, own *session.RunFlags, program *runtime.Program) (int, error) {
	l := p.learning
	if err := program.CanLearn(); err != nil {
		if a.Flags.Learning {
			a.Note("nothing is learned: %v", err)
		} else {
			a.Log.Info("nothing is learned", "because", err.Error())
		}
		return 0, nil
	}
	a.Running = program.Running
	stop := a.watchHang(ctx, p, own, program.Trial)
	if l.way != nil { // the other mode was compared before, and graphs are slower in a process that has used several streams
		l.options.Modes, l.options.Ways = []runtime.Mode{l.way.Mode}, []runtime.LearnedWay{*l.way}
		for k := range l.recalled.Ways {
			if w := &l.recalled.Ways[k]; w != l.way && w.Mode == l.way.Mode {
				l.options.Ways = append(l.options.Ways, *w)
			}
		}
	}
	learned, err := program.Learn(ctx, l.options)
	if err != nil {
		return 0, err
	}
	stop()
	l.learned = learned
	if len(learned.Ways) > 0 {
		a.eachReplay = time.Duration(learned.Ways[0].Each.Median * 1e3)
	}
	for _, w := range learned.Ways {
		a.Log.Info("compared", "strategy", w.Plan.Strategy, "streams", len(w.Plan.Streams), "replay", w.Mode.String(), "threads", w.Threads, "overlap", w.Overlap,
			"us", fmt.Sprintf("%.1f", w.Each.Median), "predicted_us", fmt.Sprintf("%.1f", w.Predicted))
	}
	if err := l.recalled.Keep(ctx, learned, l.again); err != nil && ctx.Err() == nil {
		a.Warn("what was learned is not kept: %v", err)
	}
	return learned.Replays, nil
}

// settle compares the time of a replay with its time when the plan was chosen, and corrects the durations that were learned. If the times
// differ too much in two runs in a row, the next one compares plans again. took is the time of the replays after learning, and warmup what came
// before.
func (a *app) settle(ctx context.Context, p *prepared, program *runtime.Program, replays int, warmup, took time.Duration) {
	const enough = 20
	l := p.learning
	if l == nil || replays < enough {
		return
	}
	us := float64(took.Nanoseconds()) / 1e3 / float64(replays)
	way, compared := l.way, l.learned != nil && len(l.learned.Ways) > 0
	if compared {
		way = &l.learned.Ways[0]
	}
	if err := l.correct(ctx, p, program, way, us); err != nil && ctx.Err() == nil {
		a.Warn("what was learned is not corrected: %v", err)
	}
	if l.way == nil || compared {
		return
	}
	runs, again, err := l.recalled.Confirm(ctx, l.way, us, replays)
	if err != nil && ctx.Err() == nil {
		a.Warn("%v", err)
	}
	l.drift = drift{runs: runs, again: again, us: us, then: l.way.Each.Median}
	if !again && l.tells(warmup, took) {
		if err := l.recalled.NoteRun(ctx, l.way, us); err != nil && ctx.Err() == nil {
			a.Warn("how long this run took is not kept: %v", err)
		}
	}
}

// correct corrects the durations that were learned by what a replay took; those of nodes in bodies by what loops did too.
func (l *learning) correct(ctx context.Context, p *prepared, program *runtime.Program, way *runtime.LearnedWay, us float64) error {
	if !p.graph.HasControl() {
		return l.recalled.Correct(ctx, way, us, l.options)
	}
	loops, err := program.Loops(ctx)
	if err != nil {
		return err
	}
	return l.recalled.CorrectBodies(ctx, program.Way(), us, loops, l.options)
}

// learnReport is the part of a run's JSON about learning.
type learnReport struct {
	From     string      `json:"from"`           // "cache": the plan was chosen by an earlier run; "replays": by this one; "": not by comparing
	Known    int         `json:"known_nodes"`    // nodes whose durations earlier runs measured
	Measured int         `json:"measured_nodes"` // nodes that this run measured
	Replays  int         `json:"replays"`        // replays used for learning
	Tried    int         `json:"tried"`          // ways to replay that were compared
	Unquiet  string      `json:"unquiet,omitempty"`
	Drifted  bool        `json:"drifted,omitempty"`
	Again    bool        `json:"compares_again,omitempty"` // in the next run
	Tries    bool        `json:"tries,omitempty"`          // a way from the cache, to find out whether it is faster than those that earlier runs took
	Ways     []wayReport `json:"ways"`

	drift drift
}

func (l *learning) report() *learnReport {
	if l == nil {
		return nil
	}
	r := &learnReport{Ways: []wayReport{}, Drifted: l.drift.runs > 0, Again: l.drift.again, drift: l.drift}
	if l.options.Known != nil {
		r.Known = len(l.options.Known.Nodes)
	}
	if l.way != nil && (l.learned == nil || len(l.learned.Ways) == 0) {
		r.From, r.Tried, r.Ways = "cache", l.recalled.Tried, append(r.Ways, reportWay(l.way))
		r.Tries = l.recalled.Tries(l.way)
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
			r.Ways = append(r.Ways, reportWay(&l.learned.Ways[k]))
		}
	}
	return r
}

// text is one line: what was learned or used, "" for nothing. It has times only if they differ from when the plan was chosen.
func (r *learnReport) text() string {
	if r == nil {
		return ""
	}
	best := func() string { return r.Ways[0].text() }
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
		return fmt.Sprintf("learned: how long %s, from %s", nodesTake(r.Measured), cli.Counted(r.Replays, "replay"))
	case r.Known > 0:
		return "learned earlier: how long " + nodesTake(r.Known)
	}
	return ""
}

// nodesTake is "1 node takes" or "n nodes take".
func nodesTake(n int) string {
	if n == 1 {
		return "1 node takes"
	}
	return cli.Counted(n, "node") + " take"
}
