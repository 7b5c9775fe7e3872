// Predictions of how long a replay takes: by the model, corrected by how far plans alike were mispredicted, on a host as fast as it is now.

package learn

import (
	"context"
	"errors"
	"math"
	goruntime "runtime"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/dagrun/dagrun/cudart"
	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/planner"
	"github.com/dagrun/dagrun/planner/model"
	"github.com/dagrun/dagrun/planner/plan"
	"github.com/dagrun/dagrun/runtime/internal/engine"
)

// submissionBy is what a launch costs if several threads submit, as a part of what it costs one thread, by the number of threads: measured on
// an H200 with eight streams, with and without waits.
var submissionBy = []struct {
	threads int
	part    float64
}{{8, 0.45}, {4, 0.55}, {2, 0.7}}

// submittedBy returns the machine with what its threads take for submission.
func submittedBy(threads int, machine *planner.Machine) *planner.Machine {
	for _, s := range submissionBy {
		if threads >= s.threads && machine != nil {
			return submittedAt(s.part, machine)
		}
	}
	return machine
}

// submittedAt returns the machine with a host that takes so many times as long to submit.
func submittedAt(times float64, machine *planner.Machine) *planner.Machine {
	changed := *machine
	changed.LaunchUS *= times
	changed.CopyLaunchUS *= times
	changed.EventUS *= times
	return &changed
}

// predict simulates a replay.
func predict(g *dag.Graph, w engine.Way, machine *planner.Machine, profile *planner.Profile) (*plan.Timeline, error) {
	if w.Mode != engine.Streams {
		return model.SimulateGraph(g, w.Plan, machine, profile)
	}
	return planner.Simulate(g, w.Plan, submittedBy(w.Threads, machine), profile)
}

// predictEach predicts how long each of many replays takes that follow each other without a pause.
func predictEach(g *dag.Graph, w engine.Way, machine *planner.Machine, profile *planner.Profile) (us float64, err error) {
	if w.Mode != engine.Streams {
		return model.Repeated(g, w.Plan, machine, profile, true)
	}
	return model.Repeated(g, w.Plan, submittedBy(w.Threads, machine), profile, false)
}

// Predict returns the predicted timeline of a replay of a graph this way.
func (w *Way) Predict(g *dag.Graph, machine *planner.Machine, profile *planner.Profile) (*plan.Timeline, error) {
	if w == nil {
		return nil, errNoWay
	}
	return predict(g, w.way(), machine, profile)
}

// PredictEach predicts how many microseconds each of many replays takes that follow each other without a pause.
func (w *Way) PredictEach(g *dag.Graph, machine *planner.Machine, profile *planner.Profile) (us float64, err error) {
	if w == nil {
		return 0, errNoWay
	}
	return predictEach(g, w.way(), machine, profile)
}

var errNoWay = errors.New("there is no way to replay to predict")

// predictAll predicts what predictEach does for several ways, side by side where that takes longer than starting to.
func predictAll(g *dag.Graph, ways []Way, machine *planner.Machine, profile *planner.Profile) (us []float64, err error) {
	const worth = 500 // nodes
	us = make([]float64, len(ways))
	var group errgroup.Group
	group.SetLimit(1)
	if len(ways)*g.Len() >= worth {
		group.SetLimit(goruntime.GOMAXPROCS(0))
	}
	for k := range ways {
		group.Go(func() (err error) {
			us[k], err = predictEach(g, ways[k].way(), machine, profile)
			return err
		})
	}
	return us, group.Wait()
}

// How different plans are by each feature of a likeness when they say little about each other, and how much one timed plan can say.
const (
	unlikeUS      = 0.3  // logarithm of what is predicted
	unlikeStreams = 1.0  // doublings of streams
	unlikeWaits   = 0.4  // waits of a node
	unlikeDepth   = 0.5  // logarithm of how many nodes follow each other
	byChance      = 0.07 // the part of what a timed plan is off that says nothing of others, against the part that does
	mostCorrect   = 0.4  // logarithm of what a timed plan is off at most: more was disturbed
)

// likeness is what plans of one pipeline that are replayed in the same mode are compared by.
type likeness [4]float64

// likenessOf returns the likeness of a plan that is predicted to take so long.
func likenessOf(made *planner.Plan, us float64) likeness {
	at, depth, after := make([]int, len(made.Streams)), make([]int, len(made.Streams)), make([]int, made.Events)
	used, nodes, waits, deepest := 0, 0, 0, 1
	for s := range made.Streams {
		if len(made.Streams[s].Ops) > 0 {
			used++
		}
	}
	for _, s := range made.Order {
		op := &made.Streams[s].Ops[at[s]]
		at[s]++
		switch op.Kind {
		case plan.Launch:
			nodes++
			depth[s]++
			deepest = max(deepest, depth[s])
		case plan.Record:
			after[op.Event] = depth[s]
		case plan.Wait:
			depth[s] = max(depth[s], after[op.Event])
			waits++
		}
	}
	return likeness{math.Log(max(us, 0.01)) / unlikeUS, math.Log2(float64(max(1, used))) / unlikeStreams,
		float64(waits) / float64(max(1, nodes)) / unlikeWaits, math.Log(float64(deepest)) / unlikeDepth}
}

