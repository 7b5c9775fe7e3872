// Tests of kernels that wait for the launches before them.

package ptx_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	language "github.com/dagrun/dagrun/internal/ptx"
	"github.com/dagrun/dagrun/kernels/library/ptx"
)

const earlyHead = ".version 6.0\n.target sm_52, texmode_independent\n.address_size 64\n"

// waits parses a text and tells for each entry whether it waits first.
func waits(t *testing.T, text string) map[string]bool {
	t.Helper()
	m, err := language.Parse(text)
	require.NoError(t, err, "%s", text)
	found := map[string]bool{}
	for _, id := range m.Entries() {
		found[m.Functions[id].Name] = m.WaitsFirst(id)
	}
	return found
}

func TestWaitingComesBeforeAllThatOthersNotice(t *testing.T) {
	const wait = "griddepcontrol.wait; griddepcontrol.launch_dependents; "
	for name, c := range map[string]struct{ body, want string }{
		"addresses": {"\t.reg .b32 %r<3>;\n\tld.param.u32 %r1, [a];\n\tmov.u32 %r2, %tid.x;\n\tadd.u32 %r1, %r1, %r2;\n\tst.global.u32 [v], %r1;\n\tret;\n",
			"\t.reg .b32 %r<3>;\n\tld.param.u32 %r1, [a];\n\tmov.u32 %r2, %tid.x;\n\tadd.u32 %r1, %r1, %r2;\n\t" + wait + "st.global.u32 [v], %r1;\n\tret;\n"},
		"no memory": {"\t.reg .b32 %r<2>;\n\tld.param.u32 %r1, [a];\n\tret;\n",
			"\t.reg .b32 %r<2>;\n\tld.param.u32 %r1, [a];\n\t" + wait + "ret;\n"},
		"a clock": {"\t.reg .b32 %r<3>;\n\tld.param.u32 %r1, [a];\n\tmov.u32 %r2, %clock;\n\tret;\n",
			"\t.reg .b32 %r<3>;\n\tld.param.u32 %r1, [a];\n\t" + wait + "mov.u32 %r2, %clock;\n\tret;\n"},
		"a clock in a vector": {"\t.reg .b32 %r<3>;\n\t.reg .b64 %d;\n\tld.param.u32 %r1, [a];\n\tmov.b64 %d, {%r1, %clock_hi};\n\tret;\n",
			"\t.reg .b32 %r<3>;\n\t.reg .b64 %d;\n\tld.param.u32 %r1, [a];\n\t" + wait + "mov.b64 %d, {%r1, %clock_hi};\n\tret;\n"},
		"constant memory": {"\t.reg .b32 %r<2>;\n\tmov.u32 %r1, %ntid.x;\n\tld.const.u32 %r1, [c];\n\tret;\n",
			"\t.reg .b32 %r<2>;\n\tmov.u32 %r1, %ntid.x;\n\t" + wait + "ld.const.u32 %r1, [c];\n\tret;\n"},
		"a guard": {"\t.reg .pred %p;\n\t@%p /* @ */ bra END;\nEND: ret;\n",
			"\t.reg .pred %p;\n\t" + wait + "@%p /* @ */ bra END;\nEND: ret;\n"},
		"a guard after something": {"\t.reg .pred %p;\n\t.reg .b32 %r<2>;\n\tmov.u32 %r1, 1;\n\tsetp.eq.u32 %p, %r1, 0;\n\t@%p ret;\n\tst.global.u32 [v], %r1;\n\tret;\n",
			"\t.reg .pred %p;\n\t.reg .b32 %r<2>;\n\tmov.u32 %r1, 1;\n\t" + wait + "setp.eq.u32 %p, %r1, 0;\n\t@%p ret;\n\tst.global.u32 [v], %r1;\n\tret;\n"},
		"a loop": {"LOOP:\n\tbar.sync 0;\n\tbra LOOP;\n",
			wait + "LOOP:\n\tbar.sync 0;\n\tbra LOOP;\n"},
		"a loop of what only computes": {"\t.reg .b32 %r<3>;\nLOOP:\n\tadd.u32 %r1, %r1, 1;\n\tadd.u32 %r2, %r1, 1;\n\tbra LOOP;\n",
			"\t.reg .b32 %r<3>;\n" + wait + "LOOP:\n\tadd.u32 %r1, %r1, 1;\n\tadd.u32 %r2, %r1, 1;\n\tbra LOOP;\n"},
		"a loop after something": {"\t.reg .b32 %r<3>;\n\tmov.u32 %r1, 1;\n\tmov.u32 %r2, 1;\nLOOP:\n\tadd.u32 %r1, %r1, 1;\n\tbra LOOP;\n",
			"\t.reg .b32 %r<3>;\n\tmov.u32 %r1, 1;\n\t" + wait + "mov.u32 %r2, 1;\nLOOP:\n\tadd.u32 %r1, %r1, 1;\n\tbra LOOP;\n"},
		"a label that nothing goes to": {"\t.reg .b32 %r<3>;\nBEGIN:\n\tmov.u32 %r1, 1;\nNEXT:\n\tst.global.u32 [v], %r1;\n\tret;\n",
			"\t.reg .b32 %r<3>;\nBEGIN:\n\tmov.u32 %r1, 1;\nNEXT:\n\t" + wait + "st.global.u32 [v], %r1;\n\tret;\n"},
		"a block":           {"{ .reg .b32 %r; mov.u32 %r, 1; }\nret;\n", "{ .reg .b32 %r; mov.u32 %r, 1; }\n" + wait + "ret;\n"},
		"a call":            {"\tcall f;\n\tret;\n", "\t" + wait + "call f;\n\tret;\n"},
		"a wait of its own": {"griddepcontrol.wait;\nret;\n", "griddepcontrol.wait;\nret;\n"},
		"a later wait":      {"bar.sync 0;\ngriddepcontrol.wait;\nret;\n", wait + "bar.sync 0;\ngriddepcontrol.wait;\nret;\n"},
	} {
		t.Run(name, func(t *testing.T) {
			entry := ".global .u32 v;\n.const .u32 c;\n.func f() { ret; }\n.visible .entry k(.param .u32 a)\n{\n"
			head := earlyHead
			if strings.Contains(c.body, "griddepcontrol") {
				head = ".version 8.1\n.target sm_90a\n.address_size 64\n"
			}
			got, err := language.Waiting(head + entry + c.body + "}\n")
			require.NoError(t, err)
			if head == earlyHead {
				head = ".version 7.8\n.target sm_90, texmode_independent\n.address_size 64\n"
			}
			require.Equal(t, head+entry+c.want+"}\n", got)
			require.Equal(t, map[string]bool{"k": true}, waits(t, got))
			again, err := language.Waiting(got)
			require.NoError(t, err)
			require.Equal(t, got, again)
		})
	}
}

