// Copies that read a part of their bytes or none, where variables lie, and other rare forms.

package simt_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/cudart/host/simt"
)

// Each lane copies 8 bytes, of which it may read fewer: the rest of its cells becomes zero, not what lay there.
func TestAsynchronousCopiesFillWithZeros(t *testing.T) {
	const whole = 0x11110000
	for name, c := range map[string]struct {
		behind string // the operands behind the size
		want   func(lane uint32) (low, high uint32)
	}{
		"all":            {"", func(lane uint32) (uint32, uint32) { return whole + lane, whole + lane }},
		"the first four": {", 4", func(lane uint32) (uint32, uint32) { return whole + lane, 0 }},
		"as many as a register says": {", %r6", func(lane uint32) (uint32, uint32) {
			return []uint32{0, whole + lane, whole + lane}[lane%3], []uint32{0, 0, whole + lane}[lane%3]
		}},
		"none in odd lanes": {", %p1", func(lane uint32) (uint32, uint32) {
			return (whole + lane) * (1 - lane%2), (whole + lane) * (1 - lane%2)
		}},
	} {
		for _, hint := range []bool{false, true} {
			kind, behind := "", c.behind
			if hint {
				kind, behind = ".L2::cache_hint", behind+", %rd7"
			}
			p := program(t, ".shared .align 16 .b8 cells[256];\n"+entry(`
				mov.u32 %r1, cells; shl.b32 %r2, %me, 3; add.u32 %r2, %r1, %r2; mov.u32 %r9, 7777; st.shared.v2.u32 [%r2], {%r9, %r9};
				mul.wide.u32 %rd1, %me, 8; add.u64 %rd1, %out, %rd1; add.u32 %r3, %me, 286326784; st.global.v2.u32 [%rd1], {%r3, %r3};
				and.b32 %r4, %me, 1; setp.eq.u32 %p1, %r4, 1; rem.u32 %r5, %me, 3; shl.b32 %r6, %r5, 2; mov.u64 %rd7, 0;
				cp.async.ca.shared.global`+kind+` [%r2], [%rd1], 8`+behind+`; cp.async.wait_all;
				ld.shared.v2.u32 {%r7, %r8}, [%r2]; st.global.v2.u32 [%rd1], {%r7, %r8};`))
			for _, check := range everyCheck {
				out, fault := run(t, p, simt.Launch{Block: [3]uint32{32, 1, 1}, Check: check}, 64)
				require.Nil(t, fault, "%s: %v", name, fault)
				for lane := range uint32(32) {
					low, high := c.want(lane)
					require.Equal(t, [2]uint32{low, high}, [2]uint32(out[2*lane:]), "%s, lane %d, hint %v", name, lane, hint)
				}
			}
		}
	}
}

// Elements of 8 bytes are the largest that a bulk copy adds up.
func TestBulkCopiesAddLargeElements(t *testing.T) {
	p := program(t, ".shared .align 16 .b64 cells[2];\n"+entry(`
		mov.u64 %rd1, 4294967295; mov.u64 %rd2, 5; st.shared.u64 [cells], %rd1; st.shared.u64 [cells+8], %rd2;
		mov.u64 %rd3, 1; st.global.u64 [%out], %rd3; st.global.u64 [%out+8], %rd3; fence.proxy.async;
		cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u64 [%out], [cells], 16; cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;`))
	out, fault := run(t, p, block(1), 4)
	require.Nil(t, fault, "%v", fault)
	require.Equal(t, []uint32{0, 1, 6, 0}, out)
}

// Copies that add are atomic: threads of several blocks may add to one place at the same time.
func TestBulkCopiesThatAddDoNotRace(t *testing.T) {
	p := program(t, ".shared .align 16 .b32 cells[4];\n"+entry(`
		setp.ne.u32 %p1, %me, 0; @%p1 bra COPY; st.shared.v4.u32 [cells], {1, 2, 3, 4};
		COPY: bar.sync 0; and.b32 %r1, %me, 31; setp.ne.u32 %p1, %r1, 0; @%p1 bra END; fence.proxy.async;
		cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%out], [cells], 16; cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;
		END:`))
	for _, check := range everyCheck {
		out, fault := run(t, p, simt.Launch{Grid: [3]uint32{3, 1, 1}, Block: [3]uint32{64, 1, 1}, Check: check}, 4)
		require.Nil(t, fault, "%v", fault)
		require.Equal(t, []uint32{6, 12, 18, 24}, out)
	}
}

