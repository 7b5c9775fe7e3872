// Tests of clusters, of mbarriers, and of copies and stores that mbarriers count.

package simt_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/cudart/host/simt"
)

func replaceOnce(text, old, with string) string { return strings.Replace(text, old, with, 1) }

// clustered is an entry whose clusters have four blocks.
func clustered(body string) string {
	return ".shared .align 16 .b8 cells[4096];\n.shared .align 8 .b64 door;\n" + replaceOnce(entry(body), "(.param .u64 out)", "(.param .u64 out) .reqnctapercluster 4, 1, 1")
}

var everyCheck = []simt.Check{simt.CheckNothing, simt.CheckFast, simt.CheckFull}

func TestBlocksOfAClusterReachEachOther(t *testing.T) {
	// Each thread writes to the shared memory of the next block, by a generic address and by one of the cluster, and reads its own.
	for name, write := range map[string]string{
		"generic":           "cvt.u64.u32 %rd1, %r2; cvta.shared.u64 %rd1, %rd1; mapa.u64 %rd2, %rd1, %r5; st.u32 [%rd2], %r6;",
		"of the cluster":    "mapa.shared::cluster.u32 %r7, %r2, %r5; st.shared::cluster.u32 [%r7], %r6;",
		"atomic":            "mapa.shared::cluster.u32 %r7, %r2, %r5; st.shared::cluster.u32 [%r7], 0; red.shared::cluster.add.u32 [%r7], %r6;",
		"read by the other": "st.shared.u32 [%r2], %r6;",
	} {
		read := "ld.shared.u32 %r8, [%r2];"
		if name == "read by the other" {
			read = "add.u32 %r5, %r4, 3; and.b32 %r5, %r5, 3; mapa.shared::cluster.u32 %r7, %r2, %r5; ld.shared::cluster.u32 %r8, [%r7];"
		}
		p := program(t, clustered(`
			mov.u32 %r1, cells; shl.b32 %r2, %me, 2; add.u32 %r2, %r1, %r2;
			mov.u32 %r3, %ctaid.x; mov.u32 %r4, %cluster_ctarank; add.u32 %r5, %r4, 1; and.b32 %r5, %r5, 3;
			shl.b32 %r6, %r3, 8; add.u32 %r6, %r6, %me;
			barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;
			`+write+`
			barrier.cluster.arrive.release; barrier.cluster.wait.acquire;
			`+read+`
			barrier.cluster.arrive; barrier.cluster.wait;
			shl.b32 %r9, %r3, 6; add.u32 %me, %me, %r9;`+put("%r8")))
		for _, check := range everyCheck {
			out, fault := run(t, p, simt.Launch{Grid: [3]uint32{12, 1, 1}, Block: [3]uint32{64, 1, 1}, Check: check}, 12*64)
			require.Nil(t, fault, "%s: %v", name, fault)
			for i, got := range out {
				block := i/64&^3 | (i/64+3)&3
				require.Equal(t, uint32(block<<8+i%64), got, "%s: element %d", name, i)
			}
		}
	}
}

// A barrier of the cluster orders what its blocks do in global memory too; without it, that is a race.
func TestClusterBarriersOrderGlobalMemory(t *testing.T) {
	for barrier, kind := range map[string]simt.FaultKind{"barrier.cluster.arrive.release; barrier.cluster.wait.acquire;": 0, "": simt.Race} {
		p := program(t, clustered(`
			mov.u32 %r3, %ctaid.x; mul.wide.u32 %rd1, %r3, 4; add.u64 %rd1, %out, %rd1;
			setp.eq.u32 %p1, %me, 5; @%p1 st.global.u32 [%rd1], %r3;
			`+barrier+`
			and.b32 %r4, %r3, 3; add.u32 %r5, %r4, 3; and.b32 %r5, %r5, 3; sub.u32 %r6, %r3, %r4; add.u32 %r5, %r5, %r6;
			mul.wide.u32 %rd2, %r5, 4; add.u64 %rd2, %out, %rd2; ld.global.u32 %r8, [%rd2];
			add.u32 %me, %me, 12; shl.b32 %r9, %r3, 6; add.u32 %me, %me, %r9;`+put("%r8")))
		out, fault := run(t, p, simt.Launch{Grid: [3]uint32{12, 1, 1}, Block: [3]uint32{64, 1, 1}, Check: simt.CheckFull}, 12+12*64)
		if kind != 0 {
			require.NotNil(t, fault)
			require.Equal(t, kind, fault.Kind)
			continue
		}
		require.Nil(t, fault, "%v", fault)
		for i, got := range out[12:] {
			require.Equal(t, uint32(i/64&^3|(i/64+3)&3), got, "element %d", i)
		}
	}
}

