// Tests of compiling users' files: how much host code compilers see, and which kernels result. Uses clang where it is installed.

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

	"github.com/dagrun/dagrun/internal/ptx"
	"github.com/dagrun/dagrun/kernels/launch"
	"github.com/dagrun/dagrun/kernels/source/clang"
)

// withClang returns compilers of which only clang is used.
func withClang(t testing.TB) *Compilers {
	options := clang.Options{Cache: "off"}
	if _, err := clang.Open(options); err != nil {
		if os.Getenv("DAGRUN_PTX_COMPILER") != "" {
			t.Fatal(err)
		}
		t.Skip(err)
	}
	return &Compilers{Clang: clang.Lazy{Options: options}}
}

// compiled compiles some kernels of files, the first of which is the source.
func compiled(t *testing.T, build launch.Build, kernels []string, files ...string) (*launch.Compiled, error) {
	t.Helper()
	c := withClang(t)
	folder := t.TempDir()
	for i := 0; i+1 < len(files); i += 2 {
		path := filepath.Join(folder, files[i])
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(files[i+1]), 0o644))
	}
	for i, include := range build.Include {
		build.Include[i] = filepath.Join(folder, include)
	}
	build.Compiler = "clang"
	path := filepath.Join(folder, files[0])
	m, err := Open("mine", path, []byte(files[1]), Options{ReadFile: os.ReadFile, Build: build})
	require.NoError(t, err)
	source := *m.Module()
	for _, name := range kernels {
		k, err := m.find(name)
		require.NoError(t, err)
		if k.Expression() != "" {
			source.Build.Names = append(source.Build.Names, k.Expression())
		}
	}
	r, err := c.Compile(context.Background(), &source, launch.Target{})
	if err != nil {
		return nil, errorWithout{err, folder + string(filepath.Separator)}
	}
	return r, nil
}

// errorWithout returns the text of an error without the name of a temporary folder.
type errorWithout struct {
	error
	folder string
}

func (e errorWithout) Error() string { return strings.ReplaceAll(e.error.Error(), e.folder, "") }

func entries(t *testing.T, r *launch.Compiled) []string {
	m, err := ptx.Parse(string(r.Code))
	require.NoError(t, err)
	var names []string
	for _, id := range m.Entries() {
		names = append(names, m.Functions[id].Name)
	}
	return names
}

const program = `#include <stdio.h>
#include <vector>
#include <helper_cuda.h>
#include "common.h"

#define BLOCK 256
#define DEVICE __device__ __forceinline__

typedef struct { float re, im; } complex_t;
const float weights[3] = {0.25f, 0.5f, 0.25f};
static std::vector<float> results;
cudaStream_t stream;
void report(const std::vector<float> &v);

DEVICE float twice(float x) { return 2 * x; }

template <int K, typename T> __global__ void scale(int n, const T *x, T *y) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = K * twice(x[i]) * weights[1] + OFFSET;
}

namespace filters {
static __global__ void blur(const float *x, float *y) { y[threadIdx.x] = clampedTo(x[threadIdx.x], 1.0f); }
void launch(const float *x, float *y) { blur<<<1, BLOCK, 0, stream>>>(x, y); }
}
__global__ void pick(int *x) { x[0] = 1; }
__global__ void pick(float *x) { x[0] = 1.5f; }

template <class T> T sum(const std::vector<T> &v) {
  T s = 0;
#ifdef SLOW
  for (auto x : v) {
#else
  for (size_t i = 0; i < v.size(); i++) { auto x = v[i];
#endif
    s += x;
  }
  return s;
}

struct Timer {
  std::chrono::time_point begin;
  void start() { cudaDeviceSynchronize(); }
};

int main(int argc, char **argv) {
  float *x;
  checkCudaErrors(cudaMalloc(&x, 1024));
  scale<3, float><<<4, BLOCK>>>(1024, x, x);
  printf("%f\n", sum(results));
  return 0;
}
`

