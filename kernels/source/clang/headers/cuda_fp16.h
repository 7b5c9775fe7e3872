// Numbers of 16 bits: half precision.
#pragma once

#define __DAGRUN_MEMBER inline __attribute__((host)) __attribute__((device)) __attribute__((always_inline))

struct __align__(2) __half {
  unsigned short __x;
  __half() = default;
  __DAGRUN_MEMBER __half(float x) { asm("cvt.rn.f16.f32 %0, %1;" : "=h"(__x) : "f"(x)); }
  __DAGRUN_MEMBER __half(double x) : __half((float)x) {}
  __DAGRUN_MEMBER __half(int x) : __half((float)x) {}
  __DAGRUN_MEMBER __half(unsigned x) : __half((float)x) {}
  __DAGRUN_MEMBER operator float() const {
    float x;
    asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"(__x));
    return x;
  }
};
struct __align__(4) __half2 {
  __half x, y;
  __half2() = default;
  __DAGRUN_MEMBER __half2(__half x, __half y) : x(x), y(y) {}
};
typedef __half half;
typedef __half2 half2;

// Sums, products and quotients are computed in float and rounded once. The 16-bit instructions give the same results.
__DAGRUN_DEVICE __half __float2half(float x) { return __half(x); }
__DAGRUN_DEVICE __half __float2half_rn(float x) { return __half(x); }
__DAGRUN_DEVICE float __half2float(__half x) { return (float)x; }
__DAGRUN_DEVICE __half __hadd(__half a, __half b) { return __half((float)a + (float)b); }
__DAGRUN_DEVICE __half __hsub(__half a, __half b) { return __half((float)a - (float)b); }
__DAGRUN_DEVICE __half __hmul(__half a, __half b) { return __half(__fmul_rn((float)a, (float)b)); }
__DAGRUN_DEVICE __half __hdiv(__half a, __half b) { return __half(__fdiv_rn((float)a, (float)b)); }
__DAGRUN_DEVICE __half __hneg(__half a) {
  a.__x ^= 0x8000;
  return a;
}
__DAGRUN_DEVICE __half __habs(__half a) {
  a.__x &= 0x7fff;
  return a;
}
__DAGRUN_DEVICE __half __hfma(__half a, __half b, __half c) {
  __half r;
  asm("fma.rn.f16 %0, %1, %2, %3;" : "=h"(r.__x) : "h"(a.__x), "h"(b.__x), "h"(c.__x));
  return r;
}
__DAGRUN_DEVICE __half __hmax(__half a, __half b) { return __half(fmaxf((float)a, (float)b)); }
__DAGRUN_DEVICE __half __hmin(__half a, __half b) { return __half(fminf((float)a, (float)b)); }
__DAGRUN_DEVICE bool __hisnan(__half a) { return isnan((float)a); }
__DAGRUN_DEVICE bool __heq(__half a, __half b) { return (float)a == (float)b; }
__DAGRUN_DEVICE bool __hne(__half a, __half b) { return (float)a != (float)b; }
__DAGRUN_DEVICE bool __hlt(__half a, __half b) { return (float)a < (float)b; }
__DAGRUN_DEVICE bool __hle(__half a, __half b) { return (float)a <= (float)b; }
__DAGRUN_DEVICE bool __hgt(__half a, __half b) { return (float)a > (float)b; }
__DAGRUN_DEVICE bool __hge(__half a, __half b) { return (float)a >= (float)b; }
__DAGRUN_DEVICE __half operator+(__half a, __half b) { return __hadd(a, b); }
__DAGRUN_DEVICE __half &operator+=(__half &a, __half b) { return a = __hadd(a, b); }
__DAGRUN_DEVICE __half operator-(__half a, __half b) { return __hsub(a, b); }
__DAGRUN_DEVICE __half &operator-=(__half &a, __half b) { return a = __hsub(a, b); }
__DAGRUN_DEVICE __half operator*(__half a, __half b) { return __hmul(a, b); }
__DAGRUN_DEVICE __half &operator*=(__half &a, __half b) { return a = __hmul(a, b); }
__DAGRUN_DEVICE __half operator/(__half a, __half b) { return __hdiv(a, b); }
__DAGRUN_DEVICE __half &operator/=(__half &a, __half b) { return a = __hdiv(a, b); }
__DAGRUN_DEVICE bool operator==(__half a, __half b) { return (float)a == (float)b; }
__DAGRUN_DEVICE bool operator!=(__half a, __half b) { return (float)a != (float)b; }
__DAGRUN_DEVICE bool operator<(__half a, __half b) { return (float)a < (float)b; }
__DAGRUN_DEVICE bool operator<=(__half a, __half b) { return (float)a <= (float)b; }
__DAGRUN_DEVICE bool operator>(__half a, __half b) { return (float)a > (float)b; }
__DAGRUN_DEVICE bool operator>=(__half a, __half b) { return (float)a >= (float)b; }
__DAGRUN_DEVICE __half operator-(__half a) { return __hneg(a); }
__DAGRUN_DEVICE __half hsqrt(__half x) { return __half(sqrtf((float)x)); }
__DAGRUN_DEVICE __half hexp(__half x) { return __half(expf((float)x)); }
__DAGRUN_DEVICE __half hlog(__half x) { return __half(logf((float)x)); }
__DAGRUN_DEVICE __half hsin(__half x) { return __half(sinf((float)x)); }
__DAGRUN_DEVICE __half hcos(__half x) { return __half(cosf((float)x)); }
__DAGRUN_DEVICE __half hfloor(__half x) { return __half(floorf((float)x)); }
__DAGRUN_DEVICE __half hceil(__half x) { return __half(ceilf((float)x)); }
__DAGRUN_DEVICE __half htrunc(__half x) { return __half(truncf((float)x)); }
__DAGRUN_DEVICE __half hrint(__half x) { return __half(rintf((float)x)); }
__DAGRUN_DEVICE __half hrcp(__half x) { return __half(1.0f / (float)x); }
__DAGRUN_DEVICE __half hrsqrt(__half x) { return __half(rsqrtf((float)x)); }
__DAGRUN_DEVICE __half hexp2(__half x) { return __half(exp2f((float)x)); }
__DAGRUN_DEVICE __half hlog2(__half x) { return __half(log2f((float)x)); }
__DAGRUN_DEVICE __half htanh(__half x) { return __half(tanhf((float)x)); }

