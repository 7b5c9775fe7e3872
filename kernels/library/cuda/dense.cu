// Dense row-major matrices: products, matrix times vector, transposition.
#include "warp.cuh"
#include "matrix.cuh"

template <class T> struct alignas(4 * sizeof(T) > 16 ? 16 : 4 * sizeof(T)) four { T v[4]; };

// The left operand: the matrix itself, or the matrix with standardised columns. columns() names the four columns that take reads next.
struct AsItIs {
  DEVICE_MEMBER void columns(i64, i64) {}
  template <class C> DEVICE_MEMBER C operator()(C v, int) const { return v; }
};
template <class C> struct Standardised {
  const C *mean, *inverse;
  C m[4], s[4];
  DEVICE_MEMBER void columns(i64 col, i64 cols) {
#pragma unroll
    for (int k = 0; k < 4; k++) {
      m[k] = col + k < cols ? mean[col + k] : (C)0;
      s[k] = col + k < cols ? inverse[col + k] : (C)0;
    }
  }
  DEVICE_MEMBER C operator()(C v, int k) const { return (v - m[k]) * s[k]; }
};

// take reads four consecutive elements of a row, and zeros outside the matrix.
template <class T, class L> DEVICE void take(const T *p, L ld, i64 row, i64 rows, i64 col, i64 cols, bool aligned, typename computed<T>::type *to) {
  if (row < rows && aligned && col + 4 <= cols) {
    four<T> v = *(const four<T> *)(p + row * ld(cols) + col);
#pragma unroll
    for (int k = 0; k < 4; k++) to[k] = widen(v.v[k]);
    return;
  }
#pragma unroll
  for (int k = 0; k < 4; k++) to[k] = row < rows && col + k < cols ? widen(p[row * ld(cols) + col + k]) : (typename computed<T>::type)0;
}

template <class C, class T, class L, class S = AsItIs>
DEVICE void fetch(const T *p, L ld, i64 row, i64 rows, i64 col, i64 cols, bool aligned, C *to, S see = S()) {
  typename computed<T>::type v[4];
  take(p, ld, row, rows, col, cols, aligned, v);
  see.columns(col, cols);
#pragma unroll
  for (int k = 0; k < 4; k++) to[k] = see((C)v[k], k);
}

template <class T> DEVICE bool aligned_rows(const T *p, i64 ld) {
  return ((u64)p & (alignof(four<T>) - 1)) == 0 && ld % 4 == 0;
}

// A block's tile has side x side threads with own x own results each; depth columns of a and rows of b are processed at a time.
const int threads = 256, depth = 16;

