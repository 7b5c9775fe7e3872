// Calls: values handed to functions and back, and the functions that every driver knows.

package access

import (
	"strings"

	"github.com/dagrun/dagrun/internal/ptx"
)

// call visits a call with all functions that it may reach.
func (a *analysis) call(fr *frame, at int, in *ptx.Instruction) {
	callees, ok := a.callees(fr, in)
	if !ok {
		a.undecide(fr, in, "a function is called through a pointer that cannot be followed")
		a.results(fr, in, nil, number(fromCall))
		return
	}
	for _, id := range callees {
		id = a.m.Resolve(id)
		f := &a.m.Functions[id]
		if !f.Defined {
			a.external(fr, at, in, f.Name)
			continue
		}
		inner := a.enter(fr, callSite{at, id}, in)
		if inner == nil {
			a.results(fr, in, nil, number(fromCall))
			continue
		}
		a.arguments(fr, in, inner)
		a.results(fr, in, inner, value{})
	}
}

// callees are the functions that a call may reach; false where that is unknown.
func (a *analysis) callees(fr *frame, in *ptx.Instruction) ([]ptx.FunctionID, bool) {
	switch o := in.Operands[1]; o.Kind {
	case ptx.FunctionKind:
		return []ptx.FunctionID{ptx.FunctionID(o.Index)}, true
	case ptx.RegisterKind:
		if p := in.Operands[3]; p.Kind == ptx.LabelKind && len(fr.f.Labels[p.Index].Callees) > 0 {
			return fr.f.Labels[p.Index].Callees, true
		}
		v := fr.registers[o.Index]
		if !v.set && !a.judging {
			return nil, true // nothing is known yet
		}
		var ids []ptx.FunctionID
		for _, t := range v.terms {
			if b := a.bases[t.base]; b.kind == functionBase && t.factors&^zero == plus {
				ids = append(ids, ptx.FunctionID(b.index))
				continue
			}
			return nil, false
		}
		return ids, len(ids) > 0 && v.number == 0 && v.known && v.offset == 0
	}
	return nil, false
}

// enter is the frame of a call, made when it is first visited; nil where it cannot be analysed.
func (a *analysis) enter(fr *frame, site callSite, in *ptx.Instruction) *frame {
	if inner := fr.callees[site]; inner != nil {
		return inner
	}
	for outer := fr; outer != nil; outer = outer.outer {
		if outer.function == site.function {
			a.undecide(fr, in, "function "+a.m.Functions[site.function].Name+" calls itself")
			return nil
		}
	}
	if fr.depth >= maxDepth || len(a.frames) >= maxFrames {
		a.undecide(fr, in, "the kernel is too large to be analysed")
		return nil
	}
	inner := a.newFrame(site.function, fr)
	fr.callees[site] = inner
	a.changed = true
	return inner
}

// copyRegion lets one region hold what another may hold.
func (a *analysis) copyRegion(to, from int32) {
	if entry := a.regions[from].entry; entry >= 0 {
		for i, b := range a.fields[entry] {
			a.store(to, int64(i)*a.cellSize, a.cellSize, address(b, 0))
		}
		return
	}
	for i := range a.regions[from].cells {
		c := a.regions[from].cells[i]
		a.store(to, c.offset, c.size, c.value)
	}
	a.storeAnywhere(to, a.regions[from].anywhere)
}

// pass hands what an operand of a call holds to a parameter of the callee.
func (a *analysis) pass(fr *frame, o ptx.Operand, inner *frame, p ptx.Parameter) {
	memory := o.Kind == ptx.VariableKind && a.m.Variables[o.Extra].Space == ptx.Param
	switch {
	case memory && p.Variable != ptx.NoVariable:
		a.copyRegion(a.region(inner, p.Variable), a.region(fr, ptx.VariableID(o.Extra)))
	case memory:
		size := int64(inner.f.Registers[p.Register].Type.Size())
		a.update(&inner.registers[p.Register], a.load(a.region(fr, ptx.VariableID(o.Extra)), true, 0, size))
	case p.Variable != ptx.NoVariable:
		a.store(a.region(inner, p.Variable), 0, a.m.Variables[p.Variable].Size, a.value(fr, o))
	default:
		a.update(&inner.registers[p.Register], a.value(fr, o))
	}
}

func (a *analysis) arguments(fr *frame, in *ptx.Instruction, inner *frame) {
	given := fr.f.Elements(in.Operands[2])
	for i, p := range inner.f.Params {
		if i < len(given) {
			a.pass(fr, given[i], inner, p)
		}
	}
	if len(given) > len(inner.f.Params) {
		a.undecide(fr, in, "a function is called with more arguments than it declares")
	}
}

// results hands back what a callee returns, or a value that stands for it.
func (a *analysis) results(fr *frame, in *ptx.Instruction, inner *frame, v value) {
	for i, o := range fr.f.Elements(in.Operands[0]) {
		memory := o.Kind == ptx.VariableKind && a.m.Variables[o.Extra].Space == ptx.Param
		if inner == nil || i >= len(inner.f.Results) {
			if memory {
				a.storeAnywhere(a.region(fr, ptx.VariableID(o.Extra)), v)
			} else {
				a.set(fr, o, v)
			}
			continue
		}
		p := inner.f.Results[i]
		switch {
		case memory && p.Variable != ptx.NoVariable:
			a.copyRegion(a.region(fr, ptx.VariableID(o.Extra)), a.region(inner, p.Variable))
		case memory:
			a.store(a.region(fr, ptx.VariableID(o.Extra)), 0, a.m.Variables[o.Extra].Size, inner.registers[p.Register])
		case p.Variable != ptx.NoVariable:
			a.set(fr, o, a.load(a.region(inner, p.Variable), true, 0, a.m.Variables[p.Variable].Size))
		default:
			a.set(fr, o, inner.registers[p.Register])
		}
	}
}

// external visits a call of a function that the module declares and does not define.
func (a *analysis) external(fr *frame, at int, in *ptx.Instruction, name string) {
	result := number(fromCall)
	switch {
	case name == "vprintf":
		a.printed(fr, in)
	case name == "__assertfail" || name == "free":
	case name == "malloc":
		b, ok := fr.allocas[at]
		if !ok {
			b = a.regionBase[a.newRegion(ptx.NoVariable, false)]
			fr.allocas[at] = b
		}
		result = address(b, 0)
	case strings.HasPrefix(name, "cudaLaunchDevice") || strings.HasPrefix(name, "cudaGetParameterBuffer") || strings.HasPrefix(name, "cudaCGLaunch"):
		a.undecide(fr, in, "the kernel launches another one")
	default:
		a.undecide(fr, in, "function "+name+" is not in the module")
	}
	a.results(fr, in, nil, result)
}

// printed looks at what printf is given: a pointer that is printed may be read as a text.
func (a *analysis) printed(fr *frame, in *ptx.Instruction) {
	if !a.judging {
		return
	}
	for _, o := range fr.f.Elements(in.Operands[2]) {
		v := a.value(fr, o)
		if o.Kind == ptx.VariableKind && a.m.Variables[o.Extra].Space == ptx.Param {
			v = a.load(a.region(fr, ptx.VariableID(o.Extra)), true, 0, a.cellSize)
		}
		for _, t := range v.terms {
			b := a.bases[t.base]
			if b.kind != regionBase {
				a.mark(fr, in, t.base, true, false)
				continue
			}
			for _, c := range a.regions[b.index].cells {
				for _, t := range c.value.terms {
					a.undecideBase(fr, in, t.base, "it is given to printf, which may read it as a text")
				}
			}
		}
	}
}
