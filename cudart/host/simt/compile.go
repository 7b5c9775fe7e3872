// Compiles an entry and the functions that it calls: lays them out and cuts them into basic blocks.

package simt

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/dagrun/dagrun/kernels/ptx"
)

const (
	recursionRoom = 16 << 10 // local memory per lane for recursive functions
	mostStack     = 1 << 20
)

// compile compiles an entry and everything that it calls.
func (p *Program) compile(id ptx.FunctionID) (*Kernel, error) {
	m := p.module
	if m.AddressSize == 32 {
		return nil, fmt.Errorf("%s: PTX with 32-bit addresses is not supported", p.Name)
	}
	entry := &m.Functions[id]
	k := &Kernel{program: p, functions: map[ptx.FunctionID]*function{}, limits: entry.Limits}
	for _, declared := range entry.Params {
		if declared.Variable == ptx.NoVariable {
			return nil, fmt.Errorf("%s:%v: kernel %q has a parameter in a register", p.Name, entry.Position, entry.Name)
		}
		v := &m.Variables[declared.Variable]
		offset := alignUp(k.bytes, int64(max(v.Align, 1)))
		k.params = append(k.params, param{offset: offset, size: v.Size})
		k.bytes = offset + v.Size
	}
	l := &linker{program: p, kernel: k, shared: map[ptx.VariableID]int64{}}
	var order []*function
	visit := func(id ptx.FunctionID) {
		if k.functions[id] != nil {
			return
		}
		fn := &function{f: &m.Functions[id], id: id, number: uint32(len(order))}
		k.functions[id] = fn
		order = append(order, fn)
	}
	visit(id)
	k.entry = k.functions[id]
	// A function whose address is taken may be called through it, so every function that is named is compiled.
	for i := 0; i < len(order); i++ {
		for _, callee := range named(m, order[i].f) {
			if m.Functions[callee].Defined && !m.Functions[callee].Entry {
				visit(callee)
			}
		}
		if i == 0 {
			for _, callee := range addressed(m) {
				visit(callee)
			}
		}
	}
	for _, fn := range order {
		l.layShared(fn)
	}
	k.list = order
	k.shared = l.sharedEnd
	k.open = alignUp(l.sharedEnd, max(16, l.openAlign))
	for id, at := range l.shared {
		if at < 0 {
			at = k.open
		}
		k.names = append(k.names, sharedName{at, m.Variables[id].Name})
	}
	slices.SortFunc(k.names, func(a, b sharedName) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.name, b.name)) })
	for _, fn := range order {
		c := &compiler{linker: l, fn: fn, f: fn.f}
		if err := c.function(); err != nil {
			return nil, err
		}
	}
	k.stack = l.stackOf(k.entry, map[*function]bool{})
	if k.stack > mostStack {
		return nil, fmt.Errorf("%s: kernel %q needs %d bytes of local memory per thread; at most %d are possible", p.Name, entry.Name, k.stack, mostStack)
	}
	k.stack = alignUp(k.stack, 16)
	return k, nil
}

// named returns the functions that the code of a function names.
func named(m *ptx.Module, f *ptx.Function) (ids []ptx.FunctionID) {
	add := func(o ptx.Operand) {
		if o.Kind == ptx.FunctionKind {
			ids = append(ids, m.Resolve(ptx.FunctionID(o.Index)))
		}
	}
	for i := range f.Code {
		for _, o := range f.Code[i].Operands {
			add(o)
			for _, e := range f.Elements(o) {
				add(e)
			}
		}
	}
	for i := range f.Labels {
		for _, id := range f.Labels[i].Callees {
			ids = append(ids, m.Resolve(id))
		}
	}
	return ids
}

// addressed returns the functions whose addresses are in variables.
func addressed(m *ptx.Module) (ids []ptx.FunctionID) {
	for i := range m.Variables {
		for _, r := range m.Variables[i].Relocate {
			if r.Function == ptx.NoFunction {
				continue
			}
			if id := m.Resolve(r.Function); m.Functions[id].Defined && !m.Functions[id].Entry {
				ids = append(ids, id)
			}
		}
	}
	return ids
}

// linker lays out the memory that the functions of a kernel share.
type linker struct {
	program   *Program
	kernel    *Kernel
	shared    map[ptx.VariableID]int64
	sharedEnd int64
	openAlign int64
	calls     map[*function][]*function
	indirect  bool
}

// layShared places the shared variables that a function uses.
func (l *linker) layShared(fn *function) {
	m := l.program.module
	place := func(id ptx.VariableID) {
		v := &m.Variables[id]
		if _, done := l.shared[id]; done || v.Space != ptx.Shared && v.Space != ptx.SharedCluster {
			return
		}
		if v.Open || v.Size == 0 {
			l.shared[id] = -1
			l.openAlign = max(l.openAlign, int64(v.Align))
			return
		}
		at := alignUp(l.sharedEnd, int64(max(v.Align, 1)))
		l.shared[id] = at
		l.sharedEnd = at + v.Size
	}
	each := func(o ptx.Operand) {
		if v := o.Variable(); v != ptx.NoVariable && (o.Kind == ptx.VariableKind || o.Kind == ptx.Address) {
			place(v)
		}
	}
	for i := range fn.f.Code {
		for _, o := range fn.f.Code[i].Operands {
			each(o)
			for _, e := range fn.f.Elements(o) {
				each(e)
			}
		}
	}
}

