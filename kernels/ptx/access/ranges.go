// The evaluation of one launch: contexts, conditions of branches, and the ranges found so far.

package access

import "github.com/dagrun/dagrun/kernels/ptx"

// Range is a range of bytes relative to an argument's address. It contains all bytes that are accessed, and may contain more.
type Range struct {
	Known  bool
	Lo, Hi int64 // Lo == Hi: nothing
}

// Extent is what an entry accesses through one field of its parameters.
type Extent struct {
	Param           int
	Offset          int64
	Reads, Writes   Range
	ReadAt, WroteAt Place // the access that reaches the furthest byte
}

const maxEvaluations = 1 << 18 // of registers, in one analysis of ranges

func forget(extents []Extent) []Extent {
	for i := range extents {
		extents[i] = Extent{Param: extents[i].Param, Offset: extents[i].Offset}
	}
	return extents
}

func (e *evaluator) place(in *ptx.Instruction) Place {
	p := Place{Position: in.Position}
	if file, line, _, ok := e.m.Source(e.f, in); ok {
		p.File, p.Line = file, line
	}
	return p
}

// evaluator computes what registers hold in one launch.
type evaluator struct {
	m       *ptx.Module
	f       *ptx.Function
	g       *graph
	launch  Launch
	fields  map[int]int32 // per parameter: its only field
	reached []bool
	defs    [][]int32 // the instructions that define a register
	budget  int
	plain   *context // without conditions
	bounded map[*loop][]bound
}

// newEvaluator prepares a function. It returns nil if the function calls others or has cycles that are not loops.
func newEvaluator(m *ptx.Module, entry ptx.FunctionID, launch Launch, report *Report) *evaluator {
	f := m.Functions[entry].Split()
	e := &evaluator{m: m, f: f, g: newGraph(f), launch: launch, fields: map[int]int32{}, reached: f.Reachable(), defs: make([][]int32, len(f.Registers)), budget: maxEvaluations, bounded: map[*loop][]bound{}}
	if e.g.tangled || len(f.Code) == 0 {
		return nil
	}
	for i, x := range report.Fields {
		if m.Variables[f.Params[x.Param].Variable].Size == 8 && m.AddressSize == 64 {
			e.fields[x.Param] = int32(i)
		}
	}
	for at := range f.Code {
		in := &f.Code[at]
		if !e.reached[at] {
			continue
		}
		if in.Form.Op == ptx.OpCall || in.Form.Op == ptx.OpUnknown || in.Form.Op == ptx.OpAlloca {
			return nil
		}
		for k, role := range in.Roles() {
			if role == ptx.Target {
				e.define(in.Operands[k], int32(at))
			}
		}
	}
	e.plain = &context{e: e, at: -1, known: map[ptx.RegisterID]span{}, busy: map[ptx.RegisterID]bool{}}
	return e
}

func (e *evaluator) define(o ptx.Operand, at int32) {
	if o.Kind == ptx.RegisterKind {
		e.defs[o.Index] = append(e.defs[o.Index], at)
		return
	}
	for _, part := range e.f.Elements(o) {
		e.define(part, at)
	}
}

// condition is a test that every thread that gets to a place has passed: register, test, other operand.
type condition struct {
	register ptx.RegisterID
	test     comparison
	other    ptx.Operand
	bits     int
	signed   bool
	setp     int32
}

// context is the evaluation of registers at one instruction, with the conditions under which it is executed.
type context struct {
	e          *evaluator
	at         int32
	conditions []condition
	known      map[ptx.RegisterID]span // of registers with one definition
	busy       map[ptx.RegisterID]bool
	dead       bool
}

func (e *evaluator) context(at int32) *context {
	c := &context{e: e, at: at, known: map[ptx.RegisterID]span{}, busy: map[ptx.RegisterID]bool{}}
	if in := &e.f.Code[at]; in.Guard != ptx.NoRegister {
		c.add(in.Guard, !in.Negated, 0)
	}
	g := e.g
	for b := g.of[at]; b != 0; b = g.idom[b] {
		if len(g.blocks[b].Before) != 1 {
			continue
		}
		from := &g.blocks[g.blocks[b].Before[0]]
		if guard, taken, ok := e.branch(from, b); ok {
			c.add(guard, taken, 0)
		}
	}
	return c
}

