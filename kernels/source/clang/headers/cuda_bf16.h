// Numbers of 16 bits: the upper half of a float.
#pragma once

#define __DAGRUN_MEMBER inline __attribute__((host)) __attribute__((device)) __attribute__((always_inline))

struct __align__(2) __nv_bfloat16 {
  unsigned short __x;
  __nv_bfloat16() = default;
  __DAGRUN_MEMBER __nv_bfloat16(float x) { asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(__x) : "f"(x)); }
  __DAGRUN_MEMBER __nv_bfloat16(double x) : __nv_bfloat16((float)x) {}
  __DAGRUN_MEMBER __nv_bfloat16(int x) : __nv_bfloat16((float)x) {}
  __DAGRUN_MEMBER __nv_bfloat16(unsigned x) : __nv_bfloat16((float)x) {}
  __DAGRUN_MEMBER operator float() const {
    float x;
    unsigned wide = (unsigned)__x << 16;
    __builtin_memcpy(&x, &wide, 4);
    return x;
  }
};
struct __align__(4) __nv_bfloat162 {
  __nv_bfloat16 x, y;
  __nv_bfloat162() = default;
  __DAGRUN_MEMBER __nv_bfloat162(__nv_bfloat16 x, __nv_bfloat16 y) : x(x), y(y) {}
};
typedef __nv_bfloat16 nv_bfloat16;
typedef __nv_bfloat162 nv_bfloat162;

