// Calls of the driver become records. Everything is read when the call returns: its parameters are still there, and its results are.
#include "calls.h"

#include <stdatomic.h>
#include <string.h>

#include "contents.h"
#include "file.h"
#include "functions.h"
#include "graphs.h"
#include "host.h"
#include "memory.h"
#include "place.h"

__thread int calling;
__thread uint64_t measured;
__thread uint64_t call_began;
static __thread uint64_t began_at;
static __thread int submitted; // the current call gave work to the device
void (*calls_waited)(void);
void (*calls_stream_ends)(handle stream);
_Atomic int captures;

#define COMMON 6

// A record in the making.
struct call {
    uint64_t words[COMMON + 48];
    unsigned count;
    uint32_t api;
    int result;
};

static void put(struct call *c, uint64_t word) { c->words[c->count++] = word; }

static void write_call(struct call *c, uint16_t kind, const void *tail, size_t bytes) {
    if (kind == CALL_LAUNCH || kind == CALL_COPY || kind == CALL_SET || kind == CALL_GRAPH_LAUNCH || kind == CALL_MEMORY_WRITE) submitted = 1;
    file_put(kind, c->words, c->count, tail, bytes);
}

// captured_node returns the graph node that a call on a stream made, 0 if the stream is not being captured.
static uint64_t captured_node(handle stream) {
    if (atomic_load_explicit(&captures, memory_order_relaxed) == 0) return 0;
    int status = 0;
    uint64_t id;
    handle graph;
    const handle *nodes = NULL;
    const struct edge_data *edges;
    size_t count = 0;
    calling++;
    int wrong = 1;
    if (driver.capture_info3) wrong = driver.capture_info3(stream, &status, &id, &graph, &nodes, &edges, &count);
    if (wrong && driver.capture_info) wrong = driver.capture_info(stream, &status, &id, &graph, &nodes, &count);
    calling--;
    if (wrong || status != 1) return 0;
    return count > 0 && nodes ? nodes[count - 1] : 1; // a wait at the beginning of a capture leads to no node
}

// The default stream of functions that end in _ptsz or _ptds is that of the thread.
static handle stream_of(uint32_t api, handle stream);

static void target(struct call *c, handle stream) {
    stream = stream_of(c->api, stream);
    put(c, stream);
    put(c, c->result == 0 ? captured_node(stream) : 0);
}

// What a launch has besides its shape.
struct launch_more {
    uint64_t flags, cluster, event, event_flags;
};

static void launch(struct call *c, handle function, const uint32_t grid[3], const uint32_t block[3], uint32_t shared, handle stream, const struct launch_more *more,
                   void **parameters, void **extra, const char *symbol) {
    static __thread unsigned char bytes[1 << 16];
    function_known(function, symbol);
    target(c, stream);
    put(c, function);
    put(c, measured);
    for (int k = 0; k < 3; k++) put(c, grid[k]);
    for (int k = 0; k < 3; k++) put(c, block[k]);
    put(c, shared), put(c, more->flags), put(c, more->cluster), put(c, more->event), put(c, more->event_flags);
    write_call(c, CALL_LAUNCH, bytes, function_bytes(function, parameters, extra, bytes, sizeof bytes));
}

static void launch_ex(struct call *c, const struct p_launch_ex *p, const char *symbol) {
    struct launch_more more = {0};
    for (uint32_t k = 0; k < p->config->count; k++) {
        const struct launch_attribute *a = &p->config->attributes[k];
        switch (a->id) {
        case ATTRIBUTE_COOPERATIVE: more.flags |= a->value.cooperative ? LAUNCH_COOPERATIVE : 0; break;
        case ATTRIBUTE_CLUSTER: more.cluster = a->value.cluster[0] | (uint64_t)a->value.cluster[1] << 16 | (uint64_t)a->value.cluster[2] << 32; break;
        case ATTRIBUTE_PROGRAMMATIC: more.flags |= a->value.programmatic ? LAUNCH_PROGRAMMATIC : 0; break;
        case ATTRIBUTE_PROGRAMMATIC_EVENT:
        case ATTRIBUTE_COMPLETION_EVENT:
            more.flags |= LAUNCH_EVENT;
            more.event = a->value.event.event;
            more.event_flags = a->id == ATTRIBUTE_COMPLETION_EVENT ? EVENT_BEGUN : a->value.event.trigger ? EVENT_BLOCKS | EVENT_START : EVENT_BLOCKS;
            break;
        default: break;
        }
    }
    launch(c, p->function, p->config->grid, p->config->block, p->config->shared, p->config->stream, &more, p->parameters, p->extra, symbol);
}

static void copy(struct call *c, int sync, handle stream, const uint64_t words[13]) {
    target(c, stream);
    put(c, (uint64_t)sync);
    for (int k = 0; k < 13; k++) put(c, words[k]);
    write_call(c, CALL_COPY, NULL, 0);
}

static void copy_1d(struct call *c, int sync, handle stream, uint64_t to, uint64_t from, uint64_t bytes, uint64_t to_kind, uint64_t from_kind) {
    uint64_t words[13] = {to, from, bytes, 1, 1, bytes, bytes, bytes, bytes, to_kind, from_kind};
    copy(c, sync, stream, words);
}

