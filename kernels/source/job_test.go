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
	for _, h := range standardHeaders {
		given[h.Name] = true
	}
	for _, name := range []string{"algorithm", "cassert", "cfloat", "climits", "cmath", "cstdint", "cstdio", "cstdlib", "cstring", "initializer_list", "iterator", "limits", "new", "stdio.h", "stdlib.h", "string.h", "type_traits", "utility"} {
		assert.NotNil(t, clang.Header(name), name)
		assert.True(t, given[name], name)
	}
}

// What nvcc includes in every file is there for NVRTC where a source does not compile without it.
func TestPreludeForNVRTC(t *testing.T) {
	const code = "#include <thrust/pair.h>\n__global__ void k(uint *x) { register int i = INT_MAX; x[0] = i * M_PI + std::numeric_limits<float>::infinity() + sizeof(std::size_t); }\n"
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
