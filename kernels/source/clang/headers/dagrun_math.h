// Mathematical functions, for float and double. exp, log, sin, cos, tanh and erf are those of dagrun's own kernels; floats are
// mostly computed as doubles and rounded once. Most errors are within a few units in the last place; those of the gamma functions are about 1e-12.
#pragma once

namespace __dagrun {
#include <dagrun_library/math.cuh>
}
#undef DEVICE
#undef DEVICE_MEMBER
#undef KERNEL
#undef INFINITY32
#undef NAN32
#undef INFINITY64
#undef NAN64

#define INFINITY __builtin_inff()
#define NAN __builtin_nanf("")
#define HUGE_VAL __builtin_inf()
#define HUGE_VALF __builtin_inff()
#include <dagrun_math_constants.h>

// __DAGRUN_FUNCTION(f) { ... } defines f for double, and for float from that, as f and as ff.
// An integer argument, and a float beside a double, are converted to double, as in C++.
#define __DAGRUN_WHOLE(name)                                                       \
  __DAGRUN_DEVICE double name(int x) { return name((double)x); }                   \
  __DAGRUN_DEVICE double name(unsigned x) { return name((double)x); }
#define __DAGRUN_MIXED_PAIR(name)                                                             \
  __DAGRUN_DEVICE double name(float x, double y) { return name((double)x, y); }               \
  __DAGRUN_DEVICE double name(double x, float y) { return name(x, (double)y); }               \
  __DAGRUN_DEVICE double name(int x, double y) { return name((double)x, y); }                 \
  __DAGRUN_DEVICE double name(int x, float y) { return name((double)x, (double)y); }          \
  __DAGRUN_DEVICE double name(int x, int y) { return name((double)x, (double)y); }
#define __DAGRUN_FUNCTION(name)                                                    \
  __DAGRUN_DEVICE double name(double x);                                           \
  __DAGRUN_WHOLE(name)                                                             \
  __DAGRUN_DEVICE float name##f(float x) { return (float)name((double)x); }        \
  __DAGRUN_DEVICE float name(float x) { return (float)name((double)x); }           \
  __DAGRUN_DEVICE double name(double x)
#define __DAGRUN_FUNCTION2(name)                                                                      \
  __DAGRUN_DEVICE double name(double x, double y);                                                    \
  __DAGRUN_MIXED_PAIR(name)                                                                           \
  __DAGRUN_DEVICE float name##f(float x, float y) { return (float)name((double)x, (double)y); }       \
  __DAGRUN_DEVICE float name(float x, float y) { return (float)name((double)x, (double)y); }          \
  __DAGRUN_DEVICE double name(double x, double y)
