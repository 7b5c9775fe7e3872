// Operands of instructions as slots, predicates and addresses.

package simt

import (
	"math"
	"unsafe"

	"github.com/dagrun/dagrun/internal/ptx"
)

// slotOf returns the slot of something that is not a register.
func (c *compiler) slotOf(e extra) int {
	if at, ok := c.extras[e]; ok && e.constant == nil {
		return at
	}
	at := c.fn.slots + len(c.fn.extras)
	c.fn.extras = append(c.fn.extras, e)
	if e.constant == nil {
		c.extras[e] = at
	}
	return at
}

// constant returns the slot of a value that all lanes share.
func (c *compiler) constant(v uint64) int {
	if at, ok := c.constants[v]; ok {
		return at
	}
	l := &lanes{}
	for i := range l {
		l[i] = v
	}
	at := c.slotOf(extra{constant: l})
	c.constants[v] = at
	return at
}

// source returns the slot of an operand that an instruction reads as a type.
func (c *compiler) source(o ptx.Operand, t ptx.Type) int {
	slot := c.value(o, t)
	c.operands.uses = append(c.operands.uses, int32(slot))
	return slot
}

func (c *compiler) value(o ptx.Operand, t ptx.Type) int {
	switch o.Kind {
	case ptx.RegisterKind:
		if o.Value != 0 && !o.Negated && len(c.prefix) < temporaries && t.Bits() > 0 && !t.Float() {
			return c.sum(o, t)
		}
		if slot, ok := c.component(o); ok {
			return slot
		}
		if o.Part != ptx.Whole || o.Value != 0 || o.Negated || c.width(int(o.Index)) > 1 || c.f.Registers[o.Index].Type == ptx.Pred {
			c.refuse("an operand of this form is not supported")
			return c.scratch
		}
		return int(c.registers[o.Index])
	case ptx.Integer:
		return c.constant(truncate(uint64(o.Value), max(t.Bits(), 1)))
	case ptx.Float32, ptx.Float64:
		return c.constant(floatConstant(o, t))
	case ptx.SpecialKind:
		return c.special(o)
	case ptx.VariableKind:
		return c.addressOf(ptx.VariableID(o.Extra), o.Value, true)
	case ptx.FunctionKind:
		return c.constant(inCode | uint64(c.program.module.Resolve(ptx.FunctionID(o.Index))))
	case ptx.Discard:
		return c.scratch
	}
	c.refuse("an operand of this form is not supported")
	return c.scratch
}

// component is the slot of a component of a vector register.
func (c *compiler) component(o ptx.Operand) (slot int, ok bool) {
	k := int(o.Part - ptx.X)
	if width := c.width(int(o.Index)); k < 0 || k >= width || width < 2 || o.Negated || o.Value != 0 {
		return 0, false
	}
	return int(c.registers[o.Index]) + k, true
}

// sum is the slot of an operand r+4, which is computed before the instruction.
func (c *compiler) sum(o ptx.Operand, t ptx.Type) int {
	plain := o
	plain.Value = 0
	a, n, more := c.source(plain, t), t.Bits(), uint64(o.Value)
	slot := c.scratch + 1 + len(c.prefix)
	c.prefix = append(c.prefix, func1(func(a uint64) uint64 { return truncate(a+more, n) }).op(slot, a))
	return slot
}

// floatConstant returns an immediate as the bits of a type.
func floatConstant(o ptx.Operand, t ptx.Type) uint64 {
	if s, small := formatOf(t); small {
		return s.narrow(o.Float(), rounding{})
	}
	switch t {
	case ptx.F64:
		return math.Float64bits(o.Float())
	case ptx.F32:
		return uint64(math.Float32bits(float32(o.Float())))
	}
	if o.Kind == ptx.Float64 && t.Bits() == 32 {
		return uint64(math.Float32bits(float32(o.Float())))
	}
	return uint64(o.Value)
}

// special returns the slot of a special register. Registers that change while a kernel runs are read by instructions instead.
func (c *compiler) special(o ptx.Operand) int {
	part := 0
	switch o.Part {
	case ptx.Y:
		part = 1
	case ptx.Z:
		part = 2
	case ptx.W:
		return c.constant(0)
	}
	s := ptx.Special(o.Index)
	switch s {
	case ptx.Clock, ptx.ClockHi, ptx.Clock64, ptx.Globaltimer, ptx.GlobaltimerLo, ptx.GlobaltimerHi:
		c.refuse("a clock can only be moved to a register")
		return c.scratch
	}
	if s == ptx.Envreg {
		part = int(o.Value)
		c.kernel.meets = c.kernel.meets || part == workspaceHigh || part == workspaceLow
	}
	return c.slotOf(extra{special: specialSlot{s, part}})
}

