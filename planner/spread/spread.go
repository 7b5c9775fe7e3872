// Spreading a graph over several devices: makes placements, transforms the graph, proves the result and keeps the fastest.

package spread

import (
	"context"
	"errors"
	"io"
	"slices"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/planner"
	"github.com/dagrun/dagrun/planner/internal/place"
	"github.com/dagrun/dagrun/planner/internal/placement"
	"github.com/dagrun/dagrun/planner/model"
	"github.com/dagrun/dagrun/planner/plan"
)

// placed chooses a placement.
func (s *spreading) placed(ctx context.Context) (*plan.Spread, error) {
	var err error
	s.candidates, err = placement.Candidates(ctx, s.problem, s.r.o.Machine, s.r.durations, s.r.o.Streams, s.policy, s.r.o.Effort)
	if err == nil {
		err = s.expand()
	}
	if err != nil {
		return nil, err
	}
	if len(s.candidates) == 1 && !s.r.g.HasControl() || s.policy != placement.Auto {
		return s.take(&s.candidates[0])
	}
	return s.choose(s.candidates)
}

// At makes the graph of a placement: a device for every node, and then for those of each body of a loop or branch in the order of EachGraph.
func At(g *dag.Graph, o Options, at []int32) (*plan.Spread, error) {
	s, err := newSpreading(context.Background(), g, o)
	if err != nil {
		return nil, err
	}
	return s.take(&placement.Candidate{Policy: s.policy, At: at})
}

// Decode reads from the JSON of a plan how its graph was spread; see [plan.DecodeSpread]. At and SpillAt make the graph again.
func Decode(r io.Reader) (*plan.Spread, error) { return plan.DecodeSpread(r) }

// mostChosen is the size of the largest graph for which placements are compared if the first fits.
const mostChosen = 20_000

// mostSimulated is the size of the largest graph for which all candidates are planned and simulated.
const mostSimulated = 2_000

// choose plans and simulates candidates, the most promising first, and keeps the fastest. All are planned with little effort first; the best are
// improved, and all that come near them and the one that stays on one device then planned with all that was asked for.
func (s *spreading) choose(candidates []placement.Candidate) (*plan.Spread, error) {
	if s.r.g.Len() > mostChosen {
		if made, err := s.take(&candidates[0]); err != nil || s.fits(made) {
			return made, err
		}
	}
	if s.r.g.Len() > mostSimulated {
		candidates = fewest(candidates)
	}
	var judged []judgedSpread
	var tries []plan.SpreadTry
	var refused error
	thorough := s.r.o.Effort > planner.Quick && s.r.g.Len() <= mostSimulated
	for k := range candidates {
		j, err := s.judge(&candidates[k], planner.Quick)
		if thorough && errors.Is(err, planner.ErrMemoryCap) { // more effort may make it fit
			j, err = s.judge(&candidates[k], s.r.o.Effort)
		}
		if err != nil && !errors.Is(err, planner.ErrMemoryCap) {
			return nil, err
		}
		if err != nil {
			tries = append(tries, plan.SpreadTry{Policy: candidates[k].Policy, Refused: err.Error()})
			refused = err
			continue
		}
		judged = append(judged, *j)
	}
	better, err := s.divided(judged)
	if err != nil {
		return nil, err
	}
	if judged = append(judged, better...); len(judged) == 0 {
		return nil, refused
	}
	slices.SortStableFunc(judged, compareSpreads)
	if thorough {
		better, err := s.refine(judged)
		if err != nil {
			return nil, err
		}
		judged = append(judged, better...)
		slices.SortStableFunc(judged, compareSpreads)
		// More effort can make of a good placement what it makes of no better one, so all that come near are planned with it, and those of
		// policies for which memory is scarce: it can shorten their plans much.
		const near = 1.25
		for k, most := 0, near*judged[0].us; k < len(judged); k++ {
			if made := judged[k].made; judged[k].us <= most || made.Policy == placement.One || made.Policy != placement.Auto && !s.fits(made) {
				p, err := s.plan(judged[k].made, s.r.o.Effort)
				if err != nil {
					return nil, err
				}
				judged[k].us, judged[k].peak = p.Stats.MakespanUS, peakOf(p)
			}
		}
		slices.SortStableFunc(judged, compareSpreads)
	}
	best := judged[0].made
	for _, j := range judged {
		tries = append(tries, plan.SpreadTry{Policy: j.made.Policy, Copies: j.made.Stats.Copies, Bytes: j.made.Stats.Bytes, MakespanUS: j.us, PeakBytes: j.peak})
		if j.made.Policy == placement.One {
			best.Stats.OneUS = j.us
		}
	}
	best.Stats.Tried = tries
	return best, nil
}

// fits reports whether the buffers of every device fit side by side.
func (s *spreading) fits(made *plan.Spread) bool {
	bytes := make([]int64, made.Devices)
	for k := range made.Graph.Buffers {
		if b := &made.Graph.Buffers[k]; b.InArena() {
			bytes[b.Device] += plan.AlignUp(b.Bytes)
		}
	}
	return s.limit == 0 || slices.Max(bytes) <= s.limit
}

