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

__DAGRUN_DEVICE __nv_bfloat16 __hfma(__nv_bfloat16 a, __nv_bfloat16 b, __nv_bfloat16 c) {
  __nv_bfloat16 r;
  asm("fma.rn.bf16 %0, %1, %2, %3;" : "=h"(r.__x) : "h"(a.__x), "h"(b.__x), "h"(c.__x));
  return r;
}
#define __DAGRUN_NUMBER __nv_bfloat16
#define __DAGRUN_NUMBER2 __nv_bfloat162
#define __DAGRUN_STEM bfloat16
#include "dagrun_number16.h"

__DAGRUN_DEVICE __nv_bfloat162 __bfloat16s2bfloat162(__nv_bfloat16 x, __nv_bfloat16 y) { return {x, y}; }
#if __CUDA_ARCH__ >= 700
__DAGRUN_DEVICE __nv_bfloat16 atomicAdd(__nv_bfloat16 *at, __nv_bfloat16 value) {
  return __ushort_as_bfloat16(__dagrun_update((unsigned short *)at, [&](unsigned short seen) { return __hadd(__ushort_as_bfloat16(seen), value).__x; }));
}
#endif
#undef __DAGRUN_MEMBER
