// Kernels that touch no memory: one does nothing, one is busy for a given time.
#include "common.cuh"

KERNEL(noop)() {}

DEVICE u64 nanoseconds() {
  u64 t;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(t));
  return t;
}

KERNEL(spin)(f64 us) {
  u64 start = nanoseconds(), length = (u64)(us * 1000.0);
  while (nanoseconds() - start < length) {}
}
