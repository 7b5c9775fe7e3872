// Tests of variables: how they are read from CUDA C and PTX, and which kernels use them.

package source

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const sharing = `#define N 4
const int ROWS = N * 2, COLUMNS = 3;
typedef float real;
struct point { float x, y; };
__constant__ float taps[2 * N + 1];
__device__ unsigned int done = 0, last[ROWS];
static __device__ real table[] = {1, 2, 3};
extern "C" { __constant__ int ends[2]; }
extern __device__ int elsewhere[4];
namespace a { namespace b { __device__ double deep[ROWS][3]; } __constant__ const char *names[2]; }
const __device__ float fixed[2] = {1, 2};
__device__ point origin{0, 0};
__device__ float *pointer;
__device__ std::array<int, 4> wrapped;
__device__ float tap(int i) { return taps[i]; }
struct state { __device__ void step() { atomicAdd(&done, 1u); } };
typedef state alias;
point operator+(point a, point b) { return origin; }
__global__ void direct(float *x) { x[0] = a::b::deep[0][0] + table[1]; }
__global__ void through(float *x) { x[0] = tap(3); }
__global__ void member(alias s) { s.step(); }
template <float (*F)(int)> __global__ void passed(float *x) { x[0] = F(1); }
__global__ void none(float *x) { x[0] = 1; }
`

func TestVariablesOfCUDA(t *testing.T) {
	m, err := Open("s", "s.cu", []byte(sharing), Options{})
	require.NoError(t, err)
	var got []string
	for _, s := range m.Symbols() {
		text := fmt.Sprintf("%s %s %d %s", s.Name, s.DType, s.Bytes, s.Place)
		if s.Constant {
			text += " constant"
		}
		if s.Initialised {
			text += " initialised"
		}
		got = append(got, text)
	}
	assert.Equal(t, []string{
		"taps f32 36 s.cu:5 constant",
		"done u32 4 s.cu:6 initialised",
		"last u32 32 s.cu:6 initialised",
		"table f32 0 s.cu:7 initialised",
		"ends i32 8 s.cu:8 constant",
		"elsewhere i32 0 s.cu:9",
		"a::b::deep f64 192 s.cu:10",
		"a::names invalid 16 s.cu:10 constant",
		"fixed f32 8 s.cu:11 constant initialised",
		"origin invalid 0 s.cu:12 initialised",
		"pointer invalid 8 s.cu:13",
		"wrapped invalid 0 s.cu:14",
	}, got)
}

func usesText(t *testing.T, m *Module, name string) string {
	t.Helper()
	k, err := m.Kernel(name, nil)
	require.NoError(t, err, name)
	var uses []string
	for _, u := range k.(*userKernel).SymbolUses() {
		uses = append(uses, fmt.Sprintf("%s %s %s", u.Symbol.Name, u.Mode, u.Evidence))
	}
	return strings.Join(uses, ", ")
}

func TestKernelsUseTheVariablesThatTheirTextLeadsTo(t *testing.T) {
	// member takes a struct, which its text shows; only its uses are looked at here.
	text := strings.Replace(sharing, "member(alias s)", "member(float *x)", 1)
	text = strings.Replace(text, "{ s.step(); }", "{ alias s; s.step(); }", 1)
	m, err := Open("s", "s.cu", []byte(text), Options{})
	require.NoError(t, err)
	// Operators are used without being named, so what they use counts for all kernels.
	for name, want := range map[string]string{
		"direct":      "table inout declared, a::b::deep inout declared, origin inout declared",
		"through":     "taps in proved, origin inout declared",
		"member":      "done inout declared, last inout declared, origin inout declared",
		"none":        "origin inout declared",
		"passed<tap>": "taps in proved, origin inout declared",
	} {
		assert.Equal(t, want, usesText(t, m, name), name)
	}
}

func TestNamesOfVariables(t *testing.T) {
	m, err := Open("s", "s.cu", []byte(sharing+"namespace other { __device__ int deep; }\n"), Options{})
	require.NoError(t, err)
	for name, want := range map[string]string{"taps": "taps", "a::b::deep": "a::b::deep", "b::deep": "a::b::deep", "names": "a::names"} {
		s, err := m.Symbol(name)
		require.NoError(t, err, name)
		assert.Equal(t, want, s.Name)
	}
	_, err = m.Symbol("deep")
	assert.EqualError(t, err, `s.cu: the variable "deep" is ambiguous: it may be a::b::deep or other::deep`)
	_, err = m.Symbol("tops")
	assert.EqualError(t, err, `s.cu: unknown variable "tops"`)
}

func TestVariablesOfPTX(t *testing.T) {
	text := `.version 7.0
.target sm_60
.address_size 64
.visible .const .align 4 .f32 _ZN1a4tapsE[3];
.visible .global .align 4 .u32 count = 7;
.visible .global .align 4 .b8 table[16];
.visible .entry bump(.param .u64 p) {
  .reg .u64 %rd<3>; .reg .u32 %r<3>; .reg .f32 %f<2>;
  ld.const.f32 %f1, [_ZN1a4tapsE];
  atom.global.add.u32 %r1, [count], 1;
  ld.global.u32 %r2, [table];
  ret;
}
.visible .entry idle(.param .u64 p) { ret; }
.visible .entry lost(.param .u64 p) {
  .reg .u64 %rd<3>;
  ld.param.u64 %rd1, [p];
  ld.global.u64 %rd2, [%rd1];
  st.global.u64 [%rd2], %rd1;
  ret;
}
`
	m, err := Open("s", "s.ptx", []byte(text), Options{})
	require.NoError(t, err)
	assert.Equal(t, "_ZN1a4tapsE in proved, count inout proved, table in proved", usesText(t, m, "bump"))
	assert.Empty(t, usesText(t, m, "idle"))
	assert.Equal(t, "_ZN1a4tapsE in proved, count inout declared, table inout declared", usesText(t, m, "lost"))
	s, err := m.Symbol("a::taps")
	require.NoError(t, err)
	assert.Equal(t, "_ZN1a4tapsE", s.Name)
	assert.Equal(t, int64(12), s.Bytes)
	assert.False(t, s.Initialised)
	s, err = m.Symbol("count")
	require.NoError(t, err)
	assert.True(t, s.Initialised)
}

func TestVariablesInPTXOfNVCC(t *testing.T) {
	text := ".visible .const .align 4 .b8 _ZN1a4tapsE[12];\n.global .align 4 .u32 _ZL4hits = 3;\n.visible .global .align 4 .u32 plain;\n"
	assert.Equal(t, "_ZN1a4tapsE", variableIn(text, "a::taps"))
	assert.Equal(t, "_ZL4hits", variableIn(text, "hits"))
	assert.Equal(t, "plain", variableIn(text, "plain"))
	assert.Equal(t, "missing", variableIn(text, "missing"))
}
