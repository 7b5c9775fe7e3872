// Tests of parsing modules, and of the errors for wrong ones.

package ptx

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const sample = `//
// a module with one of everything
//
.version 8.5
.target sm_90a, debug
.address_size 64

.pragma "unroll";
.extern .func  (.param .b32 func_retval0) vprintf
(
	.param .b64 vprintf_param_0,
	.param .b64 vprintf_param_1
)
;
.global .align 1 .b8 $str[4] = {104, 105, 10, 0};
.visible .global .align 8 .u64 table[3] = {$str, generic($str)+1, 7};
.global .u8 bytes[] = {0xff($str), 0xff00($str)};
.const .f32 pi = 3.14159265, half = 0f3F000000;
.extern .shared .align 16 .b8 dynamic[];
.global .attribute(.managed) .s32 managed;
.global .align 4 .f32 grid[2][3] = {{1.0, 2, 3}, {-4, 5}};
.const .texref image;

.func (.reg .f32 out) twice(.reg .f32 in) .noreturn
{
	add.f32 out, in, in;
	ret;
}

.visible .entry kernel(
	.param .u64 .ptr .global .align 16 kernel_param_0,
	.param .align 8 .b8 kernel_param_1[24],
	.param .f32 kernel_param_2
)
.maxntid 256, 2
.minnctapersm 3
.maxnreg 40
{
	.reg .pred 	%p<3>;
	.reg .b32 	%r<1000>;
	.reg .v4 .f32 quad;
	.reg .f32 	%f<4>, %f10;
	.reg .b64 	%rd<9>;
	.shared .align 4 .b8 tile[64];
	.local .align 8 .b8 	__local_depot0[16];
	.loc	1 12 7
	ld.param.u64 	%rd1, [kernel_param_0];
	ld.param.u64 	%rd2, [kernel_param_1+8];	// inline
	mov.u32 	%r5, %tid.x;
	mov.u32 %r6, %envreg3; /* over
	two lines */ mov.u32 %r7, WARP_SZ;
	setp.lt.and.s32 	%p1|%p2, %r5, -0x10, !%p0;
	@!%p1 bra 	$L__BB0_2;
	.loc	1 13 9, function_name $L__info_string0+4, inlined_at 1 20 3
	ld.global.nc.v4.f32 	{%f0, %f1, _, %f10}, [%rd1+-16];
	st.shared.f32 [tile+4], %f0;
	tex.2d.v4.f32.f32 quad, [image, {%f0, %f1}];
	fma.rn.f32 	%f1, %f0, 0f40000000, quad.y;
	fma.rn.f32 	%f1, %f0, -1.5, 0d3FF0000000000000;
	{ // callseq 0, 0
	.reg .b32 temp_param_reg;
	.param .b64 param0;
	st.param.b64 	[param0+0], %rd1;
	.param .b64 param1;
	st.param.b64 	[param1], %rd2;
	.param .b32 retval0;
	call.uni (retval0), 
	vprintf, 
	(
	param0, 
	param1
	);
	ld.param.b32 	%r8, [retval0+0];
	} // callseq 0
$L__BB0_2:
	prototype_1 : .callprototype (.param .b32 _) _ (.param .b64 _, .param .b64 _);
	call (%r9), %rd3, (%rd1, %rd2), prototype_1;
	call (%f1), twice, (%f0);
	targets: .branchtargets $L__BB0_2, done;
	brx.idx %r9, targets;
	mov.u64 %rd4, table+8;
	mov.u64 %rd4, vprintf;
	bar.sync 	0;
done:
	ret;
}
.section	.debug_str
{
$L__info_string0:
.b8 107, 0
.b64 {1, 2}
}
.file	1 "kernel.cu", 1700000000, 1234
.weak .func other();
.alias other, twice;
`

func parse(t *testing.T, text string) *Module {
	t.Helper()
	m, err := Parse(text)
	require.NoError(t, err)
	return m
}

