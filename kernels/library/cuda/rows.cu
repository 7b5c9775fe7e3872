// Kernels on the rows of a matrix. Each row of up to 32 elements has a thread, of up to 2,048 a warp, and each longer one a block; in softmax, the
// limits are 16 and 512. The sums and the largest elements of rows of more than 65,536 are made of those of their parts, which have a block each. The
// order of operations depends only on the number of columns.
#include "math.cuh"
#include "reduce.cuh"
#include "warp.cuh"

const int short_row = 32, warp_row = 2048, row_threads = 256;

// How many blocks of a kernel run at once on a multiprocessor at least: as many as the registers of its type of elements allow.
#define ROWS_OF(t, in32, in64, name) extern "C" __global__ void __launch_bounds__(row_threads, sizeof(t) == 4 ? in32 : in64) dagrun_##name##_##t

// Joins the states of a warp's lanes with Op::join(State &, State). Lane 0 gets the result.
template <class Op, class A> DEVICE A warp_fold(A mine) {
  u32 lane = thread_x() & 31;
#pragma unroll
  for (u32 half = 16; half > 0; half /= 2) Op::join(mine, from_lane(mine, (lane + half) & 31));
  return mine;
}
// The same for every lane.
template <class Op, class A> DEVICE A warp_tree(A mine) { return from_lane(warp_fold<Op>(mine), 0); }

// Joins the states of a block's warps, in order. Every thread gets the result.
template <class Op, class A> DEVICE A block_tree(A mine) {
  static __shared__ A parts[row_threads / 32];
  mine = warp_fold<Op>(mine);
  barrier();
  if ((thread_x() & 31) == 0) parts[thread_x() >> 5] = mine;
  barrier();
  A all = parts[0];
#pragma unroll
  for (int k = 1; k < row_threads / 32; k++) Op::join(all, parts[k]);
  return all;
}

// An Op joins two states, and follow joins the state of one element to that of elements before it.
template <class C> struct Most {
  static DEVICE_MEMBER void join(C &a, C b) { a = a < b ? b : a; }
  static DEVICE_MEMBER void follow(C &a, C b) { join(a, b); }
};
template <class C> struct Total {
  static DEVICE_MEMBER void join(C &a, C b) { a = a + b; }
  static DEVICE_MEMBER void follow(C &a, C b) { join(a, b); }
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
  static DEVICE_MEMBER void follow(Where<C> &a, const Where<C> &b) {
    if (b.index >= 0 && (a.index < 0 || a.value < b.value)) a = b;
  }
};

// fold_strided joins the elements j, j+step, ... of a row to a, with in_flight of them in flight. Those past its end count as start, which
// changes nothing.
template <int step, int in_flight, class Op, class A, class F> DEVICE void fold_strided(i64 j, i64 cols, A start, A &a, F element) {
#pragma unroll 1
  for (; j + (in_flight - 1) * step < cols; j += in_flight * step) {
    A v[in_flight];
#pragma unroll
    for (int u = 0; u < in_flight; u++) v[u] = element(j + u * step);
#pragma unroll
    for (int u = 0; u < in_flight; u++) Op::follow(a, v[u]);
  }
  if (j >= cols) return;
  u32 left = (u32)(cols - j);
  A v[in_flight];
#pragma unroll
  for (int u = 0; u < in_flight; u++) {
    v[u] = start;
    if (u * step < left) v[u] = element(j + u * step);
  }
#pragma unroll
  for (int u = 0; u < in_flight; u++) Op::follow(a, v[u]);
}

// fold_block folds a row in a block.
template <int in_flight, class Op, class A, class F> DEVICE A fold_block(i64 cols, A start, F element) {
  A a = start;
  fold_strided<row_threads, in_flight, Op>(thread_x(), cols, start, a, element);
  return block_tree<Op>(a);
}

