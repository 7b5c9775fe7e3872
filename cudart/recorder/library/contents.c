// What bytes were: the code of modules, and with --contents the memory that a graph reaches before its first launch, each stored once by hash.
//
// Memory is copied on the thread that launches, outside captures, by a stream of its own, when the launch's stream has done what it had to do. The program
// is not told of any of this, but it waits.
#include "contents.h"

#include <elf.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "calls.h"
#include "file.h"
#include "hash.h"
#include "memory.h"

#define PIECE (4ul << 20) // of memory, which is stored once wherever it occurs

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

// Hashes that are in the file, in a table that grows.
static uint64_t *seen;
static size_t seen_count, seen_room;

// A forked child writes a file of its own, in which nothing is yet.
static void forked(void) {
    pthread_mutex_init(&lock, NULL);
    if (seen) memset(seen, 0, seen_room * sizeof *seen);
    seen_count = 0;
}

void contents_start(void) { pthread_atfork(NULL, NULL, forked); }

static int first_time(uint64_t hash) {
    if (2 * seen_count >= seen_room) {
        size_t room = seen_room ? 2 * seen_room : 1024;
        uint64_t *more = calloc(room, sizeof *more);
        if (!more) return 1;
        for (size_t k = 0; k < seen_room; k++) {
            if (!seen[k]) continue;
            size_t at = seen[k] % room;
            while (more[at]) at = (at + 1) % room;
            more[at] = seen[k];
        }
        free(seen);
        seen = more, seen_room = room;
    }
    size_t at = hash % seen_room;
    while (seen[at] && seen[at] != hash) at = (at + 1) % seen_room;
    if (seen[at]) return 0;
    seen[at] = hash, seen_count++;
    return 1;
}

// keep writes a record with bytes that are stored once. What calls may need of the file's limit is left to them.
static void keep(uint16_t kind, uint64_t *words, unsigned word_count, const void *bytes, size_t count) {
    words[3] = hash_of(bytes, count);
    int missing = !file_has_room(count);
    pthread_mutex_lock(&lock);
    if (missing || !first_time(words[3])) count = 0;
    pthread_mutex_unlock(&lock);
    file_put(kind, words, word_count, count ? bytes : NULL, count);
    static atomic_int said;
    if (!missing || atomic_exchange(&said, 1)) return;
    file_note(NOTE_CONTENTS, words[2], "contents of memory and code are missing: with them, the recording would have reached its limit (--limit)");
    fprintf(stderr, "dagrun: contents of memory and code are not kept any more: with them, the recording would reach its limit (--limit)\n");
}

// Code.

static size_t elf_bytes(const unsigned char *image) {
    const Elf64_Ehdr *h = (const void *)image;
    size_t end = h->e_shoff + (size_t)h->e_shnum * sizeof(Elf64_Shdr), more = h->e_phoff + (size_t)h->e_phnum * sizeof(Elf64_Phdr);
    if (more > end) end = more;
    const Elf64_Shdr *sections = (const void *)(image + h->e_shoff);
    for (unsigned k = 0; k < h->e_shnum && h->e_shentsize == sizeof *sections; k++)
        if (sections[k].sh_type < SHT_LOPROC && sections[k].sh_type != SHT_NOBITS && sections[k].sh_offset + sections[k].sh_size > end) end = sections[k].sh_offset + sections[k].sh_size;
    return end;
}

struct fatbin {
    uint32_t magic;
    uint16_t version, head;
    uint64_t bytes; // behind the head
};
struct fatbin_part {
    uint16_t kind, version; // 1: PTX, 2: a cubin
    uint32_t head;
    uint64_t bytes; // behind the head
    uint32_t packed, unknown;
    uint16_t minor, major;
    uint32_t architecture;
};
#define FATBIN 0xba55ed50u
#define WRAPPER 0x466243b1u // what the compiler puts around a fatbin: magic, version, pointer

// generations returns a bit for the generation of each GPU of the machine (the first part of its compute capability).
static uint64_t generations(void) {
    static _Atomic uint64_t known;
    uint64_t found = atomic_load(&known);
    int devices = 0;
    if (found || !driver.device_count || !driver.device_attribute) return found;
    calling++;
    if (driver.device_count(&devices)) devices = 0;
    for (int k = 0; k < devices; k++) {
        int generation;
        if (!driver.device_attribute(&generation, 75, k) && generation > 0 && generation < 64) found |= 1ull << generation;
    }
    calling--;
    atomic_store(&known, found);
    return found;
}