func TestModule(t *testing.T) {
	m := parse(t, sample)
	assert.Equal(t, []any{8, 5, "sm_90a", []string{"debug"}, 64}, []any{m.Major, m.Minor, m.Target, m.Options, m.AddressSize})
	assert.Equal(t, []string{"unroll"}, m.Pragmas)
	assert.Equal(t, map[int]string{1: "kernel.cu"}, m.Files)
	var globals []string
	for _, id := range m.Globals {
		v := m.Variables[id]
		globals = append(globals, fmt.Sprintf("%s %s %s*%d %d align %d", v.Name, v.Space, v.Type, v.Vector, v.Size, v.Align))
	}
	assert.Equal(t, []string{"$str global b8*1 4 align 1", "table global u64*1 24 align 8", "bytes global u8*1 2 align 1", "pi const f32*1 4 align 4",
		"half const f32*1 4 align 4", "dynamic shared b8*1 0 align 16", "managed global s32*1 4 align 4", "grid global f32*1 24 align 4",
		"image const texref*1 8 align 8"}, globals)

	str, _ := m.Variable("$str")
	table, ok := m.Variable("table")
	require.True(t, ok)
	assert.Equal(t, []Relocation{{Offset: 0, Size: 8, Variable: str, Function: NoFunction}, {Offset: 8, Size: 8, Variable: str, Function: NoFunction, Addend: 1, Generic: true}},
		m.Variables[table].Relocate)
	assert.Equal(t, byte(7), m.Variables[table].Init[16])
	bytes, _ := m.Variable("bytes")
	assert.Equal(t, []Relocation{{Offset: 0, Size: 1, Variable: str, Function: NoFunction}, {Offset: 1, Size: 1, Variable: str, Function: NoFunction, Shift: 8}},
		m.Variables[bytes].Relocate)
	pi, _ := m.Variable("pi")
	assert.Equal(t, []byte{0xdb, 0x0f, 0x49, 0x40}, m.Variables[pi].Init)
	grid, _ := m.Variable("grid")
	assert.Len(t, m.Variables[grid].Init, 20)
	dynamic, _ := m.Variable("dynamic")
	assert.True(t, m.Variables[dynamic].Open)
	managed, _ := m.Variable("managed")
	assert.True(t, m.Variables[managed].Managed)
	other, _ := m.Function("other")
	twice, _ := m.Function("twice")
	assert.Equal(t, twice, m.Resolve(other))
	assert.True(t, m.Functions[twice].NoReturn)
	assert.Len(t, m.Entries(), 1)
}

// text writes an instruction with its operands looked up in the tables, so that a test sees what was resolved.
func text(m *Module, f *Function, in *Instruction) string {
	var show func(o Operand) string
	list := func(o Operand, open, end string) string {
		var parts []string
		for _, e := range f.Elements(o) {
			parts = append(parts, show(e))
		}
		return open + strings.Join(parts, " ") + end
	}
	show = func(o Operand) string {
		part := ""
		if o.Part != Whole {
			part = "." + map[Part]string{X: "x", Y: "y", Z: "z", W: "w"}[o.Part]
		}
		if o.Negated {
			part += "!"
		}
		switch o.Kind {
		case None:
			return "-"
		case RegisterKind:
			return f.Registers[o.Index].String() + part
		case Integer:
			return fmt.Sprint(o.Value)
		case Float32, Float64:
			return fmt.Sprint(o.Float())
		case Address:
			s := fmt.Sprintf("+%d]", o.Value)
			if o.Register() != NoRegister {
				s = f.Registers[o.Index].String() + s
			}
			if o.Variable() != NoVariable {
				s = m.Variables[o.Extra].Name + s
			}
			return "[" + s
		case VariableKind:
			return fmt.Sprintf("&%s+%d", m.Variables[o.Extra].Name, o.Value)
		case FunctionKind:
			return "&" + m.Functions[o.Index].Name
		case LabelKind:
			l := f.Labels[o.Index]
			return fmt.Sprintf("%s@%d", l.Name, l.At)
		case SpecialKind:
			return Special(o.Index).String() + part + fmt.Sprint(o.Value)
		case Discard:
			return "_"
		case Vector:
			return list(o, "{", "}")
		case Pair:
			return list(o, "<", ">")
		case List:
			return list(o, "(", ")")
		}
		return list(o, "[", "]")
	}
	s := fmt.Sprintf("%s %s", in.Position, in.Form.Text)
	if in.Guard != NoRegister {
		s = fmt.Sprintf("@%s%v %s", f.Registers[in.Guard], in.Negated, s)
	}
	for _, o := range in.Operands {
		s += " " + show(o)
	}
	return s
}

