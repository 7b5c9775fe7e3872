// Elementwise kernels: y[i] from the i-th elements of up to three inputs. An output may be one of the inputs.
#include "common.cuh"

// each computes y[i] = f(a[i], b[i], c[i], i) with 16-byte accesses wherever the pointers share their offset from a
// 16-byte boundary, and several loads in flight before the first store.
template <int inputs, class T, class F>
DEVICE void each(i64 n, T *y, const T *a, const T *b, const T *c, F f) {
  typedef typename computed<T>::type C;
  typedef pack<T> P;
  const int width = 16 / sizeof(T), unroll = inputs < 2 ? 4 : 2;
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
#pragma unroll 1
  for (; p + (unroll - 1) * step < packs; p += step * unroll) many(p, number<unroll>());
#pragma unroll 1
  for (; p < packs; p += step) many(p, number<1>());
  // What is left: the elements before the first whole pack and after the last, or all of them.
  i64 rest = n - packs * width;
#pragma unroll 1
  for (i64 k = first; k < rest; k += step) one(k < head ? k : k + packs * width);
}

#define NONE (const T *)0
#define EACH0(n, y, body) each<0>(n, y, NONE, NONE, NONE, [=](C, C, C, i64 i) -> C { return body; })
#define EACH1(n, y, x0, body) each<1>(n, y, (const T *)x0, NONE, NONE, [=](C a, C, C, i64) -> C { return body; })
#define EACH2(n, y, x0, x1, body) each<2>(n, y, (const T *)x0, (const T *)x1, NONE, [=](C a, C b, C, i64) -> C { return body; })
#define EACH3(n, y, x0, x1, x2, body) each<3>(n, y, (const T *)x0, (const T *)x1, (const T *)x2, [=](C a, C b, C c, i64) -> C { return body; })
#define TYPES(t) typedef t T; typedef computed<t>::type C

#define ALL(M) M(f16, f32) M(bf16, f32) M(f32, f32) M(f64, f64) M(i32, i32)

#define FILL(t, s) KERNEL(fill_##t)(i64 n, s value, t *y) { TYPES(t); (void)sizeof(C); EACH0(n, y, ((void)i, value)); }
ALL(FILL)
#define COPY(t, m) KERNEL(copy_##t)(i64 n, const t *x, t *y) { TYPES(m); EACH1(n, (T *)y, x, a); }
COPY(f16, bits16) COPY(bf16, bits16) COPY(f32, f32) COPY(f64, f64) COPY(i32, i32)
#define SCALE(t, s) KERNEL(scale_##t)(i64 n, s alpha, t *x) { TYPES(t); EACH1(n, x, x, alpha * a); }
ALL(SCALE)
#define ADD(t, s) KERNEL(add_##t)(i64 n, const t *x, const t *y, t *z) { TYPES(t); EACH2(n, z, x, y, a + b); }
ALL(ADD)
#define AXPY(t, s) KERNEL(axpy_##t)(i64 n, s alpha, const t *x, t *y) { TYPES(t); EACH2(n, y, x, y, alpha * a + b); }
ALL(AXPY)