// fold_warps folds rows in warps, with deep elements of a thread in flight: high rows at a time, of up to deep * 32 elements if there are several.
template <int high, int deep, class Op, class A, class E, class W> DEVICE void fold_warps(i64 rows, u32 cols, A start, E element, W write) {
  u32 lane = thread_x() & 31;
  for (i64 row = (first_index() >> 5) * high; row < rows; row += (index_step() >> 5) * high) {
    A a[high];
    if (high == 1) {
      a[0] = start;
      fold_strided<32, deep, Op>(lane, cols, start, a[0], [=](i64 j) { return element(row, j); });
    } else {
      A v[high][deep];
#pragma unroll
      for (int k = 0; k < high; k++) {
        i64 which = smaller(row + k, rows - 1);
#pragma unroll
        for (int u = 0; u < deep; u++) {
          v[k][u] = start;
          if (lane + u * 32 < cols) v[k][u] = element(which, (i64)lane + u * 32);
        }
      }
#pragma unroll
      for (int k = 0; k < high; k++) {
        a[k] = start;
#pragma unroll
        for (int u = 0; u < deep; u++) Op::follow(a[k], v[k][u]);
      }
    }
#pragma unroll
    for (int k = 0; k < high; k++) a[k] = warp_fold<Op>(a[k]);
    if (lane > 0) continue;
#pragma unroll
    for (int k = 0; k < high; k++)
      if (row + k < rows) write(row + k, a[k]);
  }
}

// The ways to compute rows by their columns. Each has kernels of its own, because a driver compiles what a program launches, and rowForms in
// table_rows.go chooses. A warp takes several rows at a time if there are more rows than warps.
enum Way {
  few,   // up to 16 columns: rows go through shared memory, because a warp whose threads each read their own row would not load contiguous words
  some,  // up to 32: a thread each
  to64,  // a warp for four rows
  to128, // a warp for four rows
  to256, // a warp for two rows, or one
  warp,  // up to 2,048: a warp each
  block, // a block each
};

// fold_rows, with in_flight elements of a thread in flight in long rows of a warp and in_block in rows of a block, joins element(row, column)
// of each row's columns and calls write(row, state) in one thread.
template <Way way, int in_flight, int in_block, class Op, class A, class E, class W> DEVICE void fold_rows(i64 rows, i64 cols, A start, E element, W write) {
  if constexpr (way == some) {
    for (i64 row = first_index(); row < rows; row += index_step()) {
      A a = start;
      for (i64 j = 0; j < cols; j++) Op::follow(a, element(row, j));
      write(row, a);
    }
  } else if constexpr (way == to64) {
    fold_warps<4, 2, Op>(rows, (u32)cols, start, element, write);
  } else if constexpr (way == to128) {
    fold_warps<4, 4, Op>(rows, (u32)cols, start, element, write);
  } else if constexpr (way == to256) {
    fold_warps<sizeof(A) == 4 ? 2 : 1, 8, Op>(rows, (u32)cols, start, element, write);
  } else if constexpr (way == warp) {
    fold_warps<1, in_flight, Op>(rows, (u32)cols, start, element, write);
  } else {
    for (i64 row = block_x(); row < rows; row += blocks_x()) {
      A a = fold_block<in_block, Op>(cols, start, [=](i64 j) { return element(row, j); });
      if (thread_x() == 0) write(row, a);
    }
  }
}

// each_row calls f(row, first column, step over columns).
template <class F> DEVICE void each_row(i64 rows, i64 cols, F f) {
  if (cols > warp_row) {
    for (i64 row = block_x(); row < rows; row += blocks_x()) f(row, (i64)thread_x(), (i64)row_threads);
    return;
  }
  bool whole = cols <= short_row;
  i64 first = whole ? first_index() : first_index() >> 5, step = whole ? index_step() : index_step() >> 5;
  u32 lane = thread_x() & 31;
  for (i64 row = first; row < rows; row += step) f(row, (i64)(whole ? 0 : lane), (i64)(whole ? 1 : 32));
}

const int staged_columns = 16, staged_rows = 256;

template <class T> DEVICE T *row_memory() {
  static __shared__ T memory[staged_rows * (staged_columns + 1)];
  return memory;
}

