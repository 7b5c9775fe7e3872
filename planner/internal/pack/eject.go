// Layouts by ejection: a buffer that fits nowhere below a capacity takes the place of others that are easier to place.

package pack

import (
	"cmp"
	"context"
	"slices"
	"sort"

	"github.com/dagrun/dagrun/planner/internal/effort"
)

// ejector is a layout in which some buffers have no place. One of them at a time is put where it fits. Where it fits nowhere, it goes where
// what is in its way has been hard to place the fewest times, and that is left without a place. (Nagata and Bräysy call this guided
// ejection.) Sometimes a buffer moves to another place where it fits, so that the search does not come by the same layouts again.
//
// What has a place has no offset: of two buffers that exclude each other it is only settled which lies below. So every buffer has a lowest
// end, on top of all that is below it, and a highest begin, below all that is above it, and what lies between may still move. A buffer fits at
// an offset if each that it excludes can begin above it or end below it.
type ejector struct {
	p        *Problem
	capacity int64
	placed   []bool
	top      []int64 // by buffer: its lowest end
	low      []int64 // by buffer: its highest begin
	out      []int32 // without a place
	hard     []int64 // by buffer: how often it fitted nowhere, and one
	weight   []int64 // by buffer: what counts against an offset where the buffer is in the way
	largest  int64

	order  []edge   // of what has a place: the highest begins, ascending, so that what is below another comes before it
	tops   []edge   // the lowest ends, ascending
	spare  []edge   // room for tops
	before []uint64 // what comes before the first change, a bit each

	from, to int      // what was put or removed since the last update lies here in the order
	changed  []uint64 // buffers that may have another begin, a bit each; those that changed and what they exclude
	marked   []uint64 // likewise for ends

	lows, highs []edge // of what may be in the way of a buffer: begins and ends, ascending
	random      effort.Random
	steps       int64
}

// edge is where a placed buffer begins or ends.
type edge struct {
	at     int64
	buffer int32
}

func (e edge) compare(o edge) int {
	return cmp.Or(cmp.Compare(e.at, o.at), cmp.Compare(e.buffer, o.buffer))
}

func has(set []uint64, k int32) bool { return set[k>>6]>>(k&63)&1 != 0 }

func add(set, more []uint64) {
	for i, w := range more {
		set[i] |= w
	}
}

func newEjector(p *Problem) *ejector {
	n := len(p.size)
	e := &ejector{
		p: p, placed: make([]bool, n), top: make([]int64, n), low: make([]int64, n), hard: slices.Repeat([]int64{1}, n), weight: make([]int64, n),
		order: make([]edge, 0, n), tops: make([]edge, 0, n+1), spare: make([]edge, 0, n+1), before: make([]uint64, p.words), changed: make([]uint64, p.words), marked: make([]uint64, p.words),
		lows: make([]edge, n), highs: make([]edge, n), random: effort.NewRandom(),
	}
	for _, bytes := range p.size {
		e.largest = max(e.largest, bytes)
	}
	for k := range int32(n) {
		e.weigh(k)
	}
	return e
}

const (
	// attempt is how many dives it takes to give a capacity up at first.
	attempt = 10
	// restless: of so many buffers that take the place of others, one lets a buffer that it excludes move.
	restless = 8
)

// lower looks for layouts that end lower than that of a result, at enough or above, until the steps are spent.
func (e *ejector) lower(ctx context.Context, r *Result, enough, steps int64) {
	p := e.p
	best := slices.Clone(r.Offsets)
	peak := r.Peak
	// The more layouts are found, the more buffers are taken from the top at once.
	taken, first := 2, attempt*p.dive()
	patience := first
	tops := make([]int64, len(best))
	for until := e.steps + steps; e.steps < until && peak > enough && ctx.Err() == nil; {
		for k, lo := range best {
			tops[k] = lo + p.size[k]
		}
		slices.Sort(tops)
		e.start(best, max(p.floor(enough), p.floor(tops[max(0, len(tops)-1-taken)]-p.grain)))
		if e.place(min(patience, until-e.steps)) {
			for k, top := range e.top {
				best[k] = top - p.size[k]
			}
			peak = peakOf(p.size, best)
			taken++
			patience = max(first, patience/2)
		} else if taken > 1 {
			taken /= 2
		} else {
			patience += patience / 2
		}
	}
	r.take(best, peak)
}

// start takes a layout without what ends above a capacity.
func (e *ejector) start(offsets []int64, capacity int64) {
	e.capacity = capacity
	e.out, e.order = e.out[:0], e.order[:0]
	for k, lo := range offsets {
		e.placed[k] = lo+e.p.size[k] <= capacity
		if e.placed[k] {
			e.order = append(e.order, edge{lo, int32(k)})
		} else {
			e.out = append(e.out, int32(k))
		}
	}
	slices.SortFunc(e.order, edge.compare)
	for i := range e.changed {
		e.changed[i] = ^uint64(0)
	}
	e.from, e.to = 0, len(e.order)
	e.update()
}