// A copy reads and writes as its thread would: another thread that writes what it reads, or reads what it writes, races with it.
func TestCopiesRaceLikeOtherAccesses(t *testing.T) {
	for _, copies := range []string{
		"cp.async.ca.shared.global [cells], [%out], 16; cp.async.wait_all;",
		"cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [cells], [%out], 16, [door];",
	} {
		for other, race := range map[string]bool{"st.global.u32 [%out+12], 5;": true, "ld.shared.u32 %r1, [cells+12];": true, "st.shared.u32 [cells], 5;": true,
			"ld.global.u32 %r1, [%out+4];": false, "st.global.u32 [%out+16], 5;": false, "st.shared.u32 [cells+16], 5;": false} {
			p := program(t, ".shared .align 16 .b8 cells[32]; .shared .align 8 .b64 door;\n"+entry(`
				setp.ne.u32 %p1, %me, 0; @%p1 bra READY; mbarrier.init.shared.b64 [door], 1; mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [door], 16;
				st.global.v4.u32 [%out], {1, 2, 3, 4}; READY: bar.sync 0;
				setp.eq.u32 %p1, %me, 0; @%p1 bra COPY; setp.ne.u32 %p1, %me, 32; @%p1 bra END; `+other+` bra END;
				COPY: `+copies+` END:`))
			_, fault := run(t, p, simt.Launch{Block: [3]uint32{64, 1, 1}, Check: simt.CheckFull}, 8)
			require.Equal(t, race, fault != nil, "%s beside %s: %v", other, copies, fault)
			if race {
				require.Contains(t, []simt.FaultKind{simt.Race, simt.Uninitialised}, fault.Kind)
			}
		}
	}
}

// What is called by an address may need more local memory than functions that call themselves are given.
func TestFunctionsCalledByAddressHaveTheirLocalMemory(t *testing.T) {
	p := program(t, `.func (.reg .b32 %sum) far(.reg .b32 %n) { .local .align 4 .b8 own[40000]; .reg .b32 %a; .reg .b64 %x;
		mov.u64 %x, own; st.local.u32 [%x], %n; st.local.u32 [%x+39996], %n; ld.local.u32 %sum, [%x]; ld.local.u32 %a, [%x+39996]; add.u32 %sum, %sum, %a; ret; }
		.global .u64 where[1] = {far};
		`+entry(`ld.global.u64 %rd1, [where]; add.u32 %r1, %me, 3; P: .callprototype (.reg .b32 _) _ (.reg .b32 _); call (%r2), %rd1, (%r1), P;`+put("%r2")))
	for _, check := range everyCheck {
		out, fault := run(t, p, simt.Launch{Block: [3]uint32{4, 1, 1}, Check: check}, 4)
		require.Nil(t, fault, "%v", fault)
		require.Equal(t, []uint32{6, 8, 10, 12}, out)
	}
}

// A set of two halves takes a predicate of the lane into account.
func TestHalvesAreComparedTogetherWithAPredicate(t *testing.T) {
	p := program(t, entry(`
		mov.b32 %r1, 0x3c003c00; mov.b32 %r2, 0x40003c00; setp.lt.u32 %p1, %me, 2; setp.eq.u32 %p2, %me, 1; setp.ne.u32 %p3, %me, %me;
		set.eq.and.f16x2.f16x2 %r3, %r1, %r2, %p1;`+put("%r3")))
	out, fault := run(t, p, block(4), 4)
	require.Nil(t, fault, "%v", fault)
	require.Equal(t, []uint32{0x3c00, 0x3c00, 0, 0}, out)
}

// A variable of one byte is followed by padding, not by another variable's bytes.
func TestVariablesDoNotOverlap(t *testing.T) {
	for _, space := range []string{"shared", "local"} {
		variables, inside := ".shared .align 1 .b8 first[1]; .shared .align 4 .b32 second; .shared .align 1 .b8 third[1]; .shared .align 8 .b64 last;\n", ""
		if space == "local" {
			variables, inside = "", ".local .align 1 .b8 first[1]; .local .align 4 .b32 second; .local .align 1 .b8 third[1]; .local .align 8 .b64 last;\n"
		}
		p := program(t, variables+entry(inside+`
			mov.u16 %h1, 0x5a; mov.u32 %r1, 0x11223344; mov.u16 %h2, 0x7b; mov.u64 %rd1, 0x1020304050607080;
			st.`+space+`.u8 [first], %h1; st.`+space+`.u32 [second], %r1; st.`+space+`.u8 [third], %h2; st.`+space+`.u64 [last], %rd1;
			ld.`+space+`.u8 %r2, [first]; ld.`+space+`.u32 %r3, [second]; ld.`+space+`.u8 %r4, [third]; ld.`+space+`.u64 %rd2, [last];
			st.global.v4.u32 [%out], {%r2, %r3, %r4, 0}; st.global.u64 [%out+16], %rd2;`))
		out, fault := run(t, p, block(1), 6)
		require.Nil(t, fault, "%s: %v", space, fault)
		require.Equal(t, []uint32{0x5a, 0x11223344, 0x7b, 0, 0x50607080, 0x10203040}, out, space)
	}
}

