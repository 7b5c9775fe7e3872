// exp, log, sin, cos, tanh and erf from sums, products and quotients only, so that they give the same bits on every device and in
// internal/numbers, which mirrors this file line by line. f32 products are never fused (Go has no f32 fma); f64 ones are, by fused().
#pragma once
#include "common.cuh"

#ifdef __clang__
DEVICE u64 high_product(u64 a, u64 b) { return __nvvm_mulhi_ull(a, b); }
#else
DEVICE u64 high_product(u64 a, u64 b) { return __umul64hi(a, b); }
#endif

#define INFINITY32 f32_of(0x7f800000)
#define NAN32 f32_of(0x7fc00000)
#define INFINITY64 f64_of(0x7ff0000000000000ll)
#define NAN64 f64_of(0x7ff8000000000000ll)

DEVICE f32 infinity(f32) { return INFINITY32; }
DEVICE f64 infinity(f64) { return INFINITY64; }

// power_of_two is 2^k; the result must be a normal number.
DEVICE f32 power_of_two(f32, i32 k) { return f32_of((k + 127) << 23); }
DEVICE f64 power_of_two(f64, i32 k) { return f64_of((i64)(k + 1023) << 52); }

// exponential_part returns p, about 1, such that exp(x) is p * 2^n.
DEVICE f32 exponential_part(f32 x, i32 &n) {
  f32 t = x * 1.44269504f + 12582912.0f, k = t - 12582912.0f;
  n = bits_of(t) - 0x4b400000;
  f32 r = x - k * 0.693359375f - k * -2.12194440e-4f, p = 1.9875691500e-4f;
  p = p * r + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  return p * (r * r) + r + 1.0f;
}
DEVICE f64 exponential_part(f64 x, i32 &n) {
  f64 t = fused(x, 1.4426950408889634, 6755399441055744.0), k = t - 6755399441055744.0;
  n = (i32)(bits_of(t) - bits_of(6755399441055744.0));
  f64 r = fused(-k, 0x1.a39ef35793c76p-33, fused(-k, 0x1.62e42fee00000p-1, x)), p = 0x1.6124613a86d09p-33;
  p = fused(p, r, 0x1.1eed8eff8d898p-29);
  p = fused(p, r, 0x1.ae64567f544e4p-26);
  p = fused(p, r, 0x1.27e4fb7789f5cp-22);
  p = fused(p, r, 0x1.71de3a556c734p-19);
  p = fused(p, r, 0x1.a01a01a01a01ap-16);
  p = fused(p, r, 0x1.a01a01a01a01ap-13);
  p = fused(p, r, 0x1.6c16c16c16c17p-10);
  p = fused(p, r, 0x1.1111111111111p-7);
  p = fused(p, r, 0x1.5555555555555p-5);
  p = fused(p, r, 0x1.5555555555555p-3);
  p = fused(p, r, 0.5);
  return fused(p, r * r, r) + 1.0;
}

// scaled is p * 2^n, for results that may not be normal numbers. near_scaled is the same for those that are.
template <class T> DEVICE T scaled(T p, i32 n) {
  i32 half = n >> 1;
  return p * power_of_two(p, half) * power_of_two(p, n - half);
}
DEVICE f32 near_scaled(f32 p, i32 n) { return f32_of(bits_of(p) + (n << 23)); }
DEVICE f64 near_scaled(f64 p, i32 n) { return f64_of(bits_of(p) + ((i64)n << 52)); }

// Within 2 ulps.
DEVICE f32 exponential(f32 x) {
  if (x != x) return x;
  if (x > 88.72284f) return INFINITY32;
  if (x < -103.97209f) return 0.0f;
  i32 n;
  f32 p = exponential_part(x, n);
  return scaled(p, n);
}

// Within 1 ulp.
DEVICE f64 exponential(f64 x) {
  if (x != x) return x;
  if (x > 709.7827128933841) return INFINITY64;
  if (x < -745.1332191019412) return 0.0;
  i32 n;
  f64 p = exponential_part(x, n);
  return scaled(p, n);
}