// A shared address says of which block of the cluster it is; one that nobody mapped is of the block itself.
func TestAddressesKnowTheirBlock(t *testing.T) {
	p := program(t, clustered(`
		mov.u32 %r1, cells; mov.u32 %r3, %ctaid.x; and.b32 %r2, %me, 3; mapa.shared::cluster.u32 %r4, %r1, %r2; getctarank.shared::cluster.u32 %r5, %r4; getctarank.shared::cluster.u32 %r6, %r1;
		cvt.u64.u32 %rd1, %r1; cvta.shared.u64 %rd1, %rd1; mapa.u64 %rd2, %rd1, %r2; getctarank.u64 %r7, %rd2;
		shl.b32 %r6, %r6, 4; shl.b32 %r7, %r7, 8; or.b32 %r5, %r5, %r6; or.b32 %r5, %r5, %r7; shl.b32 %r9, %r3, 6; add.u32 %me, %me, %r9;`+put("%r5")))
	for _, check := range everyCheck {
		out, fault := run(t, p, simt.Launch{Grid: [3]uint32{8, 1, 1}, Block: [3]uint32{64, 1, 1}, Check: check}, 8*64)
		require.Nil(t, fault, "%v", fault)
		for i, got := range out {
			asked, own := uint32(i&3), uint32(i/64&3)
			require.Equal(t, asked|own<<4|asked<<8, got, "element %d", i)
		}
	}
}

func TestPlacesInAGridOfClusters(t *testing.T) {
	p := program(t, replaceOnce(entry(`
		mov.u32 %r1, %ctaid.y; mov.u32 %r2, %nctaid.x; mov.u32 %r3, %ctaid.x; mad.lo.u32 %r10, %r1, %r2, %r3;
		mov.u32 %r1, %clusterid.x; mov.u32 %r2, %clusterid.y; mov.u32 %r3, %cluster_ctaid.x; mov.u32 %r4, %cluster_ctaid.y; mov.u32 %r5, %cluster_ctarank;
		mov.u32 %r6, %nclusterid.x; mov.u32 %r7, %cluster_nctaid.x; mov.u32 %r8, %cluster_nctarank; mov.pred %p1, %is_explicit_cluster; selp.u32 %r9, 1, 0, %p1;
		shl.b32 %r2, %r2, 4; shl.b32 %r3, %r3, 8; shl.b32 %r4, %r4, 12; shl.b32 %r5, %r5, 16; shl.b32 %r6, %r6, 20; shl.b32 %r7, %r7, 24; shl.b32 %r8, %r8, 27; shl.b32 %r9, %r9, 31;
		or.b32 %r1, %r1, %r2; or.b32 %r3, %r3, %r4; or.b32 %r5, %r5, %r6; or.b32 %r7, %r7, %r8; or.b32 %r1, %r1, %r3; or.b32 %r5, %r5, %r7; or.b32 %r1, %r1, %r5; or.b32 %r1, %r1, %r9;
		mov.u32 %me, %r10;`+put("%r1")), "(.param .u64 out)", "(.param .u64 out) .reqnctapercluster 2, 3, 1"))
	out, fault := run(t, p, simt.Launch{Grid: [3]uint32{6, 6, 1}, Block: [3]uint32{1, 1, 1}}, 36)
	require.Nil(t, fault, "%v", fault)
	for i, got := range out {
		x, y := uint32(i%6), uint32(i/6)
		rank := y%3*2 + x%2
		require.Equal(t, x/2|y/3<<4|x%2<<8|y%3<<12|rank<<16|3<<20|2<<24|6<<27&(1<<31-1)|1<<31, got, "block %d", i)
	}
}

