// Evaluates arithmetic on intervals, and registers that are loop counters.

package access

import (
	"math"

	"github.com/dagrun/dagrun/kernels/ptx"
)

// result returns what an instruction writes to its targets.
func (c *context) result(at int32) span {
	in := &c.e.f.Code[at]
	if len(in.Operands) < 2 {
		return mixture
	}
	if in.Form.Op == ptx.OpLd {
		return c.loaded(in)
	}
	s := c.arithmetic(at)
	if s.ok || s.pointer() {
		return s
	}
	switch in.Form.Op.Class() {
	case ptx.Linear, ptx.Derived:
		for _, o := range in.Operands[1:] {
			if c.operand(o, at).pointer() {
				return mixture
			}
		}
	}
	return s
}

// arithmetic returns the result of an instruction that can be computed on intervals.
func (c *context) arithmetic(at int32) span {
	in := &c.e.f.Code[at]
	form := in.Form
	if len(in.Operands) < 2 || in.Operands[0].Kind != ptx.RegisterKind || in.Operands[0].Part != ptx.Whole || form.Vector != 1 {
		return anything
	}
	for _, t := range form.Types {
		if t.Float() || t == ptx.Pred {
			return anything
		}
	}
	bits, signed := form.LastType().Bits(), form.LastType().Signed()
	source := func(i int) span {
		if i < len(in.Operands) {
			return c.operand(in.Operands[i], at)
		}
		return anything
	}
	seen := func(s span) span { // as a value of the instruction's type
		if lo, hi, ok := s.as(bits, signed); ok {
			return between(lo, hi)
		}
		return anything
	}
	switch form.Op {
	case ptx.OpMov, ptx.OpCvta:
		return source(1)
	case ptx.OpCvt:
		if len(form.Mods) > 0 {
			return anything
		}
		if bits == 64 && form.Type().Bits() == 64 {
			return source(1)
		}
		if form.Type().Bits() < bits { // only the low part is kept
			return source(1)
		}
		return seen(source(1))
	case ptx.OpAdd:
		return source(1).plus(source(2))
	case ptx.OpSub:
		return source(1).plus(source(2).negated())
	case ptx.OpNeg:
		return source(1).negated()
	case ptx.OpMul, ptx.OpMad:
		a, b := source(1), source(2)
		switch {
		case form.Has(ptx.ModHi):
			return anything
		case form.Has(ptx.ModWide):
			a, b = seen(a), seen(b)
		}
		if form.Op == ptx.OpMul {
			return a.times(b)
		}
		return a.times(b).plus(source(3))
	case ptx.OpShl:
		n := source(2)
		if !n.ok || n.pointer() || n.lo != n.hi || n.lo < 0 || n.lo > 62 {
			return anything
		}
		return source(1).times(exactly(1 << n.lo))
	case ptx.OpShr:
		n, a := source(2), seen(source(1))
		if !a.ok || !n.ok || n.pointer() || n.lo != n.hi || n.lo < 0 || n.lo > 62 {
			return anything
		}
		return between(a.lo>>n.lo, a.hi>>n.lo)
	case ptx.OpMin, ptx.OpMax:
		a, b := seen(source(1)), seen(source(2))
		if !a.ok || !b.ok {
			return anything
		}
		if form.Op == ptx.OpMin {
			return between(min(a.lo, b.lo), min(a.hi, b.hi))
		}
		return between(max(a.lo, b.lo), max(a.hi, b.hi))
	case ptx.OpSelp:
		return source(1).hull(source(2))
	case ptx.OpAnd, ptx.OpOr, ptx.OpDiv, ptx.OpRem, ptx.OpBfe:
		return c.pieces(in, source, bits, signed)
	}
	return anything
}

// pieces evaluates instructions that extract parts of numbers, for numbers that are not negative.
func (c *context) pieces(in *ptx.Instruction, source func(int) span, bits int, signed bool) span {
	positive := func(s span) (int64, int64, bool) {
		lo, hi, ok := s.as(bits, signed)
		return lo, hi, ok && lo >= 0
	}
	lo, hi, ok := positive(source(1))
	low, high, okay := positive(source(2))
	switch in.Form.Op {
	case ptx.OpAnd:
		switch {
		case ok && okay:
			return between(0, min(hi, high))
		case okay:
			return between(0, high)
		case ok:
			return between(0, hi)
		}
	case ptx.OpOr:
		if ok && okay && hi <= math.MaxInt64/2 && high <= math.MaxInt64/2 {
			return between(max(lo, low), hi+high)
		}
	case ptx.OpDiv:
		if ok && okay && low > 0 {
			return between(lo/high, hi/low)
		}
	case ptx.OpRem:
		if ok && okay && low > 0 {
			return between(0, min(hi, high-1))
		}
	case ptx.OpBfe:
		if n := source(3); !signed && n.ok && !n.pointer() && n.lo == n.hi && n.lo >= 0 && n.lo < 63 {
			return between(0, 1<<n.lo-1)
		}
	}
	return anything
}

