// Kernels on the rows of a matrix. Each row of up to 32 elements has a thread, of up to 2,048 a warp, and each longer one a block; the order of
// operations depends only on the number of columns. Rows of up to 16 elements go through shared memory, because a warp whose threads each read
// their own row would not load contiguous words.
#include "math.cuh"
#include "warp.cuh"

const int short_row = 32, warp_row = 2048, row_threads = 256;

// Joins the states of a warp's lanes with Op::join(State &, State). Every lane gets the result.
template <class Op, class A> DEVICE A warp_tree(A mine) {
  u32 lane = thread_x() & 31;
#pragma unroll
  for (u32 half = 16; half > 0; half /= 2) {
    A other = from_lane(mine, (lane + half) & 31);
    if (lane < half) Op::join(mine, other);
  }
  return from_lane(mine, 0);
}

// Joins the states of a block's warps, in order. Every thread gets the result.
template <class Op, class A> DEVICE A block_tree(A mine) {
  static __shared__ A parts[row_threads / 32];
  mine = warp_tree<Op>(mine);
  barrier();
  if ((thread_x() & 31) == 0) parts[thread_x() >> 5] = mine;
  barrier();
  A all = parts[0];
#pragma unroll
  for (int k = 1; k < row_threads / 32; k++) Op::join(all, parts[k]);
  return all;
}

template <class C> struct Most {
  static DEVICE_MEMBER void join(C &a, C b) { a = a < b ? b : a; }
};
template <class C> struct Total {
  static DEVICE_MEMBER void join(C &a, C b) { a = a + b; }
};
template <class C> struct Where {
  C value;
  i32 index;
};
template <> struct Where<f32> {
  f32 value;
  i32 index;
};
template <> struct Where<f64> {
  f64 value;
  i32 index, unused;
};
template <class C> struct Best {
  static DEVICE_MEMBER void join(Where<C> &a, const Where<C> &b) {
    if (b.index >= 0 && (a.index < 0 || a.value < b.value || (a.value == b.value && b.index < a.index))) a = b;
  }
};

// fold reduces one row, in one thread, in one warp, or in a block.
template <class Op, class A, class F> DEVICE A fold(i64 cols, A start, F element) {
  if (cols <= short_row) {
    A a = start;
    for (i64 j = 0; j < cols; j++) Op::join(a, element(j));
    return a;
  }
  bool warp = cols <= warp_row;
  const int deep = 8; // elements in flight
  i64 j = warp ? thread_x() & 31 : thread_x(), step = warp ? 32 : row_threads;
  A a = start;
#pragma unroll 1
  for (; j + (deep - 1) * step < cols; j += deep * step) {
    A v[deep];
#pragma unroll
    for (int u = 0; u < deep; u++) v[u] = element(j + u * step);
#pragma unroll
    for (int u = 0; u < deep; u++) Op::join(a, v[u]);
  }
#pragma unroll 1
  for (; j < cols; j += step) Op::join(a, element(j));
  return warp ? warp_tree<Op>(a) : block_tree<Op>(a);
}

// each_row calls f(row, first column, step over columns, whether this thread writes the row's result).
template <class F> DEVICE void each_row(i64 rows, i64 cols, F f) {
  if (cols > warp_row) {
    for (i64 row = block_x(); row < rows; row += blocks_x()) f(row, (i64)thread_x(), (i64)row_threads, thread_x() == 0);
    return;
  }
  bool whole = cols <= short_row;
  i64 first = whole ? first_index() : first_index() >> 5, step = whole ? index_step() : index_step() >> 5;
  u32 lane = thread_x() & 31;
  for (i64 row = first; row < rows; row += step) f(row, (i64)(whole ? 0 : lane), (i64)(whole ? 1 : 32), whole || lane == 0);
}

const int staged_columns = 16, staged_rows = 256;

DEVICE bool stages(i64 cols) { return cols > 0 && cols <= staged_columns; }

template <class T> DEVICE T *row_memory() {
  static __shared__ T memory[staged_rows * (staged_columns + 1)];
  return memory;
}

// staged calls f(a row's elements in shared memory, row) in one thread per row. element reads them by their index in the matrix. If
// back is set, the elements are written to y after f has changed them.
template <bool back, class T, class E, class F> DEVICE void staged(i64 rows, i64 cols, E element, T *y, F f) {
  T *tile = row_memory<T>();
  u32 wide = (u32)cols, pitch = wide | 1, down = threads_x() / wide, along = threads_x() % wide;
  u32 first_row = thread_x() / wide, first_col = thread_x() % wide;
  for (i64 from = (i64)block_x() * threads_x(); from < rows; from += index_step()) {
    u32 count = (u32)smaller(rows - from, (i64)threads_x()) * wide;
    // The row and column of an element are computed from those of the previous one, without a division.
    auto each_element = [&](auto at) {
      u32 r = first_row, c = first_col;
      for (u32 i = thread_x(); i < count; i += threads_x()) {
        at(from * cols + i, tile[r * pitch + c]);
        r += down;
        c += along;
        if (c >= wide) {
          c -= wide;
          r++;
        }
      }
    };
    each_element([=](i64 i, T &v) { v = element(i); });
    barrier();
    if (from + thread_x() < rows) f(tile + thread_x() * pitch, from + thread_x());
    barrier();
    if (back) {
      each_element([=](i64 i, T &v) { y[i] = v; });
      barrier();
    }
  }
}

