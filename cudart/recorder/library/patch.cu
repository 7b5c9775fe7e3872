// What patched instructions call: notes which bytes of which lines a launch reads, writes or updates atomically. It is compiled by
//
//     nvcc --fatbin --compile-as-tools-patch patch.cu
//
// for every architecture (see build). Its functions return 0: go on.
#include "table.h"

// The flags of an access, as the Sanitizer API has them.
enum { READ = 1, WRITE = 2, ATOMIC = 4, PREFETCH = 8 };

__device__ __forceinline__ static uint32_t place_of(struct table *t, uint64_t key) {
    uint64_t at = (key * 0x9e3779b97f4a7c15ull) >> 20;
    for (uint32_t tries = 0; tries < TRIES; tries++, at++) {
        at &= t->places - 1;
        uint64_t there = *(volatile uint64_t *)&t->keys[at];
        if (there == 0) {
            there = atomicCAS((unsigned long long *)&t->keys[at], 0ull, (unsigned long long)key);
            if (there == 0) {
                uint32_t n = atomicAdd(&t->used, 1u);
                if (n < t->capacity) {
                    t->entries[n].key = key;
                    __threadfence();
                }
                atomicExch(&t->where[at], n < t->capacity ? n + 1 : UINT32_MAX);
                return n < t->capacity ? n : UINT32_MAX;
            }
        }
        if (there != key) continue;
        uint32_t found;
        while ((found = *(volatile uint32_t *)&t->where[at]) == 0) { // another thread is making it
        }
        return found == UINT32_MAX ? UINT32_MAX : found - 1;
    }
    return UINT32_MAX;
}

__device__ __forceinline__ static void set(uint32_t *mask, uint32_t bits) {
    if ((*(volatile uint32_t *)mask & bits) != bits) atomicOr(mask, bits);
}

// note records an access of up to 128 bytes that stays within a line.
__device__ __noinline__ static void note(struct table *t, uint64_t grid, uint64_t address, uint32_t bytes, uint32_t flags) {
    uint32_t n = place_of(t, (grid & GRID_MASK) << LINE_BITS | address >> LINE_SHIFT);
    if (n == UINT32_MAX) {
        atomicAdd(&t->lost[grid % SLOTS], 1u);
        return;
    }
    struct entry *e = &t->entries[n];
    uint32_t first = (uint32_t)address & ((1u << LINE_SHIFT) - 1);
    while (bytes > 0) {
        uint32_t word = first >> 5, bit = first & 31, count = min(bytes, 32 - bit);
        uint32_t bits = (count == 32 ? UINT32_MAX : (1u << count) - 1) << bit;
        if (flags & ATOMIC) {
            set(&e->atomic[word], bits);
        } else {
            if (flags & READ) set(&e->read[word], bits);
            if (flags & WRITE) set(&e->written[word], bits);
        }
        first += count, bytes -= count;
    }
}

__device__ __forceinline__ static void access(void *data, uint64_t address, uint64_t bytes, uint32_t flags) {
    if (data == nullptr) return;
    uint64_t slot = *(volatile uint64_t *)data;
    if (slot == 0) return;
    struct table *t = (struct table *)((char *)data - slot * 8 - offsetof(struct table, slots));
    uint64_t grid;
    asm("mov.u64 %0, %%gridid;" : "=l"(grid));
    while (bytes > 0) {
        uint32_t left = (1u << LINE_SHIFT) - ((uint32_t)address & ((1u << LINE_SHIFT) - 1));
        uint32_t count = bytes < left ? (uint32_t)bytes : left;
        note(t, grid, address, count, flags);
        address += count, bytes -= count;
    }
}

extern "C" __device__ __noinline__ int dagrun_access(void *data, uint64_t pc, void *address, uint32_t bytes, uint32_t flags, const void *value) {
    if (flags & PREFETCH) return 0;
    // an atomic comes as a read and a write of which no value is known
    if ((flags & (READ | WRITE)) == (READ | WRITE)) flags = ATOMIC;
    access(data, (uint64_t)address, bytes, flags);
    return 0;
}

extern "C" __device__ __noinline__ int dagrun_copy_to_shared(void *data, uint64_t pc, void *source, uint32_t destination, uint32_t bytes) {
    if (source) access(data, (uint64_t)source, bytes, READ);
    return 0;
}

// The active threads of a warp have the same arguments, so one of them notes the copy.
__device__ __forceinline__ static bool first_active(void) {
    uint32_t lane;
    asm("mov.u32 %0, %%laneid;" : "=r"(lane));
    return lane == __ffs(__activemask()) - 1;
}

extern "C" __device__ __noinline__ int dagrun_bulk_to_shared(void *data, uint64_t pc, uint64_t source, uint32_t destination, uint32_t barrier, uint32_t blocks, uint32_t multicast) {
    if (first_active()) access(data, source, (uint64_t)(blocks & 0xffff) * 16, READ);
    return 0;
}

extern "C" __device__ __noinline__ int dagrun_bulk_to_global(void *data, uint64_t pc, uint64_t destination, uint32_t source, uint32_t blocks) {
    if (first_active()) access(data, destination, (uint64_t)blocks * 16, WRITE);
    return 0;
}

extern "C" __device__ __noinline__ int dagrun_bulk_reduction(void *data, uint64_t pc, uint64_t destination, uint32_t source, uint32_t blocks) {
    if (first_active()) access(data, destination, (uint64_t)blocks * 16, ATOMIC);
    return 0;
}
