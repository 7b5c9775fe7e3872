// PTX of a map program: blocks go through the elements in turns, in each of which a thread has four, so that four loads of each input are in flight.
// For few elements there is a short form, in which a thread has one.

package maps

import (
	"fmt"
	"math"
	"strings"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/kernels/internal/describe"
)

const (
	mapUnroll = 4
	mapTurn   = mapUnroll * describe.BlockSize // elements of a block in a turn
)

// mapWriter writes one kernel. Registers %v<instruction>_<element> hold values, %c<instruction> constants and scalars.
type mapWriter struct {
	*mapProgram
	strings.Builder // instructions
	registers       strings.Builder
	float           string // "f32" or "f64"
	temps           int
}

func (p *mapProgram) ptx(entry string, turn int64) string {
	w := &mapWriter{mapProgram: p, float: "f32"}
	if p.double {
		w.float = "f64"
	}
	buffers := 1 + len(p.in)
	var head strings.Builder
	fmt.Fprintf(&head, ".visible .entry %s(\n\t.param .u64 p0", entry)
	for i := range buffers {
		fmt.Fprintf(&head, ",\n\t.param .u64 p%d", i+1)
	}
	for i, t := range p.scalars {
		fmt.Fprintf(&head, ",\n\t.param .%s p%d", scalarKind(t), 1+buffers+i)
	}
	head.WriteString("\n)\n{\n\t.reg .pred %more, %whole;\n\t.reg .b32 %block, %thread, %blocks;\n\t.reg .b64 %n, %i, %step, %j;\n")
	for i := range buffers {
		fmt.Fprintf(&w.registers, "\t.reg .b64 %%base%d, %%at%d;\n", i, i)
	}
	w.line("ld.param.u64 %%n, [p0]")
	for i := range buffers {
		w.line("ld.param.u64 %%base%d, [p%d]", i, i+1)
		w.line("cvta.to.global.u64 %%base%d, %%base%d", i, i)
	}
	for i, c := range p.code {
		switch c.op {
		case mapConstant:
			w.declare(c, fmt.Sprintf("%%c%d", i))
			if c.kind == mapFloat {
				w.line("mov.%s %%c%d, %s", w.float, i, w.literal(c.value))
			} else {
				w.line("mov.b64 %%c%d, %d", i, c.whole)
			}
		case mapScalar:
			w.declare(c, fmt.Sprintf("%%c%d", i))
			from, to := scalarKind(p.scalars[c.a]), w.float
			if c.kind != mapFloat {
				to = from
			}
			if from == to {
				w.line("ld.param.%s %%c%d, [p%d]", from, i, 1+buffers+int(c.a))
			} else {
				t := w.temp(from)
				w.line("ld.param.%s %s, [p%d]", from, t, 1+buffers+int(c.a))
				w.line("cvt.rn.%s.%s %%c%d, %s", w.float, from, i, t)
			}
		case mapSingle:
			w.declare(c, fmt.Sprintf("%%c%d", i))
			w.load(p.in[c.a], c.kind, fmt.Sprintf("%%c%d", i), fmt.Sprintf("%%base%d", c.a+1))
		default:
			for u := range mapUnroll {
				w.declare(c, fmt.Sprintf("%%v%d_%d", i, u))
			}
		}
	}
	w.line("mov.u32 %%block, %%ctaid.x")
	w.line("mov.u32 %%thread, %%tid.x")
	w.line("mov.u32 %%blocks, %%nctaid.x")
	w.line("mul.wide.u32 %%i, %%block, %d", turn)
	w.line("cvt.u64.u32 %%j, %%thread")
	w.line("add.s64 %%i, %%i, %%j")
	w.line("mul.wide.u32 %%step, %%blocks, %d", turn)
	short := turn == describe.BlockSize
	if !short {
		w.wholeTurns()
	}
	w.singleTurns(short)
	w.WriteString("done:\n\tret;\n}\n")
	return head.String() + w.registers.String() + w.String()
}

// wholeTurns goes through the turns in which the thread has all its elements.
func (w *mapWriter) wholeTurns() {
	w.WriteString("whole_turn:\n")
	w.line("add.s64 %%j, %%i, %d", mapTurn-describe.BlockSize)
	w.line("setp.ge.s64 %%whole, %%j, %%n")
	w.line("@%%whole bra one_turn")
	w.turn(mapUnroll)
	w.line("add.s64 %%i, %%i, %%step")
	w.line("bra whole_turn")
}

