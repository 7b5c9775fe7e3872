// An all-reduce beside kernels, on two GPUs, from C++: how much of it can be hidden. A step has eight layers; a layer's kernel writes a gradient, which is
// summed over the ranks while the kernel of the next layer runs. Each is captured as a graph: the kernels alone, the all-reduces alone, both.
//   nvcc -O3 -arch=sm_90a -o beside beside.cu -lcuda -lcublas $NCCL/libnccl.so.2
//   ./beside WAYS KERNELS [ELEMENTS]     lists with commas; "none" for no kernels; prints what rank 0 measured
// Ways: nccl; direct:BLOCKS:THREADS (a kernel reads the other GPU's memory, adds, and writes to both); tma:BLOCKS:BYTES:STAGES (the same by bulk copies
// through shared memory); engine:CHUNKS:BLOCKS (copy engines move, a kernel of BLOCKS blocks adds). Kernels: many, wave and big compute only, in many small
// blocks, one wave of small ones, and one wave of blocks that take a multiprocessor each; map is bound by memory; sgemm and bgemm are cuBLAS's, f32 and bf16.
#include <cublas_v2.h>
#include <cuda.h>
#include <cuda_runtime.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

// The functions of NCCL that are used, so that its header is not needed.
extern "C" {
struct ncclUniqueId { char internal[128]; };
typedef struct ncclComm *ncclComm_t;
int ncclGetUniqueId(ncclUniqueId *);
int ncclCommInitRank(ncclComm_t *, int, ncclUniqueId, int);
int ncclAllReduce(const void *, void *, size_t, int, int, ncclComm_t, cudaStream_t);
}

#define CHECK(call)                                                              \
    do {                                                                         \
        int code_ = (int)(call);                                                 \
        if (code_ != 0) {                                                        \
            fprintf(stderr, "line %d: %s: %d\n", __LINE__, #call, code_);        \
            exit(1);                                                             \
        }                                                                        \
    } while (0)

static const int layers = 8;

// ---- kernels ----

__global__ void compute(float4 *g, size_t n, int iterations) {
    size_t stride = (size_t)gridDim.x * blockDim.x;
    for (size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += stride) {
        float4 v = make_float4(i * 1e-9f, 0.1f, 0.2f, 0.3f);
        for (int k = 0; k < iterations; k++) {
            v.x = fmaf(v.x, 0.999f, 0.001f);
            v.y = fmaf(v.y, 0.999f, 0.001f);
            v.z = fmaf(v.z, 0.999f, 0.001f);
            v.w = fmaf(v.w, 0.999f, 0.001f);
        }
        g[i] = v;
    }
}

__global__ void scale(float4 *to, const float4 *from, size_t n, float by) {
    size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float4 v = from[i];
    to[i] = make_float4(v.x * by, v.y * by, v.z * by, v.w * by);
}

__global__ void fill(float *x, size_t n, int rank) {
    size_t stride = (size_t)gridDim.x * blockDim.x;
    for (size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += stride) x[i] = (float)(i % 1000) * (rank + 1);
}

__global__ void verify(const float *x, size_t n, unsigned *wrong) {
    size_t stride = (size_t)gridDim.x * blockDim.x;
    for (size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += stride)
        if (x[i] != (float)(i % 1000) * 3) atomicAdd(wrong, 1u);
}

// ---- all-reduces of two ranks by kernels ----

__device__ void tell(unsigned *flag, unsigned value) { asm volatile("st.release.sys.global.u32 [%0], %1;" ::"l"(flag), "r"(value) : "memory"); }

__device__ void await(unsigned *flag, unsigned value) {
    unsigned now;
    do {
        asm volatile("ld.acquire.sys.global.u32 %0, [%1];" : "=r"(now) : "l"(flag) : "memory");
    } while ((int)(now - value) < 0);
}

__device__ float4 remote(const float4 *p) {
    float4 v;
    asm volatile("ld.volatile.global.v4.f32 {%0,%1,%2,%3}, [%4];" : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w) : "l"(p));
    return v;
}

__device__ float4 sum(float4 a, float4 b) { return make_float4(a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w); }

