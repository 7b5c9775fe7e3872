// Tests of what nobody wrote, instruction by instruction: what is computed from it is a fault, and what is moved is one where it is used.

package simt_test

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/cudart/host/simt"
	"github.com/dagrun/dagrun/internal/ptx"
)

// places are what registers are loaded from: their second letter names the place, their first one the type. Where a place is written, it
// holds the value.
var places = map[string]string{"a": "1", "b": "1", "c": "1", "d": "1", "z": "0", "m": "0xffffffff", "k": "16", "o": "%out", "s": "%tile", "l": "%own"}

// readers are the instructions with their sources. One thread runs them, and a warp those on matrices in memory.
var readers = []string{
	"abs.s32 %rt, %ra;", "abs.f64 %gt, %ga;", "add.s32 %rt, %ra, %rb;", "add.f32 %ft, %fa, %fb;", "add.cc.u32 %rt, %ra, %rb; addc.u32 %ru, %rc, %rd;", "and.b32 %rt, %ra, %rb;",
	"atom.global.add.u32 %rt, [%xo], %ra;", "atom.shared.cas.b32 %rt, [%rs], %ra, %rb;", "atom.exch.b64 %xt, [%xo], %xa;", "atom.global.inc.u32 %rt, [%out], %ra;",
	"bar.sync %rz, %ra;", "bar.red.popc.u32 %rt, %rz, %p;", "barrier.sync %rz;", "bar.warp.sync %rm;", "bfe.u32 %rt, %ra, %rb, %rc;", "bfe.s32 %rt, %ra, 3, 5;",
	"bfi.b32 %rt, %ra, %rb, %rc, %rd;", "bfind.u32 %rt, %ra;", "bmsk.clamp.b32 %rt, %ra, %rb;", "brev.b32 %rt, %ra;", "{ T: .branchtargets HERE; brx.idx %rz, T; HERE: }",
	"call (%rt), same, (%ra);", "call (%ru, %rt), both, (%ra, %rb);", "mov.u64 %xu, same; add.u64 %xu, %xu, %xz; call (%rt), %xu, (%rb), P;",
	"{ .param .b32 p; .param .b32 q; st.param.b32 [p], %ra; call (q), kept, (p); ld.param.b32 %rt, [q]; }",
	"{ .param .b64 p[2]; .param .b64 q[2]; st.param.v2.b64 [p], {%xa, %xb}; call (q), passed, (p); ld.param.v2.b64 {%xt, %xu}, [q]; st.global.b64 [%out], %xu; }",
	"call (%rt), mixed, (%ra);", "{ .param .b32 q; call (q), changed, (%ra); ld.param.b32 %rt, [q]; }", "clz.b32 %rt, %ra;", "cnot.b32 %rt, %ra;", "copysign.f32 %ft, %fa, %fb;",
	"cos.approx.f32 %ft, %fa;", "cp.async.ca.shared.global [%rs], [%xo], 4, %ra;", "cp.async.bulk.global.shared::cta.bulk_group [%xo], [%rs], %rk;",
	"cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%xo], [%rs], %rk;", "cvt.u64.u32 %xt, %ra;", "cvt.rn.f32.s32 %ft, %ra;", "cvt.rn.f16x2.f32 %rt, %fa, %fb;",
	"cvt.pack.sat.u16.s32 %rt, %ra, %rb;", "cvta.global.u64 %xt, %xa;", "cvta.to.shared.u64 %xt, %xs;", "div.s32 %rt, %ra, %rb;", "div.rn.f32 %ft, %fa, %fb;",
	"dp2a.lo.s32.s32 %rt, %ra, %rb, %rc;", "dp4a.u32.u32 %rt, %ra, %rb, %rc;", "elect.sync %rt|%q, %rm;", "ex2.approx.f32 %ft, %fa;", "fma.rn.f32 %ft, %fa, %fb, %fc;",
	"fns.b32 %rt, %ra, %rb, %rc;", "getctarank.shared::cluster.u32 %rt, %rs;", "isspacep.global %q, %xa;", "ld.global.b32 %rt, [%xo];", "ld.shared.v2.b32 {%rt, %ru}, [%rs];",
	"ld.local.b32 %rt, [%xl];", "ld.volatile.b32 %rt, [%xo];", "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%rt}, [%rs];", "ldu.global.b32 %rt, [%xo];", "lg2.approx.f32 %ft, %fa;",
	"lop3.b32 %rt, %ra, %rb, %rc, 0x96;", "lop3.or.b32 %rt|%q, %ra, %rb, %rc, 0x96, %p;", "mad.lo.s32 %rt, %ra, %rb, %rc;", "mad.wide.u32 %xt, %ra, %rb, %xc;",
	"mad24.lo.u32 %rt, %ra, %rb, %rc;", "mad.lo.cc.u32 %rt, %ra, %rb, %rc; madc.hi.u32 %ru, %ra, %rb, %rd;", "mapa.shared::cluster.u32 %rt, %rs, %rz;",
	"match.any.sync.b32 %rt, %ra, %rm;", "max.s32 %rt, %ra, %rb;", "mbarrier.init.shared.b64 [%rs], %ra; mbarrier.arrive.shared.b64 %xt, [%rs], %rb;",
	"mbarrier.init.shared.b64 [%tile32], 1; mbarrier.try_wait.parity.shared.b64 %q, [%rs], %ra;", "min.f32 %ft, %fa, %fb;",
	"mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%ft, %fu, %fu, %fu}, {%ra, %rz, %rz, %rz}, {%rz, %rb}, {%fz, %fc, %fz, %fz};",
	"mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%gt, %gu}, {%ga}, {%gb}, {%gc, %gd};", "mov.b32 %rt, %ra;", "mov.b64 %xt, {%ra, %rb};", "mov.b64 {%rt, %ru}, %xa; st.global.b32 [%out], %ru;",
	"mov.v2.b32 {%rt, %ru}, {%ra, %rb}; st.global.b32 [%out], %ru;", "mov.f64 %gt, %ga;", "mov.b16 %ht, %ha;", "movmatrix.sync.aligned.m8n8.trans.b16 %rt, %ra;", "mul.hi.u32 %rt, %ra, %rb;",
	"mul.rn.f64 %gt, %ga, %gb;", "mul24.lo.u32 %rt, %ra, %rb;", "neg.f32 %ft, %fa;", "not.b64 %xt, %xa;", "or.b32 %rt, %ra, %rb;", "popc.b64 %rt, %xa;", "prmt.b32 %rt, %ra, %rb, %rc;",
	"rcp.rn.f32 %ft, %fa;", "red.global.add.f32 [%xo], %fa;", "red.shared.or.b32 [%rs], %ra;", "redux.sync.add.s32 %rt, %ra, %rm;", "rem.u32 %rt, %ra, %rb;", "rsqrt.approx.f32 %ft, %fa;",
	"sad.u32 %rt, %ra, %rb, %rc;", "selp.b32 %rt, %ra, 0, %p;", "selp.f32 %ft, 0f00000000, %fa, %not;", "set.eq.u32.u32 %rt, %ra, %rb;", "setp.lt.s32 %q, %ra, %rb;",
	"shf.l.wrap.b32 %rt, %ra, %rb, %rc;", "shfl.sync.idx.b32 %rt, %ra, %rz, 31, %rm;", "shfl.sync.up.b32 %rt|%q, %ra, %rb, %rz, -1;", "shl.b32 %rt, %ra, %rb;", "shr.s64 %xt, %xa, %rb;",
	"sin.approx.f32 %ft, %fa;", "slct.s32.f32 %rt, %ra, %rb, %fc;", "sqrt.rn.f32 %ft, %fa;", "st.global.b32 [%xo], %ra;", "st.shared.v2.b32 [%rs], {%ra, %rb};", "st.volatile.b32 [%xo], %ra;",
	"st.local.b32 [%xl], %ra; ld.local.b32 %rt, [%own];", "st.local.v2.f32 [%own], {%fa, %fb}; ld.local.v2.f32 {%ft, %fu}, [%own]; st.global.f32 [%out], %fu;",
	"stmatrix.sync.aligned.m8n8.x1.shared.b16 [%rs], {%ra};", "st.bulk.weak.shared::cta [%rs], %xk, 0;", "sub.s64 %xt, %xa, %xb;", "sub.cc.u32 %rt, %ra, %rb; subc.u32 %ru, %rc, %rd;",
	"szext.wrap.s32 %rt, %ra, %rb;", "tanh.approx.f32 %ft, %fa;", "testp.finite.f32 %q, %fa;", "vadd.s32.s32.s32 %rt, %ra.b0, %rb.h1;", "vabsdiff4.s32.s32.s32.add %rt, %ra, %rb, %rc;",
	"vmad.s32.s32.s32 %rt, %ra, %rb, %rc;", "vote.sync.ballot.b32 %rt, %p, %rm;",
	"wmma.mma.sync.aligned.row.col.m8n8k4.f64.f64 {%gt, %gu}, {%ga}, {%gb}, {%gc, %gd};", "wmma.load.a.sync.aligned.row.m8n8k4.shared.f64 {%gt}, [%rs], %ra;",
	"wmma.store.d.sync.aligned.row.m8n8k4.shared.f64 [%rs], {%ga, %gb}, %rc;", "xor.b32 %rt, %ra, %rb;",
}

