// Compiling a kernel, with the functions that it calls.

package simt

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/dagrun/dagrun/internal/ptx"
)

// Kernel compiles an entry. If it cannot run an instruction, the error is an [*UnsupportedError].
func (p *Program) Kernel(entry string) (*Kernel, error) {
	id, ok := p.module.Function(entry)
	if ok {
		id = p.module.Resolve(id)
	}
	if !ok || !p.module.Functions[id].Entry || !p.module.Functions[id].Defined {
		return nil, fmt.Errorf("%s has no kernel %q", p.Name, entry)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if k := p.kernels[id]; k != nil {
		return k, nil
	}
	k, err := p.compile(id)
	if err != nil {
		return nil, err
	}
	p.kernels[id] = k
	return k, nil
}

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
	return k, nil
}

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
