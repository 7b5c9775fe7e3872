// Basic blocks: where they start and how they end.

package simt

import (
	"math/bits"

	"github.com/dagrun/dagrun/internal/ptx"
)

// alone reports whether an instruction needs a basic block of its own, because lanes may have to wait before it.
func alone(in *ptx.Instruction) bool {
	switch f := in.Form; f.Op {
	case ptx.OpShfl, ptx.OpVote, ptx.OpMatch, ptx.OpElect:
		return f.Has(ptx.ModSync) || f.Op == ptx.OpElect
	case ptx.OpRedux, ptx.OpMma, ptx.OpWmma, ptx.OpMovmatrix, ptx.OpLdmatrix, ptx.OpStmatrix:
		return true
	case ptx.OpBar:
		return f.Has(ptx.ModWarp)
	}
	return false
}

// ends reports whether an instruction ends its basic block.
func ends(in *ptx.Instruction) bool {
	switch in.Form.Op {
	case ptx.OpBra, ptx.OpBrx, ptx.OpCall, ptx.OpRet, ptx.OpExit, ptx.OpTrap, ptx.OpBrkpt:
		return true
	case ptx.OpBar, ptx.OpBarrier:
		return !in.Form.Has(ptx.ModWarp)
	}
	return false
}

// cut compiles the function's code block by block. An empty block at the end ends the lanes that reach it.
func (c *compiler) cut() {
	code := c.f.Code
	n := len(code)
	leader := make([]bool, n+1)
	leader[0], leader[n] = true, true
	for i := range code {
		for _, to := range c.f.Jumps(&code[i]) {
			leader[to] = true
		}
		if ends(&code[i]) {
			leader[i+1] = true
		}
		if alone(&code[i]) {
			leader[i], leader[i+1] = true, true
		}
	}
	blockOf := make([]int32, n+1)
	count := int32(-1)
	for i := range n + 1 {
		if leader[i] {
			count++
		}
		blockOf[i] = count
	}
	c.fn.blocks = make([]basic, count+1)
	for i := range n {
		b := &c.fn.blocks[blockOf[i]]
		c.in = &code[i]
		if ends(c.in) {
			b.last = int32(i)
			c.operands = operands{}
			c.ending(b, blockOf)
			b.closing = c.operands
			continue
		}
		b.last = int32(i)
		c.operands, c.prefix = operands{}, nil
		f := c.instruction()
		if f == nil {
			continue
		}
		if first := c.prefix; len(first) > 0 {
			then := f
			f = func(x *exec, m uint32) {
				for _, g := range first {
					g(x, m)
				}
				then(x, m)
			}
		}
		if alone(c.in) {
			b.need = c.need()
		}
		c.operands.guard = c.guardOf(c.in)
		b.operands = append(b.operands, c.operands)
		if g := c.operands.guard; g.register >= 0 {
			inner := f
			f = func(x *exec, m uint32) {
				if m = g.mask(x, m); m != 0 {
					inner(x, m)
				}
			}
		}
		b.ops = append(b.ops, f)
		b.at = append(b.at, int32(i))
	}
	end := &c.fn.blocks[count]
	end.end, end.guard, end.last = endReturn, guard{register: -1}, int32(n-1)
	if c.problem == nil {
		c.fn.orderTurns()
		if c.f.Entry {
			c.once()
		}
	}
}

func (c *compiler) guardOf(in *ptx.Instruction) guard {
	if in.Guard == ptx.NoRegister {
		return guard{register: -1}
	}
	if c.f.Registers[in.Guard].Type != ptx.Pred {
		c.refuse("a predicate is expected")
		return guard{register: -1}
	}
	return guard{register: c.registers[in.Guard], negated: in.Negated}
}

// need returns which lanes a warp-wide operation waits for: the set that the first lane names. If a guard excludes lanes, the operation still
// waits for the remaining lanes at the same place.
func (c *compiler) need() func(x *exec, m uint32) uint32 {
	in := c.in
	switch in.Form.Op {
	case ptx.OpMma, ptx.OpWmma, ptx.OpMovmatrix, ptx.OpLdmatrix, ptx.OpStmatrix:
		return func(*exec, uint32) uint32 { return fullMask }
	}
	o := in.Operands[len(in.Operands)-1]
	if o.Kind == ptx.Integer {
		mask := uint32(o.Value)
		return func(_ *exec, m uint32) uint32 { return mask }
	}
	slot := c.source(o, ptx.B32)
	g := c.guardOf(in)
	return func(x *exec, m uint32) uint32 {
		active := g.mask(x, m)
		if active == 0 {
			return m
		}
		named := uint32(x.s[slot][bits.TrailingZeros32(active)&31])
		return named | m&^active
	}
}

