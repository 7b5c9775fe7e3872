// The compiler: what it knows of the function that it compiles, and where shared memory and stacks are.

package simt

import (
	"github.com/dagrun/dagrun/internal/ptx"
)

const (
	recursionRoom = 16 << 10 // local memory per lane for recursive functions
	mostStack     = 1 << 20
)

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
		if v.Size == 0 { // its size is given at the launch
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
			Instruction: c.in.Form.Text, Position: c.in.Position.String(), Reason: reason}
	}
}

func (k *Kernel) entryID() ptx.FunctionID { return k.entry.id }
