// A driver of our own for the tests of the recorder: cuInit loads what CUDA_INJECTION64_PATH names, and calls are reported to a subscriber as CUPTI reports them. It
// computes nothing, and the device's memory is the host's. It is libcuda.so.1 and libcupti.so at once.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "../driver.h"

#define EXPORTED __attribute__((visibility("default")))

struct report {
    uint32_t site, pad;
    const char *function;
    const void *parameters;
    const int *result;
    const char *symbol;
    handle context;
};

static void (*subscriber)(void *, uint32_t, uint32_t, const void *);
static uint8_t enabled[API_COUNT];
static _Atomic uint64_t made = 0x1000;

EXPORTED int cuptiSubscribe(void **it, void (*callback)(void *, uint32_t, uint32_t, const void *), void *data) {
    (void)data;
    if (subscriber || getenv("STAND_IN_BUSY")) return 39;
    *it = &subscriber;
    subscriber = callback;
    return 0;
}

EXPORTED int cuptiEnableCallback(uint32_t on, void *it, uint32_t domain, uint32_t id) {
    (void)it;
    if (domain == 1 && id < API_COUNT) enabled[id] = (uint8_t)on;
    return 0;
}

static int reported(uint32_t id, const char *name, const void *parameters, const char *symbol) {
    int result = 0;
    struct report r = {0, 0, name, parameters, &result, symbol, 0xc0};
    if (subscriber && enabled[id]) subscriber(NULL, 1, id, &r);
    r.site = 1;
    if (subscriber && enabled[id]) subscriber(NULL, 1, id, &r);
    return result;
}

#define REPORT(name, parameters, symbol) return reported(API_##name, #name, parameters, symbol)

EXPORTED int cuInit(unsigned flags) {
    static atomic_int once;
    const char *path = getenv("CUDA_INJECTION64_PATH");
    if (atomic_fetch_add(&once, 1) || !path) return 0;
    (void)flags;
    void *library = dlopen(path, RTLD_NOW);
    int (*begin)(void) = library ? (int (*)(void))dlsym(library, "InitializeInjection") : NULL;
    return begin && begin() == 1 ? 0 : 999;
}

EXPORTED int cuDriverGetVersion(int *version) {
    *version = 13000;
    return 0;
}

// The one kernel has two parameters: a pointer and a number.
EXPORTED int cuFuncGetParamInfo(handle function, size_t index, size_t *offset, size_t *bytes) {
    (void)function;
    if (index > 1) return 1;
    *offset = 8 * index, *bytes = index ? 4 : 8;
    return 0;
}

// One capture at a time: its launches, each with the two parameters of the kernel.
struct captured {
    handle function;
    uint64_t pointer;
    int number;
    void *parameters[2];
    int type;
    size_t bytes; // of an allocation
};
struct graph {
    struct captured nodes[8];
    size_t count;
};
static handle capturing; // a stream
static struct graph *capture;

EXPORTED int cuLaunchKernel(handle function, uint32_t x, uint32_t y, uint32_t z, uint32_t bx, uint32_t by, uint32_t bz, uint32_t shared, handle stream, void **parameters, void **extra) {
    if (capture && stream == capturing) {
        struct captured *node = &capture->nodes[capture->count++];
        *node = (struct captured){.function = function, .pointer = *(uint64_t *)parameters[0], .number = *(int *)parameters[1]};
        node->parameters[0] = &node->pointer, node->parameters[1] = &node->number;
    }
    struct p_launch p = {function, {x, y, z}, {bx, by, bz}, shared, stream, parameters, extra};
    REPORT(cuLaunchKernel, &p, "_Z6doublePfi");
}

EXPORTED int cuMemAlloc_v2(address *pointer, size_t bytes) {
    struct p_alloc p = {pointer, bytes, 0};
    *pointer = (address)calloc(bytes, 1);
    REPORT(cuMemAlloc_v2, &p, NULL);
}

EXPORTED int cuStreamCreate(handle *stream, unsigned flags) {
    struct p_stream_create p = {stream, flags, 0};
    *stream = atomic_fetch_add(&made, 16);
    REPORT(cuStreamCreate, &p, NULL);
}

EXPORTED int cuEventCreate(handle *event, unsigned flags) {
    struct p_event_create p = {event, flags};
    *event = atomic_fetch_add(&made, 16);
    REPORT(cuEventCreate, &p, NULL);
}

EXPORTED int cuEventRecord(handle event, handle stream) {
    struct p_event_record p = {event, stream, 0};
    REPORT(cuEventRecord, &p, NULL);
}

EXPORTED int cuStreamWaitEvent(handle stream, handle event, unsigned flags) {
    struct p_wait p = {stream, event, flags};
    REPORT(cuStreamWaitEvent, &p, NULL);
}

EXPORTED int cuCtxSynchronize(void) { REPORT(cuCtxSynchronize, NULL, NULL); }

// An event is done when it is asked for the third time.
EXPORTED int cuEventQuery(handle event) {
    static int asked;
    (void)event;
    return ++asked % 3 ? 600 : 0;
}

