// Stamps: the kernels that decide about a loop or branch also write when they ran, where a trace asks for that.

package conditions

import "fmt"

// hasPass reports whether there is a kernel at the end of the bodies. That of a branch only stamps.
func (k *Kernels) hasPass() bool { return !k.Branch || k.Room > 0 }

// stamp writes a stamp if there is room for it.
func (w *writer) stamp(what string) {
	count, at, base, now, full := w.temp("b64"), w.temp("b64"), w.temp("b64"), w.temp("b64"), w.temp("pred")
	w.stamps++
	w.line("ld.global.s64 %s, [%%counts+%d]", count, 8*CountStamps)
	w.line("add.s64 %s, %s, 1", at, count)
	w.line("st.global.s64 [%%counts+%d], %s", 8*CountStamps, at)
	w.line("setp.ge.s64 %s, %s, %d", full, count, w.Room)
	w.line("@%s bra full%d", full, w.stamps)
	w.line("ld.param.u64 %s, [p%d]", base, w.parameters()-1)
	w.line("cvta.to.global.u64 %s, %s", base, base)
	w.line("mul.lo.s64 %s, %s, %d", at, count, 8*StampWords)
	w.line("add.s64 %s, %s, %s", at, at, base)
	w.line("mov.u64 %s, %%globaltimer", now)
	w.line("st.global.b64 [%s], %s", at, now)
	w.line("st.global.b64 [%s+8], %s", at, what)
	fmt.Fprintf(w, "full%d:\n", w.stamps)
}

// parameters is the number of parameters of the kernels.
func (k *Kernels) parameters() int {
	n := Parameters
	if k.Condition != nil {
		n += len(k.Condition.Operands)
	}
	if k.Room > 0 {
		n++
	}
	return n
}
