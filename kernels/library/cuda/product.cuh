// Products of dense row-major matrices, in tiles or, where the result has few columns, row by row.
#pragma once
#include "warp.cuh"
#include "matrix.cuh"

DEVICE void warp_barrier() { asm volatile("bar.warp.sync 0xffffffff;" ::: "memory"); }

template <class T> struct alignas(4 * sizeof(T) > 16 ? 16 : 4 * sizeof(T)) four { T v[4]; };

// The left operand: the matrix itself, or the matrix with standardised columns. columns() names the four columns that take reads next.
struct AsItIs {
  DEVICE_MEMBER void columns(i64, i64) {}
  template <class C> DEVICE_MEMBER C operator()(C v, int) const { return v; }
};
template <class C> struct Standardised {
  const C *mean, *inverse;
  C m[4], s[4];
  DEVICE_MEMBER void columns(i64 col, i64 cols) {
#pragma unroll
    for (int k = 0; k < 4; k++) {
      m[k] = col + k < cols ? mean[col + k] : (C)0;
      s[k] = col + k < cols ? inverse[col + k] : (C)0;
    }
  }
  DEVICE_MEMBER C operator()(C v, int k) const { return (v - m[k]) * s[k]; }
};

// take reads four consecutive elements of a row, and zeros outside the matrix.
template <class T, class L> DEVICE void take(const T *p, L ld, i64 row, i64 rows, i64 col, i64 cols, bool aligned, typename computed<T>::type *to) {
  if (row < rows && aligned && col + 4 <= cols) {
    four<T> v = *(const four<T> *)(p + row * ld(cols) + col);
#pragma unroll
    for (int k = 0; k < 4; k++) to[k] = widen(v.v[k]);
    return;
  }
#pragma unroll
  for (int k = 0; k < 4; k++) to[k] = row < rows && col + k < cols ? widen(p[row * ld(cols) + col + k]) : (typename computed<T>::type)0;
}

template <class C, class T, class L, class S = AsItIs>
DEVICE void fetch(const T *p, L ld, i64 row, i64 rows, i64 col, i64 cols, bool aligned, C *to, S see = S()) {
  typename computed<T>::type v[4];
  take(p, ld, row, rows, col, cols, aligned, v);
  see.columns(col, cols);
#pragma unroll
  for (int k = 0; k < 4; k++) to[k] = see((C)v[k], k);
}

template <class T> DEVICE bool aligned_rows(const T *p, i64 ld) {
  return ((u64)p & (alignof(four<T>) - 1)) == 0 && ld % 4 == 0;
}

// What is done with results, one by one or, where quads() says so, four neighbours at a time: Plain stores them, Scaled adds them to others.
template <class S, class T, class L> struct Plain {
  T *c;
  L ldc;
  i64 n; // columns
  DEVICE_MEMBER bool quads() const { return n % 4 == 0 && aligned_rows(c, ldc(n)); }
  DEVICE_MEMBER void operator()(i64 i, i64 j, S sum) const { narrow(c[i * ldc(n) + j], sum); }
  DEVICE_MEMBER void quad(i64 i, i64 j, const four<S> &sums) const {
    four<T> to;
#pragma unroll
    for (int e = 0; e < 4; e++) narrow(to.v[e], sums.v[e]);
    *(four<T> *)(c + i * ldc(n) + j) = to;
  }
};
template <class S, class T, class L> struct Scaled : Plain<S, T, L> {
  S alpha, beta;
  DEVICE_MEMBER void add(T &to, S sum) const { narrow(to, beta == (S)0 ? alpha * sum : alpha * sum + beta * widen(to)); }
  DEVICE_MEMBER void operator()(i64 i, i64 j, S sum) const { add(this->c[i * this->ldc(this->n) + j], sum); }
  DEVICE_MEMBER void quad(i64 i, i64 j, const four<S> &sums) const {
    four<T> *at = (four<T> *)(this->c + i * this->ldc(this->n) + j), to;
    if (beta != (S)0) to = *at;
#pragma unroll
    for (int e = 0; e < 4; e++) add(to.v[e], sums.v[e]);
    *at = to;
  }
};

// across_of and down_of are where a warp's lanes lie that are so many across: neighbours in pairs below each other, and pairs beside each other.
// Loads of 16 bytes a lane from shared memory take less time where lanes whose numbers differ by 1, or those by 2, want the same.
DEVICE int across_of(u32 lane, u32 across) { return lane / 2 % across; }
DEVICE int down_of(u32 lane, u32 across) { return lane / (2 * across) * 2 + lane % 2; }

