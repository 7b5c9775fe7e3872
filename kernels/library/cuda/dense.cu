// Dense row-major matrices: products added to others, matrix times vector, transposition.
#include "product.cuh"

// Kernels whose names have _ld take tiles: the elements from one row to the next come last.
#define GEMM(name, way, t, s) KERNEL_BY(way, name##_##t)(i32 ta, i32 tb, i64 m, i64 n, i64 k, s alpha, const t *a, const t *b, s beta, t *c) { \
  multiply<s>(way(), ta, tb, m, n, k, a, Dense(), b, Dense(), AsItIs(), false, Scaled<s, t, Dense>{{c, Dense(), n}, alpha, beta}); \
}
#define GEMM_LD(name, way, t, s) KERNEL_BY(way, name##_##t)(i32 ta, i32 tb, i64 m, i64 n, i64 k, s alpha, const t *a, const t *b, s beta, t *c, i64 lda, i64 ldb, i64 ldc) { \
  multiply<s>(way(), ta, tb, m, n, k, a, Apart{lda}, b, Apart{ldb}, AsItIs(), false, Scaled<s, t, Apart>{{c, Apart{ldc}, n}, alpha, beta}); \
}
ALL_WAYS(GEMM, gemm, f16, f32) SOME_WAYS(GEMM_LD, gemm_ld, f16, f32)
ALL_WAYS(GEMM, gemm, bf16, f32) SOME_WAYS(GEMM_LD, gemm_ld, bf16, f32)
ALL_WAYS(GEMM, gemm, f32, f32) SOME_WAYS(GEMM_LD, gemm_ld, f32, f32)
GEMM(gemm, Small, f64, f64) GEMM_LD(gemm_ld, Small, f64, f64)

#define SYRK(name, way, t) KERNEL_BY(way, name##_##t)(i64 n, i64 k, t alpha, const t *a, t beta, t *c) { \
  multiply<t>(way(), false, true, n, n, k, a, Dense(), a, Dense(), AsItIs(), true, Scaled<t, t, Dense>{{c, Dense(), n}, alpha, beta}); \
}
#define SYRK_LD(name, way, t) KERNEL_BY(way, name##_##t)(i64 n, i64 k, t alpha, const t *a, t beta, t *c, i64 lda, i64 ldc) { \
  multiply<t>(way(), false, true, n, n, k, a, Apart{lda}, a, Apart{lda}, AsItIs(), true, Scaled<t, t, Apart>{{c, Apart{ldc}, n}, alpha, beta}); \
}
SYRK(syrk, Small, f32) SYRK(syrk_large, Large, f32) SYRK_LD(syrk_ld, Small, f32) SYRK_LD(syrk_ld_large, Large, f32)
SYRK(syrk, Small, f64) SYRK_LD(syrk_ld, Small, f64)

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
