// Tests with kernels written by hand, one for each thing that a GPU does differently from a plain loop.

package simt_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/dagrun/dagrun/cudart/host/simt"
)

const header = ".version 7.8\n.target sm_90\n.address_size 64\n"

func program(t testing.TB, text string) *simt.Program {
	t.Helper()
	p, err := simt.Load("test.ptx", header+text)
	require.NoError(t, err)
	return p
}

// entry wraps a body in a kernel `k(out)` with registers of every kind, %out and %me ready.
func entry(body string) string {
	return ".visible .entry k(.param .u64 out)\n{\n.reg .pred %p<20>; .reg .b16 %h<20>; .reg .b32 %r<40>; .reg .b64 %rd<40>; .reg .f32 %f<20>; .reg .f64 %fd<20>;\n" +
		".reg .b32 %me; .reg .b64 %out;\nld.param.u64 %out, [out]; cvta.to.global.u64 %out, %out; mov.u32 %me, %tid.x;\n" + body + "\nret;\n}\n"
}

// put stores a register in the thread's element of the output.
func put(register string) string {
	return "\nmul.wide.u32 %rd39, %me, 4; add.s64 %rd39, %out, %rd39; st.global.u32 [%rd39], " + register + ";\n"
}

// run launches and returns the output as words.
func run(t testing.TB, p *simt.Program, l simt.Launch, words int) ([]uint32, *simt.Fault) {
	t.Helper()
	out := make([]uint32, words+64)
	start := unsafe.SliceData(out)
	l.Args = []simt.Arg{{Bits: uint64(uintptr(unsafe.Pointer(start))), Pointer: true, Bytes: int64(4 * words)}}
	fault := launch(t, p, "k", l)
	runtime.KeepAlive(out)
	return out[:words], fault
}

func launch(t testing.TB, p *simt.Program, name string, l simt.Launch) *simt.Fault {
	t.Helper()
	k, err := p.Kernel(name)
	require.NoError(t, err)
	if l.Grid == [3]uint32{} {
		l.Grid = [3]uint32{1, 1, 1}
	}
	r, err := k.Start(l)
	require.NoError(t, err)
	var workers errgroup.Group
	for range 3 {
		workers.Go(func() error { r.Work(); return nil })
	}
	require.NoError(t, workers.Wait())
	return r.Fault()
}

// escaped keeps the result of onHeap off the stack, which Go may move.
var escaped any

// onHeap returns memory whose address stays valid, so that kernels may hold it.
func onHeap[T any](n int) []T {
	m := make([]T, n)
	escaped = m
	return m
}

func block(n uint32) simt.Launch { return simt.Launch{Block: [3]uint32{n, 1, 1}} }

func TestLanesThatDivergeReconverge(t *testing.T) {
	p := program(t, entry(`
		and.b32 %r1, %me, 1; setp.eq.u32 %p1, %r1, 0; mov.u32 %r2, 0;
		@%p1 bra EVEN;
		add.u32 %r2, %me, 100; bra JOIN;
		EVEN: mov.u32 %r3, %me;
		LOOP: add.u32 %r2, %r2, 2; sub.u32 %r3, %r3, 1; setp.gt.s32 %p2, %r3, 0; @%p2 bra LOOP;
		JOIN: vote.sync.ballot.b32 %r4, 1, 0xffffffff;
		setp.ne.u32 %p3, %r4, 0xffffffff; @%p3 mov.u32 %r2, 9999;`+put("%r2")))
	out, fault := run(t, p, block(32), 32)
	require.Nil(t, fault)
	for i, got := range out {
		want := uint32(i + 100)
		if i%2 == 0 {
			want = uint32(2 * max(i, 1))
		}
		require.Equal(t, want, got, "lane %d", i)
	}
}

func TestSharedMemoryAndBarriers(t *testing.T) {
	p := program(t, ".shared .align 4 .b8 cells[4096];\n"+entry(`
		mov.u32 %r1, cells; shl.b32 %r2, %me, 2; add.u32 %r3, %r1, %r2; st.shared.u32 [%r3], %me;
		bar.sync 0;
		mov.u32 %r4, %ntid.x; sub.u32 %r4, %r4, 1; sub.u32 %r4, %r4, %me; shl.b32 %r4, %r4, 2; add.u32 %r5, %r1, %r4;
		ld.shared.u32 %r6, [%r5];`+put("%r6")))
	out, fault := run(t, p, block(1000), 1000)
	require.Nil(t, fault)
	for i, got := range out {
		require.Equal(t, uint32(999-i), got)
	}
}

func TestBarriersThatCount(t *testing.T) {
	p := program(t, entry(`
		and.b32 %r1, %me, 3; setp.eq.u32 %p1, %r1, 0;
		bar.red.popc.u32 %r2, 0, %p1; bar.red.and.pred %p2, 0, %p1; bar.red.or.pred %p3, 0, %p1;
		selp.b32 %r3, 1000, 0, %p2; selp.b32 %r4, 500, 0, %p3; add.u32 %r2, %r2, %r3; add.u32 %r2, %r2, %r4;`+put("%r2")))
	out, fault := run(t, p, block(96), 96)
	require.Nil(t, fault)
	for _, got := range out {
		require.Equal(t, uint32(24+500), got)
	}
}

func TestShufflesAndReductions(t *testing.T) {
	p := program(t, entry(`
		mov.u32 %r1, %me;
		shfl.sync.bfly.b32 %r2, %r1, 16, 31, -1; add.u32 %r1, %r1, %r2; shfl.sync.bfly.b32 %r2, %r1, 8, 31, -1; add.u32 %r1, %r1, %r2;
		shfl.sync.bfly.b32 %r2, %r1, 4, 31, -1; add.u32 %r1, %r1, %r2; shfl.sync.bfly.b32 %r2, %r1, 2, 31, -1; add.u32 %r1, %r1, %r2;
		shfl.sync.bfly.b32 %r2, %r1, 1, 31, -1; add.u32 %r1, %r1, %r2;
		shfl.sync.up.b32 %r3|%p1, %me, 1, 0, -1; @!%p1 add.u32 %r3, %r3, 1000;
		redux.sync.max.u32 %r4, %me, -1; match.any.sync.b32 %r5, 7, -1; popc.b32 %r5, %r5;
		mad.lo.u32 %r6, %r1, 1, %r3; mad.lo.u32 %r6, %r4, 10000, %r6; mad.lo.u32 %r6, %r5, 1000000, %r6;`+put("%r6")))
	out, fault := run(t, p, block(32), 32)
	require.Nil(t, fault)
	for i, got := range out {
		up := max(i-1, 0)
		if i == 0 {
			up = 1000
		}
		require.Equal(t, uint32(496+up+31*10000+32*1000000), got, "lane %d", i)
	}
}