// Every result sums its products in the order of k, with one rounding each, so the shape of the tile does not change the result. as and bs
// hold two steps each: while the products of one are computed, the loads of the next are in flight.
template <int own, class C, class TA, class LA, class TB, class LB, class S, class F>
DEVICE void tiled(bool ta, bool tb, i64 m, i64 n, i64 k, const TA *a, LA lda, const TB *b, LB ldb, S see, bool lower, C (*as)[16 * own + 4], C (*bs)[16 * own + 4], F finish) {
  const int tile = 16 * own, loads = tile * depth / 4 / threads;
  i64 columns = (n + tile - 1) / tile, tiles = (m + tile - 1) / tile * columns;
  // A warp computes 8 x 4 threads' results, which takes the fewest reads of shared memory.
  u32 lane = thread_x() & 31, warp = thread_x() >> 5;
  int ty = warp / 4 * 8 + lane / 4, tx = warp % 4 * 4 + lane % 4;
  // A thread loads four elements along a stored row, at these places of a step.
  int far = thread_x() / (tile / 4), near = thread_x() % (tile / 4) * 4, down = thread_x() / (depth / 4), along = thread_x() % (depth / 4) * 4;
  const int fars = threads / (tile / 4), downs = threads / (depth / 4);
  i64 row_a = lda(ta ? m : k), row_b = ldb(tb ? k : n), apart_a = (ta ? fars : downs) * row_a, apart_b = (tb ? downs : fars) * row_b;
  bool whole_a = aligned_rows(a, row_a), whole_b = aligned_rows(b, row_b);
  for (i64 t = block_x(); t < tiles; t += blocks_x()) {
    i64 row = t / columns * tile, col = t % columns * tile;
    if (lower && col >= row + tile) continue;
    C next_a[loads][4], next_b[loads][4], acc[own][own];
#pragma unroll
    for (int i = 0; i < own; i++)
#pragma unroll
      for (int j = 0; j < own; j++) acc[i][j] = (C)0;
    bool inside = whole_a && whole_b && row + tile <= m && col + tile <= n;
    const TA *from_a = a + (ta ? far * row_a + row + near : (row + down) * row_a + along);
    const TB *from_b = b + (tb ? (col + down) * row_b + along : far * row_b + col + near);
    auto load = [&](i64 from) {
      if (inside && from + depth <= k) {
        see.columns(from + along, k);
#pragma unroll
        for (int u = 0; u < loads; u++) {
          four<TA> v = *(const four<TA> *)(from_a + u * apart_a);
          four<TB> w = *(const four<TB> *)(from_b + u * apart_b);
#pragma unroll
          for (int e = 0; e < 4; e++) {
            next_a[u][e] = see((C)widen(v.v[e]), e);
            next_b[u][e] = (C)widen(w.v[e]);
          }
        }
        from_a += ta ? depth * row_a : depth;
        from_b += tb ? depth : depth * row_b;
        return;
      }
#pragma unroll
      for (int u = 0; u < loads; u++) {
        fetch(a, lda, ta ? from + far + u * fars : row + down + u * downs, ta ? k : m, ta ? row + near : from + along, ta ? m : k, whole_a, next_a[u], see);
        fetch(b, ldb, tb ? col + down + u * downs : from + far + u * fars, tb ? n : k, tb ? from + along : col + near, tb ? k : n, whole_b, next_b[u]);
      }
    };
    int stage = 0;
    auto store = [&]() {
#pragma unroll
      for (int u = 0; u < loads; u++)
#pragma unroll
        for (int e = 0; e < 4; e++) {
          as[stage + (ta ? far + u * fars : along + e)][ta ? near + e : down + u * downs] = next_a[u][e];
          bs[stage + (tb ? along + e : far + u * fars)][tb ? down + u * downs : near + e] = next_b[u][e];
        }
    };
    for (i64 from = 0;; from += depth) {
      if (from < k) load(from);
      if (from > 0)
#pragma unroll
        for (int p = 0; p < depth; p++) {
          four<C> x[own / 4], y[own / 4];
#pragma unroll
          for (int i = 0; i < own / 4; i++) x[i] = *(const four<C> *)&as[stage + p][i * 64 + ty * 4];
#pragma unroll
          for (int j = 0; j < own / 4; j++) y[j] = *(const four<C> *)&bs[stage + p][j * 64 + tx * 4];
#pragma unroll
          for (int i = 0; i < own; i++)
#pragma unroll
            for (int j = 0; j < own; j++) acc[i][j] = fused(x[i / 4].v[i % 4], y[j / 4].v[j % 4], acc[i][j]);
        }
      if (from >= k) break;
      stage ^= depth;
      store();
      barrier();
    }
    barrier();
#pragma unroll
    for (int i = 0; i < own; i++)
#pragma unroll
      for (int j = 0; j < own; j++) {
        i64 r = row + i / 4 * 64 + ty * 4 + i % 4, c = col + j / 4 * 64 + tx * 4 + j % 4;
        if (r < m && c < n && (!lower || c <= r)) finish(r, c, acc[i][j]);
      }
  }
}

// At most 16 columns of results: one thread per row. Tiles of a, and the results, go through shared memory so that global loads and
// stores are contiguous. The next tile is loaded while the products of this one are computed. The pitch avoids bank
// conflicts between a warp's stores.
const int narrow_columns = 16, narrow_depth = 32, narrow_pitch = threads + 2;

// wide is 12 or 16: the number of columns, rounded up.
template <int wide, class C> DEVICE void narrow_step(int deep, const C (*as)[narrow_pitch], const C (*bs)[narrow_columns], C *acc) {
#pragma unroll 4
  for (int p = 0; p < deep; p++) {
    C x = as[p][thread_x()];
    const four<C> *row_of_b = (const four<C> *)bs[p];
#pragma unroll
    for (int j = 0; j < wide; j += 4) {
      four<C> y = row_of_b[j / 4];
#pragma unroll
      for (int e = 0; e < 4; e++) acc[j + e] = fused(x, y.v[e], acc[j + e]);
    }
  }
}

