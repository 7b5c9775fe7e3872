// dagrun.h: runs .dagrun files, which `dagrun export` writes, in C99 and C++11 programs on Linux. It needs no CUDA header and no library but the driver,
// which it opens when a file is loaded (CUDA 11.4 or newer). In one source file of your program:
//
//     #define DAGRUN_IMPLEMENTATION
//     #include "dagrun.h"
//
// and -ldl where the C library is older than glibc 2.34. Every call returns a CUresult, 0 for success; dagrun_error() says what was wrong. A .dagrun file is
// code: load only those that you would run as programs.
//
// A graph may be used by one thread at a time. Names that begin with dg_ belong to the implementation.
#ifndef DAGRUN_H
#define DAGRUN_H

#include <stddef.h>
#include <stdint.h>

#ifndef DAGRUN_API
#define DAGRUN_API
#endif
#ifdef __cplusplus
extern "C" {
#endif

struct CUctx_st;    // CUcontext points to one
struct CUstream_st; // CUstream and cudaStream_t do
#ifdef CUDA_VERSION
typedef CUresult dagrun_result;
#else
typedef int dagrun_result;
#endif

typedef struct dagrun_graph dagrun_graph;

// Where to load. Set size to sizeof(dagrun_options), and what you leave to zero.
typedef struct dagrun_options {
    size_t size;
    struct CUctx_st *context; // NULL: the context that is current or, if none is, the primary context of the device
    int device;
} dagrun_options;

// What a graph has in memory. Set size to sizeof(dagrun_buffer) before dagrun_describe.
typedef struct dagrun_buffer {
    size_t size;
    const char *name;
    const char *type; // of an element, such as f32
    const uint64_t *shape;
    unsigned dimensions;
    int host;   // memory of the host; otherwise of the device
    int given;  // a replay reads what it held before
    int result; // a replay leaves something in it that is not only for itself
    uint64_t bytes;
    void *pointer; // what was bound, or else memory of the graph, which is filled as the file says; NULL on the device, where buffers share it
} dagrun_buffer;

// Loads a file. options may be NULL. A primary context is retained until dagrun_free; any other must live until then.
DAGRUN_API dagrun_result dagrun_load(dagrun_graph **graph, const char *file, const dagrun_options *options);

// Makes later replays use memory of yours for a buffer, instead of the graph's own: device memory, managed memory, or memory of the host, which
// copies may be from and to, and kernels only if it is pinned. It must live until the last replay that uses it has finished. NULL undoes this.
DAGRUN_API dagrun_result dagrun_bind(dagrun_graph *graph, const char *buffer, void *pointer);

// Puts a replay into a stream of the graph's context (NULL: the legacy default stream). Replays of one graph never overlap. The first replay takes memory for
// buffers of the host that are not bound, so make one before a capture. A replay in a capture becomes a child graph of what is captured, which has to keep it
// apart from other replays.
DAGRUN_API dagrun_result dagrun_replay(dagrun_graph *graph, struct CUstream_st *stream);

// Waits until everything in a stream has finished, replays included.
DAGRUN_API dagrun_result dagrun_wait(dagrun_graph *graph, struct CUstream_st *stream);

// Tells of buffer 0, 1, ...; the result is 500 (CUDA_ERROR_NOT_FOUND) behind the last one. What it points to lives until dagrun_free.
DAGRUN_API dagrun_result dagrun_describe(dagrun_graph *graph, unsigned index, dagrun_buffer *buffer);

// Waits for all work of the context and frees everything. NULL is allowed.
DAGRUN_API dagrun_result dagrun_free(dagrun_graph *graph);

// What was wrong in the last call of this thread that failed.
DAGRUN_API const char *dagrun_error(void);

#ifdef __cplusplus
}
#endif
#endif

#if defined(DAGRUN_IMPLEMENTATION) && !defined(DAGRUN_IMPLEMENTED)
#define DAGRUN_IMPLEMENTED

#if !defined(__linux__) || __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "dagrun.h runs on Linux, on little-endian machines"
#endif

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

// Numbers of CUresult, CUgraphNodeType, CUmemorytype and of the file.
enum { DG_INVALID = 1, DG_MEMORY = 2, DG_IMAGE = 200, DG_NO_FILE = 301, DG_NO_DRIVER = 303, DG_NOT_FOUND = 500, DG_OLD_DRIVER = 803, DG_CAPTURE = 900 };
enum { DG_KERNEL = 0, DG_COPY = 1, DG_SET = 2, DG_EMPTY = 5 };
enum { DG_ON_HOST = 1, DG_ON_DEVICE = 2 };
enum { DG_MODULE = 6, DG_FUNCTION = 7, DG_GRAPH = 8, DG_CONTENTS = 13, DG_BUFFER = 14, DG_NODE = 15, DG_POINTER = 16, DG_USE = 17 };
enum { DG_SECTION = 48, DG_FRAME = 16, DG_KERNEL_WORDS = 10, DG_COPY_WORDS = 13, DG_SET_WORDS = 6 };
enum { DG_ALIGNMENT = 256, DG_VECTOR = 16 };

static __thread char dg_text[1024];

static int dg_fail(int code, const char *format, ...) __attribute__((format(printf, 2, 3)));
static int dg_fail(int code, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(dg_text, sizeof dg_text, format, arguments);
    va_end(arguments);
    return code;
}

// The driver: the functions by the names and versions of CUDA 11.4, whatever is newer.

struct dg_kernel_node { // CUDA_KERNEL_NODE_PARAMS_v1
    void *function;
    unsigned grid[3], block[3], shared;
    void **parameters, **extra;
};
struct dg_side {
    size_t x, y, z, level;
    unsigned kind;
    const void *host;
    uint64_t device;
    void *array, *reserved;
    size_t pitch, height;
};
struct dg_copy_node { // CUDA_MEMCPY3D
    struct dg_side from, to;
    size_t width, height, depth;
};
struct dg_set_node { // CUDA_MEMSET_NODE_PARAMS_v1
    uint64_t to;
    size_t pitch;
    unsigned value, element;
    size_t width, height;
};
union dg_attribute {
    unsigned char bytes[64];
    unsigned cluster[3];
    int number;
};

// Result, name, version, parameters, and whether it may be missing.
#define DG_DRIVER(X) \
    X(cuInit, 11040, (unsigned), 0) \
    X(cuGetErrorName, 11040, (int, const char **), 0) \
    X(cuGetErrorString, 11040, (int, const char **), 0) \
    X(cuDeviceGet, 11040, (int *, int), 0) \
    X(cuDevicePrimaryCtxRetain, 11040, (void **, int), 0) \
    X(cuDevicePrimaryCtxRelease, 11040, (int), 0) \
    X(cuCtxGetCurrent, 11040, (void **), 0) \
    X(cuCtxGetDevice, 11040, (int *), 0) \
    X(cuCtxPushCurrent, 11040, (void *), 0) \
    X(cuCtxPopCurrent, 11040, (void **), 0) \
    X(cuCtxSynchronize, 11040, (void), 0) \
    X(cuStreamSynchronize, 11040, (void *), 0) \
    X(cuStreamGetCaptureInfo, 11040, (void *, int *, uint64_t *, void **, void *const **, size_t *), 0) \
    X(cuStreamUpdateCaptureDependencies, 11040, (void *, void **, size_t, unsigned), 0) \
    X(cuCtxGetStreamPriorityRange, 11040, (int *, int *), 0) \
    X(cuModuleLoadData, 11040, (void **, const void *), 0) \
    X(cuModuleUnload, 11040, (void *), 0) \
    X(cuModuleGetFunction, 11040, (void **, void *, const char *), 0) \
    X(cuFuncGetParamInfo, 12040, (void *, size_t, size_t *, size_t *), 1) \
    X(cuFuncSetAttribute, 11040, (void *, int, int), 0) \
    X(cuMemAlloc, 11040, (uint64_t *, size_t), 0) \
    X(cuMemFree, 11040, (uint64_t), 0) \
    X(cuMemHostAlloc, 11040, (void **, size_t, unsigned), 0) \
    X(cuMemFreeHost, 11040, (void *), 0) \
    X(cuMemsetD8, 11040, (uint64_t, unsigned char, size_t), 0) \
    X(cuMemcpyHtoD, 11040, (uint64_t, const void *, size_t), 0) \
    X(cuPointerGetAttribute, 11040, (void *, int, uint64_t), 0) \
    X(cuGraphCreate, 11040, (void **, unsigned), 0) \
    X(cuGraphDestroy, 11040, (void *), 0) \
    X(cuGraphAddKernelNode, 11040, (void **, void *, void *const *, size_t, const struct dg_kernel_node *), 0) \
    X(cuGraphAddMemcpyNode, 11040, (void **, void *, void *const *, size_t, const struct dg_copy_node *, void *), 0) \
    X(cuGraphAddMemsetNode, 11040, (void **, void *, void *const *, size_t, const struct dg_set_node *, void *), 0) \
    X(cuGraphAddEmptyNode, 11040, (void **, void *, void *const *, size_t), 0) \
    X(cuGraphAddChildGraphNode, 11040, (void **, void *, void *const *, size_t, void *), 0) \
    X(cuGraphAddDependencies, 11040, (void *, void *const *, void *const *, size_t), 0) \
    X(cuGraphKernelNodeSetAttribute, 11040, (void *, int, const union dg_attribute *), 0) \
    X(cuGraphInstantiateWithFlags, 11040, (void **, void *, unsigned long long), 0) \
    X(cuGraphExecDestroy, 11040, (void *), 0) \
    X(cuGraphExecKernelNodeSetParams, 11040, (void *, void *, const struct dg_kernel_node *), 0) \
    X(cuGraphExecMemcpyNodeSetParams, 11040, (void *, void *, const struct dg_copy_node *, void *), 0) \
    X(cuGraphExecMemsetNodeSetParams, 11040, (void *, void *, const struct dg_set_node *, void *), 0) \
    X(cuGraphLaunch, 11040, (void *, void *), 0)

