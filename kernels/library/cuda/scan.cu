// Prefix sums. Each element is read and written once.
#include "chain.cuh"

// A warp reads 16 (f64: 8) times 128 neighbours, of which each lane has four each time.
const int scan_warps = lanes / 32;
template <class T> struct Scan { static const int vectors = 64 / sizeof(T), warp = 128 * vectors, tile = scan_warps * warp; };

// Loads and stores of what is used once: the cache gives it up first.
DEVICE void load_once(four<f32> &v, const f32 *p) { asm volatile("ld.cs.v4.f32 {%0, %1, %2, %3}, [%4];" : "=f"(v.v[0]), "=f"(v.v[1]), "=f"(v.v[2]), "=f"(v.v[3]) : "l"(p)); }
DEVICE void load_once(four<i32> &v, const i32 *p) { asm volatile("ld.cs.v4.s32 {%0, %1, %2, %3}, [%4];" : "=r"(v.v[0]), "=r"(v.v[1]), "=r"(v.v[2]), "=r"(v.v[3]) : "l"(p)); }
DEVICE void load_once(four<f64> &v, const f64 *p) {
  asm volatile("ld.cs.v2.f64 {%0, %1}, [%2];" : "=d"(v.v[0]), "=d"(v.v[1]) : "l"(p));
  asm volatile("ld.cs.v2.f64 {%0, %1}, [%2+16];" : "=d"(v.v[2]), "=d"(v.v[3]) : "l"(p));
}
DEVICE void store_once(f32 *p, four<f32> v) { asm volatile("st.cs.v4.f32 [%0], {%1, %2, %3, %4};" ::"l"(p), "f"(v.v[0]), "f"(v.v[1]), "f"(v.v[2]), "f"(v.v[3]) : "memory"); }
DEVICE void store_once(i32 *p, four<i32> v) { asm volatile("st.cs.v4.s32 [%0], {%1, %2, %3, %4};" ::"l"(p), "r"(v.v[0]), "r"(v.v[1]), "r"(v.v[2]), "r"(v.v[3]) : "memory"); }
DEVICE void store_once(f64 *p, four<f64> v) {
  asm volatile("st.cs.v2.f64 [%0], {%1, %2};" ::"l"(p), "d"(v.v[0]), "d"(v.v[1]) : "memory");
  asm volatile("st.cs.v2.f64 [%0+16], {%1, %2};" ::"l"(p), "d"(v.v[2]), "d"(v.v[3]) : "memory");
}

// warp_sums returns the sum of the lanes up to this one, by doubling distances.
template <class T> DEVICE T warp_sums(T s) {
  u32 lane = thread_x() & 31;
#pragma unroll
  for (u32 off = 1; off < 32; off *= 2) {
    T before = from_lane(s, (lane - off) & 31);
    if (lane >= off) s = before + s;
  }
  return s;
}

// A word of another block, which is read early and awaited late: it is likely to be there by then.
template <class T> struct Awaited {
  static const int words = sizeof(T) / 4;
  const volatile u64 *from;
  u64 seen[words];
  DEVICE_MEMBER void read() {
#pragma unroll
    for (int i = 0; i < words; i++) seen[i] = from[i];
  }
  DEVICE_MEMBER T await() {
    while (true) {
      bool all = true;
#pragma unroll
      for (int i = 0; i < words; i++) all = all && (seen[i] & 0xffffffff00000000ull) == word_mark;
      if (all) break;
      read();
    }
    u32 bits[words];
#pragma unroll
    for (int i = 0; i < words; i++) bits[i] = (u32)seen[i];
    return *(const T *)bits;
  }
};

