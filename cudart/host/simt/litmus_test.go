// Tests of the order that messages give: one thread writes a value and sets a flag, another waits for the flag and reads the value. By PTX's memory
// model that is ordered if both do it strongly and in a scope that holds both: with a fence, a release or an acquire.

package simt_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/cudart/host/simt"
)

// scope is the threads that a fence or a strong access is for: none, those of the block, or all.
type scope int

const (
	nobody scope = iota
	ofBlock
	ofAll
)

// side is what one thread does with a message: its code, how far the access to the flag is strong, and how far that access orders by itself.
type side struct {
	code          string
	strong, alone scope
}

var (
	fences = map[string]scope{"": nobody, "membar.cta;": ofBlock, "fence.acq_rel.cta;": ofBlock, "membar.gl;": ofAll, "fence.sc.gpu;": ofAll, "fence.acq_rel.sys;": ofAll}
	sends  = []side{
		{"st.global.u32 [flag], 1;", nobody, nobody}, {"st.volatile.global.u32 [flag], 1;", ofAll, nobody}, {"st.relaxed.cta.global.u32 [flag], 1;", ofBlock, nobody},
		{"st.relaxed.gpu.global.u32 [flag], 1;", ofAll, nobody}, {"st.release.cta.global.u32 [flag], 1;", ofBlock, ofBlock}, {"st.release.gpu.global.u32 [flag], 1;", ofAll, ofAll},
		{"atom.global.exch.b32 %r20, [flag], 1;", ofAll, nobody}, {"red.release.gpu.global.add.u32 [flag], 1;", ofAll, ofAll}, {"atom.acq_rel.cta.global.add.u32 %r20, [flag], 1;", ofBlock, ofBlock},
	}
	receives = []side{
		{"ld.global.u32 %r6, [flag];", nobody, nobody}, {"ld.volatile.global.u32 %r6, [flag];", ofAll, nobody}, {"ld.relaxed.cta.global.u32 %r6, [flag];", ofBlock, nobody},
		{"ld.relaxed.gpu.global.u32 %r6, [flag];", ofAll, nobody}, {"ld.acquire.cta.global.u32 %r6, [flag];", ofBlock, ofBlock}, {"ld.acquire.gpu.global.u32 %r6, [flag];", ofAll, ofAll},
		{"atom.global.or.b32 %r6, [flag], 0;", ofAll, ofAll}, // what kernels do and GPUs honour: an atomic operation acquires
	}
)

func TestMessagesAreOrderedAsTheModelSays(t *testing.T) {
	ordered, races := 0, 0
	for _, send := range sends {
		for _, receive := range receives {
			for before, beforeScope := range fences {
				for after, afterScope := range fences {
					if len(before)+len(after) > 0 && (send.alone > 0 && before != "" && before != "membar.cta;" || receive.alone > 0 && after != "" && after != "membar.cta;") {
						continue // says nothing new
					}
					for _, reader := range []struct {
						warp, block int
						needs       scope
					}{{1, 0, ofBlock}, {0, 1, ofAll}} {
						code := prologue + fmt.Sprintf(`
mov.u32 %%r5, %%cta; mad.lo.u32 %%r7, %%r5, 64, %%me;
setp.eq.u32 %%p1, %%r7, 0; @%%p1 bra SEND; setp.eq.u32 %%p2, %%r7, %d; @%%p2 bra RECEIVE; bra END;
SEND: st.global.u32 [%%out], 7;
%s
%s
bra END;
RECEIVE: %s setp.eq.u32 %%p3, %%r6, 0; @%%p3 bra RECEIVE;
%s
ld.global.u32 %%v, [%%out];
END:
`, 32*reader.warp+64*reader.block, before, send.code, receive.code, after)
						releases := max(send.alone, min(beforeScope, send.strong))
						acquires := max(receive.alone, min(afterScope, receive.strong))
						fault := check(t, code, simt.CheckFull)
						if min(releases, acquires) >= reader.needs {
							ordered++
							require.Nil(t, fault, code)
							continue
						}
						races++
						require.NotNil(t, fault, code)
						require.Equal(t, simt.Race, fault.Kind, "%v: %s", fault, code)
						if strings.Contains(fault.Instruction, "ld.global.u32") && send.strong > 0 && receive.strong > 0 {
							require.Contains(t, fault.Error(), "which thread (0,0,0)")
						}
					}
				}
			}
		}
	}
	require.Greater(t, ordered, 100)
	require.Greater(t, races, 500)
}

