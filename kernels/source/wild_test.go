// Tests of kernels as people write them: no kernel is lost, and no host function taken for one.

package source

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/kernels/launch"
)

// listed writes files, lists the kernels of the first with clang, and returns a line for each.
func listed(t *testing.T, build launch.Build, files ...string) (string, error) {
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
	m, err := Open("m", path, []byte(files[1]), Options{ReadFile: os.ReadFile, Build: build, Compilers: c})
	if err != nil {
		return "", errorWithout{err, folder + string(filepath.Separator)}
	}
	list, note, err := m.List(context.Background())
	require.Empty(t, note)
	var b strings.Builder
	for _, k := range list {
		b.WriteString(k.Signature)
		if k.Problem != "" {
			b.WriteString(": " + k.Problem)
		}
		b.WriteString("\n")
	}
	text := strings.ReplaceAll(b.String(), folder+string(filepath.Separator), "")
	if err != nil {
		return text, errorWithout{err, folder + string(filepath.Separator)}
	}
	return text, nil
}

func TestNoKernelIsLost(t *testing.T) {
	const program = byteOrderMark + `#include <stdio.h>
#include <glob.h>
#include <some/library.hpp>
struct Point { float x, y; };
enum Kind { FIRST, LAST };
struct __align__(8) Pair { int a, b; };
struct alignas(16) Quad { int v[4]; };
struct Box { int n; } box = {3};

struct Point middle(struct Point a) { return a; }
__global__ void afterStruct(Point *p) { p->x = 1; }
struct Point *where(int n) { return new Point[n]; }
__global__ void afterPointer(Point *p) { p->y = 1; }
enum Kind kind(void) { return LAST; }
__global__ void afterEnum(int *k) { *k = LAST; }
const struct Point &same(const struct Point &a) { return a; }
static struct Pair both() { struct Pair p = {1, 2}; return p; }
__global__ void afterReference(Pair *p, Quad *q) { p->a = q->v[0]; }

#define KERNEL(name, args...) __global__ void name(args)
#define REST(name, ...) __global__ void name(int n, ##__VA_ARGS__)
KERNEL(named, int n, float *x) { x[n] = 1; }
KERNEL(none) {}
REST(some, float *x) { x[n] = 2; }
REST(one) {}
struct __attribute__((aligned(8))) Last { __device__ static struct Point of(float x) { Point p = {x, x}; return p; } };
__device__ struct Point made(float x) { return Last::of(x); }
__global__ void last(Point *p) { *p = made(2); }
template <class T> struct Friend { template <class U> friend __global__ void befriended(U *x); T v; };
int main() { for (Point p : std::vector<Point>(3)) printf("%f", p.x); }
`
	text, err := listed(t, launch.Build{}, "a.cu", program)
	require.NoError(t, err)
	assert.Equal(t, `afterStruct(Point *p)
afterPointer(Point *p)
afterEnum(int *k)
afterReference(Pair *p, Quad *q)
named(int n, float *x)
none()
some(int n, float *x)
one(int n)
last(Point *p)
`, text)
}

func TestAKernelThatCannotBeReadIsAnError(t *testing.T) {
	for code, want := range map[string]string{
		"__global__ void a(int *x) { *x = 1; }\nnamespace n {\n__global__ void (b)(int *x) { *x = 1; }\n}\n": "a.cu:3",
		"__global__ void a(int *x) { *x = 1; }\nvoid f() {\n  extern __global__ void b(int *);\n}\n":         "a.cu:3",
		"__global__ void a(int *x), b(int *x);\n__global__ void c(int) {}\n__global__ int;\n":                "a.cu:3",
	} {
		_, err := listed(t, launch.Build{}, "a.cu", code)
		assert.EqualError(t, err, `module "m": `+want+": the __global__ function here cannot be read, and would be missing among the kernels: "+
			"declare it by itself, outside of functions and types, without macros that hide its name or its parameters", code)
	}
	text, err := listed(t, launch.Build{}, "a.cu", "__global__ void a(int *x);\n__global__ void b(int *x);\n#if __CUDA_ARCH__ > 300\n__global__ void c(int *x) {}\n#endif\nvoid b(int *x) { *x = 1; }\n__global__ void d() {}\n")
	assert.Equal(t, "a(int *x): kernel \"a\" is only declared (a.cu:1): name the file that defines it\nb(int *x): kernel \"b\" is only declared (a.cu:2): name the file that defines it\nd()\n", text)
	assert.EqualError(t, err, "a.cu: compiled code has the kernel c(int*), which is missing among the kernels that were read; please report this file")
}