// readNothing are the opcodes without sources that a program could notice; cannotRun are those that the CPU device refuses. Of tex,
// texture_test.go tells.
var (
	readNothing = strings.Fields("activemask applypriority bra brkpt createpolicy discard exit fence griddepcontrol membar nanosleep pmevent prefetch prefetchu ret setmaxnreg trap tex")
	cannotRun   = strings.Fields("alloca clusterlaunchcontrol istypep multimem stackrestore stacksave suld suq sured sust tcgen05 tensormap tld4 txq wgmma")
)

const readFunctions = `.func (.reg .b32 r) same(.reg .b32 v) { mov.b32 r, v; ret; }
.func (.reg .b32 r, .reg .b32 s) both(.reg .b32 v, .reg .b32 w) { call (s), same, (v); mov.b32 r, w; st.global.b32 [sink], r; ret; }
.func (.param .b32 r) kept(.param .b32 v) { .local .b32 room; .reg .b32 %v; ld.param.b32 %v, [v]; st.local.b32 [room], %v; ld.local.b32 %v, [room]; st.param.b32 [r], %v; ret; }
.func (.param .b64 r[2]) passed(.param .b64 v[2]) { .reg .b64 %v<2>; ld.param.v2.b64 {%v0, %v1}, [v]; st.param.b64 [r], %v0; st.param.b64 [r+8], %v1; ret; }
.func (.reg .b32 r) mixed(.param .b32 v) { ld.param.b32 r, [v]; ret; }
.extern .func (.param .b32 n) vprintf(.param .b64 text, .param .b64 values);
.func (.param .b32 r) changed(.reg .b32 v) { st.param.b32 [r], v; ret; }
`

