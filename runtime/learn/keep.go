// What earlier runs learned, for the run that comes, and what this one keeps: durations of nodes, the best plans, passes of loops, figures of machines.

package learn

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"time"

	"github.com/dagrun/dagrun/cudart"
	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/internal/words"
	"github.com/dagrun/dagrun/planner"
	"github.com/dagrun/dagrun/planner/model"
	"github.com/dagrun/dagrun/planner/proof"
	"github.com/dagrun/dagrun/runtime/cache"
	"github.com/dagrun/dagrun/runtime/internal/engine"
	"github.com/dagrun/dagrun/runtime/internal/spans"
)

// Recalled is what a cache holds of one graph on one platform.
type Recalled struct {
	// Known are the durations that were measured often enough, of nodes that declare no cost; nil if there are none.
	Known *planner.Profile
	// Ways are the best that were found for the same options, the best first; empty if no plans have been compared.
	Ways []Way
	// Machine has the figures that predicted the replays best which chose Ways; nil if those that were planned with did.
	Machine *planner.Machine
	// Tried is how many ways to replay were compared, and Runs in how many runs.
	Tried, Runs int
	// Seen identifies them.
	Seen []string
	// Warnings say which files of the cache were ignored, and why.
	Warnings []string

	graph   *dag.Graph
	folder  *cache.Folder
	device  string
	machine *planner.Machine // that plans are made for
	key     string
	prints  []string
	at      time.Time // when the ways were chosen
	drifts  int       // how many of the last runs in a row took another time than then
}

// Recall looks up what was learned. Plans that come from the cache have been proved.
func Recall(g *dag.Graph, platform cudart.Platform, folder *cache.Folder, o Options, memory engine.MemoryMode) *Recalled {
	r := &Recalled{graph: g, folder: folder, device: DeviceKey(platform), prints: Fingerprints(g)}
	if folder == nil || platform == nil || g.Check() != nil {
		r.folder = nil
		return r
	}
	o = o.orDefault(platform)
	r.machine, r.key = o.Plan.Machine, choiceKey(r, o, memory, queuesOf(platform))
	durations, err := folder.Durations(r.device)
	r.warn(err)
	r.know(platform, durations, o.Replays)
	choice, err := folder.Choice(r.key)
	r.warn(err)
	if choice != nil {
		r.warn(r.choose(choice, o))
	}
	return r
}

// longestWarning is how many columns a warning may have: a hostile file may hold names of any length.
const longestWarning = 400

func (r *Recalled) warn(err error) {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		for _, e := range joined.Unwrap() {
			r.warn(e)
		}
	} else if err != nil {
		r.Warnings = append(r.Warnings, words.Cut(err.Error(), longestWarning))
	}
}

// know makes a profile of durations.
func (r *Recalled) know(platform cudart.Platform, durations cache.Durations, replays int) {
	profile := r.knownOf(durations, replays)
	if len(profile.Nodes) > 0 {
		profile.Machine = platform.Devices()[0].Name
		r.Known = profile
	}
}

// knownOf returns the durations that were measured often enough. A single replay is a process's first one, in which nodes take longer, for
// reasons of their own.
func (r *Recalled) knownOf(durations cache.Durations, replays int) *planner.Profile {
	profile := &planner.Profile{Nodes: map[string]float64{}, Shares: map[string]float64{}, Spreads: map[string]float64{}}
	take := func(node *dag.Node, samples []float64) bool {
		if len(samples) < usedSamples || node.HasCost {
			return false
		}
		took := engine.Summarize(slices.Clone(samples))
		profile.Nodes[node.Name], profile.Spreads[node.Name] = took.Median, took.Spread
		return true
	}
	for i := range r.graph.Nodes {
		node := &r.graph.Nodes[i]
		samples := durations[r.prints[i]]
		if first := durations[firstPrint(r.prints[i])]; replays == 1 && len(first) >= usedSamples {
			samples = first
		}
		if take(node, samples) {
			if shares := durations[sharePrint(r.prints[i])]; len(shares) > 0 {
				profile.Shares[node.Name] = min(1, engine.Summarize(slices.Clone(shares)).Median)
			}
		}
	}
	eachInner(r.graph, func(node *dag.Node, print string) { take(node, durations[print]) })
	return profile
}

