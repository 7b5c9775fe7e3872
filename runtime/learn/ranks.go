// Learning with several ranks: all do the same replays in the same order, and decide by what all have measured, so that all take the same way.

package learn

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/planner"
	"github.com/dagrun/dagrun/runtime/internal/engine"
)

// together learns with all ranks. Each measures its own nodes and makes plans of its own graph; a strategy and a mode stand for the same on all.
func (l *learner) together(ctx context.Context) error {
	if err := l.measureTogether(ctx); err != nil {
		return err
	}
	l.step("measured nodes")
	l.learned.Profile = l.profile()
	if l.left >= FewestToCompare && l.graph.Len() > 0 {
		if err := l.compareTogether(ctx); err != nil {
			return err
		}
	}
	if len(l.learned.Ways) > 0 {
		return l.adoptTogether(ctx, l.learned.Ways[0].way())
	}
	return l.adoptTogether(ctx, l.was)
}

// adoptTogether adopts a way on all ranks. If one cannot, its error ends the run, as it does with one rank.
func (l *learner) adoptTogether(ctx context.Context, w engine.Way) error {
	if l.p.Way() == w {
		return nil
	}
	return l.trials.Adopt(ctx, w)
}

// measureTogether measures how long the nodes of each rank take, one after the other. A communication takes as long as the last rank to come
// makes it, so the shortest time that any rank has seen counts for all.
func (l *learner) measureTogether(ctx context.Context) error {
	unknown := l.unknown()
	lacking, err := asked(ctx, l, len(unknown))
	if err != nil || slices.Max(lacking) == 0 {
		return err
	}
	l.report("learn how long nodes take")
	options := l.o.Plan
	options.Strategy, options.Streams, options.Profile, options.Effort = "serial", 0, l.known, planner.Quick
	serial, err := planner.New(ctx, l.graph, options)
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	possible, other := asked(ctx, l, err == nil)
	if other != nil {
		return other
	}
	plan := l.p.Plan()
	if !slices.Contains(possible, false) {
		plan = serial
	}
	if err := l.adoptTogether(ctx, engine.Way{Plan: plan, Mode: engine.Streams, Threads: 1, Overlap: l.was.Overlap}); err != nil {
		return err
	}
	n := min(l.left, tracedReplays+1)
	replays, took, err := l.trials.TraceCounted(ctx, n, l.used(), l.o.Replays, l.o.Progress)
	l.left -= n
	if err != nil {
		return err
	}
	l.once = took
	samples := func(i dag.NodeID) []float64 {
		var list []float64
		for _, replay := range replays[min(1, len(replays)-1):] {
			list = append(list, max(0, replay.Spans[i].End-replay.Spans[i].Start-stampUS))
		}
		return list
	}
	shortest, err := l.communications(ctx, samples)
	if err != nil {
		return err
	}
	for _, i := range unknown {
		list := samples(i)
		if us, communicates := shortest[l.graph.Nodes[i].Name]; communicates {
			list = slices.Repeat([]float64{us}, len(list))
		}
		l.learned.Samples[i] = list
	}
	return nil
}

// communications returns the shortest time of each communication, over all ranks.
func (l *learner) communications(ctx context.Context, samples func(dag.NodeID) []float64) (map[string]float64, error) {
	own := map[string]float64{}
	for i := range l.graph.Nodes {
		if l.graph.Nodes[i].Kind == dag.Communicate {
			own[l.graph.Nodes[i].Name] = slices.Min(samples(dag.NodeID(i)))
		}
	}
	all, err := asked(ctx, l, own)
	if err != nil {
		return nil, err
	}
	for _, other := range all {
		for name, us := range other {
			if mine, has := own[name]; has {
				own[name] = min(mine, us)
			}
		}
	}
	return own, nil
}

// proposal is a strategy that every rank plans with.
type proposal struct {
	Strategy string
	Streams  int
}

// proposals are the same on all ranks, because rank 0 has decided the options.
func (l *learner) proposals() []proposal {
	given := proposal{l.o.Plan.Strategy, l.o.Plan.Streams}
	list := []proposal{given}
	if given.Strategy != "auto" && given.Strategy != "" || l.graph.Len() > largestTried {
		return list
	}
	most := given.Streams
	if most == 0 {
		most = 8
	}
	for s := most; s >= 1; s /= 2 {
		list = append(list, proposal{"list", s})
	}
	for s := most; s >= 2; s /= 2 {
		list = append(list, proposal{"heft", s}, proposal{"roundrobin", s})
	}
	return append(list, proposal{"cover", given.Streams}, proposal{"serial", 1})
}

