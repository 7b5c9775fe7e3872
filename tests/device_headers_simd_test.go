// The functions on bytes and halves of words, and on numbers of 16 bits, that clang gets from dagrun's device headers, held against Go's.

package tests

import (
	"context"
	"fmt"
	"math"
	"runtime"
	"strings"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/cudart/host/simt"
	"github.com/dagrun/dagrun/kernels/source/clang"
)

// runWords compiles functions of two words, runs each for all pairs of words on the CPU device, and returns what they give.
func runWords(t *testing.T, expressions []string, words []uint32) [][]uint32 {
	compiler, err := clang.Open(clang.Options{})
	if err != nil {
		t.Skip(err)
	}
	code := strings.Builder{}
	code.WriteString("#include <cuda_fp16.h>\n#include <cuda_bf16.h>\ntemplate <class To, class From> __device__ To as(From x) { To y; memcpy(&y, &x, 4); return y; }\n")
	for i, e := range expressions {
		fmt.Fprintf(&code, "extern \"C\" __global__ void f%d(const unsigned *in, unsigned *out) { int i = blockIdx.x, k = threadIdx.x; unsigned a = in[i], b = in[k]; out[i * blockDim.x + k] = %s; }\n", i, e)
	}
	r, err := compiler.Compile(context.Background(), clang.Source{Path: "words.cu", Code: []byte(code.String())})
	require.NoError(t, err)
	p, err := simt.Load("words.ptx", string(r.PTX))
	require.NoError(t, err)
	n := len(words)
	in, out := append([]uint32(nil), words...), make([]uint32, n*n)
	keptWords = [][]uint32{in, out} // the stack moves
	var results [][]uint32
	for i, e := range expressions {
		kernel, err := p.Kernel(fmt.Sprintf("f%d", i))
		require.NoError(t, err, e)
		run, err := kernel.Start(simt.Launch{Grid: [3]uint32{uint32(n), 1, 1}, Block: [3]uint32{uint32(n), 1, 1}, Args: []simt.Arg{
			{Bits: uint64(uintptr(unsafe.Pointer(&in[0]))), Pointer: true, Bytes: int64(4 * n)}, {Bits: uint64(uintptr(unsafe.Pointer(&out[0]))), Pointer: true, Bytes: int64(4 * n * n)}}})
		require.NoError(t, err)
		run.Work()
		require.Nil(t, run.Fault(), "%s: %v", e, run.Fault())
		results = append(results, append([]uint32(nil), out...))
		runtime.KeepAlive(keptWords)
	}
	return results
}

var keptWords [][]uint32

var someWords = []uint32{0, 1, 0x7fff7fff, 0x80008000, 0xffffffff, 0x80ff7f01, 0x017f80fe, 0x12345678, 0xfedcba98, 0x00ff8001, 0x3c00bc00, 0x40003555}

