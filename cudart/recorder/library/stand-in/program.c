// A program for the tests of the recorder, which uses the driver as programs do. Its first argument says what it does.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static int (*launch)(uint64_t, uint32_t, uint32_t, uint32_t, uint32_t, uint32_t, uint32_t, uint32_t, uint64_t, void **, void **);
static int (*alloc)(uint64_t *, size_t);
static int (*make_stream)(uint64_t *, unsigned);
static int (*make_event)(uint64_t *, unsigned);
static int (*record)(uint64_t, uint64_t);
static int (*wait_event)(uint64_t, uint64_t, unsigned);
static int (*synchronize)(void);
static void *library;
static uint64_t memory;

__attribute__((noinline)) static void launch_on(uint64_t stream) {
    int n = 1000;
    void *parameters[] = {&memory, &n};
    launch(0xf1, 1, 1, 1, 32, 1, 1, 0, stream, parameters, NULL);
}

static void launch_it(uint64_t function) {
    int n = 1000;
    void *parameters[] = {&memory, &n};
    launch(function, 1, 1, 1, 32, 1, 1, 0, 0, parameters, NULL);
}

static int each; // launches of a thread

static void *launches(void *nothing) {
    (void)nothing;
    uint64_t stream;
    make_stream(&stream, 1);
    for (int k = 0; k < each; k++) launch_on(stream);
    return NULL;
}

static void find(const char *name, void *at) {
    void *found = dlsym(library, name);
    if (!found) fprintf(stderr, "no %s\n", name), exit(99);
    memcpy(at, &found, sizeof found);
}

static void fill(int with, size_t bytes, int distinct) {
    memset((void *)memory, with, bytes);
    for (size_t k = 0; distinct && k + 8 <= bytes; k += 1 << 20) memcpy((char *)memory + k, &k, 8); // no stretch is like another
}

// graphs launches a graph twice, instantiates it again and launches that, and once more. Its kernel is given memory that is filled anew before each launch.
static void graphs(size_t bytes, int distinct) {
    int (*begin)(uint64_t, int), (*end)(uint64_t, uint64_t *), (*instantiate)(uint64_t *, uint64_t, uint64_t), (*run)(uint64_t, uint64_t);
    find("cuStreamBeginCapture_v2", &begin), find("cuStreamEndCapture", &end), find("cuGraphInstantiateWithFlags", &instantiate), find("cuGraphLaunch", &run);
    uint64_t stream, graph, executions[3];
    alloc(&memory, bytes + 10);
    make_stream(&stream, 1);
    begin(stream, 0), launch_on(stream), launch_on(stream), end(stream, &graph);
    for (int k = 0; k < 3; k++) instantiate(&executions[k], graph, 0);
    fill(7, bytes + 10, distinct), run(executions[0], stream);
    fill(8, bytes + 10, distinct), run(executions[0], stream);
    fill(9, bytes + 10, distinct), run(executions[1], stream);
    fill(7, bytes + 10, distinct), run(executions[2], stream);
    synchronize();
}

// modules loads a fatbin with PTX and cubins of four generations, in the wrapper that the compiler makes; then PTX, twice.
static void modules(void) {
    int (*load)(uint64_t *, const void *), (*load_library)(uint64_t *, const void *), (*get)(uint64_t *, uint64_t);
    find("cuKernelGetFunction", &get), find("cuModuleLoadData", &load), find("cuLibraryLoadData", &load_library);
    struct part {
        uint16_t kind, version;
        uint32_t head;
        uint64_t bytes;
        uint32_t packed, unknown;
        uint16_t minor, major;
        uint32_t architecture;
        char code[8];
    };
    static const struct {
        uint32_t magic;
        uint16_t version, head;
        uint64_t bytes;
        struct part parts[5];
    } fatbin = {0xba55ed50, 1, 16, 5 * sizeof(struct part),
                {{1, 257, 32, 8, 0, 0, 0, 9, 75, "ptx"}, {2, 257, 32, 8, 0, 0, 0, 9, 80, "80"}, {2, 257, 32, 8, 0, 0, 0, 9, 90, "90"}, {2, 257, 32, 8, 0, 0, 0, 9, 100, "100"}, {2, 257, 32, 8, 0, 0, 0, 9, 120, "120"}}};
    const struct {
        uint32_t magic, version;
        const void *at, *name;
    } wrapper = {0x466243b1, 1, &fatbin, NULL};
    uint64_t made, function;
    load_library(&made, &wrapper), get(&function, made + 1), launch_it(made + 1), launch_it(function), load(&made, "// one\n.version 8.0"), load(&made, "// one\n.version 8.0");
}

