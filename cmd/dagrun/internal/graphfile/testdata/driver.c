// A driver of our own, for tests of dagrun.h: it runs copies, sets and saxpy on the host, when somebody waits, in any order that the edges of a graph
// allow. It ends the process where a call is made without its context, counts what is not freed, fails calls, and writes the graphs that are instantiated to the
// file STAND_IN_LOG.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef uint64_t address;

enum { MOST = 4096, HOST = 1, DEVICE = 2 };
enum { INVALID = 1, NO_ROOM = 2, NO_CONTEXT = 201, NOT_FOUND = 500, IMAGE = 200, CAPTURING = 900 };

static void stop(const char *why) {
    fprintf(stderr, "stand-in driver: %s\n", why);
    abort();
}

static int calls, live, retained, failing = -1;
static const char *missing = "";
static struct context { int number; } contexts[2] = {{0}, {1}}; // the first is the primary one
static void *stack[64] = {NULL};
static int depth;

static struct memory {
    unsigned char *at;
    size_t bytes;
    int kind, device;
} memories[MOST];
static int memory_count;

static struct memory *memory_of(address at) {
    for (int k = 0; k < memory_count; k++)
        if (memories[k].at && at >= (address)memories[k].at && at < (address)memories[k].at + memories[k].bytes) return &memories[k];
    return NULL;
}

struct function {
    char name[128];
    size_t sizes[64], offsets[64];
    unsigned count;
};
struct module {
    char *text;
    struct function functions[64];
    int count;
};

struct kernel_node {
    void *function;
    unsigned grid[3], block[3], shared;
    void **parameters, **extra;
};
struct side {
    size_t x, y, z, level;
    unsigned kind;
    const void *host;
    address device;
    void *array, *reserved;
    size_t pitch, height;
};
struct copy_node {
    struct side from, to;
    size_t width, height, depth;
};
struct set_node {
    address to;
    size_t pitch;
    unsigned value, element;
    size_t width, height;
};

enum kind { KERNEL, COPY, SET, EMPTY };
struct node {
    enum kind kind;
    struct kernel_node kernel;
    unsigned char values[64][256]; // of the kernel's parameters
    struct copy_node copy;
    struct set_node set;
    int attributes[16];
    unsigned cluster[3];
    int index;
};
struct graph {
    struct node *nodes[MOST];
    int count, edges[MOST][2], edge_count;
};
struct execution { // has its own copies of the nodes
    struct graph *of;
    struct node *nodes[MOST];
    int count, edges[MOST][2], edge_count, launches;
};

static struct launch { // what a launch found; it runs when somebody waits
    struct node *nodes;
    int count, (*edges)[2], edge_count;
} pending[64];
static int pending_count;
static uint32_t chance = 1;
static struct graph *captured; // while a stream is captured
static void *captured_last;    // the node that what comes next depends on

// Every call begins with this. The call with the number that is to fail does nothing.
static int begin(int needs_context) {
    if (needs_context && !stack[depth]) stop("a call without a context");
    return ++calls == failing ? 999 : 0;
}
#define BEGIN(needs_context) \
    do { \
        int code = begin(needs_context); \
        if (code) return code; \
    } while (0)

int stand_in_live(void) { return live + retained; }
int stand_in_calls(void) { return calls; }
void stand_in_fail(int call) { calls = 0, failing = call; }
void stand_in_lacks(const char *function) { missing = function; }
void stand_in_seed(uint32_t seed) { chance = seed * 2654435761u + 1; }
void *stand_in_context(int number) { return &contexts[number]; }
void *stand_in_current(void) { return stack[depth]; }
int stand_in_pending(void) { return pending_count; }

