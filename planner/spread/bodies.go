// Spreading loops and branches: each as one unit of placement first, then with its nodes on several devices where that is faster.

package spread

import (
	"errors"
	"slices"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/planner"
	"github.com/dagrun/dagrun/planner/internal/placement"
)

// Nodes is how many nodes At places: those of a graph, and those of the bodies of its loops and branches.
func Nodes(g *dag.Graph) int {
	n := 0
	g.EachGraph(func(g *dag.Graph, _ []string) { n += g.Len() })
	return n
}

// expand gives the nodes of bodies their devices. Every policy but auto places them as it places the others; auto has those placements among its
// own.
func (s *spreading) expand() error {
	for k := range s.candidates {
		s.candidates[k].At = s.problem.Expand(s.candidates[k].At)
	}
	d := s.divider()
	loops := d.Divisible()
	if len(loops) == 0 {
		return nil
	}
	if s.policy != placement.Auto {
		return s.dividedBy(d, loops, &s.candidates[0])
	}
	for _, policy := range placement.Names()[1:] {
		named, err := placement.Candidates(s.ctx, s.problem, s.r.o.Machine, s.r.durations, s.r.o.Streams, policy, s.r.o.Effort)
		if err != nil {
			return err
		}
		c := placement.Candidate{Policy: policy, At: s.problem.Expand(named[0].At)}
		if err := s.dividedBy(d, loops, &c); err != nil {
			return err
		}
		if !slices.ContainsFunc(s.candidates, func(o placement.Candidate) bool { return slices.Equal(o.At, c.At) }) {
			s.candidates = append(s.candidates, c)
		}
	}
	return nil
}

// dividedBy places the nodes of bodies by the policy of a placement.
func (s *spreading) dividedBy(d *placement.Divider, loops []dag.NodeID, c *placement.Candidate) error {
	for _, i := range loops {
		divided, err := d.Divide(s.ctx, c.At, i, c.Policy)
		if err != nil {
			return err
		}
		c.At = divided[0]
	}
	return nil
}

func (s *spreading) divider() *placement.Divider {
	return placement.NewDivider(s.problem, s.r.o.Machine, s.r.o.Profile, s.r.o.Streams, s.r.o.Effort)
}

// mostLoops is how many loops and branches are tried with their nodes on several devices.
const mostLoops = 16

// divided judges placements in which the nodes of a loop or branch are on several devices, one loop or branch after the other, and returns those
// that are better than what was the best before, or that fit where nothing else did.
func (s *spreading) divided(judged []judgedSpread) ([]judgedSpread, error) {
	d := s.divider()
	at := s.candidates[0].At
	var best *judgedSpread
	for k := range judged {
		if best == nil || compareSpreads(judged[k], *best) < 0 {
			best = &judged[k]
			at = best.made.At
		}
	}
	var found []judgedSpread
	list := d.Divisible()
	for _, i := range list[:min(mostLoops, len(list))] {
		divided, err := d.Divide(s.ctx, at, i, placement.Auto)
		if err != nil {
			return nil, err
		}
		for _, try := range divided {
			j, err := s.judge(&placement.Candidate{Policy: placement.Auto, At: try}, planner.Quick)
			if errors.Is(err, planner.ErrMemoryCap) {
				continue
			}
			if err != nil {
				return nil, err
			}
			if best == nil || compareSpreads(*j, *best) < 0 {
				best, at = j, try
				found = append(found, *j)
			}
		}
	}
	return found, nil
}
