// A program for the tests of the recorder, which uses the driver as programs do. Its first argument says what it does.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
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
static uint64_t memory;

__attribute__((noinline)) static void launch_on(uint64_t stream) {
    int n = 1000;
    void *parameters[] = {&memory, &n};
    launch(0xf1, 1, 1, 1, 32, 1, 1, 0, stream, parameters, NULL);
}

static int each; // launches of a thread

static void *launches(void *nothing) {
    (void)nothing;
    uint64_t stream;
    make_stream(&stream, 1);
    for (int k = 0; k < each; k++) launch_on(stream);
    return NULL;
}

static void find(void *library, const char *name, void *at) {
    void *found = dlsym(library, name);
    if (!found) fprintf(stderr, "no %s\n", name), exit(99);
    memcpy(at, &found, sizeof found);
}

int main(int count, char **arguments) {
    void *library = dlopen("libcuda.so.1", RTLD_NOW);
    if (count < 2 || !library) return 98;
    int (*init)(unsigned);
    find(library, "cuInit", &init), find(library, "cuLaunchKernel", &launch), find(library, "cuMemAlloc_v2", &alloc), find(library, "cuStreamCreate", &make_stream);
    find(library, "cuEventCreate", &make_event), find(library, "cuEventRecord", &record), find(library, "cuStreamWaitEvent", &wait_event), find(library, "cuCtxSynchronize", &synchronize);
    if (init(0)) return 97;
    const char *what = arguments[1];
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
    } else if (!strcmp(what, "forever")) {
        for (;;) launch_on(0);
    } else {
        for (int k = 0; k < each; k++) launch_on(0);
    }
    printf("done %s\n", what);
    return 7;
}
