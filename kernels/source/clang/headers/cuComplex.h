// Complex numbers as pairs: the names and functions of CUDA's cuComplex.h.
#pragma once

typedef float2 cuFloatComplex;
typedef double2 cuDoubleComplex;
typedef cuFloatComplex cuComplex;

#define __DAGRUN_COMPLEX static __inline__ __attribute__((unused)) __host__ __device__

#define __DAGRUN_COMPLEX_OF(T, R, f, ABS, HYPOT, FMA)                                                       \
  __DAGRUN_COMPLEX T make_##T(R re, R im) {                                                                 \
    T z;                                                                                                    \
    z.x = re;                                                                                               \
    z.y = im;                                                                                               \
    return z;                                                                                               \
  }                                                                                                         \
  __DAGRUN_COMPLEX R cuCreal##f(T z) { return z.x; }                                                        \
  __DAGRUN_COMPLEX R cuCimag##f(T z) { return z.y; }                                                        \
  __DAGRUN_COMPLEX T cuConj##f(T z) { return make_##T(z.x, -z.y); }                                         \
  __DAGRUN_COMPLEX T cuCadd##f(T a, T b) { return make_##T(a.x + b.x, a.y + b.y); }                         \
  __DAGRUN_COMPLEX T cuCsub##f(T a, T b) { return make_##T(a.x - b.x, a.y - b.y); }                         \
  __DAGRUN_COMPLEX T cuCmul##f(T a, T b) { return make_##T(a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x); } \
  __DAGRUN_COMPLEX R cuCabs##f(T z) { return HYPOT(z.x, z.y); }                                             \
  /* Both are divided by the size of the divisor first, whose square could overflow. */                     \
  __DAGRUN_COMPLEX T cuCdiv##f(T a, T b) {                                                                  \
    R size = ABS(b.x) + ABS(b.y);                                                                           \
    R re = b.x / size, im = b.y / size, square = re * re + im * im;                                         \
    R x = a.x / size, y = a.y / size;                                                                       \
    return make_##T((x * re + y * im) / square, (y * re - x * im) / square);                                \
  }                                                                                                         \
  __DAGRUN_COMPLEX T cuCfma##f(T a, T b, T c) {                                                             \
    return make_##T(FMA(-a.y, b.y, FMA(a.x, b.x, c.x)), FMA(a.y, b.x, FMA(a.x, b.y, c.y)));                 \
  }

__DAGRUN_COMPLEX_OF(cuFloatComplex, float, f, fabsf, hypotf, fmaf)
__DAGRUN_COMPLEX_OF(cuDoubleComplex, double, , fabs, hypot, fma)
#undef __DAGRUN_COMPLEX_OF

__DAGRUN_COMPLEX cuComplex make_cuComplex(float re, float im) { return make_cuFloatComplex(re, im); }
__DAGRUN_COMPLEX cuDoubleComplex cuComplexFloatToDouble(cuFloatComplex z) { return make_cuDoubleComplex(z.x, z.y); }
__DAGRUN_COMPLEX cuFloatComplex cuComplexDoubleToFloat(cuDoubleComplex z) { return make_cuFloatComplex((float)z.x, (float)z.y); }
#undef __DAGRUN_COMPLEX
