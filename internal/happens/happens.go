// Package happens finds conflicting accesses that nothing orders, in a program of steps on lanes. A lane is anything whose steps come one
// after the other: a stream, a host thread. It knows nothing of CUDA: what comes after what, and who touches which bytes, is told to it.
//
// A Checker is told the steps one at a time, each after everything that it comes after. It keeps a clock for each lane and, for each byte,
// the accesses that a later one can conflict with, so it never looks back.
package happens

import (
	"cmp"
	"slices"
	"sort"
)

// Pair is two steps that touch the same bytes, at least one of them writing, without an order between them. First was told before Second.
//
// Not every such pair is listed. For a byte, it is left out where a third step, told between the two, conflicts with one of them in at least
// the same way, so that mending that mends this:
//   - the third comes after First, and conflicts with Second. This counts where the third makes all conflicts that First makes, or is on its lane;
//   - or the third comes before Second, and conflicts with First.
//
// The third must be remembered: no later step comes after it and makes all its conflicts.
type Pair struct {
	First, Second         int32 // what Step and Unit returned
	FirstNode, SecondNode int32 // within a unit; 0 for a step
	Low, High             uint64
	FirstMode, SecondMode Mode
	Conflict              Conflict
}

// Checker holds what was told until now.
type Checker struct {
	pairs     func(Pair)
	unwritten func(step, node int32, low, high uint64)
	lanes     []lane
	laneOf    []Lane           // by step
	shapeOf   map[int32]*Shape // of units
	memory    shadow
	runs      []Access
	sorter    normalizer
	found     []Pair
	fresh     []Access
	needed    func(tag int32) // nil unless Explain was called
	tag       int32

	// The node that is being told.
	at    epoch
	knows []uint32
	shape *Shape
}

// New returns a checker that has been told nothing. It calls pairs for the pairs of each step while it is told the step, those of the latest
// first step first. If unwritten is not nil, it is called with bytes that a step reads though nothing wrote them since Fresh.
func New(pairs func(Pair), unwritten func(step, node int32, low, high uint64)) *Checker {
	return &Checker{pairs: pairs, unwritten: unwritten, memory: shadow{full: 128}, shapeOf: map[int32]*Shape{}}
}

// Lane returns a new lane.
func (c *Checker) Lane() Lane {
	c.lanes = append(c.lanes, lane{})
	return Lane(len(c.lanes) - 1)
}

// Now returns the clock of a lane: all that was told of it until now, and all that this comes after.
func (c *Checker) Now(of Lane) Clock {
	l := &c.lanes[of]
	l.shared = true
	return Clock{knows: l.knows, lane: of + 1, position: l.position}
}

// After makes everything that is told of a lane from now on come after what a clock holds. It returns false if that was so already.
func (c *Checker) After(of Lane, clock Clock) bool {
	l := &c.lanes[of]
	if !l.join(of, clock) {
		return false
	}
	if c.needed != nil {
		l.reasons = append(l.reasons, reason{knows: l.knows, clock: clock, tag: c.tag})
		l.shared = true
	}
	return true
}

// Explain makes the checker find out what is needed: it calls needed with tags, those of the calls of After without which conflicting accesses
// would have no order. Without all other calls of After that had a tag, every conflict would still have its order, unless a pair without one hides it.
func (c *Checker) Explain(needed func(tag int32)) { c.needed, c.tag = needed, -1 }

// Tag names the calls of After from now on; -1 is no tag.
func (c *Checker) Tag(tag int32) { c.tag = tag }

// NeedAll says that all that a lane comes after is needed, because what it does next is not known.
func (c *Checker) NeedAll(lane Lane) {
	for of, position := range c.lanes[lane].knows {
		if position > 0 {
			c.explain(lane, Lane(of), position)
		}
	}
}

// explainMark finds out why the current node comes after a mark. If they do not conflict, a later one may conflict with the mark, and then needs to
// know why it comes after that, but will find this node instead.
func (c *Checker) explainMark(of *interval, m mark, mode Mode) {
	if conflictOf(m.mode, mode) >= Possible {
		c.explainEpoch(m.epoch)
	} else if mode.covers(m.mode) {
		of.passed = slices.DeleteFunc(of.passed, func(other mark) bool {
			return other.lane == m.lane && other.step != m.step && m.mode.covers(other.mode)
		})
		of.passed = append(of.passed, m)
	}
}

// explainEpoch finds out why the current node comes after an earlier one.
func (c *Checker) explainEpoch(e epoch) {
	if e.step == c.at.step {
		c.shape.need(e.node, c.at.node)
		return
	}
	c.explain(c.at.lane, e.lane, e.position)
}

// explain follows back how a lane came to know a position of another.
func (c *Checker) explain(at, of Lane, position uint32) {
	for at != of {
		reasons := c.lanes[at].reasons
		r := &reasons[sort.Search(len(reasons), func(i int) bool { return int(of) < len(reasons[i].knows) && reasons[i].knows[of] >= position })]
		if r.tag >= 0 {
			c.needed(r.tag)
		}
		if either := r.clock.either; either != nil {
			c.explainClock(either[0], of, position)
			c.explainClock(either[1], of, position)
			return
		}
		at = r.clock.lane - 1
	}
}

func (c *Checker) explainClock(clock Clock, of Lane, position uint32) {
	if clock.either != nil {
		c.explainClock(clock.either[0], of, position)
		c.explainClock(clock.either[1], of, position)
		return
	}
	c.explain(clock.lane-1, of, position)
}

// Includes says whether what a lane is told from now on comes after what a clock holds without another word.
func (c *Checker) Includes(of Lane, clock Clock) bool { return c.lanes[of].includes(of, clock) }