struct dg_driver {
#define DG_MEMBER(name, version, parameters, optional) int(*name) parameters;
    DG_DRIVER(DG_MEMBER)
#undef DG_MEMBER
};

static int dg_open_driver(struct dg_driver *d) {
    static const struct dg_call {
        const char *name;
        size_t at;
        int version, optional;
    } functions[] = {
#define DG_ROW(name, version, parameters, optional) {#name, offsetof(struct dg_driver, name), version, optional},
        DG_DRIVER(DG_ROW)
#undef DG_ROW
    };
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL), *found; // which is never unloaded
    int (*get)(const char *, void **, int, uint64_t);
    if (!library) return dg_fail(DG_NO_DRIVER, "there is no CUDA driver: %s", dlerror());
    found = dlsym(library, "cuGetProcAddress");
    if (!found) return dg_fail(DG_OLD_DRIVER, "the CUDA driver is older than CUDA 11.4");
    memcpy(&get, &found, sizeof get);
    for (size_t k = 0; k < sizeof functions / sizeof *functions; k++) {
        found = NULL;
        if ((get(functions[k].name, &found, functions[k].version, 0) || !found) && !functions[k].optional)
            return dg_fail(DG_OLD_DRIVER, "the CUDA driver has no %s: it is older than CUDA 11.4", functions[k].name);
        memcpy((char *)d + functions[k].at, &found, sizeof found);
    }
    return 0;
}

// The file in memory. Of what it says, everything that is used as an index, an offset or a size is checked first.

struct dg_record {
    const unsigned char *at;  // its words
    uint64_t section, within; // where it is in the file
    uint32_t tail;
    uint16_t kind, words;
};
struct dg_blob {
    uint64_t hash, bytes;
    const unsigned char *at;
};
struct dg_own_buffer {
    char *name, *type;
    uint64_t address, bytes, flags, *shape;
    unsigned dimensions;
    const unsigned char *contents;
    void *own;         // memory of the graph, of a buffer of the host
    uint64_t bound;    // 0 if nothing is
    int kind;          // of what is bound: DG_ON_*
    int in_kernel;     // a kernel is given its address
    size_t first, end; // of `by_buffer`
};
struct dg_module {
    const unsigned char *code;
    uint64_t bytes;
    void *handle;
};
struct dg_function {
    char *name;
    size_t module;
    unsigned count;
    uint32_t *parameters; // offset and bytes of each
    unsigned shared;      // dynamic, at most
    void *handle;
};
struct dg_pointer {
    uint64_t node, byte, buffer, offset, bytes;
};
struct dg_graph_node {
    char *name;
    int priority, changed;
    uint32_t type, bytes;
    unsigned char *body;
    size_t first, end; // of `pointers`
    void *handle;
};

struct dagrun_graph {
    struct dg_driver driver;
    char *file;
    unsigned char *map;
    uint64_t size;
    void *context, *popped;
    int device, retained, pushed, launched, changed;

    struct dg_record *records;
    unsigned char **copies; // of sections with records
    struct dg_blob *blobs;
    struct dg_own_buffer *buffers;
    struct dg_module *modules;
    struct dg_function *functions;
    struct dg_graph_node *nodes;
    struct dg_pointer *pointers; // in the order of nodes
    size_t *by_buffer;           // indices of pointers, in the order of buffers
    uint32_t *edges;
    size_t record_count, copy_count, blob_count, buffer_count, module_count, function_count, node_count, pointer_count, edge_count;
    unsigned most_parameters;

    uint64_t low, arena, arena_bytes;
    void *graph, *execution, **parameters;
};

#define DG_NEW(type, count) ((type *)calloc((size_t)(count) + 1, sizeof(type)))

static uint64_t dg_word(const unsigned char *at, uint64_t k) {
    uint64_t value;
    memcpy(&value, at + 8 * k, sizeof value);
    return value;
}

static uint32_t dg_half(const unsigned char *at, uint64_t k) {
    uint32_t value;
    memcpy(&value, at + 4 * k, sizeof value);
    return value;
}

static int dg_no_memory(void) { return dg_fail(DG_MEMORY, "there is no host memory left"); }

static int dg_wrong(const dagrun_graph *g, uint64_t at, const char *what) {
    return dg_fail(DG_IMAGE, "%s: byte %llu: %s", g->file, (unsigned long long)at, what);
}

static int dg_record_wrong(const dagrun_graph *g, const struct dg_record *r, const char *what) {
    return dg_fail(DG_IMAGE, "%s: byte %llu: byte %llu of this section: %s", g->file, (unsigned long long)r->section, (unsigned long long)r->within, what);
}

static uint32_t dg_sum(uint32_t (*table)[256], const unsigned char *at, uint64_t count) { // CRC-32C
    uint32_t sum = ~0u;
    for (; count >= 8; count -= 8, at += 8) {
        uint32_t a = dg_half(at, 0) ^ sum, b = dg_half(at, 1);
        sum = table[7][a & 255] ^ table[6][a >> 8 & 255] ^ table[5][a >> 16 & 255] ^ table[4][a >> 24] ^ table[3][b & 255] ^ table[2][b >> 8 & 255] ^
            table[1][b >> 16 & 255] ^ table[0][b >> 24];
    }
    for (; count; count--) sum = table[0][(sum ^ *at++) & 255] ^ sum >> 8;
    return ~sum;
}

static void dg_sums(uint32_t (*table)[256]) {
    for (uint32_t k = 0; k < 256; k++) {
        uint32_t sum = k;
        for (int bit = 0; bit < 8; bit++) sum = sum >> 1 ^ (sum & 1 ? 0x82f63b78u : 0);
        table[0][k] = sum;
    }
    for (int more = 1; more < 8; more++)
        for (uint32_t k = 0; k < 256; k++) table[more][k] = table[0][table[more - 1][k] & 255] ^ table[more - 1][k] >> 8;
}

static int dg_map_file(dagrun_graph *g) {
    struct stat info;
    int file = open(g->file, O_RDONLY), wrong;
    if (file < 0) return dg_fail(DG_NO_FILE, "%s: %s", g->file, strerror(errno));
    fcntl(file, F_SETFD, FD_CLOEXEC);
    wrong = fstat(file, &info) ? errno : 0;
    if (!wrong && !S_ISREG(info.st_mode)) wrong = EINVAL;
    g->size = wrong ? 0 : (uint64_t)info.st_size;
    if (!wrong && g->size) {
        void *map = mmap(NULL, (size_t)g->size, PROT_READ, MAP_PRIVATE, file, 0);
        if (map == MAP_FAILED) wrong = errno;
        else g->map = (unsigned char *)map;
    }
    close(file);
    return wrong ? dg_fail(DG_NO_FILE, "%s: %s", g->file, strerror(wrong)) : 0;
}

