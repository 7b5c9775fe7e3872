// What learning is asked for, what it has found so far, what it answers, and how long it may take.

package learn

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"time"

	"github.com/dagrun/dagrun/cudart"
	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/planner"
	"github.com/dagrun/dagrun/runtime/internal/engine"
	"github.com/dagrun/dagrun/runtime/internal/measure"
	"github.com/dagrun/dagrun/runtime/internal/spans"
)

// Options limits what is learned, and how many replays and how much time that takes.
type Options struct {
	// Plan holds the options for planning. Strategy, Streams and other options are respected: only "auto" tries several strategies.
	// Durations in Plan.Profile take precedence over measured ones.
	Plan planner.Options
	// Known are durations that were learned before, by node name; nodes in it are not measured again. It may be nil. Recall finds
	// them.
	Known *planner.Profile
	// Ways are those that earlier runs found best, and Runs is how many runs have compared plans. They are timed again, beside others that those
	// runs had no time for. The program must replay by the first of them.
	Ways []Way
	Runs int
	// Seen identifies the ways that those runs have timed.
	Seen []string
	// Replays is how many replays may be used.
	Replays int
	// Extra is how many more may be used than anyone asked for, because contents are restored afterwards. They take time of learning.
	Extra int
	// After is how many replays follow those of Replays.
	After int
	// For limits the time of learning; when it is over, learning ends after the plan that it is timing. 0 means that learning may take
	// 100 ms, or a fifth of the time of all the replays, longer than Replays would have taken with the best plan. On a GPU, it is 75 ms instead of
	// 100, and New's loading of kernels counts, as long as 45 ms are left.
	For time.Duration
	// Wake is how long to replay before anything but the first replay is measured: a GPU that was idle copies more slowly at first. It takes replays,
	// and of learning's time only where For limits that. 0 measures at once.
	Wake time.Duration
	// Modes are the modes to choose from: Streams, Captured or both. Empty means both.
	Modes []engine.Mode
	// Threads is how many threads submit streams; 0 lets learning choose.
	Threads int
	// Overlap says whether launches overlap; with OverlapAuto, the best ways to replay are also timed with launches that overlap.
	Overlap engine.Overlap
	// Thorough also measures plans that are predicted to be much slower.
	Thorough bool
	// Progress is called before each step, and may be nil.
	Progress func(stage string, done, total int)
}

// orDefault plans for the platform and chooses from all modes, where the options do not say otherwise.
func (o Options) orDefault(platform cudart.Platform) Options {
	if len(o.Modes) == 0 {
		o.Modes = []engine.Mode{engine.Captured, engine.Streams}
	}
	if o.Plan.Machine == nil {
		o.Plan.Machine = measure.MachineOf(platform)
	}
	return o
}

// checkNumbers refuses numbers of replays and runs that cannot be, and ways without a plan.
func (o *Options) checkNumbers() error {
	const most = min(1<<40, math.MaxInt)
	for _, n := range []struct {
		name  string
		value int
	}{{"Extra", o.Extra}, {"After", o.After}, {"Runs", o.Runs}, {"Replays", o.Replays}} {
		if n.value < 0 || n.value > most {
			return fmt.Errorf("learn with %s = %d: the number must be 0 to %d", n.name, n.value, most)
		}
	}
	if o.Threads < 0 || o.For < 0 || o.Wake < 0 {
		return fmt.Errorf("learn with Threads = %d, For = %s, Wake = %s: none can be less than 0", o.Threads, o.For, o.Wake)
	}
	for k := range o.Ways {
		if w := &o.Ways[k]; w.Plan == nil || w.Mode != engine.Streams && w.Mode != engine.Captured {
			return fmt.Errorf("learn with way %d: it needs a plan, and to be replayed as streams or as a graph", k)
		}
	}
	return nil
}

// Learned is the result of learning.
type Learned struct {
	Profile *planner.Profile     // what was known, and the medians of what was measured
	Machine *planner.Machine     // what was planned for, with the figures that the timed replays corrected
	Samples [][]float64          // by node: the durations measured, in microseconds; nil for nodes that were not measured
	Shares  [][]float64          // by node: the fractions of its device that it took while it ran, if the device tells; nil for others
	Inner   map[string][]float64 // by name, of nodes in bodies: the durations measured, in microseconds
	First   []float64            // by node: the duration in the program's first replay, which includes one-time costs; nil if not measured
	Seen    []string             // identifies the ways that were timed, for Options of later runs
	Ways    []Way                // what was measured, the best first
	Replays int                  // how many were used
	Settled bool                 // so much was tried that later runs need not compare again
	passes  map[string]int64     // that loops made
	Unquiet string               // why measurements cannot be relied on, in words; "" if they can
	Given   *Unfitted            // what the timed replays corrected; nil if no plans were compared
	Host    float64              // times that the host takes longer to submit than when it was learned, as Now found; 0: as long
}

