// Which units leave the device when: a rule like Belady's, with memory as it is. What is used again latest goes first, weighed by what it costs
// to copy it out and back.

package placement

import (
	"cmp"
	"math"
	"slices"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/planner/internal/scratch"
	"github.com/dagrun/dagrun/planner/plan"
)

// rule is a set of choices that the search varies.
type rule struct {
	limit  int64     // bytes of a device that are used
	ahead  int       // how many nodes before its use a unit may be brought back
	power  int       // what is used again after four times the time is worth 2^power times less
	around bool      // take free memory in turn, so that what is written over has long been copied out
	stays  []bool    // by buffer: it never leaves the device
	bias   []float64 // by touch: how much more it is worth to keep the unit on the device until then; nil: all the same
}

// room is a unit on a device.
type room struct {
	lo, hi int64
	unit   int32
}

// choosing is the state of one run of the rule.
type choosing struct {
	p     *SpillProblem
	r     *rule
	when  []float64 // by node: the time of the nodes before it
	step  float64   // the time of a node on average
	live  [][]room  // by device
	base  []int64   // by device: the bytes of what stays
	turn  []int64   // by device: where the last unit was put
	stay  []int32   // by unit: its residency, or -1
	dirty []bool    // by unit: its home is not current
	full  []bool    // by unit: it has contents
	next  []int     // by unit: index of the next use
	soon  []soon    // by unit: the next use, as nextUse found it last
	last  []int32   // by unit: the last node that used it on the device
	lock  []int32   // by unit: the last node that it must be there for
	costs []float64 // by entry of the list that put looks at: what it costs to take that unit off
	list  []plan.Residency
	seen  int // units that were looked at to make room
}

// soon is the next use of a unit.
type soon struct {
	at         int     // the position of the node; math.MaxInt: there is none, -1: not known yet
	when       float64 // the time of the nodes before it
	load, save float64 // what the copy back to the device is worth, and one to its home; 0: not needed
}

// choose runs the rule. It returns nil if the rule leaves too little memory for a node. The list is valid until the next run.
func (c *choosing) choose(p *SpillProblem, r *rule, when []float64) []plan.Residency {
	c.p, c.r, c.when, c.step = p, r, when, max(1e-6, when[len(when)-1]/float64(len(when)))
	c.reset()
	for b := range p.Graph.Buffers {
		if at := &p.Graph.Buffers[b]; at.InArena() && (r.stays[b] || p.pinned[b]) && p.first[b] < p.first[b+1] {
			c.list = append(c.list, plan.Residency{Buffer: dag.BufferID(b), Hi: at.Bytes, Last: dag.NodeID(max(0, p.Graph.Len()-1)), Offset: c.base[at.Device],
				Stays: true})
			if c.base[at.Device] += plan.AlignUp(at.Bytes); c.base[at.Device] > r.limit {
				return nil
			}
		}
	}
	for u := range p.units {
		c.full[u] = p.whole(p.units[u].buffer)
	}
	for i := range p.touches {
		if !c.visit(int32(i)) {
			return nil
		}
	}
	for u := range p.units {
		if c.stay[u] >= 0 {
			c.leave(int32(u), int32(p.Graph.Len()-1))
		}
	}
	byFirst(c.list)
	return c.list
}

// reset empties the devices.
func (c *choosing) reset() {
	n, devices := len(c.p.units), c.p.devices
	c.live = emptied(c.live, devices)
	c.base, c.turn, c.list = scratch.Zeroed(c.base, devices), scratch.Zeroed(c.turn, devices), c.list[:0]
	c.dirty, c.full, c.next, c.last = scratch.Zeroed(c.dirty, n), scratch.Zeroed(c.full, n), scratch.Zeroed(c.next, n), scratch.Zeroed(c.last, n)
	c.stay, c.lock, c.soon, c.seen = scratch.Sized(c.stay, n), scratch.Sized(c.lock, n), scratch.Sized(c.soon, n), 0
	for u := range n {
		c.stay[u], c.lock[u], c.soon[u] = -1, -1, soon{at: -1}
	}
}

func (c *choosing) free(u int32) bool {
	b := c.p.units[u].buffer
	return !c.r.stays[b] && !c.p.pinned[b]
}

// visit makes room for what a node uses, notes what it does, and looks ahead.
func (c *choosing) visit(i int32) bool {
	touches := c.p.touchesAt(i)
	for k := range touches {
		if t := &touches[k]; !t.copied || !t.across && c.stay[t.unit] >= 0 {
			c.lock[t.unit] = i
		}
	}
	for k := range touches {
		t := &touches[k]
		if !c.free(t.unit) {
			continue
		}
		switch {
		case t.across && t.writes && c.stay[t.unit] >= 0:
			c.leave(t.unit, i-1)
		case t.across, c.stay[t.unit] >= 0:
		case t.copied:
			c.offer(t, i)
		case !c.put(t.unit, i, i, math.Inf(1)):
			if !c.pack(i, c.p.units[t.unit].device) {
				return false
			}
		}
	}
	for k := range touches {
		t := &touches[k]
		if !c.free(t.unit) {
			continue
		}
		if on := c.stay[t.unit] >= 0; t.writes {
			c.full[t.unit], c.dirty[t.unit] = true, on
		} else if t.across {
			c.dirty[t.unit] = false
		}
		if c.stay[t.unit] >= 0 {
			c.last[t.unit] = i
		}
	}
	for j := i + 1; j <= i+int32(c.r.ahead) && int(j) < len(c.p.touches); j++ {
		if !c.foresee(i, j) {
			break
		}
	}
	return true
}