// Adds this rank's half of both ranks' memory, and writes it to both. Block b of a rank goes with block b of the other.
template <int U>
__global__ void direct(float4 *own, float4 *other, size_t n, unsigned *flags, unsigned *otherFlags, unsigned *rounds) {
    __shared__ unsigned round;
    if (threadIdx.x == 0) {
        round = rounds[blockIdx.x] + 2;
        rounds[blockIdx.x] = round;
        tell(otherFlags + blockIdx.x, round - 1);
        await(flags + blockIdx.x, round - 1);
    }
    __syncthreads();
    size_t tile = (size_t)blockDim.x * U;
    for (size_t base = blockIdx.x * tile; base < n; base += gridDim.x * tile) {
        float4 a[U], b[U];
#pragma unroll
        for (int u = 0; u < U; u++) {
            size_t i = base + (size_t)u * blockDim.x + threadIdx.x;
            if (i < n) b[u] = remote(other + i);
        }
#pragma unroll
        for (int u = 0; u < U; u++) {
            size_t i = base + (size_t)u * blockDim.x + threadIdx.x;
            if (i < n) a[u] = own[i];
        }
#pragma unroll
        for (int u = 0; u < U; u++) {
            size_t i = base + (size_t)u * blockDim.x + threadIdx.x;
            if (i < n) {
                float4 s = sum(a[u], b[u]);
                own[i] = s;
                other[i] = s;
            }
        }
    }
    __threadfence_system();
    __syncthreads();
    if (threadIdx.x == 0) {
        tell(otherFlags + blockIdx.x, round);
        await(flags + blockIdx.x, round);
    }
}

#ifndef NOTMA
__device__ unsigned shared(const void *p) { return (unsigned)__cvta_generic_to_shared(p); }

__device__ void bulkIn(void *to, const void *from, unsigned bytes, unsigned long long *barrier) {
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(shared(to)), "l"(from), "r"(bytes), "r"(shared(barrier))
                 : "memory");
}

__device__ void bulkOut(void *to, const void *from, unsigned bytes) {
    asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(to), "r"(shared(from)), "r"(bytes) : "memory");
}

// The same through shared memory: a stage holds `bytes` of both ranks. n is a multiple of a stage.
__global__ void bulk(char *own, char *other, size_t n, unsigned bytes, int stages, unsigned *flags, unsigned *otherFlags, unsigned *rounds) {
    extern __shared__ __align__(128) char memory[];
    __shared__ unsigned long long full[16];
    __shared__ unsigned round;
    long tiles = (long)(n / bytes), mine = tiles > (long)blockIdx.x ? (tiles - 1 - blockIdx.x) / gridDim.x + 1 : 0;
    auto stageOf = [&](long k) { return memory + (k % stages) * 2 * (size_t)bytes; };
    auto offset = [&](long k) { return ((size_t)k * gridDim.x + blockIdx.x) * bytes; };
    auto load = [&](long k) {
        unsigned long long *b = &full[k % stages];
        asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared(b)), "r"(2 * bytes) : "memory");
        bulkIn(stageOf(k) + bytes, other + offset(k), bytes, b);
        bulkIn(stageOf(k), own + offset(k), bytes, b);
    };
    if (threadIdx.x == 0) {
        for (int s = 0; s < stages; s++) asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(shared(&full[s])) : "memory");
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
        round = rounds[blockIdx.x] + 2;
        rounds[blockIdx.x] = round;
        tell(otherFlags + blockIdx.x, round - 1);
        await(flags + blockIdx.x, round - 1);
        asm volatile("fence.proxy.async;" ::: "memory");
        for (long k = 0; k < stages && k < mine; k++) load(k);
    }
    __syncthreads();
    for (long k = 0; k < mine; k++) {
        unsigned done = 0, parity = (unsigned)(k / stages) & 1, b = shared(&full[k % stages]);
        while (!done)
            asm volatile("{\n .reg .pred p;\n mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n selp.u32 %0, 1, 0, p;\n}" : "=r"(done) : "r"(b), "r"(parity) : "memory");
        float4 *a = (float4 *)stageOf(k), *c = (float4 *)(stageOf(k) + bytes);
        for (unsigned i = threadIdx.x; i < bytes / 16; i += blockDim.x) a[i] = sum(a[i], c[i]);
        asm volatile("fence.proxy.async;" ::: "memory");
        __syncthreads();
        if (threadIdx.x == 0) {
            bulkOut(other + offset(k), a, bytes);
            bulkOut(own + offset(k), a, bytes);
            asm volatile("cp.async.bulk.commit_group;" ::: "memory");
            if (k > 0 && k - 1 + stages < mine) {
                asm volatile("cp.async.bulk.wait_group.read 1;" ::: "memory");
                load(k - 1 + stages);
            }
        }
    }
    if (threadIdx.x == 0) {
        asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
        asm volatile("fence.proxy.async;" ::: "memory");
        __threadfence_system();
        tell(otherFlags + blockIdx.x, round);
        await(flags + blockIdx.x, round);
    }
}
#endif