// near_exponential is exponential, faster for an x that is not far from 0.
DEVICE bool is_near(f32 x) { return x > -86.0f && x < 86.0f; }
DEVICE bool is_near(f64 x) { return x > -700.0 && x < 700.0; }
template <class T> DEVICE T near_exponential(T x) {
  if (!is_near(x)) return exponential(x);
  i32 n;
  T p = exponential_part(x, n);
  return near_scaled(p, n);
}

// Within 2 ulps.
DEVICE f32 logarithm(f32 x) {
  if (!(x > 0.0f)) return x == 0.0f ? -INFINITY32 : NAN32;
  if (x == INFINITY32) return x;
  i32 e = 0;
  if (x < 1.17549435e-38f) {
    x *= 33554432.0f;
    e = -25;
  }
  i32 b = bits_of(x) - 0x3f3504f3;
  e += b >> 23;
  f32 z = f32_of((b & 0x7fffff) + 0x3f3504f3) - 1.0f, s = z * z, k = (f32)e, p = 7.0376836292e-2f;
  p = p * z + -1.1514610310e-1f;
  p = p * z + 1.1676998740e-1f;
  p = p * z + -1.2420140846e-1f;
  p = p * z + 1.4249322787e-1f;
  p = p * z + -1.6668057665e-1f;
  p = p * z + 2.0000714765e-1f;
  p = p * z + -2.4999993993e-1f;
  p = p * z + 3.3333331174e-1f;
  p = p * z * s + k * -2.12194440e-4f - 0.5f * s;
  return z + p + k * 0.693359375f;
}

// Within 1 ulp.
DEVICE f64 logarithm(f64 x) {
  if (!(x > 0.0)) return x == 0.0 ? -INFINITY64 : NAN64;
  if (x == INFINITY64) return x;
  i32 e = 0;
  if (x < 2.2250738585072014e-308) {
    x *= 18014398509481984.0;
    e = -54;
  }
  i64 b = bits_of(x) - 0x3fe6a09e667f3bcdll;
  e += (i32)(b >> 52);
  f64 f = f64_of((b & 0xfffffffffffffll) + 0x3fe6a09e667f3bcdll) - 1.0, k = (f64)e;
  f64 s = f / (2.0 + f), z = s * s, h = 0.5 * f * f, p = 1.479819860511658591e-01;
  p = fused(p, z, 1.531383769920937332e-01);
  p = fused(p, z, 1.818357216161805012e-01);
  p = fused(p, z, 2.222219843214978396e-01);
  p = fused(p, z, 2.857142874366239149e-01);
  p = fused(p, z, 3.999999999940941908e-01);
  p = fused(p, z, 6.666666666666735130e-01);
  p = p * z;
  return fused(k, 0x1.62e42fee00000p-1, f - (h - fused(s, h + p, k * 0x1.a39ef35793c76p-33)));
}

// Bits of 2/pi after 64 zero bits.
static __constant__ const u64 two_over_pi[22] = {
    0, 0xa2f9836e4e441529ull, 0xfc2757d1f534ddc0ull, 0xdb6295993c439041ull, 0xfe5163abdebbc561ull,
    0xb7246e3a424dd2e0ull, 0x06492eea09d1921cull, 0xfe1deb1cb129a73eull, 0xe88235f52ebb4484ull, 0xe99c7026b45f7e41ull,
    0x3991d639835339f4ull, 0x9c845f8bbdf9283bull, 0x1ff897ffde05980full, 0xef2f118b5a0a6d1full, 0x6d367ecf27cb09b7ull,
    0x4f463f669e5fea2dull, 0x7527bac7ebe5f17bull, 0x3d0739f78a5292eaull, 0x6bfb5fb11f8d5d08ull, 0x56033046fc7b6babull,
    0xf0cfbc209af4361dull, 0xa9e391615ee61b08ull};

