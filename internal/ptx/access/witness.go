// Witnesses: one thread of a launch that certainly leaves an argument's bytes. Its way through the code is followed with the numbers
// that are known; where something decides that is not, such as what memory holds, nothing is claimed.

package access

import "github.com/dagrun/dagrun/internal/ptx"

// Launch is what is known about a launch.
type Launch struct {
	Grid, Block [3]uint32
	Scalars     map[int]uint64 // by parameter: the bits of the numbers that are passed
	Starts      map[int]int64  // by parameter: how many bytes after the first of its argument a pointer points; 0 is left out
}

// Witness is an access outside an argument.
type Witness struct {
	Param         int
	Write         bool
	Lo, Hi        int64 // bytes of the argument
	Thread, Block [3]uint32
	At            Place
}

// mostSteps is how many instructions of one thread are followed.
const mostSteps = 1 << 12

// Escape follows a few threads of a launch: those at its corners, and those whose number is one of the scalars or the length of an
// argument, where guards are wrong by one. It returns the first that accesses bytes outside an argument. Bytes has the size of what
// each pointer points to, by parameter.
func Escape(m *ptx.Module, entry ptx.FunctionID, launch Launch, bytes map[int]int64) (Witness, bool) {
	if launch.Grid[0] == 0 || launch.Block[0] == 0 {
		return Witness{}, false
	}
	for _, at := range candidates(m, entry, launch, bytes) {
		w := &walk{m: m, f: &m.Functions[entry], launch: launch, bytes: bytes, thread: at.thread, block: at.block}
		w.registers = make([]datum, len(w.f.Registers))
		if w.run() {
			return w.found, true
		}
	}
	return Witness{}, false
}

type candidate struct{ block, thread [3]uint32 }

// candidates are the threads to follow.
func candidates(m *ptx.Module, entry ptx.FunctionID, launch Launch, bytes map[int]int64) []candidate {
	var list []candidate
	corners := func(size [3]uint32) [][3]uint32 {
		list := [][3]uint32{{}}
		for axis, n := range size {
			if n > 1 {
				for _, at := range list {
					at[axis] = n - 1
					list = append(list, at)
				}
			}
		}
		return list
	}
	for _, block := range corners(launch.Grid) {
		for _, thread := range corners(launch.Block) {
			list = append(list, candidate{block, thread})
		}
	}
	numbered := func(n int64) {
		if block := n / int64(launch.Block[0]); n >= 0 && block < int64(launch.Grid[0]) {
			list = append(list, candidate{[3]uint32{uint32(block)}, [3]uint32{uint32(n % int64(launch.Block[0]))}})
		}
	}
	for i := range m.Functions[entry].Params {
		if v, ok := launch.Scalars[i]; ok {
			for _, n := range []int64{int64(v), int64(v) - 1} {
				numbered(n)
			}
		}
		for _, size := range []int64{4, 8, 2, 1, 16} {
			if b, ok := bytes[i]; ok {
				numbered(b / size)
			}
		}
	}
	return list
}

// datum is what a register holds, as far as it is known.
type datum struct {
	known bool
	base  int    // 1 + the parameter that it points to; 0: a number
	bits  uint64 // the number, or the distance from what it points to
}

type walk struct {
	m             *ptx.Module
	f             *ptx.Function
	launch        Launch
	bytes         map[int]int64
	thread, block [3]uint32
	registers     []datum
	found         Witness
	lost          bool      // what the thread does next depends on what is not known
	cover         *coverage // notes what is written; nil: nobody asks
}

// run follows the thread; true if it leaves an argument.
func (w *walk) run() bool {
	at := int32(0)
	for range mostSteps {
		if at < 0 || int(at) >= len(w.f.Code) {
			return false
		}
		if w.cover != nil {
			if w.cover.steps--; w.cover.steps < 0 {
				break
			}
		}
		in := &w.f.Code[at]
		at++
		if in.Guard != ptx.NoRegister {
			guard := w.registers[in.Guard]
			if !guard.known && in.Form.Op.Class() == ptx.Control {
				w.lost = true
				return false
			}
			if !guard.known {
				w.cover.perhaps(in)
				w.forget(in)
				continue
			}
			if (guard.bits != 0) == in.Negated {
				continue
			}
		}
		switch in.Form.Op {
		case ptx.OpBra:
			at = w.f.Labels[in.Operands[0].Index].At
		case ptx.OpRet, ptx.OpExit:
			return false
		case ptx.OpTrap, ptx.OpCall, ptx.OpBrx:
			w.lost = true
			return false
		case ptx.OpLd, ptx.OpLdu, ptx.OpSt, ptx.OpAtom, ptx.OpRed:
			if w.access(in) {
				return true
			}
		default:
			w.cover.perhaps(in)
			w.compute(in)
		}
	}
	w.lost = true
	return false
}

