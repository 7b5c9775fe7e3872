// Tests of users' modules: signatures in CUDA C as people write it, PTX, cubins and fat binaries.

package source

import (
	"bytes"
	"encoding/binary"
	"io/fs"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/kernels/launch"
)

// signatureOf writes a kernel's parameters on one line.
func signatureOf(params []dag.KernelParam) string {
	var all []string
	for _, p := range params {
		s := p.Name + " " + p.DType.String()
		if p.Buffer {
			s += " " + p.Mode.String()
		}
		all = append(all, s)
	}
	return strings.Join(all, ", ")
}

const userSource = `
#include <cuda_runtime.h>
#include "types.h"
#define BLOCK 256
#define REAL float   /* a comment */
#define DEFINE(name, T) extern "C" __global__ void name##_##T(long n, const T *x, T *y) { y[0] = x[0]; }
typedef unsigned long long count_t;
using weight = double;

// extern "C" __global__ void commented(int n);
const char *text = "extern \"C\" __global__ void quoted(int n) {";

struct Point { float x, y; };
template <class T> struct Box { T v; __device__ T get() { return v; } };

__device__ int counter;
__device__ const float table[3] = {1, 2, 3};
static __device__ float scratch[16] = {0};
__constant__ float weights[9];
__device__ float twice(float x) { return 2 * x; }
template <class T, class S = Point> __device__ T often(T x, S = S(), int k = 3) { return k * x; }
__managed__ int shared_by_all = 0;

extern "C" __global__ void __launch_bounds__(BLOCK, 2)
scale(int n, REAL alpha, const REAL *__restrict__ x, REAL* __restrict__ y) { if (n > 0) { y[0] = alpha * x[0]; } }

extern "C" {
__global__ void inside(const count_t n, weight w, unsigned char *bytes, const size_t k, long long unsigned int m, std::int32_t i)
{ }
__global__ void nothing(void) {}
__global__ void arrays(float x[], const int y[16], void *raw, const float4 *v, float **pp, bool flag) {}
}

DEFINE(copy, double)
#if defined(BLOCK) && BLOCK > 100
extern "C" __global__ void chosen(int a) {}
#elif 1
extern "C" __global__ void other(int a) {}
#else
extern "C" __global__ void third(int a) {}
#endif
#ifdef __CUDA_ARCH__
#if __CUDA_ARCH__ >= 900
extern "C" __global__ void hopper(int a) {}
#endif
#endif

namespace deep { extern "C" __global__ void named(imported n, float *x) {} }
__global__ void mangled(int n) {}
template <int K> __global__ void templated(int n) {}
extern "C" __global__ void structure(Point p, int n) {}
__global__ void times(clock_t t, uintptr_t address, const cufftComplex *z, thrust::complex<double> *w, cuda::std::complex<float> *v) {}
extern "C" __global__ void reference(int &n) {}
#if CUDART_VERSION >= 2020 && __CUDACC_VER_MAJOR__ > 8
extern "C" __global__ void versioned(int a) {}
#endif
inline __device__ void operator+=(float2 &a, float2 b) { a.x += b.x; }
extern "C" __global__ void behind(int n) {}
`