// Sums, products and quotients are computed in float and rounded once. The 16-bit instructions give the same results.
__DAGRUN_DEVICE __nv_bfloat16 __float2bfloat16(float x) { return __nv_bfloat16(x); }
__DAGRUN_DEVICE __nv_bfloat16 __float2bfloat16_rn(float x) { return __nv_bfloat16(x); }
__DAGRUN_DEVICE float __bfloat162float(__nv_bfloat16 x) { return (float)x; }
__DAGRUN_DEVICE __nv_bfloat16 __hadd(__nv_bfloat16 a, __nv_bfloat16 b) { return __nv_bfloat16((float)a + (float)b); }
__DAGRUN_DEVICE __nv_bfloat16 __hsub(__nv_bfloat16 a, __nv_bfloat16 b) { return __nv_bfloat16((float)a - (float)b); }
__DAGRUN_DEVICE __nv_bfloat16 __hmul(__nv_bfloat16 a, __nv_bfloat16 b) { return __nv_bfloat16(__fmul_rn((float)a, (float)b)); }
__DAGRUN_DEVICE __nv_bfloat16 __hdiv(__nv_bfloat16 a, __nv_bfloat16 b) { return __nv_bfloat16(__fdiv_rn((float)a, (float)b)); }
__DAGRUN_DEVICE __nv_bfloat16 __hneg(__nv_bfloat16 a) {
  a.__x ^= 0x8000;
  return a;
}
__DAGRUN_DEVICE __nv_bfloat16 __habs(__nv_bfloat16 a) {
  a.__x &= 0x7fff;
  return a;
}
__DAGRUN_DEVICE __nv_bfloat16 __hfma(__nv_bfloat16 a, __nv_bfloat16 b, __nv_bfloat16 c) {
  __nv_bfloat16 r;
  asm("fma.rn.bf16 %0, %1, %2, %3;" : "=h"(r.__x) : "h"(a.__x), "h"(b.__x), "h"(c.__x));
  return r;
}
__DAGRUN_DEVICE __nv_bfloat16 __hmax(__nv_bfloat16 a, __nv_bfloat16 b) { return __nv_bfloat16(fmaxf((float)a, (float)b)); }
__DAGRUN_DEVICE __nv_bfloat16 __hmin(__nv_bfloat16 a, __nv_bfloat16 b) { return __nv_bfloat16(fminf((float)a, (float)b)); }
__DAGRUN_DEVICE bool __hisnan(__nv_bfloat16 a) { return isnan((float)a); }
__DAGRUN_DEVICE bool __heq(__nv_bfloat16 a, __nv_bfloat16 b) { return (float)a == (float)b; }
__DAGRUN_DEVICE bool __hne(__nv_bfloat16 a, __nv_bfloat16 b) { return (float)a != (float)b; }
__DAGRUN_DEVICE bool __hlt(__nv_bfloat16 a, __nv_bfloat16 b) { return (float)a < (float)b; }
__DAGRUN_DEVICE bool __hle(__nv_bfloat16 a, __nv_bfloat16 b) { return (float)a <= (float)b; }
__DAGRUN_DEVICE bool __hgt(__nv_bfloat16 a, __nv_bfloat16 b) { return (float)a > (float)b; }
__DAGRUN_DEVICE bool __hge(__nv_bfloat16 a, __nv_bfloat16 b) { return (float)a >= (float)b; }
__DAGRUN_DEVICE __nv_bfloat16 operator+(__nv_bfloat16 a, __nv_bfloat16 b) { return __hadd(a, b); }
__DAGRUN_DEVICE __nv_bfloat16 &operator+=(__nv_bfloat16 &a, __nv_bfloat16 b) { return a = __hadd(a, b); }
__DAGRUN_DEVICE __nv_bfloat16 operator-(__nv_bfloat16 a, __nv_bfloat16 b) { return __hsub(a, b); }
__DAGRUN_DEVICE __nv_bfloat16 &operator-=(__nv_bfloat16 &a, __nv_bfloat16 b) { return a = __hsub(a, b); }
__DAGRUN_DEVICE __nv_bfloat16 operator*(__nv_bfloat16 a, __nv_bfloat16 b) { return __hmul(a, b); }
__DAGRUN_DEVICE __nv_bfloat16 &operator*=(__nv_bfloat16 &a, __nv_bfloat16 b) { return a = __hmul(a, b); }
__DAGRUN_DEVICE __nv_bfloat16 operator/(__nv_bfloat16 a, __nv_bfloat16 b) { return __hdiv(a, b); }
__DAGRUN_DEVICE __nv_bfloat16 &operator/=(__nv_bfloat16 &a, __nv_bfloat16 b) { return a = __hdiv(a, b); }
__DAGRUN_DEVICE bool operator==(__nv_bfloat16 a, __nv_bfloat16 b) { return (float)a == (float)b; }
__DAGRUN_DEVICE bool operator!=(__nv_bfloat16 a, __nv_bfloat16 b) { return (float)a != (float)b; }
__DAGRUN_DEVICE bool operator<(__nv_bfloat16 a, __nv_bfloat16 b) { return (float)a < (float)b; }
__DAGRUN_DEVICE bool operator<=(__nv_bfloat16 a, __nv_bfloat16 b) { return (float)a <= (float)b; }
__DAGRUN_DEVICE bool operator>(__nv_bfloat16 a, __nv_bfloat16 b) { return (float)a > (float)b; }
__DAGRUN_DEVICE bool operator>=(__nv_bfloat16 a, __nv_bfloat16 b) { return (float)a >= (float)b; }
__DAGRUN_DEVICE __nv_bfloat16 operator-(__nv_bfloat16 a) { return __hneg(a); }
__DAGRUN_DEVICE __nv_bfloat16 hsqrt(__nv_bfloat16 x) { return __nv_bfloat16(sqrtf((float)x)); }
__DAGRUN_DEVICE __nv_bfloat16 hexp(__nv_bfloat16 x) { return __nv_bfloat16(expf((float)x)); }
__DAGRUN_DEVICE __nv_bfloat16 hlog(__nv_bfloat16 x) { return __nv_bfloat16(logf((float)x)); }
__DAGRUN_DEVICE __nv_bfloat16 hsin(__nv_bfloat16 x) { return __nv_bfloat16(sinf((float)x)); }
__DAGRUN_DEVICE __nv_bfloat16 hcos(__nv_bfloat16 x) { return __nv_bfloat16(cosf((float)x)); }
__DAGRUN_DEVICE __nv_bfloat16 hfloor(__nv_bfloat16 x) { return __nv_bfloat16(floorf((float)x)); }
__DAGRUN_DEVICE __nv_bfloat16 hceil(__nv_bfloat16 x) { return __nv_bfloat16(ceilf((float)x)); }
__DAGRUN_DEVICE __nv_bfloat16 htrunc(__nv_bfloat16 x) { return __nv_bfloat16(truncf((float)x)); }
__DAGRUN_DEVICE __nv_bfloat16 hrint(__nv_bfloat16 x) { return __nv_bfloat16(rintf((float)x)); }
__DAGRUN_DEVICE __nv_bfloat16 hrcp(__nv_bfloat16 x) { return __nv_bfloat16(1.0f / (float)x); }
__DAGRUN_DEVICE __nv_bfloat16 hrsqrt(__nv_bfloat16 x) { return __nv_bfloat16(rsqrtf((float)x)); }
__DAGRUN_DEVICE __nv_bfloat16 hexp2(__nv_bfloat16 x) { return __nv_bfloat16(exp2f((float)x)); }
__DAGRUN_DEVICE __nv_bfloat16 hlog2(__nv_bfloat16 x) { return __nv_bfloat16(log2f((float)x)); }
__DAGRUN_DEVICE __nv_bfloat16 htanh(__nv_bfloat16 x) { return __nv_bfloat16(tanhf((float)x)); }