// forget makes what an instruction writes unknown.
func (w *walk) forget(in *ptx.Instruction) {
	for k, role := range in.Roles() {
		if role != ptx.Target {
			continue
		}
		o := in.Operands[k]
		for _, part := range append(w.f.Elements(o), o) {
			if r := part.Register(); r != ptx.NoRegister {
				w.registers[r] = datum{}
			}
		}
	}
}

// access looks at the address of a load or store.
func (w *walk) access(in *ptx.Instruction) bool {
	form := in.Form
	space := form.Space()
	if form.Op == ptx.OpLd && space == ptx.Param {
		v := w.parameter(in)
		w.forget(in)
		if o := in.Operands[0]; o.Kind == ptx.RegisterKind && o.Part == ptx.Whole {
			w.registers[o.Index] = v
		}
		return false
	}
	for k, role := range in.Roles() {
		if role != ptx.Reads && role != ptx.Writes && role != ptx.Updates || space != ptx.Generic && space != ptx.Global {
			continue
		}
		o := in.Operands[k]
		r := o.Register()
		var to datum
		if r != ptx.NoRegister && w.registers[r].known {
			to = w.registers[r]
		}
		w.cover.enter(in, role, o, to.base, to.bits)
		if o.Kind != ptx.Address || o.Variable() != ptx.NoVariable || r == ptx.NoRegister || o.Scaled || !w.registers[r].known || w.registers[r].base == 0 {
			continue
		}
		param := w.registers[r].base - 1
		lo := int64(w.registers[r].bits) + o.Value
		n := int64(form.Type().Size() * form.Vector)
		if size, ok := w.bytes[param]; ok && (lo < 0 || lo > size-n) {
			w.found = Witness{Param: param, Write: role != ptx.Reads, Lo: lo, Hi: lo + n, Thread: w.thread, Block: w.block, At: w.place(in)}
			return true
		}
	}
	w.forget(in)
	return false
}

func (w *walk) place(in *ptx.Instruction) Place {
	p := Place{Position: in.Position}
	if file, line, _, ok := w.m.Source(w.f, in); ok {
		p.File, p.Line = file, line
	}
	return p
}

// parameter is the value of a whole parameter.
func (w *walk) parameter(in *ptx.Instruction) datum {
	o := in.Operands[1]
	if o.Kind != ptx.Address || o.Register() != ptx.NoRegister || o.Value != 0 || in.Form.Type().Float() {
		return datum{}
	}
	for i, p := range w.f.Params {
		if p.Variable != o.Variable() || p.Variable == ptx.NoVariable || int64(in.Form.Type().Size()) != w.m.Variables[p.Variable].Size {
			continue
		}
		if _, pointer := w.bytes[i]; pointer {
			return datum{known: true, base: i + 1, bits: uint64(w.launch.Starts[i])}
		}
		if v, ok := w.launch.Scalars[i]; ok {
			return number64(cut(v, in.Form.Type().Bits()))
		}
	}
	return datum{}
}

func number64(v uint64) datum { return datum{known: true, bits: v} }

// cut keeps the low bits.
func cut(v uint64, bits int) uint64 { return v & (1<<bits - 1) }

// widened is a number of a type as one of 64 bits.
func widened(v uint64, bits int, signed bool) uint64 {
	v = cut(v, bits)
	if signed && bits < 64 {
		return uint64(int64(v<<(64-bits)) >> (64 - bits))
	}
	return v
}

// operand is the value of a source.
func (w *walk) operand(o ptx.Operand) datum {
	switch o.Kind {
	case ptx.Integer:
		return number64(uint64(o.Value))
	case ptx.RegisterKind:
		if o.Part != ptx.Whole || o.Value != 0 {
			return datum{}
		}
		v := w.registers[o.Index]
		if o.Negated && v.known {
			v.bits ^= 1
		}
		return v
	case ptx.SpecialKind:
		axis := int(o.Part) - int(ptx.X)
		if axis < 0 || axis > 2 {
			return datum{}
		}
		switch ptx.Special(o.Index) {
		case ptx.Tid:
			return number64(uint64(w.thread[axis]))
		case ptx.Ntid:
			return number64(uint64(max(w.launch.Block[axis], 1)))
		case ptx.Ctaid:
			return number64(uint64(w.block[axis]))
		case ptx.Nctaid:
			return number64(uint64(max(w.launch.Grid[axis], 1)))
		}
	}
	return datum{}
}

// compute executes an instruction that touches no memory.
func (w *walk) compute(in *ptx.Instruction) {
	v := w.result(in)
	w.forget(in)
	if !v.known {
		return
	}
	if o := in.Operands[0]; o.Kind == ptx.RegisterKind && o.Part == ptx.Whole {
		if v.base == 0 {
			v.bits = cut(v.bits, w.f.Registers[o.Index].Type.Bits())
		}
		w.registers[o.Index] = v
	}
}

