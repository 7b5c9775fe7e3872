// Graphs, as the driver tells them. A graph can be asked while it exists, and is never changed here.
#include "graphs.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "contents.h"
#include "file.h"
#include "functions.h"
#include "host.h"

static uint64_t side(uint32_t kind, address host, address device, handle array, size_t x, size_t y, size_t z, size_t pitch, size_t height) {
    if (kind == MEMORY_ARRAY) return array;
    return (kind == MEMORY_HOST ? host : device) + x + y * pitch + z * pitch * height;
}

void copy_words(const struct copy_3d *c, int peer, uint64_t words[13]) {
    words[0] = side(c->destination_kind, c->destination_host, c->destination_device, c->destination_array, c->destination_x, c->destination_y, c->destination_z, c->destination_pitch, c->destination_height);
    words[1] = side(c->source_kind, c->source_host, c->source_device, c->source_array, c->source_x, c->source_y, c->source_z, c->source_pitch, c->source_height);
    words[2] = c->width, words[3] = c->height ? c->height : 1, words[4] = c->depth ? c->depth : 1;
    words[5] = c->destination_pitch, words[6] = c->source_pitch;
    words[7] = c->destination_pitch * c->destination_height, words[8] = c->source_pitch * c->source_height;
    words[9] = c->destination_kind, words[10] = c->source_kind;
    words[11] = peer ? c->destination_reserved : 0, words[12] = peer ? c->source_reserved : 0;
}

struct bytes {
    unsigned char *at;
    size_t used, room;
    int full;
};

static void append(struct bytes *b, const void *from, size_t count) {
    if (count == 0) return; // from may be NULL then
    if (b->used + count > b->room) {
        size_t room = 2 * (b->used + count) + 4096;
        unsigned char *at = realloc(b->at, room);
        if (!at) {
            b->full = 1;
            return;
        }
        b->at = at, b->room = room;
    }
    memcpy(b->at + b->used, from, count);
    b->used += count;
}

static void kernel_node(handle node, struct bytes *b) {
    struct kernel_node k;
    memset(&k, 0, sizeof k);
    if (!driver.node_kernel || driver.node_kernel(node, &k)) return;
    handle function = k.function ? k.function : k.kernel;
    uint64_t words[10] = {function, k.grid[0], k.grid[1], k.grid[2], k.block[0], k.block[1], k.block[2], k.shared};
    unsigned char value[64] = {0};
    if (driver.node_attribute && !driver.node_attribute(node, ATTRIBUTE_COOPERATIVE, value) && *(int *)value) words[8] |= LAUNCH_COOPERATIVE;
    memset(value, 0, sizeof value);
    if (driver.node_attribute && !driver.node_attribute(node, ATTRIBUTE_CLUSTER, value)) {
        uint32_t *cluster = (uint32_t *)value;
        words[9] = cluster[0] | (uint64_t)cluster[1] << 16 | (uint64_t)cluster[2] << 32;
    }
    append(b, words, sizeof words);
    function_known(function, NULL);
    static __thread unsigned char parameters[1 << 16];
    append(b, parameters, function_bytes(function, k.parameters, k.extra, parameters, sizeof parameters));
}

// Conditional nodes, as they were made.
struct conditional {
    handle node;
    uint64_t kind;
    size_t count;
    struct conditional *next;
    handle bodies[];
};
static struct conditional *conditionals;
static pthread_mutex_t adding = PTHREAD_MUTEX_INITIALIZER;

void graph_conditional(handle node, uint64_t kind, const handle *bodies, size_t count) {
    struct conditional *c = count < 1u << 16 ? malloc(sizeof *c + count * sizeof *bodies) : NULL;
    if (!c) return;
    c->node = node, c->kind = kind, c->count = count;
    memcpy(c->bodies, bodies, count * sizeof *bodies);
    pthread_mutex_lock(&adding);
    c->next = conditionals, conditionals = c; // a handle may be used again: the newest is found first
    pthread_mutex_unlock(&adding);
}

static void conditional_node(uint64_t sequence, handle node, struct bytes *b) {
    pthread_mutex_lock(&adding);
    const struct conditional *c = conditionals;
    pthread_mutex_unlock(&adding);
    while (c && c->node != node) c = c->next;
    if (!c) return;
    uint64_t words[2] = {c->kind, c->count};
    for (size_t k = 0; k < c->count; k++) graph_write(sequence, c->bodies[k], 0);
    append(b, words, sizeof words);
    append(b, c->bodies, c->count * sizeof *c->bodies);
}