// A block's tile has side x side threads with own x own results each; depth columns of a and rows of b are processed at a time.
const int tile_threads = 256, depth = 16;

// Every result sums its products in the order of k, with one rounding each, so the shape of the tile does not change the result. as and bs
// hold two steps each: while the products of one are computed, the loads of the next are in flight.
template <int own, class C, class TA, class LA, class TB, class LB, class S, class F>
DEVICE void tiled(bool ta, bool tb, i64 m, i64 n, i64 k, const TA *a, LA lda, const TB *b, LB ldb, S see, bool lower, C (*as)[16 * own + 4], C (*bs)[16 * own + 4], F finish) {
  const int tile = 16 * own, loads = tile * depth / 4 / tile_threads;
  // No memory holds the results of 2^31 tiles. Divisions of 64 bits are slow, and their code takes long to compile.
  u32 columns = (u32)((n + tile - 1) / tile), tiles = (u32)((m + tile - 1) / tile) * columns;
  // A warp computes 8 x 4 threads' results, which takes the fewest reads of shared memory.
  u32 lane = thread_x() & 31, warp = thread_x() >> 5;
  int ty = warp / 4 * 8 + down_of(lane, 4), tx = warp % 4 * 4 + across_of(lane, 4);
  // A thread loads four elements along a stored row, at these places of a step.
  int far = thread_x() / (tile / 4), near = thread_x() % (tile / 4) * 4, down = thread_x() / (depth / 4), along = thread_x() % (depth / 4) * 4;
  const int fars = tile_threads / (tile / 4), downs = tile_threads / (depth / 4);
  i64 row_a = lda(ta ? m : k), row_b = ldb(tb ? k : n), apart_a = (ta ? fars : downs) * row_a, apart_b = (tb ? downs : fars) * row_b;
  bool whole_a = aligned_rows(a, row_a), whole_b = aligned_rows(b, row_b);
  for (u32 t = block_x(); t < tiles; t += blocks_x()) {
    u32 down_tiles = t / columns;
    i64 row = (i64)down_tiles * tile, col = (i64)(t - down_tiles * columns) * tile;
    if (lower && col >= row + tile) continue;
    C next_a[loads][4], next_b[loads][4], acc[own][own];
#pragma unroll
    for (int i = 0; i < own; i++)
#pragma unroll
      for (int j = 0; j < own; j++) acc[i][j] = (C)0;
    bool inside = whole_a && whole_b && row + tile <= m && col + tile <= n;
    const TA *from_a = a + (ta ? far * row_a + row + near : (row + down) * row_a + along);
    const TB *from_b = b + (tb ? (col + down) * row_b + along : far * row_b + col + near);
    auto load = [&](i64 from) {
      if (inside && from + depth <= k) {
        see.columns(from + along, k);
#pragma unroll
        for (int u = 0; u < loads; u++) {
          four<TA> v = *(const four<TA> *)(from_a + u * apart_a);
          four<TB> w = *(const four<TB> *)(from_b + u * apart_b);
#pragma unroll
          for (int e = 0; e < 4; e++) {
            next_a[u][e] = see((C)widen(v.v[e]), e);
            next_b[u][e] = (C)widen(w.v[e]);
          }
        }
        from_a += ta ? depth * row_a : depth;
        from_b += tb ? depth : depth * row_b;
        return;
      }
#pragma unroll
      for (int u = 0; u < loads; u++) {
        fetch(a, lda, ta ? from + far + u * fars : row + down + u * downs, ta ? k : m, ta ? row + near : from + along, ta ? m : k, whole_a, next_a[u], see);
        fetch(b, ldb, tb ? col + down + u * downs : from + far + u * fars, tb ? n : k, tb ? from + along : col + near, tb ? k : n, whole_b, next_b[u]);
      }
    };
    int stage = 0;
    auto store = [&]() {
#pragma unroll
      for (int u = 0; u < loads; u++)
#pragma unroll
        for (int e = 0; e < 4; e++) {
          as[stage + (ta ? far + u * fars : along + e)][ta ? near + e : down + u * downs] = next_a[u][e];
          bs[stage + (tb ? along + e : far + u * fars)][tb ? down + u * downs : near + e] = next_b[u][e];
        }
    };
    for (i64 from = 0;; from += depth) {
      if (from < k) load(from);
      if (from > 0)
#pragma unroll
        for (int p = 0; p < depth; p++) {
          four<C> x[own / 4], y[own / 4];
#pragma unroll
          for (int i = 0; i < own / 4; i++) x[i] = *(const four<C> *)&as[stage + p][i * 64 + ty * 4];
#pragma unroll
          for (int j = 0; j < own / 4; j++) y[j] = *(const four<C> *)&bs[stage + p][j * 64 + tx * 4];
#pragma unroll
          for (int i = 0; i < own; i++)
#pragma unroll
            for (int j = 0; j < own; j++) acc[i][j] = fused(x[i / 4].v[i % 4], y[j / 4].v[j % 4], acc[i][j]);
        }
      if (from >= k) break;
      stage ^= depth;
      store();
      barrier();
    }
    barrier();
#pragma unroll
    for (int i = 0; i < own; i++)
#pragma unroll
      for (int j = 0; j < own; j++) {
        i64 r = row + i / 4 * 64 + ty * 4 + i % 4, c = col + j / 4 * 64 + tx * 4 + j % 4;
        if (r < m && c < n && (!lower || c <= r)) finish(r, c, acc[i][j]);
      }
  }
}