__global__ void add(float4 *to, const float4 *from, size_t n) {
    size_t tile = (size_t)blockDim.x * 4;
    for (size_t base = blockIdx.x * tile; base < n; base += gridDim.x * tile) {
        float4 a[4], b[4];
#pragma unroll
        for (int u = 0; u < 4; u++) {
            size_t i = base + (size_t)u * blockDim.x + threadIdx.x;
            if (i < n) a[u] = to[i], b[u] = remote(from + i);
        }
#pragma unroll
        for (int u = 0; u < 4; u++) {
            size_t i = base + (size_t)u * blockDim.x + threadIdx.x;
            if (i < n) to[i] = sum(a[u], b[u]);
        }
    }
}

// ---- ranks ----

struct Shared {
    ncclUniqueId id;
    cudaIpcMemHandle_t gradients[2], scratch[2], flags[2];
    std::atomic<int> arrived, turn;
};
static Shared *common;

static void meet() {
    int turn = common->turn.load();
    if (common->arrived.fetch_add(1) == 1) {
        common->arrived = 0;
        common->turn.fetch_add(1);
        return;
    }
    auto began = std::chrono::steady_clock::now();
    while (common->turn.load() == turn)
        if (std::chrono::steady_clock::now() - began > std::chrono::seconds(20)) {
            fprintf(stderr, "the other rank does not come\n");
            exit(1);
        }
}

static double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count() * 1e6; }

static std::vector<std::string> split(const std::string &s, char by) {
    std::vector<std::string> list;
    size_t from = 0;
    for (size_t at; (at = s.find(by, from)) != std::string::npos; from = at + 1) list.push_back(s.substr(from, at - from));
    list.push_back(s.substr(from));
    return list;
}

struct Rank {
    int rank;
    size_t n; // elements of a gradient
    cudaStream_t work, comm, side[2];
    float *gradient, *otherGradient, *delta, *scratch, *otherScratch, *left, *right;
    unsigned *flags, *otherFlags, *rounds, *wrong;
    ncclComm_t nccl = nullptr;
    cublasHandle_t blas = nullptr;
    cudaEvent_t ready[layers], fork, ends[3], chunk[64];

