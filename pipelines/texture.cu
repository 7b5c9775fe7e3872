// An image that is read through a texture object: between its pixels, and through a table of brightness.
#include <cstdio>
#include <vector>
#include <cuda_runtime.h>

struct Affine {
  float2 right, down, origin; // where the texture is read, one pixel further to the right or down, and at first
};

// Every thread makes one pixel. The texture unit interpolates between four texels of the image.
__global__ void warp(cudaTextureObject_t image, Affine at, int width, int height, float *out) {
  int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x < width && y < height) {
    float u = at.origin.x + at.right.x * x + at.down.x * y;
    float v = at.origin.y + at.right.y * x + at.down.y * y;
    out[y * width + x] = tex2D<float>(image, u, v);
  }
}

// The table has bytes, which are read as fractions of 255.
__global__ void brightness(cudaTextureObject_t table, int n, const float *x, float *y) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = tex1Dfetch<float>(table, (int)x[i] & 255);
}

int main() {
  const int width = 256, height = 128;
  std::vector<float> image(width * height);
  for (int i = 0; i < width * height; i++) image[i] = i % width + 2 * (i / width);
  float *in, *out;
  cudaMalloc(&in, image.size() * sizeof(float));
  cudaMalloc(&out, image.size() * sizeof(float));
  cudaMemcpy(in, image.data(), image.size() * sizeof(float), cudaMemcpyHostToDevice);
  cudaResourceDesc memory = {};
  memory.resType = cudaResourceTypePitch2D;
  memory.res.pitch2D.devPtr = in;
  memory.res.pitch2D.desc = cudaCreateChannelDesc<float>();
  memory.res.pitch2D.width = width;
  memory.res.pitch2D.height = height;
  memory.res.pitch2D.pitchInBytes = width * sizeof(float);
  cudaTextureDesc how = {};
  how.filterMode = cudaFilterModeLinear;
  how.addressMode[0] = how.addressMode[1] = cudaAddressModeClamp;
  cudaTextureObject_t texture;
  cudaCreateTextureObject(&texture, &memory, &how, nullptr);
  Affine at = {{0.5f, 0}, {0, 0.5f}, {1, 1}};
  warp<<<dim3(width / 32, height / 8), dim3(32, 8)>>>(texture, at, width, height, out);
  cudaMemcpy(image.data(), out, image.size() * sizeof(float), cudaMemcpyDeviceToHost);
  printf("%g\n", image[0]);
}