EXPORTED int cuEventDestroy_v2(handle event) {
    struct p_one p = {event};
    REPORT(cuEventDestroy_v2, &p, NULL);
}

EXPORTED int cuStreamSynchronize(handle stream) {
    struct p_one p = {stream};
    REPORT(cuStreamSynchronize, &p, NULL);
}

EXPORTED int cuStreamDestroy_v2(handle stream) {
    struct p_one p = {stream};
    REPORT(cuStreamDestroy_v2, &p, NULL);
}

EXPORTED int cuMemcpyDtoHAsync_v2(void *to, address from, size_t bytes, handle stream) {
    struct p_copy p = {(address)to, from, bytes, stream};
    memcpy(to, (const void *)from, bytes);
    REPORT(cuMemcpyDtoHAsync_v2, &p, NULL);
}

EXPORTED int cuModuleLoadData(handle *module, const void *image) {
    struct p_load p = {module, image};
    *module = atomic_fetch_add(&made, 16);
    REPORT(cuModuleLoadData, &p, NULL);
}

EXPORTED int cuLibraryLoadData(handle *library, const void *image) {
    struct p_load p = {library, image};
    *library = atomic_fetch_add(&made, 16);
    REPORT(cuLibraryLoadData, &p, NULL);
}

// Two GPUs, of compute capabilities 9.0 and 12.0.
EXPORTED int cuDeviceGetCount(int *count) {
    *count = 2;
    return 0;
}

// A kernel is a library's handle and 1, its function another 1 more.
EXPORTED int cuKernelGetFunction(handle *function, handle kernel) {
    struct p_load p = {function, (const void *)kernel};
    if (kernel % 16 != 1) return 1;
    *function = kernel + 1;
    REPORT(cuKernelGetFunction, &p, NULL);
}

EXPORTED int cuKernelGetLibrary(handle *library, handle kernel) {
    if (kernel % 16 != 1) return 1;
    *library = kernel - 1;
    return 0;
}

EXPORTED int cuCtxGetDevice(int *device) {
    *device = 0;
    return 0;
}

EXPORTED int cuDeviceGetAttribute(int *value, int attribute, int device) {
    *value = attribute != 75 ? 0 : device ? 12 : 9;
    return 0;
}

EXPORTED int cuStreamGetCaptureInfo_v2(handle stream, int *status, uint64_t *id, handle *graph, const handle **nodes, size_t *count) {
    static __thread handle last;
    *status = capture && stream == capturing, *id = 1, *graph = (handle)capture, *nodes = &last, *count = 0;
    if (*status && capture->count) last = (handle)&capture->nodes[capture->count - 1], *count = 1;
    return 0;
}

EXPORTED int cuStreamBeginCapture_v2(handle stream, int mode) {
    struct p_one p = {stream};
    (void)mode;
    capture = calloc(1, sizeof *capture), capturing = stream;
    REPORT(cuStreamBeginCapture_v2, &p, NULL);
}

EXPORTED int cuStreamEndCapture(handle stream, handle *graph) {
    struct p_capture_end p = {stream, graph};
    *graph = (handle)capture, capture = NULL;
    REPORT(cuStreamEndCapture, &p, NULL);
}

EXPORTED int cuGraphGetNodes(handle graph, handle *nodes, size_t *count) {
    struct graph *g = (struct graph *)graph;
    for (size_t k = 0; nodes && k < g->count; k++) nodes[k] = (handle)&g->nodes[k];
    *count = g->count;
    return 0;
}

// The nodes are a chain.
EXPORTED int cuGraphGetEdges(handle graph, handle *from, handle *to, size_t *count) {
    struct graph *g = (struct graph *)graph;
    for (size_t k = 0; from && k + 1 < g->count; k++) from[k] = (handle)&g->nodes[k], to[k] = (handle)&g->nodes[k + 1];
    *count = g->count ? g->count - 1 : 0;
    return 0;
}

EXPORTED int cuGraphNodeGetType(handle node, int *type) {
    *type = ((struct captured *)node)->type; // NODE_KERNEL is 0
    return 0;
}

EXPORTED int cuGraphKernelNodeGetParams_v2(handle node, struct kernel_node *k) {
    struct captured *c = (struct captured *)node;
    *k = (struct kernel_node){.function = c->function, .grid = {1, 1, 1}, .block = {32, 1, 1}, .parameters = c->parameters};
    return 0;
}

EXPORTED int cuGraphInstantiateWithFlags(handle *execution, handle graph, uint64_t flags) {
    struct p_instantiate p = {execution, graph};
    (void)flags;
    *execution = atomic_fetch_add(&made, 16);
    REPORT(cuGraphInstantiateWithFlags, &p, NULL);
}

EXPORTED int cuGraphLaunch(handle execution, handle stream) {
    struct p_graph_launch p = {execution, stream};
    REPORT(cuGraphLaunch, &p, NULL);
}

EXPORTED int cuMemHostAlloc(address *pointer, size_t bytes, unsigned flags) {
    struct p_alloc p = {pointer, bytes, flags};
    *pointer = (address)mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    REPORT(cuMemHostAlloc, &p, NULL);
}

