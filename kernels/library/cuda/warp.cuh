// Data exchange between the lanes of a warp.
#pragma once
#include "common.cuh"

// from_lane returns another lane's x, whose size must be a multiple of 4 bytes.
template <class T> DEVICE T from_lane(T x, u32 lane) {
  u32 w[sizeof(T) / 4], r[sizeof(T) / 4];
  *(T *)w = x;
#pragma unroll
  for (int i = 0; i < (int)(sizeof(T) / 4); i++)
    asm volatile("shfl.sync.idx.b32 %0, %1, %2, 0x1f, 0xffffffff;" : "=r"(r[i]) : "r"(w[i]), "r"(lane));
  return *(T *)r;
}
