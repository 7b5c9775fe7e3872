// The kernels that decide on the device about the loops and branches of a graph, as PTX.

// Package conditions writes the kernels that decide on the device whether the body of a loop or branch runs (again). In a CUDA graph, a
// loop or branch is a conditional node. A kernel in front of it, Begin, makes the first decision; for a loop, a kernel at the end of the
// body, Pass, decides after each pass.
package conditions

import (
	"fmt"
	"strings"
)

// setter is the function of the device runtime that gives a conditional its value. The driver links it without a library.
const setter = "cudaGraphSetConditional"

// Module returns PTX with the kernels of several tests.
func Module(all []Kernels) string {
	var text strings.Builder
	text.WriteString(".version 8.3\n.target sm_60\n.address_size 64\n\n")
	fmt.Fprintf(&text, ".extern .func %s(.param .b64 handle, .param .b32 value);\n", setter)
	for k := range all {
		text.WriteString("\n" + all[k].begin() + "\n" + all[k].pass())
	}
	return text.String()
}

// begin makes the first decision.
func (k *Kernels) begin() string {
	w := k.writer()
	w.line("ld.param.u64 %%handle, [p0]")
	w.counts()
	w.stamping()
	if k.Clear > 0 {
		w.line("mov.b64 %%zero, 0")
		w.line("mov.b64 %%at, %%counts")
		w.line("add.s64 %%end, %%counts, %d", 8*CountWords*k.Clear)
		w.WriteString("clear:\n")
		w.line("st.global.b64 [%%at], %%zero")
		w.line("add.s64 %%at, %%at, 8")
		w.line("setp.lt.u64 %%more, %%at, %%end")
		w.line("@%%more bra clear")
	}
	w.line("mov.b64 %%pass, 0")
	w.line("st.global.b64 [%%counts+%d], %%pass", 8*CountPass)
	w.increase(CountRuns, "1")
	switch {
	case k.Branch:
		holds := w.condition()
		w.increase(CountHeld, holds)
		w.line("cvt.u32.s64 %%value, %s", holds)
		w.line("sub.s64 %%end, %s, %d", holds, -StampOtherwise)
		w.stamp("%end")
	case k.While:
		w.line("cvt.u32.s64 %%value, %s", w.condition())
	default:
		w.line("mov.u32 %%value, %d", min(k.Times, 1))
	}
	if !k.Branch {
		w.line("mov.b64 %%end, %d", StampBegun)
		w.stamp("%end")
	}
	w.set()
	if k.Split {
		w.line("ld.param.u64 %%handle, [p1]")
		w.line("xor.b32 %%value, %%value, 1")
		w.set()
	}
	return w.entry(k.Begin)
}

// pass decides after a pass. The conditional keeps its value until the loop ends.
func (k *Kernels) pass() string {
	w := k.writer()
	w.counts()
	w.stamping()
	if k.Branch { // it only stamps
		w.line("mov.b64 %%pass, 1")
		w.stamp("%pass")
		return w.entry(k.Pass)
	}
	w.line("ld.global.s64 %%pass, [%%counts+%d]", 8*CountPass)
	w.line("add.s64 %%pass, %%pass, 1")
	w.line("st.global.s64 [%%counts+%d], %%pass", 8*CountPass)
	w.line("ld.param.s64 %%each, [p%d]", w.operands()+stampsEach)
	w.line("setp.gt.s64 %%more, %%pass, %%each")
	w.line("@%%more bra unstamped")
	w.stamp("%pass")
	w.WriteString("unstamped:\n")
	w.line("setp.ge.s64 %%last, %%pass, %d", k.Times)
	if k.Condition == nil {
		w.line("@!%%last bra done")
	} else {
		if k.Every > 1 {
			w.line("rem.s64 %%at, %%pass, %d", k.Every)
			w.line("setp.ne.s64 %%more, %%at, 0")
			w.line("not.pred %%early, %%last")
			w.line("and.pred %%more, %%more, %%early")
			w.line("@%%more bra done")
		}
		ends := 1
		if k.While {
			ends = 0
		}
		w.line("setp.eq.s64 %%stop, %s, %d", w.condition(), ends)
		w.line("or.pred %%more, %%stop, %%last")
		w.line("@!%%more bra done")
		w.line("selp.s64 %%end, 0, 1, %%stop")
		w.increase(CountMissed, "%end")
	}
	w.line("setp.le.s64 %%more, %%pass, %%each")
	w.line("@%%more bra stamped")
	w.stamp("%pass")
	w.WriteString("stamped:\n")
	w.increase(CountPasses, "%pass")
	w.line("ld.param.u64 %%handle, [p0]")
	w.line("mov.u32 %%value, 0")
	w.set()
	return w.entry(k.Pass)
}

func (k *Kernels) writer() *writer { return &writer{Kernels: k} }

func (w *writer) counts() {
	w.line("ld.param.u64 %%counts, [p2]")
	w.line("cvta.to.global.u64 %%counts, %%counts")
}

// increase adds to a count.
func (w *writer) increase(count int, by string) {
	t := w.temp("b64")
	w.line("ld.global.s64 %s, [%%counts+%d]", t, 8*count)
	w.line("add.s64 %s, %s, %s", t, t, by)
	w.line("st.global.s64 [%%counts+%d], %s", 8*count, t)
}

// set gives the conditional of %handle the value in %value.
func (w *writer) set() {
	w.WriteString("\t{\n\t.param .b64 handle;\n\t.param .b32 value;\n")
	w.line("st.param.b64 [handle], %%handle")
	w.line("st.param.b32 [value], %%value")
	w.line("call.uni %s, (handle, value)", setter)
	w.WriteString("\t}\n")
}

// entry puts the kernel together.
func (w *writer) entry(name string) string {
	var head strings.Builder
	fmt.Fprintf(&head, ".visible .entry %s(\n\t.param .u64 p0", name)
	for k := 1; k < w.parameters(); k++ {
		fmt.Fprintf(&head, ",\n\t.param .u64 p%d", k)
	}
	head.WriteString("\n)\n{\n\t.reg .pred %more, %early, %last, %stop, %stamping;\n\t.reg .b32 %value;\n\t.reg .b64 %handle, %counts, %pass, %zero, %at, %end, %room, %each;\n")
	return head.String() + w.registers.String() + w.String() + "done:\n\tret;\n}\n"
}
