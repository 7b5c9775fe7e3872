// What one instruction does to values, and what it accesses.

package access

import (
	"slices"
	"strings"

	"github.com/dagrun/dagrun/internal/ptx"
)

// set writes a value to a target.
func (a *analysis) set(fr *frame, o ptx.Operand, v value) {
	switch o.Kind {
	case ptx.RegisterKind:
		a.update(&fr.registers[o.Index], v)
	case ptx.Vector, ptx.Pair, ptx.List:
		for _, e := range fr.f.Elements(o) {
			a.set(fr, e, v)
		}
	}
}

// value returns what an operand holds.
func (a *analysis) value(fr *frame, o ptx.Operand) value {
	switch o.Kind {
	case ptx.RegisterKind:
		if o.Value != 0 {
			return add(fr.registers[o.Index], constant(o.Value))
		}
		return fr.registers[o.Index]
	case ptx.Integer:
		return constant(o.Value)
	case ptx.VariableKind:
		return address(a.variable(fr, ptx.VariableID(o.Extra)), o.Value)
	case ptx.FunctionKind:
		id := ptx.FunctionID(o.Index)
		b, ok := a.functions[id]
		if !ok {
			b = a.newBase(functionBase, o.Index)
			a.functions[id] = b
		}
		return address(b, 0)
	case ptx.Vector, ptx.Pair:
		var all []value
		for _, e := range fr.f.Elements(o) {
			all = append(all, a.value(fr, e))
		}
		return derive(all...)
	case ptx.Address:
		return a.address(fr, o)
	case ptx.TextureAddress:
		return a.value(fr, fr.f.Elements(o)[0])
	}
	return number(fromInteger)
}

// address returns the sum for an address operand.
func (a *analysis) address(fr *frame, o ptx.Operand) value {
	v := value{}
	if id := o.Variable(); id != ptx.NoVariable {
		v = address(a.variable(fr, id), o.Value)
	}
	if r := o.Register(); r != ptx.NoRegister {
		register := fr.registers[r]
		if o.Scaled {
			register = derive(register)
		}
		if v.set {
			return add(v, register)
		}
		if o.Value != 0 {
			return add(register, constant(o.Value))
		}
		return register
	}
	if !v.set {
		return constant(o.Value)
	}
	return v
}

// result returns the value that arithmetic writes to its target.
func (a *analysis) result(fr *frame, in *ptx.Instruction) value {
	form := in.Form
	sources := in.Operands[1:]
	source := func(i int) value {
		if i < len(sources) {
			return a.value(fr, sources[i])
		}
		return number(fromInteger)
	}
	moves := form.Op == ptx.OpMov || form.Op == ptx.OpSelp || form.Op == ptx.OpSlct
	narrow := false
	types := form.Types
	if form.Op == ptx.OpSlct {
		types = types[:min(1, len(types))] // the other is of the number whose sign selects
	}
	for _, t := range types {
		if t.Float() && !moves || t.Bits() <= 16 {
			return number(fromInteger)
		}
		if int64(t.Bits()) < a.cellSize*8 {
			narrow = true
		}
	}
	v := value{}
	switch form.Op {
	case ptx.OpMov:
		v = source(0)
		if k := in.Operands[0].Kind; k == ptx.Vector && form.Vector == 1 {
			v = derive(v)
		}
	case ptx.OpCvt, ptx.OpCvta, ptx.OpMapa, ptx.OpShfl:
		v = source(0)
	case ptx.OpAdd:
		v = add(source(0), source(1))
	case ptx.OpSub:
		v = add(source(0), negate(source(1)))
	case ptx.OpNeg:
		v = negate(source(0))
	case ptx.OpMul:
		v = multiply(source(0), source(1))
		if form.Has(ptx.ModHi) {
			v = derive(source(0), source(1))
		}
	case ptx.OpMad:
		v = multiply(source(0), source(1))
		if form.Has(ptx.ModHi) {
			v = derive(source(0), source(1))
		}
		narrow = narrow && !form.Has(ptx.ModWide) // the sum is as wide as the result
		v = add(v, source(2))
	case ptx.OpShl:
		v = source(1)
		if v.isConstant() && v.offset >= 0 && v.offset < 63 {
			v = multiply(source(0), constant(1<<v.offset))
		} else {
			v = derive(source(0), v)
		}
	case ptx.OpSelp, ptx.OpSlct, ptx.OpMin, ptx.OpMax:
		v = join(source(0), source(1))
	case ptx.OpOr:
		v = a.either(source(0), source(1))
	case ptx.OpAnd:
		v = masked(source(0), source(1))
	case ptx.OpBfe:
		v = derive(source(0), source(1))
		if length := source(2); length.isConstant() && length.offset >= 0 && length.offset <= 16 {
			v = number(fromInteger)
		}
	case ptx.OpRem:
		v = derive(source(0), source(1))
		if divisor := source(1); divisor.isConstant() && fewBits(divisor.offset) {
			v = number(fromInteger)
		}
	default:
		if form.Op.Class() == ptx.Fresh {
			return number(fromInteger)
		}
		all := make([]value, 0, 4)
		for i := range sources {
			all = append(all, source(i))
		}
		v = derive(all...)
	}
	if narrow {
		v = a.narrowed(v)
	}
	return v
}