// reduced subtracts the nearest multiple of pi/2 and returns which one, modulo 4.
DEVICE f64 reduced(f64 x, i32 &quadrant) {
  i64 b = bits_of(x);
  i32 e = (i32)(b >> 52 & 0x7ff);
  if (e < 1023 + 22) {
    f64 t = fused(x, 0x1.45f306dc9c883p-1, 6755399441055744.0), k = t - 6755399441055744.0;
    quadrant = (i32)bits_of(t) & 3;
    return fused(-k, -0x1.f1976b7ed8fbcp-110, fused(-k, 0x1.1a62633145c07p-54, fused(-k, 0x1.921fb54442d18p+0, x)));
  }
  quadrant = 0;
  if (e == 0x7ff) return NAN64;
  // x = m * 2^s. Only the last two bits before the point of x * 2/pi, and the bits after it, matter. Three words of 2/pi from bit s-1
  // on give them to 137 bits.
  u64 m = ((u64)b & 0xfffffffffffffull) | 0x10000000000000ull;
  i32 from = e - 1023 - 52 - 2 + 64, word = from >> 6, shift = from & 63;
  u64 w[4];
#pragma unroll
  for (int i = 0; i < 4; i++) w[i] = two_over_pi[word + i];
#pragma unroll
  for (int i = 0; i < 3; i++)
    if (shift) w[i] = w[i] << shift | w[i + 1] >> (64 - shift);
  u64 low = m * w[1], mid = low + high_product(m, w[2]);
  u64 high = m * w[0] + high_product(m, w[1]) + (mid < low);
  i32 n = (i32)((high + 0x2000000000000000ull) >> 62);
  quadrant = n & 3;
  high = high << 2 | mid >> 62;
  mid <<= 2;
  f64 part = (f64)(i64)high * 0x1p-64 + (f64)mid * 0x1p-128;
  f64 r = part * 0x1.921fb54442d18p+0;
  if (b < 0) {
    quadrant = -quadrant & 3;
    r = -r;
  }
  return r;
}

DEVICE void sine_cosine_near(f64 r, f64 &s, f64 &c) {
  f64 z = r * r, p = 1.58962301576546568060e-10, q = -1.13585365213876817300e-11;
  p = fused(p, z, -2.50507477628578072866e-8);
  p = fused(p, z, 2.75573136213857245213e-6);
  p = fused(p, z, -1.98412698295895385996e-4);
  p = fused(p, z, 8.33333333332211858878e-3);
  p = fused(p, z, -1.66666666666666307295e-1);
  q = fused(q, z, 2.08757008419747316778e-9);
  q = fused(q, z, -2.75573141792967388112e-7);
  q = fused(q, z, 2.48015872888517045348e-5);
  q = fused(q, z, -1.38888888888730564116e-3);
  q = fused(q, z, 4.16666666666665929218e-2);
  s = fused(p * z, r, r);
  c = fused(q, z * z, fused(-0.5, z, 1.0));
}

DEVICE void sine_cosine_near(f32 r, f32 &s, f32 &c) {
  f32 z = r * r, p = -1.9515295891e-4f, q = 2.443315711809948e-5f;
  p = p * z + 8.3321608736e-3f;
  p = p * z + -1.6666654611e-1f;
  q = q * z + -1.388731625493765e-3f;
  q = q * z + 4.166664568298827e-2f;
  s = p * z * r + r;
  c = q * (z * z) - 0.5f * z + 1.0f;
}

template <class C> DEVICE void turn(i32 quadrant, C &s, C &c) {
  C a = quadrant & 1 ? c : s, b = quadrant & 1 ? s : c;
  s = quadrant & 2 ? -a : a;
  c = (quadrant + 1) & 2 ? -b : b;
}

// Within 2 ulps, over the whole range.
template <class C> DEVICE void sine_cosine(C x, C &s, C &c) {
  i32 quadrant;
  C r = (C)reduced((f64)x, quadrant);
  sine_cosine_near(r, s, c);
  turn(quadrant, s, c);
}
template <class C> DEVICE C sine(C x) { C s, c; sine_cosine(x, s, c); return s; }
template <class C> DEVICE C cosine(C x) { C s, c; sine_cosine(x, s, c); return c; }