// without_strangers copies a fatbin, but for cubins of GPUs of generations that the machine does not have, which are most of it. It returns NULL if it is not what it should be.
static unsigned char *without_strangers(const unsigned char *image, size_t *bytes) {
    const struct fatbin *h = (const void *)image;
    uint64_t here = generations();
    unsigned char *copy = malloc(*bytes);
    if (!copy || h->head < sizeof *h || *bytes < h->head) {
        free(copy);
        return NULL;
    }
    memcpy(copy, image, h->head);
    size_t used = h->head;
    for (size_t at = h->head; at < *bytes;) {
        const struct fatbin_part *part = (const void *)(image + at);
        if (*bytes - at < sizeof *part || part->head < sizeof *part || part->head > *bytes - at || part->bytes > *bytes - at - part->head) {
            free(copy);
            return NULL;
        }
        size_t size = part->head + part->bytes;
        if (part->kind != 2 || !here || (here >> (part->architecture / 10 & 63) & 1)) memcpy(copy + used, part, size), used += size;
        at += size;
    }
    *bytes = used;
    ((struct fatbin *)copy)->bytes = used - h->head;
    return copy;
}

static void keep_code(uint64_t words[5], const void *image) {
    const unsigned char *b = image;
    unsigned char *copy = NULL;
    uint32_t magic;
    memcpy(&magic, b, sizeof magic);
    if (magic == WRAPPER) {
        memcpy(&b, b + 8, sizeof b);
        memcpy(&magic, b, sizeof magic);
    }
    size_t bytes = 0;
    if (magic == FATBIN) {
        bytes = ((const struct fatbin *)b)->head + ((const struct fatbin *)b)->bytes;
        copy = without_strangers(b, &bytes);
        if (copy) b = copy;
    } else if (!memcmp(&magic, ELFMAG, SELFMAG)) {
        bytes = elf_bytes(b);
    } else if (b[0] < 0x80 && b[0] >= 9) { // text: PTX, with its zero
        bytes = strlen((const char *)b) + 1;
    }
    words[2] = bytes;
    if (bytes) keep(RECORD_MODULE, words, 5, b, bytes);
    else file_put(RECORD_MODULE, words, 5, NULL, 0);
    free(copy);
}

void contents_of_module(uint64_t sequence, handle module, handle library, const void *image) {
    uint64_t words[5] = {module, library, 0, 0, sequence};
    if (image) keep_code(words, image);
}

void contents_of_file(uint64_t sequence, handle module, handle library, const char *name) {
    uint64_t words[5] = {module, library, 0, 0, sequence};
    struct stat is;
    int file = name ? open(name, O_RDONLY | O_CLOEXEC) : -1;
    if (file >= 0 && !fstat(file, &is) && is.st_size > 8) {
        char *at = malloc((size_t)is.st_size + 1); // PTX in a file has no zero
        ssize_t got = at ? read(file, at, (size_t)is.st_size) : 0;
        if (got == is.st_size) {
            at[got] = 0;
            keep_code(words, at);
        }
        free(at);
    }
    if (file >= 0) close(file);
}

// Memory that graphs reach.

struct words {
    uint64_t *at;
    size_t count, room;
};
struct graph {
    handle execution;
    struct words points_to;
    struct graph *next;
};
static int watching;
static struct graph *graphs; // that were not launched yet
static __thread struct words noted;

void contents_watch(void) {
    watching = 1;
    memory_watch();
}

void contents_words(const void *bytes, size_t count) {
    if (!watching) return;
    for (size_t k = 0; k + 8 <= count; k += 8) {
        uint64_t word;
        memcpy(&word, (const char *)bytes + k, sizeof word);
        if (!memory_reach(word).kind) continue;
        if (noted.count == noted.room) {
            uint64_t *more = realloc(noted.at, (2 * noted.room + 64) * sizeof *more);
            if (!more) return;
            noted.at = more, noted.room = 2 * noted.room + 64;
        }
        noted.at[noted.count++] = word;
    }
}

