// Functions that are one instruction of the hardware: arithmetic with a rounding mode, approximations, conversions, loads and stores
// with a cache hint.
#pragma once

#define __DAGRUN_PTX1(name, type, from, to_letter, from_letter, instruction)                      \
  __DAGRUN_DEVICE type name(from a) {                                                             \
    type r;                                                                                       \
    asm(instruction " %0, %1;" : "=" to_letter(r) : from_letter(a));                              \
    return r;                                                                                     \
  }
#define __DAGRUN_PTX2(name, type, letter, instruction)                                            \
  __DAGRUN_DEVICE type name(type a, type b) {                                                     \
    type r;                                                                                       \
    asm(instruction " %0, %1, %2;" : "=" letter(r) : letter(a), letter(b));                       \
    return r;                                                                                     \
  }
#define __DAGRUN_PTX3(name, type, letter, instruction)                                            \
  __DAGRUN_DEVICE type name(type a, type b, type c) {                                             \
    type r;                                                                                       \
    asm(instruction " %0, %1, %2, %3;" : "=" letter(r) : letter(a), letter(b), letter(c));        \
    return r;                                                                                     \
  }

#define __DAGRUN_ROUNDED(way)                                                                     \
  __DAGRUN_PTX2(__fadd_##way, float, "f", "add." #way ".f32")                                     \
  __DAGRUN_PTX2(__fsub_##way, float, "f", "sub." #way ".f32")                                     \
  __DAGRUN_PTX2(__fmul_##way, float, "f", "mul." #way ".f32")                                     \
  __DAGRUN_PTX2(__fdiv_##way, float, "f", "div." #way ".f32")                                     \
  __DAGRUN_PTX3(__fmaf_##way, float, "f", "fma." #way ".f32")                                     \
  __DAGRUN_PTX1(__frcp_##way, float, float, "f", "f", "rcp." #way ".f32")                         \
  __DAGRUN_PTX1(__fsqrt_##way, float, float, "f", "f", "sqrt." #way ".f32")                       \
  __DAGRUN_PTX2(__dadd_##way, double, "d", "add." #way ".f64")                                    \
  __DAGRUN_PTX2(__dsub_##way, double, "d", "sub." #way ".f64")                                    \
  __DAGRUN_PTX2(__dmul_##way, double, "d", "mul." #way ".f64")                                    \
  __DAGRUN_PTX2(__ddiv_##way, double, "d", "div." #way ".f64")                                    \
  __DAGRUN_PTX3(__fma_##way, double, "d", "fma." #way ".f64")                                     \
  __DAGRUN_PTX1(__drcp_##way, double, double, "d", "d", "rcp." #way ".f64")                       \
  __DAGRUN_PTX1(__dsqrt_##way, double, double, "d", "d", "sqrt." #way ".f64")                     \
  __DAGRUN_PTX1(__double2float_##way, float, double, "f", "d", "cvt." #way ".f32.f64")            \
  __DAGRUN_PTX1(__int2float_##way, float, int, "f", "r", "cvt." #way ".f32.s32")                  \
  __DAGRUN_PTX1(__uint2float_##way, float, unsigned, "f", "r", "cvt." #way ".f32.u32")            \
  __DAGRUN_PTX1(__ll2float_##way, float, long long, "f", "l", "cvt." #way ".f32.s64")             \
  __DAGRUN_PTX1(__ull2float_##way, float, unsigned long long, "f", "l", "cvt." #way ".f32.u64")   \
  __DAGRUN_PTX1(__ll2double_##way, double, long long, "d", "l", "cvt." #way ".f64.s64")           \
  __DAGRUN_PTX1(__ull2double_##way, double, unsigned long long, "d", "l", "cvt." #way ".f64.u64")
__DAGRUN_ROUNDED(rn)
__DAGRUN_ROUNDED(rz)
__DAGRUN_ROUNDED(ru)
__DAGRUN_ROUNDED(rd)
#undef __DAGRUN_ROUNDED
#define __DAGRUN_TO_INTEGER(way)                                                                                \
  __DAGRUN_PTX1(__float2int_##way, int, float, "r", "f", "cvt." #way "i.s32.f32")                               \
  __DAGRUN_PTX1(__float2uint_##way, unsigned, float, "r", "f", "cvt." #way "i.u32.f32")                         \
  __DAGRUN_PTX1(__float2ll_##way, long long, float, "l", "f", "cvt." #way "i.s64.f32")                          \
  __DAGRUN_PTX1(__float2ull_##way, unsigned long long, float, "l", "f", "cvt." #way "i.u64.f32")                \
  __DAGRUN_PTX1(__double2int_##way, int, double, "r", "d", "cvt." #way "i.s32.f64")                             \
  __DAGRUN_PTX1(__double2uint_##way, unsigned, double, "r", "d", "cvt." #way "i.u32.f64")                       \
  __DAGRUN_PTX1(__double2ll_##way, long long, double, "l", "d", "cvt." #way "i.s64.f64")                        \
  __DAGRUN_PTX1(__double2ull_##way, unsigned long long, double, "l", "d", "cvt." #way "i.u64.f64")
__DAGRUN_TO_INTEGER(rn)
__DAGRUN_TO_INTEGER(rz)
__DAGRUN_TO_INTEGER(ru)
__DAGRUN_TO_INTEGER(rd)
#undef __DAGRUN_TO_INTEGER
__DAGRUN_DEVICE double __int2double_rn(int x) { return x; }
__DAGRUN_DEVICE double __uint2double_rn(unsigned x) { return x; }

__DAGRUN_PTX1(__sinf, float, float, "f", "f", "sin.approx.f32")
__DAGRUN_PTX1(__cosf, float, float, "f", "f", "cos.approx.f32")
__DAGRUN_PTX1(__log2f, float, float, "f", "f", "lg2.approx.f32")
__DAGRUN_PTX1(__dagrun_ex2, float, float, "f", "f", "ex2.approx.f32")
__DAGRUN_PTX1(__frsqrt_rn, float, float, "f", "f", "rsqrt.approx.f32")
__DAGRUN_PTX1(__saturatef, float, float, "f", "f", "cvt.sat.f32.f32")
__DAGRUN_PTX2(__fdividef, float, "f", "div.approx.f32")
__DAGRUN_DEVICE float __expf(float x) { return __dagrun_ex2(x * 1.4426950408889634f); }
__DAGRUN_DEVICE float __exp10f(float x) { return __dagrun_ex2(x * 3.3219280948873623f); }
__DAGRUN_DEVICE float __logf(float x) { return __log2f(x) * 0.69314718055994530942f; }
__DAGRUN_DEVICE float __log10f(float x) { return __log2f(x) * 0.30102999566398119521f; }
__DAGRUN_DEVICE float __powf(float x, float y) { return __dagrun_ex2(y * __log2f(x)); }
__DAGRUN_DEVICE float __tanf(float x) { return __fdividef(__sinf(x), __cosf(x)); }
__DAGRUN_DEVICE void __sincosf(float x, float *s, float *c) {
  *s = __sinf(x);
  *c = __cosf(x);
}
#undef __DAGRUN_PTX1
#undef __DAGRUN_PTX2
#undef __DAGRUN_PTX3

// Cache hints are ignored: they change no value.
template <class T> __DAGRUN_DEVICE T __ldg(const T *p) { return *p; }
template <class T> __DAGRUN_DEVICE T __ldca(const T *p) { return *p; }
template <class T> __DAGRUN_DEVICE T __ldcs(const T *p) { return *p; }
template <class T> __DAGRUN_DEVICE T __ldlu(const T *p) { return *p; }
template <class T> __DAGRUN_DEVICE T __ldcg(const T *p) { T v = *p; asm volatile("" ::: "memory"); return v; }
template <class T> __DAGRUN_DEVICE T __ldcv(const T *p) { asm volatile("" ::: "memory"); T v = *p; asm volatile("" ::: "memory"); return v; }
template <class T> __DAGRUN_DEVICE void __stwb(T *p, T v) { *p = v; }
template <class T> __DAGRUN_DEVICE void __stcg(T *p, T v) { *p = v; }
template <class T> __DAGRUN_DEVICE void __stcs(T *p, T v) { *p = v; }
template <class T> __DAGRUN_DEVICE void __stwt(T *p, T v) { *p = v; }