// singleTurns goes through the elements that are left, one by one: those of the block, or with step those of all turns.
func (w *mapWriter) singleTurns(step bool) {
	w.WriteString("one_turn:\n")
	w.line("setp.ge.s64 %%more, %%i, %%n")
	w.line("@%%more bra done")
	w.turn(1)
	if step {
		w.line("add.s64 %%i, %%i, %%step")
	} else {
		w.line("add.s64 %%i, %%i, %d", describe.BlockSize)
	}
	w.line("bra one_turn")
}

func (w *mapWriter) line(format string, a ...any) { fmt.Fprintf(w, "\t"+format+";\n", a...) }

func (w *mapWriter) buffer(i int) dag.DType {
	if i == 0 {
		return w.out
	}
	return w.in[i-1]
}

// declare declares the register of an instruction's value.
func (w *mapWriter) declare(c mapInstr, name string) {
	kind := "b64"
	if c.kind == mapFloat {
		kind = w.float
	}
	fmt.Fprintf(&w.registers, "\t.reg .%s %s;\n", kind, name)
}

// scalarKind is the PTX type of a number that is given to a map.
func scalarKind(t dag.DType) string {
	if t == dag.F64 {
		return "f64"
	}
	return "s64"
}

// temp declares a register.
func (w *mapWriter) temp(kind string) string {
	w.temps++
	fmt.Fprintf(&w.registers, "\t.reg .%s %%t%d;\n", kind, w.temps)
	return fmt.Sprintf("%%t%d", w.temps)
}

func (w *mapWriter) literal(v float64) string {
	if w.double {
		return fmt.Sprintf("0d%016X", math.Float64bits(v))
	}
	return fmt.Sprintf("0f%08X", math.Float32bits(float32(v)))
}

// value is the register of an instruction's value for element u.
func (w *mapWriter) value(i int32, u int) string {
	if w.code[i].op < mapInput {
		return fmt.Sprintf("%%c%d", i)
	}
	return fmt.Sprintf("%%v%d_%d", i, u)
}

// turn computes count elements, which are a block's threads apart: all loads, then all arithmetic, then all stores.
func (w *mapWriter) turn(count int) {
	for b := range 1 + len(w.in) {
		if b > 0 && w.single[b-1] {
			continue
		}
		w.line("mad.lo.s64 %%at%d, %%i, %d, %%base%d", b, w.buffer(b).Size(), b)
	}
	for i, c := range w.code {
		if c.op == mapInput {
			for u := range count {
				w.load(w.in[c.a], c.kind, w.value(int32(i), u), w.place(int(c.a)+1, u))
			}
		}
	}
	for u := range count {
		for i, c := range w.code {
			if c.op > mapInput {
				w.instruction(c, w.value(int32(i), u), u)
			}
		}
	}
	for u := range count {
		w.store(w.code[w.result].kind, w.value(w.result, u), w.place(0, u))
	}
}

// place is the address of a thread's element u of a turn.
func (w *mapWriter) place(buffer, u int) string {
	return fmt.Sprintf("%%at%d+%d", buffer, int64(u)*describe.BlockSize*w.buffer(buffer).Size())
}

// load reads an element and converts it to the type that is computed in.
func (w *mapWriter) load(t dag.DType, as mapKind, to, at string) {
	if as != mapFloat { // extended to the 64 bits of the register
		kind, _ := integerKind(t)
		w.line("ld.global.%s %s, [%s]", kind, to, at)
		return
	}
	if t.String() == w.float {
		w.line("ld.global.%s %s, [%s]", w.float, to, at)
		return
	}
	switch t {
	case dag.F32:
		r := w.temp("f32")
		w.line("ld.global.f32 %s, [%s]", r, at)
		w.line("cvt.f64.f32 %s, %s", to, r)
	case dag.F16, dag.BF16:
		r, f := w.temp("b16"), to
		if w.double {
			f = w.temp("f32")
		}
		w.line("ld.global.b16 %s, [%s]", r, at)
		if t == dag.F16 {
			w.line("cvt.f32.f16 %s, %s", f, r)
		} else {
			wide := w.temp("b32")
			w.line("cvt.u32.u16 %s, %s", wide, r)
			w.line("shl.b32 %s, %s, 16", wide, wide)
			w.line("mov.b32 %s, %s", f, wide)
		}
		if w.double {
			w.line("cvt.f64.f32 %s, %s", to, f)
		}
	default:
		kind, register := integerKind(t)
		r := w.temp(register)
		w.line("ld.global.%s %s, [%s]", kind, r, at)
		from := kind
		if t.Size() == 1 { // loaded into a 16-bit register, extended
			from = kind[:1] + "16"
		}
		w.line("cvt.rn.%s.%s %s, %s", w.float, from, to, r)
	}
}