// loaded returns what a load returns: the value of a parameter, or else any number, which may be an address if addresses are stored there.
func (c *context) loaded(in *ptx.Instruction) span {
	e := c.e
	bits := in.Form.Type().Bits()
	o := in.Operands[1]
	if in.Form.Space() == ptx.Param && in.Form.Vector == 1 && o.Kind == ptx.Address && o.Variable() != ptx.NoVariable && o.Register() == ptx.NoRegister && o.Value == 0 {
		for i, p := range e.f.Params {
			if p.Variable != o.Variable() {
				continue
			}
			value, known := e.launch.Scalars[i]
			field, pointer := e.fields[i]
			switch {
			case in.Form.Type().Float() || int64(bits) != e.m.Variables[p.Variable].Size*8:
			case known && in.Form.Type().Signed() && bits < 64:
				return exactly(int64(value) << (64 - bits) >> (64 - bits))
			case known && bits < 64:
				return exactly(int64(value) & (1<<bits - 1))
			case known:
				return exactly(int64(value))
			case pointer && bits == 64:
				return span{base: field, ok: true}
			}
		}
		return mixture
	}
	if lo, hi, ok := anything.as(bits, in.Form.Type().Signed()); ok && bits < 64 {
		return between(lo, hi) // any number of its type
	}
	if space := in.Form.Space(); space == ptx.Global || space == ptx.Const || space == ptx.Shared {
		return anything
	}
	return mixture
}

// step describes how a loop counter changes.
type step struct {
	loop  *loop
	start span
	by    span
	at    int32 // the instruction that increments it
	def   int32 // the instruction that writes the register
}

// counter reports whether a register that is written several times is a loop counter: it starts outside the loop, and one instruction in the
// loop adds to it.
func (c *context) counter(r ptx.RegisterID) (s step, ok bool) {
	e := c.e
	for _, def := range e.defs[r] {
		if at, by, found := e.increment(r, def); found {
			if s.loop != nil {
				return s, false
			}
			if s.loop = e.g.innermost(e.g.of[def]); s.loop == nil || e.g.innermost(e.g.of[at]) != s.loop {
				return s, false
			}
			s.at, s.def = at, def
			if at != def && (!e.g.dominates(e.g.of[at], e.g.of[def]) || e.g.of[at] == e.g.of[def] && at > def) {
				return s, false
			}
			s.by = e.plain.operand(by, at)
			if e.f.Code[at].Form.Op == ptx.OpSub {
				s.by = s.by.negated()
			}
		}
	}
	if s.loop == nil || !s.by.ok || s.by.pointer() || e.f.Code[s.def].Guard != ptx.NoRegister || e.f.Code[s.at].Guard != ptx.NoRegister {
		return s, false
	}
	first := true
	for _, def := range e.defs[r] {
		if def == s.def {
			continue
		}
		if s.loop.in[e.g.of[def]] || e.f.Code[def].Guard != ptx.NoRegister {
			return s, false
		}
		if start := e.plain.result(def); first {
			s.start, first = start, false
		} else {
			s.start = s.start.hull(start)
		}
	}
	return s, !first && s.start.ok
}

