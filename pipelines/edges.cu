// A program with state of its own: a filter in constant memory, and counters that its kernels share.
#include <cstdio>
#include <vector>
#include <cuda_runtime.h>

constexpr int RADIUS = 4;
constexpr int TAPS = 2 * RADIUS + 1;

__constant__ float taps[TAPS];

namespace found {
__device__ int edges;
}

__device__ float filtered(const float *row, int i, int n) {
  float sum = 0;
  for (int k = -RADIUS; k <= RADIUS; k++) {
    int j = min(max(i + k, 0), n - 1);
    sum += taps[k + RADIUS] * row[j];
  }
  return sum;
}

// Every row on its own: one block a row, and its threads go along it.
__global__ void filter(int columns, const float *in, float *out) {
  const float *row = in + (size_t)blockIdx.x * columns;
  for (int i = threadIdx.x; i < columns; i += blockDim.x) {
    out[(size_t)blockIdx.x * columns + i] = filtered(row, i, columns);
  }
}

__global__ void count(int n, float threshold, const float *x) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n && fabsf(x[i]) > threshold) atomicAdd(&found::edges, 1);
}

int main() {
  const int rows = 64, columns = 1024;
  float slope[TAPS];
  for (int k = 0; k < TAPS; k++) slope[k] = (k - RADIUS) / 60.0f;
  std::vector<float> image(rows * columns, 0.0f);
  for (int i = 0; i < rows * columns; i++) image[i] = i % columns < columns / 2 ? 0.0f : 1.0f;
  float *in, *out;
  cudaMalloc(&in, image.size() * sizeof(float));
  cudaMalloc(&out, image.size() * sizeof(float));
  cudaMemcpy(in, image.data(), image.size() * sizeof(float), cudaMemcpyHostToDevice);
  cudaMemcpyToSymbol(taps, slope, sizeof(slope));
  filter<<<rows, 128>>>(columns, in, out);
  count<<<rows * columns / 256, 256>>>(rows * columns, 0.01f, out);
  int edges;
  cudaMemcpyFromSymbol(&edges, found::edges, sizeof(edges));
  printf("%d edges\n", edges);
  cudaFree(in);
  cudaFree(out);
}
