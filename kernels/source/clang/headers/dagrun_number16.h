// What numbers of 16 bits have in common, whichever they are: cuda_fp16.h and cuda_bf16.h say which before they include it.
// They define __DAGRUN_NUMBER, __DAGRUN_NUMBER2 (two of them), __DAGRUN_STEM (how names of functions call them), __DAGRUN_PTX (how PTX does) and
// __DAGRUN_WIDEN, which makes a float of their bits.
#ifdef __DAGRUN_NUMBER

#define __DAGRUN_MEMBER inline __attribute__((host)) __attribute__((device)) __attribute__((always_inline))
struct __align__(2) __DAGRUN_NUMBER {
  unsigned short __x;
  __DAGRUN_NUMBER() = default;
  __DAGRUN_MEMBER __DAGRUN_NUMBER(float x) { asm("cvt.rn." __DAGRUN_PTX ".f32 %0, %1;" : "=h"(__x) : "f"(x)); }
  __DAGRUN_MEMBER __DAGRUN_NUMBER(double x) : __DAGRUN_NUMBER((float)x) {}
  __DAGRUN_MEMBER __DAGRUN_NUMBER(int x) : __DAGRUN_NUMBER((float)x) {}
  __DAGRUN_MEMBER __DAGRUN_NUMBER(unsigned x) : __DAGRUN_NUMBER((float)x) {}
  __DAGRUN_MEMBER operator float() const {
    float x;
    __DAGRUN_WIDEN(x, __x);
    return x;
  }
};
struct __align__(4) __DAGRUN_NUMBER2 {
  __DAGRUN_NUMBER x, y;
  __DAGRUN_NUMBER2() = default;
  __DAGRUN_MEMBER __DAGRUN_NUMBER2(__DAGRUN_NUMBER x, __DAGRUN_NUMBER y) : x(x), y(y) {}
};
__DAGRUN_DEVICE __DAGRUN_NUMBER __hfma(__DAGRUN_NUMBER a, __DAGRUN_NUMBER b, __DAGRUN_NUMBER c) {
  __DAGRUN_NUMBER r;
  asm("fma.rn." __DAGRUN_PTX " %0, %1, %2, %3;" : "=h"(r.__x) : "h"(a.__x), "h"(b.__x), "h"(c.__x));
  return r;
}

#define __DAGRUN_JOINED(a, b, c) a##b##c
#define __DAGRUN_JOIN(a, b, c) __DAGRUN_JOINED(a, b, c)
#define __DAGRUN_NAME(before, after) __DAGRUN_JOIN(before, __DAGRUN_STEM, after)
#define __DAGRUN_NAME2(before, between, after) __DAGRUN_JOIN(__DAGRUN_NAME(before, between), __DAGRUN_STEM, after)