// A thread's release tells also what others did before it: those that a barrier put before its fence. What comes after that barrier it does not tell,
// but for what the thread did itself. Here one thread of block 0 writes, before or after a barrier, and thread 0 releases, to a thread of block 1.
func TestReleasesTellWhatBarriersPutBeforeThem(t *testing.T) {
	for _, c := range []struct {
		barrier string
		before  []int // the threads whose writes it puts before thread 0's fence
	}{
		{"", nil},
		{"bar.warp.sync -1;", []int{3, 9}},
		{"setp.ge.u32 %p4, %me, 4; @%p4 bra ON; bar.warp.sync 0xf; ON:", []int{3}},
		{"bar.sync 0;", []int{3, 9, 40, 70}},
		{"setp.ge.u32 %p4, %me, 64; @%p4 bra ON; bar.sync 1, 64; ON:", []int{3, 9, 40}},
		{"setp.ge.u32 %p4, %me, 32; @%p4 bra LAST; bar.sync 1, 64; bra ON; LAST: setp.ge.u32 %p4, %me, 64; @%p4 bra ON; bar.arrive 1, 64; ON:", []int{3, 9, 40}},
	} {
		for _, writer := range []int{0, 3, 9, 40, 70} {
			for _, late := range []bool{false, true} {
				write := fmt.Sprintf("setp.eq.u32 %%p3, %%me, %d; @%%p3 st.global.u32 [%%out], 7;\n", writer)
				code := c.barrier + "\n" + write
				if !late {
					code = write + c.barrier + "\n"
				}
				p := program(t, ".global .u32 flag;\n"+entry(`
mov.u32 %r1, %ctaid.x; setp.ne.u32 %p1, %r1, 0; setp.ne.u32 %p2, %me, 0; @%p1 bra READ;
`+code+`
@%p2 bra END;
fence.acq_rel.gpu;
st.relaxed.gpu.global.u32 [flag], 1; bra END;
READ: @%p2 bra END;
POLL: ld.relaxed.gpu.global.u32 %r2, [flag]; setp.eq.u32 %p5, %r2, 0; @%p5 bra POLL;
fence.acq_rel.gpu;
ld.global.u32 %r3, [%out];
END:`))
				_, fault := run(t, p, simt.Launch{Grid: [3]uint32{2, 1, 1}, Block: [3]uint32{96, 1, 1}, Check: simt.CheckFull}, 1)
				if writer == 0 || !late && slices.Contains(c.before, writer) {
					require.Nil(t, fault, "%v: thread %d: %s", fault, writer, code)
					continue
				}
				require.NotNil(t, fault, "thread %d: %s", writer, code)
				require.Equal(t, simt.Race, fault.Kind, "%v: thread %d: %s", fault, writer, code)
			}
		}
	}
}