static void copy_2d(struct call *c, int sync, handle stream, const struct copy_2d *d) {
    struct copy_3d e;
    uint64_t words[13];
    memset(&e, 0, sizeof e);
    e.source_x = d->source_x, e.source_y = d->source_y, e.source_kind = d->source_kind, e.source_host = d->source_host, e.source_device = d->source_device;
    e.source_array = d->source_array, e.source_pitch = d->source_pitch, e.destination_x = d->destination_x, e.destination_y = d->destination_y;
    e.destination_kind = d->destination_kind, e.destination_host = d->destination_host, e.destination_device = d->destination_device;
    e.destination_array = d->destination_array, e.destination_pitch = d->destination_pitch, e.width = d->width, e.height = d->height, e.depth = 1;
    copy_words(&e, 0, words);
    copy(c, sync, stream, words);
}

static void copy_3d(struct call *c, int sync, handle stream, const struct copy_3d *d, int peer) {
    uint64_t words[13];
    copy_words(d, peer, words);
    copy(c, sync, stream, words);
}

static void copy_batch(struct call *c, const struct p_copy_batch *p, handle stream) {
    struct call each;
    for (size_t k = 0; k < p->count; k++) {
        each = *c;
        copy_1d(&each, 0, stream, p->destinations[k], p->sources[k], p->sizes[k], MEMORY_UNIFIED, MEMORY_UNIFIED);
    }
}

static void set(struct call *c, int sync, handle stream, uint64_t to, uint64_t row, uint64_t rows, uint64_t pitch, uint64_t value, uint64_t element) {
    target(c, stream);
    put(c, (uint64_t)sync);
    put(c, to), put(c, row), put(c, rows), put(c, pitch), put(c, value), put(c, element);
    write_call(c, CALL_SET, NULL, 0);
}

// current_pool is where an allocation in stream order takes its memory if the program names no pool.
static handle current_pool(void) {
    handle pool = 0;
    int device;
    calling++;
    if (!driver.context_device || !driver.device_pool || driver.context_device(&device) || driver.device_pool(&pool, device)) pool = 0;
    calling--;
    return pool;
}

static void alloc(struct call *c, uint64_t at, uint64_t bytes, uint64_t kind, handle stream, handle pool, uint64_t flags) {
    put(c, at), put(c, bytes), put(c, kind);
    handle on = kind == ALLOC_ASYNC ? stream_of(c->api, stream) : 0;
    put(c, on), put(c, kind == ALLOC_ASYNC && !pool ? current_pool() : pool), put(c, flags);
    uint64_t node = kind == ALLOC_ASYNC && c->result == 0 ? captured_node(on) : 0;
    put(c, node);
    if (c->result == 0 && !node && kind != ALLOC_ARRAY) memory_put(at, bytes, (uint32_t)kind);
    if (c->result == 0 && (kind == ALLOC_PINNED || kind == ALLOC_MANAGED || kind == ALLOC_REGISTERED)) host_put(at, bytes, (uint32_t)kind, flags);
    write_call(c, CALL_ALLOC, NULL, 0);
}

static void release(struct call *c, uint64_t at, uint64_t bytes, uint64_t kind, handle stream) {
    put(c, at), put(c, kind);
    handle on = kind == ALLOC_ASYNC ? stream_of(c->api, stream) : 0;
    put(c, on);
    uint64_t node = kind == ALLOC_ASYNC && c->result == 0 ? captured_node(on) : 0;
    put(c, node);
    if (c->result == 0 && !node && kind != ALLOC_ARRAY) memory_drop(at, bytes);
    write_call(c, CALL_FREE, NULL, 0);
}

static void one(struct call *c, uint16_t kind, uint64_t word) {
    put(c, word);
    write_call(c, kind, NULL, 0);
}

static void two(struct call *c, uint16_t kind, uint64_t first, uint64_t second) {
    put(c, first), put(c, second);
    write_call(c, kind, NULL, 0);
}

// A captured record or wait becomes edges of the graph, and a node only if it is external.
static void event(struct call *c, uint16_t kind, handle stream, handle it, uint64_t flags) {
    stream = stream_of(c->api, stream);
    put(c, stream), put(c, c->result == 0 && flags & 1 ? captured_node(stream) : 0);
    put(c, it), put(c, flags);
    write_call(c, kind, NULL, 0);
}

static void memory_value(struct call *c, uint16_t kind, handle stream, address at, uint64_t value, uint64_t bytes, uint64_t flags) {
    target(c, stream);
    put(c, at), put(c, value), put(c, bytes), put(c, flags);
    write_call(c, kind, NULL, 0);
}

static void memory_batch(struct call *c, const struct p_memory_batch *p) {
    for (uint32_t k = 0; k < p->count; k++) {
        const struct memory_operation *o = &p->operations[k];
        struct call each = *c;
        switch (o->operation) {
        case 1: memory_value(&each, CALL_MEMORY_WAIT, p->stream, o->address, (uint32_t)o->value, 4, o->flags); break;
        case 4: memory_value(&each, CALL_MEMORY_WAIT, p->stream, o->address, o->value, 8, o->flags); break;
        case 2: memory_value(&each, CALL_MEMORY_WRITE, p->stream, o->address, (uint32_t)o->value, 4, o->flags); break;
        case 5: memory_value(&each, CALL_MEMORY_WRITE, p->stream, o->address, o->value, 8, o->flags); break;
        default: break; // flushes and barriers change no memory that the recorder knows of
        }
    }
}

