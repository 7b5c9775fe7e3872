// Pictures and grids: filters on a neighbourhood.
#include "math.cuh"

// A Gaussian blur is a blur along the rows, then one along the columns. A block computes 32 x 32 results: it loads the picture's tile with
// its margin into shared memory once and blurs it there along rows, then along columns. Points outside the picture count as
// zero.
const int side = 32, most_radius = 15, most_wide = side + 2 * most_radius;

template <class T> struct BlurTile {
  T picture[most_wide][most_wide], half[most_wide][side], weight[2 * most_radius + 1];
};

// fixed is the diameter if it is known at compile time, which unrolls the loops over it; otherwise it is 0. x has `above` extra rows
// before the rows of the result and `below` after; rows beyond those count as zero.
template <int fixed, class T>
DEVICE void blur_tiles(BlurTile<T> &s, i64 rows, i64 cols, i64 above, i64 below, i32 any_diameter, const T *x, T *y) {
  const i32 diameter = fixed ? fixed : any_diameter, radius = diameter / 2, wide = side + 2 * radius, own = 4;
  i64 across = (cols + side - 1) / side, tiles = (rows + side - 1) / side * across;
  i32 tx = thread_x() % side, ty = thread_x() / side;
  for (i64 t = block_x(); t < tiles; t += blocks_x()) {
    i64 row = t / across * side, col = t % across * side;
    for (i32 k = thread_x(); k < wide * wide; k += 256) {
      i32 i = k / wide, j = k % wide;
      i64 r = row - radius + i, c = col - radius + j;
      s.picture[i][j] = r >= -above && r < rows + below && c >= 0 && c < cols ? x[(r + above) * cols + c] : (T)0;
    }
    barrier();
    for (i32 i = ty; i < wide; i += 8) {
      T sum = (T)0;
      for (i32 k = 0; k < diameter; k++) sum = fused(s.weight[k], s.picture[i][tx + k], sum);
      s.half[i][tx] = sum;
    }
    barrier();
    // Four results in a column, which share most of their inputs.
    T sum[own];
#pragma unroll
    for (int u = 0; u < own; u++) sum[u] = (T)0;
    for (i32 k = 0; k < diameter + own - 1; k++) {
      T v = s.half[ty * own + k][tx];
#pragma unroll
      for (int u = 0; u < own; u++)
        if (k - u >= 0 && k - u < diameter) sum[u] = fused(s.weight[k - u], v, sum[u]);
    }
#pragma unroll
    for (int u = 0; u < own; u++) {
      i64 r = row + ty * own + u, c = col + tx;
      if (r < rows && c < cols) y[r * cols + c] = sum[u];
    }
    barrier();
  }
}

template <class T> DEVICE void gaussian_blur(i64 rows, i64 cols, i64 above, i64 below, i32 diameter, T sigma, const T *x, T *y) {
  static __shared__ BlurTile<T> s;
  // Every thread computes the sum of the weights itself, which saves a barrier.
  T total = (T)0;
  for (i32 k = 0; k < diameter; k++) {
    T d = (T)(k - diameter / 2), w = exponential(-(d * d) / ((T)2 * sigma * sigma));
    total = total + w;
    if ((i32)thread_x() == k) s.weight[k] = w;
  }
  barrier();
  if ((i32)thread_x() < diameter) s.weight[thread_x()] = s.weight[thread_x()] / total;
  barrier();
  switch (diameter) {
  case 3: return blur_tiles<3>(s, rows, cols, above, below, diameter, x, y);
  case 5: return blur_tiles<5>(s, rows, cols, above, below, diameter, x, y);
  }
  blur_tiles<0>(s, rows, cols, above, below, diameter, x, y);
}
#define BLUR(t) extern "C" __global__ void __launch_bounds__(256) dagrun_gaussian_blur_##t(i64 rows, i64 cols, i32 diameter, t sigma, const t *x, t *y) { \
  gaussian_blur(rows, cols, 0, 0, diameter, sigma, x, y); \
}
BLUR(f32) BLUR(f64)
#define BLUR_ROWS(t) extern "C" __global__ void __launch_bounds__(256) dagrun_gaussian_blur_rows_##t(i64 rows, i64 cols, i64 above, i64 below, i32 diameter, t sigma, const t *x, t *y) { \
  gaussian_blur(rows, cols, above, below, diameter, sigma, x, y); \
}
BLUR_ROWS(f32) BLUR_ROWS(f64)