func TestBody(t *testing.T) {
	m := parse(t, sample)
	f := &m.Functions[m.Entries()[0]]
	assert.Equal(t, "kernel", f.Name)
	assert.Equal(t, Limits{MaxThreads: [3]int32{256, 2, 1}, MinBlocks: 3, MaxRegisters: 40}, f.Limits)
	require.Len(t, f.Params, 3)
	first := m.Variables[f.Params[0].Variable]
	assert.Equal(t, []any{"kernel_param_0", Param, U64, true, Global, 16, 8}, []any{first.Name, first.Space, first.Type, first.Pointer, first.Points, first.Pointee, first.Align})
	assert.Equal(t, int64(24), m.Variables[f.Params[1].Variable].Size)
	var code []string
	for i := range f.Code {
		code = append(code, text(m, f, &f.Code[i]))
	}
	assert.Equal(t, []string{
		"47:2 ld.param.u64 %rd1 [kernel_param_0+0]",
		"48:2 ld.param.u64 %rd2 [kernel_param_1+8]",
		"49:2 mov.u32 %r5 %tid.x0",
		"50:2 mov.u32 %r6 %envreg3",
		"51:15 mov.u32 %r7 32",
		"52:2 setp.lt.and.s32 <%p1 %p2> %r5 -16 %p0!",
		"@%p1true 53:8 bra $L__BB0_2@16",
		"55:2 ld.global.nc.v4.f32 {%f0 %f1 _ %f10} [%rd1+-16]",
		"56:2 st.shared.f32 [tile+4] %f0",
		"57:2 tex.2d.v4.f32.f32 quad [[image+0] {%f0 %f1}]",
		"58:2 fma.rn.f32 %f1 %f0 2 quad.y",
		"59:2 fma.rn.f32 %f1 %f0 -1.5 1",
		"63:2 st.param.b64 [param0+0] %rd1",
		"65:2 st.param.b64 [param1+0] %rd2",
		"67:2 call.uni (&retval0+0) &vprintf (&param0+0 &param1+0) -",
		"73:2 ld.param.b32 %r8 [retval0+0]",
		"77:2 call (%r9) %rd3 (%rd1 %rd2) prototype_1@16",
		"78:2 call (%f1) &twice (%f0) -",
		"80:2 brx.idx %r9 targets@18",
		"81:2 mov.u64 %rd4 &table+8",
		"82:2 mov.u64 %rd4 &vprintf",
		"83:2 bar.sync 0",
		"85:2 ret",
	}, code)
	assert.Len(t, f.Registers, 16, "registers that are never used cost nothing")
	for _, l := range f.Labels {
		switch l.Name {
		case "targets":
			require.Len(t, l.Targets, 2)
			assert.Equal(t, "done", f.Labels[l.Targets[1]].Name)
			assert.Equal(t, int32(22), f.Labels[l.Targets[1]].At)
		case "prototype_1":
			require.NotNil(t, l.Prototype)
			assert.Len(t, l.Prototype.Params, 2)
			assert.Len(t, l.Prototype.Results, 1)
		}
	}
	file, line, column, ok := m.Source(f, &f.Code[7])
	assert.Equal(t, []any{"kernel.cu", 13, 9, true}, []any{file, line, column, ok})
}

