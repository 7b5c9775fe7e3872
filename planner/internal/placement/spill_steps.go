// From residencies to steps: which copies to and from host memory they need, and what has to be over before memory is used again.

package placement

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/planner/internal/planted"
	"github.com/dagrun/dagrun/planner/internal/scratch"
	"github.com/dagrun/dagrun/planner/plan"
)

// action says what a step of a spilled graph does.
type action uint8

const (
	compute  action = iota // a node of the graph
	load                   // a copy from host memory
	storeOut               // a copy to host memory
	skipped                // nothing: a mistake that a test has planted
)

// spillStep is a node of the spilled graph.
type spillStep struct {
	do    action
	node  dag.NodeID
	stay  int32 // of a copy: its residency
	moved dag.Range
	in    []int32 // of a node: by touch, the residency that it uses; -1: the home
	after []int32 // steps that have to be over because they use the memory that this one begins to use
}

// home tells what the place of a unit in host memory holds.
type home struct {
	current bool // the unit's contents
	exists  bool // the unit has contents at all
}

// stepping is the state of steps.
type stepping struct {
	p       *SpillProblem
	list    []plan.Residency
	units   []int32 // by residency; -1 for one that stays
	stays   []bool  // by buffer
	now     []int32 // by unit: its residency, or -1
	homes   []home  // by unit
	has     []contents
	usesTil []int // by unit: index of the next use
	steps   []spillStep
	users   [][]int32    // by residency: the steps that use it
	byEnd   [][]int32    // by node: the residencies that end after it
	spaces  [][]occupant // by device
	spare   []occupant
	pending [][]int32 // by node: what its step has to wait for
	numbers []int32   // memory for the lists of steps
}

// occupant is the last residency of some bytes of a device.
type occupant struct {
	lo, hi int64
	stay   int32
}

// steps derives the steps, and refuses residencies that are none.
func (p *SpillProblem) steps(list []plan.Residency) (*stepping, error) {
	s := new(stepping)
	return s, s.derive(p, list)
}

// derive is steps. What an earlier call has derived is lost.
func (s *stepping) derive(p *SpillProblem, list []plan.Residency) error {
	s.reset(p, list)
	last := dag.NodeID(0)
	for k := range list {
		if err := s.checkResidency(k, last); err != nil {
			return err
		}
		last = list[k].First
	}
	next := 0
	for i := range p.Graph.Len() {
		for ; next < len(list) && int(list[next].First) == i; next++ {
			if err := s.begin(int32(next)); err != nil {
				return err
			}
		}
		if err := s.visit(int32(i)); err != nil {
			return err
		}
		for _, k := range s.byEnd[i] {
			s.end(k, i)
		}
	}
	s.plant()
	return nil
}

// reset begins with empty devices. It keeps the memory of an earlier call.
func (s *stepping) reset(p *SpillProblem, list []plan.Residency) {
	n, units := p.Graph.Len(), len(p.units)
	s.p, s.list, s.steps, s.numbers = p, list, s.steps[:0], s.numbers[:0]
	s.units, s.stays, s.usesTil = scratch.Zeroed(s.units, len(list)), scratch.Zeroed(s.stays, len(p.Graph.Buffers)), scratch.Zeroed(s.usesTil, units)
	s.now, s.homes = scratch.Sized(s.now, units), scratch.Sized(s.homes, units)
	s.users, s.byEnd, s.pending = emptied(s.users, len(list)), emptied(s.byEnd, n), emptied(s.pending, n)
	s.spaces = emptied(s.spaces, p.devices)
	if len(s.has) != units {
		s.has = make([]contents, units)
	}
	for k := range p.units {
		whole := p.whole(p.units[k].buffer)
		s.now[k], s.homes[k] = -1, home{current: whole, exists: whole}
		s.has[k] = contents{all: whole, list: s.has[k].list[:0]}
	}
}

// emptied returns n empty lists that have the memory of others.
func emptied[T any](lists [][]T, n int) [][]T {
	lists = lists[:cap(lists)]
	if len(lists) < n {
		lists = append(lists, make([][]T, n-len(lists))...)
	}
	lists = lists[:n]
	for k := range lists {
		lists[k] = lists[k][:0]
	}
	return lists
}

// wrongResidency is the error for a list that was not made by this package, or for another graph.
func wrongResidency(k int, why string) error {
	return fmt.Errorf("%w: residency %d %s", ErrCannotSpill, k, why)
}