static void describe(uint64_t sequence, handle node, int type, struct bytes *b) {
    switch (type) {
    case NODE_KERNEL: kernel_node(node, b); break;
    case NODE_COPY: {
        struct copy_3d c;
        uint64_t words[13] = {0};
        memset(&c, 0, sizeof c);
        if (!driver.node_copy || driver.node_copy(node, &c)) return;
        copy_words(&c, 0, words);
        append(b, words, 13 * 8);
        break;
    }
    case NODE_SET: {
        struct memset_node s;
        memset(&s, 0, sizeof s);
        if (!driver.node_set || driver.node_set(node, &s)) return;
        uint64_t words[6] = {s.destination, s.width * s.element, s.height ? s.height : 1, s.pitch, s.value, s.element};
        append(b, words, sizeof words);
        break;
    }
    case NODE_HOST: {
        struct host_node h = {0, 0};
        host_function();
        if (driver.node_host && !driver.node_host(node, &h)) append(b, &h, sizeof h);
        break;
    }
    case NODE_GRAPH: {
        handle child = 0;
        if (!driver.node_graph || driver.node_graph(node, &child)) return;
        graph_write(sequence, child, 0);
        append(b, &child, sizeof child);
        break;
    }
    case NODE_WAIT:
    case NODE_RECORD: {
        handle event = 0;
        int (*ask)(handle, handle *) = type == NODE_WAIT ? driver.node_wait : driver.node_record;
        if (ask && !ask(node, &event)) append(b, &event, sizeof event);
        break;
    }
    case NODE_ALLOC: {
        struct alloc_node a;
        memset(&a, 0, sizeof a);
        if (!driver.node_alloc || driver.node_alloc(node, &a)) return;
        uint64_t words[2] = {a.pointer, a.bytes};
        append(b, words, sizeof words);
        break;
    }
    case NODE_CONDITIONAL: conditional_node(sequence, node, b); break;
    case NODE_FREE: {
        address pointer = 0;
        if (driver.node_free && !driver.node_free(node, &pointer)) append(b, &pointer, sizeof pointer);
        break;
    }
    default: break;
    }
}

// index_of finds a node among sorted pairs of handle and index.
static int by_handle(const void *a, const void *b) {
    uint64_t x = ((const uint64_t *)a)[0], y = ((const uint64_t *)b)[0];
    return x < y ? -1 : x > y;
}

static uint32_t index_of(const uint64_t (*sorted)[2], size_t count, handle node) {
    uint64_t key[2] = {node, 0};
    const uint64_t(*found)[2] = bsearch(key, sorted, count, sizeof *sorted, by_handle);
    return found ? (uint32_t)(*found)[1] : UINT32_MAX;
}

void graph_write(uint64_t sequence, handle graph, handle execution) {
    size_t nodes = 0, edges = 0;
    calling++;
    int with_data = driver.graph_edges2 != NULL;
    if (!driver.graph_nodes || driver.graph_nodes(graph, NULL, &nodes)) nodes = 0;
    if (with_data ? driver.graph_edges2(graph, NULL, NULL, NULL, &edges) : !driver.graph_edges || driver.graph_edges(graph, NULL, NULL, &edges)) edges = 0;
    handle *list = calloc(nodes + 1, sizeof *list), *from = calloc(edges + 1, sizeof *from), *to = calloc(edges + 1, sizeof *to);
    struct edge_data *data = calloc(edges + 1, sizeof *data);
    uint64_t(*sorted)[2] = calloc(nodes + 1, sizeof *sorted);
    struct graph_node *described = calloc(nodes + 1, sizeof *described);
    struct bytes all = {0}, bodies = {0};
    if (!list || !from || !to || !data || !sorted || !described) goto out;
    if (nodes && driver.graph_nodes(graph, list, &nodes)) goto out;
    if (edges && (with_data ? driver.graph_edges2(graph, from, to, data, &edges) : driver.graph_edges(graph, from, to, &edges))) goto out;
    for (size_t k = 0; k < nodes; k++) sorted[k][0] = list[k], sorted[k][1] = k;
    qsort(sorted, nodes, sizeof *sorted, by_handle);
    for (size_t k = 0; k < nodes; k++) {
        int type = NODE_EMPTY;
        if (driver.node_type) driver.node_type(list[k], &type);
        size_t before = bodies.used;
        describe(sequence, list[k], type, &bodies);
        contents_words(bodies.at + before, bodies.used - before);
        described[k] = (struct graph_node){list[k], (uint32_t)type, (uint32_t)(bodies.used - before), before};
    }
    append(&all, described, nodes * sizeof *described);
    for (size_t k = 0; k < edges; k++) {
        struct graph_edge e = {index_of(sorted, nodes, from[k]), index_of(sorted, nodes, to[k]), data[k].type, data[k].from_port | (uint32_t)data[k].to_port << 8};
        append(&all, &e, sizeof e);
    }
    append(&all, bodies.at, bodies.used);
    uint64_t words[5] = {sequence, graph, execution, nodes, edges};
    if (!all.full && !bodies.full) file_put(RECORD_GRAPH, words, 5, all.at, all.used);
out:
    free(list), free(from), free(to), free(data), free(sorted), free(described), free(all.at), free(bodies.at);
    calling--;
}
