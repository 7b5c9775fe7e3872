// The memory that every plan of a graph needs: buffers that are alive together in every order. Places nothing.

package layout

import (
	"math/bits"
	"slices"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/planner/plan"
)

// leastWords limits the tables of the buffers that are accessed before and after each node to 32 MiB.
const leastWords = 4 << 20

// Least returns, for each device with buffers, the node at which the most bytes are alive in every plan: buffers that are kept, buffers
// that the node accesses, and buffers that are accessed both before and after it in every order. The last kind is left out for graphs that
// are too large for the tables. Arena is what every plan needs at least, the same as Live.
func Least(g *dag.Graph, kept []bool) ([]plan.Peak, error) {
	devices, _, err := arenaSizes(g)
	if err != nil {
		return nil, err
	}
	var buffers []int32
	index := make([]int32, len(g.Buffers)) // plus 1
	for i := range g.Buffers {
		if b := &g.Buffers[i]; b.InArena() && !kept[i] {
			buffers = append(buffers, int32(i))
			index[i] = int32(len(buffers))
		}
	}
	words := (len(buffers) + 63) / 64
	n := g.Len()
	put := func(set []uint64, accesses []dag.Access) {
		for _, a := range accesses {
			if k := index[a.Buffer] - 1; k >= 0 && a.Lo < a.Hi {
				set[k>>6] |= 1 << (k & 63)
			}
		}
	}
	within := withinControls(g, func(b dag.BufferID) int64 {
		if index[b] == 0 {
			return 0
		}
		return plan.AlignUp(g.Buffers[b].Bytes)
	})
	own := func(set []uint64, i int32) {
		accesses := g.Accesses(dag.NodeID(i))
		if w, ok := within[i]; ok {
			accesses = w
		}
		put(set, accesses)
	}
	set := func(i int32) []uint64 {
		row := make([]uint64, words)
		own(row, i)
		return row
	}
	if 2*g.Vertices()*words <= leastWords {
		set = accessedAround(g, words, own)
	}
	byDevice := map[int32]*plan.Peak{}
	fixed := map[int32]int64{}
	for _, device := range devices {
		byDevice[device] = &plan.Peak{Device: device, Node: -1}
	}
	for i := range g.Buffers {
		if b := &g.Buffers[i]; b.InArena() && kept[i] {
			fixed[b.Device] += plan.AlignUp(b.Bytes)
		}
	}
	for device, p := range byDevice {
		p.Live = fixed[device]
	}
	live := make([]int64, len(devices))
	for i := range int32(n) {
		for d, device := range devices {
			live[d] = fixed[device]
		}
		alive := set(i)
		eachBit(alive, func(k int32) {
			b := &g.Buffers[buffers[k]]
			d, _ := slices.BinarySearch(devices, b.Device)
			live[d] += plan.AlignUp(b.Bytes)
		})
		for d, device := range devices {
			if p := byDevice[device]; live[d] > p.Live {
				p.Live, p.Node = live[d], dag.NodeID(i)
			}
		}
	}
	peaks := make([]plan.Peak, len(devices))
	for d, device := range devices {
		p := byDevice[device]
		for i := range g.Buffers {
			if b := &g.Buffers[i]; b.InArena() && b.Device == device && kept[i] {
				addBuffer(p, g, dag.BufferID(i), true)
			}
		}
		if p.Node >= 0 {
			eachBit(set(int32(p.Node)), func(k int32) {
				if g.Buffers[buffers[k]].Device == device {
					addBuffer(p, g, dag.BufferID(buffers[k]), false)
				}
			})
		}
		p.Arena = p.Live
		sortBuffers(p)
		peaks[d] = *p
	}
	return peaks, nil
}

// withinControls returns, for each loop and branch, what it accesses during all passes and at the node of its bodies that accesses the
// most bytes of temporaries.
func withinControls(g *dag.Graph, bytes func(dag.BufferID) int64) map[int32][]dag.Access {
	if !g.HasControl() {
		return nil
	}
	users, open, all := onlyUsers(g), anyBuffer(g), map[int32][]dag.Access{}
	for i := range int32(g.Len()) {
		if g.Nodes[i].Control == nil {
			continue
		}
		most, widest := int64(-1), []dag.Access(nil)
		inner := withinControl(g, dag.NodeID(i), users, open, func(accesses []dag.Access) {
			sum, counted := int64(0), map[dag.BufferID]bool{}
			for _, a := range accesses {
				if !counted[a.Buffer] {
					counted[a.Buffer] = true
					sum += bytes(a.Buffer)
				}
			}
			if sum > most {
				most, widest = sum, accesses
			}
		})
		held := slices.DeleteFunc(slices.Clone(g.Accesses(dag.NodeID(i))), func(a dag.Access) bool { return inner[a.Buffer] })
		held = append(held, widest...)
		all[i] = held
	}
	return all
}

// accessedAround returns which buffers are alive at a node in every order: accessed by it, or by one before it and one after it.
func accessedAround(g *dag.Graph, words int, own func(set []uint64, i int32)) func(i int32) []uint64 {
	n := g.Vertices()
	before, after := make([]uint64, n*words), make([]uint64, n*words)
	row := func(table []uint64, i int32) []uint64 { return table[int(i)*words:][:words] }
	order := g.Sequence()
	merge := func(to, from []uint64) {
		for x, w := range from {
			to[x] |= w
		}
	}
	for _, i := range order {
		if !g.IsJoin(i) {
			own(row(before, int32(i)), int32(i))
			own(row(after, int32(i)), int32(i))
		}
		for _, e := range g.OutEdges(i) {
			if g.Enforced(e) {
				merge(row(before, int32(e.To)), row(before, int32(i)))
			}
		}
	}
	for _, i := range slices.Backward(order) {
		for _, e := range g.OutEdges(i) {
			if g.Enforced(e) {
				merge(row(after, int32(i)), row(after, int32(e.To)))
			}
		}
	}
	both := make([]uint64, words)
	return func(i int32) []uint64 {
		for x, w := range row(before, i) {
			both[x] = w & row(after, i)[x]
		}
		return both
	}
}

func eachBit(set []uint64, visit func(k int32)) {
	for x, w := range set {
		for ; w != 0; w &= w - 1 {
			visit(int32(x*64 + bits.TrailingZeros64(w)))
		}
	}
}
