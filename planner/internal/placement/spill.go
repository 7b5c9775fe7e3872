// Spilling, the problem: which parts of buffers can leave the device for a while, and which nodes touch them.

package placement

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"sort"
	"strings"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/internal/words"
	"github.com/dagrun/dagrun/planner/plan"
)

// ErrCannotSpill is returned (wrapped) for graphs whose data cannot leave the device, or not enough of it.
var ErrCannotSpill = errors.New("the pipeline cannot be spilled to host memory")

// SpillProblem is a graph whose data does not fit on its devices.
type SpillProblem struct {
	Graph *dag.Graph
	Limit int64 // bytes of each device

	keep, early []bool
	pinned      []bool  // by buffer: it never leaves the device
	pitch       []int64 // by buffer that is used in tiles: bytes of a row
	align       []int64 // by buffer: of its pieces, in bytes
	units       []unit  // by buffer, then first byte
	first       []int32
	touches     [][]touch    // by node
	uses        [][]int32    // by unit: the positions of the nodes that need it on the device, ascending
	count       int32        // of all touches
	order       []dag.NodeID // by position: the node that comes there; nil: as declared
	devices     int          // 1 + the highest that has units
	across      bool         // some copies use more than one unit
}

// unit is a part of a device buffer that is on the device as a whole or not at all.
type unit struct {
	buffer         dag.BufferID
	device         int32
	lo, hi         int64 // the bytes that it has memory for
	usedLo, usedHi int64 // the bytes that are accessed, and moved
	room           int64 // hi-lo as an arena counts it
}

// touch is what a node does with a unit.
type touch struct {
	unit   int32
	number int32 // among all touches
	reads  bool
	writes bool
	all    bool // it writes all of the unit without reading it
	copied bool // by a copy of the pipeline, which can use the home in host memory just as well
	across bool // by a copy that uses more than this unit, and so the home
}

// NewSpillProblem checks that a graph can be spilled. keep marks buffers that are read after the last replay, besides those with save or expect;
// nil marks none. rows are the bytes of the rows of each buffer that a graph before this one used in tiles, 0 for others; nil where there was none.
func NewSpillProblem(g *dag.Graph, limit int64, keep []bool, rows []int64) (*SpillProblem, error) {
	switch {
	case g.Sync == dag.SyncExplicit:
		return nil, fmt.Errorf("%w: with sync: explicit its order is its own", ErrCannotSpill)
	case g.Ranks > 1:
		return nil, fmt.Errorf("%w: it is one of several ranks", ErrCannotSpill)
	}
	n := len(g.Buffers)
	p := &SpillProblem{Graph: g, Limit: limit, keep: make([]bool, n), early: make([]bool, n), pinned: make([]bool, n), first: make([]int32, n+1)}
	for k := range g.Buffers {
		b := &g.Buffers[k]
		p.keep[k] = b.Save != "" || b.Expect != nil || keep != nil && keep[k]
	}
	for _, r := range g.ReadFirst() {
		p.early[r.Buffer] = !g.Buffers[r.Buffer].Scratch
	}
	var err error
	g.EachGraph(func(g *dag.Graph, _ []string) {
		for i := range g.Nodes {
			node := &g.Nodes[i]
			if node.Communication != nil && err == nil {
				err = fmt.Errorf("%w: %q communicates with other ranks", ErrCannotSpill, node.Name)
			}
			if node.Peer { // its kernel may reach all buffers of other devices
				for _, a := range g.Accesses(dag.NodeID(i)) {
					p.pinned[a.Buffer] = true
				}
			}
		}
	})
	if err != nil {
		return nil, err
	}
	p.pitch = rows
	if rows == nil {
		p.pitch = Rows(g)
	}
	p.findUnits()
	p.findTouches()
	return p, nil
}

// Rows returns for each buffer of a graph the bytes of a row, if it is used in tiles, and 0 otherwise.
func Rows(g *dag.Graph) []int64 {
	rows := make([]int64, len(g.Buffers))
	for i := range g.Nodes {
		eachUse(g, dag.NodeID(i), func(r dag.Range) { rows[r.Buffer] = max(rows[r.Buffer], int64(r.Pitch)) })
	}
	return rows
}