// One half of a warp names only itself in the mask: it neither waits for the other half nor includes it.
func TestHalvesOfAWarpVoteAlone(t *testing.T) {
	p := program(t, entry(`
		setp.lt.u32 %p1, %me, 16; selp.b32 %r1, 0xffff, 0xffff0000, %p1; setp.eq.u32 %p2, %me, 3;
		vote.sync.any.pred %p3, %p2, %r1; selp.b32 %r2, 1, 0, %p3;`+put("%r2")))
	out, fault := run(t, p, block(32), 32)
	require.Nil(t, fault)
	for i, got := range out {
		require.Equal(t, i < 16, got == 1, "lane %d", i)
	}
}

func TestASpinLockMakesProgress(t *testing.T) {
	p := program(t, ".global .u32 lock;\n.global .u32 count;\n"+entry(`
		TRY: atom.global.cas.b32 %r1, [lock], 0, 1; setp.ne.u32 %p1, %r1, 0; @%p1 bra TRY;
		ld.volatile.global.u32 %r2, [count]; add.u32 %r2, %r2, 1; st.volatile.global.u32 [count], %r2; membar.gl;
		atom.global.exch.b32 %r3, [lock], 0;`))
	l := block(64)
	l.Grid = [3]uint32{20, 1, 1}
	_, fault := run(t, p, l, 1)
	require.Nil(t, fault)
	count, ok := p.Variable("count")
	require.True(t, ok)
	require.Equal(t, uint32(20*64), binary.LittleEndian.Uint32(count))
}

// Lanes that come to a vote first wait for those that take longer in the same round of a loop, whichever these are.
func TestLanesWaitForEachOtherInEveryRound(t *testing.T) {
	for _, rest := range []string{"@%p2 bra LOOP; add.u32 %r5, %r5, 1; bra LOOP;", "@%p2 bra LONG; bra LOOP; LONG: add.u32 %r5, %r5, 1; bra LOOP;"} {
		p := program(t, entry(`
			mov.u32 %r1, 0; mov.u32 %r3, 0; and.b32 %r4, %me, 1; setp.eq.u32 %p2, %r4, 0;
			LOOP: vote.sync.ballot.b32 %r2, 1, -1; popc.b32 %r2, %r2; add.u32 %r3, %r3, %r2; add.u32 %r1, %r1, 1; setp.ge.u32 %p1, %r1, 3; @%p1 bra END;
			`+rest+`
			END:`+put("%r3")))
		out, fault := run(t, p, block(32), 32)
		require.Nil(t, fault, "%v", fault)
		for _, v := range out {
			require.EqualValues(t, 3*32, v)
		}
	}
}

func TestABlockHasSixteenBarriers(t *testing.T) {
	for name, want := range map[int]string{15: "", 16: "there is no barrier 16: a block has 16", 17: "there is no barrier 17: a block has 16"} {
		_, fault := run(t, program(t, entry(fmt.Sprintf("mov.u32 %%r1, %d; bar.sync %%r1;", name))), block(32), 1)
		if want == "" {
			require.Nil(t, fault, "%v", fault)
			continue
		}
		require.NotNil(t, fault)
		require.Equal(t, simt.Stuck, fault.Kind)
		require.Contains(t, fault.Error(), want)
	}
}

// A lane that waits for another of its warp by plain reads lets it run all the same, whichever comes first in the text.
func TestALoopThatDoesNotPollLetsOthersRun(t *testing.T) {
	const wait, set = "LOOP: ld.global.u32 %r1, [%out]; setp.eq.u32 %p2, %r1, 0; @%p2 bra LOOP;\n", "st.global.u32 [%out], 1;\n"
	for _, code := range []string{
		"setp.eq.u32 %p1, %me, 1; @%p1 bra SET;\n" + wait + "bra END;\nSET: " + set + "END:",
		"setp.ne.u32 %p1, %me, 1; @%p1 bra LOOP;\n" + set + "bra END;\n" + wait + "END:",
	} {
		l := block(3)
		l.MaxSteps = 1 << 20
		out, fault := run(t, program(t, entry(code)), l, 1)
		require.Nil(t, fault, "%v: %s", fault, code)
		require.EqualValues(t, 1, out[0])
	}
}

// All blocks wait for each other, which only works if every one of them stays resident and makes progress.
func TestABarrierOfTheWholeGrid(t *testing.T) {
	p := program(t, ".global .u32 arrived;\n"+entry(`
		setp.ne.u32 %p1, %me, 0; @%p1 bra DONE;
		mov.u32 %r1, %nctaid.x; atom.global.add.u32 %r2, [arrived], 1;
		WAIT: ld.volatile.global.u32 %r3, [arrived]; setp.lt.u32 %p2, %r3, %r1; @%p2 bra WAIT;
		DONE: bar.sync 0;`))
	l := block(64)
	l.Grid = [3]uint32{200, 1, 1}
	_, fault := run(t, p, l, 1)
	require.Nil(t, fault)
}

func TestDeviceFunctions(t *testing.T) {
	p := program(t, `
		.func (.param .b32 result) power(.param .b32 base, .param .b32 exponent)
		{
			.reg .pred %p<2>; .reg .b32 %r<6>;
			ld.param.u32 %r1, [base]; ld.param.u32 %r2, [exponent];
			setp.eq.u32 %p1, %r2, 0; @%p1 bra ONE;
			sub.u32 %r3, %r2, 1;
			{ .param .b32 a; .param .b32 b; .param .b32 back;
			  st.param.b32 [a], %r1; st.param.b32 [b], %r3; call.uni (back), power, (a, b); ld.param.b32 %r4, [back]; }
			mul.lo.u32 %r4, %r4, %r1; bra OUT;
			ONE: mov.u32 %r4, 1;
			OUT: st.param.b32 [result], %r4; ret;
		}
		`+entry(`
			and.b32 %r2, %me, 7; add.u32 %r1, %me, 1; mov.u32 %r3, 0; setp.gt.u32 %p1, %me, 20; @%p1 bra SKIP;
			{ .param .b32 a; .param .b32 b; .param .b32 back;
			  st.param.b32 [a], %r1; st.param.b32 [b], %r2; call (back), power, (a, b); ld.param.b32 %r3, [back]; }
			SKIP:`+put("%r3")))
	out, fault := run(t, p, block(32), 32)
	require.Nil(t, fault)
	for i, got := range out {
		want := uint32(1)
		for range i & 7 {
			want *= uint32(i + 1)
		}
		if i > 20 {
			want = 0
		}
		require.Equal(t, want, got, "lane %d", i)
	}
}