// Finds the records in a section, and undoes the differences in which they are stored.
static int dg_take_records(dagrun_graph *g, uint64_t section, uint64_t bytes, size_t *room) {
    struct dg_last {
        uint32_t size, kind;
        unsigned char *at;
    } last[256];
    unsigned char *copy = (unsigned char *)malloc(bytes ? bytes : 1), **copies;
    if (!copy) return dg_no_memory();
    copies = (unsigned char **)realloc(g->copies, (g->copy_count + 1) * sizeof *copies);
    if (!copies) {
        free(copy);
        return dg_no_memory();
    }
    g->copies = copies, copies[g->copy_count++] = copy;
    memcpy(copy, g->map + section + DG_SECTION, bytes);
    memset(last, 0, sizeof last);
    for (uint64_t at = 0; at < bytes;) {
        unsigned char *here = copy + at;
        uint64_t left = bytes - at, size, place;
        struct dg_record r;
        r.section = section, r.within = at;
        if (left < DG_FRAME) return dg_record_wrong(g, &r, "a record is cut");
        size = dg_half(here, 0), r.kind = (uint16_t)(dg_half(here, 1) & 0xffff), r.words = (uint16_t)(dg_half(here, 1) >> 16), r.tail = dg_half(here, 2),
        r.at = here + DG_FRAME;
        if (size != ((DG_FRAME + 8 * (uint64_t)r.words + r.tail + 7) & ~(uint64_t)7) || size > left)
            return dg_record_wrong(g, &r, "the size of a record is not that of its words and tail, or it is cut");
        place = ((uint64_t)r.kind * 31 + size / 8) % 256;
        if (last[place].at && last[place].kind == r.kind && last[place].size == size)
            for (uint64_t k = DG_FRAME / 8; k < size / 8; k++) {
                uint64_t value = dg_word(here, k) + dg_word(last[place].at, k);
                memcpy(here + 8 * k, &value, sizeof value);
            }
        last[place].at = here, last[place].kind = r.kind, last[place].size = (uint32_t)size;
        if (g->record_count == *room) {
            size_t more = *room ? 2 * *room : 64;
            struct dg_record *records = (struct dg_record *)realloc(g->records, more * sizeof *records);
            if (!records) return dg_no_memory();
            g->records = records, *room = more;
        }
        g->records[g->record_count++] = r;
        at += size;
    }
    return 0;
}

static int dg_compare_blobs(const void *a, const void *b) {
    const struct dg_blob *x = (const struct dg_blob *)a, *y = (const struct dg_blob *)b;
    if (x->hash != y->hash) return x->hash < y->hash ? -1 : 1;
    return x->bytes < y->bytes ? -1 : x->bytes > y->bytes;
}

// Goes through the sections, compares all sums, and the index with what is there.
static int dg_take_sections(dagrun_graph *g) {
    uint32_t sums[8][256];
    const unsigned char *map = g->map;
    uint64_t at = 16, sections = 0, kind = 0, room = 0;
    size_t records = 0;
    dg_sums(sums);
    if (g->size < 32 || memcmp(map, "DAGRUNG1", 8)) return dg_wrong(g, 0, "this is no planned graph: it does not begin with DAGRUNG1");
    if (dg_word(map, 1) != 1) return dg_wrong(g, 8, "another version of the format; this dagrun.h reads version 1");
    while (kind != 5) {
        const unsigned char *head = map + at, *contents = head + DG_SECTION;
        uint64_t bytes;
        if (g->size - at < DG_SECTION) return dg_wrong(g, at, "the file ends where a section should begin");
        kind = dg_half(head, 1), bytes = dg_word(head, 2);
        if (memcmp(head, "SECT", 4) || dg_word(head, 5) != dg_sum(sums, head, 40)) return dg_wrong(g, at, "the header of a section is damaged");
        if (dg_half(head, 2) || dg_word(head, 3) != bytes) return dg_wrong(g, at, "a section is packed, which those of a planned graph never are");
        if (bytes > g->size - at - DG_SECTION) return dg_wrong(g, at, "a section is larger than the file");
        if (dg_half(head, 3) != dg_sum(sums, contents, bytes)) return dg_wrong(g, at, "a section is damaged");
        if (kind == 3) {
            int wrong = dg_take_records(g, at, bytes, &records);
            if (wrong) return wrong;
        }
        if (kind == 4) {
            if (g->blob_count == room) {
                struct dg_blob *blobs = (struct dg_blob *)realloc(g->blobs, (size_t)(room = room ? 2 * room : 16) * sizeof *blobs);
                if (!blobs) return dg_no_memory();
                g->blobs = blobs;
            }
            g->blobs[g->blob_count].hash = dg_word(head, 4), g->blobs[g->blob_count].bytes = bytes, g->blobs[g->blob_count].at = contents;
            g->blob_count++;
        }
        if (kind == 5) {
            uint64_t k = 0, before = 16;
            if (bytes != 8 * sections) return dg_wrong(g, at, "the index does not list all sections");
            for (; k < sections; k++, before = (before + DG_SECTION + dg_word(map + before, 2) + 7) & ~(uint64_t)7)
                if (dg_word(contents, k) != before) return dg_wrong(g, at, "the index does not list all sections");
            if (at + DG_SECTION + bytes + 16 != g->size || dg_word(contents + bytes, 0) != at || memcmp(contents + bytes + 8, "DAGRUNRE", 8))
                return dg_wrong(g, at, "the file does not end behind its index");
        }
        sections++;
        at += (DG_SECTION + bytes + 7) & ~(uint64_t)7;
        if (kind != 5 && at > g->size) return dg_wrong(g, g->size, "the file ends in a section");
    }
    if (g->blob_count) qsort(g->blobs, g->blob_count, sizeof *g->blobs, dg_compare_blobs);
    return 0;
}

// What a record has besides its words, which may be a blob: bytes and hash are the words 2 and 3.
static const unsigned char *dg_held(const dagrun_graph *g, const struct dg_record *r) {
    struct dg_blob wanted, *found;
    if (r->tail) return r->tail == dg_word(r->at, 2) ? r->at + 8 * (size_t)r->words : NULL;
    wanted.hash = dg_word(r->at, 3), wanted.bytes = dg_word(r->at, 2), wanted.at = NULL;
    if (!g->blob_count) return NULL;
    found = (struct dg_blob *)bsearch(&wanted, g->blobs, g->blob_count, sizeof wanted, dg_compare_blobs);
    return found ? found->at : NULL;
}

// A copy of bytes of a tail, with a zero at its end.
static char *dg_copy(const unsigned char *from, size_t count) {
    char *to = (char *)malloc(count + 1);
    if (to) memcpy(to, from, count), to[count] = 0;
    return to;
}

static int dg_take_buffer(dagrun_graph *g, const struct dg_record *r) {
    struct dg_own_buffer *b = &g->buffers[g->buffer_count];
    const unsigned char *tail = r->at + 8 * (size_t)r->words, *end = (const unsigned char *)memchr(tail, 0, r->tail);
    size_t name = end ? (size_t)(end - tail) : r->tail;
    b->address = dg_word(r->at, 0), b->bytes = dg_word(r->at, 1), b->flags = dg_word(r->at, 2);
    if (dg_word(r->at, 3) > (uint64_t)r->words - 4 || dg_word(r->at, 3) > 16)
        return dg_record_wrong(g, r, "a buffer has more dimensions than words, or than 16");
    if (b->bytes > 1ull << 62 || b->address > 1ull << 62 || b->address + b->bytes > 1ull << 62) return dg_record_wrong(g, r, "a buffer is beyond all memory");
    if (!name) return dg_record_wrong(g, r, "a buffer has no name");
    b->dimensions = (unsigned)dg_word(r->at, 3);
    b->shape = DG_NEW(uint64_t, b->dimensions);
    b->name = dg_copy(tail, name);
    b->type = end ? dg_copy(end + 1, r->tail - name - 1) : dg_copy(tail, 0);
    g->buffer_count++;
    if (!b->shape || !b->name || !b->type) return dg_no_memory();
    for (unsigned k = 0; k < b->dimensions; k++)
        if ((b->shape[k] = dg_word(r->at, 4 + k)) > 1ull << 62) return dg_record_wrong(g, r, "a dimension of a buffer is beyond all memory");
    return 0;
}