// Sums, products and quotients are computed in float and rounded once. The 16-bit instructions give the same results.
__DAGRUN_DEVICE __DAGRUN_NUMBER __DAGRUN_NAME(__float2, )(float x) { return __DAGRUN_NUMBER(x); }
__DAGRUN_DEVICE __DAGRUN_NUMBER __DAGRUN_NAME(__float2, _rn)(float x) { return __DAGRUN_NUMBER(x); }
__DAGRUN_DEVICE float __DAGRUN_NAME(__, 2float)(__DAGRUN_NUMBER x) { return (float)x; }
__DAGRUN_DEVICE __DAGRUN_NUMBER __hadd(__DAGRUN_NUMBER a, __DAGRUN_NUMBER b) { return __DAGRUN_NUMBER((float)a + (float)b); }
__DAGRUN_DEVICE __DAGRUN_NUMBER __hsub(__DAGRUN_NUMBER a, __DAGRUN_NUMBER b) { return __DAGRUN_NUMBER((float)a - (float)b); }
__DAGRUN_DEVICE __DAGRUN_NUMBER __hmul(__DAGRUN_NUMBER a, __DAGRUN_NUMBER b) { return __DAGRUN_NUMBER(__fmul_rn((float)a, (float)b)); }
__DAGRUN_DEVICE __DAGRUN_NUMBER __hdiv(__DAGRUN_NUMBER a, __DAGRUN_NUMBER b) { return __DAGRUN_NUMBER(__fdiv_rn((float)a, (float)b)); }
__DAGRUN_DEVICE __DAGRUN_NUMBER __hneg(__DAGRUN_NUMBER a) {
  a.__x ^= 0x8000;
  return a;
}
__DAGRUN_DEVICE __DAGRUN_NUMBER __habs(__DAGRUN_NUMBER a) {
  a.__x &= 0x7fff;
  return a;
}
__DAGRUN_DEVICE __DAGRUN_NUMBER __hmax(__DAGRUN_NUMBER a, __DAGRUN_NUMBER b) { return __DAGRUN_NUMBER(fmaxf((float)a, (float)b)); }
__DAGRUN_DEVICE __DAGRUN_NUMBER __hmin(__DAGRUN_NUMBER a, __DAGRUN_NUMBER b) { return __DAGRUN_NUMBER(fminf((float)a, (float)b)); }
__DAGRUN_DEVICE bool __hisnan(__DAGRUN_NUMBER a) { return isnan((float)a); }
__DAGRUN_DEVICE bool __heq(__DAGRUN_NUMBER a, __DAGRUN_NUMBER b) { return (float)a == (float)b; }
__DAGRUN_DEVICE bool __hne(__DAGRUN_NUMBER a, __DAGRUN_NUMBER b) { return (float)a != (float)b; }
__DAGRUN_DEVICE bool __hlt(__DAGRUN_NUMBER a, __DAGRUN_NUMBER b) { return (float)a < (float)b; }
__DAGRUN_DEVICE bool __hle(__DAGRUN_NUMBER a, __DAGRUN_NUMBER b) { return (float)a <= (float)b; }
__DAGRUN_DEVICE bool __hgt(__DAGRUN_NUMBER a, __DAGRUN_NUMBER b) { return (float)a > (float)b; }
__DAGRUN_DEVICE bool __hge(__DAGRUN_NUMBER a, __DAGRUN_NUMBER b) { return (float)a >= (float)b; }
__DAGRUN_DEVICE __DAGRUN_NUMBER operator+(__DAGRUN_NUMBER a, __DAGRUN_NUMBER b) { return __hadd(a, b); }
__DAGRUN_DEVICE __DAGRUN_NUMBER &operator+=(__DAGRUN_NUMBER &a, __DAGRUN_NUMBER b) { return a = __hadd(a, b); }
__DAGRUN_DEVICE __DAGRUN_NUMBER operator-(__DAGRUN_NUMBER a, __DAGRUN_NUMBER b) { return __hsub(a, b); }
__DAGRUN_DEVICE __DAGRUN_NUMBER &operator-=(__DAGRUN_NUMBER &a, __DAGRUN_NUMBER b) { return a = __hsub(a, b); }
__DAGRUN_DEVICE __DAGRUN_NUMBER operator*(__DAGRUN_NUMBER a, __DAGRUN_NUMBER b) { return __hmul(a, b); }
__DAGRUN_DEVICE __DAGRUN_NUMBER &operator*=(__DAGRUN_NUMBER &a, __DAGRUN_NUMBER b) { return a = __hmul(a, b); }
__DAGRUN_DEVICE __DAGRUN_NUMBER operator/(__DAGRUN_NUMBER a, __DAGRUN_NUMBER b) { return __hdiv(a, b); }
__DAGRUN_DEVICE __DAGRUN_NUMBER &operator/=(__DAGRUN_NUMBER &a, __DAGRUN_NUMBER b) { return a = __hdiv(a, b); }
__DAGRUN_DEVICE bool operator==(__DAGRUN_NUMBER a, __DAGRUN_NUMBER b) { return (float)a == (float)b; }
__DAGRUN_DEVICE bool operator!=(__DAGRUN_NUMBER a, __DAGRUN_NUMBER b) { return (float)a != (float)b; }
__DAGRUN_DEVICE bool operator<(__DAGRUN_NUMBER a, __DAGRUN_NUMBER b) { return (float)a < (float)b; }
__DAGRUN_DEVICE bool operator<=(__DAGRUN_NUMBER a, __DAGRUN_NUMBER b) { return (float)a <= (float)b; }
__DAGRUN_DEVICE bool operator>(__DAGRUN_NUMBER a, __DAGRUN_NUMBER b) { return (float)a > (float)b; }
__DAGRUN_DEVICE bool operator>=(__DAGRUN_NUMBER a, __DAGRUN_NUMBER b) { return (float)a >= (float)b; }
__DAGRUN_DEVICE __DAGRUN_NUMBER operator-(__DAGRUN_NUMBER a) { return __hneg(a); }
__DAGRUN_DEVICE __DAGRUN_NUMBER hsqrt(__DAGRUN_NUMBER x) { return __DAGRUN_NUMBER(sqrtf((float)x)); }
__DAGRUN_DEVICE __DAGRUN_NUMBER hexp(__DAGRUN_NUMBER x) { return __DAGRUN_NUMBER(expf((float)x)); }
__DAGRUN_DEVICE __DAGRUN_NUMBER hlog(__DAGRUN_NUMBER x) { return __DAGRUN_NUMBER(logf((float)x)); }
__DAGRUN_DEVICE __DAGRUN_NUMBER hsin(__DAGRUN_NUMBER x) { return __DAGRUN_NUMBER(sinf((float)x)); }
__DAGRUN_DEVICE __DAGRUN_NUMBER hcos(__DAGRUN_NUMBER x) { return __DAGRUN_NUMBER(cosf((float)x)); }
__DAGRUN_DEVICE __DAGRUN_NUMBER hfloor(__DAGRUN_NUMBER x) { return __DAGRUN_NUMBER(floorf((float)x)); }
__DAGRUN_DEVICE __DAGRUN_NUMBER hceil(__DAGRUN_NUMBER x) { return __DAGRUN_NUMBER(ceilf((float)x)); }
__DAGRUN_DEVICE __DAGRUN_NUMBER htrunc(__DAGRUN_NUMBER x) { return __DAGRUN_NUMBER(truncf((float)x)); }
__DAGRUN_DEVICE __DAGRUN_NUMBER hrint(__DAGRUN_NUMBER x) { return __DAGRUN_NUMBER(rintf((float)x)); }
__DAGRUN_DEVICE __DAGRUN_NUMBER hrcp(__DAGRUN_NUMBER x) { return __DAGRUN_NUMBER(1.0f / (float)x); }
__DAGRUN_DEVICE __DAGRUN_NUMBER hrsqrt(__DAGRUN_NUMBER x) { return __DAGRUN_NUMBER(rsqrtf((float)x)); }
__DAGRUN_DEVICE __DAGRUN_NUMBER hexp2(__DAGRUN_NUMBER x) { return __DAGRUN_NUMBER(exp2f((float)x)); }
__DAGRUN_DEVICE __DAGRUN_NUMBER hlog2(__DAGRUN_NUMBER x) { return __DAGRUN_NUMBER(log2f((float)x)); }
__DAGRUN_DEVICE __DAGRUN_NUMBER htanh(__DAGRUN_NUMBER x) { return __DAGRUN_NUMBER(tanhf((float)x)); }

