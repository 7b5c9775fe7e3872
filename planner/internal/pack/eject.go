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
// what is in its way has been hard to place the fewest times, and that is left without a place. Between the two, some buffers move to
// other places where they fit, so that the search does not come by the same layouts again. (Nagata and Bräysy call this guided ejection.)
type ejector struct {
	p        *Problem
	capacity int64
	offset   []int64
	placed   []bool
	out      []int32 // without a place
	hard     []int32 // by buffer: how often it fitted nowhere, and one
	byLow    []edge  // of the placed ones, ascending
	byHigh   []edge
	lows     []edge // of those that a buffer excludes, ascending
	highs    []edge
	random   effort.Random
	steps    int64
}

// edge is where a placed buffer begins or ends.
type edge struct {
	at     int64
	buffer int32
	hard   int32
}

func (e edge) compare(o edge) int {
	return cmp.Or(cmp.Compare(e.at, o.at), cmp.Compare(e.buffer, o.buffer))
}

func newEjector(p *Problem) *ejector {
	n := len(p.size)
	return &ejector{
		p: p, offset: make([]int64, n), placed: make([]bool, n), hard: slices.Repeat([]int32{1}, n), random: effort.NewRandom(),
		byLow: make([]edge, 0, n), byHigh: make([]edge, 0, n), lows: make([]edge, n), highs: make([]edge, n),
	}
}

const (
	// attempt is how many dives it takes to give a capacity up at first.
	attempt = 5
	// shakes is how many of the buffers that one excludes move after it was put in the place of others.
	shakes = 2
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
			copy(best, e.offset)
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
	e.out, e.byLow, e.byHigh = e.out[:0], e.byLow[:0], e.byHigh[:0]
	for k, lo := range offsets {
		hi := lo + e.p.size[k]
		e.offset[k], e.placed[k] = lo, hi <= capacity
		if e.placed[k] {
			e.byLow = append(e.byLow, edge{lo, int32(k), e.hard[k]})
			e.byHigh = append(e.byHigh, edge{hi, int32(k), e.hard[k]})
		} else {
			e.out = append(e.out, int32(k))
		}
	}
	slices.SortFunc(e.byLow, edge.compare)
	slices.SortFunc(e.byHigh, edge.compare)
}

// place looks for places for all buffers and says whether it found them within so many steps.
func (e *ejector) place(steps int64) bool {
	for until := e.steps + steps; len(e.out) > 0; {
		if e.steps > until {
			return false
		}
		k := e.takeLargest()
		e.lows = e.inTheWay(k, e.byLow, e.lows)
		if at := e.gap(k); at >= 0 {
			e.put(k, at)
			continue
		}
		e.highs = e.inTheWay(k, e.byHigh, e.highs)
		e.hard[k]++
		at := e.easiest(k)
		e.eject(at, at+e.p.size[k])
		e.put(k, at)
		others := e.p.others(k)
		for range shakes {
			e.shake(others[e.random.Below(len(others))])
		}
	}
	return true
}

// takeLargest takes the largest buffer that has no place.
func (e *ejector) takeLargest() int32 {
	most := 0
	for i, k := range e.out {
		if e.p.size[k] > e.p.size[e.out[most]] {
			most = i
		}
	}
	k := e.out[most]
	e.out = slices.Delete(e.out, most, most+1)
	return k
}

// inTheWay picks the edges of buffers that one excludes. It does not branch, as about every other does.
func (e *ejector) inTheWay(k int32, from, to []edge) []edge {
	row := e.p.row(k)
	to = to[:cap(to)]
	n := 0
	for _, x := range from {
		to[n] = x
		n += int(row[x.buffer>>6] >> (x.buffer & 63) & 1)
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
		end = max(end, low.at+e.p.size[low.buffer])
	}
	if end+bytes <= e.capacity {
		return end
	}
	return -1
}

// easiest is the offset at which what is in the way of a buffer has been hard to place the fewest times. It is at the bottom, on top of
// something in the way, right below such or right below the capacity.
func (e *ejector) easiest(k int32) int64 {
	bytes, lows, highs := e.p.size[k], e.lows, e.highs
	top := e.capacity - bytes
	e.steps += 4 * int64(len(lows))
	chosen, least, equal := int64(0), int32(1<<30), 0
	consider := func(at int64, cost int32) {
		if cost < least {
			chosen, least, equal = at, cost, 1
		} else if cost == least {
			if equal++; e.random.Below(equal) == 0 {
				chosen = at
			}
		}
	}
	// In the way is what begins below the end of the buffer, less what ends where it begins or below.
	cost := int32(0)
	for at, low, high := int64(0), 0, 0; ; at = highs[high].at {
		for ; low < len(lows) && lows[low].at < at+bytes; low++ {
			cost += lows[low].hard
		}
		for ; high < len(highs) && highs[high].at <= at; high++ {
			cost -= highs[high].hard
		}
		consider(at, cost)
		if high == len(highs) || highs[high].at > top {
			break
		}
	}
	cost = 0
	for low, high := 0, 0; ; {
		for ; low < len(lows) && lows[low].at < bytes; low++ {
			cost += lows[low].hard
		}
		at := top
		if low < len(lows) {
			at = min(top, lows[low].at-bytes)
		}
		for ; high < len(highs) && highs[high].at <= at; high++ {
			cost -= highs[high].hard
		}
		consider(at, cost)
		if at == top {
			return chosen
		}
		for from := lows[low].at; low < len(lows) && lows[low].at == from; low++ {
			cost += lows[low].hard
		}
	}
}

// eject takes out those of the lows that overlap some bytes.
func (e *ejector) eject(from, to int64) {
	for _, low := range e.lows {
		if low.at < to && low.at+e.p.size[low.buffer] > from {
			e.remove(low.buffer)
			e.out = append(e.out, low.buffer)
		}
	}
}

// shake moves a buffer down as far as it can, or at random to another place where it fits.
func (e *ejector) shake(k int32) {
	if !e.placed[k] {
		return
	}
	was := e.offset[k]
	e.lows = e.inTheWay(k, e.byLow, e.lows)
	to := was
	if e.random.Below(2) == 0 {
		to = e.gap(k)
	} else {
		end, bytes, count := int64(0), e.p.size[k], 0
		consider := func(at int64) {
			if at != was {
				if count++; e.random.Below(count) == 0 {
					to = at
				}
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
				end = max(end, next+e.p.size[e.lows[i].buffer])
			}
		}
	}
	if to != was {
		e.remove(k)
		e.put(k, to)
	}
}

func (e *ejector) put(k int32, at int64) {
	e.offset[k], e.placed[k] = at, true
	e.byLow = insert(e.byLow, edge{at, k, e.hard[k]})
	e.byHigh = insert(e.byHigh, edge{at + e.p.size[k], k, e.hard[k]})
}

func (e *ejector) remove(k int32) {
	e.placed[k] = false
	e.byLow = without(e.byLow, edge{at: e.offset[k], buffer: k})
	e.byHigh = without(e.byHigh, edge{at: e.offset[k] + e.p.size[k], buffer: k})
}

func insert(edges []edge, x edge) []edge { return slices.Insert(edges, find(edges, x), x) }

func without(edges []edge, x edge) []edge {
	i := find(edges, x)
	return slices.Delete(edges, i, i+1)
}

// find is where an edge stands or belongs.
func find(edges []edge, x edge) int {
	return sort.Search(len(edges), func(i int) bool { return edges[i].at > x.at || edges[i].at == x.at && edges[i].buffer >= x.buffer })
}
