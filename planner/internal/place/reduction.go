// Transitive reduction of a problem's dependencies. Does not look at streams.

package place

// reductionColumns is how many possible ancestors one walk follows, so that 50,000 nodes take 25 MB, not 300 MB.
const reductionColumns = 4096

// reduce marks the dependencies that no longer path implies. The result is parallel to preds, node by node: those of node i
// start at first[i]. order is topological. before adds one more predecessor to each node (-1: none), which is not marked; it may be nil.
func reduce(p *Problem, order, before []int32) (keep []bool, first []int32, err error) {
	n := int32(p.len())
	first = make([]int32, n+1)
	for i := range n {
		first[i+1] = first[i] + int32(len(p.preds(i)))
	}
	keep = make([]bool, first[n])
	for k := range keep {
		keep[k] = true
	}
	place := make([]int32, n)
	for k, i := range order {
		place[i] = int32(k)
	}
	words := (min(n, reductionColumns) + 63) / 64
	ancestors := make([]uint64, n*words)
	for lo := int32(0); lo < n; lo += words * 64 {
		if err := p.ctx.Err(); err != nil {
			return nil, nil, err
		}
		// Nodes before lo in the order have no ancestors among these columns.
		for _, i := range order[lo:] {
			mine := ancestors[i*words : (i+1)*words]
			clear(mine)
			preds := p.preds(i)
			previous := int32(-1)
			if before != nil {
				previous = before[i]
			}
			if previous >= 0 && place[previous] > lo {
				copy(mine, ancestors[previous*words:(previous+1)*words])
			}
			for _, q := range preds {
				if place[q] <= lo {
					continue
				}
				for w, v := range ancestors[q*words : (q+1)*words] {
					mine[w] |= v
				}
			}
			for k, q := range preds {
				if at := place[q] - lo; at >= 0 && at < words*64 && mine[at/64]>>(at%64)&1 == 1 {
					keep[first[i]+int32(k)] = false
				}
			}
			for _, q := range preds {
				if at := place[q] - lo; at >= 0 && at < words*64 {
					mine[at/64] |= 1 << (at % 64)
				}
			}
			if previous >= 0 {
				if at := place[previous] - lo; at >= 0 && at < words*64 {
					mine[at/64] |= 1 << (at % 64)
				}
			}
		}
	}
	return keep, first, nil
}
