// Pictures and grids: filters on a neighbourhood.
#include "math.cuh"

// A Gaussian blur is a blur along rows and then one along columns. A block makes 32 x 32 results: the picture's tile with its
// margin comes into shared memory once, is blurred along rows there and then along columns. What is outside the picture
// counts as zero.
const int side = 32, most_radius = 15;

#define BLUR(t) extern "C" __global__ void __launch_bounds__(256) dagrun_gaussian_blur_##t(i64 rows, i64 cols, i32 diameter, t sigma, const t *x, t *y) { \
  gaussian_blur(rows, cols, diameter, sigma, x, y); \
}

template <class T> DEVICE void gaussian_blur(i64 rows, i64 cols, i32 diameter, T sigma, const T *x, T *y) {
  static __shared__ T picture[side + 2 * most_radius][side + 2 * most_radius], half[side + 2 * most_radius][side], weight[2 * most_radius + 1];
  i32 radius = diameter / 2, wide = side + 2 * radius;
  // Every thread makes the sum of the weights itself: nobody waits.
  T total = (T)0;
  for (i32 k = 0; k < diameter; k++) {
    T d = (T)(k - radius), w = exponential(-(d * d) / ((T)2 * sigma * sigma));
    total = total + w;
    if ((i32)thread_x() == k) weight[k] = w;
  }
  barrier();
  if ((i32)thread_x() < diameter) weight[thread_x()] = weight[thread_x()] / total;
  i64 across = (cols + side - 1) / side, tiles = (rows + side - 1) / side * across;
  i32 tx = thread_x() % side, ty = thread_x() / side;
  for (i64 t = block_x(); t < tiles; t += blocks_x()) {
    i64 row = t / across * side - radius, col = t % across * side - radius;
    for (i32 i = ty; i < wide; i += 8)
      for (i32 j = tx; j < wide; j += side) {
        i64 r = row + i, c = col + j;
        picture[i][j] = r >= 0 && r < rows && c >= 0 && c < cols ? x[r * cols + c] : (T)0;
      }
    barrier();
    for (i32 i = ty; i < wide; i += 8) {
      T s = (T)0;
      for (i32 k = 0; k < diameter; k++) s = fused(weight[k], picture[i][tx + k], s);
      half[i][tx] = s;
    }
    barrier();
#pragma unroll
    for (i32 u = 0; u < 4; u++) {
      i32 i = ty + 8 * u;
      T s = (T)0;
      for (i32 k = 0; k < diameter; k++) s = fused(weight[k], half[i + k][tx], s);
      i64 r = row + radius + i, c = col + radius + tx;
      if (r < rows && c < cols) y[r * cols + c] = s;
    }
    barrier();
  }
}
BLUR(f32) BLUR(f64)

// grid_points calls f(row, column) for each point; neighbours come from the caches.
template <class F> DEVICE void grid_points(i64 rows, i64 cols, F f) {
  i64 total = rows * cols, step = index_step();
  if ((u64)total <= 0x7fffffffu) {
    for (u32 i = (u32)first_index(); i < (u32)total; i += (u32)step) f((i64)(i / (u32)cols), (i64)(i % (u32)cols));
    return;
  }
  for (i64 i = first_index(); i < total; i += step) f(i / cols, i % cols);
}

// The length of the gradient; outside the picture counts as zero.
#define SOBEL(t) KERNEL(sobel_##t)(i64 rows, i64 cols, const t *x, t *y) { \
  grid_points(rows, cols, [=](i64 r, i64 c) { \
    t p[3][3]; \
    _Pragma("unroll") for (int i = 0; i < 3; i++) _Pragma("unroll") for (int j = 0; j < 3; j++) { \
      i64 a = r + i - 1, b = c + j - 1; \
      p[i][j] = a >= 0 && a < rows && b >= 0 && b < cols ? x[a * cols + b] : (t)0; \
    } \
    t h = (p[0][2] - p[0][0]) + (t)2 * (p[1][2] - p[1][0]) + (p[2][2] - p[2][0]); \
    t v = (p[2][0] - p[0][0]) + (t)2 * (p[2][1] - p[0][1]) + (p[2][2] - p[0][2]); \
    y[r * cols + c] = root(h * h + v * v); \
  }); \
}
SOBEL(f32) SOBEL(f64)

// One step of heat on a grid; the border keeps its values.
#define STENCIL5(t) KERNEL(stencil5_##t)(i64 rows, i64 cols, t alpha, const t *x, t *y) { \
  grid_points(rows, cols, [=](i64 r, i64 c) { \
    const t *p = x + r * cols + c; \
    t v = *p; \
    if (r > 0 && r < rows - 1 && c > 0 && c < cols - 1) v = v + alpha * (((p[-cols] + p[cols]) + (p[-1] + p[1])) - (t)4 * v); \
    y[r * cols + c] = v; \
  }); \
}
STENCIL5(f32) STENCIL5(f64)