template <int wide, class C, class TA, class LA, class TB, class LB, class S, class F>
DEVICE void narrow_product(bool tb, i64 m, i64 n, i64 k, const TA *a, LA lda, const TB *b, LB ldb, S see, C (*as)[narrow_pitch], C (*bs)[narrow_columns], F finish) {
  const int loads = narrow_depth / 4, apart = threads / loads, of_b = narrow_depth * narrow_columns / threads, apart_b = threads / narrow_columns;
  bool whole = aligned_rows(a, lda(k));
  int down = thread_x() / loads, along = thread_x() % loads * 4, own_p = thread_x() / narrow_columns, own_j = thread_x() % narrow_columns;
  for (i64 row = (i64)block_x() * threads; row < m; row += (i64)blocks_x() * threads) {
    C acc[wide], w[of_b];
    typename computed<TA>::type v[loads][4];
#pragma unroll
    for (int j = 0; j < wide; j++) acc[j] = (C)0;
    bool inside = whole && row + threads <= m;
    const TA *own = a + (row + down) * lda(k) + along;
    auto load = [&](i64 from) {
      if (inside && from + narrow_depth <= k) {
#pragma unroll
        for (int u = 0; u < loads; u++) {
          four<TA> q = *(const four<TA> *)(own + from + u * (apart * lda(k)));
#pragma unroll
          for (int e = 0; e < 4; e++) v[u][e] = widen(q.v[e]);
        }
      } else {
#pragma unroll
        for (int u = 0; u < loads; u++) take(a, lda, row + down + u * apart, m, from + along, k, whole, v[u]);
      }
#pragma unroll
      for (int u = 0; u < of_b; u++) {
        i64 at = from + own_p + u * apart_b;
        w[u] = at < k && own_j < n ? (C)widen(tb ? b[own_j * ldb(k) + at] : b[at * ldb(n) + own_j]) : (C)0;
      }
    };
    load(0);
    for (i64 from = 0; from < k; from += narrow_depth) {
      barrier();
      see.columns(from + along, k);
#pragma unroll
      for (int u = 0; u < loads; u++)
#pragma unroll
        for (int e = 0; e < 4; e++) as[along + e][down + u * apart] = see((C)v[u][e], e);
#pragma unroll
      for (int u = 0; u < of_b; u++) bs[own_p + u * apart_b][own_j] = w[u];
      barrier();
      if (from + narrow_depth < k) load(from + narrow_depth);
      narrow_step<wide>((int)smaller(k - from, (i64)narrow_depth), as, bs, acc);
    }
    barrier();
    const int pitch = narrow_columns + 1;
    C *results = bs[0];
#pragma unroll
    for (int j = 0; j < wide; j++) results[thread_x() * pitch + j] = acc[j];
    barrier();
    for (u32 id = thread_x(); id < threads * (u32)n; id += threads) {
      u32 r = id / (u32)n, j = id - r * (u32)n;
      if (row + r < m) finish(row + r, (i64)j, results[r * pitch + j]);
    }
    barrier();
  }
}

// Chooses one of the three ways by the same rule as multiplied() in table_dense.go.
template <class C, class TA, class LA, class TB, class LB, class S, class F>
DEVICE void multiply(bool ta, bool tb, i64 m, i64 n, i64 k, const TA *a, LA lda, const TB *b, LB ldb, S see, bool lower, F finish) {
  const int large = sizeof(C) == 4 ? 8 : 4;
  const int tiles_bytes = 4 * depth * (16 * large + 4) * sizeof(C), narrow_bytes = (narrow_depth * narrow_pitch + narrow_depth * narrow_columns) * sizeof(C);
  const bool narrows = sizeof(C) == 4;
  static_assert(narrow_depth * (narrow_columns + narrow_pitch) >= threads * (narrow_columns + 1), "results take the place of both tiles");
  alignas(16) static __shared__ char memory[narrows && narrow_bytes > tiles_bytes ? narrow_bytes : tiles_bytes];
  if (narrows && !lower && !ta && n <= narrow_columns) {
    C(*bs)[narrow_columns] = (C(*)[narrow_columns])memory;
    C(*as)[narrow_pitch] = (C(*)[narrow_pitch])(bs + narrow_depth);
    if (n <= 12) return narrow_product<12>(tb, m, n, k, a, lda, b, ldb, see, as, bs, finish);
    narrow_product<16>(tb, m, n, k, a, lda, b, ldb, see, as, bs, finish);
    return;
  }
  if (sizeof(C) == 4 && m > 64 && n > 64 && ((m + 127) / 128) * ((n + 127) / 128) >= 132) {
    C(*as)[16 * large + 4] = (C(*)[16 * large + 4])memory;
    tiled<large>(ta, tb, m, n, k, a, lda, b, ldb, see, lower, as, as + 2 * depth, finish);
    return;
  }
  C(*as)[68] = (C(*)[68])memory;
  tiled<4>(ta, tb, m, n, k, a, lda, b, ldb, see, lower, as, as + 2 * depth, finish);
}