// either is a bitwise or, with which compilers add small numbers to aligned addresses.
func (a *analysis) either(x, y value) value {
	if x.isConstant() {
		x, y = y, x
	}
	switch {
	case !x.set || !y.set:
		return value{}
	case y.isConstant() && y.offset >= 0 && y.offset < a.alignment(x):
		x.offset |= y.offset
		return x
	case len(x.terms) == 0 || len(y.terms) == 0:
		v := add(x, y)
		v.known, v.offset = false, 0
		return v
	}
	return derive(x, y)
}

// alignment returns the alignment of a value's base if its offset is known, or 0.
func (a *analysis) alignment(v value) int64 {
	if !v.known || v.number != 0 || v.null || len(v.terms) != 1 || v.terms[0].factors != plus {
		return 0
	}
	b := a.bases[v.terms[0].base]
	if b.kind != regionBase || a.regions[b.index].variable == ptx.NoVariable {
		return 0
	}
	return int64(a.m.Variables[a.regions[b.index].variable].Align)
}

// masked is a bitwise and. With a constant such as -16 it aligns an address downwards.
func masked(x, y value) value {
	if y.isConstant() && y.offset < 0 && y.offset >= -1<<20 && x.set {
		x.known, x.offset = false, 0
		return x
	}
	if y.isConstant() && fewBits(y.offset) || x.isConstant() && fewBits(x.offset) {
		return number(fromInteger)
	}
	return derive(x, y)
}

// fewBits reports whether a mask keeps so few bits of an address that the result is a number, such as its alignment or its bank.
func fewBits(mask int64) bool { return mask >= 0 && mask < 1<<16 }

// narrowed is a value of which only the low half is kept. That is never a complete address of global memory.
func (a *analysis) narrowed(v value) value {
	if len(v.terms) == 0 {
		return v
	}
	terms := make([]term, len(v.terms))
	for i, t := range v.terms {
		if a.bases[t.base].kind != regionBase && t.factors&^zero != 0 {
			t.factors = t.factors&zero | other
			v.number |= fromInteger
		}
		terms[i] = t
	}
	v.terms = terms
	return v
}

// memory applies an instruction that accesses memory, operand by operand according to their roles.
func (a *analysis) memory(fr *frame, at int, in *ptx.Instruction) {
	form := in.Form
	addresses := 0
	for i, role := range in.Roles() {
		o := in.Operands[i]
		switch role {
		case ptx.Target:
			if form.Op != ptx.OpLd && form.Op != ptx.OpLdu {
				a.set(fr, o, a.loaded(fr, at, in))
			}
		case ptx.Reads, ptx.Writes, ptx.Updates:
			if o.Kind != ptx.Address {
				continue
			}
			space := form.Space()
			if addresses < len(form.Spaces) {
				space = form.Spaces[addresses]
			}
			addresses++
			v := a.address(fr, o)
			switch form.Op {
			case ptx.OpLd, ptx.OpLdu:
				a.read(fr, in, v, space)
			case ptx.OpSt:
				a.write(fr, in, v, space)
			}
			a.touch(fr, in, v, space, role != ptx.Writes, role != ptx.Reads)
		case ptx.Follows:
			a.undecide(fr, in, "a tensor map leads to memory that the text does not show")
		case ptx.Fetches, ptx.Stores, ptx.Refines:
			a.handle(fr, in, o, role != ptx.Stores, role != ptx.Fetches)
		}
	}
	if a.judging && floatAtomic(form) {
		a.report.FloatAtomics = append(a.report.FloatAtomics, a.place(fr, in))
	}
}

