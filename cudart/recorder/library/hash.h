// A hash by which code and contents are stored once.
#ifndef DAGRUN_HASH_H
#define DAGRUN_HASH_H

#include <stddef.h>
#include <stdint.h>

// hash_of returns the first eight bytes of the SHA-256 of some bytes, and never 0.
uint64_t hash_of(const void *bytes, size_t count);

#endif
