// Memory layout: one sweep, then layouts in parts and a longer search if the sweep needs more bytes than are alive together. Verify proves
// the result.

package layout

import (
	"context"
	"maps"
	"math"
	"slices"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/planner/effort"
	"github.com/dagrun/dagrun/planner/internal/order"
	"github.com/dagrun/dagrun/planner/internal/pack"
	"github.com/dagrun/dagrun/planner/internal/planted"
	"github.com/dagrun/dagrun/planner/internal/scratch"
	"github.com/dagrun/dagrun/planner/plan"
)

// Memory places every device buffer of a plan anew and fills in Memory, Kept, Stats.PeakDeviceBytes and Stats.SumDeviceBytes. The
// plan's ops must be valid (proof.CheckOps). kept tells for each buffer whether it must keep bytes of its own.
func Memory(ctx context.Context, g *dag.Graph, p *plan.Plan, kept []bool, hard effort.Effort) error {
	devices, sum, err := arenaSizes(g)
	if err != nil {
		return err
	}
	p.Stats.SumDeviceBytes, p.Stats.PeakDeviceBytes = sum, 0
	offset := make([]int64, len(g.Buffers))
	used := usedBuffers(g)
	var s *steps
	for _, device := range devices {
		a := readArena(g, device, kept, used, offset)
		end := a.least
		if len(a.sharing) > 0 {
			if s == nil {
				s = readSteps(g, p)
			}
			l := readLifetimes(s, a.sharing, order.Entries)
			offsets := placeSharing(ctx, l, s.len(), hard)
			if planted.Is(planted.Layout) {
				clear(offsets)
			}
			end = max(end, peakOf(l, offsets))
			a.setShared(offsets, offset)
		}
		p.Stats.PeakDeviceBytes += a.base + end
	}
	setPlaces(g, p, kept, offset)
	return nil
}

// At places every device buffer where offsets says, and fills in what Memory does. Whether the plan keeps apart what shares bytes there is for the
// proof to find out.
func At(g *dag.Graph, p *plan.Plan, kept []bool, offsets []int64) error {
	_, sum, err := arenaSizes(g)
	if err != nil {
		return err
	}
	p.Stats.SumDeviceBytes = sum
	setPlaces(g, p, kept, offsets)
	p.Stats.PeakDeviceBytes = 0
	for _, end := range ArenaEnds(p) {
		p.Stats.PeakDeviceBytes += end
	}
	return nil
}

// setPlaces fills in Memory and Kept.
func setPlaces(g *dag.Graph, p *plan.Plan, kept []bool, offset []int64) {
	p.Memory, p.Kept = nil, nil
	for i := range g.Buffers {
		if b := &g.Buffers[i]; b.InArena() {
			if kept[i] {
				p.Kept = append(p.Kept, dag.BufferID(i))
			}
			p.Memory = append(p.Memory, plan.Placement{Buffer: dag.BufferID(i), Device: b.Device, Offset: offset[i], Bytes: b.Bytes})
		}
	}
}

// searchLimit is the most buffers for which a layout is searched with all pairs in a table. More are placed by a sweep and in parts, which
// for so many buffers comes as low as the steps of a search allow.
const searchLimit = 6000