// loaded returns what instructions other than loads read from memory.
func (a *analysis) loaded(fr *frame, at int, in *ptx.Instruction) value {
	switch in.Form.Op {
	case ptx.OpAlloca:
		b, ok := fr.allocas[at]
		if !ok {
			b = a.regionBase[a.newRegion(ptx.NoVariable, true)]
			fr.allocas[at] = b
		}
		return address(b, 0)
	case ptx.OpUnknown:
		return number(fromUnknown)
	}
	return number(fromMemory)
}

// floatAtomic reports whether the result depends on the order of threads: for sums of floats it does, for minima it does not.
func floatAtomic(form *ptx.Form) bool {
	switch form.Op {
	case ptx.OpAtom, ptx.OpRed, ptx.OpMultimem:
	case ptx.OpCp:
		if !strings.HasPrefix(form.Text, "cp.reduce") {
			return false
		}
	default:
		return false
	}
	return form.Has(ptx.ModAdd) && form.LastType().Float()
}

// elements returns the registers that a load or store uses.
func elements(fr *frame, o ptx.Operand) []ptx.Operand {
	if o.Kind == ptx.Vector {
		return fr.f.Elements(o)
	}
	return []ptx.Operand{o}
}

// follows reports whether the contents of a space are tracked.
func follows(space ptx.Space) bool {
	return space == ptx.Generic || space == ptx.Local || space == ptx.Param
}

// read applies a load: it sets the targets.
func (a *analysis) read(fr *frame, in *ptx.Instruction, v value, space ptx.Space) {
	if len(in.Operands) == 0 || !v.set {
		return
	}
	size := int64(in.Form.Type().Size())
	for i, target := range elements(fr, in.Operands[0]) {
		result := value{}
		if !follows(space) {
			result = number(fromMemory)
		} else {
			for _, t := range v.terms {
				switch b := a.bases[t.base]; {
				case t.factors == zero:
				case b.kind == regionBase:
					result = join(result, a.load(b.index, v.known && t.factors&^zero == plus, v.offset+int64(i)*size, size))
				default:
					result = join(result, number(fromMemory))
				}
			}
			if v.number != 0 || v.null {
				result = join(result, a.wild)
				if space != ptx.Generic {
					for r := range a.regions {
						if a.regions[r].entry < 0 && a.regions[r].followed {
							result = join(result, a.load(int32(r), false, 0, size))
						}
					}
				}
				result = join(result, number(fromMemory))
			}
		}
		a.set(fr, target, result)
	}
}

// write applies a store: it changes what memory holds.
func (a *analysis) write(fr *frame, in *ptx.Instruction, v value, space ptx.Space) {
	if len(in.Operands) < 2 || !follows(space) || !v.set {
		return
	}
	size := int64(in.Form.Type().Size())
	for i, source := range elements(fr, in.Operands[1]) {
		stored := a.value(fr, source)
		for _, t := range v.terms {
			if b := a.bases[t.base]; b.kind == regionBase && t.factors != zero {
				if a.regions[b.index].entry >= 0 {
					a.undecide(fr, in, "the kernel writes to its own parameters")
				}
				if v.known && t.factors&^zero == plus {
					a.store(b.index, v.offset+int64(i)*size, size, stored)
				} else {
					a.storeAnywhere(b.index, stored)
				}
			}
		}
		if (v.number != 0 || v.null) && space != ptx.Generic {
			a.update(&a.wild, stored)
			for r := range a.regions {
				a.storeAnywhere(int32(r), stored)
			}
		}
	}
}

// touch records an access. It is called in the last round.
func (a *analysis) touch(fr *frame, in *ptx.Instruction, v value, space ptx.Space, reads, writes bool) {
	if !a.judging || space == ptx.Shared || space == ptx.SharedCluster || space == ptx.Local || space == ptx.Param {
		return
	}
	exact := false
	for _, t := range v.terms {
		if t.factors&plus != 0 {
			exact = true
			a.mark(fr, in, t.base, reads, writes)
		}
		if t.factors&(minus|other) != 0 {
			a.undecideBase(fr, in, t.base, "an address is computed from it in a way that cannot be followed")
		}
	}
	switch {
	case v.number != 0:
		a.undecide(fr, in, v.number.reason())
	case !exact && !v.null:
		a.undecide(fr, in, "an address is put together from pieces")
	}
}

