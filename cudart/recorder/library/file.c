// The mapped file of this process. Each thread fills blocks of its own, so that writing needs no lock but for a new block; a record is
// complete when the block's `used` covers it. The kernel keeps mapped pages, so what is complete survives kill -9.
#define _GNU_SOURCE
#include "file.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define EXTENT (16ull << 20)  // the file grows by this much
#define MOST (1ull << 40)     // that it may have

static struct file_header *header; // also the beginning of the mapping
static int descriptor = -1;
static uint64_t mapped;  // bytes of the file that are there and mapped
static uint64_t limit_bytes; // also of address space that is kept for the file
static atomic_int writing;
static pthread_mutex_t growing = PTHREAD_MUTEX_INITIALIZER;
static atomic_uint threads;
static char folder_name[4096];
static uint32_t file_mode;
static atomic_uint generation; // grows in a forked child, so that threads drop the blocks of the parent

struct thread {
    struct block_header *block;
    uint64_t capacity;
    uint32_t index;
    uint32_t generation;
};
static __thread struct thread self;

uint64_t file_clock(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000ull + (uint64_t)t.tv_nsec;
}

static uint64_t unix_time(void) {
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return (uint64_t)t.tv_sec * 1000000000ull + (uint64_t)t.tv_nsec;
}

uint64_t file_sequence(void) { return header ? atomic_fetch_add((_Atomic uint64_t *)&header->sequence, 1) + 1 : 0; }

int file_writes(void) { return atomic_load_explicit(&writing, memory_order_relaxed); }

int file_has_room(uint64_t bytes) { return header && header->reserved + bytes <= limit_bytes - limit_bytes / 4; }

uint64_t file_hash(const void *bytes, size_t count) {
    uint64_t h = 1469598103934665603ull;
    for (const unsigned char *b = bytes, *end = b + count; b < end; b++) h = (h ^ *b) * 1099511628211ull;
    return h;
}

// extend makes the file at least as long as `bytes`. The space is taken from the disk here, so that a full disk is an error and not a signal.
static int extend(uint64_t bytes) {
    while (mapped < bytes) {
        if (mapped + EXTENT > limit_bytes) return EFBIG;
        int wrong = posix_fallocate(descriptor, (off_t)mapped, (off_t)EXTENT);
        if (wrong) return wrong;
        void *at = mmap((char *)header + mapped, EXTENT, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, descriptor, (off_t)mapped);
        if (at == MAP_FAILED) return errno;
        mapped += EXTENT;
    }
    return 0;
}

static int begin(void) {
    char name[4200];
    snprintf(name, sizeof name, "%s/%u.%llx.part", folder_name, (unsigned)getpid(), (unsigned long long)unix_time());
    descriptor = open(name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (descriptor < 0) return errno;
    void *space = mmap(NULL, limit_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (space == MAP_FAILED) return errno;
    madvise(space, limit_bytes, MADV_DONTDUMP);
    header = space;
    mapped = 0;
    int wrong = extend(BLOCK_BYTES);
    if (wrong) {
        munmap(space, limit_bytes);
        header = NULL;
        return wrong;
    }
    header->version = FORMAT_VERSION;
    header->process = (uint32_t)getpid();
    header->parent = (uint32_t)getppid();
    header->mode = file_mode;
    header->start_unix = unix_time();
    header->start_clock = file_clock();
    header->reserved = BLOCK_BYTES;
    header->magic = FORMAT_MAGIC;
    atomic_store(&writing, 1);
    return 0;
}

// A forked child shares the parent's mapping. It starts a file of its own, and leaves the parent's alone. Its driver does not work
// after a fork, but it may still exec or use another library.
static void forked(void) {
    if (!header) return;
    munmap(header, limit_bytes);
    close(descriptor);
    header = NULL;
    atomic_store(&writing, 0);
    atomic_fetch_add(&generation, 1);
    pthread_mutex_init(&growing, NULL);
    begin();
}

int file_open(const char *folder, uint32_t mode, uint64_t limit) {
    snprintf(folder_name, sizeof folder_name, "%s", folder);
    file_mode = mode;
    limit_bytes = limit < MOST ? limit : MOST;
    int wrong = begin();
    if (!wrong) pthread_atfork(NULL, NULL, forked);
    return wrong;
}

void file_ended(void) {
    if (!header) return;
    header->ended = 1;
    atomic_store(&writing, 0);
}

// new_block gives the thread a run of blocks with room for `bytes`.
static int new_block(struct thread *t, uint64_t bytes) {
    uint64_t run = (bytes + sizeof(struct block_header) + BLOCK_BYTES - 1) / BLOCK_BYTES * BLOCK_BYTES;
    pthread_mutex_lock(&growing);
    uint64_t at = header->reserved;
    int wrong = extend(at + run);
    if (wrong) {
        int was = atomic_exchange(&writing, 0);
        pthread_mutex_unlock(&growing);
        if (was) fprintf(stderr, "dagrun: the recording ends here: %s\n", wrong == EFBIG ? "it has reached its limit (--limit)" : strerror(wrong));
        return wrong;
    }
    struct block_header *b = (struct block_header *)((char *)header + at);
    b->thread = t->index;
    b->blocks = (uint32_t)(run / BLOCK_BYTES);
    b->used = sizeof *b;
    b->magic = BLOCK_MAGIC;
    atomic_store_explicit((_Atomic uint64_t *)&header->reserved, at + run, memory_order_release);
    pthread_mutex_unlock(&growing);
    t->block = b;
    t->capacity = run;
    return 0;
}

static void introduce(struct thread *t) {
    char name[16] = "";
    prctl(PR_GET_NAME, name);
    uint64_t words[2] = {t->index, (uint64_t)syscall(SYS_gettid)};
    file_put(RECORD_THREAD, words, 2, name, strnlen(name, sizeof name));
}

void file_put(uint16_t kind, const uint64_t *words, unsigned count, const void *tail, size_t bytes) {
    if (!file_writes()) {
        if (header) atomic_fetch_add((_Atomic uint64_t *)&header->lost, 1);
        return;
    }
    struct thread *t = &self;
    unsigned now = atomic_load_explicit(&generation, memory_order_relaxed) + 1;
    if (t->generation != now) {
        *t = (struct thread){.index = atomic_fetch_add(&threads, 1), .generation = now};
        introduce(t);
    }
    uint64_t size = (sizeof(struct record_header) + 8ull * count + bytes + 7) & ~7ull;
    if (size > 0xfffffff0ull || ((!t->block || t->block->used + size > t->capacity) && new_block(t, size))) {
        atomic_fetch_add((_Atomic uint64_t *)&header->lost, 1);
        return;
    }
    char *at = (char *)t->block + t->block->used;
    struct record_header h = {(uint32_t)size, kind, (uint16_t)count, (uint32_t)bytes, t->index};
    memcpy(at, &h, sizeof h);
    if (count) memcpy(at + sizeof h, words, 8ull * count);
    if (bytes) memcpy(at + sizeof h + 8ull * count, tail, bytes);
    atomic_store_explicit((_Atomic uint64_t *)&t->block->used, t->block->used + size, memory_order_release);
}

void file_note(uint64_t code, uint64_t value, const char *format, ...) {
    char text[1024];
    va_list arguments;
    va_start(arguments, format);
    int n = vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    uint64_t words[2] = {code, value};
    file_put(RECORD_NOTE, words, 2, text, n < (int)sizeof text ? (size_t)n : sizeof text - 1);
}