__DAGRUN_DEVICE __half2 __floats2half2_rn(float x, float y) { return {__half(x), __half(y)}; }
__DAGRUN_DEVICE __half2 __float22half2_rn(float2 v) { return {__half(v.x), __half(v.y)}; }
__DAGRUN_DEVICE __half2 __float2half2_rn(float x) { return {__half(x), __half(x)}; }
__DAGRUN_DEVICE __half2 __half2half2(__half x) { return {x, x}; }
__DAGRUN_DEVICE float2 __half22float2(__half2 v) { return make_float2((float)v.x, (float)v.y); }
__DAGRUN_DEVICE __half __low2half(__half2 v) { return v.x; }
__DAGRUN_DEVICE __half __high2half(__half2 v) { return v.y; }
__DAGRUN_DEVICE float __low2float(__half2 v) { return (float)v.x; }
__DAGRUN_DEVICE float __high2float(__half2 v) { return (float)v.y; }
__DAGRUN_DEVICE __half2 __hadd2(__half2 a, __half2 b) { return {__hadd(a.x, b.x), __hadd(a.y, b.y)}; }
__DAGRUN_DEVICE __half2 __hsub2(__half2 a, __half2 b) { return {__hsub(a.x, b.x), __hsub(a.y, b.y)}; }
__DAGRUN_DEVICE __half2 __hmul2(__half2 a, __half2 b) { return {__hmul(a.x, b.x), __hmul(a.y, b.y)}; }
__DAGRUN_DEVICE __half2 __h2div(__half2 a, __half2 b) { return {__hdiv(a.x, b.x), __hdiv(a.y, b.y)}; }
__DAGRUN_DEVICE __half2 __hmax2(__half2 a, __half2 b) { return {__hmax(a.x, b.x), __hmax(a.y, b.y)}; }
__DAGRUN_DEVICE __half2 __hmin2(__half2 a, __half2 b) { return {__hmin(a.x, b.x), __hmin(a.y, b.y)}; }
__DAGRUN_DEVICE __half2 __hfma2(__half2 a, __half2 b, __half2 c) { return {__hfma(a.x, b.x, c.x), __hfma(a.y, b.y, c.y)}; }
__DAGRUN_DEVICE __half2 operator+(__half2 a, __half2 b) { return __hadd2(a, b); }
__DAGRUN_DEVICE __half2 operator-(__half2 a, __half2 b) { return __hsub2(a, b); }
__DAGRUN_DEVICE __half2 operator*(__half2 a, __half2 b) { return __hmul2(a, b); }
__DAGRUN_DEVICE __half2 operator/(__half2 a, __half2 b) { return __h2div(a, b); }
__DAGRUN_DEVICE __half __ushort_as_half(unsigned short bits) {
  __half r;
  r.__x = bits;
  return r;
}
__DAGRUN_DEVICE unsigned short __half_as_ushort(__half x) { return x.__x; }
__DAGRUN_DEVICE __half __int2half_rn(int x) { return __half((float)x); }
__DAGRUN_DEVICE int __half2int_rn(__half x) { return __float2int_rn((float)x); }
__DAGRUN_DEVICE int __half2int_rz(__half x) { return __float2int_rz((float)x); }
#if __CUDA_ARCH__ >= 700
__DAGRUN_DEVICE __half atomicAdd(__half *at, __half value) {
  __half old;
  asm volatile("atom.add.noftz.f16 %0, [%1], %2;" : "=h"(old.__x) : "l"(at), "h"(value.__x) : "memory");
  return old;
}
#endif