// The same for some rows of a larger grid: x has one row more above and below. The outer columns keep their values.
#define STENCIL5_HALO(t) KERNEL(stencil5_halo_##t)(i64 rows, i64 cols, t alpha, const t *x, t *y) { \
  grid_points(rows, cols, [=](i64 r, i64 c) { \
    const t *p = x + (r + 1) * cols + c; \
    t v = *p; \
    if (c > 0 && c < cols - 1) v = v + alpha * (((p[-cols] + p[cols]) + (p[-1] + p[1])) - (t)4 * v); \
    y[r * cols + c] = v; \
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

// Convolution of a picture of rows x cols points with channels last; weights are [out][size][size][in]. A thread makes up to 8
// channels of one point, so that what it reads serves all of them, and the weights come from shared memory where they fit.
const int channels_each = 8, most_weights = 8192;

template <bool positive> DEVICE void conv2d(i64 rows, i64 cols, i64 in, i64 out, i64 size, i64 stride, i64 pad, const f32 *x, const f32 *weights, f32 *y) {
  static __shared__ f32 kept[most_weights];
  i64 count = out * size * size * in;
  bool keeps = count <= most_weights;
  if (keeps) {
    for (i64 i = thread_x(); i < count; i += threads_x()) kept[i] = weights[i];
    barrier();
  }
  i64 high = (rows + 2 * pad - size) / stride + 1, wide = (cols + 2 * pad - size) / stride + 1;
  i64 groups = (out + channels_each - 1) / channels_each, each = size * size * in;
  for (i64 i = first_index(); i < high * wide * groups; i += index_step()) {
    i64 point = groups == 1 ? i : i / groups, first = groups == 1 ? 0 : i % groups * channels_each;
    i64 r = point < 0x80000000ll ? (i64)((u32)point / (u32)wide) : point / wide, c = point - r * wide;
    f32 sum[channels_each];
#pragma unroll
    for (int o = 0; o < channels_each; o++) sum[o] = 0.0f;
    for (i64 ky = 0; ky < size; ky++) {
      i64 a = r * stride + ky - pad;
      if (a < 0 || a >= rows) continue;
      for (i64 kx = 0; kx < size; kx++) {
        i64 b = c * stride + kx - pad;
        if (b < 0 || b >= cols) continue;
        const f32 *p = x + (a * cols + b) * in;
        i64 w = (first * size * size + ky * size + kx) * in;
        for (i64 ch = 0; ch < in; ch++) {
          f32 v = p[ch];
#pragma unroll
          for (int o = 0; o < channels_each; o++)
            if (first + o < out) sum[o] = fused(v, keeps ? kept[w + o * each + ch] : weights[w + o * each + ch], sum[o]);
        }
      }
    }
    f32 *to = y + point * out + first;
    if (positive)
#pragma unroll
      for (int o = 0; o < channels_each; o++) sum[o] = sum[o] < 0.0f ? 0.0f : sum[o];
    struct alignas(16) quad { f32 v[4]; };
    if (first + channels_each <= out && ((u64)to & 15) == 0) {
      ((quad *)to)[0] = quad{{sum[0], sum[1], sum[2], sum[3]}};
      ((quad *)to)[1] = quad{{sum[4], sum[5], sum[6], sum[7]}};
    } else {
#pragma unroll
      for (int o = 0; o < channels_each; o++)
        if (first + o < out) to[o] = sum[o];
    }
  }
}
#define CONV2D(name, positive) KERNEL(name##_f32)(i64 rows, i64 cols, i64 in, i64 out, i64 size, i64 stride, i64 pad, const f32 *x, const f32 *weights, f32 *y) { \
  conv2d<positive>(rows, cols, in, out, size, stride, pad, x, weights, y); \
}
CONV2D(conv2d, false) CONV2D(conv2d_relu, true)

#define MEAN_POOL(t) KERNEL(mean_pool_##t)(i64 rows, i64 cols, i64 channels, i64 size, i64 stride, const t *x, t *y) { \
  i64 high = (rows - size) / stride + 1, wide = (cols - size) / stride + 1; \
  for (i64 i = first_index(); i < high * wide * channels; i += index_step()) { \
    i64 point = i / channels, ch = i % channels, r = point / wide, c = point % wide; \
    const t *p = x + (r * stride * cols + c * stride) * channels + ch; \
    t s = (t)0; \
    for (i64 a = 0; a < size; a++) \
      for (i64 b = 0; b < size; b++) s = s + p[(a * cols + b) * channels]; \
    y[i] = s / (t)(size * size); \
  } \
}
MEAN_POOL(f32) MEAN_POOL(f64)
