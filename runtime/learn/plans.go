// Which plans are compared, and in which ways they are replayed.

package learn

import (
	"cmp"
	"context"
	"math"
	goruntime "runtime"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/dagrun/dagrun/planner"
)

// candidates returns the plans to try, each as a graph and as streams: what earlier runs found best, and then the most promising. Later runs that
// must not replay more often than they were asked to compare no others.
func (l *learner) candidates(ctx context.Context) (*field, error) {
	if l.o.Runs > 0 && l.o.Extra == 0 {
		return &field{ways: slices.Clone(l.o.Ways), first: len(l.o.Ways)}, nil
	}
	plans, awaited, err := l.plans(ctx)
	f := &field{awaited: awaited}
	if err != nil {
		return f, err
	}
	ways, err := l.waysOf(plans...)
	if err != nil {
		return f, err
	}
	l.possible = slices.Clone(ways)
	f.ways, f.first = slices.Clone(l.o.Ways), len(l.o.Ways)
	ways = slices.DeleteFunc(ways, func(w Way) bool {
		return slices.ContainsFunc(f.ways, w.same) || slices.Contains(l.o.Seen, w.print())
	})
	f.ways = append(f.ways, l.promising(ways)...)
	return f, nil
}

// promising leaves out what is predicted to be much slower than the best, unless learning is thorough.
func (l *learner) promising(ways []Way) []Way {
	best := math.Inf(1)
	for k := range ways {
		best = min(best, ways[k].Predicted)
	}
	slices.SortStableFunc(ways, func(a, b Way) int { return cmp.Compare(a.Predicted, b.Predicted) })
	if !l.o.Thorough {
		k := 0
		ways = slices.DeleteFunc(ways, func(w Way) bool {
			k++
			return k > mostTried || w.Predicted > hopeless*best && k > 4
		})
	}
	return ways
}

// limited asks for the plans of strategies, each with some limits of streams, except cover, which takes as many as it needs.
func limited(o planner.Options, strategies ...string) (asked []planner.Options) {
	given, most := o.Streams, o.Streams
	if most == 0 {
		most = 8
	}
	for _, o.Strategy = range strategies {
		if o.Streams = given; o.Strategy == "cover" {
			asked = append(asked, o)
			continue
		}
		for o.Streams = most; o.Streams >= 1; o.Streams /= 2 {
			asked = append(asked, o)
		}
	}
	return asked
}

// plans makes different plans of the graph side by side, with the learned durations and with those that were known before. On a device of its own,
// replays are timed while auto looks for a better plan; on the CPU device, that would disturb them.
func (l *learner) plans(ctx context.Context) ([]*planner.Plan, *awaitedPlan, error) {
	o := l.o.Plan
	o.Profile = l.learned.Profile
	o.SingleUseEvents = o.SingleUseEvents || l.singleUse()
	several := (o.Strategy == "auto" || o.Strategy == "") && l.graph.Len() <= largestTried
	var asked []planner.Options
	var awaited *awaitedPlan
	if several && l.platform.Name() != "cpu" && !l.o.Thorough {
		awaited = l.await(ctx, o)
	} else {
		asked = append(asked, o)
	}
	if several {
		if !l.o.Thorough {
			o.Effort = planner.Quick
		}
		asked = append(asked, limited(o, "list", "cover", "serial", "roundrobin", "heft")...)
		o.Profile = l.known // nodes that were measured alone may take other times side by side
		asked = append(asked, limited(o, "list", "cover", "heft")...)
	}
	made := make([]*planner.Plan, len(asked))
	var group errgroup.Group
	group.SetLimit(goruntime.GOMAXPROCS(0))
	for k := range asked {
		group.Go(func() (err error) {
			if made[k], err = planner.New(ctx, l.graph, asked[k]); k > 0 || awaited != nil {
				return nil // a strategy that refuses the graph is not tried
			}
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, awaited, err
	}
	if ctx.Err() != nil {
		return nil, awaited, context.Cause(ctx)
	}
	var plans []*planner.Plan
	for _, plan := range made {
		if plan != nil && !slices.ContainsFunc(plans, func(other *planner.Plan) bool { return samePlan(other, plan) }) {
			plans = append(plans, plan)
		}
	}
	return plans, awaited, nil
}
