// Predictions corrected by plans alike: a model is wrong in the same way about plans of one pipeline that take about as long, on as many streams
// and with as many waits. How far it is off for those that learning timed is expected of the others.

package learn

import (
	"errors"
	"math"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/planner"
	"github.com/dagrun/dagrun/runtime/internal/engine"
)

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
func likenessOf(plan *planner.Plan, us float64) likeness {
	at, depth, after := make([]int, len(plan.Streams)), make([]int, len(plan.Streams)), make([]int, plan.Events)
	used, nodes, waits, deepest := 0, 0, 0, 1
	for s := range plan.Streams {
		if len(plan.Streams[s].Ops) > 0 {
			used++
		}
	}
	for _, s := range plan.Order {
		op := &plan.Streams[s].Ops[at[s]]
		at[s]++
		switch op.Kind {
		case planner.Launch:
			nodes++
			depth[s]++
			deepest = max(deepest, depth[s])
		case planner.Record:
			after[op.Event] = depth[s]
		case planner.Wait:
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
