// Which bytes kernels touch, measured by NVIDIA's Sanitizer API: every module is patched when it is loaded, every launch gets a slot of a table in the GPU's
// memory (table.h), and the table is read when the program has waited and nothing that was launched is still running. A launch is never held up: one for
// which there is no slot is not measured.
#include "measure.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "calls.h"
#include "code.h"
#include "driver.h"
#include "file.h"
#include "functions.h"
#include "table.h"

// The Sanitizer API, as facts.
typedef struct stream_of_sanitizer *stream_handle;
enum { DOMAIN_DRIVER = 1, DOMAIN_RESOURCE = 3, DOMAIN_LAUNCH = 5, DOMAIN_GRAPHS = 10 };
enum { CONTEXT_CREATED = 3, CONTEXT_ENDS = 4, MODULE_LOADED = 9, LAUNCH_BEGIN = 1, NODE_BEGIN = 4 };
struct api_data {
    uint32_t site, pad;
    const char *function;
    const void *parameters;
    const int *result;
    const char *symbol;
    handle context;
};
struct module_data {
    handle context, module;
    size_t bytes;
    const void *cubin;
    handle library;
};
struct context_data {
    handle context;
    int device;
};
struct launch_data {
    handle context, stream;
    stream_handle stream_handle;
    handle module, function;
    const char *name;
    uint32_t grid[3], block[3], cluster[3], pad;
    uint64_t grid_id;
    void *launch;
    int device, pad1;
    handle api_context, api_stream;
    stream_handle api_stream_handle;
};
struct node_data {
    handle execution;
    uint32_t launch_id, pad;
    handle node;
    uint32_t type, pad1;
    union {
        struct launch_data launch;
        uint64_t words[18]; // as large as the largest of what a node can be
    };
    uint32_t upload;
};
static struct {
    int (*subscribe)(void **subscriber, void (*callback)(void *, uint32_t, uint32_t, const void *), void *);
    int (*enable)(uint32_t on, void *subscriber, uint32_t domain, uint32_t id);
    int (*add_patches)(const char *file, handle context);
    int (*patch_instructions)(uint32_t instruction, handle module, const char *function);
    int (*patch_module)(handle module);
    int (*launch_data)(void *launch, handle function, stream_handle stream, const void *data);
    int (*alloc)(handle context, void **pointer, size_t bytes);
    int (*upload)(void *to, void *from, size_t bytes, stream_handle stream);
    int (*download)(void *to, void *from, size_t bytes, stream_handle stream);
    int (*set)(void *pointer, int value, size_t bytes, stream_handle stream);
    int (*stream_handle)(handle context, handle stream, stream_handle *found);
    int (*stream_sync)(stream_handle stream);
} api;

static const struct {
    uint32_t instruction;
    const char *function;
} patches[] = {{3, "dagrun_access"}, {14, "dagrun_copy_to_shared"}, {30, "dagrun_bulk_to_shared"}, {35, "dagrun_bulk_to_global"}, {37, "dagrun_bulk_reduction"}};

#define STREAMS 256
#define CONTEXTS 64

// A launch that is measured, by the number of its grid.
struct grid {
    uint64_t grid, number;
};

// What is measured in one context.
struct device {
    handle context;
    int broken;
    struct table *table; // in the GPU's memory
    struct table known;  // its head
    stream_handle stream;
    uint32_t taken;            // slots that are given out; slot 0 is not
    struct grid *grids;        // [SLOTS], the launch in each slot
    handle streams[STREAMS];   // on which something was launched since the table was read
    uint32_t stream_count;
    handle events[STREAMS];    // what destroyed streams had to do
    uint32_t event_count;
    uint64_t unmeasured;
};
static struct device devices[CONTEXTS];
static unsigned device_count;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static uint64_t launches; // numbers that were given out
static char patch_file[4096];

static struct device *device_of(handle context) {
    for (unsigned k = 0; k < device_count; k++)
        if (devices[k].context == context) return &devices[k];
    if (device_count == CONTEXTS) return NULL;
    struct device *d = &devices[device_count++];
    *d = (struct device){.context = context};
    return d;
}

