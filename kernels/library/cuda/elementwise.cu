// Elementwise kernels: y[i] from the i-th elements of up to three inputs. An output may be one of the inputs.
#include "math.cuh"

// each computes y[i] = f(a[i], b[i], c[i], i). It uses 16-byte accesses if the pointers have the same offset from a 16-byte
// boundary, and has several loads in flight before the first store.
template <int inputs, int unroll, class T, class F>
DEVICE void each(i64 n, T *y, const T *a, const T *b, const T *c, F f) {
  typedef typename computed<T>::type C;
  typedef pack<T> P;
  const int width = 16 / sizeof(T);
  const T *in[3] = {a, b, c};
  i64 first = first_index(), step = index_step();
  auto one = [&](i64 i) {
    C v[3];
#pragma unroll
    for (int k = 0; k < inputs; k++) v[k] = widen(in[k][i]);
    narrow(y[i], f(v[0], v[1], v[2], i));
  };
  u64 apart = 0;
#pragma unroll
  for (int k = 0; k < inputs; k++) apart |= (u64)in[k] ^ (u64)y;
  i64 head = smaller((i64)((16 - ((u64)y & 15)) & 15) / (i64)sizeof(T), n);
  i64 packs = apart & 15 ? 0 : (n - head) / width;
  auto many = [&](i64 p, auto count) {
    P v[decltype(count)::value][3];
#pragma unroll
    for (int u = 0; u < decltype(count)::value; u++)
#pragma unroll
      for (int k = 0; k < inputs; k++) v[u][k] = ((const P *)(in[k] + head))[p + u * step];
#pragma unroll
    for (int u = 0; u < decltype(count)::value; u++) {
      i64 q = p + u * step;
      P r;
#pragma unroll
      for (int j = 0; j < width; j++) {
        C w[3];
#pragma unroll
        for (int k = 0; k < inputs; k++) w[k] = widen(v[u][k].get(j));
        T t;
        narrow(t, f(w[0], w[1], w[2], head + q * width + j));
        r.set(j, t);
      }
      ((P *)(y + head))[q] = r;
    }
  };
  i64 p = first;
  if (unroll > 1)
#pragma unroll 1
  for (; p + (unroll - 1) * step < packs; p += step * unroll) many(p, number<unroll>());
#pragma unroll 1
  for (; p < packs; p += step) many(p, number<1>());
  // The elements before the first whole pack and after the last one, or all elements if the offsets differ.
  i64 rest = n - packs * width;
#pragma unroll 1
  for (i64 k = first; k < rest; k += step) one(k < head ? k : k + packs * width);
}

#define NONE (const T *)0
#define BODY(body) [=](C a, C b, C c, i64 i) -> C { (void)a, (void)b, (void)c, (void)i; return body; }
#define EACH0(n, y, body) each<0, 4>(n, y, NONE, NONE, NONE, BODY(body))
#define EACH1(n, y, x0, body) each<1, 4>(n, y, (const T *)x0, NONE, NONE, BODY(body))
#define EACH2(n, y, x0, x1, body) each<2, 2>(n, y, (const T *)x0, (const T *)x1, NONE, BODY(body))
#define EACH3(n, y, x0, x1, x2, body) each<3, 2>(n, y, (const T *)x0, (const T *)x1, (const T *)x2, BODY(body))
// Kernels with long bodies process one pack at a time, which keeps its elements in registers.
#define HEAVY1(n, y, x0, body) each<1, 1>(n, y, (const T *)x0, NONE, NONE, BODY(body))
#define TYPES(t) typedef t T; typedef computed<t>::type C

// Each line: the type in memory, the type of scalars.
#define HALVES(M) M(f16, f32) M(bf16, f32)
#define FLOATS(M) M(f32, f32) M(f64, f64)
#define NUMBERS(M) FLOATS(M) M(i32, i32)
#define ALL(M) HALVES(M) NUMBERS(M)

