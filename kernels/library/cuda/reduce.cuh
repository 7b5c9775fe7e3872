// Reductions over many blocks in one launch, in an order that depends only on the number of elements.
#pragma once
#include "common.cuh"

DEVICE u64 swap_if(u64 *p, u64 expected, u64 value) {
  u64 old;
  asm volatile("atom.cas.b64 %0, [%1], %2, %3;" : "=l"(old) : "l"(p), "l"(expected), "l"(value) : "memory");
  return old;
}
DEVICE u64 fetch_add(u64 *p, u64 value) {
  u64 old;
  asm volatile("atom.add.u64 %0, [%1], %2;" : "=l"(old) : "l"(p), "l"(value) : "memory");
  return old;
}

// Counting in shared memory uses addresses there, because atomics on generic addresses are slower.
DEVICE u32 shared_address(void *p) {
  u32 a;
  asm("{ .reg .u64 t; cvta.to.shared.u64 t, %1; cvt.u32.u64 %0, t; }" : "=r"(a) : "l"(p));
  return a;
}
DEVICE void count_shared(u32 *at) { asm volatile("red.shared.add.u32 [%0], 1;" ::"r"(shared_address(at)) : "memory"); }

// Scratch memory starts with whatever another kernel left there. So a counter has a 40-bit mark in its upper bits, and a word without
// the mark counts as zero. The last block sets the word to zero, so no mark is left after a launch.
const u64 counter_mark = 0xd09a5c3e71ull << 24, counter_mask = 0xffffff;

// next adds one to a counter and returns its previous value.
DEVICE u32 next(u64 *counter) {
  u64 seen = *(volatile u64 *)counter;
  if ((seen & ~counter_mask) != counter_mark) swap_if(counter, seen, counter_mark);
  return (u32)(fetch_add(counter, 1) & counter_mask);
}

// last_of returns true in the last of the count blocks that call it. That block sees everything that the others wrote before their
// calls. All threads of a block must call it.
DEVICE bool last_of(u32 count, u64 *counter) {
  static __shared__ bool last;
  fence();
  barrier();
  if (thread_x() == 0) {
    last = next(counter) + 1 == count;
    if (last) *(volatile u64 *)counter = 0;
    fence();
  }
  barrier();
  return last;
}

const int lanes = 256, quad = 4;
const i64 step_elements = lanes * quad, most_tiles = 1056;

// A tile is what one block reduces: at least 4,096 elements, such that there are at most 1,056 tiles, one wave on a large GPU.
DEVICE i64 tile_size(i64 n) {
  i64 steps = (n + most_tiles * step_elements - 1) / (most_tiles * step_elements);
  return larger(steps, (i64)4) * step_elements;
}
DEVICE u32 tile_count(i64 n) { return n <= 0 ? 1 : (u32)((n + tile_size(n) - 1) / tile_size(n)); }

template <class T> struct alignas(4 * sizeof(T) > 16 ? 16 : 4 * sizeof(T)) four { T v[4]; };

// Element i of a tile is added to accumulator i % 1024; each thread has four. A tree joins the four of a thread, then those of all
// threads. The results of the tiles are joined in the same way, by 256 lanes and the same tree.
template <class Op, class A> DEVICE A tree(A mine) {
  static __shared__ A shared[lanes];
  shared[thread_x()] = mine;
  barrier();
#pragma unroll
  for (int half = lanes / 2; half > 0; half /= 2) {
    if (thread_x() < half) Op::join(shared[thread_x()], shared[thread_x() + half]);
    barrier();
  }
  A all = shared[0];
  barrier();
  return all;
}

// Op has State, start(), join(State &, State), and take(State &, element of x, element of y, index). finish(result) is called in one
// thread.
template <class Op, int inputs, class T, class F>
DEVICE void reduce(i64 n, const T *x, const T *y, void *scratch, F finish) {
  typedef typename Op::State A;
  u32 tiles = tile_count(n);
  i64 size = tile_size(n);
  if (block_x() >= tiles) return;
  u64 *counter = (u64 *)scratch;
  A *partial = (A *)((char *)scratch + 16);
  bool aligned = (((u64)x | (inputs > 1 ? (u64)y : 0)) & (alignof(four<T>) - 1)) == 0;
  for (u32 tile = block_x(); tile < tiles; tile += blocks_x()) {
    i64 from = tile * size, to = smaller(from + size, n), i = from + thread_x() * quad;
    A a[quad];
#pragma unroll
    for (int k = 0; k < quad; k++) a[k] = Op::start();
    if (aligned) {
      const int deep = 4; // loads in flight
#pragma unroll 1
      for (; i + (deep - 1) * step_elements + quad <= to; i += deep * step_elements) {
        four<T> v[deep], w[deep];
#pragma unroll
        for (int u = 0; u < deep; u++) {
          v[u] = *(const four<T> *)(x + i + u * step_elements);
          w[u] = inputs > 1 ? *(const four<T> *)(y + i + u * step_elements) : v[u];
        }
#pragma unroll
        for (int u = 0; u < deep; u++)
#pragma unroll
          for (int k = 0; k < quad; k++) Op::take(a[k], v[u].v[k], w[u].v[k], i + u * step_elements + k);
      }
    }
#pragma unroll 1
    for (; i + quad <= to; i += step_elements)
#pragma unroll
      for (int k = 0; k < quad; k++) Op::take(a[k], x[i + k], inputs > 1 ? y[i + k] : x[i + k], i + k);
#pragma unroll
    for (int k = 0; k < quad; k++)
      if (i + k < to) Op::take(a[k], x[i + k], inputs > 1 ? y[i + k] : x[i + k], i + k);
    Op::join(a[0], a[1]);
    Op::join(a[2], a[3]);
    Op::join(a[0], a[2]);
    A all = tree<Op>(a[0]);
    if (tiles == 1) {
      if (thread_x() == 0) finish(all);
      return;
    }
    if (thread_x() == 0) partial[tile] = all;
  }
  if (!last_of(smaller(tiles, blocks_x()), counter)) return;
  A mine = Op::start();
  for (u32 k = thread_x(); k < tiles; k += lanes) Op::join(mine, partial[k]);
  mine = tree<Op>(mine);
  if (thread_x() == 0) finish(mine);
}