// handle records an access through a texture or surface handle.
func (a *analysis) handle(fr *frame, in *ptx.Instruction, o ptx.Operand, reads, writes bool) {
	if !a.judging {
		return
	}
	if o.Kind == ptx.TextureAddress {
		o = fr.f.Elements(o)[0]
	}
	v := a.value(fr, o)
	switch id := o.Variable(); {
	case id == ptx.NoVariable:
	case a.m.Variables[id].Space == ptx.Param:
		v = a.load(a.region(fr, id), true, 0, a.cellSize) // the parameter is the handle
	default:
		a.refer(id)
	}
	for _, t := range v.terms { // a compiler may put the address of a reference into a register
		if b := a.bases[t.base]; b.kind == symbolBase {
			a.refer(a.report.Symbols[b.index].Variable)
		}
	}
	a.fetched(fr, in, v, reads, writes)
	a.touch(fr, in, v, ptx.Global, reads, writes)
}

// refer notes the use of a texture, sampler or surface reference.
func (a *analysis) refer(id ptx.VariableID) {
	if v := &a.m.Variables[id]; !slices.Contains(a.report.References, v.Name) && (v.Type == ptx.TexRef || v.Type == ptx.SamplerRef || v.Type == ptx.SurfRef) {
		a.report.References = append(a.report.References, v.Name)
	}
}

// fetched notes how an instruction reads through a handle.
func (a *analysis) fetched(fr *frame, in *ptx.Instruction, v value, reads, writes bool) {
	for _, t := range v.terms {
		u := a.use(t.base)
		if u == nil || t.factors&plus == 0 {
			continue
		}
		f := &u.Fetch
		form := in.Form
		dimensions := map[ptx.Mod]int8{ptx.Mod1D: 1, ptx.Mod2D: 2,
			ptx.Mod3D: 3}[form.First(ptx.Mod1D, ptx.Mod2D, ptx.Mod3D, ptx.ModA1D, ptx.ModA2D, ptx.ModCube, ptx.ModAcube, ptx.Mod2DMS, ptx.ModA2DMS)]
		switch {
		case !f.Seen:
			f.Dimensions, f.At = dimensions, a.place(fr, in)
		case f.Dimensions != dimensions:
			f.Dimensions = 0
		}
		f.Seen = true
		f.Surface = f.Surface || writes || form.Op != ptx.OpTex && form.Op != ptx.OpTld4
		if form.Op == ptx.OpTex && len(form.Types) == 2 {
			floats := form.Types[0].Float()
			f.Floats, f.Integers = f.Floats || floats, f.Integers || !floats
			f.Coordinates = f.Coordinates || form.Types[1].Float()
		}
	}
}

func (o origins) reason() string {
	switch {
	case o&fromMemory != 0:
		return "an address is loaded from memory"
	case o&fromCall != 0:
		return "an address is the result of a function that is not in the module"
	case o&fromUnknown != 0:
		return "an address is the result of an instruction that is not known"
	}
	return "an address is made from a number"
}

func (a *analysis) use(id int32) *Use {
	switch b := a.bases[id]; b.kind {
	case fieldBase:
		return &a.report.Fields[b.index].Use
	case symbolBase:
		return &a.report.Symbols[b.index].Use
	}
	return nil
}

func (a *analysis) mark(fr *frame, in *ptx.Instruction, id int32, reads, writes bool) {
	u := a.use(id)
	if u == nil {
		return
	}
	if reads && !u.Reads {
		u.Reads, u.ReadAt = true, a.place(fr, in)
	}
	if writes && !u.Writes {
		u.Writes, u.WrittenAt = true, a.place(fr, in)
	}
}

func (a *analysis) undecideBase(fr *frame, in *ptx.Instruction, id int32, why string) {
	if u := a.use(id); a.judging && u != nil && !u.Undecided {
		u.Undecided, u.Why, u.UndecidedAt = true, why, a.place(fr, in)
	}
}

func (a *analysis) undecide(fr *frame, in *ptx.Instruction, why string) {
	if a.judging && a.report.Undecided == "" {
		a.report.Undecided, a.report.UndecidedAt = why, a.place(fr, in)
	}
}

// place returns the place of an instruction.
func (a *analysis) place(fr *frame, in *ptx.Instruction) Place {
	if in == nil {
		return Place{Position: fr.f.Position}
	}
	p := Place{Position: in.Position}
	if file, line, _, ok := a.m.Source(fr.f, in); ok {
		p.File, p.Line = file, line
	}
	return p
}