func TestHead(t *testing.T) {
	m, err := Head(".version 8.6\n.target sm_100a, debug\n.address_size 64\nnothing that can be read")
	require.NoError(t, err)
	assert.Equal(t, []any{8, 6, "sm_100a", 64}, []any{m.Major, m.Minor, m.Target, m.AddressSize})
	_, err = Head("nothing that can be read")
	assert.EqualError(t, err, `1:1: PTX must start with .version, not with "nothing"`)
}

func TestForms(t *testing.T) {
	m := parse(t, ".version 7.0\n.target sm_80\n.address_size 64\n.entry k(){\n.reg .b32 r; .reg .b64 d;\n"+
		"cvt .rn\n.f32 .s32 r, r; ld.relaxed.gpu.global.L1::no_allocate.L2::128B.v2.b32 {r, r}, [d];\n"+
		"cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [r], [d], 16, [r]; newop.foo r;\n"+
		"atom.global.add.u32 r, [d], 1; red.shared.add.u32 [r], 1; mbarrier.init.shared.b64 [r], 1; mbarrier.arrive.shared.b64 d, [r]; mbarrier.arrive.shared::cta.b64 [r];}")
	code := m.Functions[0].Code
	assert.Equal(t, "cvt.rn.f32.s32", code[0].Form.Text)
	assert.Equal(t, []any{OpCvt, []Mod{ModRn}, []Type{F32, S32}, true}, []any{code[0].Form.Op, code[0].Form.Mods, code[0].Form.Types, code[0].Form.Known})
	assert.Equal(t, []any{Global, 2, B32, true}, []any{code[1].Form.Space(), code[1].Form.Vector, code[1].Form.Type(), code[1].Form.Known})
	assert.Equal(t, []Role{Writes, Reads, Source, Updates}, code[2].Roles())
	assert.Equal(t, []any{OpUnknown, false}, []any{code[3].Form.Op, code[3].Form.Known})
	assert.Equal(t, []Role{Target, Updates, Source}, code[4].Roles())
	assert.Equal(t, []Role{Updates, Source}, code[5].Roles())
	assert.Equal(t, []Role{Updates, Source}, code[6].Roles())
	assert.Equal(t, []Role{Target, Updates}, code[7].Roles())
	assert.Equal(t, []Role{Updates}, code[8].Roles())
}

func TestNumbers(t *testing.T) {
	for text, want := range map[string]constant{
		"0": {Integer, 0}, "017": {Integer, 15}, "0x1F": {Integer, 31}, "0b101": {Integer, 5}, "12U": {Integer, 12},
		"18446744073709551615": {Integer, -1}, "-9223372036854775808": {Integer, math.MinInt64},
		"0f3F800000": {Float32, 0x3f800000}, "-0f3F800000": {Float32, 0xbf800000}, "0dBFF0000000000000": {Float64, -0x4010000000000000},
		"1.5": {Float64, int64(math.Float64bits(1.5))}, "1e3": {Float64, int64(math.Float64bits(1000))}, "2.5e-1": {Float64, int64(math.Float64bits(0.25))},
		"1 + 2 * 3 - 4": {Integer, 3}, "(1 + 2) * 3": {Integer, 9}, "1 << 4": {Integer, 16}, "~0": {Integer, -1}, "!5": {Integer, 0},
		"7 / 2": {Integer, 3}, "1 < 2 ? 10 : 20": {Integer, 10}, "(.s64)-3": {Integer, -3}, "WARP_SZ * 2": {Integer, 64},
	} {
		p := &parser{lexer: lexer{text: text, line: 1}}
		p.next()
		got := p.expression(1)
		require.Nil(t, p.err, text)
		assert.Equal(t, want, got, text)
	}
}

