// Layouts by ejection: a buffer that fits nowhere below a capacity takes the place of others that are easier to place.

package pack

import (
	"cmp"
	"context"
	"math"
	"slices"
	"sync"

	"github.com/dagrun/dagrun/planner/internal/chance"
)

// easy finds the buffers that are only in crowds that need few bytes compared with the heaviest crowd: in most layouts of the others there is
// room for them. A crowd is a set of buffers that all exclude each other, gathered greedily around a buffer. heaviest is the bytes of the
// heaviest crowd; every layout needs as many. If that takes too long compared with the steps of a search, no buffer counts as easy, and
// heaviest is 0. Easy buffers come with the largest last.
func (p *Problem) easy(steps int64) (easy []bool, bySize []int32, heaviest int64) {
	n := len(p.size)
	easy = make([]bool, n)
	if int64(n)*int64(n)*crowdShare > steps {
		return easy, nil, 0
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
	heaviest = slices.Max(load)
	for k := range easy {
		easy[k] = load[k] < heaviest/100*crowded
	}
	slices.Reverse(bySize)
	return easy, slices.DeleteFunc(bySize, func(k int32) bool { return !easy[k] }), heaviest
}

// newEjector numbers the searches from 0. Each draws other random numbers.
func newEjector(p *Problem, easy []bool, bySize []int32, number int) *ejector {
	n := len(p.size)
	e := &ejector{
		p: p, size: make([]int64, n), span: make([]span, n), easy: easy, bySize: bySize, hard: slices.Repeat([]int64{1}, n), weight: make([]int64, n),
		order: make([]edge, 0, n), tops: make([]edge, 0, n), changed: make([]uint64, p.words), marked: make([]uint64, p.words),
		lows: make([]edge, n), highs: make([]edge, n), settled: make([]int64, n), random: chance.New() * chance.Random(2*number+1),
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

// begin sets the layout to start from, its peak, and where a lower one may end at least.
func (e *ejector) begin(given []int64, peak, least int64) {
	e.best, e.peak, e.least = slices.Clone(given), peak, least
	e.lower, e.patience = (peak-least)*startLower/100, attempt*e.p.dive()
}

const (
	// attempt is how many dives it takes to give a capacity up at first.
	attempt = 5
	// startLower is how far the first capacity is below the peak, in percent of what lies between the peak and the least that is needed.
	startLower = 40
	// The distance from one peak to the next capacity is at least this part of the peak.
	leastLower = 256
	// rounds is how often searches that run at a time go on from the lowest layout that one of them has found.
	rounds = 20
	// bands is how many places to cut a layout are compared before a search for a lower one starts.
	bands = 16
	// restless: of so many buffers that take the place of others, one lets a buffer that it excludes move.
	restless = 20
	// The size of a buffer without a place counts at random from once to so many times when one of them is chosen.
	mostTimes  = 5
	chanceUnit = 100
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

// eject lowers a result by several searches at a time, of so many steps each. After every round they all go on from the lowest layout, that
// of the first search if several are as low, so it does not matter which of them ends a round first.
func (p *Problem) eject(ctx context.Context, r *Result, enough, steps int64, searches int) {
	if !p.ejectable(r.Peak) {
		return
	}
	easy, bySize, heaviest := p.easy(steps)
	r.Bound = max(r.Bound, heaviest)
	all := make([]*ejector, max(1, searches))
	for i := range all {
		all[i] = newEjector(p, easy, bySize, i)
		all[i].begin(r.Offsets, r.Peak, p.floor(max(enough, r.Bound)))
	}
	for round := int64(1); round <= rounds && r.Peak > max(enough, r.Bound) && ctx.Err() == nil; round++ {
		until := steps * round / rounds
		var others sync.WaitGroup
		for _, e := range all[1:] {
			others.Go(func() { e.run(ctx, until) })
		}
		all[0].run(ctx, until)
		others.Wait()
		for _, e := range all {
			if e.peak < r.Peak {
				r.take(slices.Clone(e.best), e.peak)
			}
		}
		for _, e := range all {
			e.follow(r)
		}
	}
}

// follow goes on from a layout that is lower than the search's own.
func (e *ejector) follow(r *Result) {
	if r.Peak < e.peak {
		copy(e.best, r.Offsets)
		e.peak, e.trying = r.Peak, false
	}
}

// run looks for lower layouts until the search has taken so many steps in all. The next call goes on with the capacity that it is at.
func (e *ejector) run(ctx context.Context, until int64) {
	p := e.p
	for e.steps < until && e.peak > e.least && ctx.Err() == nil {
		finest := max(p.grain, p.floor(e.peak/leastLower))
		if !e.trying {
			e.lower = max(e.lower, finest)
			e.start(e.best, max(e.least, p.floor(min(e.peak-e.lower, e.peak-p.grain))))
			e.trying, e.giveUp = true, e.steps+e.patience
		}
		if e.place(min(e.giveUp, until)) {
			e.trying = false
			for k, at := range e.settled {
				e.best[k] = at * p.grain
			}
			e.peak = peakOf(p.size, e.best)
			e.patience = max(attempt*p.dive(), e.patience/2)
			continue
		}
		if e.steps < e.giveUp {
			return
		}
		e.trying = false
		e.forget()
		if e.lower > finest {
			e.lower /= 2
		} else {
			e.patience += e.patience / 2
		}
	}
}

// forget makes what fitted nowhere count less, so that a search does not stay where it is.
func (e *ejector) forget() {
	for k := range e.hard {
		e.hard[k] -= (e.hard[k] - 1) / forgotten
		e.weigh(int32(k))
	}
}

// start makes a layout as low as a capacity: it cuts a band out, moves what is above down by as much, and leaves what was in the band without
// a place. What waits until the others have places is left out too.
func (e *ejector) start(offsets []int64, capacity int64) {
	grain, height := e.p.grain, e.peak-capacity
	e.capacity = capacity / grain
	cut := e.lightest(offsets, height)
	e.out, e.order = e.out[:0], e.order[:0]
	for k, lo := range offsets {
		switch {
		case e.waits(int32(k)):
		case lo+e.p.size[k] <= cut:
			e.order = append(e.order, edgeAt(lo/grain, int32(k)))
		case lo >= cut+height:
			e.order = append(e.order, edgeAt((lo-height)/grain, int32(k)))
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

// lightest is the offset of a band of some height, within the layout, where what has to leave weighs the least. It looks at a few bands that
// begin or end where a buffer does, so that searches start from other layouts each time.
func (e *ejector) lightest(offsets []int64, height int64) int64 {
	cut, least := int64(0), int64(math.MaxInt64)
	for range bands {
		k := e.random.Below(len(offsets))
		at := offsets[k]
		if e.random.Below(2) == 0 {
			at += e.p.size[k]
		}
		if e.random.Below(2) == 0 {
			at -= height
		}
		at = max(0, min(at, e.peak-height))
		weight := int64(0)
		for q, lo := range offsets {
			if lo < at+height && lo+e.p.size[q] > at && !e.waits(int32(q)) {
				weight += e.weight[q]
			}
		}
		if weight < least {
			cut, least = at, weight
		}
	}
	e.steps += bands * int64(len(offsets)) / 3
	return cut
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

// place looks for places for all buffers and says whether it found them before the search had taken so many steps in all.
func (e *ejector) place(until int64) bool {
	for ; len(e.out) > 0 || !e.settle(); e.update() {
		if e.steps >= until {
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

// settle gives each buffer an offset: what has a place goes as low as it can, and what waits goes where it fits lowest, the largest first.
// Those that fit nowhere wait no longer.
func (e *ejector) settle() bool {
	fixed := e.lows[:0]
	for i, x := range e.tops {
		k := x.buffer()
		e.settled[k] = x.at() - e.size[k]
		v := edgeAt(e.settled[k], k)
		fixed = append(fixed, v)
		for ; i > 0 && fixed[i-1] > v; i-- {
			fixed[i] = fixed[i-1]
		}
		fixed[i] = v
	}
	waiting := e.waiting
	for w := len(waiting) - 1; w >= 0; w-- {
		k := waiting[w]
		at := e.lowest(k, fixed)
		if at < 0 {
			e.out = append(e.out, k)
			waiting[w] = -1
			e.hard[k]++
			e.weigh(k)
			continue
		}
		e.settled[k] = at
		i, _ := slices.BinarySearch(fixed, edgeAt(at, k))
		fixed = slices.Insert(fixed, i, edgeAt(at, k))
	}
	e.waiting = slices.DeleteFunc(waiting, func(k int32) bool { return k < 0 })
	return len(e.out) == 0
}

// lowest is the lowest offset at which a buffer fits between others at fixed offsets, or -1.
func (e *ejector) lowest(k int32, fixed []edge) int64 {
	e.steps += int64(len(fixed)) / 4
	row, bytes, end := e.p.row(k), e.size[k], int64(0)
	for _, x := range fixed {
		if x.in(row) == 0 {
			continue
		}
		if x.at()-end >= bytes {
			return end
		}
		end = max(end, x.at()+e.size[x.buffer()])
	}
	if end+bytes <= e.capacity {
		return end
	}
	return -1
}

// weigh sets the weight of a buffer. Squares count in the end: what fits nowhere over and over must stay where it is.
func (e *ejector) weigh(k int32) {
	e.weight[k] = e.hard[k] * e.hard[k] * (1 + 16*e.size[k]/e.largest)
}

// takeHardest takes the buffer without a place that is the largest, times how often it fitted nowhere, and times a random factor, so that the
// same few do not go round in circles.
func (e *ejector) takeHardest() int32 {
	hardest, most := 0, -1.0
	for i, k := range e.out {
		factor := chanceUnit + e.random.Below((mostTimes-1)*chanceUnit)
		if hard := float64(e.size[k]) * float64(e.hard[k]) * float64(factor); hard > most {
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
		if low.at() >= to {
			return
		}
		if k := low.buffer(); e.span[k].top > from {
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