// make takes memory for the table: an eighth of what is free at most, since it is the program's.
static void make(struct device *d) {
    size_t available = 0, total = 0;
    calling++;
    driver.push(d->context);
    if (driver.memory_info(&available, &total)) available = 0;
    handle popped;
    driver.pop(&popped);
    struct table t = {.capacity = 8u << 20};
    size_t head = sizeof t + 8ull * SLOTS, bytes = 0;
    for (;; t.capacity /= 2) {
        t.places = 2ull * t.capacity;
        bytes = head + t.places * 12 + t.capacity * sizeof(struct entry) + 4ull * SLOTS + 4096;
        if (bytes <= available / 8 || t.capacity <= 1u << 16) break;
    }
    void *memory = NULL;
    if (api.alloc(d->context, &memory, bytes) || !memory) {
        d->broken = 1;
        calling--;
        file_note(NOTE_UNMEASURED, 0, "no GPU memory for measuring (%zu MB): launches are not measured", bytes >> 20);
        return;
    }
    uint64_t at = ((uint64_t)memory + head + 255) & ~255ull;
    t.keys = (uint64_t *)at, at += 8 * t.places;
    t.entries = (struct entry *)at, at += t.capacity * sizeof(struct entry);
    t.where = (uint32_t *)at, at += 4 * t.places;
    t.lost = (uint32_t *)at;
    uint64_t *slots = malloc(8ull * SLOTS);
    api.stream_handle(d->context, 0, &d->stream);
    d->grids = calloc(SLOTS, sizeof *d->grids);
    int wrong = !slots || !d->grids;
    for (uint64_t k = 0; slots && k < SLOTS; k++) slots[k] = k;
    wrong = wrong || api.set(memory, 0, bytes, d->stream) || api.upload(memory, &t, offsetof(struct table, slots), d->stream) ||
            api.upload((char *)memory + offsetof(struct table, slots), slots, 8ull * SLOTS, d->stream) || api.stream_sync(d->stream);
    free(slots);
    calling--;
    d->table = memory, d->known = t;
    if (wrong) d->broken = 1, file_note(NOTE_UNMEASURED, 0, "the table for measuring could not be written: launches are not measured");
}

// Reading the table.

static int by_key(const void *a, const void *b) {
    uint64_t x = ((const struct entry *)a)->key, y = ((const struct entry *)b)->key;
    return x < y ? -1 : x > y;
}

static int by_grid(const void *a, const void *b) {
    const struct grid *x = a, *y = b;
    return x->grid != y->grid ? (x->grid < y->grid ? -1 : 1) : x->number < y->number ? -1 : x->number > y->number;
}

struct runs {
    struct access_run *at;
    size_t used, room;
};

static void add_run(struct runs *r, uint64_t address, uint32_t bytes, uint32_t modes) {
    struct access_run *last = r->used ? &r->at[r->used - 1] : NULL;
    if (last && last->modes == modes && last->address + last->bytes == address && last->bytes < 1u << 30) {
        last->bytes += bytes;
        return;
    }
    if (r->used == r->room) {
        size_t room = 2 * r->room + 64;
        struct access_run *at = realloc(r->at, room * sizeof *at);
        if (!at) return;
        r->at = at, r->room = room;
    }
    r->at[r->used++] = (struct access_run){address, bytes, modes};
}

static void add_line(struct runs *r, const struct entry *e) {
    uint64_t line = (e->key & ((1ull << LINE_BITS) - 1)) << LINE_SHIFT;
    for (unsigned byte = 0; byte < 128;) {
        unsigned word = byte >> 5, bit = byte & 31;
        uint32_t read = e->read[word] >> bit, written = e->written[word] >> bit, atomic = e->atomic[word] >> bit;
        uint32_t modes = (read & 1) * RUN_READ | (written & 1) * RUN_WRITE | (atomic & 1) * RUN_ATOMIC;
        unsigned count = 1;
        if (bit == 0 && (read == 0 || read == UINT32_MAX) && (written == 0 || written == UINT32_MAX) && (atomic == 0 || atomic == UINT32_MAX)) count = 32;
        if (modes) add_run(r, line + byte, count, modes);
        byte += count;
    }
}