// grid_points calls f(row, column, index) for each point, whose row and column are computed from those of the previous one, without a division.
// Neighbours are read through the caches.
template <class I, class F> DEVICE void points_by(I total, I cols, I step, F f) {
  I i = (I)first_index(), r = i / cols, c = i % cols, down = step / cols, along = step % cols;
#pragma unroll 2
  for (; i < total; i += step) {
    f((i64)r, (i64)c, (i64)i);
    r += down;
    c += along;
    if (c >= cols) c -= cols, r++;
  }
}
template <class F> DEVICE void grid_points(i64 rows, i64 cols, F f) {
  u64 total = (u64)(rows * cols);
  if (total == 0) return;
  if (total <= 0x7fffffffu) points_by<u32>((u32)total, (u32)cols, (u32)index_step(), f);
  else points_by<u64>(total, (u64)cols, (u64)index_step(), f);
}

// The magnitude of the gradient. Points outside the picture count as zero; x has `above` and `below` extra rows, as in a blur.
template <class T> DEVICE void sobel(i64 rows, i64 cols, i64 above, i64 below, const T *x, T *y) {
  grid_points(rows, cols, [=](i64 r, i64 c, i64 i) {
    T p[3][3];
    const T *middle = x + above * cols + i;
#pragma unroll
    for (int k = 0; k < 3; k++) {
      bool row = r + k - 1 >= -above && r + k - 1 < rows + below;
      const T *at = middle + (k - 1) * cols;
#pragma unroll
      for (int j = 0; j < 3; j++) p[k][j] = row && (j != 0 || c > 0) && (j != 2 || c < cols - 1) ? at[j - 1] : (T)0;
    }
    T h = (p[0][2] - p[0][0]) + (T)2 * (p[1][2] - p[1][0]) + (p[2][2] - p[2][0]);
    T v = (p[2][0] - p[0][0]) + (T)2 * (p[2][1] - p[0][1]) + (p[2][2] - p[0][2]);
    y[i] = root(h * h + v * v);
  });
}
#define SOBEL(t) KERNEL(sobel_##t)(i64 rows, i64 cols, const t *x, t *y) { sobel(rows, cols, 0, 0, x, y); }
SOBEL(f32) SOBEL(f64)
#define SOBEL_ROWS(t) KERNEL(sobel_rows_##t)(i64 rows, i64 cols, i64 above, i64 below, const t *x, t *y) { sobel(rows, cols, above, below, x, y); }
SOBEL_ROWS(f32) SOBEL_ROWS(f64)

// One step of the heat equation on a grid; the border is copied.
#define STENCIL5(t) KERNEL(stencil5_##t)(i64 rows, i64 cols, t alpha, const t *x, t *y) { \
  grid_points(rows, cols, [=](i64 r, i64 c, i64 i) { \
    const t *p = x + i; \
    t v = *p; \
    if (r > 0 && r < rows - 1 && c > 0 && c < cols - 1) v = v + alpha * (((p[-cols] + p[cols]) + (p[-1] + p[1])) - (t)4 * v); \
    y[i] = v; \
  }); \
}
STENCIL5(f32) STENCIL5(f64)

