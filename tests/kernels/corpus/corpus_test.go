// Tests of the sweep on a small folder.

package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/kernels"
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
	require.Equal(t, []kernels.Definition{{Name: "FAST", Value: "1"}, {Name: "SIZE", Value: "16"}, {Name: "NAME", Value: "x"}}, g.define)
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
