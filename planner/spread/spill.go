// Spilling: where no plan of a graph fits in device memory, what is not needed for a while is copied to host memory and back.

package spread

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/internal/words"
	"github.com/dagrun/dagrun/planner"
	"github.com/dagrun/dagrun/planner/internal/placement"
	"github.com/dagrun/dagrun/planner/model"
	"github.com/dagrun/dagrun/planner/plan"
	proof "github.com/dagrun/dagrun/planner/proof/spread"
)

// Spill makes a graph that fits within Options.MemoryCap, or within what a device of the machine has, by copies to host memory and back.
// It returns nil if a plan of the graph fits as it is: nothing is ever spilled without need. The proof in planner/proof/spread has shown that the
// results are the same, bit by bit. Plan and run the Graph of the result like any other, with the result as planner.Options.Spread: then every plan
// fits.
//
// Errors match ErrCannotSpill, planner.ErrBadOption, or the context's error. An ErrCannotSpill also matches planner.ErrMemoryCap.
func Spill(ctx context.Context, g *dag.Graph, o Options) (*plan.Spread, error) {
	r, err := newRequest(ctx, g, o)
	if err != nil {
		return nil, err
	}
	s, err := newSpilling(r, asDeclared(g, o))
	if err != nil || s.limit == 0 {
		return nil, err
	}
	return s.made()
}

// SpillAt makes the graph of a placement, an order and residencies, as a plan file has them in At, Order and Spilled of a Spread. Without a
// placement, nodes run where the graph says; without an order, as declared.
func SpillAt(g *dag.Graph, o Options, recorded *plan.Spread) (*plan.Spread, error) {
	if recorded == nil {
		return nil, fmt.Errorf("%w: nothing says what is on the device when", ErrCannotSpill)
	}
	r, err := newRequest(context.Background(), g, o)
	if err != nil {
		return nil, err
	}
	base := asDeclared(g, o)
	if len(recorded.At) > 0 {
		if base, err = At(g, o, recorded.At); err != nil {
			return nil, err
		}
	}
	s, err := newSpilling(r, base)
	if err != nil {
		return nil, err
	}
	limit := int64(0)
	for _, a := range recorded.Spilled {
		if a.Lo < 0 || a.Hi < a.Lo || a.Offset < 0 || a.Offset > math.MaxInt64/2-a.Hi {
			return nil, fmt.Errorf("%w: a residency of bytes %d to %d at offset %d", ErrCannotSpill, a.Lo, a.Hi, a.Offset)
		}
		limit = max(limit, a.Offset+plan.AlignUp(a.Hi-a.Lo))
	}
	p, err := placement.NewSpillProblem(base.Graph, limit, s.keepOf(), s.rows())
	if err != nil {
		return nil, err
	}
	return s.take(p, recorded.Order, recorded.Spilled)
}

// asDeclared is a graph that is not placed anew.
func asDeclared(g *dag.Graph, o Options) *plan.Spread {
	return &plan.Spread{Graph: g, Devices: 1, Policy: placement.One, Requested: placement.One, Original: g.Hash(), Kept: slices.Clone(o.Keep)}
}

func newSpilling(r *request, base *plan.Spread) (*spilling, error) {
	s := &spilling{r: r, base: base}
	if _, err := marked(r.g, r.o.Keep); err != nil {
		return nil, err
	}
	return s, s.limits()
}

// keepOf marks the buffers of the base that are read after the last replay.
func (s *spilling) keepOf() []bool {
	keep := make([]bool, len(s.base.Graph.Buffers))
	for _, b := range s.keep {
		keep[b] = true
	}
	return keep
}

// rows are the bytes of the rows of the buffers of the base that the original uses in tiles, 0 for others. Those of a piece of few rows are
// not seen in the base.
func (s *spilling) rows() []int64 {
	rows := placement.Rows(s.r.g)
	if len(s.base.Buffers) == 0 {
		return rows
	}
	list := make([]int64, len(s.base.Buffers))
	for k, at := range s.base.Buffers {
		list[k] = rows[at.Buffer]
	}
	return list
}

// spilling is the state of Spill.
type spilling struct {
	r     *request
	base  *plan.Spread // the graph to spill: that of a placement, or the original without At
	limit int64
	keep  []dag.BufferID // of base.Graph
}