// others makes one call of each kind that few programs make.
static void others(void) {
    int (*launch_ex)(const void *, uint64_t, void **, void **), (*pool)(uint64_t *, const void *), (*set)(uint64_t, int, void *), (*unpool)(uint64_t), (*get)(uint64_t *, size_t, uint64_t);
    int (*add)(uint64_t *, uint64_t, const uint64_t *, const void *, size_t, void *), (*retain)(uint64_t *, int), (*reset)(int), (*table)(const void **, const unsigned char *);
    int (*begin)(uint64_t, int), (*end)(uint64_t, uint64_t *), (*instantiate)(uint64_t *, uint64_t, uint64_t);
    find("cuLaunchKernelEx", &launch_ex), find("cuMemPoolCreate", &pool), find("cuMemPoolSetAttribute", &set), find("cuMemPoolDestroy", &unpool), find("cuMemAllocAsync", &get);
    find("cuGraphAddNode_v2", &add), find("cuDevicePrimaryCtxRetain", &retain), find("cuDevicePrimaryCtxReset_v2", &reset), find("cuGetExportTable", &table);
    find("cuStreamBeginCapture_v2", &begin), find("cuStreamEndCapture", &end), find("cuGraphInstantiateWithFlags", &instantiate);
    uint64_t context, stream, event, at, made, graph, node, threshold = 1ull << 40;
    uint32_t no = 0;
    const void *functions;
    retain(&context, 1), make_stream(&stream, 1), make_event(&event, 2);
    struct {
        uint32_t id, pad;
        struct {
            uint64_t event;
            int flags, trigger;
            char more[48];
        } value;
    } attributes[2] = {{7, 0, {event, 0, 1, ""}}, {12, 0, {event, 0, 0, ""}}};
    struct {
        uint32_t grid[3], block[3], shared, pad;
        uint64_t stream;
        const void *attributes;
        uint32_t count;
    } config = {{1, 1, 1}, {32, 1, 1}, 0, 0, stream, &attributes[0], 1};
    int n = 1000;
    void *parameters[] = {&memory, &n};
    launch_ex(&config, 0xf1, parameters, NULL);
    config.attributes = &attributes[1], launch_ex(&config, 0xf1, parameters, NULL);
    pool(&made, NULL), set(made, 1, &no), set(made, 4, &threshold), get(&at, 64, stream), unpool(made);
    struct {
        uint32_t type, pad[3];
        uint64_t handle;
        uint32_t conditional, count;
        const uint64_t *bodies;
        uint64_t room[32];
    } condition = {13, {0}, 5, 1, 1, NULL, {0}};
    begin(stream, 0), get(&at, 640, stream), end(stream, &graph);
    add(&node, graph, NULL, NULL, 0, &condition), instantiate(&made, graph, 0);
    table(&functions, (const unsigned char *)"\x6b\xd5\xfb\x6c\x5b\xf4\xe7\x4a\x89\x87\xd9\x39\x12\xfd\x9d\xf9"); // as the CUDA runtime does
    table(&functions, (const unsigned char *)"0123456789abcdef"), table(&functions, (const unsigned char *)"0123456789abcdef");
    reset(1);
}

// touches reads and writes pinned memory: what is to be noted is said at the end of the line, after "step" if only single steps show it.
static volatile char *pinned;

static void *touch(void *at) {
    ((volatile char *)at)[0]++;
    return NULL;
}

static void touched(void *at) { touch(at); }

static void own_handler(int number) {
    static const char text[] = "done touches\n";
    (void)number;
    if (write(1, text, sizeof text - 1) > 0) _exit(7);
}

