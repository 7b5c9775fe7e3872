// Products of dense row-major matrices, and of matrices whose columns are standardised on the way. Kernels whose names have _ld take tiles: the
// elements from one row to the next come last.
#include "product.cuh"

#define MATMUL(name, way, types, ta_, t) KERNEL_BY(way, name##_##types)(i32 ta, i32 tb, i64 m, i64 n, i64 k, const ta_ *a, const t *b, t *c) { \
  multiply<t>(way(), ta, tb, m, n, k, a, Dense(), b, Dense(), AsItIs(), false, Plain<t, t, Dense>{c, Dense(), n}); \
}
#define MATMUL_LD(name, way, types, ta_, t) KERNEL_BY(way, name##_##types)(i32 ta, i32 tb, i64 m, i64 n, i64 k, const ta_ *a, const t *b, t *c, i64 lda, i64 ldb, i64 ldc) { \
  multiply<t>(way(), ta, tb, m, n, k, a, Apart{lda}, b, Apart{ldb}, AsItIs(), false, Plain<t, t, Apart>{c, Apart{ldc}, n}); \
}
#define MATMUL_STANDARDISED(name, way, types, ta_, t) KERNEL_BY(way, name##_##types)(i32 tb, i64 m, i64 n, i64 k, const ta_ *a, const t *mean, const t *inverse, const t *b, t *c) { \
  multiply<t>(way(), false, tb, m, n, k, a, Dense(), b, Dense(), Standardised<t>{mean, inverse, {}, {}}, false, Plain<t, t, Dense>{c, Dense(), n}); \
}
ALL_WAYS(MATMUL, matmul, f32_f32, f32, f32) SOME_WAYS(MATMUL_LD, matmul_ld, f32_f32, f32, f32)
ALL_WAYS(MATMUL, matmul, i32_f32, i32, f32) SOME_WAYS(MATMUL_LD, matmul_ld, i32_f32, i32, f32)
MATMUL(matmul, Small, f64_f64, f64, f64) MATMUL_LD(matmul_ld, Small, f64_f64, f64, f64)
ALL_WAYS(MATMUL_STANDARDISED, matmul_standardised, f32_f32, f32, f32) ALL_WAYS(MATMUL_STANDARDISED, matmul_standardised, i32_f32, i32, f32)
MATMUL_STANDARDISED(matmul_standardised, Small, f64_f64, f64, f64)