// stream reads four elements that no other thread reads. Being volatile, such loads are issued where they are written, all of a step before the
// first is used.
template <class T> DEVICE four<T> stream(const T *p) {
  u32 w[4];
  if (sizeof(T) == 4) asm volatile("ld.global.cg.v4.u32 {%0, %1, %2, %3}, [%4];" : "=r"(w[0]), "=r"(w[1]), "=r"(w[2]), "=r"(w[3]) : "l"(p));
  else asm volatile("ld.global.cg.v2.u32 {%0, %1}, [%2];" : "=r"(w[0]), "=r"(w[1]) : "l"(p));
  return *(four<T> *)w;
}

template <class T> DEVICE T single(const T *p) {
  T r;
  if constexpr (sizeof(T) == 4) {
    u32 w;
    asm volatile("ld.global.u32 %0, [%1];" : "=r"(w) : "l"(p));
    r = *(T *)&w;
  } else {
    u16 w;
    asm volatile("ld.global.u16 %0, [%1];" : "=h"(w) : "l"(p));
    r = *(T *)&w;
  }
  return r;
}

// Results of few columns: a warp computes whole rows of them, high of them at a time, and a lane own x own_columns of its results. Lanes that
// lie across have the same rows. Each warp moves its rows of a through shared memory of its own, so that it waits for no other, and loads the
// next step while the products of this one are computed. As much of b as fits is in shared memory too.
const int thin_threads = 128, thin_warps = thin_threads / 32, thin_bytes = 49152;
template <int own_, int own_columns_, int across_, int deep_> struct Thin {
  static const int threads = thin_threads, own = own_, own_columns = own_columns_, across = across_, deep = deep_; // deep columns of a are one step
  static const int wide = own_columns * across, lanes_down = 32 / across, high = lanes_down * own;
  static const int units = deep / 4, step = high * deep, loads = step / 128, apart = 32 / units; // a unit is 4 elements, and one load of a lane
  static const int most = (thin_bytes / 4 - thin_warps * step) / wide / deep * deep;             // rows of b in shared memory
  static_assert(step >= lanes_down * (wide + 1), "results take the place of a");
  // place is where a unit of a row is. Units of a row are exchanged such that eight lanes meet no bank conflict when they store along rows, nor
  // when each reads its own row. A row is some rows on from a first one, which is less than the power of two that on is a multiple of: so each lane
  // computes few addresses, and the others are constant distances from them.
  DEVICE_MEMBER static int turn(int row) { return row * units / 8 & (units - 1); }
  template <class C> DEVICE_MEMBER static C *place(C *first, int turned, int on) { return first + (turned ^ turn(on)) * 4 + on * units * 4; }
};

