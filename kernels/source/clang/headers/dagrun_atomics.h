// Atomic functions, on global and shared memory, for a device, for one block (_block) and for all devices (_system).
#pragma once

#define __DAGRUN_ATOMIC(name, type, carrier, letter, operation)                                                          \
  __DAGRUN_DEVICE type name(type *at, type value) {                                                                      \
    carrier old;                                                                                                         \
    asm volatile("atom." operation " %0, [%1], %2;" : "=" letter(old) : "l"(at), letter((carrier)value) : "memory");     \
    return (type)old;                                                                                                    \
  }
#define __DAGRUN_SCOPED(suffix, scope)                                                                                   \
  __DAGRUN_ATOMIC(atomicAdd##suffix, int, int, "r", scope "add.s32")                                                     \
  __DAGRUN_ATOMIC(atomicAdd##suffix, unsigned, unsigned, "r", scope "add.u32")                                           \
  __DAGRUN_ATOMIC(atomicAdd##suffix, unsigned long long, unsigned long long, "l", scope "add.u64")                       \
  __DAGRUN_ATOMIC(atomicAdd##suffix, unsigned long, unsigned long, "l", scope "add.u64")                                 \
  __DAGRUN_ATOMIC(atomicAdd##suffix, float, float, "f", scope "add.f32")                                                 \
  __DAGRUN_ATOMIC(atomicAdd##suffix, double, double, "d", scope "add.f64")                                               \
  __DAGRUN_DEVICE int atomicSub##suffix(int *at, int value) { return atomicAdd##suffix(at, -value); }                    \
  __DAGRUN_DEVICE unsigned atomicSub##suffix(unsigned *at, unsigned value) { return atomicAdd##suffix(at, 0u - value); } \
  __DAGRUN_ATOMIC(atomicExch##suffix, int, int, "r", scope "exch.b32")                                                   \
  __DAGRUN_ATOMIC(atomicExch##suffix, unsigned, unsigned, "r", scope "exch.b32")                                         \
  __DAGRUN_ATOMIC(atomicExch##suffix, float, float, "f", scope "exch.b32")                                               \
  __DAGRUN_ATOMIC(atomicExch##suffix, unsigned long long, unsigned long long, "l", scope "exch.b64")                     \
  __DAGRUN_ATOMIC(atomicExch##suffix, unsigned long, unsigned long, "l", scope "exch.b64")                               \
  __DAGRUN_ATOMIC(atomicMin##suffix, int, int, "r", scope "min.s32")                                                     \
  __DAGRUN_ATOMIC(atomicMin##suffix, unsigned, unsigned, "r", scope "min.u32")                                           \
  __DAGRUN_ATOMIC(atomicMin##suffix, long long, long long, "l", scope "min.s64")                                         \
  __DAGRUN_ATOMIC(atomicMin##suffix, unsigned long long, unsigned long long, "l", scope "min.u64")                       \
  __DAGRUN_ATOMIC(atomicMax##suffix, int, int, "r", scope "max.s32")                                                     \
  __DAGRUN_ATOMIC(atomicMax##suffix, unsigned, unsigned, "r", scope "max.u32")                                           \
  __DAGRUN_ATOMIC(atomicMax##suffix, long long, long long, "l", scope "max.s64")                                         \
  __DAGRUN_ATOMIC(atomicMax##suffix, unsigned long long, unsigned long long, "l", scope "max.u64")                       \
  __DAGRUN_ATOMIC(atomicInc##suffix, unsigned, unsigned, "r", scope "inc.u32")                                           \
  __DAGRUN_ATOMIC(atomicDec##suffix, unsigned, unsigned, "r", scope "dec.u32")                                           \
  __DAGRUN_ATOMIC(atomicAnd##suffix, int, int, "r", scope "and.b32")                                                     \
  __DAGRUN_ATOMIC(atomicAnd##suffix, unsigned, unsigned, "r", scope "and.b32")                                           \
  __DAGRUN_ATOMIC(atomicAnd##suffix, unsigned long long, unsigned long long, "l", scope "and.b64")                       \
  __DAGRUN_ATOMIC(atomicOr##suffix, int, int, "r", scope "or.b32")                                                       \
  __DAGRUN_ATOMIC(atomicOr##suffix, unsigned, unsigned, "r", scope "or.b32")                                             \
  __DAGRUN_ATOMIC(atomicOr##suffix, unsigned long long, unsigned long long, "l", scope "or.b64")                         \
  __DAGRUN_ATOMIC(atomicXor##suffix, int, int, "r", scope "xor.b32")                                                     \
  __DAGRUN_ATOMIC(atomicXor##suffix, unsigned, unsigned, "r", scope "xor.b32")                                           \
  __DAGRUN_ATOMIC(atomicXor##suffix, unsigned long long, unsigned long long, "l", scope "xor.b64")                       \
  __DAGRUN_EXCHANGE(atomicCAS##suffix, int, "r", scope "cas.b32")                                                        \
  __DAGRUN_EXCHANGE(atomicCAS##suffix, unsigned, "r", scope "cas.b32")                                                   \
  __DAGRUN_EXCHANGE(atomicCAS##suffix, unsigned long long, "l", scope "cas.b64")                                         \
  __DAGRUN_EXCHANGE(atomicCAS##suffix, unsigned long, "l", scope "cas.b64")
#define __DAGRUN_EXCHANGE(name, type, letter, operation)                                                                 \
  __DAGRUN_DEVICE type name(type *at, type expected, type value) {                                                       \
    type old;                                                                                                            \
    asm volatile("atom." operation " %0, [%1], %2, %3;" : "=" letter(old) : "l"(at), letter(expected), letter(value)     \
                 : "memory");                                                                                            \
    return old;                                                                                                          \
  }
__DAGRUN_SCOPED(, "")
#if __CUDA_ARCH__ >= 600
__DAGRUN_SCOPED(_block, "cta.")
__DAGRUN_SCOPED(_system, "sys.")
#endif
#if __CUDA_ARCH__ >= 700
__DAGRUN_EXCHANGE(atomicCAS, unsigned short, "h", "cas.b16")
#endif
// The word at a place becomes what a function makes of it.
template <class Word, class Change> __DAGRUN_DEVICE Word __dagrun_update(Word *at, Change change) {
  Word seen, old = atomicCAS(at, (Word)0, (Word)0);
  do {
    seen = old;
    old = atomicCAS(at, seen, change(seen));
  } while (old != seen);
  return old;
}
#undef __DAGRUN_SCOPED
#undef __DAGRUN_EXCHANGE
#undef __DAGRUN_ATOMIC