static int cu_init(unsigned flags) {
    BEGIN(0);
    return (int)flags;
}
static int cu_error_name(int code, const char **name) {
    *name = code == 999 ? "CUDA_ERROR_UNKNOWN" : "CUDA_ERROR_OF_THE_STAND_IN";
    return 0;
}
static int cu_error_string(int code, const char **text) {
    *text = code == 999 ? "this call was to fail" : "as the stand-in says";
    return 0;
}
static int cu_device_get(int *device, int number) {
    BEGIN(0);
    *device = number;
    return number ? INVALID : 0;
}
static int cu_retain(void **context, int device) {
    BEGIN(0);
    if (device) return INVALID;
    retained++, *context = &contexts[0];
    return 0;
}
static int cu_release(int device) {
    if (device || !retained) stop("a context is released that was not retained");
    retained--;
    return 0;
}
static int cu_current(void **context) {
    BEGIN(0);
    *context = stack[depth];
    return 0;
}
static int cu_context_device(int *device) {
    BEGIN(1);
    *device = 0;
    return 0;
}
static int cu_push(void *context) {
    BEGIN(0);
    stack[++depth] = context;
    return 0;
}
static int cu_pop(void **context) {
    if (!depth) stop("a context is popped that was not pushed");
    *context = stack[depth--];
    return 0;
}
static int cu_priorities(int *least, int *greatest) {
    BEGIN(1);
    *least = 0, *greatest = -5;
    return 0;
}

static void run_node(const struct node *n) {
    if (n->kind == COPY) {
        const struct copy_node *c = &n->copy;
        for (size_t row = 0; row < c->height; row++) {
            const struct side *from = &c->from, *to = &c->to;
            address a = (from->kind == HOST ? (address)(uintptr_t)from->host : from->device) + row * from->pitch,
                    b = (to->kind == HOST ? (address)(uintptr_t)to->host : to->device) + row * to->pitch;
            if (from->kind == DEVICE && !memory_of(a)) stop("a copy from memory that was freed");
            if (to->kind == DEVICE && !memory_of(b)) stop("a copy to memory that was freed");
            memmove((void *)(uintptr_t)b, (void *)(uintptr_t)a, c->width);
        }
    }
    if (n->kind == SET)
        for (size_t row = 0; row < n->set.height; row++)
            for (size_t k = 0; k < n->set.width; k++)
                memcpy((char *)(uintptr_t)n->set.to + row * n->set.pitch + k * n->set.element, &n->set.value, n->set.element);
    if (n->kind == KERNEL && strstr(((struct function *)n->kernel.function)->name, "axpy_f32")) {
        uint64_t count;
        float alpha, *x, *y;
        memcpy(&count, n->values[0], 8), memcpy(&alpha, n->values[1], 4), memcpy(&x, n->values[2], 8), memcpy(&y, n->values[3], 8);
        if (!memory_of((address)x) || !memory_of((address)y)) stop("a kernel gets memory that was freed");
        for (uint64_t k = 0; k < count; k++) y[k] += alpha * x[k];
    }
}

static void run(struct launch *l) {
    int *waits = calloc((size_t)l->count + 1, sizeof *waits), *ready = calloc((size_t)l->count + 1, sizeof *ready), n = 0, done = 0;
    for (int k = 0; k < l->edge_count; k++) waits[l->edges[k][1]]++;
    for (int k = 0; k < l->count; k++)
        if (!waits[k]) ready[n++] = k;
    while (n) {
        int pick, node;
        chance = chance * 1664525u + 1013904223u;
        pick = (int)(chance >> 8) % n, node = ready[pick], ready[pick] = ready[--n];
        run_node(&l->nodes[node]), done++;
        for (int k = 0; k < l->edge_count; k++)
            if (l->edges[k][0] == node && !--waits[l->edges[k][1]]) ready[n++] = l->edges[k][1];
    }
    if (done != l->count) stop("a graph whose nodes wait for each other");
    free(waits), free(ready), free(l->nodes), free(l->edges);
}

int stand_in_wait(void) {
    for (int k = 0; k < pending_count; k++) run(&pending[k]);
    pending_count = 0;
    return 0;
}
// Drops what nobody has waited for.
void stand_in_forget(void) {
    for (int k = 0; k < pending_count; k++) free(pending[k].nodes), free(pending[k].edges);
    pending_count = 0;
}
static int cu_synchronize(void) {
    BEGIN(1);
    return captured ? CAPTURING : stand_in_wait();
}

static int cu_stream_synchronize(void *stream) {
    BEGIN(1);
    return stream ? INVALID : stand_in_wait();
}