static void instantiated(struct call *c, const struct p_instantiate *p) {
    handle execution = c->result == 0 && p->execution ? *p->execution : 0;
    if (execution) graph_write(c->words[1], p->graph, execution);
    contents_instantiated(execution);
    two(c, CALL_INSTANTIATE, execution, p->graph);
}

static void updated(struct call *c, handle execution, handle graph, handle node) {
    if (c->result == 0 && graph) {
        graph_write(c->words[1], graph, execution);
        contents_instantiated(execution);
    }
    put(c, execution), put(c, graph), put(c, node);
    write_call(c, CALL_UPDATE, NULL, 0);
}

static void tensor_map(struct call *c, const struct p_tensor_map *p) {
    static const uint8_t widths[16] = {1, 2, 4, 4, 8, 8, 2, 4, 8, 2, 4, 4, 4, 1, 1, 1};
    if (c->result) return;
    put(c, p->address), put(c, widths[p->type & 15]), put(c, p->rank);
    for (uint32_t k = 0; k < p->rank && k < 5; k++) put(c, p->dimensions[k]);
    for (uint32_t k = 0; k + 1 < p->rank && k < 4; k++) put(c, p->strides[k]);
    write_call(c, CALL_TENSOR_MAP, p->map, 128);
}

static void added(handle node, const struct node_parameters *p) {
    if (p && p->type == NODE_CONDITIONAL && p->bodies) graph_conditional(node, p->conditional, p->bodies, p->count);
}

// export_table says once of each table of undocumented functions that somebody asked for it, unless the CUDA runtime does so in every program: calls through
// such a table are not seen. It is information: libraries of NVIDIA's contain a runtime of their own, of which no version's list is known to be whole.
static void export_table(const unsigned char *id) {
    static const uint64_t runtime[] = {0x4ae7f45b6cfbd56bull, 0x742e742e8c7994a0ull, 0x47cbf623815ad842ull, 0x11df21116e3393c6ull, 0x9a9204108c0ba50cull, 0x4a027dd6f4cb5b19ull, 0x4b70e6bd552008d4ull};
    static _Atomic uint64_t others[64];
    uint64_t first;
    memcpy(&first, id, sizeof first);
    for (size_t k = 0; k < sizeof runtime / sizeof *runtime; k++)
        if (runtime[k] == first) return;
    for (size_t k = 0; k < sizeof others / sizeof *others; k++) {
        uint64_t none = 0;
        if (atomic_load(&others[k]) == first) return;
        if (!atomic_compare_exchange_strong(&others[k], &none, first)) continue;
        file_note(NOTE_TABLE, first, "cuGetExportTable: a library got a table of undocumented functions (%016llx); what it does with them is not recorded", (unsigned long long)__builtin_bswap64(first));
        return;
    }
}

// BOTH names a function and its form that uses the thread's default stream.
#define BOTH(name) case API_##name: case API_##name##_ptsz
#define SYNC(name) case API_##name: case API_##name##_ptds

