// Dominators and natural loops of a function, and which instruction can follow which.

package access

import (
	"github.com/dagrun/dagrun/kernels/ptx"
)

// loop is a natural loop: a header that dominates the blocks that lead back to it.
type loop struct {
	header  int32
	latches []int32
	in      map[int32]bool // blocks
	exits   []int32        // blocks in which each iteration decides whether to stay, in the order of the text
}

// graph is a function's control flow.
type graph struct {
	f       *ptx.Function
	blocks  []ptx.Block
	of      []int32 // the block of an instruction
	order   []int32 // position in reverse postorder, -1 if unreachable
	idom    []int32
	loops   []loop
	tangled bool // there are cycles without a header, so loops cannot be analysed
}

func newGraph(f *ptx.Function) *graph {
	g := &graph{f: f, blocks: f.Blocks(), of: make([]int32, len(f.Code))}
	n := len(g.blocks)
	g.order, g.idom = make([]int32, n), make([]int32, n)
	for b := range g.blocks {
		g.order[b], g.idom[b] = -1, -1
		for i := g.blocks[b].Start; i < g.blocks[b].End; i++ {
			g.of[i] = int32(b)
		}
	}
	if n == 0 {
		return g
	}
	sorted := g.reversePostorder()
	g.idom[0] = 0
	for changed := true; changed; {
		changed = false
		for _, b := range sorted[1:] {
			found := int32(-1)
			for _, before := range g.blocks[b].Before {
				if g.idom[before] < 0 {
					continue
				}
				if found < 0 {
					found = before
				} else {
					found = g.common(found, before)
				}
			}
			if found != g.idom[b] {
				g.idom[b], changed = found, true
			}
		}
	}
	g.findLoops(sorted)
	return g
}

func (g *graph) reversePostorder() []int32 {
	type visit struct{ block, next int32 }
	seen := make([]bool, len(g.blocks))
	var done []int32
	stack := []visit{{0, 0}}
	seen[0] = true
	for len(stack) > 0 {
		top := &stack[len(stack)-1]
		if next := g.blocks[top.block].Next; int(top.next) < len(next) {
			to := next[top.next]
			top.next++
			if !seen[to] {
				seen[to] = true
				stack = append(stack, visit{to, 0})
			}
			continue
		}
		done = append(done, top.block)
		stack = stack[:len(stack)-1]
	}
	for i, j := 0, len(done)-1; i < j; i, j = i+1, j-1 {
		done[i], done[j] = done[j], done[i]
	}
	for i, b := range done {
		g.order[b] = int32(i)
	}
	return done
}

func (g *graph) common(a, b int32) int32 {
	for a != b {
		for g.order[a] > g.order[b] {
			a = g.idom[a]
		}
		for g.order[b] > g.order[a] {
			b = g.idom[b]
		}
	}
	return a
}

func (g *graph) dominates(a, b int32) bool {
	for g.order[b] > g.order[a] {
		b = g.idom[b]
	}
	return a == b
}

func (g *graph) findLoops(sorted []int32) {
	at := map[int32]int{}
	for _, b := range sorted {
		for _, to := range g.blocks[b].Next {
			if g.order[to] > g.order[b] {
				continue
			}
			if !g.dominates(to, b) {
				g.tangled = true
				continue
			}
			i, ok := at[to]
			if !ok {
				i = len(g.loops)
				at[to] = i
				g.loops = append(g.loops, loop{header: to, in: map[int32]bool{to: true}})
			}
			l := &g.loops[i]
			l.latches = append(l.latches, b)
			for work := []int32{b}; len(work) > 0; {
				x := work[len(work)-1]
				work = work[:len(work)-1]
				if l.in[x] || g.order[x] < 0 {
					continue
				}
				l.in[x] = true
				work = append(work, g.blocks[x].Before...)
			}
		}
	}
	for i := range g.loops {
		l := &g.loops[i]
		for b := range int32(len(g.blocks)) {
			if next := g.blocks[b].Next; l.in[b] && len(next) == 2 && l.in[next[0]] != l.in[next[1]] && g.everyTime(l, b) {
				l.exits = append(l.exits, b)
			}
		}
	}
}

// innermost returns the smallest loop around a block, or nil.
func (g *graph) innermost(b int32) *loop {
	var found *loop
	for i := range g.loops {
		if l := &g.loops[i]; l.in[b] && (found == nil || len(l.in) < len(found.in)) {
			found = l
		}
	}
	return found
}

// everyTime reports whether each iteration of a loop passes a block.
func (g *graph) everyTime(l *loop, b int32) bool {
	for _, latch := range l.latches {
		if !g.dominates(b, latch) {
			return false
		}
	}
	return true
}

// reaches reports whether control can get from after one instruction to another without executing a third one, which is neither of the two.
func (g *graph) reaches(from, to, without int32) bool {
	seen := make([]bool, len(g.blocks))
	// run walks a block from an instruction on. It tells whether it found to, and whether control may leave at the end.
	run := func(start, end int32) (found, through bool) {
		for i := start; i < end; i++ {
			if i == without {
				return false, false
			}
			if i == to {
				return true, false
			}
		}
		return false, true
	}
	found, through := run(from+1, g.blocks[g.of[from]].End)
	if found || !through {
		return found
	}
	work := append([]int32(nil), g.blocks[g.of[from]].Next...)
	for len(work) > 0 {
		b := work[len(work)-1]
		work = work[:len(work)-1]
		if seen[b] {
			continue
		}
		seen[b] = true
		found, through := run(g.blocks[b].Start, g.blocks[b].End)
		if found {
			return true
		}
		if through {
			work = append(work, g.blocks[b].Next...)
		}
	}
	return false
}
