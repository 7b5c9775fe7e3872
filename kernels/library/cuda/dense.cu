// Dense row-major matrices: products, matrix times vector, transposition.
#include "warp.cuh"
#include "matrix.cuh"

DEVICE void warp_barrier() { asm volatile("bar.warp.sync 0xffffffff;" ::: "memory"); }

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

// At most 16 columns of results: one lane per two rows. Each warp moves its rows of a through shared memory of its own, so that it waits for
// no other, and loads the next step while the products of this one are computed. In a row there, units of 16 bytes are exchanged such that
// eight lanes meet no bank conflict when they store along rows, nor when each reads its own row.
const int narrow_own = 2, narrow_rows = 32 * narrow_own, narrow_depth = 16, narrow_units = narrow_depth / 4;
const int narrow_step = narrow_rows * narrow_depth, narrow_bytes = 16384; // elements of a that a warp holds; bytes of b, as many of its rows as fit

DEVICE int narrow_place(int row, int unit) { return (row * narrow_units + (unit ^ (row >> 1 & 3))) * 4; }

template <int wide, class C> DEVICE void narrow_products(const C *as, const C *bs, C (*acc)[wide]) {
  int lane = thread_x() & 31;
#pragma unroll
  for (int p = 0; p < narrow_units; p++) {
    four<C> x[narrow_own];
#pragma unroll
    for (int q = 0; q < narrow_own; q++) x[q] = *(const four<C> *)(as + narrow_place(lane + 32 * q, p));
#pragma unroll
    for (int e = 0; e < 4; e++)
#pragma unroll
      for (int j = 0; j < wide; j += 4) {
        four<C> y = *(const four<C> *)(bs + (p * 4 + e) * wide + j);
#pragma unroll
        for (int q = 0; q < narrow_own; q++)
#pragma unroll
          for (int f = 0; f < 4; f++) acc[q][j + f] = fused(x[q].v[e], y.v[f], acc[q][j + f]);
      }
  }
}

// wide is 12 or 16: the number of columns, rounded up.
template <int wide, class C, class TA, class LA, class TB, class LB, class S, class F>
DEVICE void narrow_product(bool tb, i64 m, i64 n, i64 k, const TA *a, LA lda, const TB *b, LB ldb, S see, C *memory, F finish) {
  typedef typename computed<TA>::type V;
  const int warps = threads / 32, loads = narrow_step / 128, apart = 32 / narrow_units;
  const i64 most = narrow_bytes / (int)sizeof(C) / wide / narrow_depth * narrow_depth;
  int lane = thread_x() & 31, warp = thread_x() >> 5, down = lane / narrow_units, along = lane % narrow_units * 4;
  C *as = memory + warp * narrow_step, *bs = memory + warps * narrow_step;
  bool whole = aligned_rows(a, lda(k));
  // A block's warps have neighbouring rows, unless there are so few rows that all are on their way at once: then blocks have neighbours.
  i64 step = (i64)blocks_x() * warps * narrow_rows;
  bool few = m <= step;
  i64 first = (i64)block_x() * (few ? narrow_rows : warps * narrow_rows), of_warp = (i64)warp * (few ? blocks_x() * narrow_rows : narrow_rows);
  V v[loads][4];
  auto load = [&](i64 row, i64 from) {
    row += of_warp + down;
    from += along;
    if (whole && row - down + narrow_rows <= m && from - along + narrow_depth <= k) {
      const TA *own = a + row * lda(k) + from;
#pragma unroll
      for (int u = 0; u < loads; u++) {
        four<TA> q = *(const four<TA> *)(own + u * (apart * lda(k)));
#pragma unroll
        for (int e = 0; e < 4; e++) v[u][e] = widen(q.v[e]);
      }
    } else {
#pragma unroll
      for (int u = 0; u < loads; u++) take(a, lda, row + u * apart, m, from, k, whole, v[u]);
    }
  };
  auto factors = [&](i64 from) {
    int count = (int)smaller(k - from, most) * wide;
    for (int id = thread_x(); id < count; id += threads) {
      int p = id / wide, j = id - p * wide;
      bs[id] = j < n ? (C)widen(tb ? b[j * ldb(k) + from + p] : b[(from + p) * ldb(n) + j]) : (C)0;
    }
  };
  bool at_once = k <= most;
  if (first < m) load(first, 0);
  if (at_once) factors(0);
  barrier();
  for (i64 base = first; base < m; base += step) {
    C acc[narrow_own][wide];
#pragma unroll
    for (int q = 0; q < narrow_own; q++)
#pragma unroll
      for (int j = 0; j < wide; j++) acc[q][j] = (C)0;
    i64 held = 0; // the first row of b in shared memory
    for (i64 from = 0; from < k; from += narrow_depth) {
      if (!at_once && from % most == 0) {
        barrier();
        factors(held = from);
        barrier();
      }
      see.columns(from + along, k);
      warp_barrier();
#pragma unroll
      for (int u = 0; u < loads; u++) {
        four<C> q;
#pragma unroll
        for (int e = 0; e < 4; e++) q.v[e] = see((C)v[u][e], e);
        *(four<C> *)(as + narrow_place(down + u * apart, along / 4)) = q;
      }
      warp_barrier();
      if (from + narrow_depth < k) load(base, from + narrow_depth);
      else if (base + step < m) load(base + step, 0);
      const C *factor = bs + (from - held) * wide;
      if (from + narrow_depth <= k) narrow_products<wide>(as, factor, acc);
      else {
#pragma unroll 1
        for (int p = 0; p < (int)(k - from); p++)
#pragma unroll
          for (int q = 0; q < narrow_own; q++) {
            C x = as[narrow_place(lane + 32 * q, p / 4) + p % 4];
#pragma unroll
            for (int j = 0; j < wide; j++) acc[q][j] = fused(x, factor[p * wide + j], acc[q][j]);
          }
      }
    }
    // The results go through shared memory, so that stores are contiguous.
    const int pitch = wide + 1, cols = (int)n, rows_on = 32 / cols, cols_on = 32 - rows_on * cols;
#pragma unroll
    for (int q = 0; q < narrow_own; q++) {
      i64 row = base + of_warp + 32 * q;
      warp_barrier();
#pragma unroll
      for (int j = 0; j < wide; j++) as[lane * pitch + j] = acc[q][j];
      warp_barrier();
      int count = (int)smaller(larger(m - row, (i64)0), (i64)32) * cols;
      for (int id = lane, r = lane / cols, j = lane % cols; id < count; id += 32) {
        finish(row + r, (i64)j, as[r * pitch + j]);
        r += rows_on;
        j += cols_on;
        if (j >= cols) {
          j -= cols;
          r++;
        }
      }
    }
  }
}