// Each block has a flag of its own in shared memory: what one releases there no other block learns of, whatever it reads at the same place.
func TestFlagsInSharedMemoryAreOfTheirBlock(t *testing.T) {
	for reader, race := range map[int]bool{0: false, 1: true} {
		fault := check(t, prologue+fmt.Sprintf(`
setp.eq.u32 %%p1, %%me, 0; setp.eq.and.u32 %%p2, %%cta, 0, %%p1;
@%%p1 st.relaxed.gpu.shared.u32 [last], 0;
@%%p2 st.global.u32 [%%out], 7;
fence.acq_rel.gpu;
@%%p1 st.relaxed.gpu.shared.u32 [last], 1;
setp.ne.u32 %%p3, %%me, 32; setp.ne.or.u32 %%p3, %%cta, %d, %%p3; @%%p3 bra END;
POLL: ld.relaxed.gpu.shared.u32 %%r2, [last]; setp.ne.u32 %%p4, %%r2, 1; @%%p4 bra POLL;
fence.acq_rel.gpu;
ld.global.u32 %%r3, [%%out];
END:
`, reader), simt.CheckFull)
		require.Equal(t, race, fault != nil, "block %d: %v", reader, fault)
		if race {
			require.Equal(t, simt.Race, fault.Kind, "%v", fault)
		}
	}
}

// among lets the threads from lo up to hi run code.
func among(lo, hi int, code string) string {
	label := fmt.Sprintf("PAST%d_%d_%d", lo, hi, len(code))
	return fmt.Sprintf("setp.ge.u32 %%p8, %%me, %d; setp.lt.or.u32 %%p8, %%me, %d, %%p8; @%%p8 bra %s;\n%s\n%s:\n", hi, lo, label, code, label)
}

// raceOf runs a kernel of blocks of 96 threads and says whether it races; it has no other fault.
func raceOf(t *testing.T, blocks int, body string) bool {
	t.Helper()
	p := program(t, ".global .u32 flag, other, more; .shared .u32 cell;\n"+entry("mov.u32 %r1, %ctaid.x;\n"+body))
	_, fault := run(t, p, simt.Launch{Grid: [3]uint32{uint32(blocks), 1, 1}, Block: [3]uint32{96, 1, 1}, Check: simt.CheckFull}, 4)
	if fault != nil {
		require.Equal(t, simt.Race, fault.Kind, "%v: %s", fault, body)
	}
	return fault != nil
}

// What comes before a barrier comes before all that follows a later barrier of one of its threads.
func TestBarriersOfSomeThreadsFollowEachOther(t *testing.T) {
	lanes01, lanes12 := among(0, 2, "bar.warp.sync 3;"), among(1, 3, "bar.warp.sync 6;")
	warps01, warps12 := among(0, 64, "bar.sync 1, 64;"), among(32, 96, "bar.sync 2, 64;")
	for _, c := range []struct {
		barriers string
		reader   int
		ordered  bool
	}{
		{lanes01, 1, true}, {lanes01, 2, false}, {lanes01 + lanes12, 1, true}, {lanes01 + lanes12, 2, true}, {lanes01 + lanes12, 3, false},
		{lanes12 + lanes01, 1, true}, {lanes12 + lanes01, 2, false},
		{warps01, 3, true}, {warps01, 33, true}, {warps01, 65, false}, {warps12, 3, false}, {warps01 + warps12, 33, true}, {warps01 + warps12, 65, true}, {warps12 + warps01, 33, true}, {warps12 + warps01, 65, false},
		{warps01 + warps12 + lanes01, 65, true}, {lanes01 + warps01, 33, true}, {lanes01 + warps12, 33, false},
	} {
		body := among(0, 1, "st.shared.u32 [cell], 1;") + c.barriers + among(c.reader, c.reader+1, "ld.shared.u32 %r2, [cell];")
		require.Equal(t, !c.ordered, raceOf(t, 1, body), body)
	}
}

const (
	acquireFlag = "POLL: ld.relaxed.gpu.global.u32 %r2, [flag]; setp.eq.u32 %p2, %r2, 0; @%p2 bra POLL;\n"
	fenceOfAll  = "fence.acq_rel.gpu;\n"
)

// inBlock lets one block run code.
func inBlock(block int, code string) string {
	return fmt.Sprintf("setp.ne.u32 %%p1, %%r1, %d; @%%p1 bra BLOCK%d;\n%s\nbra END; BLOCK%d:\n", block, block, code, block)
}