#define __DAGRUN_COMPARED(stem, operation)                                                                         \
  __DAGRUN_DEVICE __half2 __h##stem##2(__half2 a, __half2 b) {                                                              \
    return {__half((float)a.x operation(float) b.x ? 1.0f : 0.0f), __half((float)a.y operation(float) b.y ? 1.0f : 0.0f)}; \
  }                                                                                                                \
  __DAGRUN_DEVICE bool __hb##stem##2(__half2 a, __half2 b) { return (float)a.x operation(float) b.x && (float)a.y operation(float) b.y; }
__DAGRUN_COMPARED(eq, ==)
__DAGRUN_COMPARED(ne, !=)
__DAGRUN_COMPARED(lt, <)
__DAGRUN_COMPARED(le, <=)
__DAGRUN_COMPARED(gt, >)
__DAGRUN_COMPARED(ge, >=)
#undef __DAGRUN_COMPARED
#define __DAGRUN_OF_BOTH(name, of_one) \
  __DAGRUN_DEVICE __half2 name(__half2 v) { return {of_one(v.x), of_one(v.y)}; }
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
__DAGRUN_DEVICE __half hexp10(__half x) { return __half(exp10f((float)x)); }
__DAGRUN_DEVICE __half hlog10(__half x) { return __half(log10f((float)x)); }
__DAGRUN_DEVICE int __hisinf(__half x) { return isinf((float)x) ? ((float)x > 0 ? 1 : -1) : 0; }
__DAGRUN_DEVICE __half __hadd_rn(__half a, __half b) { return __hadd(a, b); }
__DAGRUN_DEVICE __half __hsub_rn(__half a, __half b) { return __hsub(a, b); }
__DAGRUN_DEVICE __half __hmul_rn(__half a, __half b) { return __hmul(a, b); }
__DAGRUN_DEVICE __half __hadd_sat(__half a, __half b) { return __half(__saturatef((float)a + (float)b)); }
__DAGRUN_DEVICE __half __hsub_sat(__half a, __half b) { return __half(__saturatef((float)a - (float)b)); }
__DAGRUN_DEVICE __half __hmul_sat(__half a, __half b) { return __half(__saturatef(__fmul_rn((float)a, (float)b))); }
__DAGRUN_DEVICE __half __hfma_sat(__half a, __half b, __half c) { return __half(__saturatef((float)__hfma(a, b, c))); }
__DAGRUN_DEVICE __half __hfma_relu(__half a, __half b, __half c) { return __hmax(__hfma(a, b, c), __half(0.0f)); }
__DAGRUN_DEVICE __half2 &operator+=(__half2 &a, __half2 b) { return a = __hadd2(a, b); }
__DAGRUN_DEVICE __half2 &operator-=(__half2 &a, __half2 b) { return a = __hsub2(a, b); }
__DAGRUN_DEVICE __half2 &operator*=(__half2 &a, __half2 b) { return a = __hmul2(a, b); }
__DAGRUN_DEVICE __half2 &operator/=(__half2 &a, __half2 b) { return a = __h2div(a, b); }
__DAGRUN_DEVICE __half2 operator-(__half2 v) { return __hneg2(v); }
__DAGRUN_DEVICE __half2 __halves2half2(__half x, __half y) { return {x, y}; }
__DAGRUN_DEVICE __half2 __low2half2(__half2 v) { return {v.x, v.x}; }
__DAGRUN_DEVICE __half2 __high2half2(__half2 v) { return {v.y, v.y}; }
__DAGRUN_DEVICE __half2 __lows2half2(__half2 a, __half2 b) { return {a.x, b.x}; }
__DAGRUN_DEVICE __half2 __highs2half2(__half2 a, __half2 b) { return {a.y, b.y}; }
__DAGRUN_DEVICE __half2 __lowhigh2highlow(__half2 v) { return {v.y, v.x}; }
__DAGRUN_DEVICE __half __double2half(double x) { return __half(x); }
__DAGRUN_DEVICE __half __uint2half_rn(unsigned x) { return __half((float)x); }
__DAGRUN_DEVICE __half __short2half_rn(short x) { return __half((float)x); }
__DAGRUN_DEVICE __half __ushort2half_rn(unsigned short x) { return __half((float)x); }
__DAGRUN_DEVICE int __half2int_ru(__half x) { return __float2int_ru((float)x); }
__DAGRUN_DEVICE int __half2int_rd(__half x) { return __float2int_rd((float)x); }
__DAGRUN_DEVICE unsigned __half2uint_rn(__half x) { return __float2uint_rn((float)x); }
__DAGRUN_DEVICE unsigned __half2uint_rz(__half x) { return __float2uint_rz((float)x); }
__DAGRUN_DEVICE short __half2short_rn(__half x) { return (short)__float2int_rn((float)x); }
__DAGRUN_DEVICE short __half2short_rz(__half x) { return (short)__float2int_rz((float)x); }
__DAGRUN_DEVICE short __half_as_short(__half x) { return (short)x.__x; }
__DAGRUN_DEVICE __half __short_as_half(short bits) {
  __half r;
  r.__x = (unsigned short)bits;
  return r;
}
__DAGRUN_DEVICE __half2 atomicAdd(__half2 *at, __half2 value) {
  __half2 old;
  unsigned word = __dagrun_update((unsigned *)at, [&](unsigned seen) {
    __half2 v;
    __builtin_memcpy(&v, &seen, 4);
    v = __hadd2(v, value);
    __builtin_memcpy(&seen, &v, 4);
    return seen;
  });
  __builtin_memcpy(&old, &word, 4);
  return old;
}
#undef __DAGRUN_MEMBER
