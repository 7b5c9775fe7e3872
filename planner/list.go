// The list strategy: nodes by longest remaining path, each on the stream that starts it first. Never looks back.

package planner

import (
	"cmp"
	"slices"
)

func planList(p *problem) (*assignment, error) {
	n := p.len()
	s := &assignment{stream: make([]int32, n), order: slices.Clone(p.order)}
	slices.SortStableFunc(s.order, func(a, b int32) int { return cmp.Compare(p.rank[b], p.rank[a]) })
	lanes := make([][]int32, len(p.pools))
	for k := range p.bindings {
		s.lanes = append(s.lanes, lane{pool: p.bindings[k].pool, binding: int32(k)})
		if p.declared == nil {
			q := p.bindings[k].pool
			lanes[q] = append(lanes[q], int32(k))
		}
	}
	for q := range p.pools {
		for len(lanes[q]) < p.share(q) {
			lanes[q] = append(lanes[q], int32(len(s.lanes)))
			s.lanes = append(s.lanes, lane{pool: int32(q), binding: -1})
		}
	}
	finish := make([]float64, n)
	free := make([]float64, len(s.lanes))
	for _, i := range s.order {
		place := func(k int32) (start float64, waits int) {
			start = free[k]
			for _, q := range p.preds(i) {
				if s.stream[q] == k {
					start = max(start, finish[q])
				} else {
					waits++
					start = max(start, finish[q]+p.machine.SyncUS)
				}
			}
			return start, waits
		}
		best := p.boundOf(i)
		if best < 0 {
			var bestStart float64
			var bestWaits int
			for _, k := range lanes[p.poolOf(i)] {
				start, waits := place(k)
				if best < 0 || start < bestStart || start == bestStart && waits < bestWaits {
					best, bestStart, bestWaits = k, start, waits
				}
			}
		}
		start, _ := place(best)
		s.stream[i] = best
		finish[i] = start + p.duration[i]
		free[best] = finish[i]
	}
	return s, p.ctx.Err()
}
