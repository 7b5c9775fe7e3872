// Reductions of one or two vectors to a number.
#include "reduce.cuh"

template <class T> struct summed { typedef typename computed<T>::type type; };
template <> struct summed<i32> { typedef i64 type; };

template <class S> struct Adding {
  typedef S State;
  static DEVICE_MEMBER S start() { return (S)0; }
  static DEVICE_MEMBER void join(S &a, S b) { a = a + b; }
};
template <class T> struct Sum : Adding<typename summed<T>::type> {
  typedef typename summed<T>::type S;
  static DEVICE_MEMBER void take(S &a, T x, T, i64) { a = a + (S)widen(x); }
};
template <class T> struct Dot : Adding<typename summed<T>::type> {
  typedef typename summed<T>::type S;
  static DEVICE_MEMBER void take(S &a, T x, T y, i64) { a = a + (S)widen(x) * (S)widen(y); }
};
template <class T> struct Difference : Adding<typename summed<T>::type> {
  typedef typename summed<T>::type S;
  static DEVICE_MEMBER void take(S &a, T x, T y, i64) { a = a + ((S)widen(x) - (S)widen(y)); }
};

DEVICE f32 highest(f32) { return f32_of(0x7f800000); }
DEVICE f64 highest(f64) { return f64_of(0x7ff0000000000000ll); }
DEVICE i32 highest(i32) { return 0x7fffffff; }
DEVICE f32 lowest(f32) { return -highest(0.0f); }
DEVICE f64 lowest(f64) { return -highest(0.0); }
DEVICE i32 lowest(i32) { return -0x7fffffff - 1; }

// Comparisons ignore NaNs.
template <class T> struct Min {
  typedef typename computed<T>::type State;
  static DEVICE_MEMBER State start() { return highest(State()); }
  static DEVICE_MEMBER void join(State &a, State b) { a = b < a ? b : a; }
  static DEVICE_MEMBER void take(State &a, T x, T, i64) { join(a, widen(x)); }
};
template <class T> struct Max {
  typedef typename computed<T>::type State;
  static DEVICE_MEMBER State start() { return lowest(State()); }
  static DEVICE_MEMBER void join(State &a, State b) { a = a < b ? b : a; }
  static DEVICE_MEMBER void take(State &a, T x, T, i64) { join(a, widen(x)); }
};

template <class T> struct Argmax {
  typedef typename computed<T>::type C;
  struct State {
    C value;
    i64 index; // -1: none yet
  };
  static DEVICE_MEMBER State start() { return State{(C)0, -1}; }
  static DEVICE_MEMBER void join(State &a, const State &b) {
    if (b.index >= 0 && (a.index < 0 || a.value < b.value || (a.value == b.value && b.index < a.index))) a = b;
  }
  static DEVICE_MEMBER void take(State &a, T x, T, i64 i) {
    C v = widen(x);
    if (v == v) join(a, State{v, i});
  }
};

#define REDUCE1(name, t, Op, o) KERNEL(name##_##t)(i64 n, const t *x, o *out, void *scratch) { \
  reduce<Op<t>, 1>(n, x, x, scratch, [=](Op<t>::State r) { *out = r; }); \
}
#define REDUCE2(name, t, Op, o) KERNEL(name##_##t)(i64 n, const t *x, const t *y, o *out, void *scratch) { \
  reduce<Op<t>, 2>(n, x, y, scratch, [=](Op<t>::State r) { *out = r; }); \
}
#define ALL(M, name, Op) M(name, f16, Op, f32) M(name, bf16, Op, f32) M(name, f32, Op, f32) M(name, f64, Op, f64)
ALL(REDUCE1, reduce_sum, Sum) REDUCE1(reduce_sum, i32, Sum, i64)
ALL(REDUCE1, reduce_min, Min) REDUCE1(reduce_min, i32, Min, i32)
ALL(REDUCE1, reduce_max, Max) REDUCE1(reduce_max, i32, Max, i32)
ALL(REDUCE2, dot, Dot) REDUCE2(dot, i32, Dot, i64)
ALL(REDUCE2, sum_difference, Difference) REDUCE2(sum_difference, i32, Difference, i64)

#define NORM(t, o) KERNEL(norm_##t)(i64 n, const t *x, o *out, void *scratch) { \
  reduce<Dot<t>, 1>(n, x, x, scratch, [=](o r) { *out = root(r); }); \
}
NORM(f16, f32) NORM(bf16, f32) NORM(f32, f32) NORM(f64, f64)

#define ARGMAX(t) KERNEL(argmax_##t)(i64 n, const t *x, i64 *out, void *scratch) { \
  reduce<Argmax<t>, 1>(n, x, x, scratch, [=](const Argmax<t>::State &r) { *out = r.index; }); \
}
ARGMAX(f32) ARGMAX(f64) ARGMAX(i32)
