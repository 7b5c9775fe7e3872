// Prefix sums. Tiles have 4,096 elements, 16 neighbours per thread, and each element is read and written once.
#include "chain.cuh"

const int scan_own = 16, scan_tile = lanes * scan_own;

// A tile's elements wait in shared memory, with a word of padding after every 16 against bank conflicts: a block needs few registers, so
// that many tiles are on their way. inclusive: y[i] = x[0] + ... + x[i], otherwise up to x[i-1].
template <bool inclusive, class T> DEVICE void scan(i64 n, const T *x, T *y, void *scratch) {
  static __shared__ T staged[scan_tile + lanes];
  Chain<T> chain(scratch, (n + scan_tile - 1) / scan_tile);
  T *own = staged + thread_x() * (scan_own + 1);
  const u32 place = thread_x() + thread_x() / scan_own, apart = lanes + lanes / scan_own; // of every 256th element
  for (i64 tile; (tile = chain.take()) < chain.tiles;) {
    i64 first = tile * scan_tile + thread_x();
    bool whole = (tile + 1) * scan_tile <= n;
    if (whole) {
      T v[scan_own];
#pragma unroll
      for (int u = 0; u < scan_own; u++) v[u] = x[first + u * lanes];
#pragma unroll
      for (int u = 0; u < scan_own; u++) staged[place + u * apart] = v[u];
    } else {
#pragma unroll 1
      for (int u = 0; u < scan_own; u++) staged[place + u * apart] = first + u * lanes < n ? x[first + u * lanes] : (T)0;
    }
    barrier();
    T s = own[0];
#pragma unroll
    for (int u = 1; u < scan_own; u++) s = s + own[u];
    T all = scan_lanes(s);
    T before = chain.before(tile, all) + s;
#pragma unroll
    for (int u = 0; u < scan_own; u++) {
      T next = before + own[u];
      own[u] = inclusive ? next : before;
      before = next;
    }
    barrier();
    if (whole) {
#pragma unroll
      for (int u = 0; u < scan_own; u++) y[first + u * lanes] = staged[place + u * apart];
    } else {
#pragma unroll 1
      for (int u = 0; u < scan_own; u++)
        if (first + u * lanes < n) y[first + u * lanes] = staged[place + u * apart];
    }
  }
  chain.leave();
}
#define SCAN(t) KERNEL_OF(4, exclusive_scan_##t)(i64 n, const t *x, t *y, void *scratch) { scan<false>(n, x, y, scratch); } \
KERNEL_OF(4, inclusive_scan_##t)(i64 n, const t *x, t *y, void *scratch) { scan<true>(n, x, y, scratch); }
SCAN(f32) SCAN(f64) SCAN(i32)