// whole reports whether a buffer has contents before a replay or after it, so that one place must hold all of it.
func (p *SpillProblem) whole(b dag.BufferID) bool {
	return p.early[b] || p.keep[b] || p.Graph.Buffers[b].Init != nil
}

// eachUse visits the ranges that a node uses: those it accesses, and those whose address it is given. Of a loop or branch, these are the ranges
// that its nodes and its condition use.
func eachUse(g *dag.Graph, i dag.NodeID, visit func(r dag.Range)) {
	if c := g.Nodes[i].Control; c != nil {
		if c.Condition != nil {
			for _, r := range c.Condition.Operands {
				visit(r)
			}
		}
		for _, body := range c.Bodies {
			for k := range body.Nodes {
				eachUse(body, dag.NodeID(k), visit)
			}
		}
		return
	}
	for _, a := range g.Accesses(i) {
		visit(a.Range)
	}
	if launch := g.Nodes[i].Launch; launch != nil {
		for _, a := range launch.Args {
			if a.IsBuffer {
				visit(a.Range)
			}
		}
	}
}

// findUnits cuts buffers into parts that no kernel uses across. What only copies use is cut as the copies are.
func (p *SpillProblem) findUnits() {
	g := p.Graph
	p.align = alignments(g)
	var kernels, copies []use
	for i := range g.Nodes {
		eachUse(g, dag.NodeID(i), func(r dag.Range) {
			b := &g.Buffers[r.Buffer]
			if !b.InArena() {
				return
			}
			u := use{buffer: r.Buffer, lo: r.Lo, hi: max(r.Lo, r.Hi)}
			if p.pinned[r.Buffer] {
				u.lo, u.hi = 0, b.Bytes
			}
			if g.Nodes[i].Copy != nil && u.lo < u.hi && !p.pinned[r.Buffer] {
				copies = append(copies, u)
			} else {
				kernels = append(kernels, u)
			}
		})
	}
	byPlace := func(a, b use) int {
		return cmp.Or(cmp.Compare(a.buffer, b.buffer), cmp.Compare(a.lo, b.lo), cmp.Compare(a.hi, b.hi))
	}
	slices.SortFunc(kernels, byPlace)
	slices.SortFunc(copies, byPlace)
	add := func(list []unit, u use) []unit {
		b := &g.Buffers[u.buffer]
		lo, hi := bounds(u, b.Bytes, p.pitch[u.buffer], p.align[u.buffer])
		if last := len(list) - 1; last >= 0 && list[last].buffer == u.buffer && lo < list[last].hi {
			list[last].hi, list[last].usedHi = max(list[last].hi, hi), max(list[last].usedHi, u.hi)
			return list
		}
		return append(list, unit{buffer: u.buffer, device: b.Device, lo: lo, hi: hi, usedLo: u.lo, usedHi: u.hi})
	}
	var computed []unit
	for _, u := range kernels {
		computed = add(computed, u)
	}
	var moved []unit
	for _, u := range copies { // those where no kernel computes
		lo, hi := bounds(u, g.Buffers[u.buffer].Bytes, p.pitch[u.buffer], p.align[u.buffer])
		k, _ := slices.BinarySearchFunc(computed, u, func(c unit, u use) int {
			return cmp.Or(cmp.Compare(c.buffer, u.buffer), cmp.Compare(c.hi, lo+1))
		})
		if k == len(computed) || computed[k].buffer != u.buffer || computed[k].lo >= hi {
			moved = add(moved, u)
			continue
		}
		for ; k < len(computed) && computed[k].buffer == u.buffer && computed[k].lo < hi; k++ { // what is moved of a unit is all that is accessed of it
			c := &computed[k]
			c.usedLo, c.usedHi = min(c.usedLo, max(u.lo, c.lo)), max(c.usedHi, min(u.hi, c.hi))
		}
	}
	p.units = append(computed, moved...)
	slices.SortStableFunc(p.units, func(a, b unit) int {
		return cmp.Or(cmp.Compare(a.buffer, b.buffer), cmp.Compare(a.lo, b.lo))
	})
	for k := range p.units {
		u := &p.units[k]
		u.room = plan.AlignUp(u.hi - u.lo)
		p.devices = max(p.devices, int(u.device)+1)
		p.first[u.buffer+1]++
	}
	for b := range g.Buffers {
		p.first[b+1] += p.first[b]
	}
}