// The sine and cosine of 2*pi*u for a u in [0, 1]; the reduction is exact.
DEVICE void sine_cosine_turns(f32 u, f32 &s, f32 &c) {
  f32 v = u * 4.0f, t = v + 12582912.0f, k = t - 12582912.0f;
  sine_cosine_near((v - k) * 1.57079637f, s, c);
  turn(bits_of(t) & 3, s, c);
}
DEVICE void sine_cosine_turns(f64 u, f64 &s, f64 &c) {
  f64 v = u * 4.0, t = v + 6755399441055744.0, k = t - 6755399441055744.0;
  sine_cosine_near((v - k) * 0x1.921fb54442d18p+0, s, c);
  turn((i32)bits_of(t) & 3, s, c);
}

// Within 3 ulps.
DEVICE f32 hyperbolic_tangent(f32 x) {
  f32 a = x < 0.0f ? -x : x;
  if (!(a > 0.625f)) {
    f32 z = x * x, p = -5.70498872745e-3f;
    p = p * z + 2.06390887954e-2f;
    p = p * z + -5.37397155531e-2f;
    p = p * z + 1.33314422036e-1f;
    p = p * z + -3.33332819422e-1f;
    return p * z * x + x;
  }
  f32 r = 1.0f - 2.0f / (exponential(a + a) + 1.0f);
  return x < 0.0f ? -r : r;
}
DEVICE f64 hyperbolic_tangent(f64 x) {
  f64 a = x < 0.0 ? -x : x;
  if (!(a > 0.625)) {
    f64 z = x * x, p = -9.64399179425052238628e-1, q = z + 1.12811678491632931402e2;
    p = fused(p, z, -9.92877231001918586564e1);
    p = fused(p, z, -1.61468768441708447952e3);
    q = fused(q, z, 2.23548839060100448583e3);
    q = fused(q, z, 4.84406305325125486048e3);
    return fused(x * z, p / q, x);
  }
  f64 r = 1.0 - 2.0 / (exponential(a + a) + 1.0);
  return x < 0.0 ? -r : r;
}