__DAGRUN_DEVICE __DAGRUN_NUMBER2 __DAGRUN_NAME(__floats2, 2_rn)(float x, float y) { return {__DAGRUN_NUMBER(x), __DAGRUN_NUMBER(y)}; }
__DAGRUN_DEVICE __DAGRUN_NUMBER2 __DAGRUN_NAME(__float22, 2_rn)(float2 v) { return {__DAGRUN_NUMBER(v.x), __DAGRUN_NUMBER(v.y)}; }
__DAGRUN_DEVICE __DAGRUN_NUMBER2 __DAGRUN_NAME(__float2, 2_rn)(float x) { return {__DAGRUN_NUMBER(x), __DAGRUN_NUMBER(x)}; }
__DAGRUN_DEVICE __DAGRUN_NUMBER2 __DAGRUN_NAME2(__, 2, 2)(__DAGRUN_NUMBER x) { return {x, x}; }
__DAGRUN_DEVICE float2 __DAGRUN_NAME(__, 22float2)(__DAGRUN_NUMBER2 v) { return make_float2((float)v.x, (float)v.y); }
__DAGRUN_DEVICE __DAGRUN_NUMBER __DAGRUN_NAME(__low2, )(__DAGRUN_NUMBER2 v) { return v.x; }
__DAGRUN_DEVICE __DAGRUN_NUMBER __DAGRUN_NAME(__high2, )(__DAGRUN_NUMBER2 v) { return v.y; }
__DAGRUN_DEVICE float __low2float(__DAGRUN_NUMBER2 v) { return (float)v.x; }
__DAGRUN_DEVICE float __high2float(__DAGRUN_NUMBER2 v) { return (float)v.y; }
__DAGRUN_DEVICE __DAGRUN_NUMBER2 __hadd2(__DAGRUN_NUMBER2 a, __DAGRUN_NUMBER2 b) { return {__hadd(a.x, b.x), __hadd(a.y, b.y)}; }
__DAGRUN_DEVICE __DAGRUN_NUMBER2 __hsub2(__DAGRUN_NUMBER2 a, __DAGRUN_NUMBER2 b) { return {__hsub(a.x, b.x), __hsub(a.y, b.y)}; }
__DAGRUN_DEVICE __DAGRUN_NUMBER2 __hmul2(__DAGRUN_NUMBER2 a, __DAGRUN_NUMBER2 b) { return {__hmul(a.x, b.x), __hmul(a.y, b.y)}; }
__DAGRUN_DEVICE __DAGRUN_NUMBER2 __h2div(__DAGRUN_NUMBER2 a, __DAGRUN_NUMBER2 b) { return {__hdiv(a.x, b.x), __hdiv(a.y, b.y)}; }
__DAGRUN_DEVICE __DAGRUN_NUMBER2 __hmax2(__DAGRUN_NUMBER2 a, __DAGRUN_NUMBER2 b) { return {__hmax(a.x, b.x), __hmax(a.y, b.y)}; }
__DAGRUN_DEVICE __DAGRUN_NUMBER2 __hmin2(__DAGRUN_NUMBER2 a, __DAGRUN_NUMBER2 b) { return {__hmin(a.x, b.x), __hmin(a.y, b.y)}; }
__DAGRUN_DEVICE __DAGRUN_NUMBER2 __hfma2(__DAGRUN_NUMBER2 a, __DAGRUN_NUMBER2 b, __DAGRUN_NUMBER2 c) { return {__hfma(a.x, b.x, c.x), __hfma(a.y, b.y, c.y)}; }
__DAGRUN_DEVICE __DAGRUN_NUMBER2 operator+(__DAGRUN_NUMBER2 a, __DAGRUN_NUMBER2 b) { return __hadd2(a, b); }
__DAGRUN_DEVICE __DAGRUN_NUMBER2 operator-(__DAGRUN_NUMBER2 a, __DAGRUN_NUMBER2 b) { return __hsub2(a, b); }
__DAGRUN_DEVICE __DAGRUN_NUMBER2 operator*(__DAGRUN_NUMBER2 a, __DAGRUN_NUMBER2 b) { return __hmul2(a, b); }
__DAGRUN_DEVICE __DAGRUN_NUMBER2 operator/(__DAGRUN_NUMBER2 a, __DAGRUN_NUMBER2 b) { return __h2div(a, b); }
__DAGRUN_DEVICE __DAGRUN_NUMBER __DAGRUN_NAME(__ushort_as_, )(unsigned short bits) {
  __DAGRUN_NUMBER r;
  r.__x = bits;
  return r;
}
__DAGRUN_DEVICE unsigned short __DAGRUN_NAME(__, _as_ushort)(__DAGRUN_NUMBER x) { return x.__x; }
__DAGRUN_DEVICE __DAGRUN_NUMBER __DAGRUN_NAME(__int2, _rn)(int x) { return __DAGRUN_NUMBER((float)x); }
__DAGRUN_DEVICE int __DAGRUN_NAME(__, 2int_rn)(__DAGRUN_NUMBER x) { return __float2int_rn((float)x); }
__DAGRUN_DEVICE int __DAGRUN_NAME(__, 2int_rz)(__DAGRUN_NUMBER x) { return __float2int_rz((float)x); }

