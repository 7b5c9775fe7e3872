// Layouts by ejection: a buffer that fits nowhere below a capacity takes the place of others that are easier to place.

package pack

import (
	"cmp"
	"context"
	"slices"
	"sync"

	"github.com/dagrun/dagrun/planner/internal/effort"
)

// easy finds the buffers that are only in crowds that need few bytes compared with the heaviest crowd: in most layouts of the others there is
// room for them. A crowd is a set of buffers that all exclude each other, gathered greedily around a buffer. If that takes too long compared
// with the steps of a search, no buffer counts as easy. They come with the largest last.
func (p *Problem) easy(steps int64) (easy []bool, bySize []int32) {
	n := len(p.size)
	easy = make([]bool, n)
	if int64(n)*int64(n)*crowdShare > steps {
		return easy, nil
	}
	bySize = p.ranked(func(a, b int32) int { return cmp.Compare(p.size[b], p.size[a]) })
	load := make([]int64, n)
	common := make([]uint64, p.words)
	var crowd []int32
	for k := range int32(n) {
		copy(common, p.row(k))
		crowd = append(crowd[:0], k)
		bytes := p.size[k]
		for _, q := range bySize {
			if has(common, q) {
				crowd = append(crowd, q)
				bytes += p.size[q]
				for x, w := range p.row(q) {
					common[x] &= w
				}
			}
		}
		for _, q := range crowd {
			load[q] = max(load[q], bytes)
		}
	}
	limit := slices.Max(load) / 100 * crowded
	for k := range easy {
		easy[k] = load[k] < limit
	}
	slices.Reverse(bySize)
	return easy, slices.DeleteFunc(bySize, func(k int32) bool { return !easy[k] })
}

// newEjector numbers the searches from 0. Each draws other random numbers.
func newEjector(p *Problem, easy []bool, bySize []int32, number int) *ejector {
	n := len(p.size)
	e := &ejector{
		p: p, size: make([]int64, n), span: make([]span, n), easy: easy, bySize: bySize, hard: slices.Repeat([]int64{1}, n), weight: make([]int64, n),
		order: make([]edge, 0, n), tops: make([]edge, 0, n), changed: make([]uint64, p.words), marked: make([]uint64, p.words),
		lows: make([]edge, n), highs: make([]edge, n), random: effort.NewRandom() * effort.Random(2*number+1),
	}
	for k, bytes := range p.size {
		e.size[k] = bytes / p.grain
		e.largest = max(e.largest, e.size[k])
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
	// crowded is the share of the heaviest crowd, in percent, from which a crowd is hard to place.
	crowded = 90
	// crowdShare: looking for crowds may look at one pair of buffers for so many steps of the search.
	crowdShare = 16
	// easyUntil is how often an easy buffer may fit nowhere, and one, until it is placed with the others.
	easyUntil = 2
	// A part of one in forgotten of how often a buffer fitted nowhere is forgotten when a capacity is given up.
	forgotten = 5
)

// ejectable reports whether edges have room for a problem's offsets and numbers. They have room for 65536 buffers in 2^46 grains.
func (p *Problem) ejectable(peak int64) bool {
	return len(p.size) <= edgeBuffer && peak/p.grain < nowhere
}

// eject lowers a result by several independent searches at a time, of so many steps each. It takes the lowest layout that one of them finds,
// from the first search if several do, so it does not matter which of them ends first.
func (p *Problem) eject(ctx context.Context, r *Result, enough, steps int64, searches int) {
	if !p.ejectable(r.Peak) {
		return
	}
	easy, bySize := p.easy(steps)
	found := make([]Result, max(1, searches))
	stop := make([]context.CancelFunc, len(found))
	within := make([]context.Context, len(found))
	for i := range found {
		within[i], stop[i] = context.WithCancel(ctx)
	}
	run := func(i int) {
		e := newEjector(p, easy, bySize, i)
		found[i] = *r
		e.lower(within[i], &found[i], enough, steps)
		if found[i].Peak <= enough {
			for _, end := range stop[i+1:] { // none of them would be taken
				end()
			}
		}
	}
	var others sync.WaitGroup
	for i := range found[1:] {
		others.Go(func() { run(i + 1) })
	}
	run(0)
	others.Wait()
	for i := range found {
		stop[i]()
		r.take(found[i].Offsets, found[i].Peak)
	}
}

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
			for k, s := range e.span {
				best[k] = (s.top - e.size[k]) * p.grain
			}
			peak = peakOf(p.size, best)
			taken++
			patience = max(first, patience/2)
			continue
		}
		e.forget()
		if taken > 1 {
			taken /= 2
		} else {
			patience += patience / 2
		}
	}
	r.take(best, peak)
}

// forget makes what fitted nowhere count less, so that a search does not stay where it is.
func (e *ejector) forget() {
	for k := range e.hard {
		e.hard[k] -= (e.hard[k] - 1) / forgotten
		e.weigh(int32(k))
	}
}