// Functions may call each other 4096 deep, as far as their local memory goes. Here lanes from 5 on call one that calls itself some times.
func TestHowDeepFunctionsMayCallEachOther(t *testing.T) {
	for _, c := range []struct {
		local string
		calls int
		deep  bool
	}{{"", 4096, true}, {"", 4097, false}, {".local .align 16 .b8 room[1024];", 16, true}, {".local .align 16 .b8 room[1024];", 18, false}} {
		p := program(t, ".func (.reg .b32 r) down(.reg .b32 n)\n{\n"+c.local+` .reg .pred %p; .reg .b32 %m;
setp.le.u32 %p, n, 1; @%p bra LAST; sub.u32 %m, n, 1; call (r), down, (%m); add.u32 r, r, 1; ret;
LAST: mov.u32 r, 1; ret;
}
`+entry(fmt.Sprintf("mov.u32 %%r1, 0; setp.lt.u32 %%p1, %%me, 5; @%%p1 bra END; mov.u32 %%r2, %d; call (%%r1), down, (%%r2); END:", c.calls)+put("%r1")))
		out, fault := run(t, p, block(7), 7)
		if c.deep {
			require.Nil(t, fault, "%v", fault)
			require.Equal(t, []uint32{0, 0, 0, 0, 0, uint32(c.calls), uint32(c.calls)}, out)
			continue
		}
		require.NotNil(t, fault, "%+v", c)
		require.Equal(t, simt.Overflowed, fault.Kind)
		require.Equal(t, [3]uint32{5, 0, 0}, fault.Thread)
		require.Contains(t, fault.Error(), "device functions call each other too deeply: the stack of a thread has ")
	}
}

// Each lane goes to its entry of a branch table, alone or with others, and all meet again; an index past the end is a fault of its lane.
func TestBranchTables(t *testing.T) {
	p := program(t, ".visible .entry k(.param .u64 out, .param .u32 n)\n{\n.reg .pred %p<9>; .reg .b32 %r<9>, %me; .reg .b64 %rd39, %out;\nld.param.u64 %out, [out]; ld.param.u32 %r1, [n]; mov.u32 %me, %tid.x;\n"+
		"TABLE: .branchtargets A, B, C, A;\nmul.lo.u32 %r2, %me, 7; rem.u32 %r2, %r2, %r1; setp.ge.u32 %p1, %me, 30; @%p1 bra END; brx.idx %r2, TABLE;\n"+
		"A: mov.u32 %r3, 100; bra END;\nB: mov.u32 %r3, 200; bra END;\nC: mov.u32 %r3, 300;\nEND: activemask.b32 %r4; popc.b32 %r4, %r4; @%p1 mov.u32 %r3, 0; add.u32 %r3, %r3, %r4;"+put("%r3")+"ret;\n}\n")
	for n, wrong := range map[uint32]uint32{1: 0, 2: 0, 3: 0, 4: 0, 5: 2} { // lane 2 is the first with index 4 of 5
		out := onHeap[uint32](32)
		fault := launch(t, p, "k", simt.Launch{Block: [3]uint32{32, 1, 1}, Args: []simt.Arg{{Bits: uint64(uintptr(unsafe.Pointer(&out[0]))), Pointer: true, Bytes: 128}, {Bits: uint64(n)}}})
		if wrong != 0 {
			require.Equal(t, simt.BadCall, fault.Kind)
			require.Equal(t, [3]uint32{wrong, 0, 0}, fault.Thread)
			require.Contains(t, fault.Error(), "the branch table has 4 entries, but the index is 4")
			continue
		}
		require.Nil(t, fault, "%v", fault)
		for lane, v := range out {
			want := []uint32{100, 200, 300, 100}[uint32(lane)*7%n] + 32
			if lane >= 30 {
				want = 32
			}
			require.Equal(t, want, v, "lane %d of a table of %d", lane, n)
		}
	}
}

// A table may hold addresses of variables beside those of functions; both lead where they say.
func TestTablesOfVariablesAndFunctions(t *testing.T) {
	p := program(t, ".global .u32 cell = 7;\n.func (.reg .u32 r) twice(.reg .u32 x) { add.u32 r, x, x; ret; }\n.global .align 8 .u64 mixed[3] = {generic(cell), twice, generic(cell)};\n"+entry(
		"ld.global.u64 %rd1, [mixed]; ld.u32 %r1, [%rd1]; ld.global.u64 %rd2, [mixed+8]; P: .callprototype (.reg .u32 _) _ (.reg .u32 _);\ncall (%r2), %rd2, (%r1), P; ld.global.u64 %rd3, [mixed+16]; ld.u32 %r3, [%rd3]; mad.lo.u32 %r2, %r3, 100, %r2;"+put("%r2")))
	out, fault := run(t, p, block(1), 1)
	require.Nil(t, fault)
	require.EqualValues(t, 714, out[0])
}

// A register and a number are added before the instruction, in the width of its type.
func TestOperandsOfARegisterAndANumber(t *testing.T) {
	out, fault := run(t, program(t, entry("mov.u32 %r1, 0xfffffffe; mov.u32 %r2, %r1+5; cvt.u64.u32 %rd1, %r1; mov.u64 %rd2, %rd1+5; shr.u64 %rd2, %rd2, 32; cvt.u32.u64 %r3, %rd2; mad.lo.u32 %r2, %r3, 100, %r2;"+put("%r2"))), block(1), 1)
	require.Nil(t, fault)
	require.EqualValues(t, 103, out[0])
}

// A register of 128 bits is loaded and stored whole.
func TestRegistersOf128Bits(t *testing.T) {
	p := program(t, ".shared .align 16 .b8 room[16];\n"+entry(`.reg .b128 %q, %s; st.shared.v4.u32 [room], {1, 2, 3, 4};
ld.shared.b128 %q, [room]; mov.b128 %s, %q; add.u64 %rd1, %out, 16; st.global.b128 [%out], %q; st.global.b128 [%rd1], %s;`))
	out := onHeap[uint32](12)
	at := (uint64(uintptr(unsafe.Pointer(&out[0]))) + 15) &^ 15
	for _, level := range []simt.Check{simt.CheckNothing, simt.CheckFull} {
		clear(out)
		fault := launch(t, p, "k", simt.Launch{Block: [3]uint32{1, 1, 1}, Check: level, Args: []simt.Arg{{Bits: at, Pointer: true, Bytes: 32}}})
		require.Nil(t, fault, "%v", fault)
		first := (at - uint64(uintptr(unsafe.Pointer(&out[0])))) / 4
		require.Equal(t, []uint32{1, 2, 3, 4, 1, 2, 3, 4}, out[first:first+8])
	}
}