// staged calls f(a row's elements in shared memory, row) in one thread per row. element reads them by their index in the matrix. If
// back is set, the elements are written to y after f has changed them.
template <bool back, class T, class E, class F> DEVICE void staged(i64 rows, i64 cols, E element, T *y, F f) {
  const u32 deep = 4; // elements of a thread in flight
  T *tile = row_memory<T>();
  u32 wide = (u32)cols, pitch = wide | 1, down = row_threads / wide, along = row_threads % wide;
  for (i64 from = (i64)block_x() * row_threads; from < rows; from += index_step()) {
    u32 count = (u32)smaller(rows - from, (i64)row_threads) * wide, r = thread_x() / wide, c = thread_x() % wide;
    i64 first = from * cols;
    // The row and column of an element are computed from those of the previous one, without a division.
    auto next = [&]() {
      r += down;
      c += along;
      if (c >= wide) {
        c -= wide;
        r++;
      }
    };
#pragma unroll 1
    for (u32 i = thread_x(); i < count; i += deep * row_threads) {
      T v[deep];
#pragma unroll
      for (u32 u = 0; u < deep; u++)
        if (i + u * row_threads < count) v[u] = element(first + i + u * row_threads);
#pragma unroll
      for (u32 u = 0; u < deep; u++) {
        if (i + u * row_threads < count) tile[r * pitch + c] = v[u];
        next();
      }
    }
    barrier();
    if (from + thread_x() < rows) f(tile + thread_x() * pitch, from + thread_x());
    barrier();
    if (!back) continue;
    r = thread_x() / wide, c = thread_x() % wide;
#pragma unroll 4
    for (u32 i = thread_x(); i < count; i += row_threads) {
      y[first + i] = tile[r * pitch + c];
      next();
    }
    barrier();
  }
}

// each_value computes one value of each row: the states of its elements, state(load(index in the matrix), column, row), joined, and
// finish(the result, row) of that.
template <Way way, int in_flight, int in_block, class Op, class T, class A, class R, class L, class E, class F>
DEVICE void each_value(i64 rows, i64 cols, A start, R *y, L load, E state, F finish) {
  if constexpr (way == few) {
    staged<false>(rows, cols, load, (T *)0, [=](const T *r, i64 row) {
      A a = start;
      for (u32 j = 0; j < (u32)cols; j++) Op::follow(a, state(r[j], j, row));
      y[row] = finish(a, row);
    });
    return;
  }
  fold_rows<way, in_flight, in_block, Op>(rows, cols, start, [=](i64 row, i64 j) -> A { return state(load(row * cols + j), j, row); }, [=](i64 row, const A &a) { y[row] = finish(a, row); });
}

// fold_elements is each_value for a reduction of the elements as they are.
template <Way way, class Op, class T> DEVICE void fold_elements(i64 rows, i64 cols, T start, const T *x, T *y) {
  each_value<way, 8, 16, Op, T>(rows, cols, start, y, [=](i64 i) -> T { return x[i]; }, [](T v, i64, i64) -> T { return v; }, [](T a, i64) -> T { return a; });
}

// fold_parts is fold_elements for long rows. Each block folds parts of rows, and the last one to finish a part of a row folds the results of these.
const int row_part = 32768;
template <class Op, class T> DEVICE void fold_parts(i64 rows, i64 cols, T start, const T *x, T *y, void *scratch) {
  u64 *counters = (u64 *)scratch;
  T *results = (T *)(counters + rows);
  u32 parts = (u32)((cols + row_part - 1) / row_part);
  for (i64 task = block_x(); task < rows * parts; task += blocks_x()) {
    i64 row = task / parts, from = (task - row * parts) * row_part;
    const T *r = x + row * cols + from;
    T a = fold_block<16, Op>(smaller(cols - from, (i64)row_part), start, [=](i64 j) -> T { return r[j]; });
    if (thread_x() == 0) results[task] = a;
    if (!last_of(parts, counters + row)) continue;
    const T *of_row = results + row * parts;
    a = fold_block<4, Op>(parts, start, [=](i64 j) -> T { return of_row[j]; });
    if (thread_x() == 0) y[row] = a;
  }
}