    void open(size_t elements, bool withNCCL) {
        n = elements;
        CHECK(cudaSetDevice(rank));
        int least, greatest;
        CHECK(cudaDeviceGetStreamPriorityRange(&least, &greatest));
        CHECK(cudaStreamCreateWithPriority(&work, cudaStreamNonBlocking, least));
        CHECK(cudaStreamCreateWithPriority(&comm, cudaStreamNonBlocking, greatest));
        for (auto &s : side) CHECK(cudaStreamCreateWithPriority(&s, cudaStreamNonBlocking, greatest));
        for (auto &e : ready) CHECK(cudaEventCreateWithFlags(&e, cudaEventDisableTiming));
        for (auto &e : ends) CHECK(cudaEventCreateWithFlags(&e, cudaEventDisableTiming));
        for (auto &e : chunk) CHECK(cudaEventCreateWithFlags(&e, cudaEventDisableTiming));
        CHECK(cudaEventCreateWithFlags(&fork, cudaEventDisableTiming));
        CHECK(cudaMalloc((void **)&gradient, layers * n * 4));
        CHECK(cudaMalloc((void **)&delta, n * 4));
        CHECK(cudaMalloc((void **)&scratch, n * 4));
        CHECK(cudaMalloc((void **)&left, 256 << 20));
        CHECK(cudaMalloc((void **)&right, 256 << 20));
        CHECK(cudaMalloc((void **)&flags, 2 << 20));
        CHECK(cudaMalloc((void **)&rounds, 1 << 20));
        wrong = rounds + 4096;
        CHECK(cudaMemset(flags, 0, 2 << 20));
        CHECK(cudaMemset(rounds, 0, 1 << 20));
        CHECK(cudaMemset(left, 0, 256 << 20));
        CHECK(cudaMemset(right, 0, 256 << 20));
        CHECK(cudaMemset(delta, 0, n * 4));
        CHECK(cudaIpcGetMemHandle(&common->gradients[rank], gradient));
        CHECK(cudaIpcGetMemHandle(&common->scratch[rank], scratch));
        CHECK(cudaIpcGetMemHandle(&common->flags[rank], flags));
        CHECK(cudaDeviceSynchronize());
        meet();
        CHECK(cudaIpcOpenMemHandle((void **)&otherGradient, common->gradients[1 - rank], cudaIpcMemLazyEnablePeerAccess));
        CHECK(cudaIpcOpenMemHandle((void **)&otherScratch, common->scratch[1 - rank], cudaIpcMemLazyEnablePeerAccess));
        CHECK(cudaIpcOpenMemHandle((void **)&otherFlags, common->flags[1 - rank], cudaIpcMemLazyEnablePeerAccess));
        CHECK(cublasCreate(&blas));
        CHECK(cublasSetStream(blas, work));
        void *workspace;
        CHECK(cudaMalloc(&workspace, 32 << 20));
        CHECK(cublasSetWorkspace(blas, workspace, 32 << 20));
        if (withNCCL) CHECK(ncclCommInitRank(&nccl, 2, common->id, rank));
        meet();
    }

    // ---- the work of a layer ----
    void kernel(const std::string &kind, int size, int layer) {
        float *g = gradient + layer * n;
        size_t quads = n / 4;
        if (kind == "map") {
            for (int k = 0; k < size; k++) scale<<<(unsigned)((quads + 255) / 256), 256, 0, work>>>((float4 *)delta, (const float4 *)delta, quads, 0.999f);
            scale<<<(unsigned)((quads + 255) / 256), 256, 0, work>>>((float4 *)g, (const float4 *)delta, quads, 1.0f);
        } else if (kind == "sgemm") {
            float one = 1, zero = 0;
            CHECK(cublasSgemm(blas, CUBLAS_OP_N, CUBLAS_OP_N, 4096, 4096, size, &one, left, 4096, right, size, &zero, g, 4096));
        } else if (kind == "bgemm") {
            float one = 1, zero = 0;
            CHECK(cublasGemmEx(blas, CUBLAS_OP_N, CUBLAS_OP_N, 4096, 4096, size, &one, left, CUDA_R_16BF, 4096, right, CUDA_R_16BF, size, &zero, g, CUDA_R_32F, 4096,
                               CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT));
        } else if (kind == "big") {
            CHECK(cudaFuncSetAttribute(compute, cudaFuncAttributeMaxDynamicSharedMemorySize, 160 << 10));
            compute<<<132, 1024, 160 << 10, work>>>((float4 *)g, quads, size);
        } else if (kind == "wave") {
            compute<<<132 * 8, 256, 0, work>>>((float4 *)g, quads, size);
        } else {
            compute<<<(unsigned)((quads + 255) / 256), 256, 0, work>>>((float4 *)g, quads, size);
        }
        CHECK(cudaGetLastError());
    }

    int sizeFor(const std::string &kind, double wanted) { // microseconds of a layer
        int step = kind == "sgemm" || kind == "bgemm" ? 16 : 1;
        int size = kind == "map" ? 4 : kind == "sgemm" ? 384 : kind == "bgemm" ? 4096 : 400;
        for (int k = 0; k < 2; k++) {
            double t = measure([&] {
                for (int l = 0; l < layers; l++) kernel(kind, size, l);
            }, work) / layers;
            int next = (int)(size * wanted / t + step / 2.0) / step * step;
            size = std::max(step, std::min(next, kind == "sgemm" ? 16384 : kind == "bgemm" ? 32768 : 1 << 20));
        }
        return size;
    }