static handle stream_of(uint32_t api, handle stream) {
    if (stream > 1) return stream;
    if (stream == 1) return 0;
    switch (api) {
    case API_cuStreamSynchronize_ptsz: case API_cuStreamQuery_ptsz: case API_cuStreamWaitEvent_ptsz: case API_cuEventRecord_ptsz: case API_cuEventRecordWithFlags_ptsz:
    case API_cuLaunchKernel_ptsz: case API_cuLaunchKernelEx_ptsz: case API_cuLaunchCooperativeKernel_ptsz: case API_cuLaunchHostFunc_ptsz: case API_cuStreamAddCallback_ptsz:
    case API_cuMemcpyHtoD_v2_ptds: case API_cuMemcpyHtoDAsync_v2_ptsz: case API_cuMemcpyDtoH_v2_ptds: case API_cuMemcpyDtoHAsync_v2_ptsz: case API_cuMemcpyDtoD_v2_ptds:
    case API_cuMemcpyDtoDAsync_v2_ptsz: case API_cuMemcpy_ptds: case API_cuMemcpyAsync_ptsz: case API_cuMemcpyDtoA_v2_ptds: case API_cuMemcpyAtoD_v2_ptds: case API_cuMemcpyHtoA_v2_ptds:
    case API_cuMemcpyAtoH_v2_ptds: case API_cuMemcpyAtoA_v2_ptds: case API_cuMemcpyHtoAAsync_v2_ptsz: case API_cuMemcpyAtoHAsync_v2_ptsz: case API_cuMemcpy2D_v2_ptds:
    case API_cuMemcpy2DUnaligned_v2_ptds: case API_cuMemcpy2DAsync_v2_ptsz: case API_cuMemcpy3D_v2_ptds: case API_cuMemcpy3DAsync_v2_ptsz: case API_cuMemcpyPeer_ptds:
    case API_cuMemcpyPeerAsync_ptsz: case API_cuMemcpy3DPeer_ptds: case API_cuMemcpy3DPeerAsync_ptsz: case API_cuMemcpyBatchAsync_ptsz: case API_cuMemcpyBatchAsync_v2_ptsz:
    case API_cuMemsetD8_v2_ptds: case API_cuMemsetD16_v2_ptds: case API_cuMemsetD32_v2_ptds: case API_cuMemsetD2D8_v2_ptds: case API_cuMemsetD2D16_v2_ptds: case API_cuMemsetD2D32_v2_ptds:
    case API_cuMemsetD8Async_ptsz: case API_cuMemsetD16Async_ptsz: case API_cuMemsetD32Async_ptsz: case API_cuMemsetD2D8Async_ptsz: case API_cuMemsetD2D16Async_ptsz:
    case API_cuMemsetD2D32Async_ptsz: case API_cuMemAllocAsync_ptsz: case API_cuMemAllocFromPoolAsync_ptsz: case API_cuMemFreeAsync_ptsz: case API_cuStreamBeginCapture_ptsz:
    case API_cuStreamBeginCapture_v2_ptsz: case API_cuStreamBeginCaptureToGraph_ptsz: case API_cuStreamEndCapture_ptsz: case API_cuGraphLaunch_ptsz: case API_cuMemPrefetchAsync_ptsz:
    case API_cuMemPrefetchAsync_v2_ptsz: case API_cuStreamWaitValue32_ptsz: case API_cuStreamWaitValue64_ptsz: case API_cuStreamWriteValue32_ptsz: case API_cuStreamWriteValue64_ptsz:
    case API_cuStreamWaitValue32_v2_ptsz: case API_cuStreamWaitValue64_v2_ptsz: case API_cuStreamWriteValue32_v2_ptsz: case API_cuStreamWriteValue64_v2_ptsz:
    case API_cuStreamBatchMemOp_ptsz: case API_cuStreamBatchMemOp_v2_ptsz: return 2;
    default: return 0;
    }
}

// waits tells whether a call waited for the device, so that what it measured can be read.
static int waits(uint16_t api) {
    switch (api) {
    case API_cuCtxSynchronize: case API_cuCtxSynchronize_v2: BOTH(cuStreamSynchronize): case API_cuEventSynchronize:
    SYNC(cuMemcpyDtoH_v2): SYNC(cuMemcpy): BOTH(cuMemcpyDtoHAsync_v2): case API_cuMemFree_v2: return 1;
    default: return 0;
    }
}