// checkResidency finds the unit of a residency.
func (s *stepping) checkResidency(k int, last dag.NodeID) error {
	r, g := &s.list[k], s.p.Graph
	switch {
	case r.Buffer < 0 || int(r.Buffer) >= len(g.Buffers) || !g.Buffers[r.Buffer].InArena():
		return wrongResidency(k, "is of no device buffer")
	case r.First < last || r.First > r.Last || int(r.Last) >= g.Len():
		return wrongResidency(k, "does not come in order, or does not end")
	case r.Offset < 0 || r.Offset > s.p.Limit:
		return wrongResidency(k, "lies outside of the device's memory")
	}
	s.units[k] = -1
	if r.Stays {
		s.stays[r.Buffer] = true
		return nil
	}
	u := s.p.unitOf(dag.Range{Buffer: r.Buffer, Lo: r.Lo, Hi: r.Hi})
	if u < 0 || s.p.units[u].lo != r.Lo || s.p.units[u].hi != r.Hi || s.stays[r.Buffer] || s.p.stuck(u) {
		return wrongResidency(k, "has other bytes than those that are used together")
	}
	s.units[k] = u
	s.byEnd[r.Last] = append(s.byEnd[r.Last], int32(k))
	return nil
}

// nextTouch finds the first touch of a unit by a node that is not before i; nil if there is none.
func (p *SpillProblem) nextTouch(u int32, i int, from *int) (*touch, int) {
	uses := p.uses[u]
	for *from < len(uses) && int(uses[*from]) < i {
		*from++
	}
	if *from == len(uses) {
		return nil, 0
	}
	node := int(uses[*from])
	touches := p.touchesAt(int32(node))
	for k := range touches {
		if t := &touches[k]; t.unit == u {
			return t, node
		}
	}
	return nil, 0
}

// needed reports whether the contents of a unit are of use from node i on.
func (s *stepping) needed(u int32, i int) bool {
	t, _ := s.p.nextTouch(u, i, &s.usesTil[u])
	if t == nil {
		b := s.p.units[u].buffer
		return s.p.keep[b] || s.p.early[b]
	}
	return !t.all
}

// begin brings a unit to the device.
func (s *stepping) begin(k int32) error {
	r, u := &s.list[k], s.units[k]
	if u < 0 {
		return nil
	}
	if s.now[u] >= 0 {
		return wrongResidency(int(k), "begins before the last of these bytes has ended")
	}
	before, err := s.occupy(k)
	if err != nil {
		return err
	}
	s.now[u] = k
	t, at := s.p.nextTouch(u, int(r.First), &s.usesTil[u])
	if s.homes[u].exists && t != nil && at <= int(r.Last) && !t.all {
		s.copy(k, load, before)
		if !s.has[u].all { // some bytes come from nodes
			s.free(k, before)
		}
		return nil
	}
	s.free(k, before)
	return nil
}

// free keeps what a residency without a load has to wait for until its first touches.
func (s *stepping) free(k int32, before []int32) {
	r, u := &s.list[k], s.units[k]
	uses := s.p.uses[u]
	first, _ := slices.BinarySearch(uses, int32(r.First))
	for _, i := range uses[first:] {
		if i > int32(r.Last) {
			return
		}
		s.waits(i, before)
		for _, t := range s.p.touchesAt(i) {
			if t.unit == u && t.all { // all others come after it
				return
			}
		}
	}
}

// copy adds the copies of what a unit has.
func (s *stepping) copy(k int32, do action, after []int32) {
	u := s.units[k]
	s.has[u].each(&s.p.units[u], func(r dag.Range) {
		s.users[k] = append(s.users[k], int32(len(s.steps)))
		s.steps = append(s.steps, spillStep{do: do, stay: k, moved: r, after: after})
	})
}

// occupy takes the bytes of a residency, and returns the steps that used them last.
func (s *stepping) occupy(k int32) ([]int32, error) {
	r, u := &s.list[k], &s.p.units[s.units[k]]
	lo, hi := r.Offset, r.Offset+u.room
	if hi > s.p.Limit {
		return nil, wrongResidency(int(k), "lies outside of the device's memory")
	}
	begin := len(s.numbers)
	kept := s.spare[:0]
	for _, o := range s.spaces[u.device] {
		if o.hi <= lo || o.lo >= hi {
			kept = append(kept, o)
			continue
		}
		if s.list[o.stay].Last >= r.First {
			return nil, wrongResidency(int(k), "lies where another one is")
		}
		s.numbers = append(s.numbers, s.users[o.stay]...)
		if o.lo < lo {
			kept = append(kept, occupant{o.lo, lo, o.stay})
		}
		if o.hi > hi {
			kept = append(kept, occupant{hi, o.hi, o.stay})
		}
	}
	s.spaces[u.device], s.spare = append(kept, occupant{lo, hi, k}), s.spaces[u.device]
	slices.Sort(s.numbers[begin:])
	s.numbers = s.numbers[:begin+len(slices.Compact(s.numbers[begin:]))]
	return s.numbers[begin:len(s.numbers):len(s.numbers)], nil
}

