// Groups of threads: blocks, tiles of a warp, the active lanes, clusters, and the grid, which can wait for itself in a cooperative launch.
#pragma once

#define __DAGRUN_GROUP static inline __attribute__((device)) __attribute__((always_inline)) __attribute__((nodebug))
#define __DAGRUN_METHOD __attribute__((device)) __attribute__((always_inline)) __attribute__((nodebug))

namespace cooperative_groups {
namespace __dagrun {
__DAGRUN_GROUP unsigned lane() {
  unsigned id;
  asm("mov.u32 %0, %%laneid;" : "=r"(id));
  return id;
}
__DAGRUN_GROUP unsigned thread() { return (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x; }
__DAGRUN_GROUP unsigned threads() { return blockDim.x * blockDim.y * blockDim.z; }
__DAGRUN_GROUP unsigned block() { return (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x; }
__DAGRUN_GROUP unsigned below(unsigned lanes) { return __popc(lanes & ((1u << lane()) - 1)); }
// The lane with rank r among the lanes of a mask.
__DAGRUN_GROUP unsigned nth(unsigned lanes, unsigned r) {
  for (; r > 0; r--) lanes &= lanes - 1;
  return __ffs(lanes) - 1;
}
}  // namespace __dagrun

// Some lanes of one warp.
class coalesced_group {
 protected:
  unsigned lanes_;

 public:
  __DAGRUN_METHOD explicit coalesced_group(unsigned lanes) : lanes_(lanes) {}
  __DAGRUN_METHOD void sync() const { __syncwarp(lanes_); }
  __DAGRUN_METHOD unsigned thread_rank() const { return __dagrun::below(lanes_); }
  __DAGRUN_METHOD unsigned size() const { return __popc(lanes_); }
  __DAGRUN_METHOD unsigned num_threads() const { return size(); }
  __DAGRUN_METHOD unsigned meta_group_rank() const { return 0; }
  __DAGRUN_METHOD unsigned meta_group_size() const { return 1; }
  __DAGRUN_METHOD int any(int yes) const { return __ballot_sync(lanes_, yes) != 0; }
  __DAGRUN_METHOD int all(int yes) const { return __ballot_sync(lanes_, yes) == lanes_; }
  __DAGRUN_METHOD unsigned ballot(int yes) const { return packed(__ballot_sync(lanes_, yes)); }
  template <class T> __DAGRUN_METHOD T shfl(T v, int from) const { return __shfl_sync(lanes_, v, (int)__dagrun::nth(lanes_, from)); }
  template <class T> __DAGRUN_METHOD T shfl_down(T v, unsigned by) const {
    unsigned to = thread_rank() + by;
    return __shfl_sync(lanes_, v, (int)(to < size() ? __dagrun::nth(lanes_, to) : __dagrun::lane()));
  }
  template <class T> __DAGRUN_METHOD T shfl_up(T v, unsigned by) const {
    unsigned rank = thread_rank();
    return __shfl_sync(lanes_, v, (int)(rank >= by ? __dagrun::nth(lanes_, rank - by) : __dagrun::lane()));
  }

 protected:
  // Converts a mask of lanes into a mask of ranks.
  __DAGRUN_METHOD unsigned packed(unsigned mask) const {
    unsigned ranks = 0, rank = 0;
    for (unsigned left = lanes_; left; left &= left - 1, rank++) ranks |= ((mask >> (__ffs(left) - 1)) & 1) << rank;
    return ranks;
  }
};
__DAGRUN_GROUP coalesced_group coalesced_threads() { return coalesced_group(__activemask()); }

// Words in shared memory through which the warps of a tile of more than 32 threads wait for each other and exchange values. A variable of
// block_tile_memory<N> in shared memory serves the tiles of a block of up to N threads.
struct __tile_memory {
  unsigned arrived[16];           // by tile
  unsigned long long values[32];  // by warp
};
template <unsigned N = 1024> struct block_tile_memory {
  static_assert(N <= 1024, "a block has at most 1024 threads");
  __tile_memory memory;
};

// A part of a block whose size is known at run time: the whole block, or up to 32 of its threads.
class thread_group {
 protected:
  unsigned size_;
  bool block_;

 public:
  __DAGRUN_METHOD thread_group(unsigned size, bool block) : size_(size), block_(block) {}
  __DAGRUN_METHOD unsigned size() const { return size_; }
  __DAGRUN_METHOD unsigned num_threads() const { return size_; }
  __DAGRUN_METHOD unsigned thread_rank() const { return block_ ? __dagrun::thread() : __dagrun::lane() % size_; }
  __DAGRUN_METHOD void sync() const {
    if (block_)
      __syncthreads();
    else
      __syncwarp((size_ == 32 ? ~0u : (1u << size_) - 1) << (__dagrun::lane() / size_ * size_));
  }
};

class thread_block : public thread_group {
  __tile_memory *memory_;

 public:
  __DAGRUN_METHOD explicit thread_block(__tile_memory *memory = nullptr) : thread_group(__dagrun::threads(), true), memory_(memory) {}
  __DAGRUN_METHOD __tile_memory *__memory() const { return memory_; }
  static __DAGRUN_METHOD void sync() { __syncthreads(); }
  static __DAGRUN_METHOD unsigned thread_rank() { return __dagrun::thread(); }
  static __DAGRUN_METHOD unsigned size() { return __dagrun::threads(); }
  static __DAGRUN_METHOD unsigned num_threads() { return size(); }
  static __DAGRUN_METHOD dim3 group_index() { return dim3(blockIdx.x, blockIdx.y, blockIdx.z); }
  static __DAGRUN_METHOD dim3 thread_index() { return dim3(threadIdx.x, threadIdx.y, threadIdx.z); }
  static __DAGRUN_METHOD dim3 group_dim() { return dim3(blockDim.x, blockDim.y, blockDim.z); }
  static __DAGRUN_METHOD dim3 dim_threads() { return group_dim(); }
};
__DAGRUN_GROUP thread_block this_thread_block() { return thread_block(); }
template <unsigned N> __DAGRUN_GROUP thread_block this_thread_block(block_tile_memory<N> &memory) {
  if (__dagrun::thread() < 16) memory.memory.arrived[__dagrun::thread()] = 0;
  __syncthreads();
  return thread_block(&memory.memory);
}

class grid_group {
  // Cooperative launches give the address of a few words in two registers; word 1 is for the barrier.
  static __DAGRUN_METHOD unsigned *workspace() {
    unsigned high, low;
    asm("mov.u32 %0, %%envreg1;" : "=r"(high));
    asm("mov.u32 %0, %%envreg2;" : "=r"(low));
    return (unsigned *)((unsigned long long)high << 32 | low);
  }

 public:
  static __DAGRUN_METHOD bool is_valid() { return workspace() != nullptr; }
  // Each block adds 1, and the first one what is missing to 2^31: when all have come, the top bit has changed.
  static __DAGRUN_METHOD void sync() {
    __syncthreads();
    if (__dagrun::thread() == 0) {
      unsigned *count = workspace() + 1;
      unsigned mine = __dagrun::block() == 0 ? 0x80000000u - (unsigned)(num_blocks() - 1) : 1u;
      __threadfence();
      unsigned before = atomicAdd(count, mine);
      while (((*(volatile unsigned *)count ^ before) & 0x80000000u) == 0) {
      }
      __threadfence();
    }
    __syncthreads();
  }
  static __DAGRUN_METHOD unsigned long long size() { return (unsigned long long)__dagrun::threads() * num_blocks(); }
  static __DAGRUN_METHOD unsigned long long num_threads() { return size(); }
  static __DAGRUN_METHOD unsigned long long num_blocks() { return (unsigned long long)gridDim.x * gridDim.y * gridDim.z; }
  static __DAGRUN_METHOD unsigned long long block_rank() { return __dagrun::block(); }
  static __DAGRUN_METHOD unsigned long long thread_rank() { return (unsigned long long)__dagrun::block() * __dagrun::threads() + __dagrun::thread(); }
  static __DAGRUN_METHOD dim3 group_dim() { return dim3(gridDim.x, gridDim.y, gridDim.z); }
  static __DAGRUN_METHOD dim3 dim_blocks() { return group_dim(); }
  static __DAGRUN_METHOD dim3 block_index() { return dim3(blockIdx.x, blockIdx.y, blockIdx.z); }
};
__DAGRUN_GROUP grid_group this_grid() { return grid_group(); }

// The blocks of a cluster, which reach each other's shared memory.
class cluster_group {
#define __DAGRUN_CLUSTER(name, special)               \
  static __DAGRUN_METHOD unsigned name() {            \
    unsigned v;                                       \
    asm volatile("mov.u32 %0, %%" special ";" : "=r"(v)); \
    return v;                                         \
  }
  __DAGRUN_CLUSTER(x, "cluster_ctaid.x")
  __DAGRUN_CLUSTER(y, "cluster_ctaid.y")
  __DAGRUN_CLUSTER(z, "cluster_ctaid.z")
  __DAGRUN_CLUSTER(width, "cluster_nctaid.x")
  __DAGRUN_CLUSTER(height, "cluster_nctaid.y")
  __DAGRUN_CLUSTER(depth, "cluster_nctaid.z")

 public:
  class arrival_token {};
  __DAGRUN_CLUSTER(block_rank, "cluster_ctarank")
  __DAGRUN_CLUSTER(num_blocks, "cluster_nctarank")
#undef __DAGRUN_CLUSTER
  static __DAGRUN_METHOD dim3 block_index() { return dim3(x(), y(), z()); }
  static __DAGRUN_METHOD dim3 dim_blocks() { return dim3(width(), height(), depth()); }
  static __DAGRUN_METHOD dim3 dim_threads() { return dim3(width() * blockDim.x, height() * blockDim.y, depth() * blockDim.z); }
  static __DAGRUN_METHOD dim3 thread_index() { return dim3(x() * blockDim.x + threadIdx.x, y() * blockDim.y + threadIdx.y, z() * blockDim.z + threadIdx.z); }
  static __DAGRUN_METHOD unsigned thread_rank() { return block_rank() * __dagrun::threads() + __dagrun::thread(); }
  static __DAGRUN_METHOD unsigned num_threads() { return num_blocks() * __dagrun::threads(); }
  static __DAGRUN_METHOD unsigned size() { return num_threads(); }
  static __DAGRUN_METHOD arrival_token barrier_arrive() {
    asm volatile("barrier.cluster.arrive.aligned;" ::: "memory");
    return arrival_token();
  }
  static __DAGRUN_METHOD void barrier_wait() { asm volatile("barrier.cluster.wait.aligned;" ::: "memory"); }
  static __DAGRUN_METHOD void barrier_wait(arrival_token &&) { barrier_wait(); }
  static __DAGRUN_METHOD void sync() {
    barrier_arrive();
    barrier_wait();
  }
  template <class T> static __DAGRUN_METHOD T *map_shared_rank(T *p, int rank) {
    T *there;
    asm("mapa.u64 %0, %1, %2;" : "=l"(there) : "l"(p), "r"(rank));
    return there;
  }
  static __DAGRUN_METHOD unsigned query_shared_rank(const void *p) {
    unsigned rank;
    asm("getctarank.u32 %0, %1;" : "=r"(rank) : "l"(p));
    return rank;
  }
};
__DAGRUN_GROUP cluster_group this_cluster() { return cluster_group(); }

namespace __dagrun {
// N threads of a warp.
template <unsigned N> class warp_tile : public thread_group {
  static_assert(N <= 32 && (N & (N - 1)) == 0, "a tile has 1, 2, 4, 8, 16 or 32 threads");
  static __DAGRUN_METHOD unsigned mask() { return N == 32 ? ~0u : ((1u << N % 32) - 1) << (lane() / N * N); }

 public:
  __DAGRUN_METHOD explicit warp_tile(__tile_memory *) : thread_group(N, false) {}
  static __DAGRUN_METHOD void sync() { __syncwarp(mask()); }
  static __DAGRUN_METHOD unsigned thread_rank() { return thread() % N; }
  static __DAGRUN_METHOD constexpr unsigned size() { return N; }
  static __DAGRUN_METHOD constexpr unsigned num_threads() { return N; }
  static __DAGRUN_METHOD unsigned meta_group_rank() { return thread() / N; }
  static __DAGRUN_METHOD unsigned meta_group_size() { return (threads() + N - 1) / N; }
  template <class T> static __DAGRUN_METHOD T shfl(T v, int from) { return __shfl_sync(mask(), v, from, N); }
  template <class T> static __DAGRUN_METHOD T shfl_down(T v, unsigned by) { return __shfl_down_sync(mask(), v, by, N); }
  template <class T> static __DAGRUN_METHOD T shfl_up(T v, unsigned by) { return __shfl_up_sync(mask(), v, by, N); }
  template <class T> static __DAGRUN_METHOD T shfl_xor(T v, unsigned by) { return __shfl_xor_sync(mask(), v, by, N); }
  static __DAGRUN_METHOD int any(int yes) { return (__ballot_sync(mask(), yes) & mask()) != 0; }
  static __DAGRUN_METHOD int all(int yes) { return (__ballot_sync(mask(), yes) & mask()) == mask(); }
  static __DAGRUN_METHOD unsigned ballot(int yes) { return (__ballot_sync(mask(), yes) & mask()) >> (lane() / N * N); }
};

// N threads of several warps. Each method is for all of them together.
template <unsigned N> class wide_tile : public thread_group {
  static_assert(N <= 512 && (N & (N - 1)) == 0, "a tile has a power of two of threads, at most 512");
  __tile_memory *memory_;

 public:
  __DAGRUN_METHOD explicit wide_tile(__tile_memory *memory) : thread_group(N, true), memory_(memory) {}
  // Each warp adds 1, and the first one what is missing to 2^31: when all have come, the top bit has changed.
  __DAGRUN_METHOD void sync() const {
    __syncwarp();
    if (thread() % 32 == 0) {
      unsigned *count = &memory_->arrived[meta_group_rank()];
      __threadfence_block();
      unsigned before = atomicAdd(count, thread_rank() == 0 ? 0x80000000u - (N / 32 - 1) : 1u);
      while (((*(volatile unsigned *)count ^ before) & 0x80000000u) == 0) {
      }
      __threadfence_block();
    }
    __syncwarp();
  }
  static __DAGRUN_METHOD unsigned thread_rank() { return thread() % N; }
  static __DAGRUN_METHOD constexpr unsigned size() { return N; }
  static __DAGRUN_METHOD constexpr unsigned num_threads() { return N; }
  static __DAGRUN_METHOD unsigned meta_group_rank() { return thread() / N; }
  static __DAGRUN_METHOD unsigned meta_group_size() { return (threads() + N - 1) / N; }
  template <class T> __DAGRUN_METHOD T shfl(T v, int from) const {
    static_assert(sizeof(T) <= 8, "tiles of several warps exchange values of up to 8 bytes");
    T *at = (T *)&memory_->values[meta_group_rank() * (N / 32)];
    if (thread_rank() == from % N) *at = v;
    sync();
    v = *at;
    sync();
    return v;
  }
  // Combines one value of each warp.
  template <class T, class F> __DAGRUN_METHOD T __combined(T v, F f) const {
    static_assert(sizeof(T) <= 8, "tiles of several warps exchange values of up to 8 bytes");
    unsigned long long *first = &memory_->values[meta_group_rank() * (N / 32)];
    if (thread() % 32 == 0) *(T *)&first[thread_rank() / 32] = v;
    sync();
    v = *(T *)first;
    for (unsigned warp = 1; warp < N / 32; warp++) v = f(v, *(T *)&first[warp]);
    sync();
    return v;
  }
  __DAGRUN_METHOD int any(int yes) const {
    return __combined(__ballot_sync(~0u, yes) != 0, [](int a, int b) { return a | b; });
  }
  __DAGRUN_METHOD int all(int yes) const {
    return __combined(__ballot_sync(~0u, yes) == ~0u, [](int a, int b) { return a & b; });
  }
};
template <bool wide, unsigned N> struct tile_base { using type = warp_tile<N>; };
template <unsigned N> struct tile_base<true, N> { using type = wide_tile<N>; };
}  // namespace __dagrun

// N threads of a block, N a power of two. A tile of more than 32 threads needs a block that has block_tile_memory.
template <unsigned N, class Parent = void> class thread_block_tile;
template <unsigned N> class thread_block_tile<N, void> : public __dagrun::tile_base<(N > 32), N>::type {
 public:
  __DAGRUN_METHOD explicit thread_block_tile(__tile_memory *memory = nullptr) : __dagrun::tile_base<(N > 32), N>::type(memory) {}
};

template <unsigned N, class Parent> class thread_block_tile : public thread_block_tile<N, void> {
 public:
  using thread_block_tile<N, void>::thread_block_tile;
};

template <unsigned N, class G> __DAGRUN_GROUP thread_block_tile<N, G> tiled_partition(const G &) {
  static_assert(N <= 32, "a tile of more than 32 threads is a part of a block that has block_tile_memory");
  return thread_block_tile<N, G>();
}
template <unsigned N> __DAGRUN_GROUP thread_block_tile<N, thread_block> tiled_partition(const thread_block &block) {
  return thread_block_tile<N, thread_block>(block.__memory());
}
__DAGRUN_GROUP thread_group tiled_partition(const thread_group &, unsigned n) { return thread_group(n, false); }

// The lanes of a group that agree on a condition.
template <class G> __DAGRUN_GROUP coalesced_group binary_partition(const G &, bool yes) {
  unsigned active = __activemask(), agree = __ballot_sync(active, yes);
  return coalesced_group(yes ? agree : active & ~agree);
}

#if __CUDA_ARCH__ >= 700
// The lanes of a group that have the same label.
template <class G, class T> __DAGRUN_GROUP coalesced_group labeled_partition(const G &, T label) {
  return coalesced_group(__match_any_sync(__activemask(), label));
}
#endif

template <class G> __DAGRUN_GROUP void sync(const G &g) { g.sync(); }
template <class G> __DAGRUN_GROUP unsigned thread_rank(const G &g) { return g.thread_rank(); }
template <class G> __DAGRUN_GROUP unsigned group_size(const G &g) { return g.size(); }
}  // namespace cooperative_groups
#undef __DAGRUN_GROUP
#undef __DAGRUN_METHOD