func TestDeviceHeadersOnParts(t *testing.T) {
	truth := func(b bool) int {
		if b {
			return 1
		}
		return 0
	}
	operations := map[string]func(a, b, low, high int) int{
		"add": func(a, b, _, _ int) int { return a + b }, "sub": func(a, b, _, _ int) int { return a - b },
		"addss": func(a, b, low, high int) int { return min(max(a+b, low), high) }, "addus": func(a, b, low, high int) int { return min(max(a+b, low), high) },
		"subss": func(a, b, low, high int) int { return min(max(a-b, low), high) }, "subus": func(a, b, low, high int) int { return min(max(a-b, low), high) },
		"maxu": func(a, b, _, _ int) int { return max(a, b) }, "maxs": func(a, b, _, _ int) int { return max(a, b) },
		"minu": func(a, b, _, _ int) int { return min(a, b) }, "mins": func(a, b, _, _ int) int { return min(a, b) },
		"absdiffu": func(a, b, _, _ int) int { return max(a, b) - min(a, b) }, "absdiffs": func(a, b, _, _ int) int { return max(a, b) - min(a, b) },
		"avgu": func(a, b, _, _ int) int { return (a + b + 1) >> 1 }, "haddu": func(a, b, _, _ int) int { return (a + b) >> 1 },
		"avgs":   func(a, b, _, _ int) int { return (a + b + truth(a+b >= 0)) >> 1 },
		"cmpgts": func(a, b, _, _ int) int { return -truth(a > b) }, "cmpleu": func(a, b, _, _ int) int { return -truth(a <= b) },
		"setges": func(a, b, _, _ int) int { return truth(a >= b) }, "setltu": func(a, b, _, _ int) int { return truth(a < b) }, "setne": func(a, b, _, _ int) int { return truth(a != b) },
	}
	var names, expressions []string
	for name := range operations {
		for _, parts := range []string{"2", "4"} {
			names, expressions = append(names, name+parts), append(expressions, "__v"+name+parts+"(a, b)")
		}
	}
	part := func(word uint32, at, bits int, signed bool) int {
		v := int(word >> at & (1<<bits - 1))
		if signed && v >= 1<<(bits-1) {
			v -= 1 << bits
		}
		return v
	}
	for i, got := range runWords(t, expressions, someWords) {
		name, bits := strings.TrimRight(names[i], "24"), 16
		if strings.HasSuffix(names[i], "4") {
			bits = 8
		}
		signed := strings.HasSuffix(name, "s") && name != "addus" && name != "subus"
		low, high := 0, 1<<bits-1
		if signed {
			low, high = -1<<(bits-1), 1<<(bits-1)-1
		}
		for j, a := range someWords {
			for k, b := range someWords {
				want := uint32(0)
				for at := 0; at < 32; at += bits {
					want |= uint32(operations[name](part(a, at, bits, signed), part(b, at, bits, signed), low, high)&(1<<bits-1)) << at
				}
				assert.Equal(t, want, got[j*len(someWords)+k], "__v%s(%#x, %#x)", names[i], a, b)
			}
		}
	}
	one := runWords(t, []string{"__vneg2(a)", "__vnegss4(a)", "__vabs4(a)", "__vabsss2(a)", "__vsads2(a, b)", "__vsadu4(a, b)", "__vimax3_s16x2(a, b, 0)", "__viaddmin_u32(a, b, 7)", "__vimin_s32_relu(a, b)"},
		[]uint32{0x80017fff, 0x8000ff02})
	assert.Equal(t, [][]uint32{
		{0x7fff8001, 0x7fff8001, 0x800000fe, 0x800000fe}, {0x7fff8101, 0x7fff8101, 0x7f0001fe, 0x7f0001fe}, {0x80017f01, 0x80017f01, 0x80000102, 0x80000102},
		{0x7fff7fff, 0x7fff7fff, 0x7fff00fe, 0x7fff00fe}, {0, 1 + 0x80fd, 0x80fe, 0}, {0, 1 + 0x80 + 0xfd, 1 + 0x80 + 0xfd, 0},
		{0x00007fff, 0x00007fff, 0x00007fff, 0}, {7, 7, 7, 7}, {0, 0, 0, 0}}, one)
}

func TestDeviceHeadersOnHalves(t *testing.T) {
	float := func(bits uint32) float64 { return float64(math.Float32frombits(bits)) }
	got := runWords(t, []string{
		"as<unsigned>(__half2float(__low2half(__hgt2(as<half2>(a), as<half2>(b)))))",
		"__hbge2(as<half2>(a), as<half2>(b))",
		"as<unsigned>(__lowhigh2highlow(as<half2>(a)))",
		"as<unsigned>(__halves2half2(__low2half(as<half2>(a)), __high2half(as<half2>(b))))",
		"as<unsigned>(__bfloat162float(__ushort_as_bfloat16(a >> 16)))",
		"as<unsigned>(__hneg2(as<__nv_bfloat162>(a)))",
		"[&] { __shared__ half2 sum; if (threadIdx.x == 0) sum = as<half2>(a); __syncthreads(); atomicAdd(&sum, as<half2>(0x3c003c00u)); __syncthreads(); return as<unsigned>(sum); }()",
		"[&] { __shared__ __nv_bfloat16 sum; if (threadIdx.x == 0) sum = 1.5f; __syncthreads(); atomicAdd(&sum, __float2bfloat16(2)); __syncthreads(); return (unsigned)__bfloat16_as_ushort(sum); }()",
	}, []uint32{0x3c00bc00, 0x40003555})
	assert.Equal(t, [][]uint32{
		{0, 0, 0x3f800000, 0}, {1, 0, 1, 1}, {0xbc003c00, 0xbc003c00, 0x35554000, 0x35554000}, {0x3c00bc00, 0x4000bc00, 0x3c003555, 0x40003555},
		{0x3c000000, 0x3c000000, 0x40000000, 0x40000000}, {0xbc003c00, 0xbc003c00, 0xc000b555, 0xc000b555},
	}, got[:6])
	assert.Equal(t, []uint32{0x42003c00, 0x42003c00}, got[6][:2], "1 + 2 and -1 + 2")
	assert.Equal(t, 5.5, float(got[7][0]<<16))
}