    // ---- all-reduces ----
    void reduce(const std::vector<std::string> &way, int layer) {
        float *own = gradient + layer * n, *other = otherGradient + layer * n;
        size_t half = n / 2;
        if (way[0] == "nccl") {
            CHECK(ncclAllReduce(own, own, n, 7, 0, nccl, comm));
        } else if (way[0] == "direct") {
            int blocks = atoi(way[1].c_str()), threads = atoi(way[2].c_str()), unroll = way.size() > 3 ? atoi(way[3].c_str()) : 4;
            float4 *a = (float4 *)(own + rank * half), *b = (float4 *)(other + rank * half);
            if (unroll == 8)
                direct<8><<<blocks, threads, 0, comm>>>(a, b, half / 4, flags, otherFlags, rounds);
            else
                direct<4><<<blocks, threads, 0, comm>>>(a, b, half / 4, flags, otherFlags, rounds);
#ifndef NOTMA
        } else if (way[0] == "tma") {
            int blocks = atoi(way[1].c_str()), bytes = atoi(way[2].c_str()), stages = atoi(way[3].c_str());
            CHECK(cudaFuncSetAttribute(bulk, cudaFuncAttributeMaxDynamicSharedMemorySize, 2 * bytes * stages));
            bulk<<<blocks, 256, 2 * bytes * stages, comm>>>((char *)(own + rank * half), (char *)(other + rank * half), half * 4, bytes, stages, flags, otherFlags, rounds);
#endif
        } else if (way[0] == "engine") {
            int chunks = atoi(way[1].c_str()), blocks = atoi(way[2].c_str());
            size_t part = half / chunks;
            unsigned *first = flags + 1024, *second = flags + 2048, *otherFirst = otherFlags + 1024, *otherSecond = otherFlags + 2048;
            float *mine = own + rank * half, *theirs = own + (1 - rank) * half, *target = other + rank * half;
            CHECK(cudaEventRecord(fork, comm));
            for (auto s : side) CHECK(cudaStreamWaitEvent(s, fork, 0));
            for (int c = 0; c < chunks; c++) {
                CHECK(cudaMemcpyAsync(otherScratch + c * part, theirs + c * part, part * 4, cudaMemcpyDeviceToDevice, side[0]));
                CHECK(cuStreamWriteValue32(side[0], (CUdeviceptr)(otherFirst + c), 1, 0));
            }
            for (int c = 0; c < chunks; c++) {
                CHECK(cuStreamWaitValue32(comm, (CUdeviceptr)(first + c), 1, CU_STREAM_WAIT_VALUE_EQ));
                CHECK(cuStreamWriteValue32(comm, (CUdeviceptr)(first + c), 0, 0));
                add<<<blocks, 512, 0, comm>>>((float4 *)(mine + c * part), (const float4 *)(scratch + c * part), part / 4);
                CHECK(cudaEventRecord(chunk[c], comm));
                CHECK(cudaStreamWaitEvent(side[1], chunk[c], 0));
                CHECK(cudaMemcpyAsync(target + c * part, mine + c * part, part * 4, cudaMemcpyDeviceToDevice, side[1]));
                CHECK(cuStreamWriteValue32(side[1], (CUdeviceptr)(otherSecond + c), 1, 0));
            }
            for (int c = 0; c < chunks; c++) {
                CHECK(cuStreamWaitValue32(comm, (CUdeviceptr)(second + c), 1, CU_STREAM_WAIT_VALUE_EQ));
                CHECK(cuStreamWriteValue32(comm, (CUdeviceptr)(second + c), 0, 0));
            }
            for (int k = 0; k < 2; k++) {
                CHECK(cudaEventRecord(ends[k], side[k]));
                CHECK(cudaStreamWaitEvent(comm, ends[k], 0));
            }
        } else {
            fprintf(stderr, "no way %s\n", way[0].c_str());
            exit(2);
        }
        CHECK(cudaGetLastError());
    }

