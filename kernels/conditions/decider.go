// The kernel that decides, as PTX. Which condition it tests, and how often, are parameters, so that its text has each condition once.

package conditions

import (
	"fmt"
	"slices"
	"strings"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/kernels/launch"
)

const (
	// Entry is the name of the kernel.
	Entry = "dagrun_decide"
	// setter is the function of the device runtime that gives a conditional its value. The driver links it without a library.
	setter = "cudaGraphSetConditional"
)

// Decider is the kernel for the conditions of a program. The zero value has none.
type Decider struct {
	texts    []string // the code of each condition, which leaves in %holds whether it holds
	operands int      // of the condition that has most
	skips    bool     // some test is not made after every pass
}

// Add adds what a test needs.
func (d *Decider) Add(t Test) {
	d.skips = d.skips || t.Every > 1
	if t.Condition == nil {
		return
	}
	if text := conditionText(t.Condition); !slices.Contains(d.texts, text) {
		d.texts = append(d.texts, text)
		d.operands = max(d.operands, len(t.Condition.Operands))
	}
}

// Number is the number of a condition that was added, from 1 on. Equal conditions on other operands have the same number. That of nil is 0.
func (d *Decider) Number(c *dag.Condition) int {
	if c == nil {
		return 0
	}
	return slices.Index(d.texts, conditionText(c)) + 1
}

// Parameters is the number of the kernel's parameters.
func (d *Decider) Parameters() int { return Parameters + d.operands }

func conditionText(c *dag.Condition) string {
	w := &writer{}
	w.line("mov.b64 %%holds, %s", w.condition(c))
	return "\t{\n" + w.registers.String() + w.String() + "\t}\n"
}

// Module returns the code of the kernel.
func (d *Decider) Module() *launch.Module {
	body := fmt.Sprintf(".extern .func %s(.param .b64 handle, .param .b32 value);\n", setter) + d.entry()
	return &launch.Module{Name: "conditions", Kind: launch.PTX, Body: body, Code: []byte(".version 6.0\n.target sm_52\n.address_size 64\n" + body)}
}

// entry writes the kernel. Loads come long before what they load is used, because each takes a good part of the kernel's time.
func (d *Decider) entry() string {
	w := &writer{}
	for _, p := range []struct {
		name   string
		number int
	}{{"number", ParameterNumber}, {"role", ParameterRole}, {"counts", ParameterCounts}, {"times", ParameterTimes}, {"every", ParameterEvery}} {
		w.line("ld.param.b64 %%%s, [p%d]", p.name, p.number)
	}
	w.line("cvta.to.global.u64 %%counts, %%counts")
	w.line("mov.b64 %%holds, 0")
	for _, is := range []struct {
		name string
		bit  uint64
	}{{"at_end", rolePass}, {"branch", roleBranch}, {"while", roleWhile}} {
		w.line("and.b64 %%at, %%role, %d", is.bit)
		w.line("setp.ne.s64 %%%s, %%at, 0", is.name)
	}
	w.line("@%%at_end bra pass")
	w.begin()
	w.pass(d.skips)
	w.WriteString("test:\n")
	for k, text := range d.texts {
		w.line("setp.ne.s64 %%other, %%number, %d", k+1)
		w.line("@%%other bra not_%d", k+1)
		w.WriteString(text)
		w.line("bra.uni tested")
		fmt.Fprintf(w, "not_%d:\n", k+1)
	}
	w.WriteString("tested:\n")
	w.decision()
	w.stamp()
	w.set()
	var head strings.Builder
	fmt.Fprintf(&head, ".visible .entry %s(\n\t.param .u64 p0", Entry)
	for k := 1; k < d.Parameters(); k++ {
		fmt.Fprintf(&head, ",\n\t.param .u64 p%d", k)
	}
	head.WriteString(`
)
{
	.reg .pred %at_end, %branch, %while, %other, %more, %tested, %stop, %last, %sets;
	.reg .b32 %value;
	.reg .b64 %number, %role, %counts, %times, %every, %holds, %at, %left, %zero, %pass, %runs, %held, %passes, %missed, %what, %stamps, %room;
`)
	return head.String() + w.String() + "done:\n\tret;\n}\n"
}

// begin is what comes before the first decision.
func (w *writer) begin() {
	w.line("ld.param.s64 %%left, [p%d]", ParameterClear)
	w.line("mov.b64 %%zero, 0")
	w.line("mov.b64 %%at, %%counts")
	w.WriteString("clear:\n")
	w.line("setp.le.s64 %%more, %%left, 0")
	w.line("@%%more bra cleared")
	w.line("st.global.b64 [%%at], %%zero")
	w.line("add.s64 %%at, %%at, 8")
	w.line("sub.s64 %%left, %%left, 1")
	w.line("bra clear")
	w.WriteString("cleared:\n")
	w.count("ld", "runs", CountRuns)
	w.count("ld", "held", CountHeld)
	w.count("st", "zero", CountPass)
	w.line("or.pred %%tested, %%branch, %%while")
	w.line("selp.b64 %%number, %%number, 0, %%tested")
	w.line("bra.uni test")
}