func TestMistakesWithClusters(t *testing.T) {
	for code, want := range map[string]string{
		"mov.u32 %r1, cells; mapa.shared::cluster.u32 %r2, %r1, 4;": `mapa to block 4 of the cluster, which has 4`,
		"mapa.u64 %rd1, %out, 1;":                                   `which is not in shared memory`,
		"barrier.cluster.wait;":                                     `this thread waits at the barrier of its cluster without having arrived there`,
		"barrier.cluster.arrive; barrier.cluster.arrive;":           `this thread arrives at the barrier of its cluster a second time without having waited there`,
		"mov.u32 %r1, %cluster_ctarank; setp.eq.u32 %p1, %r1, 2; barrier.cluster.arrive; @!%p1 barrier.cluster.wait; @%p1 bar.sync 1, 64;": `wait forever`,
		"mov.u32 %r1, cells; mapa.shared::cluster.u32 %r2, %r1, 1; st.shared::cluster.u32 [%r2+8192], %r1;":                                `an access of 4 bytes at byte 8192 of shared memory, but the block has only 4112 bytes`,
		`mov.u32 %r3, %cluster_ctarank; setp.eq.u32 %p1, %r3, 0; @%p1 ret; bar.sync 0;
		 mov.u32 %r1, cells; mapa.shared::cluster.u32 %r2, %r1, 0; ld.shared::cluster.u32 %r4, [%r2];`: `an access of 4 bytes to the shared memory of block (0,0,0) of the cluster, all of whose threads have ended`,
	} {
		p := program(t, clustered(code+" mov.b64 %rd5, door; mov.u32 %r20, cells; "+put("%me")))
		_, fault := run(t, p, simt.Launch{Grid: [3]uint32{4, 1, 1}, Block: [3]uint32{32, 1, 1}}, 64)
		require.NotNil(t, fault, code)
		require.Contains(t, fault.Error(), want)
	}
	k, err := program(t, clustered("")).Kernel("k")
	require.NoError(t, err)
	_, err = k.Start(simt.Launch{Grid: [3]uint32{6, 1, 1}, Block: [3]uint32{32, 1, 1}, Args: []simt.Arg{{}}})
	require.EqualError(t, err, `kernel "k": grid.x is 6, which is not a multiple of the 4 blocks of a cluster`)
}

// doors opens the mbarrier `door` for a number of arrivals, its address in %r10 and, generic, in %rd10.
func doors(count string) string {
	return "mov.u32 %r10, door; cvt.u64.u32 %rd10, %r10; cvta.shared.u64 %rd10, %rd10; setp.eq.u32 %p9, %me, 0; @%p9 mbarrier.init.shared.b64 [%r10], " + count + "; bar.sync 0;\n"
}

// untilParity waits for a phase of the door.
func untilParity(label, parity string) string {
	return label + ": mbarrier.try_wait.parity.shared::cta.b64 %p8, [%r10], " + parity + "; @!%p8 bra " + label + ";\n"
}