// The fourth part of a place is 0.
func TestPlacesHaveThreeParts(t *testing.T) {
	for _, register := range []string{"tid", "ntid", "ctaid", "nctaid"} {
		out, fault := run(t, program(t, entry("mov.u32 %r1, %"+register+".w;"+put("%r1"))), simt.Launch{Grid: [3]uint32{1, 1, 1}, Block: [3]uint32{2, 2, 2}}, 8)
		require.Nil(t, fault)
		require.Equal(t, make([]uint32, 8), out, register)
	}
}

func TestCallsThroughAddresses(t *testing.T) {
	p := program(t, `
		.func (.param .b32 result) twice(.param .b32 v) { .reg .b32 %r<3>; ld.param.u32 %r1, [v]; shl.b32 %r1, %r1, 1; st.param.b32 [result], %r1; ret; }
		.func (.param .b32 result) thrice(.param .b32 v) { .reg .b32 %r<3>; ld.param.u32 %r1, [v]; mul.lo.u32 %r1, %r1, 3; st.param.b32 [result], %r1; ret; }
		.global .align 8 .u64 table[2] = {twice, thrice};
		`+entry(`
			and.b32 %r1, %me, 1; mul.wide.u32 %rd1, %r1, 8; mov.u64 %rd2, table; add.s64 %rd2, %rd2, %rd1; ld.global.u64 %rd3, [%rd2];
			{ .param .b32 v; .param .b32 back; st.param.b32 [v], %me;
			  shape: .callprototype (.param .b32 _) _ (.param .b32 _);
			  call (back), %rd3, (v), shape; ld.param.b32 %r2, [back]; }`+put("%r2")))
	out, fault := run(t, p, block(32), 32)
	require.Nil(t, fault)
	for i, got := range out {
		require.Equal(t, uint32(i*(2+i%2)), got)
	}
}

// A function that is called through its address as if it had more parameters and results uses those that it has.
func TestCallsOfFunctionsWithFewerParameters(t *testing.T) {
	p := program(t, ".func (.reg .b32 r) twice(.reg .b32 v) { add.u32 r, v, v; ret; }\n"+entry(`
		P: .callprototype (.reg .b32 _, .reg .b32 _) _ (.reg .b32 _, .reg .b32 _);
		mov.u64 %rd1, twice; mov.u32 %r3, 5; call (%r2, %r3), %rd1, (%me, %r3), P; mad.lo.u32 %r2, %r3, 100, %r2;`+put("%r2")))
	out, fault := run(t, p, block(32), 32)
	require.Nil(t, fault)
	for i, got := range out {
		require.EqualValues(t, 2*i+500, got)
	}
}

func TestPrinting(t *testing.T) {
	p := program(t, `
		.extern .func (.param .b32 r) vprintf(.param .b64 f, .param .b64 a);
		`+text("text", "lane %d says %5.2f, %s and %lld%%\n")+text("word", "hello")+entry(`
			.local .align 8 .b8 room[32]; .reg .b64 %room;
			mov.u64 %room, room; st.local.u32 [%room], %me; st.local.f64 [%room+8], 0d400921fb54442d18;
			mov.u64 %rd1, word; cvta.global.u64 %rd1, %rd1; st.local.u64 [%room+16], %rd1; st.local.u64 [%room+24], -7;
			cvta.local.u64 %rd2, %room; mov.u64 %rd3, text; cvta.global.u64 %rd3, %rd3;
			{ .param .b64 f; .param .b64 a; .param .b32 r; st.param.b64 [f], %rd3; st.param.b64 [a], %rd2; call.uni (r), vprintf, (f, a); ld.param.b32 %r1, [r]; }`))
	var mu sync.Mutex
	var printed strings.Builder
	l := block(2)
	l.Print = func(text string) { mu.Lock(); printed.WriteString(text); mu.Unlock() }
	_, fault := run(t, p, l, 1)
	require.Nil(t, fault)
	require.Equal(t, "lane 0 says  3.14, hello and -7%\nlane 1 says  3.14, hello and -7%\n", printed.String())
}

// A string that nothing ends is read for 64 KiB.
func TestStringsThatDoNotEnd(t *testing.T) {
	p := program(t, `
		.extern .func (.param .b32 r) vprintf(.param .b64 f, .param .b64 a);
		`+text("text", "%s")+entry(`
			.local .align 8 .b8 room[8]; .reg .b64 %room; mov.u64 %room, room; st.local.u64 [%room], %out; cvta.local.u64 %rd2, %room;
			mov.u64 %rd3, text; cvta.global.u64 %rd3, %rd3;
			{ .param .b64 f; .param .b64 a; .param .b32 r; st.param.b64 [f], %rd3; st.param.b64 [a], %rd2; call.uni (r), vprintf, (f, a); }`))
	endless := onHeap[byte](70000)
	for i := range endless {
		endless[i] = 'x'
	}
	var printed string
	l := block(1)
	l.Print = func(text string) { printed = text }
	l.Args = []simt.Arg{{Bits: uint64(uintptr(unsafe.Pointer(&endless[0]))), Pointer: true, Bytes: int64(len(endless))}}
	require.Nil(t, launch(t, p, "k", l))
	runtime.KeepAlive(endless)
	require.Equal(t, strings.Repeat("x", 1<<16), printed)
}

func TestFaultsNameTheirPlace(t *testing.T) {
	for _, c := range []struct {
		name, body, want string
		kind             simt.FaultKind
	}{
		{"past the end", "setp.ne.u32 %p1, %me, 37; @%p1 bra OK; st.global.u32 [%out+1024], %me; OK:", "thread (37,0,0): an access of 4 bytes, 768 bytes past the end of argument 0 (out) (st.global.u32, PTX line 9)", simt.OutOfBounds},
		{"before the start", "st.global.u32 [%out+-4], %me;", "an access of 4 bytes, 4 bytes before the start of argument 0 (out)", simt.OutOfBounds},
		{"across the end", "st.global.v4.u32 [%out+240], {%me, %me, %me, %me}; ld.global.u64 %rd1, [%out+256];", "past the end of argument 0", simt.OutOfBounds},
		{"null", "mov.u64 %rd1, 0; ld.global.u32 %r1, [%rd1];", "an access through a null pointer", simt.OutOfBounds},
		{"misaligned", "ld.global.u32 %r1, [%out+2];", "an access of 4 bytes at an address that is not a multiple of 4", simt.Misaligned},
		{"trap", "trap;", "the kernel stopped itself (trap)", simt.Trapped},
		{"barrier", "setp.lt.u32 %p1, %me, 5; @%p1 bra HERE; bar.sync 1; bra OUT; HERE: bar.sync 2; OUT:", "wait forever", simt.Stuck},
		{"lanes", "setp.lt.u32 %p1, %me, 5; @%p1 bra HERE; bar.warp.sync -1; bra OUT; HERE: shfl.sync.idx.b32 %r1, %me, 0, 31, -1; bar.sync 0; OUT:", "wait forever", simt.Stuck},
		{"no function", "mov.u64 %rd1, 42; f: .callprototype _ (); call %rd1, (), f;", "a call through the address 0x2a", simt.BadCall},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, fault := run(t, program(t, entry(c.body)), block(64), 64)
			require.NotNil(t, fault)
			require.Equal(t, c.kind, fault.Kind, "%v", fault)
			require.Contains(t, fault.Error(), c.want)
		})
	}
}