// Kernels whose names have _ld take tiles: the elements from one row to the next come last.
template <class S, class T, class LA, class LB, class LC> DEVICE void gemm(bool ta, bool tb, i64 m, i64 n, i64 k, S alpha, const T *a, LA lda, const T *b, LB ldb, S beta, T *c, LC ldc) {
  multiply<S>(ta, tb, m, n, k, a, lda, b, ldb, AsItIs(), false, [=](i64 i, i64 j, S sum) {
    T *to = c + i * ldc(n) + j;
    narrow(*to, beta == (S)0 ? alpha * sum : alpha * sum + beta * widen(*to));
  });
}
#define GEMM(t, s) extern "C" __global__ void __launch_bounds__(threads, 1) dagrun_gemm_##t(i32 ta, i32 tb, i64 m, i64 n, i64 k, s alpha, const t *a, const t *b, s beta, t *c) { \
  gemm<s>(ta, tb, m, n, k, alpha, a, Dense(), b, Dense(), beta, c, Dense()); \
} \
extern "C" __global__ void __launch_bounds__(threads, 1) dagrun_gemm_ld_##t(i32 ta, i32 tb, i64 m, i64 n, i64 k, s alpha, const t *a, const t *b, s beta, t *c, i64 lda, i64 ldb, i64 ldc) { \
  gemm<s>(ta, tb, m, n, k, alpha, a, Apart{lda}, b, Apart{ldb}, beta, c, Apart{ldc}); \
}
GEMM(f16, f32) GEMM(bf16, f32) GEMM(f32, f32) GEMM(f64, f64)

template <class S, class TA, class T, class LA, class LB, class LC> DEVICE void matmul(bool ta, bool tb, i64 m, i64 n, i64 k, const TA *a, LA lda, const T *b, LB ldb, T *c, LC ldc) {
  multiply<S>(ta, tb, m, n, k, a, lda, b, ldb, AsItIs(), false, [=](i64 i, i64 j, S sum) { narrow(c[i * ldc(n) + j], sum); });
}
#define MATMUL(name, ta_, t, s) extern "C" __global__ void __launch_bounds__(threads, 1) dagrun_matmul_##name(i32 ta, i32 tb, i64 m, i64 n, i64 k, const ta_ *a, const t *b, t *c) { \
  matmul<s>(ta, tb, m, n, k, a, Dense(), b, Dense(), c, Dense()); \
} \
extern "C" __global__ void __launch_bounds__(threads, 1) dagrun_matmul_ld_##name(i32 ta, i32 tb, i64 m, i64 n, i64 k, const ta_ *a, const t *b, t *c, i64 lda, i64 ldb, i64 ldc) { \
  matmul<s>(ta, tb, m, n, k, a, Apart{lda}, b, Apart{ldb}, c, Apart{ldc}); \
}
MATMUL(f32_f32, f32, f32, f32) MATMUL(f64_f64, f64, f64, f64) MATMUL(i32_f32, i32, f32, f32)

#define MATMUL_STANDARDISED(name, ta_, t) extern "C" __global__ void __launch_bounds__(threads, 1) dagrun_matmul_standardised_##name(i32 tb, i64 m, i64 n, i64 k, const ta_ *a, const t *mean, const t *inverse, const t *b, t *c) { \
  multiply<t>(false, tb, m, n, k, a, Dense(), b, Dense(), Standardised<t>{mean, inverse, {}, {}}, false, [=](i64 i, i64 j, t sum) { c[i * n + j] = sum; }); \
}
MATMUL_STANDARDISED(f32_f32, f32, f32) MATMUL_STANDARDISED(f64_f64, f64, f64) MATMUL_STANDARDISED(i32_f32, i32, f32)