func TestMbarriersPassWhatIsWritten(t *testing.T) {
	// Odd threads write, even ones wait for the phase and read; then the other way round in the next phase.
	p := program(t, clustered(doors("64")+`
		mov.u32 %r1, cells; xor.b32 %r2, %me, 1; shl.b32 %r2, %r2, 2; add.u32 %r2, %r1, %r2; shl.b32 %r3, %me, 2; add.u32 %r3, %r1, %r3;
		mul.lo.u32 %r4, %me, 3; st.shared.u32 [%r3], %r4;
		mbarrier.arrive.shared.b64 %rd1, [%r10];
		W: mbarrier.test_wait.shared.b64 %p1, [%r10], %rd1; @!%p1 bra W;
		ld.shared.u32 %r5, [%r2];
		mbarrier.arrive.b64 %rd1, [%rd10];
		V: mbarrier.try_wait.b64 %p1, [%rd10], %rd1, 1000; @!%p1 bra V;
		add.u32 %r4, %r4, 1000; st.shared.u32 [%r3], %r4;
		mbarrier.arrive.release.cta.shared::cta.b64 _, [%r10];
		`+untilParity("U", "0")+`
		ld.shared.u32 %r6, [%r2]; add.u32 %r5, %r5, %r6;
		mbarrier.pending_count.b64 %r7, %rd1; `+put("%r5")))
	for _, check := range everyCheck {
		out, fault := run(t, p, simt.Launch{Grid: [3]uint32{4, 1, 1}, Block: [3]uint32{64, 1, 1}, Check: check}, 64)
		require.Nil(t, fault, "%v", fault)
		for i, got := range out {
			require.Equal(t, uint32(2*3*(i^1)+1000), got)
		}
	}
}

func TestMbarriersCount(t *testing.T) {
	for _, c := range []struct {
		init, code string
		want       uint32
	}{
		{"3", "mbarrier.arrive.shared.b64 %rd1, [%r10]; mbarrier.arrive.shared.b64 %rd1, [%r10]; mbarrier.pending_count.b64 %r1, %rd1;", 2},
		{"3", "mbarrier.arrive.shared.b64 %rd1, [%r10], 3; mbarrier.test_wait.shared.b64 %p1, [%r10], %rd1; selp.u32 %r1, 1, 0, %p1;", 1},
		{"3", "mbarrier.arrive.shared.b64 %rd1, [%r10], 2; mbarrier.test_wait.shared.b64 %p1, [%r10], %rd1; selp.u32 %r1, 1, 0, %p1;", 0},
		{"2", "mbarrier.arrive_drop.shared.b64 %rd1, [%r10]; mbarrier.arrive.shared.b64 %rd1, [%r10]; mbarrier.arrive.shared.b64 %rd1, [%r10]; mbarrier.pending_count.b64 %r1, %rd1;", 1},
		{"1", "mbarrier.test_wait.parity.shared.b64 %p1, [%r10], 1; selp.u32 %r1, 1, 0, %p1; mbarrier.test_wait.parity.shared.b64 %p1, [%r10], 0; selp.u32 %r2, 2, 0, %p1; or.b32 %r1, %r1, %r2;", 1},
		{"1", "mbarrier.arrive.expect_tx.shared.b64 %rd1, [%r10], 32; mbarrier.test_wait.shared.b64 %p1, [%r10], %rd1; selp.u32 %r1, 1, 0, %p1; " +
			"mbarrier.complete_tx.relaxed.cta.shared.b64 [%r10], 32; mbarrier.test_wait.shared.b64 %p1, [%r10], %rd1; selp.u32 %r2, 2, 0, %p1; or.b32 %r1, %r1, %r2;", 2},
		{"1", "mbarrier.expect_tx.relaxed.cta.shared.b64 [%r10], 8; mbarrier.arrive.shared.b64 %rd1, [%r10]; mbarrier.test_wait.shared.b64 %p1, [%r10], %rd1; selp.u32 %r1, 1, 0, %p1;", 0},
		{"2", "mbarrier.arrive.noComplete.shared.b64 %rd1, [%r10], 1; cp.async.mbarrier.arrive.noinc.shared.b64 [%r10]; mbarrier.test_wait.shared.b64 %p1, [%r10], %rd1; selp.u32 %r1, 1, 0, %p1;", 1},
		{"2", "mbarrier.arrive.shared.b64 %rd1, [%r10]; cp.async.mbarrier.arrive.shared.b64 [%r10]; mbarrier.test_wait.shared.b64 %p1, [%r10], %rd1; selp.u32 %r1, 1, 0, %p1;", 0},
		{"2", "mbarrier.inval.shared.b64 [%r10]; mbarrier.init.shared.b64 [%r10], 7; mbarrier.arrive.shared.b64 %rd1, [%r10]; mbarrier.pending_count.b64 %r1, %rd1;", 7},
	} {
		p := program(t, clustered(doors(c.init)+c.code+" mov.u32 %r20, cells;"+put("%r1")))
		for _, check := range everyCheck {
			out, fault := run(t, p, simt.Launch{Grid: [3]uint32{4, 1, 1}, Block: [3]uint32{1, 1, 1}, Check: check}, 1)
			require.Nil(t, fault, "%s: %v", c.code, fault)
			require.Equal(t, c.want, out[0], c.code)
		}
	}
	for code, want := range map[string]string{
		"mbarrier.arrive.shared.b64 %rd1, [%r10], 4;":                                     `more threads arrive at this mbarrier than it expects (it expects 3, 3 of them are missing)`,
		"mbarrier.inval.shared.b64 [%r10]; mbarrier.arrive.shared.b64 %rd1, [%r10];":      `this mbarrier has not been initialised (it expects 0, 0 of them are missing)`,
		"mbarrier.inval.shared.b64 [%r10]; mbarrier.test_wait.shared.b64 %p1, [%r10], 0;": `this mbarrier has not been initialised`,
		"mbarrier.init.shared.b64 [%r10], 0;":                                             `an mbarrier for 0 arrivals; 1 to 1048575 are possible`,
		"mbarrier.arrive.shared.b64 %rd1, [%r10+4];":                                      `an access of 8 bytes at an address that is not a multiple of 8, but 4 more`,
	} {
		p := program(t, clustered(doors("3")+code+" mov.u32 %r20, cells;"+put("%me")))
		_, fault := run(t, p, simt.Launch{Grid: [3]uint32{4, 1, 1}, Block: [3]uint32{1, 1, 1}}, 1)
		require.NotNil(t, fault, code)
		require.Contains(t, fault.Error(), want)
	}
}

