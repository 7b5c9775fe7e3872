// An ordinary CUDA program: kernels with a template and a namespace, and the host code that runs them. smooth.yaml launches the kernels
// from this file, unchanged; docs/bringing.md explains how.
#include <cstdio>
#include <cstdlib>
#include <vector>
#include <cuda_runtime.h>

#define CHECK(call)                                                          \
  do {                                                                       \
    cudaError_t status = call;                                               \
    if (status != cudaSuccess) {                                             \
      fprintf(stderr, "%s: %s\n", #call, cudaGetErrorString(status));        \
      exit(1);                                                               \
    }                                                                        \
  } while (0)

const int BLOCK = 256;

__device__ __forceinline__ int clampedTo(int i, int n) { return i < 0 ? 0 : i < n ? i : n - 1; }

namespace filters {
// Each element becomes the mean of itself and its R neighbours on both sides; at the ends the outermost element is repeated.
template <int R, typename T> __global__ void mean(int n, const T *x, T *y) {
  __shared__ T tile[BLOCK + 2 * R];
  int first = blockIdx.x * blockDim.x - R;
  for (int k = threadIdx.x; k < BLOCK + 2 * R; k += blockDim.x) tile[k] = x[clampedTo(first + k, n)];
  __syncthreads();
  int i = first + R + threadIdx.x;
  if (i >= n) return;
  T sum = 0;
  for (int k = 0; k <= 2 * R; k++) sum += tile[threadIdx.x + k];
  y[i] = sum / (2 * R + 1);
}
}  // namespace filters

static __global__ void blend(int n, float weight, const float *smooth, float *x) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] += weight * (smooth[i] - x[i]);
}

static double residual(const std::vector<float> &x, float want) {
  double worst = 0;
  for (float v : x) worst = std::max(worst, (double)std::abs(v - want));
  return worst;
}

int main(int argc, char **argv) {
  int n = argc > 1 ? atoi(argv[1]) : 1 << 20;
  std::vector<float> x(n, 3.0f);
  float *d_x, *d_smooth;
  CHECK(cudaMalloc(&d_x, n * sizeof(float)));
  CHECK(cudaMalloc(&d_smooth, n * sizeof(float)));
  cudaStream_t stream;
  CHECK(cudaStreamCreate(&stream));
  CHECK(cudaMemcpyAsync(d_x, x.data(), n * sizeof(float), cudaMemcpyHostToDevice, stream));
  for (int step = 0; step < 4; step++) {
    filters::mean<8><<<(n + BLOCK - 1) / BLOCK, BLOCK, 0, stream>>>(n, (const float *)d_x, d_smooth);
    blend<<<(n + BLOCK - 1) / BLOCK, BLOCK, 0, stream>>>(n, 0.5f, d_smooth, d_x);
  }
  CHECK(cudaMemcpyAsync(x.data(), d_x, n * sizeof(float), cudaMemcpyDeviceToHost, stream));
  CHECK(cudaStreamSynchronize(stream));
  printf("residual %g\n", residual(x, 3.0f));
  CHECK(cudaFree(d_x));
  CHECK(cudaFree(d_smooth));
  return 0;
}
