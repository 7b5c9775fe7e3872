// A reference search for ways to spill: it follows many orders of nodes and choices of what leaves side by side, with the time that each takes.
// Without a limit on how many, it tries all of them. It shares nothing with the planner's own search.

package plantest

import (
	"cmp"
	"math"
	"slices"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/planner/plan"
)

// Beam is a search on a graph whose buffers are tiles of BlockBytes, used as a whole by kernels that run one after the other.
type Beam struct {
	Graph        *dag.Graph
	Times        []float64 // of the nodes
	UpUS, DownUS float64   // of a tile
	Slots        int       // tiles that fit
	Width        int       // how many states are kept after each node; 0: all that may lead to the best
	Best         float64   // longer ways are given up; 0: none is known

	jobs   []beamJob
	uses   [][]int // by tile: nodes
	state  []bool  // by tile: it has contents from outside, and is kept for the next replay
	Cut    bool    // some states were given up that might have led to the best
	States int     // that were kept
}

type beamJob struct {
	tiles []int
	reads []bool // by tile of the list
	write []bool
	succs []int
	preds int
}

type nodeSet [4]uint64

func (b *nodeSet) set(k int)     { b[k>>6] |= 1 << (k & 63) }
func (b *nodeSet) clear(k int)   { b[k>>6] &^= 1 << (k & 63) }
func (b nodeSet) has(k int) bool { return b[k>>6]>>(k&63)&1 != 0 }

// beamState is what is done and on the device, and when.
type beamState struct {
	done, here, dirty nodeSet
	slots             []int16   // by slot: its tile, or -1
	free              []float32 // by slot: when it can be written over
	ready             []float32 // by tile: when its contents are there, on the device or else at home
	written           []float32 // by tile: when it was last written
	home              nodeSet   // tiles with contents at home
	compute, up, down float32
	least             float32 // no way from here ends before
	from              *beamState
	node              int
	victims           []int // slots that the node's missing tiles take, in their order
}

// BeamWay is a way to spill.
type BeamWay struct {
	Order   []dag.NodeID
	Spilled []plan.Residency
	US      float64
}

func (b *Beam) prepare() {
	g := b.Graph
	n := g.Len()
	b.jobs, b.uses, b.state = make([]beamJob, n), make([][]int, len(g.Buffers)), make([]bool, len(g.Buffers))
	for k := range g.Buffers {
		b.state[k] = g.Buffers[k].Init != nil
	}
	for _, r := range g.ReadFirst() {
		b.state[r.Buffer] = true
	}
	var direct func(i dag.NodeID, visit func(int))
	direct = func(i dag.NodeID, visit func(int)) {
		for _, j := range g.Preds(i) {
			if g.IsJoin(j) {
				direct(j, visit)
			} else {
				visit(int(j))
			}
		}
	}
	for i := range n {
		job := &b.jobs[i]
		for _, a := range g.Accesses(dag.NodeID(i)) {
			k := slices.Index(job.tiles, int(a.Buffer))
			if k < 0 {
				k = len(job.tiles)
				job.tiles, job.reads, job.write = append(job.tiles, int(a.Buffer)), append(job.reads, false), append(job.write, false)
				b.uses[a.Buffer] = append(b.uses[a.Buffer], i)
			}
			job.reads[k] = job.reads[k] || a.Mode&dag.Read != 0
			job.write[k] = job.write[k] || a.Mode&dag.Write != 0
		}
		var before []int
		direct(dag.NodeID(i), func(j int) { before = append(before, j) })
		slices.Sort(before)
		for _, j := range slices.Compact(before) {
			b.jobs[j].succs = append(b.jobs[j].succs, i)
			job.preds++
		}
	}
}

// Search returns the best way found; nil if there is none that is shorter than Best.
func (b *Beam) Search() *BeamWay {
	b.prepare()
	var states []int
	for k, state := range b.state {
		if state && len(b.uses[k]) > 0 {
			states = append(states, k)
		}
	}
	var best *BeamWay
	try := func(stays []int) {
		if way := b.search(stays); way != nil {
			best, b.Best = way, way.US
		}
	}
	if b.Width > 0 || len(states) > 10 { // those that are used most stay
		slices.SortStableFunc(states, func(x, y int) int { return cmp.Compare(len(b.uses[y]), len(b.uses[x])) })
		for n := range min(len(states), b.Slots-1) + 1 {
			try(states[:n])
		}
		return best
	}
	for set := range 1 << len(states) {
		var stays []int
		for k, tile := range states {
			if set>>k&1 != 0 {
				stays = append(stays, tile)
			}
		}
		if len(stays) <= b.Slots {
			try(stays)
		}
	}
	return best
}

