// All-reduces between the GPUs of this machine, in a captured graph, with NCCL from C++: what pipelines with ranks are compared with.
//   g++ -O2 -o allreduce allreduce.cpp -I$CUDA/include -L$CUDA/lib64 -lcudart $NCCL/libnccl.so.2
//   ./allreduce RANKS ELEMENTS ITERATIONS      one process for each rank
// Rank 0 prints "ready" when the graph can be replayed, as `dagrun launch -v` does, and then how long a replay takes.
#include <cuda_runtime.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

// The functions of NCCL that are used, so that its header is not needed.
extern "C" {
struct ncclUniqueId { char internal[128]; };
typedef struct ncclComm *ncclComm_t;
int ncclGetUniqueId(ncclUniqueId *);
int ncclCommInitRank(ncclComm_t *, int, ncclUniqueId, int);
int ncclAllReduce(const void *, void *, size_t, int, int, ncclComm_t, cudaStream_t);
int ncclCommDestroy(ncclComm_t);
}

static const int f32 = 7, sum = 0;

static void check(int code, const char *what) {
    if (code != 0) {
        fprintf(stderr, "%s: %d\n", what, code);
        exit(1);
    }
}
#define CHECK(call) check(call, #call)

static double now() {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

static void rankMain(int rank, int ranks, size_t n, int iterations, const ncclUniqueId &id) {
    CHECK(cudaSetDevice(rank));
    float *x;
    CHECK(cudaMalloc((void **)&x, n * sizeof(float)));
    cudaStream_t stream;
    int least, greatest;
    CHECK(cudaDeviceGetStreamPriorityRange(&least, &greatest));
    CHECK(cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, greatest));
    ncclComm_t comm;
    CHECK(ncclCommInitRank(&comm, ranks, id, rank));
    CHECK(cudaMemsetAsync(x, 0, n * sizeof(float), stream));
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    CHECK(ncclAllReduce(x, x, n, f32, sum, comm, stream));
    CHECK(cudaStreamEndCapture(stream, &graph));
    CHECK(cudaGraphInstantiate(&exec, graph, 0));
    CHECK(cudaGraphUpload(exec, stream));
    CHECK(cudaStreamSynchronize(stream));
    if (rank == 0) {
        puts("ready");
        fflush(stdout);
    }
    for (int i = 0; i < 100; i++) CHECK(cudaGraphLaunch(exec, stream));
    CHECK(cudaStreamSynchronize(stream));
    double start = now();
    for (int i = 0; i < iterations; i++) CHECK(cudaGraphLaunch(exec, stream));
    CHECK(cudaStreamSynchronize(stream));
    double us = (now() - start) / iterations * 1e6;
    if (rank == 0) printf("each_us %.3f\n", us);
    CHECK(cudaGraphExecDestroy(exec));
    CHECK(cudaGraphDestroy(graph));
    CHECK(ncclCommDestroy(comm));
}

int main(int argc, char **argv) {
    if (argc != 4) {
        fprintf(stderr, "usage: %s RANKS ELEMENTS ITERATIONS\n", argv[0]);
        return 2;
    }
    int ranks = atoi(argv[1]), iterations = atoi(argv[3]);
    size_t n = strtoull(argv[2], nullptr, 10);
    // Processes are forked before CUDA starts. Rank 0 makes the id and writes it to the others.
    std::vector<int> pipes(2 * ranks);
    for (int r = 1; r < ranks; r++) CHECK(pipe(&pipes[2 * r]));
    std::vector<pid_t> children;
    for (int r = 1; r < ranks; r++) {
        pid_t child = fork();
        if (child == 0) {
            ncclUniqueId id;
            if (read(pipes[2 * r], &id, sizeof id) != sizeof id) return 1;
            rankMain(r, ranks, n, iterations, id);
            return 0;
        }
        children.push_back(child);
    }
    ncclUniqueId id;
    CHECK(ncclGetUniqueId(&id));
    for (int r = 1; r < ranks; r++)
        if (write(pipes[2 * r + 1], &id, sizeof id) != sizeof id) return 1;
    rankMain(0, ranks, n, iterations, id);
    int worst = 0;
    for (pid_t child : children) {
        int status;
        waitpid(child, &status, 0);
        if (status != 0) worst = 1;
    }
    return worst;
}
