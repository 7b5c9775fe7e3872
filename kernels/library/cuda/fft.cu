// One stage of a self-sorting (Stockham) radix-2 Fourier transform: log2(n) launches that alternate between two buffers.
// Complex numbers are pairs.
#include "math.cuh"

// half is 1, 2, 4, ... n/2; x and y hold batch transforms of n points.
template <class C> DEVICE void fft_stage(i64 n, i64 batch, i64 half, i32 inverse, const C *x, C *y) {
  for (i64 i = first_index(); i < n / 2 * batch; i += index_step()) {
    i64 which = i / (n / 2), j = i % (n / 2), k = j % half;
    const C *in = x + which * n * 2;
    C *out = y + which * n * 2;
    C s, c;
    sine_cosine_turns((C)k / (C)(2 * half), s, c);
    if (!inverse) s = -s;
    C ar = in[j * 2], ai = in[j * 2 + 1], br = in[(j + n / 2) * 2], bi = in[(j + n / 2) * 2 + 1];
    C tr = br * c - bi * s, ti = br * s + bi * c;
    i64 to = (j - k) * 2 + k;
    out[to * 2] = ar + tr;
    out[to * 2 + 1] = ai + ti;
    out[(to + half) * 2] = ar - tr;
    out[(to + half) * 2 + 1] = ai - ti;
  }
}
#define FFT_STAGE(t) KERNEL(fft_stage_##t)(i64 n, i64 batch, i64 half, i32 inverse, const t *x, t *y) { fft_stage(n, batch, half, inverse, x, y); }
FFT_STAGE(f32) FFT_STAGE(f64)
