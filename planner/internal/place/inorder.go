// Assigns nodes to streams in a given submission order, for plans that must fit a memory cap and for those in declared order.

package place

import (
	"math"
)

// InOrder assigns nodes in exactly this submission order, nil for the declared one, each to the stream on which it can start first. streams limits the streams of
// each device and priority. Streams that users bound are not counted.
func InOrder(p *Problem, order []int32, streams int) *Assignment {
	if order == nil {
		order = p.order
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
		ready := 0.0
		for _, q := range r.before(i) {
			ready = max(ready, end[q])
		}
		k := p.boundOf(i)
		if k < 0 {
			pool := p.poolOf(i)
			start := math.Inf(1)
			for _, open := range unbound[pool] {
				if begin := max(free[open], ready); begin < start {
					k, start = open, begin
				}
			}
			if k < 0 || start > ready && len(unbound[pool]) < streams {
				k = int32(len(s.streams))
				s.streams = append(s.streams, draftStream{pool: pool, binding: -1})
				free = append(free, 0)
				unbound[pool] = append(unbound[pool], k)
			}
		}
		s.stream[i] = k
		end[i] = max(free[k], ready) + p.duration[i]
		free[k] = end[i]
	}
	return s
}
