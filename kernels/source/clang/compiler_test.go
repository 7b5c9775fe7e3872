// Tests with a fake clang, and with the real one where it is installed.

package clang

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/kernels/launch"
)

// standIn writes a script that reports a version of clang and runs another script to compile.
func standIn(t *testing.T, version, script string) string {
	if runtime.GOOS == "windows" {
		t.Skip("the stand-in is a shell script")
	}
	path := filepath.Join(t.TempDir(), "clang")
	text := "#!/bin/sh\ncase \"$1\" in --version) echo '" + version + "'; echo Registered Targets: nvptx64; exit 0;; esac\n" + script + "\n"
	require.NoError(t, os.WriteFile(path, []byte(text), 0o755))
	return path
}

// installed returns the real compiler.
func installed(t testing.TB, cache string) *Compiler {
	c, err := Open(Options{Cache: cache})
	if err != nil {
		if os.Getenv("DAGRUN_PTX_COMPILER") != "" {
			t.Fatal(err)
		}
		t.Skip(err)
	}
	return c
}

func TestOpen(t *testing.T) {
	c, err := Open(Options{Path: standIn(t, "Debian clang version 17.0.3-1", "")})
	require.NoError(t, err)
	assert.Equal(t, "17.0.3-1", c.Version())
	assert.Equal(t, 17, c.major)

	path := standIn(t, "clang version 11.0.1", "")
	_, err = Open(Options{Path: path})
	require.ErrorIs(t, err, ErrNoCompiler)
	assert.EqualError(t, err, "no CUDA C compiler (clang): "+path+" is version 11.0.1; install clang 14 or newer")
	path = standIn(t, "gcc 12", "")
	_, err = Open(Options{Path: path})
	assert.EqualError(t, err, "no CUDA C compiler (clang): "+path+" is not clang; install clang 14 or newer")
	_, err = Open(Options{Path: filepath.Join(t.TempDir(), "nothing")})
	assert.EqualError(t, err, "no CUDA C compiler (clang): install the package clang (version 14 or newer)")
	t.Setenv("PATH", t.TempDir())
	t.Setenv("DAGRUN_CLANG", "")
	_, err = (&Lazy{}).Get()
	assert.EqualError(t, err, "no CUDA C compiler (clang): install the package clang (version 14 or newer)")
}

func TestTargets(t *testing.T) {
	c := &Compiler{version: "14.0.6", major: 14}
	for capability, want := range map[[2]int]int{{}: 86, {9, 0}: 86, {8, 0}: 80, {7, 5}: 75, {7, 4}: 72, {5, 0}: 50} {
		got, err := c.target(capability)
		require.NoError(t, err)
		assert.Equal(t, want, got.architecture, capability)
	}
	got, err := (&Compiler{major: 19}).target([2]int{12, 0})
	require.NoError(t, err)
	assert.Equal(t, target{90, 78}, got)
	_, err = c.Compile(context.Background(), Source{Path: "a.cu", Capability: [2]int{3, 5}})
	assert.EqualError(t, err, "a.cu: clang 14.0.6 compiles for sm_50 and newer, and the device is sm_35")
}

func TestCacheAndEnvironment(t *testing.T) {
	count := filepath.Join(t.TempDir(), "count")
	temporary := t.TempDir()
	t.Setenv("TMPDIR", temporary)
	t.Setenv("CPATH", "/nowhere")
	path := standIn(t, "clang version 14.0.6", "echo x >> "+count+"; echo CPATH=$CPATH LC_ALL=$LC_ALL; cat; echo a warning 1>&2")
	folder := t.TempDir()
	source := Source{Path: "my folder/a \"b\".cu", Code: []byte("code\n"), Options: []string{"-DX=1"}}
	for i := range 3 {
		c, err := Open(Options{Path: path, Cache: folder})
		require.NoError(t, err)
		r, err := c.Compile(context.Background(), source)
		require.NoError(t, err)
		assert.Equal(t, "CPATH= LC_ALL=C\n# 1 \"my folder/a \\\"b\\\".cu\"\ncode\n", string(r.PTX))
		assert.Equal(t, "a warning", r.Log)
		assert.Equal(t, "sm_86", r.Architecture)
		assert.Equal(t, i > 0, r.Cached)
	}
	c, err := Open(Options{Path: path, Cache: folder})
	require.NoError(t, err)
	source.Options = []string{"-DX=2"}
	r, err := c.Compile(context.Background(), source)
	require.NoError(t, err)
	assert.False(t, r.Cached)
	runs, err := os.ReadFile(count)
	require.NoError(t, err)
	assert.Equal(t, "x\nx\n", string(runs))
	left, err := os.ReadDir(temporary)
	require.NoError(t, err)
	assert.Empty(t, left)
}