// erf: an odd polynomial up to 1, then one polynomial per unit interval, around its middle; lowest power first.
static __constant__ const f32 erf_odd32[7] = {0x1.20dd740000000p+0f, -0x1.81273e0000000p-2f, 0x1.ce2d100000000p-4f, -0x1.b7faba0000000p-6f, 0x1.5412700000000p-8f, -0x1.a450880000000p-11f, 0x1.4a56900000000p-14f};
static __constant__ const f32 erf_piece32[3][9] = {
    {0x1.eea5560000000p-1f, 0x1.e723380000000p-4f, -0x1.6d5a940000000p-3f, 0x1.1c30100000000p-3f, -0x1.6d5b680000000p-5f, -0x1.ec9ff60000000p-7f, 0x1.3cbd0a0000000p-6f, -0x1.f67f2a0000000p-9f, -0x1.3a80ac0000000p-9f},
    {0x1.ffcaa80000000p-1f, 0x1.1d843a0000000p-9f, -0x1.64e4060000000p-8f, 0x1.118e7a0000000p-7f, -0x1.1a855a0000000p-7f, 0x1.929d160000000p-8f, -0x1.6fcc320000000p-9f, 0x1.a695c80000000p-12f, 0x1.3cb69a0000000p-12f},
    {0x1.ffffe80000000p-1f, 0x1.6a34d60000000p-18f, -0x1.3d0bb00000000p-16f, 0x1.63c0e60000000p-15f, -0x1.1c29e80000000p-14f, 0x1.5190a60000000p-14f, -0x1.4422360000000p-14f, 0x1.188e800000000p-14f, -0x1.34734c0000000p-15f},
};
static __constant__ const f64 erf_odd64[13] = {0x1.20dd750429b6dp+0, -0x1.812746b0379e6p-2, 0x1.ce2f21a042b30p-4, -0x1.b82ce31284e00p-6, 0x1.565bcd0dbaa38p-8, -0x1.c02db3dac435fp-11, 0x1.f9a321d5b8e1ep-14, -0x1.f4d1e3183f7aep-17, 0x1.b9df224ca4b97p-20, -0x1.5f1ecb6f0764cp-23, 0x1.f7b4bf3b13964p-27, -0x1.389d4f2641625p-30, 0x1.05ffd737fb32ep-34};
static __constant__ const f64 erf_piece64[5][19] = {
    {0x1.eea5557137ae0p-1, 0x1.e723726b824aap-4, -0x1.6d5a95d0a1b7fp-3, 0x1.1c2a02beb6a4ep-3, -0x1.6d5a95d0a1b9ap-5, -0x1.e723726b65120p-7, 0x1.3ca3d72c48d50p-6, -0x1.36d73a692d053p-8, -0x1.35ae4e3a506c1p-9, 0x1.c0380e362faa7p-10, -0x1.85b5f31adf4f4p-14, -0x1.0acf49b689f6bp-12, 0x1.45daf1c03c5edp-14, 0x1.2d5ccda7d2cefp-16, -0x1.d8d8db718a3f0p-17, 0x1.3122d618518c5p-21, 0x1.9aed5951c72f6p-20, -0x1.2d677be6d86b7p-22, -0x1.b20a125165c54p-24},
    {0x1.ffcaa8f4c9beap-1, 0x1.1d83170fbf6fep-9, -0x1.64e3dcd3af4bap-8, 0x1.119da0c46cc24p-7, -0x1.1a89b97ceac96p-7, 0x1.90e81283ff8b5p-8, -0x1.6ecdbf67c65f1p-9, 0x1.1c610bc6bd299p-11, 0x1.11551df044b95p-12, -0x1.0671781e280a1p-12, 0x1.4a84493339eeep-14, 0x1.58bb5d8278748p-18, -0x1.d872aabe96ecdp-17, 0x1.3ad85533fab85p-18, 0x1.85e65ab3732c9p-23, -0x1.597ec5a050063p-21, 0x1.7f62d9bbdb89ap-23, 0x1.8740b4b8e7e0ep-26, -0x1.801ee99217fe9p-26},
    {0x1.ffffe710d565ep-1, 0x1.6a597219a93a2p-18, -0x1.3d0e43d674155p-16, 0x1.62ccea63cb745p-15, -0x1.1c07721ac8211p-14, 0x1.586bafc9ab406p-14, -0x1.46153fb97ff5ap-14, 0x1.e827fafe32457p-15, -0x1.1f6304e077732p-15, 0x1.0135257cedc46p-16, -0x1.37741272e2869p-18, 0x1.dd8072e583d32p-22, 0x1.dc7ed6eabd196p-22, -0x1.43f1cc9e1c7f4p-22, 0x1.8c9213e07c95fp-24, -0x1.83249e91c4d02p-28, -0x1.1e3dc7fad2752p-27, 0x1.0853ec544d76dp-28, -0x1.388d875ce5567p-31},
    {0x1.fffffffe4fa30p-1, 0x1.f1e3523b3fb26p-30, -0x1.180fde4155042p-27, 0x1.99b86656390d3p-26, -0x1.b598cb46161b7p-25, 0x1.6b1baf4333727p-24, -0x1.e650e3450256ap-24, 0x1.0d678fa9357fbp-23, -0x1.f5f31b639378bp-24, 0x1.8d2e5ebdf366bp-24, -0x1.0c3a434a244ffp-24, 0x1.34eecc44a69c4p-25, -0x1.2cd5c3b8573e6p-26, 0x1.e478119e24b9ap-28, -0x1.319b97a362beep-29, 0x1.ff79d79f1a6b1p-32, -0x1.7e2da22512420p-42, -0x1.02fde61cbca6ep-34, 0x1.cc04fafbf7083p-36},
    {0x1.fffffffffffbep-1, 0x1.7258610ca3dbbp-44, -0x1.fd39856f851bcp-42, 0x1.cb12e2e0c9ba5p-40, -0x1.31011e9596eb1p-38, 0x1.3e4a2043552aep-37, -0x1.0f6e89e1ec6bfp-36, 0x1.84a4d55e1c198p-36, -0x1.dc38b9d7226a3p-36, 0x1.fa7b67458562fp-36, -0x1.d87746e7ddf95p-36, 0x1.858e3ec23f344p-36, -0x1.1d875d270c16cp-36, 0x1.75b6e2f4ed779p-37, -0x1.b438615372885p-38, 0x1.c10e77bbe53bbp-39, -0x1.a32a3288e90e4p-40, 0x1.859631f24577ep-41, -0x1.09747ecb3220ap-42},
};

