// On a GPU: runs .dagrun files by dagrun.h, writes what they compute, checks what binding promises, and compares dagrun_replay with cuGraphLaunch of the same
// executable graph. Needs no CUDA header; with cuda.h (-DWITH_CUDA_H) it shows that both can be included.
#ifdef WITH_CUDA_H
#include <cuda.h>
#endif
#define DAGRUN_IMPLEMENTATION
#include "dagrun.h"

#include <algorithm>
#include <chrono>
#include <string>
#include <vector>

#define EXPECT(what) \
    do { \
        if (!(what)) { \
            fprintf(stderr, "line %d: %s: the last error is: %s\n", __LINE__, #what, dagrun_error()); \
            exit(1); \
        } \
    } while (0)

// A function of the driver that dagrun.h does not use.
template <class F> static F function(const char *name) {
    void *at = dlsym(dlopen("libcuda.so.1", RTLD_NOW), name);
    EXPECT(at);
    F f;
    memcpy(&f, &at, sizeof f);
    return f;
}

static dagrun_buffer described(dagrun_graph *g, const char *name) {
    for (unsigned k = 0;; k++) {
        dagrun_buffer b;
        b.size = sizeof b;
        EXPECT(!dagrun_describe(g, k, &b));
        if (!strcmp(b.name, name)) return b;
    }
}

// results FILE FOLDER ...: replays each file once, and writes each result of the host to its FOLDER/NAME.bin.
static void results(const char *file, const std::string &folder) {
    dagrun_graph *g;
    dagrun_buffer b;
    EXPECT(!dagrun_load(&g, file, NULL) && !dagrun_replay(g, NULL) && !dagrun_wait(g, NULL));
    b.size = sizeof b;
    for (unsigned k = 0; !dagrun_describe(g, k, &b); k++) {
        if (!b.host || !b.result) continue;
        FILE *out = fopen((folder + "/" + b.name + ".bin").c_str(), "wb");
        EXPECT(out && fwrite(b.pointer, 1, b.bytes, out) == b.bytes && !fclose(out));
    }
    EXPECT(!dagrun_free(g));
}

static void expect_result(const float *out, uint64_t n, float scale) {
    for (uint64_t k = 0; k < n; k++) EXPECT(out[k] == 2.0f * (scale * (float)k / 2) + 1);
}

// binds FILE: saxpy, with memory of all kinds, with replays in flight while something is bound, in a capture, and in threads.
static void binds(const char *file) {
    dagrun_graph *g;
    EXPECT(!dagrun_load(&g, file, NULL));
    dagrun_buffer out = described(g, "out");
    uint64_t n = out.bytes / 4;
    std::vector<float> plain(n), result(n);
    for (uint64_t k = 0; k < n; k++) plain[k] = 3 * (float)k / 2;
    void *popped;
    EXPECT(!g->driver.cuCtxPushCurrent(g->context)); // for what this program does itself
    uint64_t device = 0, managed = 0;
    EXPECT(!g->driver.cuMemAlloc(&device, out.bytes));
    EXPECT(!function<int (*)(uint64_t *, size_t, unsigned)>("cuMemAllocManaged")(&managed, out.bytes, 1));
    CUstream_st *stream;
    EXPECT(!function<int (*)(CUstream_st **, unsigned)>("cuStreamCreate")(&stream, 1));
    auto to_host = function<int (*)(void *, uint64_t, size_t)>("cuMemcpyDtoH_v2");

    EXPECT(!dagrun_replay(g, stream) && !dagrun_wait(g, stream));
    expect_result((float *)out.pointer, n, 1);
    EXPECT(!dagrun_bind(g, "x", plain.data()) && !dagrun_replay(g, stream));                                // memory that is not pinned
    EXPECT(!dagrun_bind(g, "out", (void *)device) && !dagrun_replay(g, stream) && !dagrun_wait(g, stream)); // while a replay is in flight
    expect_result((float *)out.pointer, n, 3);
    EXPECT(!to_host(result.data(), device, out.bytes));
    expect_result(result.data(), n, 3);
    EXPECT(!dagrun_bind(g, "out", (void *)managed) && !dagrun_replay(g, stream) && !dagrun_wait(g, stream));
    expect_result((float *)managed, n, 3);
    EXPECT(!dagrun_bind(g, "d_y", (void *)device) && !dagrun_bind(g, "d_x", (void *)managed) && !dagrun_bind(g, "out", NULL));
    memset(out.pointer, 0, out.bytes);
    EXPECT(!dagrun_replay(g, stream) && !dagrun_wait(g, stream));
    expect_result((float *)out.pointer, n, 3);
    EXPECT(dagrun_bind(g, "d_x", plain.data()) == 1 && strstr(dagrun_error(), "kernels use buffer d_x"));

    // A replay in a capture is part of the graph that is captured.
    void *graph, *execution;
    memset(out.pointer, 0, out.bytes);
    EXPECT(!function<int (*)(CUstream_st *, int)>("cuStreamBeginCapture_v2")(stream, 0) && !dagrun_replay(g, stream));
    EXPECT(!function<int (*)(CUstream_st *, void **)>("cuStreamEndCapture")(stream, &graph));
    EXPECT(!g->driver.cuGraphInstantiateWithFlags(&execution, graph, 0) && !g->driver.cuGraphLaunch(execution, stream) && !dagrun_wait(g, stream));
    expect_result((float *)out.pointer, n, 3);
    EXPECT(!g->driver.cuGraphExecDestroy(execution) && !g->driver.cuGraphDestroy(graph));

    // Freeing waits for replays.
    std::vector<float> last(n);
    EXPECT(!dagrun_bind(g, "out", last.data()));
    for (int k = 0; k < 100; k++) EXPECT(!dagrun_replay(g, stream));
    EXPECT(!g->driver.cuCtxPopCurrent(&popped) && !dagrun_free(g));
    expect_result(last.data(), n, 3);
    printf("binding: ok\n");
}

static double seconds() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

// times FILE: microseconds of a replay, by dagrun_replay and by cuGraphLaunch, which take turns; the host's part of it, and until all have finished. A turn is of
// some 2 ms.
static void times(const char *file) {
    enum { ROUNDS = 200, MOST = 50 };
    dagrun_graph *g;
    void *popped;
    EXPECT(!dagrun_load(&g, file, NULL));
    EXPECT(!g->driver.cuCtxPushCurrent(g->context)); // as a program that uses CUDA has it
    CUstream_st *stream;
    EXPECT(!function<int (*)(CUstream_st **, unsigned)>("cuStreamCreate")(&stream, 1));
    EXPECT(!dagrun_replay(g, stream) && !dagrun_wait(g, stream));
    double began = seconds();
    EXPECT(!dagrun_replay(g, stream) && !dagrun_wait(g, stream));
    const int each = (int)std::min<double>(MOST, 1 + 2e-3 / (seconds() - began));
    std::vector<double> submitted[2], finished[2], ratios[2];
    for (int round = -20; round < ROUNDS; round++) {
        double took[2][2];
        for (int turn = 0; turn < 2; turn++) {
            int side = turn ^ (round & 1);
            double begin = seconds();
            for (int k = 0; k < each; k++) EXPECT(side ? !g->driver.cuGraphLaunch(g->execution, stream) : !dagrun_replay(g, stream));
            took[side][0] = seconds() - begin;
            EXPECT(!g->driver.cuStreamSynchronize(stream));
            took[side][1] = seconds() - begin;
        }
        if (round < 0) continue;
        for (int side = 0; side < 2; side++) submitted[side].push_back(took[side][0] * 1e6 / each), finished[side].push_back(took[side][1] * 1e6 / each);
        for (int what = 0; what < 2; what++) ratios[what].push_back(took[0][what] / took[1][what]);
    }
    auto part = [](std::vector<double> v, double at) {
        std::sort(v.begin(), v.end());
        return v[(size_t)(at * (double)(v.size() - 1))];
    };
    const char *names[] = {"submitted", "finished"};
    for (int what = 0; what < 2; what++) {
        auto &all = what ? finished : submitted;
        printf("%s: dagrun_replay %.3f us, cuGraphLaunch %.3f us, ratio %.4f (half of all rounds in %.4f to %.4f)\n", names[what], part(all[0], 0.5),
            part(all[1], 0.5), part(ratios[what], 0.5), part(ratios[what], 0.25), part(ratios[what], 0.75));
    }
    EXPECT(!g->driver.cuCtxPopCurrent(&popped) && !dagrun_free(g));
}

int main(int count, char **arguments) {
    std::string what = count > 2 ? arguments[1] : "";
    if (what == "results")
        for (int k = 2; k + 1 < count; k += 2) results(arguments[k], arguments[k + 1]);
    else if (what == "binds") binds(arguments[2]);
    else if (what == "times") times(arguments[2]);
    else return fprintf(stderr, "compare results FILE FOLDER ... | binds FILE | times FILE\n"), 2;
    return 0;
}