// Unfitted is what is known of nodes and of the machine before replays of whole plans correct it.
type Unfitted struct {
	Machine  *planner.Machine // that was planned for
	Known    *planner.Profile // durations that are not corrected; nil for none
	Samples  [][]float64      // by node: the durations measured, in microseconds
	Recorded bool             // the device recorded when nodes began and ended, so durations are exact
}

// samples copies the durations, because a fit changes them.
func (u *Unfitted) samples() [][]float64 {
	copied := make([][]float64, len(u.Samples))
	for i := range copied {
		copied[i] = slices.Clone(u.Samples[i])
	}
	return copied
}

// Way is one plan and one way to replay it.
type Way struct {
	Plan      *planner.Plan
	Mode      engine.Mode // Streams or Captured
	Threads   int
	Overlap   bool          // launches overlap
	Each      engine.Series // of a replay, where many follow each other
	BuildUS   float64       // what it took to make the graph, or 0
	Took      []float64     // microseconds of a replay, of each run that took it from the start
	Predicted float64       // microseconds, with the durations and the machine of what was learned; 0 if nobody has predicted it
}

// trials is what learning does with a program: that of an engine, or one that a test wrote down.
type trials interface {
	Begin() (end func() error)
	KeepRunning()
	LoadingTook() time.Duration
	Has(w engine.Way) bool
	Adopt(ctx context.Context, w engine.Way) error
	FreeKept(keep ...engine.Way) error
	TimeReplays(ctx context.Context, n int) (us float64, err error)
	TraceCounted(ctx context.Context, n, done, total int, progress func(stage string, done, total int)) (all []*spans.TracedReplay, first time.Duration, err error)
	CanRecord() bool
	RecordCounted(ctx context.Context, n, done, total int, progress func(stage string, done, total int)) (all []*spans.TracedReplay, ran int,
		reason string, err error)
	Exchange(ctx context.Context, own string) ([]string, error)
}

// learner learns from one program.
type learner struct {
	p        *engine.Program
	trials   trials
	graph    *dag.Graph
	platform cudart.Platform
	log      *slog.Logger
	o        Options
	known    *planner.Profile
	was      engine.Way // how the program replayed
	left     int        // replays
	began    time.Time
	once     time.Duration // what the first replay and waking the device took, which learning does not add: most of it is done once
	best     float64       // microseconds of the best replay so far, 0 before any
	// recorded says that CUPTI measured nodes: their durations are exact.
	recorded bool
	learned  Learned
	possible []Way // all ways to replay of which the most promising are timed
}

// newLearner begins to learn from a program.
func newLearner(p *engine.Program, o Options) *learner {
	l := &learner{p: p, trials: p.Trials(), graph: p.Graph(), platform: p.Platform(), log: p.Logger(), o: o, was: p.Way(), began: time.Now()}
	l.left = o.Replays + o.Extra
	l.was.Threads = max(1, l.was.Threads)
	l.known = MergeProfiles(o.Known, o.Plan.Profile)
	l.learned.Machine = o.Plan.Machine
	l.learned.Samples, l.learned.Shares = make([][]float64, l.graph.Len()), make([][]float64, l.graph.Len())
	return l
}

// used is how many replays learning has used.
func (l *learner) used() int { return l.o.Replays + l.o.Extra - l.left }

func (l *learner) report(stage string) {
	if l.o.Progress != nil {
		l.o.Progress(stage, l.used(), l.o.Replays)
	}
}

// step says in the log when a step of learning ended.
func (l *learner) step(what string) {
	l.log.Info("learning", "step", what, "after", time.Since(l.began).Round(100*time.Microsecond), "not_counted", l.once.Round(100*time.Microsecond),
		"replays_left", l.left)
}

// knows reports whether the duration of a node was measured before.
func (l *learner) knows(n *dag.Node) bool {
	if l.known == nil {
		return false
	}
	_, known := l.known.Nodes[n.Name]
	return known
}

// unknown returns the nodes whose duration is neither declared nor measured.
func (l *learner) unknown() []dag.NodeID {
	var nodes []dag.NodeID
	for i := range l.graph.Nodes {
		if node := &l.graph.Nodes[i]; !l.knows(node) && !node.HasCost {
			nodes = append(nodes, dag.NodeID(i))
		}
	}
	return nodes
}