const common = `#pragma once
#include <iostream>
#define OFFSET 1
__host__ __device__ inline float clampedTo(float x, float most) { return x < most ? x : most; }
inline void check(cudaError_t e) { if (e != cudaSuccess) { std::cerr << "failed\n"; exit(1); } }
`

func TestHostCodeIsNoObstacle(t *testing.T) {
	r, err := compiled(t, launch.Build{Include: []string{"include"}}, []string{"scale<3, float>", "filters::blur", "pick(float*)", "scale<2,double>"},
		"main.cu", program, "include/common.h", common)
	require.NoError(t, err)
	assert.Equal(t, map[string]string{
		"scale<3, float>":        "_Z5scaleILi3EfEviPKT0_PS0_",
		"scale<2, double>":       "_Z5scaleILi2EdEviPKT0_PS0_",
		"filters::blur":          "_ZN7filtersL4blurEPKfPf",
		"(void (*)(float*))pick": "_Z4pickPf",
	}, r.Symbols)
	for _, symbol := range r.Symbols {
		assert.Contains(t, entries(t, r), symbol)
	}
	assert.NotContains(t, string(r.Code), "dagrun_names")
	assert.Empty(t, r.Log)
	symbols, err := symbolsOf(string(r.Code), []string{"scale<3, float>", "scale<2, double>", "filters::blur", "(void (*)(float*))pick"})
	require.NoError(t, err)
	assert.Equal(t, []string{"_Z5scaleILi3EfEviPKT0_PS0_", "_Z5scaleILi2EdEviPKT0_PS0_", "_ZN7filtersL4blurEPKfPf", "_Z4pickPf"}, symbols)
}

// nvcc and NVRTC take a register in inline assembly with one percent sign or with two.
func TestRegistersInInlineAssembly(t *testing.T) {
	const header = `__device__ inline unsigned smid() { unsigned s; __asm__ volatile("mov.u32 %0, %smid;" : "=r"(s)); return s; }
`
	const code = `#include "smid.h"
__global__ void where(unsigned *x) {
  unsigned lane, warp, sum;
  asm("mov.u32 %0, %laneid;" : "=r"(lane));
  asm volatile("mov.u32 %0, %%warpid;\n\t"
               "add.u32 %1, %0, %nwarpid;" : "=r"(warp), "=r"(sum) :: "memory");
  x[threadIdx.x] = lane + warp + sum + smid() + 7 % lane;
}
`
	r, err := compiled(t, launch.Build{}, []string{"where"}, "main.cu", code, "smid.h", header)
	require.NoError(t, err)
	for _, register := range []string{"%smid", "%laneid", "%warpid", "%nwarpid"} {
		assert.Contains(t, string(r.Code), ", "+register+";")
	}
	assert.NotContains(t, string(r.Code), "%%")
	assert.Equal(t, "int basm = 1 % a; asm(\"%%a %%b %0\" \"%%c\" : \"%d\");", string(escaped([]byte("int basm = 1 % a; asm(\"%a %%b %0\" \"%c\" : \"%d\");"))))
}

func TestErrorsPointIntoTheUsersFiles(t *testing.T) {
	broken := strings.Replace(program, "y[i] = K", "y[j] = K", 1)
	_, err := compiled(t, launch.Build{}, []string{"scale<3, float>"}, "main.cu", broken, "common.h", common+"__device__ float other(float x) { return z; }\n")
	require.ErrorContains(t, err, "main.cu does not compile (clang ")
	assert.ErrorContains(t, err, "common.h:6:42: error: use of undeclared identifier 'z'")
	assert.ErrorContains(t, err, "main.cu:19:16: error: use of undeclared identifier 'j'")
	_, err = compiled(t, launch.Build{}, []string{"scale<3, flaot>"}, "main.cu", program, "common.h", common)
	assert.ErrorContains(t, err, "kernel scale<3, flaot>:1:")
	_, err = compiled(t, launch.Build{}, nil, "main.cu", "#include \"a.h\"\n__global__ void f() {}\n", "a.h", "#include \"gone.h\"\n")
	assert.ErrorContains(t, err, "a.h:1:10: fatal error: 'gone.h' file not found")
	assert.ErrorContains(t, err, "In file included from main.cu:1:")
}