// each_value computes one value(elements, row) per row.
template <class T, class R, class F> DEVICE void each_value(i64 rows, i64 cols, const T *x, R *y, F value) {
  if (stages(cols)) {
    staged<false>(rows, cols, [=](i64 i) -> T { return x[i]; }, (T *)0, [=](const T *r, i64 row) { y[row] = value(r, row); });
    return;
  }
  each_row(rows, cols, [=](i64 row, i64, i64, bool writes) {
    R v = value(x + row * cols, row);
    if (writes) y[row] = v;
  });
}

template <class C> DEVICE C row_most(i64 cols, const C *x) {
  return fold<Most<C>>(cols, -infinity(C()), [=](i64 j) -> C { return x[j]; });
}

#define ROW_MAX(t) KERNEL_OF(4, row_max_##t)(i64 rows, i64 cols, const t *x, t *y) { \
  each_value(rows, cols, x, y, [=](const t *r, i64) -> t { return row_most(cols, r); }); \
}
ROW_MAX(f32) ROW_MAX(f64)

#define ROW_SUM(t) KERNEL_OF(4, row_sum_##t)(i64 rows, i64 cols, const t *x, t *y) { \
  each_value(rows, cols, x, y, [=](const t *r, i64) -> t { return fold<Total<t>>(cols, (t)0, [=](i64 j) -> t { return r[j]; }); }); \
}
ROW_SUM(f32) ROW_SUM(f64)

#define ROW_LOG_SUM_EXP(t) KERNEL_OF(4, row_log_sum_exp_##t)(i64 rows, i64 cols, const t *x, const t *most, t *y) { \
  each_value(rows, cols, x, y, [=](const t *r, i64 row) -> t { \
    t m = most[row]; \
    t s = fold<Total<t>>(cols, (t)0, [=](i64 j) -> t { return exponential(r[j] - m); }); \
    return logarithm(s) + m; \
  }); \
}
ROW_LOG_SUM_EXP(f32) ROW_LOG_SUM_EXP(f64)

// each_changed replaces the elements of every row: change(elements, first column, step over columns, row) changes them in place, in
// shared memory or in x.
template <class T, class F> DEVICE void each_changed(i64 rows, i64 cols, T *x, F change) {
  if (stages(cols)) {
    staged<true>(rows, cols, [=](i64 i) -> T { return x[i]; }, x, [=](T *r, i64 row) { change(r, 0, 1, row); });
    return;
  }
  each_row(rows, cols, [=](i64 row, i64 first, i64 step, bool) { change(x + row * cols, first, step, row); });
}

#define ROW_NORMALISE(t) KERNEL_OF(4, row_normalise_##t)(i64 rows, i64 cols, const t *l, t *x) { \
  each_changed(rows, cols, x, [=](t *r, i64 first, i64 step, i64 row) { \
    t m = l[row]; \
    for (i64 j = first; j < cols; j += step) r[j] = exponential(r[j] - m); \
  }); \
}
ROW_NORMALISE(f32) ROW_NORMALISE(f64)

#define ADD_BIAS(t) KERNEL_OF(4, add_bias_##t)(i64 rows, i64 cols, const t *bias, t *x) { \
  each_changed(rows, cols, x, [=](t *r, i64 first, i64 step, i64) { \
    for (i64 j = first; j < cols; j += step) r[j] = r[j] + bias[j]; \
  }); \
}
ADD_BIAS(f32) ADD_BIAS(f64)

// each_of calls f(v, place) for the elements of a row that are this thread's, with several loads in flight. places are 0, 1, 2, ...
template <class T, class F> DEVICE void each_of(const T *r, u32 first, u32 step, u32 cols, F f) {
  const int deep = 8;
  u32 j = first, k = 0;
#pragma unroll 1
  for (; j + (deep - 1) * step < cols; j += deep * step, k += deep) {
    T v[deep];
#pragma unroll
    for (int u = 0; u < deep; u++) v[u] = r[j + u * step];
#pragma unroll
    for (int u = 0; u < deep; u++) f(v[u], k + u);
  }
#pragma unroll 1
  for (; j < cols; j += step, k++) f(r[j], k);
}

