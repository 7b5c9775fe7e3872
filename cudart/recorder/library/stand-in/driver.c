// A driver of our own for the tests of the recorder: cuInit loads what CUDA_INJECTION64_PATH names, and calls are reported to a subscriber as CUPTI reports them. It
// computes nothing. It is libcuda.so.1 and libcupti.so at once.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

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

EXPORTED int cuLaunchKernel(handle function, uint32_t x, uint32_t y, uint32_t z, uint32_t bx, uint32_t by, uint32_t bz, uint32_t shared, handle stream, void **parameters, void **extra) {
    struct p_launch p = {function, {x, y, z}, {bx, by, bz}, shared, stream, parameters, extra};
    REPORT(cuLaunchKernel, &p, "_Z6doublePfi");
}

EXPORTED int cuMemAlloc_v2(address *pointer, size_t bytes) {
    struct p_alloc p = {pointer, bytes, 0};
    *pointer = 0x7f0000000000 + atomic_fetch_add(&made, bytes);
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