// ending compiles the instruction that ends a block.
func (c *compiler) ending(b *basic, blockOf []int32) {
	in := c.in
	b.guard = c.guardOf(in)
	switch in.Form.Op {
	case ptx.OpBra:
		to := c.f.Jumps(in)
		if len(to) != 1 || in.Operands[0].Kind != ptx.LabelKind {
			c.refuse("a branch to a register is not supported")
			return
		}
		b.end, b.to = endJump, blockOf[to[0]]
	case ptx.OpBrx:
		b.end = endTable
		b.index = c.source(in.Operands[0], ptx.U32)
		for _, to := range c.f.Jumps(in) {
			b.table = append(b.table, blockOf[to])
		}
	case ptx.OpCall:
		b.end, b.call = endCall, c.call()
	case ptx.OpRet:
		b.end = endReturn
	case ptx.OpExit:
		b.end = endExit
	case ptx.OpTrap, ptx.OpBrkpt:
		b.end = endTrap
	default:
		b.end, b.bar = endBarrier, c.barrier()
	}
}

// barrier compiles bar and barrier.
func (c *compiler) barrier() *barrierOp {
	in := c.in
	f := in.Form
	o := &barrierOp{count: -1, source: -1, reduce: ptx.ModOther, arrive: f.Has(ptx.ModArrive)}
	if f.Has(ptx.ModCluster) {
		o.cluster = true
		return o
	}
	operands := in.Operands
	if f.Has(ptx.ModRed) {
		o.reduce = f.First(ptx.ModPopc, ptx.ModAnd, ptx.ModOr)
		if o.reduce == ptx.ModPopc {
			o.target = c.target(operands[0])
		} else {
			o.target = c.predicate(operands[0])
		}
		last := operands[len(operands)-1]
		if c.isPredicate(last) {
			o.source, o.negated = c.predicate(last), last.Negated
		}
		operands = operands[1 : len(operands)-1]
	}
	if len(operands) == 0 {
		c.refuse("the barrier has no number")
		return o
	}
	o.name = c.source(operands[0], ptx.U32)
	if len(operands) > 1 {
		o.count = c.source(operands[1], ptx.U32)
	}
	return o
}

// call compiles a call.
func (c *compiler) call() *call {
	in := c.in
	m := c.program.module
	k := &call{}
	placeOf := func(o ptx.Operand) place {
		if o.Kind == ptx.VariableKind {
			id := ptx.VariableID(o.Extra)
			if at, ok := c.locals[id]; ok {
				return place{slot: -1, offset: at, size: m.Variables[id].Size}
			}
		}
		if o.Kind == ptx.RegisterKind && o.Part == ptx.Whole && !o.Negated && o.Value == 0 {
			return c.registerPlace(o.Index)
		}
		t := ptx.B64
		if o.Kind == ptx.RegisterKind {
			t = c.f.Registers[o.Index].Type
		}
		return place{slot: c.source(o, t), size: int64(t.Size())}
	}
	for _, e := range c.f.Elements(in.Operands[0]) {
		k.results = append(k.results, placeOf(e))
	}
	for _, e := range c.f.Elements(in.Operands[2]) {
		k.args = append(k.args, placeOf(e))
	}
	callee := in.Operands[1]
	if callee.Kind != ptx.FunctionKind {
		k.slot = c.source(callee, ptx.B64)
		c.indirect = true
		return k
	}
	id := m.Resolve(ptx.FunctionID(callee.Index))
	if k.callee = c.kernel.functions[id]; k.callee != nil {
		if c.calls == nil {
			c.calls = map[*function][]*function{}
		}
		c.calls[c.fn] = append(c.calls[c.fn], k.callee)
		return k
	}
	name := m.Functions[id].Name
	if k.builtin = builtins[name]; k.builtin == nil {
		c.refuse("the function " + name + " is not in the module")
	}
	return k
}

// registerPlace is where a register that is passed or returned is.
func (c *compiler) registerPlace(index int32) place {
	r := &c.f.Registers[index]
	if r.Type == ptx.Pred {
		return place{slot: -1, predicate: int(c.registers[index]) + 1}
	}
	return place{slot: int(c.registers[index]), size: int64(r.Type.Size()), more: c.width(int(index)) - 1}
}
