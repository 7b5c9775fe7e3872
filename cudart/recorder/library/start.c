// Where the driver starts the recorder: CUDA_INJECTION64_PATH names this library, and cuInit calls InitializeInjection. What to record comes in the
// environment, from `dagrun record`.
//
//   DAGRUN_RECORD            folder for the file of this process
//   DAGRUN_RECORD_LIMIT      bytes that the file may have
//   DAGRUN_RECORD_CONTENTS   set: keep the memory that graphs reach
//   DAGRUN_RECORD_HOST       set: note what the host touches of pinned and managed memory
//   DAGRUN_RECORD_CUPTI      path of libcupti.so, for recording calls alone
//   DAGRUN_RECORD_SANITIZER  path of libsanitizer-public.so, for measuring accesses too
//   DAGRUN_RECORD_PATCHES    path of the compiled patch.cu
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "calls.h"
#include "contents.h"
#include "file.h"
#include "host.h"
#include "measure.h"
#include "place.h"

#define EXPORTED __attribute__((visibility("default")))

struct driver driver;

void driver_start(void) {
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
    if (!library) library = dlopen("libcuda.so.1", RTLD_NOW);
    if (!library) return;
    const struct {
        const char *name;
        void *at;
    } names[] = {
        {"cuFuncGetParamInfo", &driver.function_parameter}, {"cuKernelGetParamInfo", &driver.kernel_parameter}, {"cuFuncGetName", &driver.function_name},
        {"cuKernelGetName", &driver.kernel_name}, {"cuKernelGetFunction", &driver.kernel_function}, {"cuFuncGetModule", &driver.function_module}, {"cuDeviceGetMemPool", &driver.device_pool}, {"cuGraphMemAllocNodeGetParams", &driver.node_alloc},
        {"cuKernelGetLibrary", &driver.kernel_library}, {"cuCtxGetDevice", &driver.context_device}, {"cuDeviceGetCount", &driver.device_count}, {"cuDeviceGetAttribute", &driver.device_attribute},
        {"cuFuncGetAttribute", &driver.function_attribute}, {"cuStreamGetCaptureInfo_v2", &driver.capture_info}, {"cuStreamGetCaptureInfo_v3", &driver.capture_info3},
        {"cuStreamQuery", &driver.stream_query}, {"cuCtxSynchronize", &driver.context_wait},
        {"cuEventCreate", &driver.event_make}, {"cuEventRecord", &driver.event_record}, {"cuEventQuery", &driver.event_query}, {"cuEventDestroy_v2", &driver.event_drop},
        {"cuStreamCreate", &driver.stream_make}, {"cuStreamDestroy_v2", &driver.stream_drop}, {"cuStreamSynchronize", &driver.stream_wait},
        {"cuMemcpyDtoHAsync_v2", &driver.copy_to_host}, {"cuThreadExchangeStreamCaptureMode", &driver.exchange_mode},
        {"cuCtxPushCurrent_v2", &driver.push}, {"cuCtxPopCurrent_v2", &driver.pop},
        {"cuGraphGetNodes", &driver.graph_nodes}, {"cuGraphGetEdges", &driver.graph_edges}, {"cuGraphGetEdges_v2", &driver.graph_edges2}, {"cuGraphNodeGetType", &driver.node_type},
        {"cuGraphKernelNodeGetParams_v2", &driver.node_kernel}, {"cuGraphMemcpyNodeGetParams", &driver.node_copy}, {"cuGraphMemsetNodeGetParams", &driver.node_set},
        {"cuGraphHostNodeGetParams", &driver.node_host}, {"cuGraphChildGraphNodeGetGraph", &driver.node_graph}, {"cuGraphEventRecordNodeGetEvent", &driver.node_record},
        {"cuGraphEventWaitNodeGetEvent", &driver.node_wait}, {"cuGraphMemFreeNodeGetParams", &driver.node_free}, {"cuGraphKernelNodeGetAttribute", &driver.node_attribute},
        {"cuMemGetInfo_v2", &driver.memory_info}, {"cuDriverGetVersion", &driver.version},
    };
    for (size_t k = 0; k < sizeof names / sizeof *names; k++) {
        void *found = dlsym(library, names[k].name);
        memcpy(names[k].at, &found, sizeof found);
    }
}

// CUPTI, as facts.
struct cupti_data {
    uint32_t site, pad;
    const char *function;
    const void *parameters;
    const int *result;
    const char *symbol;
    handle context;
};

static void cupti_callback(void *nothing, uint32_t domain, uint32_t id, const void *data) {
    (void)nothing;
    const struct cupti_data *d = data;
    if (domain != 1 || calling || !calls_wanted(id)) return;
    if (d->site == 0) calls_enter(id, d->parameters);
    else calls_exit(id, d->parameters, d->result ? *d->result : 0, d->context, d->symbol, d->function);
}