// Compare plans and simulates what each policy makes of a graph. A policy whose placement cannot be planned has Refused set.
func Compare(ctx context.Context, g *dag.Graph, o Options) ([]plan.SpreadTry, error) {
	var tries []plan.SpreadTry
	for _, policy := range placement.Names() {
		o.Policy = policy
		s, err := newSpreading(ctx, g, o)
		if err != nil {
			return nil, err
		}
		made, err := s.placed(ctx)
		try := plan.SpreadTry{Policy: policy}
		var p *plan.Plan
		if err == nil {
			try.Copies, try.Bytes = made.Stats.Copies, made.Stats.Bytes
			p, err = s.plan(made, s.r.o.Effort)
		}
		switch {
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case err != nil:
			try.Refused = err.Error()
		default:
			try.MakespanUS, try.PeakBytes = p.Stats.MakespanUS, peakOf(p)
		}
		tries = append(tries, try)
	}
	return tries, nil
}

// fewest leaves the two best candidates by estimate, and the one that stays on one device.
func fewest(candidates []placement.Candidate) []placement.Candidate {
	list := slices.Clone(candidates[:min(2, len(candidates))])
	for _, c := range candidates[len(list):] {
		if c.Policy == placement.One {
			list = append(list, c)
		}
	}
	return list
}

// refining is how many nodes may be planned and simulated to improve one placement, and how many changes are tried at most, by effort.
var refining = [...]struct{ steps, changes int }{planner.Quick: {}, planner.Normal: {40_000, 300}, planner.Thorough: {2_000_000, 10_000}}

// refine changes the placements of the best few candidates as long as a plan that takes little time to make gets shorter, and returns what is
// better than before.
func (s *spreading) refine(judged []judgedSpread) ([]judgedSpread, error) {
	const most, memory = 2, 20
	n := s.r.g.Len()
	var found []judgedSpread
	for k := range judged[:min(most, len(judged))] {
		from := &judged[k]
		changer := placement.NewChanger(s.problem, s.r.o.Machine, s.r.durations, s.r.o.Streams)
		us, critical, err := s.simulated(from.made.At, from.streams)
		if err != nil {
			return nil, err
		}
		first := us
		best, bestUS := slices.Clone(from.made.At), us
		now, try := slices.Clone(best), make([]int32, len(best))
		history := slices.Repeat([]float64{us}, memory)
		for change, end := 0, min(refining[s.r.o.Effort].steps/max(1, n), refining[s.r.o.Effort].changes); change < end; change++ {
			copy(try, now)
			if !changer.Change(try[:n], critical) {
				break
			}
			s.problem.Follow(try, now)
			if slices.Equal(try, now) {
				continue
			}
			new, path, err := s.simulated(try, from.streams)
			if err != nil {
				return nil, err
			}
			if old := &history[change%memory]; new <= *old || new <= us {
				now, try, us, critical = try, now, new, path
				*old = us
				if us < bestUS {
					bestUS = us
					copy(best, now)
				}
			}
		}
		if bestUS >= first {
			continue
		}
		j, err := s.judge(&placement.Candidate{Policy: placement.Auto, At: best}, planner.Quick)
		if err == nil {
			found = append(found, *j)
		}
	}
	return found, s.ctx.Err()
}

// simulated predicts a placement planned with list, and lists the nodes of the original that its end waited for.
func (s *spreading) simulated(at []int32, streams int) (us float64, critical []int32, err error) {
	made, err := placement.Transform(s.problem, at)
	if err != nil {
		return 0, nil, err
	}
	p, err := s.listed(made.Graph, streams)
	if err != nil {
		return 0, nil, err
	}
	t, err := planner.Simulate(made.Graph, p, s.r.o.Machine, s.r.o.Profile)
	if err != nil {
		return 0, nil, err
	}
	last := dag.NodeID(-1)
	for i := range t.Nodes {
		if last < 0 || t.Nodes[i].End > t.Nodes[last].End {
			last = dag.NodeID(i)
		}
	}
	for i := last; i >= 0 && len(critical) < len(t.Nodes); i = t.Nodes[i].By {
		if from := made.Nodes[i]; from != plan.Inserted {
			critical = append(critical, int32(from))
		}
	}
	return t.MakespanUS, critical, s.ctx.Err()
}

// listed plans a graph with list, without memory layout and predictions.
func (s *spreading) listed(g *dag.Graph, streams int) (*plan.Plan, error) {
	if err := g.Check(); err != nil {
		return nil, err
	}
	o := &s.r.o
	problem, err := place.NewProblem(s.ctx, g, o.Machine, model.Durations(g, o.Machine, o.Profile), streams)
	if err != nil {
		return nil, err
	}
	a, err := place.List(problem, false)
	if err != nil {
		return nil, err
	}
	p := &plan.Plan{Name: g.Name, Strategy: "list", Requested: "list", Machine: o.Machine.Name}
	err = place.Finish(problem, a, o.SingleUseEvents, p)
	a.Release()
	problem.Release()
	return p, err
}