__DAGRUN_DEVICE __nv_bfloat162 __bfloat16s2bfloat162(__nv_bfloat16 x, __nv_bfloat16 y) { return {x, y}; }
__DAGRUN_DEVICE __nv_bfloat162 __floats2bfloat162_rn(float x, float y) { return {__nv_bfloat16(x), __nv_bfloat16(y)}; }
__DAGRUN_DEVICE __nv_bfloat162 __float2bfloat162_rn(float x) { return {__nv_bfloat16(x), __nv_bfloat16(x)}; }
__DAGRUN_DEVICE __nv_bfloat162 __float22bfloat162_rn(float2 v) { return {__nv_bfloat16(v.x), __nv_bfloat16(v.y)}; }
__DAGRUN_DEVICE __nv_bfloat162 __bfloat162bfloat162(__nv_bfloat16 x) { return {x, x}; }
__DAGRUN_DEVICE float2 __bfloat1622float2(__nv_bfloat162 v) { return make_float2((float)v.x, (float)v.y); }
__DAGRUN_DEVICE __nv_bfloat16 __low2bfloat16(__nv_bfloat162 v) { return v.x; }
__DAGRUN_DEVICE __nv_bfloat16 __high2bfloat16(__nv_bfloat162 v) { return v.y; }
__DAGRUN_DEVICE float __low2float(__nv_bfloat162 v) { return (float)v.x; }
__DAGRUN_DEVICE float __high2float(__nv_bfloat162 v) { return (float)v.y; }
__DAGRUN_DEVICE __nv_bfloat162 __hadd2(__nv_bfloat162 a, __nv_bfloat162 b) { return {__hadd(a.x, b.x), __hadd(a.y, b.y)}; }
__DAGRUN_DEVICE __nv_bfloat162 __hsub2(__nv_bfloat162 a, __nv_bfloat162 b) { return {__hsub(a.x, b.x), __hsub(a.y, b.y)}; }
__DAGRUN_DEVICE __nv_bfloat162 __hmul2(__nv_bfloat162 a, __nv_bfloat162 b) { return {__hmul(a.x, b.x), __hmul(a.y, b.y)}; }
__DAGRUN_DEVICE __nv_bfloat162 __h2div(__nv_bfloat162 a, __nv_bfloat162 b) { return {__hdiv(a.x, b.x), __hdiv(a.y, b.y)}; }
__DAGRUN_DEVICE __nv_bfloat162 __hmax2(__nv_bfloat162 a, __nv_bfloat162 b) { return {__hmax(a.x, b.x), __hmax(a.y, b.y)}; }
__DAGRUN_DEVICE __nv_bfloat162 __hmin2(__nv_bfloat162 a, __nv_bfloat162 b) { return {__hmin(a.x, b.x), __hmin(a.y, b.y)}; }
__DAGRUN_DEVICE __nv_bfloat162 __hfma2(__nv_bfloat162 a, __nv_bfloat162 b, __nv_bfloat162 c) { return {__hfma(a.x, b.x, c.x), __hfma(a.y, b.y, c.y)}; }
__DAGRUN_DEVICE __nv_bfloat162 operator+(__nv_bfloat162 a, __nv_bfloat162 b) { return __hadd2(a, b); }
__DAGRUN_DEVICE __nv_bfloat162 operator-(__nv_bfloat162 a, __nv_bfloat162 b) { return __hsub2(a, b); }
__DAGRUN_DEVICE __nv_bfloat162 operator*(__nv_bfloat162 a, __nv_bfloat162 b) { return __hmul2(a, b); }
__DAGRUN_DEVICE __nv_bfloat162 operator/(__nv_bfloat162 a, __nv_bfloat162 b) { return __h2div(a, b); }

