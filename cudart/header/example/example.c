// Runs saxpy.dagrun (dagrun export pipelines/saxpy.yaml -p n=1000 -o saxpy.dagrun) on inputs of its own: out = 2 x + y.
//
//     cc example.c -o example -ldl && ./example saxpy.dagrun
//
// A program in C++ does the same, and can bind memory of cudaMalloc, or of tensors, in the same way.
#define DAGRUN_IMPLEMENTATION
#include "dagrun.h"

#include <stdio.h>

static float x[1000], y[1000];

static int failed(const char *what) {
    fprintf(stderr, "%s: %s\n", what, dagrun_error());
    return 1;
}

int main(int count, char **arguments) {
    dagrun_graph *graph;
    dagrun_buffer out;
    for (int k = 0; k < 1000; k++) x[k] = (float)k, y[k] = 0.5f;
    if (dagrun_load(&graph, count > 1 ? arguments[1] : "saxpy.dagrun", NULL)) return failed("load");

    // x and y are copied to the device from here in each replay; out stays where the graph has it.
    if (dagrun_bind(graph, "x", x) || dagrun_bind(graph, "y", y)) return failed("bind");
    for (unsigned k = 0;; k++) {
        out.size = sizeof out;
        if (dagrun_describe(graph, k, &out)) return failed("describe");
        if (strcmp(out.name, "out") == 0) break;
    }

    if (dagrun_replay(graph, NULL)) return failed("replay"); // into the default stream; it returns before the replay has finished
    if (dagrun_wait(graph, NULL)) return failed("wait");     // a program with a stream of its own waits for that instead
    for (int k = 0; k < 1000; k++)
        if (((float *)out.pointer)[k] != 2 * x[k] + y[k]) return printf("out[%d] is wrong\n", k), 1;
    printf("out[999] = %g\n", ((float *)out.pointer)[999]);
    return dagrun_free(graph) ? failed("free") : 0;
}