// Each lane adds to a word of its own. A lane that is outside, or between two words, stops the kernel, and nothing outside changes.
func TestAtomicsStayInsideTheirMemory(t *testing.T) {
	const before, words = 64, 32
	for _, c := range []struct {
		space string
		shift int
		kind  simt.FaultKind
		says  string
	}{
		{"global", 0, 0, ""},
		{"global", 4, simt.OutOfBounds, "thread (31,0,0): an access of 4 bytes, 0 bytes past the end of argument 0 (out)"},
		{"global", -4, simt.OutOfBounds, "thread (0,0,0): an access of 4 bytes, 4 bytes before the start of argument 0 (out)"},
		{"global", 1, simt.Misaligned, "thread (0,0,0): an access of 4 bytes at an address that is not a multiple of 4"},
		{"global", 2, simt.Misaligned, "thread (0,0,0): an access of 4 bytes at an address that is not a multiple of 4"},
		{"shared", 0, 0, ""},
		{"shared", 4, simt.OutOfBounds, "thread (31,0,0): an access of 4 bytes at byte 128 of shared memory, but the block has only 128 bytes"},
		{"shared", -4, simt.OutOfBounds, "thread (0,0,0): an access of 4 bytes"},
		{"shared", 2, simt.Misaligned, "thread (0,0,0): an access of 4 bytes at an address that is not a multiple of 4"},
	} {
		for _, form := range []string{"atom.%s.add.u32 %%r9, [%%%s], 3;", "red.%s.add.u32 [%%%s], 3;"} {
			address, first := "rd3", fmt.Sprintf("add.s64 %%rd3, %%out, %d; mul.wide.u32 %%rd4, %%me, 4; add.s64 %%rd3, %%rd3, %%rd4;", c.shift)
			last := ""
			if c.space == "shared" {
				address, first = "r4", fmt.Sprintf("mov.u32 %%r3, tile; shl.b32 %%r5, %%me, 2; add.u32 %%r3, %%r3, %%r5; st.shared.u32 [%%r3], 0; bar.sync 0; add.s32 %%r4, %%r3, %d;", c.shift)
				last = "bar.sync 0; ld.shared.u32 %r6, [%r3];" + put("%r6")
			}
			body := first + fmt.Sprintf(form, c.space, address) + last
			memory := onHeap[uint32](2*before + words)
			l := block(words)
			l.Args = []simt.Arg{{Bits: uint64(uintptr(unsafe.Pointer(&memory[before]))), Pointer: true, Bytes: 4 * words}}
			fault := launch(t, program(t, ".shared .align 4 .b8 tile[128];\n"+entry(body)), "k", l)
			for k, v := range memory {
				if k < before || k >= before+words {
					require.Zero(t, v, "%s: word %d is outside", body, k-before)
				} else if c.says == "" {
					require.Equal(t, uint32(3), v, body)
				}
			}
			if c.says == "" {
				require.Nil(t, fault)
				continue
			}
			require.NotNil(t, fault, body)
			require.Equal(t, c.kind, fault.Kind)
			require.Contains(t, fault.Error(), c.says)
		}
	}
}

func TestWhatCannotRunIsRefusedBeforeItStarts(t *testing.T) {
	p := program(t, entry("mov.u32 %r1, 0;\n@%p1 mma.sp.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%f1,%f2,%f3,%f4}, {%r1,%r2}, {%r5,%r6}, {%f1,%f2,%f3,%f4}, %r7, 0;"))
	_, err := p.Kernel("k")
	var unsupported *simt.UnsupportedError
	require.True(t, errors.As(err, &unsupported))
	require.EqualError(t, err, `test.ptx:10:6: kernel "k" uses mma.sp.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32, which the CPU device cannot run: this form of mma is not supported`)
	_, err = p.Kernel("other")
	require.EqualError(t, err, `test.ptx has no kernel "other"`)
}

// text declares a variable that holds a string.
func text(name, value string) string {
	var list []string
	for _, b := range []byte(value + "\x00") {
		list = append(list, strconv.Itoa(int(b)))
	}
	return fmt.Sprintf(".global .align 1 .b8 %s[%d] = {%s};\n", name, len(list), strings.Join(list, ", "))
}

// single runs one instruction on given registers and returns the bits of its result.
func single(t *testing.T, text string, wide bool) uint64 {
	t.Helper()
	body := text + "\nst.global.u32 [%out], %r0;"
	if wide {
		body = text + "\nst.global.u64 [%out], %rd0;"
	}
	out, fault := run(t, program(t, entry(body)), block(1), 2)
	require.Nil(t, fault)
	if wide {
		return uint64(out[1])<<32 | uint64(out[0])
	}
	return uint64(out[0])
}

