// What earlier runs learned about a graph, for the run that comes: durations of its nodes, and the plan that was best.

package learn

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"time"

	"github.com/dagrun/dagrun/cudart"
	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/internal/words"
	"github.com/dagrun/dagrun/planner"
	"github.com/dagrun/dagrun/runtime/cache"
	"github.com/dagrun/dagrun/runtime/internal/engine"
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
	return cache.Key("choice 3", r.graph.Hash(), r.graph.WorkHash(), prints, plan, replay, profile.String(), machine.String(), r.device, libraryVersion(), fmt.Sprint(queues))
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
			if err := planner.VerifySingleUse(r.graph, plan); err != nil {
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
		way := Way{Plan: plan, Mode: engine.Streams, Threads: w.Threads, Overlap: w.Overlap, BuildUS: w.BuildUS, Each: engine.Series{Count: 1, Min: w.EachUS, Median: w.EachUS, Mean: w.EachUS, Spread: w.SpreadUS}, Took: w.RunsUS}
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
		choice.Ways = append(choice.Ways, cache.Way{Graph: w.Mode == engine.Captured, Threads: w.Threads, Overlap: w.Overlap, EachUS: w.Each.Median, SpreadUS: w.Each.Spread, BuildUS: w.BuildUS, RunsUS: w.Took, Plan: text.Bytes()})
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

// sameWork returns for each fingerprint the samples of all its nodes: replay by replay, their median.
func sameWork(prints []string, samples [][]float64) map[string][]float64 {
	all := map[string][][]float64{} // by fingerprint and replay, of each node
	for i, own := range samples {
		for k, us := range own {
			if k == len(all[prints[i]]) {
				all[prints[i]] = append(all[prints[i]], nil)
			}
			all[prints[i]][k] = append(all[prints[i]][k], us)
		}
	}
	medians := map[string][]float64{}
	for print, replays := range all {
		for _, of := range replays {
			medians[print] = append(medians[print], engine.Summarize(of).Median)
		}
	}
	return medians
}
