// Stamps: the kernel that decides about a loop or branch also writes when it ran, where a trace asks for that. Whether it does is a parameter, so that
// a driver compiles one text for both.

package conditions

// stamp writes a stamp of %what if stamps are asked for and there is room for it.
func (w *writer) stamp() {
	w.WriteString("stamp:\n")
	w.line("ld.param.s64 %%room, [p%d]", ParameterRoom)
	w.line("setp.le.s64 %%more, %%room, 0")
	w.line("@%%more bra stamped")
	w.count("ld", "stamps", CountStamps)
	w.line("add.s64 %%at, %%stamps, 1")
	w.count("st", "at", CountStamps)
	w.line("setp.ge.s64 %%more, %%stamps, %%room")
	w.line("@%%more bra stamped")
	w.line("mul.lo.s64 %%at, %%stamps, %d", 8*StampWords)
	w.line("ld.param.u64 %%stamps, [p%d]", ParameterStamps)
	w.line("cvta.to.global.u64 %%stamps, %%stamps")
	w.line("add.s64 %%stamps, %%stamps, %%at")
	w.line("mov.u64 %%at, %%globaltimer")
	w.line("st.global.b64 [%%stamps], %%at")
	w.line("st.global.b64 [%%stamps+8], %%what")
	w.WriteString("stamped:\n")
}
