// Kernels that read a texture between, on and outside its texels, for tests/gpu/textures/run.

// Point i of n lies at from + i*step in both directions, v running backwards.
template <typename T>
__device__ T at(cudaTextureObject_t image, int n, int i, float from, float step) {
  return tex2D<T>(image, from + i * step, from + (n - 1 - i) * step);
}

__global__ void floats(cudaTextureObject_t image, int n, float from, float step, float *out) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = at<float>(image, n, i, from, step);
}

__global__ void colors(cudaTextureObject_t image, int n, float from, float step, float *out) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float4 c = at<float4>(image, n, i, from, step);
  out[i] = c.x + 10 * c.y + 100 * c.z + 1000 * c.w;
}

__global__ void integers(cudaTextureObject_t image, int n, float from, float step, float *out) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = at<int>(image, n, i, from, step);
}

// Reads by index, and 8 texels beyond both ends.
__global__ void indices(cudaTextureObject_t line, int n, float *out) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = tex1Dfetch<unsigned short>(line, i - 8);
}