// unitOf finds the unit that has all of a range, or returns -1.
func (p *SpillProblem) unitOf(r dag.Range) int32 {
	list := p.units[p.first[r.Buffer]:p.first[r.Buffer+1]]
	k := sort.Search(len(list), func(k int) bool { return list[k].hi > r.Lo })
	if k == len(list) && k > 0 && r.Lo >= r.Hi { // an empty range at the very end
		k--
	}
	if k == len(list) || list[k].lo > r.Lo || list[k].hi < r.Hi {
		return -1
	}
	return p.first[r.Buffer] + int32(k)
}

// findTouches lists what each node does with units.
func (p *SpillProblem) findTouches() {
	g := p.Graph
	p.touches = make([][]touch, g.Len())
	for i := range g.Nodes {
		isCopy := g.Nodes[i].Copy != nil
		if g.Nodes[i].Control != nil {
			p.touchControl(dag.NodeID(i))
			continue
		}
		list := &p.touches[i]
		find := func(r dag.Range) *touch {
			u := int32(-1)
			if g.Buffers[r.Buffer].InArena() {
				u = p.unitOf(r)
			}
			if u < 0 {
				return nil
			}
			for k := range *list {
				if (*list)[k].unit == u && !(*list)[k].across {
					return &(*list)[k]
				}
			}
			*list = append(*list, touch{unit: u, copied: isCopy && !p.pinned[r.Buffer]})
			return &(*list)[len(*list)-1]
		}
		for _, a := range g.Accesses(dag.NodeID(i)) {
			t := find(a.Range)
			writes := a.Mode&dag.Write != 0 && a.Lo < a.Hi
			if t == nil {
				p.eachOverlap(a.Range, func(k int32) {
					p.across = true
					u := &p.units[k]
					*list = append(*list, touch{unit: k, reads: a.Mode&dag.Read != 0, writes: writes,
						all: writes && a.Pitch == 0 && a.Lo <= u.usedLo && a.Hi >= u.usedHi, copied: true, across: true})
				})
				continue
			}
			u := &p.units[t.unit]
			t.reads = t.reads || a.Mode&dag.Read != 0 && a.Lo < a.Hi
			t.writes = t.writes || writes
			t.all = t.all || writes && a.Mode&dag.Read == 0 && a.Pitch == 0 && a.Lo <= u.usedLo && a.Hi >= u.usedHi
		}
		eachUse(g, dag.NodeID(i), func(r dag.Range) { find(r) })
		for k := range *list {
			t := &(*list)[k]
			t.all = t.all && !t.reads
		}
	}
	for i := range p.touches {
		for k := range p.touches[i] {
			p.touches[i][k].number = p.count
			p.count++
		}
	}
	p.findUses()
}

// touchControl finds what a loop or branch does with units. All that its bodies use is on the device while it runs.
func (p *SpillProblem) touchControl(i dag.NodeID) {
	g := p.Graph
	list := &p.touches[i]
	find := func(u int32) *touch {
		for k := range *list {
			if (*list)[k].unit == u {
				return &(*list)[k]
			}
		}
		*list = append(*list, touch{unit: u})
		return &(*list)[len(*list)-1]
	}
	eachUse(g, i, func(r dag.Range) {
		if g.Buffers[r.Buffer].InArena() {
			find(p.unitOf(r))
		}
	})
	for _, a := range g.Accesses(i) {
		p.eachOverlap(a.Range, func(k int32) {
			t, u := find(k), &p.units[k]
			t.reads, t.writes = t.reads || a.Mode&dag.Read != 0, t.writes || a.Mode&dag.Write != 0
			t.all = t.all || a.Mode == dag.Write && a.Pitch == 0 && a.Lo <= u.usedLo && a.Hi >= u.usedHi
		})
	}
	for k := range *list {
		t := &(*list)[k]
		t.all = t.all && !t.reads
	}
}