// A kernel for each way. The way's name is in its own, but for rows of a block.
#define ALL_WAYS(M, name, t, ...) M(name, block, t, __VA_ARGS__) M(name##_few, few, t, __VA_ARGS__) M(name##_some, some, t, __VA_ARGS__) M(name##_to64, to64, t, __VA_ARGS__) \
  M(name##_to128, to128, t, __VA_ARGS__) M(name##_to256, to256, t, __VA_ARGS__) M(name##_warp, warp, t, __VA_ARGS__)

#define FOLD(name, way, t, Op, start) ROWS_OF(t, 6, 4, name)(i64 rows, i64 cols, const t *x, t *y) { fold_elements<way, Op<t>>(rows, cols, start, x, y); }
#define FOLD_LONG(name, t, Op, start) ROWS_OF(t, 6, 4, name##_long)(i64 rows, i64 cols, const t *x, t *y, void *scratch) { fold_parts<Op<t>>(rows, cols, start, x, y, scratch); }
ALL_WAYS(FOLD, row_max, f32, Most, -infinity(f32())) ALL_WAYS(FOLD, row_max, f64, Most, -infinity(f64()))
ALL_WAYS(FOLD, row_sum, f32, Total, (f32)0) ALL_WAYS(FOLD, row_sum, f64, Total, (f64)0)
FOLD_LONG(row_max, f32, Most, -infinity(f32())) FOLD_LONG(row_max, f64, Most, -infinity(f64())) FOLD_LONG(row_sum, f32, Total, (f32)0) FOLD_LONG(row_sum, f64, Total, (f64)0)

#define ROW_LOG_SUM_EXP(name, way, t, ...) ROWS_OF(t, 8, 6, name)(i64 rows, i64 cols, const t *x, const t *most, t *y) { \
  each_value<way, 4, 4, Total<t>, t>(rows, cols, (t)0, y, [=](i64 i) -> t { return x[i]; }, [=](t v, i64, i64 row) -> t { return near_exponential(v - most[row]); }, \
                          [=](t sum, i64 row) -> t { return logarithm(sum) + most[row]; }); \
}
ALL_WAYS(ROW_LOG_SUM_EXP, row_log_sum_exp, f32) ALL_WAYS(ROW_LOG_SUM_EXP, row_log_sum_exp, f64)

// place_of_most finds the column of each row's first largest element.
template <Way way, int in_flight, class T, class L> DEVICE void place_of_most(i64 rows, i64 cols, i32 *y, L load) {
  Where<T> none = {(T)0, -1};
  auto state = [](T v, i64 j, i64) -> Where<T> { return {v, v == v ? (i32)j : -1}; };
  each_value<way, in_flight, in_flight, Best<T>, T>(rows, cols, none, y, load, state, [](const Where<T> &a, i64) { return a.index; });
}

#define ROW_ARGMAX(name, way, t, ...) ROWS_OF(t, 8, 4, name)(i64 rows, i64 cols, const t *x, i32 *y) { \
  place_of_most<way, sizeof(t) == 4 ? 4 : 8, t>(rows, cols, y, [=](i64 i) -> t { return x[i]; }); \
}
ALL_WAYS(ROW_ARGMAX, row_argmax, f32) ALL_WAYS(ROW_ARGMAX, row_argmax, f64)

#define ROW_ARGMAX_SUM(name, way, t, ...) ROWS_OF(t, 5, 4, name)(i64 rows, i64 cols, const t *a, const t *b, i32 *y) { \
  place_of_most<way, 8, t>(rows, cols, y, [=](i64 i) -> t { return a[i] + b[i]; }); \
}
ALL_WAYS(ROW_ARGMAX_SUM, row_argmax_sum, f32) ALL_WAYS(ROW_ARGMAX_SUM, row_argmax_sum, f64)

