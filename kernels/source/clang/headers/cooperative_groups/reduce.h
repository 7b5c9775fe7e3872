// Reductions over a tile or over the active lanes of a warp.
#pragma once
#include <cooperative_groups.h>

namespace cooperative_groups {
template <class T> struct plus {
  __device__ T operator()(T a, T b) const { return a + b; }
};
template <class T> struct less {
  __device__ T operator()(T a, T b) const { return b < a ? b : a; }
};
template <class T> struct greater {
  __device__ T operator()(T a, T b) const { return a < b ? b : a; }
};
template <class T> struct bit_and {
  __device__ T operator()(T a, T b) const { return a & b; }
};
template <class T> struct bit_or {
  __device__ T operator()(T a, T b) const { return a | b; }
};
template <class T> struct bit_xor {
  __device__ T operator()(T a, T b) const { return a ^ b; }
};

template <unsigned N, class P, class T, class F> __device__ __forceinline__ T reduce(const thread_block_tile<N, P> &g, T v, F f) {
  if constexpr (N <= 32) {
    for (unsigned by = N / 2; by > 0; by /= 2) v = f(v, g.shfl_xor(v, by));
    return v;
  } else {
    for (unsigned by = 16; by > 0; by /= 2) v = f(v, __shfl_xor_sync(~0u, v, by));
    return g.__combined(v, f);
  }
}
template <class T, class F> __device__ __forceinline__ T reduce(const coalesced_group &g, T v, F f) {
  T all = g.shfl(v, 0);
  for (unsigned i = 1; i < g.size(); i++) all = f(all, g.shfl(v, i));
  return all;
}
}  // namespace cooperative_groups
