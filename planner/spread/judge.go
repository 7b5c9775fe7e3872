// Judging placements: the graph of one is made, proved and planned.

package spread

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/planner"
	"github.com/dagrun/dagrun/planner/internal/place"
	"github.com/dagrun/dagrun/planner/internal/placement"
	"github.com/dagrun/dagrun/planner/plan"
	proof "github.com/dagrun/dagrun/planner/proof/spread"
)

// spreading is the state of New.
type spreading struct {
	ctx     context.Context
	r       *request
	problem *placement.Problem
	policy  string
	limit   int64 // bytes of a device; 0: none

	candidates []placement.Candidate // the most promising first
}

func newSpreading(ctx context.Context, g *dag.Graph, o Options) (*spreading, error) {
	r, err := newRequest(ctx, g, o)
	if err != nil {
		return nil, err
	}
	s := &spreading{ctx: ctx, r: r, policy: o.Policy, limit: o.MemoryCap}
	if s.policy == "" {
		s.policy = placement.Auto
	}
	if !slices.Contains(placement.Names(), s.policy) {
		return nil, fmt.Errorf("unknown policy %q: the policies are %s: %w", s.policy, strings.Join(placement.Names(), ", "), place.ErrBadOption)
	}
	if s.limit == 0 {
		s.limit = r.o.Machine.DeviceBytes
	}
	keep, err := marked(g, o.Keep)
	if err != nil {
		return nil, err
	}
	s.problem, err = placement.NewProblem(g, max(1, o.Devices), keep)
	return s, err
}

// take makes and proves the graph of a placement.
func (s *spreading) take(c *placement.Candidate) (*plan.Spread, error) {
	made, err := placement.Transform(s.problem, c.At)
	if err != nil {
		return nil, err
	}
	made.Policy, made.Requested, made.Kept = c.Policy, s.policy, slices.Clone(s.r.o.Keep)
	if err := proof.Verify(s.r.g, made); err != nil {
		return nil, fmt.Errorf("planner: the %s spread is wrong: %w", c.Policy, err)
	}
	return made, s.ctx.Err()
}

// judgedSpread is a graph over several devices with what its plan promises.
type judgedSpread struct {
	made *plan.Spread
	us   float64
	peak int64

	streams int // that its kernels use on a device
}

// judge makes the graph of a candidate and plans it with some effort.
func (s *spreading) judge(c *placement.Candidate, effort planner.Effort) (*judgedSpread, error) {
	made, err := s.take(c)
	if err != nil {
		return nil, err
	}
	p, err := s.plan(made, effort)
	if err != nil {
		return nil, err
	}
	return &judgedSpread{made, p.Stats.MakespanUS, peakOf(p), max(1, place.Computing(made.Graph, p))}, nil
}

// compareSpreads puts the shorter time by the model first, then fewer copies, then one device.
func compareSpreads(a, b judgedSpread) int {
	if near := 1e-9 * b.us; a.us < b.us-near || a.us > b.us+near {
		return cmp.Compare(a.us, b.us)
	}
	if c := cmp.Compare(a.made.Stats.Copies, b.made.Stats.Copies); c != 0 {
		return c
	}
	one := func(j judgedSpread) int {
		if j.made.Policy == placement.One {
			return 0
		}
		return 1
	}
	return one(a) - one(b)
}

// plan plans a graph over several devices with some effort, and refuses one that a device has too little memory for.
func (s *spreading) plan(made *plan.Spread, effort planner.Effort) (*plan.Plan, error) {
	o := s.r.o
	if !s.r.limited {
		o.Streams = 0
	}
	o.Keep, o.Effort = nil, effort
	p, err := planner.New(s.ctx, made.Graph, o.Options)
	if err != nil {
		return nil, err
	}
	if most := peakOf(p); s.limit > 0 && most > s.limit {
		return nil, fmt.Errorf("a device needs %d bytes, and has %d: %w", most, s.limit, planner.ErrMemoryCap)
	}
	return p, nil
}

// peakOf returns the bytes that the device needs which needs the most.
func peakOf(p *plan.Plan) int64 {
	most := int64(0)
	for _, m := range p.Memory {
		most = max(most, m.Offset+m.Bytes)
	}
	return most
}
