// Kernels with one planted fault each, for tests/gpu/sanitizer/run. FAULT 0 is the kernel without a fault. Compiled by nvcc with -DHOST,
// the file is a program that launches one of them as dagrun does: faults KERNEL FAULT.

__device__ unsigned arrived, flag;

// The fault is a parameter too, so that compilers keep what would be dead otherwise.
#define planted(k) (FAULT == (k))

// Each block reverses its 64 numbers through shared memory.
template <int FAULT>
__global__ void reversed(int n, const int *in, int *out) {
  __shared__ __align__(16) int tile[66];
  int me = threadIdx.x, i = blockIdx.x * 64 + me, v = in[i - (planted(2) ? 1 : 0)];
  if (planted(7)) {
    int2 pair = *(const int2 *)(in + min(i, n - 3));
    v = pair.x + pair.y;
  }
  if (planted(12)) v += out[i ^ 1];
  if (planted(18))
    tile[me / 2 * 2] = v;
  else if (!planted(11) || me != 9)
    tile[me] = v;
  if (planted(27)) {
    if (me != 63) __syncthreads();
  } else if (planted(28)) {
    if (me == 5)
      v += __syncthreads_count(v);
    else
      __syncthreads();
  } else if (!planted(17)) {
    __syncthreads();
  }
  int from = 63 - me;
  if (planted(3)) from += n * 1024;
  if (planted(8))
    v = *(const int *)((const char *)tile + 4 * min(from, 60) + n % 2 + 1);
  else
    v = tile[planted(18) ? from / 2 * 2 : from];
  if (planted(1))
    out[i + 2 * 64] = v;
  else if (planted(6))
    *(int *)((char *)out + 4 * min(i, n - 2) + 2) = v;
  else if (planted(25))
    out[me] = v + (int)blockIdx.x;
  else
    out[i] = v;
}

// The last block to come sums what every block has summed.
template <int FAULT>
__global__ void summed(int n, const int *in, int *out) {
  __shared__ int part[64];
  __shared__ bool last;
  int me = threadIdx.x;
  part[me] = in[blockIdx.x * 64 + me];
  if (planted(26)) {
    if (me < 32) __syncthreads();
  }
  __syncthreads();
  for (int step = 32; step > 0; step /= 2) {
    if (me < step) part[me] += part[me + step];
    if (!planted(19)) __syncthreads();
  }
  if (me == 0) {
    if (!planted(13) || blockIdx.x != 1) out[blockIdx.x] = part[0];
    if (!planted(21)) __threadfence();
    if (planted(22))
      last = arrived++ == gridDim.x - 1;
    else
      last = atomicAdd(&arrived, 1) == gridDim.x - 1;
  }
  __syncthreads();
  if (last && me == 0) {
    if (!planted(21)) __threadfence();
    int total = 0;
    for (int k = 0; k < gridDim.x; k++) total += out[k];
    if (planted(5)) out = (int *)(long long)(n / 1000);
    out[gridDim.x] = total;
    arrived = 0;
  }
}

// Each thread looks its number up in a table of its own.
template <int FAULT>
__global__ void looked(int n, const int *in, int *out) {
  __shared__ unsigned char bytes[64];
  int table[8];
  int me = threadIdx.x, i = blockIdx.x * 64 + me;
#pragma unroll 1
  for (int k = 0; k < (planted(14) ? 7 : 8); k++) table[(k + n) & 7] = k * k;
  int at = in[i] & 7;
  if (planted(4)) at += n * 100;
  int v = planted(9) ? (int)*(const volatile long long *)((const char *)table + 4 * (at & 3) + 4 * ((at + 1) & 1)) : table[at];
  bytes[me] = (unsigned char)v;
  if (planted(30)) {
    if (me < 32)
      __syncthreads();
    else
      v += __syncthreads_or(v);
  } else if (!planted(20)) {
    __syncthreads();
  }
  out[i] = bytes[me ^ 33] + v;
}

// Each block counts its numbers by their low bits.
template <int FAULT>
__global__ void counted(int n, const int *in, int *out) {
  __shared__ __align__(8) int count[66];
  int me = threadIdx.x, i = blockIdx.x * 64 + me;
  if (!planted(15)) count[me] = 0;
  if (me < 2) count[me + 64] = 0;
  if (planted(29)) {
    if (me == 40) return;
    asm volatile("bar.sync 0, 64;" ::: "memory");
  }
  __syncthreads();
  atomicAdd((int *)((char *)count + 4 * (in[i] & 63) + (planted(10) ? 2 : 0)), 1);
  if (!planted(16)) __syncthreads();
  out[i] = count[me];
}

// Block 0 writes what the others wait for.
template <int FAULT>
__global__ void passed(int n, const int *in, int *out) {
  int me = threadIdx.x, i = blockIdx.x * 64 + me;
  if (blockIdx.x == 0) {
    if (me == 0) {
      if (!planted(23)) out[0] = in[0] + 7;
      __threadfence();
      atomicExch(&flag, 1);
      if (planted(23)) out[0] = in[0] + 7;
    }
    return;
  }
  while (*(volatile unsigned *)&flag == 0) {
  }
  if (!planted(24)) __threadfence();
  out[i] = out[0];
}

#ifdef HOST
#include <cstdio>
#include <cstdlib>
#include <cstring>

#define one(kernel, fault) \
  if (!strcmp(argv[1], #kernel) && atoi(argv[2]) == fault) kernel<fault><<<3, 64>>>(n, in, out);

int main(int argc, char **argv) {
  const int n = 192;
  int *in, *out, numbers[n];
  for (int i = 0; i < n; i++) numbers[i] = i * 37 + 5;
  if (argc < 3 || cudaMalloc(&in, sizeof numbers) || cudaMalloc(&out, sizeof numbers)) return 2;
  cudaMemcpy(in, numbers, sizeof numbers, cudaMemcpyHostToDevice);
  one(reversed, 0) one(reversed, 1) one(reversed, 2) one(reversed, 3) one(reversed, 6) one(reversed, 7) one(reversed, 8) one(reversed, 11) one(reversed, 12)
  one(reversed, 17) one(reversed, 18) one(reversed, 25) one(reversed, 27) one(reversed, 28)
  one(summed, 0) one(summed, 5) one(summed, 13) one(summed, 19) one(summed, 21) one(summed, 22) one(summed, 26)
  one(looked, 0) one(looked, 4) one(looked, 9) one(looked, 14) one(looked, 20) one(looked, 30)
  one(counted, 0) one(counted, 10) one(counted, 15) one(counted, 16) one(counted, 29)
  one(passed, 0) one(passed, 23) one(passed, 24)
  cudaError_t e = cudaDeviceSynchronize();
  printf("%s\n", cudaGetErrorString(e));
  return e != cudaSuccess;
}
#endif