// reader is a kernel in which the registers of one place hold what nobody wrote.
func reader(code, unwritten string) string {
	var loads strings.Builder
	at := 0
	for _, place := range slices.Sorted(func(yield func(string) bool) {
		for p := range places {
			if !yield(p) {
				return
			}
		}
	}) {
		if place != unwritten {
			fmt.Fprintf(&loads, "mov.b64 %%xt, %s; st.local.b64 [room+%d], %%xt;\n", places[place], at)
		}
		for _, class := range []string{"h16", "r32", "x64", "f32", "g64"} {
			fmt.Fprintf(&loads, "ld.local.b%s %%%c%s, [room+%d];\n", class[1:], class[0], place, at)
		}
		at += 8
	}
	var registers strings.Builder
	for class, of := range map[string]string{"h": "b16", "r": "b32", "x": "b64", "f": "f32", "g": "f64"} {
		fmt.Fprintf(&registers, ".reg .%s", of)
		for place := range places {
			fmt.Fprintf(&registers, " %%%s%s,", class, place)
		}
		fmt.Fprintf(&registers, " %%%st, %%%su;\n", class, class)
	}
	return ".global .b64 sink; .global .b8 text[4] = {37, 100, 10, 0};\n" + readFunctions + ".visible .entry k(.param .u64 out)\n{\n.local .align 16 .b8 own_room[64]; .local .align 8 .b8 room[96]; .shared .align 128 .b8 tile[4096];\n" +
		".reg .pred %p, %not, %q; .reg .b64 %out, %tile, %own; .reg .b32 %tile32; .reg .v2 .b32 %v;\n" + registers.String() +
		"ld.param.u64 %out, [out]; mov.u32 %tile32, %laneid; setp.eq.u32 %q, %tile32, 0; mul.wide.u32 %tile, %tile32, 16; mov.u64 %own, tile; add.u64 %tile, %tile, %own; cvt.u32.u64 %tile32, %tile; mov.u64 %own, own_room; setp.eq.u64 %p, %out, %out; not.pred %not, %p;\n" +
		"P: .callprototype (.reg .b32 _) _ (.reg .b32 _);\nmov.b64 %xt, 0; st.local.b64 [%own], %xt; @%q st.bulk.weak.shared::cta [tile], 2048, 0; bar.warp.sync -1;\n" + loads.String() +
		"mov.b16 %ht, 0; mov.b32 %rt, 0; mov.b64 %xt, 0; mov.f32 %ft, 0f00000000; mov.f64 %gt, 0d0000000000000000;\n" + code + "\n"
}