// limits finds how many bytes may be used of each device; 0: no limit is known.
func (s *spilling) limits() error {
	s.limit = s.r.o.MemoryCap
	if s.limit == 0 {
		s.limit = s.r.o.Machine.DeviceBytes
	}
	for k, at := range s.base.Buffers {
		if o := s.r.g.Buffers[at.Buffer].Name; slices.Contains(s.base.Kept, at.Buffer) && s.base.Graph.Buffers[k].Name == o {
			s.keep = append(s.keep, dag.BufferID(k))
		}
	}
	if len(s.base.Buffers) == 0 {
		s.keep = s.base.Kept
	}
	return s.r.ctx.Err()
}

// options are those that a graph of the search is planned with.
func (s *spilling) options(keep []dag.BufferID, effort planner.Effort) planner.Options {
	o := s.r.o.Options
	if !s.r.limited {
		o.Streams = 0
	}
	o.MemoryCap, o.Effort, o.Keep = s.limit, effort, keep
	return o
}

// made returns nil if a plan of the base fits, or else the best spilled graph.
func (s *spilling) made() (*plan.Spread, error) {
	if s.fits() {
		return nil, nil
	}
	refused := s.refused()
	switch {
	case refused == nil:
		return nil, nil
	case !errors.Is(refused, planner.ErrMemoryCap):
		return nil, refused
	case s.r.o.KeepAll:
		return nil, fmt.Errorf("every buffer is to have memory of its own, so spilling frees none: %w", refused)
	}
	best, err := s.search()
	if err != nil && errors.Is(err, ErrCannotSpill) {
		return nil, &cannotSpill{err, refused, s.smallest()}
	}
	return best, err
}

// refused is why no plan of the base fits; nil if one does. Where no plan can fit, none is made.
func (s *spilling) refused() error {
	o := s.options(s.keep, s.r.o.Effort)
	if err := planner.CheckMemory(s.r.ctx, s.base.Graph, o); err != nil {
		return err
	}
	_, err := planner.New(s.r.ctx, s.base.Graph, o)
	return err
}

// smallest finds the smallest limit with which the graph can be spilled or fits as it is, 0 if none is found.
func (s *spilling) smallest() int64 {
	p, err := placement.NewSpillProblem(s.base.Graph, math.MaxInt64, s.keepOf(), s.rows())
	if err != nil {
		return 0
	}
	const tries = 24 // each with a sixteenth more
	limit := max(plan.AlignUp(1), p.Least())
	for range tries {
		r := *s.r
		r.o.Effort = planner.Quick
		try := &spilling{r: &r, base: s.base, limit: limit, keep: s.keep}
		if _, err := try.search(); err == nil || try.refused() == nil { // where nodes use no device memory, there is nothing to spill
			return limit
		}
		limit += max(plan.AlignUp(1), plan.AlignUp(limit/16))
	}
	return 0
}

// cannotSpill joins the reason why spilling is not enough with why the graph does not fit as it is, and what would be enough.
type cannotSpill struct {
	why, refused error
	smallest     int64 // limit with which it can be spilled; 0: not known
}

func (e *cannotSpill) Error() string {
	text := e.why.Error()
	if e.smallest > 0 {
		text += "; the smallest memory cap that works is " + exactly(e.smallest)
	}
	return text + " (without spilling: " + e.refused.Error() + ")"
}

// exactly writes a size in the largest unit that it is a multiple of.
func exactly(bytes int64) string {
	unit := int64(1)
	for bytes%(unit<<10) == 0 && unit < 1<<40 {
		unit <<= 10
	}
	if unit == 1 {
		return words.Count(bytes, "byte", "bytes")
	}
	return fmt.Sprint(bytes/unit) + words.Bytes(unit)[len("1"):]
}

func (e *cannotSpill) Unwrap() []error { return []error{e.why, e.refused} }

// fits reports whether the buffers of every device fit side by side.
func (s *spilling) fits() bool {
	bytes := map[int32]int64{}
	for k := range s.base.Graph.Buffers {
		if b := &s.base.Graph.Buffers[k]; b.InArena() {
			if bytes[b.Device] += plan.AlignUp(b.Bytes); bytes[b.Device] > s.limit {
				return false
			}
		}
	}
	return true
}

// judgedSpill is a spilled graph with what its plan promises.
type judgedSpill struct {
	made      *plan.Spread
	us        float64
	everyPlan bool // that keeps the dependencies fits: what a node's memory is used for before and after follows from them
}

// plan plans a spilled graph.
func (s *spilling) plan(made *plan.Spread, effort planner.Effort) (*plan.Plan, error) {
	o := s.options(s.kept(made), effort)
	o.Spread = made
	return planner.New(s.r.ctx, made.Graph, o)
}

// liesAt reports whether all buffers of a plan lie at some offsets.
func liesAt(p *plan.Plan, offsets []int64) bool {
	return offsets != nil && !slices.ContainsFunc(p.Memory, func(m plan.Placement) bool { return m.Offset != offsets[m.Buffer] })
}