template <class T, class LA, class LC> DEVICE void syrk(i64 n, i64 k, T alpha, const T *a, LA lda, T beta, T *c, LC ldc) {
  multiply<T>(false, true, n, n, k, a, lda, a, lda, AsItIs(), true, [=](i64 i, i64 j, T sum) {
    T *to = c + i * ldc(n) + j;
    *to = beta == (T)0 ? alpha * sum : alpha * sum + beta * *to;
  });
}
#define SYRK(t) extern "C" __global__ void __launch_bounds__(threads, 1) dagrun_syrk_##t(i64 n, i64 k, t alpha, const t *a, t beta, t *c) { \
  syrk<t>(n, k, alpha, a, Dense(), beta, c, Dense()); \
} \
extern "C" __global__ void __launch_bounds__(threads, 1) dagrun_syrk_ld_##t(i64 n, i64 k, t alpha, const t *a, t beta, t *c, i64 lda, i64 ldc) { \
  syrk<t>(n, k, alpha, a, Apart{lda}, beta, c, Apart{ldc}); \
}
SYRK(f32) SYRK(f64)

// One warp per row; element j is added to accumulator j % 128, of which each lane has four.
#define GEMV(t) KERNEL(gemv_##t)(i64 m, i64 n, t alpha, const t *a, const t *x, t beta, t *y) { \
  u32 lane = thread_x() & 31; \
  bool whole = aligned_rows(a, n) && ((u64)x & (alignof(four<t>) - 1)) == 0; \
  for (i64 row = first_index() >> 5; row < m; row += index_step() >> 5) { \
    t s[4] = {0, 0, 0, 0}; \
    _Pragma("unroll 4") for (i64 j = lane * 4; j < n; j += 128) { \
      t p[4], q[4]; \
      fetch(a, Dense(), row, m, j, n, whole, p); \
      fetch(x, Dense(), 0, 1, j, n, whole, q); \
      _Pragma("unroll") for (int e = 0; e < 4; e++) s[e] = fused(p[e], q[e], s[e]); \
    } \
    t sum = (s[0] + s[1]) + (s[2] + s[3]); \
    _Pragma("unroll") for (u32 half = 16; half > 0; half /= 2) sum = sum + from_lane(sum, (lane + half) & 31); \
    if (lane == 0) y[row] = beta == (t)0 ? alpha * sum : alpha * sum + beta * y[row]; \
  } \
}
GEMV(f32) GEMV(f64)

template <class T, class L> DEVICE void transpose(i64 rows, i64 cols, const T *x, L ldx, T *y, L ldy) {
  static __shared__ T tile[32][33];
  i64 across = (cols + 31) / 32, tiles = (rows + 31) / 32 * across;
  u32 lane = thread_x() & 31, strip = thread_x() >> 5;
  for (i64 t = block_x(); t < tiles; t += blocks_x()) {
    i64 row = t / across * 32, col = t % across * 32;
#pragma unroll
    for (u32 k = 0, i = strip; k < 4; k++, i += 8)
      if (row + i < rows && col + lane < cols) tile[i][lane] = x[(row + i) * ldx(cols) + col + lane];
    barrier();
#pragma unroll
    for (u32 k = 0, i = strip; k < 4; k++, i += 8)
      if (col + i < cols && row + lane < rows) y[(col + i) * ldy(rows) + row + lane] = tile[lane][i];
    barrier();
  }
}
#define TRANSPOSE(t, m) KERNEL(transpose_##t)(i64 rows, i64 cols, const t *x, t *y) { transpose(rows, cols, (const m *)x, Dense(), (m *)y, Dense()); } \
KERNEL(transpose_ld_##t)(i64 rows, i64 cols, const t *x, t *y, i64 ldx, i64 ldy) { transpose(rows, cols, (const m *)x, Apart{ldx}, (m *)y, Apart{ldy}); }
TRANSPOSE(f16, u16) TRANSPOSE(bf16, u16) TRANSPOSE(f32, u32) TRANSPOSE(f64, u64) TRANSPOSE(i32, u32)