// each_changed replaces the elements of every row: change(elements, first column, step over columns, row) changes them in place, in
// shared memory or in x.
template <Way way, class T, class F> DEVICE void each_changed(i64 rows, i64 cols, T *x, F change) {
  if constexpr (way == few) {
    staged<true>(rows, cols, [=](i64 i) -> T { return x[i]; }, x, [=](T *r, i64 row) { change(r, 0, 1, row); });
    return;
  }
  each_row(rows, cols, [=](i64 row, i64 first, i64 step) { change(x + row * cols, first, step, row); });
}

// A kernel for few columns, and one for others.
#define BOTH_WAYS(M, name, t) M(name, block, t) M(name##_few, few, t)

#define ROW_NORMALISE(name, way, t) ROWS_OF(t, 4, 4, name)(i64 rows, i64 cols, const t *l, t *x) { \
  each_changed<way>(rows, cols, x, [=](t *r, i64 first, i64 step, i64 row) { \
    t m = l[row]; \
    for (i64 j = first; j < cols; j += step) r[j] = exponential(r[j] - m); \
  }); \
}
BOTH_WAYS(ROW_NORMALISE, row_normalise, f32) BOTH_WAYS(ROW_NORMALISE, row_normalise, f64)

#define ADD_BIAS(name, way, t) ROWS_OF(t, 4, 4, name)(i64 rows, i64 cols, const t *bias, t *x) { \
  each_changed<way>(rows, cols, x, [=](t *r, i64 first, i64 step, i64) { \
    for (i64 j = first; j < cols; j += step) r[j] = r[j] + bias[j]; \
  }); \
}
BOTH_WAYS(ADD_BIAS, add_bias, f32) BOTH_WAYS(ADD_BIAS, add_bias, f64)

// softmax_warps computes rows that registers of a warp hold, of up to most elements for each lane, high rows at a time: each element is read once, and
// each exponential is computed once.
template <int high, int most, class T> DEVICE void softmax_warps(i64 rows, u32 cols, const T *x, T *y) {
  u32 lane = thread_x() & 31;
  for (i64 row = (first_index() >> 5) * high; row < rows; row += (index_step() >> 5) * high) {
    T v[high][most], m[high], s[high];
    i64 at[high];
#pragma unroll
    for (int k = 0; k < high; k++) {
      at[k] = (high == 1 ? row : smaller(row + k, rows - 1)) * cols + lane;
      m[k] = -infinity(T()), s[k] = (T)0;
#pragma unroll
      for (int u = 0; u < most; u++) {
        v[k][u] = -infinity(T());
        if (lane + u * 32 < cols) v[k][u] = x[at[k] + u * 32];
      }
    }
#pragma unroll
    for (int k = 0; k < high; k++) {
#pragma unroll
      for (int u = 0; u < most; u++) Most<T>::join(m[k], v[k][u]);
      m[k] = warp_tree<Most<T>>(m[k]);
    }
#pragma unroll
    for (int k = 0; k < high; k++) {
#pragma unroll
      for (int u = 0; u < most; u++) {
        if (lane + u * 32 >= cols) continue;
        v[k][u] = near_exponential(v[k][u] - m[k]);
        s[k] = s[k] + v[k][u];
      }
      s[k] = warp_tree<Total<T>>(s[k]);
    }
#pragma unroll
    for (int k = 0; k < high; k++)
#pragma unroll
      for (int u = 0; u < most; u++)
        if (lane + u * 32 < cols && row + k < rows) y[at[k] + u * 32] = v[k][u] / s[k];
  }
}

// The exponentials of tame numbers, which are at most 0, are far from the smallest numbers: at least 2^-80 for f32, and 2^-578 for f64.
DEVICE bool is_tame(f32 x) { return x > -55.0f; }
DEVICE bool is_tame(f64 x) { return x > -400.0; }
template <class T> DEVICE T tame_exponential(T x) {
  i32 n;
  T p = exponential_part(x, n);
  return near_scaled(p, n);
}
// tame_quotient is a / b for such an exponential and a b from 1 to 2^63, or NaN, whose inverse is given: the remainder of a quotient that is off by one
// at most is exact, and a step along it rounds as a division does.
template <class T> DEVICE T tame_quotient(T a, T b, T inverse) {
  T q = a * inverse;
  return fused(fused(-q, b, a), inverse, q);
}