func TestCopiesThatMbarriersCount(t *testing.T) {
	// One thread copies 1024 bytes of the output's second half to shared memory, all wait for it; then one copies them back.
	p := program(t, clustered(doors("1")+`
		mov.u32 %r1, cells; mov.u32 %r3, %ctaid.x; mul.wide.u32 %rd1, %r3, 1024; add.u64 %rd1, %out, %rd1; shl.b32 %r2, %me, 2; add.u32 %r2, %r1, %r2;
		mul.wide.u32 %rd2, %me, 4; add.u64 %rd2, %rd1, %rd2; shl.b32 %r4, %r3, 10; add.u32 %r4, %r4, %me; st.global.u32 [%rd2], %r4; bar.sync 0;
		@%p9 mbarrier.arrive.expect_tx.shared.b64 _, [%r10], 1024;
		@%p9 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%rd1], 1024, [%r10];
		`+untilParity("W", "0")+`
		ld.shared.u32 %r5, [%r2]; add.u32 %r5, %r5, 7; st.shared.u32 [%r2], %r5; bar.sync 0;
		sub.u32 %r11, %r1, 64; @%p9 cp.async.bulk.global.shared::cta.bulk_group [%rd1], [%r11+64], 512; cp.async.bulk.commit_group; cp.async.bulk.wait_group.read 0;
		add.u64 %rd3, %rd1, 512; add.u32 %r6, %r1, 512; @%p9 cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%rd3], [%r6], 512;`))
	for _, check := range everyCheck {
		out, fault := run(t, p, simt.Launch{Grid: [3]uint32{4, 1, 1}, Block: [3]uint32{256, 1, 1}, Check: check}, 1024)
		require.Nil(t, fault, "%v", fault)
		for i, got := range out {
			v := uint32(i/256<<10 + i%256)
			if i%256 < 128 {
				require.Equal(t, v+7, got)
			} else {
				require.Equal(t, 2*v+7, got)
			}
		}
	}
}