#define __DAGRUN_COMPARED(stem, operation)                                                                         \
  __DAGRUN_DEVICE __nv_bfloat162 __h##stem##2(__nv_bfloat162 a, __nv_bfloat162 b) {                                                              \
    return {__nv_bfloat16((float)a.x operation(float) b.x ? 1.0f : 0.0f), __nv_bfloat16((float)a.y operation(float) b.y ? 1.0f : 0.0f)}; \
  }                                                                                                                \
  __DAGRUN_DEVICE bool __hb##stem##2(__nv_bfloat162 a, __nv_bfloat162 b) { return (float)a.x operation(float) b.x && (float)a.y operation(float) b.y; }
__DAGRUN_COMPARED(eq, ==)
__DAGRUN_COMPARED(ne, !=)
__DAGRUN_COMPARED(lt, <)
__DAGRUN_COMPARED(le, <=)
__DAGRUN_COMPARED(gt, >)
__DAGRUN_COMPARED(ge, >=)
#undef __DAGRUN_COMPARED
#define __DAGRUN_OF_BOTH(name, of_one) \
  __DAGRUN_DEVICE __nv_bfloat162 name(__nv_bfloat162 v) { return {of_one(v.x), of_one(v.y)}; }
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
__DAGRUN_DEVICE __nv_bfloat16 hexp10(__nv_bfloat16 x) { return __nv_bfloat16(exp10f((float)x)); }
__DAGRUN_DEVICE __nv_bfloat16 hlog10(__nv_bfloat16 x) { return __nv_bfloat16(log10f((float)x)); }
__DAGRUN_DEVICE int __hisinf(__nv_bfloat16 x) { return isinf((float)x) ? ((float)x > 0 ? 1 : -1) : 0; }
__DAGRUN_DEVICE __nv_bfloat16 __hadd_rn(__nv_bfloat16 a, __nv_bfloat16 b) { return __hadd(a, b); }
__DAGRUN_DEVICE __nv_bfloat16 __hsub_rn(__nv_bfloat16 a, __nv_bfloat16 b) { return __hsub(a, b); }
__DAGRUN_DEVICE __nv_bfloat16 __hmul_rn(__nv_bfloat16 a, __nv_bfloat16 b) { return __hmul(a, b); }
__DAGRUN_DEVICE __nv_bfloat16 __hadd_sat(__nv_bfloat16 a, __nv_bfloat16 b) { return __nv_bfloat16(__saturatef((float)a + (float)b)); }
__DAGRUN_DEVICE __nv_bfloat16 __hsub_sat(__nv_bfloat16 a, __nv_bfloat16 b) { return __nv_bfloat16(__saturatef((float)a - (float)b)); }
__DAGRUN_DEVICE __nv_bfloat16 __hmul_sat(__nv_bfloat16 a, __nv_bfloat16 b) { return __nv_bfloat16(__saturatef(__fmul_rn((float)a, (float)b))); }
__DAGRUN_DEVICE __nv_bfloat16 __hfma_sat(__nv_bfloat16 a, __nv_bfloat16 b, __nv_bfloat16 c) { return __nv_bfloat16(__saturatef((float)__hfma(a, b, c))); }
__DAGRUN_DEVICE __nv_bfloat16 __hfma_relu(__nv_bfloat16 a, __nv_bfloat16 b, __nv_bfloat16 c) { return __hmax(__hfma(a, b, c), __nv_bfloat16(0.0f)); }
__DAGRUN_DEVICE __nv_bfloat162 &operator+=(__nv_bfloat162 &a, __nv_bfloat162 b) { return a = __hadd2(a, b); }
__DAGRUN_DEVICE __nv_bfloat162 &operator-=(__nv_bfloat162 &a, __nv_bfloat162 b) { return a = __hsub2(a, b); }
__DAGRUN_DEVICE __nv_bfloat162 &operator*=(__nv_bfloat162 &a, __nv_bfloat162 b) { return a = __hmul2(a, b); }
__DAGRUN_DEVICE __nv_bfloat162 &operator/=(__nv_bfloat162 &a, __nv_bfloat162 b) { return a = __h2div(a, b); }
__DAGRUN_DEVICE __nv_bfloat162 operator-(__nv_bfloat162 v) { return __hneg2(v); }
__DAGRUN_DEVICE __nv_bfloat162 __halves2bfloat162(__nv_bfloat16 x, __nv_bfloat16 y) { return {x, y}; }
__DAGRUN_DEVICE __nv_bfloat162 __low2bfloat162(__nv_bfloat162 v) { return {v.x, v.x}; }
__DAGRUN_DEVICE __nv_bfloat162 __high2bfloat162(__nv_bfloat162 v) { return {v.y, v.y}; }
__DAGRUN_DEVICE __nv_bfloat162 __lows2bfloat162(__nv_bfloat162 a, __nv_bfloat162 b) { return {a.x, b.x}; }
__DAGRUN_DEVICE __nv_bfloat162 __highs2bfloat162(__nv_bfloat162 a, __nv_bfloat162 b) { return {a.y, b.y}; }
__DAGRUN_DEVICE __nv_bfloat162 __lowhigh2highlow(__nv_bfloat162 v) { return {v.y, v.x}; }
__DAGRUN_DEVICE __nv_bfloat16 __double2bfloat16(double x) { return __nv_bfloat16(x); }
__DAGRUN_DEVICE __nv_bfloat16 __uint2bfloat16_rn(unsigned x) { return __nv_bfloat16((float)x); }
__DAGRUN_DEVICE __nv_bfloat16 __short2bfloat16_rn(short x) { return __nv_bfloat16((float)x); }
__DAGRUN_DEVICE __nv_bfloat16 __ushort2bfloat16_rn(unsigned short x) { return __nv_bfloat16((float)x); }
__DAGRUN_DEVICE int __bfloat162int_ru(__nv_bfloat16 x) { return __float2int_ru((float)x); }
__DAGRUN_DEVICE int __bfloat162int_rd(__nv_bfloat16 x) { return __float2int_rd((float)x); }
__DAGRUN_DEVICE unsigned __bfloat162uint_rn(__nv_bfloat16 x) { return __float2uint_rn((float)x); }
__DAGRUN_DEVICE unsigned __bfloat162uint_rz(__nv_bfloat16 x) { return __float2uint_rz((float)x); }
__DAGRUN_DEVICE short __bfloat162short_rn(__nv_bfloat16 x) { return (short)__float2int_rn((float)x); }
__DAGRUN_DEVICE short __bfloat162short_rz(__nv_bfloat16 x) { return (short)__float2int_rz((float)x); }
__DAGRUN_DEVICE short __bfloat16_as_short(__nv_bfloat16 x) { return (short)x.__x; }
__DAGRUN_DEVICE __nv_bfloat16 __short_as_bfloat16(short bits) {
  __nv_bfloat16 r;
  r.__x = (unsigned short)bits;
  return r;
}
__DAGRUN_DEVICE __nv_bfloat162 atomicAdd(__nv_bfloat162 *at, __nv_bfloat162 value) {
  __nv_bfloat162 old;
  unsigned word = __dagrun_update((unsigned *)at, [&](unsigned seen) {
    __nv_bfloat162 v;
    __builtin_memcpy(&v, &seen, 4);
    v = __hadd2(v, value);
    __builtin_memcpy(&seen, &v, 4);
    return seen;
  });
  __builtin_memcpy(&old, &word, 4);
  return old;
}
__DAGRUN_DEVICE __nv_bfloat16 __ushort_as_bfloat16(unsigned short bits) {
  __nv_bfloat16 r;
  r.__x = bits;
  return r;
}
__DAGRUN_DEVICE unsigned short __bfloat16_as_ushort(__nv_bfloat16 x) { return x.__x; }
__DAGRUN_DEVICE __nv_bfloat16 __int2bfloat16_rn(int x) { return __nv_bfloat16((float)x); }
__DAGRUN_DEVICE int __bfloat162int_rn(__nv_bfloat16 x) { return __float2int_rn((float)x); }
__DAGRUN_DEVICE int __bfloat162int_rz(__nv_bfloat16 x) { return __float2int_rz((float)x); }
#if __CUDA_ARCH__ >= 700
__DAGRUN_DEVICE __nv_bfloat16 atomicAdd(__nv_bfloat16 *at, __nv_bfloat16 value) {
  return __ushort_as_bfloat16(__dagrun_update((unsigned short *)at, [&](unsigned short seen) { return __hadd(__ushort_as_bfloat16(seen), value).__x; }));
}
#endif
#undef __DAGRUN_MEMBER
