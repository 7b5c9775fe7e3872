// Improves a placement under the simulator, which knows what the estimate of the search leaves out.

package planner

import (
	"slices"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/planner/internal/spread"
)

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
		now, try := slices.Clone(best), make([]int32, n)
		history := slices.Repeat([]float64{us}, memory)
		for change, end := 0, min(refining[s.r.o.Effort].steps/max(1, n), refining[s.r.o.Effort].changes); change < end; change++ {
			copy(try, now)
			if !changer.Change(try, critical) {
				break
			}
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
		j, err := s.judge(&spread.Candidate{Policy: spread.Auto, At: best})
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