// A lane loads four elements along a row at a time if rows are whole, that is aligned. Otherwise it loads single ones, and a warp's are neighbours.
template <class Way, class C, class TA, class LA, class TB, class LB, class S, class F>
DEVICE void thin_rows(bool whole, bool tb, i64 m, i64 n, i64 k, const TA *a, LA lda, const TB *b, LB ldb, S see, C *memory, F finish) {
  typedef typename computed<TA>::type V;
  const int own = Way::own, own_columns = Way::own_columns, across = Way::across, wide = Way::wide, deep = Way::deep, high = Way::high;
  const int lanes_down = Way::lanes_down, loads = Way::loads;
  int lane = thread_x() & 31, warp = thread_x() >> 5, down = lane / Way::units, along = lane % Way::units * 4;
  int own_row = down_of(lane, across), own_col = across_of(lane, across) * 4;
  C *as = memory + warp * Way::step, *bs = memory + thin_warps * Way::step, *own_line = as + own_row * deep;
  bool quads = finish.quads() && across > 1;
  // A block's warps have neighbouring rows, unless there are so few rows that all are on their way at once: then blocks have neighbours.
  i64 step = (i64)blocks_x() * thin_warps * high;
  bool few = m <= step;
  i64 first = (i64)block_x() * (few ? high : thin_warps * high), of_warp = (i64)warp * (few ? blocks_x() * high : high);
  V v[loads][4];
  const int rows_on = 32 / deep;
  // The first element that a lane loads, and how many rows on its next is.
  int load_row = whole ? down : lane / deep, load_col = whole ? along : lane % deep, load_on = whole ? Way::apart : rows_on;
  auto load = [&](i64 row, i64 from) {
    // The results of rows below the last are not stored. Rows are less than 2^24 elements apart, and offsets of 32 bits take fewer instructions.
    row = smaller(row + of_warp + load_row, m - 1);
    const TA *at = a + row * lda(k) + from + load_col;
    i32 on = load_on * (i32)lda(k), last = (i32)smaller(m - 1 - row, (i64)high) * (i32)lda(k);
    if (from + load_col >= k) {
#pragma unroll
      for (int i = 0; i < loads * 4; i++) v[i / 4][i % 4] = (V)0;
    } else if (whole) {
#pragma unroll
      for (int u = 0; u < loads; u++) {
        four<TA> q = stream(at + smaller(u * on, last));
#pragma unroll
        for (int e = 0; e < 4; e++) v[u][e] = widen(q.v[e]);
      }
    } else {
#pragma unroll
      for (int i = 0; i < loads * 4; i++) v[i / 4][i % 4] = widen(single(at + smaller(i * on, last)));
    }
  };
  // factors moves rows of b to shared memory. Below its last row are as many of -0 as the last step takes: 0 * -0 is -0, which changes no sum.
  auto factors = [&](i64 from) {
    const int batch = 8;
    u32 count = (u32)smaller((k - from + deep - 1) / deep * deep, (i64)Way::most) * wide;
    i64 along_b = tb ? ldb(k) : 1, down_b = tb ? 1 : ldb(n);
#pragma unroll 1
    for (u32 id = thread_x(); id < count; id += batch * thin_threads) {
      C w[batch];
#pragma unroll
      for (int u = 0; u < batch; u++) {
        u32 at = id + u * thin_threads, p = at / wide, j = at - p * wide;
        w[u] = from + p < k ? (C)0 : -(C)0;
        if (at < count && from + p < k && j < n) w[u] = (C)widen(b[(from + p) * down_b + j * along_b]);
      }
#pragma unroll
      for (int u = 0; u < batch; u++)
        if (id + u * thin_threads < count) bs[id + u * thin_threads] = w[u];
    }
  };
  auto store = [&](i64 from_row, const C(&acc)[own][own_columns]) {
    if (quads) {
#pragma unroll
      for (int q = 0; q < own; q++)
#pragma unroll
        for (int j = 0; j < own_columns; j += 4) {
          i64 row = from_row + own_row + lanes_down * q, col = own_col + j * across;
          four<C> r;
#pragma unroll
          for (int f = 0; f < 4; f++) r.v[f] = acc[q][j + f];
          if (row < m && col < n) finish.quad(row, col, r);
        }
      return;
    }
    // The results go through shared memory, so that stores are contiguous.
    const int pitch = wide + 1, cols = (int)n, down_on = 32 / cols, cols_on = 32 - down_on * cols;
#pragma unroll
    for (int q = 0; q < own; q++) {
      i64 row = from_row + lanes_down * q;
      warp_barrier();
#pragma unroll
      for (int j = 0; j < own_columns; j++) as[own_row * pitch + own_col + j / 4 * 4 * across + j % 4] = acc[q][j];
      warp_barrier();
      int count = (int)smaller(larger(m - row, (i64)0), (i64)lanes_down) * cols;
      for (int id = lane, r = lane / cols, j = lane % cols; id < count; id += 32) {
        finish(row + r, (i64)j, as[r * pitch + j]);
        r += down_on;
        j += cols_on;
        if (j >= cols) {
          j -= cols;
          r++;
        }
      }
    }
  };
  // The loads of the next step are under way while the products of this one are computed.
  bool at_once = k <= Way::most;
  C acc[own][own_columns];
  i64 held = 0, due = 0; // the first row of b in shared memory, and the one from which others are moved there next
  i64 row = first, from = 0, next_row = first, next_from = 0;
#pragma unroll 1
  for (bool begun = false;; begun = true) {
    bool more = next_row < m;
    if (more) load(next_row, next_from);
    if (begun && k > 0) {
      const C *factor = bs + (from - held) * wide + own_col;
      int upto = (int)smaller((k - from + 7) / 8 * 2, (i64)Way::units); // those with columns of a
#pragma unroll 1
      for (int pair = 0; pair < upto; pair += 2, factor += 8 * wide) {
        int turned = pair ^ Way::turn(own_row);
#pragma unroll
        for (int p = 0; p < 2; p++) {
          four<C> x[own];
#pragma unroll
          for (int q = 0; q < own; q++) x[q] = *(const four<C> *)Way::place(own_line, turned ^ p, lanes_down * q);
#pragma unroll
          for (int e = 0; e < 4; e++)
#pragma unroll
            for (int j = 0; j < own_columns; j += 4) {
              four<C> y = *(const four<C> *)(factor + (p * 4 + e) * wide + j * across);
#pragma unroll
              for (int q = 0; q < own; q++)
#pragma unroll
                for (int f = 0; f < 4; f++) acc[q][j + f] = fused(x[q].v[e], y.v[f], acc[q][j + f]);
            }
        }
      }
    }
    if (begun && from + deep >= k) store(row + of_warp, acc);
    if (!more) return;
    row = next_row, from = next_from;
    next_from += deep;
    if (next_from >= k) next_from = 0, next_row += step;
    if (from == 0) {
#pragma unroll
      for (int q = 0; q < own; q++)
#pragma unroll
        for (int j = 0; j < own_columns; j++) acc[q][j] = (C)0;
      due = at_once && begun ? k : 0;
    }
    if (from == due) {
      barrier();
      factors(held = from);
      barrier();
      due += Way::most;
    }
    see.columns(from + load_col, k);
    warp_barrier();
    if (whole) {
#pragma unroll
      for (int u = 0; u < loads; u++) {
        four<C> q;
#pragma unroll
        for (int e = 0; e < 4; e++) q.v[e] = see((C)v[u][e], e);
        *(four<C> *)Way::place(as + down * Way::units * 4, along / 4 ^ Way::turn(down), u * Way::apart) = q;
      }
    } else {
#pragma unroll
      for (int i = 0; i < loads * 4; i++) Way::place(as + lane / deep * deep, lane % deep / 4 ^ Way::turn(lane / deep), i * rows_on)[lane % 4] = see((C)v[i / 4][i % 4], 0);
    }
    warp_barrier();
  }
}