// runReader runs such a kernel.
func runReader(t *testing.T, code, unwritten string) *simt.Fault {
	t.Helper()
	p := program(t, reader(code, unwritten)+"ret;\n}\n")
	out := onHeap[uint64](16 + 8)
	at := (uint64(uintptr(unsafe.Pointer(&out[0]))) + 63) &^ 63
	threads := uint32(1)
	if strings.Contains(code, "tmatrix.") || strings.Contains(code, "ldmatrix.") {
		threads = 32
	}
	written := simt.NewWritten(at, 128)
	written.Mark(at, 72)
	fault := launch(t, p, "k", simt.Launch{Block: [3]uint32{threads, 1, 1}, Check: simt.CheckFull, Written: []*simt.Written{written}, Args: []simt.Arg{{Bits: at, Pointer: true, Bytes: 128}}})
	runtime.KeepAlive(out)
	return fault
}

// usesOfTargets stores every register that may be a target.
const usesOfTargets = "\nst.global.b16 [%out], %ht; st.global.b32 [%out], %rt; st.global.b64 [%out], %xt; st.global.f32 [%out], %ft; st.global.f64 [%out], %gt;"

func TestEveryInstructionKnowsWhatNobodyWrote(t *testing.T) {
	tested := map[string]bool{}
	for _, code := range readers {
		for _, word := range strings.FieldsFunc(code, func(r rune) bool { return strings.ContainsRune(" ;{}", r) }) {
			tested[strings.Split(word, ".")[0]] = true
		}
		require.Nil(t, runReader(t, code+usesOfTargets, ""), "%s with all written", code)
		for place := range places {
			if !strings.ContainsAny(code, "%") || !slices.ContainsFunc([]string{"h", "r", "x", "f", "g"}, func(class string) bool { return strings.Contains(code, "%"+class+place) }) {
				continue
			}
			fault := runReader(t, code+usesOfTargets, place)
			require.NotNil(t, fault, "%s with %s unwritten", code, place)
			require.Equal(t, simt.Uninitialised, fault.Kind, "%s with %s unwritten: %v", code, place, fault)
			require.Contains(t, fault.Instruction, "ld.local", "%s with %s unwritten: %v", code, place, fault)
		}
	}
	tested["video"] = tested["vadd"]
	for op := ptx.OpUnknown + 1; op.String() != ptx.OpUnknown.String(); op++ {
		name := op.String()
		require.True(t, tested[name] || slices.Contains(readNothing, name) || slices.Contains(cannotRun, name), "%s has no row", name)
	}
}