// The registers that hold the halves of the address where the blocks of a cooperative launch meet.
const (
	workspaceHigh = 1
	workspaceLow  = 2
)

// target returns the slot that an instruction writes.
func (c *compiler) target(o ptx.Operand) int {
	switch {
	case o.Kind == ptx.Discard:
		return c.scratch
	case o.Kind == ptx.RegisterKind && o.Part != ptx.Whole:
		if slot, ok := c.component(o); ok {
			c.operands.sets = append(c.operands.sets, int32(slot))
			return slot
		}
	case o.Kind == ptx.RegisterKind && o.Part == ptx.Whole && c.width(int(o.Index)) == 1 && c.f.Registers[o.Index].Type != ptx.Pred:
		slot := int(c.registers[o.Index])
		c.operands.sets = append(c.operands.sets, int32(slot))
		return slot
	}
	c.refuse("a result of this form is not supported")
	return c.scratch
}

// isPredicate reports whether an operand is a predicate register.
func (c *compiler) isPredicate(o ptx.Operand) bool {
	return o.Kind == ptx.RegisterKind && c.f.Registers[o.Index].Type == ptx.Pred
}

// predicate returns the number of a predicate that an instruction writes.
func (c *compiler) predicate(o ptx.Operand) int {
	if o.Kind == ptx.Discard {
		return c.fn.preds - 1
	}
	if !c.isPredicate(o) {
		c.refuse("a predicate is expected")
		return c.fn.preds - 1
	}
	return int(c.registers[o.Index])
}

// truth reads a predicate operand as a mask.
func (c *compiler) truth(o ptx.Operand) func(x *exec) uint32 {
	if o.Kind == ptx.Integer {
		mask := uint32(0)
		if o.Value != 0 {
			mask = fullMask
		}
		return func(*exec) uint32 { return mask }
	}
	if o.Kind == ptx.SpecialKind && ptx.Special(o.Index) == ptx.IsExplicitCluster {
		explicit := c.kernel.limits.RequiredCluster != [3]int32{}
		return func(x *exec) uint32 {
			if explicit || x.block.run.Cluster != [3]uint32{} {
				return fullMask
			}
			return 0
		}
	}
	p := c.predicate(o)
	if o.Negated {
		return func(x *exec) uint32 { return ^x.p[p] }
	}
	return func(x *exec) uint32 { return x.p[p] }
}

// addressOf returns the slot of a variable's address. As a value, it is generic for parameters, else in the variable's own space.
func (c *compiler) addressOf(id ptx.VariableID, offset int64, value bool) int {
	m := c.program.module
	v := &m.Variables[id]
	switch v.Space {
	case ptx.Global, ptx.Const:
		return c.constant(c.program.places[id] + uint64(offset))
	case ptx.Shared, ptx.SharedCluster:
		return c.constant(c.sharedAddress(id) + uint64(offset))
	}
	if at, ok := c.locals[id]; ok {
		return c.slotOf(extra{local: true, offset: at + offset, generic: value && v.Space == ptx.Param})
	}
	if at, ok := c.parameter(id); ok {
		address := uint64(at + offset)
		if value {
			address |= inParam
		}
		return c.constant(address)
	}
	c.refuse("the variable " + v.Name + " is not accessible here")
	return c.scratch
}

// parameter returns the offset of a kernel's parameter.
func (c *compiler) parameter(id ptx.VariableID) (int64, bool) {
	entry := c.kernel.entry.f
	for i, p := range entry.Params {
		if p.Variable == id {
			return c.kernel.params[i].offset, true
		}
	}
	return 0, false
}