func TestStoresThatMbarriersCount(t *testing.T) {
	// Each block stores its number in the next one, and adds it to the one after that.
	p := program(t, clustered(doors("1")+`
		mov.u32 %r1, cells; mov.u32 %r4, %cluster_ctarank; @%p9 st.shared.v2.u32 [%r1], {%me, %me};
		@%p9 mbarrier.arrive.expect_tx.shared.b64 _, [%r10], 12;
		barrier.cluster.arrive; barrier.cluster.wait;
		add.u32 %r5, %r4, 1; and.b32 %r5, %r5, 3; mapa.shared::cluster.u32 %r6, %r1, %r5; mapa.shared::cluster.u32 %r7, %r10, %r5;
		add.u32 %r8, %r4, 100; mov.u32 %r9, 5;
		@%p9 st.async.shared::cluster.mbarrier::complete_tx::bytes.v2.u32 [%r6], {%r8, %r9}, [%r7];
		add.u32 %r5, %r4, 2; and.b32 %r5, %r5, 3; mapa.shared::cluster.u32 %r6, %r1, %r5; mapa.shared::cluster.u32 %r7, %r10, %r5;
		@%p9 red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.u32 [%r6+8], %r8, [%r7];
		`+untilParity("W", "0")+`
		ld.shared.v2.u32 {%r11, %r12}, [%r1]; ld.shared.u32 %r13, [%r1+8]; shl.b32 %r13, %r13, 16; add.u32 %r11, %r11, %r12; add.u32 %r11, %r11, %r13;
		barrier.cluster.arrive; barrier.cluster.wait; mov.u32 %me, %r4;`+put("%r11")))
	out, fault := run(t, p, simt.Launch{Grid: [3]uint32{4, 1, 1}, Block: [3]uint32{32, 1, 1}}, 4)
	require.Nil(t, fault, "%v", fault)
	for i, got := range out {
		require.Equal(t, uint32((i+3)&3+100+5+((i+2)&3+100)<<16), got)
	}
}

// Some lanes of a warp wait at the barrier of their cluster while others have still to arrive; none goes on before all have.
func TestLanesWaitForTheirClusterInParts(t *testing.T) {
	for _, few := range []string{"1", "7", "31"} {
		p := program(t, clustered(`
			mov.u32 %r1, cells; shl.b32 %r2, %me, 2; add.u32 %r2, %r1, %r2; mov.u32 %r4, %cluster_ctarank; mov.u32 %r3, %ctaid.x;
			setp.lt.u32 %p1, %me, `+few+`; @%p1 bra FEW;
			st.shared.u32 [%r2], %r3; barrier.cluster.arrive; barrier.cluster.wait; bra MET;
			FEW: add.u32 %r9, %r3, 100; st.shared.u32 [%r2], %r9; barrier.cluster.arrive; barrier.cluster.wait;
			MET: add.u32 %r5, %r4, 1; and.b32 %r5, %r5, 3; mapa.shared::cluster.u32 %r7, %r2, %r5; ld.shared::cluster.u32 %r8, [%r7];
			barrier.cluster.arrive; barrier.cluster.wait;
			shl.b32 %r9, %r3, 5; add.u32 %me, %me, %r9;`+put("%r8")))
		for _, check := range everyCheck {
			out, fault := run(t, p, simt.Launch{Grid: [3]uint32{4, 1, 1}, Block: [3]uint32{32, 1, 1}, Check: check}, 128)
			require.Nil(t, fault, "%v", fault)
			for i, v := range out {
				want := uint32((i/32 + 1) % 4)
				if v >= 100 {
					want += 100
				}
				require.Equal(t, want, v)
			}
		}
	}
}