func TestWaitsFirst(t *testing.T) {
	for body, want := range map[string]bool{
		"griddepcontrol.wait; ret;":                                                                     true,
		"griddepcontrol.launch_dependents; griddepcontrol.wait; ret;":                                   true,
		"ld.param.u64 %rd, [a]; mov.u64 %rd, %rd; griddepcontrol.wait; ret;":                            true,
		"ld.param.u64 %rd, [a]; add.u64 %rd, %rd, 1; setp.eq.u64 %p, %rd, 0; griddepcontrol.wait; ret;": true,
		"mov.u64 %rd, %clock64; griddepcontrol.wait; ret;":                                              false,
		"@%p mov.u64 %rd, 1; griddepcontrol.wait; ret;":                                                 false,
		"shfl.sync.idx.b32 %r, %r, 0, 0, 0; griddepcontrol.wait; ret;":                                  false,
		"ret;":                                   false,
		"":                                       false,
		"griddepcontrol.launch_dependents; ret;": false,
		"@%p griddepcontrol.wait; ret;":          false,
		"@%p ret; griddepcontrol.wait; ret;":     false,
		"ld.param.u64 %rd, [a]; ld.global.u64 %rd, [%rd]; griddepcontrol.wait; ret;": false,
		"ld.param.u64 %rd, [a]; st.global.u64 [%rd], %rd; griddepcontrol.wait; ret;": false,
		"bar.sync 0; griddepcontrol.wait; ret;":                                      false,
		"bra END; griddepcontrol.wait; END: ret;":                                    false,
		"call f; griddepcontrol.wait; ret;":                                          false,
		"prefetch.global.L2 [v]; griddepcontrol.wait; ret;":                          false,
		"ld.const.u64 %rd, [v]; griddepcontrol.wait; ret;":                           false,
	} {
		text := ".version 7.8\n.target sm_90\n.address_size 64\n.global .u64 v;\n.func f() { ret; }\n.entry k(.param .u64 a) { .reg .u64 %rd; .reg .b32 %r; .reg .pred %p; " + body + " }\n"
		require.Equal(t, map[string]bool{"k": want}, waits(t, text), "%s", body)
	}
}

func TestTheLibraryCanWait(t *testing.T) {
	got, err := language.Waiting(string(ptx.Entries()))
	require.NoError(t, err)
	all := waits(t, got)
	require.Greater(t, len(all), 100)
	for name, first := range all {
		require.True(t, first, "%s", name)
	}
	require.Equal(t, strings.Count(string(ptx.Entries()), "\n"), strings.Count(got, "\n"))
}

func TestWaitingRefuses(t *testing.T) {
	for text, want := range map[string]string{
		"nothing": "1:1: PTX must start with .version, not with \"nothing\"",
		".version 6.0\n.target sm_52\n.address_size 32\n.entry k() { ret; }":      "the PTX has addresses of 32 bits",
		".version 6.0\n.target compute_52\n.address_size 64\n.entry k() { ret; }": `the PTX is for "compute_52", which is not a target such as sm_90`,
	} {
		_, err := language.Waiting(text)
		require.EqualError(t, err, want)
	}
}