// increment reports whether a definition of a register is its old value plus something, directly or through another register.
func (e *evaluator) increment(r ptx.RegisterID, def int32) (at int32, by ptx.Operand, ok bool) {
	in := &e.f.Code[def]
	for range 3 {
		if in.Form.Op != ptx.OpMov || len(in.Operands) != 2 || in.Operands[1].Kind != ptx.RegisterKind || in.Operands[1].Part != ptx.Whole || in.Operands[1].Value != 0 {
			break
		}
		defs := e.defs[in.Operands[1].Index]
		if len(defs) != 1 {
			return 0, by, false
		}
		def = defs[0]
		in = &e.f.Code[def]
	}
	if in.Form.Op != ptx.OpAdd && in.Form.Op != ptx.OpSub || in.Form.Type().Float() || len(in.Operands) != 3 {
		return 0, by, false
	}
	x, y := in.Operands[1], in.Operands[2]
	old := func(o ptx.Operand) bool {
		return o.Kind == ptx.RegisterKind && ptx.RegisterID(o.Index) == r && o.Value == 0 && o.Part == ptx.Whole
	}
	switch {
	case old(x):
		return def, y, true
	case old(y) && in.Form.Op == ptx.OpAdd:
		return def, x, true
	}
	return 0, by, false
}

// several returns what a register holds that is written in several places.
func (c *context) several(r ptx.RegisterID, used int32) span {
	e := c.e
	s, counted := c.counter(r)
	if !counted {
		return c.either(r)
	}
	turns, ok := c.turns(s.loop, used)
	if !ok {
		return s.start.plus(anything)
	}
	header := e.g.blocks[s.loop.header].Start
	if !s.loop.in[e.g.of[used]] || e.g.reaches(s.def, used, header) {
		turns++ // after the addition
	}
	total := s.by.times(between(0, turns))
	if !total.ok {
		return s.start.plus(anything)
	}
	return s.start.plus(total)
}

// either returns the hull of everything that is written to a register.
func (c *context) either(r ptx.RegisterID) span {
	e := c.e
	s := mixture
	for i, def := range e.defs[r] {
		v := e.plain.result(def)
		if e.f.Code[def].Guard != ptx.NoRegister && i == 0 {
			return mixture
		}
		if i == 0 {
			s = v
		} else {
			s = s.hull(v)
		}
	}
	return s
}

// bounds returns the bounds that follow from the exits of a loop.
func (e *evaluator) bounds(l *loop) []bound {
	if known, ok := e.bounded[l]; ok {
		return known // a loop whose bounds depend on itself has none
	}
	e.bounded[l] = nil
	var found []bound
	for _, b := range l.exits {
		stay := e.g.blocks[b].Next[0]
		if !l.in[stay] {
			stay = e.g.blocks[b].Next[1]
		}
		if guard, value, ok := e.branch(&e.g.blocks[b], stay); ok {
			if passed, ok := e.lastPassed(l, b, guard, value); ok {
				found = append(found, bound{b, stay, passed})
			}
		}
	}
	e.bounded[l] = found
	return found
}

// turns returns the last iteration of a loop, from 0, in which an instruction can be executed.
func (c *context) turns(l *loop, used int32) (int64, bool) {
	g := c.e.g
	best, found := int64(math.MaxInt64), false
	for _, b := range c.e.bounds(l) {
		turns := b.passed + 1 // the iteration in which the test fails
		if at := g.of[used]; at != b.block && l.in[at] && len(g.blocks[b.stay].Before) == 1 && g.dominates(b.stay, at) {
			turns = b.passed
		}
		best, found = min(best, max(turns, 0)), true
	}
	return best, found
}

// lastPassed returns the last iteration of a loop, from 0, in which a predicate can have the value that stays in the loop.
func (e *evaluator) lastPassed(l *loop, branch int32, predicate ptx.RegisterID, value bool) (int64, bool) {
	test := &context{e: e, at: -1}
	test.add(predicate, value, 0)
	best, found := int64(math.MaxInt64), false
	for i := range test.conditions {
		tested := e.g.of[test.conditions[i].setp]
		if !l.in[tested] || !e.g.dominates(tested, branch) || e.g.innermost(tested) != l {
			continue // the test is not repeated in each iteration
		}
		if last, ok := e.lastOf(l, &test.conditions[i]); ok {
			best, found = min(best, last), true
		}
	}
	return best, found
}

