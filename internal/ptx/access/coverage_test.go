// What launches certainly write of an argument, and kernels of which that cannot be said.

package access

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/internal/ptx"
)

func TestCovers(t *testing.T) {
	const write = "add.s64 %a1, %p, %o; st.global.f32 [%a1], %f;"
	const guard = "setp.ge.s32 c, %i, %n; @c bra E;"
	launch := Launch{Grid: [3]uint32{4, 1, 1}, Block: [3]uint32{256, 1, 1}, Scalars: map[int]uint64{2: 1000, 3: 1 << 20}}
	for _, c := range []struct {
		name, body string
		bytes      int64 // of p
		tile       Tile
		aliased    bool
		want       string
	}{
		{"exactly", thread + write, 4096, Tile{}, false, "whole"},
		{"a guard", thread + guard + write, 4000, Tile{}, false, "whole"},
		{"a guard that leaves some out", thread + guard + write, 4096, Tile{}, false, "not 4000..4096"},
		{"another pointer to the same bytes", thread + guard + write, 4096, Tile{}, true, ""},
		{"every second", thread + "shl.b64 %o, %o, 1;" + write, 8192, Tile{}, false, "not 4..8"},
		{"every second, of a tile that has only those", thread + "shl.b64 %o, %o, 1;" + write, 4092, Tile{Row: 4, Pitch: 8}, false, "whole"},
		{"a predicated store", thread + "setp.lt.u32 c, %i, %n; add.s64 %a1, %p, %o; @c st.global.f32 [%a1], %f;", 4000, Tile{}, false, "whole"},
		{"pairs", thread + "setp.ge.s32 c, %i, 500; @c bra E; shl.b64 %o, %o, 1; add.s64 %a1, %p, %o; st.global.v2.f32 [%a1], {%f, %f};", 4000, Tile{}, false, "whole"},
		{"a store that memory decides", thread + "ld.global.s32 %r5, [%q]; setp.eq.s32 c, %r5, 7; add.s64 %a1, %p, %o; @c st.global.f32 [%a1], %f;", 4096, Tile{}, false, ""},
		{"behind a test of memory", thread + "ld.global.s32 %r5, [%q]; setp.eq.s32 c, %r5, 7; @c bra E;" + write, 4096, Tile{}, false, ""},
		{"before a test of memory", thread + write + "ld.global.s32 %r5, [%q]; setp.eq.s32 c, %r5, 7; @c bra E; st.global.f32 [%a1], %f;", 4096, Tile{}, false, "whole"},
		{"an index from memory", thread + "ld.global.s32 %r5, [%q]; mul.wide.s32 %o, %r5, 4;" + write, 4096, Tile{}, false, ""},
		{"somewhere else", thread + "add.s64 %a1, %q, %o; st.global.f32 [%a1], %f;", 4096, Tile{}, false, "not 0..4096"},
		{"in shared memory", "mov.u64 %a1, tile; st.shared.f32 [%a1], %f;", 8, Tile{}, false, "not 0..8"},
		{"an update", thread + "add.s64 %a1, %p, %o; red.global.add.f32 [%a1], %f;", 4096, Tile{}, false, ""},
		{"a trap", thread + guard + write + "trap;", 4096, Tile{}, false, ""},
		{"an asynchronous store", thread + "cp.async.bulk.global.shared::cta.bulk_group [%p], [tile], 16;", 16, Tile{}, false, ""},
		{"an asynchronous load", thread + "cp.async.ca.shared.global [tile], [%p], 16;", 16, Tile{}, false, "not 0..16"},
		{"a loop", "mov.u32 %r5, 0; mov.u64 %a1, %p; L: st.global.f32 [%a1], %f; add.s64 %a1, %a1, 4; add.s32 %r5, %r5, 1; setp.lt.s32 c, %r5, 50; @c bra L;", 204, Tile{}, false, "not 200..204"},
		{"for ever", thread + write + "L: bra L;", 8192, Tile{}, false, ""},
		{"at no multiple of its size", thread + "add.s64 %a1, %p, %o; st.global.f32 [%a1+2], %f;", 8192, Tile{}, false, ""},
		{"past the end", thread + write, 2048, Tile{}, false, "whole"},
	} {
		m, err := ptx.Parse(head + fmt.Sprintf(kernelText, c.body))
		require.NoError(t, err, c.name)
		covered := Covers(m, m.Entries()[0], launch, map[int]int64{0: c.bytes, 1: 4096}, 0, c.tile, !c.aliased)
		got := ""
		switch {
		case covered.Whole:
			got = "whole"
		case covered.Hi > 0:
			got = fmt.Sprintf("not %d..%d", covered.Lo, covered.Hi)
		}
		assert.Equal(t, c.want, got, c.name)
	}
	m, err := ptx.Parse(head + fmt.Sprintf(kernelText, thread+write))
	require.NoError(t, err)
	launch.Grid[0] = 1 << 20
	assert.Equal(t, Covered{}, Covers(m, m.Entries()[0], launch, map[int]int64{0: 4096}, 0, Tile{}, true), "too many threads to follow")
	m, err = ptx.Parse(head + fmt.Sprintf(kernelText, "ret;"))
	require.NoError(t, err)
	const steps = 5 // for each thread
	launch = Launch{Grid: [3]uint32{mostCovered / steps}, Block: [3]uint32{1}}
	assert.Equal(t, Covered{Hi: 4096}, Covers(m, m.Entries()[0], launch, map[int]int64{0: 4096}, 0, Tile{}, true), "as many threads as are followed")
	launch.Grid[0]++
	assert.Equal(t, Covered{}, Covers(m, m.Entries()[0], launch, map[int]int64{0: 4096}, 0, Tile{}, true), "one more")
	launch.Grid[0] = 0
	assert.Equal(t, Covered{}, Covers(m, m.Entries()[0], launch, map[int]int64{0: 4096}, 0, Tile{}, true), "a launch of nothing")
}