// nodeAt is the node at a position of the order.
func (p *SpillProblem) nodeAt(at int32) dag.NodeID {
	if p.order == nil {
		return dag.NodeID(at)
	}
	return p.order[at]
}

// touchesAt is what the node at a position does.
func (p *SpillProblem) touchesAt(at int32) []touch { return p.touches[p.nodeAt(at)] }

// findUses lists the positions of the nodes that touch each unit.
func (p *SpillProblem) findUses() {
	count := make([]int32, len(p.units))
	for i := range p.touches {
		for _, t := range p.touches[i] {
			count[t.unit]++
		}
	}
	sum := int32(0)
	for _, n := range count {
		sum += n
	}
	all := make([]int32, sum)
	p.uses = make([][]int32, len(p.units))
	for u, n := range count {
		p.uses[u], all = all[:0:n], all[n:]
	}
	for at := range int32(len(p.touches)) {
		for _, t := range p.touchesAt(at) {
			if list := p.uses[t.unit]; len(list) == 0 || list[len(list)-1] != at {
				p.uses[t.unit] = append(list, at)
			}
		}
	}
}

// eachOverlap visits the units that a range overlaps.
func (p *SpillProblem) eachOverlap(r dag.Range, visit func(u int32)) {
	if !p.Graph.Buffers[r.Buffer].InArena() {
		return
	}
	for u := p.first[r.Buffer]; u < p.first[r.Buffer+1]; u++ {
		if p.units[u].lo < r.Hi && r.Lo < p.units[u].hi {
			visit(u)
		}
	}
}

// stuck reports whether a unit can never leave the device.
func (p *SpillProblem) stuck(u int32) bool { return p.pinned[p.units[u].buffer] }

// Least is the memory that a device needs at least: what a single node uses at once.
func (p *SpillProblem) Least() int64 {
	_, most, _, _ := p.largest()
	return most
}

// tooLarge is the error for the node that needs more memory at once than a device has; nil if there is none.
func (p *SpillProblem) tooLarge() error {
	worst, most, at, always := p.largest()
	if worst < 0 || most <= p.Limit {
		return nil
	}
	return p.refusal(worst, at, most, always)
}

// largest finds the node that uses the most memory of a device at once, and how much of that never leaves the device.
func (p *SpillProblem) largest() (worst int, most int64, at int32, stuck int64) {
	always := map[int32]int64{}
	for u := range p.units {
		if p.stuck(int32(u)) {
			always[p.units[u].device] += p.units[u].room
		}
	}
	worst = -1
	sums := map[int32]int64{}
	for i := range p.touches {
		clear(sums)
		for _, t := range p.touches[i] {
			if u := &p.units[t.unit]; !p.stuck(t.unit) && !t.copied {
				sums[u.device] += u.room
				if n := sums[u.device] + always[u.device]; n > most {
					worst, most, at = i, n, u.device
				}
			}
		}
	}
	return worst, most, at, always[at]
}

// refusal says what a node uses at once.
func (p *SpillProblem) refusal(i int, device int32, most, always int64) error {
	const listed = 8
	list := slices.DeleteFunc(slices.Clone(p.touches[i]), func(t touch) bool { return p.units[t.unit].device != device || p.stuck(t.unit) })
	slices.SortStableFunc(list, func(a, b touch) int { return cmp.Compare(p.units[b.unit].room, p.units[a.unit].room) })
	var parts []string
	for k, t := range list {
		if k == listed {
			parts = append(parts, fmt.Sprintf("%d more", len(list)-k))
			break
		}
		u := &p.units[t.unit]
		parts = append(parts, fmt.Sprintf("%s (%s)", p.Graph.RangeText(dag.Range{Buffer: u.buffer, Lo: u.lo, Hi: u.hi}), words.Bytes(u.room)))
	}
	text := strings.Join(parts, ", ")
	if always > 0 {
		text += fmt.Sprintf(", besides %s that kernels of other devices reach", words.Bytes(always))
	}
	return fmt.Errorf("%w: %q alone uses %s of device %d at once, %s more than the %s that it may use: %s; let it work on smaller slices", ErrCannotSpill,
		p.Graph.Nodes[i].Name, words.Bytes(most), device, words.Bytes(most-p.Limit), words.Bytes(p.Limit), text)
}