#define __DAGRUN_COMPARED(stem, operation)                                                                         \
  __DAGRUN_DEVICE __DAGRUN_NUMBER2 __h##stem##2(__DAGRUN_NUMBER2 a, __DAGRUN_NUMBER2 b) {                                                              \
    return {__DAGRUN_NUMBER((float)a.x operation(float) b.x ? 1.0f : 0.0f), __DAGRUN_NUMBER((float)a.y operation(float) b.y ? 1.0f : 0.0f)}; \
  }                                                                                                                \
  __DAGRUN_DEVICE bool __hb##stem##2(__DAGRUN_NUMBER2 a, __DAGRUN_NUMBER2 b) { return (float)a.x operation(float) b.x && (float)a.y operation(float) b.y; }
__DAGRUN_COMPARED(eq, ==)
__DAGRUN_COMPARED(ne, !=)
__DAGRUN_COMPARED(lt, <)
__DAGRUN_COMPARED(le, <=)
__DAGRUN_COMPARED(gt, >)
__DAGRUN_COMPARED(ge, >=)
#undef __DAGRUN_COMPARED
#define __DAGRUN_OF_BOTH(name, of_one) \
  __DAGRUN_DEVICE __DAGRUN_NUMBER2 name(__DAGRUN_NUMBER2 v) { return {of_one(v.x), of_one(v.y)}; }
