// Kernels with two phases in one launch: all blocks gather, the last one to finish joins the parts, and all blocks apply the result.
// Only blocks that already run take tiles of the first phase, one tile after another, so no block waits for a block that has not
// started.
#include "chain.cuh"

struct Phases {
  u64 tickets, finished, ready, left;
};
const u64 ready_mark = 0x5b1e90c4a7f3d268ull;

// The last block to leave clears the counters for the next launch.
DEVICE void leave_phases(Phases *phases) {
  if (last_of(blocks_x(), &phases->left) && thread_x() == 0) {
    *(volatile u64 *)&phases->tickets = 0;
    *(volatile u64 *)&phases->ready = 0;
  }
}

// Kernels on columns. They sum differences from a pivot row in f64, so that a large mean costs no digits. A thread has 4 columns if their
// number is divisible by 4, 2 if it is even, or one. Columns are processed in strips as wide as a block, the last one of what is left; a tile
// is a run of rows of one strip. The moments are applied in tiles of their own, for which narrow matrices are read four elements at a time.
const u32 most_column_tiles = 264, sum_elements = 8192, apply_elements = 2048; // of a tile, at least
const int group_tiles = 32, strip_words = 64, chunk_rows = 16;

DEVICE int own_columns(i64 cols) { return cols % 4 == 0 ? 4 : cols % 2 == 0 ? 2 : 1; }

// quotient_up is a / b, rounded up. Divisions of 64 bits are slow.
DEVICE i64 quotient_up(i64 a, i64 b) {
  i64 sum = a + b - 1;
  return (u64)(sum | b) >> 32 == 0 ? (i64)((u32)sum / (u32)b) : sum / b;
}

struct Strips {
  i64 rows, cols, strip, each; // a strip's columns, and a tile's rows
  u32 wide, high;              // numbers of strips, and of tiles in each
  u32 own, fold;               // a thread's columns, and how many rows are read as one
  // With folds, 2 or 4 rows are read as one where a thread then has 4 columns, if a block reads as many elements at once.
  DEVICE_MEMBER Strips(i64 rows, i64 cols, u32 least, bool folds) : rows(rows), cols(cols), own(own_columns(cols)), fold(1) {
    if (folds && cols * (4 / own) <= lanes * 4) fold = 4 / own, own = 4;
    strip = lanes * own;
    wide = (u32)quotient_up(cols, strip);
    u32 across = (u32)larger(smaller(cols, strip), (i64)1), most = larger(most_column_tiles / larger(wide, 1u), 1u);
    each = quotient_up(larger(quotient_up(rows, most), (i64)((least + across - 1) / across)), fold) * fold;
    high = (u32)quotient_up(rows, each);
  }
  // column is the column of an element of rows that are read as one.
  DEVICE_MEMBER i64 column(i64 at) const { return fold == 1 ? at : (u32)at % (u32)cols; }
  DEVICE_MEMBER u32 tiles() const { return high * wide; }
  DEVICE_MEMBER u32 groups() const { return (high + group_tiles - 1) / group_tiles; }
};

template <class X, int own> struct alignas(own * sizeof(X) > 16 ? 16 : own * sizeof(X)) some { X v[own]; };
template <class X, int own> DEVICE bool aligned(const X *x) { return ((u64)x & (alignof(some<X, own>) - 1)) == 0; }

