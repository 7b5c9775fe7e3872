// The C++ baseline for dagrun's figures: the same work written by hand on the driver API (launches, graphs) and the runtime API
// (copies). It is a shared library, so that both sides take turns in one process, on one thread and in one context. It has its
// own clock, so that its figures include no call from Go, and it does not use dagrun.

#include <cuda.h>
#include <cuda_runtime.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <vector>

// An Op is one entry of a schedule: 0 launches on a stream, 1 records an event there, 2 makes the stream wait for one.
struct Op {
  int32_t kind, stream, event;
};

// A Work describes what a program does. The kernel's arguments have eight bytes each, of which its parameters may take fewer. Without blocks, it
// is launched as one thread. With memory, the argument at pointer becomes its address.
struct Work {
  const char *name;
  const char *ptx, *entry;
  int64_t launches, bytes;
  int64_t streams, events, ops;
  const Op *op;
  int64_t args;
  uint64_t *arg;
  int64_t blocks, threads;
  int64_t memory, pointer;
};

namespace {

struct Failed {};

#define CHECK(call)                                                             \
  do {                                                                          \
    int code = int(call);                                                       \
    if (code != 0) {                                                            \
      std::fprintf(stderr, "%s:%d: %s: %d\n", __FILE__, __LINE__, #call, code); \
      throw Failed();                                                           \
    }                                                                           \
  } while (0)

using Clock = std::chrono::steady_clock;

double since(Clock::time_point began) {
  return std::chrono::duration<double, std::micro>(Clock::now() - began).count();
}

// A Program is prepared work: submit submits it to the device, finish waits until the device is done.
struct Program {
  virtual ~Program() {}
  virtual void submit() = 0;
  virtual void finish() { CHECK(cuCtxSynchronize()); }
};

// Launches is a program that launches a kernel on streams.
struct Launches : Program {
  CUmodule module = nullptr;
  CUfunction function = nullptr;
  std::vector<CUstream> streams;
  int64_t launches;
  std::vector<uint64_t> values;
  std::vector<void *> params;
  unsigned blocks, threads;
  CUdeviceptr memory = 0;

  Launches(const Work &work, int64_t width) : launches(work.launches), values(work.arg, work.arg + work.args), blocks(1), threads(1) {
    if (work.blocks > 0) {
      blocks = unsigned(work.blocks);
      threads = unsigned(work.threads);
    }
    if (work.memory > 0) {
      CHECK(cuMemAlloc(&memory, size_t(work.memory)));
      CHECK(cuMemsetD8(memory, 0, size_t(work.memory)));
      values[size_t(work.pointer)] = memory;
    }
    for (auto &value : values) params.push_back(&value);
    CHECK(cuModuleLoadData(&module, work.ptx));
    CHECK(cuModuleGetFunction(&function, module, work.entry));
    for (int64_t i = 0; i < width; i++) {
      CUstream stream;
      CHECK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
      streams.push_back(stream);
    }
  }
  ~Launches() {
    for (auto stream : streams) cuStreamDestroy(stream);
    if (memory != 0) cuMemFree(memory);
    cuModuleUnload(module);
  }
  void launch(CUstream stream) {
    CHECK(cuLaunchKernel(function, blocks, 1, 1, threads, 1, 1, 0, stream, params.data(), nullptr));
  }
};

std::vector<CUevent> makeEvents(int64_t n) {
  std::vector<CUevent> events(static_cast<size_t>(n));
  for (auto &event : events) CHECK(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
  return events;
}

// Wide submits the same number of launches to each stream, in turn. One stream is a chain.
struct Wide : Launches {
  using Launches::Launches;
  void submit() override {
    const int64_t steps = launches / int64_t(streams.size());
    for (int64_t step = 0; step < steps; step++)
      for (auto stream : streams) launch(stream);
  }
};

// Stencil: each step of a stream waits for the previous step of the streams on both sides.
struct Stencil : Launches {
  std::vector<CUevent> events;
  Stencil(const Work &work, int64_t width) : Launches(work, width), events(makeEvents(work.launches)) {}
  ~Stencil() {
    for (auto event : events) cuEventDestroy(event);
  }
  void submit() override {
    const size_t width = streams.size(), steps = size_t(launches) / width;
    for (size_t step = 0; step < steps; step++)
      for (size_t i = 0; i < width; i++) {
        if (step > 0) {
          const CUevent *previous = &events[(step - 1) * width];
          if (i > 0) CHECK(cuStreamWaitEvent(streams[i], previous[i - 1], 0));
          if (i + 1 < width) CHECK(cuStreamWaitEvent(streams[i], previous[i + 1], 0));
        }
        launch(streams[i]);
        CHECK(cuEventRecord(events[step * width + i], streams[i]));
      }
  }
};

// Schedule submits a given schedule, which forks from the first stream and joins back into it.
struct Schedule : Launches {
  std::vector<Op> ops;
  std::vector<CUevent> events;
  explicit Schedule(const Work &work) : Launches(work, work.streams), ops(work.op, work.op + work.ops), events(makeEvents(work.events)) {}
  ~Schedule() {
    for (auto event : events) cuEventDestroy(event);
  }
  void submit() override {
    for (const Op &op : ops) switch (op.kind) {
        case 0:
          launch(streams[op.stream]);
          break;
        case 1:
          CHECK(cuEventRecord(events[op.event], streams[op.stream]));
          break;
        default:
          CHECK(cuStreamWaitEvent(streams[op.stream], events[op.event], 0));
      }
  }
  void finish() override { CHECK(cuStreamSynchronize(streams[0])); }
};

// Captured replays another program as a graph, captured from its first stream.
struct Captured : Program {
  Launches *from;
  CUgraph graph = nullptr;
  CUgraphExec exec = nullptr;
  explicit Captured(Launches *program) : from(program) {
    CUstream origin = from->streams[0];
    CHECK(cuStreamBeginCapture(origin, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
    from->submit();
    CHECK(cuStreamEndCapture(origin, &graph));
    CHECK(cuGraphInstantiateWithFlags(&exec, graph, 0));
    CHECK(cuGraphUpload(exec, origin));
  }
  ~Captured() {
    cuGraphExecDestroy(exec);
    cuGraphDestroy(graph);
    delete from;
  }
  void submit() override { CHECK(cuGraphLaunch(exec, from->streams[0])); }
  void finish() override { CHECK(cuStreamSynchronize(from->streams[0])); }
};

// Copy copies pinned memory to the device, or back.
struct Copy : Program {
  void *device = nullptr, *host = nullptr;
  cudaStream_t stream = nullptr;
  size_t bytes;
  bool up;
  Copy(const Work &work, bool up) : bytes(size_t(work.bytes)), up(up) {
    CHECK(cudaMalloc(&device, bytes));
    CHECK(cudaMallocHost(&host, bytes));
    CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    std::memset(host, 0, bytes);
  }
  ~Copy() {
    cudaStreamDestroy(stream);
    cudaFreeHost(host);
    cudaFree(device);
  }
  void submit() override {
    if (up)
      CHECK(cudaMemcpyAsync(device, host, bytes, cudaMemcpyHostToDevice, stream));
    else
      CHECK(cudaMemcpyAsync(host, device, bytes, cudaMemcpyDeviceToHost, stream));
  }
  void finish() override { CHECK(cudaStreamSynchronize(stream)); }
};

Program *make(const Work &work) {
  auto is = [&](const char *name) { return !std::strcmp(work.name, name); };
  if (is("wide")) return new Wide(work, work.streams);
  if (is("stencil")) return new Stencil(work, work.streams);
  if (is("chain-graph")) return new Captured(new Wide(work, 1));
  if (is("schedule")) return new Schedule(work);
  if (is("schedule-graph")) return new Captured(new Schedule(work));
  if (is("copy-up")) return new Copy(work, true);
  if (is("copy-down")) return new Copy(work, false);
  std::fprintf(stderr, "baseline: there is no program \"%s\"\n", work.name);
  throw Failed();
}

}  // namespace

extern "C" {

// baseline_open prepares a program in the first device's primary context, which stays current on the calling thread. Returns null on failure.
Program *baseline_open(const Work *work) {
  try {
    CUdevice device;
    CUcontext context;
    CHECK(cuInit(0));
    CHECK(cuDeviceGet(&device, 0));
    CHECK(cuDevicePrimaryCtxRetain(&context, device));
    CHECK(cuCtxSetCurrent(context));
    return make(*work);
  } catch (Failed) {
    return nullptr;
  }
}

// baseline_run runs a program once and writes the microseconds until the host is done and until the device is. Returns 0 on success.
int baseline_run(Program *program, double *micros) {
  try {
    auto began = Clock::now();
    program->submit();
    micros[0] = since(began);
    program->finish();
    micros[1] = since(began);
    return 0;
  } catch (Failed) {
    return 1;
  }
}

void baseline_close(Program *program) { delete program; }
}