// says is how much one plan says about another: 1 if they are the same, close to 0 if they have little in common.
func (a likeness) says(b likeness) float64 {
	sum := 0.0
	for k := range a {
		sum += (a[k] - b[k]) * (a[k] - b[k])
	}
	return math.Exp(-sum / 2)
}

// PredictEach predicts how many microseconds each of many replays of a plan takes that follow each other without a pause, submitted by one thread:
// with the durations and the figures of the machine that were learned, corrected by how far the ways that learning timed were mispredicted, on a
// host that is as fast as Host says.
func (l *Learned) PredictEach(g *dag.Graph, plan *planner.Plan, mode engine.Mode) (us float64, err error) {
	if l == nil {
		return 0, errors.New("nothing was learned to predict from")
	}
	if us, err = predictEach(g, engine.Way{Plan: plan, Mode: mode, Threads: 1}, l.Machine, l.Profile); err != nil {
		return 0, err
	}
	now := us
	if l.Host > 0 {
		if now, err = predictEach(g, engine.Way{Plan: plan, Mode: mode, Threads: 1}, submittedAt(l.Host, l.Machine), l.Profile); err != nil {
			return 0, err
		}
	}
	timed := &mispredictions{}
	for k := range l.Ways {
		w := &l.Ways[k]
		if w.Mode != mode || w.Threads > 1 || w.Overlap || !(w.Each.Median > 0) {
			continue
		}
		predicted := w.Predicted
		if !(predicted > 0) { // nobody has yet
			if predicted, err = predictEach(g, w.way(), l.Machine, l.Profile); err != nil {
				return 0, err
			}
		}
		timed.add(w, predicted)
	}
	if g.HasControl() && len(timed.off) > 0 {
		return now * math.Exp(engine.Summarize(timed.off).Median), nil // passes take the most time, in all plans
	}
	timed.bound(0)
	return now * math.Exp(likenessOf(plan, us).expects(timed.of, timed.off)), nil
}

// mispredictions are how far ways that were timed are off.
type mispredictions struct {
	of  []likeness
	off []float64 // by way: the logarithm of what it took, as a part of what was predicted
}

func (m *mispredictions) add(w *Way, predicted float64) {
	m.of = append(m.of, likenessOf(w.Plan, predicted))
	m.off = append(m.off, math.Log(w.Each.Median/max(predicted, 0.01)))
}

// bound takes out what all are off, and then what is too much to say anything of other ways.
func (m *mispredictions) bound(all float64) {
	for k := range m.off {
		m.off[k] = max(-mostCorrect, min(mostCorrect, m.off[k]-all))
	}
}

// mispredictionsSoFar returns those of timed ways. How far they are off in the mean is expected of all others, so it changes no order and is left out.
func mispredictionsSoFar(timed []Way) *mispredictions {
	m, sum := &mispredictions{}, 0.0
	for k := range timed {
		if w := &timed[k]; w.Predicted > 0 && w.Each.Median > 0 { // those of earlier runs may have no prediction
			m.add(w, w.Predicted)
			sum += m.off[len(m.off)-1]
		}
	}
	m.bound(sum / float64(max(1, len(m.off))))
	return m
}

// hope returns how long a way could take, to compare it with others: what is expected, and less if the timed ways say little about it.
func (m *mispredictions) hope(w *Way) float64 {
	const surprise = 0.2 // logarithm of how much faster a way could be of which they say nothing
	a := likenessOf(w.Plan, w.Predicted)
	return w.Predicted * math.Exp(a.expects(m.of, m.off)-float64(surprise*a.doubt(m.of)))
}

// expects returns how far a plan is expected to be off if those that were timed are off so far.
func (a likeness) expects(timed []likeness, off []float64) (sum float64) {
	for k, weight := range shares(timed, off) {
		sum += weight * a.says(timed[k])
	}
	return sum
}

// doubt is how little those that were timed say about a plan: 1 if nothing, close to 0 if one of them is the same.
func (a likeness) doubt(timed []likeness) float64 {
	said := make([]float64, len(timed))
	for k := range timed {
		said[k] = a.says(timed[k])
	}
	return 1 - a.expects(timed, said)
}

