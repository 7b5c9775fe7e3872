// Kernels with two phases in one launch: all blocks gather, the last one to finish joins the parts, and all blocks apply the result.
// Only blocks that already run take tiles of the first phase, one tile after another, so no block waits for a block that has not
// started.
#include "chain.cuh"

struct Phases {
  u64 tickets, finished, ready, left;
};
const u64 ready_mark = 0x5b1e90c4a7f3d268ull;

// Calls gather(tile) for every tile, then join() in one block, and returns in all blocks after that. The caller ends with leave_phases.
template <class F, class G> DEVICE void first_phase(Phases *phases, u32 tiles, F gather, G join) {
  for (u32 tile; (tile = shared_ticket(&phases->tickets)) < tiles;) {
    gather(tile);
    if (last_of(tiles, &phases->finished)) {
      join();
      fence();
      barrier();
      if (thread_x() == 0) *(volatile u64 *)&phases->ready = ready_mark;
    }
  }
  if (thread_x() == 0)
    while (*(volatile u64 *)&phases->ready != ready_mark) {}
  barrier();
  fence();
}

// The last block to leave clears the counters for the next launch.
DEVICE void leave_phases(Phases *phases) {
  if (last_of(blocks_x(), &phases->left) && thread_x() == 0) {
    *(volatile u64 *)&phases->tickets = 0;
    *(volatile u64 *)&phases->ready = 0;
  }
}

// Kernels on columns. They sum differences from a pivot row in f64, so that a large mean costs no digits. A tile is a run of rows.
DEVICE i64 rows_each(i64 rows, i64 cols) { return larger((rows + 1055) / 1056, larger((i64)1, (8192 + cols - 1) / cols)); }

// How many columns and rows a block processes at once.
struct Strip {
  i64 wide, high;
  DEVICE_MEMBER explicit Strip(i64 cols) : wide(smaller(cols, (i64)lanes)), high(lanes / smaller(cols, (i64)lanes)) {}
};

// sum_tile writes the sums of a tile's columns, and of their squares, to parts.
template <class X> DEVICE void sum_tile(u32 tile, i64 rows, i64 cols, const X *x, const X *pivots, f64 *parts) {
  static __shared__ f64 sums[lanes], squares[lanes];
  Strip strip(cols);
  i64 wide = strip.wide, high = strip.high, each = rows_each(rows, cols);
  i64 from = tile * each, to = smaller(from + each, rows);
  i64 r = thread_x() / wide, c = thread_x() % wide;
  for (i64 at = 0; at < cols; at += wide) {
    f64 s = 0, q = 0;
    if (r < high && at + c < cols) {
      f64 pivot = (f64)pivots[at + c];
      for (i64 i = from + r; i < to; i += high * 8) {
        X v[8];
#pragma unroll
        for (int u = 0; u < 8; u++)
          if (i + u * high < to) v[u] = x[(i + u * high) * cols + at + c];
#pragma unroll
        for (int u = 0; u < 8; u++)
          if (i + u * high < to) {
            f64 d = (f64)v[u] - pivot;
            s = s + d;
            q = fused(d, d, q);
          }
      }
    }
    barrier();
    sums[thread_x()] = s;
    squares[thread_x()] = q;
    barrier();
    if (r == 0 && at + c < cols) {
      for (i64 k = 1; k < high; k++) {
        s = s + sums[k * wide + c];
        q = q + squares[k * wide + c];
      }
      parts[(tile * 2) * cols + at + c] = s;
      parts[(tile * 2 + 1) * cols + at + c] = q;
    }
  }
}

// join_parts adds up a column's parts.
DEVICE void join_parts(i64 c, i64 cols, i64 count, const f64 *parts, f64 &s, f64 &q) {
  s = 0, q = 0;
#pragma unroll 16
  for (i64 t = 0; t < count; t++) {
    s = s + parts[t * 2 * cols + c];
    q = q + parts[(t * 2 + 1) * cols + c];
  }
}

template <class X, class T> DEVICE void moments(i64 rows, f64 s, f64 q, X pivot, T &mean, T &deviation) {
  f64 m = s / (f64)rows, variance = q / (f64)rows - m * m;
  mean = (T)((f64)pivot + m);
  deviation = (T)(variance > 0 ? root(variance) : 1.0);
}

// z = (x - mean) / deviation of each column.
template <class X, class T>
DEVICE void column_standardise(i64 rows, i64 cols, const X *x, T *z, void *scratch) {
  Phases *phases = (Phases *)scratch;
  i64 each = rows_each(rows, cols);
  u32 tiles = (u32)((rows + each - 1) / each);
  T *mean = (T *)((char *)scratch + 64), *deviation = mean + cols;
  f64 *parts = (f64 *)((char *)scratch + 64 + 2 * cols * 8);
  Strip strip(cols);
  i64 wide = strip.wide, high = strip.high;
  auto gather = [&](u32 tile) { sum_tile(tile, rows, cols, x, x, parts); };
  auto join = [&]() {
    for (i64 c = thread_x(); c < cols; c += lanes) {
      f64 s, q;
      join_parts(c, cols, tiles, parts, s, q);
      moments(rows, s, q, x[c], mean[c], deviation[c]);
    }
  };
  first_phase(phases, tiles, gather, join);
  for (i64 at = 0; at < cols; at += wide) {
    i64 r = thread_x() / wide, c = at + thread_x() % wide;
    if (r < high && c < cols) {
      T m = mean[c], d = deviation[c];
      for (i64 i = block_x() * high + r; i < rows; i += blocks_x() * high * 8) {
        X v[8];
#pragma unroll
        for (int u = 0; u < 8; u++)
          if (i + u * high * blocks_x() < rows) v[u] = x[(i + u * high * blocks_x()) * cols + c];
#pragma unroll
        for (int u = 0; u < 8; u++)
          if (i + u * high * blocks_x() < rows) z[(i + u * high * blocks_x()) * cols + c] = ((T)v[u] - m) / d;
      }
    }
  }
  leave_phases(phases);
}
#define COLUMN_STANDARDISE(name, x_, t) KERNEL(column_standardise_##name)(i64 rows, i64 cols, const x_ *x, t *z, void *scratch) { \
  column_standardise(rows, cols, x, z, scratch); \
}
COLUMN_STANDARDISE(f32_f32, f32, f32) COLUMN_STANDARDISE(i32_f32, i32, f32) COLUMN_STANDARDISE(f64_f64, f64, f64)

