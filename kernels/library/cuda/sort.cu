// Stable sorting by the digits of keys, least significant first. One launch counts the digits of all keys, then moves the keys by one digit after
// the other; each move reads and writes every key once. Where a tile's keys go follows from the counts of the tiles before it, which tiles pass on
// as they finish (the method of "Onesweep", Adinets and Merrill 2022). All of it is counting, so the result does not depend on who is first.
#include "chain.cuh"

const int sort_own = 16, sort_tile = lanes * sort_own, digits = 256, warps = lanes / 32, most_passes = 8;

template <bool first, class A, class B> struct pick { typedef B type; };
template <class A, class B> struct pick<true, A, B> { typedef A type; };

// ordered maps a key to bits that order as unsigned numbers do. NaNs come last, and 0 and -0 are equal.
DEVICE u32 ordered(u32 k) { return k; }
DEVICE u64 ordered(u64 k) { return k; }
DEVICE u32 ordered(i32 k) { return (u32)k ^ 0x80000000u; }
DEVICE u64 ordered(i64 k) { return (u64)k ^ 0x8000000000000000ull; }
DEVICE u32 ordered(f32 k) {
  u32 b = (u32)bits_of(k);
  if (k != k) return 0xffffffffu;
  return k == 0.0f ? 0x80000000u : b ^ ((u32)((i32)b >> 31) | 0x80000000u);
}
DEVICE u64 ordered(f64 k) {
  u64 b = (u64)bits_of(k);
  if (k != k) return 0xffffffffffffffffull;
  return k == 0.0 ? 0x8000000000000000ull : b ^ ((u64)((i64)b >> 63) | 0x8000000000000000ull);
}

template <class K> DEVICE u32 digit_of(K key, u32 pass) { return (u32)(ordered(key) >> (8 * pass)) & 255; }

// in_halves returns a number below 2^32, put together from its halves: so it shows in the code that it is a number and not a part of an address.
DEVICE u32 in_halves(u32 x) {
  u32 low, high;
  asm("and.b32 %0, %1, 0xffff;" : "=r"(low) : "r"(x));
  asm("and.b32 %0, %1, 0xffff;" : "=r"(high) : "r"(x >> 16));
  return high << 16 | low;
}

// Scratch memory: counters, how many keys have each digit in each pass (later: how many have a lower one), a word for each digit of each tile,
// then what the words say about tiles: a tag in the upper byte, which is twice the pass plus 1 for a tile's own count, plus 2 for that of
// it and all tiles before it. Words of an earlier pass have lower tags.
struct Sorting {
  u64 *tickets, *cleared, *counted, *ready, *left, *done, *bins, *words;
  i64 tiles;
  u32 chunks; // of the count
  DEVICE_MEMBER Sorting(void *scratch, i64 tiles)
      : tickets((u64 *)scratch), cleared(tickets + 1), counted(tickets + 2), ready(tickets + 3), left(tickets + 4), done(tickets + 8),
        bins(done + most_passes), words(bins + most_passes * digits), tiles(tiles), chunks((u32)smaller(tiles, (i64)528)) {}
};

// count_digits counts the digits of a chunk of tiles in all passes. The last chunk turns counts into the places where digits begin.
template <class K> DEVICE void count_digits(const Sorting &s, u32 chunk, i64 n, const K *keys, u32 *count) {
  const u32 passes = sizeof(K);
  i64 from = s.tiles * chunk / s.chunks, to = s.tiles * (chunk + 1) / s.chunks;
  for (u32 i = thread_x(); i < passes * digits; i += lanes) count[i] = 0;
  for (i64 i = from * digits + thread_x(); i < to * digits; i += lanes) s.words[i] = 0;
  barrier();
  i64 end = smaller(to * sort_tile, n);
  for (i64 i = from * sort_tile + thread_x(); i < end; i += lanes * 8) {
    K v[8];
#pragma unroll
    for (int u = 0; u < 8; u++)
      if (i + u * lanes < end) v[u] = keys[i + u * lanes];
#pragma unroll
    for (int u = 0; u < 8; u++)
      if (i + u * lanes < end)
#pragma unroll
        for (u32 p = 0; p < passes; p++) count_shared(count + p * digits + digit_of(v[u], p));
  }
  barrier();
  await_count(s.cleared, 1);
  for (u32 i = thread_x(); i < passes * digits; i += lanes)
    if (count[i]) fetch_add(s.bins + i, count[i]);
  if (!last_of(s.chunks, s.counted)) return;
  for (u32 p = 0; p < passes; p++) {
    i64 mine = (i64)*(volatile u64 *)(s.bins + p * digits + thread_x());
    scan_lanes(mine);
    s.bins[p * digits + thread_x()] = (u64)mine;
  }
  add_one(s.ready);
}

