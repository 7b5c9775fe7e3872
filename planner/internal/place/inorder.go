// Assigns nodes to streams in a given submission order, for plans that must fit a memory cap and for those in declared order.

package place

import (
	"math"
)

// InOrder assigns nodes in exactly this submission order, nil for the declared one, each to the stream on which it can start first. In declared order, waits
// count: they take time, and among equals the stream that needs the fewest is taken. streams limits the streams of each device and priority. Streams that users
// bound are not counted.
func InOrder(p *Problem, order []int32, streams int) *Assignment {
	wait := 0.0
	if order == nil {
		order, wait = p.order, p.sync()
	}
	s := &Assignment{stream: make([]int32, p.len()), order: order}
	for k := range p.bindings {
		s.streams = append(s.streams, draftStream{pool: p.bindings[k].pool, binding: int32(k)})
	}
	unbound := make([][]int32, len(p.pools)) // by pool, the streams that users did not number
	free := make([]float64, len(s.streams))
	end := make([]float64, p.len())
	most := len(s.streams) + len(p.pools)*streams
	r := p.newResolver(most, func(i int32) int32 { return s.stream[i] }, func(a, b int32) bool { return end[a] > end[b] })
	for _, i := range order {
		before := r.before(i)
		// ready is when everything before a node on other streams than one has ended, and how many waits that takes.
		ready := func(k int32) (at float64, waits int) {
			for _, q := range before {
				if s.stream[q] != k {
					at, waits = max(at, end[q]+wait), waits+1
				}
			}
			return at, waits
		}
		k := p.boundOf(i)
		if k < 0 {
			pool := p.poolOf(i)
			start, fewest := math.Inf(1), 0
			for _, open := range unbound[pool] {
				at, waits := ready(open)
				if begin := max(free[open], at); begin < start || begin == start && wait > 0 && waits < fewest {
					k, start, fewest = open, begin, waits
				}
			}
			if at, _ := ready(int32(len(s.streams))); k < 0 || start > at && len(unbound[pool]) < streams {
				k = int32(len(s.streams))
				s.streams = append(s.streams, draftStream{pool: pool, binding: -1})
				free = append(free, 0)
				unbound[pool] = append(unbound[pool], k)
			}
		}
		at, _ := ready(k)
		s.stream[i] = k
		end[i] = max(free[k], at) + p.duration[i]
		free[k] = end[i]
	}
	return s
}