func TestDefinitionsAndOptions(t *testing.T) {
	source := "__global__ void f(float *x) { x[0] = x[1] * x[2] + N NAME; }\n"
	r, err := compiled(t, launch.Build{Define: []launch.Definition{{Name: "N", Value: "7"}, {Name: "NAME", Value: ""}}, Options: []string{"--fmad=false", "--std=c++14", "-w"}},
		[]string{"f"}, "f.cu", source)
	require.NoError(t, err)
	assert.NotContains(t, string(r.Code), "fma.rn")
	assert.Contains(t, string(r.Code), "0f40E00000")
	for _, bad := range []launch.Build{
		{Options: []string{"-fplugin=x.so"}}, {Options: []string{"@response"}}, {Options: []string{"-Xclang"}}, {Options: []string{"--std=c++17 -o /etc/passwd"}},
		{Options: []string{"-ccbin=evil"}}, {Include: []string{""}}, {Include: []string{"-Xclang"}}, {Define: []launch.Definition{{Name: "A=1 -o", Value: ""}}},
		{Define: []launch.Definition{{Name: "A", Value: "1\n#include \"/etc/passwd\""}}}, {Compiler: "gcc"},
	} {
		_, err := Open("mine", "f.cu", []byte(source), Options{Build: bad})
		assert.Error(t, err, "%v", bad)
	}
	_, err = Open("mine", "f.cu", []byte(source), Options{Build: launch.Build{Options: []string{"-Xclang"}}})
	assert.EqualError(t, err, `module "mine": options: "-Xclang" is not allowed; those that are: --std=c++17, --use_fast_math, --fmad=false, --ftz=, --prec-div=, --prec-sqrt=, `+
		`--maxrregcount=, --generate-line-info, --expt-relaxed-constexpr, --extended-lambda, --extra-device-vectorization, --restrict, -w; use include: for -I and define: for -D`)
}

func TestAChangedHeaderIsNoticed(t *testing.T) {
	withClang(t)
	folder := t.TempDir()
	write := func(name, text string) {
		require.NoError(t, os.WriteFile(filepath.Join(folder, name), []byte(text), 0o644))
	}
	c := &Compilers{Clang: clang.Lazy{Options: clang.Options{Cache: t.TempDir()}}}
	write("a.h", "#include \"b.h\"\nvoid host() { unknown(); }\n")
	write("b.h", "#define VALUE 7\n")
	compile := func() *launch.Compiled {
		path := filepath.Join(folder, "f.cu")
		r, err := c.Compile(context.Background(), &launch.Module{Name: path, Path: path, Kind: launch.Source, Build: launch.Build{Compiler: "clang", Names: []string{"f"}},
			Code: []byte("#include \"a.h\"\n__global__ void f(float *x) { x[0] = VALUE; }\n")}, launch.Target{})
		require.NoError(t, err)
		return r
	}
	assert.False(t, compile().Cached)
	again := compile()
	assert.True(t, again.Cached)
	assert.Equal(t, map[string]string{"f": "_Z1fPf"}, again.Symbols)
	write("b.h", "#define VALUE 8\n")
	assert.False(t, compile().Cached)
}