// firstPrint is the fingerprint of what a node does in the first replay of a process.
func firstPrint(print string) string { return cache.Fingerprint([]byte("first " + print)) }

// sharePrint is the fingerprint under which the fractions of the device that a node takes are kept.
func sharePrint(print string) string { return cache.Fingerprint([]byte("share " + print)) }

// choiceKey is made of everything that decides which plan is best.
func choiceKey(r *Recalled, o Options, memory engine.MemoryMode, queues int) string {
	var profile, machine bytes.Buffer
	p, m := o.Plan.Profile, o.Plan.Machine
	if p != nil { // runs find out how many passes loops make
		known := *p
		if known.Passes, p = nil, &known; len(known.Nodes) == 0 {
			p = nil
		}
	}
	if p != nil && p.Encode(&profile) != nil || m != nil && m.Encode(&machine) != nil {
		return "" // what cannot be written is refused when it is planned with
	}
	plan := fmt.Sprintf("%s %d %v %d %v %v %v", o.Plan.Strategy, o.Plan.Streams, o.Plan.Effort, o.Plan.Cap(), o.Plan.KeepAll, o.Plan.Keep, o.Plan.SingleUseEvents)
	replay := fmt.Sprintf("%v %d %d %v", o.Modes, o.Threads, memory, o.Overlap)
	if r.graph.Ranks > 1 {
		replay += fmt.Sprintf(" of %d ranks", r.graph.Ranks)
	}
	prints := fmt.Sprint(r.prints)
	return cache.Key("choice 3", r.graph.Hash(), r.graph.WorkHash(), prints, plan, replay, profile.String(), machine.String(), r.device,
		libraryVersion(), fmt.Sprint(queues))
}

// mostPlanStreams is how many streams a plan from the cache may have.
const mostPlanStreams = 1024

// choose takes the ways of a choice whose plans are proved and keep to the options.
func (r *Recalled) choose(choice *cache.Choice, o Options) error {
	refused := func(err error) error { return fmt.Errorf("a plan in the cache is ignored: %w", err) }
	machine, err := r.fitted(choice)
	if err != nil {
		return refused(err)
	}
	for _, w := range choice.Ways {
		plan, err := planner.DecodePlan(bytes.NewReader(w.Plan), r.graph)
		if err != nil {
			return refused(err)
		}
		if err := errors.Join(planner.Verify(r.graph, plan), engine.CheckWork(r.graph, plan)); err != nil {
			return refused(err)
		}
		if w.Threads > 1 {
			if err := proof.VerifySingleUse(r.graph, plan); err != nil {
				return refused(err)
			}
		}
		if len(plan.Streams) > mostPlanStreams {
			return refused(fmt.Errorf("it has %d streams", len(plan.Streams)))
		}
		for device, bytes := range engine.DeviceBytes(r.graph, plan, engine.Arena) {
			if limit := o.Plan.Cap(); limit > 0 && bytes > limit {
				return refused(fmt.Errorf("it needs %d bytes of device %d, more than the memory cap", bytes, device))
			}
		}
		for i := range r.graph.Buffers {
			id := dag.BufferID(i)
			if (o.Plan.KeepAll && r.graph.Buffers[i].InArena() || slices.Contains(o.Plan.Keep, id)) && !slices.Contains(plan.Kept, id) {
				return refused(fmt.Errorf("buffer %q does not keep its bytes", r.graph.Buffers[i].Name))
			}
		}
		way := Way{Plan: plan, Mode: engine.Streams, Threads: w.Threads, Overlap: w.Overlap, BuildUS: w.BuildUS,
			Each: engine.Series{Count: 1, Min: w.EachUS, Median: w.EachUS, Mean: w.EachUS, Spread: w.SpreadUS}, Took: w.RunsUS}
		if w.Graph {
			way.Mode = engine.Captured
		}
		if !slices.Contains(o.Modes, way.Mode) || o.Threads > 0 && way.Mode == engine.Streams && w.Threads != o.Threads {
			return refused(errors.New("it is replayed another way than was asked for"))
		}
		predictor := machine
		if predictor == nil {
			predictor = o.Plan.Machine
		}
		us, err := predictEach(r.graph, way.way(), predictor, MergeProfiles(r.Known, o.Plan.Profile))
		if err != nil {
			return refused(err)
		}
		way.Predicted = us
		r.Ways = append(r.Ways, way)
	}
	r.Machine, r.Tried, r.Runs, r.Seen = machine, choice.Tried, choice.Runs, choice.Seen
	r.at, r.drifts = choice.At, choice.Drifted
	return nil
}