// shares explains how far plans are off by what each says about itself and the others: it solves the linear equations of a regression in which
// part of each value is due to chance.
func shares(of []likeness, off []float64) []float64 {
	n := len(of)
	rows := make([][]float64, n)
	for i := range rows {
		rows[i] = make([]float64, n+1)
		for j := range of {
			rows[i][j] = of[i].says(of[j])
		}
		rows[i][i] += byChance
		rows[i][n] = off[i]
	}
	// The matrix is symmetric and positive definite, so elimination needs no pivots.
	for i := range n {
		for j := i + 1; j < n; j++ {
			factor := rows[j][i] / rows[i][i]
			for k := i; k <= n; k++ {
				rows[j][k] -= float64(factor * rows[i][k])
			}
		}
	}
	weights := make([]float64, n)
	for i := n - 1; i >= 0; i-- {
		weights[i] = rows[i][n]
		for j := i + 1; j < n; j++ {
			weights[i] -= float64(rows[i][j] * weights[j])
		}
		weights[i] /= rows[i][i]
	}
	return weights
}

const (
	nowWarmUp = 5                    // replays of a program that was just made
	nowRound  = 4 * time.Millisecond // how long replays are timed
	slower    = 1.25                 // a host so many times as slow tells which ways depend on it
	depends   = 0.7                  // the part of that, as logarithms, that a way must take longer then
	mostNow   = 2.0                  // times as slow or as fast at most: more is something else
)

// Now returns what was learned for the host as fast as it is now. It replays one of the ways that learning timed, for some milliseconds, and notes
// in Host how much longer that takes than it did. Where no way that learning timed depends on how fast the host submits, it returns the same.
func (l *Learned) Now(ctx context.Context, g *dag.Graph, platform cudart.Platform) (*Learned, error) {
	switch {
	case l == nil:
		return nil, errors.New("nothing was learned to predict from")
	case g == nil:
		return nil, errors.New("timing again needs a graph")
	case platform == nil:
		return nil, errors.New("timing again needs a platform to run on")
	}
	w, err := l.dependent(g)
	if err != nil || w == nil {
		return l, err
	}
	us, err := w.now(ctx, g, platform)
	if err != nil {
		return nil, err
	}
	now := *l
	now.Host = max(1/mostNow, min(mostNow, us/w.Each.Median))
	return &now, nil
}

// dependent returns the way that depends most on how fast one thread submits; nil if none does.
func (l *Learned) dependent(g *dag.Graph) (best *Way, err error) {
	most := depends
	for k := range l.Ways {
		w := &l.Ways[k]
		if w.Mode != engine.Streams || w.Threads > 1 || w.Overlap || !(w.Each.Median > 0) {
			continue
		}
		as, err := predictEach(g, w.way(), l.Machine, l.Profile)
		if err != nil {
			return nil, err
		}
		slow, err := predictEach(g, w.way(), submittedAt(slower, l.Machine), l.Profile)
		if err != nil {
			return nil, err
		}
		if part := math.Log(slow/max(as, 0.01)) / math.Log(slower); part > most+1e-9 {
			best, most = w, part
		}
	}
	return best, nil
}

// now makes a program that replays this way, and times it.
func (w *Way) now(ctx context.Context, g *dag.Graph, platform cudart.Platform) (us float64, err error) {
	p, err := engine.New(ctx, g, w.Plan, platform, planner.GraphEdges, engine.Options{Mode: w.Mode})
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, p.Close()) }()
	if err := p.Run(ctx, nowWarmUp); err != nil {
		return 0, err
	}
	long := float64(nowRound.Nanoseconds()) / 1e3
	return p.Trials().TimeReplays(ctx, max(1, int(long/max(w.Each.Median, 1))))
}

// correctionSteps are enough to find a factor by which durations are off: a replay's time is not proportional to the durations of its nodes.
const correctionSteps = 8

// innerFactor returns by what the durations of some nodes must be multiplied for a replay to be predicted to take so long: 1 if nothing helps.
func innerFactor[T any](g *dag.Graph, w engine.Way, m *planner.Machine, profile *planner.Profile, scaled map[string]T, us float64) (float64, error) {
	predicted := func(factor float64) (float64, error) {
		changed := &planner.Profile{Nodes: map[string]float64{}}
		for name := range scaled {
			if known, ok := profile.Nodes[name]; ok {
				changed.Nodes[name] = factor * known
			}
		}
		t, err := predict(g, w, m, MergeProfiles(profile, changed))
		if err != nil {
			return 0, err
		}
		return t.MakespanUS, nil
	}
	none, err := predicted(0)
	if err != nil {
		return 1, err
	}
	factor := 1.0
	for range correctionSteps {
		now, err := predicted(factor)
		if err != nil || !(now > none) {
			return 1, err
		}
		factor *= max(0.01, (us-none)/(now-none))
	}
	return factor, nil
}