// Scratch memory: two counters, then a word or two for each tile, for each group of 32 tiles, and for each group of 32 groups.
template <class T> struct Levels {
  static const int words = sizeof(T) / 4;
  u64 *tickets, *left, *tile_sums, *group_sums, *before_groups;
  u32 tiles;
  DEVICE_MEMBER Levels(void *scratch, i64 count)
      : tickets((u64 *)scratch), left(tickets + 1), tile_sums(tickets + 8), group_sums(tile_sums + count * words), before_groups(group_sums + (count + 31) / 32 * words), tiles((u32)count) {}

  // before returns the sum of the tiles before one whose own sum is all. One warp calls it. It adds the sums of 32 tiles, and of 32 groups,
  // in the order of lanes, and groups of groups one after the other, so the result does not depend on which tiles had finished.
  DEVICE_MEMBER T before(u32 tile, T all) const {
    u32 lane = thread_x() & 31, here = tile % 32, group = tile / 32, place = group % 32, outer = group / 32;
    if (lane == 0) post(tile_sums + (u64)tile * words, all);
    Awaited<T> of_tile = {tile_sums + (u64)(tile - here + lane) * words, {}}, of_group = {group_sums + (u64)(group - place + lane) * words, {}}, earlier = {before_groups + (u64)outer * words, {}};
    if (lane < here) of_tile.read();
    if (lane < place) of_group.read();
    if (outer > 0) earlier.read();
    T sum = warp_sums(lane < here ? of_tile.await() : lane == here ? all : (T)0);
    T whole = from_lane(sum, 31), of_tiles = from_lane(sum, (here - 1) & 31);
    bool last = here == 31; // it knows the sum of its group, and may be the last of the outer group as well
    if (last && lane == 0) post(group_sums + (u64)group * words, whole);
    sum = warp_sums(lane < place ? of_group.await() : last && lane == place ? whole : (T)0);
    T of_groups = from_lane(sum, (place - 1) & 31), result = outer > 0 ? earlier.await() : (T)0;
    whole = from_lane(sum, 31);
    if (last && place == 31 && lane == 0) post(before_groups + (u64)(outer + 1) * words, result + whole);
    if (place > 0) result = result + of_groups;
    return here > 0 ? result + of_tiles : result;
  }

  DEVICE_MEMBER void leave() const {
    if (!last_of(blocks_x(), left)) return;
    u32 count = (tiles + (tiles + 31) / 32 + (tiles + 1023) / 1024 + 1) * words;
#pragma unroll 4
    for (u32 i = thread_x(); i < count; i += lanes) tile_sums[i] = 0;
    if (thread_x() == 0) *tickets = 0;
  }
};

// inclusive: y[i] = x[0] + ... + x[i], otherwise up to x[i-1]. There is a block for each tile, whose elements stay in registers while its first
// warp finds what is before it. Blocks take tiles in the order of tickets, so that none waits for a block that has not started.
template <bool inclusive, class T> DEVICE void scan(i64 n, const T *x, T *y, void *scratch) {
  const int vectors = Scan<T>::vectors, size = Scan<T>::tile;
  static __shared__ T totals[scan_warps], before;
  static __shared__ u32 ticket;
  Levels<T> levels(scratch, (n + size - 1) / size);
  u32 lane = thread_x() & 31, warp = thread_x() >> 5;
  if (thread_x() == 0) ticket = next(levels.tickets);
  barrier();
  u32 tile = ticket;
  i64 first = (i64)tile * size + warp * Scan<T>::warp + lane * 4;
  bool whole = (((u64)x | (u64)y) & (alignof(four<T>) - 1)) == 0 && (i64)(tile + 1) * size <= n;
  four<T> v[vectors];
  if (whole) {
#pragma unroll
    for (int u = 0; u < vectors; u++) load_once(v[u], x + first + u * 128);
  } else {
#pragma unroll
    for (int u = 0; u < vectors; u++)
#pragma unroll
      for (int e = 0; e < 4; e++) v[u].v[e] = first + u * 128 + e < n ? x[first + u * 128 + e] : (T)0;
  }
  T sums[vectors], total = (T)0;
#pragma unroll
  for (int u = 0; u < vectors; u++) sums[u] = warp_sums(((v[u].v[0] + v[u].v[1]) + v[u].v[2]) + v[u].v[3]);
#pragma unroll
  for (int u = 0; u < vectors; u++) {
    T all = from_lane(sums[u], 31);
    total = u > 0 ? total + all : all;
  }
  if (lane == 0) totals[warp] = total;
  barrier();
  if (warp == 0) {
    T all = totals[0];
#pragma unroll
    for (int k = 1; k < scan_warps; k++) all = all + totals[k];
    T found = levels.before(tile, all);
    if (lane == 0) before = found;
  }
  barrier();
  T start = (T)0;
#pragma unroll
  for (int k = 0; k < scan_warps - 1; k++)
    if (k < (int)warp) start = start + totals[k];
  start = before + start;
#pragma unroll
  for (int u = 0; u < vectors; u++) {
    T of_lanes = from_lane(sums[u], (lane - 1) & 31), sum = lane > 0 ? start + of_lanes : start;
    start = start + from_lane(sums[u], 31);
#pragma unroll
    for (int e = 0; e < 4; e++) {
      T and_this = sum + v[u].v[e];
      v[u].v[e] = inclusive ? and_this : sum;
      sum = and_this;
    }
    if (whole) store_once(y + first + u * 128, v[u]);
    else {
#pragma unroll
      for (int e = 0; e < 4; e++)
        if (first + u * 128 + e < n) y[first + u * 128 + e] = v[u].v[e];
    }
  }
  levels.leave();
}
#define SCAN(t) KERNEL_OF(2, exclusive_scan_##t)(i64 n, const t *x, t *y, void *scratch) { scan<false>(n, x, y, scratch); } \
KERNEL_OF(2, inclusive_scan_##t)(i64 n, const t *x, t *y, void *scratch) { scan<true>(n, x, y, scratch); }
SCAN(f32) SCAN(f64) SCAN(i32)
