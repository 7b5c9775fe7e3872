// Numbers of 16 bits: half precision.
#pragma once
#define __DAGRUN_NUMBER __half
#define __DAGRUN_NUMBER2 __half2
#define __DAGRUN_STEM half
#define __DAGRUN_PTX "f16"
#define __DAGRUN_WIDEN(x, bits) asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"(bits))
#include "dagrun_number16.h"
typedef __half half;
typedef __half2 half2;

#if __CUDA_ARCH__ >= 700
__DAGRUN_DEVICE __half atomicAdd(__half *at, __half value) {
  __half old;
  asm volatile("atom.add.noftz.f16 %0, [%1], %2;" : "=h"(old.__x) : "l"(at), "h"(value.__x) : "memory");
  return old;
}
#endif