// What one thread has acquired, a barrier passes on to those that wait for it, and to no others. A barrier of the block or of the warp does so even
// without a fence.
func TestBarriersPassOnWhatWasAcquired(t *testing.T) {
	for _, c := range []struct {
		barrier string
		lenient bool
		readers []int // those that it passes on to
	}{
		{"", false, nil},
		{"bar.warp.sync -1;", true, []int{3, 9}},
		{among(0, 4, "bar.warp.sync 15;"), true, []int{3}},
		{"bar.sync 0;", true, []int{3, 9, 40, 70}},
		{among(0, 64, "bar.sync 1, 64;"), false, []int{3, 9, 40}},
		{among(0, 32, "bar.arrive 1, 64;") + among(32, 64, "bar.sync 1, 64;"), false, []int{40}},
	} {
		for _, fence := range []string{fenceOfAll, ""} {
			if fence == "" && !c.lenient {
				continue
			}
			for _, reader := range []int{3, 9, 40, 70} {
				body := inBlock(0, among(0, 1, "st.global.u32 [%out], 7;\n"+fenceOfAll+"st.relaxed.gpu.global.u32 [flag], 1;")) +
					inBlock(1, among(0, 1, acquireFlag+fence)+c.barrier+"\n"+among(reader, reader+1, "ld.global.u32 %r3, [%out];")) + "END:"
				require.Equal(t, !slices.Contains(c.readers, reader), raceOf(t, 2, body), "thread %d: %s", reader, body)
			}
		}
	}
}

// Three blocks of which the middle one passes on what it has acquired.
func TestReleasesTellWhatWasAcquired(t *testing.T) {
	send := inBlock(0, among(0, 1, "st.global.u32 [%out], 7;\n"+fenceOfAll+"st.relaxed.gpu.global.u32 [flag], 1;"))
	receive := func(flag string) string {
		return inBlock(2, among(0, 1, strings.NewReplacer("POLL", "WAIT", "flag", flag).Replace(acquireFlag)+fenceOfAll+"ld.global.u32 %r3, [%out];")) + "END:"
	}
	const tell, tellMore = "st.relaxed.gpu.global.u32 [other], 1;\n", "st.relaxed.gpu.global.u32 [more], 1;\n"
	for _, c := range []struct {
		middle, flag string
		ordered      bool
	}{
		{among(0, 1, acquireFlag+fenceOfAll+tell), "other", true},
		{among(0, 1, acquireFlag+tell), "other", false},
		{among(0, 1, fenceOfAll+acquireFlag+tell), "other", false},
		{among(0, 1, acquireFlag+fenceOfAll+tell+fenceOfAll+tellMore), "more", true}, // each release tells all that is known
		{among(0, 1, acquireFlag+fenceOfAll+tell+tellMore), "more", true},
		{among(0, 1, acquireFlag) + "bar.sync 0;\n" + among(1, 2, fenceOfAll+tell), "other", true},
		{among(0, 1, acquireFlag) + "bar.sync 0;\n" + among(1, 2, tell), "other", false}, // without a fence, a barrier alone releases nothing
		{among(0, 1, acquireFlag+fenceOfAll) + among(1, 2, fenceOfAll+tell), "other", false},
		{among(0, 1, acquireFlag+fenceOfAll) + "bar.warp.sync -1;\n" + among(1, 2, fenceOfAll+tell), "other", true},
	} {
		require.Equal(t, !c.ordered, raceOf(t, 3, send+inBlock(1, c.middle)+receive(c.flag)), c.middle)
	}
}

