// Barriers, fences, and exchange between the lanes of a warp. Functions that order memory are written in PTX with a "memory" clobber,
// because LLVM assumes that its own barriers do not change static shared variables.
#pragma once

#define __syncthreads() __dagrun_syncthreads() // clang has a function of this name
__DAGRUN_DEVICE void __dagrun_syncthreads() { asm volatile("bar.sync 0;" ::: "memory"); }
__DAGRUN_DEVICE void __syncwarp(unsigned lanes = 0xffffffff) { asm volatile("bar.warp.sync %0;" ::"r"(lanes) : "memory"); }
__DAGRUN_DEVICE void __threadfence_block() { asm volatile("membar.cta;" ::: "memory"); }
__DAGRUN_DEVICE void __threadfence() { asm volatile("membar.gl;" ::: "memory"); }
__DAGRUN_DEVICE void __threadfence_system() { asm volatile("membar.sys;" ::: "memory"); }
__DAGRUN_DEVICE int __syncthreads_count(int yes) {
  int n;
  asm volatile("{ .reg .pred p; setp.ne.s32 p, %1, 0; bar.red.popc.u32 %0, 0, p; }" : "=r"(n) : "r"(yes) : "memory");
  return n;
}
__DAGRUN_DEVICE int __syncthreads_and(int yes) {
  int all;
  asm volatile("{ .reg .pred p, q; setp.ne.s32 p, %1, 0; bar.red.and.pred q, 0, p; selp.s32 %0, 1, 0, q; }" : "=r"(all) : "r"(yes) : "memory");
  return all;
}
__DAGRUN_DEVICE int __syncthreads_or(int yes) {
  int any;
  asm volatile("{ .reg .pred p, q; setp.ne.s32 p, %1, 0; bar.red.or.pred q, 0, p; selp.s32 %0, 1, 0, q; }" : "=r"(any) : "r"(yes) : "memory");
  return any;
}

__DAGRUN_DEVICE unsigned __activemask() {
  unsigned lanes;
  asm volatile("activemask.b32 %0;" : "=r"(lanes));
  return lanes;
}
__DAGRUN_DEVICE int __all_sync(unsigned lanes, int yes) { return __nvvm_vote_all_sync(lanes, yes != 0); }
__DAGRUN_DEVICE int __any_sync(unsigned lanes, int yes) { return __nvvm_vote_any_sync(lanes, yes != 0); }
__DAGRUN_DEVICE int __uni_sync(unsigned lanes, int yes) { return __nvvm_vote_uni_sync(lanes, yes != 0); }
__DAGRUN_DEVICE unsigned __ballot_sync(unsigned lanes, int yes) { return __nvvm_vote_ballot_sync(lanes, yes != 0); }
__DAGRUN_DEVICE int __all(int yes) { return __all_sync(__activemask(), yes); }
__DAGRUN_DEVICE int __any(int yes) { return __any_sync(__activemask(), yes); }
__DAGRUN_DEVICE unsigned __ballot(int yes) { return __ballot_sync(__activemask(), yes); }

template <class T> __DAGRUN_DEVICE T __dagrun_through_words(T value, unsigned (*exchange)(unsigned, const unsigned *), const unsigned *how) {
  unsigned words[(sizeof(T) + 3) / 4] = {};
  __builtin_memcpy(words, &value, sizeof(T));
#pragma unroll
  for (int i = 0; i < (int)((sizeof(T) + 3) / 4); i++) words[i] = exchange(words[i], how);
  __builtin_memcpy(&value, words, sizeof(T));
  return value;
}
#define __DAGRUN_SHUFFLE(name, mode, clamp)                                                                                       \
  __DAGRUN_DEVICE unsigned __dagrun_##name(unsigned word, const unsigned *how) {                                                  \
    return (unsigned)__nvvm_shfl_sync_##mode##_i32(how[0], (int)word, (int)how[1], (int)how[2]);                                  \
  }                                                                                                                               \
  template <class T, class L> __DAGRUN_DEVICE T __shfl##name##_sync(unsigned lanes, T value, L lane, int width = 32) {            \
    unsigned how[3] = {lanes, (unsigned)lane, (unsigned)((32 - width) << 8 | clamp)};                                             \
    return __dagrun_through_words(value, __dagrun_##name, how);                                                                   \
  }                                                                                                                               \
  template <class T, class L> __DAGRUN_DEVICE T __shfl##name(T value, L lane, int width = 32) {                                   \
    return __shfl##name##_sync(__activemask(), value, lane, width);                                                               \
  }