func TestInstructionsAtTheirEdges(t *testing.T) {
	f32 := func(v float32) uint64 { return uint64(math.Float32bits(v)) }
	for _, c := range []struct {
		text string
		want uint64
	}{
		{"shl.b32 %r0, 1, 32;", 0}, {"shl.b16 %h0, 1, 0x10001; cvt.u32.u16 %r0, %h0;", 0}, {"shr.u32 %r0, 0x80000000, 40;", 0}, {"shr.s32 %r0, 0x80000000, 40;", 0xffffffff},
		{"mov.b32 %r1, 0x80000000; abs.s32 %r0, %r1;", 0x80000000}, {"div.s32 %r0, 0x80000000, -1;", 0x80000000}, {"rem.s32 %r0, -7, 3;", 0xffffffff},
		{"add.sat.s32 %r0, 0x7fffffff, 1;", 0x7fffffff}, {"sub.sat.s32 %r0, 0x80000000, 1;", 0x80000000},
		{"mul.hi.u32 %r0, 0xffffffff, 0xffffffff;", 0xfffffffe}, {"mul.hi.s32 %r0, -1, -1;", 0}, {"mad.hi.u32 %r0, 0x80000000, 4, 5;", 7},
		{"mul24.lo.s32 %r0, 0xffffff, 2;", 0xfffffffe}, {"sad.s32 %r0, -5, 7, 100;", 112},
		{"bfe.u32 %r0, 0xabcd1234, 8, 8;", 0x12}, {"bfe.s32 %r0, 0xabcd9234, 8, 8;", 0xffffff92}, {"bfi.b32 %r0, 0xff, 0x12345678, 8, 4;", 0x12345f78},
		{"bfind.u32 %r0, 0;", 0xffffffff}, {"bfind.s32 %r0, -1;", 0xffffffff}, {"bfind.shiftamt.u32 %r0, 0x00010000;", 15}, {"brev.b32 %r0, 1;", 0x80000000},
		{"clz.b32 %r0, 0;", 32}, {"popc.b32 %r0, 0xf0f0;", 8}, {"fns.b32 %r0, 0x0000f0f0, 4, 2;", 5}, {"bmsk.clamp.b32 %r0, 4, 8;", 0xff0}, {"szext.wrap.s32 %r0, 0x1f8, 4;", 0xfffffff8},
		{"prmt.b32 %r0, 0x33221100, 0x77665544, 0x6420;", 0x66442200}, {"prmt.b32 %r0, 0x00008000, 0, 0x9999;", 0xffffffff}, {"prmt.b32.rc8 %r0, 0x33221100, 0, 2;", 0x22222222},
		{"lop3.b32 %r0, 0xff00, 0xf0f0, 0xcccc, 0x96;", 0xff00 ^ 0xf0f0 ^ 0xcccc}, {"shf.l.wrap.b32 %r0, 0x80000001, 1, 33;", 3}, {"shf.r.clamp.b32 %r0, 7, 1, 40;", 1},
		{"dp4a.s32.u32 %r0, 0xff020304, 0x01010101, 10;", 18}, {"dp2a.lo.u32.u32 %r0, 0x00020003, 0x00000405, 1;", 24},
		{"add.cc.u32 %r1, 0xffffffff, 1; addc.u32 %r0, 1, 1;", 3}, {"sub.cc.u32 %r1, 0, 1; subc.u32 %r0, 10, 1;", 8},
		{"mov.f32 %f1, 0f7f800000; mul.f32 %f0, %f1, 0f00000000; mov.b32 %r0, %f0;", 0x7fffffff},
		{"add.rz.f32 %f0, 0f3f800000, 0f33000001; mov.b32 %r0, %f0;", f32(1)}, {"add.rp.f32 %f0, 0f3f800000, 0f00000001; mov.b32 %r0, %f0;", f32(math.Nextafter32(1, 2))},
		{"fma.rn.f32 %f0, 0f3f800001, 0f3f800001, 0fbf800002; mov.b32 %r0, %f0;", f32(float32(math.FMA(float64(float32(1)+0x1p-23), float64(float32(1)+0x1p-23), -(1 + 0x1p-22))))},
		{"div.rm.f32 %f0, 0f3f800000, 0f40400000; mov.b32 %r0, %f0;", 0x3eaaaaaa}, {"div.rp.f32 %f0, 0f3f800000, 0f40400000; mov.b32 %r0, %f0;", 0x3eaaaaab},
		{"mul.ftz.f32 %f0, 0f00400000, 0f3f800000; mov.b32 %r0, %f0;", 0}, {"mul.f32 %f0, 0f00400000, 0f3f800000; mov.b32 %r0, %f0;", 0x00400000},
		{"add.sat.f32 %f0, 0f3f800000, 0f3f800000; mov.b32 %r0, %f0;", f32(1)}, {"min.f32 %f0, 0f80000000, 0f00000000; mov.b32 %r0, %f0;", 0x80000000},
		{"max.f32 %f0, 0f7fc00000, 0f3f800000; mov.b32 %r0, %f0;", f32(1)}, {"max.NaN.f32 %f0, 0f7fc00000, 0f3f800000; mov.b32 %r0, %f0;", 0x7fffffff},
		{"sqrt.rn.f32 %f0, 0f40000000; mov.b32 %r0, %f0;", f32(float32(math.Sqrt2))}, {"rcp.rz.f32 %f0, 0f40400000; mov.b32 %r0, %f0;", 0x3eaaaaaa}, {"ex2.approx.f32 %f0, 0f41200000; mov.b32 %r0, %f0;", f32(1024)},
		{"cvt.rni.s32.f32 %r0, 0f40200000;", 2}, {"cvt.rzi.s32.f32 %r0, 0fc0200000;", 0xfffffffe}, {"cvt.rzi.u32.f32 %r0, 0fc0200000;", 0}, {"cvt.rzi.s32.f32 %r0, 0f7fc00000;", 0}, {"cvt.rzi.s32.f32 %r0, 0f7f000000;", 0x7fffffff},
		{"cvt.rn.f32.u32 %f0, 0xffffffff; mov.b32 %r0, %f0;", f32(4294967296)}, {"cvt.rz.f32.u32 %f0, 0xffffffff; mov.b32 %r0, %f0;", 0x4f7fffff}, {"cvt.sat.u8.s32 %r0, 300;", 255}, {"cvt.s32.s8 %r0, 0x80;", 0xffffff80},
		{"cvt.s16.s32 %r0, 0x18000;", 0xffff8000}, {"mov.b16 %h1, 0x80; cvt.s8.s16 %r0, %h1;", 0xffffff80},
		{"cvt.rn.f16.f32 %h0, 0f477fefff; cvt.u32.u16 %r0, %h0;", 0x7bff}, {"cvt.rn.f16.f32 %h0, 0f477ff000; cvt.u32.u16 %r0, %h0;", 0x7c00}, {"cvt.rn.f16.f32 %h0, 0f33000001; cvt.u32.u16 %r0, %h0;", 1}, {"cvt.rn.f16.f32 %h0, 0f33000000; cvt.u32.u16 %r0, %h0;", 0},
		{"cvt.rn.bf16.f32 %h0, 0f3f808000; cvt.u32.u16 %r0, %h0;", 0x3f80}, {"cvt.rn.f16x2.f32 %r0, 0f40000000, 0f3f800000;", 0x40003c00},
		{"set.eq.u32.u32 %r0, 5, 5;", 0xffffffff}, {"set.lt.f32.s32 %f0, 1, 0; mov.b32 %r0, %f0;", 0}, {"setp.ltu.f32 %p1, 0f7fc00000, 0f00000000; selp.b32 %r0, 1, 2, %p1;", 1}, {"slct.u32.s32 %r0, 8, 9, -1;", 9},
		{"testp.subnormal.f32 %p1, 0f00000001; selp.b32 %r0, 1, 2, %p1;", 1}, {"copysign.f32 %f0, 0fbf800000, 0f40000000; mov.b32 %r0, %f0;", f32(-2)},
	} {
		require.Equal(t, c.want, single(t, c.text, false), "%s gives %#x", c.text, single(t, c.text, false))
	}
	for _, c := range []struct {
		text string
		want uint64
	}{
		{"mul.wide.s32 %rd0, -2, 3;", ^uint64(5)}, {"mul.hi.s64 %rd0, -1, 1;", ^uint64(0)}, {"mad.wide.u32 %rd0, 0xffffffff, 2, 1;", 0x1ffffffff},
		{"shl.b64 %rd0, 1, 64;", 0}, {"shr.s64 %rd0, 0x8000000000000000, 63;", ^uint64(0)}, {"brev.b64 %rd0, 1;", 1 << 63},
		{"add.rm.f64 %fd0, 0d3ff0000000000000, 0d8000000000000001; mov.b64 %rd0, %fd0;", 0x3fefffffffffffff}, {"div.rn.f64 %fd0, 0d3ff0000000000000, 0d4008000000000000; mov.b64 %rd0, %fd0;", 0x3fd5555555555555},
		{"cvt.rzi.s64.f64 %rd0, 0d43e0000000000000;", math.MaxInt64}, {"cvt.rn.f64.u64 %fd0, 0xffffffffffffffff; mov.b64 %rd0, %fd0;", math.Float64bits(0x1p64)},
		{"cvt.rzi.s64.f32 %rd0, 0f7fc00000;", 1 << 63}, {"mov.b64 %rd0, {7, 9};", 9<<32 | 7},
		{"mov.u64 %rd0, 7; createpolicy.fractional.L2::evict_last.b64 %rd0;", 0},
	} {
		require.Equal(t, c.want, single(t, c.text, true), "%s gives %#x", c.text, single(t, c.text, true))
	}
}