func TestHeadersOfTheUsersOwnAreRead(t *testing.T) {
	const io = "struct item { int v; };\n#include <vector>\nstatic std::vector<item> all;\n"
	const kernel = "__global__ void k(item *p, int *q) { p->v = *q; }\n"
	for name, files := range map[string][]string{
		"beside":       {"a.cu", "#include \"io.h\"\n" + kernel, "io.h", io},
		"by -I":        {"a.cu", "#include <timer.h>\n" + kernel, "include/timer.h", io},
		"by its name":  {"a.cu", "#include \"param.h\"\n" + kernel, "include/param.h", byteOrderMark + io},
		"and of CUDA":  {"a.cu", "#include <cuda_runtime.h>\n#include <exception.h>\n" + kernel, "include/cuda_runtime.h", "nonsense\n", "include/exception.h", io},
		"not the host": {"a.cu", "#include <io.h>\n#include \"windows.h\"\nstruct item { int v; };\n" + kernel},
	} {
		text, err := listed(t, launch.Build{Include: []string{"include"}}, files...)
		require.NoError(t, err, name)
		assert.Equal(t, "k(item *p, int *q)\n", text, name)
	}
	_, err := listed(t, launch.Build{}, "a.cu", "#include \"mine.h\"\n"+kernel)
	assert.ErrorContains(t, err, "a.cu:1:10: fatal error: 'mine.h' file not found")
	_, err = listed(t, launch.Build{}, "a.cu", "#include <cub/cub.cuh>\n"+kernel)
	assert.ErrorContains(t, err, "a.cu:2:19: error: unknown type name 'item'\na.cu:1: <cub/cub.cuh> is not found and was left out; "+
		"it is a part of CCCL, which a CUDA toolkit and the pip package nvidia-cuda-cccl bring, or name its folder with -I, in the pipeline with include:")
	_, err = listed(t, launch.Build{}, "a.cu", "#include <vector>\n#include <mine/item.hpp>\n"+kernel)
	assert.ErrorContains(t, err, "a.cu:3:19: error: unknown type name 'item'\na.cu:2: <mine/item.hpp> is not found and was left out; name its folder with -I, or in the pipeline with include:")
}

func TestWhatNVCCBringsInWithoutAnInclude(t *testing.T) {
	_, err := listed(t, launch.Build{}, "a.cu", `#include "cublas_v2.h"
#ifndef __NVCC__
#error
#endif
#if __cplusplus < 201703L
#error
#endif
#define FLT_MAX 3e38f
__global__ void k(half *a, __nv_bfloat16 *b, cuComplex *c, float *x, unsigned long long *y) {
  static_assert(std::is_same<float, std::remove_pointer_t<float *>>::value);
  *x = std::exp(*x) + std::numeric_limits<float>::max() + std::min(INT_MAX, 3) + FLT_MAX;
  *b = c->x;
  *a = c->y;
  *y = UINT64_C(0xffffffffff);
  assert(*x > 0);
}
__host__ __device__ void both(int x) { assert(x > 0); }
`)
	require.NoError(t, err)
}

func TestFunctionsForTheHostInTypesAreLeftOut(t *testing.T) {
	text, err := listed(t, launch.Build{Define: []launch.Definition{{Name: "N", Value: "3"}, {Name: "T", Value: "float"}}}, "a.cu", `#include <iostream>
#define TYPE(name) using name = vec<T, N>;
template <class U, int n> struct vec { U v[n]; };
TYPE(vec3f);
#undef TYPE
template <class U> class Matrix {
 public:
  Matrix(size_t n) : size_{n}, data_{nullptr} { check(cudaMalloc(&data_, n * sizeof(U))); }
  ~Matrix() { cudaFree(data_); }
  Matrix(const Matrix &) = default;
#define ROW 16
  __host__ __device__ U &at(size_t i) const { return data_[i * ROW]; }
  struct Row { // nested
    void print() { std::cout << row; }
    int row;
  };
  std::string name() const;
  friend std::ostream &operator<<(std::ostream &out, const Matrix &m) {
    out << m.size_;
    return out;
  }
 private:
  size_t size_;
  U *data_;
};
__global__ void k(Matrix<float> m, vec3f *p) { m.at(threadIdx.x) = p->v[N - 1] ; }
`)
	require.NoError(t, err)
	assert.Contains(t, text, "k(Matrix<float> m, vec3f *p)")
}

