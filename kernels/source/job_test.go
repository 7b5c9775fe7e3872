// Tests of what compilers are given beside users' files. They compile with NVRTC where it is installed.

package source

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/kernels/launch"
	"github.com/dagrun/dagrun/kernels/source/clang"
	"github.com/dagrun/dagrun/kernels/source/nvrtc"
)

// nvcc includes types of fixed width in every file, so programs use them without an include.
func TestTypesOfFixedWidthNeedNoHeader(t *testing.T) {
	const kernel = `extern "C" __global__ void fill(uint32_t *y, int n) { if (threadIdx.x < n) y[threadIdx.x] = (uint8_t)threadIdx.x; }`
	const header = "/mine/common.h"
	for _, c := range []struct {
		name, code, header string
		implied            bool
	}{
		{"no header", kernel, "", true},
		{"a header for host code", "#include <cuda_runtime.h>\n" + kernel, "", true},
		{"a header without them", "#include \"common.h\"\n" + kernel, "#define N 2\n", true},
		{"their header", "#include <stdint.h>\n" + kernel, "", false},
		{"their C++ header, by a header", "#include \"common.h\"\n" + kernel, "# include <cstdint>\n", false},
		{"types of their own", "typedef unsigned int uint32_t;\ntypedef unsigned char uint8_t;\n" + kernel, "", false},
		{"names of their own", "using uint32_t = unsigned int;\nusing uint8_t = unsigned char;\n" + kernel, "", false},
		{"types with other names", "typedef unsigned int my_uint32_type;\n" + kernel, "", true},
		{"none used", `extern "C" __global__ void fill(unsigned *y, int n) { y[0] = n; }`, "", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			read := func(path string) ([]byte, error) {
				if path != header {
					return nil, assert.AnError
				}
				return []byte(c.header), nil
			}
			m, err := Open("mine", "/mine/fill.cu", []byte(c.code), Options{ReadFile: read, Build: launch.Build{Compiler: "nvrtc"}})
			require.NoError(t, err)
			p := preprocess("/mine/fill.cu", c.code, nil, search{read: read})
			assert.Equal(t, c.implied, newJob(m.Module(), launch.Target{}, p).implied() != nil)

			compilers := &Compilers{NVRTC: nvrtc.Lazy{Options: nvrtc.Options{Cache: "off"}}}
			if _, err := compilers.NVRTC.Get(); err != nil || c.header != "" { // the header is not in a folder
				return
			}
			_, err = compilers.Compile(context.Background(), m.Module(), launch.Target{})
			require.NoError(t, err)
		})
	}
}

// A header that clang has from dagrun is not left out, so NVRTC must have it too: from dagrun, or from a toolkit.
func TestNVRTCHasTheHeadersThatAreKeptForClang(t *testing.T) {
	given := map[string]bool{}
	for _, h := range append(standardHeaders, preludeHeaders...) {
		given[h.Name] = true
	}
	for _, name := range []string{"algorithm", "cassert", "cfloat", "climits", "cmath", "cstdint", "cstdio", "cstdlib", "cstring", "initializer_list", "iterator", "limits", "new", "stdio.h", "stdlib.h", "string.h", "tuple", "type_traits", "utility"} {
		assert.NotNil(t, clang.Header(name), name)
		assert.True(t, given[name], name)
	}
}

// What nvcc includes in every file is there for NVRTC where a source does not compile without it.
func TestPreludeForNVRTC(t *testing.T) {
	const code = "#include <thrust/pair.h>\n__global__ void k(uint *x) { register int i = INT_MAX; x[0] = std::max<int>(i, 1) * M_PI + std::numeric_limits<float>::infinity() + sizeof(std::size_t); }\n"
	m, err := Open("mine", "/mine/k.cu", []byte(code), Options{Build: launch.Build{Compiler: "nvrtc"}})
	require.NoError(t, err)
	j := newJob(m.Module(), launch.Target{}, preprocess("/mine/k.cu", code, nil, search{}))
	require.Len(t, j.headers(), len(standardHeaders))
	require.Empty(t, j.implied())
	j.prelude = true
	require.Equal(t, []string{"--pre-include=dagrun_prelude.h", "-Dregister="}, j.implied())
	j.thrust, j.search.system = true, []string{"/cccl"}
	require.Contains(t, j.implied(), "--pre-include=dagrun_thrust.h")
	names := map[string]bool{}
	for _, h := range j.headers() {
		require.False(t, names[h.Name], h.Name)
		require.NotEmpty(t, h.Code, h.Name)
		names[h.Name] = true
	}
	require.True(t, names["cub/cub.cuh"])
	compilers := &Compilers{NVRTC: nvrtc.Lazy{Options: nvrtc.Options{Cache: "off"}}}
	if _, err := compilers.NVRTC.Get(); err != nil {
		return
	}
	without, err := Open("mine", "/mine/k.cu", []byte(strings.Replace(code, "#include <thrust/pair.h>", "", 1)), Options{Build: launch.Build{Compiler: "nvrtc"}})
	require.NoError(t, err)
	_, err = compilers.Compile(context.Background(), without.Module(), launch.Target{})
	require.NoError(t, err)
}

