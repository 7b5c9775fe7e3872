// The memory cap: searches for a layout that fits, then for plans that run less at once. If no plan fits, the error tells how much memory is
// missing and what was proved.

package planner

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/internal/words"
	"github.com/dagrun/dagrun/planner/internal/layout"
	"github.com/dagrun/dagrun/planner/internal/place"
	"github.com/dagrun/dagrun/planner/plan"
)

// ErrMemoryCap is matched by every *MemoryCapError.
var ErrMemoryCap = errors.New("memory cap exceeded")

// MemoryCapError is returned if no plan was found that fits Options.MemoryCap.
type MemoryCapError struct {
	Device   int32
	Cap      int64
	Proof    CapProof
	Needed   int64      // bytes that the device needs in the plan that came closest; with AnyPlan, in every plan at least
	Node     dag.NodeID // the node at which the most bytes are alive; -1 if all of them are kept
	NodeName string
	Live     []plan.LiveBuffer // the buffers that are alive there, the largest first
}

// CapProof tells what a MemoryCapError proves.
type CapProof uint8

const (
	// NotFound: no layout that fits was found, and none was proved impossible.
	NotFound CapProof = iota
	// TriedPlans: none of the plans that were tried can fit, however their buffers are placed. Other plans may fit.
	TriedPlans
	// AnyPlan: no plan of this graph fits.
	AnyPlan
)

// mostListed is how many buffers the message names; Live has all of them.
const mostListed = 8

// Error names the device, what is missing, what is alive at the peak and what was proved.
func (e *MemoryCapError) Error() string {
	var text strings.Builder
	fmt.Fprintf(&text, "device %d needs ", e.Device)
	if e.Proof == AnyPlan {
		text.WriteString("at least ")
	}
	fmt.Fprintf(&text, "%s, %s more than the memory cap of %s", words.Bytes(e.Needed), words.Bytes(e.Needed-e.Cap), words.Bytes(e.Cap))
	if e.Proof == AnyPlan {
		text.WriteString(", in every plan")
	}
	text.WriteString("; alive at once")
	if e.Node >= 0 {
		fmt.Fprintf(&text, " at %q", e.NodeName)
	}
	for k, b := range e.Live {
		if k == mostListed {
			fmt.Fprintf(&text, " and %d more", len(e.Live)-k)
			break
		}
		fmt.Fprintf(&text, "%s %q (%s", map[bool]string{true: ":", false: ","}[k == 0], b.Name, words.Bytes(b.Bytes))
		if b.Kept {
			text.WriteString(", kept throughout")
		}
		text.WriteString(")")
	}
	switch e.Proof {
	case NotFound:
		text.WriteString("; this was not proved: more effort may find a layout that fits")
	case TriedPlans:
		text.WriteString("; no plan that was tried can fit, but others may")
	}
	return text.String()
}

// Is makes errors.Is(err, ErrMemoryCap) true.
func (e *MemoryCapError) Is(target error) bool { return target == ErrMemoryCap }

// CheckMemory returns a [MemoryCapError] if no plan of a graph can fit the memory cap of the options. It makes no plan, so where it returns nil,
// [New] may still find none.
func CheckMemory(ctx context.Context, g *dag.Graph, o Options) error {
	r, err := newRequest(ctx, g, o)
	if err != nil || r.o.MemoryCap == 0 {
		return err
	}
	kept, err := keptBy(r.g, r.o)
	if err != nil {
		return err
	}
	return r.checkLeast(kept)
}

// checkLeast refuses a cap that is too low for every plan.
func (r *request) checkLeast(kept []bool) error {
	least, err := layout.Least(r.g, kept)
	if err != nil {
		return err
	}
	if slices.ContainsFunc(least, func(p plan.Peak) bool { return p.Arena > r.o.MemoryCap }) {
		return r.refuse(least, AnyPlan)
	}
	return nil
}

// cappedSearch is the size of the largest graph for which all ways to fit are tried. Larger graphs take the first plan that fits.
const cappedSearch = 20_000

// capSteps limits the search for layouts that fit, over all plans that are tried. A step takes about eight nanoseconds.
func capSteps(e Effort) int64 {
	switch e {
	case Normal:
		return 1_000_000_000
	case Thorough:
		return 4_000_000_000
	default:
		return 20_000_000
	}
}

// firstDivisor is the fraction of those steps that the plan made without a cap gets before slower plans are tried.
const firstDivisor = 16

// capped is the search for a plan that fits a memory cap.
type capped struct {
	r       *request
	kept    []bool
	tried   []*Plan
	best    *Plan   // of those that fit, the fastest
	closest *Plan   // the one that needs the least memory
	open    []*Plan // those that may fit, in the order they were made
	steps   int64   // steps left
}