// Who has seen a first release at a place does not know what a later one there tells. Block 1 releases twice at other, and acquires the value of block 0
// in between; block 2 has a fence only after the first.
func TestEarlierReleasesDoNotTellWhatLaterOnesDo(t *testing.T) {
	for fence, race := range map[string]bool{"": true, fenceOfAll: false} {
		require.Equal(t, race, raceOf(t, 3, inBlock(0, among(0, 1, "st.global.u32 [%out], 7;\n"+fenceOfAll+"st.relaxed.gpu.global.u32 [flag], 1;"))+
			inBlock(1, among(0, 1, fenceOfAll+"st.relaxed.gpu.global.u32 [other], 1;\nONCE: ld.relaxed.gpu.global.u32 %r2, [more]; setp.eq.u32 %p2, %r2, 0; @%p2 bra ONCE;\n"+
				acquireFlag+fenceOfAll+"st.relaxed.gpu.global.u32 [other], 2; st.relaxed.gpu.global.u32 [more], 2;"))+
			inBlock(2, among(0, 1, "FIRST: ld.relaxed.gpu.global.u32 %r2, [other]; setp.eq.u32 %p2, %r2, 0; @%p2 bra FIRST;\n"+fenceOfAll+
				"st.relaxed.gpu.global.u32 [more], 1;\nAGAIN: ld.relaxed.gpu.global.u32 %r2, [more]; setp.ne.u32 %p2, %r2, 2; @%p2 bra AGAIN;\n"+fence+"ld.global.u32 %r3, [%out];"))+"END:"), fence)
	}
}

// Each thread's release counts, also of threads of one warp that have had their fence together.
func TestReleasesOfOneWarpAtOnePlace(t *testing.T) {
	for _, fence := range []string{fenceOfAll, ""} {
		body := inBlock(0, among(0, 3, "mul.wide.u32 %rd1, %me, 4; add.u64 %rd1, %out, %rd1; st.global.u32 [%rd1], 7;\n"+fence+"red.relaxed.gpu.global.add.u32 [flag], 1;")) +
			inBlock(1, among(0, 1, "POLL: ld.relaxed.gpu.global.u32 %r2, [flag]; setp.ne.u32 %p2, %r2, 3; @%p2 bra POLL;\n"+fenceOfAll+
				"ld.global.u32 %r3, [%out]; ld.global.u32 %r3, [%out+4]; ld.global.u32 %r3, [%out+8];")) + "END:"
		require.Equal(t, fence == "", raceOf(t, 2, body), body)
	}
}

// A block that has heard of a first release at a place hears of the next one too, and of what that tells.
func TestBlocksHearLaterReleasesAtAPlace(t *testing.T) {
	for fence, race := range map[string]bool{fenceOfAll: false, "": true} {
		require.Equal(t, race, raceOf(t, 3, inBlock(0, among(0, 1, "st.global.u32 [%out], 7;\n"+fenceOfAll+"st.relaxed.gpu.global.u32 [flag], 1;"))+
			inBlock(1, among(0, 1, "st.global.u32 [%out+4], 8;\n"+fenceOfAll+"st.relaxed.gpu.global.u32 [other], 1;\nONCE: ld.relaxed.gpu.global.u32 %r2, [more]; setp.eq.u32 %p2, %r2, 0; @%p2 bra ONCE;\n"+
				acquireFlag+fence+"st.relaxed.gpu.global.u32 [other], 2;"))+
			inBlock(2, among(0, 1, "FIRST: ld.relaxed.gpu.global.u32 %r2, [other]; setp.eq.u32 %p2, %r2, 0; @%p2 bra FIRST;\n"+fenceOfAll)+"bar.sync 0; ld.global.u32 %r3, [%out+4];\n"+
				among(0, 1, "st.relaxed.gpu.global.u32 [more], 1;\nAGAIN: ld.relaxed.gpu.global.u32 %r2, [other]; setp.ne.u32 %p2, %r2, 2; @%p2 bra AGAIN;\n"+fenceOfAll)+
				"bar.sync 0; ld.global.u32 %r3, [%out];")+"END:"), fence)
	}
}
