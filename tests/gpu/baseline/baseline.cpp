// What dagrun's figures are compared with: the same work written by hand in C++ on the driver API (launches, graphs) and the
// runtime API (copies). Prints lines "FIGURE name value"; measures one thing per process.

#include <cuda.h>
#include <cuda_runtime.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <vector>

static const int kLaunches = 1000, kReplays = 50, kWide = 8;
static const size_t kCopied = size_t(256) << 20;

static const char *kPTX =
    ".version 6.0\n.target sm_60\n.address_size 64\n.visible .entry noop()\n{\n\tret;\n}\n";

#define CHECK(call)                                                          \
  do {                                                                       \
    int code = int(call);                                                    \
    if (code != 0) {                                                         \
      std::fprintf(stderr, "%s:%d: %s: %d\n", __FILE__, __LINE__, #call, code); \
      std::exit(1);                                                          \
    }                                                                        \
  } while (0)

using Clock = std::chrono::steady_clock;

static double since(Clock::time_point began) {
  return std::chrono::duration<double, std::micro>(Clock::now() - began).count();
}

struct Device {
  CUcontext context;
  CUmodule module;
  CUfunction noop;
  Device() {
    CUdevice device;
    CHECK(cuInit(0));
    CHECK(cuDeviceGet(&device, 0));
    CHECK(cuDevicePrimaryCtxRetain(&context, device));
    CHECK(cuCtxSetCurrent(context));
    CHECK(cuModuleLoadData(&module, kPTX));
    CHECK(cuModuleGetFunction(&noop, module, "noop"));
  }
  void launch(CUstream stream) {
    CHECK(cuLaunchKernel(noop, 1, 1, 1, 1, 1, 1, 0, stream, nullptr, nullptr));
  }
};

static void measure(const char *host_name, const char *all_name, const std::function<void()> &submit) {
  double host = 1e18, all = 1e18;
  for (int i = 0; i < kReplays; i++) {
    auto began = Clock::now();
    submit();
    host = std::min(host, since(began));
    CHECK(cuCtxSynchronize());
    all = std::min(all, since(began));
  }
  if (host_name) std::printf("FIGURE %s %g\n", host_name, host / kLaunches);
  std::printf("FIGURE %s %g\n", all_name, all / kLaunches);
}

static std::vector<CUstream> streams(int n) {
  std::vector<CUstream> made(n);
  for (auto &s : made) CHECK(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
  return made;
}

static void stream() {
  Device d;
  auto s = streams(1);
  measure("us/launch-host", "us/launch", [&] {
    for (int i = 0; i < kLaunches; i++) d.launch(s[0]);
  });
}

static void graph() {
  Device d;
  auto s = streams(1);
  CUgraph graph;
  CUgraphExec exec;
  CHECK(cuStreamBeginCapture(s[0], CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
  for (int i = 0; i < kLaunches; i++) d.launch(s[0]);
  CHECK(cuStreamEndCapture(s[0], &graph));
  CHECK(cuGraphInstantiateWithFlags(&exec, graph, 0));
  CHECK(cuGraphUpload(exec, s[0]));
  measure("us/node-host", "us/node", [&] { CHECK(cuGraphLaunch(exec, s[0])); });
}

static void wide() {
  Device d;
  auto s = streams(kWide);
  measure(nullptr, "us/launch-1-threads", [&] {
    for (int i = 0; i < kLaunches / kWide; i++)
      for (auto stream : s) d.launch(stream);
  });
}

static void stencil() {
  Device d;
  auto s = streams(kWide);
  const int steps = kLaunches / kWide;
  std::vector<CUevent> events(size_t(steps) * kWide);
  for (auto &e : events) CHECK(cuEventCreate(&e, CU_EVENT_DISABLE_TIMING));
  measure(nullptr, "us/launch-1-threads", [&] {
    for (int step = 0; step < steps; step++)
      for (int i = 0; i < kWide; i++) {
        if (step > 0) {
          CUevent *previous = &events[size_t(step - 1) * kWide];
          if (i > 0) CHECK(cuStreamWaitEvent(s[i], previous[i - 1], 0));
          if (i + 1 < kWide) CHECK(cuStreamWaitEvent(s[i], previous[i + 1], 0));
        }
        d.launch(s[i]);
        CHECK(cuEventRecord(events[size_t(step) * kWide + i], s[i]));
      }
  });
}

static void copy() {
  void *device, *host;
  cudaStream_t s;
  CHECK(cudaMalloc(&device, kCopied));
  CHECK(cudaMallocHost(&host, kCopied));
  CHECK(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
  std::memset(host, 0, kCopied);
  auto best = [&](void *to, void *from, cudaMemcpyKind kind) {
    double micros = 1e18;
    for (int i = 0; i < 20; i++) {
      auto began = Clock::now();
      CHECK(cudaMemcpyAsync(to, from, kCopied, kind, s));
      CHECK(cudaStreamSynchronize(s));
      micros = std::min(micros, since(began));
    }
    return kCopied / micros / 1e3;
  };
  std::printf("FIGURE up-GB/s %g\n", best(device, host, cudaMemcpyHostToDevice));
  std::printf("FIGURE down-GB/s %g\n", best(host, device, cudaMemcpyDeviceToHost));
}

int main(int argc, char **argv) {
  const char *what = argc > 1 ? argv[1] : "";
  struct {
    const char *name;
    void (*run)();
  } programs[] = {{"stream", stream}, {"graph", graph}, {"wide", wide}, {"stencil", stencil}, {"copy", copy}};
  for (auto &p : programs)
    if (!std::strcmp(p.name, what)) {
      p.run();
      return 0;
    }
  std::fprintf(stderr, "usage: baseline stream|graph|wide|stencil|copy\n");
  return 2;
}