// Reads the parameters of an entry from PTX.
static int parse(struct function *f, const char *text) {
    char wanted[160];
    const char *at, *end;
    snprintf(wanted, sizeof wanted, ".entry %s(", f->name);
    at = strstr(text, wanted);
    if (!at) return NOT_FOUND;
    end = strchr(at, ')');
    for (at = strstr(at, ".param"); at && at < end; at = strstr(at + 1, ".param")) {
        static const struct {
            const char *type;
            size_t bytes;
        } types[] = {{".u64", 8}, {".s64", 8}, {".b64", 8}, {".f64", 8}, {".u32", 4}, {".s32", 4}, {".b32", 4}, {".f32", 4}, {".u16", 2}, {".b16", 2},
            {".u8", 1}, {".s8", 1}};
        const char *line = strpbrk(at, ",)"), *many = strchr(at, '[');
        size_t bytes = 0;
        if (many && many < line) bytes = (size_t)atoi(many + 1);
        else
            for (size_t k = 0; k < sizeof types / sizeof *types; k++) {
                const char *found = strstr(at, types[k].type);
                if (found && found < line) bytes = types[k].bytes;
            }
        if (!bytes) return NOT_FOUND;
        f->sizes[f->count++] = bytes;
    }
    return 0;
}

static int cu_module_load(void **module, const void *code) {
    struct module *m;
    BEGIN(1);
    if (!strstr(code, ".version")) return IMAGE;
    m = calloc(1, sizeof *m), m->text = malloc(strlen(code) + 1), strcpy(m->text, code);
    *module = m, live++;
    return 0;
}
static int cu_module_unload(void *module) {
    free(((struct module *)module)->text), free(module), live--;
    return 0;
}
static int cu_module_function(void **function, void *module, const char *name) {
    struct module *m = module;
    struct function *f = &m->functions[m->count++];
    BEGIN(1);
    snprintf(f->name, sizeof f->name, "%s", name);
    *function = f;
    return parse(f, m->text);
}
static int cu_parameter(void *function, size_t index, size_t *offset, size_t *bytes) {
    struct function *f = function;
    BEGIN(1);
    if (index >= f->count) return INVALID;
    *offset = 0, *bytes = f->sizes[index];
    return 0;
}
static int cu_function_set(void *function, int attribute, int value) {
    BEGIN(1);
    return function && attribute == 8 && value > 48 << 10 ? 0 : INVALID;
}

static void *take(size_t bytes, int kind) {
    struct memory *m = memories;
    while (m->at)
        if (++m == memories + MOST) stop("too many allocations");
    if (m == memories + memory_count) memory_count++;
    m->bytes = bytes ? bytes : 1, m->at = aligned_alloc(256, (m->bytes + 255) / 256 * 256), m->kind = kind, m->device = 0;
    memset(m->at, 0xa5, m->bytes);
    live++;
    return m->at;
}
static int give(address at) {
    struct memory *m = memory_of(at);
    if (!m || (address)m->at != at) stop("memory is freed that was not taken");
    free(m->at), m->at = NULL, live--;
    return 0;
}
static int cu_alloc(address *at, size_t bytes) {
    BEGIN(1);
    if (bytes > 1ull << 28) return NO_ROOM;
    *at = (address)take(bytes, DEVICE);
    return 0;
}
static int cu_free(address at) { return give(at); }
static int cu_host_alloc(void **at, size_t bytes, unsigned flags) {
    BEGIN(1);
    if (captured) return CAPTURING;
    if (bytes > 1ull << 28) return NO_ROOM;
    *at = take(bytes, HOST);
    return flags == 1 ? 0 : INVALID;
}
static int cu_host_free(void *at) { return give((address)at); }
static int cu_set8(address to, unsigned char value, size_t count) {
    BEGIN(1);
    memset((void *)to, value, count);
    return 0;
}
static int cu_copy_to(address to, const void *from, size_t count) {
    BEGIN(1);
    memcpy((void *)to, from, count);
    return 0;
}
static int cu_attribute(void *out, int attribute, address at) {
    struct memory *m = memory_of(at);
    if (!m) return INVALID;
    if (attribute == 2) *(unsigned *)out = (unsigned)m->kind;
    else if (attribute == 3) *(address *)out = at;
    else if (attribute == 9) *(int *)out = m->device;
    else return INVALID;
    return 0;
}
void stand_in_move(void *at, int device) { memory_of((address)at)->device = device; } // says that memory is on another device

