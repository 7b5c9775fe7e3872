// Work in the order of tickets: tiles that wait for the tiles before them, in one launch. Blocks take tickets as they come, and a tile waits
// only for lower tickets, which blocks that already run have taken. So no block waits for a block that has not started.
#pragma once
#include "reduce.cuh"
#include "warp.cuh"

DEVICE u32 shared_ticket(u64 *counter) {
  static __shared__ u32 ticket;
  barrier();
  if (thread_x() == 0) ticket = next(counter);
  barrier();
  return ticket;
}

// await_count returns when a counter has reached a number, in all threads, which then see what was written before it did.
DEVICE void await_count(const u64 *counter, u64 count) {
  if (thread_x() == 0) {
    while (*(const volatile u64 *)counter != (counter_mark | count)) {}
    fence();
  }
  barrier();
}
// add_one tells that this block's part is done.
DEVICE void add_one(u64 *counter) {
  barrier();
  if (thread_x() == 0) {
    fence();
    next(counter);
  }
}

// ballot returns in which lanes of the warp p holds. All lanes must call it.
DEVICE u32 ballot(bool p) {
#ifdef __clang__
  return __nvvm_vote_ballot_sync(0xffffffffu, p);
#else
  return __ballot_sync(0xffffffffu, p);
#endif
}
DEVICE void warp_barrier() { asm volatile("bar.warp.sync 0xffffffff;" ::: "memory"); }
DEVICE u32 bits_set(u32 x) {
  u32 r;
  asm("popc.b32 %0, %1;" : "=r"(r) : "r"(x));
  return r;
}

// A word that blocks pass to each other holds 32 bits and a mark, in one store. Scratch memory starts with anything but that mark, and the
// last block clears all words, so none is left after a launch.
const u64 word_mark = 0x6e17c4a9ull << 32;

DEVICE void post_word(volatile u64 *to, u32 bits) { *to = word_mark | bits; }
DEVICE u32 await_word(const volatile u64 *from) {
  u64 w;
  while (((w = *from) & 0xffffffff00000000ull) != word_mark) {}
  return (u32)w;
}
DEVICE void post(volatile u64 *to, f32 v) { post_word(to, (u32)bits_of(v)); }
DEVICE void post(volatile u64 *to, i32 v) { post_word(to, (u32)v); }
DEVICE void post(volatile u64 *to, i64 v) {
  post_word(to, (u32)v);
  post_word(to + 1, (u32)((u64)v >> 32));
}
DEVICE void post(volatile u64 *to, f64 v) { post(to, bits_of(v)); }
DEVICE void await(const volatile u64 *from, f32 &v) { v = f32_of((i32)await_word(from)); }
DEVICE void await(const volatile u64 *from, i32 &v) { v = (i32)await_word(from); }
DEVICE void await(const volatile u64 *from, i64 &v) { v = (i64)((u64)await_word(from) | (u64)await_word(from + 1) << 32); }
DEVICE void await(const volatile u64 *from, f64 &v) {
  i64 bits;
  await(from, bits);
  v = f64_of(bits);
}

// scan_lanes replaces each thread's value by the sum of the values before it and returns the sum of all: first in each warp, by doubling
// distances, then over the warps, in order.
template <class T> DEVICE T scan_lanes(T &mine) {
  static __shared__ T totals[lanes / 32];
  u32 lane = thread_x() & 31, warp = thread_x() >> 5;
  T s = mine;
#pragma unroll
  for (u32 off = 1; off < 32; off *= 2) {
    T before = from_lane(s, (lane - off) & 31);
    if (lane >= off) s = before + s;
  }
  T ahead = from_lane(s, (lane - 1) & 31);
  barrier();
  if (lane == 31) totals[warp] = s;
  barrier();
  T before = (T)0, all = (T)0;
#pragma unroll
  for (u32 k = 0; k < lanes / 32; k++) {
    if (k == warp) before = all;
    all = all + totals[k];
  }
  mine = lane ? before + ahead : before;
  return all;
}

// Scratch memory of a chain of tiles: two counters, then a word or two for each tile and for each group of 256 tiles.
template <class T> struct Chain {
  u64 *tickets, *left, *tile_sums, *group_sums;
  i64 tiles;
  u32 ahead; // in thread 0: the ticket after this one, which is on its way while the tile of this one is computed
  static const int words = sizeof(T) / 4;
  DEVICE_MEMBER Chain(void *scratch, i64 tiles)
      : tickets((u64 *)scratch), left(tickets + 1), tile_sums(tickets + 8), group_sums(tile_sums + tiles * words), tiles(tiles) {
    if (thread_x() == 0) ahead = next(tickets);
  }
  DEVICE_MEMBER i64 take() {
    static __shared__ u32 ticket;
    barrier();
    if (thread_x() == 0) ticket = ahead;
    barrier();
    if (thread_x() == 0) ahead = (u32)(fetch_add(tickets, 1) & counter_mask);
    return ticket;
  }

  // before returns the sum of the tiles before one whose own sum is all, in every thread. The sums of a group's tiles are added by scan_lanes,
  // and groups one after the other, so the result does not depend on which tiles had finished.
  DEVICE_MEMBER T before(i64 tile, T all) const {
    static __shared__ T shared;
    i64 group = tile / lanes, here = tile % lanes;
    if (thread_x() == 0) post(tile_sums + tile * words, all);
    T mine = thread_x() == here ? all : (T)0;
    if (thread_x() < here) await(tile_sums + (tile - here + thread_x()) * words, mine);
    T sum = scan_lanes(mine);
    if (thread_x() == here) {
      T earlier = (T)0;
      if (group > 0) await(group_sums + group * words, earlier);
      if (here == lanes - 1) post(group_sums + (group + 1) * words, earlier + sum);
      shared = earlier + mine;
    }
    barrier();
    return shared;
  }

  DEVICE_MEMBER void leave() const {
    if (!last_of(blocks_x(), left)) return;
    i64 count = (tiles + (tiles + lanes - 1) / lanes + 1) * words;
    for (i64 i = thread_x(); i < count; i += threads_x()) tile_sums[i] = 0;
    if (thread_x() == 0) *tickets = 0;
  }
};
