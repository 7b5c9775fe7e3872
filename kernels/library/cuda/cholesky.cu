// Steps of a tiled Cholesky factorisation: the factor of a tile and the solve below it. (The updates are syrk and gemm.) Each element
// is updated in the order of columns, with one rounding per update, so that the blocking does not change the result.
#include "matrix.cuh"

const int threads = 256;

// One block: a = L * L^T, L in the lower triangle. Panels of width columns are kept in shared memory.
template <int width, class T, class L> DEVICE void potrf(i32 n, T *a, L ld) {
  static __shared__ T panel[512][width + 1];
  for (i32 from = 0; from < n; from += width) {
    i32 w = smaller(width, n - from), rows = n - from;
    T *corner = a + (i64)from * ld(n) + from;
    for (i32 i = thread_x(); i < rows * width; i += threads) {
      i32 r = i / width, c = i % width;
      if (c < w) panel[r][c] = corner[(i64)r * ld(n) + c];
    }
    barrier();
    for (i32 p = 0; p < w; p++) {
      T pivot = root(panel[p][p]);
      barrier();
      if (thread_x() == 0) panel[p][p] = pivot;
      for (i32 r = p + 1 + thread_x(); r < rows; r += threads) panel[r][p] = panel[r][p] / pivot;
      barrier();
      for (i32 i = thread_x(); i < rows * width; i += threads) {
        i32 r = i / width, c = i % width;
        if (c > p && c < w && r >= c) panel[r][c] = fused(-panel[r][p], panel[c][p], panel[r][c]);
      }
      barrier();
    }
    for (i32 i = thread_x(); i < rows * width; i += threads) {
      i32 r = i / width, c = i % width;
      if (c < w && r >= c) corner[(i64)r * ld(n) + c] = panel[r][c];
    }
    // The part right of the panel: 4 x 4 results per thread.
    i32 rest = rows - w, squares = (rest + 3) / 4;
    for (i32 q = thread_x(); q < squares * squares; q += threads) {
      i32 r0 = w + q / squares * 4, c0 = w + q % squares * 4;
      if (c0 > r0) continue;
      T acc[4][4];
#pragma unroll
      for (int i = 0; i < 4; i++)
#pragma unroll
        for (int j = 0; j < 4; j++) acc[i][j] = r0 + i < rows && c0 + j <= r0 + i ? corner[(i64)(r0 + i) * ld(n) + c0 + j] : (T)0;
      for (i32 p = 0; p < w; p++) {
        T x[4], y[4];
#pragma unroll
        for (int i = 0; i < 4; i++) {
          x[i] = r0 + i < rows ? panel[r0 + i][p] : (T)0;
          y[i] = c0 + i < rows ? panel[c0 + i][p] : (T)0;
        }
#pragma unroll
        for (int i = 0; i < 4; i++)
#pragma unroll
          for (int j = 0; j < 4; j++) acc[i][j] = fused(-x[i], y[j], acc[i][j]);
      }
#pragma unroll
      for (int i = 0; i < 4; i++)
#pragma unroll
        for (int j = 0; j < 4; j++)
          if (r0 + i < rows && c0 + j <= r0 + i) corner[(i64)(r0 + i) * ld(n) + c0 + j] = acc[i][j];
    }
    barrier();
  }
}
#define POTRF(t, width) extern "C" __global__ void __launch_bounds__(threads) dagrun_potrf_##t(i64 n, t *a) { potrf<width>((i32)n, a, Dense()); } \
extern "C" __global__ void __launch_bounds__(threads) dagrun_potrf_ld_##t(i64 n, t *a, i64 lda) { potrf<width>((i32)n, a, Apart{lda}); }
POTRF(f32, 16) POTRF(f64, 8)

// X * L^T = B, X replaces B. Each block solves some rows, in panels of 16 columns.
template <int own, bool apart, class T, class L> DEVICE void trsm(i64 m, i32 n, const T *l, L ldl, T *x, L ldx) {
  static __shared__ T rows[own][512], corner[16][17];
  for (i64 row = (i64)block_x() * own; row < m; row += (i64)blocks_x() * own) {
    i32 here = (i32)smaller((i64)own, m - row);
    for (i32 i = thread_x(); i < here * n; i += threads) rows[i / n][i % n] = x[apart ? (row + i / n) * ldx(n) + i % n : row * n + i];
    for (i32 from = 0; from < n; from += 16) {
      i32 w = smaller(16, n - from);
      barrier();
      for (i32 i = thread_x(); i < 256; i += threads)
        if (i / 16 < w && i % 16 < w) corner[i / 16][i % 16] = l[(i64)(from + i / 16) * ldl(n) + from + i % 16];
      barrier();
      i32 r = thread_x() / 16, c = thread_x() % 16;
      for (i32 p = 0; p < w; p++) {
        if (r < here && c == p) rows[r][from + p] = rows[r][from + p] / corner[p][p];
        barrier();
        if (r < here && c > p && c < w) rows[r][from + c] = fused(-rows[r][from + p], corner[c][p], rows[r][from + c]);
        barrier();
      }
      for (i32 j = from + w + thread_x(); j < n; j += threads) {
        T v[16];
#pragma unroll
        for (int p = 0; p < 16; p++) v[p] = p < w ? l[(i64)j * ldl(n) + from + p] : (T)0;
        for (i32 r = 0; r < here; r++) {
          T s = rows[r][j];
#pragma unroll
          for (int p = 0; p < 16; p++)
            if (p < w) s = fused(-rows[r][from + p], v[p], s);
          rows[r][j] = s;
        }
      }
    }
    barrier();
    for (i32 i = thread_x(); i < here * n; i += threads) x[apart ? (row + i / n) * ldx(n) + i % n : row * n + i] = rows[i / n][i % n];
    barrier();
  }
}
#define TRSM(t, own) extern "C" __global__ void __launch_bounds__(threads) dagrun_trsm_##t(i64 m, i64 n, const t *l, t *x) { trsm<own, false>(m, (i32)n, l, Dense(), x, Dense()); } \
extern "C" __global__ void __launch_bounds__(threads) dagrun_trsm_ld_##t(i64 m, i64 n, const t *l, t *x, i64 ldl, i64 ldx) { trsm<own, true>(m, (i32)n, l, Apart{ldl}, x, Apart{ldx}); }
TRSM(f32, 16) TRSM(f64, 8)
