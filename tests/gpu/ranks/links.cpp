// What the links between host memory and two GPUs give, from C++: pinned copies up, down and both ways, with one GPU and with two, for each place of the host's
// memory, and the copies of bs.yaml (16 pieces that go up and come down again). No program that copies through host memory is faster.
//   g++ -O2 -pthread -o links links.cpp -I$CUDA/include -L$CUDA/lib64 -lcudart
#include <cuda_runtime.h>
#include <ctype.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#define CHECK(call)                                                              \
    do {                                                                         \
        int code_ = (int)(call);                                                 \
        if (code_ != 0) {                                                        \
            fprintf(stderr, "line %d: %s: %d\n", __LINE__, #call, code_);        \
            exit(1);                                                             \
        }                                                                        \
    } while (0)

static const size_t size = 512 << 20;
static const int pieces = 16;

static double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

// place makes the calling thread's new memory come from one node (bind), from all in turn (interleave), or from where it runs (neither).
static long place(long mode, unsigned long nodes) { return syscall(SYS_set_mempolicy, mode, mode ? &nodes : nullptr, mode ? 64ul : 0ul); }

static double median(const std::function<void()> &run) {
    std::vector<double> times;
    for (int k = 0; k < 6; k++) {
        double began = now();
        run();
        if (k > 0) times.push_back(now() - began);
    }
    std::sort(times.begin(), times.end());
    return times[times.size() / 2];
}

struct GPU {
    int number;
    cudaStream_t up, down;
    cudaEvent_t there[pieces];
    char *in, *out;
};

static void measure(const char *where, std::vector<GPU> &gpus, const std::vector<std::vector<char *>> &host) {
    for (auto &set : {std::vector<int>{0}, std::vector<int>{1}, std::vector<int>{0, 1}}) {
        auto sync = [&] {
            for (int g : set) {
                CHECK(cudaSetDevice(g));
                CHECK(cudaDeviceSynchronize());
            }
        };
        auto copy = [&](int ways) {
            for (int g : set) {
                CHECK(cudaSetDevice(g));
                if (ways & 1) CHECK(cudaMemcpyAsync(gpus[g].in, host[g][0], size, cudaMemcpyHostToDevice, gpus[g].up));
                if (ways & 2) CHECK(cudaMemcpyAsync(host[g][1], gpus[g].out, size, cudaMemcpyDeviceToHost, gpus[g].down));
            }
            sync();
        };
        double up = median([&] { copy(1); }), down = median([&] { copy(2); }), both = median([&] { copy(3); });
        // The pieces of bs.yaml, spread over the GPUs: a piece comes down when it is there.
        double bs = median([&] {
            size_t part = size / pieces;
            for (int k = 0; k < pieces; k++) {
                GPU &g = gpus[set[k % set.size()]];
                char **memory = (char **)host[g.number].data();
                CHECK(cudaSetDevice(g.number));
                CHECK(cudaMemcpyAsync(g.in + k * part, memory[0] + k * part, part, cudaMemcpyHostToDevice, g.up));
                CHECK(cudaEventRecord(g.there[k], g.up));
                CHECK(cudaStreamWaitEvent(g.down, g.there[k], 0));
                CHECK(cudaMemcpyAsync(memory[1] + k * part, g.in + k * part, part, cudaMemcpyDeviceToHost, g.down));
            }
            sync();
        });
        double gb = size * set.size() / 1e9;
        printf("%-28s GPUs %zu (first %d): up %.1f down %.1f both ways %.1f GB/s; 16 pieces up and down %.0f us\n", where, set.size(), set[0], gb / up, gb / down, 2 * gb / both,
               bs * 1e6);
        fflush(stdout);
    }
}

// again prints what both GPUs copy both ways where it is the same few bytes again and again, which the host's caches hold: what the links give where
// memory does not limit them.
static void again(std::vector<GPU> &gpus, const std::vector<std::vector<char *>> &host) {
    for (size_t part : {(size_t)8 << 20, (size_t)32 << 20}) {
        double t = median([&] {
            for (size_t k = 0; k < size / part; k++)
                for (auto &g : gpus) {
                    CHECK(cudaSetDevice(g.number));
                    CHECK(cudaMemcpyAsync(g.in, host[g.number][0], part, cudaMemcpyHostToDevice, g.up));
                    CHECK(cudaMemcpyAsync(host[g.number][1], g.out, part, cudaMemcpyDeviceToHost, g.down));
                }
            for (auto &g : gpus) {
                CHECK(cudaSetDevice(g.number));
                CHECK(cudaDeviceSynchronize());
            }
        });
        printf("the same %zu MiB again and again: GPUs 2: both ways %.1f GB/s\n", part >> 20, 4 * size / t / 1e9);
    }
}

// memory prints what all cores together read from and copy within host memory.
static void memory(const char *where) {
    unsigned cores = std::thread::hardware_concurrency();
    size_t each = 128 << 20;
    std::vector<char *> from(cores), to(cores);
    for (unsigned k = 0; k < cores; k++) {
        from[k] = (char *)malloc(each), to[k] = (char *)malloc(each);
        memset(from[k], 1, each), memset(to[k], 1, each);
    }
    double t = median([&] {
        std::vector<std::thread> all;
        for (unsigned k = 0; k < cores; k++) all.emplace_back([&, k] { memcpy(to[k], from[k], each); });
        for (auto &one : all) one.join();
    });
    printf("%-28s %u cores copy %.1f GB/s (read and written: %.1f)\n", where, cores, each * cores / t / 1e9, 2 * each * cores / t / 1e9);
    for (unsigned k = 0; k < cores; k++) free(from[k]), free(to[k]);
}

int main() {
    std::vector<GPU> gpus(2);
    for (int g = 0; g < 2; g++) {
        gpus[g].number = g;
        CHECK(cudaSetDevice(g));
        CHECK(cudaStreamCreateWithFlags(&gpus[g].up, cudaStreamNonBlocking));
        CHECK(cudaStreamCreateWithFlags(&gpus[g].down, cudaStreamNonBlocking));
        for (auto &e : gpus[g].there) CHECK(cudaEventCreateWithFlags(&e, cudaEventDisableTiming));
        CHECK(cudaMalloc((void **)&gpus[g].in, size));
        CHECK(cudaMalloc((void **)&gpus[g].out, size));
        char bus[32], file[128], node[16] = "?";
        CHECK(cudaDeviceGetPCIBusId(bus, sizeof bus, g));
        for (char *c = bus; *c; c++) *c = tolower(*c);
        snprintf(file, sizeof file, "/sys/bus/pci/devices/%s/numa_node", bus);
        if (FILE *f = fopen(file, "r")) {
            if (fscanf(f, "%15s", node) != 1) node[0] = '?';
            fclose(f);
        }
        printf("GPU %d at %s, node %s\n", g, bus, node);
    }
    int nodes = 0;
    for (char file[64]; nodes < 8; nodes++) {
        snprintf(file, sizeof file, "/sys/devices/system/node/node%d", nodes);
        if (access(file, F_OK) != 0) break;
    }
    printf("%d nodes of memory\n", nodes);
    struct Place { std::string name; long mode; unsigned long node[2]; };
    std::vector<Place> places = {{"as it comes", 0, {0, 0}}};
    if (nodes > 1) {
        places.push_back({"GPU 0 node 0, GPU 1 node 1", 2, {1, 2}});
        places.push_back({"GPU 0 node 1, GPU 1 node 0", 2, {2, 1}});
        places.push_back({"both node 0", 2, {1, 1}});
        places.push_back({"both node 1", 2, {2, 2}});
        places.push_back({"interleaved", 3, {3, 3}});
    }
    for (auto &p : places) {
        std::vector<std::vector<char *>> host(2);
        bool placed = true;
        for (int g = 0; g < 2; g++) {
            placed = placed && place(p.mode, p.node[g]) == 0;
            CHECK(cudaSetDevice(g));
            for (int k = 0; k < 2; k++) {
                char *at;
                if (p.mode == 0) {
                    CHECK(cudaHostAlloc((void **)&at, size, cudaHostAllocPortable));
                } else {
                    at = (char *)aligned_alloc(2 << 20, size);
                    memset(at, 1, size);
                    CHECK(cudaHostRegister(at, size, cudaHostRegisterPortable));
                }
                host[g].push_back(at);
            }
        }
        place(0, 0);
        if (!placed) printf("%s: memory cannot be placed here\n", p.name.c_str());
        measure(p.name.c_str(), gpus, host);
        if (p.mode == 0) again(gpus, host);
        for (auto &pair : host)
            for (char *at : pair) {
                if (p.mode == 0) CHECK(cudaFreeHost(at));
                else {
                    CHECK(cudaHostUnregister(at));
                    free(at);
                }
            }
    }
    memory("all cores");
    return 0;
}
