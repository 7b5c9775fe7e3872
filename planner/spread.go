// Spreading a graph over several devices: makes placements, transforms the graph, proves the result and keeps the fastest.

package planner

import (
	"context"
	"errors"
	"io"
	"slices"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/planner/internal/spread"
	"github.com/dagrun/dagrun/planner/plan"
	spreadproof "github.com/dagrun/dagrun/planner/proof/spread"
)

// A graph over several devices, made from one that was declared.
type (
	Spread      = plan.Spread
	SpreadTry   = plan.SpreadTry
	SpreadStats = plan.SpreadStats
	Piece       = plan.Piece
)

// Inserted is the original of a node that SpreadGraph inserted: a copy between devices.
const Inserted = plan.Inserted

var (
	// ErrSpread is matched by the error for a graph over several devices that does something else than the original.
	ErrSpread = spreadproof.ErrWrong
	// ErrCannotSpread is matched by the error for a graph that cannot be spread.
	ErrCannotSpread = spread.ErrCannot
)

// SpreadPolicies lists the names that Options.Spread accepts.
func SpreadPolicies() []string { return spread.Names() }

// placed chooses a placement.
func (s *spreading) placed(ctx context.Context) (*Spread, error) {
	var err error
	s.candidates, err = spread.Candidates(ctx, s.problem, s.r.o.Machine, s.r.durations, s.r.o.Streams, s.policy, s.r.o.Effort)
	if err == nil {
		err = s.expand()
	}
	if err != nil {
		return nil, err
	}
	if len(s.candidates) == 1 && !s.r.g.HasControl() || s.policy != spread.Auto {
		return s.take(&s.candidates[0])
	}
	return s.choose(s.candidates)
}

// SpreadAt makes the graph of a placement: a device for every node, and then for those of each body of a loop or branch in the order of EachGraph.
func SpreadAt(g *dag.Graph, o Options, at []int32) (*Spread, error) {
	s, err := newSpreading(context.Background(), g, o)
	if err != nil {
		return nil, err
	}
	return s.take(&spread.Candidate{Policy: s.policy, At: at})
}

// DecodeSpread reads from the JSON of a plan how its graph was spread; see [plan.DecodeSpread]. SpreadAt makes the graph again.
func DecodeSpread(r io.Reader) (*Spread, error) { return plan.DecodeSpread(r) }

// VerifySpread proves a graph over several devices; see [spreadproof.Verify].
func VerifySpread(original *dag.Graph, s *Spread) error { return spreadproof.Verify(original, s) }

// mostSimulated is the size of the largest graph for which all candidates are planned and simulated.
const mostSimulated = 2_000

// choose plans and simulates candidates, the most promising first, and keeps the fastest. All are planned with little effort first; the best are
// improved, and all that come near them and the one that stays on one device then planned with all that was asked for.
func (s *spreading) choose(candidates []spread.Candidate) (*Spread, error) {
	if s.r.g.Len() > mostTried {
		if made, err := s.take(&candidates[0]); err != nil || s.fits(made) {
			return made, err
		}
	}
	if s.r.g.Len() > mostSimulated {
		candidates = fewest(candidates)
	}
	var judged []judgedSpread
	var tries []SpreadTry
	var refused error
	thorough := s.r.o.Effort > Quick && s.r.g.Len() <= mostSimulated
	for k := range candidates {
		j, err := s.judge(&candidates[k], Quick)
		if thorough && errors.Is(err, ErrMemoryCap) { // more effort may make it fit
			j, err = s.judge(&candidates[k], s.r.o.Effort)
		}
		if err != nil && !errors.Is(err, ErrMemoryCap) {
			return nil, err
		}
		if err != nil {
			tries = append(tries, SpreadTry{Policy: candidates[k].Policy, Refused: err.Error()})
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
			if made := judged[k].made; judged[k].us <= most || made.Policy == spread.One || made.Policy != spread.Auto && !s.fits(made) {
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
		tries = append(tries, SpreadTry{Policy: j.made.Policy, Copies: j.made.Stats.Copies, Bytes: j.made.Stats.Bytes, MakespanUS: j.us, PeakBytes: j.peak})
		if j.made.Policy == spread.One {
			best.Stats.OneUS = j.us
		}
	}
	best.Stats.Tried = tries
	return best, nil
}

// fits reports whether the buffers of every device fit side by side.
func (s *spreading) fits(made *Spread) bool {
	bytes := make([]int64, made.Devices)
	for k := range made.Graph.Buffers {
		if b := &made.Graph.Buffers[k]; b.InArena() {
			bytes[b.Device] += plan.AlignUp(b.Bytes)
		}
	}
	return s.limit == 0 || slices.Max(bytes) <= s.limit
}

// CompareSpreads plans and simulates what each policy makes of a graph. A policy whose placement cannot be planned has Refused set.
func CompareSpreads(ctx context.Context, g *dag.Graph, o Options) ([]SpreadTry, error) {
	var tries []SpreadTry
	for _, policy := range spread.Names() {
		o.Spread = policy
		s, err := newSpreading(ctx, g, o)
		if err != nil {
			return nil, err
		}
		made, err := s.placed(ctx)
		try := SpreadTry{Policy: policy}
		var p *Plan
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
func fewest(candidates []spread.Candidate) []spread.Candidate {
	list := slices.Clone(candidates[:min(2, len(candidates))])
	for _, c := range candidates[len(list):] {
		if c.Policy == spread.One {
			list = append(list, c)
		}
	}
	return list
}

// refining is how many nodes may be planned and simulated to improve one placement, and how many changes are tried at most, by effort.
var refining = [...]struct{ steps, changes int }{Quick: {}, Normal: {40_000, 300}, Thorough: {2_000_000, 10_000}}

// refine changes the placements of the best few candidates as long as a plan that takes little time to make gets shorter, and returns what is
// better than before.
func (s *spreading) refine(judged []judgedSpread) ([]judgedSpread, error) {
	const most, memory = 2, 20
	n := s.r.g.Len()
	var found []judgedSpread
	for k := range judged[:min(most, len(judged))] {
		from := &judged[k]
		changer := spread.NewChanger(s.problem, s.r.o.Machine, s.r.durations, s.r.o.Streams)
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
		j, err := s.judge(&spread.Candidate{Policy: spread.Auto, At: best}, Quick)
		if err == nil {
			found = append(found, *j)
		}
	}
	return found, s.ctx.Err()
}

// simulated predicts a placement planned with list, and lists the nodes of the original that its end waited for.
func (s *spreading) simulated(at []int32, streams int) (us float64, critical []int32, err error) {
	made, err := spread.Transform(s.problem, at)
	if err != nil {
		return 0, nil, err
	}
	o := s.r.o
	o.Keep, o.Strategy = nil, "list"
	r, err := newRequest(s.ctx, made.Graph, o)
	if err != nil {
		return 0, nil, err
	}
	p, err := r.planWith(candidate{strategy: "list", streams: streams})
	if err != nil {
		return 0, nil, err
	}
	t, err := Simulate(made.Graph, p, r.o.Machine, s.r.o.Profile)
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
		if from := made.Nodes[i]; from != Inserted {
			critical = append(critical, int32(from))
		}
	}
	return t.MakespanUS, critical, s.ctx.Err()
}