// Functions that the hardware or the compiler has for both types.
#define __DAGRUN_EXACT(name, built_in)                                             \
  __DAGRUN_DEVICE double name(double x) { return built_in(x); }                    \
  __DAGRUN_DEVICE float name##f(float x) { return built_in##f(x); }                \
  __DAGRUN_DEVICE float name(float x) { return built_in##f(x); }                   \
  __DAGRUN_WHOLE(name)

__DAGRUN_EXACT(fabs, __builtin_fabs)
__DAGRUN_EXACT(floor, __builtin_floor)
__DAGRUN_EXACT(ceil, __builtin_ceil)
__DAGRUN_EXACT(trunc, __builtin_trunc)
__DAGRUN_DEVICE double sqrt(double x) { return __nvvm_sqrt_rn_d(x); }
__DAGRUN_DEVICE float sqrtf(float x) { return __nvvm_sqrt_rn_f(x); }
__DAGRUN_DEVICE float sqrt(float x) { return __nvvm_sqrt_rn_f(x); }
__DAGRUN_WHOLE(sqrt)
__DAGRUN_DEVICE double fma(double a, double b, double c) { return __nvvm_fma_rn_d(a, b, c); }
__DAGRUN_DEVICE float fmaf(float a, float b, float c) { return __nvvm_fma_rn_f(a, b, c); }
__DAGRUN_DEVICE float fma(float a, float b, float c) { return __nvvm_fma_rn_f(a, b, c); }
__DAGRUN_DEVICE double rint(double x) {
  double r;
  asm("cvt.rni.f64.f64 %0, %1;" : "=d"(r) : "d"(x));
  return r;
}
__DAGRUN_DEVICE float rintf(float x) {
  float r;
  asm("cvt.rni.f32.f32 %0, %1;" : "=f"(r) : "f"(x));
  return r;
}
__DAGRUN_DEVICE float rint(float x) { return rintf(x); }
__DAGRUN_FUNCTION(nearbyint) { return rint(x); }
__DAGRUN_DEVICE double copysign(double x, double y) { return __builtin_copysign(x, y); }
__DAGRUN_DEVICE float copysignf(float x, float y) { return __builtin_copysignf(x, y); }
__DAGRUN_DEVICE float copysign(float x, float y) { return __builtin_copysignf(x, y); }
__DAGRUN_DEVICE double fmin(double a, double b) { return __nvvm_fmin_d(a, b); }
__DAGRUN_DEVICE float fminf(float a, float b) { return __nvvm_fmin_f(a, b); }
__DAGRUN_DEVICE float fmin(float a, float b) { return __nvvm_fmin_f(a, b); }
__DAGRUN_DEVICE double fmax(double a, double b) { return __nvvm_fmax_d(a, b); }
__DAGRUN_DEVICE float fmaxf(float a, float b) { return __nvvm_fmax_f(a, b); }
__DAGRUN_DEVICE float fmax(float a, float b) { return __nvvm_fmax_f(a, b); }
__DAGRUN_MIXED_PAIR(fmin)
__DAGRUN_MIXED_PAIR(fmax)

__DAGRUN_DEVICE double nan(const char *) { return __builtin_nan(""); }
__DAGRUN_DEVICE float nanf(const char *) { return __builtin_nanf(""); }
template <class T> __DAGRUN_BOTH bool isnan(T x) { return __builtin_isnan((double)x); }
template <class T> __DAGRUN_BOTH bool isinf(T x) { return __builtin_fabs((double)x) == __builtin_inf(); }
template <class T> __DAGRUN_BOTH bool isfinite(T x) { return __builtin_fabs((double)x) < __builtin_inf(); }
template <class T> __DAGRUN_BOTH bool signbit(T x) { return __builtin_copysign(1.0, (double)x) < 0; }

// A sum and a product that no compiler fuses with another operation.
__DAGRUN_DEVICE double __dagrun_plus(double a, double b) {
  double r;
  asm("add.rn.f64 %0, %1, %2;" : "=d"(r) : "d"(a), "d"(b));
  return r;
}
__DAGRUN_DEVICE double __dagrun_times(double a, double b) {
  double r;
  asm("mul.rn.f64 %0, %1, %2;" : "=d"(r) : "d"(a), "d"(b));
  return r;
}
// The rounded sum of a and b with its rounding error, and the same for the product.
__DAGRUN_DEVICE double __dagrun_sum(double a, double b, double &rest) {
  double s = __dagrun_plus(a, b), t = __dagrun_plus(s, -a);
  rest = __dagrun_plus(__dagrun_plus(a, -__dagrun_plus(s, -t)), __dagrun_plus(b, -t));
  return s;
}
__DAGRUN_DEVICE double __dagrun_product(double a, double b, double &rest) {
  double p = __dagrun_times(a, b);
  rest = fma(a, b, -p);
  return p;
}
__DAGRUN_DEVICE double __dagrun_scaled(double x, int n) {
  int first = n / 2;
  first = first < -1000 ? -1000 : first > 1000 ? 1000 : first;
  int second = (n - first) / 2;
  second = second < -1000 ? -1000 : second > 1000 ? 1000 : second;
  int third = n - first - second;
  third = third < -1000 ? -1000 : third > 1000 ? 1000 : third;
  return x * __dagrun::power_of_two(x, first) * __dagrun::power_of_two(x, second) * __dagrun::power_of_two(x, third);
}

__DAGRUN_FUNCTION(exp) { return __dagrun::exponential(x); }
__DAGRUN_FUNCTION(log) { return __dagrun::logarithm(x); }
__DAGRUN_FUNCTION(log2) { return __dagrun::logarithm2(x); }
__DAGRUN_FUNCTION(sin) { return __dagrun::sine(x); }
__DAGRUN_FUNCTION(cos) { return __dagrun::cosine(x); }
__DAGRUN_FUNCTION(tanh) { return __dagrun::hyperbolic_tangent(x); }
__DAGRUN_FUNCTION(erf) { return __dagrun::error_function(x); }
__DAGRUN_FUNCTION(log10) {
  double l = log(x), lost;
  if (x == 10.0) return 1.0;
  double p = __dagrun_product(l, M_LOG10E, lost);
  return isfinite(p) ? p + fma(l, 1.098319650216765e-17, lost) : l;
}
__DAGRUN_FUNCTION(tan) {
  double s, c;
  __dagrun::sine_cosine(x, s, c);
  return s / c;
}
__DAGRUN_DEVICE void sincos(double x, double *s, double *c) { __dagrun::sine_cosine(x, *s, *c); }
__DAGRUN_DEVICE void sincosf(float x, float *s, float *c) {
  double a, b;
  __dagrun::sine_cosine((double)x, a, b);
  *s = (float)a;
  *c = (float)b;
}
__DAGRUN_DEVICE void sincos(float x, float *s, float *c) { sincosf(x, s, c); }
__DAGRUN_DEVICE double __dagrun_turns(double x, double &c) { // sine and cosine of pi*x
  double k = rint(2.0 * x), s, r = fma(k, -0.5, x) * M_PI;
  __dagrun::sine_cosine_near(r, s, c);
  __dagrun::turn((int)(k - 4.0 * floor(k * 0.25)), s, c);
  return s;
}
__DAGRUN_FUNCTION(sinpi) { double c; return isfinite(x) ? x == floor(x) ? copysign(0.0, x) : __dagrun_turns(x, c) : x - x; }
__DAGRUN_FUNCTION(cospi) { double c; if (!isfinite(x)) return x - x; __dagrun_turns(x, c); return x - 0.5 == floor(x) ? 0.0 : c; }
__DAGRUN_DEVICE void sincospi(double x, double *s, double *c) { *s = sinpi(x); *c = cospi(x); }
__DAGRUN_DEVICE void sincospif(float x, float *s, float *c) { *s = sinpif(x); *c = cospif(x); }

// The logarithm of x > 0 as a sum of two doubles: the plain logarithm, improved by one step of Newton's method.
static __attribute__((device)) double __dagrun_log_exactly(double x, double &rest) {
  int e = 0;
  if (x < 2.2250738585072014e-308) {
    x *= 18014398509481984.0;
    e = -54;
  }
  long long b = __double_as_longlong(x) - 0x3fe6a09e667f3bcdll;
  e += (int)(b >> 52);
  double m = __longlong_as_double((b & 0xfffffffffffffll) + 0x3fe6a09e667f3bcdll);
  // log m = 2 atanh((m-1)/(m+1)), its argument as a sum of two.
  double f = m - 1.0, more, d = __dagrun_sum(m, 1.0, more), s = f / d;
  double s_rest = (fma(-s, d, f) - s * more) / d;
  double z_rest, z = __dagrun_product(s, s, z_rest);
  z_rest += 2.0 * s * s_rest;
  double p = 1.0 / 23;
#pragma unroll
  for (int i = 21; i >= 5; i -= 2) p = fma(p, z, 1.0 / i);
  // 1/3 z + p z^2, then 2 s (1 + that).
  double t_rest, t = __dagrun_product(z, 1.0 / 3, t_rest);
  t_rest += z * 1.850371707708594e-17 + z_rest * (1.0 / 3);
  double q = p * z * z, u_rest, u = __dagrun_sum(t, q, u_rest);
  u_rest += t_rest;
  double v_rest, v = __dagrun_product(s, u, v_rest);
  v_rest += s * u_rest + s_rest * u;
  double w_rest, w = __dagrun_sum(s, v, w_rest);
  w_rest += v_rest + s_rest;
  double k_rest, k = __dagrun_product((double)e, 0x1.62e42fefa39efp-1, k_rest);
  k_rest = fma((double)e, 0x1.abc9e3b39803fp-56, k_rest);
  double l_rest, l = __dagrun_sum(k, 2.0 * w, l_rest);
  rest = l_rest + k_rest + 2.0 * w_rest;
  return l;
}

__DAGRUN_FUNCTION2(pow) {
  if (x == 1.0 || y == 0.0) return 1.0;
  if (x != x || y != y) return x + y;
  double size = fabs(y), a = fabs(x);
  bool whole = size >= 4503599627370496.0 || floor(y) == y;
  bool odd = whole && size < 9007199254740992.0 && ((long long)size & 1);
  if (a == 0.0 || a == INFINITY) {
    double r = (a == 0.0) == (y < 0.0) ? (double)INFINITY : 0.0;
    return odd ? copysign(r, x) : r;
  }
  if (size == INFINITY) return a == 1.0 ? 1.0 : (a > 1.0) == (y > 0.0) ? (double)INFINITY : 0.0;
  if (x < 0.0 && !whole) return NAN;
  double low, high = __dagrun_log_exactly(a, low), p_low, p = __dagrun_product(high, y, p_low);
  p_low = fma(low, y, p_low);
  double r;
  if (!(p < 800.0)) r = INFINITY;
  else if (!(p > -800.0)) r = 0.0;
  else {
    double t = fma(p, 1.4426950408889634, 6755399441055744.0), k = t - 6755399441055744.0;
    double e = fma(-k, 0x1.62e42fee00000p-1, p), rest;
    e = __dagrun_sum(e, fma(-k, 0x1.a39ef35793c76p-33, p_low), rest);
    double g = exp(e);
    r = __dagrun_scaled(fma(g, rest, g), (int)k);
  }
  return x < 0.0 && odd ? -r : r;
}
__DAGRUN_DEVICE double pow(double x, int n) { return pow(x, (double)n); }
__DAGRUN_DEVICE float pow(float x, int n) { return powf(x, (float)n); }
__DAGRUN_DEVICE double powi(double x, int n) { return pow(x, (double)n); }
__DAGRUN_DEVICE float powif(float x, int n) { return powf(x, (float)n); }

__DAGRUN_FUNCTION(exp2) {
  if (!(x > -1080.0)) return x != x ? x : 0.0;
  if (x > 1025.0) return INFINITY;
  double k = rint(x);
  return __dagrun_scaled(exp((x - k) * M_LN2), (int)k);
}
__DAGRUN_FUNCTION(exp10) {
  if (!(x > -330.0)) return x != x ? x : 0.0;
  if (x > 310.0) return INFINITY;
  double k = rint(x * 3.3219280948873623), r = fma(-k, 0x1.34413509f79ffp-2, x);
  r = fma(k, 0x1.9dc1da994fd21p-59, r);
  return __dagrun_scaled(exp(r * M_LN10), (int)k);
}
// exp(x)-1 by its series where the difference would cancel; log(1+x), corrected for the rounding of 1+x.
__DAGRUN_FUNCTION(expm1) {
  if (!(fabs(x) < 0.35)) return exp(x) - 1.0;
  double p = 1.0;
#pragma unroll
  for (int i = 18; i >= 3; i--) p = fma(p, x * (1.0 / i), 1.0);
  return fma(x * x * 0.5, p, x);
}
__DAGRUN_FUNCTION(log1p) {
  if (x <= -1.0 || !(x < 1e300)) return log(1.0 + x);
  double u = 1.0 + x;
  return u == 1.0 ? x : fma((x - (u - 1.0)), 1.0 / u, log(u));
}
__DAGRUN_FUNCTION(sinh) {
  double a = fabs(x), e;
  if (a > 700.0) { e = exp(a * 0.5); return copysign(0.5 * e * e, x); }
  e = expm1(a);
  return x == 0.0 ? x : copysign(0.5 * (e + e / (e + 1.0)), x);
}
__DAGRUN_FUNCTION(cosh) {
  double a = fabs(x), e;
  if (a > 700.0) { e = exp(a * 0.5); return 0.5 * e * e; }
  e = exp(a);
  return 0.5 * e + 0.5 / e;
}
__DAGRUN_FUNCTION(asinh) {
  double a = fabs(x), r = a > 1e9 ? log(a) + M_LN2 : log1p(a + a * a / (1.0 + sqrt(fma(a, a, 1.0))));
  return copysign(r, x);
}
__DAGRUN_FUNCTION(acosh) {
  double t = x - 1.0;
  return x > 1e9 ? log(x) + M_LN2 : log1p(t + sqrt(fma(t, t, 2.0 * t)));
}
__DAGRUN_FUNCTION(atanh) {
  double a = fabs(x);
  return copysign(0.5 * log1p(2.0 * a / (1.0 - a)), x);
}

// atan of an x from 0 to 1: a short series around the nearest of nine points.
__DAGRUN_DEVICE double __dagrun_atan(double x) {
  const double at[9] = {0.0, 0x1.fd5ba9aac2f6ep-4, 0x1.f5b75f92c80ddp-3, 0x1.6f61941e4def1p-2, 0x1.dac670561bb4fp-2,
                        0x1.1e00babdefeb4p-1, 0x1.4978fa3269ee1p-1, 0x1.700a7c5784634p-1, 0x1.921fb54442d18p-1};
  int k = (int)(x * 8.0 + 0.5);
  double c = k * 0.125, t = (x - c) / fma(x, c, 1.0), z = t * t, p = -1.0 / 15;
  p = fma(p, z, 1.0 / 13);
  p = fma(p, z, -1.0 / 11);
  p = fma(p, z, 1.0 / 9);
  p = fma(p, z, -1.0 / 7);
  p = fma(p, z, 1.0 / 5);
  p = fma(p, z, -1.0 / 3);
  return at[k] + fma(p * z, t, t);
}
__DAGRUN_FUNCTION(atan) {
  double a = fabs(x), r = a <= 1.0 ? __dagrun_atan(a) : (M_PI_2 - __dagrun_atan(1.0 / a)) + 6.123233995736766e-17;
  return x != x ? x : copysign(r, x);
}
__DAGRUN_FUNCTION2(atan2) {
  double y_ = x, x_ = y, a = fabs(y_), b = fabs(x_), r;
  if (a != a || b != b) return a + b;
  if (a == INFINITY && b == INFINITY) r = M_PI_4;
  else if (a == 0.0 && b == 0.0) r = 0.0;
  else r = a <= b ? __dagrun_atan(a / b) : (M_PI_2 - __dagrun_atan(b / a)) + 6.123233995736766e-17;
  if (signbit(x_)) r = (M_PI - r) + 1.2246467991473532e-16;
  return copysign(r, y_);
}
__DAGRUN_FUNCTION(asin) { return atan2(x, sqrt((1.0 - x) * (1.0 + x))); }
__DAGRUN_FUNCTION(acos) { return fabs(x) <= 1.0 ? 2.0 * atan2(sqrt(1.0 - x), sqrt(1.0 + x)) : NAN; }

__DAGRUN_FUNCTION(cbrt) {
  double a = fabs(x);
  if (a == 0.0 || !isfinite(x)) return x;
  double r = exp(log(a) / 3.0);
  r -= (r - a / r / r) / 3.0;
  return copysign(r, x);
}
__DAGRUN_FUNCTION(rsqrt) { return 1.0 / sqrt(x); }
__DAGRUN_FUNCTION(rcbrt) { return 1.0 / cbrt(x); }
__DAGRUN_FUNCTION2(hypot) {
  double a = fmax(fabs(x), fabs(y)), b = fmin(fabs(x), fabs(y));
  if (a == INFINITY || a == 0.0) return a;
  if (x != x || y != y) return x + y;
  double scale = a > 1e150 ? 0x1p-600 : a < 1e-150 ? 0x1p600 : 1.0;
  a *= scale;
  b *= scale;
  return sqrt(fma(a, a, b * b)) / scale;
}
__DAGRUN_FUNCTION2(rhypot) { return 1.0 / hypot(x, y); }
__DAGRUN_DEVICE double norm3d(double a, double b, double c) { return hypot(hypot(a, b), c); }
__DAGRUN_DEVICE float norm3df(float a, float b, float c) { return (float)norm3d(a, b, c); }
__DAGRUN_DEVICE double rnorm3d(double a, double b, double c) { return 1.0 / norm3d(a, b, c); }
__DAGRUN_DEVICE float rnorm3df(float a, float b, float c) { return (float)rnorm3d(a, b, c); }
__DAGRUN_FUNCTION2(fdim) { return x > y ? x - y : x <= y ? 0.0 : x + y; }

// The remainder by long division, bit by bit, which is exact.
__DAGRUN_FUNCTION2(fmod) {
  double a = fabs(x), b = fabs(y);
  if (x != x || y != y || a == INFINITY || b == 0.0) return NAN;
  if (b == INFINITY || a < b) return x;
  double d = b;
  while (d <= a * 0.5) d += d;
  for (; d >= b; d *= 0.5)
    if (a >= d) a -= d;
  return copysign(a, x);
}
__DAGRUN_FUNCTION2(remainder) {
  double b = fabs(y), r = b < 8.98846567431158e307 ? fmod(x, 2.0 * b) : x, a = fabs(r);
  if (x != x || y != y || b == 0.0 || fabs(x) == INFINITY) return NAN;
  double h = 0.5 * b;
  if (a > h || (b < 1e-300 && a + a > b)) {
    a -= b;
    if (a >= h) a -= b;
  }
  return signbit(r) ? -a : a;
}
__DAGRUN_FUNCTION(round) {
  double t = trunc(x);
  return copysign(fabs(x - t) >= 0.5 ? t + copysign(1.0, x) : t, x);
}
__DAGRUN_DEVICE long lrint(double x) { return (long)rint(x); }
__DAGRUN_DEVICE long lrintf(float x) { return (long)rintf(x); }
__DAGRUN_DEVICE long long llrint(double x) { return (long long)rint(x); }
__DAGRUN_DEVICE long long llrintf(float x) { return (long long)rintf(x); }
__DAGRUN_DEVICE long lround(double x) { return (long)round(x); }
__DAGRUN_DEVICE long lroundf(float x) { return (long)roundf(x); }
__DAGRUN_DEVICE long long llround(double x) { return (long long)round(x); }
__DAGRUN_DEVICE long long llroundf(float x) { return (long long)roundf(x); }
__DAGRUN_DEVICE double ldexp(double x, int n) { return __dagrun_scaled(x, n < -3000 ? -3000 : n > 3000 ? 3000 : n); }
__DAGRUN_DEVICE float ldexpf(float x, int n) { return (float)ldexp((double)x, n); }
__DAGRUN_DEVICE float ldexp(float x, int n) { return ldexpf(x, n); }
__DAGRUN_DEVICE double scalbn(double x, int n) { return ldexp(x, n); }
__DAGRUN_DEVICE float scalbnf(float x, int n) { return ldexpf(x, n); }
__DAGRUN_DEVICE double frexp(double x, int *exponent) {
  *exponent = 0;
  if (x == 0.0 || !isfinite(x)) return x;
  int less = 0;
  if (fabs(x) < 2.2250738585072014e-308) {
    x *= 18014398509481984.0;
    less = 54;
  }
  long long b = __double_as_longlong(x);
  *exponent = (int)(b >> 52 & 0x7ff) - 1022 - less;
  return __longlong_as_double((b & ~(0x7ffll << 52)) | 1022ll << 52);
}
__DAGRUN_DEVICE float frexpf(float x, int *exponent) { return (float)frexp((double)x, exponent); }
__DAGRUN_FUNCTION(logb) {
  int e;
  if (x == 0.0) return -INFINITY;
  if (!isfinite(x)) return fabs(x);
  frexp(x, &e);
  return e - 1;
}
__DAGRUN_DEVICE int ilogb(double x) { return (int)logb(x); }
__DAGRUN_DEVICE int ilogbf(float x) { return (int)logb((double)x); }
__DAGRUN_DEVICE double modf(double x, double *whole) {
  *whole = trunc(x);
  return copysign(fabs(x) == INFINITY ? 0.0 : x - *whole, x);
}
__DAGRUN_DEVICE float modff(float x, float *whole) {
  *whole = truncf(x);
  return copysignf(fabsf(x) == INFINITY ? 0.0f : x - *whole, x);
}
__DAGRUN_DEVICE double nextafter(double x, double y) {
  if (x != x || y != y) return x + y;
  if (x == y) return y;
  if (x == 0.0) return copysign(4.9406564584124654e-324, y);
  long long b = __double_as_longlong(x);
  return __longlong_as_double((x < y) == (x > 0.0) ? b + 1 : b - 1);
}
__DAGRUN_DEVICE float nextafterf(float x, float y) {
  if (x != x || y != y) return x + y;
  if (x == y) return y;
  if (x == 0.0f) return copysignf(1.40129846432481707e-45f, y);
  int b = __float_as_int(x);
  return __int_as_float((x < y) == (x > 0.0f) ? b + 1 : b - 1);
}
__DAGRUN_DEVICE float fdividef(float a, float b) { return a / b; }
__DAGRUN_DEVICE float fdivide(float a, float b) { return a / b; }

// erfc: a continued fraction where 1-erf would cancel.
__DAGRUN_FUNCTION(erfc) {
  if (x < 1.0) return 1.0 - erf(x);
  if (!(x < 28.0)) return x != x ? x : 0.0;
  double f = x;
  for (int i = x < 2.0 ? 260 : 60; i > 0; i--) f = x + 0.5 * i / f;
  double low, square = __dagrun_product(x, x, low);
  return exp(-square) * (1.0 - low) * 0.56418958354775628695 / f;
}
__DAGRUN_FUNCTION(erfcx) { return x < 25.0 ? exp(x * x) * erfc(x) : 0.56418958354775628695 / x * (1.0 - 0.5 / (x * x)); }
__DAGRUN_FUNCTION(normcdf) { return 0.5 * erfc(-x * M_SQRT1_2); }
// The inverses start from an estimate by the tail of the normal distribution and take a few steps of Halley's method.
__DAGRUN_FUNCTION(erfcinv) {
  if (!(x > 0.0 && x < 2.0)) return x == 0.0 ? (double)INFINITY : x == 2.0 ? -(double)INFINITY : (double)NAN;
  double a = x > 1.0 ? 2.0 - x : x, l = log(a * (2.0 - a)), t = 4.330746750799873 + 0.5 * l, y = sqrt(sqrt(fma(t, t, -l / 0.147)) - t);
#pragma unroll 1
  for (int i = 0; i < 5; i++) {
    double d = (erfc(y) - a) / (M_2_SQRTPI * exp(-y * y));
    y += d / (1.0 - y * d);
  }
  return x > 1.0 ? -y : y;
}
__DAGRUN_FUNCTION(erfinv) {
  double a = fabs(x);
  if (!(a < 1.0)) return a == 1.0 ? copysign((double)INFINITY, x) : NAN;
  if (a > 0.5) return copysign(erfcinv(1.0 - a), x);
  double y = a * 0.88622692545275801365;
#pragma unroll 1
  for (int i = 0; i < 5; i++) {
    double d = (a - erf(y)) / (M_2_SQRTPI * exp(-y * y));
    y += d / (1.0 + y * d);
  }
  return copysign(y, x);
}
__DAGRUN_FUNCTION(normcdfinv) { return -M_SQRT2 * erfcinv(2.0 * x); }

// Gamma by Lanczos's approximation with g = 7.
__DAGRUN_DEVICE double __dagrun_lanczos(double x) {
  const double c[9] = {0.99999999999980993, 676.5203681218851, -1259.1392167224028, 771.32342877765313, -176.61502916214059,
                       12.507343278686905, -0.13857109526572012, 9.9843695780195716e-6, 1.5056327351493116e-7};
  double sum = c[0];
#pragma unroll
  for (int i = 1; i < 9; i++) sum += c[i] / (x + i);
  return sum;
}
__DAGRUN_DEVICE double __dagrun_gamma(double x) { // x >= 0.5
  double y = x - 1.0, t = y + 7.5, p = pow(t, 0.5 * (y + 0.5));
  return 2.5066282746310002 * p * exp(-t) * p * __dagrun_lanczos(y);
}
__DAGRUN_FUNCTION(tgamma) {
  if (x == 0.0) return 1.0 / x;
  if (x < 0.5) return x == floor(x) ? NAN : M_PI / (sinpi(x) * __dagrun_gamma(1.0 - x));
  return x > 172.0 ? (double)INFINITY : __dagrun_gamma(x);
}
__DAGRUN_FUNCTION(lgamma) {
  if (x <= 0.0 && x == floor(x)) return INFINITY;
  double y = (x < 0.5 ? 1.0 - x : x) - 1.0, t = y + 7.5;
  double l = fma(y + 0.5, log(t), 0.91893853320467274178 - t) + log(__dagrun_lanczos(y));
  return x < 0.5 ? log(M_PI / fabs(sinpi(x))) - l : l;
}
#undef __DAGRUN_WHOLE
#undef __DAGRUN_MIXED_PAIR
#undef __DAGRUN_FUNCTION
#undef __DAGRUN_FUNCTION2
#undef __DAGRUN_EXACT

// Smaller, larger and absolute values of all number types. Mixed types follow C's conversions, as in CUDA.
#define __DAGRUN_ORDER(type)                                                 \
  __DAGRUN_BOTH type min(type a, type b) { return b < a ? b : a; }           \
  __DAGRUN_BOTH type max(type a, type b) { return a < b ? b : a; }
__DAGRUN_ORDER(int)
__DAGRUN_ORDER(unsigned)
__DAGRUN_ORDER(long)
__DAGRUN_ORDER(unsigned long)
__DAGRUN_ORDER(long long)
__DAGRUN_ORDER(unsigned long long)
#undef __DAGRUN_ORDER
#define __DAGRUN_MIXED(a_type, b_type, result)                                                                  \
  __DAGRUN_BOTH result min(a_type a, b_type b) { return (result)b < (result)a ? (result)b : (result)a; }        \
  __DAGRUN_BOTH result max(a_type a, b_type b) { return (result)a < (result)b ? (result)b : (result)a; }
__DAGRUN_MIXED(int, unsigned, unsigned)
__DAGRUN_MIXED(unsigned, int, unsigned)
__DAGRUN_MIXED(long, unsigned long, unsigned long)
__DAGRUN_MIXED(unsigned long, long, unsigned long)
__DAGRUN_MIXED(long long, unsigned long long, unsigned long long)
__DAGRUN_MIXED(unsigned long long, long long, unsigned long long)
#undef __DAGRUN_MIXED
__DAGRUN_DEVICE float min(float a, float b) { return fminf(a, b); }
__DAGRUN_DEVICE float max(float a, float b) { return fmaxf(a, b); }
__DAGRUN_DEVICE double min(double a, double b) { return fmin(a, b); }
__DAGRUN_DEVICE double max(double a, double b) { return fmax(a, b); }
__DAGRUN_DEVICE double min(float a, double b) { return fmin((double)a, b); }
__DAGRUN_DEVICE double max(float a, double b) { return fmax((double)a, b); }
__DAGRUN_DEVICE double min(double a, float b) { return fmin(a, (double)b); }
__DAGRUN_DEVICE double max(double a, float b) { return fmax(a, (double)b); }
__DAGRUN_BOTH unsigned umin(unsigned a, unsigned b) { return b < a ? b : a; }
__DAGRUN_BOTH unsigned umax(unsigned a, unsigned b) { return a < b ? b : a; }
__DAGRUN_BOTH int abs(int x) { return x < 0 ? -x : x; }
__DAGRUN_BOTH long abs(long x) { return x < 0 ? -x : x; }
__DAGRUN_BOTH long long abs(long long x) { return x < 0 ? -x : x; }
__DAGRUN_BOTH float abs(float x) { return __builtin_fabsf(x); }
__DAGRUN_BOTH double abs(double x) { return __builtin_fabs(x); }
__DAGRUN_BOTH long labs(long x) { return x < 0 ? -x : x; }
__DAGRUN_BOTH long long llabs(long long x) { return x < 0 ? -x : x; }