// The same for some rows of a larger grid: x has an extra row above and below. The outer columns are copied.
#define STENCIL5_HALO(t) KERNEL(stencil5_halo_##t)(i64 rows, i64 cols, t alpha, const t *x, t *y) { \
  grid_points(rows, cols, [=](i64 r, i64 c, i64 i) { \
    const t *p = x + cols + i; \
    t v = *p; \
    if (c > 0 && c < cols - 1) v = v + alpha * (((p[-cols] + p[cols]) + (p[-1] + p[1])) - (t)4 * v); \
    y[i] = v; \
  }); \
}
STENCIL5_HALO(f32) STENCIL5_HALO(f64)

#define STENCIL3(t) KERNEL(stencil3_##t)(i64 n, t alpha, const t *x, t *y) { \
  for (i64 i = first_index(); i < n; i += index_step()) { \
    t v = x[i]; \
    if (i > 0 && i < n - 1) v = v + alpha * ((x[i - 1] + x[i + 1]) - (t)2 * v); \
    y[i] = v; \
  } \
}
STENCIL3(f32) STENCIL3(f64)

// Convolution of a picture of rows x cols points with channels last, with `above` and `below` rows of zeros before and after it;
// weights are [out][size][size][in]. A thread computes up to 8 channels of one point, which share the points it reads. The weights
// are in shared memory if they fit there, those of a thread's 8 channels side by side: two vector loads.
const int channels_each = 8, most_weights = 8192;

struct alignas(16) quad { f32 v[4]; };

// add_products adds the products of one element for each of a thread's channels.
DEVICE void add_products(f32 v, const f32 *w, f32 *sum) {
  quad low = ((const quad *)w)[0], high = ((const quad *)w)[1];
#pragma unroll
  for (int o = 0; o < 4; o++) {
    sum[o] = fused(v, low.v[o], sum[o]);
    sum[o + 4] = fused(v, high.v[o], sum[o + 4]);
  }
}

