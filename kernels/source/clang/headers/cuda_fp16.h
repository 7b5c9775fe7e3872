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

__DAGRUN_DEVICE __half __hfma(__half a, __half b, __half c) {
  __half r;
  asm("fma.rn.f16 %0, %1, %2, %3;" : "=h"(r.__x) : "h"(a.__x), "h"(b.__x), "h"(c.__x));
  return r;
}
#define __DAGRUN_NUMBER __half
#define __DAGRUN_NUMBER2 __half2
#define __DAGRUN_STEM half
#include "dagrun_number16.h"

#if __CUDA_ARCH__ >= 700
__DAGRUN_DEVICE __half atomicAdd(__half *at, __half value) {
  __half old;
  asm volatile("atom.add.noftz.f16 %0, [%1], %2;" : "=h"(old.__x) : "l"(at), "h"(value.__x) : "memory");
  return old;
}
#endif
#undef __DAGRUN_MEMBER
