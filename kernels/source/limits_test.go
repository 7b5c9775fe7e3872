// Tests of files that are too large or no files at all: they are refused before they are read.

package source

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/kernels/launch"
)

// sparse makes a file of a size that takes no space.
func sparse(t *testing.T, path string, size int64) {
	file, err := os.Create(path)
	require.NoError(t, err)
	require.NoError(t, file.Truncate(size))
	require.NoError(t, file.Close())
}

func TestLargeFilesAreRefusedUnread(t *testing.T) {
	folder := t.TempDir()
	for name, want := range map[string]string{
		"a.cu":     "has 100 MiB, and files of kernels have at most 8 MiB",
		"a.h":      "has 100 MiB, and files of kernels have at most 8 MiB",
		"a.PTX":    "has 100 MiB, and files of kernels have at most 16 MiB",
		"noending": "has 100 MiB, and files of kernels have at most 8 MiB",
		"a.cubin":  "",
	} {
		path := filepath.Join(folder, name)
		assert.NoError(t, CheckSize(path), "there is no such file")
		sparse(t, path, 100<<20)
		if err := CheckSize(path); want == "" {
			assert.NoError(t, err)
		} else {
			assert.EqualError(t, err, path+" "+want)
		}
	}
	assert.NoError(t, CheckSize(folder))
}

func TestLargeHeadersAreRefusedUnread(t *testing.T) {
	folder := t.TempDir()
	source, header := filepath.Join(folder, "a.cu"), filepath.Join(folder, "large.h")
	sparse(t, header, 100<<20)
	const size = " has 100 MiB, and files of kernels have at most 8 MiB"
	read := func(path string) ([]byte, error) {
		assert.NotEqual(t, header, path, "the header is read")
		return os.ReadFile(path)
	}
	for code, place := range map[string]string{
		"#include \"large.h\"\n":                                         ":1: ",
		"#define H \"large.h\"\n#include H\n":                            ":2: ",
		"#define H(name) <name.h>\n\n#include H(large)\n":                ":3: ",
		"#if 1\n#include \"" + filepath.ToSlash(header) + "\"\n#endif\n": ":2: ",
	} {
		code += "__global__ void f(float *x) { x[0] = 1; }\n"
		build := launch.Build{Include: []string{folder}}
		_, err := Open("m", source, []byte(code), Options{ReadFile: read, Build: build})
		assert.EqualError(t, err, `module "m": `+source+place+header+size, code)
		_, err = new(Compilers).Compile(context.Background(), &launch.Module{Name: source, Path: source, Kind: launch.Source, Code: []byte(code), Build: build}, launch.Target{})
		assert.EqualError(t, err, source+place+header+size, code)
	}
	_, err := Open("m", source, []byte("#include \""+filepath.Base(folder)+"\"\n__global__ void f(float *x) { x[0] = 1; }\n"), Options{ReadFile: os.ReadFile})
	assert.NoError(t, err, "a folder is no header")
}

// numbered repeats a text with numbers.
func numbered(format string, n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, format, i)
	}
	return b.String()
}