// fitted returns the machine that is kept with a choice, nil if there is none. It differs from the one that plans are made for only in what is
// fitted to replays.
func (r *Recalled) fitted(choice *cache.Choice) (*planner.Machine, error) {
	if len(choice.Machine) == 0 {
		return nil, nil
	}
	m, err := decodeMeasured(choice.Machine)
	switch {
	case err != nil:
		return nil, err
	case r.machine == nil || m.Name != r.machine.Name || m.Unit != r.machine.Unit || m.Cores != r.machine.Cores:
		return nil, fmt.Errorf("it was predicted with the figures of machine %q", m.Name)
	}
	return m, nil
}

// keepFitted notes the machine with a choice, if replays corrected its figures.
func (r *Recalled) keepFitted(choice *cache.Choice, m *planner.Machine, replace bool) error {
	if m == nil || r.machine == nil || reflect.DeepEqual(m, r.machine) {
		if m = r.Machine; m == nil || replace {
			return nil
		}
	}
	var text bytes.Buffer
	if err := m.Encode(&text); err != nil {
		return err
	}
	choice.Machine = text.Bytes()
	return nil
}

// Keep adds what was learned to the cache, in place of what was there before where replace is set.
func (r *Recalled) Keep(ctx context.Context, l *Learned, replace bool) error {
	if r == nil || r.folder == nil || l == nil {
		return nil
	}
	if n := max(len(l.Samples), len(l.Shares), len(l.First)); n > len(r.prints) {
		return fmt.Errorf("what was learned is of %d nodes, but the graph has %d", n, len(r.prints))
	}
	took := cache.Durations{}
	keep := func(samples [][]float64, under func(print string) string) {
		for print, medians := range sameWork(r.prints, samples) {
			took[under(print)] = medians
		}
	}
	keep(l.Samples, func(print string) string { return print })
	keep(l.Shares, sharePrint)
	first := make([][]float64, len(l.First))
	for i, us := range l.First {
		if us > 0 {
			first[i] = []float64{us}
		}
	}
	keep(first, firstPrint)
	eachInner(r.graph, func(node *dag.Node, print string) {
		if samples := l.Inner[node.Name]; len(samples) > 0 && took[print] == nil {
			took[print] = samples
		}
	})
	err := r.folder.KeepDurations(ctx, r.device, took, replace)
	if len(l.Ways) == 0 || err != nil {
		return err
	}
	choice := &cache.Choice{Pipeline: r.graph.Name, Device: r.device, At: time.Now().UTC(), Tried: len(l.Ways), Runs: 1, Seen: l.Seen}
	if !replace {
		choice.Runs += r.Runs
		choice.Tried = max(choice.Tried, r.Tried)
		choice.Seen = append(slices.Clone(r.Seen), l.Seen...)
	}
	slices.Sort(choice.Seen)
	choice.Seen = slices.Compact(choice.Seen)
	choice.Seen = choice.Seen[:min(len(choice.Seen), cache.MostSeen)]
	if l.Settled {
		choice.Runs = max(choice.Runs, enoughRuns)
	}
	for _, w := range worthKeeping(l.Ways, r.Ways) {
		var text bytes.Buffer
		if err := w.Plan.EncodeJSON(&text, r.graph); err != nil {
			return err
		}
		choice.Ways = append(choice.Ways, cache.Way{Graph: w.Mode == engine.Captured, Threads: w.Threads, Overlap: w.Overlap, EachUS: w.Each.Median,
			SpreadUS: w.Each.Spread, BuildUS: w.BuildUS, RunsUS: w.Took, Plan: text.Bytes()})
	}
	if err := r.keepFitted(choice, l.Machine, replace); err != nil {
		return err
	}
	return r.folder.KeepChoice(ctx, r.key, choice)
}