// Step tells of a step on a lane, and the bytes that it accesses. The accesses may overlap and need no order. Steps are numbered from 0.
func (c *Checker) Step(on Lane, accesses []Access) int32 {
	c.begin(on, nil)
	c.node(0, accesses)
	return int32(len(c.laneOf)) - 1
}

// Unit tells of a step that has nodes with an order of their own: all of them come after what the lane came after, and before what follows
// on it. The number of accesses is the number of nodes of the shape.
func (c *Checker) Unit(on Lane, shape *Shape, accesses [][]Access) int32 {
	c.begin(on, shape)
	for _, node := range shape.order {
		c.node(node, accesses[node])
	}
	return int32(len(c.laneOf)) - 1
}

func (c *Checker) begin(on Lane, shape *Shape) {
	l := &c.lanes[on]
	l.position++
	c.at = epoch{step: int32(len(c.laneOf)), lane: on, position: l.position}
	c.knows, c.shape = l.knows, shape
	c.laneOf = append(c.laneOf, on)
	if shape != nil {
		c.shapeOf[c.at.step] = shape
	}
}

// node tells of one node of the step that began last.
func (c *Checker) node(node int32, accesses []Access) {
	c.at.node = node
	c.found, c.fresh = c.found[:0], c.fresh[:0]
	c.runs = c.sorter.normalize(c.runs[:0], accesses)
	for _, run := range c.runs {
		c.memory.visit(run.Low, run.High, c, run.Mode)
	}
	c.say()
}

// Unwritten says that nothing wrote bytes yet that matters to whoever reads them.
func (c *Checker) Unwritten(low, high uint64) {
	if low < high {
		c.memory.visit(low, high, freshener{}, 0)
	}
}

type freshener struct{}

func (freshener) touch(of *interval, _ Mode) { of.fresh = true }

// Fresh forgets every access to bytes: whatever touches them from now on comes after all that touched them before, and nothing wrote them.
func (c *Checker) Fresh(low, high uint64) {
	if low < high {
		c.memory.clear(low, high)
	}
}

// touch updates what is remembered of an interval with an access of the current node.
func (c *Checker) touch(of *interval, mode Mode) {
	if c.needed != nil {
		of.passed = slices.DeleteFunc(of.passed, func(m mark) bool {
			if !c.before(m.epoch) || conflictOf(m.mode, mode) < Possible {
				return false
			}
			c.explainEpoch(m.epoch)
			return mode.covers(m.mode)
		})
	}
	kept, own := of.marks[:0], len(c.found)
	for _, mark := range of.marks {
		if c.before(mark.epoch) {
			if c.needed != nil {
				c.explainMark(of, mark, mode)
			}
			if len(c.found) > own {
				rest := slices.DeleteFunc(c.found[own:], func(p Pair) bool { return conflictOf(p.FirstMode, mark.mode) >= p.Conflict })
				c.found = c.found[:own+len(rest)]
			}
			if mode.covers(mark.mode) {
				continue
			}
		} else if conflict := conflictOf(mark.mode, mode); conflict != NoConflict {
			if len(c.found) > own {
				rest := slices.DeleteFunc(c.found[own:], func(p Pair) bool { return conflict >= p.Conflict && c.follows(p, mark.epoch) })
				c.found = c.found[:own+len(rest)]
			}
			c.found = append(c.found, Pair{First: mark.step, FirstNode: mark.node, Second: c.at.step, SecondNode: c.at.node,
				Low: of.low, High: of.high, FirstMode: mark.mode, SecondMode: mode, Conflict: conflict})
		}
		kept = append(kept, mark)
	}
	of.marks = append(kept, mark{epoch: c.at, mode: mode})
	if of.fresh {
		if mode.writes() {
			of.fresh = false
		} else if mode&Read != 0 && c.unwritten != nil {
			c.fresh = append(c.fresh, Access{Low: of.low, High: of.high})
		}
	}
}

// follows says whether a step comes after the first of a pair, on the same lane.
func (c *Checker) follows(p Pair, other epoch) bool {
	if p.First == other.step {
		return c.shapeOf[p.First].Before(p.FirstNode, other.node)
	}
	return c.laneOf[p.First] == other.lane
}

// before says whether the current node comes after an earlier one.
func (c *Checker) before(other epoch) bool {
	switch {
	case other.step == c.at.step:
		return c.shape.Before(other.node, c.at.node)
	case other.lane == c.at.lane:
		return true
	}
	return int(other.lane) < len(c.knows) && c.knows[other.lane] >= other.position
}

// say reports what the current node found, each stretch of bytes once.
func (c *Checker) say() {
	if len(c.found) > 0 {
		slices.SortStableFunc(c.found, func(a, b Pair) int {
			return cmp.Or(cmp.Compare(b.First, a.First), cmp.Compare(b.FirstNode, a.FirstNode), cmp.Compare(a.FirstMode, b.FirstMode),
				cmp.Compare(a.SecondMode, b.SecondMode), cmp.Compare(a.Low, b.Low))
		})
		one := c.found[0]
		for _, next := range c.found[1:] {
			if one.High == next.Low && sameButBytes(one, next) {
				one.High = next.High
				continue
			}
			c.pairs(one)
			one = next
		}
		c.pairs(one)
	}
	for i := 0; i < len(c.fresh); i++ {
		low, high := c.fresh[i].Low, c.fresh[i].High
		for i+1 < len(c.fresh) && c.fresh[i+1].Low == high {
			i++
			high = c.fresh[i].High
		}
		c.unwritten(c.at.step, c.at.node, low, high)
	}
}

func sameButBytes(a, b Pair) bool {
	b.Low, b.High = a.Low, a.High
	return a == b
}