// place looks for places for all buffers and says whether it found them within so many steps.
func (e *ejector) place(steps int64) bool {
	for until := e.steps + steps; len(e.out) > 0; e.update() {
		if e.steps > until {
			return false
		}
		k := e.takeHardest()
		e.lows = e.inTheWay(k, e.order, e.lows)
		if at := e.gap(k); at >= 0 {
			e.put(k, at)
			continue
		}
		e.highs = e.inTheWay(k, e.tops, e.highs)
		e.hard[k]++
		e.weigh(k)
		at := e.easiest(k)
		e.eject(at, at+e.p.size[k])
		e.put(k, at)
		if e.random.Below(restless) == 0 {
			e.update()
			others := e.p.others(k)
			e.shake(others[e.random.Below(len(others))])
		}
	}
	return true
}

// weigh sets the weight of a buffer. Squares count in the end: what fits nowhere over and over must stay where it is.
func (e *ejector) weigh(k int32) {
	e.weight[k] = e.hard[k] * e.hard[k] * (1 + e.p.size[k]/max(1, e.largest/4))
}

// takeHardest takes the buffer without a place that is the largest, times how often it fitted nowhere.
func (e *ejector) takeHardest() int32 {
	hardest, most := 0, -1.0
	for i, k := range e.out {
		if hard := float64(e.p.size[k]) * float64(e.hard[k]); hard > most {
			hardest, most = i, hard
		}
	}
	k := e.out[hardest]
	e.out = slices.Delete(e.out, hardest, hardest+1)
	return k
}

// update computes begins and ends anew after buffers were put and removed, where they may have changed.
func (e *ejector) update() {
	if e.from > e.to {
		return
	}
	copy(e.marked, e.changed)
	e.updateEnds()
	e.updateBegins()
	clear(e.changed)
	e.from, e.to = len(e.order), 0
}

// updateEnds walks up from the lowest change.
func (e *ejector) updateEnds() {
	tops := e.lowerTops()
	steps := len(e.order)
	for _, x := range e.order[e.from:] {
		k := x.buffer
		top := e.top[k]
		if has(e.marked, k) {
			row := e.p.row(k)
			below, j := int64(0), len(tops)-1
			for ; j >= 0; j-- {
				if has(row, tops[j].buffer) {
					below = tops[j].at
					break
				}
			}
			steps += len(tops) - j
			if below += e.p.size[k]; below != top {
				top = below
				e.top[k] = top
				add(e.marked, row)
			}
		}
		j := len(tops)
		tops = append(tops, edge{})
		for ; j > 0 && tops[j-1].at > top; j-- {
			tops[j] = tops[j-1]
		}
		tops[j] = edge{top, k}
		steps += len(tops) - j
	}
	e.tops, e.spare = tops, e.tops
	e.steps += int64(steps)
}

// lowerTops returns the ends of what comes before the first change.
func (e *ejector) lowerTops() []edge {
	if e.from == 0 {
		return e.spare[:0]
	}
	clear(e.before)
	for _, x := range e.order[:e.from] {
		e.before[x.buffer>>6] |= 1 << (x.buffer & 63)
	}
	tops := e.spare[:cap(e.spare)]
	n := 0
	for _, x := range e.tops {
		tops[n] = x
		n += int(e.before[x.buffer>>6] >> (x.buffer & 63) & 1)
	}
	return tops[:n]
}

// updateBegins walks down from the highest change.
func (e *ejector) updateBegins() {
	order := e.order
	steps := e.to
	for i := e.to - 1; i >= 0; i-- {
		k := order[i].buffer
		at := e.low[k]
		if has(e.changed, k) {
			row := e.p.row(k)
			above, j := e.capacity, i+1
			for ; j < len(order); j++ {
				if has(row, order[j].buffer) {
					above = order[j].at
					break
				}
			}
			steps += j - i
			if above -= e.p.size[k]; above != at {
				at = above
				e.low[k] = at
				add(e.changed, row)
			}
		}
		j := i + 1
		for ; j < len(order) && order[j].at < at; j++ {
			order[j-1] = order[j]
		}
		order[j-1] = edge{at, k}
		steps += j - i
	}
	e.steps += int64(steps)
}