// softmax_kept computes rows that shared memory holds: each element is read once, and each exponential is computed once. A thread uses only
// places of its own there.
template <class T> DEVICE void softmax_kept(i64 rows, u32 cols, const T *x, T *y) {
  bool warp = cols <= warp_row;
  u32 first = warp ? thread_x() & 31 : thread_x(), step = warp ? 32 : row_threads;
  T *own = row_memory<T>() + thread_x();
  for (i64 row = warp ? first_index() >> 5 : block_x(); row < rows; row += warp ? index_step() >> 5 : blocks_x()) {
    const T *r = x + row * cols;
    T *w = y + row * cols, m = -infinity(T()), s = (T)0;
    each_of(r, first, step, cols, [&](T v, u32 k) {
      own[k * row_threads] = v;
      Most<T>::join(m, v);
    });
    m = warp ? warp_tree<Most<T>>(m) : block_tree<Most<T>>(m);
    T *at = own;
#pragma unroll 4
    for (u32 j = first; j < cols; j += step, at += row_threads) {
      T e = exponential(*at - m);
      *at = e;
      s = s + e;
    }
    s = warp ? warp_tree<Total<T>>(s) : block_tree<Total<T>>(s);
    at = own;
#pragma unroll 4
    for (u32 j = first; j < cols; j += step, at += row_threads) w[j] = *at / s;
  }
}

template <class T> DEVICE void softmax(i64 rows, i64 cols, const T *x, T *y) {
  if (stages(cols)) {
    staged<true>(rows, cols, [=](i64 i) -> T { return x[i]; }, y, [=](T *r, i64) {
      T m = row_most(cols, r), s = (T)0;
      for (i64 j = 0; j < cols; j++) {
        r[j] = exponential(r[j] - m);
        s = s + r[j];
      }
      for (i64 j = 0; j < cols; j++) r[j] = r[j] / s;
    });
    return;
  }
  const i64 kept = cols <= warp_row ? 32 * staged_columns : row_threads * staged_columns;
  if (cols > short_row && cols <= kept) return softmax_kept(rows, (u32)cols, x, y);
  each_row(rows, cols, [=](i64 row, i64 first, i64 step, bool) {
    const T *r = x + row * cols;
    T *w = y + row * cols, m = row_most(cols, r);
    T s = fold<Total<T>>(cols, (T)0, [=](i64 j) -> T { return exponential(r[j] - m); });
    for (i64 j = first; j < cols; j += step) w[j] = exponential(r[j] - m) / s;
  });
}
#define SOFTMAX(t) KERNEL_OF(4, softmax_##t)(i64 rows, i64 cols, const t *x, t *y) { softmax(rows, cols, x, y); }
SOFTMAX(f32) SOFTMAX(f64)

template <class T, class E> DEVICE i32 place_of_most(i64 cols, E element) {
  Where<T> none = {(T)0, -1};
  return fold<Best<T>>(cols, none, [=](i64 j) -> Where<T> {
    T v = element(j);
    return {v, v == v ? (i32)j : -1};
  }).index;
}

#define ROW_ARGMAX(t) KERNEL_OF(4, row_argmax_##t)(i64 rows, i64 cols, const t *x, i32 *y) { \
  each_value(rows, cols, x, y, [=](const t *r, i64) -> i32 { return place_of_most<t>(cols, [=](i64 j) -> t { return r[j]; }); }); \
}
ROW_ARGMAX(f32) ROW_ARGMAX(f64)

template <class T> DEVICE void row_argmax_sum(i64 rows, i64 cols, const T *a, const T *b, i32 *y) {
  if (stages(cols)) {
    staged<false>(rows, cols, [=](i64 i) -> T { return a[i] + b[i]; }, (T *)0, [=](const T *r, i64 row) {
      y[row] = place_of_most<T>(cols, [=](i64 j) -> T { return r[j]; });
    });
    return;
  }
  each_row(rows, cols, [=](i64 row, i64, i64, bool writes) {
    const T *p = a + row * cols, *q = b + row * cols;
    i32 place = place_of_most<T>(cols, [=](i64 j) -> T { return p[j] + q[j]; });
    if (writes) y[row] = place;
  });
}
#define ROW_ARGMAX_SUM(t) KERNEL_OF(4, row_argmax_sum_##t)(i64 rows, i64 cols, const t *a, const t *b, i32 *y) { row_argmax_sum(rows, cols, a, b, y); }
ROW_ARGMAX_SUM(f32) ROW_ARGMAX_SUM(f64)

// Joins rows of two matrices side by side.
#define CONCAT(t) KERNEL_OF(4, concat_##t)(i64 rows, i64 m, i64 n, const t *x, const t *y, t *z) { \
  i64 total = rows * (m + n); \
  for (i64 i = first_index(); i < total; i += index_step()) { \
    i64 row = rows == 1 ? 0 : (u64)total <= 0xffffffffu ? (i64)((u32)i / (u32)(m + n)) : i / (m + n), j = i - row * (m + n); \
    z[i] = j < m ? x[row * m + j] : y[row * n + j - m]; \
  } \
}
CONCAT(f32) CONCAT(f64) CONCAT(i32)