// A clock is stored for the lanes that run; the others keep what they had.
func TestClocksAreReadByTheLanesThatRun(t *testing.T) {
	for _, c := range []struct{ from, to int }{{0, 32}, {3, 4}, {7, 20}, {31, 32}} {
		out, fault := run(t, program(t, entry(fmt.Sprintf("mov.u32 %%r1, 0; mov.u64 %%rd1, 0; setp.ge.u32 %%p1, %%me, %d; setp.lt.and.u32 %%p1, %%me, %d, %%p1; @%%p1 mov.u64 %%rd1, %%globaltimer; setp.ne.u64 %%p2, %%rd1, 0; @%%p2 mov.u32 %%r1, 1;", c.from, c.to)+put("%r1"))), block(32), 32)
		require.Nil(t, fault)
		for lane, v := range out {
			require.Equal(t, lane >= c.from && lane < c.to, v == 1, "lane %d of %v", lane, c)
		}
	}
}

// What a warp and the device say of themselves: one multiprocessor runs all blocks.
func TestRegistersOfTheDevice(t *testing.T) {
	for register, want := range map[string]func(thread uint32) uint32{
		"laneid": func(i uint32) uint32 { return i % 32 }, "warpid": func(i uint32) uint32 { return i / 32 }, "nwarpid": func(uint32) uint32 { return 3 },
		"nsmid": func(uint32) uint32 { return 1 }, "smid": func(uint32) uint32 { return 0 },
		"lanemask_eq": func(i uint32) uint32 { return 1 << (i % 32) }, "lanemask_lt": func(i uint32) uint32 { return 1<<(i%32) - 1 }, "lanemask_le": func(i uint32) uint32 { return 2<<(i%32) - 1 },
		"lanemask_gt": func(i uint32) uint32 { return ^(2<<(i%32) - 1) }, "lanemask_ge": func(i uint32) uint32 { return ^(1<<(i%32) - 1) },
	} {
		out, fault := run(t, program(t, entry("mov.u32 %r1, %"+register+";"+put("%r1"))), block(70), 70)
		require.Nil(t, fault)
		for i, v := range out {
			require.Equal(t, want(uint32(i)), v, "%%%s of thread %d", register, i)
		}
	}
}

// Functions take and give predicates, and several at once.
func TestPredicatesOfFunctions(t *testing.T) {
	p := program(t, ".func (.reg .pred r, .reg .pred s) order(.reg .pred unused, .reg .pred a, .reg .pred b) { and.pred r, a, b; or.pred s, a, b; ret; }\n"+entry(
		"setp.lt.u32 %p1, %me, 20; setp.ge.u32 %p2, %me, 10; setp.eq.u32 %p5, %me, %me; call (%p3, %p4), order, (%p5, %p1, %p2); selp.u32 %r1, 1, 0, %p3; selp.u32 %r2, 2, 0, %p4; add.u32 %r1, %r1, %r2;"+put("%r1")))
	out, fault := run(t, p, block(32), 32)
	require.Nil(t, fault)
	for i, v := range out {
		want := uint32(2)
		if i >= 10 && i < 20 {
			want = 3
		}
		require.Equal(t, want, v, "lane %d", i)
	}
}

// The addend of a wide product is as wide as the product.
func TestAddendsOfWideProducts(t *testing.T) {
	for _, sign := range []string{"s", "u"} {
		out, fault := run(t, program(t, entry("mov.u32 %r1, 3; mov.u32 %r2, 5; mad.wide."+sign+"32 %rd1, %r1, %r2, 0x700000001; shr.u64 %rd2, %rd1, 32; cvt.u32.u64 %r3, %rd2; cvt.u32.u64 %r4, %rd1; mad.lo.u32 %r3, %r3, 100, %r4;"+put("%r3"))), block(1), 1)
		require.Nil(t, fault)
		require.EqualValues(t, 716, out[0])
	}
}

// A parameter is aligned as all memory is.
func TestParametersAreAligned(t *testing.T) {
	for at, want := range map[int]simt.FaultKind{0: 0, 4: 0, 2: simt.Misaligned, 1: simt.Misaligned, 6: simt.Misaligned} {
		for _, threads := range []uint32{32, 31} {
			_, fault := run(t, program(t, entry(fmt.Sprintf("ld.param.u32 %%r1, [out+%d];", at))), block(threads), 1)
			require.Equal(t, want != 0, fault != nil, "%d: %v", at, fault)
			if fault != nil {
				require.Equal(t, want, fault.Kind)
			}
		}
	}
}

// A parameter ends where its kernel's parameters end.
func TestParametersHaveAnEnd(t *testing.T) {
	for code, inside := range map[string]bool{"ld.param.u32 %r, [n];": true, "ld.param.u64 %a, [first];": true, "ld.param.u64 %a, [n];": false, "ld.param.u32 %r, [n+4];": false, "ld.param.u32 %r, [n+1024];": false,
		"ld.param.v2.u32 {%r, %r}, [n];": false} {
		for _, threads := range []uint32{32, 5} {
			p := program(t, ".visible .entry k(.param .u64 first, .param .u32 n) { .reg .b64 %a; .reg .b32 %r; "+code+" ret; }")
			fault := launch(t, p, "k", simt.Launch{Block: [3]uint32{threads, 1, 1}, Args: []simt.Arg{{Bits: 1}, {Bits: 2}}})
			require.Equal(t, inside, fault == nil, "%s: %v", code, fault)
			if fault != nil {
				require.Equal(t, simt.OutOfBounds, fault.Kind)
				require.Equal(t, [3]uint32{}, fault.Thread)
			}
		}
	}
}