// read_table writes what the launches since the last time touched, and empties the table. Nothing of them may still run.
static void read_table(struct device *d) {
    if (!d->table || d->broken || d->taken == 0) return;
    uint32_t used = 0;
    calling++;
    int wrong = api.download(&used, (char *)d->table + offsetof(struct table, used), sizeof used, d->stream);
    if (used > d->known.capacity) used = d->known.capacity;
    struct entry *entries = malloc((size_t)used * sizeof *entries + 1);
    uint32_t *lost = malloc(4ull * SLOTS);
    wrong = wrong || !entries || !lost || (used && api.download(entries, d->known.entries, used * sizeof *entries, d->stream)) ||
            api.download(lost, d->known.lost, 4ull * SLOTS, d->stream);
    if (!wrong) {
        qsort(entries, used, sizeof *entries, by_key);
        struct runs r = {0};
        size_t k = 0;
        struct grid *g = d->grids + 1;
        qsort(g, d->taken, sizeof *g, by_grid);
        for (uint32_t n = 0; n < d->taken; n++) {
            r.used = 0;
            while (k < used && entries[k].key >> LINE_BITS < g[n].grid) k++; // of a launch that is not measured
            while (k < used && entries[k].key >> LINE_BITS == g[n].grid) add_line(&r, &entries[k++]);
            // a number that two launches have in one table tells of neither
            int twice = (n > 0 && g[n - 1].grid == g[n].grid) || (n + 1 < d->taken && g[n + 1].grid == g[n].grid);
            uint32_t missing = lost[g[n].grid % SLOTS];
            uint64_t words[4] = {g[n].number, missing || twice ? ACCESS_LOST : 0, missing, r.used};
            file_put(RECORD_ACCESS, words, 4, r.at, r.used * sizeof *r.at);
        }
        free(r.at);
        wrong = (used && api.set(d->known.entries, 0, used * sizeof *entries, d->stream)) || api.set(d->known.keys, 0, 8 * d->known.places, d->stream) || api.set(d->known.where, 0, 4 * d->known.places, d->stream) ||
                api.set(d->known.lost, 0, 4ull * SLOTS, d->stream) || api.set((char *)d->table + offsetof(struct table, used), 0, 4, d->stream) || api.stream_sync(d->stream);
    }
    calling--;
    free(entries), free(lost);
    if (wrong) {
        d->broken = 1;
        file_note(NOTE_UNMEASURED, d->taken, "the table of accesses could not be read: %u launches are not measured, nor are later ones", d->taken);
    }
    calling++;
    for (uint32_t k = 0; k < d->event_count; k++) driver.event_drop(d->events[k]);
    calling--;
    d->taken = 0, d->stream_count = 0, d->event_count = 0;
}

// finished tells whether nothing that was measured still runs. It asks and does not wait.
static int finished(struct device *d) {
    int done = d->stream_count <= STREAMS;
    calling++;
    driver.push(d->context);
    for (uint32_t k = 0; done && k < d->stream_count; k++) done = driver.stream_query(d->streams[k]) == 0;
    for (uint32_t k = 0; done && k < d->event_count; k++) done = driver.event_query(d->events[k]) == 0;
    handle popped;
    driver.pop(&popped);
    calling--;
    return done;
}

// A query would end a capture, so tables stay as they are while one goes on.
static void waited(void) {
    if (atomic_load(&captures) > 0) return;
    pthread_mutex_lock(&lock);
    for (unsigned k = 0; k < device_count; k++)
        if (devices[k].taken > 0 && finished(&devices[k])) read_table(&devices[k]);
    pthread_mutex_unlock(&lock);
}

// stream_ends puts an event in the place of a stream that is about to be destroyed, because its handle cannot be asked afterwards.
static void stream_ends(handle stream) {
    pthread_mutex_lock(&lock);
    for (unsigned n = 0; n < device_count; n++) {
        struct device *d = &devices[n];
        for (uint32_t k = 0; k < d->stream_count && k < STREAMS; k++) {
            if (d->streams[k] != stream) continue;
            d->streams[k] = d->streams[--d->stream_count];
            handle event = 0;
            calling++;
            driver.push(d->context);
            int wrong = d->event_count == STREAMS || driver.event_make(&event, 2) || driver.event_record(event, stream);
            handle popped;
            driver.pop(&popped);
            calling--;
            if (!wrong) d->events[d->event_count++] = event;
            else d->stream_count = STREAMS + 1; // what it had to do is not known to be finished until the context is
            break;
        }
    }
    pthread_mutex_unlock(&lock);
}