// inTheWay picks the edges of buffers that one excludes and that cannot end below it and cannot begin above it at some offset.
func (e *ejector) inTheWay(k int32, from, to []edge) []edge {
	row, bytes := e.p.row(k), e.p.size[k]
	to = to[:cap(to)]
	n := 0
	for _, x := range from {
		to[n] = x
		if has(row, x.buffer) && e.low[x.buffer]-bytes < e.top[x.buffer] {
			n++
		}
	}
	e.steps += int64(len(from) + n)
	return to[:n]
}

// gap is the lowest offset at which a buffer fits between the lows, or -1.
func (e *ejector) gap(k int32) int64 {
	end, bytes := int64(0), e.p.size[k]
	for _, low := range e.lows {
		if low.at-end >= bytes {
			return end
		}
		end = max(end, e.top[low.buffer])
	}
	if end+bytes <= e.capacity {
		return end
	}
	return -1
}

// easiest is the offset at which what is in the way of a buffer weighs the least. It is at the bottom, on top of something in the way, right
// below such or right below the capacity.
func (e *ejector) easiest(k int32) int64 {
	bytes, lows, highs := e.p.size[k], e.lows, e.highs
	top := e.capacity - bytes
	e.steps += 4 * int64(len(lows))
	chosen, least, equal := int64(0), int64(1<<62), 0
	consider := func(at, cost int64) {
		if cost < least {
			chosen, least, equal = at, cost, 1
		} else if cost == least {
			if equal++; e.random.Below(equal) == 0 {
				chosen = at
			}
		}
	}
	// In the way is what cannot begin at the end of the buffer, less what can end where it begins.
	cost := int64(0)
	for at, low, high := int64(0), 0, 0; ; at = highs[high].at {
		for ; low < len(lows) && lows[low].at < at+bytes; low++ {
			cost += e.weight[lows[low].buffer]
		}
		for ; high < len(highs) && highs[high].at <= at; high++ {
			cost -= e.weight[highs[high].buffer]
		}
		consider(at, cost)
		if high == len(highs) || highs[high].at > top {
			break
		}
	}
	cost = 0
	for low, high := 0, 0; ; {
		for ; low < len(lows) && lows[low].at < bytes; low++ {
			cost += e.weight[lows[low].buffer]
		}
		at := top
		if low < len(lows) {
			at = min(top, lows[low].at-bytes)
		}
		for ; high < len(highs) && highs[high].at <= at; high++ {
			cost -= e.weight[highs[high].buffer]
		}
		consider(at, cost)
		if at == top {
			return chosen
		}
		for from := lows[low].at; low < len(lows) && lows[low].at == from; low++ {
			cost += e.weight[lows[low].buffer]
		}
	}
}

// eject takes out those of the lows that leave no way around some bytes.
func (e *ejector) eject(from, to int64) {
	for _, low := range e.lows {
		if k := low.buffer; e.low[k] < to && e.top[k] > from {
			e.remove(k)
			e.out = append(e.out, k)
		}
	}
}

// shake moves a buffer to a random place where it fits, which may be where it is.
func (e *ejector) shake(k int32) {
	if !e.placed[k] {
		return
	}
	e.lows = e.inTheWay(k, e.order, e.lows)
	to, end, bytes, count := int64(-1), int64(0), e.p.size[k], 0
	consider := func(at int64) {
		if count++; e.random.Below(count) == 0 {
			to = at
		}
	}
	for i := range len(e.lows) + 1 {
		next := e.capacity
		if i < len(e.lows) {
			next = e.lows[i].at
		}
		if next-end >= bytes {
			if consider(end); next-bytes > end {
				consider(next - bytes)
			}
		}
		if i < len(e.lows) {
			end = max(end, e.top[e.lows[i].buffer])
		}
	}
	if to >= 0 {
		e.remove(k)
		e.put(k, to)
	}
}

// put places a buffer: below all that can begin on top of it at an offset, and above the others.
func (e *ejector) put(k int32, at int64) {
	top := at + e.p.size[k]
	i := sort.Search(len(e.order), func(i int) bool { return e.order[i].at >= top })
	e.order = slices.Insert(e.order, i, edge{at, k})
	e.placed[k] = true
	e.change(k)
	if e.to > i {
		e.to++
	}
	e.from, e.to = min(e.from, i), max(e.to, i+1)
}

func (e *ejector) remove(k int32) {
	at := e.low[k]
	i := sort.Search(len(e.order), func(i int) bool { return e.order[i].at >= at })
	for e.order[i].buffer != k {
		i++
	}
	e.order = slices.Delete(e.order, i, i+1)
	e.placed[k] = false
	e.change(k)
	if e.to > i {
		e.to--
	}
	e.from, e.to = min(e.from, i), max(e.to, i)
}

// change marks a buffer that was put or removed, and what it excludes.
func (e *ejector) change(k int32) {
	e.changed[k>>6] |= 1 << (k & 63)
	add(e.changed, e.p.row(k))
}