// Frees nothing: the memory can be touched as before.
EXPORTED int cuMemFreeHost(address pointer) {
    struct p_one p = {pointer};
    REPORT(cuMemFreeHost, &p, NULL);
}

EXPORTED int cuMemHostRegister_v2(address pointer, size_t bytes, unsigned flags) {
    struct p_register p = {pointer, bytes, flags};
    REPORT(cuMemHostRegister_v2, &p, NULL);
}

// Reads the source within the call, as the driver may.
EXPORTED int cuMemcpyHtoDAsync_v2(address to, address from, size_t bytes, handle stream) {
    struct p_copy p = {to, from, bytes, stream};
    struct report r = {0, 0, "cuMemcpyHtoDAsync_v2", &p, NULL, NULL, 0xc0};
    if (subscriber && enabled[API_cuMemcpyHtoDAsync_v2]) subscriber(NULL, 1, API_cuMemcpyHtoDAsync_v2, &r);
    memcpy((void *)to, (const void *)from, bytes);
    r.site = 1;
    if (subscriber && enabled[API_cuMemcpyHtoDAsync_v2]) subscriber(NULL, 1, API_cuMemcpyHtoDAsync_v2, &r);
    return 0;
}

// Runs the function on a thread of its own, and waits for it.
static void *run(void *what) {
    ((void (*)(void *))((handle *)what)[0])((void *)((handle *)what)[1]);
    return NULL;
}

EXPORTED int cuLaunchHostFunc(handle stream, handle function, handle data) {
    struct p_host_function p = {stream, function, data};
    handle what[2] = {function, data};
    pthread_t thread;
    int result = reported(API_cuLaunchHostFunc, "cuLaunchHostFunc", &p, NULL);
    pthread_create(&thread, NULL, run, what), pthread_join(thread, NULL);
    return result;
}

EXPORTED int cuLaunchKernelEx(const struct launch_config *config, handle function, void **parameters, void **extra) {
    struct p_launch_ex p = {config, function, parameters, extra};
    REPORT(cuLaunchKernelEx, &p, "_Z6doublePfi");
}

EXPORTED int cuDeviceGetMemPool(handle *pool, int device) {
    *pool = 0xb00 + device;
    return 0;
}

EXPORTED int cuMemPoolCreate(handle *pool, const void *properties) {
    struct p_load p = {pool, properties};
    *pool = atomic_fetch_add(&made, 16);
    REPORT(cuMemPoolCreate, &p, NULL);
}

EXPORTED int cuMemPoolSetAttribute(handle pool, int attribute, void *value) {
    struct p_pool_attribute p = {pool, attribute, 0, value};
    REPORT(cuMemPoolSetAttribute, &p, NULL);
}

EXPORTED int cuMemPoolDestroy(handle pool) {
    struct p_one p = {pool};
    REPORT(cuMemPoolDestroy, &p, NULL);
}

EXPORTED int cuMemAllocAsync(address *pointer, size_t bytes, handle stream) {
    struct p_alloc_async p = {pointer, bytes, stream};
    *pointer = (address)calloc(bytes, 1);
    if (capture && stream == capturing) capture->nodes[capture->count++] = (struct captured){.type = NODE_ALLOC, .pointer = *pointer, .bytes = bytes};
    REPORT(cuMemAllocAsync, &p, NULL);
}

EXPORTED int cuGraphMemAllocNodeGetParams(handle node, struct alloc_node *a) {
    struct captured *c = (struct captured *)node;
    *a = (struct alloc_node){.bytes = c->bytes, .pointer = c->pointer};
    return 0;
}

// Makes conditional nodes only, with bodies of no nodes.
EXPORTED int cuGraphAddNode_v2(handle *node, handle graph, const handle *before, const struct edge_data *data, size_t count, struct node_parameters *parameters) {
    struct p_add_node p = {.node = node, .graph = graph, .before = before, .v2 = {data, count, parameters}};
    struct graph *g = (struct graph *)graph;
    handle *bodies = calloc(parameters->count, sizeof *bodies);
    for (uint32_t k = 0; k < parameters->count; k++) bodies[k] = (handle)calloc(1, sizeof *g);
    parameters->bodies = bodies;
    g->nodes[g->count] = (struct captured){.type = NODE_CONDITIONAL};
    *node = (handle)&g->nodes[g->count++];
    REPORT(cuGraphAddNode_v2, &p, NULL);
}

EXPORTED int cuDevicePrimaryCtxRetain(handle *context, int device) {
    struct p_retain p = {context, device};
    *context = 0xc0;
    REPORT(cuDevicePrimaryCtxRetain, &p, NULL);
}

EXPORTED int cuDevicePrimaryCtxReset_v2(int device) {
    struct p_device p = {device};
    REPORT(cuDevicePrimaryCtxReset_v2, &p, NULL);
}

EXPORTED int cuGetExportTable(const void **table, const unsigned char *id) {
    struct p_export_table p = {table, id};
    *table = NULL;
    REPORT(cuGetExportTable, &p, NULL);
}