static int cu_graph_create(void **graph, unsigned flags) {
    BEGIN(1);
    *graph = calloc(1, sizeof(struct graph)), live++;
    return (int)flags;
}
static int cu_graph_destroy(void *graph) {
    struct graph *g = graph;
    for (int k = 0; k < g->count; k++) free(g->nodes[k]);
    free(g), live--;
    return 0;
}
static struct node *add(void **node, void *graph, enum kind kind) {
    struct graph *g = graph;
    struct node *n = calloc(1, sizeof *n);
    n->kind = kind, n->index = g->count;
    g->nodes[g->count++] = n, *node = n;
    return n;
}
static int put_kernel(struct node *n, const struct kernel_node *kernel) {
    struct function *f = kernel->function;
    n->kernel = *kernel;
    for (unsigned k = 0; k < f->count; k++) memcpy(n->values[k], kernel->parameters[k], f->sizes[k]);
    return 0;
}
static int cu_add_kernel(void **node, void *graph, void *const *before, size_t count, const struct kernel_node *kernel) {
    BEGIN(1);
    if (before || count) return INVALID;
    return put_kernel(add(node, graph, KERNEL), kernel);
}
static int cu_add_copy(void **node, void *graph, void *const *before, size_t count, const struct copy_node *copy, void *context) {
    BEGIN(1);
    if (before || count || context != stack[depth]) return INVALID;
    add(node, graph, COPY)->copy = *copy;
    return 0;
}
static int cu_add_set(void **node, void *graph, void *const *before, size_t count, const struct set_node *set, void *context) {
    BEGIN(1);
    if (before || count || context != stack[depth]) return INVALID;
    add(node, graph, SET)->set = *set;
    return 0;
}
static int cu_add_empty(void **node, void *graph, void *const *before, size_t count) {
    BEGIN(1);
    if (before || count) return INVALID;
    add(node, graph, EMPTY);
    return 0;
}
static int cu_add_edges(void *graph, void *const *from, void *const *to, size_t count) {
    struct graph *g = graph;
    BEGIN(1);
    for (size_t k = 0; k < count; k++)
        g->edges[g->edge_count][0] = ((struct node *)from[k])->index, g->edges[g->edge_count++][1] = ((struct node *)to[k])->index;
    return 0;
}
static int cu_node_attribute(void *node, int attribute, const void *value) {
    struct node *n = node;
    BEGIN(1);
    if (attribute == 4) memcpy(n->cluster, value, sizeof n->cluster);
    else memcpy(&n->attributes[attribute], value, sizeof(int));
    return 0;
}

// An address as text: which allocation, and where in it.
static void put_address(FILE *log, address at) {
    struct memory *m = memory_of(at);
    if (m) fprintf(log, " %s%d+%llu", m->kind == HOST ? "host" : "device", (int)(m - memories), (unsigned long long)(at - (address)m->at));
    else fprintf(log, " elsewhere");
}

static void write_log(const struct execution *e) {
    const char *name = getenv("STAND_IN_LOG");
    FILE *log = name ? fopen(name, "a") : NULL;
    if (!log) return;
    fprintf(log, "graph %d\n", e->count);
    for (int k = 0; k < e->count; k++) {
        const struct node *n = e->nodes[k];
        if (n->kind == KERNEL) {
            const struct function *f = n->kernel.function;
            const unsigned *g = n->kernel.grid, *b = n->kernel.block, *c = n->cluster;
            fprintf(log, "kernel %s %u %u %u, %u %u %u, %u; cooperative %d, cluster %u %u %u, priority %d;", f->name, g[0], g[1], g[2], b[0], b[1], b[2],
                n->kernel.shared, n->attributes[2], c[0], c[1], c[2], n->attributes[8]);
            for (unsigned i = 0; i < f->count; i++) {
                address value = 0;
                memcpy(&value, n->values[i], f->sizes[i] < 8 ? f->sizes[i] : 8);
                if (f->sizes[i] == 8 && memory_of(value)) {
                    put_address(log, value);
                    continue;
                }
                fprintf(log, " ");
                for (size_t byte = 0; byte < f->sizes[i]; byte++) fprintf(log, "%02x", n->values[i][byte]);
            }
        } else if (n->kind == COPY) {
            fprintf(log, "copy %zu x %zu", n->copy.width, n->copy.height);
            put_address(log, n->copy.to.kind == HOST ? (address)(uintptr_t)n->copy.to.host : n->copy.to.device);
            put_address(log, n->copy.from.kind == HOST ? (address)(uintptr_t)n->copy.from.host : n->copy.from.device);
            fprintf(log, " %zu %zu", n->copy.to.pitch, n->copy.from.pitch);
        } else if (n->kind == SET) {
            fprintf(log, "set %zu x %zu of %u", n->set.width, n->set.height, n->set.element);
            put_address(log, n->set.to);
            fprintf(log, " %zu to %u", n->set.pitch, n->set.value);
        } else {
            fprintf(log, "empty");
        }
        fprintf(log, "\n");
    }
    for (int k = 0; k < e->edge_count; k++) fprintf(log, "edge %d %d\n", e->edges[k][0], e->edges[k][1]);
    fclose(log);
}