func TestSignaturesOfCUDA(t *testing.T) {
	m, err := Open("mine", "src/filters.cu", []byte(userSource), Options{ReadFile: func(name string) ([]byte, error) {
		if name != "src/types.h" {
			return nil, fs.ErrNotExist
		}
		return []byte("typedef int imported;\n"), nil
	}})
	require.NoError(t, err)
	assert.Equal(t, launch.Source, m.Module().Kind)
	assert.Equal(t, []string{"arrays", "behind", "chosen", "copy_double", "deep::named", "inside", "mangled", "nothing", "reference", "scale", "structure", "templated", "times", "versioned"}, m.Names())
	for name, want := range map[string]string{
		"scale":        "n i32, alpha f32, x f32 in, y f32 inout",
		"inside":       "n u64, w f64, bytes u8 inout, k u64, m u64, i i32",
		"nothing":      "",
		"arrays":       "x f32 inout, y i32 in, raw invalid inout, v f32x4 in, pp invalid inout, flag bool",
		"copy_double":  "n i64, x f64 in, y f64 inout",
		"chosen":       "a i32",
		"versioned":    "a i32",
		"behind":       "n i32",
		"named":        "n i32, x f32 inout",
		"deep::named":  "n i32, x f32 inout",
		"mangled":      "n i32",
		"_Z7mangledi":  "n i32",
		"templated<3>": "n i32",
		"times":        "t i64, address u64, z c64 in, w c128 inout, v c64 inout",
	} {
		k, err := m.Kernel(name, nil)
		require.NoError(t, err, name)
		assert.Equal(t, want, signatureOf(k.Params()), name)
	}
	for name, want := range map[string]string{
		"templated":       `templated<int K>(int) (src/filters.cu:50) is a template and needs int K; write template: [...]`,
		"templated<1, 2>": `templated<int K>(int) (src/filters.cu:50) has 1 template parameter, got 2`,
		"mangled<1>":      `src/filters.cu: no kernel fits "mangled<1>"; there is mangled(int) (src/filters.cu:49)`,
		"reference":       `src/filters.cu: kernel "reference": parameter 1 is a reference, which a kernel cannot take`,
		"blurr":           `unknown kernel "blurr"`,
	} {
		_, err := m.Kernel(name, nil)
		assert.EqualError(t, err, want)
	}
	assert.Equal(t, []string{"counter", "scratch", "shared_by_all"}, m.WritableGlobals())
}

func TestWhatPTXShows(t *testing.T) {
	text := `.version 7.0
.target sm_60
.address_size 64
.file 1 "scan.cu"
.entry f(.param .u64 x, .param .u64 y, .param .u64 z)
{
	.reg .b64 %a<4>;
	.reg .f32 %f<3>;
	ld.param.u64 %a1, [x];
	ld.param.u64 %a2, [y];
	ld.global.f32 %f1, [%a1];
	.loc 1 41 2
	atom.global.add.f32 %f2, [%a2], %f1;
	ret;
}
.entry g(.param .u64 x)
{
	.reg .b64 %a<4>;
	ld.param.u64 %a1, [x];
	ld.global.u64 %a2, [%a1];
	st.global.u64 [%a2], %a1;
	ret;
}`
	m, err := Open("mine", "f.ptx", []byte(text), Options{})
	require.NoError(t, err)
	k, err := m.Kernel("f", nil)
	require.NoError(t, err)
	assert.Equal(t, dag.CodeUse{Decided: true, Mode: dag.Read}, k.Params()[0].Code)
	assert.Equal(t, dag.CodeUse{Decided: true, Mode: dag.ReadWrite, Written: "scan.cu:41"}, k.Params()[1].Code)
	assert.Equal(t, dag.CodeUse{Decided: true}, k.Params()[2].Code)
	assert.Equal(t, "scan.cu:41", k.(dag.FloatAtomics).FloatAtomics())
	k, err = m.Kernel("g", nil)
	require.NoError(t, err)
	assert.Equal(t, dag.CodeUse{Mode: dag.Read, Why: "an address is loaded from memory (PTX line 21)"}, k.Params()[0].Code)
	assert.Empty(t, k.(dag.FloatAtomics).FloatAtomics())
}