func TestScopes(t *testing.T) {
	m := parse(t, `.version 7.0
.target sm_80
.address_size 64
.entry k() {
	.reg .b32 x, %r<4>;
	mov.b32 x, 1;
	bra end;
	{
		.reg .b64 x, %r2;
		mov.b64 x, 2;
		mov.b64 %r2, 3;
		bra end;
		mov.b32 %r1, 4;
	end:
		{ bra end; }
	}
	mov.b32 x, %r2;
end:
}`)
	f := &m.Functions[0]
	var code []string
	for i := range f.Code {
		code = append(code, text(m, f, &f.Code[i]))
	}
	assert.Equal(t, []string{"6:2 mov.b32 x 1", "7:2 bra end@8", "10:3 mov.b64 x 2", "11:3 mov.b64 %r2 3", "12:3 bra end@6", "13:3 mov.b32 %r1 4",
		"15:5 bra end@6", "17:2 mov.b32 x %r2"}, code)
	ids := func(i int) RegisterID { return f.Code[i].Operands[0].Register() }
	assert.NotEqual(t, ids(0), ids(2), "an inner block's x is another register")
	assert.Equal(t, ids(0), ids(7))
	assert.NotEqual(t, ids(3), f.Code[7].Operands[1].Register())
	assert.Equal(t, B64, f.Registers[ids(3)].Type)
}

func TestErrors(t *testing.T) {
	const head = ".version 7.0\n.target sm_80\n.address_size 64\n"
	in := func(body string) string {
		return head + ".entry k(.param .u64 p)\n{\n.reg .b32 %r<4>;\n" + body + "\n}\n"
	}
	for _, c := range []struct{ text, want string }{
		{"", `1:1: PTX must start with .version, not with the end of the text`},
		{"hello", `1:1: PTX must start with .version, not with "hello"`},
		{"\x7fELF", "1:1: byte 0x7f is not part of PTX; this is not PTX text, or it is damaged"},
		{".version 12.0", "1:10: PTX ISA 12.0 is not supported; 3.0 to 9.x are, so compile for an older one"},
		{head + ".address_size 16", "4:15: an address must have 32 or 64 bits, not 16"},
		{head + "/* on", "4:1: the comment that starts here has no end; add */"},
		{head + ".file 1 \"on\n", "4:9: the string that starts here has no end on its line; add a quote"},
		{head + ".globl .u32 x;", "4:1: .globl is not a directive that is possible here; expected .entry, .func, .global, .const, .shared or the like"},
		{head + ".global x;", `4:9: expected a type such as .b32, not "x"`},
		{head + ".global .align 3 .u32 x;", "4:16: an alignment must be a power of two, not 3"},
		{head + ".global .u32 x;\n.global .u32 x;", "5:14: x is declared twice"},
		{head + ".global .u8 x[2] = {1,2,3};", "4:27: x has 2 bytes, but its initial value has 3"},
		{head + ".global .u64 x = y;", "4:18: y is not declared above"},
		{head + ".global .u8 x[1099511627777];", "4:15: x is too large: 1099511627776 bytes at most"},
		{head + ".entry k(.param .b8 p[2147483648]) { ret; }", "4:23: p is too large: 1048576 bytes at most"},
		{head + ".entry k(.param .b8 p[4294967304]) { ret; }", "4:23: p is too large: 1048576 bytes at most"},
		{head + ".entry k(.param .b64 a, .param .b8 p[32757]) { ret; }", "4:36: the parameters of a kernel have 32764 bytes at most, and these have 32765 up to p"},
		{head + ".reg .u32 x;", "4:11: register x is declared outside a function"},
		{head + ".section .debug_info {", "4:1: the section that starts here has no closing brace"},
		{head + ".alias a, b;", "4:8: .alias names a, which is not declared as a function above"},
		{head + ".entry k()", "4:11: expected { or ; after the head of k, not the end of the text"},
		{head + ".entry k() {", "4:12: the block that starts here has no closing brace"},
		{head + ".entry k(){} .entry k(){}", "4:21: k already has a body"},
		{head + ".entry k() .maxthreads 3 {}", `4:12: ".maxthreads" is not a directive of a kernel or function; expected .maxntid, .reqntid, .minnctapersm or the like`},
		{head + ".entry k(.reg .u32 x) {}", "4:10: a kernel takes its parameters in .param space, not in registers"},
		{in("add.u32 %r1, %r2, %r4;"), "7:19: %r4 is not declared: there is no register, variable or function with this name here"},
		{in("ld.global.u32 %r1, [q];"), "7:21: q is not declared: there is no register or variable with this name here"},
		{in("bra %r1;"), "7:5: a branch to a register cannot be followed; use brx.idx with .branchtargets"},
		{in("bra there;"), "7:5: label there is not declared in k"},
		{in("add.u32 %r1, %r2, 1"), `8:1: expected ; after add.u32, not "}"`},
		{in("@%q bra x;"), "7:2: %q is not a register that is declared here"},
		{in("mov.b32 %r1, 0f12;"), "7:14: 0f12 is not a number; PTX writes 12, 0x1f, 017, 0b11, 1.5, 0f3F800000 and 0d3FF0000000000000"},
		{in("mov.b32 %r1, 1/0;"), "7:15: division by zero in a constant"},
		{in("mov.b32 %r1, %tid.%x;"), "7:18: . is not a part of a register; expected .x, .y, .z, .w, or .b0 to .b3, .h0, .h1"},
		{in("mov.b32 %r1, %tid.q;"), "7:18: .q is not a part of a register; expected .x, .y, .z, .w, or .b0 to .b3, .h0, .h1"},
		{in(".reg .b32 %x<2000000>;"), "7:11: more than 1048576 registers are declared in k"},
		{in(".nothing;"), `7:1: ".nothing" is not a directive that a body can have; expected .reg, .shared, .local, .param, .loc or .pragma`},
		{in(".callprototype _;"), "7:1: .callprototype needs a label before it"},
		{".version 1.0\n.target a\n.entry k(){ l: .callprototype (", `3:32: expected a dotted word, not the end of the text`},
		{in("l: .callprototype _ (x);"), `7:22: expected a dotted word, not "x"`},
		{in(strings.Repeat("{", 70)), "7:65: nested more than 64 levels deep"},
		{in("mov.b32 %r1, " + strings.Repeat("(", 100) + "1;"), "7:78: nested more than 64 levels deep"},
		{in("ld.x [p - %r2], 1;"), "7:11: %r2 cannot be subtracted in an address"},
		{in("ld.x [%r1 + %r2], 1;"), "7:13: %r2 cannot be part of this address"},
	} {
		_, err := Parse(c.text)
		if assert.Error(t, err, c.text) {
			assert.Equal(t, c.want, err.Error(), c.text)
		}
	}
}