// What a thread has of a tile: own neighbouring columns in rows that are high apart. Rows that are read as one count as one.
template <int own> struct Share {
  i64 first, step, end; // the index of its first element, how far the next row's is, and the index after the tile's last element
  u32 col, width, high, row, count;
  bool part; // after count rows there is one that the tile's end cuts off
  DEVICE_MEMBER Share(const Strips &strips, u32 tile) {
    i64 strip = tile % strips.wide, from = tile / strips.wide * strips.each;
    width = (u32)smaller(strips.cols * strips.fold / own - strip * lanes, (i64)lanes);
    high = lanes / width;
    row = thread_x() / width;
    col = thread_x() % width * own;
    first = (from + row * strips.fold) * strips.cols + strip * strips.strip + col;
    step = high * strips.fold * strips.cols;
    u32 all = (u32)smaller(strips.rows - from, strips.each), rows = all / strips.fold;
    end = (from + all) * strips.cols;
    count = row < high && row < rows ? (rows - row + high - 1) / high : 0;
    part = row < high && rows * strips.fold < all && rows % high == row;
  }
  // batch calls f for the next rows, deep at a time, whose loads are in flight at once.
  template <bool back, int deep, class X, class F> DEVICE_MEMBER void batch(const X *x, i64 &i, u32 &k, F f) const {
    u32 near = (u32)step; // offsets of 32 bits take fewer registers
#pragma unroll 1
    for (; k + deep <= count; k += deep) {
      some<X, own> v[deep];
#pragma unroll
      for (int u = 0; u < deep; u++) v[u] = *(const some<X, own> *)(x + (back ? i - u * near : i + u * near));
#pragma unroll
      for (int u = 0; u < deep; u++) f(v[u], back ? i - u * near : i + u * near);
      i = back ? i - deep * near : i + deep * near;
    }
  }
  // each calls f(elements of x, the index of the first of them), from the first row to the last or back.
  template <bool back, class X, class F> DEVICE_MEMBER void each(const X *x, bool whole, F f) const {
    i64 i = back ? first + step * ((i64)count - 1) : first;
    u32 k = 0;
    if (whole && step < 1 << 26) {
      batch<back, (back ? 64 : 128) / sizeof(some<X, own>)>(x, i, k, f); // divisions take long to compile
      if (back) batch<back, 2>(x, i, k, f);
    }
    const int deep = back ? 1 : 4;
#pragma unroll deep
    for (; k < count; k++) {
      some<X, own> v;
#pragma unroll
      for (int c = 0; c < own; c++) v.v[c] = x[i + c];
      f(v, i);
      i = back ? i - step : i + step;
    }
  }
};

DEVICE f64 *column_memory() {
  static __shared__ f64 memory[2 * lanes * 4];
  return memory;
}

// sum_tile writes the sums of a tile's columns, and of their squares, to parts.
template <int own, class X> DEVICE void sum_tile(const Strips &strips, u32 tile, const X *x, const X *pivots, f64 *parts) {
  f64 *sums = column_memory(), *squares = sums + lanes * own;
  Share<own> share(strips, tile);
  f64 s[own], q[own], pivot[own];
  i64 left = tile % strips.wide * strips.strip;
#pragma unroll
  for (int c = 0; c < own; c++) s[c] = 0, q[c] = 0, pivot[c] = (f64)pivots[left + share.col + c];
  share.template each<false>(x, aligned<X, own>(x), [&](const some<X, own> &v, i64) {
#pragma unroll
    for (int c = 0; c < own; c++) {
      f64 d = (f64)v.v[c] - pivot[c];
      s[c] = s[c] + d;
      q[c] = fused(d, d, q[c]);
    }
  });
  barrier();
#pragma unroll
  for (int c = 0; c < own; c++) {
    sums[thread_x() * own + c] = s[c];
    squares[thread_x() * own + c] = q[c];
  }
  barrier();
  // The sums of 16 of the block's rows at a time are added up, and then the results.
  u32 across = share.width * own, chunks = (share.high + chunk_rows - 1) / chunk_rows;
  auto add = [=](u32 at, u32 step, u32 count, f64 &a, f64 &b) {
    a = sums[at], b = squares[at];
#pragma unroll 4
    for (u32 k = 1; k < count; k++) {
      a = a + sums[at + k * step];
      b = b + squares[at + k * step];
    }
  };
  f64 a, b;
  if (chunks > 1) {
    for (u32 task = thread_x(); task < across * chunks; task += lanes) {
      u32 row = task / across * chunk_rows, at = row * across + task % across;
      add(at, across, smaller(share.high - row, (u32)chunk_rows), a, b);
      sums[at] = a;
      squares[at] = b;
    }
    barrier();
  }
  u32 step = chunks > 1 ? chunk_rows * across : across, count = chunks > 1 ? chunks : share.high;
  f64 *to = parts + tile / strips.wide * 2 * strips.cols + left;
  for (u32 c = thread_x(); c < across; c += lanes) {
    add(c, step, count, a, b);
    to[c] = a;
    to[strips.cols + c] = b;
  }
}

// join_parts adds up a column's parts, which are step elements apart; those of the squares follow cols elements later.
DEVICE void join_parts(i64 count, i64 step, i64 cols, const f64 *parts, f64 &s, f64 &q) {
  s = 0, q = 0;
#pragma unroll 8
  for (i64 t = 0; t < count; t++) {
    s = s + parts[t * step];
    q = q + parts[t * step + cols];
  }
}