// move_tile moves the keys of a tile, and their values, to where the digit of a pass says.
template <bool pairs, class K, class V>
DEVICE void move_tile(const Sorting &s, u32 tile, u32 pass, i64 n, const K *keys, const V *values, K *to, V *values_to, void *memory) {
  static __shared__ u32 count[warps][digits];
  static __shared__ i64 shift[digits];
  K *staged = (K *)memory;
  V *staged_values = (V *)memory;
  u32 lane = thread_x() & 31, warp = thread_x() >> 5, below = (1u << lane) - 1;
  i64 first = (i64)tile * sort_tile;
  u32 size = (u32)smaller(n - first, (i64)sort_tile), at = warp * (sort_tile / warps) + lane;
  K k[sort_own];
  V v[pairs ? sort_own : 1];
  u32 place[sort_own]; // of a key within the tile, with its digit in the upper half
#pragma unroll
  for (int u = 0; u < sort_own; u++)
    if (at + u * 32 < size) k[u] = keys[first + at + u * 32];
  if (pairs)
#pragma unroll
    for (int u = 0; u < sort_own; u++)
      if (at + u * 32 < size) v[u] = values[first + at + u * 32];
#pragma unroll
  for (int w = 0; w < warps; w++) count[w][thread_x()] = 0;
  barrier();
  // Keys of equal digits are numbered in their order, 32 at a time. Places behind the last key have the last digit: nothing comes after them.
  volatile u32 *mine = count[warp];
#pragma unroll
  for (int u = 0; u < sort_own; u++) {
    if (at - lane + u * 32 >= size) break;
    u32 d = at + u * 32 < size ? digit_of(k[u], pass) : 255, peers = 0xffffffffu;
#pragma unroll
    for (int b = 0; b < 8; b++) {
      bool bit = d >> b & 1;
      u32 those = ballot(bit);
      peers &= bit ? those : ~those;
    }
    u32 before = mine[d];
    warp_barrier();
    if ((peers & below) == 0) mine[d] = before + bits_set(peers);
    warp_barrier();
    place[u] = d << 16 | (before + bits_set(peers & below));
  }
  barrier();
  // From here on a thread stands for a digit.
  const u32 d = thread_x();
  u32 total = 0, each[warps];
#pragma unroll
  for (int w = 0; w < warps; w++) {
    each[w] = total;
    total += count[w][d];
  }
  const u64 tag = (u64)(2 * pass + 1) << 56, mask = ~0ull >> 8;
  volatile u64 *word = s.words + (i64)tile * digits + d;
  *word = (tile ? tag : tag + (1ull << 56)) | total;
  i32 local = (i32)total;
  scan_lanes(local);
#pragma unroll
  for (int w = 0; w < warps; w++) count[w][d] = (u32)local + each[w];
  u64 earlier = 0;
  for (i64 t = (i64)tile - 1; t >= 0;) {
    u64 w = *(volatile u64 *)(s.words + t * digits + d);
    if (w < tag) continue;
    earlier += w & mask;
    if (w - tag >= 1ull << 56) break;
    t--;
  }
  if (tile) *word = (tag + (1ull << 56)) | (earlier + total);
  shift[d] = (i64)(s.bins[pass * digits + d] + earlier) - local;
  barrier();
#pragma unroll
  for (int u = 0; u < sort_own; u++)
    if (at + u * 32 < size) {
      place[u] = (place[u] & 0xffff) + count[warp][place[u] >> 16];
      staged[place[u]] = k[u];
    } else {
      place[u] = 0;
    }
  barrier();
#pragma unroll
  for (int u = 0; u < sort_own; u++) {
    u32 i = thread_x() + u * lanes;
    if (i < size) {
      K key = staged[i];
      u32 d = digit_of(key, pass);
      to[shift[d] + i] = key;
      if (pairs) place[u] |= d << 16;
    }
  }
  if (!pairs) return;
  barrier();
#pragma unroll
  for (int u = 0; u < sort_own; u++)
    if (at + u * 32 < size) staged_values[place[u] & 0xffff] = v[u];
  barrier();
#pragma unroll
  for (int u = 0; u < sort_own; u++) {
    u32 i = thread_x() + u * lanes;
    if (i < size) values_to[shift[place[u] >> 16] + i] = staged_values[i];
  }
}

