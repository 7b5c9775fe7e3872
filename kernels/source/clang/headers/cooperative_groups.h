// Groups of threads: blocks, tiles of a warp, and the lanes that run together. Grids and clusters are not here.
#pragma once

namespace cooperative_groups {

#define __DAGRUN_MEMBER __attribute__((device)) __attribute__((always_inline)) inline

class thread_block {
public:
  __DAGRUN_MEMBER void sync() const { __syncthreads(); }
  __DAGRUN_MEMBER unsigned thread_rank() const { return (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x; }
  __DAGRUN_MEMBER unsigned size() const { return blockDim.x * blockDim.y * blockDim.z; }
  __DAGRUN_MEMBER unsigned num_threads() const { return size(); }
  __DAGRUN_MEMBER dim3 group_index() const { return blockIdx; }
  __DAGRUN_MEMBER dim3 thread_index() const { return threadIdx; }
  __DAGRUN_MEMBER dim3 group_dim() const { return blockDim; }
  __DAGRUN_MEMBER dim3 dim_threads() const { return blockDim; }
};
__DAGRUN_MEMBER thread_block this_thread_block() { return thread_block(); }

// __dagrun_lanes is a set of lanes of a warp.
class __dagrun_lanes {
public:
  __DAGRUN_MEMBER explicit __dagrun_lanes(unsigned lanes) : lanes(lanes) {}
  __DAGRUN_MEMBER void sync() const { __syncwarp(lanes); }
  __DAGRUN_MEMBER int any(int yes) const { return __any_sync(lanes, yes); }
  __DAGRUN_MEMBER int all(int yes) const { return __all_sync(lanes, yes); }

protected:
  static __DAGRUN_MEMBER unsigned lane() { return this_thread_block().thread_rank() % 32; }
  unsigned lanes;
};

class coalesced_group : public __dagrun_lanes {
public:
  __DAGRUN_MEMBER explicit coalesced_group(unsigned lanes) : __dagrun_lanes(lanes) {}
  __DAGRUN_MEMBER unsigned size() const { return __popc(lanes); }
  __DAGRUN_MEMBER unsigned num_threads() const { return size(); }
  __DAGRUN_MEMBER unsigned thread_rank() const { return __popc(lanes & ((1u << lane()) - 1)); }
  __DAGRUN_MEMBER unsigned ballot(int yes) const { return ranks(__ballot_sync(lanes, yes)); }
  template <class T> __DAGRUN_MEMBER T shfl(T value, unsigned rank) const { return __shfl_sync(lanes, value, nth(rank)); }
  template <class T> __DAGRUN_MEMBER T shfl_down(T value, unsigned delta) const {
    unsigned rank = thread_rank() + delta;
    return __shfl_sync(lanes, value, rank < size() ? nth(rank) : lane());
  }
  template <class T> __DAGRUN_MEMBER T shfl_up(T value, unsigned delta) const {
    unsigned rank = thread_rank();
    return __shfl_sync(lanes, value, rank >= delta ? nth(rank - delta) : lane());
  }

private:
  // nth is the lane of a rank.
  __DAGRUN_MEMBER unsigned nth(unsigned rank) const {
    unsigned left = lanes;
    for (; rank; rank--) left &= left - 1;
    return __ffs(left) - 1;
  }
  // ranks turns a set of lanes into one of ranks.
  __DAGRUN_MEMBER unsigned ranks(unsigned set) const {
    unsigned result = 0, bit = 1;
    for (unsigned left = lanes; left; left &= left - 1, bit <<= 1)
      if (set & left & (0 - left)) result |= bit;
    return result;
  }
};
__DAGRUN_MEMBER coalesced_group coalesced_threads() { return coalesced_group(__activemask()); }

template <unsigned Size, class Parent = void> class thread_block_tile : public __dagrun_lanes {
public:
  __DAGRUN_MEMBER thread_block_tile() : __dagrun_lanes(Size == 32 ? 0xffffffffu : ((1u << Size % 32) - 1) << lane() / Size * Size) {}
  static __DAGRUN_MEMBER unsigned size() { return Size; }
  static __DAGRUN_MEMBER unsigned num_threads() { return Size; }
  static __DAGRUN_MEMBER unsigned thread_rank() { return lane() % Size; }
  static __DAGRUN_MEMBER unsigned meta_group_rank() { return this_thread_block().thread_rank() / Size; }
  static __DAGRUN_MEMBER unsigned meta_group_size() { return (this_thread_block().size() + Size - 1) / Size; }
  __DAGRUN_MEMBER unsigned ballot(int yes) const { return (__ballot_sync(lanes, yes) & lanes) >> lane() / Size * Size; }
  template <class T> __DAGRUN_MEMBER T shfl(T value, int rank) const { return __shfl_sync(lanes, value, rank, Size); }
  template <class T> __DAGRUN_MEMBER T shfl_down(T value, unsigned delta) const { return __shfl_down_sync(lanes, value, delta, Size); }
  template <class T> __DAGRUN_MEMBER T shfl_up(T value, unsigned delta) const { return __shfl_up_sync(lanes, value, delta, Size); }
  template <class T> __DAGRUN_MEMBER T shfl_xor(T value, unsigned mask) const { return __shfl_xor_sync(lanes, value, mask, Size); }
};
template <unsigned Size, class Group> __DAGRUN_MEMBER thread_block_tile<Size, Group> tiled_partition(const Group &) {
  return thread_block_tile<Size, Group>();
}
template <class Group> __DAGRUN_MEMBER void sync(const Group &group) { group.sync(); }

template <class T> struct plus { __DAGRUN_MEMBER T operator()(T a, T b) const { return a + b; } };
template <class T> struct less { __DAGRUN_MEMBER T operator()(T a, T b) const { return b < a ? b : a; } };
template <class T> struct greater { __DAGRUN_MEMBER T operator()(T a, T b) const { return a < b ? b : a; } };
template <class T> struct bit_and { __DAGRUN_MEMBER T operator()(T a, T b) const { return a & b; } };
template <class T> struct bit_or { __DAGRUN_MEMBER T operator()(T a, T b) const { return a | b; } };
template <class T> struct bit_xor { __DAGRUN_MEMBER T operator()(T a, T b) const { return a ^ b; } };

// reduce combines the values of a tile; every thread gets the result.
template <unsigned Size, class Parent, class T, class F> __DAGRUN_MEMBER T reduce(const thread_block_tile<Size, Parent> &tile, T value, F f) {
#pragma unroll
  for (unsigned k = Size / 2; k; k /= 2) value = f(value, tile.shfl_xor(value, k));
  return value;
}

#undef __DAGRUN_MEMBER
}