// Greatest is Most where it does not matter which of 0 and -0 is greater, and takes one instruction for f32.
template <class C> struct Greatest : Most<C> {};
template <> struct Greatest<f32> {
  static DEVICE_MEMBER void join(f32 &a, f32 b) { asm("max.f32 %0, %1, %2;" : "=f"(a) : "f"(a), "f"(b)); }
};

// softmax_block computes rows that registers of a block hold, of up to most elements for each thread. A thread with an element far below the largest
// one, or NaN, reads its elements again.
template <int most, class T> DEVICE void softmax_block(i64 rows, u32 cols, const T *x, T *y) {
  const u32 step = row_threads;
  u32 first = thread_x();
  for (i64 row = block_x(); row < rows; row += blocks_x()) {
    const T *r = x + row * cols;
    T *w = y + row * cols, v[most], m = -infinity(T()), s = (T)0;
#pragma unroll
    for (int u = 0; u < most; u++) {
      v[u] = -infinity(T());
      if (first + u * step < cols) v[u] = r[first + u * step];
    }
#pragma unroll
    for (int u = 0; u < most; u++) Greatest<T>::join(m, v[u]);
    m = block_tree<Greatest<T>>(m);
    bool tame = true;
#pragma unroll
    for (int u = 0; u < most; u++) {
      v[u] = v[u] - m;
      tame = tame && (first + u * step >= cols || is_tame(v[u]));
    }
    if (tame) {
#pragma unroll
      for (int u = 0; u < most; u++) {
        v[u] = tame_exponential(v[u]);
        if (first + u * step < cols) s = s + v[u];
      }
    } else {
#pragma unroll 1
      for (u32 j = first; j < cols; j += step) s = s + exponential(r[j] - m);
    }
    s = block_tree<Total<T>>(s);
    if (tame) {
      T inverse = (T)1 / s;
#pragma unroll
      for (int u = 0; u < most; u++)
        if (first + u * step < cols) w[first + u * step] = tame_quotient(v[u], s, inverse);
    } else {
#pragma unroll 1
      for (u32 j = first; j < cols; j += step) w[j] = exponential(r[j] - m) / s;
    }
  }
}

// softmax_stored is the same for a row that is too long for registers, in shared memory. A thread uses only places of its own there.
template <class T> DEVICE void softmax_stored(i64 rows, u32 cols, const T *x, T *y) {
  const u32 deep = 8, step = row_threads;
  T *own = row_memory<T>() + thread_x();
  for (i64 row = block_x(); row < rows; row += blocks_x()) {
    const T *r = x + row * cols;
    T *w = y + row * cols, m = -infinity(T()), s = (T)0;
#pragma unroll 1
    for (u32 j = thread_x(), k = 0; j < cols; j += deep * step, k += deep * step) {
      T v[deep];
#pragma unroll
      for (u32 u = 0; u < deep; u++) {
        v[u] = -infinity(T());
        if (j + u * step < cols) v[u] = r[j + u * step];
      }
#pragma unroll
      for (u32 u = 0; u < deep; u++) {
        own[k + u * step] = v[u];
        Most<T>::join(m, v[u]);
      }
    }
    m = block_tree<Most<T>>(m);
    T *at = own;
#pragma unroll 4
    for (u32 j = thread_x(); j < cols; j += step, at += step) {
      *at = near_exponential(*at - m);
      s = s + *at;
    }
    s = block_tree<Total<T>>(s);
    at = own;
#pragma unroll 4
    for (u32 j = thread_x(); j < cols; j += step, at += step) w[j] = *at / s;
  }
}