// Tables may hold addresses in constant memory.
func TestTablesOfConstants(t *testing.T) {
	p := program(t, ".const .u32 three = 3;\n.const .u32 pair[2] = {4, 5};\n.global .u64 table[2] = {generic(three), generic(pair)+4};\n"+entry(
		"ld.global.u64 %rd1, [table]; ld.u32 %r1, [%rd1]; ld.global.u64 %rd2, [table+8]; ld.u32 %r2, [%rd2]; mad.lo.u32 %r1, %r1, 10, %r2;"+put("%r1")))
	out, fault := run(t, p, block(1), 1)
	require.Nil(t, fault, "%v", fault)
	require.EqualValues(t, 35, out[0])
}

// Local memory of a function holds nothing when it is called again.
func TestLocalMemoryOfASecondCall(t *testing.T) {
	const head = ".func (.reg .u32 r) keep(.reg .u32 write) { .local .align 4 .b8 room[16]; .reg .pred %w; .reg .b64 %a; mov.u64 %a, room; setp.ne.u32 %w, write, 0; @%w st.local.u32 [%a], write; ld.local.u32 r, [%a]; setp.eq.u32 %w, r, 1; @%w mov.u32 r, 0; ret; }\n"
	for second, kind := range map[string]simt.FaultKind{"8": 0, "0": simt.Uninitialised} {
		p := program(t, head+entry(".local .align 4 .b8 own[64]; mov.u64 %rd1, own; st.local.u32 [%rd1], %me; mov.u32 %r1, 7; call (%r2), keep, (%r1); mov.u32 %r1, "+second+"; call (%r3), keep, (%r1); ld.local.u32 %r4, [%rd1]; add.u32 %r2, %r2, %r4;"+put("%r2")))
		l := block(32)
		l.Check = simt.CheckFull
		out, fault := run(t, p, l, 32)
		if kind != 0 {
			require.NotNil(t, fault)
			require.Equal(t, kind, fault.Kind, "%v", fault)
			continue
		}
		require.Nil(t, fault, "%v", fault)
		for i, v := range out {
			require.EqualValues(t, 7+i, v)
		}
	}
}

// Registers that a block does not set are 0 in each of them, also where functions are called.
func TestRegistersOfABlockAreItsOwn(t *testing.T) {
	for _, call := range []string{"", "call nothing, ();"} {
		p := program(t, ".func nothing() { ret; }\n.visible .entry k(.param .u64 out)\n{\n.reg .b32 %first; .reg .pred %q; .reg .b32 %r<9>; .reg .b64 %out, %rd39; .reg .b32 %me;\nld.param.u64 %out, [out]; mov.u32 %me, %ctaid.x; setp.eq.u32 %q, %me, 0; @%q mov.u32 %r1, 5;\n"+
			call+"add.u32 %r2, %first, %r1; mov.u32 %first, 100;"+put("%r2")+"ret;\n}\n")
		out, fault := run(t, p, simt.Launch{Grid: [3]uint32{20, 1, 1}, Block: [3]uint32{1, 1, 1}}, 20)
		require.Nil(t, fault)
		for i, v := range out {
			require.Equal(t, i == 0, v == 5, "block %d: %d", i, v)
			require.Equal(t, i != 0, v == 0, "block %d: %d", i, v)
		}
	}
}

// A carry is there for each block, although what it comes from is the same for all.
func TestEveryBlockHasItsCarry(t *testing.T) {
	p := program(t, entry("mov.u32 %r1, %ntid.x; add.cc.u32 %r2, %r1, 0xffffffff; addc.u32 %r3, 0, 0; mov.u32 %me, %ctaid.x;"+put("%r3")))
	out, fault := run(t, p, simt.Launch{Grid: [3]uint32{20, 1, 1}, Block: [3]uint32{1, 1, 1}}, 20)
	require.Nil(t, fault)
	for i, v := range out {
		require.EqualValues(t, 1, v, "block %d", i)
	}
}

// fma rounds once: where the sum in 64 bits ends half way between two float32, and where the result is denormal.
func TestFusedSumsAreRoundedOnce(t *testing.T) {
	for _, c := range [][4]uint64{
		{0x39800001, 0x397ffffe, 0x3f800001, 0x3f800001}, // 1 + 2^-23 + 2^-24 - 2^-70
		{0x39800001, 0xb97ffffe, 0xbf800001, 0xbf800001},
		{0x1a000001, 0x19fffffe, 129, 129}, // 129.5 - 2^-47 times 2^-149
	} {
		form{want: func([3]uint64) (uint64, bool) { return c[3], true }}.run(t, "fma.rn.f32 %fd, %fa, %fb, %fc;", "f32", [3][]uint64{{c[0], c[0], c[0], c[0], c[0], c[0]}, {c[1], c[1], c[1], c[1], c[1], c[1]}, {c[2]}})
		form{want: func([3]uint64) (uint64, bool) { return c[3], true }}.run(t, "fma.rn.f32 %fa, %fa, %fb, %fc; mov.f32 %fd, %fa;", "f32", [3][]uint64{{c[0], c[0], c[0], c[0], c[0], c[0]}, {c[1], c[1], c[1], c[1], c[1], c[1]}, {c[2]}})
	}
}

// The least and the greatest of three: as of two, twice.
func TestLeastAndGreatestOfThree(t *testing.T) {
	for _, m := range []string{"", ".ftz", ".NaN", ".ftz.NaN", ".abs", ".NaN.abs"} {
		for _, word := range []string{"min", "max"} {
			once := word + m + ".f32 %fd, %fa, %fb; "
			if m == ".abs" || m == ".NaN.abs" {
				once = "abs.f32 %fa, %fa; abs.f32 %fb, %fb; abs.f32 %fc, %fc; " + word + m[:len(m)-4] + ".f32 %fd, %fa, %fb; "
			}
			lists := [3][]uint64{edgesOf("f32", true), edgesOf("f32", true), edgesOf("f32", true)}
			open := form{want: func([3]uint64) (uint64, bool) { return 0, false }}
			want := open.run(t, once+word+map[bool]string{true: m, false: m[:max(0, len(m)-4)]}[m == "" || m[len(m)-1] != 's']+".f32 %fd, %fd, %fc;", "f32", lists)
			require.Equal(t, want, open.run(t, word+m+".f32 %fd, %fa, %fb, %fc;", "f32", lists), "%s%s", word, m)
		}
	}
}
