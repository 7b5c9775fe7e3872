// How hard a low layout is searched for: one sweep, and a search where that ends above the bytes that are alive together.

package layout

import (
	"context"
	"maps"
	"slices"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/planner/internal/effort"
	"github.com/dagrun/dagrun/planner/internal/order"
	"github.com/dagrun/dagrun/planner/internal/pack"
	"github.com/dagrun/dagrun/planner/plan"
)

// searchLimit is how many buffers a layout is searched for with all pairs in a table; more are placed in one sweep.
const searchLimit = 2000

// budget is how many steps a search over so many buffers may take. One that tries orders takes one to two nanoseconds, another about
// eight. Normal effort stays below a tenth of a second.
func budget(hard effort.Effort, buffers int) pack.Budget {
	n := int64(buffers)
	switch hard {
	case effort.Normal:
		return pack.Budget{Orders: min(10_000_000, 500_000+10_000*n), Search: min(9_000_000, 40_000*n)}
	case effort.Thorough:
		return pack.Budget{Orders: 20_000_000, Search: 600_000_000}
	default:
		return pack.Budget{Orders: min(5_000_000, 500_000+10_000*n), Search: min(800_000, 100_000+2_000*n)}
	}
}

// placeSharing finds offsets for buffers that may share bytes.
func placeSharing(ctx context.Context, l *lifetimes, nodes int, hard effort.Effort) []int64 {
	least, _ := l.busiest(nodes)
	swept := sweepLayout(l, nodes)
	if len(l.buffers) > searchLimit || peakOf(l, swept) == least {
		return swept
	}
	return pack.Lower(ctx, l.problem(), swept, 0, budget(hard, len(l.buffers))).Offsets
}

// problem is the packing of buffers with these lifetimes.
func (l *lifetimes) problem() *pack.Problem {
	if l.columns == 1 && l.complete() {
		return pack.Intervals(l.bytes, l.first, l.last)
	}
	p := pack.Ordered(l.bytes, l.first, l.last, l.before)
	if len(l.buffers) <= antichainLimit {
		p.AddSection(heaviestAntichain(l))
	}
	return p
}

// complete says whether the lifetimes are those of the plan, and not longer for want of clocks.
func (l *lifetimes) complete() bool {
	for _, endless := range l.endless {
		if endless {
			return false
		}
	}
	return true
}

// Verdict says whether a plan's buffers can be placed within a limit.
type Verdict uint8

const (
	MayFit    Verdict = iota // not found within the steps, and not proved impossible
	Fits                     // and lie so now
	CannotFit                // proved, for this plan
)

// Fit searches for layouts that end at the limit or below on every device where the plan's memory does not, changes the plan's
// memory where it finds them all, and says how many steps it took.
func Fit(ctx context.Context, g *dag.Graph, p *plan.Plan, kept []bool, limit, steps int64) (verdict Verdict, taken int64) {
	offset := make([]int64, len(g.Buffers))
	for _, m := range p.Memory {
		offset[m.Buffer] = m.Offset
	}
	used := usedBuffers(g)
	s := order.Read(p, g.Len())
	ends := ArenaEnds(p)
	verdict = Fits
	for _, device := range slices.Sorted(maps.Keys(ends)) {
		if ends[device] <= limit {
			continue
		}
		a := readArena(g, device, kept, used, offset)
		if a.base+a.least > limit {
			return CannotFit, taken
		}
		l := readLifetimes(g, p, s, a.sharing, order.ClockEntries)
		if least, _ := l.busiest(len(s.Order)); a.base+least > limit {
			return CannotFit, taken
		}
		if len(l.buffers) > searchLimit {
			verdict = MayFit
			continue
		}
		r := pack.Fit(ctx, l.problem(), limit-a.base, steps-taken)
		taken += r.Steps
		switch {
		case r.Verdict == pack.Found:
			a.put(r.Offsets, offset)
		case r.Verdict == pack.Impossible && l.complete():
			return CannotFit, taken
		default:
			verdict = MayFit
		}
	}
	if verdict == Fits {
		for i := range p.Memory {
			p.Memory[i].Offset = offset[p.Memory[i].Buffer]
		}
		p.Stats.PeakDeviceBytes = 0
		for _, end := range ArenaEnds(p) {
			p.Stats.PeakDeviceBytes += end
		}
	}
	return verdict, taken
}
