// A program whose kernel waits for its whole grid: Jacobi steps and a sum over all blocks in one launch, without going back to the host.
#include <cooperative_groups.h>
#include <cstdio>
#include <cuda_runtime.h>
namespace cg = cooperative_groups;

// x and next hold the values of one step each, in turn. Every block leaves its part of the sum in parts; the first block adds them up.
__global__ void jacobi(int n, int steps, float *x, float *next, float *parts, float *residual) {
  cg::grid_group grid = cg::this_grid();
  __shared__ float sum[256];
  for (int step = 0; step < steps; step++) {
    for (int i = grid.thread_rank(); i < n; i += grid.size()) {
      next[i] = i == 0 || i == n - 1 ? x[i] : 0.5f * (x[i - 1] + x[i + 1]);
    }
    grid.sync();
    float *old = x;
    x = next;
    next = old;
  }
  float mine = 0;
  for (int i = grid.thread_rank(); i < n; i += grid.size()) {
    float d = i == 0 || i == n - 1 ? 0 : x[i] - 0.5f * (x[i - 1] + x[i + 1]);
    mine += d * d;
  }
  sum[threadIdx.x] = mine;
  __syncthreads();
  for (int half = blockDim.x / 2; half > 0; half /= 2) {
    if (threadIdx.x < half) sum[threadIdx.x] += sum[threadIdx.x + half];
    __syncthreads();
  }
  if (threadIdx.x == 0) parts[blockIdx.x] = sum[0];
  grid.sync();
  if (grid.thread_rank() == 0) {
    float total = 0;
    for (int b = 0; b < gridDim.x; b++) total += parts[b];
    *residual = total;
  }
}

int main() {
  int n = 4096, steps = 8;
  float *x, *next, *parts, *residual;
  cudaMallocManaged(&x, n * sizeof(float));
  cudaMalloc(&next, n * sizeof(float));
  cudaMalloc(&parts, 16 * sizeof(float));
  cudaMallocManaged(&residual, sizeof(float));
  for (int i = 0; i < n; i++) x[i] = i;
  void *args[] = {&n, &steps, &x, &next, &parts, &residual};
  cudaLaunchCooperativeKernel((void *)jacobi, dim3(16), dim3(256), args, 0, 0);
  cudaDeviceSynchronize();
  printf("residual %g\n", *residual);
}