// worthKeeping returns the best way of each mode, and those that are close to the best of all, which later runs compare again. The best
// is the first, as it is in ways. Of a mode that was not compared, the best of earlier runs is kept.
func worthKeeping(ways, earlier []Way) []Way {
	var kept []Way
	first := map[engine.Mode]bool{}
	for _, w := range ways {
		if !first[w.Mode] || len(kept) < cache.MostWays-1 && w.Each.Median <= finalWithin*ways[0].Each.Median {
			kept = append(kept, w)
		}
		first[w.Mode] = true
	}
	for _, w := range earlier {
		if !first[w.Mode] {
			kept = append(kept, w)
		}
		first[w.Mode] = true
	}
	return kept
}

// Settled reports whether so many runs have compared plans that the next one takes the best of them as it is.
func (r *Recalled) Settled() bool { return r == nil || r.Runs >= enoughRuns }

const (
	manyReplays = 100
	shortBuild  = 10_000 // microseconds: a process on a GPU takes 30 times as long to start
)

// Best returns the way that is expected to take the least time for so many replays, building its graph included; nil if none is known. Where there
// are many replays, what a replay takes counts more than a graph that is built in a moment. A way that few runs have taken may be faster than
// expected, so runs take those that were close too, until it is known which is faster.
func (r *Recalled) Best(replays int) *Way {
	if r == nil {
		return nil
	}
	var best *Way
	least := math.Inf(1) // of the graphs, which all have the same nodes: what one took longer, the driver was busy with other things
	for k := range r.Ways {
		if w := &r.Ways[k]; w.Mode != engine.Streams {
			least = min(least, w.BuildUS)
		}
	}
	part := r.partInRuns()
	total := func(w *Way) float64 {
		build := min(w.BuildUS, least)
		if replays >= manyReplays {
			build = max(0, build-shortBuild)
		}
		return build + float64(replays)*w.hope(part)
	}
	for k := range r.Ways {
		if w := &r.Ways[k]; best == nil || total(w) < total(best) {
			best = w
		}
	}
	return best
}

// partInRuns is how long replays take in runs that take a way from the start, as a part of what they took where ways were compared: the geometric mean
// of the ways that runs have taken, but at most 1, since other programs may have slowed those runs down.
func (r *Recalled) partInRuns() float64 {
	logs, n := 0.0, 0.0
	for k := range r.Ways {
		if w := &r.Ways[k]; len(w.Took) > 0 && w.Each.Median > 0 {
			logs += math.Log(engine.Summarize(slices.Clone(w.Took)).Median / w.Each.Median)
			n++
		}
	}
	return min(1, math.Exp(logs/max(n, 1)))
}

// unsure is by which part a single time of a way is off.
const unsure = 0.03

// hope returns how many microseconds a replay takes if it is somewhat faster than it seems: than the median of its time where ways were compared, of
// which that part counts, and of the runs that took it. The more runs have taken it, the less faster it may be. A run that drifted counts as
// one that just did not, because something else may have disturbed it.
func (w *Way) hope(part float64) float64 {
	expected := part * w.Each.Median
	times := []float64{expected}
	for _, us := range w.Took {
		times = append(times, min(us, (1+drift)*expected))
	}
	return engine.Summarize(times).Median - unsure*w.Each.Median/math.Sqrt(float64(len(times)))
}

// Tries reports whether a run that takes this way finds out whether it is faster than those that earlier runs took.
func (r *Recalled) Tries(w *Way) bool {
	return r != nil && w != nil && len(w.Took) == 0 && slices.ContainsFunc(r.Ways, func(other Way) bool { return len(other.Took) > 0 })
}