// Host code hands lambdas for devices to templates; alone, such a mark makes no function one of the device.
func TestLambdasForDevicesAreHostCode(t *testing.T) {
	text, err := listed(t, launch.Build{}, "a.cu", `#define LAMBDA __host__ __device__
template <class F> __global__ void each(F f) { f(threadIdx.x); }
void all() { library::each(10, [=] __device__ (int i) { return i; }); }
int main() { library::each(10, [=] LAMBDA (int i) { return i; }); }
__device__ int twice(int i) { auto f = [=] __device__ (int k) { return 2 * k; }; return f(i); }
`)
	require.NoError(t, err)
	assert.Equal(t, "template <typename F> each(F f)\n", text)
}

func TestSequencesOfNumbers(t *testing.T) {
	_, err := listed(t, launch.Build{}, "a.cu", `#include <utility>
#include <tuple>
template <class T, T... i> __device__ T sum(std::integer_sequence<T, i...>) { return (i + ... + 0); }
static_assert(std::is_same_v<std::make_index_sequence<3>, std::index_sequence<0, 1, 2>> && std::make_index_sequence<0>::size() == 0);
static_assert(std::is_same_v<std::make_integer_sequence<char, 2>, std::integer_sequence<char, 0, 1>>);
__global__ void k(int *p) { *p = sum(std::make_integer_sequence<int, 5>()); }
`)
	require.NoError(t, err)
}

// The macros of a program's command line have names that device headers use too.
func TestDefinitionsDoNotReachTheDeviceHeaders(t *testing.T) {
	_, err := listed(t, launch.Build{Define: []launch.Definition{{Name: "T", Value: "4"}, {Name: "n", Value: "5"}, {Name: "value", Value: "6"}, {Name: "at", Value: ""}}}, "a.cu",
		"__global__ void k(int *p) { *p = T + n + value at; }\n")
	require.NoError(t, err)
}

func TestOldTextures(t *testing.T) {
	text, err := listed(t, launch.Build{}, "a.cu", `texture<float, 1, cudaReadModeElementType> line;
texture<uchar4, cudaTextureType2D, cudaReadModeNormalizedFloat> image;
texture<float2, cudaTextureType2DLayered> layers;
__global__ void all(cudaTextureObject_t t, float *y) {
  y[0] = tex1Dfetch<float>(t, 1) + tex1D<float>(t, 1) + tex2D<float>(t, 1, 2) + tex3D<float>(t, 1, 2, 3);
  y[1] = tex1DLayered<float>(t, 1, 2) + tex2DLayered<float>(t, 1, 2, 3) + texCubemap<float>(t, 1, 2, 3) + texCubemapLayered<float>(t, 1, 2, 3, 4);
  y[2] = tex1DLod<float>(t, 1, 0) + tex2DLod<float>(t, 1, 2, 0) + tex3DLod<float>(t, 1, 2, 3, 0) + tex2Dgather<float4>(t, 1, 2, 3).w;
  tex2D(y + 3, t, 1, 2);
}
__global__ void old(float *y) { y[0] = tex1Dfetch(line, 3) + tex2D(image, 1, 2).w + tex2DLayered(layers, 1, 2, 3).y; }
__global__ void none(float *y) { y[0] = 1; }
`)
	require.NoError(t, err)
	assert.Equal(t, "all(cudaTextureObject_t t, float *y)\nold(float *y): kernel \"old\" reads the texture reference line, which nothing can bind; pass a texture object\nnone(float *y)\n", text)
}

// The folders of NVIDIA's headers are for the compiler alone. Of CUB, device code gets what it can call.
func TestCUBWhereItIs(t *testing.T) {
	files := []string{"a.cu", `#include <cub/cub.cuh>
#include <thrust/device_vector.h>
__global__ void k(int *p) { *p = cub::BlockReduce<int>::Sum(thrust::plus(1, 2)); }
void sum(int *d, int n) { cub::DeviceReduce::Sum(d, n); }
`, "cccl/cub/version.cuh", ""}
	names := []string{"thread/thread_load", "thread/thread_operators", "thread/thread_reduce", "thread/thread_scan", "thread/thread_search", "thread/thread_store", "warp/warp_exchange", "warp/warp_load",
		"warp/warp_merge_sort", "warp/warp_reduce", "warp/warp_scan", "warp/warp_store", "block/block_adjacent_difference", "block/block_discontinuity", "block/block_exchange", "block/block_histogram",
		"block/block_load", "block/block_merge_sort", "block/block_radix_rank", "block/block_radix_sort", "block/block_run_length_decode", "block/block_scan", "block/block_shuffle", "block/block_store"}
	for _, name := range names {
		files = append(files, "cccl/cub/"+name+".cuh", "")
	}
	files = append(files, "cccl/cub/block/block_reduce.cuh", "namespace cub { template <class T> struct BlockReduce { static __device__ T Sum(T x) { return x; } }; }\n", "cccl/cub/cub.cuh", "#error for the host\n")
	files = append(files, "cccl/thrust/functional.h", "namespace thrust { __device__ int plus(int a, int b) { return a + b; } }\n", "cccl/thrust/pair.h", "", "cccl/thrust/tuple.h", "")
	text, err := listed(t, launch.Build{Include: []string{"cccl"}}, files...)
	require.NoError(t, err)
	assert.Equal(t, "k(int *p)\n", text)
}