// fitMemory returns the plan if it fits the cap. Otherwise it returns the best plan that it finds by a longer search for a layout, with fewer
// streams, or with an order that keeps few bytes alive, on as many streams as fit.
func (r *request) fitMemory(p *place.Problem, first *Plan) (*Plan, error) {
	limit := r.o.MemoryCap
	if limit <= 0 || overCap(first, limit) == 0 {
		return first, nil
	}
	kept, err := keptBy(r.g, r.o)
	if err != nil {
		return nil, err
	}
	if err := r.checkLeast(kept); err != nil {
		return nil, err
	}
	c := &capped{r: r, kept: kept, steps: capSteps(r.o.Effort)}
	c.consider(first)
	if !c.search(first, c.steps/firstDivisor) {
		if c.best != nil {
			return first, nil
		}
		c.open = nil
	}
	for streams := r.o.Streams / 2; streams >= 1; streams /= 2 {
		made, err := r.plan(streams)
		if errors.Is(err, place.ErrTooManyStreams) {
			break
		}
		if err != nil {
			return nil, err
		}
		if c.consider(made) {
			break
		}
	}
	if c.best != nil && r.g.Len() > cappedSearch {
		return c.best, nil
	}
	order := place.LowMemoryOrder(p, tightBuffers(r.g, first, limit))
	for streams := r.o.Streams; streams >= 1; streams /= 2 {
		made, err := r.schedule(p, place.InOrder(p, order, streams), "list")
		if err != nil {
			return nil, err
		}
		if err := r.predict(made); err != nil {
			return nil, err
		}
		if c.consider(made) {
			break
		}
	}
	if c.best == nil {
		c.searchAll()
	}
	if c.best != nil {
		return c.best, r.ctx.Err()
	}
	if err := r.ctx.Err(); err != nil {
		return nil, err
	}
	peaks, err := layout.PeakBuffers(r.g, c.closest, kept)
	if err != nil {
		return nil, err
	}
	if len(c.open) > 0 {
		return nil, r.refuse(peaks, NotFound)
	}
	return nil, r.refuse(peaks, TriedPlans)
}

// consider adds a plan to those that were tried, and reports whether it fits.
func (c *capped) consider(made *Plan) bool {
	limit := c.r.o.MemoryCap
	over := overCap(made, limit)
	if over == 0 {
		if c.best == nil || made.Stats.MakespanUS < c.best.Stats.MakespanUS {
			c.best = made
		}
		return true
	}
	if c.closest == nil || over < overCap(c.closest, limit) {
		c.closest = made
	}
	same := func(other *Plan) bool {
		return slices.Equal(made.Order, other.Order) && slices.EqualFunc(made.Streams, other.Streams, func(a, b plan.Stream) bool {
			return slices.Equal(a.Ops, b.Ops)
		})
	}
	if !slices.ContainsFunc(c.tried, same) {
		c.tried = append(c.tried, made)
		c.open = append(c.open, made)
	}
	return false
}

// search looks for a layout that makes an open plan fit, and reports whether the plan is still open.
func (c *capped) search(made *Plan, steps int64) bool {
	verdict, taken := layout.Fit(c.r.ctx, c.r.g, made, c.kept, c.r.o.MemoryCap, steps)
	c.steps -= taken
	if verdict == layout.Fits {
		c.best = made
	}
	return verdict == layout.MayFit
}

// searchAll looks for layouts of all open plans, those that need the least first, until one fits.
func (c *capped) searchAll() {
	slices.SortStableFunc(c.open, func(a, b *Plan) int {
		return cmp.Compare(overCap(a, c.r.o.MemoryCap), overCap(b, c.r.o.MemoryCap))
	})
	var open []*Plan
	for k, made := range c.open {
		if c.search(made, c.steps/int64(len(c.open)-k)) {
			open = append(open, made)
		}
		if c.best != nil {
			return
		}
	}
	c.open = open
}

// refuse returns the error for the device that needs the most memory.
func (r *request) refuse(peaks []plan.Peak, proof CapProof) error {
	full := slices.MaxFunc(peaks, func(a, b plan.Peak) int {
		return cmp.Or(cmp.Compare(a.Arena, b.Arena), cmp.Compare(b.Device, a.Device))
	})
	e := &MemoryCapError{Device: full.Device, Cap: r.o.MemoryCap, Proof: proof, Needed: full.Arena, Node: full.Node, Live: full.Buffers}
	if e.Node >= 0 {
		e.NodeName = plan.NodeName(r.g, e.Node)
	}
	return e
}

// overCap returns by how many bytes the fullest device exceeds the cap.
func overCap(p *Plan, limit int64) int64 {
	over := int64(0)
	for _, end := range layout.ArenaEnds(p) {
		over = max(over, end-limit)
	}
	return over
}

// tightBuffers returns the buffers of the devices on which a plan exceeds the cap.
func tightBuffers(g *dag.Graph, p *Plan, limit int64) []int32 {
	ends := layout.ArenaEnds(p)
	var tight []int32
	for i := range g.Buffers {
		if b := &g.Buffers[i]; b.InArena() && ends[b.Device] > limit {
			tight = append(tight, int32(i))
		}
	}
	return tight
}