static int cu_instantiate(void **execution, void *graph, unsigned long long flags) {
    struct graph *g = graph;
    struct execution *e;
    BEGIN(1);
    if (flags != 0 && flags != 8) return INVALID;
    e = calloc(1, sizeof *e), *execution = e, live++;
    e->of = g, e->count = g->count, e->edge_count = g->edge_count;
    memcpy(e->edges, g->edges, sizeof e->edges);
    for (int k = 0; k < g->count; k++) e->nodes[k] = malloc(sizeof *e->nodes[k]), *e->nodes[k] = *g->nodes[k];
    write_log(e);
    return 0;
}
static int cu_execution_destroy(void *execution) {
    struct execution *e = execution;
    for (int k = 0; k < e->count; k++) free(e->nodes[k]);
    free(e), live--;
    return 0;
}
static int cu_change_kernel(void *execution, void *node, const struct kernel_node *kernel) {
    BEGIN(1);
    return put_kernel(((struct execution *)execution)->nodes[((struct node *)node)->index], kernel);
}
// The kind of memory of a copy cannot be changed, and rows cannot.
static int cu_change_copy(void *execution, void *node, const struct copy_node *copy, void *context) {
    struct node *n = ((struct execution *)execution)->nodes[((struct node *)node)->index];
    BEGIN(1);
    if (copy->height > 1 || copy->from.kind != n->copy.from.kind || copy->to.kind != n->copy.to.kind || context != stack[depth]) return INVALID;
    n->copy = *copy;
    return 0;
}
static int cu_change_set(void *execution, void *node, const struct set_node *set, void *context) {
    BEGIN(1);
    if (context != stack[depth]) return INVALID;
    ((struct execution *)execution)->nodes[((struct node *)node)->index]->set = *set;
    return 0;
}
static int launch(struct node **nodes, int count, int (*edges)[2], int edge_count) {
    struct launch *l = &pending[pending_count];
    if (++pending_count == 64) stop("too many launches that nobody waits for");
    l->count = count, l->edge_count = edge_count;
    l->nodes = malloc(((size_t)count + 1) * sizeof *l->nodes), l->edges = malloc(((size_t)edge_count + 1) * sizeof *edges);
    for (int k = 0; k < count; k++) l->nodes[k] = *nodes[k];
    memcpy(l->edges, edges, (size_t)edge_count * sizeof *edges);
    return 0;
}
static int cu_launch(void *execution, void *stream) {
    struct execution *e = execution;
    BEGIN(1);
    (void)stream;
    return captured ? CAPTURING : launch(e->nodes, e->count, e->edges, e->edge_count);
}