// integerKind returns a type's name in PTX and the kind of register that holds it.
func integerKind(t dag.DType) (kind, register string) {
	if t == dag.Bool {
		return "u8", "b16"
	}
	kind = "u"
	if t.Signed() {
		kind = "s"
	}
	return fmt.Sprintf("%s%d", kind, t.Size()*8), fmt.Sprintf("b%d", max(t.Size(), 2)*8)
}

// store converts a value to the type of the output and writes it.
func (w *mapWriter) store(as mapKind, from, at string) {
	if as != mapFloat {
		kind, _ := integerKind(w.out)
		if w.out == dag.Bool {
			p, r := w.temp("pred"), w.temp("b32")
			w.line("setp.ne.s64 %s, %s, 0", p, from)
			w.line("selp.u32 %s, 1, 0, %s", r, p)
			from = r
		}
		w.line("st.global.%s [%s], %s", kind, at, from) // the low bits
		return
	}
	if w.out.String() == w.float {
		w.line("st.global.%s [%s], %s", w.float, at, from)
		return
	}
	if w.out.Float() {
		if w.double {
			r := w.temp("f32")
			w.line("cvt.rn.f32.f64 %s, %s", r, from)
			from = r
		}
		switch w.out {
		case dag.F32:
			w.line("st.global.f32 [%s], %s", at, from)
			return
		case dag.F16:
			r := w.temp("b16")
			w.line("cvt.rn.f16.f32 %s, %s", r, from)
			w.line("st.global.b16 [%s], %s", at, r)
			return
		}
		b, even, r, quiet, nan, p := w.temp("b32"), w.temp("b32"), w.temp("b32"), w.temp("b32"), w.temp("b32"), w.temp("pred")
		w.line("mov.b32 %s, %s", b, from)
		w.line("shr.u32 %s, %s, 16", even, b)
		w.line("or.b32 %s, %s, 64", quiet, even)
		w.line("and.b32 %s, %s, 1", even, even)
		w.line("add.u32 %s, %s, %s", r, b, even)
		w.line("add.u32 %s, %s, 32767", r, r)
		w.line("shr.u32 %s, %s, 16", r, r)
		w.line("and.b32 %s, %s, 2147483647", nan, b)
		w.line("setp.gt.u32 %s, %s, 2139095040", p, nan)
		w.line("selp.b32 %s, %s, %s, %s", r, quiet, r, p)
		w.line("st.global.u16 [%s], %s", at, r)
		return
	}
	if w.out == dag.Bool {
		p, r := w.temp("pred"), w.temp("b32")
		w.line("setp.neu.%s %s, %s, %s", w.float, p, from, w.literal(0))
		w.line("selp.u32 %s, 1, 0, %s", r, p)
		w.line("st.global.u8 [%s], %s", at, r)
		return
	}
	// NaN becomes 0; values outside the type's range are clamped to it.
	kind, _ := integerKind(w.out)
	low, high := uint64(0), uint64(1)<<(w.out.Size()*8-1)<<1-1
	if w.out.Signed() {
		low, high = uint64(int64(-1)<<(w.out.Size()*8-1)), 1<<(w.out.Size()*8-1)-1
	}
	if !w.double { // the type has at most 16 bits, and a conversion to 32 does the same
		r := w.temp("b32")
		w.line("cvt.rzi.s32.f32 %s, %s", r, from)
		w.line("max.s32 %s, %s, %d", r, r, int64(low))
		w.line("min.s32 %s, %s, %d", r, r, int64(high))
		w.line("st.global.%s [%s], %s", kind, at, r)
		return
	}
	wide := "s64"
	if w.out == dag.U64 {
		wide = "u64"
	}
	lo, hi := integerRange(w.out)
	r, p := w.temp("b64"), w.temp("pred")
	w.line("cvt.rzi.%s.f64 %s, %s", wide, r, from)
	w.line("setp.ge.f64 %s, %s, 0d%016X", p, from, math.Float64bits(hi))
	w.line("selp.b64 %s, %d, %s, %s", r, int64(high), r, p)
	w.line("setp.lt.f64 %s, %s, 0d%016X", p, from, math.Float64bits(lo))
	w.line("selp.b64 %s, %d, %s, %s", r, int64(low), r, p)
	w.line("setp.nan.f64 %s, %s, %s", p, from, from)
	w.line("selp.b64 %s, 0, %s, %s", r, r, p)
	w.line("st.global.%s [%s], %s", kind, at, r)
}

