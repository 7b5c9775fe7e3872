// Stamps: the kernels that decide about a loop or branch also write when they ran, where a trace asks for that. Whether it does is a parameter, so that
// a driver compiles one text for both.

package conditions

import "fmt"

// Where the parameters about stamps are, behind those of the operands.
const (
	stampsAt = iota
	stampsRoom
	stampsEach
	stampsParameters // how many there are
)

// stamping loads what the parameters say of stamps.
func (w *writer) stamping() {
	w.line("ld.param.s64 %%room, [p%d]", w.operands()+stampsRoom)
	w.line("setp.gt.s64 %%stamping, %%room, 0")
}

// stamp writes a stamp if stamps are asked for and there is room for it.
func (w *writer) stamp(what string) {
	count, at, base, now, full := w.temp("b64"), w.temp("b64"), w.temp("b64"), w.temp("b64"), w.temp("pred")
	w.stamps++
	w.line("@!%%stamping bra full%d", w.stamps)
	w.line("ld.global.s64 %s, [%%counts+%d]", count, 8*CountStamps)
	w.line("add.s64 %s, %s, 1", at, count)
	w.line("st.global.s64 [%%counts+%d], %s", 8*CountStamps, at)
	w.line("setp.ge.s64 %s, %s, %%room", full, count)
	w.line("@%s bra full%d", full, w.stamps)
	w.line("ld.param.u64 %s, [p%d]", base, w.operands()+stampsAt)
	w.line("cvta.to.global.u64 %s, %s", base, base)
	w.line("mul.lo.s64 %s, %s, %d", at, count, 8*StampWords)
	w.line("add.s64 %s, %s, %s", at, at, base)
	w.line("mov.u64 %s, %%globaltimer", now)
	w.line("st.global.b64 [%s], %s", at, now)
	w.line("st.global.b64 [%s+8], %s", at, what)
	fmt.Fprintf(w, "full%d:\n", w.stamps)
}

// operands is the number of parameters up to those of the operands.
func (k *Kernels) operands() int {
	n := Parameters
	if k.Condition != nil {
		n += len(k.Condition.Operands)
	}
	return n
}

// parameters is the number of parameters of the kernels.
func (k *Kernels) parameters() int { return k.operands() + stampsParameters }