template <bool positive>
DEVICE void conv2d(i64 rows, i64 cols, i64 in, i64 out, i64 size, i64 stride, i64 pad, i64 above, i64 below, const f32 *x, const f32 *weights, f32 *y) {
  alignas(16) static __shared__ f32 kept[most_weights];
  i64 groups = (out + channels_each - 1) / channels_each, run = size * in, each = size * run;
  bool keeps = groups * channels_each * each <= most_weights;
  if (keeps) {
    for (u32 i = thread_x(); i < (u32)(groups * channels_each * each); i += threads_x()) {
      u32 o = i / (u32)(channels_each * each) * channels_each + i % channels_each, k = i / channels_each % (u32)each;
      kept[i] = o < out ? weights[o * each + k] : 0.0f;
    }
    barrier();
  }
  i64 high = (rows + above + below - size) / stride + 1, wide = (cols + 2 * pad - size) / stride + 1;
  for (i64 i = first_index(); i < high * wide * groups; i += index_step()) {
    i64 point = groups == 1 ? i : i / groups, group = groups == 1 ? 0 : i % groups, first = group * channels_each;
    i64 r = point < 0x80000000ll ? (i64)((u32)point / (u32)wide) : point / wide, c = point - r * wide;
    f32 sum[channels_each];
#pragma unroll
    for (int o = 0; o < channels_each; o++) sum[o] = 0.0f;
    i64 top = r * stride - above, left = c * stride - pad;
    u32 own = (u32)(group * channels_each * each);
    if (keeps && size == 3 && in == 1) {
      // With one channel, a 3 x 3 window is nine loads that are in flight together.
      const f32 *p = x + top * cols + left;
      f32 v[3][3];
      bool there[3][3];
#pragma unroll
      for (int a = 0; a < 3; a++)
#pragma unroll
        for (int b = 0; b < 3; b++) {
          there[a][b] = top + a >= 0 && top + a < rows && left + b >= 0 && left + b < cols;
          v[a][b] = there[a][b] ? p[a * cols + b] : 0.0f;
        }
#pragma unroll
      for (int a = 0; a < 3; a++)
#pragma unroll
        for (int b = 0; b < 3; b++)
          if (there[a][b]) add_products(v[a][b], kept + own + (a * 3 + b) * channels_each, sum);
    } else {
      // The rows and columns of the window that lie in the picture. Each row of it is contiguous, in the picture and in the weights.
      i64 from_row = larger(-top, (i64)0), to_row = smaller(rows - top, size);
      i64 from = larger(-left, (i64)0) * in, to = smaller(cols - left, size) * in;
      const f32 *p = x + ((top + from_row) * cols + left) * in;
      if (keeps) {
        u32 w = own + (u32)(from_row * run) * channels_each;
        for (i64 ky = from_row; ky < to_row; ky++, p += cols * in, w += (u32)run * channels_each)
#pragma unroll 8
          for (i32 t = (i32)from; t < (i32)to; t++) add_products(p[t], kept + w + t * channels_each, sum);
      } else {
        const f32 *w = weights + first * each + from_row * run;
        for (i64 ky = from_row; ky < to_row; ky++, p += cols * in, w += run)
          for (i64 t = from; t < to; t++) {
            f32 v = p[t];
#pragma unroll
            for (int o = 0; o < channels_each; o++)
              if (first + o < out) sum[o] = fused(v, w[o * each + t], sum[o]);
          }
      }
    }
    f32 *at = y + point * out + first;
    if (positive)
#pragma unroll
      for (int o = 0; o < channels_each; o++) sum[o] = sum[o] < 0.0f ? 0.0f : sum[o];
    if (first + channels_each <= out && ((u64)at & 15) == 0) {
      ((quad *)at)[0] = quad{{sum[0], sum[1], sum[2], sum[3]}};
      ((quad *)at)[1] = quad{{sum[4], sum[5], sum[6], sum[7]}};
    } else {
#pragma unroll
      for (int o = 0; o < channels_each; o++)
        if (first + o < out) at[o] = sum[o];
    }
  }
}
#define CONV2D(name, positive) KERNEL(name##_f32)(i64 rows, i64 cols, i64 in, i64 out, i64 size, i64 stride, i64 pad, const f32 *x, const f32 *weights, f32 *y) { \
  conv2d<positive>(rows, cols, in, out, size, stride, pad, pad, pad, x, weights, y); \
}
CONV2D(conv2d, false) CONV2D(conv2d_relu, true)
#define CONV2D_ROWS(name, positive) KERNEL(name##_rows_f32)(i64 rows, i64 cols, i64 in, i64 out, i64 size, i64 stride, i64 pad, i64 above, i64 below, const f32 *x, const f32 *weights, f32 *y) { \
  conv2d<positive>(rows, cols, in, out, size, stride, pad, above, below, x, weights, y); \
}
CONV2D_ROWS(conv2d, false) CONV2D_ROWS(conv2d_relu, true)

// quotient divides in 32 bits if both numbers fit: a 64-bit division takes some forty instructions.
DEVICE i64 quotient(i64 a, i64 b, bool narrow) { return narrow ? (i64)((u32)a / (u32)b) : a / b; }

#define MEAN_POOL(t) KERNEL(mean_pool_##t)(i64 rows, i64 cols, i64 channels, i64 size, i64 stride, const t *x, t *y) { \
  i64 high = (rows - size) / stride + 1, wide = (cols - size) / stride + 1, total = high * wide * channels; \
  bool narrow = (u64)total <= 0xffffffffu; \
  for (i64 i = first_index(); i < total; i += index_step()) { \
    i64 point = quotient(i, channels, narrow), ch = i - point * channels, r = quotient(point, wide, narrow), c = point - r * wide; \
    const t *p = x + (r * stride * cols + c * stride) * channels + ch; \
    t s = (t)0; \
    for (i64 a = 0; a < size; a++, p += cols * channels) { \
      const t *q = p; \
      _Pragma("unroll 5") for (i32 b = 0; b < (i32)size; b++, q += channels) s = s + *q; \
    } \
    y[i] = s / (t)(size * size); \
  } \
}
MEAN_POOL(f32) MEAN_POOL(f64)