// offer brings what a copy writes to the device if that is worth it. Otherwise the copy goes to the unit's home, or comes from there.
func (c *choosing) offer(t *touch, i int32) {
	if !t.writes || !t.all && c.full[t.unit] {
		return
	}
	worth := c.worth(t.unit, i, true)
	if t.all || !c.full[t.unit] {
		c.put(t.unit, i, i, worth)
	}
}

// foresee brings what a later node uses, and reports whether all of it is there.
func (c *choosing) foresee(i, j int32) bool {
	touches := c.p.touchesAt(j)
	for k := range touches {
		t := &touches[k]
		if t.copied || !c.free(t.unit) || !c.p.across && c.stay[t.unit] >= 0 && c.lock[t.unit] >= j {
			continue
		}
		for _, now := range c.p.touchesAt(i) {
			if now.unit == t.unit && now.across {
				return false
			}
		}
		if c.writtenBetween(t.unit, i, j) { // a copy to its home comes first
			return false
		}
		if c.stay[t.unit] < 0 && !c.put(t.unit, i, j, math.Inf(1)) {
			return false
		}
		c.lock[t.unit] = max(c.lock[t.unit], j)
	}
	return true
}

// writtenBetween reports whether a node after i and before j writes a unit.
func (c *choosing) writtenBetween(u, i, j int32) bool {
	if c.nextUse(u, i).at >= int(j) {
		return false
	}
	for _, at := range c.p.uses[u][c.next[u]:] {
		if at >= j {
			break
		}
		for _, t := range c.p.touchesAt(at) {
			if t.unit == u && t.writes {
				return true
			}
		}
	}
	return false
}

// nextUse returns the first node after i that touches a unit. The nodes that it is asked about come in order.
func (c *choosing) nextUse(u, i int32) *soon {
	s := &c.soon[u]
	if s.at > int(i) {
		return s
	}
	t, at := c.p.nextTouch(u, int(i)+1, &c.next[u])
	if t == nil {
		*s = soon{at: math.MaxInt}
		return s
	}
	*s = soon{at: at, when: c.when[at]}
	if t.all {
		return s
	}
	unit := &c.p.units[u]
	s.save = float64(unit.usedHi - unit.usedLo)
	if c.r.bias != nil {
		s.save *= c.r.bias[t.number]
	}
	if !t.copied {
		s.load = s.save
	}
	return s
}

// worth is what it costs to take a unit off the device after node i: the bytes that are then copied, the less the later. arriving is a unit
// that is not there yet, and whose contents a copy can bring to its home.
func (c *choosing) worth(u, i int32, arriving bool) float64 {
	s := c.nextUse(u, i)
	cost := s.load
	if c.dirty[u] && !arriving {
		cost += s.save
	}
	if cost == 0 {
		return 0
	}
	away := s.when - c.when[i+1] + c.step
	if c.r.power%2 != 0 {
		cost /= math.Sqrt(away)
	}
	for range c.r.power / 2 {
		cost /= away
	}
	return cost
}

// put brings a unit to the device, from node first on, for node use. What is worth less than most leaves; what is needed before, or soon, does not.
func (c *choosing) put(u, first, use int32, most float64) bool {
	unit := &c.p.units[u]
	list := c.live[unit.device]
	s := spot{at: -1, cost: math.Inf(1)}
	c.look(&s, unit, list, first, use)
	if s.at < 0 || s.cost > most {
		return false
	}
	for k := s.to - 1; k >= s.from; k-- {
		c.leave(list[k].unit, first-1)
	}
	c.arrive(u, first, s.at)
	return true
}

// spot is a place for a unit on a device, and what it costs to free it: the entries of the list of what is there that have to leave.
type spot struct {
	at       int64 // -1: none
	cost     float64
	from, to int
}

// What look looks at, at least, of a list that is longer.
const (
	lookedAtOnce = 1024
	lookedAt     = 4096
)

// look finds the cheapest spot. In a long list, that is the cheapest of some thousand entries, from where the last unit was put on: the cheapest of
// all is hardly better, and looking for it would take a time that grows with the square of the graph.
func (c *choosing) look(s *spot, unit *unit, list []room, first, use int32) {
	c.costs = scratch.Sized(c.costs, len(list))
	if len(list) <= lookedAt {
		c.lookWithin(s, unit, list, 0, len(list), first, use)
		return
	}
	from, _ := slices.BinarySearchFunc(list, c.turn[unit.device], func(r room, at int64) int { return cmp.Compare(r.lo, at) })
	for seen := 0; seen < len(list) && (s.at < 0 || s.cost > 0 && seen < lookedAt); {
		if from == len(list) {
			from = 0
		}
		to := min(from+lookedAtOnce, len(list))
		c.lookWithin(s, unit, list, from, to, first, use)
		seen, from = seen+to-from, to
	}
}