__DAGRUN_SHUFFLE(, idx, 0x1f)
__DAGRUN_SHUFFLE(_up, up, 0)
__DAGRUN_SHUFFLE(_down, down, 0x1f)
__DAGRUN_SHUFFLE(_xor, bfly, 0x1f)
#undef __DAGRUN_SHUFFLE

#if __CUDA_ARCH__ >= 700
template <class T> __DAGRUN_DEVICE unsigned __match_any_sync(unsigned lanes, T value) {
  if constexpr (sizeof(T) == 8) {
    unsigned long long bits;
    __builtin_memcpy(&bits, &value, 8);
    return __nvvm_match_any_sync_i64(lanes, bits);
  } else {
    unsigned bits = 0;
    __builtin_memcpy(&bits, &value, sizeof(T));
    return __nvvm_match_any_sync_i32(lanes, bits);
  }
}
template <class T> __DAGRUN_DEVICE unsigned __match_all_sync(unsigned lanes, T value, int *same) {
  if constexpr (sizeof(T) == 8) {
    unsigned long long bits;
    __builtin_memcpy(&bits, &value, 8);
    return __nvvm_match_all_sync_i64p(lanes, bits, same);
  } else {
    unsigned bits = 0;
    __builtin_memcpy(&bits, &value, sizeof(T));
    return __nvvm_match_all_sync_i32p(lanes, bits, same);
  }
}
__DAGRUN_DEVICE void __nanosleep(unsigned ns) { asm volatile("nanosleep.u32 %0;" ::"r"(ns)); }
#endif

#if __CUDA_ARCH__ >= 800
#define __DAGRUN_REDUX(name, type, operation)                                                                   \
  __DAGRUN_DEVICE type __reduce_##name##_sync(unsigned lanes, type value) {                                     \
    type result;                                                                                                \
    asm volatile("redux.sync." operation " %0, %1, %2;" : "=r"(result) : "r"(value), "r"(lanes));               \
    return result;                                                                                              \
  }
__DAGRUN_REDUX(add, unsigned, "add.u32")
__DAGRUN_REDUX(add, int, "add.s32")
__DAGRUN_REDUX(min, unsigned, "min.u32")
__DAGRUN_REDUX(min, int, "min.s32")
__DAGRUN_REDUX(max, unsigned, "max.u32")
__DAGRUN_REDUX(max, int, "max.s32")
__DAGRUN_REDUX(and, unsigned, "and.b32")
__DAGRUN_REDUX(or, unsigned, "or.b32")
__DAGRUN_REDUX(xor, unsigned, "xor.b32")
#undef __DAGRUN_REDUX
#endif

__DAGRUN_DEVICE long long clock64() {
  long long now;
  asm volatile("mov.u64 %0, %%clock64;" : "=l"(now)::"memory");
  return now;
}
__DAGRUN_DEVICE int clock() { return (int)clock64(); }
__DAGRUN_DEVICE void __trap() { asm volatile("trap;"); }
__DAGRUN_DEVICE void __brkpt() {}
__DAGRUN_DEVICE void __prof_trigger(int) {}
__DAGRUN_DEVICE unsigned __isGlobal(const void *p) { return __nvvm_isspacep_global(p); }
__DAGRUN_DEVICE unsigned __isShared(const void *p) { return __nvvm_isspacep_shared(p); }
__DAGRUN_DEVICE unsigned __isLocal(const void *p) { return __nvvm_isspacep_local(p); }
__DAGRUN_DEVICE unsigned __isConstant(const void *p) { return __nvvm_isspacep_const(p); }
__DAGRUN_DEVICE size_t __cvta_generic_to_shared(const void *p) { return (size_t)(__attribute__((address_space(3))) const void *)p; }
__DAGRUN_DEVICE void *__cvta_shared_to_generic(size_t p) { return (void *)(__attribute__((address_space(3))) void *)p; }
__DAGRUN_DEVICE void *__cvta_global_to_generic(size_t p) { return (void *)(__attribute__((address_space(1))) void *)p; }
__DAGRUN_DEVICE size_t __cvta_generic_to_global(const void *p) { return (size_t)(__attribute__((address_space(1))) const void *)p; }