void stand_in_begin_capture(void) { captured = calloc(1, sizeof *captured), captured_last = NULL; }
// Launches what was captured, this many times.
void stand_in_end_capture(int times) {
    for (; times; times--) launch(captured->nodes, captured->count, captured->edges, captured->edge_count);
    for (int k = 0; k < captured->count; k++) free(captured->nodes[k]);
    free(captured), captured = NULL;
}
static int cu_capture_info(void *stream, int *status, uint64_t *id, void **graph, void *const **before, size_t *count) {
    BEGIN(1);
    *status = captured != NULL;
    if (captured) *id = 1, *graph = captured, *before = &captured_last, *count = captured_last != NULL;
    return stream ? INVALID : 0;
}
// The nodes of a child stand in its place, between two that are empty; the handle is that of the last.
static int cu_add_child(void **node, void *graph, void *const *before, size_t count, void *child) {
    struct graph *g = graph, *from = child;
    void *first;
    int base = g->count + 1, last = base + from->count;
    BEGIN(1);
    add(&first, g, EMPTY);
    for (size_t k = 0; k < count; k++) g->edges[g->edge_count][0] = ((struct node *)before[k])->index, g->edges[g->edge_count++][1] = base - 1;
    for (int k = 0; k < from->count; k++) {
        struct node *n = add(node, g, EMPTY);
        *n = *from->nodes[k], n->index = base + k;
        g->edges[g->edge_count][0] = base - 1, g->edges[g->edge_count++][1] = base + k;
        g->edges[g->edge_count][0] = base + k, g->edges[g->edge_count++][1] = last;
    }
    for (int k = 0; k < from->edge_count; k++)
        for (int end = 0; end < 2; end++) g->edges[g->edge_count + k][end] = base + from->edges[k][end];
    g->edge_count += from->edge_count;
    add(node, g, EMPTY);
    return 0;
}
static int cu_update_capture(void *stream, void **nodes, size_t count, unsigned flags) {
    BEGIN(1);
    if (!captured || stream || count != 1 || flags != 1) return INVALID;
    captured_last = nodes[0];
    return 0;
}

#define ROW(name, function) \
    { name, (void (*)(void))function }
static const struct {
    const char *name;
    void (*at)(void);
} functions[] = {ROW("cuInit", cu_init), ROW("cuGetErrorName", cu_error_name), ROW("cuGetErrorString", cu_error_string), ROW("cuDeviceGet", cu_device_get),
    ROW("cuDevicePrimaryCtxRetain", cu_retain), ROW("cuDevicePrimaryCtxRelease", cu_release), ROW("cuCtxGetCurrent", cu_current),
    ROW("cuCtxGetDevice", cu_context_device), ROW("cuCtxPushCurrent", cu_push), ROW("cuCtxPopCurrent", cu_pop), ROW("cuCtxSynchronize", cu_synchronize),
    ROW("cuStreamSynchronize", cu_stream_synchronize), ROW("cuCtxGetStreamPriorityRange", cu_priorities), ROW("cuModuleLoadData", cu_module_load),
    ROW("cuModuleUnload", cu_module_unload), ROW("cuModuleGetFunction", cu_module_function), ROW("cuFuncGetParamInfo", cu_parameter),
    ROW("cuFuncSetAttribute", cu_function_set), ROW("cuMemAlloc", cu_alloc), ROW("cuMemFree", cu_free), ROW("cuMemHostAlloc", cu_host_alloc),
    ROW("cuMemFreeHost", cu_host_free), ROW("cuMemsetD8", cu_set8), ROW("cuMemcpyHtoD", cu_copy_to), ROW("cuPointerGetAttribute", cu_attribute),
    ROW("cuGraphCreate", cu_graph_create), ROW("cuGraphDestroy", cu_graph_destroy), ROW("cuGraphAddKernelNode", cu_add_kernel),
    ROW("cuGraphAddMemcpyNode", cu_add_copy), ROW("cuGraphAddMemsetNode", cu_add_set), ROW("cuGraphAddEmptyNode", cu_add_empty),
    ROW("cuGraphAddDependencies", cu_add_edges), ROW("cuGraphKernelNodeSetAttribute", cu_node_attribute), ROW("cuGraphInstantiateWithFlags", cu_instantiate),
    ROW("cuGraphExecDestroy", cu_execution_destroy), ROW("cuGraphExecKernelNodeSetParams", cu_change_kernel),
    ROW("cuGraphExecMemcpyNodeSetParams", cu_change_copy), ROW("cuGraphExecMemsetNodeSetParams", cu_change_set), ROW("cuGraphLaunch", cu_launch),
    ROW("cuStreamGetCaptureInfo", cu_capture_info), ROW("cuGraphAddChildGraphNode", cu_add_child),
    ROW("cuStreamUpdateCaptureDependencies", cu_update_capture)};

int cuGetProcAddress(const char *name, void **at, int version, uint64_t flags) {
    *at = NULL;
    if (!strcmp(missing, name)) return NOT_FOUND;
    for (size_t k = 0; k < sizeof functions / sizeof *functions; k++)
        if (!strcmp(functions[k].name, name)) memcpy(at, &functions[k].at, sizeof *at);
    return *at && version >= 11040 && !flags ? 0 : NOT_FOUND;
}