// sum_and_join sums a tile. The last block of each 32 tiles of a strip adds up their parts, and the last block of the strip adds up these sums
// and calls result(column, sum, sum of squares). It returns whether this block was the strip's last.
template <int own, class X, class F>
DEVICE bool sum_and_join(const Strips &strips, u32 tile, const X *x, const X *pivots, u64 *words, f64 *parts, F result) {
  sum_tile<own>(strips, tile, x, pivots, parts);
  u32 strip = tile % strips.wide, group = tile / strips.wide / group_tiles, groups = strips.groups();
  words += strip * strip_words;
  i64 step = 2 * strips.cols, from = strip * strips.strip, to = smaller(strips.cols, from + strips.strip);
  u32 count = smaller(strips.high - group * group_tiles, (u32)group_tiles);
  if (!last_of(count, words + 1 + group)) return false;
  f64 *first = parts + group * group_tiles * step, s, q; // s and q are kept in registers: in memory every addition would wait for a store
  for (i64 col = from + thread_x(); col < to; col += lanes) {
    join_parts(count, step, strips.cols, first + col, s, q);
    if (groups == 1) result(col, s, q);
    first[col] = s;
    first[strips.cols + col] = q;
  }
  if (groups == 1) return true;
  if (!last_of(groups, words)) return false;
  for (i64 col = from + thread_x(); col < to; col += lanes) {
    join_parts(groups, group_tiles * step, strips.cols, parts + col, s, q);
    result(col, s, q);
  }
  return true;
}

template <class X, class T> DEVICE void moments(i64 rows, f64 s, f64 q, X pivot, T &mean, T &deviation) {
  f64 m = s / (f64)rows, variance = q / (f64)rows - m * m;
  mean = (T)((f64)pivot + m);
  deviation = (T)(variance > 0 ? root(variance) : 1.0);
}

template <int own, class X, class T> DEVICE void apply_tile(const Strips &strips, u32 tile, const X *x, const T *mean, const T *deviation, T *z) {
  Share<own> share(strips, tile);
  i64 left = tile % strips.wide * strips.strip + share.col;
  T m[own], d[own];
#pragma unroll
  for (int c = 0; c < own; c++) m[c] = mean[strips.column(left + c)], d[c] = deviation[strips.column(left + c)];
  bool whole = aligned<X, own>(x) && aligned<T, own>(z);
  // The rows that were read last come first, because the cache may still hold them.
  share.template each<true>(x, whole, [&](const some<X, own> &v, i64 i) {
    some<T, own> w;
#pragma unroll
    for (int c = 0; c < own; c++) w.v[c] = ((T)v.v[c] - m[c]) / d[c];
    if (whole) {
      *(some<T, own> *)(z + i) = w;
    } else {
#pragma unroll
      for (int c = 0; c < own; c++) z[i + c] = w.v[c];
    }
  });
  i64 last = share.first + share.step * share.count;
#pragma unroll
  for (int c = 0; c < own; c++)
    if (share.part && last + c < share.end) z[last + c] = ((T)x[last + c] - m[c]) / d[c];
}

