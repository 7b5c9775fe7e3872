// Tests of what compilers' logs and errors may say about files outside of a pipeline's folder.

package source

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/kernels/launch"
)

// Each compiler has its own form of messages. Of files elsewhere only the place is left, and no suggestion of a name that may be from there.
func TestLogsOfOtherFiles(t *testing.T) {
	dir := t.TempDir()
	in, out := filepath.Join(dir, "in"), filepath.Join(dir, "out.h")
	require.NoError(t, os.Mkdir(in, 0o755))
	own := filepath.Join(in, "a.cu")
	j := &job{module: &launch.Module{Name: own, Path: own, Folder: in}, found: []foundHeader{{"../out.h", out}}}
	for name, c := range map[string][2]string{
		"clang": {"In file included from OWN:1:\nOUT:2:5: error: unknown type name 'hunter2'\nOWN:3:1: error: use of undeclared identifier 'hunter3'; did you mean 'hunter2'?\nOUT:2:9: note: 'hunter2' declared here\n2 errors generated.",
			"In file included from OWN:1:\nOUT:2:5: HIDDEN\nOWN:3:1: error: use of undeclared identifier 'hunter3'\nOUT:2:9: HIDDEN\n2 errors generated."},
		"nvrtc": {"../out.h(2): error: identifier \"hunter2\" is undefined\n  hunter2 word;\n  ^\n\nOWN(3): error: expected a \";\"\n  own(3): x\n  ^\n\n2 errors detected in the compilation of \"OWN\".",
			"../out.h(2): HIDDEN\nOWN(3): error: expected a \";\"\n  own(3): x\n  ^\n\n2 errors detected in the compilation of \"OWN\"."},
		"gcc":    {"OUT:7:10: fatal error: hunter2: no such file\n    7 | #include <hunter2>\n      |          ^\ncompilation terminated.", "OUT:7:10: HIDDEN"},
		"system": {"/usr/include/stdio.h:3:1: error: stdio is broken\n  int x", "/usr/include/stdio.h:3:1: error: stdio is broken\n  int x"},
		"own":    {"OWN:3:1: error: use of undeclared identifier 'x'; did you mean 'y'?\n<built-in>:1:1: note: y\nkernel f<1>:1:10: error: z", "OWN:3:1: error: use of undeclared identifier 'x'; did you mean 'y'?\n<built-in>:1:1: note: y\nkernel f<1>:1:10: error: z"},
	} {
		spell := strings.NewReplacer("OWN", own, "OUT", out, "HIDDEN", hidden)
		require.Equal(t, spell.Replace(c[1]), j.shown(spell.Replace(c[0])), name)
	}
	j.module.Folder = ""
	require.Equal(t, out+":1:1: error: hunter2", j.shown(out+":1:1: error: hunter2"), "without a pipeline's folder, all is shown")
}

func TestOnlyHeadersAreIncludedFromOutside(t *testing.T) {
	dir := t.TempDir()
	in := filepath.Join(dir, "in")
	require.NoError(t, os.Mkdir(in, 0o755))
	for name, c := range map[string]struct{ text, problem string }{
		"passwd":   {"root:x:0:0", "is outside of the pipeline's folder, and it is no header"},
		"vector":   {"// the standard's\n/* two\nlines */\n\n#pragma once\n", ""},
		"app.conf": {"# comment\nkey=value", "is outside of the pipeline's folder, and it is no header"},
		"x.h":      {"int f();\n", ""},
	} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(c.text), 0o600))
		for _, directive := range []string{"#include", "#import", "#include_next", "%:include"} {
			_, err := Open("m", filepath.Join(in, "a.cu"), []byte(directive+" \"../"+name+"\"\n__global__ void f(float *x) { x[0] = 1; }\n"), Options{ReadFile: os.ReadFile, Folder: in})
			if c.problem == "" {
				require.NoError(t, err, name)
				continue
			}
			require.EqualError(t, err, `module "m": `+filepath.Join(in, "a.cu")+":1: "+filepath.Join(dir, name)+" "+c.problem, directive)
		}
	}
}