// NoteRun notes in the cache how many microseconds a replay took in a run that took one of Ways from the start and compared nothing. Later calls of Best
// go by it. After some runs of a way it is known well enough, and nothing more is noted.
func (r *Recalled) NoteRun(ctx context.Context, w *Way, eachUS float64) error {
	if r == nil || r.folder == nil || w == nil || !(eachUS > 0) || len(w.Took) >= cache.MostTook {
		return nil
	}
	if ctx == nil {
		return engine.ErrNoContext
	}
	at := slices.IndexFunc(r.Ways, func(own Way) bool { return own.Overlap == w.Overlap && own.same(*w) })
	if at < 0 {
		return nil
	}
	return r.change(ctx, func(c *cache.Choice) {
		if took := &c.Ways[at].RunsUS; len(*took) < cache.MostTook { // other processes may have noted theirs
			*took = append(*took, eachUS)
		}
	})
}

// change changes the choice in the cache, unless another process has chosen or forgotten it since it was recalled. Its ways are those of Ways.
func (r *Recalled) change(ctx context.Context, how func(c *cache.Choice)) error {
	choice, err := r.folder.Choice(r.key)
	if err != nil || choice == nil || !choice.At.Equal(r.at) || len(choice.Ways) != len(r.Ways) {
		return err
	}
	how(choice)
	return r.folder.KeepChoice(ctx, r.key, choice)
}

const (
	drift      = 0.1 // by how much replays may take longer or shorter than when their plan was chosen, as a part of that time
	mostSpread = 0.2 // that this grows by at most, where the times of that choice differed
	// driftsToForget is how many runs in a row must drift before plans are compared again: something else may have disturbed a single one.
	driftsToForget = 2
	// leastConfirming is how many microseconds the replays of a run must take to tell anything: devices take about that long to reach their usual
	// clock rates.
	leastConfirming = 20_000
)

// Confirm compares how long a replay of a way took, in a run of so many replays, with how long it took when the way was chosen, and returns
// how many runs in a row have taken another time, this one included: 0 if it agrees, or is too short to tell. A run that is too short changes
// nothing. After two such runs Confirm removes the choice from the cache, and again is true: the next run compares plans again.
func (r *Recalled) Confirm(ctx context.Context, w *Way, eachUS float64, replays int) (runs int, again bool, err error) {
	if r == nil || r.folder == nil || w == nil || !(float64(replays)*eachUS >= leastConfirming) {
		return 0, false, nil
	}
	if ctx == nil {
		return 0, false, engine.ErrNoContext
	}
	if w.drifted(eachUS) {
		runs = r.drifts + 1 // several ranks that share a cache count as one run
	}
	if runs == r.drifts {
		return runs, false, nil
	}
	if runs >= driftsToForget {
		return runs, true, r.folder.ForgetChoice(r.key)
	}
	return runs, false, r.change(ctx, func(c *cache.Choice) { c.Drifted = runs })
}

// drifted says whether replays of a way take so much more or less time than when it was chosen that it may not be the best any more. If something
// disturbed that choice, the spread of its times is so large that it would hide any difference, so it counts only so much.
func (w *Way) drifted(eachUS float64) bool {
	off := eachUS - w.Each.Median
	return max(off, -off) > drift*w.Each.Median+min(2*w.Each.Spread, mostSpread*w.Each.Median)
}

const (
	mostCorrected = 2    // times: beyond that, something else takes the time
	closeEnough   = 0.05 // a prediction that is so close is left as it is
)

