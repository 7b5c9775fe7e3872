// Which memory is allocated now: a row of ranges, sorted by address.
#include "memory.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "format.h"

static int watching;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct range *ranges;
static size_t count, room;

void memory_watch(void) { watching = 1; }

// first_above returns the index of the first range that ends above an address.
static size_t first_above(uint64_t address) {
    size_t low = 0, high = count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (ranges[middle].high > address) high = middle;
        else low = middle + 1;
    }
    return low;
}

void memory_put(uint64_t low, uint64_t bytes, uint32_t kind) {
    if (!watching || bytes == 0 || low + bytes < low) return;
    pthread_mutex_lock(&lock);
    size_t at = first_above(low), end = at;
    while (end < count && ranges[end].low < low + bytes) end++; // what lay there was freed unseen
    if (count + 1 > room) {
        struct range *more = realloc(ranges, (2 * room + 64) * sizeof *more);
        if (more) ranges = more, room = 2 * room + 64;
    }
    if (count + 1 <= room) {
        memmove(ranges + at + 1, ranges + end, (count - end) * sizeof *ranges);
        ranges[at] = (struct range){low, low + bytes, kind};
        count += 1 + at - end;
    }
    pthread_mutex_unlock(&lock);
}

void memory_drop(uint64_t low, uint64_t bytes) {
    if (!watching) return;
    pthread_mutex_lock(&lock);
    size_t at = first_above(low), end = at;
    while (end < count && (ranges[end].low == low || (ranges[end].low > low && ranges[end].high <= low + bytes))) end++;
    if (end > at) memmove(ranges + at, ranges + end, (count - end) * sizeof *ranges);
    count -= end - at;
    pthread_mutex_unlock(&lock);
}

struct range memory_reach(uint64_t address) {
    struct range found = {0};
    if (!watching) return found;
    pthread_mutex_lock(&lock);
    size_t at = first_above(address);
    if (at < count && ranges[at].low <= address) {
        found = ranges[at];
        for (size_t k = at; found.kind == ALLOC_MAPPED && k > 0 && ranges[k - 1].kind == ALLOC_MAPPED && ranges[k - 1].high == found.low; k--) found.low = ranges[k - 1].low;
        for (size_t k = at + 1; found.kind == ALLOC_MAPPED && k < count && ranges[k].kind == ALLOC_MAPPED && ranges[k].low == found.high; k++) found.high = ranges[k].high;
    }
    pthread_mutex_unlock(&lock);
    return found;
}
