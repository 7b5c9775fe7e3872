// Kernels: names and the places of their parameters, asked once for each function.
#include "functions.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "calls.h"
#include "file.h"

#define PARAMETERS 256
#define BUCKETS 65536

struct function {
    handle function;
    uint32_t count, bytes;
    struct function *next;
    uint32_t places[][2]; // offset, bytes
};

static struct function *_Atomic buckets[BUCKETS];
static pthread_mutex_t adding = PTHREAD_MUTEX_INITIALIZER;
unsigned (*function_flags_of)(const char *name);

static struct function *_Atomic *bucket(handle function) { return &buckets[(function * 0x9e3779b97f4a7c15ull) >> 48]; }

static struct function *find(handle function) {
    for (struct function *f = atomic_load_explicit(bucket(function), memory_order_acquire); f; f = f->next)
        if (f->function == function) return f;
    return NULL;
}

// A CUkernel goes where a CUfunction does, so both are asked.
static int parameter(handle function, size_t index, size_t *offset, size_t *bytes) {
    int wrong = driver.function_parameter ? driver.function_parameter(function, index, offset, bytes) : 1;
    if (wrong && driver.kernel_parameter) wrong = driver.kernel_parameter(function, index, offset, bytes);
    return wrong;
}

// Functions that were got from kernels of libraries.
static struct {
    handle function, library;
} *of_library;
static size_t of_library_count, of_library_room;

void function_of_kernel(handle function, handle kernel) {
    handle library = 0;
    calling++;
    if (!driver.kernel_library || driver.kernel_library(&library, kernel)) library = 0;
    calling--;
    pthread_mutex_lock(&adding);
    if (of_library_count == of_library_room) {
        void *more = realloc(of_library, (2 * of_library_room + 64) * sizeof *of_library);
        if (more) of_library = more, of_library_room = 2 * of_library_room + 64;
    }
    if (library && of_library_count < of_library_room) {
        of_library[of_library_count].function = function;
        of_library[of_library_count++].library = library;
    }
    pthread_mutex_unlock(&adding);
}

// library_of returns the library of a kernel, or of a function that was got from one.
static handle library_of(handle function, int is_kernel) {
    handle library = 0;
    if (is_kernel) return driver.kernel_library && !driver.kernel_library(&library, function) ? library : 0;
    for (size_t k = of_library_count; k > 0 && !library; k--)
        if (of_library[k - 1].function == function) library = of_library[k - 1].library;
    return library;
}

static struct function *add(handle function, const char *symbol) {
    uint64_t words[8 + 2 * PARAMETERS] = {function};
    struct function *f = find(function);
    if (f) return f;
    calling++;
    unsigned n = 0;
    size_t offset, bytes, end = 0;
    while (n < PARAMETERS && !parameter(function, n, &offset, &bytes)) {
        words[7 + 2 * n] = offset;
        words[8 + 2 * n] = bytes;
        if (offset + bytes > end) end = offset + bytes;
        n++;
    }
    const char *name = symbol;
    if (!name && (!driver.function_name || driver.function_name(&name, function)) && (!driver.kernel_name || driver.kernel_name(&name, function))) name = NULL;
    handle module = 0, real = function;
    int is_kernel = driver.kernel_function && !driver.kernel_function(&real, function);
    if (!is_kernel) real = function;
    handle library = library_of(function, is_kernel);
    if (driver.function_module && driver.function_module(&module, real)) module = 0;
    int registers = 0, shared = 0;
    if (driver.function_attribute) {
        driver.function_attribute(&shared, 1, real);    // static shared memory
        driver.function_attribute(&registers, 4, real); // registers
    }
    calling--;
    f = malloc(sizeof *f + n * sizeof f->places[0]);
    if (!f) return NULL;
    f->function = function, f->count = n, f->bytes = (uint32_t)end;
    for (unsigned k = 0; k < n; k++) f->places[k][0] = (uint32_t)words[7 + 2 * k], f->places[k][1] = (uint32_t)words[8 + 2 * k];
    words[1] = call_began; // the handle means this from this call on
    words[2] = module;
    words[3] = name && function_flags_of ? function_flags_of(name) : 0;
    words[4] = (uint64_t)registers, words[5] = (uint64_t)shared, words[6] = n, words[7 + 2 * n] = library;
    file_put(RECORD_FUNCTION, words, 8 + 2 * n, name ? name : "", name ? strlen(name) : 0);
    f->next = atomic_load(bucket(function));
    atomic_store_explicit(bucket(function), f, memory_order_release);
    return f;
}

static struct function *known(handle function, const char *symbol) {
    struct function *f = find(function);
    if (f) return f;
    pthread_mutex_lock(&adding);
    f = add(function, symbol);
    pthread_mutex_unlock(&adding);
    return f;
}

size_t function_known(handle function, const char *symbol) {
    struct function *f = known(function, symbol);
    return f ? f->bytes : 0;
}

size_t function_bytes(handle function, void **parameters, void **extra, unsigned char *to, size_t room) {
    struct function *f = known(function, NULL);
    if (extra) {
        const void *buffer = NULL;
        size_t bytes = 0;
        for (void **e = extra; e[0]; e += 2) {
            if (e[0] == (void *)1) buffer = e[1];
            if (e[0] == (void *)2) bytes = *(size_t *)e[1];
        }
        if (!buffer || bytes > room) return 0;
        memcpy(to, buffer, bytes);
        return bytes;
    }
    if (!f || !parameters || f->bytes > room) return 0;
    memset(to, 0, f->bytes);
    for (unsigned k = 0; k < f->count; k++)
        if (parameters[k]) memcpy(to + f->places[k][0], parameters[k], f->places[k][1]);
    return f->bytes;
}

// What was found stays allocated: another thread may be reading it. Modules are unloaded rarely.
void functions_forget(void) {
    pthread_mutex_lock(&adding);
    for (unsigned k = 0; k < BUCKETS; k++) atomic_store_explicit(&buckets[k], NULL, memory_order_release);
    of_library_count = 0;
    pthread_mutex_unlock(&adding);
}