// context_ends reads the table of a context that is about to be destroyed, which waits for its work anyway.
static void context_ends(handle context) {
    pthread_mutex_lock(&lock);
    for (unsigned n = 0; n < device_count; n++) {
        struct device *d = &devices[n];
        if (d->context != context) continue;
        calling++;
        driver.push(context);
        int wrong = driver.context_wait();
        calling--;
        if (!wrong) read_table(d);
        calling++;
        handle popped;
        driver.pop(&popped);
        calling--;
        free(d->grids);
        devices[n] = devices[--device_count];
        break;
    }
    pthread_mutex_unlock(&lock);
}

static void note_stream(struct device *d, handle stream) {
    for (uint32_t k = 0; k < d->stream_count && k < STREAMS; k++)
        if (d->streams[k] == stream) return;
    if (d->stream_count < STREAMS) d->streams[d->stream_count] = stream;
    if (d->stream_count <= STREAMS) d->stream_count++; // beyond STREAMS, nothing is known to be finished until the context is
}

// launched gives a launch its slot, and returns its number, 0 if it is not measured. Patched code needs an address even then.
static uint64_t launched(const struct launch_data *l, int wanted) {
    uint64_t number = 0;
    if (l->name && code_flags(l->name) & FUNCTION_UNPATCHED) return 0;
    pthread_mutex_lock(&lock);
    struct device *d = device_of(l->context);
    if (d && !d->table && !d->broken) make(d);
    if (d && d->table) {
        uint32_t slot = 0;
        if (wanted && !d->broken && d->taken + 1 < SLOTS) {
            slot = ++d->taken;
            number = ++launches;
            d->grids[slot] = (struct grid){l->grid_id & GRID_MASK, number};
        }
        if (slot) note_stream(d, l->api_stream ? l->api_stream : l->stream);
        else if (wanted) d->unmeasured++;
        api.launch_data(l->launch, l->function, l->stream_handle, &((struct table *)d->table)->slots[slot]);
    }
    pthread_mutex_unlock(&lock);
    return number;
}

static void module_loaded(const struct module_data *m) {
    pthread_mutex_lock(&lock);
    int nccl = m->cubin ? code_read(m->cubin, m->bytes) : 0;
    int wrong = nccl;
    for (size_t k = 0; !wrong && k < sizeof patches / sizeof *patches; k++) wrong = api.patch_instructions(patches[k].instruction, m->module, patches[k].function);
    if (!wrong) wrong = api.patch_module(m->module);
    if (wrong && m->cubin) code_unpatched(m->cubin, m->bytes);
    if (wrong && !nccl) file_note(NOTE_UNMEASURED, (uint64_t)wrong, "a module could not be patched (Sanitizer API error %d): its launches are not measured", wrong);
    pthread_mutex_unlock(&lock);
}

static void graph_node(const struct node_data *n) {
    if (n->type != NODE_KERNEL) return;
    uint64_t number = launched(&n->launch, !n->upload);
    if (n->upload) return;
    const struct launch_data *l = &n->launch;
    calling++;
    function_known(l->function, l->name);
    calling--;
    uint64_t words[17] = {call_began, call_began, file_clock(), API_cuGraphLaunch, l->context, 0, n->execution, call_began, n->node, number,
                          l->function, l->grid[0], l->grid[1], l->grid[2], l->block[0], l->block[1], l->block[2]};
    file_put(CALL_NODE_ACCESS, words, 17, NULL, 0);
}