// The ways to compute a product. Each has kernels of its own, because a driver compiles what a program launches, and productForms in
// table_dense.go chooses.
template <int own_> struct Tiles { static const int own = own_, threads = tile_threads; };
typedef Tiles<4> Small;
typedef Tiles<8> Large; // for results in f32
typedef Thin<2, 12, 1, 32> Thin12;
typedef Thin<4, 8, 2, 32> Thin16;
typedef Thin<8, 8, 4, 16> Thin32;
typedef Thin<8, 8, 8, 32> Thin64;

template <class C, int own, class TA, class LA, class TB, class LB, class S, class F>
DEVICE void multiply(Tiles<own>, bool ta, bool tb, i64 m, i64 n, i64 k, const TA *a, LA lda, const TB *b, LB ldb, S see, bool lower, F finish) {
  alignas(16) static __shared__ C as[2 * depth][16 * own + 4], bs[2 * depth][16 * own + 4];
  tiled<own>(ta, tb, m, n, k, a, lda, b, ldb, see, lower, as, bs, finish);
}

template <class C, int own, int own_columns, int across, int deep, class TA, class LA, class TB, class LB, class S, class F>
DEVICE void multiply(Thin<own, own_columns, across, deep>, bool, bool tb, i64 m, i64 n, i64 k, const TA *a, LA lda, const TB *b, LB ldb, S see, bool, F finish) {
  typedef Thin<own, own_columns, across, deep> Way;
  alignas(16) static __shared__ C memory[thin_bytes / sizeof(C)];
  thin_rows<Way>(aligned_rows(a, lda(k)) && k % 4 == 0, tb, m, n, k, a, lda, b, ldb, see, memory, finish);
}

// A kernel for each way, with the way's name in its own. For tiles of larger matrices there are some.
#define KERNEL_BY(way, name) extern "C" __global__ void __launch_bounds__(way::threads, 1) dagrun_##name
#define SOME_WAYS(M, name, ...) M(name, Small, __VA_ARGS__) M(name##_large, Large, __VA_ARGS__) M(name##_thin12, Thin12, __VA_ARGS__) M(name##_thin16, Thin16, __VA_ARGS__)
#define ALL_WAYS(M, name, ...) SOME_WAYS(M, name, __VA_ARGS__) M(name##_thin32, Thin32, __VA_ARGS__) M(name##_thin64, Thin64, __VA_ARGS__)