// pass is what comes before the decision after a pass. skips: some tests are not made after every pass.
func (w *writer) pass(skips bool) {
	w.WriteString("pass:\n")
	w.line("mov.b64 %%what, 1")
	w.line("setp.ne.s64 %%sets, %%what, 1") // it does not
	w.line("@%%branch bra stamp")
	w.count("ld", "pass", CountPass)
	w.count("ld", "passes", CountPasses)
	w.count("ld", "missed", CountMissed)
	if skips {
		w.line("setp.le.s64 %%more, %%every, 1")
		w.line("@%%more bra test")
		w.line("add.s64 %%at, %%pass, 1")
		w.line("setp.ge.s64 %%more, %%at, %%times")
		w.line("@%%more bra test")
		w.line("rem.s64 %%at, %%at, %%every")
		w.line("setp.eq.s64 %%more, %%at, 0")
		w.line("selp.b64 %%number, %%number, 0, %%more")
	}
}

// decision follows from %holds, and says in %value what the conditional gets, if %sets, and in %what what is stamped.
func (w *writer) decision() {
	w.line("setp.ne.s64 %%tested, %%number, 0")
	w.line("selp.b64 %%at, 0, 1, %%while")
	w.line("setp.eq.s64 %%stop, %%holds, %%at")
	w.line("and.pred %%stop, %%stop, %%tested")
	w.line("@%%at_end bra passed")

	w.line("setp.eq.s64 %%sets, %%zero, 0") // it does
	w.line("add.s64 %%runs, %%runs, 1")
	w.count("st", "runs", CountRuns)
	w.line("@%%branch bra branched")
	w.line("setp.le.s64 %%last, %%times, 0")
	w.line("or.pred %%last, %%last, %%stop")
	w.line("selp.b32 %%value, 0, 1, %%last")
	w.line("mov.b64 %%what, %d", StampBegun)
	w.line("bra.uni stamp")

	w.WriteString("branched:\n")
	w.line("add.s64 %%held, %%held, %%holds")
	w.count("st", "held", CountHeld)
	w.line("cvt.u32.u64 %%value, %%holds")
	w.line("sub.s64 %%what, %%holds, %d", -StampOtherwise)
	w.line("bra.uni stamp")

	w.WriteString("passed:\n")
	w.line("add.s64 %%pass, %%pass, 1")
	w.count("st", "pass", CountPass)
	w.line("setp.ge.s64 %%last, %%pass, %%times")
	w.line("or.pred %%sets, %%last, %%stop")
	w.line("mov.b64 %%what, %%pass")
	w.line("@%%sets bra ended")
	w.line("ld.param.s64 %%at, [p%d]", ParameterEach)
	w.line("setp.gt.s64 %%more, %%pass, %%at")
	w.line("@%%more bra done") // the conditional keeps its value
	w.line("bra.uni stamp")

	w.WriteString("ended:\n")
	w.line("mov.b32 %%value, 0")
	w.line("add.s64 %%passes, %%passes, %%pass")
	w.count("st", "passes", CountPasses)
	w.line("not.pred %%more, %%stop")
	w.line("and.pred %%more, %%more, %%tested")
	w.line("selp.b64 %%at, 1, 0, %%more")
	w.line("add.s64 %%missed, %%missed, %%at")
	w.count("st", "missed", CountMissed)
}

// set gives the conditional the value in %value, and the other one, if there is one, the opposite.
func (w *writer) set() {
	w.line("@!%%sets bra done")
	w.line("ld.param.u64 %%at, [p%d]", ParameterHandle)
	w.line("ld.param.u64 %%left, [p%d]", ParameterOther)
	w.WriteString("set:\n\t{\n\t.param .b64 handle;\n\t.param .b32 value;\n")
	w.line("st.param.b64 [handle], %%at")
	w.line("st.param.b32 [value], %%value")
	w.line("call.uni %s, (handle, value)", setter)
	w.WriteString("\t}\n")
	w.line("setp.eq.s64 %%more, %%left, 0")
	w.line("@%%more bra done")
	w.line("mov.b64 %%at, %%left")
	w.line("mov.b64 %%left, 0")
	w.line("xor.b32 %%value, %%value, 1")
	w.line("bra set")
}