static void callback(void *nothing, uint32_t domain, uint32_t id, const void *data) {
    (void)nothing;
    switch (domain) {
    case DOMAIN_DRIVER: {
        const struct api_data *a = data;
        if (calling || !calls_wanted(id)) return;
        if (a->site == 0) calls_enter(id, a->parameters);
        else calls_exit(id, a->parameters, a->result ? *a->result : 0, a->context, a->symbol, a->function);
        return;
    }
    case DOMAIN_RESOURCE:
        if (id == MODULE_LOADED) module_loaded(data);
        if (id == CONTEXT_ENDS) context_ends(((const struct context_data *)data)->context);
        if (id == CONTEXT_CREATED) {
            handle context = ((const struct context_data *)data)->context;
            int wrong = api.add_patches(patch_file, context);
            if (wrong) file_note(NOTE_UNMEASURED, (uint64_t)wrong, "the patches could not be loaded (Sanitizer API error %d): launches are not measured", wrong);
        }
        return;
    case DOMAIN_LAUNCH:
        if (id == LAUNCH_BEGIN && !calling) measured = launched(data, 1);
        return;
    case DOMAIN_GRAPHS:
        if (id == NODE_BEGIN) graph_node(data);
        return;
    default: return;
    }
}

static int find(void *library, const char *name, void *at) {
    void *found = dlsym(library, name);
    if (!found) fprintf(stderr, "dagrun: the Sanitizer API has no function %s; it is too old for measuring\n", name);
    memcpy(at, &found, sizeof found);
    return !found;
}

int measure_start(const char *sanitizer, const char *file) {
    void *library = dlopen(sanitizer, RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        fprintf(stderr, "dagrun: %s\n", dlerror());
        return 1;
    }
    snprintf(patch_file, sizeof patch_file, "%s", file);
    if (find(library, "sanitizerSubscribe", &api.subscribe) || find(library, "sanitizerEnableCallback", &api.enable) || find(library, "sanitizerAddPatchesFromFile", &api.add_patches) ||
        find(library, "sanitizerPatchInstructions", &api.patch_instructions) || find(library, "sanitizerPatchModule", &api.patch_module) ||
        find(library, "sanitizerSetLaunchCallbackData", &api.launch_data) || find(library, "sanitizerAlloc", &api.alloc) || find(library, "sanitizerMemcpyHostToDeviceAsync", &api.upload) ||
        find(library, "sanitizerMemcpyDeviceToHost", &api.download) || find(library, "sanitizerMemset", &api.set) || find(library, "sanitizerGetStreamHandle", &api.stream_handle) ||
        find(library, "sanitizerStreamSynchronize", &api.stream_sync))
        return 1;
    void *subscriber;
    int wrong = api.subscribe(&subscriber, callback, NULL);
    if (wrong) {
        fprintf(stderr, "dagrun: the Sanitizer API refuses to be used (error %d): is another tool attached?\n", wrong);
        return 1;
    }
    function_flags_of = code_flags;
    calls_waited = waited;
    calls_stream_ends = stream_ends;
    static const struct {
        uint32_t domain, id;
    } events[] = {{DOMAIN_RESOURCE, CONTEXT_CREATED}, {DOMAIN_RESOURCE, CONTEXT_ENDS}, {DOMAIN_RESOURCE, MODULE_LOADED}, {DOMAIN_LAUNCH, LAUNCH_BEGIN}, {DOMAIN_GRAPHS, NODE_BEGIN}};
    for (size_t k = 0; k < sizeof events / sizeof *events; k++) wrong |= api.enable(1, subscriber, events[k].domain, events[k].id);
    for (uint32_t id = 1; id < API_COUNT; id++)
        if (calls_wanted(id)) api.enable(1, subscriber, DOMAIN_DRIVER, id); // a call that an older driver lacks is refused
    if (wrong) fprintf(stderr, "dagrun: the Sanitizer API refuses some callbacks (error %d): measuring may be incomplete\n", wrong);
    return 0;
}

void measure_end(void) {
    calling++;
    for (int k = 0; k < 100; k++) { // what still runs gets a second to finish
        int left = 0;
        pthread_mutex_lock(&lock);
        for (unsigned n = 0; n < device_count; n++) {
            if (devices[n].taken == 0) continue;
            if (finished(&devices[n])) read_table(&devices[n]);
            else left = 1;
        }
        pthread_mutex_unlock(&lock);
        if (!left) break;
        struct timespec pause = {0, 10000000};
        nanosleep(&pause, NULL);
    }
    for (unsigned n = 0; n < device_count; n++) {
        uint64_t left = devices[n].unmeasured + devices[n].taken;
        if (left) file_note(NOTE_UNMEASURED, left, "%llu launches were not measured: the table was full, or they had not ended", (unsigned long long)left);
    }
    calling--;
}
