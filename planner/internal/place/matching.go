// Matches nodes with the nodes that follow them on their streams: as many direct dependencies as possible, and then as many nodes as
// possible. Does not look at durations.

package place

// match pairs the nodes of each pool for which free is true with nodes that depend on them. Of all such pairings it takes one whose pairs
// contain the most dependencies of the reduction and, among those, one with the most pairs.
//
// First comes a maximum matching of the reduction alone (Hopcroft and Karp). Its minimum vertex cover tells which pairs a pairing with as
// many dependencies can contain: dependencies with exactly one covered end, and other pairs with no covered end. The matching is then
// augmented with those pairs. Pairs that are not dependencies are found by walking from node to node, so the transitive closure is never
// stored.
func match(p *Problem, free func(i int32) bool) (*pairing, error) {
	n := int32(p.len())
	keep, first, err := reduce(p, p.order, nil)
	if err != nil {
		return nil, err
	}
	m := &matcher{p: p, n: n}
	m.pairing = pairing{next: make([]int32, n), prev: make([]int32, n)}
	m.may = make([]bool, n)
	m.start = make([]int32, n+1)
	for i := range n {
		m.next[i], m.prev[i] = -1, -1
		m.may[i] = free(i)
		for k, q := range p.preds(i) {
			if keep[first[i]+int32(k)] {
				m.start[q+1]++
			}
		}
	}
	for i := range n {
		m.start[i+1] += m.start[i]
	}
	m.succ = make([]int32, m.start[n])
	fill := append([]int32(nil), m.start[:n]...)
	for i := range n {
		for k, q := range p.preds(i) {
			if keep[first[i]+int32(k)] {
				m.succ[fill[q]] = i
				fill[q]++
			}
		}
	}
	m.level = make([]int32, n)
	m.at = make([]int32, n)
	for m.direct() {
		if err := p.ctx.Err(); err != nil {
			return nil, err
		}
	}
	m.cover()
	if err := m.extend(); err != nil {
		return nil, err
	}
	return &m.pairing, nil
}

// direct augments the matching of the reduction along as many disjoint shortest paths as it finds. It returns false if there was no path.
func (m *matcher) direct() bool {
	m.layers()
	found := false
	copy(m.at, m.start[:m.n])
	for i := range m.n {
		if m.may[i] && m.next[i] < 0 && m.augment(i) {
			found = true
		}
	}
	return found
}

// layers numbers the nodes that alternating paths from unmatched nodes reach, by their distance.
func (m *matcher) layers() {
	m.queue = m.queue[:0]
	for i := range m.n {
		m.level[i] = -1
		if m.may[i] && m.next[i] < 0 {
			m.level[i] = 0
			m.queue = append(m.queue, i)
		}
	}
	for head := 0; head < len(m.queue); head++ {
		i := m.queue[head]
		for _, s := range m.succs(i) {
			if !m.fits(i, s) {
				continue
			}
			if other := m.prev[s]; other >= 0 && m.level[other] < 0 {
				m.level[other] = m.level[i] + 1
				m.queue = append(m.queue, other)
			}
		}
	}
}

// augment looks for an alternating path from i that ends in a node without a predecessor, one level a step. The path is kept
// on an explicit stack: it can be as long as the graph.
func (m *matcher) augment(i int32) bool {
	stack := append(m.queue[:0], i)
	for len(stack) > 0 {
		i := stack[len(stack)-1]
		if m.at[i] == m.start[i+1] {
			m.level[i] = -1
			stack = stack[:len(stack)-1]
			if len(stack) > 0 {
				m.at[stack[len(stack)-1]]++
			}
			continue
		}
		s := m.succ[m.at[i]]
		if !m.fits(i, s) {
			m.at[i]++
			continue
		}
		other := m.prev[s]
		if other < 0 {
			for k := len(stack) - 1; k >= 0; k-- {
				from := stack[k]
				to := m.succ[m.at[from]]
				m.at[from] = m.start[from+1]
				m.level[from] = -1
				m.next[from], m.prev[to] = to, from
			}
			m.queue = stack
			return true
		}
		if m.level[other] != m.level[i]+1 {
			m.at[i]++
			continue
		}
		stack = append(stack, other)
	}
	m.queue = stack
	return false
}

// cover finds a minimum vertex cover of the reduction (König): the later nodes that alternating paths from unmatched nodes reach, and the
// earlier nodes that they do not reach.
func (m *matcher) cover() {
	m.layers()
	m.coveredFrom, m.coveredTo = make([]bool, m.n), make([]bool, m.n)
	for i := range m.n {
		if !m.may[i] {
			continue
		}
		if m.level[i] < 0 {
			m.coveredFrom[i] = true
			continue
		}
		for _, s := range m.succs(i) {
			if m.fits(i, s) {
				m.coveredTo[s] = true
			}
		}
	}
}