#define FILL(t, s) KERNEL(fill_##t)(i64 n, s value, t *y) { TYPES(t); EACH0(n, y, value); }
ALL(FILL)
#define IOTA(t, s) KERNEL(iota_##t)(i64 n, s start, s step, t *y) { TYPES(t); EACH0(n, y, start + step * (C)i); }
NUMBERS(IOTA)
#define COPY(t, m) KERNEL(copy_##t)(i64 n, const t *x, t *y) { TYPES(m); EACH1(n, (T *)y, x, a); }
COPY(f16, bits16) COPY(bf16, bits16) COPY(f32, f32) COPY(f64, f64) COPY(i32, i32)
#define SCALE(t, s) KERNEL(scale_##t)(i64 n, s alpha, t *x) { TYPES(t); EACH1(n, x, x, alpha * a); }
ALL(SCALE)
#define ADD(t, s) KERNEL(add_##t)(i64 n, const t *x, const t *y, t *z) { TYPES(t); EACH2(n, z, x, y, a + b); }
ALL(ADD)
#define SUB(t, s) KERNEL(sub_##t)(i64 n, const t *x, const t *y, t *z) { TYPES(t); EACH2(n, z, x, y, a - b); }
ALL(SUB)
#define MUL(t, s) KERNEL(mul_##t)(i64 n, const t *x, const t *y, t *z) { TYPES(t); EACH2(n, z, x, y, a * b); }
ALL(MUL)
#define DIV(t, s) KERNEL(div_##t)(i64 n, const t *x, const t *y, t *z) { TYPES(t); EACH2(n, z, x, y, a / b); }
HALVES(DIV) FLOATS(DIV)
#define AXPY(t, s) KERNEL(axpy_##t)(i64 n, s alpha, const t *x, t *y) { TYPES(t); EACH2(n, y, x, y, alpha * a + b); }
ALL(AXPY)
#define SQUARE(t, s) KERNEL(square_##t)(i64 n, const t *x, t *y) { TYPES(t); EACH1(n, y, x, a * a); }
ALL(SQUARE)
#define CLAMP(t, s) KERNEL(clamp_##t)(i64 n, s low, s high, const t *x, t *y) { TYPES(t); EACH1(n, y, x, a < low ? low : a > high ? high : a); }
ALL(CLAMP)
#define RELU(t, s) KERNEL(relu_##t)(i64 n, const t *x, t *y) { TYPES(t); EACH1(n, y, x, a < (C)0 ? (C)0 : a); }
ALL(RELU)
#define ABS(t, s) KERNEL(abs_##t)(i64 n, const t *x, t *y) { TYPES(t); EACH1(n, y, x, magnitude(a)); }
DEVICE f32 magnitude(f32 x) { return f32_of(bits_of(x) & 0x7fffffff); }
DEVICE f64 magnitude(f64 x) { return f64_of(bits_of(x) & 0x7fffffffffffffffll); }
DEVICE i32 magnitude(i32 x) { return x < 0 ? (i32)(0u - (u32)x) : x; }
ALL(ABS)
#define SQRT(t, s) KERNEL(sqrt_##t)(i64 n, const t *x, t *y) { TYPES(t); HEAVY1(n, y, x, root(a)); }
HALVES(SQRT) FLOATS(SQRT)
#define EXP(t, s) KERNEL(exp_##t)(i64 n, const t *x, t *y) { TYPES(t); HEAVY1(n, y, x, exponential(a)); }
HALVES(EXP) FLOATS(EXP)
#define LOG(t, s) KERNEL(log_##t)(i64 n, const t *x, t *y) { TYPES(t); HEAVY1(n, y, x, logarithm(a)); }
FLOATS(LOG)
#define SIN(t, s) KERNEL(sin_##t)(i64 n, const t *x, t *y) { TYPES(t); HEAVY1(n, y, x, sine(a)); }
FLOATS(SIN)
#define COS(t, s) KERNEL(cos_##t)(i64 n, const t *x, t *y) { TYPES(t); HEAVY1(n, y, x, cosine(a)); }
FLOATS(COS)
#define TANH(t, s) KERNEL(tanh_##t)(i64 n, const t *x, t *y) { TYPES(t); HEAVY1(n, y, x, hyperbolic_tangent(a)); }
FLOATS(TANH)
#define ERF(t, s) KERNEL(erf_##t)(i64 n, const t *x, t *y) { TYPES(t); HEAVY1(n, y, x, error_function(a)); }
FLOATS(ERF)