// Each of these would lay out or copy more words than a machine has bytes if it were followed to its end.
func TestNestedTemplatesEndSoon(t *testing.T) {
	many := func(s string, n int) string { return strings.Repeat(s, n) }
	for code, want := range map[string]string{
		"template <class T> struct S { T a, b; };" + "__global__ void k(" + many("S<", 12) + "char" + many(">", 12) + " s) {}":                                "",
		"template <class T> struct S { T a, b; };" + "__global__ void k(" + many("S<", 900) + "int" + many(">", 900) + " s) {}":                               "has too many template arguments",
		"template <class T> struct S { T a, b; };" + "__global__ void k(" + many("S<", 60) + "int" + many(">", 60) + " s) {}":                                 "whose layout is not known",
		"template <class T> struct S { static const int n = 1; int a; T *b; };" + "__global__ void k(" + many("S<", 300) + "int" + many(">", 300) + " s) {}":  "",
		"template <class T> struct S { int a; " + many("T *b;", 100000) + "}; __global__ void k(" + many("S<", 30) + "int" + many(">", 30) + " s) {}":         "has too many template arguments for its size",
		"template <class T> struct S { S<S<T>> a, b; }; __global__ void k(S<int> s) {}":                                                                       "whose layout is not known",
		"template <class T, class U> struct P { int a; }; template <class T> struct S { S<P<T, T>> a; }; __global__ void k(S<int> s) {}":                      "whose layout is not known",
		"template <int N> struct S { int a; " + many("float x;", 5000) + "}; struct A { " + numbered("S<%d> s%[1]d; ", 2000) + "}; __global__ void k(A s) {}": "is too large",
	} {
		m, err := Open("m", "a.cu", []byte(code), Options{})
		require.NoError(t, err)
		_, err = m.Kernel("k", nil)
		if want == "" {
			assert.NoError(t, err, code[:60])
		} else {
			assert.ErrorContains(t, err, want, code[:60])
		}
	}
}

func TestNestedSourcesEndSoon(t *testing.T) {
	many := func(s string, n int) string { return strings.Repeat(s, n) }
	for code, want := range map[string]string{
		many("(", 1001) + "\n":                                     `a.cu:1: brackets are nested more than 1000 deep here`,
		"\n" + many("int x[", 1001) + "\n":                         `a.cu:2: brackets are nested more than 1000 deep here`,
		many("#if 1\n", 501):                                       `a.cu:501: conditions are nested more than 500 deep here`,
		many("; ", 2<<20) + "\n" + many("; ", 8):                   `a.cu:2: a file of kernels and its headers have at most 2097152 words`,
		many("#if "+many("(", 1000)+"1\n#endif\n", 2) + "int x;\n": `a.cu has no kernel: a __global__ function is needed`,
		"#if " + many("!", 1<<18) + "1\n#endif\n":                  `a.cu has no kernel: a __global__ function is needed`,
		"#if " + many("-(", 1<<17) + "1\n#endif\n":                 `a.cu has no kernel: a __global__ function is needed`,
		many("template<", 1<<16):                                   `a.cu has no kernel: a __global__ function is needed`,
		many("__global__ void k(int *x);\n", 1) + numbered("__global__ void k%d();\n", mostKernels+1): `a.cu:20001: a file of kernels and its headers have at most 20000 kernels`,
		many("__global__ void k(int *x);\n", 1) + numbered("__device__ int v%d;\n", mostVariables+2):  `a.cu:20003: a file of kernels and its headers have at most 20000 variables that launches share`,
	} {
		_, err := Open("m", "a.cu", []byte(code), Options{})
		assert.EqualError(t, err, `module "m": `+want, code[:min(len(code), 40)])
	}
}

// A source that includes itself by its name would be read for ever.
func TestSourcesThatIncludeThemselves(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.cu")
	for _, code := range []string{"#include __FILE__\n", "#define SELF __FILE__\n#include SELF\n"} {
		code += "__global__ void f(float *x) { x[0] = 1; }\n"
		require.NoError(t, os.WriteFile(path, []byte(code), 0o600))
		_, err := Open("m", path, []byte(code), Options{ReadFile: os.ReadFile})
		line := strings.Count(code, "\n") - 1
		assert.EqualError(t, err, fmt.Sprintf(`module "m": %s:%d: "a.cu" is included 201 deep; is an include guard missing?`, path, line))
	}
	guarded := "#ifndef A\n#define A\n#include __FILE__\n__global__ void f(float *x) { x[0] = 1; }\n#endif\n"
	require.NoError(t, os.WriteFile(path, []byte(guarded), 0o600))
	_, err := Open("m", path, []byte(guarded), Options{ReadFile: os.ReadFile})
	assert.NoError(t, err)
}