// What the build defines holds, whatever the file and its headers define.
func TestGivenMacrosHold(t *testing.T) {
	text, err := listed(t, launch.Build{Define: []launch.Definition{{Name: "N", Value: "64"}, {Name: "M", Value: "7"}}}, "a.cu", `#include "size.h"
#undef M
#define M 5
static_assert(N == 64 && M == 7 && O == 65, "");
struct pair { int v[N]; };
__global__ void k(pair p, int *x) { x[0] = p.v[M]; }
`, "size.h", "#define N \\\n  1024\n#  define O (N + 1)\n#define M(x) x\n")
	require.NoError(t, err)
	require.Equal(t, "k(pair p, int *x)\n", text)
}

func TestLaunchesOfTheFileAreTold(t *testing.T) {
	m, err := Open("m", "a.cu", []byte(`#define THREADS 128
const int warps = 4;
enum Way { UP };
namespace n { template <int B, class T, bool fast = true> __global__ void scan(T *x) {} }
template <class T> __global__ void copy(T *x) {}
__global__ void plain(int *x) {}
template <class T> void run(T *x, int n, cudaStream_t s) {
  n::scan<2 * THREADS, unsigned char><<<(n + 255) / 256, warps * 32, n * sizeof(int), s>>>(x);
  n::scan<64, T> <<< dim3(n, 2), 64 >>>(x);
  n::scan<64, T><<<dim3(n, 2), 64>>>(x);
  copy<T><<<n, THREADS>>>(x);
  if (n << 2 > n) n = n <<1<< 2;
  plain<<<1, dim3(2, 3)>>>(x);
}
`), Options{})
	require.NoError(t, err)
	list, _, err := m.List(context.Background())
	require.NoError(t, err)
	none := map[string]string{}
	assert.Equal(t, []Launched{{[]string{"2 * 128", "unsigned char"}, "scan<2 * 128, unsigned char><<<(n + 255) / 256, warps * 32, n * sizeof(int), s>>>", "a.cu:8",
		[]string{"ceil(n/256)"}, []string{"128"}, "n*4", none}, {nil, "scan<64, T><<<dim3(n, 2), 64>>>", "a.cu:9", []string{"n", "2"}, []string{"64"}, "", none}}, list[0].Launched)
	assert.Equal(t, []Launched{{nil, "copy<T><<<n, 128>>>", "a.cu:11", []string{"n"}, []string{"128"}, "", none}}, list[1].Launched)
	assert.Equal(t, []Launched{{nil, "plain<<<1, dim3(2, 3)>>>", "a.cu:13", []string{"1"}, []string{"2", "3"}, "", none}}, list[2].Launched)
}