// lastOf returns the last iteration in which a counter of the loop passes one test.
func (e *evaluator) lastOf(l *loop, d *condition) (int64, bool) {
	register, tested := d.register, d.setp
	after := int64(0) // 1 if the test uses the counter after the addition
	header := e.g.blocks[l.header].Start
	if defs := e.defs[register]; len(defs) == 1 { // the sum, before it is written to the counter
		in := &e.f.Code[defs[0]]
		if in.Form.Op != ptx.OpAdd && in.Form.Op != ptx.OpSub || len(in.Operands) != 3 || in.Operands[1].Kind != ptx.RegisterKind {
			return 0, false
		}
		register, after = ptx.RegisterID(in.Operands[1].Index), 1
		s, ok := e.plain.counter(register)
		if !ok || s.at != defs[0] || s.loop != l || !e.g.everyTime(l, e.g.of[s.at]) || !e.g.everyTime(l, e.g.of[s.def]) {
			return 0, false
		}
		return s.last(d, e, after)
	}
	s, ok := e.plain.counter(register)
	if !ok || s.loop != l || !e.g.everyTime(l, e.g.of[s.def]) {
		return 0, false
	}
	if e.g.reaches(s.def, tested, header) {
		after = 1
	}
	return s.last(d, e, after)
}

// last computes the iteration from start, step and bound. The counter must not wrap around before.
func (s *step) last(d *condition, e *evaluator, after int64) (int64, bool) {
	low, high, ok := e.plain.operand(d.other, d.setp).as(d.bits, d.signed)
	if !ok || s.start.pointer() {
		return 0, false
	}
	lowest, highest := limits(d.bits, d.signed)
	if s.start.lo < lowest || s.start.hi > highest {
		return 0, false
	}
	test := d.test
	if test == unequal { // counts to exactly that number
		if low != high || s.start.lo != s.start.hi || s.by.lo != s.by.hi || s.by.lo == 0 || (low-s.start.lo)%s.by.lo != 0 || (low-s.start.lo)/s.by.lo < after {
			return 0, false
		}
		return (low-s.start.lo)/s.by.lo - 1 - after, true
	}
	switch {
	case (test == less || test == atMost) && s.by.lo > 0:
		if test == less {
			high--
		}
		if end, ok := sumOf(max(high, s.start.hi), s.by.hi); !ok || end > highest {
			return 0, false
		}
		return floor(high-s.start.lo, s.by.lo) - after, true
	case (test == greater || test == atLeast) && s.by.hi < 0:
		if test == greater {
			low++
		}
		if end, ok := sumOf(min(low, s.start.lo), s.by.lo); !ok || end < lowest {
			return 0, false
		}
		return floor(s.start.hi-low, -s.by.hi) - after, true
	}
	return 0, false
}

func floor(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}

// register returns what a register holds when an instruction uses it, on the way to the context's place.
func (c *context) register(r ptx.RegisterID, used int32) span {
	e := c.e
	single := len(e.defs[r]) == 1 && e.f.Code[e.defs[r][0]].Guard == ptx.NoRegister
	if s, ok := c.known[r]; ok && single {
		return s
	}
	if e.budget--; e.budget < 0 || c.busy[r] || len(e.defs[r]) == 0 {
		return mixture
	}
	c.busy[r] = true
	var s span
	if single {
		s = c.result(e.defs[r][0])
	} else {
		s = c.several(r, used)
	}
	delete(c.busy, r)
	for i := range c.conditions {
		if d := &c.conditions[i]; d.register == r && (single || e.sameValue(r, d.setp, used)) {
			s = c.apply(s, d)
		}
	}
	if single && (s.ok || len(c.busy) == 0) {
		c.known[r] = s
	}
	return s
}

// apply narrows a span by a condition.
func (c *context) apply(s span, d *condition) span {
	if s.pointer() || c.dead {
		return s
	}
	lo, hi, ok := s.as(d.bits, d.signed)
	low, high, okay := c.e.plain.operand(d.other, d.setp).as(d.bits, d.signed)
	if !okay || !ok && d.test != equal && d.test != less && d.test != atMost {
		return s
	}
	lo, hi, possible := d.test.narrow(lo, hi, low, high)
	if !possible {
		c.dead = true
		return s
	}
	return between(lo, hi)
}

// operand returns the value of an operand.
func (c *context) operand(o ptx.Operand, used int32) span {
	switch o.Kind {
	case ptx.RegisterKind:
		if o.Part != ptx.Whole {
			return mixture
		}
		return c.register(ptx.RegisterID(o.Index), used).plus(exactly(o.Value))
	case ptx.Integer:
		return exactly(o.Value)
	case ptx.VariableKind:
		if c.e.m.Variables[o.Extra].Space == ptx.Param {
			return mixture
		}
		return span{base: elsewhere}
	case ptx.SpecialKind:
		return c.e.special(o)
	case ptx.Float32, ptx.Float64:
		return anything
	}
	return mixture
}