func TestSignaturesOfPTX(t *testing.T) {
	text := `.version 7.0
.target sm_60
.address_size 64
.visible .global .align 4 .u32 counter;
.global .align 4 .b8 table[12] = {1, 2, 3};
.global .align 1 .b8 $str[4] = {37, 100, 10, 0};
// .entry commented(
.visible .entry blur(
	.param .u64 blur_param_0,
	.param .u64 .ptr .global .align 4 blur_param_1,
	.param .f32 blur_param_2,
	.param .u32 blur_param_3,
	.param .align 8 .b8 blur_param_4[24]
)
.maxntid 256, 1, 1
{
	.reg .b32 %r<2>;
	ld.global.u32 %r1, [table+4];
	atom.global.add.u32 %r1, [counter], 1;
	ret;
}
.entry none { ret; }
`
	m, err := Open("mine", "filters.ptx", []byte(text), Options{})
	require.NoError(t, err)
	assert.Equal(t, []string{"blur", "none"}, m.Names())
	k, err := m.Kernel("blur", nil)
	require.NoError(t, err)
	unused := dag.CodeUse{Decided: true}
	assert.Equal(t, []dag.KernelParam{{Size: 8, Code: unused}, {Size: 8, Code: unused}, {Size: 4, DType: dag.F32}, {Size: 4}, {Size: 24}}, k.Params())
	assert.Equal(t, []string{"counter"}, m.WritableGlobals())
	_, err = Open("mine", "filters.ptx", []byte("hello"), Options{})
	assert.EqualError(t, err, `module "mine": filters.ptx:1:1: PTX must start with .version, not with "hello"`)
	_, err = Open("mine", "filters.cu", []byte("int x;"), Options{})
	assert.EqualError(t, err, `module "mine": filters.cu has no kernel: a __global__ function is needed`)
	_, err = Open("mine", "f.cu", []byte(`extern "C" __global__ void f(int n) {}`), Options{References: map[string]launch.Reference{"g": {}}})
	assert.EqualError(t, err, `module "mine": there is a Go version of "g", but no such kernel in f.cu`)
}

func TestParametersOfCubinsAreCounted(t *testing.T) {
	code := testCubin()
	assert.Equal(t, map[string]int{"blur": 2}, launch.CubinParameters(code))
	for n := range code {
		launch.CubinParameters(code[:n]) // must not panic
	}
	assert.Nil(t, launch.CubinParameters([]byte("no ELF")))

	code[20] = 118 // as CUDA 11.8 writes it
	assert.Equal(t, map[string]int{"blur": 2}, launch.CubinParameters(code))
	assert.Equal(t, byte(118), code[20])
}

// testCubin makes an ELF file as NVIDIA's tools do, with one kernel of two parameters and a variable.
func testCubin() []byte {
	names := "\x00.shstrtab\x00.strtab\x00.symtab\x00.text.blur\x00.nv.info.blur\x00.nv.global\x00.nv.info\x00"
	at := func(s string) uint32 { return uint32(strings.Index(names, "\x00"+s+"\x00") + 1) }
	strtab := "\x00blur\x00counter\x00"
	le := binary.LittleEndian
	symbol := func(name uint32, info, other byte, section uint16, size uint64) []byte {
		b := le.AppendUint32(nil, name)
		b = append(b, info, other)
		b = le.AppendUint16(b, section)
		b = le.AppendUint64(b, 0)
		return le.AppendUint64(b, size)
	}
	symtab := append(make([]byte, 24), symbol(1, 0x12, 0x10, 4, 128)...)
	symtab = append(symtab, symbol(6, 0x11, 0, 6, 4)...)
	param := func(ordinal, offset uint16, size uint32) []byte {
		b := []byte{4, 0x17, 12, 0}
		b = le.AppendUint32(b, 0)
		b = le.AppendUint16(b, ordinal)
		b = le.AppendUint16(b, offset)
		return le.AppendUint32(b, size<<18|0x1f000)
	}
	info := append([]byte{3, 0x1b, 0xff, 0}, param(1, 8, 4)...)
	info = append(info, param(0, 0, 8)...)
	registers := []byte{4, 0x2f, 8, 0, 1, 0, 0, 0, 40, 0, 0, 0} // of symbol 1
	sections := []struct {
		name string
		kind uint32
		data []byte
		link uint32
		info uint32
		size uint64
	}{
		{}, {".shstrtab", 3, []byte(names), 0, 0, 0}, {".strtab", 3, []byte(strtab), 0, 0, 0}, {".symtab", 2, symtab, 2, 1, 24},
		{".text.blur", 1, make([]byte, 128), 0, 0, 0}, {".nv.info.blur", 0x70000000, info, 3, 4, 0}, {".nv.global", 8, nil, 0, 0, 0},
		{".nv.info", 0x70000000, registers, 3, 0, 0},
	}
	body := make([]byte, 64)
	var headers []byte
	for i, s := range sections {
		h := make([]byte, 64)
		if i > 0 {
			le.PutUint32(h[0:], at(s.name))
			le.PutUint32(h[4:], s.kind)
			le.PutUint64(h[24:], uint64(len(body)))
			le.PutUint64(h[32:], uint64(len(s.data)))
			le.PutUint32(h[40:], s.link)
			le.PutUint32(h[44:], s.info)
			le.PutUint64(h[56:], s.size)
			body = append(body, s.data...)
		}
		headers = append(headers, h...)
	}
	copy(body, "\x7fELF\x02\x01\x01\x33\x07")
	le.PutUint16(body[16:], 2)
	le.PutUint16(body[18:], 190) // CUDA
	le.PutUint32(body[20:], 1)
	le.PutUint64(body[40:], uint64(len(body)))
	le.PutUint16(body[52:], 64)
	le.PutUint16(body[58:], 64)
	le.PutUint16(body[60:], uint16(len(sections)))
	le.PutUint16(body[62:], 1)
	return append(body, headers...)
}

