// What dagrun's start-up is compared with: a program that makes a context, copies bytes up and down, and gives the context back. It prints
// the milliseconds of each phase.
//   startup [UP DOWN]             bytes, by default what saxpy.yaml copies
// INIT_QUEUES and CONTEXT_QUEUES set CUDA_DEVICE_MAX_CONNECTIONS before cuInit and before the context is made, "" to unset it, to see
// when the driver reads it and what that costs. With LEAVE the program ends without giving anything back.

#include <cuda.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#define CHECK(call)                                                                 \
  do {                                                                              \
    CUresult code = (call);                                                         \
    if (code != CUDA_SUCCESS) {                                                     \
      std::fprintf(stderr, "%s:%d: %s: %d\n", __FILE__, __LINE__, #call, int(code)); \
      std::exit(1);                                                                 \
    }                                                                               \
  } while (0)

static std::chrono::steady_clock::time_point last = std::chrono::steady_clock::now();

static void phase(const char *name) {
  auto now = std::chrono::steady_clock::now();
  std::printf(" %s %.1f", name, std::chrono::duration<double, std::milli>(now - last).count());
  last = now;
}

static void queues(const char *from) {
  const char *value = std::getenv(from);
  if (!value) return;
  if (*value)
    setenv("CUDA_DEVICE_MAX_CONNECTIONS", value, 1);
  else
    unsetenv("CUDA_DEVICE_MAX_CONNECTIONS");
}

int main(int argc, char **argv) {
  size_t up = 8 << 20, down = 4 << 20;
  if (argc > 2) up = std::strtoull(argv[1], nullptr, 10), down = std::strtoull(argv[2], nullptr, 10);
  std::printf("startup");
  queues("INIT_QUEUES");
  CHECK(cuInit(0));
  phase("cuInit");
  queues("CONTEXT_QUEUES");
  CUdevice device;
  CUcontext context;
  CHECK(cuDeviceGet(&device, 0));
  CHECK(cuDevicePrimaryCtxRetain(&context, device));
  CHECK(cuCtxSetCurrent(context));
  phase("context");
  void *from, *to;
  CUdeviceptr memory;
  CUstream stream;
  CHECK(cuMemAlloc(&memory, up));
  CHECK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  phase("memory");
  CHECK(cuMemHostAlloc(&from, up, CU_MEMHOSTALLOC_PORTABLE));
  CHECK(cuMemHostAlloc(&to, down, CU_MEMHOSTALLOC_PORTABLE));
  phase("pinned");
  std::memset(from, 1, up);
  phase("fill");
  CHECK(cuMemcpyHtoDAsync(memory, from, up, stream));
  CHECK(cuMemcpyDtoHAsync(to, memory, down < up ? down : up, stream));
  CHECK(cuStreamSynchronize(stream));
  phase("copies");
  if (std::getenv("LEAVE")) {
    std::printf("\n");
    return 0;
  }
  CHECK(cuMemFreeHost(from));
  CHECK(cuMemFreeHost(to));
  CHECK(cuMemFree(memory));
  CHECK(cuStreamDestroy(stream));
  phase("free");
  CHECK(cuDevicePrimaryCtxRelease(device));
  phase("release");
  std::printf("\n");
}