__DAGRUN_OF_BOTH(__hneg2, __hneg)
__DAGRUN_OF_BOTH(__habs2, __habs)
__DAGRUN_OF_BOTH(h2sqrt, hsqrt)
__DAGRUN_OF_BOTH(h2rsqrt, hrsqrt)
__DAGRUN_OF_BOTH(h2rcp, hrcp)
__DAGRUN_OF_BOTH(h2exp, hexp)
__DAGRUN_OF_BOTH(h2exp2, hexp2)
__DAGRUN_OF_BOTH(h2log, hlog)
__DAGRUN_OF_BOTH(h2log2, hlog2)
__DAGRUN_OF_BOTH(h2sin, hsin)
__DAGRUN_OF_BOTH(h2cos, hcos)
__DAGRUN_OF_BOTH(h2floor, hfloor)
__DAGRUN_OF_BOTH(h2ceil, hceil)
__DAGRUN_OF_BOTH(h2trunc, htrunc)
__DAGRUN_OF_BOTH(h2rint, hrint)
#undef __DAGRUN_OF_BOTH
__DAGRUN_DEVICE __DAGRUN_NUMBER hexp10(__DAGRUN_NUMBER x) { return __DAGRUN_NUMBER(exp10f((float)x)); }
__DAGRUN_DEVICE __DAGRUN_NUMBER hlog10(__DAGRUN_NUMBER x) { return __DAGRUN_NUMBER(log10f((float)x)); }
__DAGRUN_DEVICE int __hisinf(__DAGRUN_NUMBER x) { return isinf((float)x) ? ((float)x > 0 ? 1 : -1) : 0; }
__DAGRUN_DEVICE __DAGRUN_NUMBER __hadd_rn(__DAGRUN_NUMBER a, __DAGRUN_NUMBER b) { return __hadd(a, b); }
__DAGRUN_DEVICE __DAGRUN_NUMBER __hsub_rn(__DAGRUN_NUMBER a, __DAGRUN_NUMBER b) { return __hsub(a, b); }
__DAGRUN_DEVICE __DAGRUN_NUMBER __hmul_rn(__DAGRUN_NUMBER a, __DAGRUN_NUMBER b) { return __hmul(a, b); }
__DAGRUN_DEVICE __DAGRUN_NUMBER __hadd_sat(__DAGRUN_NUMBER a, __DAGRUN_NUMBER b) { return __DAGRUN_NUMBER(__saturatef((float)a + (float)b)); }
__DAGRUN_DEVICE __DAGRUN_NUMBER __hsub_sat(__DAGRUN_NUMBER a, __DAGRUN_NUMBER b) { return __DAGRUN_NUMBER(__saturatef((float)a - (float)b)); }
__DAGRUN_DEVICE __DAGRUN_NUMBER __hmul_sat(__DAGRUN_NUMBER a, __DAGRUN_NUMBER b) { return __DAGRUN_NUMBER(__saturatef(__fmul_rn((float)a, (float)b))); }
__DAGRUN_DEVICE __DAGRUN_NUMBER __hfma_sat(__DAGRUN_NUMBER a, __DAGRUN_NUMBER b, __DAGRUN_NUMBER c) { return __DAGRUN_NUMBER(__saturatef((float)__hfma(a, b, c))); }
__DAGRUN_DEVICE __DAGRUN_NUMBER __hfma_relu(__DAGRUN_NUMBER a, __DAGRUN_NUMBER b, __DAGRUN_NUMBER c) { return __hmax(__hfma(a, b, c), __DAGRUN_NUMBER(0.0f)); }
__DAGRUN_DEVICE __DAGRUN_NUMBER2 &operator+=(__DAGRUN_NUMBER2 &a, __DAGRUN_NUMBER2 b) { return a = __hadd2(a, b); }
__DAGRUN_DEVICE __DAGRUN_NUMBER2 &operator-=(__DAGRUN_NUMBER2 &a, __DAGRUN_NUMBER2 b) { return a = __hsub2(a, b); }
__DAGRUN_DEVICE __DAGRUN_NUMBER2 &operator*=(__DAGRUN_NUMBER2 &a, __DAGRUN_NUMBER2 b) { return a = __hmul2(a, b); }
__DAGRUN_DEVICE __DAGRUN_NUMBER2 &operator/=(__DAGRUN_NUMBER2 &a, __DAGRUN_NUMBER2 b) { return a = __h2div(a, b); }
__DAGRUN_DEVICE __DAGRUN_NUMBER2 operator-(__DAGRUN_NUMBER2 v) { return __hneg2(v); }
__DAGRUN_DEVICE __DAGRUN_NUMBER2 __DAGRUN_NAME(__halves2, 2)(__DAGRUN_NUMBER x, __DAGRUN_NUMBER y) { return {x, y}; }
__DAGRUN_DEVICE __DAGRUN_NUMBER2 __DAGRUN_NAME(__low2, 2)(__DAGRUN_NUMBER2 v) { return {v.x, v.x}; }
__DAGRUN_DEVICE __DAGRUN_NUMBER2 __DAGRUN_NAME(__high2, 2)(__DAGRUN_NUMBER2 v) { return {v.y, v.y}; }
__DAGRUN_DEVICE __DAGRUN_NUMBER2 __DAGRUN_NAME(__lows2, 2)(__DAGRUN_NUMBER2 a, __DAGRUN_NUMBER2 b) { return {a.x, b.x}; }
__DAGRUN_DEVICE __DAGRUN_NUMBER2 __DAGRUN_NAME(__highs2, 2)(__DAGRUN_NUMBER2 a, __DAGRUN_NUMBER2 b) { return {a.y, b.y}; }
__DAGRUN_DEVICE __DAGRUN_NUMBER2 __lowhigh2highlow(__DAGRUN_NUMBER2 v) { return {v.y, v.x}; }
__DAGRUN_DEVICE __DAGRUN_NUMBER __DAGRUN_NAME(__double2, )(double x) { return __DAGRUN_NUMBER(x); }
__DAGRUN_DEVICE __DAGRUN_NUMBER __DAGRUN_NAME(__uint2, _rn)(unsigned x) { return __DAGRUN_NUMBER((float)x); }
__DAGRUN_DEVICE __DAGRUN_NUMBER __DAGRUN_NAME(__short2, _rn)(short x) { return __DAGRUN_NUMBER((float)x); }
__DAGRUN_DEVICE __DAGRUN_NUMBER __DAGRUN_NAME(__ushort2, _rn)(unsigned short x) { return __DAGRUN_NUMBER((float)x); }
__DAGRUN_DEVICE int __DAGRUN_NAME(__, 2int_ru)(__DAGRUN_NUMBER x) { return __float2int_ru((float)x); }
__DAGRUN_DEVICE int __DAGRUN_NAME(__, 2int_rd)(__DAGRUN_NUMBER x) { return __float2int_rd((float)x); }
__DAGRUN_DEVICE unsigned __DAGRUN_NAME(__, 2uint_rn)(__DAGRUN_NUMBER x) { return __float2uint_rn((float)x); }
__DAGRUN_DEVICE unsigned __DAGRUN_NAME(__, 2uint_rz)(__DAGRUN_NUMBER x) { return __float2uint_rz((float)x); }
__DAGRUN_DEVICE short __DAGRUN_NAME(__, 2short_rn)(__DAGRUN_NUMBER x) { return (short)__float2int_rn((float)x); }
__DAGRUN_DEVICE short __DAGRUN_NAME(__, 2short_rz)(__DAGRUN_NUMBER x) { return (short)__float2int_rz((float)x); }
__DAGRUN_DEVICE short __DAGRUN_NAME(__, _as_short)(__DAGRUN_NUMBER x) { return (short)x.__x; }
__DAGRUN_DEVICE __DAGRUN_NUMBER __DAGRUN_NAME(__short_as_, )(short bits) {
  __DAGRUN_NUMBER r;
  r.__x = (unsigned short)bits;
  return r;
}
__DAGRUN_DEVICE __DAGRUN_NUMBER2 atomicAdd(__DAGRUN_NUMBER2 *at, __DAGRUN_NUMBER2 value) {
  __DAGRUN_NUMBER2 old;
  unsigned word = __dagrun_update((unsigned *)at, [&](unsigned seen) {
    __DAGRUN_NUMBER2 v;
    __builtin_memcpy(&v, &seen, 4);
    v = __hadd2(v, value);
    __builtin_memcpy(&seen, &v, 4);
    return seen;
  });
  __builtin_memcpy(&old, &word, 4);
  return old;
}

#undef __DAGRUN_NAME2
#undef __DAGRUN_NAME
#undef __DAGRUN_JOIN
#undef __DAGRUN_JOINED
#undef __DAGRUN_MEMBER
#undef __DAGRUN_WIDEN
#undef __DAGRUN_PTX
#undef __DAGRUN_STEM
#undef __DAGRUN_NUMBER2
#undef __DAGRUN_NUMBER
#endif