// Correct scales the durations that the cache holds of the graph's nodes, so that a way to replay that took eachUS, over many replays, is
// predicted right. w is the way that the replays took, and o are the options that the graph was recalled with. Learning times few
// replays of many ways and keeps the fastest, which is often one that was lucky; the replays after it tell. On devices with engines and
// multiprocessors of their own it does nothing: there the durations of nodes are what was measured, and the model is at fault.
func (r *Recalled) Correct(ctx context.Context, w *Way, eachUS float64, o Options) error {
	if r == nil || r.folder == nil || w == nil || w.Plan == nil || !(eachUS > 0) || r.machine.Cores == 0 {
		return nil
	}
	kept, err := r.folder.Durations(r.device)
	if err != nil {
		return nil // Recall has warned of it
	}
	learned := &planner.Profile{Nodes: map[string]float64{}, Shares: map[string]float64{}}
	corrected := cache.Durations{}
	for i := range r.graph.Nodes {
		node, samples := &r.graph.Nodes[i], kept[r.prints[i]]
		if len(samples) == 0 || given(node, o.Plan.Profile) {
			continue
		}
		corrected[r.prints[i]] = samples
		learned.Nodes[node.Name] = engine.Summarize(slices.Clone(samples)).Median
		if shares := kept[sharePrint(r.prints[i])]; len(shares) > 0 {
			learned.Shares[node.Name] = min(1, engine.Summarize(slices.Clone(shares)).Median)
		}
	}
	factor := 1.0
	for range correctionSteps {
		scaled := &planner.Profile{Nodes: map[string]float64{}, Shares: learned.Shares}
		for name, us := range learned.Nodes {
			scaled.Nodes[name] = factor * us
		}
		us, err := predictEach(r.graph, w.way(), r.machine, MergeProfiles(scaled, o.Plan.Profile))
		if err != nil {
			return err
		}
		if !(us > 0) {
			return nil
		}
		factor = max(1.0/mostCorrected, min(mostCorrected, factor*eachUS/us))
	}
	if r.doubts(factor, o.Plan.Profile) {
		return nil
	}
	return r.scale(ctx, corrected, factor)
}

// given reports whether the user says how long a node takes, in the pipeline or in a profile.
func given(n *dag.Node, profile *planner.Profile) bool {
	if n.HasCost || profile == nil {
		return n.HasCost
	}
	_, given := profile.Nodes[n.Name]
	return given
}

// doubts reports whether durations that the user gave may be at fault, rather than those that were measured: a correction as large as that
// would make the measured ones wrong, for other pipelines too, a bit more with each run.
func (r *Recalled) doubts(factor float64, profile *planner.Profile) (doubts bool) {
	if factor > 1.0/mostCorrected && factor < mostCorrected {
		return false
	}
	r.graph.EachGraph(func(g *dag.Graph, _ []string) {
		doubts = doubts || slices.ContainsFunc(g.Nodes, func(n dag.Node) bool { return given(&n, profile) })
	})
	return doubts
}

// scale keeps durations in the cache that are multiplied by a factor, unless that hardly changes them.
func (r *Recalled) scale(ctx context.Context, durations cache.Durations, factor float64) error {
	if math.Abs(factor-1) < closeEnough {
		return nil
	}
	factor = max(1.0/mostCorrected, min(mostCorrected, factor))
	scaled := cache.Durations{}
	for print, samples := range durations {
		scaled[print] = slices.Clone(samples)
		for k := range samples {
			scaled[print][k] *= factor
		}
	}
	return r.folder.KeepDurations(ctx, r.device, scaled, true)
}

// CorrectBodies scales the durations that the cache holds of nodes in bodies, so that a replay of a plan that took eachUS, over many replays,
// is predicted right. loops are what the loops did.
func (r *Recalled) CorrectBodies(ctx context.Context, w *Way, eachUS float64, loops []spans.Loop, o Options) error {
	if r == nil || r.folder == nil || w == nil || w.Plan == nil || !r.graph.HasControl() || !(eachUS > 0) {
		return nil
	}
	kept, err := r.folder.Durations(r.device)
	if err != nil {
		return nil // Recall has warned of it
	}
	known := MergeProfiles(r.knownOf(kept, 2), o.Plan.Profile)
	profile := MergeProfiles(known, &planner.Profile{Passes: passesOf(loops)})
	inner := map[string]string{} // the fingerprints of nodes, by name
	eachInner(r.graph, func(n *dag.Node, print string) {
		if len(kept[print]) > 0 && !given(n, o.Plan.Profile) {
			inner[n.Name] = print
		}
	})
	factor, err := innerFactor(r.graph, w.way(), r.machine, profile, inner, eachUS)
	if err != nil {
		return err
	}
	if r.doubts(factor, o.Plan.Profile) {
		return nil
	}
	corrected := cache.Durations{}
	for _, print := range inner {
		corrected[print] = kept[print]
	}
	return r.scale(ctx, corrected, factor)
}