// The same in two kernels: the sums for some rows of a larger matrix, and the moments from the sums of all rows.
template <class X> DEVICE void column_sums(i64 rows, i64 cols, const X *pivots, const X *x, f64 *sums, void *scratch) {
  i64 each = rows_each(rows, cols);
  u32 tiles = (u32)((rows + each - 1) / each);
  f64 *parts = (f64 *)((char *)scratch + 16);
  if (block_x() >= larger(tiles, (u32)1)) return;
  for (u32 tile = block_x(); tile < tiles; tile += blocks_x()) sum_tile(tile, rows, cols, x, pivots, parts);
  if (!last_of(smaller(larger(tiles, (u32)1), blocks_x()), (u64 *)scratch)) return;
  for (i64 c = thread_x(); c < cols; c += lanes) {
    f64 s, q; // kept in registers: in memory every addition would wait for the previous store
    join_parts(c, cols, tiles, parts, s, q);
    sums[c] = s;
    sums[cols + c] = q;
  }
}
#define COLUMN_SUMS(x_) KERNEL(column_sums_##x_)(i64 rows, i64 cols, const x_ *pivot, const x_ *x, f64 *sums, void *scratch) { \
  column_sums(rows, cols, pivot, x, sums, scratch); \
}
COLUMN_SUMS(f32) COLUMN_SUMS(f64) COLUMN_SUMS(i32)

#define COLUMN_MOMENTS(name, x_, t) KERNEL(column_moments_##name)(i64 parts, i64 rows, i64 cols, const x_ *pivot, const f64 *sums, t *mean, t *inverse) { \
  for (i64 c = first_index(); c < cols; c += index_step()) { \
    f64 s, q; \
    join_parts(c, cols, parts, sums, s, q); \
    t m, deviation; \
    moments(rows, s, q, pivot[c], m, deviation); \
    mean[c] = m; \
    inverse[c] = (t)1 / deviation; \
  } \
}
COLUMN_MOMENTS(f32_f32, f32, f32) COLUMN_MOMENTS(i32_f32, i32, f32) COLUMN_MOMENTS(f64_f64, f64, f64)

// Histogram: each block counts in shared memory and writes its counts to scratch; the last block adds them up.
const int most_bins = 8192;

// Bins finds the bin of a value between low and high. high - low can overflow, and so can bins divided by a tiny difference: in both
// cases everything is scaled by a power of two first.
struct Bins {
  f64 stretch, origin, scale;
  i64 first, last;
  bool none; // nothing is counted: low is above high, or one of them is NaN or infinite
  template <class T> DEVICE_MEMBER Bins(i64 bins, T low, T high) : stretch(1), first(0), last(bins - 1) {
    f64 width = (f64)high - (f64)low;
    if (sizeof(T) == 8) {
      if (width > 1.7976931348623157e308) stretch = 0.5;
      if (width > 0 && width < 0x1p-1000) stretch = 0x1p1000;
    }
    origin = (f64)low * stretch;
    width = (f64)high * stretch - origin;
    none = !(width >= 0 && width <= 1.7976931348623157e308);
    scale = (f64)bins / width;
    if (width == 0) scale = 0, first = last; // all values are high, which belongs to the last bin
  }
  DEVICE_MEMBER i64 at(f64 v) const {
    i64 b = first + (i64)((v * stretch - origin) * scale);
    return b > last ? last : b;
  }
};

template <class T> DEVICE void histogram(i64 n, i64 bins, T low, T high, const T *x, i64 *out, void *scratch) {
  static __shared__ u32 count[most_bins];
  u64 *counter = (u64 *)scratch;
  u32 *parts = (u32 *)((char *)scratch + 16);
  for (i64 b = thread_x(); b < bins; b += threads_x()) count[b] = 0;
  barrier();
  Bins even(bins, low, high);
  if (even.none) n = 0;
  const int deep = 8; // loads in flight
  for (i64 i = first_index(); i < n; i += deep * index_step()) {
    T v[deep];
#pragma unroll
    for (int u = 0; u < deep; u++)
      if (i + u * index_step() < n) v[u] = x[i + u * index_step()];
#pragma unroll
    for (int u = 0; u < deep; u++) {
      if (i + u * index_step() >= n || !(v[u] >= low && v[u] <= high)) continue;
      count_shared(count + even.at((f64)v[u]));
    }
  }
  barrier();
  for (i64 b = thread_x(); b < bins; b += threads_x()) parts[block_x() * bins + b] = count[b];
  if (!last_of(blocks_x(), counter)) return;
  for (i64 b = thread_x(); b < bins; b += threads_x()) {
    i64 sum = 0;
#pragma unroll 8
    for (u32 k = 0; k < blocks_x(); k++) sum += parts[k * bins + b];
    out[b] = sum;
  }
}
#define HISTOGRAM(t) KERNEL(histogram_##t)(i64 n, i64 bins, t low, t high, const t *x, i64 *out, void *scratch) { histogram(n, bins, low, high, x, out, scratch); }
HISTOGRAM(f32) HISTOGRAM(f64) HISTOGRAM(i32)