// TestHostile gives the parser input that would take endless time or memory without limits: the test would not end.
func TestHostile(t *testing.T) {
	const head = ".version 7.0\n.target sm_80\n.address_size 64\n"
	for name, text := range map[string]string{
		"100 MB":              head + strings.Repeat("// a comment\n", 100<<20/13),
		"endless registers":   head + ".entry k(){" + strings.Repeat(".reg .b32 x<100000>;{", 60),
		"endless groups":      head + ".entry k(){" + strings.Repeat(".reg .b32 r<9>;", 100000),
		"many functions":      head + manyFunctions(),
		"endless variables":   head + ".entry k(){" + strings.Repeat(".shared .b8 x<4096>;\n", 100000) + "}",
		"deep blocks":         head + ".entry k(){" + strings.Repeat("{", 1000000),
		"deep expressions":    head + ".const .u32 x=" + strings.Repeat("(", 1000000),
		"deep negations":      head + ".const .u32 x=" + strings.Repeat("-", 1000000),
		"deep casts":          head + ".const .u32 x=" + strings.Repeat("(.s64)", 1000000),
		"deep conditionals":   head + ".const .u32 x=" + strings.Repeat("1?", 1000000),
		"deep initialisers":   head + ".const .u32 x[]=" + strings.Repeat("{", 1000000),
		"deep vectors":        head + ".entry k(){ mov.b32 " + strings.Repeat("{", 1000000),
		"deep textures":       head + ".entry k(){ tex " + strings.Repeat("[0,", 1000000),
		"endless operands":    head + ".entry k(){ mov.b32 " + strings.Repeat("1,", 1000000),
		"an endless word":     head + ".entry k(){ mov" + strings.Repeat(".x", 1000000),
		"endless dimensions":  head + ".global .u8 x" + strings.Repeat("[1]", 1000000),
		"endless spaced word": head + ".entry k(){ mov" + strings.Repeat(" .x", 1000000),
		"endless operators":   head + ".const .u32 x=1" + strings.Repeat("+1", 1000000),
		"endless targets":     head + ".entry k(){ l: m: .branchtargets " + strings.Repeat("l,", 100000),
		"open labels":         head + ".entry k(){" + strings.Repeat("{bra x;", 60) + strings.Repeat("bra x;", 100000) + strings.Repeat("}", 61),
	} {
		_, err := Parse(text)
		assert.Error(t, err, name)
	}
}