// passKeys returns the key of each loop with a condition, in all bodies, by name.
func passKeys(g *dag.Graph) map[string]string {
	keys := map[string]string{}
	g.EachGraph(func(g *dag.Graph, _ []string) {
		if !g.HasControl() {
			return
		}
		prints := Fingerprints(g)
		for i := range g.Nodes {
			if c := g.Nodes[i].Control; c != nil && c.Condition != nil && g.Nodes[i].Kind == dag.Repeat {
				keys[g.Nodes[i].Name] = cache.Key("passes 1", prints[i])
			}
		}
	})
	return keys
}

// KnownPasses returns a profile with the passes that the loops of a graph made in earlier runs, or nil if none are known. The
// warnings say which files of the cache were ignored, and why.
func KnownPasses(g *dag.Graph, folder *cache.Folder) (known *planner.Profile, warnings []string) {
	if g.Check() != nil || folder == nil || !g.HasControl() {
		return nil, nil
	}
	keys := passKeys(g)
	g.EachGraph(func(g *dag.Graph, _ []string) {
		for i := range g.Nodes {
			name := g.Nodes[i].Name
			key, loop := keys[name]
			if !loop {
				continue
			}
			kept, err := folder.Passes(key)
			if err != nil {
				warnings = append(warnings, err.Error())
			}
			if kept == nil {
				continue
			}
			if known == nil {
				known = &planner.Profile{Passes: map[string]int64{}}
			}
			known.Passes[name] = kept.Each()
		}
	})
	return known, warnings
}

// KeepPasses keeps what the loops of a graph did in the last replay, for KnownPasses.
func KeepPasses(ctx context.Context, g *dag.Graph, folder *cache.Folder, loops []spans.Loop) error {
	if g.Check() != nil || folder == nil || len(loops) == 0 {
		return nil
	}
	keys, now := passKeys(g), time.Now().UTC()
	var errs []error
	for _, l := range loops {
		if key, ok := keys[l.Node]; ok && l.Runs > 0 {
			errs = append(errs, folder.KeepPasses(ctx, key, &cache.Passes{Pipeline: g.Name, Node: l.Node, Runs: l.Runs, Passes: l.Passes, Most: l.Most, At: now}))
		}
	}
	return errors.Join(errs...)
}

// machineKey identifies the first device of a platform: a machine is a model of one device.
func machineKey(platform cudart.Platform) string {
	if platform == nil || len(platform.Devices()) == 0 {
		return ""
	}
	return devicesKey(platform, platform.Devices()[:1])
}

// KeepMachine keeps the machine that was measured on a platform, so that KeptMachine finds it. A nil folder keeps nothing.
func KeepMachine(ctx context.Context, platform cudart.Platform, folder *cache.Folder, m *planner.Machine) error {
	key := machineKey(platform)
	if folder.Path() == "" || key == "" {
		return nil
	}
	if ctx == nil {
		return engine.ErrNoContext
	}
	if err := m.ValidateMeasured(); err != nil {
		return err
	}
	var text bytes.Buffer
	if err := m.Encode(&text); err != nil {
		return err
	}
	return folder.KeepMachine(ctx, key, text.Bytes())
}

// KeptMachine returns the machine kept for a platform's first device, nil if there is none. The error says why a kept one is ignored.
func KeptMachine(platform cudart.Platform, folder *cache.Folder) (*planner.Machine, error) {
	key := machineKey(platform)
	if folder.Path() == "" || key == "" {
		return nil, nil
	}
	text, err := folder.Machine(key)
	if text == nil || err != nil {
		return nil, err
	}
	m, err := decodeMeasured(text)
	if err != nil {
		return nil, fmt.Errorf("the measurements kept for %s are ignored: %w", platform.Devices()[0].Name, err)
	}
	return m, nil
}

// decodeMeasured reads a machine file of the cache. It may be damaged or hostile, so its figures must be ones that can be measured.
func decodeMeasured(text []byte) (*planner.Machine, error) {
	m, err := model.DecodeMachine(bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	return m, m.ValidateMeasured()
}
