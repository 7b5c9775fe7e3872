// Tests of the order that messages give: one thread writes a value and sets a flag, another waits for the flag and reads the value. By PTX's memory
// model that is ordered if both do it strongly and in a scope that holds both: with a fence, a release or an acquire.

package simt_test

import (
	"fmt"
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