static int dg_take_module(dagrun_graph *g, const struct dg_record *r) {
    struct dg_module *m = &g->modules[g->module_count];
    m->bytes = dg_word(r->at, 2), m->code = dg_held(g, r);
    if (dg_word(r->at, 0) != ++g->module_count) return dg_record_wrong(g, r, "a module has not the handle of its number");
    if (!m->code || m->bytes < 8) return dg_record_wrong(g, r, "the code of a module is missing");
    if (memcmp(m->code, "\177ELF", 4) && memcmp(m->code, "\x50\xed\x55\xba", 4) && m->code[m->bytes - 1])
        return dg_record_wrong(g, r, "a module is no machine code, and no text that ends with a zero");
    return 0;
}

static int dg_take_function(dagrun_graph *g, const struct dg_record *r) {
    struct dg_function *f = &g->functions[g->function_count];
    uint64_t module = dg_word(r->at, 2), count = dg_word(r->at, 6);
    if (dg_word(r->at, 0) != ++g->function_count) return dg_record_wrong(g, r, "a function has not the handle of its number");
    if (module == 0 || module > g->module_count || !r->tail) return dg_record_wrong(g, r, "a function has no name, or no module");
    if (count > ((uint64_t)r->words - 7) / 2) return dg_record_wrong(g, r, "a function has more parameters than words");
    f->module = (size_t)module - 1, f->count = (unsigned)count;
    f->name = dg_copy(r->at + 8 * (size_t)r->words, r->tail);
    f->parameters = DG_NEW(uint32_t, 2 * count);
    if (!f->name || !f->parameters) return dg_no_memory();
    for (unsigned k = 0; k < 2 * f->count; k++) f->parameters[k] = (uint32_t)dg_word(r->at, 7 + k);
    if (f->count > g->most_parameters) g->most_parameters = f->count;
    return 0;
}

// Whether there are such rows of bytes.
static int dg_rows(uint64_t width, uint64_t rows, uint64_t pitch) {
    return width > 0 && rows > 0 && width < 1ull << 40 && rows < 1ull << 31 && (rows == 1 || (pitch >= width && pitch < 1ull << 31));
}

static uint64_t dg_reach(uint64_t width, uint64_t rows, uint64_t pitch) { return width + (rows - 1) * pitch; }

// What is wrong with what describes a node, apart from its addresses.
static const char *dg_body_problem(dagrun_graph *g, const struct dg_graph_node *n) {
    const unsigned char *b = n->body;
    struct dg_function *f;
    uint32_t least = n->type == DG_KERNEL ? DG_KERNEL_WORDS : n->type == DG_COPY ? DG_COPY_WORDS : n->type == DG_SET ? DG_SET_WORDS : 0;
    if (n->type > DG_SET && n->type != DG_EMPTY) return "a node is no kernel, copy or set, and not empty";
    if (n->bytes < 8 * least) return "a node is described by too few bytes";
    if (n->type == DG_COPY &&
        (dg_word(b, 4) != 1 || !dg_rows(dg_word(b, 2), dg_word(b, 3), dg_word(b, 5)) || !dg_rows(dg_word(b, 2), dg_word(b, 3), dg_word(b, 6))))
        return "a copy has impossible rows";
    if (n->type == DG_SET) {
        uint64_t element = dg_word(b, 5);
        if ((element != 1 && element != 2 && element != 4) || dg_word(b, 1) % element || !dg_rows(dg_word(b, 1), dg_word(b, 2), dg_word(b, 3)))
            return "a set has impossible rows";
    }
    if (n->type != DG_KERNEL) return NULL;
    if (dg_word(b, 0) == 0 || dg_word(b, 0) > g->function_count) return "a launch is of a function that is not there";
    for (int k = 1; k <= 7; k++)
        if (dg_word(b, k) >= 1ull << 32 || (k < 7 && !dg_word(b, k))) return "a launch has an impossible size";
    if (dg_word(b, 8) > 1 || dg_word(b, 9) >> 48) return "a launch has attributes that are not known";
    f = &g->functions[dg_word(b, 0) - 1];
    for (unsigned k = 0; k < f->count; k++)
        if ((uint64_t)f->parameters[2 * k] + f->parameters[2 * k + 1] > n->bytes - 8 * DG_KERNEL_WORDS)
            return "a launch has fewer bytes of parameters than its function";
    if (dg_word(b, 7) > f->shared) f->shared = (unsigned)dg_word(b, 7);
    return NULL;
}

static int dg_take_graph(dagrun_graph *g, const struct dg_record *r) {
    uint64_t n = dg_word(r->at, 3), m = dg_word(r->at, 4), room = r->tail, bodies;
    const unsigned char *nodes = r->at + 8 * (size_t)r->words, *edges, *body;
    if (n != g->node_count) return dg_record_wrong(g, r, "the graph has not the nodes that are named");
    if (n > room / 24 || m > (room - 24 * n) / 16) return dg_record_wrong(g, r, "the graph has more nodes and edges than bytes");
    edges = nodes + 24 * n, body = edges + 16 * m, bodies = room - 24 * n - 16 * m;
    g->edge_count = (size_t)m;
    g->edges = DG_NEW(uint32_t, 2 * m);
    if (!g->edges) return dg_no_memory();
    for (uint64_t k = 0; k < n; k++) {
        struct dg_graph_node *node = &g->nodes[k];
        uint64_t at = dg_word(nodes + 24 * k, 2);
        const char *problem;
        node->type = dg_half(nodes + 24 * k, 2), node->bytes = dg_half(nodes + 24 * k, 3);
        if (at > bodies || node->bytes > bodies - at) return dg_record_wrong(g, r, "what describes a node is not in the record");
        node->body = (unsigned char *)dg_copy(body + at, node->bytes);
        if (!node->body) return dg_no_memory();
        problem = dg_body_problem(g, node);
        if (problem) return dg_record_wrong(g, r, problem);
    }
    for (uint64_t k = 0; k < m; k++) {
        uint32_t from = dg_half(edges + 16 * k, 0), to = dg_half(edges + 16 * k, 1);
        if (from >= to || to >= n || dg_half(edges + 16 * k, 2) || dg_half(edges + 16 * k, 3))
            return dg_record_wrong(g, r, "an edge does not lead to a node further down");
        g->edges[2 * k] = from, g->edges[2 * k + 1] = to;
    }
    return 0;
}

static int dg_take_pointer(dagrun_graph *g, const struct dg_record *r) {
    struct dg_pointer *p = &g->pointers[g->pointer_count++];
    const struct dg_graph_node *n;
    struct dg_own_buffer *b;
    p->node = dg_word(r->at, 0), p->byte = dg_word(r->at, 1), p->buffer = dg_word(r->at, 2), p->offset = dg_word(r->at, 3), p->bytes = dg_word(r->at, 4);
    if (p->node >= g->node_count || p->buffer >= g->buffer_count) return dg_record_wrong(g, r, "a pointer is of no node, or to no buffer");
    n = &g->nodes[p->node], b = &g->buffers[p->buffer];
    if (p->bytes > b->bytes || p->offset > b->bytes - p->bytes) return dg_record_wrong(g, r, "a pointer reaches beyond its buffer");
    if (n->bytes < 8 || p->byte > n->bytes - 8 || (n->type == DG_KERNEL && p->byte < 8 * DG_KERNEL_WORDS) ||
        dg_word(n->body + p->byte, 0) != b->address + p->offset)
        return dg_record_wrong(g, r, "what describes the node has not this address there");
    if (n->type == DG_KERNEL && b->flags & 1) return dg_record_wrong(g, r, "a kernel is given memory of the host");
    if (n->type == DG_KERNEL) b->in_kernel = 1;
    return 0;
}