template <bool pairs, class K, class V>
DEVICE void sort(i64 n, const K *keys, const V *values, K *sorted, V *moved, void *scratch) {
  const u32 passes = sizeof(K);
  typedef typename pick<(sizeof(K) > sizeof(V)), K, V>::type Wide;
  alignas(16) static __shared__ Wide memory[sort_tile]; // for a tile's keys, then its values, and for counts
  Sorting s(scratch, in_halves((u32)((n + sort_tile - 1) / sort_tile)));
  K *spare = (K *)(s.words + s.tiles * digits), *other = spare + s.tiles * sort_tile;
  V *spare_values = (V *)(other + s.tiles * sort_tile), *other_values = spare_values + s.tiles * sort_tile;
  u32 tiles = (u32)s.tiles, last = 1 + s.chunks + tiles * passes;
  for (u32 ticket; (ticket = shared_ticket(s.tickets)) < last;) {
    if (ticket == 0) {
      for (u32 i = thread_x(); i < passes * digits; i += lanes) *(volatile u64 *)(s.bins + i) = 0;
      add_one(s.cleared);
      continue;
    }
    ticket -= 1;
    if (ticket < s.chunks) {
      count_digits(s, ticket, n, keys, (u32 *)memory);
      continue;
    }
    ticket -= s.chunks;
    u32 pass = ticket / tiles, tile = ticket - pass * tiles;
    if (pass == 0) await_count(s.ready, 1);
    else await_count(s.done + pass - 1, tiles);
    const K *from = pass == 0 ? keys : pass % 2 ? spare : other;
    K *to = pass == passes - 1 ? sorted : pass % 2 ? other : spare;
    const V *values_from = pass == 0 ? values : pass % 2 ? spare_values : other_values;
    V *values_to = pass == passes - 1 ? moved : pass % 2 ? other_values : spare_values;
    move_tile<pairs>(s, tile, pass, n, from, values_from, to, values_to, memory);
    if (pass < passes - 1) add_one(s.done + pass);
  }
  if (last_of(blocks_x(), s.left) && thread_x() < 8 + most_passes) s.tickets[thread_x()] = 0;
}
#define SORT(k, blocks) KERNEL_OF(blocks, sort_##k)(i64 n, const k *x, k *y, void *scratch) { sort<false>(n, x, (const u32 *)0, y, (u32 *)0, scratch); }
SORT(f32, 4) SORT(f64, 3) SORT(i32, 4) SORT(i64, 3) SORT(u32, 4) SORT(u64, 3)

#define SORT_PAIRS(v, k) KERNEL_OF(2, sort_pairs_##v##_##k)(i64 n, const k *keys, const v *values, k *sorted, v *moved, void *scratch) { \
  sort<true>(n, keys, values, sorted, moved, scratch); \
}
#define SORT_PAIRS_BY(k) SORT_PAIRS(u32, k) SORT_PAIRS(u64, k)
SORT_PAIRS_BY(f32) SORT_PAIRS_BY(f64) SORT_PAIRS_BY(i32) SORT_PAIRS_BY(i64) SORT_PAIRS_BY(u32) SORT_PAIRS_BY(u64)
