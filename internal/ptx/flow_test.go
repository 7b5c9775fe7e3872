// Tests of blocks, and of splitting registers into webs.

package ptx

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

const flowHead = ".version 7.0\n.target sm_80\n.address_size 64\n.entry k() { .reg .pred p; .reg .b32 a, b, c; .reg .v2 .b32 v;\n"

func TestBlocks(t *testing.T) {
	m := parse(t, flowHead+`
	mov.b32 a, 1;
L:	add.s32 a, a, 1;
	@p bra L;
	bra M;
	mov.b32 b, 1;
M:	ret;
}`)
	f := &m.Functions[0]
	assert.Equal(t, []Block{
		{Start: 0, End: 1, Next: []int32{1}},
		{Start: 1, End: 3, Next: []int32{2, 1}, Before: []int32{0, 1}},
		{Start: 3, End: 4, Next: []int32{4}, Before: []int32{1}},
		{Start: 4, End: 5, Next: []int32{4}},
		{Start: 5, End: 6, Before: []int32{2, 3}},
	}, f.Blocks())
	assert.Equal(t, []bool{true, true, true, true, false, true}, f.Reachable())
}

// names lists the registers of each instruction after Split, so that equal numbers mean one web.
func names(f *Function) (lists [][]int32) {
	for i := range f.Code {
		var list []int32
		for _, o := range f.Code[i].Operands {
			if r := o.Register(); r != NoRegister {
				list = append(list, int32(r))
			}
		}
		lists = append(lists, list)
	}
	return lists
}

func TestSplit(t *testing.T) {
	for name, c := range map[string]struct {
		body string
		want [][]int32
	}{
		"a straight line": {"mov.b32 a, 1; add.s32 a, a, 1; mov.b32 b, a;", [][]int32{{0}, {2, 0}, {1, 2}}},
		"a loop is one web": {"mov.b32 a, 1; L: add.s32 a, a, 1; @p bra L; mov.b32 b, a; mov.b32 a, 5; mov.b32 c, a;",
			[][]int32{{0}, {0, 0}, {}, {2, 0}, {4}, {3, 4}}},
		"two ways meet": {"@p bra M; mov.b32 a, 1; bra N; M: mov.b32 a, 2; N: mov.b32 b, a; mov.b32 a, b; mov.b32 c, a;",
			[][]int32{{}, {1}, {}, {1}, {2, 1}, {4, 2}, {3, 4}}},
		"a guard leaves the old value": {"mov.b32 a, 1; @p mov.b32 a, 2; mov.b32 b, a; mov.b32 a, 3; mov.b32 c, a;",
			[][]int32{{0}, {0}, {2, 0}, {4}, {3, 4}}},
		"a part leaves the others": {"mov.b32 v.x, 1; mov.b32 v.y, 2; mov.b32 b, v.x;", [][]int32{{0}, {0}, {1, 0}}},
		"nothing to take apart":    {"mov.b32 a, 1; mov.b32 b, a;", [][]int32{{0}, {1, 0}}},
	} {
		m := parse(t, flowHead+c.body+"}")
		f := &m.Functions[0]
		before := names(f)
		got := names(f.Split())
		for i := range c.want {
			assert.ElementsMatch(t, c.want[i], got[i], "%s: instruction %d of %v", name, i, got)
		}
		assert.Equal(t, before, names(f), "%s: the function itself is unchanged", name)
	}
}