// offer is what a rank says of a proposal.
type offer struct {
	US   []float64 // of each of many replays, as predicted, for each mode; none: it cannot be planned so
	Same int       // the first proposal that gives the same plan
}

// waysTogether plans all proposals, and returns those that all ranks can plan, by the longest time that any rank predicts.
func (l *learner) waysTogether(ctx context.Context) ([]Way, error) {
	o := l.o.Plan
	o.Profile = l.learned.Profile
	proposals := l.proposals()
	if len(proposals) > 1 {
		o.Effort = planner.Quick
	}
	plans, offers := make([]*planner.Plan, len(proposals)), make([]offer, len(proposals))
	for k, of := range proposals {
		o.Strategy, o.Streams = of.Strategy, of.Streams
		plan, err := planner.New(ctx, l.graph, o)
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		offers[k].Same = k
		if err != nil {
			continue
		}
		plans[k] = plan
		for _, mode := range l.o.Modes {
			us, err := predictEach(l.graph, engine.Way{Plan: plan, Mode: mode, Threads: 1, Overlap: l.was.Overlap}, o.Machine, o.Profile)
			if err != nil { // the other ranks wait for an offer
				offers[k].US = nil
				break
			}
			offers[k].US = append(offers[k].US, us)
		}
		for j := range k {
			if plans[j] != nil && samePlan(plans[j], plan) {
				offers[k].Same = j
				break
			}
		}
	}
	all, err := asked(ctx, l, offers)
	if err != nil {
		return nil, err
	}
	var ways []Way
	for k := range proposals {
		same, possible, slowest := true, true, make([]float64, len(l.o.Modes))
		for _, other := range all {
			if len(other) != len(proposals) || len(other[k].US) != 0 && len(other[k].US) != len(slowest) {
				return nil, errors.New("the ranks do not learn with the same options")
			}
			for m, us := range other[k].US {
				slowest[m] = max(slowest[m], us)
			}
			same = same && other[k].Same == all[0][k].Same && other[k].Same != k
			possible = possible && len(other[k].US) > 0
		}
		if same || !possible {
			continue
		}
		for m, mode := range l.o.Modes {
			ways = append(ways, Way{Plan: plans[k], Mode: mode, Threads: 1, Overlap: l.was.Overlap, Predicted: slowest[m]})
		}
	}
	slices.SortStableFunc(ways, func(a, b Way) int { return cmp.Compare(a.Predicted, b.Predicted) })
	if len(ways) > 0 {
		least := hopeless * ways[0].Predicted
		ways = slices.DeleteFunc(ways, func(w Way) bool { return w.Predicted > least })
	}
	const fewest = 8 // replays in a round, which begins and ends with waiting for all ranks
	ways = ways[:min(mostTried, len(ways), max(2, l.left*3/4/(warmUp+rounds*fewest)))]
	slices.SortStableFunc(ways, func(a, b Way) int { return int(b.Mode) - int(a.Mode) })
	return ways, nil
}

// compareTogether times ways on all ranks; the slowest rank counts.
func (l *learner) compareTogether(ctx context.Context) error {
	l.report("plan with what was learned")
	ways, err := l.waysTogether(ctx)
	if err != nil {
		return err
	}
	share := l.left * 3 / 4 / max(1, len(ways))
	for k := range ways {
		d, err := l.decides(ctx, turn{perRound(share), l.over(inHeats)})
		if err != nil {
			return err
		}
		if l.left < warmUp+rounds || d.Over && len(l.learned.Ways) > 0 {
			break
		}
		l.report(engine.StageLearn)
		if err := l.try(ctx, &ways[k], d.Replays); err != nil {
			return err
		}
		if ways[k].Each.Count > 0 {
			l.learned.Ways = append(l.learned.Ways, ways[k])
		}
	}
	l.sort()
	if err := l.finals(ctx, 0, 1); err != nil {
		return err
	}
	l.sort()
	return nil
}