// Shared memory whose size is given at the launch begins behind all other, at a multiple of its alignment and of 16 bytes.
func TestSharedMemoryOfTheLaunch(t *testing.T) {
	const variables = ".shared .align 4 .b8 own[20]; .extern .shared .align 4 .b8 dynamic[]; .extern .shared .align 64 .b8 wide[];\n"
	for code, want := range map[string][]uint32{
		"mov.u32 %r1, own; mov.u32 %r2, dynamic; sub.u32 %r1, %r2, %r1; st.shared.u32 [dynamic+60], 7; st.shared.u32 [own+16], 9; ld.shared.u32 %r2, [dynamic+60];": {32, 7},
		"mov.u32 %r1, own; mov.u32 %r2, wide; sub.u32 %r1, %r2, %r1; st.shared.u32 [wide+60], 7; st.shared.u32 [own+16], 9; ld.shared.u32 %r2, [wide+60];":          {64, 7},
	} {
		for _, check := range everyCheck {
			l := block(1)
			l.Shared, l.Check = 64, check
			out, fault := run(t, program(t, variables+entry(code+"st.global.v2.u32 [%out], {%r1, %r2};")), l, 2)
			require.Nil(t, fault, "%s: %v", code, fault)
			require.Equal(t, want, out, code)
		}
	}
	for code, want := range map[string]string{
		"st.shared.u32 [own], 1; st.shared.u32 [dynamic+64], 1;":               "an access of 4 bytes at byte 96 of shared memory, but the block has only 96 bytes",
		"st.shared.u32 [own], 1; ld.shared.u32 %r1, [dynamic+4];" + put("%r1"): "reads 4 bytes at byte 4 of dynamic in shared memory, which nobody has written",
	} {
		l := block(1)
		l.Shared, l.Check = 64, simt.CheckFull
		_, fault := run(t, program(t, variables+entry(code)), l, 1)
		require.NotNil(t, fault, code)
		require.Contains(t, fault.Error(), want)
	}
}

// The least and the greatest that copies leave in memory: of a NaN and a number it is the number, and -0 is less than 0.
func TestBulkCopiesOfLeastAndGreatest(t *testing.T) {
	const nan, infinity, minus = 0x7fff, 0x7c00, 0x8000
	for word, want := range map[string][8]uint32{
		"min.f16": {0x3c00, 0x3c00, 0x3c00, minus, minus, minus | infinity, minus | 1, nan}, "max.f16": {0x3c00, 0x3c00, 0x4000, 0, 0, 0, 1, nan},
	} {
		old, given := [8]uint32{nan, 0x3c00, 0x3c00, 0, minus, 0, 1, nan}, [8]uint32{0x3c00, nan, 0x4000, minus, 0, minus | infinity, minus | 1, nan}
		code := ""
		for i := range 8 {
			code += fmt.Sprintf("mov.u16 %%h1, %d; mov.u16 %%h2, %d; st.global.u16 [%%out+%d], %%h1; st.shared.u16 [cells+%d], %%h2;\n", old[i], given[i], 2*i, 2*i)
		}
		p := program(t, ".shared .align 16 .b8 cells[16];\n"+entry(code+"cp.reduce.async.bulk.global.shared::cta.bulk_group."+word+" [%out], [cells], 16; cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;"))
		out, fault := run(t, p, block(1), 4)
		require.Nil(t, fault, "%v", fault)
		for i := range 8 {
			require.Equal(t, want[i], out[i/2]>>(i%2*16)&0xffff, "%s of %#x and %#x", word, old[i], given[i])
		}
	}
}

// Rare forms with results that anyone can compute.
func TestRareForms(t *testing.T) {
	for code, want := range map[string][2]uint32{
		"mov.v4.u32 {%r1, %r2, %r3, %r4}, %ntid; mul.lo.u32 %r1, %r1, %r2; mad.lo.u32 %r2, %r3, 10, %r4;":                              {6, 40}, // of 2, 3 and 4 threads; %ntid.w is 0
		"mov.f64 %fd1, 0d4010000000000000; rsqrt.approx.ftz.f64 %fd2, %fd1; mov.b64 {%r1, %r2}, %fd2;":                                 {0, 0x3fe00000},
		"mov.f32 %f1, 0f40200000; mov.f32 %f2, 0f40600000; .reg .b8 %z; cvt.rn.satfinite.e2m1x2.f32 %z, %f1, %f2; cvt.u32.u8 %r1, %z;": {0x46, 0}, // 2.5 and 3.5 go to 2 and 4, which are even
	} {
		p := program(t, entry("mov.u32 %r1, 0; mov.u32 %r2, 0;\n"+code+"\nst.global.v2.u32 [%out], {%r1, %r2};"))
		out, fault := run(t, p, simt.Launch{Block: [3]uint32{2, 3, 4}}, 2)
		require.Nil(t, fault, "%s: %v", code, fault)
		require.Equal(t, want, [2]uint32(out), code)
	}
}
