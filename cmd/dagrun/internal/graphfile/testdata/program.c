// A program that uses dagrun.h as C or C++ programs do, against the driver of our own (driver.c). What it does is named by its first argument.
#define DAGRUN_IMPLEMENTATION
#include "dagrun.h"

#include <pthread.h>

#ifdef __cplusplus
extern "C" {
#endif
int stand_in_live(void);
int stand_in_calls(void);
void stand_in_fail(int call);
void stand_in_lacks(const char *function);
void stand_in_seed(uint32_t seed);
void *stand_in_context(int number);
void *stand_in_current(void);
int stand_in_pending(void);
int stand_in_wait(void);
void stand_in_forget(void);
void stand_in_move(void *at, int device);
void stand_in_begin_capture(void);
void stand_in_end_capture(int times);
int cuGetProcAddress(const char *name, void **at, int version, uint64_t flags);
#ifdef __cplusplus
}
#endif

enum { COUNT = 1000 };

#define EXPECT(what) \
    do { \
        if (!(what)) { \
            fprintf(stderr, "line %d: %s: the last error is: %s\n", __LINE__, #what, dagrun_error()); \
            exit(1); \
        } \
    } while (0)

static struct dg_driver driver;

static void *device_memory(size_t bytes) {
    uint64_t at = 0;
    void *popped;
    driver.cuCtxPushCurrent(stand_in_context(0));
    EXPECT(!driver.cuMemAlloc(&at, bytes));
    EXPECT(!driver.cuCtxPopCurrent(&popped));
    return (void *)(uintptr_t)at;
}

// What saxpy.yaml gives for x as it is in the file, or times `scale`.
static void expect_result(const float *out, float scale) {
    for (int k = 0; k < COUNT; k++) EXPECT(out[k] == 2.0f * (scale * (float)k / 2) + 1);
}

static dagrun_buffer described(dagrun_graph *g, const char *name) {
    dagrun_buffer b;
    for (unsigned k = 0;; k++) {
        memset(&b, 0, sizeof b);
        b.size = sizeof b;
        EXPECT(!dagrun_describe(g, k, &b));
        if (!strcmp(b.name, name)) return b;
    }
}

// The whole life of a graph, with memory of its own and of others.
static void lives(const char *file) {
    dagrun_graph *g = NULL;
    dagrun_buffer b;
    float *x = (float *)malloc(COUNT * sizeof *x), *result, *on_device;
    for (int k = 0; k < COUNT; k++) x[k] = 3 * (float)k / 2;
    EXPECT(!dagrun_load(&g, file, NULL) && g);
    b = described(g, "out");
    EXPECT(b.host && b.result && !b.given && b.bytes == COUNT * 4 && b.dimensions == 1 && b.shape[0] == COUNT && !strcmp(b.type, "f32"));
    result = (float *)b.pointer;
    b = described(g, "x");
    EXPECT(b.host && b.given && !b.result && ((float *)b.pointer)[5] == 2.5f);
    b = described(g, "d_x");
    EXPECT(!b.host && !b.pointer);
    EXPECT(dagrun_describe(g, 5, &b) == 500 && strstr(dagrun_error(), "no buffer 5"));

    EXPECT(!dagrun_replay(g, NULL) && result[7] == 0 && !dagrun_wait(g, NULL)); // nothing ran before somebody waited
    expect_result(result, 1);

    EXPECT(!dagrun_bind(g, "x", x) && !dagrun_replay(g, NULL)); // memory of the host that the driver does not know
    on_device = (float *)device_memory(COUNT * 4);
    EXPECT(!dagrun_bind(g, "out", on_device)); // the replay before this goes to where the result was, and the next one not
    memset(result, 0, COUNT * 4);
    EXPECT(stand_in_pending() == 1 && !dagrun_replay(g, NULL)); // the graph is made again, because a copy to the host becomes one on the device
    EXPECT(!stand_in_wait());
    expect_result(result, 3), expect_result(on_device, 3);

    EXPECT(!dagrun_bind(g, "d_x", device_memory(COUNT * 4)) && !dagrun_bind(g, "d_y", device_memory(COUNT * 4)));
    memset(on_device, 0, COUNT * 4);
    EXPECT(!dagrun_replay(g, NULL) && !stand_in_wait());
    expect_result(on_device, 3);
    EXPECT(((float *)described(g, "d_y").pointer)[9] == on_device[9]);

    EXPECT(!dagrun_bind(g, "x", NULL) && !dagrun_bind(g, "out", NULL) && !dagrun_bind(g, "d_x", NULL) && !dagrun_replay(g, NULL) && !stand_in_wait());
    expect_result(result, 1);

    EXPECT(!dagrun_bind(g, "out", on_device) && !dagrun_replay(g, NULL));
    EXPECT(!dagrun_free(g)); // waits
    expect_result(on_device, 1);
    EXPECT(!dagrun_free(NULL));
    free(x);
}

// Replays in every order that the edges allow give the same, each with another x.
static void orders(const char *file) {
    dagrun_graph *g = NULL;
    EXPECT(!dagrun_load(&g, file, NULL));
    for (uint32_t seed = 0; seed < 200; seed++) {
        float *out = (float *)described(g, "out").pointer, *x = (float *)described(g, "x").pointer;
        for (int k = 0; k < COUNT; k++) x[k] = (float)(seed + 1) * (float)k / 2, out[k] = 0;
        stand_in_seed(seed);
        EXPECT(!dagrun_replay(g, NULL) && !stand_in_wait());
        expect_result(out, (float)(seed + 1));
    }
    EXPECT(!dagrun_free(g));
}

// Replays in a capture are part of what is captured, one after the other, with what was bound then.
static void captures(const char *file) {
    dagrun_graph *g = NULL;
    float *x = (float *)malloc(COUNT * sizeof *x), *out;
    for (int k = 0; k < COUNT; k++) x[k] = 3 * (float)k / 2;
    EXPECT(!dagrun_load(&g, file, NULL));
    stand_in_begin_capture();
    EXPECT(dagrun_replay(g, NULL) == 900 && strstr(dagrun_error(), "cuMemHostAlloc")); // there was no replay before
    stand_in_end_capture(0);
    out = (float *)described(g, "out").pointer;
    EXPECT(!dagrun_replay(g, NULL) && !stand_in_wait());
    for (uint32_t seed = 0; seed < 50; seed++) {
        float *second = (float *)device_memory(COUNT * 4);
        memset(out, 0, COUNT * 4), stand_in_seed(seed);
        stand_in_begin_capture();
        EXPECT(!dagrun_bind(g, "x", x) && !dagrun_replay(g, NULL) && !dagrun_bind(g, "out", second) && !dagrun_replay(g, NULL));
        EXPECT(!dagrun_bind(g, "x", out) && !dagrun_replay(g, NULL));
        EXPECT(dagrun_free(g) == 900); // a replay before may be in flight, and nobody can wait for it now
        stand_in_end_capture(1);
        EXPECT(!dagrun_bind(g, "x", NULL) && !dagrun_bind(g, "out", NULL)); // which concerns later replays
        EXPECT(stand_in_pending() == 1 && out[7] == 0 && !stand_in_wait());
        expect_result(out, 3);
        for (int k = 0; k < COUNT; k++) EXPECT(second[k] == 2 * out[k] + 1);
        EXPECT(!driver.cuCtxPushCurrent(stand_in_context(0)) && !driver.cuMemFree((uint64_t)(uintptr_t)second) && !driver.cuCtxPopCurrent((void **)&second));
    }
    EXPECT(!dagrun_replay(g, NULL) && !stand_in_wait());
    expect_result(out, 1);
    EXPECT(!dagrun_free(g));
    free(x);
}

// Each mistake gives a message that names it, and leaves the graph as it was.
static void mistakes(const char *file) {
    dagrun_graph *g = NULL;
    dagrun_options o;
    char plain[64];
    char *other;
    memset(&o, 0, sizeof o);
    o.size = sizeof o, o.device = 1;
    EXPECT(!strcmp(dagrun_error(), ""));
    EXPECT(dagrun_load(&g, "none.dagrun", NULL) == 301 && !g && strstr(dagrun_error(), "none.dagrun: No such file"));
    EXPECT(dagrun_load(&g, "/", NULL) == 301 && dagrun_load(NULL, file, NULL) == 1 && dagrun_load(&g, NULL, NULL) == 1);
    EXPECT(dagrun_load(&g, file, &o) == 1 && strstr(dagrun_error(), "cuDeviceGet"));
    EXPECT(!dagrun_load(&g, file, NULL));
    EXPECT(dagrun_bind(g, "z", plain) == 500 && strstr(dagrun_error(), "has no buffer z"));
    EXPECT(dagrun_bind(g, "d_x", plain) == 1 && strstr(dagrun_error(), "kernels use buffer d_x"));
    other = (char *)device_memory(COUNT * 4 + 4);
    EXPECT(dagrun_bind(g, "d_x", other + 4) == 1 && strstr(dagrun_error(), "no multiple of 16"));
    stand_in_move(other, 1);
    EXPECT(dagrun_bind(g, "d_x", other) == 1 && strstr(dagrun_error(), "on device 0, and this pointer is to memory of device 1"));
    EXPECT(dagrun_bind(NULL, "x", plain) == 1 && dagrun_bind(g, NULL, plain) == 1 && dagrun_replay(NULL, NULL) == 1 && dagrun_wait(NULL, NULL) == 1 &&
        dagrun_describe(g, 0, NULL) == 1);
    EXPECT(!dagrun_replay(g, NULL) && !stand_in_wait());
    expect_result((float *)described(g, "out").pointer, 1);
    EXPECT(!dagrun_free(g));
}

// The context that is current stays current, and a graph uses the one that was current when it was loaded.
static void contexts(const char *file) {
    dagrun_graph *g = NULL;
    dagrun_options o;
    void *popped;
    EXPECT(!driver.cuCtxPushCurrent(stand_in_context(1)) && !dagrun_load(&g, file, NULL) && stand_in_current() == stand_in_context(1));
    EXPECT(stand_in_live() == 2 && "a module and memory, and no context is retained");
    EXPECT(!driver.cuCtxPopCurrent(&popped) && !dagrun_replay(g, NULL) && !stand_in_current());
    EXPECT(!driver.cuCtxPushCurrent(stand_in_context(0)) && !dagrun_replay(g, NULL) && stand_in_current() == stand_in_context(0) && !dagrun_free(g));
    memset(&o, 0, sizeof o);
    o.size = sizeof o, o.context = (struct CUctx_st *)stand_in_context(1);
    EXPECT(!dagrun_load(&g, file, &o) && !dagrun_replay(g, NULL) && stand_in_current() == stand_in_context(0) && !dagrun_free(g) &&
        !driver.cuCtxPopCurrent(&popped));
}

static void *thread(void *file) {
    dagrun_graph *g = NULL;
    EXPECT(!strcmp(dagrun_error(), "") && dagrun_load(&g, (const char *)file, NULL) == 301);
    return NULL;
}

// One try of all that can fail, for a driver of which one call does. It returns how many calls there were.
static int try_all(const char *file) {
    dagrun_graph *g = NULL;
    void *memory = malloc(COUNT * 4);
    int code = dagrun_load(&g, file, NULL), calls;
    if (!code) {
        dagrun_buffer b;
        b.size = sizeof b;
        code = dagrun_describe(g, 0, &b);
        if (!code) code = dagrun_replay(g, NULL);
        if (!code) code = dagrun_bind(g, "x", memory);
        if (!code) code = dagrun_replay(g, NULL);
        if (!code) code = dagrun_bind(g, "out", memory);
        if (!code) code = dagrun_replay(g, NULL);
        stand_in_begin_capture();
        if (!code) code = dagrun_replay(g, NULL);
        stand_in_end_capture(0);
        EXPECT(!code || (code == 999 && strstr(dagrun_error(), "this call was to fail")));
        if (code) EXPECT(!dagrun_replay(g, NULL)); // and then it works
        stand_in_wait();
    }
    EXPECT(!code || (code == 999 && strstr(dagrun_error(), "CUDA_ERROR_UNKNOWN")) || (code == 200 && strstr(dagrun_error(), "does not take the parameters")));
    calls = stand_in_calls();
    stand_in_fail(-1); // a driver that does not even push a context cannot free anything
    EXPECT(!dagrun_free(g) && stand_in_live() == 0);
    free(memory);
    return calls;
}

static void tries(const char *file) {
    int calls = try_all(file);
    EXPECT(calls > 40);
    for (int k = 1; k <= calls; k++) stand_in_fail(k), try_all(file);
}

// Drivers that lack one of the functions: the message names it, unless it is not needed.
static void lacks(const char *file) {
    static const struct {
        const char *name;
        int optional;
    } functions[] = {
#define ROW(name, version, parameters, optional) {#name, optional},
        DG_DRIVER(ROW)
#undef ROW
    };
    for (size_t k = 0; k < sizeof functions / sizeof *functions; k++) {
        dagrun_graph *g = NULL;
        char text[128];
        stand_in_lacks(functions[k].name);
        snprintf(text, sizeof text, "the CUDA driver has no %s: it is older than CUDA 11.4", functions[k].name);
        if (functions[k].optional) EXPECT(!dagrun_load(&g, file, NULL) && !dagrun_replay(g, NULL) && !dagrun_free(g));
        else EXPECT(dagrun_load(&g, file, NULL) == 803 && !g && !strcmp(dagrun_error(), text));
    }
    stand_in_wait();
}

// Loads each file that is named on a line of the input, and says what was wrong.
static void reads(void) {
    char name[4096];
    while (fgets(name, sizeof name, stdin)) {
        dagrun_graph *g = NULL;
        int code;
        name[strcspn(name, "\n")] = 0;
        code = dagrun_load(&g, name, NULL);
        if (!code) code = dagrun_replay(g, NULL);
        stand_in_forget(); // it may be the code of anyone
        printf("%d ", code);
        for (const char *at = code ? dagrun_error() : ""; *at; at++) putchar(*at == '\n' ? ' ' : *at); // names are as the file has them
        printf("\n");
        EXPECT(!dagrun_free(g) && stand_in_live() == 0);
    }
}

int main(int count, char **arguments) {
    const char *what = count > 1 ? arguments[1] : "", *file = count > 2 ? arguments[2] : "";
    EXPECT(!dg_open_driver(&driver));
    if (!strcmp(what, "lives")) lives(file), printf("%d left of the program\n", stand_in_live());
    if (!strcmp(what, "orders")) orders(file);
    if (!strcmp(what, "captures")) captures(file);
    if (!strcmp(what, "mistakes")) mistakes(file);
    if (!strcmp(what, "contexts")) contexts(file);
    if (!strcmp(what, "tries")) tries(file);
    if (!strcmp(what, "lacks")) lacks(file);
    if (!strcmp(what, "reads")) reads();
    if (!strcmp(what, "threads")) {
        pthread_t of;
        dagrun_graph *g = NULL;
        EXPECT(dagrun_load(&g, "none.dagrun", NULL) && !pthread_create(&of, NULL, thread, (void *)"other.dagrun") && !pthread_join(of, NULL));
        EXPECT(strstr(dagrun_error(), "none.dagrun"));
    }
    if (strcmp(what, "lives") && strcmp(what, "mistakes")) EXPECT(stand_in_live() == 0);
    return 0;
}