// What nodes access matters to those who check the file; a file whose records of that are wrong is damaged all the same.
static int dg_take_use(dagrun_graph *g, const struct dg_record *r) {
    uint64_t at = dg_word(r->at, 2), width = dg_word(r->at, 3), rows = dg_word(r->at, 4), pitch = dg_word(r->at, 5), modes = dg_word(r->at, 6);
    const struct dg_own_buffer *b;
    if (dg_word(r->at, 0) >= g->node_count || dg_word(r->at, 1) >= g->buffer_count) return dg_record_wrong(g, r, "a use is of no node, or of no buffer");
    b = &g->buffers[dg_word(r->at, 1)];
    if (modes == 0 || modes > 3 || at > b->bytes || !dg_rows(width, rows, pitch) || dg_reach(width, rows, pitch) > b->bytes - at)
        return dg_record_wrong(g, r, "a use reaches beyond its buffer, or is no use");
    return 0;
}

static int dg_compare_pointers(const void *a, const void *b) {
    const struct dg_pointer *x = (const struct dg_pointer *)a, *y = (const struct dg_pointer *)b;
    if (x->node != y->node) return x->node < y->node ? -1 : 1;
    return x->byte < y->byte ? -1 : x->byte > y->byte;
}

// Puts the pointers in the order of nodes, and lists those of each buffer. A copy has two addresses, and a set has one.
static int dg_order_pointers(dagrun_graph *g) {
    size_t at = 0;
    g->by_buffer = DG_NEW(size_t, g->pointer_count);
    if (!g->by_buffer) return dg_no_memory();
    if (g->pointer_count) qsort(g->pointers, g->pointer_count, sizeof *g->pointers, dg_compare_pointers);
    for (size_t k = 0; k < g->node_count; k++) {
        struct dg_graph_node *n = &g->nodes[k];
        const struct dg_pointer *p = g->pointers + at;
        uint64_t reach[2] = {0, 0};
        size_t need = 0, count;
        n->first = at;
        while (at < g->pointer_count && g->pointers[at].node == k) at++;
        n->end = at, count = n->end - n->first;
        if (n->type == DG_KERNEL) continue;
        if (n->type == DG_COPY)
            need = 2, reach[0] = dg_reach(dg_word(n->body, 2), dg_word(n->body, 3), dg_word(n->body, 5)),
            reach[1] = dg_reach(dg_word(n->body, 2), dg_word(n->body, 3), dg_word(n->body, 6));
        if (n->type == DG_SET) need = 1, reach[0] = dg_reach(dg_word(n->body, 1), dg_word(n->body, 2), dg_word(n->body, 3));
        for (size_t i = 0; i < need && count == need; i++)
            if (p[i].byte != 8 * i || p[i].bytes < reach[i]) count = need + 1;
        if (count != need)
            return dg_fail(DG_IMAGE, "%s: node %s: its addresses are not those that a copy or a set has, or reach less than it accesses", g->file, n->name);
    }
    for (size_t k = 0; k < g->pointer_count; k++) g->buffers[g->pointers[k].buffer].end++;
    at = 0;
    for (size_t k = 0; k < g->buffer_count; k++) {
        struct dg_own_buffer *b = &g->buffers[k];
        b->first = at, at += b->end, b->end = b->first;
    }
    for (size_t k = 0; k < g->pointer_count; k++) g->by_buffer[g->buffers[g->pointers[k].buffer].end++] = k;
    return 0;
}

static int dg_take_contents(dagrun_graph *g, const struct dg_record *r) {
    const unsigned char *held = dg_held(g, r);
    struct dg_own_buffer *b;
    if (r->words < 5 || dg_word(r->at, 4) >= g->buffer_count) return dg_record_wrong(g, r, "contents are of no buffer");
    b = &g->buffers[dg_word(r->at, 4)];
    if (!held || b->contents || dg_word(r->at, 1) != b->address || dg_word(r->at, 2) != b->bytes)
        return dg_record_wrong(g, r, "contents are missing, or not those of their buffer");
    b->contents = held;
    return 0;
}