func (w *mapWriter) instruction(c mapInstr, to string, u int) {
	a := w.value(c.a, u)
	b := w.value(c.b, u)
	f := w.float
	switch c.op {
	case mapLess, mapLessEq, mapEqual, mapNotEqual:
		w.truth(c, to, w.compare(c.op, c.a, c.b, u))
		return
	case mapAnd, mapOr:
		p, q := w.isSet(c.a, u), w.isSet(c.b, u)
		w.line("%s.pred %s, %s, %s", [...]string{"and", "or"}[c.op-mapAnd], p, p, q)
		w.truth(c, to, p)
		return
	case mapNot:
		p := w.temp("pred")
		if w.code[c.a].kind == mapFloat {
			w.line("setp.eq.%s %s, %s, %s", f, p, a, w.literal(0))
		} else {
			w.line("setp.eq.s64 %s, %s, 0", p, a)
		}
		w.truth(c, to, p)
		return
	}
	if c.kind != mapFloat {
		w.whole(c, to, u)
		return
	}
	switch c.op {
	case mapAdd, mapSub, mapMul, mapDiv:
		w.line("%s.rn.%s %s, %s, %s", [...]string{"add", "sub", "mul", "div"}[c.op-mapAdd], f, to, a, b)
	case mapMin:
		w.line("selp.%s %s, %s, %s, %s", f, to, b, a, w.compare(mapLess, c.b, c.a, u))
	case mapMax:
		w.line("selp.%s %s, %s, %s, %s", f, to, b, a, w.compare(mapLess, c.a, c.b, u))
	case mapSelect:
		w.line("selp.%s %s, %s, %s, %s", f, to, b, w.value(c.c, u), w.isSet(c.a, u))
	case mapNeg:
		w.line("neg.%s %s, %s", f, to, a)
	case mapAbs:
		w.line("abs.%s %s, %s", f, to, a)
	case mapFloor:
		w.line("cvt.rmi.%s.%s %s, %s", f, f, to, a)
	case mapCeil:
		w.line("cvt.rpi.%s.%s %s, %s", f, f, to, a)
	case mapConvert:
		w.line("cvt.rn.%s.%s %s, %s", f, w.code[c.a].kind, to, a)
	case mapSqrt:
		w.line("sqrt.rn.%s %s, %s", f, to, a)
	case mapPow:
		w.call("pow", to, a, b)
	default:
		w.call([...]string{"exp", "log", "log2", "sin", "cos", "tanh"}[c.op-mapExp], to, a)
	}
}

// compare returns a predicate. Of a signed and an unsigned number, the sign decides if there is one.
func (w *mapWriter) compare(op mapOp, a, b int32, u int) string {
	p := w.temp("pred")
	x, y, of, and := w.code[a].kind, w.code[b].kind, w.float, false
	name := [...]string{"lt", "le", "eq", "ne"}[op-mapLess]
	switch {
	case x == mapFloat && op == mapNotEqual:
		name = "neu"
	case x != mapFloat && x == y:
		of = x.String()
	case x != mapFloat:
		of = mapUnsigned.String()
	}
	w.line("setp.%s.%s %s, %s, %s", name, of, p, w.value(a, u), w.value(b, u))
	if x == y {
		return p
	}
	signed := a
	if and = op == mapEqual; y == mapSigned {
		signed, and = b, and || op != mapNotEqual
	}
	q := w.temp("pred")
	if and {
		w.line("setp.ge.s64 %s, %s, 0", q, w.value(signed, u))
		w.line("and.pred %s, %s, %s", p, p, q)
	} else {
		w.line("setp.lt.s64 %s, %s, 0", q, w.value(signed, u))
		w.line("or.pred %s, %s, %s", p, p, q)
	}
	return p
}

// isSet returns a predicate that says whether a value is not 0.
func (w *mapWriter) isSet(i int32, u int) string {
	p := w.temp("pred")
	if w.code[i].kind == mapFloat {
		w.line("setp.neu.%s %s, %s, %s", w.float, p, w.value(i, u), w.literal(0))
	} else {
		w.line("setp.ne.s64 %s, %s, 0", p, w.value(i, u))
	}
	return p
}