// decode writes the record of a call, and tells whether it knew the call.
static int decode(struct call *c, const void *parameters, const char *symbol) {
    const union {
        struct p_launch launch; struct p_launch_ex launch_ex; struct p_copy copy; struct p_copy_peer peer; struct p_copy_n n; struct p_copy_batch batch; struct p_copy_array array;
        struct p_set8 set8; struct p_set16 set16; struct p_set32 set32; struct p_set2d set2d; struct p_event_record record; struct p_wait wait; struct p_one one; struct p_two two;
        struct p_context_event context_event; struct p_stream_create stream; struct p_green_stream_create green; struct p_event_create event; struct p_alloc alloc; struct p_alloc_pitch pitch;
        struct p_register pin; struct p_alloc_async async; struct p_alloc_pool pool; struct p_free_async free; struct p_map map; struct p_unmap unmap; struct p_pool_attribute attribute;
        struct p_array made; struct p_host_function host; struct p_capture_end end; struct p_instantiate instantiate; struct p_graph_launch graph; struct p_memory_value value;
        struct p_memory_batch operations; struct p_prefetch prefetch; struct p_prefetch2 prefetch2; struct p_tensor_map tensor; struct p_context_create context; struct p_load load;
        struct p_add_node add; struct p_export_table table; struct p_retain retain; struct p_device device;
    } *p = parameters;
    int good = c->result == 0;
    switch (c->api) {
    BOTH(cuLaunchKernel): launch(c, p->launch.function, p->launch.grid, p->launch.block, p->launch.shared, p->launch.stream, &(struct launch_more){0}, p->launch.parameters, p->launch.extra, symbol); return 1;
    BOTH(cuLaunchCooperativeKernel):
        launch(c, p->launch.function, p->launch.grid, p->launch.block, p->launch.shared, p->launch.stream, &(struct launch_more){.flags = LAUNCH_COOPERATIVE}, p->launch.parameters, NULL, symbol); return 1;
    BOTH(cuLaunchKernelEx): launch_ex(c, &p->launch_ex, symbol); return 1;

    SYNC(cuMemcpyHtoD_v2): copy_1d(c, 1, 0, p->copy.destination, p->copy.source, p->copy.bytes, MEMORY_DEVICE, MEMORY_HOST); return 1;
    SYNC(cuMemcpyDtoH_v2): copy_1d(c, 1, 0, p->copy.destination, p->copy.source, p->copy.bytes, MEMORY_HOST, MEMORY_DEVICE); return 1;
    SYNC(cuMemcpyDtoD_v2): copy_1d(c, 1, 0, p->copy.destination, p->copy.source, p->copy.bytes, MEMORY_DEVICE, MEMORY_DEVICE); return 1;
    SYNC(cuMemcpy): copy_1d(c, 1, 0, p->copy.destination, p->copy.source, p->copy.bytes, MEMORY_UNIFIED, MEMORY_UNIFIED); return 1;
    BOTH(cuMemcpyHtoDAsync_v2): copy_1d(c, 0, p->copy.stream, p->copy.destination, p->copy.source, p->copy.bytes, MEMORY_DEVICE, MEMORY_HOST); return 1;
    BOTH(cuMemcpyDtoHAsync_v2): copy_1d(c, 0, p->copy.stream, p->copy.destination, p->copy.source, p->copy.bytes, MEMORY_HOST, MEMORY_DEVICE); return 1;
    BOTH(cuMemcpyDtoDAsync_v2): copy_1d(c, 0, p->copy.stream, p->copy.destination, p->copy.source, p->copy.bytes, MEMORY_DEVICE, MEMORY_DEVICE); return 1;
    BOTH(cuMemcpyAsync): copy_1d(c, 0, p->copy.stream, p->copy.destination, p->copy.source, p->copy.bytes, MEMORY_UNIFIED, MEMORY_UNIFIED); return 1;
    SYNC(cuMemcpyDtoA_v2): copy_1d(c, 1, 0, p->array.a, p->array.c, p->array.d, MEMORY_ARRAY, MEMORY_DEVICE); return 1;
    SYNC(cuMemcpyAtoD_v2): copy_1d(c, 1, 0, p->array.a, p->array.b, p->array.d, MEMORY_DEVICE, MEMORY_ARRAY); return 1;
    SYNC(cuMemcpyHtoA_v2): copy_1d(c, 1, 0, p->array.a, p->array.c, p->array.d, MEMORY_ARRAY, MEMORY_HOST); return 1;
    SYNC(cuMemcpyAtoH_v2): copy_1d(c, 1, 0, p->array.a, p->array.b, p->array.d, MEMORY_HOST, MEMORY_ARRAY); return 1;
    SYNC(cuMemcpyAtoA_v2): copy_1d(c, 1, 0, p->array.a, p->array.c, p->array.e, MEMORY_ARRAY, MEMORY_ARRAY); return 1;
    BOTH(cuMemcpyHtoAAsync_v2): copy_1d(c, 0, p->array.e, p->array.a, p->array.c, p->array.d, MEMORY_ARRAY, MEMORY_HOST); return 1;
    BOTH(cuMemcpyAtoHAsync_v2): copy_1d(c, 0, p->array.e, p->array.a, p->array.b, p->array.d, MEMORY_HOST, MEMORY_ARRAY); return 1;
    SYNC(cuMemcpy2D_v2): SYNC(cuMemcpy2DUnaligned_v2): copy_2d(c, 1, 0, p->n.copy); return 1;
    BOTH(cuMemcpy2DAsync_v2): copy_2d(c, 0, p->n.stream, p->n.copy); return 1;
    SYNC(cuMemcpy3D_v2): copy_3d(c, 1, 0, p->n.copy, 0); return 1;
    BOTH(cuMemcpy3DAsync_v2): copy_3d(c, 0, p->n.stream, p->n.copy, 0); return 1;
    SYNC(cuMemcpy3DPeer): copy_3d(c, 1, 0, p->n.copy, 1); return 1;
    BOTH(cuMemcpy3DPeerAsync): copy_3d(c, 0, p->n.stream, p->n.copy, 1); return 1;
    SYNC(cuMemcpyPeer): BOTH(cuMemcpyPeerAsync): {
        int sync = c->api == API_cuMemcpyPeer || c->api == API_cuMemcpyPeer_ptds;
        uint64_t n = p->peer.bytes;
        uint64_t words[13] = {p->peer.destination, p->peer.source, n, 1, 1, n, n, n, n, MEMORY_DEVICE, MEMORY_DEVICE, p->peer.destination_context, p->peer.source_context};
        copy(c, sync, sync ? 0 : p->peer.stream, words);
        return 1;
    }
    BOTH(cuMemcpyBatchAsync): copy_batch(c, &p->batch, p->batch.v1.stream); return 1;
    BOTH(cuMemcpyBatchAsync_v2): copy_batch(c, &p->batch, p->batch.stream_v2); return 1;

    SYNC(cuMemsetD8_v2): set(c, 1, 0, p->set8.destination, p->set8.count, 1, 0, p->set8.value, 1); return 1;
    SYNC(cuMemsetD16_v2): set(c, 1, 0, p->set16.destination, p->set16.count * 2, 1, 0, p->set16.value, 2); return 1;
    SYNC(cuMemsetD32_v2): set(c, 1, 0, p->set32.destination, p->set32.count * 4, 1, 0, p->set32.value, 4); return 1;
    BOTH(cuMemsetD8Async): set(c, 0, p->set8.stream, p->set8.destination, p->set8.count, 1, 0, p->set8.value, 1); return 1;
    BOTH(cuMemsetD16Async): set(c, 0, p->set16.stream, p->set16.destination, p->set16.count * 2, 1, 0, p->set16.value, 2); return 1;
    BOTH(cuMemsetD32Async): set(c, 0, p->set32.stream, p->set32.destination, p->set32.count * 4, 1, 0, p->set32.value, 4); return 1;
#define SET_2D(bytes, sync, on) set(c, sync, on, p->set2d.destination, p->set2d.width * (bytes), p->set2d.height, p->set2d.pitch, p->set2d.value, bytes); return 1
    SYNC(cuMemsetD2D8_v2): SET_2D(1, 1, 0);
    SYNC(cuMemsetD2D16_v2): SET_2D(2, 1, 0);
    SYNC(cuMemsetD2D32_v2): SET_2D(4, 1, 0);
    BOTH(cuMemsetD2D8Async): SET_2D(1, 0, p->set2d.stream);
    BOTH(cuMemsetD2D16Async): SET_2D(2, 0, p->set2d.stream);
    BOTH(cuMemsetD2D32Async): SET_2D(4, 0, p->set2d.stream);

    BOTH(cuEventRecord): event(c, CALL_RECORD, p->record.stream, p->record.event, 0); return 1;
    BOTH(cuEventRecordWithFlags): event(c, CALL_RECORD, p->record.stream, p->record.event, p->record.flags); return 1;
    BOTH(cuStreamWaitEvent): event(c, CALL_WAIT, p->wait.stream, p->wait.event, p->wait.flags); return 1;
    case API_cuEventSynchronize: one(c, CALL_EVENT_SYNC, p->one.it); return 1;
    case API_cuEventQuery: one(c, CALL_EVENT_QUERY, p->one.it); return 1;
    BOTH(cuStreamSynchronize): one(c, CALL_STREAM_SYNC, stream_of(c->api, p->one.it)); return 1;
    BOTH(cuStreamQuery): one(c, CALL_STREAM_QUERY, stream_of(c->api, p->one.it)); return 1;
    case API_cuCtxSynchronize: case API_cuCtxSynchronize_v2: write_call(c, CALL_CONTEXT_SYNC, NULL, 0); return 1;
    case API_cuEventCreate: two(c, CALL_EVENT_CREATE, good ? *p->event.event : 0, p->event.flags); return 1;
    case API_cuEventDestroy: case API_cuEventDestroy_v2: one(c, CALL_EVENT_DESTROY, p->one.it); return 1;
    case API_cuStreamCreate: case API_cuStreamCreateWithPriority: {
        int priority = c->api == API_cuStreamCreate ? 0 : p->stream.priority;
        put(c, good ? *p->stream.stream : 0), put(c, p->stream.flags), put(c, (uint64_t)(int64_t)priority);
        write_call(c, CALL_STREAM_CREATE, NULL, 0);
        return 1;
    }
    case API_cuGreenCtxStreamCreate:
        put(c, good ? *p->green.stream : 0), put(c, p->green.flags), put(c, (uint64_t)(int64_t)p->green.priority);
        write_call(c, CALL_STREAM_CREATE, NULL, 0);
        return 1;
    case API_cuStreamDestroy: case API_cuStreamDestroy_v2: one(c, CALL_STREAM_DESTROY, p->one.it); return 1;
    case API_cuCtxRecordEvent: case API_cuGreenCtxRecordEvent: case API_cuCtxWaitEvent: case API_cuGreenCtxWaitEvent:
        put(c, 0), put(c, p->context_event.event), put(c, c->api == API_cuCtxWaitEvent || c->api == API_cuGreenCtxWaitEvent), put(c, p->context_event.context);
        write_call(c, CALL_GREEN, NULL, 0);
        return 1;

    case API_cuMemAlloc_v2: alloc(c, good ? *p->alloc.pointer : 0, p->alloc.bytes, ALLOC_DEVICE, 0, 0, 0); return 1;
    case API_cuMemAllocPitch_v2: alloc(c, good ? *p->pitch.pointer : 0, good ? *p->pitch.pitch * p->pitch.height : 0, ALLOC_DEVICE, 0, 0, 0); return 1;
    case API_cuMemAllocManaged: alloc(c, good ? *p->alloc.pointer : 0, p->alloc.bytes, ALLOC_MANAGED, 0, 0, p->alloc.flags); return 1;
    case API_cuMemAllocHost_v2: alloc(c, good ? *p->alloc.pointer : 0, p->alloc.bytes, ALLOC_PINNED, 0, 0, 0); return 1;
    case API_cuMemHostAlloc: alloc(c, good ? *p->alloc.pointer : 0, p->alloc.bytes, ALLOC_PINNED, 0, 0, p->alloc.flags); return 1;
    case API_cuMemHostRegister: case API_cuMemHostRegister_v2: alloc(c, p->pin.pointer, p->pin.bytes, ALLOC_REGISTERED, 0, 0, p->pin.flags); return 1;
    case API_cuMemHostUnregister: release(c, p->one.it, 0, ALLOC_REGISTERED, 0); return 1;
    case API_cuMemFree_v2: release(c, p->one.it, 0, ALLOC_DEVICE, 0); return 1;
    case API_cuMemFreeHost: release(c, p->one.it, 0, ALLOC_PINNED, 0); return 1;
    BOTH(cuMemAllocAsync): alloc(c, good ? *p->async.pointer : 0, p->async.bytes, ALLOC_ASYNC, p->async.stream, 0, 0); return 1;
    BOTH(cuMemAllocFromPoolAsync): alloc(c, good ? *p->pool.pointer : 0, p->pool.bytes, ALLOC_ASYNC, p->pool.stream, p->pool.pool, 0); return 1;
    BOTH(cuMemFreeAsync): release(c, p->free.pointer, 0, ALLOC_ASYNC, p->free.stream); return 1;
    case API_cuMemMap: alloc(c, p->map.pointer, p->map.bytes, ALLOC_MAPPED, 0, p->map.it, p->map.offset); return 1;
    case API_cuMemUnmap: release(c, p->unmap.pointer, p->unmap.bytes, ALLOC_MAPPED, 0); return 1;
    case API_cuArrayCreate_v2: case API_cuArray3DCreate_v2: alloc(c, good ? *p->made.array : 0, 0, ALLOC_ARRAY, 0, 0, 0); return 1;
    case API_cuArrayDestroy: release(c, p->one.it, 0, ALLOC_ARRAY, 0); return 1;
    case API_cuMemPoolCreate: put(c, good ? *p->load.it : 0), two(c, CALL_POOL, 0, 1); return 1;
    case API_cuMemPoolDestroy: put(c, p->one.it), two(c, CALL_POOL, 0, 0); return 1;
    case API_cuMemPoolSetAttribute:
        put(c, p->attribute.pool), put(c, (uint64_t)p->attribute.attribute);
        put(c, !p->attribute.value ? 0 : p->attribute.attribute < 4 ? *(uint32_t *)p->attribute.value : *(uint64_t *)p->attribute.value);
        write_call(c, CALL_POOL, NULL, 0);
        return 1;

    BOTH(cuLaunchHostFunc): BOTH(cuStreamAddCallback):
        host_function();
        target(c, p->host.stream), put(c, p->host.function), put(c, p->host.data);
        write_call(c, CALL_HOST_FUNCTION, NULL, 0);
        return 1;
    BOTH(cuStreamWaitValue32): BOTH(cuStreamWaitValue32_v2): memory_value(c, CALL_MEMORY_WAIT, p->value.stream, p->value.address, p->value.v32.value, 4, p->value.v32.flags); return 1;
    BOTH(cuStreamWaitValue64): BOTH(cuStreamWaitValue64_v2): memory_value(c, CALL_MEMORY_WAIT, p->value.stream, p->value.address, p->value.v64.value, 8, p->value.v64.flags); return 1;
    BOTH(cuStreamWriteValue32): BOTH(cuStreamWriteValue32_v2): memory_value(c, CALL_MEMORY_WRITE, p->value.stream, p->value.address, p->value.v32.value, 4, p->value.v32.flags); return 1;
    BOTH(cuStreamWriteValue64): BOTH(cuStreamWriteValue64_v2): memory_value(c, CALL_MEMORY_WRITE, p->value.stream, p->value.address, p->value.v64.value, 8, p->value.v64.flags); return 1;
    BOTH(cuStreamBatchMemOp): BOTH(cuStreamBatchMemOp_v2): memory_batch(c, &p->operations); return 1;
    BOTH(cuMemPrefetchAsync): target(c, p->prefetch.stream), two(c, CALL_PREFETCH, p->prefetch.pointer, p->prefetch.bytes); return 1;
    BOTH(cuMemPrefetchAsync_v2): target(c, p->prefetch2.stream), two(c, CALL_PREFETCH, p->prefetch2.pointer, p->prefetch2.bytes); return 1;

    BOTH(cuStreamBeginCapture): BOTH(cuStreamBeginCapture_v2): BOTH(cuStreamBeginCaptureToGraph):
        if (good) atomic_fetch_add(&captures, 1);
        two(c, CALL_CAPTURE_BEGIN, stream_of(c->api, p->one.it), 0);
        return 1;
    BOTH(cuStreamEndCapture):
        atomic_fetch_sub(&captures, 1);
        if (good && p->end.graph && *p->end.graph) graph_write(c->words[1], *p->end.graph, 0);
        contents_instantiated(0);
        two(c, CALL_CAPTURE_END, stream_of(c->api, p->end.stream), good && p->end.graph ? *p->end.graph : 0);
        return 1;
    case API_cuGraphInstantiate: case API_cuGraphInstantiate_v2: case API_cuGraphInstantiateWithFlags: BOTH(cuGraphInstantiateWithParams): instantiated(c, &p->instantiate); return 1;
    BOTH(cuGraphLaunch): target(c, p->graph.stream), two(c, CALL_GRAPH_LAUNCH, p->graph.execution, measured); return 1;
    case API_cuGraphExecDestroy: one(c, CALL_EXEC_DESTROY, p->one.it); return 1;
    case API_cuGraphDestroy: one(c, CALL_GRAPH_DESTROY, p->one.it); return 1;
    case API_cuGraphExecUpdate: case API_cuGraphExecUpdate_v2: updated(c, p->two.first, p->two.second, 0); return 1;
    case API_cuGraphExecKernelNodeSetParams: case API_cuGraphExecKernelNodeSetParams_v2: case API_cuGraphExecMemcpyNodeSetParams: case API_cuGraphExecMemsetNodeSetParams:
    case API_cuGraphExecHostNodeSetParams: case API_cuGraphExecChildGraphNodeSetParams: case API_cuGraphExecEventRecordNodeSetEvent: case API_cuGraphExecEventWaitNodeSetEvent:
    case API_cuGraphNodeSetEnabled: case API_cuGraphExecNodeSetParams: updated(c, p->two.first, 0, p->two.second); return 1;

    case API_cuKernelGetFunction: if (good) function_of_kernel(*p->load.it, (handle)p->load.from); return 1;
    case API_cuModuleLoadData: case API_cuModuleLoadDataEx: case API_cuModuleLoadFatBinary: if (good) contents_of_module(c->words[0], *p->load.it, 0, p->load.from); return 1;
    case API_cuLibraryLoadData: if (good) contents_of_module(c->words[0], 0, *p->load.it, p->load.from); return 1;
    case API_cuModuleLoad: if (good) contents_of_file(c->words[0], *p->load.it, 0, p->load.from); return 1;
    case API_cuLibraryLoadFromFile: if (good) contents_of_file(c->words[0], 0, *p->load.it, p->load.from); return 1;
    case API_cuModuleUnload: case API_cuLibraryUnload: functions_forget(); one(c, CALL_UNLOAD, p->one.it); return 1;
    case API_cuTensorMapEncodeTiled: case API_cuTensorMapEncodeIm2col: tensor_map(c, &p->tensor); return 1;
    case API_cuCtxEnablePeerAccess: two(c, CALL_PEER, p->one.it, 1); return 1;
    case API_cuCtxDisablePeerAccess: two(c, CALL_PEER, p->one.it, 0); return 1;
    case API_cuCtxCreate_v2: case API_cuCtxCreate_v3: case API_cuCtxCreate_v4: put(c, good ? *p->context.context : 0), two(c, CALL_CONTEXT, 1, 0); return 1;
    case API_cuCtxDestroy: case API_cuCtxDestroy_v2: put(c, p->one.it), two(c, CALL_CONTEXT, 2, 0); return 1;
    case API_cuDevicePrimaryCtxReset: case API_cuDevicePrimaryCtxReset_v2: put(c, 0), two(c, CALL_CONTEXT, 3, (uint32_t)p->device.device); return 1;
    case API_cuDevicePrimaryCtxRetain: put(c, good ? *p->retain.context : 0), two(c, CALL_CONTEXT, 4, (uint32_t)p->retain.device); return 1;
    case API_cuDevicePrimaryCtxRelease: case API_cuDevicePrimaryCtxRelease_v2: put(c, 0), two(c, CALL_CONTEXT, 5, (uint32_t)p->device.device); return 1;
    case API_cuGraphAddNode: if (good) added(*p->add.node, p->add.v1.parameters); return 1;
    case API_cuGraphAddNode_v2: if (good) added(*p->add.node, p->add.v2.parameters); return 1;
    case API_cuGetExportTable: if (good) export_table(p->table.id); return 1;
    default: return 0;
    }
}