func TestBadInputEndsSoon(t *testing.T) {
	read := func(path string) ([]byte, error) { return []byte("#include \"" + filepath.Base(path) + "\"\n"), nil }
	chain := func(first string) string {
		text := "#define A00 " + first + "\n"
		for i := range 63 {
			text += fmt.Sprintf("#define A%02d A%02d A%02d\n", i+1, i, i)
		}
		return text
	}
	var nested strings.Builder
	for i := range 100_000 {
		fmt.Fprintf(&nested, "#define A%d A%d+A%d\n", i+1, i, i)
	}
	around := "#define M40(x) x x\n"
	for i := range 40 {
		around += fmt.Sprintf("#define M%d(x) M%d(M%d(x))\n", i, i+1, i+1)
	}
	for want, code := range map[string][]byte{
		`module "m": a.cu:100001: macros are nested more than 500 deep here`:          []byte(nested.String() + "int x = A100000;\n"),
		`module "m": a.cu:42: macros expand to more than 262144 words here`:           []byte(around + "int x = M0(a);\n"),
		`module "m": a.cu has 9 MiB, and files of kernels have at most 8 MiB`:         make([]byte, 9<<20),
		`module "m": a.cu is not text: line 2 has a zero byte`:                        []byte("__global__\n\x00\x01"),
		`module "m": a.cu:65: macros expand to more than 262144 words here`:           []byte(chain("x x") + "int A63;\n"),
		`module "m": a.cu:66: macros expand to more than 262144 words here`:           []byte(chain("") + "\nint A63;\n"),
		`module "m": x.h:1: "x.h" is included 201 deep; is an include guard missing?`: []byte("#include \"x.h\"\n"),
		`module "m": a.cu has no kernel: a __global__ function is needed`:             []byte("\xff\xfe\xfd{{{{((("),
	} {
		_, err := Open("m", "a.cu", code, Options{ReadFile: read})
		assert.EqualError(t, err, want)
	}
	deep := strings.Repeat("{", 1<<20) + "__global__ void f();"
	_, err := Open("m", "a.cu", []byte(deep), Options{})
	assert.Error(t, err)
	withoutHostCode("a.cu", []byte(strings.Repeat("namespace a {", 1<<17)), &preprocessor{undefined: map[string]*macro{}})
}

func TestNamesInCompiledCode(t *testing.T) {
	for symbol, want := range map[string]string{
		"_Z1fPf":                         "f(float*)",
		"_ZL1gPKfi":                      "g(const float*, int)",
		"_ZN2ns1fILi4EfEEvPT0_":          "ns::f<4, float>(float*)",
		"_Z1fv":                          "f()",
		"_Z5scaleILi3EfEviPKT0_PS0_":     "scale<3, float>(int, const float*, float*)",
		"_Z3fooILb1ELj16EcEvT1_P6float4": "foo<true, 16u, char>(char, float4*)",
		"_Z1hIJifEEvDpT_":                "h<int, float>(int, float)",
		"_ZN12_GLOBAL__N_11fEPi":         "f(int*)",
		"_Z1f5Point":                     "f(Point)",
		"_Z1kPN2ab1cE":                   "k(ab::c*)",
		"_Z1fIfLin3EEvPKPKT_":            "f<float, -3>(const float* const*)",
		"_ZN30_INTERNAL_1234abcd_4_a_cu_3f_51fEPVi": "f(volatile int*)",
		"_ZN2ns5tableE": "ns::table",
		"_Z1fPi.static": "f(int*)",
	} {
		m, ok := demangle(symbol)
		require.True(t, ok, symbol)
		assert.Equal(t, want, m.signature(), symbol)
	}
	for _, symbol := range []string{"", "f", "_Z", "_ZN", "_Z99f", "_ZN1fI", "_Z1fIE", "_Z" + strings.Repeat("N1a", 5000)} {
		demangle(symbol)
	}
}

// Code that no compiler reads may have braces without their like: what follows is split as if it was not there.
func TestBranchesThatNoCompilerReads(t *testing.T) {
	const code = `void host() {
  do {
#if 0
    if (a) {
#if 1
    } }
#else
    {
#endif
    } while (b);
#elif 1
    while (c) {
    }
#endif
  } while (0);
}
__global__ void k() {}
`
	f := withoutHostCode("a.cu", []byte(code), &preprocessor{undefined: map[string]*macro{}})
	require.Len(t, f.spans, 2)
	require.Equal(t, []int32{1, 16, 17, 17}, []int32{f.spans[0].first, f.spans[0].last, f.spans[1].first, f.spans[1].last})
	require.False(t, f.spans[0].device)
	require.True(t, f.spans[1].device)
}