static void touches(void) {
    int (*pin)(uint64_t *, size_t, unsigned), (*unpin)(uint64_t), (*copy)(uint64_t, uint64_t, size_t, uint64_t), (*call)(uint64_t, void (*)(void *), void *), (*pin_it)(void *, size_t, unsigned);
    find("cuMemHostAlloc", &pin), find("cuMemFreeHost", &unpin), find("cuMemcpyHtoDAsync_v2", &copy), find("cuLaunchHostFunc", &call), find("cuMemHostRegister_v2", &pin_it);
    long page = sysconf(_SC_PAGESIZE);
    uint64_t at;
    int ends[2];
    pthread_t thread;
    pin(&at, 3 * page, 0);
    pinned = (volatile char *)at;
    pinned[0] = 1;
    launch_on(0);
    char a = pinned[100]; // note: read 100
    char b = pinned[101]; // step: read 101
    pinned[102] = a + b; // note: write 102
    pinned[page + 5] = 1; // note: write page 5
    a = pinned[page + 5]; // step: read page 5
    pinned[page + 6] = a; // step: write page 6
    if (pipe(ends) || write(ends[1], (const void *)(pinned + 2 * page), 1) >= 0) exit(95); // a system call cannot read what is closed
    copy(memory, at, 200, 0);
    a = pinned[1]; // note: read 1
    for (int k = 0; k < 100; k++) b += pinned[2]; // step: read 2, until there were 64
    launch_on(0);
    pthread_create(&thread, NULL, touch, (void *)pinned), pthread_join(thread, NULL); // note: read 0, write 0, by a thread
    char *buffer = (char *)((uint64_t)malloc(4 * page) | 8);
    pin_it(buffer, 3 * page, 0);
    launch_on(0);
    buffer[0] = a; // not a page of its own
    buffer[page] = buffer[0]; // note: write of the registered memory
    signal(SIGSEGV, own_handler); // the recorder's is put before it again by the next call
    launch_on(0);
    a = pinned[7]; // note: read 7
    launch_on(0);
    call(0, touched, (void *)pinned);
    launch_on(0);
    unpin(at);
    pinned[0] = 2; // given back
    pin(&at, 1025 * page, 0); // in pieces of three pages
    launch_on(0);
    volatile char *large = (char *)at;
    large[4 * page] = 1; // note: write of the second piece
    a = large[5 * page]; // step: read of the second piece
    large[3 * page] = a; // step: write of the second piece
    large[1024 * page] = 1; // note: write of the last piece
    *(volatile char *)8 = 1; // the program's own handler
}

int main(int count, char **arguments) {
    library = dlopen("libcuda.so.1", RTLD_NOW);
    if (count < 2 || !library) return 98;
    int (*init)(unsigned);
    find("cuInit", &init), find("cuLaunchKernel", &launch), find("cuMemAlloc_v2", &alloc), find("cuStreamCreate", &make_stream);
    find("cuEventCreate", &make_event), find("cuEventRecord", &record), find("cuStreamWaitEvent", &wait_event), find("cuCtxSynchronize", &synchronize);
    const char *what = arguments[1];
    if (!strcmp(what, "touches")) signal(SIGSEGV, own_handler);
    if (init(0)) return 97;
    each = count > 2 ? atoi(arguments[2]) : 1;
    alloc(&memory, 4000);
    if (!strcmp(what, "two") || !strcmp(what, "waits")) { // two launches on two streams, without and with a wait
        uint64_t streams[2], event;
        make_stream(&streams[0], 1), make_stream(&streams[1], 1), make_event(&event, 2);
        launch_on(streams[0]);
        if (!strcmp(what, "waits")) record(event, streams[0]), wait_event(streams[1], event, 0);
        launch_on(streams[1]);
        synchronize();
    } else if (!strcmp(what, "threads")) {
        pthread_t threads[64];
        for (int k = 0; k < 64; k++) pthread_create(&threads[k], NULL, launches, NULL);
        for (int k = 0; k < 64; k++) pthread_join(threads[k], NULL);
    } else if (!strcmp(what, "fork")) {
        launch_on(0);
        if (fork() == 0) {
            launch_on(0), launch_on(0);
            exit(0);
        }
        wait(NULL);
        launch_on(0);
    } else if (!strcmp(what, "graph")) {
        graphs((size_t)each << 20, count > 3);
    } else if (!strcmp(what, "touches")) {
        touches();
    } else if (!strcmp(what, "others")) {
        others();
    } else if (!strcmp(what, "modules")) {
        modules();
    } else if (!strcmp(what, "forever")) {
        for (;;) launch_on(0);
    } else {
        for (int k = 0; k < each; k++) launch_on(0);
    }
    printf("done %s\n", what);
    return 7;
}
