// Submits a wide pattern of empty kernels from one thread, as a programmer would write it: a stream for each column, and for a stencil an
// event for each task. Replays follow each other at once. It prints the microseconds of one.
//   wide trivial|stencil WIDTH STEPS REPLAYS

#include <cuda.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#define CHECK(call)                                                                 \
  do {                                                                              \
    CUresult code = (call);                                                         \
    if (code != CUDA_SUCCESS) {                                                     \
      std::fprintf(stderr, "%s:%d: %s: %d\n", __FILE__, __LINE__, #call, int(code)); \
      std::exit(1);                                                                 \
    }                                                                               \
  } while (0)

static const char noop[] = ".version 6.0\n.target sm_52\n.address_size 64\n.visible .entry noop()\n{\nret;\n}\n";

int main(int argc, char **argv) {
  if (argc != 5) return 2;
  bool stencil = !std::strcmp(argv[1], "stencil");
  int width = std::atoi(argv[2]), steps = std::atoi(argv[3]), replays = std::atoi(argv[4]);
  CUdevice device;
  CUcontext context;
  CUmodule module;
  CUfunction kernel;
  CHECK(cuInit(0));
  CHECK(cuDeviceGet(&device, 0));
  CHECK(cuDevicePrimaryCtxRetain(&context, device));
  CHECK(cuCtxSetCurrent(context));
  CHECK(cuModuleLoadData(&module, noop));
  CHECK(cuModuleGetFunction(&kernel, module, "noop"));
  std::vector<CUstream> streams(width);
  std::vector<CUevent> events(width * steps), joins(width);
  CUevent fork;
  for (CUstream &s : streams) CHECK(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
  for (CUevent &e : events) CHECK(cuEventCreate(&e, CU_EVENT_DISABLE_TIMING));
  for (CUevent &e : joins) CHECK(cuEventCreate(&e, CU_EVENT_DISABLE_TIMING));
  CHECK(cuEventCreate(&fork, CU_EVENT_DISABLE_TIMING));
  auto replay = [&] {
    CHECK(cuEventRecord(fork, streams[0]));
    for (int i = 1; i < width; i++) CHECK(cuStreamWaitEvent(streams[i], fork, 0));
    for (int t = 0; t < steps; t++)
      for (int i = 0; i < width; i++) {
        if (stencil && t > 0) {
          if (i > 0) CHECK(cuStreamWaitEvent(streams[i], events[(t - 1) * width + i - 1], 0));
          if (i + 1 < width) CHECK(cuStreamWaitEvent(streams[i], events[(t - 1) * width + i + 1], 0));
        }
        CHECK(cuLaunchKernel(kernel, 1, 1, 1, 1, 1, 1, 0, streams[i], nullptr, nullptr));
        if (stencil && t + 1 < steps) CHECK(cuEventRecord(events[t * width + i], streams[i]));
      }
    for (int i = 1; i < width; i++) {
      CHECK(cuEventRecord(joins[i], streams[i]));
      CHECK(cuStreamWaitEvent(streams[0], joins[i], 0));
    }
  };
  for (int r = 0; r < 20; r++) replay();
  CHECK(cuCtxSynchronize());
  auto began = std::chrono::steady_clock::now();
  for (int r = 0; r < replays; r++) replay();
  CHECK(cuCtxSynchronize());
  std::printf("%.3f\n", std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - began).count() / replays);
}
