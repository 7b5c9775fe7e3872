// A graph that reads memory which the default stream fills late, for record --contents: the recording must have it as it was before the first launch.
// verdicts: ordered 0|3
#include <cstdint>
#include <cstdio>
#include <cuda_runtime.h>

#define CHECK(call) if (cudaError_t wrong = call) return printf("%s: %s\n", #call, cudaGetErrorString(wrong)), 1

__global__ void wait(unsigned milliseconds) {
  for (unsigned k = 0; k < milliseconds; k++) __nanosleep(1000000);
}

__global__ void increment(const unsigned char* from, unsigned char* to, int n) {
  for (int k = threadIdx.x + blockIdx.x * blockDim.x; k < n; k += blockDim.x * gridDim.x) to[k] = from[k] + 1;
}

int main() {
  const int n = 5 << 20;
  unsigned char *from, *to, last;
  cudaStream_t stream;
  cudaGraph_t graph;
  cudaGraphExec_t execution;
  CHECK(cudaMalloc(&from, n));
  CHECK(cudaMalloc(&to, n));
  CHECK(cudaStreamCreate(&stream));
  CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  increment<<<64, 256, 0, stream>>>(from, to, n);
  CHECK(cudaStreamEndCapture(stream, &graph));
  CHECK(cudaGraphInstantiate(&execution, graph, 0));
  wait<<<1, 1>>>(200);
  CHECK(cudaMemsetAsync(from, 7, n, 0));
  CHECK(cudaGraphLaunch(execution, stream)); // after the default stream, which it waits for
  CHECK(cudaMemsetAsync(from, 9, n, stream));
  CHECK(cudaGraphLaunch(execution, stream));
  CHECK(cudaMemcpy(&last, to + n - 1, 1, cudaMemcpyDeviceToHost));
  printf("address=%llu\nbytes=%d\nvalue=7\nobserved=%s\n", (unsigned long long)(uintptr_t)from, n, last == 10 ? "ok" : "stale");
  return 0;
}