int calls_wanted(uint32_t api) {
    static const uint8_t wanted[API_COUNT] = {
#define WANTED(name, number) [number] = 1,
        CALLS(WANTED)
#undef WANTED
    };
    return api < API_COUNT && wanted[api];
}

// gives_back tells of memory that is about to be given back, while it is still there.
static void gives_back(uint32_t api, const void *parameters) {
    switch (api) {
    case API_cuMemFree_v2: case API_cuMemFreeHost: case API_cuMemHostUnregister: host_drop(((const struct p_one *)parameters)->it); return;
    case API_cuCtxDestroy: case API_cuCtxDestroy_v2: case API_cuDevicePrimaryCtxReset: case API_cuDevicePrimaryCtxReset_v2: host_drop_all(); return;
    default: return;
    }
}

void calls_enter(uint32_t api, const void *parameters) {
    if (calls_stream_ends && (api == API_cuStreamDestroy || api == API_cuStreamDestroy_v2)) calls_stream_ends(((const struct p_one *)parameters)->it);
    host_enter();
    gives_back(api, parameters);
    measured = 0;
    submitted = 0;
    call_began = file_sequence();
    if (api == API_cuGraphLaunch || api == API_cuGraphLaunch_ptsz) {
        const struct p_graph_launch *p = parameters;
        contents_before_launch(call_began, p->execution, stream_of(api, p->stream));
    }
    began_at = file_clock();
}

void calls_exit(uint32_t api, const void *parameters, int result, handle context, const char *symbol, const char *name) {
    struct call c = {.count = COMMON, .api = api, .result = result};
    c.words[0] = call_began, c.words[2] = began_at, c.words[3] = api | (uint64_t)(uint32_t)result << 32, c.words[4] = context, c.words[5] = place_of_call(api);
    c.words[1] = file_sequence();
    if (!decode(&c, parameters, symbol)) write_call(&c, CALL_UNCOVERED, name, name ? strlen(name) : 0);
    measured = 0;
    if (calls_waited && waits((uint16_t)api) && result == 0) calls_waited();
    host_exit(submitted);
}
