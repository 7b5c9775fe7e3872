// Tests of the sweep on a small folder.

package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/kernels/launch"
)

func write(t *testing.T, files map[string]string) string {
	folder := t.TempDir()
	for name, text := range files {
		path := filepath.Join(folder, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
	}
	return folder
}

func TestFlagsComeFromTheMakefile(t *testing.T) {
	folder := write(t, map[string]string{
		"CMakeLists.txt": "include_directories( lib )\n",
		"lib/a.h":        "",
		"other/b.h":      "",
		"tool/c.h":       "",
		"one/Makefile": "DEBUG = no\nSIZE ?= 16\nINC = -I../lib \\\n  -I ../other -I/nowhere/at/all\n# CFLAGS = -DNEVER\nCFLAGS := $(EXTRA) $(INC) -O3\nifeq ($(DEBUG),yes)\n  CFLAGS += -DDEBUG\nelse\n  CFLAGS += -DFAST\nendif\n" +
			"main: main.cu\n\tnvcc $(CFLAGS) -DSIZE=$(SIZE) -D'NAME=\"x\"' -DDIR=$$PWD main.cu\n",
		"one/main.cu": "",
		"main.cu":     "",
	})
	at := func(name string) string { return filepath.Join(folder, name) }
	g := flagsFor(at("one/main.cu"), []string{folder})
	require.Equal(t, []string{at("lib"), at("other")}, g.include)
	require.Equal(t, []launch.Definition{{Name: "FAST", Value: "1"}, {Name: "SIZE", Value: "16"}, {Name: "NAME", Value: "x"}}, g.define)
	require.Equal(t, []string{at("lib")}, flagsFor(at("main.cu"), []string{folder}).include)
}

func TestSweep(t *testing.T) {
	folder := write(t, map[string]string{
		"well.cu":       "__global__ void a(int *p) { *p = N; }\n__global__ void b(int *p) { *p = 1; }\n",
		"makefile":      "x:\n\tnvcc -DN=3 well.cu\n",
		"main.cu":       "struct item { int v; };\n#include \"part.cu\"\nint main() {}\n",
		"part.cu":       "__global__ void c(item *p) { p->v = 1; }\n",
		"header.cu":     "#include \"nowhere.h\"\n__global__ void d(int *p) { *p = 1; }\n",
		"name.cu":       "__global__ void e(int *p) { *p = unknown; }\n",
		"wrong.cu":      "__global__ void f(int *p) { *p = 1 +; }\n",
		"no_kernels.cu": "int main() { return 0; }\n",
		"text.cu":       "// no __global__ here\nchar quote = '\"';\nconst char *made = \"__global__ void \\\"g\"; /* a\n__global__ */\n",
	})
	var out strings.Builder
	s := &settings{jobs: 1, out: &out}
	s.compilers.Clang.Options.Cache = "off"
	s.compiler = "clang"
	if _, err := s.compilers.Clang.Get(); err != nil {
		if os.Getenv("DAGRUN_PTX_COMPILER") != "" {
			t.Fatal(err)
		}
		t.Skip(err)
	}
	list := filepath.Join(t.TempDir(), "list")
	require.NoError(t, sweep(context.Background(), []string{folder}, s, list))
	text := strings.ReplaceAll(out.String(), folder+"/", "")
	require.Equal(t, `    1  well
    1  a fragment: another file includes it
           part.cu: included by main.cu; alone: part.cu:1:19: error: unknown type name 'item'
    1  a header is missing
           header.cu: nowhere.h
    1  a name is unknown
           name.cu: name.cu:1:34: error: use of undeclared identifier 'unknown'
    1  another error
           wrong.cu: wrong.cu:1:37: error: expected expression
    5  in all, with 6 kernels; 25.0% of the 4 that are no fragments are well
`, text)
	lines, err := os.ReadFile(list)
	require.NoError(t, err)
	require.Equal(t, 5, strings.Count(string(lines), "\n"))
}

func TestListsAreComparedWithEntries(t *testing.T) {
	folder := write(t, map[string]string{
		"well.cu":  "namespace n { template <class T> __global__ void a(T *p) {} }\n__global__ void b(int *p) {}\n__global__ void b(float *p) {}\nstatic __global__ void c() {}\ntemplate <void (*F)(int)> __global__ void h() {}\n",
		"lost.cu":  "#if 0\n__global__ void d() {}\n#endif\n__global__ void e() {}\n",
		"wrong.cu": "__global__ void f() {}\n__global__ void g() {}\n",
		"not.cu":   "__global__ void h() {}\n",
		"nvcc": `#!/bin/sh
while [ "$1" != -o ]; do shift; done
case "$3" in
*well.cu) names="_ZN1n1aIfEEvPT_ _ZN1n1aIiEEvPT_ _Z1bPi _Z1bPf _ZL1cv _Z1hIXadL_Z1fiEEEvv _ZN3cub11EmptyKernelIvEEvv" ;;
*lost.cu) names="_Z1dv _Z1ev" ;;
*wrong.cu) names="_Z1gv" ;;
*) echo "$3(1): error: no"; exit 1 ;;
esac
{ echo .version 7.0; echo .target sm_80; echo .address_size 64; for n in $names; do echo ".visible .entry $n() { ret; }"; done; } > "$2"
`,
	})
	nvcc := filepath.Join(folder, "nvcc")
	require.NoError(t, os.Chmod(nvcc, 0o755))
	var out strings.Builder
	require.NoError(t, sweep(context.Background(), []string{folder}, &settings{jobs: 1, out: &out, nvcc: nvcc}, ""))
	require.Equal(t, `    1  well
    1  kernels are listed that nvcc makes no entry of: static ones that nothing launches, or wrong ones
           wrong.cu: f
    1  kernels are lost
           lost.cu: d
    1  nvcc does not compile it
           not.cu: not.cu(1): error: no
    4  in all, with 9 kernels; 25.0% of the 4 that are no fragments are well
`, strings.ReplaceAll(out.String(), folder+"/", ""))
}