// prints prints the first value of local memory from a place on.
func prints(place string) string {
	return "{ .param .b64 t; .param .b64 v; .param .b32 n; cvta.local.u64 %xu, " + place + "; st.param.b64 [v], %xu; mov.u64 %xu, text; st.param.b64 [t], %xu; call (n), vprintf, (t, v); ld.param.b32 %rt, [n]; }"
}

// What is only moved is no fault, and a register or place that gets another value has none of it left.
func TestWhatNobodyWroteMayBeMoved(t *testing.T) {
	for _, code := range []string{
		"mov.b32 %ru, %ra; mov.b64 %xu, {%ra, %rb};", "mov.b32 %rt, %ra; mov.b32 %rt, %rb;", "mov.b32 %rt, %ra; selp.b32 %rt, %ra, %rb, %not;", "mov.v2.b32 {%ru, %rt}, {%ra, %rb};",
		"mov.v2.b32 %v, {%ra, %ra}; ld.global.v2.b32 %v, [%out]; st.global.v2.b32 [%out], %v;", "mov.b32 %rt, %ra; ld.global.b32 %rt, [%out];",
		"mov.b32 %rt, %ra; bar.red.popc.u32 %rt, %rz, %p;", "mov.b32 %rt, %ra; elect.sync %rt|%q, -1;", "mov.b32 %rt, %ra; atom.global.exch.b32 %rt, [%out], %rb;",
		"call (%ru), same, (%ra);", "mov.b32 %rt, %ra; call (%rt), same, (%rb);", "mov.b32 %rt, %ra; call (%rt), mixed, (%rb);", "call (%ru), mixed, (%ra);",
		"{ .param .b64 p[2]; .param .b64 q[2]; st.param.v2.b64 [p], {%xa, %xb}; call (q), passed, (p); ld.param.v2.b64 {%xu, %xt}, [q]; }",
		"st.local.v2.b32 [%own], {%ra, %rb}; ld.local.b32 %rt, [%own+4];", "st.local.b32 [%own], %ra; st.local.b32 [%own], %rb; ld.local.b32 %rt, [%own];", prints("%own"),
		"ld.local.v2.b64 {%xt, %xu}, [%own];", "ld.global.v2.b64 {%xt, %xu}, [%out+64];", "st.shared.b32 [%tile32+2048], 1; ld.shared.v2.b32 {%rt, %ru}, [%tile32+2048];",
		"mov.b32 %ru, %ra; @%p mov.b32 %ru, %rb; mov.b32 %rt, %ru;", "st.local.b32 [4], %ra;",
	} {
		fault := runReader(t, code+usesOfTargets, "a")
		require.Nil(t, fault, "%s: %v", code, fault)
	}
}

// What an earlier block left undefined says nothing of a later one, which may run in its place: neither its registers nor its local memory.
func TestBlocksDoNotInheritWhatIsUndefined(t *testing.T) {
	for code, want := range map[string]string{
		"@%first ld.local.u32 %r5, [room]; @!%first add.u32 %r6, %r5, 1;":                                                                          "",
		"@%first ld.local.u32 %r5, [room]; @%first st.local.u32 [room+8], %r5; @!%first ld.local.u32 %r5, [room+8]; @!%first add.u32 %r6, %r5, 1;": "block (1,0,0), thread (0,0,0): reads 4 bytes at byte 8 of local memory",
	} {
		k, err := program(t, ".visible .entry k()\n{\n.local .align 8 .b8 room[16]; .reg .pred %first; .reg .b32 %r<9>;\nmov.u32 %r1, %ctaid.x; setp.eq.u32 %first, %r1, 0;\n"+code+"\nret;\n}\n").Kernel("k")
		require.NoError(t, err)
		r, err := k.Start(simt.Launch{Grid: [3]uint32{2, 1, 1}, Block: [3]uint32{1, 1, 1}, Check: simt.CheckFull})
		require.NoError(t, err)
		r.Work()
		if want == "" {
			require.Nil(t, r.Fault(), "%v", r.Fault())
			continue
		}
		require.NotNil(t, r.Fault(), code)
		require.Contains(t, r.Fault().Error(), want)
	}
}