template <class T> DEVICE void softmax_few(i64 rows, i64 cols, const T *x, T *y) {
  staged<true>(rows, cols, [=](i64 i) -> T { return x[i]; }, y, [=](T *r, i64 row) {
    T m = -infinity(T()), s = (T)0;
    bool tame = true;
    for (u32 j = 0; j < (u32)cols; j++) Most<T>::join(m, r[j]);
    for (u32 j = 0; j < (u32)cols; j++) {
      T v = r[j] - m;
      tame = tame && is_tame(v);
      r[j] = tame_exponential(v);
      s = s + r[j];
    }
    if (tame) {
      T inverse = (T)1 / s;
      for (u32 j = 0; j < (u32)cols; j++) r[j] = tame_quotient(r[j], s, inverse);
      return;
    }
    s = (T)0;
#pragma unroll 1
    for (u32 j = 0; j < (u32)cols; j++) {
      r[j] = exponential(x[row * cols + j] - m);
      s = s + r[j];
    }
#pragma unroll 1
    for (u32 j = 0; j < (u32)cols; j++) r[j] = r[j] / s;
  });
}

template <class T> DEVICE void softmax(i64 rows, i64 cols, const T *x, T *y) {
  for (i64 row = block_x(); row < rows; row += blocks_x()) {
    const T *r = x + row * cols;
    T *w = y + row * cols, m = fold_block<8, Most<T>>(cols, -infinity(T()), [=](i64 j) -> T { return r[j]; });
    T s = fold_block<4, Total<T>>(cols, (T)0, [=](i64 j) -> T { return near_exponential(r[j] - m); });
    for (i64 j = thread_x(); j < cols; j += row_threads) w[j] = near_exponential(r[j] - m) / s;
  }
}

// Kernels by the most columns that they take, of which softmaxForms in table_rows.go chooses one.
#define SOFTMAX(name, t, body) ROWS_OF(t, 6, 5, name)(i64 rows, i64 cols, const t *x, t *y) { body; }
#define SOFTMAX_WARPS(t, columns, high) SOFTMAX(softmax_to##columns, t, (softmax_warps<high, columns / 32>(rows, (u32)cols, x, y)))
#define SOFTMAX_BLOCK(t, columns) SOFTMAX(softmax_to##columns, t, softmax_block<columns / row_threads>(rows, (u32)cols, x, y))
#define SOFTMAXES(t) SOFTMAX(softmax, t, softmax(rows, cols, x, y)) SOFTMAX(softmax_few, t, softmax_few(rows, cols, x, y)) \
  SOFTMAX_WARPS(t, 32, 4) SOFTMAX_WARPS(t, 64, 4) SOFTMAX_WARPS(t, 128, 2) SOFTMAX_WARPS(t, 256, 1) SOFTMAX_WARPS(t, 512, 1) \
  SOFTMAX_BLOCK(t, 768) SOFTMAX_BLOCK(t, 1024) SOFTMAX_BLOCK(t, 1536) SOFTMAX_BLOCK(t, 2048)
SOFTMAXES(f32) ROWS_OF(f32, 5, 5, softmax_to4096)(i64 rows, i64 cols, const f32 *x, f32 *y) { softmax_block<16>(rows, (u32)cols, x, y); }
SOFTMAXES(f64) SOFTMAX(softmax_to4096, f64, softmax_stored(rows, (u32)cols, x, y))

// Joins rows of two matrices side by side.
#define CONCAT(t) ROWS_OF(t, 4, 4, concat)(i64 rows, i64 m, i64 n, const t *x, const t *y, t *z) { \
  i64 total = rows * (m + n); \
  for (i64 i = first_index(); i < total; i += index_step()) { \
    i64 row = rows == 1 ? 0 : (u64)total <= 0xffffffffu ? (i64)((u32)i / (u32)(m + n)) : i / (m + n), j = i - row * (m + n); \
    z[i] = j < m ? x[row * m + j] : y[row * n + j - m]; \
  } \
}
CONCAT(f32) CONCAT(f64) CONCAT(i32)
