// Which memory is allocated now, for what looks at memory itself (--contents, --host-accesses).
#ifndef DAGRUN_MEMORY_H
#define DAGRUN_MEMORY_H

#include <stdint.h>

struct range {
    uint64_t low, high;
    uint32_t kind; // ALLOC_*
};

void memory_watch(void); // from here on it is noted
void memory_put(uint64_t low, uint64_t bytes, uint32_t kind);
void memory_drop(uint64_t low, uint64_t bytes); // bytes: of what was given back, 0 if that is one allocation
// memory_reach returns what memory a pointer leads to: its allocation, and what is mapped without a gap beside it. Its kind is 0 if there is none.
struct range memory_reach(uint64_t address);

#endif
