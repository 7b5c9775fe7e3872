// Tests of mbarriers against a model that counts, of what they cannot count, and of copies and stores in the background that are wrong.

package simt_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/cudart/host/simt"
)

// counting is what an mbarrier must count: arrivals that a phase expects, and those and the bytes that are missing.
type counting struct {
	expected, missing, bytes, phase int
}

func (c *counting) change(arrive, drop, bytes int) {
	c.expected -= drop
	c.missing -= arrive
	c.bytes += bytes
	if c.missing == 0 && c.bytes == 0 && (arrive > 0 || bytes < 0) {
		c.missing, c.phase = c.expected, 1-c.phase
	}
}

func TestBarriersCountAsTheModel(t *testing.T) {
	for seed := range uint64(60) {
		rng := rand.New(rand.NewPCG(seed, 9))
		model := counting{expected: 1 + rng.IntN(20)}
		model.missing = model.expected
		code := fmt.Sprintf("mov.u32 %%r1, bar; mbarrier.init.shared.b64 [%%r1], %d;\n", model.expected)
		var want []uint32
		for range 30 {
			before, arrives := model.missing, true
			n := 1 + rng.IntN(max(model.missing, 1))
			switch kind := rng.IntN(6); {
			case kind == 0 && model.missing > 1:
				n = min(n, model.missing-1)
				code += fmt.Sprintf("mbarrier.arrive.shared.b64 %%rd1, [%%r1], %d;", n)
				model.change(n, 0, 0)
			case kind == 1 && model.missing > 0:
				code += "mbarrier.arrive.shared.b64 %rd1, [%r1];"
				model.change(1, 0, 0)
			case kind == 2 && model.expected > 2 && model.missing > 1:
				code += "mbarrier.arrive_drop.shared.b64 %rd1, [%r1];"
				model.change(1, 1, 0)
			case kind == 3 && model.missing > 0:
				code += fmt.Sprintf("mbarrier.arrive.expect_tx.shared.b64 %%rd1, [%%r1], %d;", 16*n)
				model.change(1, 0, 16*n)
			case kind == 4 && model.missing > 0:
				code += fmt.Sprintf("mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%%r1], %d;", 16*n)
				model.change(0, 0, 16*n)
				arrives = false
			case model.bytes > 0:
				n = 16 * (1 + rng.IntN(model.bytes/16))
				code += fmt.Sprintf("mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [%%r1], %d;", n)
				model.change(0, 0, -n)
				arrives = false
			default:
				continue
			}
			// The parity that is over, whether the phase before this is, and how many arrivals were missing.
			code += " mbarrier.test_wait.parity.shared.b64 %p1, [%r1], 0; mbarrier.try_wait.parity.shared.b64 %p2, [%r1], 1; selp.u32 %r2, 1, 0, %p1; selp.u32 %r3, 2, 0, %p2; or.b32 %r2, %r2, %r3;\n"
			code += fmt.Sprintf("st.global.u32 [%%out+%d], %%r2;\n", 4*len(want))
			want = append(want, uint32(2-model.phase))
			if arrives {
				code += fmt.Sprintf("mbarrier.pending_count.b64 %%r4, %%rd1; st.global.u32 [%%out+%d], %%r4;\n", 4*len(want))
				want = append(want, uint32(before))
			}
		}
		p := program(t, ".shared .align 8 .b64 bar;\n"+entry(code))
		out, fault := run(t, p, block(1), len(want)+1)
		require.Nil(t, fault, code)
		require.Equal(t, want, out[:len(want)], code)
	}
}