// budget is how many steps a search over so many buffers may take; see [pack.Budget] for how long those are. With normal effort 300
// buffers take about 20 ms, a thousand up to half a second. Where streams cross, the search from the bottom up finds the lowest layouts of
// few buffers only, and of many, ejection finds lower ones; on one stream either may find the lower one.
func budget(hard effort.Effort, buffers int, crossed bool) pack.Budget {
	n := int64(buffers)
	b := pack.Budget{Orders: min(4_000_000, 300_000+8_000*n), Eject: min(2_600_000, 7_000*n), Search: min(400_000, 40_000+600*n)}
	switch {
	case hard == effort.Quick && crossed:
		b.Search = max(0, 100_000-500*n)
	case hard == effort.Normal && crossed:
		// Layouts of more buffers take longer to come as near to the lowest, and their plans take longer anyway. Two independent searches come
		// about as near as one of twice as many steps, and take half as long where there are two processors.
		each := max(55, min(250, 55+n-300))
		b.Orders, b.Searches = 2_000*n, 2
		b.Eject, b.Search = min(150_000_000, max(5_000_000, each*n*n)), max(0, 1_000_000-5_000*n)
	case hard == effort.Normal: // both are needed: on some instances only one of them finds a low layout
		b.Orders, b.Eject, b.Search = 2_000*n, min(12_000_000, 32_000*n), min(9_000_000, 16_000*n)
	case hard == effort.Thorough && crossed:
		b.Eject, b.Search = 1_200_000_000, 300_000_000
	case hard == effort.Thorough:
		b.Eject, b.Search = 100_000_000, 700_000_000
	}
	return b
}

// placeSharing finds offsets for buffers that may share bytes.
func placeSharing(ctx context.Context, l *lifetimes, nodes int, hard effort.Effort) []int64 {
	least, _ := l.busiest(nodes)
	quick := sweepLayout(l, nodes)
	if peakOf(l, quick) > least {
		quick = lowerInParts(ctx, l, nodes, quick, least, hard)
	}
	if len(l.buffers) > searchLimit || peakOf(l, quick) == least {
		return quick
	}
	return pack.Lower(ctx, l.problem(hard == effort.Thorough), quick, 0, budget(hard, len(l.buffers), !l.inLine())).Offsets
}

// inLine says whether lifetimes are intervals of the submission order, as those of one stream.
func (l *lifetimes) inLine() bool { return l.columns == 1 && l.complete() }

// longLimit is the most buffers for which a long search finds the heaviest antichain, which takes tenths of a second for a thousand.
const longLimit = 1000

// problem states the packing of buffers with these lifetimes. long says that the search may take seconds.
func (l *lifetimes) problem(long bool) *pack.Problem {
	if l.inLine() {
		return pack.Intervals(l.bytes, l.first, l.last)
	}
	p := pack.Crossed(l.bytes, l.first, l.last, l.acrossStreams)
	if n := len(l.buffers); n <= antichainLimit || long && n <= longLimit {
		p.Section(func() []int32 { return heaviestAntichain(l) })
	}
	return p
}

// acrossStreams calls exclude with the pairs that do not overlap in submission order, but that nothing orders across streams.
func (l *lifetimes) acrossStreams(exclude func(a, b int32)) {
	n := len(l.buffers)
	nodes := int32(0)
	for _, last := range l.last {
		nodes = max(nodes, last+1)
	}
	byFirst := scratch.CountingSort(n, int(nodes), nil, func(k int32) int32 { return l.first[k] })
	from := make([]int32, nodes+1) // by place: index of the first entry of byFirst that starts there or later
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

// complete reports whether the lifetimes are exact, not longer because clocks were left out.
func (l *lifetimes) complete() bool {
	for _, endless := range l.endless {
		if endless {
			return false
		}
	}
	return true
}

// Verdict tells whether a plan's buffers can be placed within a limit.
type Verdict uint8

const (
	MayFit    Verdict = iota // no layout was found within the steps, and none was proved impossible
	Fits                     // and the plan has such a layout now
	CannotFit                // proved, for this plan
)

// Fit searches for a layout within the limit on every device whose arena exceeds it. If it finds all of them, it changes the plan's
// memory. taken is how many steps that took.
func Fit(ctx context.Context, g *dag.Graph, p *plan.Plan, kept []bool, limit, steps int64) (verdict Verdict, taken int64) {
	offset := make([]int64, len(g.Buffers))
	for _, m := range p.Memory {
		offset[m.Buffer] = m.Offset
	}
	used := usedBuffers(g)
	s := readSteps(g, p)
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
		l := readLifetimes(s, a.sharing, order.Entries)
		if least, _ := l.busiest(s.len()); a.base+least > limit {
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
			a.setShared(r.Offsets, offset)
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