// lookWithin considers the places before, between and after some entries.
func (c *choosing) lookWithin(s *spot, unit *unit, list []room, from, to int, first, use int32) {
	base, turn := c.base[unit.device], c.turn[unit.device]
	if from > 0 {
		base = list[from-1].hi
	}
	priced := from                         // the first entry whose cost is not known
	consider := func(at int64, from int) { // from: the first entry that ends after at
		if at < base || at+unit.room > c.r.limit {
			return
		}
		cost, end := 0.0, from
		for ; end < len(list) && list[end].lo < at+unit.room; end++ {
			for ; priced <= end; priced++ {
				c.costs[priced] = c.removal(list[priced].unit, first, use)
			}
			if cost += c.costs[end]; cost > s.cost || math.IsInf(cost, 1) {
				return
			}
		}
		better := cost < s.cost
		if cost == s.cost && c.r.around {
			better = s.at < turn && at >= turn || (s.at < turn) == (at < turn) && at < s.at
		} else if cost == s.cost {
			better = at < s.at
		}
		if better {
			*s = spot{at, cost, from, end}
		}
	}
	consider(base, from)
	before := from // the first entry that ends after the place before entry k
	for k := from; k < to; k++ {
		consider(list[k].hi, k+1)
		at := list[k].lo - unit.room
		for before < k && list[before].hi <= at {
			before++
		}
		if before == from || list[before-1].hi < at { // otherwise it has been considered
			consider(at, before)
		}
	}
	c.seen += priced - from
	if to < len(list) {
		return
	}
	for before < len(list) && list[before].hi <= c.r.limit-unit.room {
		before++
	}
	consider(c.r.limit-unit.room, before)
}

// removal is what it costs to take a unit off the device to make room from node first on, for node use; +Inf: it is needed before, or soon.
func (c *choosing) removal(u, first, use int32) float64 {
	if c.lock[u] >= first {
		return math.Inf(1)
	}
	if use > first && c.nextUse(u, first).at <= int(use) {
		return math.Inf(1)
	}
	return c.worth(u, first, false)
}

// arrive puts a unit at an offset.
func (c *choosing) arrive(u, first int32, at int64) {
	unit := &c.p.units[u]
	list := c.live[unit.device]
	k, _ := slices.BinarySearchFunc(list, at, func(r room, at int64) int {
		switch {
		case r.lo < at:
			return -1
		case r.lo > at:
			return 1
		}
		return 0
	})
	c.live[unit.device] = slices.Insert(list, k, room{at, at + unit.room, u})
	c.turn[unit.device] = at + unit.room
	c.stay[u], c.last[u], c.lock[u] = int32(len(c.list)), first, max(c.lock[u], first)
	c.list = append(c.list, plan.Residency{Buffer: unit.buffer, Lo: unit.lo, Hi: unit.hi, First: dag.NodeID(first), Last: -1, Offset: at})
}

// leave takes a unit off the device before a node that comes after the given one.
func (c *choosing) leave(u, before int32) {
	unit := &c.p.units[u]
	r := &c.list[c.stay[u]]
	r.Last = dag.NodeID(max(int32(r.First), min(before, c.last[u])))
	list := c.live[unit.device]
	k := slices.IndexFunc(list, func(at room) bool { return at.unit == u })
	c.live[unit.device] = slices.Delete(list, k, k+1)
	c.stay[u], c.dirty[u] = -1, false
}

// pack takes everything off a device and puts what a node uses side by side.
func (c *choosing) pack(i, device int32) bool {
	for _, r := range slices.Clone(c.live[device]) {
		if c.list[c.stay[r.unit]].First == dag.NodeID(i) { // it has just come, and was never used
			c.list[c.stay[r.unit]].Last = -2
			c.live[device] = slices.DeleteFunc(c.live[device], func(at room) bool { return at.unit == r.unit })
			c.stay[r.unit] = -1
			continue
		}
		c.leave(r.unit, i-1)
	}
	c.list = c.dropUnused()
	at := c.base[device]
	for _, t := range c.p.touchesAt(i) {
		if u := &c.p.units[t.unit]; u.device == device && c.free(t.unit) && !t.across && (!t.copied || c.lock[t.unit] == i) && c.stay[t.unit] < 0 {
			if at+u.room > c.r.limit {
				return false
			}
			c.arrive(t.unit, i, at)
			at += u.room
		}
	}
	return true
}

// dropUnused drops residencies that have never been used.
func (c *choosing) dropUnused() []plan.Residency {
	moved := make([]int32, len(c.list))
	kept := c.list[:0]
	for k := range c.list {
		moved[k] = int32(len(kept))
		if c.list[k].Last != -2 {
			kept = append(kept, c.list[k])
		}
	}
	for u := range c.stay {
		if c.stay[u] >= 0 {
			c.stay[u] = moved[c.stay[u]]
		}
	}
	return kept
}