static int dg_compare_names(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

// Two buffers of one name could not be told apart.
static int dg_check_names(const dagrun_graph *g) {
    char **names = DG_NEW(char *, g->buffer_count);
    int wrong = 0;
    if (!names) return dg_no_memory();
    for (size_t k = 0; k < g->buffer_count; k++) names[k] = g->buffers[k].name;
    if (g->buffer_count) qsort(names, g->buffer_count, sizeof *names, dg_compare_names);
    for (size_t k = 1; k < g->buffer_count && !wrong; k++)
        if (!strcmp(names[k - 1], names[k])) wrong = dg_fail(DG_IMAGE, "%s: two buffers are named %s", g->file, names[k]);
    free(names);
    return wrong;
}

static int dg_take_node(dagrun_graph *g, const struct dg_record *r) {
    struct dg_graph_node *n = &g->nodes[g->node_count];
    int64_t priority = (int64_t)dg_word(r->at, 1);
    if (dg_word(r->at, 0) != g->node_count || priority < -1 || priority > 1) return dg_record_wrong(g, r, "a node has another number, or no priority");
    n->priority = (int)priority;
    n->name = dg_copy(r->at + 8 * (size_t)r->words, r->tail);
    g->node_count++;
    return n->name ? 0 : dg_no_memory();
}

// Goes through the records, kind after kind, so that what they refer to is there.
static int dg_read(dagrun_graph *g) {
    static const struct dg_kind {
        int kind, words;
        int (*take)(dagrun_graph *, const struct dg_record *);
    } kinds[] = {{DG_MODULE, 5, dg_take_module}, {DG_FUNCTION, 7, dg_take_function}, {DG_BUFFER, 4, dg_take_buffer}, {DG_CONTENTS, 4, dg_take_contents},
        {DG_NODE, 2, dg_take_node}, {DG_GRAPH, 5, dg_take_graph}, {DG_POINTER, 5, dg_take_pointer}, {DG_USE, 7, dg_take_use}};
    size_t counts[32] = {0}; // by kind
    int wrong = dg_map_file(g);
    if (!wrong) wrong = dg_take_sections(g);
    if (wrong) return wrong;
    for (size_t k = 0; k < g->record_count; k++) {
        const struct dg_record *r = &g->records[k];
        if (r->kind >= 32) return dg_record_wrong(g, r, "this is the recording of a program, and no planned graph");
        counts[r->kind]++;
        for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
            if (r->kind == kinds[i].kind && r->words < kinds[i].words)
                return dg_record_wrong(g, r, "a record has fewer words than belong to its kind");
    }
    if (counts[DG_GRAPH] != 1) return dg_fail(DG_IMAGE, "%s: the file has %llu graphs instead of one", g->file, (unsigned long long)counts[DG_GRAPH]);
    g->modules = DG_NEW(struct dg_module, counts[DG_MODULE]), g->functions = DG_NEW(struct dg_function, counts[DG_FUNCTION]),
    g->buffers = DG_NEW(struct dg_own_buffer, counts[DG_BUFFER]);
    g->nodes = DG_NEW(struct dg_graph_node, counts[DG_NODE]), g->pointers = DG_NEW(struct dg_pointer, counts[DG_POINTER]);
    if (!g->modules || !g->functions || !g->buffers || !g->nodes || !g->pointers) return dg_no_memory();
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        for (size_t k = 0; k < g->record_count; k++)
            if (g->records[k].kind == kinds[i].kind && (wrong = kinds[i].take(g, &g->records[k])) != 0) return wrong;
    wrong = dg_order_pointers(g);
    return wrong ? wrong : dg_check_names(g);
}

// Memory, code and the graph.

static int dg_check(dagrun_graph *g, int code, const char *call, const char *what) {
    const char *name = NULL, *text = NULL;
    if (!code) return 0;
    g->driver.cuGetErrorName(code, &name), g->driver.cuGetErrorString(code, &text);
    return dg_fail(code, "%s: %s%s%s: %s: %s", g->file, what, *what ? ": " : "", call, name ? name : "an unknown error", text ? text : "");
}

// Makes the graph's context current, if it is not.
static int dg_enter(dagrun_graph *g) {
    void *current = NULL;
    int code = g->driver.cuCtxGetCurrent(&current);
    g->pushed = 0;
    if (code || current == g->context) return dg_check(g, code, "cuCtxGetCurrent", "");
    code = g->driver.cuCtxPushCurrent(g->context);
    g->pushed = !code;
    return dg_check(g, code, "cuCtxPushCurrent", "");
}

static int dg_leave(dagrun_graph *g, int result) {
    int code = g->pushed ? g->driver.cuCtxPopCurrent(&g->popped) : 0;
    g->pushed = 0;
    return result ? result : dg_check(g, code, "cuCtxPopCurrent", "");
}

static int dg_choose_context(dagrun_graph *g, const dagrun_options *o) {
    struct dg_driver *d = &g->driver;
    void *primary = NULL;
    int code = dg_check(g, d->cuInit(0), "cuInit", "");
    if (code) return code;
    g->context = o->context;
    if (!g->context) code = dg_check(g, d->cuCtxGetCurrent(&g->context), "cuCtxGetCurrent", "");
    if (!code && g->context) {
        code = dg_enter(g);
        if (!code) code = dg_leave(g, dg_check(g, d->cuCtxGetDevice(&g->device), "cuCtxGetDevice", ""));
    } else if (!code) {
        code = dg_check(g, d->cuDeviceGet(&g->device, o->device), "cuDeviceGet", "");
    }
    if (code) return code;
    code = dg_check(g, d->cuDevicePrimaryCtxRetain(&primary, g->device), "cuDevicePrimaryCtxRetain", "");
    if (code) return code;
    if (!g->context) g->context = primary;
    g->retained = g->context == primary;
    return g->retained ? 0 : dg_check(g, d->cuDevicePrimaryCtxRelease(g->device), "cuDevicePrimaryCtxRelease", "");
}

static int dg_load_code(dagrun_graph *g) {
    struct dg_driver *d = &g->driver;
    int code = 0;
    for (size_t k = 0; k < g->module_count && !code; k++)
        code = dg_check(g, d->cuModuleLoadData(&g->modules[k].handle, g->modules[k].code), "cuModuleLoadData", "");
    for (size_t k = 0; k < g->function_count && !code; k++) {
        struct dg_function *f = &g->functions[k];
        size_t offset, bytes;
        code = dg_check(g, d->cuModuleGetFunction(&f->handle, g->modules[f->module].handle, f->name), "cuModuleGetFunction", f->name);
        for (unsigned i = 0; i < f->count && !code && d->cuFuncGetParamInfo; i++)
            if (d->cuFuncGetParamInfo(f->handle, i, &offset, &bytes) || bytes != f->parameters[2 * i + 1])
                code = dg_fail(DG_IMAGE, "%s: kernel %s does not take the parameters that the file has for it", g->file, f->name);
        if (!code && d->cuFuncGetParamInfo && !d->cuFuncGetParamInfo(f->handle, f->count, &offset, &bytes))
            code = dg_fail(DG_IMAGE, "%s: kernel %s takes more parameters than the file has for it", g->file, f->name);
        if (!code && f->shared > 48 << 10) code = dg_check(g, d->cuFuncSetAttribute(f->handle, 8, (int)f->shared), "cuFuncSetAttribute", f->name);
    }
    return code;
}

// Takes the memory of the device's buffers, which is zeros where the file has no contents.
static int dg_take_arena(dagrun_graph *g) {
    struct dg_driver *d = &g->driver;
    uint64_t low = UINT64_MAX, high = 0;
    int code = 0;
    for (size_t k = 0; k < g->buffer_count; k++) {
        const struct dg_own_buffer *b = &g->buffers[k];
        if (b->flags & 1) continue;
        if (b->address < low) low = b->address;
        if (b->address + b->bytes > high) high = b->address + b->bytes;
    }
    if (low >= high) return 0;
    g->low = low & ~(uint64_t)(DG_ALIGNMENT - 1), g->arena_bytes = high - g->low;
    code = dg_check(g, d->cuMemAlloc(&g->arena, (size_t)g->arena_bytes), "cuMemAlloc", "device memory");
    if (!code) code = dg_check(g, d->cuMemsetD8(g->arena, 0, (size_t)g->arena_bytes), "cuMemsetD8", "");
    for (size_t k = 0; k < g->buffer_count && !code; k++) {
        const struct dg_own_buffer *b = &g->buffers[k];
        if (!(b->flags & 1) && b->contents && b->bytes)
            code = dg_check(g, d->cuMemcpyHtoD(g->arena + (b->address - g->low), b->contents, (size_t)b->bytes), "cuMemcpyHtoD", b->name);
    }
    return code;
}

// Gives a buffer of the host memory of its own.
static int dg_own_memory(dagrun_graph *g, struct dg_own_buffer *b) {
    int code;
    if (b->own) return 0;
    code = dg_check(g, g->driver.cuMemHostAlloc(&b->own, b->bytes ? (size_t)b->bytes : 1, 1), "cuMemHostAlloc", b->name);
    if (code) return code;
    if (b->contents) memcpy(b->own, b->contents, (size_t)b->bytes);
    else memset(b->own, 0, (size_t)b->bytes);
    return 0;
}

static uint64_t dg_base(const dagrun_graph *g, const struct dg_own_buffer *b) {
    if (b->bound) return b->bound;
    return b->flags & 1 ? (uint64_t)(uintptr_t)b->own : g->arena + (b->address - g->low);
}

static void dg_side(const dagrun_graph *g, const struct dg_pointer *p, struct dg_side *side, uint64_t pitch, uint64_t rows) {
    const struct dg_own_buffer *b = &g->buffers[p->buffer];
    uint64_t at = dg_base(g, b) + p->offset;
    side->kind = (unsigned)(b->bound ? b->kind : b->flags & 1 ? (int)DG_ON_HOST : (int)DG_ON_DEVICE);
    if (side->kind == DG_ON_HOST) side->host = (const void *)(uintptr_t)at;
    else side->device = at;
    if (rows > 1) side->pitch = (size_t)pitch, side->height = (size_t)rows;
}

// Adds a node to the graph, or with `change` makes the executable graph use its addresses as they are now.
static int dg_put_node(dagrun_graph *g, struct dg_graph_node *n, void *graph, void **handle, int change) {
    struct dg_driver *d = &g->driver;
    const unsigned char *b = n->body;
    for (size_t k = n->first; k < n->end; k++) {
        uint64_t address = dg_base(g, &g->buffers[g->pointers[k].buffer]) + g->pointers[k].offset;
        memcpy(n->body + g->pointers[k].byte, &address, sizeof address);
    }
    if (n->type == DG_KERNEL) {
        const struct dg_function *f = &g->functions[dg_word(b, 0) - 1];
        struct dg_kernel_node kernel;
        memset(&kernel, 0, sizeof kernel);
        kernel.function = f->handle, kernel.shared = (unsigned)dg_word(b, 7), kernel.parameters = g->parameters;
        for (int k = 0; k < 3; k++) kernel.grid[k] = (unsigned)dg_word(b, 1 + k), kernel.block[k] = (unsigned)dg_word(b, 4 + k);
        for (unsigned k = 0; k < f->count; k++) g->parameters[k] = n->body + 8 * DG_KERNEL_WORDS + f->parameters[2 * k];
        return change ? d->cuGraphExecKernelNodeSetParams(g->execution, n->handle, &kernel) : d->cuGraphAddKernelNode(handle, graph, NULL, 0, &kernel);
    }
    if (n->type == DG_COPY) {
        struct dg_copy_node copy;
        memset(&copy, 0, sizeof copy);
        copy.width = (size_t)dg_word(b, 2), copy.height = (size_t)dg_word(b, 3), copy.depth = 1;
        dg_side(g, &g->pointers[n->first], &copy.to, dg_word(b, 5), dg_word(b, 3)),
            dg_side(g, &g->pointers[n->first + 1], &copy.from, dg_word(b, 6), dg_word(b, 3));
        return change ? d->cuGraphExecMemcpyNodeSetParams(g->execution, n->handle, &copy, g->context)
                      : d->cuGraphAddMemcpyNode(handle, graph, NULL, 0, &copy, g->context);
    }
    if (n->type == DG_SET) {
        struct dg_set_node set;
        memset(&set, 0, sizeof set);
        set.to = dg_word(b, 0), set.value = (unsigned)dg_word(b, 4), set.element = (unsigned)dg_word(b, 5), set.width = (size_t)(dg_word(b, 1) / set.element),
        set.height = (size_t)dg_word(b, 2);
        if (set.height > 1) set.pitch = (size_t)dg_word(b, 3);
        return change ? d->cuGraphExecMemsetNodeSetParams(g->execution, n->handle, &set, g->context)
                      : d->cuGraphAddMemsetNode(handle, graph, NULL, 0, &set, g->context);
    }
    return d->cuGraphAddEmptyNode(handle, graph, NULL, 0);
}

// Gives a kernel node the attributes that are not among its parameters.
static int dg_put_attributes(dagrun_graph *g, const struct dg_graph_node *n, void *handle, const int *priorities) {
    uint64_t cluster = dg_word(n->body, 9);
    union dg_attribute value;
    int code = 0;
    memset(&value, 0, sizeof value);
    if (cluster) {
        for (int k = 0; k < 3; k++) value.cluster[k] = (unsigned)(cluster >> 16 * k & 0xffff);
        code = dg_check(g, g->driver.cuGraphKernelNodeSetAttribute(handle, 4, &value), "cuGraphKernelNodeSetAttribute", n->name);
    }
    memset(&value, 0, sizeof value);
    value.number = 1;
    if (!code && dg_word(n->body, 8)) code = dg_check(g, g->driver.cuGraphKernelNodeSetAttribute(handle, 2, &value), "cuGraphKernelNodeSetAttribute", n->name);
    value.number = priorities[n->priority + 1];
    if (!code && priorities[3]) code = dg_check(g, g->driver.cuGraphKernelNodeSetAttribute(handle, 8, &value), "cuGraphKernelNodeSetAttribute", n->name);
    return code;
}

// Makes a graph of the nodes and edges, with the addresses as they are now. Nodes are in the order of the file.
static int dg_make(dagrun_graph *g, void **graph, void **handles, int *has_priorities) {
    struct dg_driver *d = &g->driver;
    void **ends = DG_NEW(void *, 2 * g->edge_count);
    int priorities[4] = {0, 0, 0, 0}; // low, normal, high, and whether any node has one
    int code = ends ? dg_check(g, d->cuGraphCreate(graph, 0), "cuGraphCreate", "") : dg_no_memory();
    for (size_t k = 0; k < g->node_count; k++) priorities[3] |= g->nodes[k].type == DG_KERNEL && g->nodes[k].priority != 0;
    if (!code && priorities[3]) {
        code = dg_check(g, d->cuCtxGetStreamPriorityRange(&priorities[0], &priorities[2]), "cuCtxGetStreamPriorityRange", "");
        priorities[1] = priorities[0] - (priorities[0] - priorities[2] >= 2);
    }
    for (size_t k = 0; k < g->node_count && !code; k++) {
        struct dg_graph_node *n = &g->nodes[k];
        code = dg_check(g, dg_put_node(g, n, *graph, &handles[k], 0),
            n->type == DG_KERNEL     ? "cuGraphAddKernelNode"
                : n->type == DG_COPY ? "cuGraphAddMemcpyNode"
                : n->type == DG_SET  ? "cuGraphAddMemsetNode"
                                     : "cuGraphAddEmptyNode",
            n->name);
        if (!code && n->type == DG_KERNEL) code = dg_put_attributes(g, n, handles[k], priorities);
    }
    for (size_t k = 0; k < g->edge_count && !code; k++) ends[k] = handles[g->edges[2 * k]], ends[g->edge_count + k] = handles[g->edges[2 * k + 1]];
    if (!code && g->edge_count) code = dg_check(g, d->cuGraphAddDependencies(*graph, ends, ends + g->edge_count, g->edge_count), "cuGraphAddDependencies", "");
    *has_priorities = priorities[3];
    free(ends);
    return code;
}

// Makes the executable graph, in the place of what there was.
static int dg_build(dagrun_graph *g) {
    struct dg_driver *d = &g->driver;
    void *graph = NULL, *execution = NULL, **handles = DG_NEW(void *, g->node_count);
    int priorities, code = handles ? dg_make(g, &graph, handles, &priorities) : dg_no_memory();
    if (!code) code = dg_check(g, d->cuGraphInstantiateWithFlags(&execution, graph, priorities ? 8 : 0), "cuGraphInstantiateWithFlags", "");
    if (!code && g->launched) code = dg_check(g, d->cuCtxSynchronize(), "cuCtxSynchronize", "replays of the graph as it was"); // so that no two replays overlap
    if (code) {
        if (execution) d->cuGraphExecDestroy(execution);
        if (graph) d->cuGraphDestroy(graph);
    } else {
        if (g->execution) d->cuGraphExecDestroy(g->execution);
        if (g->graph) d->cuGraphDestroy(g->graph);
        g->graph = graph, g->execution = execution, g->launched = 0, g->changed = 0;
        for (size_t k = 0; k < g->node_count; k++) g->nodes[k].handle = handles[k], g->nodes[k].changed = 0;
    }
    free(handles);
    return code;
}

// Takes memory for the buffers of the host that are not bound.
static int dg_own_buffers(dagrun_graph *g) {
    int code = 0;
    for (size_t k = 0; k < g->buffer_count && !code; k++)
        if (g->buffers[k].flags & 1 && !g->buffers[k].bound) code = dg_own_memory(g, &g->buffers[k]);
    return code;
}

// Puts a replay into the graph that is captured: the driver captures no cuGraphLaunch.
static int dg_capture(dagrun_graph *g, void *stream, void *captured, void *const *before, size_t count) {
    struct dg_driver *d = &g->driver;
    void *graph = NULL, *node, **handles = DG_NEW(void *, g->node_count);
    int priorities, code = handles ? dg_own_buffers(g) : dg_no_memory();
    if (!code) code = dg_make(g, &graph, handles, &priorities);
    if (!code) code = dg_check(g, d->cuGraphAddChildGraphNode(&node, captured, before, count, graph), "cuGraphAddChildGraphNode", "");
    if (!code) code = dg_check(g, d->cuStreamUpdateCaptureDependencies(stream, &node, 1, 1), "cuStreamUpdateCaptureDependencies", ""); // in place of those before
    if (graph) d->cuGraphDestroy(graph); // the child is a copy
    free(handles);
    return code;
}

// Makes the executable graph ready to be launched with what is bound now. The driver changes single nodes, but not the kind of memory of a copy, and no rows.
static int dg_prepare(dagrun_graph *g) {
    int code = dg_own_buffers(g);
    if (code) return code;
    if (!g->execution) return dg_build(g);
    for (size_t k = 0; k < g->node_count; k++)
        if (g->nodes[k].changed) {
            if (dg_put_node(g, &g->nodes[k], NULL, NULL, 1)) return dg_build(g);
            g->nodes[k].changed = 0;
        }
    g->changed = 0;
    return 0;
}

DAGRUN_API const char *dagrun_error(void) { return dg_text; }

DAGRUN_API dagrun_result dagrun_load(dagrun_graph **graph, const char *file, const dagrun_options *options) {
    dagrun_options o;
    dagrun_graph *g;
    int code;
    memset(&o, 0, sizeof o);
    if (!graph || !file) return (dagrun_result)dg_fail(DG_INVALID, "dagrun_load needs a place for the graph, and the name of a file");
    *graph = NULL;
    if (options) memcpy(&o, options, options->size < sizeof o ? options->size : sizeof o);
    g = DG_NEW(dagrun_graph, 1);
    if (!g) return (dagrun_result)dg_no_memory();
    g->file = dg_copy((const unsigned char *)file, strlen(file));
    code = g->file ? dg_read(g) : dg_no_memory();
    if (!code) code = dg_open_driver(&g->driver);
    if (!code) {
        g->parameters = DG_NEW(void *, g->most_parameters);
        if (!g->parameters) code = dg_no_memory();
    }
    if (!code) code = dg_choose_context(g, &o);
    if (!code) code = dg_enter(g);
    if (!code) {
        code = dg_load_code(g);
        if (!code) code = dg_take_arena(g);
        code = dg_leave(g, code);
    }
    if (code) {
        char kept[sizeof dg_text];
        memcpy(kept, dg_text, sizeof kept);
        dagrun_free(g);
        memcpy(dg_text, kept, sizeof kept);
        return (dagrun_result)code;
    }
    *graph = g;
    return (dagrun_result)0;
}

// Finds out what memory a pointer is to, and whether the buffer can lie there.
static int dg_check_pointer(dagrun_graph *g, struct dg_own_buffer *b, uint64_t pointer, int *kind) {
    unsigned type = 0;
    int device = -1;
    uint64_t on_device = 0;
    *kind = DG_ON_HOST;
    if (!g->driver.cuPointerGetAttribute(&type, 2, pointer) && type == DG_ON_DEVICE) *kind = DG_ON_DEVICE;
    if (!b->in_kernel) return 0;
    if (*kind == DG_ON_HOST && (g->driver.cuPointerGetAttribute(&on_device, 3, pointer) || on_device != pointer))
        return dg_fail(DG_INVALID, "%s: kernels use buffer %s, and this pointer is to memory of the host that they cannot reach", g->file, b->name);
    if (*kind == DG_ON_DEVICE && !g->driver.cuPointerGetAttribute(&device, 9, pointer) && device >= 0 && device != g->device)
        return dg_fail(DG_INVALID, "%s: kernels use buffer %s on device %d, and this pointer is to memory of device %d", g->file, b->name, g->device, device);
    if (pointer % DG_VECTOR) return dg_fail(DG_INVALID, "%s: kernels use buffer %s, and this pointer is no multiple of %d", g->file, b->name, (int)DG_VECTOR);
    return 0;
}

DAGRUN_API dagrun_result dagrun_bind(dagrun_graph *graph, const char *buffer, void *pointer) {
    struct dg_own_buffer *b = NULL;
    uint64_t address = (uint64_t)(uintptr_t)pointer;
    int kind = 0, code = 0;
    if (!graph || !buffer) return (dagrun_result)dg_fail(DG_INVALID, "dagrun_bind needs a graph and the name of a buffer");
    for (size_t k = 0; k < graph->buffer_count && !b; k++)
        if (!strcmp(graph->buffers[k].name, buffer)) b = &graph->buffers[k];
    if (!b) return (dagrun_result)dg_fail(DG_NOT_FOUND, "%s has no buffer %s", graph->file, buffer);
    if (address == b->bound) return (dagrun_result)0;
    if (address) {
        code = dg_enter(graph);
        if (!code) code = dg_leave(graph, dg_check_pointer(graph, b, address, &kind));
    }
    if (code) return (dagrun_result)code;
    b->bound = address, b->kind = kind;
    for (size_t k = b->first; k < b->end; k++) graph->nodes[graph->pointers[graph->by_buffer[k]].node].changed = 1;
    graph->changed = 1;
    return (dagrun_result)0;
}

DAGRUN_API dagrun_result dagrun_replay(dagrun_graph *graph, struct CUstream_st *stream) {
    int code, capturing = 0;
    uint64_t id;
    void *captured, *const *before;
    size_t count;
    if (!graph) return (dagrun_result)dg_fail(DG_INVALID, "dagrun_replay needs a graph");
    code = dg_enter(graph);
    if (code) return (dagrun_result)code;
    code = dg_check(graph, graph->driver.cuStreamGetCaptureInfo(stream, &capturing, &id, &captured, &before, &count), "cuStreamGetCaptureInfo", "");
    if (!code && capturing) return (dagrun_result)dg_leave(graph, dg_capture(graph, stream, captured, before, count));
    if (!code && (!graph->execution || graph->changed)) code = dg_prepare(graph);
    if (!code) {
        code = dg_check(graph, graph->driver.cuGraphLaunch(graph->execution, stream), "cuGraphLaunch", "");
        graph->launched |= !code;
    }
    return (dagrun_result)dg_leave(graph, code);
}

DAGRUN_API dagrun_result dagrun_wait(dagrun_graph *graph, struct CUstream_st *stream) {
    int code;
    if (!graph) return (dagrun_result)dg_fail(DG_INVALID, "dagrun_wait needs a graph");
    code = dg_enter(graph);
    if (!code) code = dg_leave(graph, dg_check(graph, graph->driver.cuStreamSynchronize(stream), "cuStreamSynchronize", ""));
    return (dagrun_result)code;
}

DAGRUN_API dagrun_result dagrun_describe(dagrun_graph *graph, unsigned index, dagrun_buffer *buffer) {
    struct dg_own_buffer *b;
    dagrun_buffer out;
    int code;
    if (!graph || !buffer) return (dagrun_result)dg_fail(DG_INVALID, "dagrun_describe needs a graph and a place for what it tells");
    if (index >= graph->buffer_count)
        return (dagrun_result)dg_fail(DG_NOT_FOUND, "%s has %llu buffers, and no buffer %u", graph->file, (unsigned long long)graph->buffer_count, index);
    b = &graph->buffers[index];
    memset(&out, 0, sizeof out);
    out.size = buffer->size < sizeof out ? buffer->size : sizeof out;
    out.name = b->name, out.type = b->type, out.shape = b->shape, out.dimensions = b->dimensions, out.bytes = b->bytes;
    out.host = b->flags & 1, out.given = b->flags >> 1 & 1, out.result = b->flags >> 2 & 1;
    if (out.host && !b->bound && out.size > offsetof(dagrun_buffer, pointer)) {
        code = dg_enter(graph);
        if (!code) code = dg_leave(graph, dg_own_memory(graph, b));
        if (code) return (dagrun_result)code;
    }
    if (out.host || b->bound) out.pointer = (void *)(uintptr_t)dg_base(graph, b);
    memcpy(buffer, &out, out.size);
    return (dagrun_result)0;
}

DAGRUN_API dagrun_result dagrun_free(dagrun_graph *graph) {
    dagrun_graph *g = graph;
    struct dg_driver *d;
    int code = 0, entered;
    if (!g) return (dagrun_result)0;
    d = &g->driver;
    if (g->context) code = dg_check(g, d->cuCtxPushCurrent(g->context), "cuCtxPushCurrent", ""); // if that fails, nothing of the device is left to free
    entered = g->pushed = g->context && !code;
    if (entered && g->launched) {
        code = dg_check(g, d->cuCtxSynchronize(), "cuCtxSynchronize", "");
        if (code == DG_CAPTURE) return (dagrun_result)dg_leave(g, code); // nothing is freed while a stream is captured
    }
    if (entered) {
        if (g->execution) d->cuGraphExecDestroy(g->execution);
        if (g->graph) d->cuGraphDestroy(g->graph);
        for (size_t k = 0; k < g->module_count; k++)
            if (g->modules[k].handle) d->cuModuleUnload(g->modules[k].handle);
        for (size_t k = 0; k < g->buffer_count; k++)
            if (g->buffers[k].own) d->cuMemFreeHost(g->buffers[k].own);
        if (g->arena) d->cuMemFree(g->arena);
        code = dg_leave(g, code);
    }
    if (g->retained) d->cuDevicePrimaryCtxRelease(g->device);
    for (size_t k = 0; k < g->buffer_count; k++) free(g->buffers[k].name), free(g->buffers[k].type), free(g->buffers[k].shape);
    for (size_t k = 0; k < g->function_count; k++) free(g->functions[k].name), free(g->functions[k].parameters);
    for (size_t k = 0; k < g->node_count; k++) free(g->nodes[k].name), free(g->nodes[k].body);
    for (size_t k = 0; k < g->copy_count; k++) free(g->copies[k]);
    if (g->map) munmap(g->map, (size_t)g->size);
    free(g->records), free(g->copies), free(g->blobs), free(g->buffers), free(g->modules), free(g->functions), free(g->nodes), free(g->pointers),
        free(g->by_buffer), free(g->edges), free(g->parameters), free(g->file), free(g);
    return (dagrun_result)code;
}

#endif
