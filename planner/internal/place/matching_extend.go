// Matching: adds pairs of nodes that depend on each other through other nodes. Keeps the number of direct dependencies.

package place

// pairing tells which node follows which on a stream, -1 for none.
type pairing struct {
	next, prev []int32
}

type matcher struct {
	pairing
	p     *Problem
	n     int32
	may   []bool
	start []int32 // the reduction, by predecessor
	succ  []int32
	level []int32
	at    []int32
	queue []int32

	coveredFrom, coveredTo []bool // by node, whether the vertex cover contains it: as the earlier node of a pair, as the later one
}

func (m *matcher) succs(i int32) []int32 { return m.succ[m.start[i]:m.start[i+1]] }

// fits reports whether pools and bindings allow two nodes to follow each other on a stream.
func (m *matcher) fits(a, b int32) bool {
	return m.may[a] && m.may[b] && m.p.poolOf(a) == m.p.poolOf(b)
}

// extend augments the pairing to the most pairs that the vertex cover allows. That is a maximum flow from the earlier nodes of pairs to the
// later ones: through a direct dependency with one covered end, or, from a node that is not covered as an earlier one, along dependencies
// to any node that is not covered as a later one.
func (m *matcher) extend() error {
	for q := range m.p.pools {
		if err := m.extendPool(int32(q)); err != nil {
			return err
		}
	}
	return nil
}

// Vertices of the network: node i is i as the earlier node of a pair, n+i on a path, 2n+i as the later node; then source and sink.
func (m *matcher) extendPool(q int32) error {
	n, p := m.n, m.p
	source, sink := 3*n, 3*n+1
	f := network{head: make([]int32, 3*n+2)}
	for k := range f.head {
		f.head[k] = -1
	}
	for i := range n {
		inPool := m.may[i] && p.poolOf(i) == q
		if inPool {
			f.link(source, i, 1, m.next[i] >= 0)
			f.link(2*n+i, sink, 1, m.prev[i] >= 0)
			if !m.coveredTo[i] {
				f.link(n+i, 2*n+i, 1, false)
			}
		}
		for _, s := range m.succs(i) {
			f.link(n+i, n+s, n, false)
			if !inPool {
				continue
			}
			if !m.coveredFrom[i] {
				f.link(i, n+s, 1, false)
			}
			if m.fits(i, s) && m.coveredFrom[i] != m.coveredTo[s] {
				f.link(i, 2*n+s, 1, m.next[i] == s)
			}
		}
	}
	f.level = make([]int32, len(f.head))
	f.at = make([]int32, len(f.head))
	for f.layers(source, sink) {
		if err := p.ctx.Err(); err != nil {
			return err
		}
		f.block(source, sink)
	}
	// Follow one unit from each earlier node.
	copy(f.at, f.head)
	for i := range n {
		if !m.may[i] || p.poolOf(i) != q {
			continue
		}
		m.next[i] = -1
	}
	for i := range n {
		if !m.may[i] || p.poolOf(i) != q {
			continue
		}
		v := i
		for v < 2*n {
			e := f.at[v]
			for e >= 0 && (e&1 == 1 || f.flow(e) == 0) {
				e = f.next[e]
			}
			f.at[v] = e
			if e < 0 {
				break
			}
			f.room[e^1]--
			v = f.to[e]
		}
		if v >= 2*n {
			m.next[i] = v - 2*n
			m.prev[v-2*n] = i
		}
	}
	return nil
}

// network is a flow network. Edges come in pairs: 2k and, backwards, 2k+1.
type network struct {
	head []int32 // the first edge of each vertex, -1 for none
	next []int32
	to   []int32
	room []int32
	level,
	at, stack, path []int32
}

func (f *network) link(from, to, room int32, used bool) {
	back := int32(0)
	if used {
		room, back = room-1, 1
	}
	f.to = append(f.to, to, from)
	f.room = append(f.room, room, back)
	f.next = append(f.next, f.head[from], f.head[to])
	f.head[from] = int32(len(f.to) - 2)
	f.head[to] = int32(len(f.to) - 1)
}

// flow is how much goes through a forward edge.
func (f *network) flow(e int32) int32 { return f.room[e^1] }

// layers numbers vertices by their distance from the source. It returns false if the sink cannot be reached.
func (f *network) layers(source, sink int32) bool {
	for v := range f.level {
		f.level[v] = -1
	}
	f.level[source] = 0
	f.stack = append(f.stack[:0], source)
	for k := 0; k < len(f.stack); k++ {
		v := f.stack[k]
		for e := f.head[v]; e >= 0; e = f.next[e] {
			if t := f.to[e]; f.room[e] > 0 && f.level[t] < 0 {
				f.level[t] = f.level[v] + 1
				f.stack = append(f.stack, t)
			}
		}
	}
	return f.level[sink] >= 0
}

// block sends one unit along each shortest path that is still open.
func (f *network) block(source, sink int32) {
	copy(f.at, f.head)
	f.path = f.path[:0]
	v := source
	for {
		if v == sink {
			for _, e := range f.path {
				f.room[e]--
				f.room[e^1]++
			}
			f.path = f.path[:0]
			v = source
			continue
		}
		e := f.at[v]
		for e >= 0 && (f.room[e] == 0 || f.level[f.to[e]] != f.level[v]+1) {
			e = f.next[e]
		}
		f.at[v] = e
		if e >= 0 {
			f.path = append(f.path, e)
			v = f.to[e]
			continue
		}
		if len(f.path) == 0 {
			return
		}
		last := f.path[len(f.path)-1]
		f.path = f.path[:len(f.path)-1]
		v = f.to[last^1]
		f.at[v] = f.next[f.at[v]]
	}
}