// Within 3 ulps.
DEVICE f32 error_function(f32 x) {
  f32 a = x < 0.0f ? -x : x;
  if (!(a >= 1.0f)) {
    f32 z = x * x, p = erf_odd32[6];
#pragma unroll
    for (int i = 5; i >= 0; i--) p = p * z + erf_odd32[i];
    return p * x;
  }
  f32 r = 1.0f;
  if (a < 4.0f) {
    i32 k = (i32)a;
    f32 t = a - ((f32)k + 0.5f);
    r = erf_piece32[k - 1][8];
#pragma unroll
    for (int i = 7; i >= 0; i--) r = r * t + erf_piece32[k - 1][i];
  }
  return x < 0.0f ? -r : r;
}
DEVICE f64 error_function(f64 x) {
  f64 a = x < 0.0 ? -x : x;
  if (!(a >= 1.0)) {
    f64 z = x * x, p = erf_odd64[12];
#pragma unroll
    for (int i = 11; i >= 0; i--) p = fused(p, z, erf_odd64[i]);
    return p * x;
  }
  f64 r = 1.0;
  if (a < 6.0) {
    i32 k = (i32)a;
    f64 t = a - ((f64)k + 0.5);
    r = erf_piece64[k - 1][18];
#pragma unroll
    for (int i = 17; i >= 0; i--) r = fused(r, t, erf_piece64[k - 1][i]);
  }
  return x < 0.0 ? -r : r;
}

// Exact at powers of two.
DEVICE f64 logarithm2(f64 x) {
  if (!(x > 0.0) || x == INFINITY64) return logarithm(x);
  i32 e = 0;
  if (x < 2.2250738585072014e-308) {
    x *= 18014398509481984.0;
    e = -54;
  }
  i64 b = bits_of(x) - 0x3fe6a09e667f3bcdll;
  e += (i32)(b >> 52);
  f64 m = f64_of((b & 0xfffffffffffffll) + 0x3fe6a09e667f3bcdll);
  return fused(logarithm(m), 1.4426950408889634, (f64)e);
}
DEVICE f32 logarithm2(f32 x) { return (f32)logarithm2((f64)x); }

// x to the power of y, by its logarithm: within y * log(x) ulps, 1 ulp when rounded to f32. Small integer powers are products.
DEVICE f64 power(f64 x, f64 y) {
  f64 whole = y + 6755399441055744.0 - 6755399441055744.0, a = y < 0.0 ? -y : y;
  if (whole == y && a <= 64.0) {
    i32 n = (i32)a;
    f64 r = 1.0, p = x;
    for (; n; n >>= 1) {
      if (n & 1) r = r * p;
      p = p * p;
    }
    return y < 0.0 ? 1.0 / r : r;
  }
  if (x == 1.0) return 1.0;
  if (x == 0.0) return y < 0.0 ? INFINITY64 : y > 0.0 ? 0.0 : NAN64;
  bool odd = whole == y && a < 9007199254740992.0 && ((i64)a & 1);
  bool integral = whole == y || a >= 4503599627370496.0;
  if (x < 0.0 && !integral) return NAN64;
  f64 r = exponential(y * logarithm(x < 0.0 ? -x : x));
  return x < 0.0 && odd ? -r : r;
}