// waits notes what a node that comes later has to wait for.
func (s *stepping) waits(i int32, before []int32) {
	if len(before) > 0 {
		s.pending[i] = append(s.pending[i], before...)
	}
}

// visit adds a node.
func (s *stepping) visit(at int32) error {
	i := s.p.nodeAt(at)
	touches := s.p.touches[i]
	step := spillStep{node: i, in: s.take(len(touches))}
	for k := range touches { // a copy that uses more than one unit finds their contents at home
		t := &touches[k]
		if on := s.now[t.unit]; t.across && on >= 0 && !s.homes[t.unit].current && s.homes[t.unit].exists && !t.all {
			s.copy(on, storeOut, nil)
			s.homes[t.unit].current = true
		}
	}
	number := int32(len(s.steps))
	for k := range touches {
		t := &touches[k]
		step.in[k] = -1
		b := s.p.units[t.unit].buffer
		if s.stays[b] || s.p.stuck(t.unit) {
			s.stays[b] = true
			continue
		}
		on := s.now[t.unit]
		switch {
		case t.across && on >= 0 && t.writes:
			return fmt.Errorf("%w: %q writes what is also on the device", ErrCannotSpill, s.p.Graph.Nodes[i].Name)
		case t.across:
		case on >= 0:
			step.in[k] = on
			s.users[on] = append(s.users[on], number)
		case !t.copied:
			return fmt.Errorf("%w: %q finds %s not on the device", ErrCannotSpill, s.p.Graph.Nodes[i].Name, s.p.unitText(t.unit))
		}
	}
	for k := range touches {
		if t := &touches[k]; t.writes {
			s.homes[t.unit] = home{current: step.in[k] < 0, exists: true}
			for _, a := range s.p.Graph.Accesses(i) {
				if u := &s.p.units[t.unit]; a.Buffer == u.buffer && a.Mode&dag.Write != 0 {
					s.has[t.unit].write(a.Range, u)
				}
			}
		}
	}
	step.after = s.pending[at]
	s.steps = append(s.steps, step)
	return nil
}

// take returns a list of n numbers.
func (s *stepping) take(n int) []int32 {
	begin := len(s.numbers)
	s.numbers = scratch.Extended(s.numbers, begin+n)
	return s.numbers[begin : begin+n : begin+n]
}

func (p *SpillProblem) unitText(k int32) string {
	u := &p.units[k]
	return p.Graph.RangeText(dag.Range{Buffer: u.buffer, Lo: u.lo, Hi: u.hi})
}

// end takes a unit off the device.
func (s *stepping) end(k int32, i int) {
	u := s.units[k]
	if h := &s.homes[u]; h.exists && !h.current && s.needed(u, i+1) {
		s.copy(k, storeOut, nil)
		h.current = true
	}
	s.now[u] = -1
}

// plant makes the mistakes that tests ask for.
func (s *stepping) plant() {
	for k := len(s.steps) - 1; k >= 0; k-- {
		step := &s.steps[k]
		lost := planted.Is(planted.Reload) && step.do == load || planted.Is(planted.Unsaved) && step.do == storeOut
		switch {
		case lost:
			step.do = skipped
			return
		case planted.Is(planted.LateReload) && step.do == load && k+1 < len(s.steps) && s.steps[k+1].do == compute:
			s.steps[k], s.steps[k+1] = s.steps[k+1], s.steps[k]
			for j := range s.steps { // the steps have changed places
				s.steps[j].after = nil
			}
			return
		case planted.Is(planted.EarlySave) && step.do == storeOut && k > 0 && s.steps[k-1].do == compute:
			s.steps[k], s.steps[k-1] = s.steps[k-1], s.steps[k]
			for j := range s.steps {
				s.steps[j].after = nil
			}
			return
		}
	}
}

// byFirst orders residencies by the node that they begin with.
func byFirst(list []plan.Residency) {
	slices.SortStableFunc(list, func(a, b plan.Residency) int {
		return cmp.Or(cmp.Compare(a.First, b.First), cmp.Compare(a.Buffer, b.Buffer), cmp.Compare(a.Lo, b.Lo))
	})
}