// address splits a memory operand into the slot of its base, an offset, and its space.
func (c *compiler) address(o ptx.Operand, space ptx.Space) (base int, offset uint64, where ptx.Space) {
	c.parameterSpace = space == ptx.Param
	if o.Kind == ptx.TextureAddress || o.Kind != ptx.Address || o.Scaled || o.Part != ptx.Whole {
		c.refuse("an address of this form is not supported")
		return c.scratch, 0, space
	}
	if o.Extra < 0 {
		if o.Index < 0 {
			slot := c.constant(uint64(o.Value))
			c.operands.uses = append(c.operands.uses, int32(slot))
			return slot, 0, space
		}
		if space == ptx.Param { // its address was taken, so it is generic
			space = ptx.Generic
		}
		slot := int(c.registers[o.Index])
		c.operands.uses = append(c.operands.uses, int32(slot))
		return slot, uint64(o.Value), space
	}
	id := ptx.VariableID(o.Extra)
	if o.Index >= 0 {
		c.refuse("an address of a variable plus a register is not supported")
		return c.scratch, 0, space
	}
	v := &c.program.module.Variables[id]
	if space == ptx.Generic || space == ptx.Param {
		if space = v.Space; space == ptx.Param {
			space = ptx.Local
			if _, own := c.locals[id]; !own {
				space = ptx.Param
			}
		}
	}
	c.parameterSpace = v.Space == ptx.Param
	slot := c.addressOf(id, o.Value, false)
	c.operands.uses = append(c.operands.uses, int32(slot))
	return slot, 0, space
}

func (c *compiler) locate(o ptx.Operand, f *ptx.Form) located {
	return c.locateIn(o, f.Space(), strength(f))
}

func (c *compiler) locateIn(o ptx.Operand, space ptx.Space, kind uint8) located {
	base, offset, space := c.address(o, space)
	l := located{base: base, offset: offset, space: space, window: window(space), kind: kind}
	if c.parameterSpace || space == ptx.Const {
		l.kind |= silent
	}
	if space == ptx.Const {
		l.window = inParam // nothing is noted of either
	}
	if k := base - c.fn.slots; k >= 0 && k < len(c.fn.extras) {
		l.same = c.fn.extras[k].constant != nil
	}
	if space == ptx.Param {
		l.find = func(x *exec, address uint64, size, lane int) unsafe.Pointer { return x.paramAt(address, size, lane) }
		return l
	}
	c.memories++
	l.near = c.memories % nearby
	l.find = finder(space, l.near)
	return l
}

// isVector says whether an operand is several values: {a, b}, or a register that is a vector.
func (c *compiler) isVector(o ptx.Operand) bool {
	return o.Kind == ptx.Vector || o.Kind == ptx.RegisterKind && o.Part == ptx.Whole && c.f.Registers[o.Index].Type != ptx.Pred && c.width(int(o.Index)) > 1
}

// lengthOf is how many values an operand is.
func (c *compiler) lengthOf(o ptx.Operand) int {
	switch {
	case o.Kind == ptx.Vector:
		return len(c.f.Elements(o))
	case c.isVector(o):
		return c.width(int(o.Index))
	}
	return 1
}

// slots returns the slots of a value, or of the elements of a vector.
func (c *compiler) slots(o ptx.Operand, each func(ptx.Operand) int) []int {
	var list []int
	if o.Kind != ptx.Vector && c.isVector(o) {
		for k := range c.width(int(o.Index)) {
			o.Part = ptx.X + ptx.Part(k)
			list = append(list, each(o))
		}
		return list
	}
	if o.Kind != ptx.Vector {
		return []int{each(o)}
	}
	for _, e := range c.f.Elements(o) {
		list = append(list, each(e))
	}
	return list
}

// strength says whether an access is one that other threads may see or make at the same time, and what it orders.
func strength(f *ptx.Form) (kind uint8) {
	if f.Op == ptx.OpAtom || f.Op == ptx.OpRed || f.First(ptx.ModVolatile, ptx.ModRelaxed, ptx.ModAcquire, ptx.ModRelease, ptx.ModMmio, ptx.ModCv,
		ptx.ModWt) != ptx.ModOther {
		kind = strongs
	}
	if f.Has(ptx.ModAcquire) || f.Has(ptx.ModAcqRel) {
		kind |= acquire
	}
	if f.Has(ptx.ModRelease) || f.Has(ptx.ModAcqRel) {
		kind |= release
	}
	if f.Has(ptx.ModCta) {
		kind |= blockly
	}
	return kind
}

// window returns what to add to an address of a space to make it generic.
func window(s ptx.Space) uint64 {
	switch s {
	case ptx.Shared, ptx.SharedCluster:
		return inShared
	case ptx.Local:
		return inLocal
	case ptx.Param:
		return inParam
	}
	return 0
}