func (w *walk) result(in *ptx.Instruction) datum {
	form := in.Form
	if len(in.Operands) < 2 || !form.Known {
		return datum{}
	}
	for _, t := range form.Types {
		if t.Float() {
			return datum{}
		}
	}
	t := form.LastType()
	bits, signed := t.Bits(), t.Signed()
	var v [3]datum
	for i := 1; i < len(in.Operands) && i <= 3; i++ {
		if v[i-1] = w.operand(in.Operands[i]); !v[i-1].known {
			return datum{}
		}
	}
	a, b, c := v[0], v[1], v[2]
	switch form.Op { // what pointers go through
	case ptx.OpMov, ptx.OpCvta:
		return a
	case ptx.OpAdd:
		if bits == 64 && len(form.Mods) == 0 && (a.base == 0 || b.base == 0) {
			return datum{known: true, base: a.base + b.base, bits: a.bits + b.bits}
		}
	case ptx.OpSub:
		if bits == 64 && len(form.Mods) == 0 && b.base == 0 {
			return datum{known: true, base: a.base, bits: a.bits - b.bits}
		}
	case ptx.OpSelp:
		if c.bits != 0 {
			return a
		}
		return b
	}
	if a.base != 0 || b.base != 0 || c.base != 0 {
		return datum{}
	}
	x, y := widened(a.bits, bits, signed), widened(b.bits, bits, signed)
	wide, low := form.Has(ptx.ModWide), form.Has(ptx.ModLo)
	switch form.Op {
	case ptx.OpAdd, ptx.OpSub, ptx.OpNeg, ptx.OpNot, ptx.OpAnd, ptx.OpOr, ptx.OpXor, ptx.OpShl, ptx.OpShr, ptx.OpMin, ptx.OpMax, ptx.OpDiv, ptx.OpRem:
		if len(form.Mods) > 0 {
			return datum{}
		}
	case ptx.OpCvt:
		if len(form.Mods) > 0 || len(form.Types) != 2 {
			return datum{}
		}
		return number64(cut(x, form.Type().Bits()))
	case ptx.OpMul, ptx.OpMad:
		if !wide && !low || len(form.Mods) > 1 {
			return datum{}
		}
		product := x * y
		if form.Op == ptx.OpMad {
			product += c.bits
		}
		if wide {
			return number64(cut(product, 2*bits))
		}
		return number64(cut(product, bits))
	case ptx.OpSetp:
		return w.compare(in, x, y, signed)
	default:
		return datum{}
	}
	switch form.Op {
	case ptx.OpAdd:
		return number64(x + y)
	case ptx.OpSub:
		return number64(x - y)
	case ptx.OpNeg:
		return number64(-x)
	case ptx.OpNot:
		return number64(^x)
	case ptx.OpAnd:
		return number64(x & y)
	case ptx.OpOr:
		return number64(x | y)
	case ptx.OpXor:
		return number64(x ^ y)
	case ptx.OpShl:
		return number64(x << b.bits)
	case ptx.OpShr:
		if signed {
			return number64(uint64(int64(x) >> b.bits))
		}
		return number64(x >> b.bits)
	case ptx.OpMin, ptx.OpMax:
		if less64(y, x, signed) == (form.Op == ptx.OpMin) {
			return number64(y)
		}
		return number64(x)
	}
	switch { // division
	case y == 0:
		return datum{}
	case signed && form.Op == ptx.OpDiv:
		return number64(uint64(int64(x) / int64(y)))
	case signed:
		return number64(uint64(int64(x) % int64(y)))
	case form.Op == ptx.OpDiv:
		return number64(x / y)
	}
	return number64(x % y)
}

func less64(a, b uint64, signed bool) bool {
	if signed {
		return int64(a) < int64(b)
	}
	return a < b
}

// compare is the result of setp without a further condition.
func (w *walk) compare(in *ptx.Instruction, x, y uint64, signed bool) datum {
	if len(in.Form.Mods) != 1 {
		return datum{}
	}
	var yes bool
	switch in.Form.Mods[0] {
	case ptx.ModEq:
		yes = x == y
	case ptx.ModNe:
		yes = x != y
	case ptx.ModLt, ptx.ModLo:
		yes = less64(x, y, signed)
	case ptx.ModLe, ptx.ModLs:
		yes = !less64(y, x, signed)
	case ptx.ModGt, ptx.ModHi:
		yes = less64(y, x, signed)
	case ptx.ModGe, ptx.ModHs:
		yes = !less64(x, y, signed)
	default:
		return datum{}
	}
	if yes {
		return number64(1)
	}
	return number64(0)
}
