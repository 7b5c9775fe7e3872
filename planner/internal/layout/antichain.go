// The heaviest antichain: the set with the most bytes among sets of buffers of which no two may share bytes. Found exactly, by maximum
// flow. Needs a table of all pairs of buffers.

package layout

// heaviestAntichain returns, in ascending order, a set of buffers of which no two are ordered and which has the most bytes. Every layout
// needs at least that many bytes. By Dilworth's theorem for weights, the set follows from the fewest chains that cover each buffer as
// often as it has bytes. The number of chains is a maximum flow from each buffer's lower copy to its upper copy, and the set is what the
// minimum cut leaves.
func heaviestAntichain(l *lifetimes) []int32 {
	n := len(l.buffers)
	f := newFlow(2*n + 2)
	source, sink := int32(2*n), int32(2*n+1)
	for a := range int32(n) {
		f.link(source, a, l.bytes[a])
		f.link(int32(n)+a, sink, l.bytes[a])
	}
	for a := range int32(n) {
		for b := range int32(n) {
			if a != b && l.first[a] < l.first[b] && l.before(a, b) {
				f.link(a, int32(n)+b, 1<<62)
			}
		}
	}
	f.maximize(source, sink)
	// Lower copies that the source still reaches and upper copies that it does not are uncovered.
	var set []int32
	for a := range int32(n) {
		if f.level[a] >= 0 && f.level[int32(n)+a] < 0 {
			set = append(set, a)
		}
	}
	return set
}

// flow is a network for maximum flow by levels (Dinic).
type flow struct {
	head  []int32
	next  []int32
	to    []int32
	room  []int64
	level []int32
	at    []int32
}

func newFlow(nodes int) *flow {
	f := &flow{head: make([]int32, nodes), level: make([]int32, nodes), at: make([]int32, nodes)}
	for i := range f.head {
		f.head[i] = -1
	}
	return f
}

func (f *flow) link(from, to int32, room int64) {
	f.to = append(f.to, to, from)
	f.room = append(f.room, room, 0)
	f.next = append(f.next, f.head[from], f.head[to])
	f.head[from] = int32(len(f.to) - 2)
	f.head[to] = int32(len(f.to) - 1)
}

// maximize fills the network; afterwards level is negative for what the source no longer reaches.
func (f *flow) maximize(source, sink int32) {
	queue := make([]int32, 0, len(f.head))
	for {
		for i := range f.level {
			f.level[i] = -1
		}
		f.level[source] = 0
		queue = append(queue[:0], source)
		for len(queue) > 0 {
			i := queue[0]
			queue = queue[1:]
			for e := f.head[i]; e >= 0; e = f.next[e] {
				if f.room[e] > 0 && f.level[f.to[e]] < 0 {
					f.level[f.to[e]] = f.level[i] + 1
					queue = append(queue, f.to[e])
				}
			}
		}
		if f.level[sink] < 0 {
			return
		}
		copy(f.at, f.head)
		for f.push(source, sink, 1<<62) > 0 {
		}
	}
}

func (f *flow) push(i, sink int32, most int64) int64 {
	if i == sink {
		return most
	}
	for ; f.at[i] >= 0; f.at[i] = f.next[f.at[i]] {
		e := f.at[i]
		if f.room[e] > 0 && f.level[f.to[e]] == f.level[i]+1 {
			if got := f.push(f.to[e], sink, min(most, f.room[e])); got > 0 {
				f.room[e] -= got
				f.room[e^1] += got
				return got
			}
		}
	}
	return 0
}
