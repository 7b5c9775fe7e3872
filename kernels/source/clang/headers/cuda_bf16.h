// Numbers of 16 bits: the upper half of a float.
#pragma once
#define __DAGRUN_NUMBER __nv_bfloat16
#define __DAGRUN_NUMBER2 __nv_bfloat162
#define __DAGRUN_STEM bfloat16
#define __DAGRUN_PTX "bf16"
#define __DAGRUN_WIDEN(x, bits) \
  unsigned wide = (unsigned)bits << 16; \
  __builtin_memcpy(&x, &wide, 4)
#include "dagrun_number16.h"
typedef __nv_bfloat16 nv_bfloat16;
typedef __nv_bfloat162 nv_bfloat162;

__DAGRUN_DEVICE __nv_bfloat162 __bfloat16s2bfloat162(__nv_bfloat16 x, __nv_bfloat16 y) { return {x, y}; }
#if __CUDA_ARCH__ >= 700
__DAGRUN_DEVICE __nv_bfloat16 atomicAdd(__nv_bfloat16 *at, __nv_bfloat16 value) {
  return __ushort_as_bfloat16(__dagrun_update((unsigned short *)at, [&](unsigned short seen) { return __hadd(__ushort_as_bfloat16(seen), value).__x; }));
}
#endif
