// Elements by index or by a condition: compact, unique, gather, scatter, and sums of segments.
#include "chain.cuh"

typedef unsigned char u8;
const int select_own = 16, select_tile = lanes * select_own, warps = lanes / 32;

// select writes the elements of x for which keeps(i, element) holds to y, in their order, then zeros, and how many they are. A tile knows how
// many elements it has dropped, and the tiles before it: as many zeros are at the end.
template <class T, class F> DEVICE void select(i64 n, const T *x, T *y, i64 *count, void *scratch, F keeps) {
  static __shared__ u32 kept[warps];
  Chain<i64> chain(scratch, larger((n + select_tile - 1) / select_tile, (i64)1)); // the count of nothing is written too
  u32 lane = thread_x() & 31, warp = thread_x() >> 5, below = (1u << lane) - 1;
  for (i64 tile; (tile = chain.take()) < chain.tiles;) {
    i64 first = tile * select_tile + warp * (select_tile / warps) + lane;
    T v[select_own];
    u32 mine = 0, before_here[select_own], running = 0;
#pragma unroll
    for (int u = 0; u < select_own; u++)
      if (first + u * 32 < n) v[u] = x[first + u * 32];
#pragma unroll
    for (int u = 0; u < select_own; u++) {
      bool keep = first + u * 32 < n && keeps(first + u * 32, v[u]);
      u32 those = ballot(keep);
      mine |= (u32)keep << u;
      before_here[u] = running + bits_set(those & below);
      running += bits_set(those);
    }
    if (lane == 0) kept[warp] = running;
    barrier();
    u32 earlier = 0, all = 0;
#pragma unroll
    for (u32 w = 0; w < warps; w++) {
      if (w == warp) earlier = all;
      all += kept[w];
    }
    i64 before = chain.before(tile, (i64)all);
    if (tile == chain.tiles - 1 && thread_x() == 0) *count = before + all;
    before += earlier;
#pragma unroll
    for (int u = 0; u < select_own; u++) {
      i64 i = first + u * 32, at = before + before_here[u];
      if (i < n && (mine >> u & 1)) y[at] = v[u];
      else if (i < n) y[n - 1 - (i - at)] = (T)0;
    }
  }
  chain.leave();
}

#define COMPACT(k, t) KERNEL_OF(3, compact_##k##_##t)(i64 n, const k *keep, const t *x, t *y, i64 *count, void *scratch) { \
  select(n, x, y, count, scratch, [=](i64 i, t) { return keep[i] != 0; }); \
}
#define COMPACT_BY(k) COMPACT(k, u32) COMPACT(k, u64)
COMPACT_BY(i32) COMPACT_BY(u8)

// The first of equal neighbours is kept. NaNs are equal to each other.
#define UNIQUE(t) KERNEL_OF(3, unique_##t)(i64 n, const t *x, t *y, i64 *count, void *scratch) { \
  select(n, x, y, count, scratch, [=](i64 i, t v) { \
    if (i == 0) return true; \
    t w = x[i - 1]; \
    return v != w && (v == v || w == w); \
  }); \
}
UNIQUE(f32) UNIQUE(f64) UNIQUE(i32) UNIQUE(i64)

template <class X, class T> DEVICE void gather(i64 n, i64 m, const X *index, const T *x, T *y) {
  const int deep = 4; // loads in flight
  for (i64 i = first_index(); i < n; i += deep * index_step()) {
    i64 at[deep];
    T v[deep];
#pragma unroll
    for (int u = 0; u < deep; u++) at[u] = i + u * index_step() < n ? (i64)index[i + u * index_step()] : -1;
#pragma unroll
    for (int u = 0; u < deep; u++) v[u] = (u64)at[u] < (u64)m ? x[at[u]] : (T)0;
#pragma unroll
    for (int u = 0; u < deep; u++)
      if (i + u * index_step() < n) y[i + u * index_step()] = v[u];
  }
}
#define GATHER(k, t) KERNEL(gather_##k##_##t)(i64 n, i64 m, const k *index, const t *x, t *y) { gather(n, m, index, x, y); }
#define GATHER_BY(k) GATHER(k, u32) GATHER(k, u64)
GATHER_BY(i32) GATHER_BY(i64)