func TestFailures(t *testing.T) {
	c, err := Open(Options{Path: standIn(t, "clang version 14.0.6", "exit 3"), Cache: "off"})
	require.NoError(t, err)
	_, err = c.Compile(context.Background(), Source{Name: "mine"})
	require.Error(t, err)
	assert.Equal(t, "mine: "+c.Path()+": exit status 3", err.Error())
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(errors.New("enough"))
	_, err = c.Compile(ctx, Source{Name: "mine"})
	assert.EqualError(t, err, "enough")
}

func TestClangCompiles(t *testing.T) {
	c := installed(t, "off")
	folder := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(folder, "mine.h"), []byte("#define FACTOR 3\n"), 0o644))
	path := filepath.Join(folder, "mine.cu")
	r, err := c.Compile(context.Background(), Source{Path: path, Code: []byte(`#include "mine.h"
#include <cuda_runtime.h>
#include <cstdint>
extern "C" __global__ void scale(float *x, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] *= FACTOR;
}
`)})
	require.NoError(t, err)
	assert.Empty(t, r.Log)
	text := string(r.PTX)
	assert.Contains(t, text, ".visible .entry scale(")
	assert.Contains(t, text, "\t.loc\t1 6 ")
	assert.Contains(t, text, filepath.ToSlash(path))

	_, err = c.Compile(context.Background(), Source{Path: path, Code: []byte("__global__ void k(int *p) {\n  *p = nothing;\n}\n")})
	var failure *launch.CompileError
	require.ErrorAs(t, err, &failure)
	assert.Contains(t, failure.Log, filepath.ToSlash(path)+":2:8: error: use of undeclared identifier 'nothing'")
	_, err = c.Compile(context.Background(), Source{Path: "b.cu", Code: []byte("#include <vector>\n")})
	require.Error(t, err)
	assert.Equal(t, "b.cu does not compile:\nb.cu:1:10: fatal error: 'vector' file not found", err.Error())
}

func TestDefaultDevice(t *testing.T) {
	c := installed(t, "off")
	source := Source{Path: "a.cu", Code: []byte("int twice(int x) { return 2 * x; }\n__global__ void k(int *p) { *p = twice(*p); }\nint main() { k<<<1, 1>>>(nullptr); }")}
	_, err := c.Compile(context.Background(), source)
	require.ErrorContains(t, err, "a.cu:2:34: error: no matching function for call to 'twice'")
	source.DefaultDevice = true
	source.Code = source.Code[:strings.Index(string(source.Code), "int main")]
	r, err := c.Compile(context.Background(), source)
	require.NoError(t, err)
	assert.Contains(t, string(r.PTX), ".entry _Z1kPi(")
}

func TestLoopsThatAreNotUnrolledAreNoMistakes(t *testing.T) {
	r, err := installed(t, "off").Compile(context.Background(), Source{Path: "a.cu", Code: []byte(`__global__ void k(float *x, int n) {
#pragma unroll
  for (int i = threadIdx.x; i < n; i += blockDim.x) if (x[i] > 2) __syncthreads();
}
`)})
	require.NoError(t, err)
	require.Empty(t, r.Log)
}

func TestHeadersCompileTogether(t *testing.T) {
	c := installed(t, "off")
	const barrier = "#include <cuda/barrier>\n" // for sm_80 and later
	var code strings.Builder
	require.NoError(t, eachHeader(func(path string, _ []byte) error {
		if !strings.HasPrefix(path, "dagrun_library/") && !strings.HasPrefix(path, "dagrun_cccl/") { // which need other headers
			code.WriteString("#include <" + path + ">\n")
		}
		return nil
	}))
	require.Contains(t, code.String(), barrier)
	for _, capability := range [][2]int{{5, 0}, {7, 0}, {8, 0}, {}} {
		text := code.String()
		if capability != [2]int{8, 0} {
			text = strings.Replace(text, barrier, "", 1)
		}
		r, err := c.Compile(context.Background(), Source{Path: "a.cu", Code: []byte(text + "__global__ void k() {}\n"), Capability: capability,
			Options: []string{"-Wall", "-Wno-unused-function", "-Werror"}})
		if assert.NoError(t, err) {
			assert.Empty(t, r.Log)
		}
	}
}
