// Kernels on the rows of a matrix. Rows of up to 32 elements take a thread each, longer ones a warp each; the order of
// operations depends on the number of columns alone.
#include "math.cuh"

const int short_row = 32;

template <class T> DEVICE T from_lane(T x, u32 lane) {
  u32 w[sizeof(T) / 4], r[sizeof(T) / 4];
  *(T *)w = x;
#pragma unroll
  for (int i = 0; i < (int)(sizeof(T) / 4); i++)
    asm volatile("shfl.sync.idx.b32 %0, %1, %2, 0x1f, 0xffffffff;" : "=r"(r[i]) : "r"(w[i]), "r"(lane));
  return *(T *)r;
}

// Op has join(State &, State). Every lane gets lane 0's result.
template <class Op, class A> DEVICE A warp_tree(A mine) {
  u32 lane = thread_x() & 31;
#pragma unroll
  for (u32 half = 16; half > 0; half /= 2) {
    A other = from_lane(mine, (lane + half) & 31);
    if (lane < half) Op::join(mine, other);
  }
  return from_lane(mine, 0);
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

// fold goes over the columns of one row: those of this thread in a short row, of this warp in a long one.
template <class Op, class A, class F> DEVICE A fold(i64 cols, A start, F element) {
  if (cols <= short_row) {
    A a = start;
    for (i64 j = 0; j < cols; j++) Op::join(a, element(j));
    return a;
  }
  A a = start;
#pragma unroll 4
  for (i64 j = thread_x() & 31; j < cols; j += 32) Op::join(a, element(j));
  return warp_tree<Op>(a);
}

// each_row calls f(row, first column, step over columns, whether this thread writes for the row).
template <class F> DEVICE void each_row(i64 rows, i64 cols, F f) {
  bool whole = cols <= short_row;
  i64 first = whole ? first_index() : first_index() >> 5, step = whole ? index_step() : index_step() >> 5;
  u32 lane = thread_x() & 31;
  for (i64 row = first; row < rows; row += step) f(row, (i64)(whole ? 0 : lane), (i64)(whole ? 1 : 32), whole || lane == 0);
}

template <class C> DEVICE C row_most(i64 cols, const C *x) {
  return fold<Most<C>>(cols, -infinity(C()), [=](i64 j) -> C { return x[j]; });
}

#define ROW_MAX(t) KERNEL(row_max_##t)(i64 rows, i64 cols, const t *x, t *y) { \
  each_row(rows, cols, [=](i64 row, i64, i64, bool writes) { \
    t m = row_most(cols, x + row * cols); \
    if (writes) y[row] = m; \
  }); \
}
ROW_MAX(f32) ROW_MAX(f64)

#define ROW_SUM(t) KERNEL(row_sum_##t)(i64 rows, i64 cols, const t *x, t *y) { \
  each_row(rows, cols, [=](i64 row, i64, i64, bool writes) { \
    const t *r = x + row * cols; \
    t s = fold<Total<t>>(cols, (t)0, [=](i64 j) -> t { return r[j]; }); \
    if (writes) y[row] = s; \
  }); \
}
ROW_SUM(f32) ROW_SUM(f64)

#define ROW_LOG_SUM_EXP(t) KERNEL(row_log_sum_exp_##t)(i64 rows, i64 cols, const t *x, const t *most, t *y) { \
  each_row(rows, cols, [=](i64 row, i64, i64, bool writes) { \
    const t *r = x + row * cols; \
    t m = most[row]; \
    t s = fold<Total<t>>(cols, (t)0, [=](i64 j) -> t { return exponential(r[j] - m); }); \
    if (writes) y[row] = logarithm(s) + m; \
  }); \
}
ROW_LOG_SUM_EXP(f32) ROW_LOG_SUM_EXP(f64)

#define ROW_NORMALISE(t) KERNEL(row_normalise_##t)(i64 rows, i64 cols, const t *l, t *x) { \
  each_row(rows, cols, [=](i64 row, i64 first, i64 step, bool) { \
    t *r = x + row * cols, m = l[row]; \
    for (i64 j = first; j < cols; j += step) r[j] = exponential(r[j] - m); \
  }); \
}
ROW_NORMALISE(f32) ROW_NORMALISE(f64)

#define SOFTMAX(t) KERNEL(softmax_##t)(i64 rows, i64 cols, const t *x, t *y) { \
  each_row(rows, cols, [=](i64 row, i64 first, i64 step, bool) { \
    const t *r = x + row * cols; \
    t *w = y + row * cols, m = row_most(cols, r); \
    t s = fold<Total<t>>(cols, (t)0, [=](i64 j) -> t { return exponential(r[j] - m); }); \
    for (i64 j = first; j < cols; j += step) w[j] = exponential(r[j] - m) / s; \
  }); \
}
SOFTMAX(f32) SOFTMAX(f64)

#define ROW_ARGMAX(t) KERNEL(row_argmax_##t)(i64 rows, i64 cols, const t *x, i32 *y) { \
  each_row(rows, cols, [=](i64 row, i64, i64, bool writes) { \
    const t *r = x + row * cols; \
    Where<t> none = {(t)0, -1}, w = fold<Best<t>>(cols, none, [=](i64 j) -> Where<t> { return {r[j], r[j] == r[j] ? (i32)j : -1}; }); \
    if (writes) y[row] = w.index; \
  }); \
}
ROW_ARGMAX(f32) ROW_ARGMAX(f64)

#define ROW_ARGMAX_SUM(t) KERNEL(row_argmax_sum_##t)(i64 rows, i64 cols, const t *a, const t *b, i32 *y) { \
  each_row(rows, cols, [=](i64 row, i64, i64, bool writes) { \
    const t *p = a + row * cols, *q = b + row * cols; \
    Where<t> none = {(t)0, -1}, w = fold<Best<t>>(cols, none, [=](i64 j) -> Where<t> { t v = p[j] + q[j]; return {v, v == v ? (i32)j : -1}; }); \
    if (writes) y[row] = w.index; \
  }); \
}
ROW_ARGMAX_SUM(f32) ROW_ARGMAX_SUM(f64)

#define ADD_BIAS(t) KERNEL(add_bias_##t)(i64 rows, i64 cols, const t *bias, t *x) { \
  each_row(rows, cols, [=](i64 row, i64 first, i64 step, bool) { \
    t *r = x + row * cols; \
    for (i64 j = first; j < cols; j += step) r[j] = r[j] + bias[j]; \
  }); \
}
ADD_BIAS(f32) ADD_BIAS(f64)

// Joins rows of two matrices side by side.
#define CONCAT(t) KERNEL(concat_##t)(i64 rows, i64 m, i64 n, const t *x, const t *y, t *z) { \
  i64 total = rows * (m + n); \
  for (i64 i = first_index(); i < total; i += index_step()) { \
    i64 row = rows == 1 ? 0 : (u64)total <= 0xffffffffu ? (i64)((u32)i / (u32)(m + n)) : i / (m + n), j = i - row * (m + n); \
    z[i] = j < m ? x[row * m + j] : y[row * n + j - m]; \
  } \
}
CONCAT(f32) CONCAT(f64) CONCAT(i32)