// search makes the graphs of the most promising ways, plans them, and keeps the fastest. Where none can be laid out within the limit, it aims
// for somewhat less.
func (s *spilling) search() (*plan.Spread, error) {
	times := s.r.durations
	if len(s.base.Buffers) > 0 {
		times = model.Durations(s.base.Graph, s.r.o.Machine, s.r.o.Profile)
	}
	var refused error
	for _, part := range []int64{64, 62, 60, 56, 48} {
		p, err := placement.NewSpillProblem(s.base.Graph, s.limit/64*part+s.limit%64*part/64, s.keepOf(), s.rows())
		if err != nil {
			return nil, err
		}
		candidates, err := placement.SpillCandidates(s.r.ctx, p, s.r.o.Machine, times, s.r.o.Effort)
		if err != nil {
			return nil, cmp.Or(refused, err)
		}
		var judged []judgedSpill
		for _, c := range candidates {
			made, err := s.take(p, c.Order, c.List)
			if err != nil {
				return nil, err
			}
			planned, err := s.plan(made, planner.Quick)
			if errors.Is(err, planner.ErrMemoryCap) {
				refused = fmt.Errorf("%w: no layout was found for what is on the device at once: %w", ErrCannotSpill, err)
				continue
			}
			if err != nil {
				return nil, err
			}
			judged = append(judged, judgedSpill{made, planned.Stats.MakespanUS, liesAt(planned, made.Offsets)})
			if s.base.Graph.Len() > mostSimulated {
				break
			}
		}
		slices.SortStableFunc(judged, func(a, b judgedSpill) int { return cmp.Compare(a.us, b.us) })
		for _, j := range judged {
			if j.everyPlan {
				return s.finish(j)
			}
			j.made.Offsets = nil
			if _, err := s.plan(j.made, s.r.o.Effort); err == nil { // as the plan that is run will be made
				return s.finish(j)
			} else if !errors.Is(err, planner.ErrMemoryCap) {
				return nil, err
			}
		}
	}
	return nil, refused
}

// kept returns the buffers of a spilled graph that are read after the last replay and have no copy in host memory.
func (s *spilling) kept(made *plan.Spread) []dag.BufferID {
	var list []dag.BufferID
	for k, at := range made.Buffers {
		if b := &made.Graph.Buffers[k]; b.InArena() && slices.Contains(s.base.Kept, at.Buffer) && b.Name == s.r.g.Buffers[at.Buffer].Name {
			list = append(list, dag.BufferID(k))
		}
	}
	return list
}

// take makes and proves the graph of a way to spill.
func (s *spilling) take(p *placement.SpillProblem, order []dag.NodeID, list []plan.Residency) (*plan.Spread, error) {
	p, err := p.Ordered(order)
	if err != nil {
		return nil, err
	}
	made, err := placement.Spill(p, list)
	if err != nil {
		return nil, err
	}
	joined := *s.base
	joined.Graph, joined.Nodes, joined.Buffers, joined.Spilled, joined.Order = made.Graph, made.Nodes, made.Buffers, made.Spilled, made.Order
	joined.Offsets, joined.MemoryCap = made.Offsets, s.limit
	joined.Stats.Spills, joined.Stats.Reloads, joined.Stats.SpilledBytes = made.Stats.Spills, made.Stats.Reloads, made.Stats.SpilledBytes
	if len(s.base.At) > 0 { // parts of the pieces that the placement made
		for k, at := range joined.Buffers {
			piece := s.base.Buffers[at.Buffer]
			joined.Buffers[k] = plan.Piece{Buffer: piece.Buffer, Lo: piece.Lo + at.Lo}
		}
		for k, from := range joined.Nodes {
			if from != plan.Inserted {
				joined.Nodes[k] = s.base.Nodes[from]
			}
		}
	} else {
		joined.Devices, joined.Bodies = made.Devices, made.Bodies
	}
	if err := proof.Verify(s.r.g, &joined); err != nil {
		return nil, fmt.Errorf("planner: the spilled graph is wrong: %w", err)
	}
	return &joined, s.r.ctx.Err()
}

// finish compares with a device that has enough memory.
func (s *spilling) finish(j judgedSpill) (*plan.Spread, error) {
	o := s.options(s.keep, planner.Quick)
	o.MemoryCap = 0
	p, err := planner.New(s.r.ctx, s.base.Graph, o)
	if err != nil {
		return nil, err
	}
	j.made.Stats.UnspilledUS = p.Stats.MakespanUS
	return j.made, nil
}