DEVICE void raise_to(u64 *p, u64 value) { asm volatile("red.max.u64 [%0], %1;" ::"l"(p), "l"(value) : "memory"); }

// Several elements may go to one place, and the last of them wins. So the launch clears a number for each place, raises it to the number of each
// element that goes there, and then moves the elements whose numbers are left. Chunks of each of these three steps wait for the step before.
template <class X, class T> DEVICE void scatter(i64 n, i64 m, const X *index, const T *x, T *y, void *scratch) {
  u64 *tickets = (u64 *)scratch, *done = tickets + 1, *left = tickets + 3, *numbers = tickets + 8;
  u32 chunks = blocks_x();
  for (u32 ticket; (ticket = shared_ticket(tickets)) < 3 * chunks;) {
    u32 step = ticket / chunks;
    i64 first = (i64)(ticket - step * chunks) * threads_x() + thread_x(), stride = (i64)chunks * threads_x();
    if (step > 0) await_count(done + step - 1, chunks);
    if (step == 0) {
      for (i64 j = first; j < m; j += stride) numbers[j] = 0;
    } else {
      const int deep = 4; // loads in flight
      for (i64 i = first; i < n; i += deep * stride) {
        u64 at[deep], number[deep];
#pragma unroll
        for (int u = 0; u < deep; u++) at[u] = i + u * stride < n ? (u64)(i64)index[i + u * stride] : ~0ull;
#pragma unroll
        for (int u = 0; u < deep; u++) {
          number[u] = 0;
          if (at[u] >= (u64)m) continue;
          if (step == 1) raise_to(numbers + at[u], (u64)(i + u * stride) + 1);
          else number[u] = numbers[at[u]];
        }
#pragma unroll
        for (int u = 0; u < deep; u++)
          if (number[u] == (u64)(i + u * stride) + 1) y[at[u]] = x[i + u * stride];
      }
    }
    if (step < 2) add_one(done + step);
  }
  if (last_of(blocks_x(), left) && thread_x() < 3) tickets[thread_x()] = 0;
}
#define SCATTER(k, t) KERNEL(scatter_##k##_##t)(i64 n, i64 m, const k *index, const t *x, t *y, void *scratch) { scatter(n, m, index, x, y, scratch); }
#define SCATTER_BY(k) SCATTER(k, u32) SCATTER(k, u64)
SCATTER_BY(i32) SCATTER_BY(i64)

// Segment s is x[offsets[s]] to x[offsets[s+1]-1]; what lies outside x is left out. With up to 8 elements on average each segment has a thread,
// otherwise a warp.
template <class X, class T, class S> DEVICE void segment_sum(i64 n, i64 segments, const X *offsets, const T *x, S *y) {
  bool warp = (n - 1) / 8 >= segments;
  u32 lane = warp ? thread_x() & 31 : 0, step = warp ? 32 : 1;
  for (i64 s = warp ? first_index() >> 5 : first_index(); s < segments; s += warp ? index_step() >> 5 : index_step()) {
    i64 from = larger((i64)0, smaller((i64)offsets[s], n)), to = smaller((i64)offsets[s + 1], n), j = from + lane;
    S sum = (S)0;
    const int deep = 4; // loads in flight
    for (; j + (deep - 1) * step < to; j += deep * step) {
      T v[deep];
#pragma unroll
      for (int u = 0; u < deep; u++) v[u] = x[j + u * step];
#pragma unroll
      for (int u = 0; u < deep; u++) sum = sum + (S)v[u];
    }
    for (; j < to; j += step) sum = sum + (S)x[j];
    if (warp)
#pragma unroll
      for (u32 half = 16; half > 0; half /= 2) sum = sum + from_lane(sum, (lane + half) & 31);
    if (lane == 0) y[s] = sum;
  }
}
#define SEGMENT_SUM(k, t, s) KERNEL(segment_sum_##k##_##t)(i64 n, i64 segments, const k *offsets, const t *x, s *y) { segment_sum(n, segments, offsets, x, y); }
#define SEGMENT_SUM_BY(k) SEGMENT_SUM(k, f32, f32) SEGMENT_SUM(k, f64, f64) SEGMENT_SUM(k, i32, i64)
SEGMENT_SUM_BY(i32) SEGMENT_SUM_BY(i64)
