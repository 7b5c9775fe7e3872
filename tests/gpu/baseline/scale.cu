// A kernel that tests/gpu/run compiles to a cubin, a fatbin and a cubin for another GPU; TestBinaries loads them.

extern "C" __global__ void scale(float *x, unsigned n, float a) {
  unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] *= a;
}