// manyFunctions declares all registers that a function may, again and again.
func manyFunctions() string {
	var b strings.Builder
	for i := range 100 {
		fmt.Fprintf(&b, ".func f%d(){.reg .b32 %%r<1000000>;mov.b32 %%r999999,1;}\n", i)
	}
	return b.String()
}

func FuzzParse(f *testing.F) {
	f.Add(sample)
	f.Add(".version 1.0\n.target a\n.entry k(){ {.reg .b32 x<2>; l: mov x1, {x0, x1}; bra l;} }")
	f.Fuzz(func(t *testing.T, text string) {
		m, err := Parse(text)
		if err != nil {
			var place *Error
			require.ErrorAs(t, err, &place)
			require.Positive(t, place.Position.Line)
			require.Positive(t, place.Position.Column)
			return
		}
		for i := range m.Functions {
			check(t, m, &m.Functions[i])
		}
	})
}

// check checks what users of a parsed function rely on: every index is inside its table.
func check(t *testing.T, m *Module, f *Function) {
	var operand func(o Operand)
	operand = func(o Operand) {
		switch o.Kind {
		case RegisterKind:
			require.Less(t, int(o.Index), len(f.Registers))
			require.GreaterOrEqual(t, o.Index, int32(0))
		case Address, VariableKind:
			require.Less(t, int(o.Index), len(f.Registers))
			require.Less(t, int(o.Extra), len(m.Variables))
		case FunctionKind:
			require.Less(t, int(o.Index), len(m.Functions))
		case LabelKind:
			require.Less(t, int(o.Index), len(f.Labels))
			require.GreaterOrEqual(t, o.Index, int32(0))
		}
		for _, e := range f.Elements(o) {
			operand(e)
		}
	}
	for i := range f.Code {
		in := &f.Code[i]
		require.Less(t, int(in.Guard), len(f.Registers))
		require.Less(t, int(in.Location), len(f.Locations))
		require.LessOrEqual(t, len(in.Roles()), len(in.Operands))
		require.Same(t, m.Forms[in.Form.ID], in.Form)
		if in.Form.Op == OpCall {
			require.Len(t, in.Operands, 4)
		}
		for _, o := range in.Operands {
			operand(o)
		}
	}
	for _, l := range f.Labels {
		require.LessOrEqual(t, int(l.At), len(f.Code))
		for _, target := range l.Targets {
			require.Less(t, int(target), len(f.Labels))
			require.GreaterOrEqual(t, target, LabelID(0))
		}
	}
	for _, v := range m.Variables {
		require.GreaterOrEqual(t, v.Size, int64(len(v.Init)))
	}
}

func BenchmarkParse(b *testing.B) {
	body := sample[strings.Index(sample, "\tld.param.u64"):strings.Index(sample, "\tprototype_1")]
	text := sample[:strings.Index(sample, "\tld.param.u64")]
	for i := range 1000 {
		text += strings.ReplaceAll(body, "$L__BB0_2", fmt.Sprintf("$L%d", i))
	}
	text += "ret;}\n"
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Parse(text); err != nil {
			b.Fatal(err)
		}
	}
}