// search is Search with tiles that never leave the device.
func (b *Beam) search(stays []int) *BeamWay {
	tiles := len(b.Graph.Buffers)
	stay := nodeSet{}
	for _, k := range stays {
		stay.set(k)
	}
	slots := b.Slots - len(stays)
	first := &beamState{slots: slices.Repeat([]int16{-1}, slots), free: make([]float32, slots), ready: make([]float32, tiles), written: make([]float32, tiles)}
	for k, state := range b.state {
		if state && !stay.has(k) {
			first.home.set(k)
		}
	}
	limit := float32(math.Inf(1))
	if b.Best > 0 {
		limit = float32(b.Best) - 0.01
	}
	layer := []*beamState{first}
	for range b.jobs {
		var next []*beamState
		for _, s := range layer {
			for i := range b.jobs {
				if s.done.has(i) || !b.open(s, i) {
					continue
				}
				b.expand(s, i, stay, limit, func(t *beamState) { next = append(next, t) })
			}
		}
		layer = b.prune(next)
		b.States += len(layer)
	}
	var best *beamState
	for _, s := range layer {
		if best == nil || s.least < best.least {
			best = s
		}
	}
	if best == nil {
		return nil
	}
	return b.way(best, stays)
}

func (b *Beam) open(s *beamState, i int) bool {
	for j := range i { // dependencies are declared before
		if !s.done.has(j) && slices.Contains(b.jobs[j].succs, i) {
			return false
		}
	}
	return true
}

// expand runs a node next, with every choice of what leaves that comes into question.
func (b *Beam) expand(s *beamState, i int, stay nodeSet, limit float32, visit func(*beamState)) {
	job := &b.jobs[i]
	var missing []int
	for k, tile := range job.tiles {
		if !stay.has(tile) && !s.here.has(tile) {
			missing = append(missing, k)
		}
	}
	var empty, others []int
	for k, tile := range s.slots {
		switch {
		case tile < 0:
			empty = append(empty, k)
		case !slices.Contains(job.tiles, int(tile)):
			if b.next(s, int(tile)) < 0 && !(b.state[tile] && s.dirty.has(int(tile))) {
				empty = append(empty, k)
			} else {
				others = append(others, k)
			}
		}
	}
	byFree := func(x, y int) int { return cmp.Or(cmp.Compare(s.free[x], s.free[y]), cmp.Compare(x, y)) }
	slices.SortFunc(empty, byFree)
	if need := len(missing) - len(empty); need > len(others) {
		return
	} else if need <= 0 {
		b.run(s, i, missing, empty[:len(missing)], stay, limit, visit)
	} else {
		if b.Width > 0 { // those that are used again latest
			slices.SortFunc(others, func(x, y int) int {
				return cmp.Or(cmp.Compare(b.rank(s, int(s.slots[y])), b.rank(s, int(s.slots[x]))), byFree(x, y))
			})
			others = others[:min(len(others), need+2)]
		}
		eachSubset(others, need, nil, func(list []int) {
			b.run(s, i, missing, append(slices.Clone(empty), list...), stay, limit, visit)
		})
	}
}

func eachSubset(list []int, size int, taken []int, visit func([]int)) {
	if size == 0 {
		visit(taken)
		return
	}
	for k := 0; k+size <= len(list); k++ {
		eachSubset(list[k+1:], size-1, append(slices.Clone(taken), list[k]), visit)
	}
}

// next is the first node in declared order that still uses a tile, or -1.
func (b *Beam) next(s *beamState, tile int) int {
	for _, i := range b.uses[tile] {
		if !s.done.has(i) {
			return i
		}
	}
	return -1
}

func (b *Beam) rank(s *beamState, tile int) int {
	next := b.next(s, tile)
	if next < 0 {
		return math.MaxInt
	}
	for _, i := range b.uses[tile] {
		if !s.done.has(i) && b.open(s, i) {
			return 0
		}
	}
	return next
}

// run is a node with the slots that its missing tiles take.
func (b *Beam) run(s *beamState, i int, missing, slots []int, stay nodeSet, limit float32, visit func(*beamState)) {
	job := &b.jobs[i]
	t := &beamState{done: s.done, here: s.here, dirty: s.dirty, home: s.home, slots: slices.Clone(s.slots), free: slices.Clone(s.free),
		ready: slices.Clone(s.ready), written: slices.Clone(s.written), compute: s.compute, up: s.up, down: s.down, from: s, node: i, victims: slots}
	begin := t.compute
	for k, slot := range slots {
		if old := int(t.slots[slot]); old >= 0 {
			if t.dirty.has(old) && (b.state[old] || b.next(s, old) >= 0) {
				t.down = max(t.down, t.written[old]) + float32(b.DownUS)
				t.ready[old], t.free[slot] = t.down, max(t.free[slot], t.down)
				t.home.set(old)
			}
			t.here.clear(old)
			t.dirty.clear(old)
		}
		tile := job.tiles[missing[k]]
		t.slots[slot] = int16(tile)
		t.here.set(tile)
		if job.reads[missing[k]] && t.home.has(tile) {
			t.up = max(t.up, t.free[slot], t.ready[tile]) + float32(b.UpUS)
			t.ready[tile] = t.up
			begin = max(begin, t.up)
		} else {
			begin = max(begin, t.free[slot])
		}
	}
	for _, tile := range job.tiles {
		if t.here.has(tile) {
			begin = max(begin, t.ready[tile])
		}
	}
	end := begin + float32(b.Times[i])
	t.compute = end
	for k, tile := range job.tiles {
		if stay.has(tile) {
			continue
		}
		if job.write[k] {
			t.dirty.set(tile)
			t.home.clear(tile)
			t.written[tile] = end
		}
		t.free[slices.Index(t.slots, int16(tile))] = end
	}
	t.done.set(i)
	if b.bound(t, stay); t.least < limit {
		visit(t)
	}
}