// Chooses one of the three ways by the same rule as multiplied() in table_dense.go.
template <class C, class TA, class LA, class TB, class LB, class S, class F>
DEVICE void multiply(bool ta, bool tb, i64 m, i64 n, i64 k, const TA *a, LA lda, const TB *b, LB ldb, S see, bool lower, F finish) {
  const int large = sizeof(C) == 4 ? 8 : 4;
  const bool narrows = sizeof(C) == 4;
  const int tiles_bytes = 4 * depth * (16 * large + 4) * sizeof(C), narrow_whole = threads / 32 * narrow_step * sizeof(C) + narrow_bytes;
  static_assert(narrow_step >= 32 * (16 + 1), "results take the place of a");
  alignas(16) static __shared__ char memory[narrows && narrow_whole > tiles_bytes ? narrow_whole : tiles_bytes];
  if (narrows && !lower && !ta && n <= 16) {
    if (n <= 12) return narrow_product<12>(tb, m, n, k, a, lda, b, ldb, see, (C *)memory, finish);
    narrow_product<16>(tb, m, n, k, a, lda, b, ldb, see, (C *)memory, finish);
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

// A warp computes two rows at once; element j of each is added to accumulator j % 128, of which each lane has four.
template <class T> DEVICE void gemv(i64 m, i64 n, T alpha, const T *a, const T *x, T beta, T *y) {
  const int own = 2;
  u32 lane = thread_x() & 31;
  bool whole = aligned_rows(a, n) && ((u64)x & (alignof(four<T>) - 1)) == 0;
  for (i64 row = (first_index() >> 5) * own; row < m; row += (index_step() >> 5) * own) {
    T s[own][4];
#pragma unroll
    for (int r = 0; r < own; r++)
#pragma unroll
      for (int e = 0; e < 4; e++) s[r][e] = (T)0;
    if (whole && row + own <= m) {
      const T *from = a + row * n;
#pragma unroll 2
      for (i64 j = lane * 4; j < n; j += 128) {
        four<T> q = *(const four<T> *)(x + j), p[own];
#pragma unroll
        for (int r = 0; r < own; r++) p[r] = *(const four<T> *)(from + r * n + j);
#pragma unroll
        for (int r = 0; r < own; r++)
#pragma unroll
          for (int e = 0; e < 4; e++) s[r][e] = fused(p[r].v[e], q.v[e], s[r][e]);
      }
    } else {
#pragma unroll 1
      for (i64 j = lane * 4; j < n; j += 128) {
        T q[4];
        fetch(x, Dense(), 0, 1, j, n, whole, q);
#pragma unroll
        for (int r = 0; r < own; r++) {
          T p[4];
          fetch(a, Dense(), row + r, m, j, n, whole, p);
#pragma unroll
          for (int e = 0; e < 4; e++) s[r][e] = fused(p[e], q[e], s[r][e]);
        }
      }
    }
    T mine = (T)0;
#pragma unroll
    for (int r = 0; r < own; r++) {
      T sum = (s[r][0] + s[r][1]) + (s[r][2] + s[r][3]);
#pragma unroll
      for (u32 half = 16; half > 0; half /= 2) sum = sum + from_lane(sum, (lane + half) & 31);
      sum = from_lane(sum, 0);
      if (lane == r) mine = sum;
    }
    if (lane < own && row + lane < m) y[row + lane] = beta == (T)0 ? alpha * mine : alpha * mine + beta * y[row + lane];
  }
}
#define GEMV(t, blocks) KERNEL_OF(blocks, gemv_##t)(i64 m, i64 n, t alpha, const t *a, const t *x, t beta, t *y) { gemv(m, n, alpha, a, x, beta, y); }
GEMV(f32, 4) GEMV(f64, 2)

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
