// The table in the GPU's memory that patched kernels write to: which lines of memory each launch touched, and which bytes of them. It is shared by patch.cu,
// which fills it, and measure.c, which reads it.
//
// A launch is given the address of a slot, which holds the slot's own number. From the address and the number follows where the table begins.
// Slot 0 is of launches that are not measured. A launch is named by the number of its grid, not by its slot: nodes of a graph that follow each other see the
// slot of the last of them. A line is found by hashing (grid, line); `keys` and `where` lead to an entry of the dense list `entries`, so that reading the table
// copies only what was used.
#ifndef DAGRUN_TABLE_H
#define DAGRUN_TABLE_H

#include <stdint.h>

#define LINE_SHIFT 7 // 128 bytes
#define LINE_BITS 42 // of addresses below 2^49
#define SLOTS (1u << 20)
#define GRID_MASK ((1ull << (64 - LINE_BITS)) - 1) // of a grid's number
#define TRIES 64 // places in the hash table that are tried

struct entry {
    uint64_t key;        // grid << LINE_BITS | line
    uint32_t read[4];    // a bit for each byte
    uint32_t written[4];
    uint32_t atomic[4];
};

struct table {
    uint64_t places; // a power of two
    uint32_t capacity, zero;
    uint32_t used, zero1;  // entries; may count beyond the capacity
    uint64_t *keys;        // [places]
    uint32_t *where;       // [places], index of the entry plus 1, 0 while it is being made
    struct entry *entries; // [capacity]
    uint32_t *lost;        // [SLOTS], accesses of a grid that did not fit, by its number modulo SLOTS
    uint64_t slots[1];     // [SLOTS]
};

#endif
