// Random numbers by counter: Philox 4x32-10 (Salmon, Moraes, Dror, Shaw, 2011). Element i depends on seed, offset and i alone.
#include "math.cuh"

struct Words { u32 w[4]; };

DEVICE Words philox(u64 counter, u64 stream, u64 key) {
  u32 c0 = (u32)counter, c1 = (u32)(counter >> 32), c2 = (u32)stream, c3 = (u32)(stream >> 32), k0 = (u32)key, k1 = (u32)(key >> 32);
#pragma unroll
  for (int round = 0; round < 10; round++) {
    u32 h0 = high_product(0xd2511f53u, c0), l0 = 0xd2511f53u * c0, h1 = high_product(0xcd9e8d57u, c2), l1 = 0xcd9e8d57u * c2;
    c0 = h1 ^ c1 ^ k0;
    c1 = l1;
    c2 = h0 ^ c3 ^ k1;
    c3 = l0;
    k0 += 0x9e3779b9u;
    k1 += 0xbb67ae85u;
  }
  return Words{{c0, c1, c2, c3}};
}

// Turns 16 bytes of random bits into numbers in [0, 1): four f32 of 24 bits, or two f64 of 53.
DEVICE void units(const Words &r, f32 *u) {
#pragma unroll
  for (int k = 0; k < 4; k++) u[k] = (f32)(i32)(r.w[k] >> 8) * 0x1p-24f;
}
DEVICE void units(const Words &r, f64 *u) {
#pragma unroll
  for (int k = 0; k < 2; k++) u[k] = (f64)(i64)(((u64)r.w[2 * k + 1] << 32 | r.w[2 * k]) >> 11) * 0x1p-53;
}
DEVICE f32 smallest(f32) { return 0x1p-24f; }
DEVICE f64 smallest(f64) { return 0x1p-53; }

template <class T, class F> DEVICE void draw(i64 n, u64 seed, u64 offset, T *y, F f) {
  typedef typename computed<T>::type C;
  const int width = 16 / sizeof(C);
  bool aligned = ((u64)y & (width * sizeof(T) - 1)) == 0;
  struct alignas(width * sizeof(T)) group { T v[width]; };
  for (i64 g = first_index(); g * width < n; g += index_step()) {
    C u[width];
    units(philox((u64)g, offset, seed), u);
    f(u);
    group v;
#pragma unroll
    for (int k = 0; k < width; k++) narrow(v.v[k], u[k]);
    if (aligned && (g + 1) * width <= n) *(group *)(y + g * width) = v;
    else
#pragma unroll
      for (int k = 0; k < width; k++)
        if (g * width + k < n) y[g * width + k] = v.v[k];
  }
}

#define PHILOX_UNIFORM(t, s) KERNEL(philox_uniform_##t)(i64 n, u64 seed, u64 offset, s low, s high, t *y) { \
  draw(n, seed, offset, y, [=](s *u) { \
    _Pragma("unroll") for (int k = 0; k < (int)(16 / sizeof(s)); k++) { \
      s v = u[k] * (high - low) + low; \
      u[k] = v < high ? v : low; \
    } \
  }); \
}
PHILOX_UNIFORM(f16, f32) PHILOX_UNIFORM(bf16, f32) PHILOX_UNIFORM(f32, f32) PHILOX_UNIFORM(f64, f64)

// Box-Muller: two normal numbers from two uniform ones.
#define PHILOX_NORMAL(t, s) KERNEL(philox_normal_##t)(i64 n, u64 seed, u64 offset, s mean, s deviation, t *y) { \
  draw(n, seed, offset, y, [=](s *u) { \
    _Pragma("unroll") for (int k = 0; k < (int)(16 / sizeof(s)); k += 2) { \
      s radius = root((s)-2 * logarithm(u[k] + smallest(s()))), sine, cosine; \
      sine_cosine_turns(u[k + 1], sine, cosine); \
      u[k] = radius * cosine * deviation + mean; \
      u[k + 1] = radius * sine * deviation + mean; \
    } \
  }); \
}
PHILOX_NORMAL(f16, f32) PHILOX_NORMAL(bf16, f32) PHILOX_NORMAL(f32, f32) PHILOX_NORMAL(f64, f64)

KERNEL(philox_bits_u32)(i64 n, u64 seed, u64 offset, u32 *y) {
  for (i64 g = first_index(); g * 4 < n; g += index_step()) {
    Words r = philox((u64)g, offset, seed);
#pragma unroll
    for (int k = 0; k < 4; k++)
      if (g * 4 + k < n) y[g * 4 + k] = r.w[k];
  }
}