// refused says why nothing can be recorded, on stderr and in the file, where `dagrun record` finds it.
static void refused(const char *what, int error) {
    char holder[256] = "";
    if (getenv("CUDA_INJECTION64_PATH_REPLACED")) snprintf(holder, sizeof holder, " (%s)", getenv("CUDA_INJECTION64_PATH_REPLACED"));
    fprintf(stderr, "dagrun: nothing is recorded in process %d: %s (error %d)%s\n", (int)getpid(), what, error, holder);
    file_note(NOTE_REFUSED, (uint64_t)error, "%s%s", what, holder);
}

static void cupti_start(const char *path) {
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        refused(dlerror(), 0);
        return;
    }
    int (*subscribe)(void **, void (*)(void *, uint32_t, uint32_t, const void *), void *) = (int (*)(void **, void (*)(void *, uint32_t, uint32_t, const void *), void *))dlsym(library, "cuptiSubscribe");
    int (*enable)(uint32_t, void *, uint32_t, uint32_t) = (int (*)(uint32_t, void *, uint32_t, uint32_t))dlsym(library, "cuptiEnableCallback");
    void *subscriber;
    if (!subscribe || !enable) {
        refused("this CUPTI has no callbacks", 0);
        return;
    }
    int wrong = subscribe(&subscriber, cupti_callback, NULL);
    if (wrong) {
        refused(wrong == 39 ? "another profiler uses CUPTI, which has one user at a time: run without it" : "CUPTI refuses to be used", wrong);
        return;
    }
    for (uint32_t id = 1; id < API_COUNT; id++)
        if (calls_wanted(id)) enable(1, subscriber, 1, id); // a call that this CUPTI does not know is refused
}

static void introduce(void) {
    static char tail[64 << 10];
    size_t n = 0;
    int descriptor = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
    ssize_t got = descriptor >= 0 ? read(descriptor, tail, 32 << 10) : 0;
    if (descriptor >= 0) close(descriptor);
    if (got > 0) n = (size_t)got;
    while (n > 0 && tail[n - 1] == 0) n--;
    tail[n++] = 0, tail[n++] = 0;
    int version = 0;
    if (driver.version) driver.version(&version);
    n += (size_t)snprintf(tail + n, 256, "driver=%d.%d", version / 1000, version % 1000 / 10) + 1;
    file_put(RECORD_PROCESS, NULL, 0, tail, n);
}

static void ended(void) {
    measure_end();
    file_ended();
}

// dagrun_tensor is called by sitecustomize.py when PyTorch's allocator gives out or takes back memory.
EXPORTED void dagrun_tensor(int action, uint64_t address) {
    uint64_t words[7] = {file_sequence(), (uint64_t)action, address, 0, 0, 0, place_of_call(0)};
    file_put(RECORD_TENSOR, words, 7, NULL, 0);
}

// dagrun_trace keeps the allocator's own trace of a device, which it tells at the end.
EXPORTED void dagrun_trace(int device, const char *text, uint64_t bytes) {
    uint64_t words[1] = {(uint64_t)device};
    file_put(RECORD_TENSOR_TRACE, words, 1, text, bytes);
}

// dagrun_fact keeps a line "key=value".
EXPORTED void dagrun_fact(const char *text) { file_note(NOTE_ALLOCATOR, 0, "%s", text); }

// dagrun_note keeps what the Python package found out about a graph, with the moment at which it says so.
EXPORTED void dagrun_note(const char *text, uint64_t bytes) {
    uint64_t words[2] = {NOTE_GRAPH, file_sequence()};
    file_put(RECORD_NOTE, words, 2, text, bytes);
}

EXPORTED int InitializeInjection(void) {
    static int started;
    const char *folder = getenv("DAGRUN_RECORD");
    if (started++ || !folder) return 1;
    const char *sanitizer = getenv("DAGRUN_RECORD_SANITIZER"), *cupti = getenv("DAGRUN_RECORD_CUPTI"), *limit = getenv("DAGRUN_RECORD_LIMIT");
    const char *contents = getenv("DAGRUN_RECORD_CONTENTS"), *host = getenv("DAGRUN_RECORD_HOST");
    int wrong = file_open(folder, (sanitizer ? MODE_MEASURED : 0) | (contents ? MODE_CONTENTS : 0) | (host ? MODE_HOST : 0), limit ? strtoull(limit, NULL, 10) : 1ull << 36);
    if (wrong) {
        fprintf(stderr, "dagrun: nothing is recorded in process %d: %s: %s\n", (int)getpid(), folder, strerror(wrong));
        return 1;
    }
    calling++;
    driver_start();
    introduce();
    place_start();
    contents_start();
    if (contents) contents_watch();
    if (host) host_watch();
    calling--;
    atexit(ended);
    if (sanitizer) {
        const char *patches = getenv("DAGRUN_RECORD_PATCHES");
        if (measure_start(sanitizer, patches ? patches : "")) refused("accesses cannot be measured", 0);
    } else if (cupti) {
        cupti_start(cupti);
    }
    return 1;
}