// bound finds a time before which no way from a state ends.
func (b *Beam) bound(t *beamState, stay nodeSet) {
	compute, up, down := t.compute, t.up, t.down
	var seen nodeSet
	for i := range b.jobs {
		if t.done.has(i) {
			continue
		}
		compute += float32(b.Times[i])
		for k, tile := range b.jobs[i].tiles {
			if !seen.has(tile) && !stay.has(tile) && !t.here.has(tile) && b.jobs[i].reads[k] && t.home.has(tile) {
				up += float32(b.UpUS)
			}
			if b.jobs[i].write[k] && b.state[tile] && !stay.has(tile) && !t.dirty.has(tile) && !seen.has(tile) {
				down += float32(b.DownUS)
			}
			seen.set(tile)
		}
	}
	for _, tile := range t.slots {
		if tile >= 0 && b.state[tile] && t.dirty.has(int(tile)) {
			down += float32(b.DownUS)
		}
	}
	t.least = max(compute, up, down)
}

// prune keeps the most promising states.
func (b *Beam) prune(list []*beamState) []*beamState {
	slices.SortStableFunc(list, func(x, y *beamState) int {
		return cmp.Or(cmp.Compare(x.least, y.least), cmp.Compare(x.compute+x.up+x.down, y.compute+y.up+y.down))
	})
	type key struct{ done, here, dirty nodeSet }
	kept := map[key][]*beamState{}
	var next []*beamState
	for _, s := range list {
		k := key{s.done, s.here, s.dirty}
		if slices.ContainsFunc(kept[k], func(other *beamState) bool { return b.dominates(other, s) }) {
			continue
		}
		if b.Width > 0 && len(kept[k]) >= 2 {
			b.Cut = true
			continue
		}
		kept[k] = append(kept[k], s)
		if next = append(next, s); len(next) == b.Width {
			b.Cut = true
			break
		}
	}
	return next
}

// dominates reports whether all that s can do, other can do no later.
func (b *Beam) dominates(other, s *beamState) bool {
	if other.compute > s.compute || other.up > s.up || other.down > s.down {
		return false
	}
	for k := range s.ready {
		if other.ready[k] > s.ready[k] && b.next(s, k) >= 0 || other.written[k] > s.written[k] && s.dirty.has(k) {
			return false
		}
	}
	x, y := slices.Clone(other.free), slices.Clone(s.free)
	of := func(t *beamState, tile int16) float32 { return t.free[slices.Index(t.slots, tile)] }
	for slot, tile := range s.slots {
		if tile < 0 {
			continue
		}
		if at := slices.Index(other.slots, tile); at >= 0 && s.here.has(int(tile)) {
			if of(other, tile) > of(s, tile) {
				return false
			}
			x[at], y[slot] = 0, 0
		}
	}
	slices.Sort(x)
	slices.Sort(y)
	for k := range x {
		if x[k] > y[k] {
			return false
		}
	}
	return true
}

// way tells what a final state has done.
func (b *Beam) way(last *beamState, stays []int) *BeamWay {
	var path []*beamState
	for s := last; s.from != nil; s = s.from {
		path = append(path, s)
	}
	slices.Reverse(path)
	w := &BeamWay{US: float64(last.least)}
	n := dag.NodeID(len(path))
	for k, tile := range stays {
		w.Spilled = append(w.Spilled, plan.Residency{Buffer: dag.BufferID(tile), Hi: BlockBytes, Last: n - 1, Offset: int64(k) * BlockBytes, Stays: true})
	}
	at := map[int16]int{} // by tile on the device: its residency
	for k, s := range path {
		w.Order = append(w.Order, dag.NodeID(s.node))
		for _, slot := range s.victims {
			delete(at, s.from.slots[slot])
			at[s.slots[slot]] = len(w.Spilled)
			w.Spilled = append(w.Spilled, plan.Residency{Buffer: dag.BufferID(s.slots[slot]), Hi: BlockBytes, First: dag.NodeID(k),
				Offset: int64(len(stays)+slot) * BlockBytes})
		}
		for _, tile := range b.jobs[s.node].tiles {
			if r, on := at[int16(tile)]; on {
				w.Spilled[r].Last = dag.NodeID(k)
			}
		}
	}
	slices.SortStableFunc(w.Spilled, func(x, y plan.Residency) int { return cmp.Compare(x.First, y.First) })
	return w
}
