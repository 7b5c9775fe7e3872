// The mapped file of this process: threads, numbers that grow, records. See format.h for what is in it.
#ifndef DAGRUN_FILE_H
#define DAGRUN_FILE_H

#include <stddef.h>
#include <stdint.h>

#include "format.h"

// file_open makes the file of this process in a folder. It returns 0, or an errno.
int file_open(const char *folder, uint32_t mode, uint64_t limit);
// file_ended notes that the process ended in an orderly way.
void file_ended(void);
// file_writes tells whether records are still written: not before file_open, and not when the disk is full.
int file_writes(void);

uint64_t file_sequence(void); // the next number
uint64_t file_clock(void);    // nanoseconds

// file_has_room tells whether bytes that checking does not need may be written: a quarter of the limit is left to calls.
int file_has_room(uint64_t bytes);

// file_put writes a record of the calling thread. It never blocks but for a new block, and never fails loudly: what cannot be written is counted.
void file_put(uint16_t kind, const uint64_t *words, unsigned count, const void *tail, size_t bytes);
// file_note writes a RECORD_NOTE with a text as printf makes it.
void file_note(uint64_t code, uint64_t value, const char *format, ...) __attribute__((format(printf, 3, 4)));
uint64_t file_hash(const void *bytes, size_t count); // FNV-1a

#endif