func TestBarriersThatCannotCount(t *testing.T) {
	const make, at = "mov.u32 %r1, bar; mbarrier.init.shared.b64 [%r1], ", "mov.u32 %r1, bar; "
	for _, c := range []struct {
		code string
		kind simt.FaultKind
		says string
	}{
		{make + "1048575;", 0, ""},
		{make + "1048576;", simt.Stuck, "an mbarrier for 1048576 arrivals; 1 to 1048575 are possible"},
		{make + "0;", simt.Stuck, "an mbarrier for 0 arrivals"},
		{make + "2; mbarrier.arrive.shared.b64 %rd1, [%r1], 3;", simt.Stuck, "more threads arrive at this mbarrier than it expects (it expects 2, 2 of them are missing)"},
		{make + "2; mbarrier.arrive.shared.b64 %rd1, [%r1]; mbarrier.arrive.shared.b64 %rd1, [%r1], 2;", simt.Stuck, "(it expects 2, 1 of them are missing)"},
		{make + "1; mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%r1], 4194303;", 0, ""},
		{make + "1; mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%r1], 4194304;", simt.Stuck, "this mbarrier cannot count so many bytes"},
		{make + "1; mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [%r1], 4194303;", 0, ""},
		{make + "1; mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [%r1], 4194304;", simt.Stuck, "this mbarrier cannot count so many bytes"},
		{make + "1; mbarrier.inval.shared.b64 [%r1]; mbarrier.arrive.shared.b64 %rd1, [%r1];", simt.Stuck, "this mbarrier has not been initialised"},
		{make + "1; mbarrier.inval.shared.b64 [%r1]; mbarrier.test_wait.parity.shared.b64 %p1, [%r1], 0;", simt.Stuck, "this mbarrier has not been initialised"},
		{at + "mbarrier.init.shared.b64 [%r1+4], 1;", simt.Misaligned, "at an address that is not a multiple of 8"},
		{make + "1; mbarrier.arrive.shared.b64 %rd1, [%r1+4];", simt.Misaligned, "at an address that is not a multiple of 8"},
		{make + "1; mbarrier.test_wait.parity.shared.b64 %p1, [%r1+4], 0;", simt.Misaligned, "at an address that is not a multiple of 8"},
		{at + "mbarrier.init.shared.b64 [%r1+4096], 1;", simt.OutOfBounds, "byte 4096 of shared memory"},
		{make + "1; mbarrier.arrive.shared.b64 %rd1, [%r1]; mbarrier.test_wait.shared.b64 %p1, [%r1], %rd1; @%p1 trap;", simt.Trapped, ""}, // the phase is over

		{make + "1; cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [tile], [%out], 24, [bar];", simt.Misaligned, "a copy of 24 bytes, which is not a multiple of 16"},
		{make + "1; cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [tile+8], [%out], 16, [bar];", simt.Misaligned, "not a multiple of 16"},
		{make + "1; cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [tile], [%out+8], 16, [bar];", simt.Misaligned, "not a multiple of 16"},
		{make + "1; cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [tile], [%out], 80, [bar];", simt.OutOfBounds, "at byte 80 of shared memory, but the block has only 80 bytes"},
		{"cp.async.bulk.global.shared::cta.bulk_group [%out], [tile], 272;", simt.OutOfBounds, "an access of "},
		{"cp.async.ca.shared.global [tile+2], [%out], 4;", simt.Misaligned, ""},
		{"cp.async.ca.shared.global [tile], [%out+4], 8;", simt.Misaligned, ""},
		{"cp.async.cg.shared.global [tile+64], [%out], 16;", simt.OutOfBounds, "an access of "},
		{make + "1; st.async.shared::cluster.mbarrier::complete_tx::bytes.v2.u32 [tile+4], {%r1, %r1}, [bar];", simt.Misaligned, "not a multiple of 8"},
		{make + "1; st.async.shared::cluster.mbarrier::complete_tx::bytes.u32 [tile+64], %r1, [bar];", simt.OutOfBounds, "an access of "},
		{"mov.u64 %rd1, 12; st.bulk.shared::cta [tile], %rd1, 0;", simt.Misaligned, ""},
		{"mov.u64 %rd1, 8; st.bulk.shared::cta [tile+4], %rd1, 0;", simt.Misaligned, ""},
		{"mov.u64 %rd1, 72; st.bulk.shared::cta [tile], %rd1, 0;", simt.OutOfBounds, "an access of "},
	} {
		for _, level := range []simt.Check{simt.CheckNothing, simt.CheckFast} {
			l := block(1)
			l.Check = level
			_, fault := run(t, program(t, ".shared .align 16 .b8 tile[64]; .shared .align 8 .b64 bar;\n"+entry(c.code)), l, 64)
			if c.says == "" && c.kind == 0 {
				require.Nil(t, fault, c.code)
				continue
			}
			require.NotNil(t, fault, c.code)
			require.Equal(t, c.kind, fault.Kind, "%s: %v", c.code, fault)
			require.Contains(t, fault.Error(), c.says)
		}
	}
}