// z = (x - mean) / deviation of each column.
template <int own, class X, class T>
DEVICE void column_standardise(i64 rows, i64 cols, const X *x, T *z, void *scratch) {
  Phases *phases = (Phases *)scratch;
  Strips strips(rows, cols, sum_elements, false);
  T *mean = (T *)(phases + 2), *deviation = mean + cols;
  u64 *words = (u64 *)(phases + 2) + 2 * cols;
  f64 *parts = (f64 *)(words + strips.wide * strip_words);
  auto keep = [&](i64 c, f64 s, f64 q) { moments(rows, s, q, x[c], mean[c], deviation[c]); };
  for (u32 tile; (tile = shared_ticket(&phases->tickets)) < strips.tiles();)
    if (sum_and_join<own>(strips, tile, x, x, words, parts, keep) && (strips.wide == 1 || last_of(strips.wide, &phases->finished))) {
      fence();
      barrier();
      if (thread_x() == 0) *(volatile u64 *)&phases->ready = ready_mark;
    }
  if (thread_x() == 0)
    while (*(volatile u64 *)&phases->ready != ready_mark) {}
  barrier();
  fence();
  Strips pieces(rows, cols, apply_elements, true);
  for (u32 tile = block_x(); tile < pieces.tiles(); tile += blocks_x()) {
    if (own == 4 || pieces.own == 4) apply_tile<4>(pieces, tile, x, mean, deviation, z);
    else apply_tile<own>(pieces, tile, x, mean, deviation, z);
  }
  leave_phases(phases);
}
#define COLUMN_STANDARDISE(own, name, x_, t) KERNEL_OF(2, name)(i64 rows, i64 cols, const x_ *x, t *z, void *scratch) { \
  column_standardise<own>(rows, cols, x, z, scratch); \
}
// A kernel for numbers of columns that are odd, that are even, and that are divisible by 4.
#define ALL_COLUMNS(M, name, types, ...) M(1, name##_##types, __VA_ARGS__) M(2, name##_by2_##types, __VA_ARGS__) M(4, name##_by4_##types, __VA_ARGS__)
ALL_COLUMNS(COLUMN_STANDARDISE, column_standardise, f32_f32, f32, f32)
ALL_COLUMNS(COLUMN_STANDARDISE, column_standardise, i32_f32, i32, f32)
ALL_COLUMNS(COLUMN_STANDARDISE, column_standardise, f64_f64, f64, f64)

// The same in two kernels: the sums for some rows of a larger matrix, and the moments from the sums of all rows.
template <int own, class X> DEVICE void column_sums(i64 rows, i64 cols, const X *pivots, const X *x, f64 *sums, void *scratch) {
  Strips strips(rows, cols, sum_elements, false);
  u64 *words = (u64 *)scratch;
  f64 *parts = (f64 *)(words + strips.wide * strip_words);
  auto keep = [&](i64 c, f64 s, f64 q) {
    sums[c] = s;
    sums[cols + c] = q;
  };
  for (u32 tile = block_x(); tile < strips.tiles(); tile += blocks_x()) sum_and_join<own>(strips, tile, x, pivots, words, parts, keep);
  if (rows == 0)
    for (i64 c = first_index(); c < cols; c += index_step()) keep(c, 0, 0);
}
#define COLUMN_SUMS(own, name, x_) KERNEL_OF(2, name)(i64 rows, i64 cols, const x_ *pivot, const x_ *x, f64 *sums, void *scratch) { \
  column_sums<own>(rows, cols, pivot, x, sums, scratch); \
}
ALL_COLUMNS(COLUMN_SUMS, column_sums, f32, f32) ALL_COLUMNS(COLUMN_SUMS, column_sums, f64, f64) ALL_COLUMNS(COLUMN_SUMS, column_sums, i32, i32)

#define COLUMN_MOMENTS(name, x_, t) KERNEL(column_moments_##name)(i64 parts, i64 rows, i64 cols, const x_ *pivot, const f64 *sums, t *mean, t *inverse) { \
  for (i64 c = first_index(); c < cols; c += index_step()) { \
    f64 s, q; \
    join_parts(parts, 2 * cols, cols, sums + c, s, q); \
    t m, deviation; \
    moments(rows, s, q, pivot[c], m, deviation); \
    mean[c] = m; \
    inverse[c] = (t)1 / deviation; \
  } \
}
COLUMN_MOMENTS(f32_f32, f32, f32) COLUMN_MOMENTS(i32_f32, i32, f32) COLUMN_MOMENTS(f64_f64, f64, f64)

// Histogram: each block counts in shared memory and writes its counts to scratch. The last block of each group of blocks adds them up, and the
// last group's last block adds up the sums of the groups, which have 32 bits and so hold for some 90 billion elements.
const int most_bins = 8192, histogram_threads = 1024, histogram_group = 12, histogram_copies = 8, few_counts = 16384;

#ifdef __clang__
DEVICE f64 add_toward_zero(f64 a, f64 b) { return __nvvm_add_rz_d(a, b); }
#else
DEVICE f64 add_toward_zero(f64 a, f64 b) { return __dadd_rz(a, b); }
#endif