    // measure captures something into a graph and returns the microseconds of a replay: the median of seven times five.
    double measure(const std::function<void()> &enqueue, cudaStream_t origin) {
        cudaGraph_t graph;
        cudaGraphExec_t exec;
        CHECK(cudaStreamBeginCapture(origin, cudaStreamCaptureModeThreadLocal));
        enqueue();
        CHECK(cudaStreamEndCapture(origin, &graph));
        CHECK(cudaGraphInstantiate(&exec, graph, cudaGraphInstantiateFlagUseNodePriority));
        std::vector<double> times;
        for (int k = 0; k < 8; k++) {
            meet();
            double began = now();
            for (int i = 0; i < 5; i++) CHECK(cudaGraphLaunch(exec, origin));
            CHECK(cudaStreamSynchronize(origin));
            if (k > 0) times.push_back((now() - began) / 5);
        }
        CHECK(cudaGraphExecDestroy(exec));
        CHECK(cudaGraphDestroy(graph));
        std::sort(times.begin(), times.end());
        // Both ranks go on with the same number.
        double *result = (double *)(common + 1);
        meet();
        if (rank == 0) *result = times[times.size() / 2];
        meet();
        return *result;
    }

    unsigned mistakes(const std::vector<std::string> &way) {
        fill<<<1024, 256, 0, comm>>>(gradient, layers * n, rank);
        CHECK(cudaMemsetAsync(wrong, 0, 4, comm));
        CHECK(cudaStreamSynchronize(comm));
        meet();
        for (int l = 0; l < layers; l++) reduce(way, l);
        verify<<<1024, 256, 0, comm>>>(gradient, layers * n, wrong);
        unsigned count = 0;
        CHECK(cudaMemcpyAsync(&count, wrong, 4, cudaMemcpyDeviceToHost, comm));
        CHECK(cudaStreamSynchronize(comm));
        meet();
        return count;
    }

    void run(const std::string &name, const std::vector<std::string> &kernels) {
        auto way = split(name, ':');
        unsigned wrong = mistakes(way);
        double alone = measure([&] {
            for (int l = 0; l < layers; l++) reduce(way, l);
        }, comm) / layers;
        if (rank == 0) printf("way %s elements %zu alone_us %.1f GB/s %.1f wrong %u\n", name.c_str(), n, alone, n * 4 / alone / 1e3, wrong), fflush(stdout);
        for (auto &kind : kernels) {
            if (kind == "none") continue;
            int size = sizeFor(kind, alone);
            double work_us = measure([&] {
                for (int l = 0; l < layers; l++) kernel(kind, size, l);
            }, work);
            double both = measure([&] {
                for (int l = 0; l < layers; l++) {
                    kernel(kind, size, l);
                    CHECK(cudaEventRecord(ready[l], work));
                    CHECK(cudaStreamWaitEvent(comm, ready[l], 0));
                    reduce(way, l);
                }
                CHECK(cudaEventRecord(ends[2], comm));
                CHECK(cudaStreamWaitEvent(work, ends[2], 0));
            }, work);
            // One all-reduce, the last, has no kernel beside it.
            double hidden = 1 - (both - work_us - alone) / (7 * alone);
            if (rank == 0)
                printf("  %-6s size %d kernels_us %.0f reduces_us %.0f both_us %.0f hidden %.1f%%\n", kind.c_str(), size, work_us, 8 * alone, both, 100 * hidden), fflush(stdout);
        }
    }
};

int main(int argc, char **argv) {
    if (argc < 3) {
        fprintf(stderr, "usage: %s WAYS KERNELS [ELEMENTS]\n", argv[0]);
        return 2;
    }
    auto ways = split(argv[1], ','), kernels = split(argv[2], ',');
    size_t n = argc > 3 ? strtoull(argv[3], nullptr, 10) : 16 << 20;
    bool withNCCL = std::find(ways.begin(), ways.end(), "nccl") != ways.end();
    common = (Shared *)mmap(nullptr, sizeof(Shared) + 64, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    memset((void *)common, 0, sizeof(Shared) + 64);
    pid_t child = fork(); // before CUDA starts
    Rank r;
    r.rank = child == 0 ? 1 : 0;
    if (r.rank == 0 && withNCCL) CHECK(ncclGetUniqueId(&common->id));
    meet();
    r.open(n, withNCCL);
    for (auto &way : ways) r.run(way, kernels);
    meet();
    if (r.rank == 1) return 0;
    int status = 0;
    waitpid(child, &status, 0);
    return status != 0;
}