// sharedAddress returns a shared variable's offset in the block's memory.
func (l *linker) sharedAddress(id ptx.VariableID) uint64 {
	at, ok := l.shared[id]
	if !ok {
		return 0
	}
	if at < 0 {
		at = l.kernel.open
	}
	return uint64(at)
}

// stackOf returns the local memory that a function and its deepest call need.
func (l *linker) stackOf(fn *function, open map[*function]bool) int64 {
	if open[fn] {
		return recursionRoom
	}
	open[fn] = true
	deepest := int64(0)
	callees := l.calls[fn]
	if l.indirect && fn == l.kernel.entry {
		for _, other := range l.kernel.functions {
			if other != fn {
				callees = append(callees, other)
			}
		}
	}
	for _, callee := range callees {
		deepest = max(deepest, l.stackOf(callee, open))
	}
	open[fn] = false
	if l.indirect && fn == l.kernel.entry {
		deepest += recursionRoom
	}
	return fn.frame + deepest
}

// compiler turns one function into basic blocks of closures.
type compiler struct {
	*linker
	fn *function
	f  *ptx.Function
	in *ptx.Instruction

	registers      []int32 // by register: its slot, or its number among the predicates
	locals         map[ptx.VariableID]int64
	extras         map[extra]int // by what it holds: its slot
	constants      map[uint64]int
	operands       operands // of the instruction that is compiled
	scratch        int      // a slot for results that nobody wants
	prefix         []op     // what an instruction computes first
	parameterSpace bool     // the last address was of a parameter
	memories       int      // how many instructions access global memory
	problem        error
}

// temporaries is how many operands of an instruction may need a slot for something that is computed first.
const temporaries = 4

// width is how many slots a register takes.
func (c *compiler) width(register int) int {
	r := &c.f.Registers[register]
	if r.Type == ptx.B128 {
		return 2 * max(int(r.Vector), 1)
	}
	return max(int(r.Vector), 1)
}

// refuse stores the first instruction that cannot be run.
func (c *compiler) refuse(reason string) {
	if c.problem == nil {
		c.problem = &UnsupportedError{Program: c.program.Name, Kernel: c.kernel.program.module.Functions[c.kernel.entryID()].Name,
			Instruction: c.in.Form.Text, Position: c.in.Position, Reason: reason}
	}
}

func (k *Kernel) entryID() ptx.FunctionID { return k.entry.id }

// function compiles the function: its frame, its slots, its blocks.
func (c *compiler) function() error {
	m := c.program.module
	c.locals = map[ptx.VariableID]int64{}
	c.constants, c.extras = map[uint64]int{}, map[extra]int{}
	isParam := map[ptx.VariableID]bool{}
	layout := func(id ptx.VariableID) int64 {
		v := &m.Variables[id]
		c.fn.frame = alignUp(c.fn.frame, int64(max(v.Align, 8)))
		at := c.fn.frame
		c.locals[id] = at
		c.fn.frame += max(v.Size, 8)
		return at
	}
	c.registers = make([]int32, len(c.f.Registers))
	for i, r := range c.f.Registers {
		if r.Type == ptx.Pred {
			c.registers[i] = int32(c.fn.preds)
			c.fn.preds++
		} else {
			c.registers[i] = int32(c.fn.slots)
			c.fn.slots += c.width(i)
		}
	}
	c.scratch = c.fn.slots
	c.fn.slots += 1 + temporaries
	c.fn.preds++ // the last predicate is for unused results
	if !c.f.Entry {
		for _, list := range []struct {
			from []ptx.Parameter
			to   *[]place
		}{{c.f.Params, &c.fn.params}, {c.f.Results, &c.fn.results}} {
			for _, p := range list.from {
				if p.Variable == ptx.NoVariable {
					*list.to = append(*list.to, c.registerPlace(int32(p.Register)))
					continue
				}
				isParam[p.Variable] = true
				at := layout(p.Variable)
				*list.to = append(*list.to, place{slot: -1, offset: at, size: m.Variables[p.Variable].Size})
			}
		}
	}
	for _, id := range c.f.Locals {
		if v := &m.Variables[id]; v.Space == ptx.Local || v.Space == ptx.Param && !isParam[id] {
			layout(id)
		}
	}
	c.fn.frame = alignUp(c.fn.frame, 16)
	c.cut()
	if c.problem != nil {
		return c.problem
	}
	return nil
}