// Bins finds the bin of a value between low and high. high - low can overflow, and so can bins divided by a tiny difference: in both
// cases everything is scaled by a power of two first.
template <class T> struct Bins {
  f64 stretch, origin, scale;
  u32 first, last;
  bool none; // nothing is counted: low is above high, or one of them is NaN or infinite
  DEVICE_MEMBER Bins(u32 bins, T low, T high) : stretch(1), first(0), last(bins - 1) {
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
  // at returns the bin of a value from low to high. Adding 2^52 leaves the whole part in the lower bits, faster than a conversion.
  DEVICE_MEMBER u32 at(T v) const {
    f64 scaled = sizeof(T) == 8 ? (f64)v * stretch : (f64)v;
    return smaller(first + (u32)bits_of(add_toward_zero((scaled - origin) * scale, 4503599627370496.0)), last);
  }
};

// add_counts calls result(bin, sum) for the sums of some blocks' counts, step blocks apart.
template <class F> DEVICE void add_counts(u32 size, u32 step, u32 bins, const u32 *parts, F result) {
  for (u32 b = thread_x(); b < bins; b += threads_x()) {
    u64 sum = 0;
    for (u32 from = 0; from < size; from += histogram_group) {
      u32 v[histogram_group];
#pragma unroll
      for (u32 k = 0; k < histogram_group; k++) {
        v[k] = 0;
        if (from + k < size) v[k] = parts[(from + k) * step * bins + b];
      }
#pragma unroll
      for (u32 k = 0; k < histogram_group; k++) sum += v[k];
    }
    result(b, sum);
  }
}

template <class T> DEVICE void histogram(i64 n, u32 bins, T low, T high, const T *x, i64 *out, void *scratch) {
  static __shared__ u32 count[most_bins];
  u64 *counters = (u64 *)scratch;
  u32 *parts = (u32 *)(counters + 12);
  // Few bins are counted in several copies, such that the lanes of a warp seldom meet in one.
  u32 shift = 0;
  while (1 << shift < histogram_copies && bins << (shift + 1) <= most_bins) shift++;
  u32 copies = 1u << shift, copy = thread_x() & (copies - 1);
  for (u32 b = thread_x(); b < bins << shift; b += threads_x()) count[b] = 0;
  barrier();
  Bins<T> even(bins, low, high);
  if (even.none) n = 0;
  auto take = [&](T v) {
    if (v >= low && v <= high) count_shared(count + ((even.at(v) << shift) + copy));
  };
  const int wide = 16 / sizeof(T), deep = 4;
  const pack<T> *packs = (const pack<T> *)x;
  i64 whole = ((u64)x & 15) == 0 ? n / wide : 0, step = index_step(), i = first_index();
#pragma unroll 1
  for (; i + (deep - 1) * step < whole; i += deep * step) {
    pack<T> v[deep];
#pragma unroll
    for (int u = 0; u < deep; u++) v[u] = packs[i + u * step];
#pragma unroll
    for (int u = 0; u < deep; u++)
#pragma unroll
      for (int k = 0; k < wide; k++) take(v[u].v[k]);
  }
#pragma unroll 1
  for (; i < whole; i += step) {
    pack<T> v = packs[i];
#pragma unroll
    for (int k = 0; k < wide; k++) take(v.v[k]);
  }
  for (i = whole * wide + first_index(); i < n; i += step) take(x[i]);
  barrier();
  for (u32 b = thread_x(); b < bins; b += threads_x()) {
    u32 sum = 0;
    for (u32 k = 0; k < copies; k++) sum += count[(b << shift) + (b + k) % copies];
    parts[block_x() * bins + b] = sum;
  }
  // Few counts are one group.
  u32 each = blocks_x() * bins <= few_counts ? blocks_x() : histogram_group;
  u32 group = block_x() / each, groups = (blocks_x() + each - 1) / each;
  u32 first = group * each, size = smaller(blocks_x() - first, each);
  if (!last_of(size, counters + 1 + group)) return;
  add_counts(size, 1, bins, parts + first * bins, [=](u32 b, u64 sum) {
    if (groups == 1) out[b] = (i64)sum;
    else parts[first * bins + b] = (u32)sum;
  });
  if (groups == 1 || !last_of(groups, counters)) return;
  add_counts(groups, each, bins, parts, [=](u32 b, u64 sum) { out[b] = (i64)sum; });
}
#define HISTOGRAM(t) extern "C" __global__ void __launch_bounds__(histogram_threads) dagrun_histogram_##t( \
    i64 n, i64 bins, t low, t high, const t *x, i64 *out, void *scratch) { \
  histogram(n, (u32)bins, low, high, x, out, scratch); \
}
HISTOGRAM(f32) HISTOGRAM(f64) HISTOGRAM(i32)