// profile returns the known durations and the medians of the measured ones.
func (l *learner) profile() *planner.Profile {
	profile := &planner.Profile{Machine: l.platform.Devices()[0].Name, Nodes: map[string]float64{}, Shares: map[string]float64{}, Spreads: map[string]float64{}}
	for i, samples := range l.learned.Samples {
		if len(samples) > 0 {
			took := engine.Summarize(slices.Clone(samples))
			name := l.graph.Nodes[i].Name
			if profile.Nodes[name] = took.Median; took.Count > 1 {
				profile.Spreads[name] = took.Spread
			}
		}
	}
	for i, samples := range l.learned.Shares {
		if len(samples) > 0 {
			profile.Shares[l.graph.Nodes[i].Name] = engine.Summarize(slices.Clone(samples)).Median
		}
	}
	for name, samples := range l.learned.Inner {
		took := engine.Summarize(slices.Clone(samples))
		profile.Nodes[name], profile.Spreads[name] = took.Median, took.Spread
	}
	merged := MergeProfiles(profile, l.known)
	if len(l.learned.passes) > 0 {
		merged = merged.Merge(&planner.Profile{Passes: l.learned.passes})
	}
	return merged
}

func (w *Way) way() engine.Way {
	return engine.Way{Plan: w.Plan, Mode: w.Mode, Threads: w.Threads, Overlap: w.Overlap}
}

// MergeProfiles merges two profiles, either of which may be nil. Entries of the later one take precedence.
func MergeProfiles(earlier, later *planner.Profile) *planner.Profile {
	switch {
	case earlier == nil:
		return later
	case later == nil:
		return earlier
	}
	return earlier.Merge(later)
}

const (
	tracedReplays = 5   // for the duration of a node
	stampUS       = 0.2 // what taking the time before and after a node costs on the CPU device
	usedSamples   = 3   // of a node, for its duration to be known
)

// FewestToCompare is how many replays must be left after durations have been measured for plans to be compared.
const FewestToCompare = 8

const (
	rounds       = 3    // in which a way to replay is timed
	warmUp       = 2    // replays of a way before it is timed: the first pays for what is done once
	mostTried    = 12   // ways to replay that are timed
	fewestTurns  = 2    // of the best ways, to say more than the rounds before
	mostTurns    = 5    // of the best ways
	mostFinal    = 4    // ways to replay that are timed again, in turn
	finalWithin  = 1.25 // times the best way: timed again
	mostBehind   = 3    // ways in a row that are slower than finalWithin: the rest is not timed
	firstMode    = 0.85 // the part of learning's time for graphs, which are faster for most pipelines
	inHeats      = 0.6  // the part of learning's time for each mode in which ways are timed for the first time
	inSurprises  = 0.7  // the part by whose end those are timed once more that were surprisingly slow
	inFinals     = 0.85 // the part by whose end the best of them are timed again; the rest is for launches that overlap
	largestTried = 2000 // nodes of graphs for which more plans are made than the one that auto chooses
	hopeless     = 2.0  // times the best prediction: not tried
	hopelessMode = 1.6  // times the best prediction, all of a mode: the mode is not tried
	enoughRuns   = 3    // that compare plans of a pipeline
	disturbed    = 0.2  // spread of rounds, as a part of their median, above which something else seems to use the device
)

// over reports whether learning has used up so much of its time.
func (l *learner) over(part float64) bool {
	spent := func(most time.Duration) time.Duration { return time.Duration(part * float64(most)) }
	if l.o.For > 0 {
		return time.Since(l.began) > spent(l.o.For)
	}
	asked := min(l.used(), l.o.Replays)
	extra := time.Since(l.began) - l.once - time.Duration(float64(asked)*l.best*1e3)
	most := max(l.least(), time.Duration(float64(l.o.Replays+l.o.After)*l.best*1e3/5))
	if l.o.Runs > 0 && l.o.Extra == 0 {
		most /= 4
	}
	return extra > spent(most)
}

// least is what learning may take however short the run is. Before a first run on a GPU, the driver compiles kernels that later runs find
// compiled; learning gives up a part of its time for that.
func (l *learner) least() time.Duration {
	const onCPU, onGPU, anyway = 100 * time.Millisecond, 75 * time.Millisecond, 45 * time.Millisecond
	if l.platform.Name() == "cpu" {
		return onCPU
	}
	return max(anyway, onGPU-l.trials.LoadingTook())
}

func (l *learner) sort() {
	slices.SortStableFunc(l.learned.Ways, func(a, b Way) int { return cmp.Compare(a.Each.Median, b.Each.Median) })
}