// Every way of reading memory that nobody wrote is told at the instruction that reads, also where functions carry the value on.
func TestEveryReadKnowsWhatNobodyWrote(t *testing.T) {
	for _, c := range [][2]string{
		{"ld.local.v2.b64 {%xu, %xt}, [%own];", "8 bytes at byte 8 of local memory, which nobody has written (ld.local.v2"}, {"cvta.local.u64 %xu, %own; ld.b64 %xt, [%xu+16];", "(ld.b64"},
		{"ld.global.v2.b64 {%xu, %xt}, [%out+64];", "8 bytes at byte 72 of argument 0 (out), which nobody has written (ld.global.v2"}, {"ld.volatile.global.b32 %rt, [%out+72];", "(ld.volatile"},
		{"st.shared.b32 [%tile32+2048], 1; ld.shared.v2.b32 {%ru, %rt}, [%tile32+2048];", "4 bytes at byte 2052 of tile in shared memory, which nobody has written (ld.shared.v2"},
		{"atom.global.add.u32 %ru, [%out+72], 1;", "(atom"}, {"atom.global.exch.b32 %rt, [%out+72], 1;", "(atom.global.exch.b32, PTX line 85); used by: st.global"}, {"red.shared.add.u32 [%tile32+2048], 1;", "(red"},
		{"cvta.local.u64 %xu, %own; atom.add.u32 %ru, [%xu+16], 1;", "(atom"}, {"cp.async.ca.shared.global [%tile32], [%out+72], 8;", "(cp.async"},
		{"cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [%tile32], [%out+80], 16, [%tile32];", "(cp.async.bulk"},
		{"cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%out+80], [%tile32], 16;", "4 bytes at byte 80 of argument 0 (out), which nobody has written (cp.reduce"}, {"ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%ru}, [%tile32+2048];", "(ldmatrix"},
		{"wmma.load.a.sync.aligned.row.m8n8k4.shared.f64 {%gu}, [%tile32+2048];", "(wmma"},
		{"{ .param .b64 t; .param .b64 v; .param .b32 n; mov.u64 %xu, text; st.param.b64 [t], %xu; call (n), vprintf, (t, v); }", "8 bytes at byte 168 of local memory, which nobody has written (call"},
		{prints("%own") + prints("%own+16"), "4 bytes at byte 16 of local memory, which nobody has written (call"}, {"ld.shared.b32 %ru, [%tile32+2048]; call (%rt), same, (%ru);", "(ld.shared.b32, PTX line 85); used by: st.global.b32"},
		{"ld.shared.b32 %ru, [%tile32+2048]; { .param .b32 p; .param .b32 q; st.param.b32 [p], %ru; call (q), kept, (p); ld.param.b32 %rt, [q]; }", "(ld.shared.b32, PTX line 85); used by: st.global.b32"},
		{"{ .param .b32 p; .param .b32 q; call (q), kept, (p); ld.param.b32 %rt, [q]; }", "which nobody has written (ld.param.b32, PTX line 7); used by: st.global.b32"},
	} {
		fault := runReader(t, c[0]+usesOfTargets, "")
		require.NotNil(t, fault, c[0])
		require.Equal(t, simt.Uninitialised, fault.Kind, "%s: %v", c[0], fault)
		require.Contains(t, fault.Error(), c[1], c[0])
	}
}
