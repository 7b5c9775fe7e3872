// The round-robin strategy: goes through the graph by levels and gives each node the stream of its index in the level. A baseline.

package place

func RoundRobin(p *Problem) (*Assignment, error) {
	n := p.len()
	s := &Assignment{stream: make([]int32, n), order: make([]int32, n)}
	// Streams of a pool: those that users bound, if other nodes may use them, then new ones up to its share.
	streams := make([][]int32, len(p.pools))
	for k := range p.bindings {
		s.streams = append(s.streams, draftStream{pool: p.bindings[k].pool, binding: int32(k)})
		if !p.explicit {
			q := p.bindings[k].pool
			streams[q] = append(streams[q], int32(k))
		}
	}
	for q := range p.pools {
		for len(streams[q]) < p.evenShare(q) {
			streams[q] = append(streams[q], int32(len(s.streams)))
			s.streams = append(s.streams, draftStream{pool: int32(q), binding: -1})
		}
	}
	level := p.levels()
	start := make([]int32, n+1)
	for _, i := range p.order {
		start[level[i]+1]++
	}
	for l := range n {
		start[l+1] += start[l]
	}
	for _, i := range p.order {
		s.order[start[level[i]]] = i
		start[level[i]]++
	}
	next := make([]int, len(p.pools)) // index in the level, by pool
	at := int32(0)
	for _, i := range s.order {
		if level[i] != at {
			at = level[i]
			clear(next)
		}
		q := p.poolOf(i)
		if b := p.boundOf(i); b >= 0 {
			s.stream[i] = b
		} else {
			s.stream[i] = streams[q][next[q]%len(streams[q])]
		}
		next[q]++
	}
	return s, p.ctx.Err()
}

// levels returns the length of the longest chain of nodes before each node. A join has the level of the nodes that come after it at the
// earliest.
func (p *Problem) levels() []int32 {
	level := make([]int32, p.vertices())
	for _, i := range p.sequence {
		for _, q := range p.preds(i) {
			step := int32(1)
			if int(q) >= p.len() {
				step = 0
			}
			level[i] = max(level[i], level[q]+step)
		}
	}
	return level
}

// evenShare is how many streams a pool gets if those of its device are divided evenly, at least one.
func (p *Problem) evenShare(q int) int {
	first, pools := -1, 0
	for k := range p.pools {
		if p.pools[k].device == p.pools[q].device {
			if first < 0 {
				first = k
			}
			pools++
		}
	}
	share := p.streams / pools
	if q-first < p.streams%pools {
		share++
	}
	return max(1, share)
}