// Grids, blocks and arguments are told over the kernel's parameters, through variables and functions of the host code.
func TestLaunchesAreToldInPipelinesWords(t *testing.T) {
	for _, c := range []struct{ code, grid, block, shared, template string }{
		{"int g = (size + 255) / 256; k<int><<<g, 256, 0>>>(p, size, 2);", "ceil(n/256)", "256", "", "int"},
		{"int b = 128; int g = (size - 1 + b) / b; k<int><<<g, b>>>(p, size, 2);", "ceil(n/128)", "128", "", "int"},
		{"k<int><<<(size + b - 1) / b, b>>>(p, size, 2);", "ceil(n/b)", "b", "", "int"},
		{"k<int><<<up(size * 2, 1 << 5), 4 * wide>>>(p, size, 2);", "ceil(n*2/32)", "128", "", "int"},
		{"k<int><<<ceil((float)size / 64.0f), dim3(8, wide / 8)>>>(p, size, 2);", "ceil(n/64)", "8, 4", "", "int"},
		{"k<int><<<static_cast<int>(size * 1.0 / 64), 64>>>(p, size, 2);", "floor(n/64)", "64", "", "int"},
		{"dim3 g(size / 16, (h + 15) / 16), b(16, 16); k<int><<<g, b>>>(p, size, 2); k<int><<<g, b, 1>>>(p, size, 2);", "floor(n/16), ceil(h/16)", "16, 16", "", "int"},
		{"dim3 g = dim3(size, h); k<int><<<g, (unsigned)b, b * sizeof(float) + 4>>>(p, size, 2);", "n, h", "b", "b*4+4", "int"},
		{"int g = size >> 4; if (b) g = 1; k<int><<<g, b>>>(p, size, 2);", "g", "b", "", "int"},
		{"int g = size; g /= 2; k<int><<<g, b>>>(p, size, 2);", "g", "b", "", "int"},
		{"for (int g = size; g > 1; g >>= 1) k<int><<<g, b>>>(p, size, 2);", "g", "b", "", "int"},
		{"{ int g = 3; } { int g = size % h; k<int><<<g, min(b, 32)>>>(p, size, 2); }", "n%h", "min(b, 32)", "", "int"},
		{"k<int><<<shape.x, b[0]>>>(p, size, 2);", "", "", "", "int"},
		{"float *x, *q; k<<<1, 1>>>(q + 4, size, 2);", "1", "1", "", "float"},
		{"k<<<1, 1>>>((const unsigned char *)p, size, 2);", "1", "1", "", "unsigned char"},
		{"k<<<1, 1>>>(p, size, 2);", "1", "1", "", "double"},
		{"k<<<1, 1>>>(&global[4], size, 2);", "1", "1", "", "short"},
		{"struct { int v; } u = {1}; do { k<int><<<u.v, 1>>>(p, size, 2); } while (0);", "", "1", "", "int"},
		{"std::vector<float> q; k<<<1, 1>>>(q.data(), size, 2);", "1", "1", "", ""},
	} {
		m, err := Open("m", "a.cu", []byte(`const int wide = 32;
short *global;
template <class T> __global__ void k(const T *x, int n, int scale) {}
int up(int a, int b) { return (a + b - 1) / b; }
void run(double *p, int size, int b, int h, dim3 shape) {
`+c.code+"\n}\n"), Options{})
		require.NoError(t, err)
		list, _, err := m.List(context.Background())
		require.NoError(t, err)
		l := list[0].Launched[0]
		assert.Equal(t, []string{c.grid, c.block, c.shared, c.template}, []string{strings.Join(l.Grid, ", "), strings.Join(l.Block, ", "), l.Shared, strings.Join(l.Template, ", ")}, c.code)
		assert.Equal(t, map[string]string{"scale": "2"}, l.Values)
	}
}

// Launches and types that are many or nested deep take no time that grows with their square.
func TestHostCodeEndsSoon(t *testing.T) {
	many := func(s string, n int) string { return strings.Repeat(s, n) }
	_, err := Open("m", "a.cu", []byte("__global__ void k() {}\nvoid f() { "+many("a><<<b,c>>> ", 1<<17)+many("k<<<", 1<<17)+" }\n"), Options{})
	require.NoError(t, err)
	code := many("struct a { void f(); ", 1<<16) + many("};", 1<<16)
	f := withoutHostCode("a.cu", []byte(code), &preprocessor{undefined: map[string]*macro{}})
	require.Len(t, f.members, mostTypes+1)
}

func TestAFragmentNamesTheFileThatIncludesIt(t *testing.T) {
	const part = "__global__ void k(item *p) { p->v = 1; }\n"
	const said = "part.cu is a part of main.cu, which includes it: name that file instead"
	for name, files := range map[string][]string{
		"beside":     {"part.cu", part, "main.cu", "struct item { int v; };\n#include \"part.cu\"\n"},
		"by headers": {"part.cu", part, "b.h", "# include <part.cu>\n", "a.h", "#include \"b.h\"\n", "main.cu", "#include \"a.h\"\n"},
		"above":      {"kernels/part.cu", part, "main.cu", "#include \"kernels/part.cu\"\n"},
	} {
		_, err := listed(t, launch.Build{}, files...)
		assert.ErrorContains(t, err, "part.cu:1:19: error: unknown type name 'item'", name)
		assert.ErrorContains(t, err, said, name)
	}
	for name, files := range map[string][]string{
		"nobody":    {"part.cu", part, "main.cu", "struct item { int v; };\n"},
		"a program": {"part.cu", part + "int main() {}\n", "main.cu", "#include \"part.cu\"\n"},
		"a circle":  {"part.cu", part, "a.h", "#include \"part.cu\"\n#include \"b.h\"\n", "b.h", "#include \"a.h\"\n"},
	} {
		_, err := listed(t, launch.Build{}, files...)
		assert.ErrorContains(t, err, "unknown type name 'item'", name)
		assert.NotContains(t, err.Error(), "is a part of", name)
	}
}
