// Sparse matrices in compressed rows.
#include "warp.cuh"

// Offsets are relative to that of the first row, which is not 0 if the rows belong to a larger matrix.
// With up to 8 elements per row on average, each row has a thread with four gathers in flight; otherwise each row has a warp.
template <class V, class T>
DEVICE void spmv(i64 rows, i64 nnz, const i32 *offsets, const i32 *columns, const V *values, const T *x, T *y) {
  columns -= offsets[0];
  values -= offsets[0];
  if (nnz <= rows * 8) {
    for (i64 row = first_index(); row < rows; row += index_step()) {
      i32 from = offsets[row], to = offsets[row + 1];
      T sum = (T)0;
      for (i32 j = from; j < to; j += 4) {
        i32 c[4];
        T v[4], g[4];
#pragma unroll
        for (int u = 0; u < 4; u++)
          if (j + u < to) {
            c[u] = columns[j + u];
            v[u] = (T)values[j + u];
          }
#pragma unroll
        for (int u = 0; u < 4; u++)
          if (j + u < to) g[u] = x[c[u]];
#pragma unroll
        for (int u = 0; u < 4; u++)
          if (j + u < to) sum = fused(v[u], g[u], sum);
      }
      y[row] = sum;
    }
    return;
  }
  u32 lane = thread_x() & 31;
  for (i64 row = first_index() >> 5; row < rows; row += index_step() >> 5) {
    i32 to = offsets[row + 1];
    T sum = (T)0;
    for (i32 j = offsets[row] + (i32)lane; j < to; j += 32) sum = fused((T)values[j], x[columns[j]], sum);
#pragma unroll
    for (u32 half = 16; half > 0; half /= 2) sum = sum + from_lane(sum, (lane + half) & 31);
    if (lane == 0) y[row] = sum;
  }
}

#define SPMV(name, v, t) KERNEL(spmv_csr_##name)(i64 rows, i64 cols, i64 nnz, const i32 *offsets, const i32 *columns, const v *values, const t *x, t *y) { \
  spmv(rows, nnz, offsets, columns, values, x, y); \
}
SPMV(f32_f32, f32, f32) SPMV(i32_f32, i32, f32) SPMV(f64_f64, f64, f64)