func testFatbin(kind uint16, flags, whole uint64, body []byte) []byte {
	le := binary.LittleEndian
	entry := make([]byte, 64)
	le.PutUint16(entry[0:], kind)
	le.PutUint32(entry[4:], 64)
	le.PutUint64(entry[8:], uint64(len(body)))
	le.PutUint32(entry[16:], uint32(len(body)))
	le.PutUint64(entry[40:], flags)
	le.PutUint64(entry[56:], whole)
	head := le.AppendUint32(nil, fatbinMagic)
	head = le.AppendUint16(head, 1)
	head = le.AppendUint16(head, 16)
	head = le.AppendUint64(head, uint64(64+len(body)))
	return bytes.Join([][]byte{head, entry, body}, nil)
}

func TestEntriesOfCompiledCode(t *testing.T) {
	cubin := testCubin()
	// One LZ4 block of literals only.
	packed := []byte{0xf0}
	n := len(cubin) - 15
	for ; n >= 255; n -= 255 {
		packed = append(packed, 255)
	}
	packed = append(append(packed, byte(n)), cubin...)
	for what, code := range map[string][]byte{
		"a cubin": cubin, "a fat binary": testFatbin(fatbinELF, 0, 0, cubin), "a packed fat binary": testFatbin(fatbinELF, fatbinPacked, uint64(len(cubin)), packed),
	} {
		m, err := Open("mine", "code", code, Options{})
		require.NoError(t, err, what)
		k, err := m.Kernel("blur", nil)
		require.NoError(t, err, what)
		assert.Equal(t, []dag.KernelParam{{Size: 8}, {Size: 4}}, k.Params(), what)
		assert.Equal(t, []string{"counter"}, m.WritableGlobals(), what)
		list, note, err := m.List(t.Context())
		require.NoError(t, err, what)
		assert.Empty(t, note, what)
		assert.Equal(t, []Info{{Name: "blur", Signature: "blur", Entry: "blur", Params: k.Params(), Shared: -1, Registers: 40}}, list, what)
	}
	unpacked, err := unpackLZ4([]byte{0x34, 'a', 'b', 'c', 3, 0, 0x10, 'z'}, 12)
	require.NoError(t, err)
	assert.Equal(t, "abcabcabcabz"[:11]+"z", string(unpacked))
	_, err = Open("mine", "x.cubin", []byte("\x7fELFnonsense"), Options{})
	assert.ErrorContains(t, err, "not a cubin")
	_, err = Open("mine", "x.fatbin", testFatbin(fatbinELF, fatbinPackedZ, 0, cubin), Options{})
	assert.ErrorContains(t, err, "packed with zstd")
	for cut := range cubin {
		_, _ = Open("mine", "x.cubin", cubin[:cut], Options{})
	}
}

func FuzzOpen(f *testing.F) {
	f.Add("a.cu", []byte(userSource))
	f.Add("a.ptx", []byte(".version 7.0\n.visible .entry f(.param .u64 p) { ret; }"))
	f.Add("a.cubin", testCubin())
	f.Add("a.fatbin", testFatbin(fatbinELF, 0, 0, testCubin()))
	f.Fuzz(func(t *testing.T, path string, code []byte) {
		m, err := Open("m", path, code, Options{})
		if err == nil {
			for _, name := range m.Names() {
				_, err := m.Kernel(name, nil)
				require.NotErrorIs(t, err, dag.ErrUnknownKernel)
			}
		}
	})
}
