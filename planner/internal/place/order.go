// The submission order for given streams: what can start first is submitted first, critical work before the rest.

package place

import (
	"cmp"
	"slices"
)

// submissionOrder orders nodes by when they could start on their streams, then by longest remaining path. order must be topological, and so
// is the result. Within a stream, only nodes that take no time can change places.
func submissionOrder(p *Problem, stream, order []int32, streams int) []int32 {
	n := p.len()
	start := make([]float64, n)
	place := make([]int32, n)
	free := make([]float64, streams)
	r := p.newResolver(streams, func(i int32) int32 { return stream[i] }, func(a, b int32) bool { return place[a] > place[b] })
	for k, i := range order {
		place[i] = int32(k)
		t := stream[i]
		at := free[t]
		for _, q := range r.before(i) {
			end := start[q] + p.duration[q]
			if stream[q] != t {
				end += p.sync()
			}
			at = max(at, end)
		}
		start[i] = at
		free[t] = at + p.duration[i]
	}
	sorted := slices.Clone(order)
	slices.SortFunc(sorted, func(a, b int32) int {
		return cmp.Or(cmp.Compare(start[a], start[b]), cmp.Compare(p.rank[b], p.rank[a]), cmp.Compare(place[a], place[b]))
	})
	return sorted
}