// start takes a layout without what ends above a capacity and what waits until the others have places.
func (e *ejector) start(offsets []int64, capacity int64) {
	grain := e.p.grain
	e.capacity = capacity / grain
	e.out, e.order = e.out[:0], e.order[:0]
	for k, lo := range offsets {
		switch {
		case e.waits(int32(k)):
		case lo+e.p.size[k] <= capacity:
			e.order = append(e.order, edgeAt(lo/grain, int32(k)))
		default:
			e.out = append(e.out, int32(k))
		}
		e.span[k] = span{low: nowhere}
	}
	e.waiting = e.waiting[:0]
	for _, k := range e.bySize {
		if e.waits(k) {
			e.waiting = append(e.waiting, k)
		}
	}
	slices.Sort(e.order)
	e.anew()
}

// waits reports whether a buffer is easy to place, as far as is known.
func (e *ejector) waits(k int32) bool { return e.easy[k] && e.hard[k] <= easyUntil }

// anew computes all begins and ends.
func (e *ejector) anew() {
	for i := range e.changed {
		e.changed[i] = ^uint64(0)
	}
	e.from, e.to = 0, len(e.order)
	e.update()
}

// place looks for places for all buffers and says whether it found them within so many steps.
func (e *ejector) place(steps int64) bool {
	for until := e.steps + steps; len(e.out)+len(e.waiting) > 0; e.update() {
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
		e.eject(at, at+e.size[k])
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
	e.weight[k] = e.hard[k] * e.hard[k] * (1 + 16*e.size[k]/e.largest)
}

// takeHardest takes the buffer without a place that is the largest, times how often it fitted nowhere, or if there is none, the largest of
// those that wait.
func (e *ejector) takeHardest() int32 {
	if len(e.out) == 0 {
		last := len(e.waiting) - 1
		k := e.waiting[last]
		e.waiting = e.waiting[:last]
		return k
	}
	hardest, most := 0, -1.0
	for i, k := range e.out {
		if hard := float64(e.size[k]) * float64(e.hard[k]); hard > most {
			hardest, most = i, hard
		}
	}
	k := e.out[hardest]
	e.out = slices.Delete(e.out, hardest, hardest+1)
	return k
}

// inTheWay picks the edges of buffers that one excludes and that cannot end below it and cannot begin above it at some offset.
func (e *ejector) inTheWay(k int32, from, to []edge) []edge {
	row, bytes := e.p.row(k), e.size[k]
	to = to[:cap(to)]
	n := 0
	for _, x := range from {
		to[n] = x
		s := &e.span[x.buffer()]
		n += int(x.in(row) & (uint64(s.low-bytes-s.top) >> 63))
	}
	e.steps += int64(len(from)) / 3
	return to[:n]
}

// gap is the lowest offset at which a buffer fits between the lows, or -1.
func (e *ejector) gap(k int32) int64 {
	end, bytes := int64(0), e.size[k]
	for _, low := range e.lows {
		if low.at()-end >= bytes {
			return end
		}
		end = max(end, e.span[low.buffer()].top)
	}
	if end+bytes <= e.capacity {
		return end
	}
	return -1
}

// easiest is the offset at which what is in the way of a buffer weighs the least. It is at the bottom or on top of something in the way, or the
// highest one where the same is in the way: right below something in the way or right below the capacity.
func (e *ejector) easiest(k int32) int64 {
	bytes, lows, highs := e.size[k], e.lows, e.highs
	top := e.capacity - bytes
	e.steps += 2 * int64(len(lows))
	// In the way is what cannot begin at the end of the buffer, less what can end where it begins.
	cost, low, high := int64(0), 0, 0
	for ; low < len(lows) && lows[low].at() < bytes; low++ {
		cost += e.weight[lows[low].buffer()]
	}
	chosen, next, least, equal := int64(0), low, cost, 1
	for high < len(highs) && highs[high].at() <= top {
		at := highs[high].at()
		cost -= e.weight[highs[high].buffer()]
		high++
		for ; low < len(lows) && lows[low].at() < at+bytes; low++ {
			cost += e.weight[lows[low].buffer()]
		}
		if cost > least {
			continue
		}
		if cost < least {
			equal = 0
		}
		if equal++; equal == 1 || e.random.Below(equal) == 0 {
			chosen, next, least = at, low, cost
		}
	}
	if e.random.Below(2) == 0 {
		return chosen
	}
	if next < len(lows) {
		return min(top, lows[next].at()-bytes)
	}
	return top
}

// eject takes out those of the lows that leave no way around some bytes.
func (e *ejector) eject(from, to int64) {
	for _, low := range e.lows {
		k := low.buffer()
		if s := &e.span[k]; s.low < to && s.top > from {
			e.remove(k)
			e.out = append(e.out, k)
		}
	}
}

// shake moves a buffer to a random place where it fits, which may be where it is.
func (e *ejector) shake(k int32) {
	if e.span[k].low == nowhere {
		return
	}
	e.lows = e.inTheWay(k, e.order, e.lows)
	to, end, bytes, count := int64(-1), int64(0), e.size[k], 0
	consider := func(at int64) {
		if count++; e.random.Below(count) == 0 {
			to = at
		}
	}
	for i := range len(e.lows) + 1 {
		next := e.capacity
		if i < len(e.lows) {
			next = e.lows[i].at()
		}
		if next-end >= bytes {
			if consider(end); next-bytes > end {
				consider(next - bytes)
			}
		}
		if i < len(e.lows) {
			end = max(end, e.span[e.lows[i].buffer()].top)
		}
	}
	if to >= 0 {
		e.remove(k)
		e.put(k, to)
	}
}
