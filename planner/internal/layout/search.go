// How hard a low layout is searched for: one sweep, and a search where that ends above the bytes that are alive together.

package layout

import (
	"context"
	"maps"
	"math"
	"slices"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/planner/internal/effort"
	"github.com/dagrun/dagrun/planner/internal/order"
	"github.com/dagrun/dagrun/planner/internal/pack"
	"github.com/dagrun/dagrun/planner/internal/scratch"
	"github.com/dagrun/dagrun/planner/plan"
)

// searchLimit is how many buffers a layout is searched for with all pairs in a table; more are placed in one sweep. What a search costs
// for each buffer falls as there are more of them, so that the step down to the sweep is small here.
const searchLimit = 6000

// budget is how many steps a search over so many buffers may take. One that tries orders takes one to two nanoseconds, another about
// eight. Normal effort stays below a tenth of a second.
func budget(hard effort.Effort, buffers int) pack.Budget {
	n := int64(buffers)
	switch hard {
	case effort.Normal:
		return pack.Budget{Orders: min(16_000_000, 1_600_000+32_000*n), Search: min(9_000_000, 40_000*n)}
	case effort.Thorough:
		return pack.Budget{Orders: 300_000_000, Search: 600_000_000}
	default:
		return pack.Budget{Orders: min(8_000_000, 600_000+16_000*n), Search: min(400_000, 40_000+600*n)}
	}
}

// placeSharing finds offsets for buffers that may share bytes.
func placeSharing(ctx context.Context, l *lifetimes, nodes int, hard effort.Effort) []int64 {
	least, _ := l.busiest(nodes)
	swept := sweepLayout(l, nodes)
	if len(l.buffers) > searchLimit || peakOf(l, swept) == least {
		return swept
	}
	return pack.Lower(ctx, l.problem(hard == effort.Thorough), swept, 0, budget(hard, len(l.buffers))).Offsets
}

// longLimit is how many buffers the heaviest antichain is found of where a search takes seconds; for a thousand it takes tenths of one.
const longLimit = 1000

// problem is the packing of buffers with these lifetimes, for a search that takes long or not.
func (l *lifetimes) problem(long bool) *pack.Problem {
	if l.columns == 1 && l.complete() {
		return pack.Intervals(l.bytes, l.first, l.last)
	}
	p := pack.Crossed(l.bytes, l.first, l.last, l.crossing)
	if n := len(l.buffers); n <= antichainLimit || long && n <= longLimit {
		p.Section(func() []int32 { return heaviestAntichain(l) })
	}
	return p
}

// crossing calls exclude with the pairs that are apart in submission order, but not ordered across streams.
func (l *lifetimes) crossing(exclude func(a, b int32)) {
	n := len(l.buffers)
	nodes := int32(0)
	for _, last := range l.last {
		nodes = max(nodes, last+1)
	}
	byFirst := scratch.CountingSort(n, int(nodes), nil, func(k int32) int32 { return l.first[k] })
	from := make([]int32, nodes+1) // by place, the first in byFirst that starts there or later
	for i := n - 1; i >= 0; i-- {
		from[l.first[byFirst[i]]] = int32(i)
	}
	// By place in byFirst and column: the least start from there on.
	start := make([]int32, (n+1)*l.columns)
	for c := range l.columns {
		start[n*l.columns+c] = math.MaxInt32
	}
	for i := n - 1; i >= 0; i-- {
		row := l.start[int(byFirst[i])*l.columns:]
		for c := range l.columns {
			start[i*l.columns+c] = min(row[c], start[(i+1)*l.columns+c])
		}
	}
	from[nodes] = int32(n)
	for place := nodes - 1; place >= 0; place-- {
		if i := from[place]; i == 0 && l.first[byFirst[0]] != place {
			from[place] = from[place+1]
		}
	}
	for a := range int32(n) {
		marks := l.ends[l.endStart[a]:l.endStart[a+1]]
		for i := int(from[l.last[a]+1]); i < n; i++ {
			if b := byFirst[i]; !l.before(a, b) {
				exclude(a, b)
				continue
			}
			// All that start later may be after a too.
			settled := true
			for _, m := range marks {
				settled = settled && start[i*l.columns+int(m.column)] >= m.pos
			}
			if settled {
				break
			}
		}
	}
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
		l := readLifetimes(g, p, s, a.sharing, order.Entries)
		if least, _ := l.busiest(len(s.Order)); a.base+least > limit {
			return CannotFit, taken
		}
		if len(l.buffers) > searchLimit {
			verdict = MayFit
			continue
		}
		r := pack.Fit(ctx, l.problem(true), limit-a.base, steps-taken)
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