// What nvcc takes and NVRTC does not: names of std without their header, designated initialisers, 64 bits that are long, functions of old devices.
func TestWhatNVRTCGetsOfASource(t *testing.T) {
	const kernel = "__global__ void k(long long *x) {}\n"
	for _, c := range []struct {
		name, code string
		options    []string
		longs      bool
	}{
		{"nothing", kernel, []string{"--pre-include=dagrun_prelude.h"}, false},
		{"widths in std", "#include <stdint.h>\n__device__ std::uint64_t n; " + kernel, []string{"--pre-include=dagrun_prelude.h", "--pre-include=cstdint"}, true},
		{"widths of its own", "typedef unsigned long uint64_t;\n" + kernel, []string{"--pre-include=dagrun_prelude.h"}, true},
		{"widths beside CCCL", "#include <cub/cub.cuh>\n__device__ uint64_t n; " + kernel, []string{"--pre-include=dagrun_prelude.h", "--pre-include=cstdint"}, false},
		{"initialisers", "struct P { int x, y; }; __device__ P p = {.x = 1, .y = 2}; " + kernel, []string{"--pre-include=dagrun_prelude.h", "--std=c++20"}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			m, err := Open("mine", "/mine/k.cu", []byte(c.code), Options{Build: launch.Build{Compiler: "nvrtc"}})
			require.NoError(t, err)
			j := newJob(m.Module(), launch.Target{}, preprocess("/mine/k.cu", c.code, nil, search{device: true}))
			j.prelude = true
			require.Equal(t, c.options, j.implied())
			require.Equal(t, c.longs, j.mayHaveLongs())
			j.longs = true
			for _, h := range j.headers() {
				require.NotContains(t, string(h.Code), "typedef long long int64_t")
			}
		})
	}
}

func TestStatementExpressionsBecomeLambdas(t *testing.T) {
	for _, c := range []struct{ from, to string }{
		{"int x = ({ int a = 1; a + 1; });", "int x = ([&]{ int a = 1; return a + 1; }());"},
		{"#define MAX(a, b) ({ __typeof__ (a) _a = (a); \\\n  typeof(b) _b = (b); _a > _b ? _a : _b; })\nint y;", "#define MAX(a, b) ([&]{ auto _a = (a); \\\n  auto _b = (b); return _a > _b ? _a : _b; }())\nint y;"},
		{"f(({ g(({ 1; })); }));", "f(([&]{ return g(([&]{ return 1; }())); }()));"},
		{"({ if (a) { b(); } c; });", "([&]{ if (a) { b(); } return c; }());"},
		{"({ while (a) b(); });", "([&]{ while (a) b(); }());"},
		{"({ a; T{1}; });", "([&]{ a; return T{1}; }());"},
		{"({ a; { b; } });", "([&]{ a; { b; } }());"},
		{"({ if (a) return 1; b; });", "({ if (a) return 1; b; });"},
		{"({ if (a) { return 1; } b; });", "({ if (a) { return 1; } b; });"},
		{"f({1, 2}); x = ({3}); g(({ int", "f({1, 2}); x = ({3}); g(({ int"},
		{"#define A ({ a;\n#define B b; })\n", "#define A ({ a;\n#define B b; })\n"},
		{"({ a;\n#if B\nb;\n#endif\n});", "({ a;\n#if B\nb;\n#endif\n});"},
	} {
		assert.Equal(t, c.to, string(withLambdas([]byte(c.from))))
	}
}
