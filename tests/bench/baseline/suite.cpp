// The GrCUDA workloads scheduled by hand in C++ on the driver API: pinned copies, streams, events. Kernels, launch shapes and
// contents are read from a folder that dagrun's side writes, so that only the schedule differs. For each line "go" that it reads, it
// replays once and prints the microseconds; "dump" writes the results. It does not read dagrun's plans.
//   suite FOLDER vec|bs|ml|hits|img|dl CHUNKS      CHUNKS: number of chunks into which the folder's nodes split the data

#include <cuda.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iostream>
#include <iterator>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#define CHECK(call)                                                                 \
  do {                                                                              \
    CUresult code = (call);                                                         \
    if (code != CUDA_SUCCESS) {                                                     \
      std::fprintf(stderr, "%s:%d: %s: %d\n", __FILE__, __LINE__, #call, int(code)); \
      std::exit(1);                                                                 \
    }                                                                               \
  } while (0)

struct Buffer {
  bool host = false;
  size_t bytes = 0;
  void *memory = nullptr;  // host
  CUdeviceptr device = 0;
  bool result = false;  // a copy writes it
};

struct Node {
  bool kernel = false, up = false;
  void *host = nullptr;  // copies
  CUdeviceptr device = 0;
  size_t bytes = 0;
  CUfunction function = nullptr;  // kernels
  unsigned grid[3], block[3], shared = 0;
  std::vector<uint64_t> values;
  std::vector<void *> params;
};

struct Op {
  enum Kind { Run, Record, Wait } kind;
  CUstream stream;
  Node *node;
  CUevent event;
};

struct Workload {
  std::string folder;
  std::vector<Buffer> buffers;
  std::vector<CUmodule> modules;
  std::map<std::string, Node> nodes;
  std::map<std::string, int> used;
  std::vector<CUstream> streams;
  std::vector<Op> ops;

  void *address(Buffer &b, size_t offset) { return static_cast<char *>(b.memory) + offset; }

  void read(const std::string &from) {
    folder = from;
    std::ifstream file(folder + "/workload.txt");
    std::string line;
    while (std::getline(file, line)) {
      std::istringstream in(line);
      std::string word;
      in >> word;
      if (word == "buffer") {
        addBuffer(in);
      } else if (word == "module") {
        std::string name;
        in >> name;
        std::ifstream code(folder + "/" + name, std::ios::binary);
        std::string text((std::istreambuf_iterator<char>(code)), std::istreambuf_iterator<char>());
        CUmodule module;
        CHECK(cuModuleLoadData(&module, text.c_str()));
        modules.push_back(module);
      } else if (word == "copy") {
        addCopy(in);
      } else if (word == "kernel") {
        addKernel(in);
      }
    }
    if (nodes.empty()) {
      std::fprintf(stderr, "%s: no nodes\n", folder.c_str());
      std::exit(1);
    }
  }

  void addBuffer(std::istream &in) {
    Buffer b;
    std::string place, contents;
    in >> place >> b.bytes >> contents;
    b.host = place == "host";
    size_t bytes = b.bytes ? b.bytes : 1;
    if (b.host) {
      CHECK(cuMemHostAlloc(&b.memory, bytes, 0));
      std::memset(b.memory, 0, bytes);
      if (contents != "-") {
        std::FILE *f = std::fopen((folder + "/" + contents).c_str(), "rb");
        if (!f || std::fread(b.memory, 1, b.bytes, f) != b.bytes) {
          std::fprintf(stderr, "%s: cannot be read\n", contents.c_str());
          std::exit(1);
        }
        std::fclose(f);
      }
    } else {
      CHECK(cuMemAlloc(&b.device, bytes));
      CHECK(cuMemsetD8(b.device, 0, bytes));
    }
    buffers.push_back(b);
  }

  void addCopy(std::istream &in) {
    std::string name, direction;
    size_t to, toOffset, from, fromOffset;
    Node n;
    in >> name >> direction >> to >> toOffset >> from >> fromOffset >> n.bytes;
    n.up = direction == "up";
    Buffer &dst = buffers[to], &src = buffers[from];
    dst.result = true;
    n.host = n.up ? address(src, fromOffset) : address(dst, toOffset);
    n.device = n.up ? dst.device + toOffset : src.device + fromOffset;
    nodes[name] = n;
  }

  void addKernel(std::istream &in) {
    std::string name, entry;
    size_t module, count;
    Node n;
    n.kernel = true;
    in >> name >> module >> entry;
    for (unsigned &v : n.grid) in >> v;
    for (unsigned &v : n.block) in >> v;
    in >> n.shared >> count;
    for (size_t i = 0; i < count; i++) {
      std::string kind;
      uint64_t a, b;
      in >> kind >> a;
      if (kind == "pointer") {
        in >> b;
        a = buffers[a].device + b;
      }
      n.values.push_back(a);
    }
    CHECK(cuModuleGetFunction(&n.function, modules[module], entry.c_str()));
    Node &kept = nodes[name] = n;
    for (uint64_t &v : kept.values) kept.params.push_back(&v);  // little-endian: a narrow value is its first bytes
  }

  // The operations that schedules are written with.

  CUstream stream(size_t k) {
    while (streams.size() <= k) {
      CUstream s;
      CHECK(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
      streams.push_back(s);
    }
    return streams[k];
  }
  void run(size_t k, const std::string &name) {
    auto it = nodes.find(name);
    if (it == nodes.end()) {
      std::fprintf(stderr, "no node %s\n", name.c_str());
      std::exit(1);
    }
    used[name]++;
    ops.push_back({Op::Run, stream(k), &it->second, nullptr});
  }
  CUevent record(size_t k) {
    CUevent e;
    CHECK(cuEventCreate(&e, CU_EVENT_DISABLE_TIMING));
    ops.push_back({Op::Record, stream(k), nullptr, e});
    return e;
  }
  void wait(size_t k, CUevent e) { ops.push_back({Op::Wait, stream(k), nullptr, e}); }
  void edge(size_t from, size_t to) { wait(to, record(from)); }

  void checkComplete() {
    for (auto &n : nodes)
      if (used[n.first] != 1) {
        std::fprintf(stderr, "node %s is run %d times\n", n.first.c_str(), used[n.first]);
        std::exit(1);
      }
  }

  void replay() {
    for (Op &op : ops) switch (op.kind) {
        case Op::Record:
          CHECK(cuEventRecord(op.event, op.stream));
          break;
        case Op::Wait:
          CHECK(cuStreamWaitEvent(op.stream, op.event, 0));
          break;
        case Op::Run: {
          Node &n = *op.node;
          if (!n.kernel && n.up)
            CHECK(cuMemcpyHtoDAsync(n.device, n.host, n.bytes, op.stream));
          else if (!n.kernel)
            CHECK(cuMemcpyDtoHAsync(n.host, n.device, n.bytes, op.stream));
          else
            CHECK(cuLaunchKernel(n.function, n.grid[0], n.grid[1], n.grid[2], n.block[0], n.block[1], n.block[2], n.shared, op.stream, n.params.data(), nullptr));
        }
      }
    CHECK(cuCtxSynchronize());
  }

  void dump() {
    for (size_t i = 0; i < buffers.size(); i++) {
      Buffer &b = buffers[i];
      if (!b.host || !b.result) continue;
      std::FILE *f = std::fopen((folder + "/result-" + std::to_string(i) + ".bin").c_str(), "wb");
      if (!f || std::fwrite(b.memory, 1, b.bytes, f) != b.bytes || std::fclose(f) != 0) {
        std::fprintf(stderr, "result %zu cannot be written\n", i);
        std::exit(1);
      }
    }
  }
};

// The schedules, as a programmer would write them.

// The names of a chunk's nodes end in the chunk's number.
static std::string numbered(const std::string &name, int c) { return name + "." + std::to_string(c); }

static void vec(Workload &w, int chunks) {
  for (int c = 0; c < chunks; c++) {
    int x = 2 * (c % 2), y = x + 1;  // two chunks at a time, two streams each
    w.run(x, numbered("up_x", c));
    w.run(x, numbered("square_x", c));
    w.run(y, numbered("up_y", c));
    w.run(y, numbered("square_y", c));
    w.edge(y, x);
    w.run(x, numbered("sum", c));
  }
  if (chunks > 1) {
    w.edge(2, 0);
    w.run(0, "sum_all");
  }
  w.run(0, "down");
}

// Ten streams take turns with the chunks of the ten portfolios.
static void bs(Workload &w, int chunks) {
  for (int i = 0; i < 10 * chunks; i++) {
    for (const char *name : {"up", "price", "down"}) w.run(i % 10, numbered(numbered(name, i / chunks), i % chunks));
  }
}

// Stream 2 uploads the rows, stream 0 computes ridge regression, stream 1 naive Bayes. With several chunks, stream 1 processes each chunk
// once it is uploaded; stream 0 sums its columns, and computes the rest when all chunks are there, while stream 3 downloads results.
static void ml(Workload &w, int chunks) {
  for (const char *name : {"up_ridge", "up_bayes", "up_intercept"}) w.run(2, name);
  for (int c = 0; c < chunks; c++) {
    w.run(2, numbered("up_x", c));
    CUevent up = w.record(2);
    w.wait(0, up);
    w.wait(1, up);
    if (chunks > 1) w.run(0, numbered("sums", c));
    for (const char *name : {"bayes_product", "bayes_max", "bayes_sum", "bayes_normalise", "bayes_softmax"}) w.run(1, numbered(name, c));
  }
  w.run(0, chunks > 1 ? "moments" : "standardise");
  CUevent bayes = w.record(1);
  for (int c = 0; c < chunks; c++) {
    for (const char *name : {"ridge_product", "ridge_intercept", "ridge_softmax"}) w.run(0, numbered(name, c));
    if (c == 0) w.wait(0, bayes);
    w.run(0, numbered("argmax", c));
    w.edge(0, 3);
    w.run(3, numbered("down", c));
  }
}

// Streams 0 and 1 run a chain each, stream 2 uploads their matrices. The first product of each chunk starts once the chunk is uploaded.
static void hits(Workload &w, int chunks) {
  w.run(2, "up_hub");
  w.run(2, "up_auth");
  for (int m : {1, 0})
    for (int c = 0; c < chunks; c++) {
      for (const char *name : {"up_start", "up_column", "up_value"}) w.run(2, numbered(numbered(name, m), c));
      w.edge(2, 1 - m);
      w.run(1 - m, numbered(m ? "auth_product.0" : "hub_product.0", c));
    }
  CUevent authReady = nullptr, hubReady = nullptr;
  for (int t = 0; t < 5; t++) {
    if (t > 0) {
      w.wait(0, hubReady);
      w.wait(1, authReady);
      w.run(0, numbered(numbered("auth_product", t), 0));
      w.run(1, numbered(numbered("hub_product", t), 0));
    }
    CUevent hubRead = w.record(0), authRead = w.record(1);
    w.run(0, numbered("auth_norm", t));
    w.run(1, numbered("hub_norm", t));
    w.wait(0, authRead);
    w.run(0, numbered("auth_division", t));
    authReady = w.record(0);
    w.wait(1, hubRead);
    w.run(1, numbered("hub_division", t));
    hubReady = w.record(1);
  }
  w.run(0, "down_auth");
  w.run(1, "down_hub");
}

// Stream 0 uploads the stripes; streams 1, 2 and 4 each compute a blur and what depends on it. A gradient also needs the next blurred
// stripe, a blur the next stripe of the picture. Stream 3 downloads the stripes of the result.
static void img(Workload &w, int chunks) {
  std::vector<CUevent> up;
  for (int c = 0; c < chunks; c++) {
    w.run(0, numbered("up", c));
    up.push_back(w.record(0));
  }
  for (int c = 0; c < chunks; c++) {
    for (int s : {1, 2, 4}) w.wait(s, up[c + 1 < chunks ? c + 1 : c]);
    w.run(1, numbered("blur_large", c));
    w.run(2, numbered("blur_unsharpen", c));
    w.run(2, numbered("unsharpen", c));
    w.run(4, numbered("blur_small", c));
    if (c > 0) {
      w.run(1, numbered("sobel_large", c - 1));
      w.run(4, numbered("sobel_small", c - 1));
    }
  }
  w.run(1, numbered("sobel_large", chunks - 1));
  w.run(4, numbered("sobel_small", chunks - 1));
  w.edge(1, 3);
  w.run(1, "max");
  w.run(3, "min");
  for (int s : {2, 3, 4}) w.edge(s, 1);
  for (int c = 0; c < chunks; c++) {
    for (const char *name : {"extend", "combine1", "combine2"}) w.run(1, numbered(name, c));
    w.edge(1, 3);
    w.run(3, numbered("down", c));
  }
}

// Stream 2 uploads everything, the weights of the dot product last; streams 0 and 1 run a branch each.
static void dl(Workload &w, int chunks) {
  for (int b = 0; b < 2; b++) {
    w.run(2, numbered("up_weights1", b));
    w.run(2, numbered("up_weights2", b));
    for (int c = 0; c < chunks; c++) {
      w.run(2, numbered(numbered("up_picture", b), c));
      w.edge(2, b);
      w.run(b, numbered(numbered("first", b), c));
      w.run(b, numbered(numbered("pool", b), c));
    }
    w.run(b, numbered("last", b));
  }
  w.run(2, "up_weights");
  w.edge(1, 0);
  w.run(0, "join");
  w.edge(2, 0);
  w.run(0, "dot");
  w.run(0, "down");
}

int main(int argc, char **argv) {
  std::map<std::string, void (*)(Workload &, int)> schedules = {{"vec", vec}, {"bs", bs}, {"ml", ml}, {"hits", hits}, {"img", img}, {"dl", dl}};
  int chunks = argc == 4 ? std::atoi(argv[3]) : 0;
  if (chunks < 1 || !schedules.count(argv[2])) {
    std::fprintf(stderr, "usage: suite FOLDER vec|bs|ml|hits|img|dl CHUNKS\n");
    return 2;
  }
  CUdevice device;
  CUcontext context;
  CHECK(cuInit(0));
  CHECK(cuDeviceGet(&device, 0));
  CHECK(cuDevicePrimaryCtxRetain(&context, device));
  CHECK(cuCtxSetCurrent(context));
  Workload w;
  w.read(argv[1]);
  schedules[argv[2]](w, chunks);
  w.checkComplete();
  w.replay();
  std::printf("ready\n");
  std::fflush(stdout);
  std::string command;
  while (std::getline(std::cin, command)) {
    if (command == "go") {
      auto began = std::chrono::steady_clock::now();
      w.replay();
      std::printf("%.3f\n", std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - began).count());
    } else if (command == "dump") {
      w.dump();
      std::printf("dumped\n");
    }
    std::fflush(stdout);
  }
  return 0;
}