// Scalars that an earlier kernel wrote to memory.
#define DIVIDE_BY(t, s) KERNEL(divide_by_##t)(i64 n, const t *d, const t *x, t *y) { TYPES(t); if (n <= 0) return; C by = *d; EACH1(n, y, x, a / by); }
FLOATS(DIVIDE_BY)
#define AXPY_RATIO(t, s) KERNEL(axpy_ratio_##t)(i64 n, s sign, const t *p, const t *q, const t *x, t *y) { TYPES(t); if (n <= 0) return; C alpha = sign * (*p / *q); EACH2(n, y, x, y, alpha * a + b); }
FLOATS(AXPY_RATIO)
#define XPAY_RATIO(t, s) KERNEL(xpay_ratio_##t)(i64 n, const t *p, const t *q, const t *x, t *y) { TYPES(t); if (n <= 0) return; C beta = *p / *q; EACH2(n, y, x, y, a + beta * b); }
FLOATS(XPAY_RATIO)

// Pictures.
template <class C> DEVICE C unit(C v) { return v < (C)0 ? (C)0 : v > (C)1 ? (C)1 : v; }
#define UNSHARPEN(t, s) KERNEL(unsharpen_##t)(i64 n, s amount, const t *image, const t *blurred, t *y) { TYPES(t); EACH2(n, y, image, blurred, unit(a * ((C)1 + amount) - b * amount)); }
FLOATS(UNSHARPEN)
#define EXTEND(t, s) KERNEL(extend_##t)(i64 n, s factor, const t *low, const t *high, t *x) { TYPES(t); if (n <= 0) return; C from = *low, span = *high - from; EACH1(n, x, x, smaller((C)1, factor * (a - from) / span)); }
FLOATS(EXTEND)
#define COMBINE(t, s) KERNEL(combine_##t)(i64 n, const t *x, const t *y, const t *mask, t *z) { TYPES(t); EACH3(n, z, x, y, mask, a * c + b * ((C)1 - c)); }
FLOATS(COMBINE)

// The price of a European call, with the five-term normal distribution of Abramowitz and Stegun 26.2.17.
template <class C> DEVICE C normal_below(C d) {
  C a = d < (C)0 ? -d : d, k = (C)1 / ((C)1 + (C)0.2316419 * a), p = (C)1.330274429;
  p = p * k + (C)-1.821255978;
  p = p * k + (C)1.781477937;
  p = p * k + (C)-0.356563782;
  p = p * k + (C)0.31938153;
  C tail = (C)0.39894228040143267794 * exponential((C)-0.5 * a * a) * (p * k);
  return d < (C)0 ? tail : (C)1 - tail;
}
#define BLACK_SCHOLES(t, s) KERNEL(black_scholes_##t)(i64 n, s rate, s volatility, s time, s strike, const t *x, t *y) { \
  TYPES(t); \
  C spread = volatility * root(time), drift = (rate + volatility * volatility * (C)0.5) * time, paid = strike * exponential(-rate * time); \
  auto price = [=](C x) -> C { \
    C d = (logarithm(x / strike) + drift) / spread; \
    return x * normal_below(d) - paid * normal_below(d - spread); \
  }; \
  HEAVY1(n, y, x, price(a)); \
}
FLOATS(BLACK_SCHOLES)