// take removes a graph from the list of those that were not launched yet.
static struct graph *take(handle execution) {
    for (struct graph **at = &graphs; *at; at = &(*at)->next) {
        struct graph *g = *at;
        if (g->execution != execution) continue;
        *at = g->next;
        return g;
    }
    return NULL;
}

static void drop(struct graph *g) {
    if (g) free(g->points_to.at);
    free(g);
}

void contents_instantiated(handle execution) {
    if (!watching) return;
    struct graph *g = execution ? calloc(1, sizeof *g) : NULL;
    if (!g) {
        noted.count = 0;
        return;
    }
    *g = (struct graph){.execution = execution, .points_to = noted};
    noted = (struct words){0};
    pthread_mutex_lock(&lock);
    drop(take(execution));
    g->next = graphs, graphs = g;
    pthread_mutex_unlock(&lock);
}

static int by_address(const void *a, const void *b) {
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

// done waits for an event, but not for ever: the stream may wait for something that this thread has yet to do.
static int done(handle event) {
    for (int k = 0; k < 100000; k++) {
        int wrong = driver.event_query(event);
        if (wrong != 600) return wrong; // 600: not ready
        struct timespec pause = {0, 100000};
        nanosleep(&pause, NULL);
    }
    return 600;
}

// copy_range keeps an allocation piece by piece.
static int copy_range(uint64_t sequence, const struct range *r, handle by, void *buffer) {
    int wrong = 0;
    for (uint64_t at = r->low; !wrong && at < r->high; at += PIECE) {
        size_t bytes = r->high - at < PIECE ? r->high - at : PIECE;
        const void *from = (const void *)at;
        if (r->kind != ALLOC_PINNED && r->kind != ALLOC_REGISTERED) {
            wrong = driver.copy_to_host(buffer, at, bytes, by);
            if (!wrong) wrong = driver.stream_wait(by);
            from = buffer;
        }
        uint64_t words[4] = {sequence, at, bytes, 0};
        if (!wrong) keep(RECORD_CONTENTS, words, 4, from, bytes);
    }
    return wrong;
}

static int copy_all(uint64_t sequence, struct words *points_to, handle stream) {
    handle event = 0, by = 0;
    int mode = 2; // relaxed: what other threads capture is left alone
    int exchanged = driver.exchange_mode && !driver.exchange_mode(&mode);
    // an event, because the stream itself does not wait for the default stream until something is submitted to it
    int wrong = driver.event_make(&event, 2);
    if (!wrong) wrong = driver.event_record(event, stream);
    if (!wrong) wrong = done(event);
    if (!wrong) wrong = driver.stream_make(&by, 1);
    void *buffer = malloc(PIECE);
    qsort(points_to->at, points_to->count, sizeof *points_to->at, by_address);
    uint64_t end = 0; // of what is copied
    for (size_t k = 0; !wrong && buffer && k < points_to->count; k++) {
        struct range r = memory_reach(points_to->at[k]);
        if (!r.kind || r.kind == ALLOC_ARRAY || r.high <= end) continue;
        wrong = copy_range(sequence, &r, by, buffer);
        end = r.high;
    }
    if (by) driver.stream_drop(by);
    if (event) driver.event_drop(event);
    if (exchanged) driver.exchange_mode(&mode);
    free(buffer);
    return wrong;
}

void contents_before_launch(uint64_t sequence, handle execution, handle stream) {
    if (!watching || atomic_load(&captures) > 0 || !driver.event_query || !driver.stream_make || !driver.stream_drop || !driver.stream_wait || !driver.copy_to_host) return;
    pthread_mutex_lock(&lock);
    struct graph *g = take(execution);
    pthread_mutex_unlock(&lock);
    if (!g) return;
    calling++;
    int wrong = copy_all(sequence, &g->points_to, stream); // without the lock: other threads may have to go on for the stream to be done
    calling--;
    if (wrong == 600) file_note(NOTE_CONTENTS, 600, "contents of memory that a graph reaches are missing: its stream was not done after 10 seconds");
    else if (wrong) file_note(NOTE_CONTENTS, (uint64_t)wrong, "contents of memory that a graph reaches are missing: they could not be copied (error %d)", wrong);
    drop(g);
}