// What another block of the cluster has in shared memory can be read once somebody has written it; a store needs no value before it.
func TestReadingWhatNoBlockOfTheClusterWrote(t *testing.T) {
	for code, kind := range map[string]simt.FaultKind{"st.shared::cluster.u32 [%r7], 1;": 0, "st.shared::cluster.u32 [%r7], 1; ld.shared::cluster.u32 %r8, [%r7];": 0,
		"ld.shared::cluster.u32 %r8, [%r7]; setp.eq.u32 %p2, %r8, 0; @%p2 mov.u32 %r9, 0;": simt.Uninitialised, "red.shared::cluster.add.u32 [%r7], 1;": simt.Uninitialised} {
		p := program(t, clustered(`mov.u32 %r1, cells; mov.u32 %r5, 2; mapa.shared::cluster.u32 %r7, %r1, %r5; mov.u32 %r4, %cluster_ctarank; setp.eq.u32 %p1, %r4, 0;
			@!%p1 bra OUT; `+code+`
			OUT: barrier.cluster.arrive; barrier.cluster.wait;`))
		_, fault := run(t, p, simt.Launch{Grid: [3]uint32{4, 1, 1}, Block: [3]uint32{1, 1, 1}, Check: simt.CheckFull}, 1)
		if kind == 0 {
			require.Nil(t, fault, "%s: %v", code, fault)
			continue
		}
		require.NotNil(t, fault, code)
		require.Equal(t, kind, fault.Kind, code)
	}
}

func TestClustersThatAreRefused(t *testing.T) {
	one := [3]uint32{1, 1, 1}
	for _, c := range []struct {
		directives    string
		grid, cluster [3]uint32
		want          string
	}{
		{"", [3]uint32{4, 1, 1}, [3]uint32{2, 1, 1}, ""},
		{"", [3]uint32{3, 1, 1}, [3]uint32{2, 1, 1}, "grid.x is 3, which is not a multiple of the 2 blocks of a cluster"},
		{"", [3]uint32{1, 3, 1}, [3]uint32{1, 2, 1}, "grid.y is 3, which is not a multiple of the 2 blocks of a cluster"},
		{"", [3]uint32{1, 1, 3}, [3]uint32{1, 1, 2}, "grid.z is 3, which is not a multiple of the 2 blocks of a cluster"},
		{"", one, [3]uint32{1, 0, 1}, "grid.y is 1, which is not a multiple of the 0 blocks of a cluster"},
		{"", [3]uint32{16, 1, 1}, [3]uint32{16, 1, 1}, ""},
		{"", [3]uint32{17, 1, 1}, [3]uint32{17, 1, 1}, "a cluster of 17 blocks; at most 16 are possible"},
		{"", [3]uint32{2, 3, 3}, [3]uint32{2, 3, 3}, "a cluster of 18 blocks; at most 16 are possible"},
		{".maxclusterrank 1", [3]uint32{2, 1, 1}, one, ""},
		{".maxclusterrank 1", [3]uint32{2, 1, 1}, [3]uint32{2, 1, 1}, "a cluster of 2 blocks; its code allows at most 1"},
		{".maxclusterrank 2", [3]uint32{2, 1, 1}, [3]uint32{2, 1, 1}, ""},
		{".explicitcluster", one, [3]uint32{}, "its code asks for a launch in clusters"},
		{".explicitcluster", one, one, ""},
		{".explicitcluster .reqnctapercluster 2", [3]uint32{2, 1, 1}, [3]uint32{}, ""},
		{".reqnctapercluster 2", [3]uint32{2, 1, 1}, [3]uint32{}, ""},
		{".reqnctapercluster 2", [3]uint32{3, 1, 1}, [3]uint32{}, "grid.x is 3, which is not a multiple of the 2 blocks of a cluster"},
		{".reqnctapercluster 2", [3]uint32{4, 1, 1}, [3]uint32{4, 1, 1}, "the launch has clusters of 4x1x1 blocks, and the code of the kernel has clusters of 2x1x1"},
		{".reqnctapercluster 2", [3]uint32{2, 1, 1}, one, "the launch has clusters of 1x1x1 blocks, and the code of the kernel has clusters of 2x1x1"},
	} {
		k, err := program(t, ".visible .entry k() "+c.directives+" { ret; }").Kernel("k")
		require.NoError(t, err)
		_, err = k.Start(simt.Launch{Grid: c.grid, Block: one, Cluster: c.cluster})
		if c.want == "" {
			require.NoError(t, err, "%s %v", c.directives, c.cluster)
			continue
		}
		require.EqualError(t, err, `kernel "k": `+c.want)
	}
}
