// Products of dense row-major matrices, and of matrices whose columns are standardised on the way. Kernels whose names have _ld take tiles: the
// elements from one row to the next come last.
#include "product.cuh"

template <class S, class TA, class T, class LA, class LB, class LC> DEVICE void matmul(bool ta, bool tb, i64 m, i64 n, i64 k, const TA *a, LA lda, const T *b, LB ldb, T *c, LC ldc) {
  multiply<S>(ta, tb, m, n, k, a, lda, b, ldb, AsItIs(), false, Plain<S, T, LC>{c, ldc, n});
}
#define MATMUL(name, ta_, t, s) extern "C" __global__ void __launch_bounds__(threads, 1) dagrun_matmul_##name(i32 ta, i32 tb, i64 m, i64 n, i64 k, const ta_ *a, const t *b, t *c) { \
  matmul<s>(ta, tb, m, n, k, a, Dense(), b, Dense(), c, Dense()); \
} \
extern "C" __global__ void __launch_bounds__(threads, 1) dagrun_matmul_ld_##name(i32 ta, i32 tb, i64 m, i64 n, i64 k, const ta_ *a, const t *b, t *c, i64 lda, i64 ldb, i64 ldc) { \
  matmul<s>(ta, tb, m, n, k, a, Apart{lda}, b, Apart{ldb}, c, Apart{ldc}); \
}
MATMUL(f32_f32, f32, f32, f32) MATMUL(f64_f64, f64, f64, f64) MATMUL(i32_f32, i32, f32, f32)

#define MATMUL_STANDARDISED(name, ta_, t) extern "C" __global__ void __launch_bounds__(threads, 1) dagrun_matmul_standardised_##name(i32 tb, i64 m, i64 n, i64 k, const ta_ *a, const t *mean, const t *inverse, const t *b, t *c) { \
  multiply<t>(false, tb, m, n, k, a, Dense(), b, Dense(), Standardised<t>{mean, inverse, {}, {}}, false, Plain<t, t, Dense>{c, Dense(), n}); \
}
MATMUL_STANDARDISED(f32_f32, f32, f32) MATMUL_STANDARDISED(f64_f64, f64, f64) MATMUL_STANDARDISED(i32_f32, i32, f32)