// whole writes an instruction whose result is a whole number.
func (w *mapWriter) whole(c mapInstr, to string, u int) {
	a, b := w.value(c.a, u), w.value(c.b, u)
	switch c.op {
	case mapAdd, mapSub, mapMul:
		w.line("%s.s64 %s, %s, %s", [...]string{"add", "sub", "mul.lo"}[c.op-mapAdd], to, a, b)
	case mapMin:
		w.line("selp.b64 %s, %s, %s, %s", to, b, a, w.compare(mapLess, c.b, c.a, u))
	case mapMax:
		w.line("selp.b64 %s, %s, %s, %s", to, b, a, w.compare(mapLess, c.a, c.b, u))
	case mapSelect:
		w.line("selp.b64 %s, %s, %s, %s", to, b, w.value(c.c, u), w.isSet(c.a, u))
	case mapNeg:
		w.line("sub.s64 %s, 0, %s", to, a)
	case mapAbs:
		if w.line("mov.b64 %s, %s", to, a); c.kind == mapSigned {
			t := w.temp("b64")
			w.line("sub.s64 %s, 0, %s", t, a)
			w.line("max.s64 %s, %s, %s", to, a, t)
		}
	default:
		w.quotient(c, to, a, b)
	}
}

// quotient writes a quotient or remainder. What a processor makes of dividing by 0, or the smallest number by -1, is not defined: it divides by 1 instead.
func (w *mapWriter) quotient(c mapInstr, to, a, b string) {
	by, zero, negated := b, "", ""
	if d := w.code[c.b]; d.op != mapConstant || d.whole == 0 || d.whole == -1 {
		by, zero = w.temp("b64"), w.temp("pred")
		w.line("setp.eq.s64 %s, %s, 0", zero, b)
		w.line("selp.b64 %s, 1, %s, %s", by, b, zero)
		if c.kind == mapSigned {
			negated = w.temp("pred")
			w.line("setp.eq.s64 %s, %s, -1", negated, b)
			w.line("selp.b64 %s, 1, %s, %s", by, by, negated)
		}
	}
	q, left := w.temp("b64"), w.temp("b64")
	w.line("div.%s %s, %s, %s", c.kind, q, a, by)
	w.line("mul.lo.s64 %s, %s, %s", left, q, by)
	w.line("sub.s64 %s, %s, %s", left, a, left)
	// A quotient is rounded toward zero, and the remainder has the sign of a.
	if apart, more := w.temp("pred"), w.temp("b64"); c.op != mapQuotient && (c.kind == mapSigned || c.op == mapCeiled) {
		w.line("setp.ne.s64 %s, %s, 0", apart, left)
		if c.kind == mapSigned {
			signs, differ := w.temp("b64"), w.temp("pred")
			w.line("xor.b64 %s, %s, %s", signs, a, by)
			w.line("setp.%s.s64 %s, %s, 0", map[bool]string{true: "ge", false: "lt"}[c.op == mapCeiled], differ, signs)
			w.line("and.pred %s, %s, %s", apart, apart, differ)
		}
		amount := map[mapOp]string{mapFloored: "-1", mapCeiled: "1", mapRemainder: by}[c.op]
		w.line("selp.b64 %s, %s, 0, %s", more, amount, apart)
		if c.op == mapRemainder {
			w.line("add.s64 %s, %s, %s", left, left, more)
		} else {
			w.line("add.s64 %s, %s, %s", q, q, more)
		}
	}
	if c.op == mapRemainder {
		w.line("mov.b64 %s, %s", to, left)
		return
	}
	if negated != "" {
		w.line("sub.s64 %s, 0, %s", left, q)
		w.line("selp.b64 %s, %s, %s, %s", q, left, q, negated)
	}
	if zero != "" {
		w.line("selp.b64 %s, 0, %s, %s", q, q, zero)
	}
	w.line("mov.b64 %s, %s", to, q)
}

func (w *mapWriter) truth(c mapInstr, to, p string) {
	if c.kind == mapFloat {
		w.line("selp.%s %s, %s, %s, %s", w.float, to, w.literal(1), w.literal(0), p)
	} else {
		w.line("selp.b64 %s, 1, 0, %s", to, p)
	}
}

// call calls a function of functions.cu.
func (w *mapWriter) call(name, to string, args ...string) {
	bits := map[bool]string{false: "b32", true: "b64"}[w.double]
	w.WriteString("\t{\n")
	var passed []string
	for i, a := range args {
		w.line(".param .%s arg%d", bits, i)
		w.line("st.param.%s [arg%d+0], %s", w.float, i, a)
		passed = append(passed, fmt.Sprintf("arg%d", i))
	}
	w.line(".param .%s result", bits)
	w.line("call.uni (result), dagrun_function_%s_%s, (%s)", name, w.float, strings.Join(passed, ", "))
	w.line("ld.param.%s %s, [result+0]", w.float, to)
	w.WriteString("\t}\n")
}