// branch returns the predicate that decides whether control goes from the end of one block to another, and the value that leads there.
func (e *evaluator) branch(from *ptx.Block, to int32) (guard ptx.RegisterID, value, ok bool) {
	last := &e.f.Code[from.End-1]
	if last.Form.Op != ptx.OpBra || last.Guard == ptx.NoRegister || len(from.Next) != 2 || from.Next[0] == from.Next[1] {
		return 0, false, false
	}
	return last.Guard, (from.Next[1] == to) != last.Negated, true
}

// add adds the conditions that follow from the value of a predicate.
func (c *context) add(predicate ptx.RegisterID, value bool, depth int) {
	e := c.e
	if defs := e.defs[predicate]; len(defs) != 1 || depth > 8 {
		return
	}
	at := e.defs[predicate][0]
	in := &e.f.Code[at]
	if in.Guard != ptx.NoRegister {
		return
	}
	switch in.Form.Op {
	case ptx.OpSetp:
		c.compare(in, at, value)
	case ptx.OpAnd, ptx.OpOr:
		if value == (in.Form.Op == ptx.OpAnd) {
			for _, o := range in.Operands[1:] {
				if r := o.Register(); r != ptx.NoRegister {
					c.add(r, value != o.Negated, depth+1)
				}
			}
		}
	case ptx.OpNot:
		if r := in.Operands[1].Register(); r != ptx.NoRegister {
			c.add(r, !value, depth+1)
		}
	}
}

func (c *context) compare(in *ptx.Instruction, at int32, value bool) {
	test, signed := comparisonOf(in.Form)
	if test == noComparison || len(in.Operands) != 3 || in.Operands[0].Kind != ptx.RegisterKind {
		return
	}
	if !value {
		test = test.not()
	}
	bits := in.Form.LastType().Bits()
	x, y := in.Operands[1], in.Operands[2]
	if x.Kind == ptx.RegisterKind && x.Value == 0 {
		c.conditions = append(c.conditions, condition{ptx.RegisterID(x.Index), test, y, bits, signed, at})
	}
	if y.Kind == ptx.RegisterKind && y.Value == 0 {
		c.conditions = append(c.conditions, condition{ptx.RegisterID(y.Index), test.flipped(), x, bits, signed, at})
	}
}

// sameValue reports whether a register that is written more than once holds the same value where a condition tests it and where
// it is used: no definition can come between the two.
func (e *evaluator) sameValue(r ptx.RegisterID, tested, used int32) bool {
	tests, uses := e.g.of[tested], e.g.of[used]
	first, then := tested, used
	switch {
	case tests == uses && used < tested, tests != uses && e.g.dominates(uses, tests):
		first, then = used, tested
	case tests == uses || e.g.dominates(tests, uses):
	default:
		return false
	}
	for _, def := range e.defs[r] {
		e.budget -= 100
		if def == first || e.g.reaches(first, def, first) && e.g.reaches(def, then, first) {
			return false
		}
	}
	return true
}

func (e *evaluator) special(o ptx.Operand) span {
	axis := int(o.Part) - int(ptx.X)
	of := func(n uint32) span { return between(0, max(int64(n), 1)-1) }
	switch s := ptx.Special(o.Index); {
	case s == ptx.Laneid:
		return between(0, 31)
	case axis < 0 || axis > 2:
		return anything
	case s == ptx.Tid:
		return of(e.launch.Block[axis])
	case s == ptx.Ctaid:
		return of(e.launch.Grid[axis])
	case s == ptx.Ntid:
		return exactly(int64(e.launch.Block[axis]))
	case s == ptx.Nctaid:
		return exactly(int64(e.launch.Grid[axis]))
	}
	return anything
}

// bound is what follows from one exit of a loop: the last iteration, from 0, in which the loop continues there, with the block stay.
type bound struct {
	block, stay int32
	passed      int64
}
